//! Errors of metadata of Zarr, and with indexes of shards.

use crate::error::messages;

messages! {
    /// What is invalid or unsupported in the metadata of an array.
    #[derive(PartialEq)]
    pub enum ZarrMetadataError: Input {
        NoArray =>
            "has metadata that do not describe a Zarr array of version 2 or 3"; "name the directory of an array",
        FortranOrder => "has the order F, expected C"; "write the array again",
        SampleType { name: String } =>
            "has samples of type {name}, expected integers of 8 to 64 bits or floats of 16, 32 or 64",
        Sides => "has no regular shape and chunks in its metadata"; "write it with regular chunks",
        Separator { separator: String } =>
            "has {separator:?} between the numbers of a chunk, expected / or .",
        FillDigits { value: String, digits: usize } =>
            "has the fill value {value}, expected 0x and {digits} digits, or a number",
        FillValue { value: String } => "has the fill value {value}, expected a number",
        Filters => "has filters, expected none"; "write the array again without",
        Compressor { name: String } =>
            "has chunks in the codec {name}, expected none, gzip, zlib, zstd, lz4 or blosc";
            "write the array again with one of these",
        FirstCodec { name: String } =>
            "has the codec {name} first, expected bytes";
            "write the array again without transposing, and without shards in shards",
        SecondCodec { name: String } =>
            "has the codec {name} after another, expected at most one compressor"; "write the array again with one",
        EncodedShards => "has shards in another codec, expected none"; "write the array again without",
        IndexCodecs { names: String } =>
            "has indexes of shards in the codecs {names}, expected bytes, or bytes and crc32c";
            "write the array again with these",
    }
}

messages! {
    /// Reason why the index of a shard cannot be read.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub enum ShardIndexError: Input {
        Checksum => "is damaged: the checksum of its index is wrong"; "copy or write it again",
        Outside => "is damaged: its index has a chunk outside it"; "copy or write it again",
    }
}

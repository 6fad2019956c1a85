//! Errors of TIFF files, and with the paths that select files.

use crate::error::messages;
use crate::layout::SampleType;
use crate::source::frames::{MAX_PIXELS, MAX_SIDE};
use std::io;

/// Largest size of a compressed strip or tile after decompression, in bytes; it is decompressed in one piece.
pub(super) const MAX_STRIP: u64 = 1 << 30;

messages! {
    /// Errors of a glob.
    pub enum FrameGlobError: Usage {
        Malformed { flag: String, spec: String, error: glob::PatternError } =>
            "{flag} {spec}: not a glob: {error}"; "write for example 'scan/p_*.tif'",
    }
}

messages! {
    /// Errors of a path that selects files.
    pub enum FileSearchError: Input {
        Hdf5 => "is an HDF5 file"; "give it with --hdf5, which reads projections, fields and angles",
        NotAFile => "is neither a file nor a directory"; "expected a TIFF or a directory of TIFFs",
        NothingMatches => "no file matches this glob"; "check the path, and put the glob in quotes",
        Missing => "does not exist"; "expected a directory, a glob or a TIFF file",
        Gzip => "is compressed with gzip"; "decompress it first, for example with gunzip",
        Zip => "is a ZIP archive"; "decompress it first, for example with unzip, and name what was in it",
        Unlisted { error: io::Error } => "cannot be listed: {error}"; "check the permissions of the directory",
        CompressedFiles { name: String } => "contains compressed files such as {name}"; "decompress them first",
        EmptyDirectory { kind: &'static str, names: String } => "contains no {kind}, expected files named {names}",
        OtherFiles { kind: &'static str, names: String, found: String } =>
            "contains no {kind}, expected files named {names} (found {found})",
    }
}

messages! {
    /// Doubts about the files that a path selects.
    pub enum FileSearchWarning: Warning {
        MissingNumbers { flag: String, numbers: String, count: usize } =>
            "{flag}: no file with number {numbers} ({count} missing): existing files are treated as consecutive, so \
             all later angles are those of other projections";
            "copy the missing files, or give the angle of each existing file with --angles; a text file with one path \
             a line, as 'list FILE', says that nothing is missing",
    }
}

messages! {
    /// Differences of pages that are no stack.
    pub enum TiffStackError: Input {
        NoPages => "contains no pages"; "name a file or directory that does",
        OddSample {
            flag: String,
            page: usize,
            name: String,
            sample: SampleType,
            others: &'static str,
            usual: SampleType,
        } =>
            "{flag}: slice {page}: {name} is {sample}, {others} {usual}";
            "move it away, or select the files that belong together with a glob",
        OddSize { flag: String, page: usize, name: String, size: String, others: &'static str, usual: String } =>
            "{flag}: slice {page}: {name} is {size}, {others} {usual}";
            "move it away, or select the files that belong together with a glob",
    }
}

messages! {
    /// Errors of the pages of a TIFF file.
    pub enum TiffPageError: Input {
        InPage { page: usize, error: Box<TiffPageError> } => "page {page}: {error}",
        Unreadable { error: io::Error } => "cannot be read: {error}"; "check the disk and the permissions",
        BecameShorter => "became shorter while it was read"; "run again when nothing writes to it",
        Empty => "is empty (0 bytes), expected a TIFF"; "copy or write it again",
        NoPages =>
            "is a TIFF without pages, perhaps because writing it was interrupted"; "copy or write it again",
        Loop { page: usize } =>
            "is damaged: after page {page} its list of pages goes back to an earlier page (a loop)";
            "copy or write it again",
        Truncated { what: String, needed: u64, offset: u64, length: u64 } =>
            "is truncated or damaged: {what} needs {needed} bytes from offset {offset}, the file has {length}";
            "copy or write it again",
        OverlappingTables => "is damaged: its tables overlap each other"; "copy or write it again",
        TooManyEntries { page: usize, count: u64 } =>
            "is damaged: the header of page {page} claims {count} entries"; "copy or write it again",
        NotAnInteger { tag: u16, field: u16 } =>
            "tag {tag} has the type {field}, expected an integer"; "copy or write it again",
        ValueCount { tag: u16, count: u64, expected: u64 } =>
            "tag {tag} has {count} values, expected {expected}"; "copy or write it again",
        NoTag { name: &'static str } => "has no tag {name}"; "copy or write it again",
        NoPixels { width: u64, height: u64 } =>
            "has {width}x{height} pixels, which is empty"; "copy or write it again",
        TooManyPixels { width: u64, height: u64 } =>
            "claims {width}x{height} pixels, more than the {MAX_SIDE} a side and {MAX_PIXELS} in all that can be read";
            "check whether the file is damaged",
        NotGrey { samples: u64, kind: &'static str } =>
            "has {samples} sample(s) per pixel ({kind}), expected one grey value per pixel"; "convert it to greyscale",
        /// Some programs take three or four frames for the colours of one.
        NotGreyOrFrames { samples: u64, kind: &'static str } =>
            "has {samples} sample(s) per pixel ({kind}), expected one grey value per pixel";
            "convert it to greyscale, or, if these are {samples} frames, save each of them as a page of grey values",
        SampleFormat { bits: u64, format: u64 } =>
            "has {bits}-bit samples of format {format}, expected 8-, 16-, 32- or 64-bit integers or 16-, 32- or 64-bit \
             floats",
        Compression { number: u64, name: &'static str } =>
            "is compressed by method {number}{name}, expected none, LZW, deflate, Zstandard, PackBits or JPEG of 8-bit \
             data";
            "save it with one of these",
        Predictor { number: u64, sample: SampleType } =>
            "has the predictor {number} for {sample} data, which is not known"; "save it without a predictor",
        ReversedBits => "is compressed with reversed bits (FillOrder 2)"; "save it again",
        TileSize { noun: &'static str, width: u64, height: u64 } =>
            "has {noun}s of {width}x{height} pixels"; "save it with strips, or tiles of 16 pixels or more",
        NoOffsets { noun: &'static str } => "has no {noun} offsets"; "copy or write it again",
        TileTooShort { noun: &'static str, number: usize, bytes: u64, expected: u64 } =>
            "{noun} {number} holds {bytes} bytes, expected {expected}, so the file is damaged";
            "copy or write it again",
        TileTooDense { noun: &'static str, number: usize, bytes: u64, whole: u64 } =>
            "{noun} {number} holds {bytes} bytes, which cannot decompress to {whole}, so the file is damaged";
            "copy or write it again",
        TileTooLarge { noun: &'static str, number: usize, whole: u64 } =>
            "{noun} {number} decompresses to {whole} bytes, more than the {MAX_STRIP} that can be read in one piece";
            "save it with more {noun}s",
        TileTooLong { noun: &'static str, number: usize, bytes: u64, whole: u64 } =>
            "{noun} {number} holds {bytes} bytes for {whole} decompressed ones, so the file is damaged";
            "copy or write it again",
        OverlappingTiles { noun: &'static str } =>
            "is damaged: some of its {noun}s are at the same place in the file"; "copy or write it again",
        ImageJTiles { images: u64 } =>
            "is an ImageJ stack of {images} images with a header for only one"; "save it again",
        ImageJTruncated { images: u64, bytes: u64, offset: u64, length: u64 } =>
            "is truncated: its ImageJ header says {images} images of {bytes} bytes from offset {offset}, the file has \
             {length}";
            "copy or save it again",
        CompressedData { error: String } => "its compressed data is damaged ({error})"; "copy or write it again",
        JpegSize =>
            "is damaged: its JPEG data has a different size than its header says"; "copy or write it again",
    }
}

impl TiffPageError {
    /// Names the page that an error is about.
    pub fn in_page(self, page: usize) -> TiffPageError {
        TiffPageError::InPage { page, error: self.into() }
    }
}

//! Errors of decoding chunks.

use crate::error::messages;

messages! {
    /// Reason why the stored bytes of a chunk cannot be decoded; the caller adds which chunk it is.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub enum DecodeError: Input {
        Short => "is damaged: it ends too early"; "copy or write the file again",
        Length => "is damaged: its values have another length"; "copy or write the file again",
        Invalid => "is damaged: its bytes cannot be decompressed"; "copy or write the file again",
        Checksum => "is damaged: its checksum is wrong"; "copy or write the file again",
        Form =>
            "has a form of Blosc that is unknown here, such as Snappy, a dictionary or a filter of a plugin";
            "write the file again with another compressor",
    }
}

/// Result of a decoder of chunks.
pub(super) type Decoded = Result<(), DecodeError>;

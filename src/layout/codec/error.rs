//! Errors of decoding chunks.

use thiserror::Error;

/// Reason why the stored bytes of a chunk cannot be decoded; the caller adds which chunk it is.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("is damaged: it ends too early; copy or write the file again")]
    Short,
    #[error("is damaged: its values have another length; copy or write the file again")]
    Length,
    #[error("is damaged: its bytes cannot be decompressed; copy or write the file again")]
    Invalid,
    #[error("is damaged: its checksum is wrong; copy or write the file again")]
    Checksum,
    #[error(
        "has a form of Blosc that is unknown here, such as Snappy, a dictionary or a filter of a plugin; write the file again with another compressor"
    )]
    Form,
}

/// Result of a decoder of chunks.
pub(super) type Decoded = Result<(), DecodeError>;

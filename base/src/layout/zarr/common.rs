//! Parts of metadata and of stored bytes that chunks and indexes of shards share.

use super::errors::ZarrMetadataError;
use crate::layout::codec::DecodeError;
use serde_json::{Value, json};

/// Name of the codec of the order of bytes.
pub(super) const BYTES_CODEC: &str = "bytes";
/// Name of the codec of a CRC-32C after the bytes.
pub(super) const CHECKSUM_CODEC: &str = "crc32c";

/// Returns the sides that metadata list.
pub(super) fn sides(value: &Value) -> Result<Vec<u64>, ZarrMetadataError> {
    let sides = value.as_array().and_then(|sides| sides.iter().map(Value::as_u64).collect());
    sides.ok_or(ZarrMetadataError::Sides)
}

/// Returns the name of a codec of version 3; a codec without configuration may be given by its name alone.
pub(super) fn name_of(codec: &Value) -> &str {
    codec.as_str().or(codec["name"].as_str()).unwrap_or("of no name")
}

/// Returns the codec of the order of bytes of samples or numbers.
pub(super) fn bytes_codec(big_endian: bool) -> Value {
    json!({"name": BYTES_CODEC, "configuration": {"endian": if big_endian { "big" } else { "little" }}})
}

/// Reports whether the codec of the order of bytes says that they are big-endian.
pub(super) fn is_big_endian(codec: &Value) -> bool {
    codec["configuration"]["endian"] == "big"
}

/// Verifies the CRC-32C at the end, and returns the bytes before it.
///
/// # Errors
/// When it is wrong.
pub fn checked(stored: &[u8]) -> Result<&[u8], DecodeError> {
    let (bytes, checksum) = stored.split_last_chunk().ok_or(DecodeError::Short)?;
    if crc32c::crc32c(bytes) == u32::from_le_bytes(*checksum) { Ok(bytes) } else { Err(DecodeError::Checksum) }
}

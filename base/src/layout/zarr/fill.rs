//! Fill values of samples that were never written.

use super::errors::ZarrMetadataError;
use crate::layout::SampleType;
use serde_json::Value;

/// Returns the bytes of a fill value in the form in which the array stores samples.
///
/// # Errors
/// A message about a value that is not a number.
pub fn fill_bytes(value: &Value, sample: SampleType, big_endian: bool) -> Result<Vec<u8>, ZarrMetadataError> {
    let number = match value {
        Value::Null => 0.0,
        Value::String(text) if text == "NaN" => f64::NAN,
        Value::String(text) if text == "Infinity" => f64::INFINITY,
        Value::String(text) if text == "-Infinity" => f64::NEG_INFINITY,
        Value::String(text) if sample.is_float() && text.starts_with("0x") => {
            let digits = 2 * sample.bytes();
            return of_digits(&text[2..], sample, big_endian)
                .ok_or_else(|| ZarrMetadataError::FillDigits { value: text.clone(), digits });
        }
        other => other.as_f64().ok_or_else(|| ZarrMetadataError::FillValue { value: other.to_string() })?,
    };
    let mut bytes = match sample {
        SampleType::U8 => vec![number as u8],
        SampleType::I8 => (number as i8).to_le_bytes().to_vec(),
        SampleType::U16 => (number as u16).to_le_bytes().to_vec(),
        SampleType::I16 => (number as i16).to_le_bytes().to_vec(),
        SampleType::U32 => (number as u32).to_le_bytes().to_vec(),
        SampleType::I32 => (number as i32).to_le_bytes().to_vec(),
        SampleType::U64 => (number as u64).to_le_bytes().to_vec(),
        SampleType::I64 => (number as i64).to_le_bytes().to_vec(),
        SampleType::F16 => half::f16::from_f64(number).to_le_bytes().to_vec(),
        SampleType::F32 => (number as f32).to_le_bytes().to_vec(),
        SampleType::F64 => number.to_le_bytes().to_vec(),
    };
    if big_endian {
        bytes.reverse();
    }
    Ok(bytes)
}

/// Returns the bytes of a float that is given as the hexadecimal digits of its bits.
fn of_digits(digits: &str, sample: SampleType, big_endian: bool) -> Option<Vec<u8>> {
    let size = sample.bytes();
    let bits = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 2 * size && !digits.starts_with('+'))?;
    let mut bytes = bits.to_le_bytes()[..size].to_vec();
    if big_endian {
        bytes.reverse();
    }
    Some(bytes)
}

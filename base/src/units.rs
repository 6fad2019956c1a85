//! Lengths with units, and readable numbers of bytes.

use crate::error::{Error, Result, messages};
use bytesize::ByteSize;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::str::FromStr;

messages! {
    /// Why a text is not a length or an interval.
    enum UnitError: Usage {
        UnknownUnit { flag: String, unit: String } => "{flag}: unknown unit `{unit}`"; "use nm, um, mm, cm or m",
        NotALength { flag: String, text: String } =>
            "{flag}: `{text}` is not a length above 0 whose reciprocal is a number, such as 0.65um",
        NotAnInterval { flag: String, text: String } => "{flag}: `{text}` is not two numbers LOW,HIGH with LOW < HIGH",
    }
}

/// Formats a number of bytes with a binary prefix.
pub fn human(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Units of length in metres.
const UNITS: [(&str, f64); 6] = [("nm", 1e-9), ("um", 1e-6), ("\u{b5}m", 1e-6), ("mm", 1e-3), ("cm", 1e-2), ("m", 1.0)];

/// Greek letter that keyboards and Unicode's normal forms use instead of the micro sign.
const MU: char = '\u{3bc}';

/// Length: a number and its unit.
#[derive(Clone, Debug, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub struct Length {
    pub value: f64,
    pub unit: String,
}

/// Formats the length as flags take it.
impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)?;
        match UNITS.iter().any(|(unit, _)| *unit == self.unit) {
            true => f.write_str(&self.unit),
            false => Ok(()),
        }
    }
}

impl FromStr for Length {
    type Err = Error;

    fn from_str(text: &str) -> Result<Length> {
        parse_length(text, "length")
    }
}

impl Length {
    /// Returns `factor` times this length.
    pub fn times(&self, factor: f64) -> Length {
        Length { value: self.value * factor, unit: self.unit.clone() }
    }

    /// Returns the length in metres, if its unit was given.
    pub fn metres(&self) -> Option<f64> {
        UNITS.iter().find(|(unit, _)| *unit == self.unit).map(|(_, metres)| self.value * metres)
    }
}

/// Parses a positive length with its unit.
///
/// # Errors
/// [`Error::Usage`] that names the flag.
pub fn parse_length(text: &str, flag: &str) -> Result<Length> {
    let split = text.find(|c: char| c.is_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().replace(MU, "\u{b5}");
    let unit = match unit.as_str() {
        "" => "length unit".to_owned(),
        unit if UNITS.iter().any(|(name, _)| *name == unit) => unit.to_owned(),
        other => return Err(UnitError::UnknownUnit { flag: flag.into(), unit: other.into() }.into()),
    };
    match number.trim().parse::<f64>() {
        // slices are multiplied by the reciprocal of the pixel size
        Ok(value) if value > 0.0 && (1.0 / value as f32).is_normal() => Ok(Length { value, unit }),
        _ => Err(UnitError::NotALength { flag: flag.into(), text: text.into() }.into()),
    }
}

/// Interval between two numbers, the smaller one first.
#[derive(Clone, Copy, Debug, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// Formats the interval as `--range` takes it.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.low, self.high)
    }
}

impl FromStr for Interval {
    type Err = Error;

    fn from_str(text: &str) -> Result<Interval> {
        parse_pair(text, "interval").map(|(low, high)| Interval { low, high })
    }
}

/// Parses two numbers, the smaller one first.
pub fn parse_pair(text: &str, flag: &str) -> Result<(f64, f64)> {
    let parts: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_deref() {
        Some(&[low, high]) if low.is_finite() && high.is_finite() && low < high => Ok((low, high)),
        _ => Err(UnitError::NotAnInterval { flag: flag.into(), text: text.into() }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_characters_for_micro_are_the_same() {
        let micro = parse_length("0.65\u{b5}m", "--pixel-size").unwrap();
        for text in ["0.65\u{3bc}m", "0.65 \u{3bc}m", "6.5e-1\u{3bc}m"] {
            assert_eq!(parse_length(text, "--pixel-size").unwrap(), micro, "{text}");
        }
        assert_eq!(micro.metres(), Some(0.65e-6));
        for text in ["0.65\u{3bc}", "0.65\u{3bc}\u{3bc}m", "1 \u{3bb}m"] {
            assert!(parse_length(text, "--pixel-size").is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_told_in_binary_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (700, "700 B"),
            (1536, "1.5 KiB"),
            (20 << 20, "20.0 MiB"),
            (5 << 40, "5.0 TiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }
}

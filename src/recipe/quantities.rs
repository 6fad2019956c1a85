//! Texts of flags, and the numbers with units in them.

use super::errors::QuantityError;
use crate::cli::Text;
use crate::error::Result;
use std::time::Duration;

/// Largest angle in degrees, either way; cosines of larger ones say little.
pub const MAX_ANGLE: f64 = 1e9;

/// Longest time that a flag takes.
const LONGEST_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Largest size that a flag accepts: one pebibyte.
const LARGEST_SIZE: u64 = 1 << 50;

/// The text of a flag that was given.
pub(super) fn text(value: &Option<Text>) -> Option<&str> {
    value.as_ref().map(|text| text.0.as_str())
}

/// Reads a size in bytes: a number with an optional suffix K, M, G or T (powers of 1024).
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
pub fn parse_size(text: &str, flag: &str) -> Result<u64> {
    match parse_size::Config::new().with_binary().parse_size(text.trim()) {
        Ok(size) if (1..=LARGEST_SIZE).contains(&size) => Ok(size),
        _ => Err(QuantityError::NotASize { flag: flag.into(), text: text.into() }.into()),
    }
}

/// Parses a time above 0 and at most a week: `90s`, `10m`, `1h 30m`; a bare number is in seconds.
pub fn parse_time(text: &str, flag: &str) -> Result<Duration> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds.or_else(|| humantime::parse_duration(text.trim()).ok()) {
        Some(time) if !time.is_zero() && time <= LONGEST_TIME => Ok(time),
        _ => Err(QuantityError::NotATime { flag: flag.into(), text: text.into() }.into()),
    }
}

/// Checks an angle in degrees, or the default if none is given.
pub(super) fn degrees(value: Option<f64>, flag: &'static str, default: f64) -> Result<f64> {
    match value.unwrap_or(default) {
        angle if !angle.is_finite() => Err(QuantityError::NotFinite { flag, angle }.into()),
        angle if angle.abs() > MAX_ANGLE => Err(QuantityError::AngleOutside { flag, angle, most: MAX_ANGLE }.into()),
        angle => Ok(angle),
    }
}

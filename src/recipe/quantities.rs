//! Texts of flags, and the numbers with units in them.

use crate::cli::Text;
use crate::error::{Error, Result};
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
/// [`Error::Usage`] that names the flag.
pub fn parse_size(text: &str, flag: &str) -> Result<u64> {
    match parse_size::Config::new().with_binary().parse_size(text.trim()) {
        Ok(size) if (1..=LARGEST_SIZE).contains(&size) => Ok(size),
        _ => Err(Error::usage(format!(
            "{flag}: `{text}` is not a size; write a number of bytes or one with K, M, G or T, such as 8G"
        ))),
    }
}

/// Parses a time above 0 and at most a week: `90s`, `10m`, `1h 30m`; a bare number is in seconds.
pub fn parse_time(text: &str, flag: &str) -> Result<Duration> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds.or_else(|| humantime::parse_duration(text.trim()).ok()) {
        Some(time) if !time.is_zero() && time <= LONGEST_TIME => Ok(time),
        _ => Err(Error::usage(format!(
            "{flag}: `{text}` is not a time above 0 and up to 7 days; write it like 90s, 10m or 1h, a bare number is seconds"
        ))),
    }
}

/// Checks an angle in degrees, or the default if none is given.
pub(super) fn degrees(value: Option<f64>, flag: &str, default: f64) -> Result<f64> {
    match value.unwrap_or(default) {
        angle if !angle.is_finite() => Err(Error::usage(format!("{flag}: {angle} is not a finite number"))),
        angle if angle.abs() > MAX_ANGLE => {
            Err(Error::usage(format!("{flag}: {angle:?} is not within -{MAX_ANGLE}..{MAX_ANGLE} degrees")))
        }
        angle => Ok(angle),
    }
}

//! Numbers with units, as flags take them.

use super::scan::MAX_ANGLE;
use crate::error::{Error, Result};
use std::time::Duration;

/// Longest time that a flag takes.
const LONGEST_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// A size in bytes: a number with an optional suffix K, M, G or T (powers of 1024).
pub fn parse_size(text: &str, flag: &str) -> Result<u64> {
    let trimmed = text.trim();
    let trimmed = trimmed.strip_suffix(['B', 'b']).unwrap_or(trimmed);
    let trimmed = trimmed.strip_suffix('i').unwrap_or(trimmed);
    let (number, shift) = match trimmed.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => (&trimmed[..trimmed.len() - 1], 10),
        Some('M') => (&trimmed[..trimmed.len() - 1], 20),
        Some('G') => (&trimmed[..trimmed.len() - 1], 30),
        Some('T') => (&trimmed[..trimmed.len() - 1], 40),
        _ => (trimmed, 0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1e9 => Ok((value * (1u64 << shift) as f64) as u64),
        _ => Err(Error::usage(format!(
            "{flag}: `{text}` is not a size; write a number of bytes or one with K, M, G or T, such as 8G"
        ))),
    }
}

/// A length of time above 0, at most a week: `90s`, `10m`, `1h 30m`; a bare number is seconds.
pub fn parse_time(text: &str, flag: &str) -> Result<Duration> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds.or_else(|| humantime::parse_duration(text.trim()).ok()) {
        Some(time) if !time.is_zero() && time <= LONGEST_TIME => Ok(time),
        _ => Err(Error::usage(format!(
            "{flag}: `{text}` is not a time above 0 and up to 7 days; write it like 90s, 10m or 1h, a bare number is seconds"
        ))),
    }
}

/// A number of degrees.
pub(super) fn degrees(value: Option<f64>, flag: &str, default: f64) -> Result<f64> {
    match value.unwrap_or(default) {
        angle if !angle.is_finite() => Err(Error::usage(format!("{flag}: {angle} is not a finite number"))),
        angle if angle.abs() > MAX_ANGLE => {
            Err(Error::usage(format!("{flag}: {angle:?} is not within -{MAX_ANGLE}..{MAX_ANGLE} degrees")))
        }
        angle => Ok(angle),
    }
}

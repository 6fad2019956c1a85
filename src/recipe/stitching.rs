//! How scans in several parts become one.

use super::errors::StitchingError;
use super::quantities::text;
use crate::cli::InputArgs;
use crate::error::{Error, Result};
use crate::source::PART;
use crate::units::{Length, parse_length};
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::str::FromStr;

/// Largest distance or overlap of parts in pixels: no detector is wider.
const MOST: f64 = (1 << 20) as f64;

/// Direction in which parts follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Join {
    /// Scans at several heights: rows follow rows.
    #[serde(rename = "stack")]
    Rows,
    /// Detectors side by side: rows become longer.
    #[serde(rename = "side-by-side")]
    Bins,
}

/// Where a part lies beside the one before it.
#[derive(Clone, Debug, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub enum Distance {
    /// Found in what they share.
    Auto,
    /// Step in rows, or overlap in bins: one for all, or one for each pair.
    Pixels(Vec<f64>),
    /// Step as a length, and whether it is negative.
    Lengths(Vec<(bool, Length)>),
}

/// How the parts of a scan are joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Stitching {
    #[serde(rename = "parts")]
    pub join: Join,
    pub distance: Distance,
}

/// Formats the distance as its flag takes it.
impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: Vec<String>| values.join(",");
        match self {
            Distance::Auto => f.write_str("auto"),
            Distance::Pixels(values) => f.write_str(&list(values.iter().map(f64::to_string).collect())),
            Distance::Lengths(values) => {
                let signed =
                    |(negative, length): &(bool, Length)| format!("{}{length}", if *negative { "-" } else { "" });
                f.write_str(&list(values.iter().map(signed).collect()))
            }
        }
    }
}

impl FromStr for Distance {
    type Err = Error;

    fn from_str(text: &str) -> Result<Distance> {
        Distance::parse(text, "--z-step")
    }
}

impl Distance {
    fn parse(text: &str, flag: &'static str) -> Result<Distance> {
        let text = text.trim();
        if text == "auto" {
            return Ok(Distance::Auto);
        }
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let pixels: Option<Vec<f64>> = parts.iter().map(|part| part.parse().ok()).collect();
        if let Some(pixels) = pixels {
            return match pixels.iter().all(|value| value.abs() <= MOST) {
                true => Ok(Distance::Pixels(pixels)),
                false => Err(StitchingError::Distance { flag, text: text.into() }.into()),
            };
        }
        let length = |part: &&str| {
            let positive = part.strip_prefix('-');
            if !positive.unwrap_or(part).starts_with(|first: char| first.is_ascii_digit() || first == '.') {
                return Err(StitchingError::Distance { flag, text: text.into() }.into());
            }
            let length = parse_length(positive.unwrap_or(part), flag)?;
            Ok((positive.is_some(), length))
        };
        Ok(Distance::Lengths(parts.iter().map(length).collect::<Result<_>>()?))
    }
}

impl Stitching {
    /// Reads the flags; a scan in one part is not joined.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the flag.
    pub fn new(args: &InputArgs) -> Result<Option<Stitching>> {
        let count = args.parts().len();
        // --overlap may be about windows of --every
        if count == 0 {
            return Ok(None);
        }
        let (join, flag, of_distance, given) = match args.stack.is_empty() {
            false => (Join::Rows, "stack", "--z-step", &args.z_step),
            true => (Join::Bins, "side-by-side", "--overlap", &args.overlap),
        };
        let distance = text(given).map_or(Ok(Distance::Auto), |text| Distance::parse(text, of_distance))?;
        let data = [&args.projections, &args.hdf5, &args.raw].into_iter().flatten().next();
        match data {
            Some(data) if !data.contains(PART) => {
                return Err(StitchingError::WithoutPart { flag, data: data.clone() }.into());
            }
            _ if count < 2 => return Ok(None),
            _ => {}
        }
        let numbers = match &distance {
            Distance::Auto => 1,
            Distance::Pixels(values) => values.len(),
            Distance::Lengths(values) => values.len(),
        };
        if ![1, count - 1].contains(&numbers) {
            let (flag, pairs) = (of_distance, count - 1);
            return Err(StitchingError::Count { flag, numbers, pairs }.into());
        }
        match (&distance, join) {
            (Distance::Lengths(_), Join::Bins) => Err(StitchingError::LengthOfBins.into()),
            (Distance::Pixels(overlaps), Join::Bins) if overlaps.iter().any(|overlap| *overlap < 0.0) => {
                let text = distance.to_string();
                Err(StitchingError::Distance { flag: of_distance, text }.into())
            }
            _ => Ok(Some(Stitching { join, distance })),
        }
    }
}

//! The pixels of projections that contain only air.

use super::errors::StepFlagError;
use crate::error::{Error, Result};
use crate::geometry::Roi;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The part of every projection that contains only air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum Air {
    /// Numbers of bins at the left and right end of each row; one of them may be 0.
    Sides(usize, usize),
    /// A region of the projection, in pixels.
    Region(Roi),
}

/// Formats the part as `--normalize-air` takes it.
impl fmt::Display for Air {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Air::Sides(left, right) => write!(f, "{left},{right}"),
            Air::Region(region) => region.fmt(f),
        }
    }
}

impl Air {
    /// Returns the rows that the part is in, of a projection of `height` rows.
    pub(super) fn rows(&self, height: usize) -> Range<usize> {
        match *self {
            Air::Sides(..) => 0..height,
            Air::Region(Roi { y, height, .. }) => y..y + height,
        }
    }

    /// Reports whether a bin of these rows, which have `bins` bins, is in the part.
    pub(super) fn has(&self, bin: usize, bins: usize) -> bool {
        match *self {
            Air::Sides(left, right) => bin < left || bin + right >= bins,
            Air::Region(Roi { x, width, .. }) => (x..x + width).contains(&bin),
        }
    }

    /// Checks that projections of `bins` x `rows` contain the part.
    pub(super) fn check(&self, bins: usize, rows: usize) -> Result<()> {
        match *self {
            Air::Sides(left, right) if left.saturating_add(right) > bins => {
                Err(StepFlagError::AirSidesOutside { left, right, bins, rows }.into())
            }
            Air::Region(Roi { x, y, width, height })
                if x.saturating_add(width) > bins || y.saturating_add(height) > rows =>
            {
                Err(StepFlagError::AirRegionOutside { x, y, width, height, bins, rows }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Reads the part as `--normalize-air` takes it.
impl FromStr for Air {
    type Err = Error;

    fn from_str(text: &str) -> Result<Air> {
        let parts: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        match parts.as_deref() {
            Some(&[left, right]) if left > 0 || right > 0 => Ok(Air::Sides(left, right)),
            Some(&[x, y, width, height]) if width > 0 && height > 0 => Ok(Air::Region(Roi { x, y, width, height })),
            _ => Err(StepFlagError::MalformedAir { text: text.into() }.into()),
        }
    }
}

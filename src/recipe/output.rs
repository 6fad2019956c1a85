//! Values of a slice as they are written.

use super::errors::RecipeError;
use super::quantities::text;
use crate::cli::ReconstructArgs;
use crate::error::Result;
use crate::sink::{Compression, Dtype, OmeZarr};
use crate::units::{Interval, parse_pair};
use serde::{Deserialize, Serialize};

/// Largest number of files of an output, all of which are open during a run.
const MAX_PARTS: u32 = 64;

/// Sample type, scaling to integers, and the mask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Values {
    pub dtype: Dtype,
    /// Scaling of integers; floats have none.
    pub scaling: Option<Scaling>,
    /// Compression, which does not change values, but every file.
    pub compression: Compression,
    /// Version of OME-Zarr, which does not change values, but files of that format.
    pub ome_zarr: OmeZarr,
    /// Number of files of an HDF5 output, which does not change values, but files of that format; `None` for one file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdf5_parts: Option<u32>,
    /// Radius of the circle beyond which pixels are 0, as a fraction of half the side of the slice.
    pub mask: Option<f64>,
}

/// Scaling of values to integers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scaling {
    /// Values that map to 0 and to the largest integer.
    #[serde(rename = "range")]
    Fixed(Interval),
    /// Percentiles of sampled slices that map to 0 and to the largest integer.
    Percentile(Interval),
}

impl Values {
    pub(super) fn new(args: &ReconstructArgs) -> Result<Values> {
        let dtype = args.dtype.unwrap_or_default();
        let ignored =
            [("range", &args.range), ("percentile", &args.percentile)].into_iter().find(|flag| flag.1.is_some());
        if let (Some((flag, _)), false) = (ignored, dtype.is_integer()) {
            return Err(RecipeError::RangeOfFloats { flag, dtype }.into());
        }
        let scaling = match (text(&args.range), text(&args.percentile)) {
            (Some(range), _) => {
                let (low, high) = parse_pair(range, "--range")?;
                Scaling::Fixed(Interval { low, high })
            }
            (None, percentile) => {
                let (low, high) = parse_pair(percentile.unwrap_or("0.1,99.9"), "--percentile")?;
                if low < 0.0 || high > 100.0 {
                    return Err(RecipeError::PercentilesOutside { low, high }.into());
                }
                Scaling::Percentile(Interval { low, high })
            }
        };
        if let Some(mask) = args.mask
            && !(mask.is_finite() && mask > 0.0)
        {
            return Err(RecipeError::MaskNotPositive { mask }.into());
        }
        if let Some(parts) = args.hdf5_parts
            && !(1..=MAX_PARTS).contains(&parts)
        {
            return Err(RecipeError::PartsOutside { parts, most: MAX_PARTS }.into());
        }
        Ok(Values {
            dtype,
            scaling: Some(scaling).filter(|_| dtype.is_integer()),
            compression: args.compression.unwrap_or_default(),
            ome_zarr: args.ome_zarr.unwrap_or_default(),
            hdf5_parts: args.hdf5_parts.filter(|&parts| parts > 1),
            mask: args.mask,
        })
    }
}

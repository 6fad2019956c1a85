//! Parameters of the kernels for frequencies of filtered rows on a regular grid, which is transformed into slices.

use super::parameter::parameters;
use super::{Common, Constants};
use serde::{Deserialize, Serialize};
use strum::VariantNames;

/// The part of the grid that a work-item computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum GridItems {
    /// A cell of a tile that its work-group computes together.
    Cells,
    /// A tile, with slices as the vector.
    Tiles,
}

parameters! {
    /// Parameters of gridding.
    pub struct Gridding {
        table common: Common = Common { constants: Constants::Global, ..Common::default() };
        /// What a work-item computes: `cells`, where a work-group computes a tile and lines of the grid are transformed
        /// in local memory; or `tiles`, with vectors of slices and lines transformed in the cache, for CPUs.
        items: GridItems = GridItems::Cells, Domain::words::<GridItems>().tries::<GridItems>(&[]);
        /// Side in cells of a tile; 32 only with `tiles`.
        tile: u32 = 8, Domain::one_of(&[8, 16, 32]);
        /// Cells in a column of a tile that an item computes with `cells`, which share what is read of a sample.
        rows: u32 = 2, Domain::one_of(&[1, 2, 4]);
        /// Pairs of columns that a work-group transforms with `cells`, if it has enough items; neighbouring columns are
        /// read together.
        columns: u32 = 2, Domain::one_of(&[1, 2, 4, 8]);
    }
}

/// Most samples of a segment that a work-group of `cells` takes at a time.
pub(super) const SAMPLES: u32 = 16;

/// Largest number of samples of a segment that an item takes.
const MOST_SAMPLES: u32 = 240;

impl Gridding {
    /// Returns the largest number of samples of a segment.
    pub fn samples(&self) -> u32 {
        match self.items {
            GridItems::Cells => SAMPLES,
            GridItems::Tiles => MOST_SAMPLES,
        }
    }

    /// Returns the parameters for a device without local memory for lines of this length: as on CPUs.
    pub fn in_cache(&self) -> Gridding {
        Gridding { items: GridItems::Tiles, ..self.clone() }
    }
}

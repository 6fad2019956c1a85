//! Steps on rows of projections as images: their parameters, and the blocks of rows for them.

use crate::facts::DeviceFacts;
use crate::kernel::{IMAGE_LENGTHS, ImageFilterBackend, ImageGroups};
use std::ops::Range;

/// The steps on projections as images: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImageSteps {
    pub rotation: Option<RotationForm>,
    /// Number of rows above and below that a row depends on, if pixels are looked up in a table of places, in place of a
    /// rotation.
    pub map_halo: Option<usize>,
    /// Filter that follows the rotation or the table.
    pub filter: Option<ImageFilterForm>,
}

/// A rotation about the middle of the projection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotationForm {
    pub degrees: f64,
    /// Number of rows above and below that a row depends on.
    pub halo: usize,
}

/// A filter with the response `(1 + sharpening (1 - exp(-sigma^2 k^2 / 2))) / (1 + length^2 k^2)`, `k` in radians a pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImageFilterForm {
    /// Length in pixels, the unit of `sigma`, too.
    pub length: f64,
    pub sigma: f64,
    pub sharpening: f64,
    /// Number of rows above and below, and of bins on either side, that a pixel depends on.
    pub halo: usize,
}

impl ImageSteps {
    /// Reports whether there is any step.
    pub fn any(&self) -> bool {
        self.rotation.is_some() || self.map_halo.is_some() || self.filter.is_some()
    }

    /// Returns the number of rows above and below that the rotation or the table needs.
    fn rotation_halo(&self) -> usize {
        self.map_halo.or(self.rotation.map(|rotation| rotation.halo)).unwrap_or(0)
    }
}

/// Blocks of rows that are corrected together, where steps on images need the rows around them. Blocks begin at
/// multiples of `rows`. They depend on the scan alone, so that slices do not depend on the memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBlocks {
    pub rows: usize,
    /// Number of rows around a block that the rotation, or the table of places, needs.
    pub rotation_halo: usize,
    /// True if pixels are looked up in a table of places.
    pub mapped: bool,
    /// Number of rows around a block that the filter needs.
    pub filter_halo: usize,
    /// Width and height of the images that are filtered, if there is a filter.
    pub images: Option<[usize; 2]>,
}

/// Bytes of a block of corrected rows, unless its halo is so large that more rows are better.
const BLOCK_BYTES: usize = 1 << 30;
/// Smallest number of rows of a block, however many bytes they take.
const LEAST_ROWS: usize = 16;
/// Number of rows that a block may have for each row of its halo, even if they exceed [`BLOCK_BYTES`].
const ROWS_PER_HALO: usize = 4;

impl RowBlocks {
    /// Returns the blocks for a detector of `[bins, height]`; `None` where images would become too large.
    pub fn new(steps: &ImageSteps, [bins, height]: [usize; 2], projections: usize) -> Option<Self> {
        let (rotation_halo, mapped) = (steps.rotation_halo(), steps.map_halo.is_some());
        let filter_halo = steps.filter.map_or(0, |filter| filter.halo);
        let of_memory = BLOCK_BYTES / (4 * projections * bins).max(1);
        let most = of_memory.max(ROWS_PER_HALO * (rotation_halo + filter_halo)).max(LEAST_ROWS).min(height);
        let blocks = |rows, images| RowBlocks { rows, rotation_halo, mapped, filter_halo, images };
        if steps.filter.is_none() {
            return Some(blocks(most, None));
        }
        let [least, longest] = IMAGE_LENGTHS;
        let width = (bins + 2 * filter_halo).next_power_of_two().max(least);
        let heights = std::iter::successors(Some(least), |height| Some(2 * height)).take_while(|&h| h <= longest);
        let candidates = heights.filter(|image| *image > 2 * filter_halo).map(|image| {
            let rows = most.min(image - 2 * filter_halo);
            // operations for each row that is wanted
            (image * image.ilog2() as usize * 1000 / rows, rows, image)
        });
        let (_, rows, image) = candidates.min()?;
        (width <= longest).then(|| blocks(rows, Some([width, image])))
    }

    /// Returns blocks of `rows` rows of `bins`, whatever the scan is, for data that are not reconstructed; `None` where
    /// images would become too large.
    pub fn of_rows(steps: &ImageSteps, bins: usize, rows: usize) -> Option<Self> {
        let (rotation_halo, mapped) = (steps.rotation_halo(), steps.map_halo.is_some());
        let filter_halo = steps.filter.map_or(0, |filter| filter.halo);
        let [least, longest] = IMAGE_LENGTHS;
        let images = [bins, rows].map(|length| (length + 2 * filter_halo).next_power_of_two().max(least));
        let images = steps.filter.map(|_| images);
        let possible = images.is_none_or(|images| images.iter().all(|&length| length <= longest));
        possible.then_some(RowBlocks { rows, rotation_halo, mapped, filter_halo, images })
    }

    /// Returns one block of all rows, for use without steps that need the rows around others.
    pub fn all(height: usize) -> Self {
        RowBlocks { rows: height, rotation_halo: 0, mapped: false, filter_halo: 0, images: None }
    }

    /// Returns the detector rows of a block.
    pub fn of(&self, block: usize, height: usize) -> Range<usize> {
        block * self.rows..((block + 1) * self.rows).min(height)
    }

    /// Returns the number of rows around a block that both steps need together.
    pub fn halo(&self) -> usize {
        self.rotation_halo + self.filter_halo
    }

    /// Returns the bytes of the spectra of a pair of projections, doubled where a library transforms them and needs as
    /// much.
    pub fn pair_bytes(&self, facts: &DeviceFacts, backend: ImageFilterBackend) -> usize {
        let Some([width, height]) = self.images else { return 0 };
        let own = backend == ImageFilterBackend::Fused && ImageGroups::fit(facts, width, height);
        8 * width * height * if own { 1 } else { 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_depend_on_the_halo_and_the_scan() {
        let filter = |halo| ImageSteps {
            filter: Some(ImageFilterForm { length: 1.0, sigma: 0.0, sharpening: 0.0, halo }),
            ..ImageSteps::default()
        };
        let of = |halo| RowBlocks::new(&filter(halo), [2048, 2048], 2048);
        let blocks = |halo| of(halo).map(|blocks| (blocks.rows, blocks.images));
        assert_eq!(blocks(24), Some((80, Some([4096, 128]))));
        assert_eq!(blocks(240), Some((544, Some([4096, 1024]))));
        assert_eq!(blocks(9000), None);
        let tilted = ImageSteps { rotation: Some(RotationForm { degrees: 0.5, halo: 12 }), ..ImageSteps::default() };
        let blocks = RowBlocks::new(&tilted, [2048, 2048], 2048).unwrap();
        assert_eq!((blocks.rows, blocks.images, blocks.halo()), (64, None, 12));
        // all rows of a small detector
        assert_eq!(RowBlocks::new(&tilted, [100, 33], 50).unwrap().of(0, 33), 0..33);
        for halo in [0, 1, 100, 3000] {
            let RowBlocks { rows, images, .. } = of(halo).unwrap();
            assert!(rows > 0 && rows + 2 * halo <= images.unwrap()[1], "{halo}");
        }
    }
}

//! Steps on rows of projections as images: their parameters, blocks of rows for them, and the rotation.

use super::{BufferLayout, Launch, Session, fault};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::geometry::default_axis;
use crate::kernel::{IMAGE_LENGTHS, ImageFilterBackend, ImageGroups, generate_rotation};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

/// The steps on projections as images: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImageSteps {
    pub rotation: Option<RotationForm>,
    /// Filter that follows the rotation.
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
        self.rotation.is_some() || self.filter.is_some()
    }
}

/// Blocks of rows that are corrected together, where steps on images need the rows around them. Blocks begin at
/// multiples of `rows`. They depend on the scan alone, so that slices do not depend on the memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBlocks {
    pub rows: usize,
    /// Number of rows around a block that the rotation needs.
    pub rotation_halo: usize,
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
        let rotation_halo = steps.rotation.map_or(0, |rotation| rotation.halo);
        let filter_halo = steps.filter.map_or(0, |filter| filter.halo);
        let of_memory = BLOCK_BYTES / (4 * projections * bins).max(1);
        let most = of_memory.max(ROWS_PER_HALO * (rotation_halo + filter_halo)).max(LEAST_ROWS).min(height);
        let blocks = |rows, images| RowBlocks { rows, rotation_halo, filter_halo, images };
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
        let rotation_halo = steps.rotation.map_or(0, |rotation| rotation.halo);
        let filter_halo = steps.filter.map_or(0, |filter| filter.halo);
        let [least, longest] = IMAGE_LENGTHS;
        let images = [bins, rows].map(|length| (length + 2 * filter_halo).next_power_of_two().max(least));
        let images = steps.filter.map(|_| images);
        let possible = images.is_none_or(|images| images.iter().all(|&length| length <= longest));
        possible.then_some(RowBlocks { rows, rotation_halo, filter_halo, images })
    }

    /// Returns one block of all rows, for use without steps that need the rows around others.
    pub fn all(height: usize) -> Self {
        RowBlocks { rows: height, rotation_halo: 0, filter_halo: 0, images: None }
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

/// Rows on the device, `[row][projection][bin]`.
#[derive(Clone, Copy)]
pub struct DeviceRows<'a> {
    pub values: &'a Buffer<f32>,
    pub first: usize,
    /// Number of values from the start of one row to that of the next.
    pub stride: usize,
}

impl DeviceRows<'_> {
    /// Returns the number of values of the buffer up to the end of the last of `rows` rows of `width` values.
    pub fn end(&self, rows: usize, width: usize) -> usize {
        self.first + rows.saturating_sub(1) * self.stride + width
    }
}

impl Launch<'_> {
    /// Sets the next argument to the buffer of `rows` rows, of whose values the kernel touches the first `width`.
    ///
    /// # Errors
    /// [`Error::Internal`] if the buffer does not hold all of them.
    pub(super) fn rows(self, of: &DeviceRows, rows: usize, width: usize) -> Result<Self> {
        self.buffer(of.values, of.end(rows, width), "rows of projections")
    }
}

/// Detector rows of some projections that an operation reads, and those that it computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePart {
    pub read: Range<usize>,
    pub wanted: Range<usize>,
    pub projections: usize,
}

impl ImagePart {
    /// Checks that the rows that are read include the wanted ones.
    pub(super) fn check(&self) -> Result<()> {
        let ImagePart { read, wanted, projections } = self;
        if wanted.is_empty() || *projections == 0 || read.start > wanted.start || read.end < wanted.end {
            return Err(Error::Internal(format!("rows {wanted:?} of {projections} projections from rows {read:?}")));
        }
        Ok(())
    }

    /// Returns the number of values of rows of `bins` that are read.
    pub(super) fn read_len(&self, bins: usize) -> usize {
        self.read.len() * self.projections * bins
    }
}

/// The kernel that rotates rows, with its tables.
pub(super) struct RowRotator {
    kernel: Kernel,
    bins: usize,
    height: usize,
    of_bins: Buffer<[i32; 4]>,
    of_rows: Buffer<[i32; 4]>,
    group: usize,
}

impl RowRotator {
    /// Builds the kernel for a detector of `[bins, height]`.
    pub fn new(session: &Session, degrees: f64, [bins, height]: [usize; 2]) -> Result<Self> {
        let source = generate_rotation(session.step_target())?;
        let program = session.build(&source)?;
        let (sin, cos) = degrees.to_radians().sin_cos();
        let middle = [bins, height].map(|length| default_axis(length) + fault::shift(&source.name));
        let parts = |x: f64, z: f64| {
            let whole = [x.floor(), z.floor()];
            // a rest that rounds up to 1 is as good as one
            let rest = [x - whole[0], z - whole[1]].map(|rest| (rest as f32).to_bits() as i32);
            [whole[0] as i32, whole[1] as i32, rest[0], rest[1]]
        };
        let of_bin = |bin: usize| {
            let dx = bin as f64 - middle[0];
            parts(middle[0] + dx * cos, -dx * sin)
        };
        let of_row = |row: usize| {
            let dz = row as f64 - middle[1];
            parts(dz * sin, middle[1] + dz * cos)
        };
        let layout = Self::layout([bins, height]);
        Ok(RowRotator {
            kernel: session.kernel(&program, source.entry)?,
            bins,
            height,
            of_bins: layout.constant(session, "places of bins", &(0..bins).map(of_bin).collect::<Vec<_>>())?,
            of_rows: layout.constant(session, "places of rows", &(0..height).map(of_row).collect::<Vec<_>>())?,
            group: session.step_target().row_group(),
        })
    }

    /// Returns the buffers for a detector of `[bins, height]`.
    pub fn layout([bins, height]: [usize; 2]) -> BufferLayout {
        BufferLayout::default().with::<[i32; 4]>("places of bins", bins).with::<[i32; 4]>("places of rows", height)
    }

    /// Computes the rotated rows that are wanted from the rows that were read, `[row][projection][bin]`. Does not wait
    /// for the kernel.
    pub fn run(&self, session: &Session, from: &Buffer<f32>, part: &ImagePart, to: &DeviceRows) -> Result<Event> {
        part.check()?;
        let ImagePart { read, wanted, projections } = part;
        if read.end > self.height {
            return Err(Error::Internal(format!("rows {read:?} of {}", self.height)));
        }
        let launch = session
            .launch(&self.kernel, "rotate_rows")
            .buffer(from, part.read_len(self.bins), "rows of projections")?
            .rows(to, wanted.len(), projections * self.bins)?
            .buffer(&self.of_bins, self.bins, "places of bins")?
            .buffer(&self.of_rows, wanted.end, "places of rows")?
            .value(to.first as u64)?
            .value(to.stride as u64)?
            .value(self.bins as i32)?
            .value(self.height as i32)?
            .value([read.start as i32, read.end as i32 - 1])?
            .value(wanted.start as i32)?;
        let global = [self.bins.next_multiple_of(self.group), *projections, wanted.len()];
        launch.among_uploads().run(&global, Some(&[self.group, 1, 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_depend_on_the_halo_and_the_scan() {
        let filter = |halo| ImageSteps {
            filter: Some(ImageFilterForm { length: 1.0, sigma: 0.0, sharpening: 0.0, halo }),
            rotation: None,
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

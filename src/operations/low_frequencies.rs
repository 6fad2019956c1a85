//! The low frequencies of the columns of images, such as sinograms.

use super::program_target::ProgramTarget;
use super::sinograms::{DeviceValues, SinogramBatch};
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use crate::spectrum::LowPass;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

const LOW_FREQUENCIES: ClFile = cl_file!("low_frequencies.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, LOW_FREQUENCIES]];

/// Largest number of frequencies whose sums an item has in registers.
const MOST_FREQUENCIES: usize = 8;
/// Bytes of local memory that some devices need for a kernel's arguments.
const RESERVED: usize = 512;

/// The values that a work-group computes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyGroup {
    pub columns: usize,
    /// Number of items for each column.
    pub parts: usize,
    pub samples: usize,
    pub frequencies: usize,
}

impl FrequencyGroup {
    /// Returns the group for `count` frequencies on a device. It does not depend on the number of slices, so neither do
    /// the sums.
    pub fn new(facts: &DeviceFacts, count: usize) -> Self {
        let columns = power_of_two_group(facts, 64);
        let parts = power_of_two_group(facts, 4 * columns) / columns;
        let samples = 32;
        // a tile of waves, rows of samples
        let rest = (facts.local_memory as usize).saturating_sub(4 * samples + RESERVED);
        let most = (rest / (8 * samples * parts)).clamp(1, MOST_FREQUENCIES) * parts;
        let frequencies = count.div_ceil(count.div_ceil(most)).next_multiple_of(parts);
        FrequencyGroup { columns, parts, samples, frequencies }
    }
}

/// Returns the source of the kernels for columns.
fn generate_low_frequencies(group: FrequencyGroup) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("COLUMNS", group.columns as u32)?;
    defines.number("PARTS", group.parts as u32)?;
    defines.number("SAMPLES", group.samples as u32)?;
    defines.number("FREQUENCIES", group.frequencies as u32)?;
    let (name, options) = (format!("low-frequencies-{}", group.frequencies), vec!["-cl-std=CL1.1".to_owned()]);
    Ok(assemble(name, &defines, &[COMMON, LOW_FREQUENCIES], options, "find_frequencies", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    [13, 90].map(|count| generate_low_frequencies(FrequencyGroup::new(on.target.facts, count))).into_iter().collect()
}

/// A Gaussian low-pass filter along the columns of images of one size, see [`LowPass`].
pub struct LowFrequencies {
    find: Kernel,
    sum: Kernel,
    group: FrequencyGroup,
    waves: Buffer<[f32; 2]>,
    weights: Buffer<f32>,
    lines: Buffer<u32>,
    coefficients: Buffer<f32>,
    rows: usize,
    columns: usize,
    /// Largest number of images at a time.
    slices: usize,
    /// Number of samples of a column.
    samples: usize,
    /// Number of frequencies.
    count: usize,
    wanted: Range<usize>,
}

impl LowFrequencies {
    /// Builds the kernels for at most `slices` images with rows of `columns` values at a time. Sample `i` of a column
    /// is in row `lines[i]`; the samples `wanted` are computed. `sigma` is in periods over all samples.
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    pub fn new(
        session: &Session,
        slices: usize,
        columns: usize,
        lines: &[usize],
        wanted: Range<usize>,
        sigma: f64,
    ) -> Result<Self> {
        let samples = lines.len();
        let LowPass { waves, weights } = LowPass::new(samples, sigma);
        let count = weights.len();
        if (samples as u64 + 64) * (count as u64 + 64) > u64::from(u32::MAX) {
            let name = session.device_name();
            return Err(Error::Internal(format!("{name}: {count} frequencies of {samples} samples are too many")));
        }
        let group = FrequencyGroup::new(&session.facts, count);
        let program = session.build(&generate_low_frequencies(group)?)?;
        let numbers: Vec<u32> = lines.iter().map(|line| *line as u32).collect();
        let layout = Self::layout(slices, columns, samples, sigma);
        Ok(LowFrequencies {
            find: session.kernel(&program, "find_frequencies")?,
            sum: session.kernel(&program, "sum_frequencies")?,
            group,
            waves: layout.constant(session, "waves", &waves)?,
            weights: layout.constant(session, "weights of frequencies", &weights)?,
            lines: layout.constant(session, "rows of samples", &numbers)?,
            coefficients: layout.buffer(session, "frequencies of columns")?,
            rows: lines.iter().max().map_or(0, |last| last + 1),
            columns,
            slices,
            samples,
            count,
            wanted,
        })
    }

    /// Returns the buffers for at most `slices` images at a time, with `columns` columns of `samples` samples.
    pub fn layout(slices: usize, columns: usize, samples: usize, sigma: f64) -> BufferLayout {
        let count = LowPass::frequencies(samples, sigma);
        BufferLayout::default()
            .with::<[f32; 2]>("waves", samples)
            .with::<f32>("weights of frequencies", count)
            .with::<u32>("rows of samples", samples)
            .with::<f32>("frequencies of columns", slices * 2 * count * columns)
    }

    /// Computes the wanted samples of `images`, `[slice][row][column]`, at the start of `out`, `[slice][wanted
    /// sample][column]`.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn run(&self, session: &Session, images: &SinogramBatch, out: &DeviceValues) -> Result<()> {
        let SinogramBatch { first, slices, projections: rows, bins: columns, .. } = *images;
        if columns != self.columns || rows < self.rows || slices > self.slices {
            return Err(Error::Internal(format!("{slices} images of {columns} x {rows} are not of the expected size")));
        }
        if self.wanted.is_empty() || slices == 0 {
            return Ok(());
        }
        let coefficients = slices * 2 * self.count * columns;
        let group = self.group;
        let (width, local) = (columns.next_multiple_of(group.columns), [group.columns, group.parts, 1]);
        let launch = session
            .launch(&self.find, "find_frequencies")
            .sinograms(images)?
            .buffer(&self.lines, self.samples, "rows of samples")?
            .buffer(&self.waves, self.samples, "waves")?
            .buffer(&self.weights, self.count, "weights of frequencies")?
            .buffer(&self.coefficients, coefficients, "frequencies of columns")?
            .value(first as u64)?
            .value(rows as i32)?
            .value(columns as i32)?
            .value(self.samples as i32)?
            .value(self.count as i32)?;
        let tiles = self.count.div_ceil(group.frequencies);
        launch.run(&[width, tiles * group.parts, slices], Some(&local))?;
        let launch = session
            .launch(&self.sum, "sum_frequencies")
            .buffer(&self.coefficients, coefficients, "frequencies of columns")?
            .buffer(&self.waves, self.samples, "waves")?
            .buffer(out, slices * self.wanted.len() * columns, "low frequencies")?
            .value(columns as i32)?
            .value(self.samples as i32)?
            .value(self.count as i32)?
            .value(self.wanted.start as i32)?
            .value(self.wanted.len() as i32)?;
        let tiles = self.wanted.len().div_ceil(group.samples);
        launch.run(&[width, tiles * group.parts, slices], Some(&local)).map(drop)
    }
}

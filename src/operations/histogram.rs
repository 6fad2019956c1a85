//! Counting of the values of slices on a device: the histogram and the moments of each slice.

use super::files::FLOAT_ORDER;
use super::program_target::ProgramTarget;
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::fault;
use crate::histogram::{BINS, CountedSlice, Extent, Histogram, LANES, Moments};
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

const HISTOGRAM: ClFile = cl_file!("histogram.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, FLOAT_ORDER, HISTOGRAM]];

/// Largest work-group of the kernel that counts.
const COUNTING_GROUP: usize = 256;

/// Returns the work-group size of the kernel that counts.
pub fn counting_group(facts: &DeviceFacts) -> usize {
    power_of_two_group(facts, COUNTING_GROUP)
}

/// Returns the source of the kernels that count the values of slices in `bins` bins, and sum rows in `lanes` lanes.
fn generate_histogram(facts: &DeviceFacts, bins: usize, lanes: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("BINS", bins as u32)?;
    defines.number("GROUP", counting_group(facts) as u32)?;
    defines.number("LANES", lanes as u32)?;
    // room for the counts, and for the little that the driver takes
    defines.switch("LOCAL_COUNTS", facts.local_memory >= (5 * bins) as u64)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("histogram".to_owned(), &defines, FILES[0], options, "row_moments", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    let facts = on.target.facts;
    facts.has("cl_khr_fp64").then(|| generate_histogram(facts, BINS, LANES)).into_iter().collect()
}

/// Number of pixels that a work-group counts: many for each bin, as it adds all its bins to those of the slice.
const PART: usize = 1 << 16;

/// The kernels that count values, with the mask on the device.
pub struct SliceCounter {
    rows: Kernel,
    bins: Kernel,
    group: usize,
    width: usize,
    height: usize,
    factor: f32,
    inside: Buffer<[i32; 2]>,
    /// Number of pixels of a slice that the mask leaves.
    pixels: u64,
}

/// The counts of some slices, with their buffers on the device.
pub struct SliceCounts {
    /// Smallest and largest finite value of each slice, as integers of the same order.
    extremes: Buffer<[u32; 2]>,
    /// Mean of each row of a slice, and sum of squares about it.
    moments: Buffer<[f64; 2]>,
    /// Number of finite values of each row of a slice.
    finite: Buffer<u32>,
    /// Scale and number of the first bin of each slice.
    places: Buffer<[f64; 2]>,
    counts: Buffer<u32>,
    height: usize,
    slices: usize,
    pixels: u64,
    /// Extents of the slices that were counted last.
    extents: Vec<Option<Extent>>,
}

impl SliceCounter {
    /// Returns what a device lacks to count values, or `None` if it lacks nothing.
    pub fn lacks(facts: &DeviceFacts) -> Option<&'static str> {
        match (facts.has("cl_khr_fp64"), facts.max_work_group >= LANES) {
            (false, _) => Some("double precision"),
            (_, false) => Some("work-groups of 64 items"),
            _ => None,
        }
    }

    /// Returns the buffers of the counter itself, for slices of `height` rows.
    pub fn mask_layout(height: usize) -> BufferLayout {
        BufferLayout::default().with::<[i32; 2]>("the mask", height)
    }

    /// Returns the buffers for `slices` slices of `height` rows.
    pub fn layout(height: usize, slices: usize) -> BufferLayout {
        BufferLayout::default()
            .with::<[u32; 2]>("extremes of slices", slices)
            .with::<[f64; 2]>("moments of rows", slices * height)
            .with::<u32>("finite values of rows", slices * height)
            .with::<[f64; 2]>("places of bins", slices)
            .with::<u32>("histograms", slices * BINS)
    }

    /// Builds the kernels for slices of `width` pixels, of whose rows a mask leaves the pixels `inside`; values are
    /// multiplied by `factor`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(session: &Session, width: usize, inside: &[[i32; 2]], factor: f32) -> Result<Self> {
        if let Some(lack) = Self::lacks(&session.facts) {
            return Err(Error::Internal(format!("{} lacks {lack} to count values", session.device_name())));
        }
        if inside.iter().any(|&[start, end]| start < 0 || end < start || end as usize > width) {
            return Err(Error::Internal(format!("a mask leaves pixels that rows of {width} do not have")));
        }
        let source = generate_histogram(&session.facts, BINS, LANES)?;
        let program = session.build(&source)?;
        Ok(SliceCounter {
            rows: session.kernel(&program, "row_moments")?,
            bins: session.kernel(&program, "count_values")?,
            group: counting_group(&session.facts),
            width,
            height: inside.len(),
            factor: factor * (1.0 + fault::shift(&source.name) as f32),
            inside: Self::mask_layout(inside.len()).constant(session, "the mask", inside)?,
            pixels: inside.iter().map(|[start, end]| (end - start) as u64).sum(),
        })
    }

    /// Allocates memory for the counts of `slices` slices.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn buffers(&self, session: &Session, slices: usize) -> Result<SliceCounts> {
        let layout = Self::layout(self.height, slices);
        Ok(SliceCounts {
            extremes: layout.buffer(session, "extremes of slices")?,
            moments: layout.buffer(session, "moments of rows")?,
            finite: layout.buffer(session, "finite values of rows")?,
            places: layout.buffer(session, "places of bins")?,
            counts: layout.buffer(session, "histograms")?,
            height: self.height,
            slices,
            pixels: self.pixels,
            extents: Vec::new(),
        })
    }

    /// Counts the values of the first `count` slices; waits for their extremes, but not for the counts.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn run(&self, session: &Session, slices: &Buffer<f32>, counted: &mut SliceCounts, count: usize) -> Result<()> {
        if count > counted.slices || self.height != counted.height {
            return Err(Error::Internal(format!(
                "{count} slices of {} rows are more than {} of {}",
                self.height, counted.slices, counted.height
            )));
        }
        let (pixels, rows) = (count * self.width * self.height, count * self.height);
        session.write(&mut counted.extremes, &vec![[u32::MAX, 0]; count], "extremes of slices")?;
        session.write(&mut counted.counts, &vec![0; count * BINS], "histograms")?;
        let launch = session
            .launch(&self.rows, "row_moments")
            .buffer(slices, pixels, "slices")?
            .buffer(&self.inside, self.height, "the mask")?
            .buffer(&counted.extremes, count, "extremes of slices")?
            .buffer(&counted.moments, rows, "moments of rows")?
            .buffer(&counted.finite, rows, "finite values of rows")?
            .value(self.factor)?
            .value(self.width as i32)?;
        launch.run(&[LANES, self.height, count], Some(&[LANES, 1, 1]))?;
        let mut extremes = vec![[0; 2]; count];
        session.read(&counted.extremes, &mut extremes, "extremes of slices")?;
        counted.extents = extremes.into_iter().map(extent).collect();
        let places: Vec<[f64; 2]> = counted.extents.iter().map(|e| e.map_or([0.0; 2], Extent::places)).collect();
        session.write(&mut counted.places, &places, "places of bins")?;
        let rows = (PART / self.width.max(1)).clamp(1, self.height.max(1));
        let launch = session
            .launch(&self.bins, "count_values")
            .buffer(slices, pixels, "slices")?
            .buffer(&self.inside, self.height, "the mask")?
            .buffer(&counted.places, count, "places of bins")?
            .buffer(&counted.counts, count * BINS, "histograms")?
            .value(self.factor)?
            .value(self.width as i32)?
            .value(self.height as i32)?
            .value(rows as i32)?;
        launch.run(&[self.group, self.height.div_ceil(rows), count], Some(&[self.group, 1, 1])).map(drop)
    }
}

impl SliceCounts {
    /// Returns the histograms and moments of the slices that were counted last, once the device is done with them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn slices(&self, session: &Session) -> Result<Vec<CountedSlice>> {
        let (height, count) = (self.height, self.extents.len());
        let mut moments = vec![[0f64; 2]; count * height];
        let mut finite = vec![0u32; count * height];
        let mut counts = vec![0u32; count * BINS];
        session.download(&self.moments, 0, &mut moments, "moments of rows")?;
        session.download(&self.finite, 0, &mut finite, "finite values of rows")?;
        session.download(&self.counts, 0, &mut counts, "histograms")?;
        let slice = |(number, &extent): (usize, &Option<Extent>)| {
            let rows = number * height..(number + 1) * height;
            let row = |(&[mean, squares], &count): (&[f64; 2], &u32)| Moments { count: count.into(), mean, squares };
            let moments: Moments = moments[rows.clone()].iter().zip(&finite[rows]).map(row).sum();
            let non_finite = self.pixels.saturating_sub(moments.count);
            let histogram = Histogram::counted(extent, non_finite, &counts[number * BINS..][..BINS]);
            CountedSlice { histogram, moments }
        };
        Ok(self.extents.iter().enumerate().map(slice).collect())
    }
}

/// Returns the extent of integers that `ascending` in `cl/float_order.cl` makes of floats; `None` if no value is
/// finite.
fn extent(extremes: [u32; 2]) -> Option<Extent> {
    let value = |number: u32| f32::from_bits(if number >> 31 == 1 { number & 0x7fff_ffff } else { !number });
    let [low, high] = extremes.map(value);
    Extent::new(low, high)
}

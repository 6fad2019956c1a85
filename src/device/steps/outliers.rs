//! Removal of outliers on a device: samples as they are stored become counts of a detector without zingers.

use super::Session;
use super::correction::sample_form;
use crate::error::{Error, Result};
use crate::kernel::{OutlierKernel, OutlierTile, generate_outliers};
use crate::source::StoredSamples;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::ops::Range;

/// Largest neighbourhood.
const LARGEST: usize = 15;
/// Most bins and rows of a detector: places up to twice as far must fit into the kernel's integers.
const MOST_PIXELS: usize = 1 << 29;

/// Which pixels are outliers: plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlierForm {
    /// Rows and bins of a neighbourhood: odd, 3 to 15.
    pub size: usize,
    /// Counts by which an outlier differs from the median of its neighbourhood.
    pub threshold: f32,
    /// Whether dark pixels are outliers, too.
    pub both: bool,
}

/// The detector and how its rows come to the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectorRows {
    pub stored: StoredSamples,
    /// Counts from which a sample is saturated.
    pub saturation: Option<f32>,
    pub bins: usize,
    /// Rows of the detector.
    pub height: usize,
    /// Projections of a piece.
    pub projections: usize,
    /// Most rows wanted in a piece, and in a chunk.
    pub piece: usize,
    pub chunk: usize,
}

/// The kernel with its counts on the device.
pub struct OutlierRemover {
    kernel: Kernel,
    form: OutlierForm,
    rows: DetectorRows,
    tile: OutlierTile,
    counts: Buffer<[u32; 2]>,
}

impl OutlierRemover {
    /// Bytes on the device for chunks of `chunk` rows, beside samples and values.
    pub fn bytes(chunk: usize) -> u64 {
        8 * chunk as u64
    }

    /// Builds the kernel.
    ///
    /// # Errors
    /// The device's, and [`Error::Device`] for what the kernel cannot do.
    pub fn new(session: &Session, form: OutlierForm, rows: DetectorRows) -> Result<Self> {
        let DetectorRows { bins, height, piece, chunk, .. } = rows;
        if !(3..=LARGEST).contains(&form.size) || form.size % 2 == 0 {
            return Err(Error::Device(format!("neighbourhoods of {0} x {0} pixels", form.size)));
        }
        if !(1..=MOST_PIXELS).contains(&bins) || !(1..=MOST_PIXELS).contains(&height) {
            return Err(Error::Device(format!("a detector of {bins} x {height} pixels")));
        }
        let tile = OutlierTile::new(&session.facts, form.size, piece);
        let source = generate_outliers(OutlierKernel {
            samples: sample_form(rows.stored)?,
            size: form.size,
            both: form.both,
            saturation: rows.saturation.is_some(),
            tile,
        })?;
        let program = session.build(&source)?;
        let mut remover = OutlierRemover {
            kernel: session.kernel(&program, source.entry)?,
            form,
            rows,
            tile,
            counts: session.buffer(chunk, CL_MEM_READ_WRITE, "counts of outliers")?,
        };
        remover.clear(session)?;
        Ok(remover)
    }

    /// Replaces outliers in the `wanted` rows of the detector: from samples `[projection][row][bin]` of the rows `read`,
    /// to `values` `[projection][wanted row][bin]`. Rows that were read begin at least half a neighbourhood before the
    /// wanted ones, or where the detector begins, and likewise at the end. What is replaced is counted from row `place` of
    /// the chunk on. Does not wait for the kernel.
    ///
    /// # Errors
    /// The device's, and [`Error::Device`] for what does not fit.
    pub fn run(
        &mut self,
        session: &Session,
        (samples, read): (&Buffer<u8>, Range<usize>),
        (values, wanted): (&Buffer<f32>, Range<usize>),
        place: usize,
    ) -> Result<()> {
        let DetectorRows { stored, bins, height, projections, piece, chunk, .. } = self.rows;
        let reach = self.form.size / 2;
        let fits = wanted.start <= wanted.end
            && wanted.len() <= piece
            && place + wanted.len() <= chunk
            && read.start <= wanted.start.saturating_sub(reach)
            && read.end <= height
            && read.end >= (wanted.end + reach).min(height)
            && wanted.end <= height;
        if !fits {
            return Err(Error::Device(format!("rows {wanted:?} of {height} do not fit the plan, or rows {read:?}")));
        }
        if wanted.is_empty() || projections == 0 {
            return Ok(());
        }
        session.expect_length(samples, projections * read.len() * bins * stored.sample.bytes(), "samples")?;
        session.expect_length(values, projections * wanted.len() * bins, "counts without outliers")?;
        let pair = |rows: &Range<usize>| [rows.start as i32, rows.end as i32];
        let launch = session
            .launch(&self.kernel, "remove_outliers")
            .handle(samples)?
            .handle(values)?
            .handle(&self.counts)?
            .value(bins as i32)?
            .value(height as i32)?
            .value(pair(&read))?
            .value(pair(&wanted))?
            .value(place as i32)?
            .value(self.form.threshold)?
            .value(self.rows.saturation.unwrap_or(f32::INFINITY))?;
        let OutlierTile { group, rows } = self.tile;
        let global = [bins.next_multiple_of(group), projections, wanted.len().div_ceil(rows)];
        // SAFETY: samples and values were checked against these rows, counts against the chunk; a mirrored row lies within
        // the neighbourhood, and so among the rows that were read.
        unsafe { launch.among_uploads().run(&global, Some(&[group, 1, 1])) }.map(drop)
    }

    /// Waits for the rows of a chunk, and hands out and forgets what was found in its `count` rows: outliers, and saturated
    /// samples.
    ///
    /// # Errors
    /// The device's.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<Vec<[u32; 2]>> {
        let mut counts = vec![[0; 2]; count];
        session.read_uploaded(&self.counts, &mut counts, "counts of outliers")?;
        if counts.iter().flatten().any(|&count| count > 0) {
            self.clear(session)?;
        }
        Ok(counts)
    }

    fn clear(&mut self, session: &Session) -> Result<()> {
        session.upload(&mut self.counts, 0, &vec![[0; 2]; self.rows.chunk], "counts of outliers")
    }
}

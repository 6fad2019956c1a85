//! Levels of the wavelet transform of images on a device.

use super::files::SINOGRAMS;
use super::program_target::ProgramTarget;
use super::sinograms::{DeviceValues, SinogramBatch};
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, StepTarget, assemble, cl_file};
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

const WAVELET: ClFile = cl_file!("wavelet.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, SINOGRAMS, WAVELET]];

/// Returns the source for filters with `taps` taps on a device.
fn generate_wavelet(taps: usize, target: StepTarget) -> Result<KernelSource> {
    let group = target.row_group() as u32;
    let mut defines = Defines::default();
    defines.number("TAPS", taps as u32)?;
    defines.number("GROUP", group)?;
    Ok(assemble(
        format!("wavelet-{taps}"),
        &defines,
        FILES[0],
        vec!["-cl-std=CL1.1".to_owned()],
        "down_columns",
        LaunchShape { work_group: [group, 1], block: [group, 1] },
    ))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    [2, 10].map(|taps| generate_wavelet(taps, on.target)).into_iter().collect()
}

/// Largest number of values of a column that a work-item computes.
const MOST_PLACES: usize = 32;
/// Number of values of a column that a work-item computes where there are few items.
const FEW_PLACES: usize = 4;
/// Number of items that there should be before an item computes more than [`FEW_PLACES`] values.
const ENOUGH_ITEMS: usize = 1 << 17;

/// The kernels for the wavelet transform with a pair of filters, with values mirrored at both ends. Images are
/// `[slice][row][column]`.
pub struct WaveletTransform {
    down_columns: Kernel,
    down_rows: Kernel,
    up_rows: Kernel,
    up_columns: Kernel,
    make_finite: Kernel,
    filters: Buffer<f32>,
    taps: usize,
    group: usize,
}

impl WaveletTransform {
    /// Builds the kernels from the filters of the inverse transform.
    ///
    /// # Errors
    /// Errors of the device in building the program.
    pub fn new(session: &Session, low: &[f32], high: &[f32]) -> Result<Self> {
        let taps = low.len();
        if taps != high.len() || taps == 0 || taps % 2 == 1 {
            return Err(Error::Internal(format!("filters of {taps} and {} taps are no pair", high.len())));
        }
        let source = generate_wavelet(taps, session.step_target())?;
        let program = session.build(&source)?;
        Ok(WaveletTransform {
            down_columns: session.kernel(&program, "down_columns")?,
            down_rows: session.kernel(&program, "down_rows")?,
            up_rows: session.kernel(&program, "up_rows")?,
            up_columns: session.kernel(&program, "up_columns")?,
            make_finite: session.kernel(&program, "make_finite")?,
            filters: Self::layout(taps).constant(session, "wavelets", &[low, high].concat())?,
            taps,
            group: source.work_group[0],
        })
    }

    /// Returns the buffers for filters of `taps` taps.
    pub fn layout(taps: usize) -> BufferLayout {
        BufferLayout::default().with::<f32>("wavelets", 2 * taps)
    }

    /// Returns the number of coefficients for `count` values.
    fn halved(&self, count: usize) -> usize {
        (count + self.taps - 1) / 2
    }

    /// Returns how many of the `places` of each of `columns` columns a work-item computes.
    fn places(places: usize, columns: usize) -> usize {
        (places * columns / ENOUGH_ITEMS).clamp(FEW_PLACES, MOST_PLACES)
    }

    /// Computes low-pass coefficients of columns, `[slice][coefficient][column]`, of images that are padded by `pad`
    /// values on each side: rows by their outermost values, columns by their `means`, `[slice][column]`. Values that
    /// are not finite count as 0.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn down_columns(
        &self,
        session: &Session,
        images: &SinogramBatch,
        means: &DeviceValues,
        pad: usize,
        coarse: &DeviceValues,
    ) -> Result<()> {
        let SinogramBatch { slices, projections: rows, bins: columns, .. } = *images;
        let (width, count) = (columns + 2 * pad, self.halved(rows + 2 * pad));
        let places = WaveletTransform::places(count, width * slices);
        let global = [width.next_multiple_of(self.group), count.div_ceil(places), slices];
        let launch = session
            .launch(&self.down_columns, "down_columns")
            .sinograms(images)?
            .value(images.first as u64)?
            // without padding no means are read
            .buffer(means, if pad > 0 { slices * columns } else { 0 }, "means of columns")?
            .buffer(coarse, slices * count * width, "coefficients of columns")?
            .buffer(&self.filters, 2 * self.taps, "wavelets")?
            .value(rows as i32)?
            .value(columns as i32)?
            .value(pad as i32)?
            .value(places as i32)?;
        launch.run(&global, Some(&[self.group, 1, 1])).map(drop)
    }

    /// Computes low-pass and high-pass coefficients of rows of `coarse`, `[slice][row][coefficient]`.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn down_rows(
        &self,
        session: &Session,
        coarse: &SinogramBatch,
        low: &DeviceValues,
        high: &DeviceValues,
    ) -> Result<()> {
        let SinogramBatch { slices, projections: rows, bins: columns, .. } = *coarse;
        if coarse.first != 0 {
            return Err(Error::Internal("coefficients of columns are not at the start of their buffer".into()));
        }
        let width = self.halved(columns);
        let launch = session
            .launch(&self.down_rows, "down_rows")
            .sinograms(coarse)?
            .buffer(low, slices * rows * width, "low-pass coefficients")?
            .buffer(high, slices * rows * width, "high-pass coefficients")?
            .buffer(&self.filters, 2 * self.taps, "wavelets")?
            .value(columns as i32)?;
        launch.run(&[width.next_multiple_of(self.group), rows, slices], Some(&[self.group, 1, 1])).map(drop)
    }

    /// Inverts [`down_rows`](Self::down_rows) into `coarse`; without `low`, the low-pass coefficients are taken as 0.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn up_rows(
        &self,
        session: &Session,
        low: Option<&DeviceValues>,
        high: &DeviceValues,
        coarse: &SinogramBatch,
    ) -> Result<()> {
        let SinogramBatch { slices, projections: rows, bins: columns, .. } = *coarse;
        if coarse.first != 0 {
            return Err(Error::Internal("coefficients of columns are not at the start of their buffer".into()));
        }
        let needed = slices * rows * self.halved(columns);
        let launch = session
            .launch(&self.up_rows, "up_rows")
            .buffer(low.unwrap_or(high), needed, "low-pass coefficients")?
            .buffer(high, needed, "high-pass coefficients")?
            .sinograms(coarse)?
            .buffer(&self.filters, 2 * self.taps, "wavelets")?
            .value(columns as i32)?
            .value(i32::from(low.is_some()))?;
        let pairs = columns.div_ceil(2).next_multiple_of(self.group);
        launch.run(&[pairs, rows, slices], Some(&[self.group, 1, 1])).map(drop)
    }

    /// Inverts [`down_columns`](Self::down_columns) without the padding. The result is stored in `images`, or
    /// `subtracted` from them, and values that are not finite become 0, before and after.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn up_columns(
        &self,
        session: &Session,
        coarse: &DeviceValues,
        images: &SinogramBatch,
        pad: usize,
        subtracted: bool,
    ) -> Result<()> {
        let SinogramBatch { slices, projections: rows, bins: columns, .. } = *images;
        let needed = slices * self.halved(rows + 2 * pad) * (columns + 2 * pad);
        let count = (pad + rows).div_ceil(2) - pad / 2;
        let pairs = WaveletTransform::places(count, columns * slices);
        let global = [columns.next_multiple_of(self.group), count.div_ceil(pairs), slices];
        let launch = session
            .launch(&self.up_columns, "up_columns")
            .buffer(coarse, needed, "coefficients of columns")?
            .sinograms(images)?
            .value(images.first as u64)?
            .buffer(&self.filters, 2 * self.taps, "wavelets")?
            .value(rows as i32)?
            .value(columns as i32)?
            .value(pad as i32)?
            .value(pairs as i32)?
            .value(i32::from(subtracted))?;
        launch.run(&global, Some(&[self.group, 1, 1])).map(drop)
    }

    /// Replaces values of images that are not finite by 0, the only change to make without any level.
    ///
    /// # Errors
    /// [`Error::Internal`] if the buffer is too small, and errors of the device.
    pub fn make_finite(&self, session: &Session, images: &SinogramBatch) -> Result<()> {
        let launch = session.launch(&self.make_finite, "make_finite").sinograms(images)?.value(images.first as u64)?;
        launch.run(&[images.slices * images.sinogram_len()], None).map(drop)
    }
}

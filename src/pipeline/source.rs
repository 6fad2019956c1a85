//! Where sinograms come from, and what is done to slices before they are written.

use crate::config::{AngleSource, Input, Job};
use crate::error::{Error, Result};
use crate::geometry::{parse_numbers, slice_centre};
use crate::io::{Stack, Watch, read_text, wait};
use crate::plan::{Scan, StackShape};
use crate::preprocess::{Clamped, Correction, Fields};
use crate::report::Reporter;
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The stack, its correction and the scan that it holds.
pub(super) struct Source {
    pub stack: Stack,
    pub correction: Correction,
    sinograms: bool,
    shape: StackShape,
    pub scan: Scan,
}

impl Source {
    /// Opens the input, when it has arrived, reads the text files beside it, and checks that all fits together.
    pub fn open(job: &Job, reporter: &Reporter, cancelled: &AtomicBool) -> Result<Source> {
        let sinograms = matches!(job.input, Input::Sinograms(_));
        let numbers = |path: &Path, flag: &str| -> Result<Vec<f64>> {
            let text = read_text(path).map_err(|e| Error::input(path, format!("{flag}: {e}")))?;
            parse_numbers(&text, &format!("{flag} {}", path.display()))
        };
        let angles = match &job.angles {
            AngleSource::File(file) => Some(numbers(file, "--angles")?),
            AngleSource::Even { .. } => None,
        };
        let (path, flag) = job.input.stack();
        let stack = match job.watch {
            None => Stack::open(path, flag)?,
            Some(patience) => {
                let of_angles = angles.as_ref().filter(|_| !sinograms).map(Vec::len);
                let watch = Watch { patience, pages: job.expect.or(of_angles) };
                await_stack(path, flag, watch, reporter, cancelled)?
            }
        };
        for note in stack.notes() {
            reporter.note(&format!("note: {note}"));
        }
        let shifts = job.center_shifts.as_deref().map(|file| numbers(file, "--center-shifts")).transpose()?;
        let (slices, projections) = match sinograms {
            true => (stack.len(), stack.height()),
            false => (stack.height(), stack.len()),
        };
        let shape = StackShape { slices, projections, bins: stack.width(), angles, shifts };
        let scan = Scan::new(job, &shape)?;
        for note in &scan.notes {
            reporter.note(&format!("note: {note}"));
        }
        let fields = match &job.input {
            Input::Projections { flats: Some(flats), flats2, darks, median, .. } => {
                if darks.is_none() {
                    reporter.note("note: no --darks, the dark level is taken as 0");
                }
                Some(Fields::read(flats, flats2.as_deref(), darks.as_deref(), *median, &stack)?)
            }
            _ => None,
        };
        Ok(Source {
            stack,
            correction: Correction { fields, minus_log: job.minus_log, clamped: Clamped::default() },
            sinograms,
            shape,
            scan,
        })
    }

    /// The same data with the axis of another job.
    pub fn with_axis_of(self, job: &Job) -> Result<Source> {
        let scan = Scan::new(job, &self.shape)?;
        Ok(Source { scan, ..self })
    }

    /// Values of one sinogram.
    pub fn sinogram_len(&self) -> usize {
        self.scan.geometry.projections() * self.scan.geometry.bins
    }

    /// Corrected sinograms `[slice][projection][bin]` of some slices of the scan.
    pub fn read(&self, which: &[usize]) -> Result<Vec<f32>> {
        let mut out = vec![0f32; which.len() * self.sinogram_len()];
        self.read_into(which, &mut out)?;
        Ok(out)
    }

    /// The same into `out`, which has room for exactly these.
    pub fn read_into(&self, which: &[usize], out: &mut [f32]) -> Result<()> {
        match self.sinograms {
            true => self.read_sinograms(which, out),
            false => self.read_projections(which, out),
        }
    }

    fn read_sinograms(&self, which: &[usize], out: &mut [f32]) -> Result<()> {
        let (bins, used, total) = (self.scan.geometry.bins, &self.scan.used, self.stack.height());
        out.par_chunks_mut(self.sinogram_len()).zip(which).try_for_each(|(sinogram, &slice)| -> Result<()> {
            if used.len() == total {
                self.stack.read_rows(slice, 0..total, sinogram)?;
            } else {
                let mut all = vec![0f32; total * bins];
                self.stack.read_rows(slice, 0..total, &mut all)?;
                for (row, &p) in sinogram.chunks_mut(bins).zip(used) {
                    row.copy_from_slice(&all[p * bins..(p + 1) * bins]);
                }
            }
            for (row, &p) in sinogram.chunks_mut(bins).zip(used) {
                self.correction.apply(row, slice, p, total);
            }
            Ok(())
        })
    }

    /// Each projection's rows are read at once and go from there to their sinograms.
    fn read_projections(&self, which: &[usize], out: &mut [f32]) -> Result<()> {
        let (bins, used, total) = (self.scan.geometry.bins, &self.scan.used, self.stack.len());
        let mut rows_of: Vec<Vec<&mut [f32]>> = used.iter().map(|_| Vec::with_capacity(which.len())).collect();
        for sinogram in out.chunks_mut(self.sinogram_len()) {
            for (rows, row) in rows_of.iter_mut().zip(sinogram.chunks_mut(bins)) {
                rows.push(row);
            }
        }
        let span = span_of(which);
        rows_of.into_par_iter().zip(used).try_for_each_init(Vec::new, |band, (rows, &p)| -> Result<()> {
            band.resize(which.len() * bins, 0.0);
            if span.len() == which.len() {
                self.stack.read_rows(p, span.clone(), band)?;
            } else {
                for (row, &z) in band.chunks_mut(bins).zip(which) {
                    self.stack.read_rows(p, z..z + 1, row)?;
                }
            }
            for ((row, band), &z) in rows.into_iter().zip(band.chunks_mut(bins)).zip(which) {
                self.correction.apply(band, z, p, total);
                row.copy_from_slice(band);
            }
            Ok(())
        })
    }
}

/// Waits for a stack, and tells how many files are there whenever more have come.
fn await_stack(path: &str, flag: &str, watch: Watch, reporter: &Reporter, cancelled: &AtomicBool) -> Result<Stack> {
    let mut before = None;
    wait(path, flag, watch, |files| {
        if cancelled.load(Relaxed) {
            return Err(Error::Interrupted("interrupted while waiting for files; nothing was written".into()));
        }
        if before.replace(files) != Some(files) {
            let of = watch.pages.map(|pages| format!(" of {pages}")).unwrap_or_default();
            reporter.detail(&format!("waiting for {flag}: {files}{of} files are there"));
        }
        Ok(())
    })
}

/// From the first to the last of ascending numbers.
fn span_of(numbers: &[usize]) -> Range<usize> {
    match (numbers.first(), numbers.last()) {
        (Some(&first), Some(&last)) => first..last + 1,
        _ => 0..0,
    }
}

/// What is done to a slice after the device: length unit and mask.
pub(super) struct Finish {
    factor: f32,
    /// Radius in pixels, squared.
    radius2: Option<f64>,
}

impl Finish {
    pub fn new(job: &Job, scan: &Scan) -> Self {
        Finish {
            factor: job.pixel_size.as_ref().map_or(1.0, |p| (1.0 / p.value) as f32),
            radius2: job.mask.map(|fraction| (fraction * scan.geometry.size as f64 / 2.0).powi(2)),
        }
    }

    pub fn apply(&self, scan: &Scan, slice: &mut [f32]) {
        let (roi, centre) = (scan.geometry.roi, slice_centre(scan.geometry.size));
        if self.factor != 1.0 {
            slice.iter_mut().for_each(|v| *v *= self.factor);
        }
        if let Some(radius2) = self.radius2 {
            for (y, row) in slice.chunks_mut(roi.width).enumerate() {
                let dy = (roi.y + y) as f64 - centre;
                for (x, value) in row.iter_mut().enumerate() {
                    let dx = (roi.x + x) as f64 - centre;
                    if dx * dx + dy * dy > radius2 {
                        *value = 0.0;
                    }
                }
            }
        }
    }
}

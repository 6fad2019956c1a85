//! The rotation axis from a few rows of the input, corrected as for a run.

use super::source::Source;
use crate::center::{self, Found, Method, Sinograms};
use crate::config::Job;
use crate::error::Result;
use crate::plan::{Scan, binned};
use crate::report::Reporter;
use serde::Serialize;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// Rows that are sampled, spread over those of the run,
const ROWS: usize = 8;
/// unless their sinograms have more values than this together.
const VALUES: usize = 1 << 26;

/// The axis of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// Bins.
    pub value: f64,
    /// What found it; `None` where it was given.
    pub method: Option<&'static str>,
    /// From 0 to 1; `None` where it was given.
    pub confidence: Option<f64>,
}

impl Axis {
    /// As it was given.
    pub(super) fn given(scan: &Scan) -> Axis {
        Axis { value: scan.center, method: None, confidence: None }
    }
}

impl From<Found> for Axis {
    fn from(found: Found) -> Axis {
        Axis { value: found.value, method: Some(found.method.name()), confidence: Some(found.confidence) }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "centre {:.2} bins", self.value)?;
        match (self.method, self.confidence) {
            (Some(method), Some(confidence)) => write!(f, " found by {method}, confidence {confidence:.2}"),
            _ => Ok(()),
        }
    }
}

/// Corrected sinograms of some rows.
pub struct Sampled {
    pub bins: usize,
    /// Bins of the detector that are one of these.
    pub binning: usize,
    /// Degrees, of every projection.
    pub angles: Vec<f64>,
    /// Numbers of the rows.
    pub rows: Vec<usize>,
    /// `[projection][bin]` of every row, per-projection shifts of the axis taken out.
    pub sinograms: Vec<Vec<f32>>,
}

impl Sampled {
    /// The axis by a method, or by those that suit the scan, within `range`. All in bins of the detector.
    pub fn search(&self, method: Option<Method>, range: Option<(f64, f64)>) -> Result<Vec<Found>> {
        let rows: Vec<&[f32]> = self.sinograms.iter().map(Vec::as_slice).collect();
        let sinograms = Sinograms::new(self.bins, &self.angles, &rows);
        let range = range.map(|(low, high)| (self.binned(low), self.binned(high)));
        let mut found = match method {
            Some(method) => vec![center::search(method, &sinograms, range)?],
            None => center::auto(&sinograms, range)?,
        };
        let binning = self.binning as f64;
        found.iter_mut().for_each(|found| found.value = found.value * binning + (binning - 1.0) / 2.0);
        Ok(found)
    }

    /// A position in bins of the detector in those of the sinograms.
    pub fn binned(&self, position: f64) -> f64 {
        binned(position, self.binning as f64)
    }
}

/// Opens the input of a job and reads the rows of a search, with their stripes.
pub fn sample(job: &Job) -> Result<Sampled> {
    read(&open(job)?, ROWS, Source::read_seen)
}

/// Opens the input of a job and reads the middle row as it would be filtered.
pub fn middle_row(job: &Job) -> Result<Sampled> {
    read(&open(job)?, 1, Source::read)
}

fn open(job: &Job) -> Result<Source> {
    let reporter = Reporter::new(job.verbosity, job.progress, job.log.as_deref())?;
    Source::open(job, &reporter, &AtomicBool::new(false))
}

/// The axis by a method, or by those that suit the scan. It depends on all rows of the run, not on a shard's.
pub(super) fn find(source: &Source, method: Option<Method>) -> Result<Axis> {
    // what takes stripes out does it alike to both halves of a turn, not as to mirror images: it moves what a search finds
    center::accept(&read(source, ROWS, Source::read_seen)?.search(method, None)?).map(Axis::from)
}

fn read(source: &Source, most: usize, sinograms_of: fn(&Source, &[usize]) -> Result<Vec<f32>>) -> Result<Sampled> {
    let (scan, whole) = (&source.scan, &source.scan.whole);
    let (bins, axis) = (scan.geometry.bins, &scan.geometry.axis);
    let count = most.min(VALUES / source.sinogram_len().max(1)).clamp(1, whole.len());
    let rows: Vec<usize> = (0..count).map(|i| whole[(2 * i + 1) * whole.len() / (2 * count)]).collect();
    let mut sinograms = Vec::with_capacity(count);
    for &row in &rows {
        let mut sinogram = sinograms_of(source, &[row])?;
        if !scan.geometry.same_axis() {
            let middle = axis.iter().sum::<f64>() / axis.len() as f64;
            for (values, axis) in sinogram.chunks_mut(bins).zip(axis) {
                shift(values, axis - middle);
            }
        }
        sinograms.push(sinogram);
    }
    // what is read again must not count twice
    source.preparation.reset();
    Ok(Sampled { bins, binning: source.stack.binning().by, angles: scan.geometry.angles.clone(), rows, sinograms })
}

/// Moves a row by `-by` bins, linearly interpolated, continued by its ends.
fn shift(row: &mut [f32], by: f64) {
    let last = row.len() - 1;
    let old = row.to_vec();
    for (bin, value) in row.iter_mut().enumerate() {
        let at = (bin as f64 + by).clamp(0.0, last as f64);
        let (i, w) = (at as usize, at.fract() as f32);
        *value = old[i] + w * (old[(i + 1).min(last)] - old[i]);
    }
}

//! Finds the rotation axis from a few rows of the input, corrected as for a run.

use crate::center::{self, AxisEstimate, AxisSearch, AxisSurvey, AxisTilt, Method, Sinograms, TrialScores};
use crate::engine::{Source, corrected_rows};
use crate::error::Result;
use crate::geometry::default_axis;
use crate::job::Job;
use crate::plan::{Scan, binned};
use crate::report::Reporter;
use crate::steps::Tilt;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Smallest tilt, in standard deviations, from which the projections are rotated until the axis is upright.
const SUSPECTED: f64 = 2.0;
/// Largest number of rotations that are tried.
const MOST_TURNS: usize = 5;
/// Remaining tilt, as a share of its standard deviation, at which the axis counts as upright.
const CLOSE: f64 = 0.3;
/// Smallest correction of the tilt, in standard deviations, that is kept; a smaller one may be chance.
const TILTED: f64 = 4.0;

/// The axis of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// Position in bins.
    pub value: f64,
    /// Method that found the axis; `None` where it was given.
    #[serde(default)]
    pub method: Option<String>,
    /// Standard deviation in bins; `None` where it was given.
    #[serde(default)]
    pub uncertainty: Option<f64>,
    /// Probability that the axis lies within half a bin of the value; `None` where it was given.
    #[serde(default)]
    pub mass: Option<f64>,
    /// Tilt that was found with the axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tilt: Option<FoundTilt>,
}

/// A tilt of the axis that a search found, as `--tilt` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundTilt {
    /// Degrees, including the tilt that `--tilt` corrects already; a part that may be chance is left out.
    pub degrees: f64,
    /// Standard deviation in degrees.
    pub uncertainty: f64,
}

impl fmt::Display for FoundTilt {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "tilt {:.3} +- {:.3} degrees", self.degrees, self.uncertainty)
    }
}

impl Axis {
    /// Returns the axis that was given for a scan.
    pub fn given(scan: &Scan) -> Axis {
        Axis { value: scan.center, method: None, uncertainty: None, mass: None, tilt: None }
    }
}

impl From<AxisEstimate> for Axis {
    fn from(found: AxisEstimate) -> Axis {
        Axis {
            value: found.value,
            method: Some(found.method.name().to_owned()),
            uncertainty: Some(found.uncertainty),
            mass: Some(found.mass),
            tilt: None,
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "centre {:.2} bins", self.value)?;
        if let (Some(method), Some(uncertainty)) = (&self.method, self.uncertainty) {
            write!(f, " +- {uncertainty:.2}, found by {method}")?;
        }
        self.tilt.map_or(Ok(()), |tilt| write!(f, ", {tilt}"))
    }
}

/// Corrected sinograms of some rows of a scan.
pub struct Sampled {
    pub bins: usize,
    /// Number of detector bins that are averaged into a bin of the sinograms.
    pub binning: usize,
    /// Angle of every projection in degrees.
    pub angles: Vec<f64>,
    /// Mean of the shifts of the axis, in bins of the detector: in the sinograms the axis lies at that of the run plus
    /// this.
    pub mean_shift: f64,
    /// Numbers of the rows.
    pub rows: Vec<usize>,
    /// Sinogram `[projection][bin]` of every row; differences of the shifts from their mean are removed.
    pub sinograms: Vec<Vec<f32>>,
}

impl Sampled {
    /// Searches the axis within `range` by a method, or by those that suit the scan. All positions are in bins of the
    /// detector, without shifts, as `--center` takes them.
    pub fn search(&self, method: Option<Method>, range: Option<(f64, f64)>) -> Result<AxisSearch> {
        let mut search = center::find(&self.prepared(), method, self.binned(range))?;
        search.found.iter_mut().for_each(|found| self.unbin(found));
        let (scale, shift) = self.unbinning();
        // rows are binned as bins are: the slope stays
        search.second = search.second.map(|(at, share)| (at * scale + shift, share));
        Ok(search)
    }

    /// Returns the result of every method on its own, with its costs, and a note for the user. All positions are in
    /// bins of the detector, without shifts.
    pub fn survey(&self, range: Option<(f64, f64)>) -> (Vec<AxisSurvey>, Option<&'static str>) {
        let (mut found, note) = center::survey(&self.prepared(), self.binned(range));
        for AxisSurvey { outcome, .. } in &mut found {
            if let Ok((estimate, costs)) = outcome {
                self.unbin(estimate);
                let (scale, shift) = self.unbinning();
                *costs = std::mem::take(costs).moved(scale, shift);
            }
        }
        (found, note)
    }

    /// Returns the scores of trial axes, ascending, as the method `sweep` measures them in the middle one of the rows;
    /// `None` without enough data, or without a sample in it. All positions are in bins of the detector, without shifts.
    pub fn trial_scores(&self, axes: &[f64]) -> Option<TrialScores> {
        let (scale, shift) = self.unbinning();
        let within: Vec<f64> = axes.iter().map(|axis| (axis - shift) / scale).collect();
        let mut found = center::trial_scores(&self.prepared(), &within)?;
        found.between.iter_mut().for_each(|[at, _]| *at = *at * scale + shift);
        found.minimum.at = found.minimum.at * scale + shift;
        found.minimum.uncertainty *= scale;
        Some(found)
    }

    fn prepared(&self) -> Sinograms {
        let rows: Vec<&[f32]> = self.sinograms.iter().map(Vec::as_slice).collect();
        Sinograms::of_rows(self.bins, &self.angles, &self.rows, &rows)
    }

    fn binned(&self, range: Option<(f64, f64)>) -> Option<(f64, f64)> {
        let binning = self.binning as f64;
        range.map(|(low, high)| (binned(low + self.mean_shift, binning), binned(high + self.mean_shift, binning)))
    }

    /// Scale and shift by which an axis at bin `b` of the sinograms is at `b * scale + shift` on the detector without
    /// shifts.
    fn unbinning(&self) -> (f64, f64) {
        let binning = self.binning as f64;
        (binning, (binning - 1.0) / 2.0 - self.mean_shift)
    }

    fn unbin(&self, found: &mut AxisEstimate) {
        let (scale, shift) = self.unbinning();
        found.value = found.value * scale + shift;
        found.uncertainty *= scale;
    }
}

/// Method and range of a search of the axis.
#[derive(Clone, Copy, Debug, Default)]
pub struct AxisQuery {
    /// Method; `None` for those that suit the scan.
    pub method: Option<Method>,
    /// Range in bins of the detector; `None` for the range that suits the method.
    pub range: Option<(f64, f64)>,
}

/// A job and its source, and the axis that was found in it.
pub struct Aligned {
    pub job: Job,
    pub source: Source,
    pub search: AxisSearch,
    /// Numbers of the rows that were searched.
    pub rows: Vec<usize>,
    /// Tilt of the projections as they were given; `None` from fewer than three rows.
    pub tilt: Option<FoundTilt>,
}

impl Aligned {
    /// Searches the axis of a job. The result depends on all rows of the run, not only on those of a shard.
    ///
    /// # Errors
    /// Errors of reading and of the search.
    pub fn of(job: Job, source: Source, query: AxisQuery, reporter: &Reporter) -> Result<Aligned> {
        // stripes are left in: their removal acts alike on both halves of a turn, not as on mirror images, and would
        // move the axis that is found
        let sampled = sample_of(&source, &job, reporter)?;
        let inclined = source.scan.lamino.map(|_| Method::Rings);
        let search = sampled.search(inclined.or(query.method), query.range)?;
        let tilt = search.tilt.map(|AxisTilt { slope, likely, uncertainty }| FoundTilt {
            degrees: degrees_of(&job) + slope.atan().to_degrees(),
            uncertainty: uncertainty.hypot(likely - slope).to_degrees(),
        });
        Ok(Aligned { job, source, search, rows: sampled.rows, tilt })
    }

    /// Rotates the projections until their axis is upright, if it is tilted by more than chance, and searches it again.
    ///
    /// A row of a tilted detector sees several slices, so that the tilt between its rows is not that of the detector.
    /// Only the rows of an upright axis have none: projections are rotated until no tilt is left.
    ///
    /// # Errors
    /// Errors as of [`Aligned::of`].
    pub fn upright(self, query: AxisQuery, reporter: &Reporter) -> Result<Aligned> {
        let (given, search, rows) = (self.job.clone(), self.search.clone(), self.rows.clone());
        let mut here = self;
        for turn in 0..MOST_TURNS {
            let Some(AxisTilt { likely, uncertainty, .. }) = here.search.tilt else { break };
            let enough = if turn == 0 { SUSPECTED } else { CLOSE };
            if likely.abs() < enough * uncertainty {
                break;
            }
            // rounded to the digits that are printed
            let degrees = (1000.0 * (degrees_of(&here.job) + likely.atan().to_degrees())).round() / 1000.0;
            let Ok(tilt) = Tilt::within(degrees, "--tilt auto") else { break };
            let job = here.job.tilted(tilt);
            let source = here.source.as_of(&job)?;
            here = Aligned::of(job, source, query, reporter)?;
        }
        let Some(AxisTilt { likely, uncertainty, .. }) = here.search.tilt else { return Ok(here) };
        let (before, degrees) = (degrees_of(&given), degrees_of(&here.job));
        let [left, chance] = [likely, uncertainty].map(f64::to_degrees);
        if degrees != before && (degrees - before).abs() >= TILTED * chance.hypot(left) {
            return Ok(Aligned { tilt: Some(FoundTilt { degrees, uncertainty: chance.hypot(left) }), ..here });
        }
        // what may be chance is left out, but not out of the uncertainty
        let source = here.source.as_of(&given)?;
        let tilt = Some(FoundTilt { degrees: before, uncertainty: chance.hypot(degrees - before + left) });
        Ok(Aligned { job: given, source, search, rows, tilt })
    }
}

/// Returns the tilt that a job corrects, in degrees.
fn degrees_of(job: &Job) -> f64 {
    job.recipe.steps.tilt.map_or(0.0, |tilt| tilt.degrees)
}

/// Returns tilt in degrees and axis in bins, both as the options take them, of an axis at bins `first` and `last` in
/// the first and the last row of a detector of `[bins, rows]`.
pub fn of_ends([first, last]: [f64; 2], [bins, rows]: [usize; 2]) -> [f64; 2] {
    let middle = default_axis(bins);
    let tilt = ((last - first) / (rows as f64 - 1.0).max(1.0)).atan();
    [tilt.to_degrees(), middle + ((first + last) / 2.0 - middle) * tilt.cos()]
}

/// Reads the rows for a search from an open input and corrects them, but leaves their stripes.
pub fn sample_of(source: &Source, job: &Job, reporter: &Reporter) -> Result<Sampled> {
    sample_rows(source, job, source.sampled_rows(), reporter)
}

/// Reads these rows as [`sample_of`] does.
pub fn sample_rows(source: &Source, job: &Job, rows: Vec<usize>, reporter: &Reporter) -> Result<Sampled> {
    let scan = &source.scan;
    // rows of the detector, also where a known axis extends them for the run
    let (bins, axis) = (source.stack().width(), &scan.geometry.axis);
    let mut sinograms = corrected_rows(source, job, &rows, reporter)?;
    source.forget_block();
    if !scan.geometry.same_axis() {
        let middle = axis.iter().sum::<f64>() / axis.len() as f64;
        for sinogram in &mut sinograms {
            for (values, axis) in sinogram.chunks_mut(bins).zip(axis) {
                shift(values, axis - middle);
            }
        }
    }
    Ok(Sampled {
        bins,
        binning: source.stack().binning().by,
        angles: scan.geometry.angles.clone(),
        mean_shift: scan.mean_shift,
        rows,
        sinograms,
    })
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

//! The scan: flags combined with the contents of the files.

use super::angles::{self, AngleOrigin};
use super::errors::{PlanFlagError, ScanFileError};
use crate::error::{Error, Result};
use crate::geometry::{self, Coverage, ExtendedField, Geometry, Lamino, Roi, widest_gap};
use crate::job::Job;
use crate::kernel::{StepBackend, StepBackends};
use crate::operations::{DetectorImages, RowBlocks};
use crate::recipe::{AngleSource, Center, MAX_ANGLE, Recipe};
use crate::remark::Remark;
use crate::source::{LogUse, StoredRows, StoredSamples};
use std::ops::RangeInclusive;

/// The contents of the headers of the input, and of the text files that were read beside it.
#[derive(Clone, Debug)]
pub struct StackShape {
    /// Number of slices that the stack holds.
    pub slices: usize,
    /// Number of projections that the stack holds, before any is left out.
    pub projections: usize,
    /// Number of bins of a row after binning.
    pub bins: usize,
    /// Number of bins of the detector that binning makes one of.
    pub binning: usize,
    /// Contents of `--angles`, or the angles in the input, in degrees.
    pub angles: Option<Vec<f64>>,
    /// Contents of `--center-shifts`, or the shifts in the input, in bins.
    pub shifts: Option<Vec<f64>>,
    /// Contents of `--weights`.
    pub weights: Option<Vec<f64>>,
}

/// The samples that a device may get as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleShape {
    pub stored: StoredRows,
    /// Number of rows of the detector.
    pub height: usize,
    /// Images of the detector that a device needs to correct them.
    pub held: DetectorImages,
    /// Number of rows on either side of those of a slice or a block that a device needs, too.
    pub halo: usize,
    /// Blocks of rows that a device corrects together, if it must.
    pub blocks: Option<RowBlocks>,
    /// True if a device can do all steps on rows.
    pub correctable: bool,
    /// True if rows of a projection take about as long to read as all of it.
    pub whole_frames: bool,
    /// True if the host corrects a projection without the others, and reads it without them.
    pub apart: bool,
}

/// Bytes of host memory that steps before the filter hold if the host does them, whatever the chunks are.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldByHost {
    /// Bytes of rows of all projections that are filtered together.
    pub block: u64,
    /// Bytes for stripe removal, of one sinogram per thread.
    pub stripes: u64,
}

impl HeldByHost {
    /// Returns the bytes that the steps hold which the host does.
    pub fn by(self, steps: StepBackends) -> u64 {
        let on_host = |backend, bytes| if backend == StepBackend::Host { bytes } else { 0 };
        on_host(steps.rows, self.block) + on_host(steps.sinograms, self.stripes)
    }
}

/// The scan's geometry, the slices to compute and the projections that are used.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Geometry of the rows that are filtered: those of an extended field, if there is one.
    pub geometry: Geometry,
    /// Position of the axis without shifts, as the user gives it, in bins of the detector.
    pub center: f64,
    /// Mean of the shifts of the projections that are used, in bins of the detector.
    pub mean_shift: f64,
    /// Extension of rows beyond the detector, if there is one.
    pub field: Option<ExtendedField>,
    /// Inclination of the axis, if it is inclined.
    pub lamino: Option<Lamino>,
    /// Host memory that steps hold; none until the steps are known.
    pub held: HeldByHost,
    /// Bytes of host memory for chunks of the input, whoever does the steps.
    pub cached: u64,
    /// Stored samples of the input; `f32` values until the steps are known.
    pub samples: SampleShape,
    /// Numbers of the slices to compute, ascending.
    pub slices: Vec<usize>,
    /// Numbers of all slices of the run, of which `slices` are this job's shard.
    ///
    /// Decisions that affect values (the kernel, percentiles) depend on these, so that slices do not depend on how a
    /// run is shared.
    pub run_slices: Vec<usize>,
    /// Numbers of the projections that are used, ascending.
    pub used: Vec<usize>,
    /// Numbers of the projections of `--projection-range`, ascending, and their angles in degrees: those that are used and
    /// those that `--exclude` removes.
    pub ranged: Vec<(usize, f64)>,
    /// Remarks about the scan for the user.
    pub remarks: Vec<Remark>,
}

impl Scan {
    /// Combines the settings of a job with what the files hold.
    ///
    /// # Errors
    /// [`Error::Usage`] for what goes past the data, [`Error::Input`] for text files that do not fit the stack.
    pub fn new(job: &Job, stack: &StackShape) -> Result<Scan> {
        let (recipe, execution) = (&job.recipe, &job.execution);
        let mut remarks = Vec::new();
        let used = used_projections(recipe, stack.projections)?;
        let AngleTable { angles, weights, all } = angles_and_weights(job, stack, &used, &mut remarks)?;
        let ranged = ranged(recipe, stack.projections)?.into_iter().map(|p| (p, all[p])).collect();
        let (bins, binning) = (stack.bins, stack.binning as f64);
        let shifts = match &stack.shifts {
            Some(shifts) => {
                expect_count(shifts, stack, "--center-shifts", "shifts")?;
                within(shifts, MAX_SHIFT, "--center-shifts", "bins")?;
                pick(shifts, &used)
            }
            None => vec![0.0; used.len()],
        };
        let mean_shift = shifts.iter().sum::<f64>() / shifts.len() as f64;
        let center = center(recipe, bins * stack.binning, mean_shift, &angles, &mut remarks)?;
        let axis: Vec<f64> = shifts.iter().map(|shift| binned(center + shift, binning)).collect();
        // an extended field waits for the axis
        let searching = matches!(recipe.scan.center, Center::Search(_) | Center::Ends(_));
        let field = match recipe.scan.extended_field && !searching {
            true => Some(ExtendedField::new(bins, binned(center, binning), &axis, &angles)?),
            false => None,
        };
        let (bins, before) = field.as_ref().map_or((bins, 0), |field| (field.bins, field.before));
        let axis: Vec<f64> = axis.iter().map(|axis| axis + before as f64).collect();
        let size = recipe.slice.size.unwrap_or(bins);
        let roi = recipe.slice.roi.unwrap_or(Roi::full(size));
        if roi.x.saturating_add(roi.width) > size || roi.y.saturating_add(roi.height) > size {
            let Roi { x, y, width, height } = roi;
            return Err(PlanFlagError::RoiOutside { x, y, width, height, size }.into());
        }
        let run_slices: Vec<usize> = match execution.rows {
            Some(span) => span.within(stack.slices, slices_flag(recipe), "slices")?,
            None => (0..stack.slices).collect(),
        };
        let slices =
            run_slices[execution.shard.map_or(0..run_slices.len(), |shard| shard.of(run_slices.len()))].to_vec();
        let geometry = Geometry { bins, size, roi, angles, axis, weights, misfit_weights: None };
        let lamino = recipe.scan.lamino_angle.map(|degrees| Lamino::new(degrees, stack.slices, &geometry, &run_slices));
        let (stored, held) = (StoredRows::unbinned(StoredSamples::F32, stack.bins), DetectorImages::default());
        let samples = SampleShape {
            stored,
            height: 0,
            held,
            halo: 0,
            blocks: None,
            correctable: false,
            whole_frames: false,
            apart: false,
        };
        let scan = Scan {
            geometry,
            center,
            mean_shift,
            field,
            lamino,
            held: HeldByHost::default(),
            cached: 0,
            samples,
            slices,
            run_slices,
            used,
            ranged,
            remarks,
        };
        let Some(weights) = &stack.weights else { return Ok(scan) };
        expect_count(weights, stack, "--weights", "weights")?;
        match weights.iter().position(|weight| !WEIGHTS.contains(weight)) {
            Some(projection) => Err(ScanFileError::Weight { value: weights[projection], projection }.into()),
            None => Ok(scan.weighted(weights)),
        }
    }

    /// Gives the projections that are used their weights in least squares, of which there is one for each of the stack.
    pub fn weighted(mut self, all: &[f64]) -> Scan {
        let weights = pick(all, &self.used);
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        self.geometry.misfit_weights = Some(weights.iter().map(|weight| weight / mean).collect());
        self
    }

    /// Returns the number of updates of all slices: pixels times projections.
    pub fn updates(&self) -> f64 {
        self.slices.len() as f64 * self.geometry.roi.pixels() as f64 * self.geometry.projections() as f64
    }
}

/// Returns the flag for the slices of a run.
fn slices_flag(recipe: &Recipe) -> &'static str {
    if recipe.scan.lamino_angle.is_some() { "--slab" } else { "--rows" }
}

/// Returns the numbers of the projections that are used, of `count`.
fn used_projections(recipe: &Recipe, count: usize) -> Result<Vec<usize>> {
    let excluded = recipe.scan.exclude.marks(count, "--exclude", "projections")?;
    let mut used = ranged(recipe, count)?;
    used.retain(|&p| !excluded[p]);
    if used.is_empty() {
        return Err(PlanFlagError::NoProjections.into());
    }
    Ok(used)
}

/// Returns the numbers of the projections of `--projection-range`, of `count`.
fn ranged(recipe: &Recipe, count: usize) -> Result<Vec<usize>> {
    match recipe.scan.projection_range {
        Some(span) => span.within(count, "--projection-range", "projections"),
        None => Ok((0..count).collect()),
    }
}

/// Angles in degrees and weights of the projections that are used, and the angles of all.
struct AngleTable {
    angles: Vec<f64>,
    weights: Vec<f64>,
    all: Vec<f64>,
}

/// Returns the angles and the weights of the projections that are used.
fn angles_and_weights(job: &Job, stack: &StackShape, used: &[usize], remarks: &mut Vec<Remark>) -> Result<AngleTable> {
    let scan = &job.recipe.scan;
    let files = &job.execution.files;
    // opposite projections do not see the same
    let period = if scan.extended_field || scan.lamino_angle.is_some() { 360.0 } else { 180.0 };
    let of_log = files.log == LogUse::Angles && stack.angles.is_some();
    let origin = match (scan.angles, &files.angles) {
        (AngleSource::Even { .. }, _) if of_log => {
            AngleOrigin::Input(format!("the log beside --projections {}", files.stacks.data))
        }
        (AngleSource::Even { .. }, _) => AngleOrigin::Even,
        (AngleSource::File, Some(file)) => AngleOrigin::Text(format!("--angles {}", file.display())),
        (AngleSource::Xrm, _) => AngleOrigin::Input(format!("--projections {}", files.stacks.data)),
        _ => AngleOrigin::Hdf5(format!("--hdf5 {}", files.stacks.data)),
    };
    let even;
    let all = match (scan.angles, &origin, &stack.angles) {
        (AngleSource::Even { start, overall }, AngleOrigin::Even, _) => {
            even = geometry::even_angles(start, overall, stack.projections);
            &even
        }
        (_, AngleOrigin::Text(flag) | AngleOrigin::Hdf5(flag) | AngleOrigin::Input(flag), Some(values)) => {
            expect_count(values, stack, flag, "angles")?;
            within(values, MAX_ANGLE, flag, "degrees")?;
            values
        }
        _ => return Err(Error::Internal(format!("{origin:?}: its angles were not read"))),
    };
    let angles = pick(all, used);
    remarks.extend(angles::doubt(&origin, all, &angles, period).map(Remark::from));
    // half a turn about an inclined axis has no neighbours across the other half
    let part = scan.lamino_angle.is_some() && Coverage::of(&angles, period).missing() > MOST_OF_TURN_MISSING;
    let period = if part { 180.0 } else { period };
    let weights = match (scan.angles, origin) {
        (AngleSource::Even { overall, .. }, AngleOrigin::Even) if used.len() == stack.projections => {
            geometry::even_weights(&angles, overall, scan.weights, period)
        }
        _ => geometry::weights(&angles, scan.weights, period),
    };
    Ok(AngleTable { angles, weights, all: all.clone() })
}

/// Returns the position of the axis without shifts, in bins of the `detector`: the middle until it is found or if none
/// is given.
///
/// With the mean of the shifts, a given axis must be on the detector.
fn center(recipe: &Recipe, detector: usize, mean_shift: f64, angles: &[f64], remarks: &mut Vec<Remark>) -> Result<f64> {
    let last = detector as f64 - 1.0;
    let middle = geometry::default_axis(detector);
    let center = match recipe.scan.center {
        Center::At(center) if !(0.0..=last).contains(&(center + mean_shift)) => {
            return Err(match mean_shift {
                0.0 => PlanFlagError::AxisOutside { center, last }.into(),
                _ => PlanFlagError::ShiftedAxisOutside { center, mean_shift, last }.into(),
            });
        }
        Center::At(center) => center,
        Center::Search(_) | Center::Ends(_) => middle,
        Center::Middle => {
            remarks.push(Remark::note(format!(
                "the axis is assumed to be in the middle of the detector, at {middle}; --center sets it, --center auto \
                 finds it"
            )));
            middle
        }
    };
    let off = (center + mean_shift - middle).abs();
    let upright = recipe.scan.lamino_angle.is_none();
    if upright && !recipe.scan.extended_field && off > FAR_OFF * detector as f64 && widest_gap(angles) < 90.0 {
        remarks.push(Remark::note(format!(
            "the axis of this 360-degree scan is {off:.1} bins off the middle; --extended-field extends slices to the \
             longer side of the detector"
        )));
    }
    Ok(center)
}

/// Returns the values of some projections.
fn pick(values: &[f64], used: &[usize]) -> Vec<f64> {
    used.iter().map(|&p| values[p]).collect()
}

/// Checks that a text file has a number for every projection of the stack.
fn expect_count(values: &[f64], stack: &StackShape, flag: &str, items: &'static str) -> Result<()> {
    let projections = stack.projections;
    if values.len() == projections {
        return Ok(());
    }
    Err(ScanFileError::OtherCount { flag: flag.into(), count: values.len(), items, projections }.into())
}

/// Degrees of a turn that may be missing before projections are weighted as those of half a turn.
const MOST_OF_TURN_MISSING: f64 = 15.0;

/// Share of the detector by which the axis of a whole turn may be off its middle without a remark.
const FAR_OFF: f64 = 0.1;

/// Converts a position in bins of the detector to bins that `binning` of them are combined into.
pub fn binned(position: f64, binning: f64) -> f64 {
    // the position itself where nothing is binned
    (position - (binning - 1.0) / 2.0) / binning
}

/// Weights of projections that single precision can tell apart.
const WEIGHTS: RangeInclusive<f64> = 1e-6..=1e6;

/// Largest shift of the axis in bins, in either direction: no detector is wider.
const MAX_SHIFT: f64 = (1 << 20) as f64;

/// Checks that the numbers of a text file, one for each projection, are within a limit.
fn within(values: &[f64], most: f64, flag: &str, unit: &'static str) -> Result<()> {
    match values.iter().position(|value| value.abs() > most) {
        Some(projection) => {
            let value = values[projection];
            Err(ScanFileError::Outside { flag: flag.into(), value, projection, most, unit }.into())
        }
        None => Ok(()),
    }
}

//! The computation of a run: everything that affects the bytes of a slice, and nothing else.
//!
//! A [`Recipe`] is a value that is made once, from flags and the run file, and never changed; with the fingerprint of
//! its input and the kernels, it forms the run key ([`Identity`]). How and where the run takes place is its
//! [`Execution`](crate::execution::Execution).

mod conflicts;
mod errors;
mod identity;
mod input;
mod output;
mod quantities;
mod run_file;
mod scan;
mod solver;
mod spans;
mod stitching;
mod windows;

pub use conflicts::{CheckedCommand, Rule, RuleKind, check_conflicts, given, rules};
pub use identity::{DeviceIdentity, Identity};
pub use input::Input;
pub use output::{Scaling, Values};
pub use quantities::{MAX_ANGLE, parse_size, parse_time};
pub use run_file::{FACTS, known_keys, merge, nearest_key, put_over, run_file};
pub use scan::{AngleSource, Center, ScanRecipe, SliceGrid};
pub use spans::{Ranges, Span};
pub use stitching::{Distance, Join, Stitching};
pub use windows::{Division, WindowLength};

use crate::center::Method;
use crate::cli::{InputArgs, ReconstructArgs, StepArgs};
use crate::error::Result;
use crate::geometry::ACCURACIES;
use crate::kernel::{Algorithm, Bound, Interpolation, Mode, SLICE_MODES};
use crate::least_squares::LeastSquares;
use crate::spectrum::{Filter, Padding};
use crate::steps::{StepFlags, Steps, Tilt, is_searched};
use errors::RecipeError;
use serde::{Deserialize, Serialize};

/// Everything that determines the bytes of slices, as requested. Serialised, its values are named and spelled like
/// flags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recipe {
    pub input: Input,
    pub scan: ScanRecipe,
    pub slice: SliceGrid,
    /// Steps that are applied to the data before the filter.
    pub steps: Steps,
    pub filter: RowFilterRecipe,
    pub kernel: KernelChoice,
    /// Least squares in place of filtered back projection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver: Option<LeastSquares>,
    pub values: Values,
}

/// Filter of rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RowFilterRecipe {
    #[serde(rename = "filter")]
    pub name: Filter,
    /// Cutoff frequency of the filter, in units of the Nyquist frequency.
    #[serde(rename = "filter-cutoff")]
    pub cutoff: f64,
    /// Continuation of a row beyond the detector.
    pub padding: Padding,
}

impl Default for RowFilterRecipe {
    fn default() -> Self {
        RowFilterRecipe { name: Filter::default(), cutoff: 1.0, padding: Padding::default() }
    }
}

/// Requested kernel; `None` leaves a choice to the profile, and the choice of the profile to the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KernelChoice {
    pub profile: Option<String>,
    pub algorithm: Option<Algorithm>,
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub slices_per_pass: Option<u32>,
    /// Largest root-mean-square error of slices with interpolation `exact`, relative to the slice's root mean square.
    pub accuracy: Option<f64>,
}

impl Default for KernelChoice {
    fn default() -> Self {
        KernelChoice {
            profile: None,
            algorithm: None,
            interpolation: Interpolation::Linear,
            mode: Mode::Precise,
            slices_per_pass: None,
            accuracy: None,
        }
    }
}

impl Recipe {
    /// Converts and checks merged flags, as far as that is possible without a device or a data file.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
    pub fn new(args: &ReconstructArgs) -> Result<Recipe> {
        let input = Input::new(&args.input, &args.steps)?;
        let slice = SliceGrid::new(args, input.binning)?;
        let scan = ScanRecipe { extended_field: args.extended_field, ..ScanRecipe::new(&args.scan, input.kind)? };
        let search_tilt = is_searched(&args.steps);
        let recipe = Recipe {
            steps: parse_steps(&args.input, &args.steps, &slice)?,
            scan: ScanRecipe {
                weights: args.angle_weights.unwrap_or_default(),
                search_tilt,
                lamino_angle: scan::inclination(args.lamino_angle)?,
                energy_kev: args.steps.energy_kev,
                center: args.center.as_ref().map_or(Ok(Center::default()), |text| Center::parse(&text.0))?,
                ..scan
            },
            filter: RowFilterRecipe::new(args)?,
            kernel: KernelChoice::new(args)?,
            solver: solver::solver(args)?,
            values: Values::new(args)?,
            input,
            slice,
        };
        recipe.check_axis(args)?;
        recipe.check_inclined(args)?;
        Ok(recipe)
    }

    /// Refuses values of flags for the axis that contradict each other.
    fn check_axis(&self, args: &ReconstructArgs) -> Result<()> {
        match self.scan.center {
            Center::Search(Some(method)) if self.scan.search_tilt && method != Method::Likelihood => {
                Err(RecipeError::TiltByOtherMethod.into())
            }
            Center::Search(_) => Ok(()),
            _ if self.scan.search_tilt => Err(RecipeError::TiltWithoutAxis.into()),
            Center::Ends(_) if args.steps.tilt.is_some() => Err(RecipeError::CentersAndTilt.into()),
            Center::Ends(_) if args.input.sinograms.is_some() => Err(RecipeError::CentersOfSinograms.into()),
            _ => Ok(()),
        }
    }

    /// Refuses values of flags that an inclined axis leaves no room for.
    fn check_inclined(&self, args: &ReconstructArgs) -> Result<()> {
        if self.scan.lamino_angle.is_none() {
            return match args.slab {
                Some(_) => Err(RecipeError::SlabOfUpright.into()),
                None => Ok(()),
            };
        }
        let Recipe { scan, kernel, solver, .. } = self;
        let by_method = matches!(scan.center, Center::Search(Some(_)));
        for (flag, given, advice) in [
            ("--rows", args.rows.is_some(), "--slab A..B"),
            ("--center C0,C1", matches!(scan.center, Center::Ends(_)), "--center X, or --center auto"),
            (
                "--center auto:METHOD",
                by_method,
                "--center auto, which compares the mean of a turn with its mirror image",
            ),
            ("--tilt auto", scan.search_tilt, "--tilt DEG"),
            ("--method", solver.is_some(), "--method fbp"),
            ("--interpolation", kernel.interpolation != Interpolation::Linear, "--interpolation linear"),
            ("--mode", kernel.mode != Mode::Precise, "--mode precise"),
            ("--algorithm", kernel.algorithm.is_some(), "--algorithm auto"),
            ("--slices-per-pass", kernel.slices_per_pass.is_some(), "--slices-per-pass auto"),
            ("--extended-field", scan.extended_field, "a detector that sees the sample on both sides of the axis"),
        ] {
            if given {
                return Err(RecipeError::NotInclined { flag, advice }.into());
            }
        }
        Ok(())
    }

    /// Returns this recipe with the axis at this position, in bins of the detector.
    pub fn about(&self, axis: f64) -> Recipe {
        Recipe { scan: ScanRecipe { center: Center::At(axis), ..self.scan.clone() }, ..self.clone() }
    }

    /// Returns this recipe with projections that are rotated by this tilt.
    pub fn tilted(&self, tilt: Option<Tilt>) -> Recipe {
        let scan = ScanRecipe { search_tilt: false, ..self.scan.clone() };
        Recipe { scan, steps: Steps { tilt, ..self.steps.clone() }, ..self.clone() }
    }

    /// Returns this recipe for whole slices as they are computed: no region, no mask, no scaling.
    pub fn whole_slices(&self) -> Recipe {
        let slice = SliceGrid { roi: None, ..self.slice.clone() };
        Recipe { slice, values: Values::default(), ..self.clone() }
    }

    /// Returns this recipe for slices by filtered back projection.
    pub fn filtered(&self) -> Recipe {
        Recipe { solver: None, ..self.clone() }
    }

    /// Returns this recipe without some more of the projections.
    pub fn without(&self, projections: impl Iterator<Item = usize>) -> Recipe {
        let exclude = self.scan.exclude.and(projections);
        Recipe { scan: ScanRecipe { exclude, ..self.scan.clone() }, ..self.clone() }
    }

    /// Returns the unit of values in slices.
    pub fn unit(&self) -> String {
        self.slice.unit()
    }
}

/// Returns the steps before the filter, for a command that does not search for the tilt itself.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
pub fn steps(input: &InputArgs, steps: &StepArgs, slice: &SliceGrid) -> Result<Steps> {
    if is_searched(steps) {
        return Err(RecipeError::TiltElsewhere.into());
    }
    parse_steps(input, steps, slice)
}

fn parse_steps(input: &InputArgs, steps: &StepArgs, slice: &SliceGrid) -> Result<Steps> {
    let by_input = steps.of_input.pixel_size.as_ref().map(|size| size.times(input.binning.unwrap_or(1) as f64));
    Steps::parse(&StepFlags { input, steps, pixel_size: slice.pixel_size.as_ref().or(by_input.as_ref()) })
}

impl RowFilterRecipe {
    fn new(args: &ReconstructArgs) -> Result<RowFilterRecipe> {
        let cutoff = args.filter_cutoff.unwrap_or(1.0);
        // NaN is refused, too
        if !(cutoff > 0.0 && cutoff <= 1.0) {
            return Err(RecipeError::CutoffOutside { cutoff }.into());
        }
        let padding = args.padding.unwrap_or_default();
        Ok(RowFilterRecipe { name: args.filter.unwrap_or_default(), cutoff, padding })
    }
}

impl KernelChoice {
    /// Returns the error bound of slices with interpolation `exact`.
    pub fn bound(&self) -> f64 {
        self.accuracy.unwrap_or(Bound::usual(self.mode).accuracy)
    }

    fn new(args: &ReconstructArgs) -> Result<KernelChoice> {
        let default = KernelChoice::default();
        let algorithm = parse_algorithm(args.algorithm.as_deref())?;
        // gridding has no other interpolation
        let usual = match algorithm {
            Some(Algorithm::Gridding) => Interpolation::Exact,
            _ => default.interpolation,
        };
        let interpolation = args.interpolation.unwrap_or(usual);
        Ok(KernelChoice {
            profile: args.profile.clone(),
            interpolation,
            accuracy: accuracy(args.accuracy, interpolation)?,
            algorithm,
            mode: args.mode.unwrap_or(default.mode),
            slices_per_pass: args.slices_per_pass.as_ref().map_or(Ok(None), |text| parse_slices(&text.0))?,
        })
    }
}

/// Checks the error bound of `--accuracy`.
fn accuracy(given: Option<f64>, interpolation: Interpolation) -> Result<Option<f64>> {
    let Some(accuracy) = given else { return Ok(None) };
    if interpolation != Interpolation::Exact {
        return Err(RecipeError::AccuracyWithoutExact { interpolation }.into());
    }
    let (least, most) = (*ACCURACIES.start(), *ACCURACIES.end());
    if !ACCURACIES.contains(&accuracy) {
        return Err(RecipeError::AccuracyOutside { accuracy, least, most }.into());
    }
    Ok(given)
}

/// Parses `auto` or one of the slice modes.
pub fn parse_slices(text: &str) -> Result<Option<u32>> {
    if text == "auto" {
        return Ok(None);
    }
    match text.parse() {
        Ok(slices) if SLICE_MODES.contains(&slices) => Ok(Some(slices)),
        _ => Err(RecipeError::UnknownSlices { text: text.into(), modes: &SLICE_MODES }.into()),
    }
}

/// Parses `auto` or an algorithm.
pub fn parse_algorithm(text: Option<&str>) -> Result<Option<Algorithm>> {
    match text {
        None | Some("auto") => Ok(None),
        Some(name) => match name.parse::<Algorithm>() {
            Ok(algorithm) => Ok(Some(algorithm)),
            Err(error) => Err(RecipeError::UnknownAlgorithm { error: error.into() }.into()),
        },
    }
}

#[cfg(test)]
mod tests;

//! What a run did, in words: rows of a table, and a paragraph for the methods section of a paper. Both come from the
//! record of the run alone.

use super::record::{Facts, RecordFile, ScanRecord};
use crate::cli::ReconstructArgs;
use crate::engine::FieldCounts;
use crate::geometry::AngleWeights;
use crate::kernel::{Interpolation, Mode};
use crate::least_squares::{LeastSquares, ProjectionWeights, SliceMethod};
use crate::numbers::{brief, significant};
use crate::recipe::{Recipe, Scaling};
use crate::sink::Dtype;
use crate::source::{FieldMode, RawVolume, absolute_spec, list_file};
use crate::spectrum::{Filter, Padding};
use crate::steps::{Air, EigenFlats, Stripes};
use std::path::{Component, Path};

/// Publications of the methods that a run may use.
const BACK_PROJECTION: &str = "S. Chilingaryan, E. Ametova, A. Kopmann, A. Mirone, Reviewing GPU architectures to build \
    efficient back projection for parallel geometries, Journal of Real-Time Image Processing (2019), \
    doi:10.1007/s11554-019-00883-w";
const PHASE: &str = "D. Paganin and others, Journal of Microscopy 206 (2002) 33";
const EIGEN: &str = "V. Van Nieuwenhove and others, Optics Express 23 (2015) 27975";
const STRIPES: &str = "N. T. Vo, R. C. Atwood, M. Drakopoulos, Optics Express 26 (2018) 28396";
const WAVELET: &str = "B. Muench and others, Optics Express 17 (2009) 8567";
const TITARENKO: &str = "S. Titarenko and others, Applied Mathematics Letters 23 (2010) 1489";
const CONVOLUTION: &str = "A. H. Delaney, Y. Bresler, IEEE Transactions on Image Processing 5 (1996) 740";
const SPLITTING: &str = "T. Goldstein, S. Osher, SIAM Journal on Imaging Sciences 2 (2009) 323";
const AXIS_VO: &str = "N. T. Vo, M. Drakopoulos, R. C. Atwood, C. Reinhard, Optics Express 22 (2014) 19078";
const AXIS_SWEEP: &str =
    "T. Donath, F. Beckmann, A. Schreyer, Journal of the Optical Society of America A 23 (2006) 1048";

/// Names of directories that say what is inside, but not of which scan.
const GENERIC: [&str; 18] = [
    "projections",
    "projection",
    "projs",
    "proj",
    "radios",
    "radio",
    "sinograms",
    "sinogram",
    "sinos",
    "sino",
    "sin",
    "frames",
    "images",
    "tiffs",
    "tiff",
    "tif",
    "data",
    "raw",
];

/// Largest length of an ending of a file name, such as `hdf5` or `tiff`.
const LONGEST_ENDING: usize = 5;

/// Returns the name of the scan whose data a flag names: that of the file or directory, after the name of the directory
/// around it if its own could be that of any scan.
pub(in crate::commands) fn scan_name(data: &str) -> String {
    // also of a path without a directory
    let data = absolute_spec(data).unwrap_or_else(|_| data.to_owned());
    let spec = match RawVolume::looks_like(&data) {
        true => data.split(',').next().unwrap_or_default(),
        false => &data,
    };
    let file = list_file(spec).unwrap_or(Path::new(spec.split("::").next().unwrap_or(spec)));
    let normal = |part| if let Component::Normal(name) = part { Some(name) } else { None };
    let mut names: Vec<String> =
        file.components().filter_map(normal).map(|name| name.to_string_lossy().into_owned()).collect();
    while names.len() > 1 && names.last().is_some_and(|name| name.contains(['*', '?', '['])) {
        names.pop();
    }
    let Some(last) = names.pop() else { return "a scan".into() };
    let without_ending = match last.rsplit_once('.') {
        Some((stem, end))
            if !stem.is_empty() && end.len() <= LONGEST_ENDING && end.starts_with(char::is_alphabetic) =>
        {
            stem.to_owned()
        }
        _ => last,
    };
    match names.pop() {
        Some(around) if GENERIC.contains(&without_ending.to_lowercase().as_str()) => {
            format!("{around}/{without_ending}")
        }
        _ => without_ending,
    }
}

/// A run, as its record describes it.
pub(super) struct Account<'a> {
    recipe: &'a Recipe,
    flags: &'a ReconstructArgs,
    facts: &'a Facts,
    scan: &'a ScanRecord,
}

impl<'a> Account<'a> {
    /// Returns the account of a run of this recipe; `None` for records of earlier versions, which do not describe the
    /// scan.
    pub fn new(recipe: &'a Recipe, record: &'a RecordFile) -> Option<Account<'a>> {
        let RecordFile { flags, facts, .. } = record;
        facts.scan.as_ref().map(|scan| Account { recipe, flags, facts, scan })
    }

    /// Returns rows of a table: what was done to the data, in the order in which it was done.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let Recipe { input, steps, filter, kernel, .. } = self.recipe;
        let mut rows = Vec::new();
        let mut row = |name: &'static str, value: Option<String>| rows.extend(value.map(|value| (name, value)));
        row("Binning", (input.binning > 1).then(|| format!("{0} x {0} pixels of the detector", input.binning)));
        row("Outliers", steps.outliers.as_ref().map(|outliers| format!("replaced, {outliers}")));
        row("Fields", self.scan.fields.map(|fields| self.fields_in_a_row(fields)));
        row("Beam current", steps.current.map(|_| "projections scaled by that of the storage ring".to_owned()));
        row("Air", steps.air.as_ref().map(|air| format!("divided by the air, {air}")));
        row("Double flat", steps.double_flat.map(|double_flat| format!("divided by {}", double_flat.in_words())));
        row("Distortion", steps.distortion.map(|distortion| format!("corrected by {}", distortion.form.in_words())));
        row("Tilt", steps.tilt.as_ref().map(|tilt| format!("{} degrees", brief(tilt.degrees))));
        row("Inclination", self.recipe.scan.lamino_angle.map(|angle| format!("{angle} degrees")));
        row("Phase", Some(steps.phase.as_ref().map_or("no phase retrieval".into(), |phase| phase.to_string())));
        row("Logarithm", self.logarithm().map(|taken| if taken { "-log taken" } else { "not taken" }.to_owned()));
        row("Beam hardening", steps.hardening.as_ref().map(|polynomial| polynomial.formula()));
        let methods: Vec<String> = steps.stripes.iter().map(Stripes::to_string).collect();
        row("Stripes", Some(if methods.is_empty() { "not removed".into() } else { methods.join(", then ") }));
        row("Method", self.recipe.solver.as_ref().map(LeastSquares::to_string));
        let name = if self.recipe.solver.is_some() { "Filter to begin with" } else { "Filter" };
        row(name, Some(format!("{}, cutoff {} of the Nyquist frequency", filter.name, filter.cutoff)));
        let padding = format!("{}: {}", filter.padding, continuation(filter.padding));
        row("Padding", self.recipe.solver.is_none().then_some(padding));
        let interpolation = format!("{}{}", kernel.interpolation, self.bound().unwrap_or_default());
        row("Interpolation", self.recipe.solver.is_none().then_some(interpolation));
        rows
    }

    fn fields_in_a_row(&self, FieldCounts { flats, flats2, darks }: FieldCounts) -> String {
        if flats == 0 {
            return "none".into();
        }
        let after = if flats2 > 0 { format!(" before and {flats2} after the scan") } else { String::new() };
        let mode = self.recipe.input.field_mode;
        let eigen = self.recipe.steps.fields.eigen.map(|count| format!(", eigen flats: {count}")).unwrap_or_default();
        format!("{flats} flats{after}, {darks} darks, {mode} of each{eigen}")
    }

    /// Reports whether -log was taken; `None` if the record does not say it.
    fn logarithm(&self) -> Option<bool> {
        let logarithm = self.recipe.steps.logarithm;
        match self.scan.fields {
            Some(fields) => Some(logarithm.is_taken(fields.flats > 0)),
            None => (logarithm.is_taken(true) == logarithm.is_taken(false)).then(|| logarithm.is_taken(true)),
        }
    }

    /// Returns the error allowed, if the interpolation has one.
    fn bound(&self) -> Option<String> {
        let kernel = &self.recipe.kernel;
        (kernel.interpolation == Interpolation::Exact).then(|| format!(", to within {:e}", kernel.bound()))
    }

    /// Returns a paragraph about the run with the publications that it refers to.
    pub fn methods(&self) -> String {
        let mut cited = Citations::default();
        let first = self.reconstruction(&mut cited);
        let sentences =
            [vec![first], self.corrections(&mut cited), self.filtering(&mut cited), self.results()].concat();
        format!("{}\n\n{}\n", sentences.join(" "), cited.list())
    }

    fn reconstruction(&self, cited: &mut Citations) -> String {
        let ScanRecord { slices: [_, count, _], region, projections, angles: [first, last], .. } = *self.scan;
        let method = match (&self.recipe.solver, self.recipe.filter.name) {
            (Some(_), _) => format!("by regularised least squares {}", cited.mark(CONVOLUTION)),
            (None, Filter::None) => format!("by back projection {}", cited.mark(BACK_PROJECTION)),
            (None, _) => format!("by filtered back projection {}", cited.mark(BACK_PROJECTION)),
        };
        format!(
            "{count} {} of {} x {} pixels {} reconstructed from {projections} parallel-beam projections, at angles from {} \
             to {} degrees, {method} with fbp {}.",
            if count == 1 { "slice" } else { "slices" },
            region.width,
            region.height,
            if count == 1 { "was" } else { "were" },
            significant(first),
            significant(last),
            self.facts.version,
        )
    }

    /// Returns sentences on the steps before the filter.
    fn corrections(&self, cited: &mut Citations) -> Vec<String> {
        let Recipe { input, steps, .. } = self.recipe;
        let mut said = Vec::new();
        if input.binning > 1 {
            said.push(format!("{0} x {0} pixels of the detector were averaged into one.", input.binning));
        }
        if let Some(form) = steps.outliers.as_ref().map(|outliers| outliers.form()) {
            let darker = if form.both { " or darker" } else { "" };
            said.push(format!(
                "Pixels that were brighter{darker} than the median of the {0} x {0} pixels around them by more than {1} counts \
                 were replaced by it.",
                form.size, form.threshold
            ));
        }
        said.extend(self.scan.fields.and_then(|fields| self.field_correction(fields)));
        said.extend(self.eigen_flats(cited));
        if steps.current.is_some() {
            said.push("Projections were scaled by the current of the storage ring.".into());
        }
        match &steps.air {
            Some(Air::Sides(left, right)) => said.push(format!(
                "Each row was divided by a straight line through the means of its first {left} and last {right} bins."
            )),
            Some(Air::Region(region)) => said.push(format!(
                "Each projection was divided by its mean over the region {region} (x, y, width, height)."
            )),
            None => {}
        }
        if let Some(double_flat) = steps.double_flat {
            said.push(format!("Transmissions were divided by {}.", double_flat.in_words()));
        }
        said.extend(steps.distortion.map(|distortion| distortion.form.sentence()));
        if let Some(tilt) = &steps.tilt {
            said.push(format!("Projections were rotated by {} degrees to make the axis upright.", brief(tilt.degrees)));
        }
        said.extend(self.phase(cited));
        if self.logarithm() == Some(true) {
            said.push("Line integrals are the negative logarithm of the transmissions.".into());
        }
        if let Some(polynomial) = &steps.hardening {
            said.push(format!("Line integrals p were replaced by {}.", polynomial.formula()));
        }
        if !steps.stripes.is_empty() {
            let methods: Vec<String> = steps.stripes.iter().map(|method| named(method, cited)).collect();
            said.push(format!("Stripes were removed from the sinograms by the methods {}.", joined(&methods)));
        }
        said
    }

    fn field_correction(&self, FieldCounts { flats, flats2, darks }: FieldCounts) -> Option<String> {
        let several = |count: usize, what: &str| match (count, self.recipe.input.field_mode) {
            (1, _) => format!("one {what} field"),
            (count, FieldMode::Mean) => format!("the mean of {count} {what} fields"),
            (count, FieldMode::Median) => format!("the median of {count} {what} fields"),
        };
        let scale = self.recipe.steps.fields.dark_scale.map(|scale| format!(", times {scale},")).unwrap_or_default();
        let dark = match darks {
            0 => String::new(),
            count => format!(" after {}{scale} had been subtracted from both", several(count, "dark")),
        };
        let flat = match flats2 {
            0 => several(flats, "flat"),
            after => format!(
                "flat fields interpolated in time between {} before and {} after the scan",
                several(flats, "flat"),
                several(after, "flat")
            ),
        };
        (flats > 0).then(|| format!("Projections were divided by {flat}{dark}."))
    }

    fn eigen_flats(&self, cited: &mut Citations) -> Option<String> {
        let steps = &self.recipe.steps;
        let count = match steps.fields.eigen? {
            EigenFlats::Auto => "Principal components of the flat fields".to_owned(),
            EigenFlats::Exactly(1) => "The first principal component of the flat fields".to_owned(),
            EigenFlats::Exactly(count) => format!("The first {count} principal components of the flat fields"),
        };
        let weights = if steps.air.is_some() { "fitted to the air" } else { "of the least total variation" };
        let of = if steps.fields.eigen == Some(EigenFlats::Exactly(1)) { "was" } else { "were" };
        Some(format!(
            "{count} {of} added to their mean in each projection, with weights {weights} {}.",
            cited.mark(EIGEN)
        ))
    }

    fn phase(&self, cited: &mut Citations) -> Option<String> {
        let phase = self.recipe.steps.phase.as_ref()?;
        let given = &self.flags.steps;
        let values = [
            given.energy_kev.map(|energy| format!("{energy} keV")),
            given.distance.as_ref().map(|distance| format!("distance {}", distance.0)),
            given.delta_beta.map(|ratio| format!("delta / beta = {ratio}")),
            Some(format!("filter length {} pixels", brief(phase.length))),
        ];
        let values: Vec<String> = values.into_iter().flatten().collect();
        let unsharp = phase.unsharp.map(|unsharp| {
            format!(", followed by an unsharp mask (sigma {} pixels, factor {})", unsharp.sigma, unsharp.amount)
        });
        Some(format!(
            "Phase was retrieved by the filter of Paganin and others for a single material {} ({}){}.",
            cited.mark(PHASE),
            values.join(", "),
            unsharp.unwrap_or_default()
        ))
    }

    /// Returns sentences on the filter, the axis and the back projection.
    fn filtering(&self, cited: &mut Citations) -> Vec<String> {
        let Recipe { scan, filter, kernel, solver, .. } = self.recipe;
        let mut said = Vec::new();
        if let Some(solver) = solver {
            let bound = if solver.non_negative { ", among slices without negative values" } else { "" };
            said.push(match solver.method {
                SliceMethod::Tv | SliceMethod::Huber => format!(
                    "The {} of each slice, weighted by {} times what the noise of its rows suggests, was minimised with \
                     the misfit{bound}, by an alternating direction method {}.",
                    if solver.method == SliceMethod::Tv { "total variation" } else { "Huber norm of the gradient" },
                    solver.strength,
                    cited.mark(SPLITTING),
                ),
                SliceMethod::Tikhonov => format!(
                    "The squared gradient of each slice, weighted by {} times what the noise of its rows suggests, was \
                     minimised with the misfit.",
                    solver.strength
                ),
                SliceMethod::Cgls | SliceMethod::Fbp => "Conjugate gradients ended at the noise of the rows.".into(),
            });
            said.extend(match solver.weights {
                ProjectionWeights::Uniform => None,
                ProjectionWeights::Noise => {
                    Some("The misfit of each projection was weighted by the inverse variance of its noise.".to_owned())
                }
                ProjectionWeights::File => {
                    Some("The misfit of each projection was weighted by a given number.".to_owned())
                }
            });
            said.extend(solver.interior.then(|| {
                "Rows were extended beyond the detector by their end values, which fall to 0 over a quarter of its bins.".into()
            }));
        } else if filter.name != Filter::None {
            let window =
                if filter.name == Filter::Ramp { String::new() } else { format!(" with the window {}", filter.name) };
            let cutoff = match filter.cutoff {
                1.0 => String::new(),
                cutoff => format!(", with a cutoff at {cutoff} of the Nyquist frequency"),
            };
            said.push(format!(
                "Rows were continued beyond the detector by {} and filtered with the ramp filter{window}{cutoff}.",
                continuation(filter.padding)
            ));
        }
        said.push(self.axis(cited));
        said.extend(scan.lamino_angle.map(|angle| format!("It is inclined by {angle} degrees (laminography).")));
        if scan.extended_field {
            said.push("Opposite projections of the whole turn were combined to an extended field of view.".into());
        }
        if self.flags.scan.center_shifts.is_some() {
            said.push("The axis was shifted in each projection by given amounts.".into());
        } else if let Some((low, high)) = self.scan.shifts {
            let (low, high) = (significant(low), significant(high));
            said.push(format!("The axis was shifted in each projection as the input says, by {low} to {high} bins."));
        }
        if scan.weights != AngleWeights::default() {
            said.push(format!("Projections were weighted by the scheme {}.", scan.weights));
        }
        said.extend(solver.is_none().then(|| match (kernel.interpolation, kernel.algorithm) {
            (Interpolation::Exact, _) => format!(
                "Values between bins are those of the band-limited rows, with a relative error of at most {:e} (root mean \
                 square).",
                kernel.bound()
            ),
            (interpolation, None) => format!("The interpolation between bins is {interpolation}."),
            (_, Some(algorithm)) => format!("The kernel family is {algorithm}."),
        }));
        if kernel.mode == Mode::Fast {
            said.push("The mode fast was allowed, which may store values in half precision.".into());
        }
        said
    }

    fn axis(&self, cited: &mut Citations) -> String {
        let axis = &self.scan.axis;
        let at = format!("The rotation axis is at bin {}", significant(axis.value));
        let Some(method) = &axis.method else { return format!("{at} (counted from 0).") };
        let error = axis.uncertainty.map(|error| format!(" +- {error:.2}")).unwrap_or_default();
        let source = match method.as_str() {
            "vo" => format!(" {}", cited.mark(AXIS_VO)),
            "sweep" => format!(" {}", cited.mark(AXIS_SWEEP)),
            _ => String::new(),
        };
        format!("{at}{error} (counted from 0), as found in the data by the method {method}{source}.")
    }

    /// Returns sentences on the values of slices.
    fn results(&self) -> Vec<String> {
        let Recipe { slice, values, .. } = self.recipe;
        let pixel =
            slice.pixel_size.as_ref().map(|size| format!(", with pixels of {} {}", significant(size.value), size.unit));
        let stored = match (values.dtype, self.facts.range, &values.scaling) {
            (Dtype::F32 | Dtype::F16, ..) => format!("stored as {}", values.dtype),
            (dtype, Some((low, high)), _) => {
                format!("stored as {dtype} from {} to {}", significant(low), significant(high))
            }
            (dtype, None, Some(Scaling::Fixed(range))) => {
                format!("stored as {dtype} from {} to {}", significant(range.low), significant(range.high))
            }
            (dtype, ..) => format!("stored as {dtype}"),
        };
        let mut said =
            vec![format!("Values are attenuation {}{}, {stored}.", self.recipe.unit(), pixel.unwrap_or_default())];
        if let Some(mask) = values.mask {
            let radius = if mask == 1.0 { String::new() } else { format!(", of {mask} times the largest radius,") };
            said.push(format!("Pixels outside a centred circle{radius} are 0."));
        }
        said
    }
}

/// Returns how a row continues beyond the detector.
fn continuation(padding: Padding) -> &'static str {
    match padding {
        Padding::Zero => "zeros",
        Padding::Edge => "its first and last value",
        Padding::Mirror => "its mirror image",
    }
}

/// Returns a method with its parameters and its publication.
fn named(method: &Stripes, cited: &mut Citations) -> String {
    let source = match method {
        Stripes::Wavelet { .. } => cited.mark(WAVELET),
        Stripes::Titarenko { .. } => cited.mark(TITARENKO),
        Stripes::Fitting { .. } => format!("after {}", cited.mark(STRIPES)),
        Stripes::Mean { .. } => String::new(),
        _ => cited.mark(STRIPES),
    };
    let text = method.to_string();
    let (name, parameters) = text.split_once(':').unwrap_or((&text, ""));
    format!("{name} ({}) {source}", parameters.replace('=', " = ").replace(',', ", ")).trim_end().to_owned()
}

/// Returns items as a list in a sentence.
fn joined(items: &[String]) -> String {
    match items {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}, in this order", before.join(", ")),
        items => items.concat(),
    }
}

/// The publications that a text refers to, in the order in which it does.
#[derive(Default)]
struct Citations(Vec<&'static str>);

impl Citations {
    /// Returns the mark in the text for a publication.
    fn mark(&mut self, publication: &'static str) -> String {
        let place = self.0.iter().position(|other| *other == publication).unwrap_or_else(|| {
            self.0.push(publication);
            self.0.len() - 1
        });
        format!("[{}]", place + 1)
    }

    fn list(&self) -> String {
        let lines: Vec<String> = self.0.iter().zip(1..).map(|(text, number)| format!("[{number}] {text}")).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests;

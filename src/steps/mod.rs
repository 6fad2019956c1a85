//! Processing of the data before the filter, on the host, while they are read.
//!
//! A step is a type that implements [`Step`], in its own file and with a line in the list below. Steps on rows of
//! projections get as many surrounding rows as they and all later steps need; steps on sinograms follow.
//! [`Preparation`] combines all steps for a reader.

mod air;
mod air_pixels;
mod beam;
mod counts;
mod current;
mod defects;
mod distortion;
mod double_flat;
mod eigen;
mod errors;
mod fields;
mod hardening;
mod logarithm;
mod optics;
mod outliers;
mod phase;
mod step;
pub mod stripes;
mod tilt;
mod transmissions;

pub use air_pixels::Air;
pub use beam::{BeamLevels, ranges};
pub use counts::{ClampedCounts, Counts, Repairs};
pub use distortion::{BeyondDetector, Distortion, DistortionForm, Undistorted};
pub use double_flat::DoubleFlat;
pub use eigen::EigenFlats;
pub use fields::FieldCorrection;
pub use hardening::BeamHardening;
pub use logarithm::{Logarithm, SMALLEST_TRANSMISSION};
pub use optics::Optics;
pub use outliers::Outliers;
pub use phase::{Paganin, Unsharp, phase_doubts};
pub use step::{Band, Data, DeviceSinogramStep, Ready, RowStep, RowSteps, SinogramStep, Step, StepFlags, widened};
pub use stripes::Stripes;
pub use tilt::{Tilt, is_searched};

use crate::device::{BufferLayout, Session};
use crate::error::Result;
use crate::kernel::StepTarget;
use crate::operations::{
    ImageSteps, LineIntegrals, ProjectionState, RowBlocks, RowCorrection, RowCounts, SinogramShape,
};
use crate::remark::Remark;
use crate::source::{BeamCurrents, CurrentSource, Stacks};
use defects::Defects;
use phase::PaganinFilter;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use step::{check_projections, may_have_transmissions};
use transmissions::progress;

/// Declares [`Steps`] from the list of steps.
macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident: $step:ty,)*) => {
        /// The requested steps, in the order in which they are applied.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Steps {
            $($(#[$doc])* pub $name: $step,)*
        }

        impl Steps {
            /// Reads the steps from their flags.
            ///
            /// # Errors
            /// [`Error::Usage`](crate::error::Error::Usage) for invalid values.
            pub fn parse(args: &StepFlags) -> Result<Steps> {
                Ok(Steps { $($name: Step::parse(args)?,)* })
            }

            fn all(&self) -> Vec<&dyn Step> {
                vec![$(&self.$name,)*]
            }

            /// Returns the number of steps in the list before the first that differs.
            fn in_common(&self, other: &Steps) -> usize {
                [$(self.$name == other.$name,)*].into_iter().take_while(|same| *same).count()
            }
        }
    };
}

steps! {
    /// Zingers and hot pixels, on counts; also in the frames of fields.
    #[serde(rename = "remove-outliers")]
    outliers: Option<Outliers>,
    /// From counts to transmissions.
    fields: FieldCorrection,
    /// The current of the storage ring in each projection.
    #[serde(rename = "beam-current", default, skip_serializing_if = "Option::is_none")]
    current: Option<CurrentSource>,
    /// Beam intensity changes between projections.
    #[serde(rename = "normalize-air")]
    air: Option<Air>,
    /// What all projections have in common.
    #[serde(rename = "double-flat", default, skip_serializing_if = "Option::is_none")]
    double_flat: Option<DoubleFlat>,
    /// Distortion by the optics of the detector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distortion: Option<Distortion>,
    /// Rotation of the detector about the beam.
    tilt: Option<Tilt>,
    /// The phase filter, on transmissions.
    phase: Option<Paganin>,
    /// -log.
    #[serde(rename = "minus-log")]
    logarithm: Logarithm,
    /// A polynomial of line integrals.
    #[serde(rename = "beam-hardening")]
    hardening: Option<BeamHardening>,
    /// Stripes of sinograms, one method after the other.
    stripes: Vec<Stripes>,
}

/// Smallest number of rows of a block: small blocks are mostly halo.
const LEAST_BLOCK: usize = 16;
/// Largest number of rows of a block: large blocks need much memory.
const MOST_BLOCK: usize = 128;

impl Steps {
    /// Returns flags, without dashes, and values of the requested steps, in the order in which they are applied.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        self.all().into_iter().filter_map(|step| Some((step.flag(), step.value()?))).collect()
    }

    /// Returns the optics of some stacks, whose distortion is corrected together with the tilt.
    ///
    /// # Errors
    /// Those of [`Distortion::optics`].
    pub fn optics(&self, stacks: &Stacks) -> Result<Optics> {
        match self.distortion {
            Some(distortion) => distortion.optics(stacks, self.tilt),
            None => Ok(Optics::of([stacks.data.width(), stacks.data.height()])),
        }
    }

    /// Returns the steps on projections as images, for complete projections of a detector.
    pub fn on_images(&self, optics: &Optics) -> RowSteps {
        let mut steps = RowSteps::default();
        if let Some(places) = &optics.places {
            let halo = places.halo;
            steps.push(Box::new(Undistorted { places: Arc::clone(places), remarks: Vec::new() }), halo);
        } else if let Some(tilt) = self.tilt {
            steps.push(Box::new(tilt), self.tilt.halo(optics));
        }
        if let Some(paganin) = self.phase {
            steps.push(Box::new(PaganinFilter::new(&paganin, optics.height, optics.bins)), paganin.halo());
        }
        steps
    }

    /// Returns the buffers of the steps on sinograms on a device, for the sizes and number of sinograms of `shape`.
    pub fn sinogram_layout(&self, target: StepTarget, shape: SinogramShape) -> BufferLayout {
        self.stripes.iter().map(|method| method.layout(target, shape)).fold(BufferLayout::default(), BufferLayout::and)
    }

    /// Returns the steps that are left for some stacks: those up to transmissions are done where data were joined.
    fn left_for(&self, stacks: &Stacks) -> Steps {
        let Some(joined) = &stacks.joined else { return self.clone() };
        let logarithm = if self.logarithm.is_taken(joined.has_flats) { Logarithm::Always } else { Logarithm::Never };
        Steps { outliers: None, fields: FieldCorrection::default(), current: None, logarithm, ..self.clone() }
    }

    /// Returns the number of steps in the list before the one with a flag.
    fn place_of(&self, flag: &str) -> usize {
        self.all().iter().take_while(|step| step.flag() != flag).count()
    }

    /// Returns these steps without those on sinograms.
    pub fn on_rows(&self) -> Steps {
        Steps { stripes: Vec::new(), ..self.clone() }
    }

    /// Returns the rows of projections of a detector that the host reads to correct one of them.
    pub fn rows_around(&self, row: usize, optics: &Optics) -> Range<usize> {
        let halo = self.all().iter().map(|step| step.halo(optics)).sum();
        let size = self.block(optics).unwrap_or(1);
        let first = row / size * size;
        widened(&(first..first + size), halo, optics.height)
    }

    /// Returns the number of rows of projections of a detector that are corrected together, if a step needs blocks.
    fn block(&self, optics: &Optics) -> Option<usize> {
        let steps = self.all();
        let blocks = steps.iter().filter(|step| step.in_blocks());
        let halo: usize = blocks.map(|step| step.halo(optics)).sum();
        (halo > 0).then(|| halo.clamp(LEAST_BLOCK, MOST_BLOCK))
    }
}

/// The data to be corrected.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// True if fields are medians of their frames, false if they are means.
    pub median: bool,
    /// Numbers of the projections, ascending.
    pub used: &'a [usize],
    /// Rows of the detector that slices need, without those around them that steps need.
    pub rows: &'a Range<usize>,
    /// True if complete projections are corrected at once, instead of [`Preparation::block`] rows.
    pub full_projections: bool,
    /// Means of the double flat field, if a device has added them up: those of [`BeforeMeans`].
    pub means: Option<&'a [f64]>,
}

/// The steps before the double flat field, which is made from what they leave of all projections.
pub struct BeforeMeans {
    pub preparation: Preparation,
    /// Rows of the detector of which means are needed.
    pub rows: Range<usize>,
    /// True if means are those of line integrals, false if of transmissions.
    pub of_line_integrals: bool,
}

impl BeforeMeans {
    /// Returns the correction up to what the means are of, by a device, for the projections `used` of `projections`; `None` if it
    /// cannot do all steps.
    pub fn correction(&self, used: &[usize], projections: usize) -> Option<RowCorrection<'_>> {
        let mut correction = self.preparation.correction(used, projections)?;
        if self.of_line_integrals {
            correction.after.push(&LineIntegrals);
        }
        Some(correction)
    }
}

/// Conditions for which steps on rows are prepared, besides the steps and their data.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PreparedFor {
    median: bool,
    minus_log: bool,
    images: bool,
    projections: usize,
    /// The air by which components of the flats were found in projections, if they were.
    air: Option<Air>,
}

/// [`Steps`] prepared for data of one size.
pub struct Preparation {
    prepared_for: PreparedFor,
    /// Projections and rows from which some steps were prepared; `None` if none was.
    of_projections: Option<(Vec<usize>, Range<usize>)>,
    rows: RowSteps,
    /// Number of steps on rows up to each step of the list.
    up_to: Vec<usize>,
    sinograms: Vec<Box<dyn SinogramStep>>,
    block: Option<usize>,
    has_fields: bool,
    minus_log: bool,
    /// Fingerprint of the files of the fields, and of the currents.
    fingerprint: String,
    description: Vec<(&'static str, String)>,
    /// Largest count of the sample type, if there are flat fields.
    saturation: Option<f32>,
    defects: Defects,
    bins: usize,
    /// Number of rows of a projection.
    height: usize,
}

impl Preparation {
    /// Reads the fields and other data that steps need, and prepares the steps.
    ///
    /// # Errors
    /// Errors of reading, and [`Error::Usage`](crate::error::Error::Usage) when a step does not fit the data.
    pub fn open(steps: &Steps, stacks: &Stacks, scope: Scope) -> Result<Preparation> {
        Preparation::like(None, steps, stacks, scope)
    }

    /// Prepares the steps as [`open`](Self::open) does; those before the first that differs from `earlier` steps are as
    /// they were prepared for the same data.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn like(
        earlier: Option<(&Steps, &Preparation)>,
        steps: &Steps,
        stacks: &Stacks,
        scope: Scope,
    ) -> Result<Preparation> {
        Preparation::up_to(usize::MAX, earlier, steps, stacks, scope)
    }

    /// Prepares the steps before the double flat field, if there is one and `earlier` steps have none that serves, so that somebody
    /// else can add up its means; [`like`](Self::like) goes on from there.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn before_means(
        earlier: Option<(&Steps, &Preparation)>,
        steps: &Steps,
        stacks: &Stacks,
        scope: Scope,
    ) -> Result<Option<BeforeMeans>> {
        let Some(double_flat) = steps.double_flat else { return Ok(None) };
        let before = steps.place_of(steps.double_flat.flag());
        let preparation = Preparation::up_to(before, earlier, steps, stacks, scope)?;
        let needed = preparation.of_projections.as_ref().map(|(_, rows)| rows.clone()).unwrap_or_default();
        let (rows, of_line_integrals) = (double_flat.rows_for(&needed, preparation.height), double_flat.takes_log());
        Ok((preparation.up_to.len() == before).then_some(BeforeMeans { preparation, rows, of_line_integrals }))
    }

    /// Prepares the first `count` steps, or more where they are as they were prepared earlier.
    fn up_to(
        count: usize,
        earlier: Option<(&Steps, &Preparation)>,
        steps: &Steps,
        stacks: &Stacks,
        scope: Scope,
    ) -> Result<Preparation> {
        let (steps, projections) = (&steps.left_for(stacks), &stacks.data);
        let (bins, height) = (projections.width(), projections.height());
        let optics = steps.optics(stacks)?;
        let has_fields = stacks.flats.is_some();
        let minus_log = steps.logarithm.is_taken(has_fields);
        let block = steps.block(&optics);
        let most_rows = if scope.full_projections { height } else { block.unwrap_or(1) };
        let images = optics.places.is_some() || steps.tilt.is_some() || steps.phase.is_some();
        let Scope { median, used, means, .. } = scope;
        // steps on images need the rows around others, in blocks
        let needed = if images { 0..height } else { scope.rows.start.min(height)..scope.rows.end.min(height) };
        let (projections, rows) = (used.len(), needed.clone());
        let air = steps.air.filter(|_| steps.fields.eigen.is_some());
        let optics = &optics;
        let data = Data { stacks, optics, median, minus_log, images, projections, used, air, rows, most_rows, means };
        let prepared_for = PreparedFor { median: data.median, minus_log, images, projections: data.projections, air };
        let (mut rows, mut up_to, mut sinograms) = (RowSteps::default(), Vec::new(), Vec::new());
        if let Some((before, earlier)) = earlier.filter(|(_, earlier)| earlier.prepared_for == prepared_for) {
            let before = before.left_for(stacks);
            let of_others = || steps.all().iter().position(|step| step.is_of_projections());
            let alike = if earlier.serves(used, &needed) { None } else { of_others() }.unwrap_or(usize::MAX);
            up_to = earlier.up_to[..before.on_rows().in_common(steps).min(earlier.up_to.len()).min(alike)].to_vec();
            rows = earlier.rows.first(up_to.last().copied().unwrap_or_default());
        }
        for step in steps.all().into_iter().take(count).skip(up_to.len()) {
            match step.ready(&data, &rows)? {
                Some(Ready::Rows(ready)) => rows.push(ready, step.halo(optics)),
                Some(Ready::Sinogram(ready)) => sinograms.push(ready),
                None => {}
            }
            up_to.push(rows.count());
        }
        let fields = [&stacks.flats, &stacks.flats2, &stacks.darks].into_iter().flatten().filter(|_| has_fields);
        let of_projections = steps.all().iter().any(|step| step.is_of_projections());
        Ok(Preparation {
            prepared_for,
            of_projections: of_projections.then(|| (used.to_vec(), needed)),
            rows,
            up_to,
            sinograms,
            block,
            has_fields,
            minus_log,
            fingerprint: fields
                .map(|stack| format!("{}: {}", stack.flag(), stack.fingerprint()))
                .chain(stacks.currents.as_ref().map(BeamCurrents::fingerprint))
                .collect(),
            description: describe(steps, &data),
            // data without fields may be scaled to the range of their type
            saturation: stacks.data.sample().largest().filter(|_| has_fields),
            defects: Defects::new(scope.used, bins),
            bins,
            height,
        })
    }

    /// Prepares the steps from counts to transmissions alone, for one of several parts of a scan.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn to_transmissions(steps: &Steps, stacks: &Stacks, scope: Scope) -> Result<Preparation> {
        let (outliers, fields, current) = (steps.outliers.clone(), steps.fields, steps.current);
        // a transmission that is missing is 1, as before -log
        let steps = Steps { outliers, fields, current, logarithm: Logarithm::Always, ..Steps::default() };
        let all = Preparation::open(&steps, stacks, scope)?;
        let rows = all.rows.first(all.up_to[steps.place_of(steps.current.flag())]);
        Ok(Preparation { rows, ..all })
    }

    /// Reports whether the steps are right for these projections and rows: some are prepared from them.
    pub fn serves(&self, used: &[usize], rows: &Range<usize>) -> bool {
        self.of_projections
            .as_ref()
            .is_none_or(|(of, all)| of == used && all.start <= rows.start && rows.end <= all.end)
    }

    /// Returns remarks to the user that are made before the data are corrected.
    pub fn remarks(&self) -> Vec<Remark> {
        self.rows.remarks()
    }

    /// Rejects rows of projections of which the fields leave nothing.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) that says what is wrong.
    pub fn expect_light(&self, rows: &[usize]) -> Result<()> {
        self.rows.expect_light(rows)
    }

    /// Reports whether there are flat fields.
    pub fn has_fields(&self) -> bool {
        self.has_fields
    }

    /// Reports whether -log is taken.
    pub fn minus_log(&self) -> bool {
        self.minus_log
    }

    /// Returns a text that identifies the files of the fields without reading them, and the currents; empty without both.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the number of rows of projections that must be corrected together, in blocks that start at multiples of
    /// it, so that slices do not depend on how many rows are read at once.
    pub fn block(&self) -> Option<usize> {
        self.block
    }

    /// Returns the number of additional rows above and below that must be read, within the projection; see [`widened`].
    pub fn halo(&self) -> usize {
        self.rows.halo()
    }

    /// Corrects rows of a projection in place. Afterwards only the wanted rows of the band are of use, and they are
    /// finite. Values replaced in the counted rows are added to `counts`.
    ///
    /// Projections may be corrected in parallel.
    pub fn projection(&self, band: Band, counts: &mut Counts) {
        let counted = band.counted.clone();
        counts.values += (counted.len() * self.bins) as u64;
        let mut band = Band { watched: self.defects.watches(band.projection), ..band };
        if let Some(saturation) = self.saturation {
            let saturated = band.values_of(&counted).iter().filter(|&&count| count >= saturation).count();
            counts.saturated += saturated as u64;
        }
        self.rows.apply(&mut band, counts);
    }

    /// Applies the steps on sinograms to a sinogram `[projection][bin]` of corrected rows in place; replaced values are
    /// added to `counts`.
    ///
    /// Sinograms may be processed in parallel; each needs [`memory`](Self::memory).
    pub fn sinogram(&self, values: &mut [f32], counts: &mut Counts) {
        self.sinograms.iter().for_each(|step| step.apply(values, self.bins, counts));
    }

    /// Reports whether there are steps that need all projections of a row.
    pub fn has_sinogram_steps(&self) -> bool {
        !self.sinograms.is_empty()
    }

    /// Returns the approximate memory in bytes that [`sinogram`](Self::sinogram) needs besides a sinogram of
    /// `projections` projections.
    pub fn memory(&self, projections: usize) -> usize {
        self.sinograms.iter().map(|step| step.memory(projections, self.bins)).max().unwrap_or(0)
    }

    /// Returns the correction of rows by a device, for the projections `used` of `projections`; `None` if it cannot do
    /// all steps.
    pub fn correction(&self, used: &[usize], projections: usize) -> Option<RowCorrection<'_>> {
        let state = |&number: &usize| ProjectionState {
            number,
            progress: progress(number, projections),
            level: 1.0,
            watched: self.defects.watches(number),
        };
        let projections = used.iter().map(state).collect();
        let mut correction = RowCorrection::nothing(self.bins, self.height, projections);
        let possible = self.rows.on_device(&mut correction);
        let images = &correction.images;
        (possible && (!images.any() || self.blocks(images, used.len()).is_some())).then_some(correction)
    }

    /// Returns the blocks of rows that a device corrects together, for `projections` projections, if there are steps on
    /// images.
    pub fn blocks(&self, images: &ImageSteps, projections: usize) -> Option<RowBlocks> {
        images.any().then(|| RowBlocks::new(images, [self.bins, self.height], projections)).flatten()
    }

    /// Returns the counts of what a device replaced in some rows of the projections `used`.
    pub fn counts(&self, rows: impl ExactSizeIterator<Item = usize>, used: &[usize], found: &RowCounts) -> Counts {
        let mut counts = Counts { values: (rows.len() * used.len() * self.bins) as u64, ..Counts::default() };
        for (place, (row, found_in)) in rows.zip(&found.rows).enumerate() {
            let [dead, non_finite, non_positive, saturated] = found_in.map(u64::from);
            counts.clamped += ClampedCounts { non_positive, dead, non_finite };
            counts.saturated += saturated;
            counts.defects.add(row, dead + non_finite + non_positive);
            if let Some(bins) = found.bins.chunks(self.bins).nth(place)
                && bins.iter().any(|&count| count > 0)
            {
                counts.defects.add_row(row, bins);
            }
        }
        counts.outliers = found.outliers.iter().map(|&count| u64::from(count)).sum();
        used.iter().zip(&found.levels).for_each(|(&p, &level)| counts.beam.add(p, level.into()));
        counts.unlit = used.iter().zip(&found.unlit).filter(|(_, unlit)| **unlit > 0).map(|(&p, _)| p).collect();
        counts
    }

    /// Returns the steps on sinograms on a device, for at most `slices` sinograms of `projections` projections at a
    /// time.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn sinograms_on_device(
        &self,
        session: &Session,
        slices: usize,
        projections: usize,
    ) -> Result<Vec<Box<dyn DeviceSinogramStep>>> {
        let shape = SinogramShape { slices, projections, bins: self.bins };
        self.sinograms.iter().map(|step| step.on_device(session, shape)).collect()
    }

    /// Returns a description of the fields, -log, and all steps in the order in which they are applied.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        self.description.clone()
    }

    /// Returns the summary of `counts`.
    pub fn repairs(&self, counts: &Counts) -> Repairs {
        let lost = counts.beam.lost();
        let mut repairs = Repairs {
            clamped: counts.clamped,
            values: counts.values,
            spoilt_rows: self.defects.spoilt_rows(&counts.defects, &lost),
            failing_bins: self.defects.failing_bins(&counts.defects, &lost),
            outliers: counts.outliers,
            saturated: counts.saturated,
            saturated_flats: 0,
            unlit: counts.unlit.iter().copied().chain(lost).collect::<BTreeSet<_>>().into_iter().collect(),
        };
        self.rows.found(&mut repairs);
        repairs
    }
}

fn describe(steps: &Steps, data: &Data) -> Vec<(&'static str, String)> {
    let Data { stacks, minus_log, .. } = data;
    let how = if data.median { "median" } else { "mean" };
    let mut lines = Vec::new();
    if stacks.flats.is_some() {
        let fields = [("flats", &stacks.flats), ("flats after", &stacks.flats2), ("darks", &stacks.darks)];
        for (name, stack) in fields.into_iter().filter_map(|(name, stack)| Some((name, stack.as_ref()?))) {
            lines.push(match stack.len() {
                1 => (name, format!("1 frame, {}", stack.title())),
                frames => (name, format!("{how} of {frames} frames, {}", stack.title())),
            });
        }
        if stacks.darks.is_none() {
            lines.push(("darks", "none, the dark level is 0".to_owned()));
        }
    } else if let Some(joined) = &stacks.joined {
        lines.extend(joined.parts.iter().map(|part| ("part", part.to_string())));
        lines.push(("flats", if joined.has_flats { "those of each part" } else { "none" }.to_owned()));
    } else {
        lines.push(("flats", "none".to_owned()));
    }
    lines.push(("-log", if *minus_log { "on" } else { "off" }.to_owned()));
    let binning = stacks.data.binning().by;
    let binning = (binning > 1).then(|| format!("binning {binning}"));
    let done = steps.all().into_iter().filter_map(|step| step.describe(data));
    let done: Vec<String> = binning.into_iter().chain(done).collect();
    lines.push(("steps", if done.is_empty() { "none".to_owned() } else { done.join("; ") }));
    lines
}

#[cfg(test)]
mod tests;

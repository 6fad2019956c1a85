//! Processing of the data before the filter, on the host, while they are read.
//!
//! A step is a type that implements [`Step`], in its own file and with a line in the list below. Steps on rows of
//! projections get as many surrounding rows as they and all later steps need; steps on sinograms follow.
//! [`Preparation`] combines all steps for a reader.

mod air;
mod beam;
mod counts;
mod defects;
mod errors;
mod fields;
mod hardening;
mod logarithm;
mod outliers;
mod phase;
mod step;
pub mod stripes;
mod tilt;

pub use air::Air;
pub use beam::{BeamLevels, ranges};
pub use counts::{ClampedCounts, Counts, Repairs};
pub use fields::FieldCorrection;
pub use hardening::BeamHardening;
pub use logarithm::{Logarithm, SMALLEST_TRANSMISSION};
pub use outliers::Outliers;
pub use phase::{Paganin, Unsharp, phase_doubts};
pub use step::{Band, Data, DeviceSinogramStep, Ready, RowStep, RowSteps, SinogramStep, Step, StepFlags, widened};
pub use stripes::Stripes;
pub use tilt::{Tilt, is_searched};

use crate::device::{BufferLayout, Session};
use crate::error::Result;
use crate::kernel::StepTarget;
use crate::operations::{ImageSteps, ProjectionState, RowBlocks, RowCorrection, RowCounts, SinogramShape};
use crate::remark::Remark;
use crate::source::Stacks;
use defects::Defects;
use fields::progress;
use phase::PaganinFilter;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use step::check_projections;

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
    /// Beam intensity changes between projections.
    #[serde(rename = "normalize-air")]
    air: Option<Air>,
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

    /// Returns the steps on projections as images, for complete projections of `bins` x `height`.
    pub fn on_images(&self, bins: usize, height: usize) -> RowSteps {
        let mut steps = RowSteps::default();
        if let Some(tilt) = self.tilt {
            steps.push(Box::new(tilt), self.tilt.halo(bins, height));
        }
        if let Some(paganin) = self.phase {
            steps.push(Box::new(PaganinFilter::new(&paganin, height, bins)), paganin.halo());
        }
        steps
    }

    /// Returns the buffers of the steps on sinograms on a device, for the sizes and number of sinograms of `shape`.
    pub fn sinogram_layout(&self, target: StepTarget, shape: SinogramShape) -> BufferLayout {
        self.stripes.iter().map(|method| method.layout(target, shape)).fold(BufferLayout::default(), BufferLayout::and)
    }

    /// Returns these steps without those on sinograms.
    pub fn on_rows(&self) -> Steps {
        Steps { stripes: Vec::new(), ..self.clone() }
    }

    /// Returns the rows of projections, of `bins` x `height`, that the host reads to correct one of them.
    pub fn rows_around(&self, row: usize, bins: usize, height: usize) -> Range<usize> {
        let halo = self.all().iter().map(|step| step.halo(bins, height)).sum();
        let size = self.block(bins, height).unwrap_or(1);
        let first = row / size * size;
        widened(&(first..first + size), halo, height)
    }

    /// Returns the number of rows of projections, of `bins` x `height`, that are corrected together, if a step needs
    /// blocks.
    fn block(&self, bins: usize, height: usize) -> Option<usize> {
        let steps = self.all();
        let blocks = steps.iter().filter(|step| step.in_blocks());
        let halo: usize = blocks.map(|step| step.halo(bins, height)).sum();
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
    /// True if complete projections are corrected at once, instead of [`Preparation::block`] rows.
    pub full_projections: bool,
}

/// What decides the preparation of steps on rows, besides the steps and their data.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PreparedFor {
    median: bool,
    minus_log: bool,
    images: bool,
    projections: usize,
}

/// [`Steps`] prepared for data of one size.
pub struct Preparation {
    prepared_for: PreparedFor,
    rows: RowSteps,
    /// Number of steps on rows up to each step of the list.
    up_to: Vec<usize>,
    sinograms: Vec<Box<dyn SinogramStep>>,
    block: Option<usize>,
    has_fields: bool,
    minus_log: bool,
    /// Fingerprint of the files of the fields.
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
        let projections = &stacks.data;
        let (bins, height) = (projections.width(), projections.height());
        let has_fields = stacks.flats.is_some();
        let minus_log = steps.logarithm.is_taken(has_fields);
        let block = steps.block(bins, height);
        let most_rows = if scope.full_projections { height } else { block.unwrap_or(1) };
        let images = steps.tilt.is_some() || steps.phase.is_some();
        let data = Data { stacks, median: scope.median, minus_log, images, projections: scope.used.len(), most_rows };
        let prepared_for = PreparedFor { median: data.median, minus_log, images, projections: data.projections };
        let (mut rows, mut up_to, mut sinograms) = (RowSteps::default(), Vec::new(), Vec::new());
        if let Some((before, earlier)) = earlier.filter(|(_, earlier)| earlier.prepared_for == prepared_for) {
            up_to = earlier.up_to[..before.on_rows().in_common(steps).min(earlier.up_to.len())].to_vec();
            rows = earlier.rows.first(up_to.last().copied().unwrap_or_default());
        }
        for step in steps.all().into_iter().skip(up_to.len()) {
            match step.ready(&data, &rows)? {
                Some(Ready::Rows(ready)) => rows.push(ready, step.halo(bins, height)),
                Some(Ready::Sinogram(ready)) => sinograms.push(ready),
                None => {}
            }
            up_to.push(rows.count());
        }
        let fields = [&stacks.flats, &stacks.flats2, &stacks.darks].into_iter().flatten().filter(|_| has_fields);
        Ok(Preparation {
            prepared_for,
            rows,
            up_to,
            sinograms,
            block,
            has_fields,
            minus_log,
            fingerprint: fields.map(|stack| format!("{}: {}", stack.flag(), stack.fingerprint())).collect(),
            description: describe(steps, &data),
            // data without fields may be scaled to the range of their type
            saturation: projections.sample().largest().filter(|_| has_fields),
            defects: Defects::new(scope.used, bins),
            bins,
            height,
        })
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

    /// Returns a text that identifies the files of the fields without reading them; empty without fields.
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
mod tests {
    use super::*;
    use crate::files::{InputSet, OutputFile, OutputKind};
    use crate::geometry::Roi;
    use crate::sink::{Dtype, Encoding, write_image};
    use crate::source::Stack;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::path::Path;

    const BINS: usize = 60;
    const ROWS: usize = 90;
    const COUNT: usize = 3;

    fn write(directory: &Path, name: &str, frames: &[Vec<f32>]) -> Stack {
        let directory = directory.join(name);
        std::fs::create_dir(&directory).unwrap();
        let encoding = Encoding { dtype: Dtype::F32, range: None };
        for (i, frame) in frames.iter().enumerate() {
            let path = directory.join(format!("f_{i}.tif"));
            let file = OutputFile::new("--output", &path, OutputKind::Tiff, &InputSet::default(), None).unwrap();
            write_image(&file, (BINS, ROWS), frame, encoding).unwrap();
        }
        Stack::open(directory.to_str().unwrap(), "--projections").unwrap()
    }

    /// A sample in the middle, a beam that fades from projection to projection, and zingers.
    fn scan(directory: &Path) -> Stack {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let frames: Vec<Vec<f32>> = (0..COUNT)
            .map(|p| {
                let beam = 1000.0 * (1.0 - 0.2 * p as f32);
                let pixel = |i: usize| {
                    let inside = (20..40).contains(&(i % BINS)) && (10..80).contains(&(i / BINS));
                    100.0 + beam * if inside { 0.3 } else { 1.0 } + rng.random_range(-5.0..5.0)
                };
                let mut frame: Vec<f32> = (0..ROWS * BINS).map(pixel).collect();
                for _ in 0..40 {
                    frame[rng.random_range(0..ROWS * BINS)] = 60000.0;
                }
                frame
            })
            .collect();
        write(directory, "projections", &frames)
    }

    /// The scan with its fields.
    fn stacks(directory: &Path) -> Stacks {
        let field = |name: &str, level: f32| Some(write(directory, name, &[vec![level; ROWS * BINS]]));
        Stacks { flats: field("flats", 1100.0), darks: field("darks", 50.0), ..Stacks::of(scan(directory)) }
    }

    fn preparation(stacks: &Stacks, steps: &Steps, full_projections: bool) -> Preparation {
        let used: Vec<usize> = (0..COUNT).collect();
        Preparation::open(steps, stacks, Scope { median: false, used: &used, full_projections }).unwrap()
    }

    fn steps() -> Steps {
        Steps {
            outliers: Some(Outliers::new(3, 300.0, false)),
            air: Some(Air::Region(Roi { x: 2, y: 5, width: 10, height: 60 })),
            tilt: Some(Tilt { degrees: 1.2 }),
            phase: Some(Paganin { length: 1.5, unsharp: None }),
            fields: FieldCorrection { dark_scale: Some(2.0) },
            ..Default::default()
        }
    }

    fn whole(projections: &Stack, preparation: &Preparation, p: usize) -> (Vec<f32>, Counts) {
        let mut values = vec![0f32; ROWS * BINS];
        projections.read_rows(p, 0..ROWS, &mut values).unwrap();
        let mut counts = Counts::default();
        preparation.projection(Band::new(&mut values, ROWS, 0..ROWS, 0..ROWS).of(p, COUNT), &mut counts);
        (values, counts)
    }

    #[test]
    fn counts_become_line_integrals() {
        let directory = tempfile::tempdir().unwrap();
        let stacks = stacks(directory.path());
        for air in [Air::Region(Roi { x: 2, y: 5, width: 10, height: 60 }), Air::Sides(8, 8)] {
            let steps = Steps { phase: None, tilt: None, air: Some(air), ..steps() };
            let preparation = preparation(&stacks, &steps, true);
            let mut counts = Counts::default();
            for p in 0..COUNT {
                let (values, replaced) = whole(&stacks.data, &preparation, p);
                counts += replaced;
                for (i, value) in values.iter().enumerate() {
                    let inside = (20..40).contains(&(i % BINS)) && (10..80).contains(&(i / BINS));
                    let expected = if inside { -(0.3f32.ln()) } else { 0.0 };
                    // corners of the sample are outliers of nothing but themselves
                    assert!((value - expected).abs() < 0.04, "{p}: {value} at {},{}", i % BINS, i / BINS);
                }
            }
            assert!(counts.outliers > 100);
            assert_eq!((counts.clamped, counts.values), (ClampedCounts::default(), (COUNT * ROWS * BINS) as u64));
        }
    }

    #[test]
    fn bands_equal_whole_projections() {
        let directory = tempfile::tempdir().unwrap();
        let stacks = stacks(directory.path());
        let (all, bands) = (preparation(&stacks, &steps(), true), preparation(&stacks, &steps(), false));
        let block = bands.block().unwrap();
        assert!(block < ROWS);
        let mut counts = [Counts::default(), Counts::default()];
        for p in 0..COUNT {
            let (expected, replaced) = whole(&stacks.data, &all, p);
            counts[0] += replaced;
            for first in (0..ROWS).step_by(block) {
                let wanted = first..(first + block).min(ROWS);
                let read = widened(&wanted, bands.halo(), ROWS);
                let mut values = vec![0f32; read.len() * BINS];
                stacks.data.read_rows(p, read.clone(), &mut values).unwrap();
                let band = Band::new(&mut values, ROWS, read.clone(), wanted.clone()).of(p, COUNT);
                bands.projection(band, &mut counts[1]);
                let found = &values[(wanted.start - read.start) * BINS..(wanted.end - read.start) * BINS];
                for (a, b) in found.iter().zip(&expected[wanted.start * BINS..]) {
                    assert!((a - b).abs() < 3e-5, "{a} and {b} in projection {p}, rows {wanted:?}");
                }
            }
        }
        // what is read twice is counted once
        assert_eq!(counts[0], counts[1]);
    }

    #[test]
    fn what_steps_have_in_common_is_prepared_once() {
        let directory = tempfile::tempdir().unwrap();
        let stacks = stacks(directory.path());
        let used: Vec<usize> = (0..COUNT).collect();
        let scope = Scope { median: false, used: &used, full_projections: true };
        let other = Steps { phase: Some(Paganin { length: 3.0, unsharp: None }), ..steps() };
        let [first, anew] = [steps(), other.clone()].map(|steps| Preparation::open(&steps, &stacks, scope).unwrap());
        std::fs::write(directory.path().join("flats/f_0.tif"), "not read again").unwrap();
        let steps_before = steps();
        let like = |steps: &Steps| Preparation::like(Some((&steps_before, &first)), steps, &stacks, scope);
        let found = like(&other).unwrap();
        for p in 0..COUNT {
            assert_eq!(whole(&stacks.data, &found, p), whole(&stacks.data, &anew, p));
        }
        // fields after another step are others
        assert!(like(&Steps { outliers: None, ..steps() }).is_err());
    }

    #[test]
    fn outliers_leave_the_fields_frames() {
        let directory = tempfile::tempdir().unwrap();
        let mut frame = vec![100f32; ROWS * BINS];
        for place in [0, 15 * BINS + 7, 16 * BINS + 30, ROWS * BINS - 1] {
            frame[place] = 9000.0;
        }
        let projections = write(directory.path(), "projections", &[vec![50.0; ROWS * BINS]]);
        let flats = write(directory.path(), "flats", &[frame]);
        let stacks = Stacks { flats: Some(flats), ..Stacks::of(projections) };
        let outliers = Some(Outliers::new(3, 100.0, false));
        let steps = Steps { outliers, logarithm: Logarithm::Never, ..Steps::default() };
        let (values, counts) = whole(&stacks.data, &preparation(&stacks, &steps, true), 0);
        assert!(values.iter().all(|v| *v == 0.5));
        assert_eq!(counts.outliers, 0);
    }

    #[test]
    fn steps_are_plain_data() {
        let stripes = vec![Stripes::Sorting { size: 21 }, Stripes::Wavelet { moments: 5, level: None, sigma: 2.0 }];
        let steps = Steps { stripes, ..steps() };
        let text = serde_json::to_string(&steps).unwrap();
        assert_eq!(serde_json::from_str::<Steps>(&text).unwrap(), steps);
    }
}

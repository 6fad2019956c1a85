//! What is done to the data before reconstruction, on the host, while it is read.
//!
//! Rows of a projection go through these steps, each only if it is asked for:
//!
//! 1. [`Outliers`]: zingers and hot pixels, on counts; also out of the fields' frames.
//! 2. [`Fields`]: counts become transmissions.
//! 3. [`Air`]: the beam's changes from projection to projection.
//! 4. [`Tilt`]: the detector's turn about the beam.
//! 5. [`Paganin`]: the phase filter, on transmissions.
//! 6. -log.
//!
//! Then the sinogram: 7. [`Stripes`], in the order given. [`Preparation`] is all of it, ready to be called by a reader.

mod air;
mod defects;
mod fields;
mod outliers;
mod phase;
pub mod stripes;
mod tilt;

pub use air::Air;
pub use fields::{Clamped, ClampedCounts, Combine, Correction, FieldMode, Fields, SMALLEST_TRANSMISSION};
pub use outliers::{LARGEST as LARGEST_NEIGHBOURHOOD, Outliers};
pub use phase::{Paganin, PaganinFilter, Unsharp};
pub use stripes::Stripes;
pub use tilt::Tilt;

use crate::error::{Error, Result};
use crate::recipe::Recipe;
use crate::source::{Stack, Stacks};
use defects::Defects;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The steps beside fields and -log, as they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// Factor on the dark field.
    pub dark_scale: Option<f32>,
    pub outliers: Option<Outliers>,
    pub air: Option<Air>,
    pub tilt: Option<Tilt>,
    pub phase: Option<Paganin>,
    /// One after the other.
    pub stripes: Vec<Stripes>,
}

impl Steps {
    /// Flags and values of the steps that were asked for, without dashes, in the order in which they are done.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let stripes: Vec<String> = self.stripes.iter().map(Stripes::to_string).collect();
        [
            ("dark-scale", self.dark_scale.map(|scale| scale.to_string())),
            ("remove-outliers", self.outliers.as_ref().map(Outliers::to_string)),
            ("normalize-air", self.air.map(|air| air.to_string())),
            ("tilt", self.tilt.map(|tilt| tilt.degrees.to_string())),
            ("phase", self.phase.map(|phase| phase.to_string())),
            ("stripes", Some(stripes.join(",")).filter(|text| !text.is_empty())),
        ]
        .into_iter()
        .filter_map(|(flag, value)| Some((flag, value?)))
        .collect()
    }
}

/// What the data needed, or could not be mended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Repairs {
    pub clamped: ClampedCounts,
    /// All values that were corrected, replaced or not.
    pub values: u64,
    /// Rows of whose values more than 1 % were replaced, ascending.
    pub spoilt_rows: Vec<usize>,
    /// Row and bin of values that were replaced in most projections, ascending.
    pub failing_bins: Vec<(usize, usize)>,
    /// Pixels that were outliers, replaced.
    pub outliers: u64,
    /// Counts that are the largest number of their sample type, taken as they are.
    pub saturated: u64,
    /// The same of the mean or median flat field.
    pub saturated_flats: u64,
    /// Projections with a row without any light, ascending.
    pub unlit: Vec<usize>,
}

/// [`Steps`], fields and -log made ready for data of one size.
pub struct Preparation {
    pub correction: Correction,
    steps: Steps,
    /// Where the fields are from, and how many frames they have.
    fields: Vec<(&'static str, String)>,
    binning: usize,
    values: AtomicU64,
    defects: Defects,
    outliers: AtomicU64,
    saturated: AtomicU64,
    unlit: Mutex<BTreeSet<usize>>,
    /// The largest count that files can hold.
    saturation: Option<f32>,
    phase: Option<PaganinFilter>,
    /// Transmission of the air region of every projection.
    air: Vec<f64>,
    bins: usize,
    /// Rows of a projection.
    height: usize,
}

impl Preparation {
    /// All that a run asks for: reads the fields, and the air region of all projections. `stacks` are the run's input, of
    /// which the projections of the numbers `used` are wanted, at most `most_rows` rows of one at once.
    ///
    /// # Errors
    /// Those of reading, and [`Error::Usage`](crate::error::Error::Usage) when the air does not fit the projections, or
    /// the input lacks fields that a step needs.
    pub fn open(recipe: &Recipe, stacks: &Stacks, used: &[usize], most_rows: usize) -> Result<Preparation> {
        let steps = recipe.steps.clone();
        let data = &stacks.data;
        if steps.dark_scale.is_some() && stacks.darks.is_none() {
            return Err(Error::usage("--dark-scale: there are no dark fields to scale"));
        }
        let fields = match &stacks.flats {
            Some(flats) => {
                let how =
                    Combine { median: recipe.input.field_mode == FieldMode::Median, outliers: steps.outliers.clone() };
                let fields = Fields::read(flats, stacks.flats2.as_ref(), stacks.darks.as_ref(), how, data)?;
                Some(fields.with_dark_scale(steps.dark_scale.unwrap_or(1.0)))
            }
            None => None,
        };
        let minus_log = recipe.input.minus_log.unwrap_or(fields.is_some());
        if steps.air.is_some() && fields.is_none() && !minus_log {
            return Err(Error::usage("--normalize-air: divides transmissions; it needs flat fields or --minus-log"));
        }
        let correction = Correction { fields, minus_log, clamped: Clamped::default() };
        let mut preparation = Preparation::new(correction, steps, data.width(), data.height(), most_rows);
        preparation.fields = fields_of(stacks, recipe.input.field_mode);
        preparation.binning = recipe.input.binning;
        // a row is a slice
        let rows = if recipe.input.is_sinograms() { data.len() } else { data.height() };
        preparation.defects = Defects::new(used, rows, data.width());
        // what comes without fields may be scaled to fill its type
        preparation.saturation = preparation.correction.fields.as_ref().and_then(|_| data.sample().largest());
        preparation.measure_air(data)?;
        Ok(preparation)
    }

    /// For projections of `height` rows of `bins`, of which at most `most_rows` are wanted at once.
    pub fn new(correction: Correction, steps: Steps, bins: usize, height: usize, most_rows: usize) -> Preparation {
        let phase = steps.phase.map(|paganin| PaganinFilter::new(&paganin, most_rows, bins));
        Preparation {
            correction,
            steps,
            fields: Vec::new(),
            binning: 1,
            values: AtomicU64::default(),
            defects: Defects::default(),
            outliers: AtomicU64::default(),
            saturated: AtomicU64::default(),
            unlit: Mutex::default(),
            saturation: None,
            phase,
            air: Vec::new(),
            bins,
            height,
        }
    }

    /// Reads the air region of all projections, if there is one. Needed before [`projection`](Self::projection).
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) when the air does not fit the projections, and those of reading.
    pub fn measure_air(&mut self, projections: &Stack) -> Result<()> {
        let Some(air) = self.steps.air else { return Ok(()) };
        air.check(self.bins, projections.height())?;
        if let Air::Region(roi) = air {
            let wanted = roi.y..roi.y + roi.height;
            let read = widened(&wanted, self.outlier_halo(), projections.height());
            let region = |p: usize| -> Result<f64> {
                let mut rows = vec![0f32; read.len() * self.bins];
                projections.read_rows(p, read.clone(), &mut rows)?;
                let keep = wanted.start - read.start..wanted.end - read.start;
                if let Some(outliers) = &self.steps.outliers {
                    outliers.apply(&mut rows, self.bins, keep.clone(), &(0..0));
                }
                let mut values = Vec::with_capacity(roi.width * roi.height);
                for (row, line) in wanted.clone().zip(rows.chunks_mut(self.bins).skip(keep.start)) {
                    self.correction.transmission(line, row, p, projections.len());
                    values.extend_from_slice(&line[roi.x..roi.x + roi.width]);
                }
                // without light there the projection stays as it is
                Ok(air::mean(&values).filter(|level| *level > 0.0).unwrap_or(1.0))
            };
            self.air = (0..projections.len()).into_par_iter().map(region).collect::<Result<_>>()?;
        }
        Ok(())
    }

    /// Rows of a projection above and below those wanted that must be read, too, unless it ends before; see [`widened`].
    pub fn halo(&self) -> usize {
        self.outlier_halo() + self.tilt_halo() + self.phase_halo()
    }

    fn tilt_halo(&self) -> usize {
        self.steps.tilt.map_or(0, |tilt| tilt.halo(self.bins, self.height))
    }

    fn phase_halo(&self) -> usize {
        self.phase.as_ref().map_or(0, PaganinFilter::halo)
    }

    fn outlier_halo(&self) -> usize {
        self.steps.outliers.as_ref().map_or(0, Outliers::halo)
    }

    /// Corrects rows of projection number `projection` of `projections` in place. `values` holds its rows `read`,
    /// `[row][bin]`; of these only `wanted` are of use afterwards. They are finite; what had to be replaced in them is
    /// counted.
    ///
    /// Projections may be corrected side by side.
    pub fn projection(
        &self,
        values: &mut [f32],
        read: Range<usize>,
        wanted: Range<usize>,
        projection: usize,
        projections: usize,
    ) {
        let bins = self.bins;
        let within = |rows: &Range<usize>| rows.start - read.start..rows.end - read.start;
        // what a step needs of the one before
        let before = |rows: &Range<usize>, halo: usize| {
            let rows = widened(rows, halo, read.end);
            rows.start.max(read.start)..rows.end
        };
        let upright = before(&wanted, self.phase_halo());
        let needed = before(&upright, self.tilt_halo());
        if let Some(saturation) = self.saturation {
            let rows = within(&wanted);
            let counts = &values[rows.start * bins..rows.end * bins];
            let saturated = counts.iter().filter(|&&count| count >= saturation).count();
            if saturated > 0 {
                self.saturated.fetch_add(saturated as u64, Relaxed);
            }
        }
        if let Some(outliers) = &self.steps.outliers {
            let count = outliers.apply(values, bins, within(&needed), &within(&wanted));
            self.outliers.fetch_add(count, Relaxed);
        }
        let mut counts = ClampedCounts::default();
        let watched = self.defects.watches(projection);
        let mut before = Vec::new();
        let rows = within(&needed);
        for (row, line) in needed.clone().zip(values[rows.start * bins..rows.end * bins].chunks_mut(bins)) {
            if watched {
                before.clear();
                before.extend_from_slice(line);
            }
            let replaced = self.correction.transmission(line, row, projection, projections);
            if wanted.contains(&row) {
                counts += replaced;
                self.defects.add(row, replaced.total());
                if self.correction.minus_log && line.iter().all(|value| *value <= 0.0) {
                    self.unlit.lock().unwrap_or_else(PoisonError::into_inner).insert(projection);
                }
                if watched && (replaced.total() > 0 || self.correction.without_logarithm(line)) {
                    let place = (row, projection, projections);
                    self.defects.add_bins(row, bins, |bin| self.correction.replaces(before[bin], bin, place));
                }
            }
            match self.steps.air {
                Some(Air::Sides(left, right)) => air::normalize_sides(line, left, right),
                Some(Air::Region(_)) => {
                    let level = self.air.get(projection).copied().unwrap_or(1.0) as f32;
                    line.iter_mut().for_each(|value| *value /= level);
                }
                None => {}
            }
        }
        let rows_upright = within(&upright);
        let upright_values = rows_upright.start * bins..rows_upright.end * bins;
        if let Some(tilt) = self.steps.tilt {
            let mut turned = vec![0f32; upright_values.len()];
            let tilted = &values[rows.start * bins..rows.end * bins];
            tilt.apply(tilted, bins, self.height, &needed, &upright, &mut turned);
            values[upright_values.clone()].copy_from_slice(&turned);
        }
        if let Some(phase) = &self.phase {
            phase.apply(&mut values[upright_values], upright, wanted.clone());
        }
        let rows = within(&wanted);
        for (row, line) in wanted.zip(values[rows.start * bins..rows.end * bins].chunks_mut(bins)) {
            let non_positive = self.correction.logarithm(line);
            self.defects.add(row, non_positive);
            counts.non_positive += non_positive;
        }
        self.correction.count(counts);
        self.values.fetch_add((rows.len() * bins) as u64, Relaxed);
    }

    /// The fields, -log, and all steps in the order in which they are done, for people.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let has_fields = self.correction.fields.is_some();
        let mut lines = self.fields.clone();
        if !has_fields {
            lines.push(("flats", "none".to_owned()));
        } else if !lines.iter().any(|(name, _)| *name == "darks") {
            lines.push(("darks", "none, the dark level is 0".to_owned()));
        }
        lines.push(("-log", if self.correction.minus_log { "on" } else { "off" }.to_owned()));
        let mut steps = Vec::new();
        if self.binning > 1 {
            steps.push(format!("binning {}", self.binning));
        }
        let flags = self.steps.flags();
        let take = |names: &[&str]| {
            let named = flags.iter().filter(|(flag, _)| names.contains(flag));
            named.map(|(flag, value)| format!("{flag} {value}")).collect::<Vec<_>>()
        };
        steps.extend(take(&["remove-outliers"]));
        if has_fields {
            let scaled = self.steps.dark_scale.map(|scale| format!(" (darks times {scale})")).unwrap_or_default();
            steps.push(format!("flat and dark fields{scaled}"));
        }
        steps.extend(take(&["normalize-air", "tilt", "phase"]));
        if self.correction.minus_log {
            steps.push("-log".to_owned());
        }
        steps.extend(take(&["stripes"]));
        lines.push(("steps", if steps.is_empty() { "none".to_owned() } else { steps.join("; ") }));
        lines
    }

    /// What there was to repair so far.
    pub fn repairs(&self) -> Repairs {
        Repairs {
            clamped: self.correction.clamped.counts(),
            values: self.values.load(Relaxed),
            spoilt_rows: self.defects.spoilt_rows(),
            failing_bins: self.defects.failing_bins(),
            outliers: self.outliers.load(Relaxed),
            saturated: self.saturated.load(Relaxed),
            saturated_flats: match (&self.correction.fields, self.saturation) {
                (Some(fields), Some(largest)) => fields.brighter(largest),
                _ => 0,
            },
            unlit: self.unlit.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect(),
        }
    }

    /// Starts counting again.
    pub fn reset(&self) {
        self.correction.clamped.reset();
        self.values.store(0, Relaxed);
        self.defects.reset();
        self.outliers.store(0, Relaxed);
        self.saturated.store(0, Relaxed);
        self.unlit.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes stripes out of a sinogram `[projection][bin]` of corrected rows in place.
    ///
    /// Sinograms may be taken side by side; each needs [`memory`](Self::memory).
    pub fn sinogram(&self, values: &mut [f32]) {
        for stripes in &self.steps.stripes {
            stripes.remove(values, values.len() / self.bins, self.bins);
        }
    }

    /// Bytes that [`sinogram`](Self::sinogram) needs beside a sinogram of so many projections, about.
    pub fn memory(&self, projections: usize) -> usize {
        self.steps.stripes.iter().map(|s| s.memory(projections, self.bins)).max().unwrap_or(0)
    }
}

/// Where the fields of a correction are from, and how many frames they have.
fn fields_of(stacks: &Stacks, mode: FieldMode) -> Vec<(&'static str, String)> {
    if stacks.flats.is_none() {
        return Vec::new();
    }
    [("flats", &stacks.flats), ("flats after", &stacks.flats2), ("darks", &stacks.darks)]
        .into_iter()
        .filter_map(|(name, stack)| {
            let stack = stack.as_ref()?;
            Some((
                name,
                match stack.len() {
                    1 => format!("1 frame, {}", stack.title()),
                    frames => format!("{mode} of {frames} frames, {}", stack.title()),
                },
            ))
        })
        .collect()
}

/// `rows` and up to `halo` more on both sides, within `0..height`.
pub fn widened(rows: &Range<usize>, halo: usize, height: usize) -> Range<usize> {
    rows.start.saturating_sub(halo)..rows.end.saturating_add(halo).min(height)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Roi;
    use crate::sink::{Dtype, Encoding, write_image};
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
            write_image(&directory.join(format!("f_{i}.tif")), BINS, ROWS, frame, encoding, "test").unwrap();
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

    fn preparation(directory: &Path, projections: &Stack, steps: Steps, most_rows: usize) -> Preparation {
        let fields = |name: &str, level: f32| {
            let path = directory.join(name);
            if !path.exists() {
                write(directory, name, &[vec![level; ROWS * BINS]]);
            }
            path.to_str().unwrap().to_owned()
        };
        let open = |path: String, flag: &str| Stack::open(&path, flag).unwrap();
        let (flats, darks) = (open(fields("flats", 1100.0), "--flats"), open(fields("darks", 50.0), "--darks"));
        let read = Fields::read(&flats, None, Some(&darks), false, projections).unwrap();
        let correction =
            Correction { fields: Some(read.with_dark_scale(2.0)), minus_log: true, clamped: Clamped::default() };
        let mut preparation = Preparation::new(correction, steps, BINS, ROWS, most_rows);
        preparation.measure_air(projections).unwrap();
        preparation
    }

    fn steps() -> Steps {
        Steps {
            outliers: Some(Outliers::new(3, 300.0, false)),
            air: Some(Air::Region(Roi { x: 2, y: 5, width: 10, height: 60 })),
            tilt: Some(Tilt { degrees: 1.2 }),
            phase: Some(Paganin { length: 1.5, unsharp: None }),
            ..Default::default()
        }
    }

    fn whole(projections: &Stack, preparation: &Preparation, p: usize) -> Vec<f32> {
        let mut values = vec![0f32; ROWS * BINS];
        projections.read_rows(p, 0..ROWS, &mut values).unwrap();
        preparation.projection(&mut values, 0..ROWS, 0..ROWS, p, COUNT);
        values
    }

    #[test]
    fn counts_become_line_integrals() {
        let directory = tempfile::tempdir().unwrap();
        let projections = scan(directory.path());
        for air in [Air::Region(Roi { x: 2, y: 5, width: 10, height: 60 }), Air::Sides(8, 8)] {
            let steps = Steps { phase: None, tilt: None, air: Some(air), ..steps() };
            let preparation = preparation(directory.path(), &projections, steps, ROWS);
            for p in 0..COUNT {
                let values = whole(&projections, &preparation, p);
                for (i, value) in values.iter().enumerate() {
                    let inside = (20..40).contains(&(i % BINS)) && (10..80).contains(&(i / BINS));
                    let expected = if inside { -(0.3f32.ln()) } else { 0.0 };
                    // corners of the sample are outliers of nothing but themselves
                    assert!((value - expected).abs() < 0.04, "{p}: {value} at {},{}", i % BINS, i / BINS);
                }
            }
            assert!(preparation.repairs().outliers > 100);
            assert_eq!(preparation.correction.clamped.counts(), ClampedCounts::default());
        }
    }

    #[test]
    fn bands_equal_whole_projections() {
        let directory = tempfile::tempdir().unwrap();
        let projections = scan(directory.path());
        let all = preparation(directory.path(), &projections, steps(), ROWS);
        let bands = preparation(directory.path(), &projections, steps(), 8);
        let expected: Vec<Vec<f32>> = (0..COUNT).map(|p| whole(&projections, &all, p)).collect();
        for (p, expected) in expected.iter().enumerate() {
            for first in (0..ROWS).step_by(8) {
                let wanted = first..(first + 8).min(ROWS);
                let read = widened(&wanted, bands.halo(), ROWS);
                let mut values = vec![0f32; read.len() * BINS];
                projections.read_rows(p, read.clone(), &mut values).unwrap();
                bands.projection(&mut values, read.clone(), wanted.clone(), p, COUNT);
                let found = &values[(wanted.start - read.start) * BINS..(wanted.end - read.start) * BINS];
                for (a, b) in found.iter().zip(&expected[wanted.start * BINS..]) {
                    assert!((a - b).abs() < 3e-5, "{a} and {b} in projection {p}, rows {wanted:?}");
                }
            }
        }
        // what is read twice is counted once
        assert_eq!(all.repairs().outliers, bands.repairs().outliers);
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
        let how = Combine { median: false, outliers: Some(Outliers::new(3, 100.0, false)) };
        let fields = Fields::read(&flats, None, None, how, &projections).unwrap();
        let correction = Correction { fields: Some(fields), minus_log: false, clamped: Clamped::default() };
        for row in 0..ROWS {
            let mut values = vec![50.0; BINS];
            correction.apply(&mut values, row, 0, 1);
            assert!(values.iter().all(|v| *v == 0.5), "row {row}");
        }
    }
}

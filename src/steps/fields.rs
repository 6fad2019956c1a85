//! From detector counts to line integrals: flat and dark fields, -log.

use super::Outliers;
use crate::error::{Error, Result};
use crate::memory;
use crate::numbers::ln;
use crate::source::Stack;
use crate::units::human;
use multiversion::multiversion;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Smallest transmission that -log is taken of; values at or below 0 become this (-log of it is 13.8).
pub const SMALLEST_TRANSMISSION: f32 = 1e-6;

/// Values that had to be replaced so that no slice is spoilt, counted.
#[derive(Debug, Default)]
pub struct Clamped {
    /// Transmissions at or below 0, clamped to [`SMALLEST_TRANSMISSION`].
    pub non_positive: AtomicU64,
    /// Pixels whose flat field is not above the dark field, taken as transmission 1.
    pub dead: AtomicU64,
    /// Values that were NaN or infinite, taken as no attenuation.
    pub non_finite: AtomicU64,
}

/// [`Clamped`] as plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClampedCounts {
    pub non_positive: u64,
    pub dead: u64,
    pub non_finite: u64,
}

impl Clamped {
    /// The counts so far.
    pub fn counts(&self) -> ClampedCounts {
        ClampedCounts {
            non_positive: self.non_positive.load(Relaxed),
            dead: self.dead.load(Relaxed),
            non_finite: self.non_finite.load(Relaxed),
        }
    }

    /// Starts counting again.
    pub fn reset(&self) {
        for counter in [&self.non_positive, &self.dead, &self.non_finite] {
            counter.store(0, Relaxed);
        }
    }

    fn add(&self, counts: ClampedCounts) {
        self.non_positive.fetch_add(counts.non_positive, Relaxed);
        self.dead.fetch_add(counts.dead, Relaxed);
        self.non_finite.fetch_add(counts.non_finite, Relaxed);
    }
}

impl std::ops::AddAssign for ClampedCounts {
    fn add_assign(&mut self, other: Self) {
        self.non_positive += other.non_positive;
        self.dead += other.dead;
        self.non_finite += other.non_finite;
    }
}

impl ClampedCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.non_positive + self.dead + self.non_finite
    }
}

/// Flat and dark fields of a detector, `height * width` values each, row-major.
pub struct Fields {
    width: usize,
    flat: Vec<f32>,
    flat2: Option<Vec<f32>>,
    dark: Vec<f32>,
    /// What tells the files that they are from.
    pub fingerprint: String,
}

/// Rows that are averaged together.
const BAND: usize = 16;

/// How several frames of a field become one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FieldMode {
    #[default]
    Mean,
    Median,
}

/// How several frames of a field become one.
#[derive(Clone, Debug, Default)]
pub struct Combine {
    /// The median of each pixel instead of the mean.
    pub median: bool,
    /// Taken out of every frame first.
    pub outliers: Option<Outliers>,
}

impl From<bool> for Combine {
    fn from(median: bool) -> Self {
        Combine { median, outliers: None }
    }
}

impl Fields {
    /// Pixels of the flat fields of at least so many counts.
    pub fn brighter(&self, counts: f32) -> u64 {
        let all = self.flat.iter().chain(self.flat2.iter().flatten());
        all.filter(|&&value| value >= counts).count() as u64
    }

    /// Reads and combines the fields; they must have the projections' size. Without darks the dark level is 0.
    pub fn read(
        flats: &Stack,
        flats2: Option<&Stack>,
        darks: Option<&Stack>,
        how: impl Into<Combine>,
        projections: &Stack,
    ) -> Result<Fields> {
        let how = how.into();
        let mut fingerprint = String::new();
        let mut field = |stack: &Stack| -> Result<Vec<f32>> {
            fingerprint += &format!("{}: {}", stack.flag(), stack.fingerprint());
            if (stack.width(), stack.height()) != (projections.width(), projections.height()) {
                return Err(Error::Input(format!(
                    "{}: fields are {}x{}, the projections {}x{}; they must be of one size, of the same detector and its \
                     region",
                    stack.title(),
                    stack.width(),
                    stack.height(),
                    projections.width(),
                    projections.height()
                )));
            }
            combine(stack, &how)
        };
        // a header of a few bytes can claim any size
        let needed = 4 * (2 + u64::from(flats2.is_some())) * (projections.width() * projections.height()) as u64;
        let free = memory::available();
        if needed > free {
            return Err(Error::Input(format!(
                "{}: fields of {}x{} need {} of memory, {} are free",
                flats.title(),
                projections.width(),
                projections.height(),
                human(needed),
                human(free)
            )));
        }
        let flat = field(flats)?;
        let flat2 = flats2.map(&mut field).transpose()?;
        let dark = match darks {
            Some(darks) => field(darks)?,
            None => vec![0.0; flat.len()],
        };
        Ok(Fields { width: projections.width(), flat, flat2, dark, fingerprint })
    }

    /// The same with a dark level that is `scale` times as high: for darks of another exposure time.
    #[must_use]
    pub fn with_dark_scale(mut self, scale: f32) -> Self {
        self.dark.iter_mut().for_each(|dark| *dark *= scale);
        self
    }

    /// Transmission of detector row `row` in place; `progress` in 0..=1 is the projection's place between the flats
    /// before and after the scan.
    fn correct(&self, values: &mut [f32], row: usize, progress: f32, counts: &mut ClampedCounts) {
        let at = row * self.width..(row + 1) * self.width;
        let (flat, dark) = (&self.flat[at.clone()], &self.dark[at.clone()]);
        let flat2 = self.flat2.as_ref().map_or(flat, |f| &f[at]);
        counts.dead += transmissions(values, (flat, flat2, progress), dark);
    }

    /// What `correct` makes of one count; `None` where the flat is not above the dark.
    fn transmission(&self, count: f32, at: usize, progress: f32) -> Option<f32> {
        let (first, dark) = (self.flat[at], self.dark[at]);
        let second = self.flat2.as_ref().map_or(first, |flat| flat[at]);
        let beam = first + progress * (second - first) - dark;
        (beam > 0.0).then(|| (count - dark) / beam)
    }
}

// The following are compiled a second time for newer processors, which compute twice as many values side by side. No result
// depends on it: nothing is rounded in another way.

/// Counts become transmissions; how many have no light in the flat field, between `first` and `second` at `progress`.
#[multiversion(targets("x86_64+avx2"))]
fn transmissions(values: &mut [f32], (first, second, progress): (&[f32], &[f32], f32), dark: &[f32]) -> u64 {
    let mut dead = 0u32;
    for (((value, &first), &second), &dark) in values.iter_mut().zip(first).zip(second).zip(dark) {
        let beam = first + progress * (second - first) - dark;
        let transmission = (*value - dark) / beam;
        let lit = beam > 0.0;
        dead += u32::from(!lit);
        *value = if lit { transmission } else { 1.0 };
    }
    dead.into()
}

/// What is not finite becomes `instead`; how many.
#[multiversion(targets("x86_64+avx2"))]
fn finite(values: &mut [f32], instead: f32) -> u64 {
    let mut non_finite = 0u32;
    for value in values {
        let finite = value.is_finite();
        non_finite += u32::from(!finite);
        *value = if finite { *value } else { instead };
    }
    non_finite.into()
}

/// -log; how many had to be raised to [`SMALLEST_TRANSMISSION`] because they are at or below 0.
#[multiversion(targets("x86_64+avx2"))]
fn logarithms(values: &mut [f32]) -> u64 {
    let mut non_positive = 0u32;
    for value in values {
        non_positive += u32::from(*value <= 0.0);
        *value = -ln(if *value > SMALLEST_TRANSMISSION { *value } else { SMALLEST_TRANSMISSION });
    }
    non_positive.into()
}

/// Mean or median over all pages, pixel by pixel.
fn combine(stack: &Stack, how: &Combine) -> Result<Vec<f32>> {
    let halo = how.outliers.as_ref().map_or(0, Outliers::halo);
    let (width, height, frames) = (stack.width(), stack.height(), stack.len());
    let mut field = vec![0f32; width * height];
    field.par_chunks_mut(BAND * width).enumerate().try_for_each(|(band, out)| -> Result<()> {
        let rows = band * BAND..(band * BAND + out.len() / width);
        let read = super::widened(&rows, halo, height);
        let mut frame_rows = vec![0f32; frames * out.len()];
        let mut wide = vec![0f32; read.len() * width];
        for (frame, rows_out) in frame_rows.chunks_mut(out.len()).enumerate() {
            stack.read_rows(frame, read.clone(), &mut wide)?;
            let keep = rows.start - read.start..rows.end - read.start;
            if let Some(outliers) = &how.outliers {
                outliers.apply(&mut wide, width, keep.clone(), &keep);
            }
            rows_out.copy_from_slice(&wide[keep.start * width..keep.end * width]);
        }
        let mut column = vec![0f32; frames];
        for (pixel, value) in out.iter_mut().enumerate() {
            for (frame, v) in column.iter_mut().enumerate() {
                *v = frame_rows[frame * (rows.len() * width) + pixel];
            }
            *value = if how.median {
                median_of(&mut column)
            } else {
                (column.iter().map(|v| f64::from(*v)).sum::<f64>() / frames as f64) as f32
            };
        }
        Ok(())
    })?;
    Ok(field)
}

fn median_of(values: &mut [f32]) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) }
}

/// Place of a projection between the flats before and after the scan, 0 to 1.
fn progress(projection: usize, projections: usize) -> f32 {
    projection as f32 / projections.saturating_sub(1).max(1) as f32
}

/// What is done to every row on its way into a sinogram.
pub struct Correction {
    pub fields: Option<Fields>,
    pub minus_log: bool,
    pub clamped: Clamped,
}

impl Correction {
    /// Corrects one detector row (`row` of projection number `projection` of `projections`) in place.
    ///
    /// The result is finite whatever the input; what had to be replaced is counted.
    pub fn apply(&self, values: &mut [f32], row: usize, projection: usize, projections: usize) {
        let mut counts = self.transmission(values, row, projection, projections);
        counts.non_positive = self.logarithm(values);
        self.count(counts);
    }

    /// The part of [`apply`](Self::apply) before -log; what was replaced is returned instead of counted.
    pub fn transmission(&self, values: &mut [f32], row: usize, projection: usize, projections: usize) -> ClampedCounts {
        let mut counts = ClampedCounts::default();
        if let Some(fields) = &self.fields {
            fields.correct(values, row, progress(projection, projections), &mut counts);
        }
        let instead = if self.minus_log { 1.0 } else { 0.0 };
        counts.non_finite += finite(values, instead);
        counts
    }

    /// Whether a value is replaced: a count, or what stands for it, of a bin of `(row, projection, of so many projections)`.
    pub fn replaces(&self, count: f32, bin: usize, (row, projection, projections): (usize, usize, usize)) -> bool {
        let transmission = match &self.fields {
            Some(fields) => fields.transmission(count, row * fields.width + bin, progress(projection, projections)),
            None => Some(count),
        };
        transmission.is_none_or(|value| !value.is_finite() || self.minus_log && value <= 0.0)
    }

    /// Whether there are transmissions that -log is asked of and that have none.
    pub fn without_logarithm(&self, values: &[f32]) -> bool {
        // without a branch for every value, so that several are compared at once
        self.minus_log && values.iter().fold(false, |any, value| any | (*value <= 0.0))
    }

    /// -log in place if it is asked for; the number of values at or below 0 that were replaced.
    pub fn logarithm(&self, values: &mut [f32]) -> u64 {
        if self.minus_log { logarithms(values) } else { 0 }
    }

    /// Adds to what was replaced so far.
    pub fn count(&self, counts: ClampedCounts) {
        if counts.total() > 0 {
            self.clamped.add(counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(flat: &[f32], flat2: Option<&[f32]>, dark: &[f32]) -> Fields {
        let flat2 = flat2.map(<[f32]>::to_vec);
        Fields { width: flat.len(), flat: flat.to_vec(), flat2, dark: dark.to_vec(), fingerprint: String::new() }
    }

    #[test]
    fn transmission_and_log() {
        let correction = Correction {
            fields: Some(fields(&[110.0, 210.0], None, &[10.0, 10.0])),
            minus_log: true,
            clamped: Clamped::default(),
        };
        let mut row = [60.0, 110.0];
        correction.apply(&mut row, 0, 0, 1);
        assert!(row.iter().all(|v| (v - 2f32.ln()).abs() < 1e-6));
        assert_eq!(correction.clamped.counts(), ClampedCounts::default());
    }

    #[test]
    fn two_flat_sets_are_interpolated() {
        let correction = Correction {
            fields: Some(fields(&[100.0], Some(&[200.0]), &[0.0])),
            minus_log: false,
            clamped: Clamped::default(),
        };
        for (projection, expected) in [(0, 1.0), (2, 100.0 / 150.0), (4, 0.5)] {
            let mut row = [100.0];
            correction.apply(&mut row, 0, projection, 5);
            assert!((row[0] - expected).abs() < 1e-6, "{projection}");
        }
    }

    #[test]
    fn nothing_but_numbers_comes_out() {
        let correction = Correction {
            fields: Some(fields(&[10.0, 5.0, 100.0, 100.0, 100.0], None, &[10.0, 10.0, 10.0, 10.0, 10.0])),
            minus_log: true,
            clamped: Clamped::default(),
        };
        let mut row = [50.0, 50.0, 10.0, 5.0, f32::NAN];
        correction.apply(&mut row, 0, 0, 1);
        assert!(row.iter().all(|v| v.is_finite()));
        assert_eq!((row[0], row[1], row[4]), (0.0, 0.0, 0.0));
        assert!((row[2] - 13.8155).abs() < 1e-3 && row[2] == row[3]);
        let counts = correction.clamped.counts();
        assert_eq!((counts.dead, counts.non_positive, counts.non_finite), (2, 2, 1));
        assert_eq!(counts.total(), 5);
    }

    #[test]
    fn medians() {
        assert_eq!(median_of(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median_of(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}

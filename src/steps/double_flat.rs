//! Double flat field: transmissions are divided by what all projections have in common.

use super::errors::{FieldError, StepFlagError};
use super::logarithm::line_integral;
use super::transmissions::is_carried;
use super::{
    Band, Counts, Data, Ready, RowStep, RowSteps, SMALLEST_TRANSMISSION, Step, StepFlags, check_projections,
    may_have_transmissions, widened,
};
use crate::error::{Error, Result};
use crate::memory;
use crate::numbers::mirrored;
use crate::operations::RowCorrection;
use crate::spectrum::largest_value;
use crate::units::human;
use multiversion::multiversion;
use rayon::prelude::*;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The word for a mean from which nothing is left out.
const ALL: &str = "all";
/// Largest standard deviation of the Gaussian in pixels.
const MOST_SIGMA: f64 = 1000.0;
/// Number of standard deviations at which the Gaussian ends.
const GAUSSIAN_END: f64 = 4.0;
/// Bytes of the rows of projections that are read and corrected at once.
const BYTES_AT_ONCE: usize = 64 << 20;
/// Rows of all projections that a thread adds up, where rows are read apart from each other: few enough that fields, components and
/// sums of them stay in a processor's cache.
const ROWS_OF_THREAD: usize = 8;

/// The image that transmissions are divided by.
#[derive(Clone, Copy, Debug, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub enum DoubleFlat {
    /// The mean of the transmissions of all projections.
    Mean,
    /// What a Gaussian of this standard deviation, in pixels, leaves of the mean of their line integrals.
    HighPass(f64),
}

/// Formats the image as `--double-flat` takes it.
impl fmt::Display for DoubleFlat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DoubleFlat::Mean => f.write_str(ALL),
            DoubleFlat::HighPass(sigma) => sigma.fmt(f),
        }
    }
}

/// Reads the image as `--double-flat` takes it.
impl FromStr for DoubleFlat {
    type Err = Error;

    fn from_str(text: &str) -> Result<DoubleFlat> {
        match text.trim() {
            ALL => Ok(DoubleFlat::Mean),
            number => match number.parse() {
                Ok(sigma) if sigma > 0.0 && sigma <= MOST_SIGMA => Ok(DoubleFlat::HighPass(sigma)),
                _ => Err(StepFlagError::MalformedDoubleFlat { text: text.into(), most: MOST_SIGMA }.into()),
            },
        }
    }
}

impl DoubleFlat {
    /// Returns what transmissions are divided by, in words.
    pub fn in_words(self) -> String {
        match self {
            DoubleFlat::Mean => "the mean of all projections".to_owned(),
            DoubleFlat::HighPass(sigma) => format!(
                "the exponential of minus what a Gaussian of {sigma} pixels leaves of the mean line integrals of all projections"
            ),
        }
    }

    /// Returns the rows whose means make the image of some rows of a detector of `height` rows.
    pub(super) fn rows_for(self, rows: &Range<usize>, height: usize) -> Range<usize> {
        match self {
            DoubleFlat::Mean => rows.clone(),
            DoubleFlat::HighPass(sigma) => widened(rows, radius(sigma), height),
        }
    }

    /// Reports whether means are those of line integrals.
    pub(super) fn takes_log(self) -> bool {
        matches!(self, DoubleFlat::HighPass(_))
    }

    /// Makes the image of rows from the means over the projections of the rows `of`, of a detector of `height` rows.
    fn image(self, means: &[f64], of: &Range<usize>, rows: &Range<usize>, [bins, height]: [usize; 2]) -> Vec<f32> {
        match self {
            DoubleFlat::Mean => means.par_iter().map(|mean| divisor(*mean)).collect(),
            DoubleFlat::HighPass(sigma) => {
                let smooth = blurred(means, of, rows, [bins, height], sigma);
                let means = &means[(rows.start - of.start) * bins..];
                means.iter().zip(smooth).map(|(mean, smooth)| divisor((smooth - mean).exp())).collect()
            }
        }
    }
}

impl Step for Option<DoubleFlat> {
    fn flag(&self) -> &'static str {
        "double-flat"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let Some(text) = &args.steps.double_flat else { return Ok(None) };
        check_projections("double-flat", args)?;
        if !may_have_transmissions(args) {
            return Err(StepFlagError::DoubleFlatWithoutLight { flats: "--flats" }.into());
        }
        Ok(Some(text.0.parse()?))
    }

    fn value(&self) -> Option<String> {
        self.map(|double_flat| double_flat.to_string())
    }

    fn is_of_projections(&self) -> bool {
        self.is_some()
    }

    fn ready(&self, data: &Data, before: &RowSteps) -> Result<Option<Ready>> {
        let Some(double_flat) = *self else { return Ok(None) };
        let projections = &data.stacks.data;
        let (bins, height) = (projections.width(), projections.height());
        if !data.has_flats() && !data.minus_log {
            return Err(StepFlagError::DoubleFlatWithoutLight { flats: "flat fields" }.into());
        }
        let rows = data.rows.clone();
        let of = double_flat.rows_for(&rows, height);
        // the image of the detector, and what it is made of
        let needed = (4 * bins * height + 3 * 8 * bins * of.len()) as u64;
        let free = memory::available();
        if needed > free {
            let (needed, free) = (human(needed), human(free));
            return Err(FieldError::NoMemoryForMean { width: bins, height, needed, free }.into());
        }
        let means = match data.means {
            Some(means) => Cow::Borrowed(means),
            None => Cow::Owned(means(data, before, &of, double_flat.takes_log())?),
        };
        let mut image = vec![1f32; bins * height];
        image[rows.start * bins..rows.end * bins]
            .copy_from_slice(&double_flat.image(&means, &of, &rows, [bins, height])[..rows.len() * bins]);
        let (largest, minus_log) = (largest_value(bins, data.projections), data.minus_log);
        Ok(Some(Ready::Rows(Box::new(CommonPattern { image, largest, minus_log }))))
    }
}

/// Returns the means over all projections that are used, of transmissions or, for a high pass, of line integrals: in order,
/// in double precision, so that a mean depends on nothing but its pixel.
fn means(data: &Data, before: &RowSteps, rows: &Range<usize>, of_line_integrals: bool) -> Result<Vec<f64>> {
    let projections = &data.stacks.data;
    let (bins, height, all) = (projections.width(), projections.height(), projections.len());
    let threads = rayon::current_num_threads();
    // corrects rows of a projection in memory that it gets, and returns where they are
    let corrected = |p: usize, wanted: &Range<usize>, values: &mut Vec<f32>| -> Result<Range<usize>> {
        let read = widened(wanted, before.halo(), height);
        values.resize(read.len() * bins, 0.0);
        projections.read_rows(p, read.clone(), values)?;
        // the run counts what is replaced
        let mut band = Band { counted: 0..0, ..Band::new(values, height, read.clone(), wanted.clone()).of(p, all) };
        before.apply(&mut band, &mut Counts::default());
        if of_line_integrals {
            band.values_of(wanted).iter_mut().for_each(|value| *value = line_integral(*value));
        }
        Ok((wanted.start - read.start) * bins..(wanted.end - read.start) * bins)
    };
    let count = data.used.len() as f64;
    if projections.rows_are_apart() && before.halo() == 0 {
        // a thread has some rows of all projections, which stay in its cache
        let mut means = vec![0f64; rows.len() * bins];
        means.par_chunks_mut(ROWS_OF_THREAD * bins).enumerate().try_for_each(|(at, sums)| -> Result<()> {
            let first = rows.start + at * ROWS_OF_THREAD;
            let (wanted, mut values) = (first..first + sums.len() / bins, Vec::new());
            for &p in data.used {
                let at = corrected(p, &wanted, &mut values)?;
                add(sums, &values[at]);
            }
            sums.iter_mut().for_each(|sum| *sum /= count);
            Ok(())
        })?;
        return Ok(means);
    }
    let at_once = (BYTES_AT_ONCE / (4 * bins * threads)).saturating_sub(2 * before.halo()).max(1);
    let mut means = vec![0f64; rows.len() * bins];
    for (at, sums) in means.chunks_mut(at_once * bins).enumerate() {
        let first = rows.start + at * at_once;
        let wanted = first..first + sums.len() / bins;
        for some in data.used.chunks(threads) {
            let read = |&p: &usize| -> Result<(Vec<f32>, usize)> {
                let mut values = Vec::new();
                let at = corrected(p, &wanted, &mut values)?;
                Ok((values, at.start))
            };
            let read: Vec<(Vec<f32>, usize)> = some.par_iter().map(read).collect::<Result<_>>()?;
            sums.par_chunks_mut(bins).enumerate().for_each(|(row, sums)| {
                read.iter().for_each(|(values, first)| add(sums, &values[first + row * bins..][..bins]));
            });
        }
        sums.iter_mut().for_each(|sum| *sum /= count);
    }
    Ok(means)
}

// The following functions are also compiled for newer processors with wider vectors. Results are the same: rounding does
// not change.

#[multiversion(targets("x86_64+avx2"))]
fn add(sums: &mut [f64], values: &[f32]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value));
}

/// Divides values by an image. Those that become too large, or no number, are replaced by `instead`; returns their number.
#[multiversion(targets("x86_64+avx2"))]
fn divide(values: &mut [f32], image: &[f32], instead: f32, largest: f32) -> u64 {
    let mut replaced = 0u32;
    for (value, image) in values.iter_mut().zip(image) {
        let quotient = *value / image;
        let carried = is_carried(quotient, largest);
        replaced += u32::from(!carried);
        *value = if carried { quotient } else { instead };
    }
    replaced.into()
}

/// Returns what a mean divides by: 1 if there is no light.
fn divisor(mean: f64) -> f32 {
    let mean = mean as f32;
    if mean >= SMALLEST_TRANSMISSION && mean.is_finite() { mean } else { 1.0 }
}

/// Returns the number of pixels on either side at which a Gaussian ends.
fn radius(sigma: f64) -> usize {
    (GAUSSIAN_END * sigma + 0.5) as usize
}

/// Blurs an image of the rows `of` of a detector by a Gaussian along rows and columns, for some of its rows. The detector is
/// mirrored at its edges, with its outermost pixels twice.
fn blurred(image: &[f64], of: &Range<usize>, rows: &Range<usize>, [bins, height]: [usize; 2], sigma: f64) -> Vec<f64> {
    let reach = radius(sigma);
    let weight = |i: usize| (-0.5 * (i as f64 / sigma).powi(2)).exp();
    let sum = weight(0) + 2.0 * (1..=reach).map(weight).sum::<f64>();
    let weights: Vec<f64> = (0..=reach).map(|i| weight(i) / sum).collect();
    let line = |row: usize| &image[(row - of.start) * bins..(row - of.start + 1) * bins];
    let mut blurred = vec![0f64; rows.len() * bins];
    blurred.par_chunks_mut(bins).zip(rows.clone()).for_each(|(out, row)| {
        let mut along_columns = vec![0f64; bins];
        let at = |i: isize| line(mirrored(row as isize + i, height));
        for (i, weight) in (0..).zip(&weights) {
            let pair = if i == 0 { [Some(at(0)), None] } else { [Some(at(-i)), Some(at(i))] };
            for line in pair.into_iter().flatten() {
                along_columns.iter_mut().zip(line).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        let wide: Vec<f64> =
            (-(reach as isize)..(bins + reach) as isize).map(|i| along_columns[mirrored(i, bins)]).collect();
        for (i, weight) in weights.iter().enumerate() {
            let [before, after] = [&wide[reach - i..], &wide[reach + i..]];
            for ((sum, before), after) in out.iter_mut().zip(before).zip(after) {
                *sum += weight * if i == 0 { *before } else { before + after };
            }
        }
    });
    blurred
}

/// What all projections have in common, prepared.
struct CommonPattern {
    /// What transmissions are divided by, `[row][bin]` of the detector; 1 in rows that are not needed.
    image: Vec<f32>,
    /// Largest magnitude of a value that later steps can carry.
    largest: f32,
    /// True if -log follows.
    minus_log: bool,
}

impl RowStep for CommonPattern {
    fn apply(&self, band: &mut Band, counts: &mut Counts) {
        let (bins, counted) = (band.bins, band.counted.clone());
        let instead = if self.minus_log { 1.0 } else { 0.0 };
        for (row, line) in band.lines() {
            let replaced = divide(line, &self.image[row * bins..(row + 1) * bins], instead, self.largest);
            if counted.contains(&row) {
                counts.defects.add(row, replaced);
                counts.clamped.non_finite += replaced;
            }
        }
    }

    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        correction.divisor = Some(&self.image);
        true
    }
}

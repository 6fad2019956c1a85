//! Flat fields that change during a scan: the mean of the flats with weights of their principal components in every
//! projection.

mod blocks;
mod components;
mod symmetric;
mod variation;

use super::air_pixels::Air;
use super::errors::{FieldError, StepFlagError};
use super::transmissions::progress;
use super::{Band, Counts, Data, RowSteps, widened};
use crate::error::{Error, Result};
use crate::memory;
use crate::remark::Remark;
use crate::source::Stack;
use crate::units::human;
use blocks::PixelBlocks;
use components::{Deviations, FoundComponents};
use rayon::prelude::*;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use variation::ComponentBeam;

/// The word for as many components as are more than noise.
const AUTO: &str = "auto";
/// Largest number of components.
pub const MOST_COMPONENTS: usize = 16;
/// Bytes of frames that are read at once, unless one alone has more.
const BYTES_AT_ONCE: usize = 64 << 20;

/// The number of components of the flats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum EigenFlats {
    /// As many as parallel analysis takes for more than noise.
    Auto,
    Exactly(usize),
}

/// Formats the number as `--eigen-flats` takes it.
impl fmt::Display for EigenFlats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EigenFlats::Auto => f.write_str(AUTO),
            EigenFlats::Exactly(count) => count.fmt(f),
        }
    }
}

/// Reads the number as `--eigen-flats` takes it.
impl FromStr for EigenFlats {
    type Err = Error;

    fn from_str(text: &str) -> Result<EigenFlats> {
        match text.trim() {
            AUTO => Ok(EigenFlats::Auto),
            number => match number.parse() {
                Ok(count) if count <= MOST_COMPONENTS => Ok(EigenFlats::Exactly(count)),
                _ => Err(StepFlagError::MalformedEigenFlats { text: text.into(), most: MOST_COMPONENTS }.into()),
            },
        }
    }
}

/// The flats that components are those of: the frames before the scan, or the only ones, and after it, with their means.
#[derive(Clone, Copy)]
pub struct MeanFlats<'a> {
    pub first: (&'a Stack, &'a [f32]),
    pub second: Option<(&'a Stack, &'a [f32])>,
    /// The dark level that is subtracted.
    pub dark: &'a [f32],
}

/// Components of the beam, and their weights in the projections.
#[derive(Clone, Debug, Default)]
pub struct BeamComponents {
    /// Images `[component][row][bin]`.
    pub images: Vec<f32>,
    pub count: usize,
    /// Weights of every projection of the input, `[projection][component]`; 0 in those that are not used.
    pub weights: Vec<f32>,
}

impl BeamComponents {
    /// Returns the weights of a projection.
    pub fn of(&self, projection: usize) -> &[f32] {
        self.weights.get(projection * self.count..(projection + 1) * self.count).unwrap_or_default()
    }
}

impl EigenFlats {
    /// Finds the components of the flats, and their weights in all projections that are used.
    ///
    /// # Errors
    /// Errors of reading, and [`Error::Input`] for too few flats or too little memory.
    pub fn find(
        self,
        data: &Data,
        before: &RowSteps,
        flats: MeanFlats,
        remarks: &mut Vec<Remark>,
    ) -> Result<BeamComponents> {
        let found = self.components(data, before, flats)?;
        let count = found.factors.len();
        remarks.push(Remark::note(described(self, &found, data.air)));
        if count == 0 {
            return Ok(BeamComponents::default());
        }
        let (bins, height) = (data.stacks.data.width(), data.stacks.data.height());
        let needed = ((4 + 8) * count * bins * height) as u64;
        let free = memory::available();
        if needed > free {
            let (needed, free) = (human(needed), human(free));
            return Err(FieldError::NoMemoryForComponents { count, width: bins, height, needed, free }.into());
        }
        let images = images(data, before, flats, &found.factors)?;
        let weights = weights(data, before, flats, (&images, count))?;
        Ok(BeamComponents { images, count, weights })
    }

    /// Finds what the frames contribute to the components.
    fn components(self, data: &Data, before: &RowSteps, flats: MeanFlats) -> Result<FoundComponents> {
        let frames: usize = flats.sets().map(|(stack, _)| stack.len()).sum();
        let sets = flats.sets().count();
        // as many as there are frames, but for the mean of each set
        let most = frames - sets.min(frames);
        if let EigenFlats::Exactly(count) = self
            && count > most
        {
            return Err(FieldError::TooFewFlats { title: flats.first.0.title(), frames, count, most }.into());
        }
        let blocks = PixelBlocks::new(data.stacks.data.width(), data.stacks.data.height());
        let mut reduced = Vec::with_capacity(frames);
        flats.each_frame(data, before, |frames| {
            reduced.extend(frames.into_par_iter().map(|frame| Deviations::reduced(&frame, blocks)).collect::<Vec<_>>());
        })?;
        let count = match self {
            EigenFlats::Auto => None,
            EigenFlats::Exactly(count) => Some(count),
        };
        Ok(Deviations { frames: reduced }.components(count, most.min(MOST_COMPONENTS)))
    }
}

impl<'a> MeanFlats<'a> {
    fn sets(self) -> impl Iterator<Item = (&'a Stack, &'a [f32])> {
        [Some(self.first), self.second].into_iter().flatten()
    }

    /// Passes on all frames in order, some at a time: what they differ by from the mean of their set, and 0 where the beam is not
    /// above the dark level.
    fn each_frame(self, data: &Data, before: &RowSteps, mut take: impl FnMut(Vec<Vec<f32>>)) -> Result<()> {
        for (stack, mean) in self.sets() {
            let frames: Vec<usize> = (0..stack.len()).collect();
            for some in frames.chunks(at_once(stack.width() * stack.height())) {
                let deviation = |&frame: &usize| -> Result<Vec<f32>> {
                    let mut values = corrected(stack, before, frame, &(0..stack.height()), data)?;
                    for ((value, mean), dark) in values.iter_mut().zip(mean).zip(self.dark) {
                        let deviation = *value - mean;
                        *value = if mean > dark && deviation.is_finite() { deviation } else { 0.0 };
                    }
                    Ok(values)
                };
                take(some.par_iter().map(deviation).collect::<Result<_>>()?);
            }
        }
        Ok(())
    }

    /// Returns the mean beam of a pixel without the dark level, at a part of the scan.
    fn beam(&self, at: usize, progress: f32) -> f64 {
        let (first, second) = (self.first.1[at], self.second.map_or(self.first.1[at], |(_, mean)| mean[at]));
        f64::from(first) + f64::from(progress) * f64::from(second - first) - f64::from(self.dark[at])
    }
}

/// Returns how many frames of so many pixels are read at once.
fn at_once(pixels: usize) -> usize {
    (BYTES_AT_ONCE / (4 * pixels).max(1)).clamp(1, rayon::current_num_threads())
}

/// Reads rows of a frame, with the steps before.
fn corrected(stack: &Stack, before: &RowSteps, frame: usize, wanted: &Range<usize>, data: &Data) -> Result<Vec<f32>> {
    let (bins, height) = (stack.width(), stack.height());
    let read = widened(wanted, before.halo(), height);
    let mut values = vec![0f32; read.len() * bins];
    stack.read_rows(frame, read.clone(), &mut values)?;
    let mut band = Band::new(&mut values, height, read, wanted.clone()).of(frame, data.stacks.data.len());
    before.apply(&mut band, &mut Counts::default());
    Ok(band.values_of(wanted).to_vec())
}

/// Returns the images of the components, summed in double precision in the order of the frames.
fn images(data: &Data, before: &RowSteps, flats: MeanFlats, factors: &[Vec<f64>]) -> Result<Vec<f32>> {
    let pixels = data.stacks.data.width() * data.stacks.data.height();
    let mut sums = vec![0f64; factors.len() * pixels];
    let mut number = 0;
    flats.each_frame(data, before, |frames| {
        for frame in &frames {
            sums.par_chunks_mut(pixels).zip(factors).for_each(|(sums, factors)| {
                let factor = factors[number];
                sums.iter_mut().zip(frame).for_each(|(sum, value)| *sum += factor * f64::from(*value));
            });
            number += 1;
        }
    })?;
    Ok(sums.into_iter().map(|sum| sum as f32).collect())
}

/// Returns the weights of the components in every projection.
fn weights(data: &Data, before: &RowSteps, flats: MeanFlats, (images, count): (&[f32], usize)) -> Result<Vec<f32>> {
    let projections = &data.stacks.data;
    let (bins, height, all) = (projections.width(), projections.height(), projections.len());
    let pixels = bins * height;
    data.air.map_or(Ok(()), |air| air.check(bins, height))?;
    let blocks = PixelBlocks::new(bins, height);
    let reduced: Vec<Vec<f64>> =
        images.par_chunks(pixels).map(|image| blocks.means(|at| f64::from(image[at]))).collect();
    // rows that are read, and the pixels of them that are air
    let rows = match data.air {
        Some(Air::Region(region)) => region.y..region.y + region.height,
        _ => 0..height,
    };
    let is_air = |at: usize| match data.air {
        Some(Air::Region(region)) => (region.x..region.x + region.width).contains(&(at % bins)),
        Some(Air::Sides(left, right)) => at % bins < left || at % bins + right >= bins,
        None => false,
    };
    let lit = |at: usize, progress: f32| flats.beam(at, progress) > 0.0;
    let of_projection = |&p: &usize| -> Result<Vec<f64>> {
        let progress = progress(p, all);
        let counts = corrected(projections, before, p, &rows, data)?;
        let first = rows.start * bins;
        let count_of = |at: usize| match counts[at - first] - flats.dark[at] {
            count if count.is_finite() => f64::from(count),
            _ => 0.0,
        };
        if data.air.is_some() {
            let air: Vec<usize> = (first..rows.end * bins).filter(|&at| is_air(at) && lit(at, progress)).collect();
            let of = |image: &[f32]| air.iter().map(|&at| f64::from(image[at])).collect();
            let mean = air.iter().map(|&at| flats.beam(at, progress)).collect();
            let beam = ComponentBeam { mean, components: images.chunks(pixels).map(of).collect() };
            return Ok(beam.nearest_to_air(&air.iter().map(|&at| count_of(at)).collect::<Vec<_>>()));
        }
        // a block with a pixel that has no light has none
        let beam = |at: usize| if lit(at, progress) { flats.beam(at, progress) } else { f64::NEG_INFINITY };
        let beam = ComponentBeam { mean: blocks.means(beam), components: reduced.clone() };
        Ok(beam.least_variation(&blocks.means(count_of), blocks.width()))
    };
    let mut weights = vec![0f32; all * count];
    for some in data.used.chunks(at_once(rows.len() * bins)) {
        let found: Vec<Vec<f64>> = some.par_iter().map(of_projection).collect::<Result<_>>()?;
        for (p, found) in some.iter().zip(found) {
            weights[p * count..(p + 1) * count]
                .iter_mut()
                .zip(found)
                .for_each(|(weight, found)| *weight = found as f32);
        }
    }
    Ok(weights)
}

/// Describes the components.
fn described(wanted: EigenFlats, found: &FoundComponents, air: Option<Air>) -> String {
    let by = if wanted == EigenFlats::Auto { " by parallel analysis" } else { "" };
    let how = if air.is_some() { "the air of --normalize-air" } else { "least total variation" };
    let shares: Vec<String> = found.shares.iter().map(|share| format!("{:.1} %", 100.0 * share)).collect();
    match shares.as_slice() {
        [] => format!("--eigen-flats: no component of the flats{by}, so that their mean is used"),
        shares => format!(
            "--eigen-flats: components of the flats{by}: {} with {} of their variance, weights by {how}",
            shares.len(),
            shares.join(", ")
        ),
    }
}

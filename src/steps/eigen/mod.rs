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
const BYTES_AT_ONCE: usize = 256 << 20;
/// Pixels that a thread adds to an image.
const PIXELS_OF_THREAD: usize = 1 << 16;

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

    /// Returns the mean beam of a pixel without the dark level, before and after the scan; `None` if it is not above 0 in both.
    fn beam(&self, at: usize) -> Option<(f64, f64)> {
        let above = |mean: &[f32]| f64::from(mean[at]) - f64::from(self.dark[at]);
        let (first, second) = (above(self.first.1), above(self.second.map_or(self.first.1, |(_, mean)| mean)));
        (first > 0.0 && second > 0.0).then_some((first, second))
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
                let parts = sums.par_chunks_mut(PIXELS_OF_THREAD).zip(frame.par_chunks(PIXELS_OF_THREAD));
                parts.for_each(|(sums, frame)| {
                    sums.iter_mut().zip(frame).for_each(|(sum, value)| *sum += factor * f64::from(*value));
                });
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
    data.air.map_or(Ok(()), |air| air.check(bins, height))?;
    let beam = match data.air {
        Some(air) => SampledBeam::of_air(air, bins, height, flats, images),
        None => SampledBeam::of_blocks(PixelBlocks::new(bins, height), flats, images, bins * height),
    };
    let whole = !projections.rows_are_apart() || before.halo() > 0;
    let rows = beam.rows();
    let of_projection = |&p: &usize| -> Result<Vec<f64>> {
        let read = match whole {
            true => corrected(projections, before, p, &(rows[0]..rows[rows.len() - 1] + 1), data)?,
            false => {
                let of_row = |&row: &usize| corrected(projections, before, p, &(row..row + 1), data);
                rows.iter().map(of_row).collect::<Result<Vec<_>>>()?.concat()
            }
        };
        let place = |number: usize| if whole { rows[number] - rows[0] } else { number };
        let counts = (0..rows.len()).map(|number| &read[place(number) * bins..(place(number) + 1) * bins]);
        Ok(beam.weights(counts, flats.dark, progress(p, all)))
    };
    let threads = rayon::current_num_threads();
    let some = match at_once(bins * if whole { height } else { rows.len() }) {
        some if some < threads => some,
        _ => data.used.len().max(1),
    };
    let mut weights = vec![0f32; all * count];
    for some in data.used.chunks(some) {
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

/// The beam and its components where projections are compared with them.
struct SampledBeam {
    places: Places,
    /// The mean beam before the scan, and what it has become after it, without the dark level; below 0 where there is no light.
    mean: Vec<(f64, f64)>,
    components: Vec<Vec<f64>>,
}

/// Where projections are compared with the beam.
enum Places {
    Blocks(PixelBlocks),
    /// Pixels of air, by rows: the row, and the bins.
    Air(Vec<(usize, Vec<usize>)>),
}

impl SampledBeam {
    /// Returns the means over blocks. A block with a pixel that has no light has none.
    fn of_blocks(blocks: PixelBlocks, flats: MeanFlats, images: &[f32], pixels: usize) -> SampledBeam {
        let mean = |of: fn((f64, f64)) -> f64| blocks.means(|at| flats.beam(at).map_or(f64::NEG_INFINITY, of));
        let mean = mean(|(first, _)| first).into_iter().zip(mean(|(_, second)| second)).collect();
        let of = |image: &[f32]| blocks.means(|at| f64::from(image[at]));
        SampledBeam { places: Places::Blocks(blocks), mean, components: images.par_chunks(pixels).map(of).collect() }
    }

    /// Returns the pixels of air that have light.
    fn of_air(air: Air, bins: usize, height: usize, flats: MeanFlats, images: &[f32]) -> SampledBeam {
        let lit = |row: usize| {
            (0..bins).filter(|&bin| air.has(bin, bins) && flats.beam(row * bins + bin).is_some()).collect()
        };
        let pixels: Vec<(usize, Vec<usize>)> = air.rows(height).map(|row| (row, lit(row))).collect();
        let places = || pixels.iter().flat_map(|(row, of_row)| of_row.iter().map(move |bin| row * bins + bin));
        let mean = places().filter_map(|at| flats.beam(at)).collect();
        let of = |image: &[f32]| places().map(|at| f64::from(image[at])).collect();
        let components = images.chunks(bins * height).map(of).collect();
        SampledBeam { places: Places::Air(pixels), mean, components }
    }

    /// Returns the rows of a projection that are needed, in order.
    fn rows(&self) -> Vec<usize> {
        match &self.places {
            Places::Blocks(blocks) => blocks.rows(),
            Places::Air(pixels) => pixels.iter().map(|(row, _)| *row).collect(),
        }
    }

    /// Returns the weights of a projection: `counts` are its needed rows, `progress` is its place between the flats.
    fn weights<'a>(&self, counts: impl Iterator<Item = &'a [f32]>, dark: &[f32], progress: f32) -> Vec<f64> {
        let now = |&(first, second): &(f64, f64)| match first > 0.0 && second > 0.0 {
            true => first + f64::from(progress) * (second - first),
            false => f64::NEG_INFINITY,
        };
        let beam = ComponentBeam { mean: self.mean.iter().map(now).collect(), components: &self.components };
        match &self.places {
            Places::Blocks(blocks) => beam.least_variation(&blocks.means_above(counts, dark), blocks.width()),
            Places::Air(pixels) => {
                let above = |(row, (number, bins)): (&'a [f32], &(usize, Vec<usize>))| {
                    let dark = &dark[number * row.len()..];
                    bins.iter().map(|&bin| row[bin] - dark[bin]).collect::<Vec<_>>()
                };
                let air = counts.zip(pixels).flat_map(above);
                let air: Vec<f64> = air.map(|count| if count.is_finite() { f64::from(count) } else { 0.0 }).collect();
                beam.nearest_to_air(&air)
            }
        }
    }
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

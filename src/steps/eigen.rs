//! Flat fields that change during a scan: the mean of the flats with weights of their principal components in every
//! projection.

use super::air_pixels::Air;
use super::errors::{FieldError, StepFlagError};
use super::transmissions::progress;
use super::{Band, Counts, Data, RowSteps, widened};
use crate::error::{Error, Result};
use crate::flat_fields::blocks::PixelBlocks;
use crate::flat_fields::components::{Deviations, FoundComponents};
use crate::flat_fields::variation::{AirBeam, BeamResolutions, mean_at};
use crate::memory;
use crate::remark::Remark;
use crate::source::Stack;
use crate::units::human;
use multiversion::multiversion;
use rayon::prelude::*;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The word for as many components as are more than noise.
const AUTO: &str = "auto";
/// Largest number of components.
pub const MOST_COMPONENTS: usize = 16;
/// Bytes of frames that are read at once, unless one alone has more.
const BYTES_AT_ONCE: usize = 256 << 20;
/// Rows of all frames that a thread adds up.
const ROWS_OF_THREAD: usize = 8;

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
        for (stack, mean) in flats.sets() {
            let reader = RowReader { stack, before, all: data.stacks.data.len() };
            let of_frame = |&frame: &usize| {
                let rows = reader.open(frame, &blocks.range())?;
                blocks.means_above(mean, |range, values| {
                    rows.read(range.clone(), values)?;
                    flats.without_light(mean, range, values);
                    Ok(())
                })
            };
            let frames: Vec<usize> = (0..stack.len()).collect();
            for some in frames.chunks(reader.at_once()) {
                reduced.extend(some.par_iter().map(of_frame).collect::<Result<Vec<_>>>()?);
            }
        }
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

    /// Replaces values of some rows by the mean where the beam is not above the dark level, or values are no number.
    fn without_light(self, mean: &[f32], rows: Range<usize>, values: &mut [f32]) {
        let first = rows.start * (values.len() / rows.len().max(1));
        let of_beam = mean[first..].iter().zip(&self.dark[first..]);
        for (value, (mean, dark)) in values.iter_mut().zip(of_beam) {
            *value = if mean > dark && value.is_finite() { *value } else { *mean };
        }
    }

    /// Returns the mean beam of a pixel without the dark level, before and after the scan; `None` if it is not above 0 in both.
    fn beam(&self, at: usize) -> Option<(f32, f32)> {
        let above = |mean: &[f32]| mean[at] - self.dark[at];
        let (first, second) = (above(self.first.1), above(self.second.map_or(self.first.1, |(_, mean)| mean)));
        (first > 0.0 && second > 0.0).then_some((first, second))
    }
}

/// Reads rows of frames, with the steps before.
#[derive(Clone, Copy)]
struct RowReader<'a> {
    stack: &'a Stack,
    before: &'a RowSteps,
    /// Number of projections of the scan.
    all: usize,
}

/// Rows of a frame: in memory where some take as long to read as all, or other rows decide about them.
struct OpenFrame<'a> {
    reader: RowReader<'a>,
    frame: usize,
    /// The rows that are in memory, with their values.
    held: Option<(Range<usize>, Vec<f32>)>,
}

impl<'a> RowReader<'a> {
    /// Reports whether frames are held in memory.
    fn holds_frames(self) -> bool {
        !self.stack.rows_are_apart() || self.before.halo() > 0
    }

    /// Returns how many frames are in memory at a time.
    fn at_once(self) -> usize {
        let bytes = 4 * self.stack.width() * self.stack.height();
        match self.holds_frames() {
            true => (BYTES_AT_ONCE / bytes.max(1)).clamp(1, rayon::current_num_threads()),
            false => usize::MAX,
        }
    }

    /// Prepares to read some of the rows of a frame.
    fn open(self, frame: usize, rows: &Range<usize>) -> Result<OpenFrame<'a>> {
        let mut opened = OpenFrame { reader: self, frame, held: None };
        if self.holds_frames() {
            let mut values = vec![0f32; rows.len() * self.stack.width()];
            opened.read(rows.clone(), &mut values)?;
            opened.held = Some((rows.clone(), values));
        }
        Ok(opened)
    }
}

impl OpenFrame<'_> {
    /// Reads some rows.
    fn read(&self, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let RowReader { stack, before, all } = self.reader;
        let bins = stack.width();
        if let Some((held, values)) = &self.held {
            out.copy_from_slice(&values[(rows.start - held.start) * bins..(rows.end - held.start) * bins]);
            return Ok(());
        }
        let read = widened(&rows, before.halo(), stack.height());
        let mut wider = if read == rows { Vec::new() } else { vec![0f32; read.len() * bins] };
        let values = if wider.is_empty() { &mut *out } else { &mut wider[..] };
        stack.read_rows(self.frame, read.clone(), values)?;
        let mut band = Band::new(values, stack.height(), read.clone(), rows.clone()).of(self.frame, all);
        before.apply(&mut band, &mut Counts::default());
        if !wider.is_empty() {
            out.copy_from_slice(&wider[(rows.start - read.start) * bins..(rows.end - read.start) * bins]);
        }
        Ok(())
    }
}

/// Returns the images of the components, summed in double precision in the order of the frames.
fn images(data: &Data, before: &RowSteps, flats: MeanFlats, factors: &[Vec<f64>]) -> Result<Vec<f32>> {
    let (bins, height) = (data.stacks.data.width(), data.stacks.data.height());
    let bands: Vec<Range<usize>> =
        (0..height).step_by(ROWS_OF_THREAD).map(|first| first..(first + ROWS_OF_THREAD).min(height)).collect();
    // for each band `[component][row][bin]`
    let mut sums: Vec<Vec<f64>> = vec![Vec::new(); bands.len()];
    let mut number = 0;
    for (stack, mean) in flats.sets() {
        let reader = RowReader { stack, before, all: data.stacks.data.len() };
        let frames: Vec<usize> = (0..stack.len()).collect();
        for some in frames.chunks(reader.at_once()) {
            let opened = some.par_iter().map(|&frame| reader.open(frame, &(0..height)));
            let opened = opened.collect::<Result<Vec<OpenFrame>>>()?;
            bands.par_iter().zip(&mut sums).try_for_each(|(rows, sums)| -> Result<()> {
                let mut values = vec![0f32; rows.len() * bins];
                sums.resize(factors.len() * values.len(), 0.0);
                for (frame, number) in opened.iter().zip(number..) {
                    frame.read(rows.clone(), &mut values)?;
                    flats.without_light(mean, rows.clone(), &mut values);
                    let mean = &mean[rows.start * bins..rows.end * bins];
                    for (sums, factors) in sums.chunks_mut(values.len()).zip(factors) {
                        add_deviations(sums, &values, mean, factors[number]);
                    }
                }
                Ok(())
            })?;
            number += some.len();
        }
    }
    let mut images = vec![0f32; factors.len() * height * bins];
    for (component, image) in images.chunks_mut(height * bins).enumerate() {
        image.par_chunks_mut(ROWS_OF_THREAD * bins).zip(&sums).for_each(|(image, sums)| {
            let sums = &sums[component * image.len()..];
            image.iter_mut().zip(sums).for_each(|(value, sum)| *value = *sum as f32);
        });
    }
    Ok(images)
}

/// Adds what values differ by from their mean. Also compiled for newer processors with wider vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn add_deviations(sums: &mut [f64], values: &[f32], mean: &[f32], factor: f64) {
    for ((sum, value), mean) in sums.iter_mut().zip(values).zip(mean) {
        *sum += factor * f64::from(value - mean);
    }
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
    let (reader, range) = (RowReader { stack: projections, before, all }, beam.range());
    let of_projection = |&p: &usize| -> Result<Vec<f64>> {
        let rows = reader.open(p, &range)?;
        beam.weights(|range, values| rows.read(range, values), flats.dark, progress(p, all))
    };
    let mut weights = vec![0f32; all * count];
    for some in data.used.chunks(reader.at_once()) {
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
enum SampledBeam {
    Blocks {
        blocks: PixelBlocks,
        beam: BeamResolutions,
    },
    Air {
        /// The pixels that have light, by rows: the row, and the bins.
        pixels: Vec<(usize, Vec<usize>)>,
        bins: usize,
        /// The mean beam before the scan, and what it has become after it, without the dark level.
        means: Vec<(f64, f64)>,
        components: Vec<Vec<f64>>,
    },
}

impl SampledBeam {
    /// Returns the means over blocks. A block with a pixel that has no light has none.
    fn of_blocks(blocks: PixelBlocks, flats: MeanFlats, images: &[f32], pixels: usize) -> SampledBeam {
        let mean = |of: fn((f32, f32)) -> f32| blocks.means(|at| flats.beam(at).map_or(f32::NEG_INFINITY, of));
        let means = [mean(|(first, _)| first), mean(|(_, second)| second)];
        let components = images.chunks(pixels).map(|image| blocks.means(|at| image[at])).collect();
        SampledBeam::Blocks { blocks, beam: BeamResolutions::new(blocks.width(), means, components) }
    }

    /// Returns the pixels of air that have light.
    fn of_air(air: Air, bins: usize, height: usize, flats: MeanFlats, images: &[f32]) -> SampledBeam {
        let lit = |row: usize| {
            (0..bins).filter(|&bin| air.has(bin, bins) && flats.beam(row * bins + bin).is_some()).collect()
        };
        let pixels: Vec<(usize, Vec<usize>)> = air.rows(height).map(|row| (row, lit(row))).collect();
        let places = || pixels.iter().flat_map(|(row, of_row)| of_row.iter().map(move |bin| row * bins + bin));
        let double = |(first, second): (f32, f32)| (f64::from(first), f64::from(second));
        let means = places().filter_map(|at| flats.beam(at).map(double)).collect();
        let of = |image: &[f32]| places().map(|at| f64::from(image[at])).collect();
        let components = images.chunks(bins * height).map(of).collect();
        SampledBeam::Air { pixels, bins, means, components }
    }

    /// Returns the range of the rows of a projection that are needed.
    fn range(&self) -> Range<usize> {
        match self {
            SampledBeam::Blocks { blocks, .. } => blocks.range(),
            SampledBeam::Air { pixels, .. } => {
                pixels.first().map_or(0..0, |(first, _)| *first..pixels[pixels.len() - 1].0 + 1)
            }
        }
    }

    /// Returns the weights of a projection: `read` reads some of its rows, `progress` is its place between the flats.
    fn weights(
        &self,
        mut read: impl FnMut(Range<usize>, &mut [f32]) -> Result<()>,
        dark: &[f32],
        progress: f32,
    ) -> Result<Vec<f64>> {
        let progress = f64::from(progress);
        match self {
            SampledBeam::Blocks { blocks, beam } => Ok(beam.least_variation(blocks.means_above(dark, read)?, progress)),
            SampledBeam::Air { pixels, bins, means, components } => {
                let (mut air, mut counts) = (Vec::with_capacity(means.len()), vec![0f32; *bins]);
                for (row, of_row) in pixels {
                    read(*row..row + 1, &mut counts)?;
                    let above = of_row.iter().map(|&bin| counts[bin] - dark[row * bins + bin]);
                    air.extend(above.map(|count| if count.is_finite() { f64::from(count) } else { 0.0 }));
                }
                let mean = means.iter().map(|&(first, second)| mean_at(first, second, progress)).collect();
                Ok(AirBeam { mean, components }.nearest(&air))
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

//! Flat and dark field correction: from detector counts to transmissions.

use super::beam::level;
use super::eigen::{BeamComponents, EigenFlats, MeanFlats};
use super::errors::{FieldError, StepFlagError, StepWarning};
use super::transmissions::{add_component, divided, finite, is_carried, mean_beam, progress, transmissions};
use super::{Band, Counts, Data, Ready, Repairs, RowStep, RowSteps, Step, StepFlags, widened};
use crate::error::Result;
use crate::memory;
use crate::operations::{FieldImages, RowCorrection};
use crate::remark::{Doubt, DoubtKind, Remark};
use crate::source::{FieldMode, Stack, Stacks};
use crate::spectrum::largest_value;
use crate::units::human;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Parameters of the field correction, if there are fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldCorrection {
    /// Factor on the dark field, for darks with another exposure time.
    #[serde(rename = "dark-scale")]
    pub dark_scale: Option<f32>,
    /// Components of the flats that change from projection to projection.
    #[serde(rename = "eigen-flats", default, skip_serializing_if = "Option::is_none")]
    pub eigen: Option<EigenFlats>,
}

impl Step for FieldCorrection {
    fn flag(&self) -> &'static str {
        "dark-scale"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let eigen = args.steps.eigen_flats.as_ref().map(|text| text.0.parse()).transpose()?;
        if eigen.is_some() && args.input.flats.is_none() && args.input.hdf5_spec().is_none() {
            return Err(StepFlagError::EigenWithoutFlats.into());
        }
        if eigen.is_some() && args.input.field_mode == Some(FieldMode::Median) {
            return Err(StepFlagError::EigenOfMedian.into());
        }
        let Some(scale) = args.steps.dark_scale else { return Ok(FieldCorrection { dark_scale: None, eigen }) };
        // the contents of an HDF5 file are not known yet
        if args.input.darks.is_none() && args.input.hdf5_spec().is_none() {
            return Err(StepFlagError::ScaleWithoutDarks.into());
        }
        if !(0.0..=1e6).contains(&scale) {
            return Err(StepFlagError::ScaleOutside { scale }.into());
        }
        Ok(FieldCorrection { dark_scale: Some(scale as f32), eigen })
    }

    fn value(&self) -> Option<String> {
        self.dark_scale.map(|scale| scale.to_string())
    }

    fn describe(&self, data: &Data) -> Option<String> {
        let scaled = self.dark_scale.map(|scale| format!(" (darks times {scale})")).unwrap_or_default();
        let eigen = self.eigen.map(|count| format!(" with eigen flats {count}")).unwrap_or_default();
        data.stacks.flats.as_ref().map(|_| format!("flat and dark fields{scaled}{eigen}"))
    }

    fn is_of_projections(&self) -> bool {
        self.eigen.is_some()
    }

    fn ready(&self, data: &Data, before: &RowSteps) -> Result<Option<Ready>> {
        if self.eigen.is_some() && data.stacks.flats.is_none() {
            return Err(StepFlagError::EigenWithoutFlats.into());
        }
        if self.dark_scale.is_some() && data.stacks.darks.is_none() {
            return Err(StepFlagError::NoDarkFields.into());
        }
        let mut remarks = Vec::new();
        let fields = Fields::read(data, before, &mut remarks)?;
        let mut fields = fields.map(|fields| fields.with_dark_scale(self.dark_scale.unwrap_or(1.0)));
        if let Some(fields) = &mut fields {
            fields.expect_beam(data.stacks, self.dark_scale)?;
            if let Some(eigen) = self.eigen {
                fields.components = fields.found(eigen, data, before, &mut remarks)?;
            }
        }
        let Data { minus_log, images, .. } = *data;
        let (saturation, later) = (data.stacks.data.sample().largest(), minus_log && images);
        let largest = largest_value(data.stacks.data.width(), data.projections);
        Ok(Some(Ready::Rows(Box::new(Transmission { fields, minus_log, later, saturation, largest, remarks }))))
    }
}

/// Converts counts to finite transmissions; without fields the data already are transmissions or line integrals, and
/// are only made finite. Values that the filter cannot carry count as not finite.
struct Transmission {
    fields: Option<Fields>,
    /// True if -log follows.
    minus_log: bool,
    /// True if other steps precede -log, so that it is not known here which values have none.
    later: bool,
    /// Largest count of the sample type.
    saturation: Option<f32>,
    /// Remarks to the user about the fields.
    remarks: Vec<Remark>,
    /// Largest magnitude of a value that the filter and back-projection carry.
    largest: f32,
}

impl RowStep for Transmission {
    fn apply(&self, band: &mut Band, counts: &mut Counts) {
        let Band { bins, projection, watched, .. } = *band;
        let of = (projection, progress(projection, band.projections));
        let counted = band.counted.clone();
        let mut before = Vec::new();
        for (row, line) in band.lines() {
            if watched {
                before.clear();
                before.extend_from_slice(line);
            }
            let dead = self.fields.as_ref().map_or(0, |fields| fields.correct(line, row, of, self.largest));
            let non_finite = finite(line, if self.minus_log { 1.0 } else { 0.0 }, self.largest);
            if !counted.contains(&row) {
                continue;
            }
            counts.clamped.dead += dead;
            counts.clamped.non_finite += non_finite;
            counts.defects.add(row, dead + non_finite);
            if self.minus_log {
                counts.beam.add(projection, level(line));
            }
            if self.minus_log && line.iter().all(|value| *value <= 0.0) {
                counts.unlit.insert(projection);
            }
            if watched && (dead + non_finite > 0 || self.without_logarithm(line)) {
                counts.defects.add_bins(row, bins, |bin| self.replaces(before[bin], row, bin, of));
            }
        }
    }

    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        correction.fields = self.fields.as_ref().map(Fields::images);
        if let Some(fields) = &self.fields {
            let used = correction.projections.iter();
            correction.weights = used.flat_map(|state| fields.components.of(state.number).to_vec()).collect();
        }
        correction.saturation = self.saturation.filter(|_| self.fields.is_some());
        correction.largest = self.largest;
        true
    }

    fn found(&self, repairs: &mut Repairs) {
        if let (Some(fields), Some(largest)) = (&self.fields, self.saturation) {
            repairs.saturated_flats = fields.saturated(largest);
        }
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.clone()
    }

    fn expect_light(&self, rows: &[usize]) -> Result<()> {
        self.fields.as_ref().map_or(Ok(()), |fields| fields.expect_light(rows))
    }
}

impl Transmission {
    /// Reports whether a count of a bin of a row, or the value in its place, is replaced.
    fn replaces(&self, count: f32, row: usize, bin: usize, of: (usize, f32)) -> bool {
        let transmission = match &self.fields {
            Some(fields) => fields.transmission(count, row * fields.width + bin, of, self.largest),
            None => Some(count),
        };
        transmission
            .is_none_or(|value| !is_carried(value, self.largest) || self.minus_log && !self.later && value <= 0.0)
    }

    /// Reports whether -log follows at once and some transmissions have no logarithm.
    fn without_logarithm(&self, values: &[f32]) -> bool {
        // without a branch per value, so that the loop vectorises
        self.minus_log && !self.later && values.iter().fold(false, |any, value| any | (*value <= 0.0))
    }
}

/// Flat and dark fields of a detector, `height * width` values each, row-major.
struct Fields {
    width: usize,
    flat: Vec<f32>,
    flat2: Option<Vec<f32>>,
    dark: Vec<f32>,
    components: BeamComponents,
}

/// Number of rows that are averaged together.
const BAND: usize = 16;

impl Fields {
    fn images(&self) -> FieldImages<'_> {
        let Fields { flat, flat2, dark, components, .. } = self;
        FieldImages { flat, flat2: flat2.as_deref(), dark, components: &components.images }
    }

    /// Returns the number of pixels of the flat fields with at least `counts` counts.
    fn saturated(&self, counts: f32) -> u64 {
        let all = self.flat.iter().chain(self.flat2.iter().flatten());
        all.filter(|&&value| value >= counts).count() as u64
    }

    /// Reads and combines the fields, if there are flats, after applying the steps `before` to their frames, which must
    /// have the size of the projections. Without darks the dark level is 0.
    fn read(data: &Data, before: &RowSteps, remarks: &mut Vec<Remark>) -> Result<Option<Fields>> {
        let Stacks { data: projections, flats, flats2, darks, .. } = data.stacks;
        let Some(flats) = flats else { return Ok(None) };
        let (width, height) = (projections.width(), projections.height());
        // a header of a few bytes can claim any size
        let needed = 4 * (2 + u64::from(flats2.is_some())) * (width * height) as u64;
        let free = memory::available();
        if needed > free {
            let (flats, needed, free) = (flats.title(), human(needed), human(free));
            return Err(FieldError::NoMemory { flats, width, height, needed, free }.into());
        }
        let field = |stack: &Stack| -> Result<CombinedField> {
            if (stack.width(), stack.height()) != (width, height) {
                let (bins, rows) = (width, height);
                let (stack, width, height) = (stack.title(), stack.width(), stack.height());
                return Err(FieldError::OtherSize { stack, width, height, bins, rows }.into());
            }
            combine(stack, data.median, before)
        };
        let flat = field(flats)?;
        let flat2 = flats2.as_ref().map(field).transpose()?;
        let dark = darks.as_ref().map(field).transpose()?;
        let frames = FieldFrames { flats: Some((flats, &flat)), darks: darks.as_ref().zip(dark.as_ref()) };
        remarks.extend(frames.doubts(data.median));
        if let (Some(stack), Some(flat2)) = (flats2, &flat2) {
            let after = FieldFrames { flats: Some((stack, flat2)), darks: None };
            remarks.extend(after.doubts(data.median));
        }
        let dark = dark.map_or_else(|| vec![0.0; flat.values.len()], |dark| dark.values);
        let (flat2, components) = (flat2.map(|flat| flat.values), BeamComponents::default());
        Ok(Some(Fields { width, flat: flat.values, flat2, dark, components }))
    }

    /// Finds the components of the flats and their weights in the projections.
    fn found(
        &self,
        eigen: EigenFlats,
        data: &Data,
        before: &RowSteps,
        remarks: &mut Vec<Remark>,
    ) -> Result<BeamComponents> {
        let Some(first) = &data.stacks.flats else { return Ok(BeamComponents::default()) };
        let second = data.stacks.flats2.as_ref().zip(self.flat2.as_deref());
        eigen.find(data, before, MeanFlats { first: (first, &self.flat), second, dark: &self.dark }, remarks)
    }

    /// Rejects flats whose mean is not above that of the darks.
    fn expect_beam(&self, stacks: &Stacks, dark_scale: Option<f32>) -> Result<()> {
        let (flat, dark) = (level_of(&self.flat), level_of(&self.dark));
        let flat = self.flat2.as_ref().map_or(flat, |after| flat.min(level_of(after)));
        let (Some(flats), true) = (&stacks.flats, flat <= dark) else { return Ok(()) };
        let flats = flats.title();
        let darks = stacks.darks.as_ref().map_or("no dark fields".to_owned(), Stack::title);
        Err(match dark_scale {
            None => FieldError::NotBrighter { flats, flat, darks, dark }.into(),
            Some(scale) => FieldError::NotBrighterThanScaled { flats, flat, darks, dark, scale }.into(),
        })
    }

    /// Rejects rows if the flats are not above the darks in more than half of their pixels.
    fn expect_light(&self, rows: &[usize]) -> Result<()> {
        let of_row = |row: usize| row * self.width..(row + 1) * self.width;
        let dead = |at: usize| {
            let after = self.flat2.as_ref().map_or(self.flat[at], |flat| flat[at]);
            self.flat[at] <= self.dark[at] && after <= self.dark[at]
        };
        let rows = rows.iter().filter(|&&row| (row + 1) * self.width <= self.flat.len());
        let (dead, all) =
            rows.flat_map(|&row| of_row(row)).fold((0u64, 0u64), |(sum, all), at| (sum + u64::from(dead(at)), all + 1));
        if 2 * dead <= all {
            return Ok(());
        }
        Err(FieldError::NoLight { dead, all }.into())
    }

    /// Returns the fields with the dark level multiplied by `scale`, for darks with another exposure time.
    fn with_dark_scale(mut self, scale: f32) -> Self {
        self.dark.iter_mut().for_each(|dark| *dark *= scale);
        self
    }

    /// Converts detector row `row` of a projection to transmissions in place. `progress` in 0..=1 is its position
    /// between the flats before and after the scan; a beam of more than `largest` counts as no light. Returns the
    /// number of bins without light in the flat field.
    fn correct(&self, values: &mut [f32], row: usize, (projection, progress): (usize, f32), largest: f32) -> u64 {
        let at = row * self.width..(row + 1) * self.width;
        let (flat, dark) = (&self.flat[at.clone()], &self.dark[at.clone()]);
        let flat2 = self.flat2.as_ref().map_or(flat, |f| &f[at.clone()]);
        let weights = self.components.of(projection);
        if weights.is_empty() {
            return transmissions(values, flat, flat2, progress, dark, largest);
        }
        let mut beam = vec![0f32; values.len()];
        mean_beam(&mut beam, flat, flat2, progress, dark);
        for (image, weight) in self.components.images.chunks(self.flat.len()).zip(weights) {
            add_component(&mut beam, &image[at.clone()], *weight);
        }
        divided(values, &beam, dark, largest)
    }

    /// Returns the transmission of one count, as computed by `correct`; `None` if the flat is not above the dark.
    fn transmission(&self, count: f32, at: usize, (projection, progress): (usize, f32), largest: f32) -> Option<f32> {
        let (first, dark) = (self.flat[at], self.dark[at]);
        let second = self.flat2.as_ref().map_or(first, |flat| flat[at]);
        let images = self.components.images.chunks(self.flat.len());
        let beam = images
            .zip(self.components.of(projection))
            .fold(first + progress * (second - first) - dark, |beam, (image, weight)| beam + weight * image[at]);
        (beam > 0.0 && beam <= largest).then(|| (count - dark) / beam)
    }
}

/// Returns the mean of finite values; 0 if there are none.
fn level_of(values: &[f32]) -> f64 {
    let (sum, count) = sum_of(values);
    sum / count.max(1) as f64
}

/// Returns sum and number of finite values.
fn sum_of(values: &[f32]) -> (f64, u64) {
    let finite = values.iter().filter(|value| value.is_finite());
    finite.fold((0.0, 0), |(sum, count), &value| (sum + f64::from(value), count + 1))
}

/// A field that was combined from several frames.
struct CombinedField {
    values: Vec<f32>,
    /// Mean of every frame.
    levels: Vec<f64>,
}

/// Stacks of flats and darks, with the fields that were combined from them.
#[derive(Clone, Copy)]
struct FieldFrames<'a> {
    flats: Option<(&'a Stack, &'a CombinedField)>,
    darks: Option<(&'a Stack, &'a CombinedField)>,
}

/// Largest number of frames that a message names.
const NAMED: usize = 4;

impl FieldFrames<'_> {
    /// Returns remarks on frames whose level is far from that of the others, unless a median leaves them out.
    fn doubts(&self, median: bool) -> Vec<Remark> {
        let levels = |frames: Option<(&Stack, &CombinedField)>| frames.map(|(_, field)| field.levels.clone());
        let (flats, darks) = (levels(self.flats).unwrap_or_default(), levels(self.darks).unwrap_or_default());
        let doubt = |frames: Option<(&Stack, &CombinedField)>, (odd, usual): (Vec<usize>, f64)| {
            let (stack, field) = frames?;
            if odd.is_empty() || median && 2 * odd.len() < field.levels.len() {
                return None;
            }
            let named = odd.iter().take(NAMED);
            let names: Vec<String> =
                named.map(|&i| format!("frame {i} ({}, {:.1})", stack.page_name(i), field.levels[i])).collect();
            let more = if odd.len() > NAMED { " and others" } else { "" };
            let frames = names.join(", ") + more;
            let odd = StepWarning::OddFrames { stack: stack.title(), frames, usual };
            Some(Remark::from(Doubt::of(DoubtKind::OddField, &odd)))
        };
        let beam = (bright(&flats) - dim(&darks)).abs();
        [
            doubt(self.flats, odd(&flats, bright(&flats), ODD_FLAT * beam)),
            doubt(self.darks, odd(&darks, dim(&darks), ODD_DARK * beam)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Share of the beam by which the mean of a flat may differ from that of the others. Beams change from frame to frame.
const ODD_FLAT: f64 = 0.3;
/// Share of the beam by which the mean of a dark may differ from that of the others. Dark levels hardly change.
const ODD_DARK: f64 = 0.05;

/// Returns the median level of flats; of two in the middle the higher one, as a closed shutter is more likely than too
/// much light.
fn bright(levels: &[f64]) -> f64 {
    let mut sorted = levels.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the median level of darks; of two in the middle the lower one.
fn dim(levels: &[f64]) -> f64 {
    let negative: Vec<f64> = levels.iter().map(|level| -level).collect();
    -bright(&negative)
}

/// Returns the frames whose level is more than `most` away from the `usual` one, and the usual level.
fn odd(levels: &[f64], usual: f64, most: f64) -> (Vec<usize>, f64) {
    ((0..levels.len()).filter(|&i| (levels[i] - usual).abs() > most).collect(), usual)
}

/// Returns the mean or median over all pages, pixel by pixel, after applying the steps `before` to the frames.
fn combine(stack: &Stack, median: bool, before: &RowSteps) -> Result<CombinedField> {
    let (width, height, frames) = (stack.width(), stack.height(), stack.len());
    let mut field = vec![0f32; width * height];
    let bands = field.par_chunks_mut(BAND * width).enumerate().map(|(band, out)| -> Result<Vec<(f64, u64)>> {
        let rows = band * BAND..(band * BAND + out.len() / width);
        let read = widened(&rows, before.halo(), height);
        let mut frame_rows = vec![0f32; frames * out.len()];
        let mut wide = vec![0f32; read.len() * width];
        for (frame, rows_out) in frame_rows.chunks_mut(out.len()).enumerate() {
            stack.read_rows(frame, read.clone(), &mut wide)?;
            let mut band = Band::new(&mut wide, height, read.clone(), rows.clone());
            before.apply(&mut band, &mut Counts::default());
            rows_out.copy_from_slice(band.values_of(&rows));
        }
        let mut column = vec![0f32; frames];
        for (pixel, value) in out.iter_mut().enumerate() {
            for (frame, v) in column.iter_mut().enumerate() {
                *v = frame_rows[frame * (rows.len() * width) + pixel];
            }
            *value = if median {
                median_of(&mut column)
            } else {
                (column.iter().map(|v| f64::from(*v)).sum::<f64>() / frames as f64) as f32
            };
        }
        Ok(frame_rows.chunks(rows.len() * width).map(sum_of).collect())
    });
    // in order, as rounding depends on it
    let sums = bands.collect::<Result<Vec<_>>>()?.into_iter().fold(vec![(0.0, 0); frames], |mut all, band| {
        all.iter_mut().zip(band).for_each(|(all, (sum, count))| *all = (all.0 + sum, all.1 + count));
        all
    });
    let levels = sums.into_iter().map(|(sum, count)| sum / count.max(1) as f64).collect();
    Ok(CombinedField { values: field, levels })
}

fn median_of(values: &mut [f32]) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) }
}

#[cfg(test)]
mod tests {
    use super::super::defects::Defects;
    use super::super::logarithm::MinusLog;
    use super::super::{BeamLevels, ClampedCounts};
    use super::*;

    const LARGEST: f32 = 1e28;

    fn fields(flat: &[f32], flat2: Option<&[f32]>, dark: &[f32]) -> Option<Fields> {
        let flat2 = flat2.map(<[f32]>::to_vec);
        let components = BeamComponents::default();
        Some(Fields { width: flat.len(), flat: flat.to_vec(), flat2, dark: dark.to_vec(), components })
    }

    /// Returns the corrected row of projection `projection` of `projections`, and the counts of replaced values.
    fn corrected(
        fields: Option<Fields>,
        minus_log: bool,
        row: &[f32],
        projection: usize,
        projections: usize,
    ) -> (Vec<f32>, Counts) {
        let mut values = row.to_vec();
        let mut counts = Counts::default();
        let mut band = Band { projection, projections, ..Band::new(&mut values, 1, 0..1, 0..1) };
        let (saturation, largest, remarks) = (None, LARGEST, Vec::new());
        Transmission { fields, minus_log, later: false, saturation, largest, remarks }.apply(&mut band, &mut counts);
        if minus_log {
            MinusLog.apply(&mut band, &mut counts);
        }
        (values, counts)
    }

    #[test]
    fn transmission_and_log() {
        let fields = fields(&[110.0, 210.0], None, &[10.0, 10.0]);
        let (row, counts) = corrected(fields, true, &[60.0, 110.0], 0, 1);
        assert!(row.iter().all(|v| (v - 2f32.ln()).abs() < 1e-6));
        assert_eq!(counts.clamped, ClampedCounts::default());
        // half of the light
        let mut half = BeamLevels::default();
        half.add(0, 2048);
        assert_eq!(counts.beam, half);
    }

    #[test]
    fn bins_are_replaced_only_where_their_logarithm_is_taken() {
        for later in [false, true] {
            let fields = fields(&[110.0, 110.0, 5.0], None, &[10.0; 3]);
            let mut values = [5.0, 60.0, 60.0];
            let mut counts = Counts::default();
            let mut band = Band { watched: true, ..Band::new(&mut values, 1, 0..1, 0..1) };
            let (saturation, largest, remarks) = (None, LARGEST, Vec::new());
            let step = Transmission { fields, minus_log: true, later, saturation, largest, remarks };
            step.apply(&mut band, &mut counts);
            // a filter follows, which may leave none at or below 0: that is counted after it
            let failing = Defects::new(&[0], 3).failing_bins(&counts.defects, &[]);
            assert_eq!(failing, if later { vec![(0, 2)] } else { vec![(0, 0), (0, 2)] });
        }
    }

    #[test]
    fn odd_frames_are_those_far_from_the_usual_level() {
        let flats = |levels: &[f64]| odd(levels, bright(levels), ODD_FLAT * 20000.0).0;
        let darks = |levels: &[f64]| odd(levels, dim(levels), ODD_DARK * 20000.0).0;
        assert_eq!(flats(&[20100.0, 19000.0, 20500.0, 100.0, 22000.0]), [3]);
        assert_eq!((flats(&[20100.0, 100.0]), flats(&[100.0, 20100.0])), (vec![1], vec![0]));
        assert_eq!(darks(&[100.0, 103.0, 20100.0, 2000.0, 98.0]), [2, 3]);
        assert_eq!((darks(&[100.0, 20100.0]), darks(&[100.0])), (vec![1], vec![]));
        assert!(flats(&[]).is_empty() && flats(&[20100.0, 16000.0, 18000.0]).is_empty());
    }

    #[test]
    fn two_flat_sets_are_interpolated() {
        for (projection, expected) in [(0, 1.0), (2, 100.0 / 150.0), (4, 0.5)] {
            let (row, _) = corrected(fields(&[100.0], Some(&[200.0]), &[0.0]), false, &[100.0], projection, 5);
            assert!((row[0] - expected).abs() < 1e-6, "{projection}");
        }
    }

    #[test]
    fn nothing_but_numbers_comes_out() {
        let fields = fields(&[10.0, 5.0, 100.0, 100.0, 100.0], None, &[10.0; 5]);
        let (row, counts) = corrected(fields, true, &[50.0, 50.0, 10.0, 5.0, f32::NAN], 0, 1);
        assert!(row.iter().all(|v| v.is_finite()));
        assert_eq!((row[0], row[1], row[4]), (0.0, 0.0, 0.0));
        assert!((row[2] - 13.8155).abs() < 1e-3 && row[2] == row[3]);
        let counts = counts.clamped;
        assert_eq!((counts.dead, counts.non_positive, counts.non_finite), (2, 2, 1));
        assert_eq!(counts.total(), 5);
    }

    #[test]
    fn what_the_filter_cannot_carry_is_not_finite() {
        let no_data = [f32::MAX, f32::MIN, 3.4e38, -1e38, 1.01e28, -1.01e28, f32::INFINITY, f32::NAN, f64::MAX as f32];
        let carried = [1e28, -1e28, 1.0, 0.5];
        let row = [&no_data[..], &carried].concat();
        let (got, counts) = corrected(None, false, &row, 0, 1);
        assert_eq!(got[..no_data.len()], [0.0; 9]);
        assert_eq!(got[no_data.len()..], carried);
        assert_eq!(counts.clamped.non_finite, 9);
        let (got, counts) = corrected(None, true, &row, 0, 1);
        assert!(got[..no_data.len()].iter().all(|value| *value == 0.0), "no attenuation: {got:?}");
        assert_eq!((counts.clamped.non_finite, counts.clamped.non_positive), (9, 1));
        // the quotient counts, and a flat or dark field without data is no light
        let huge = 3.4e38;
        let of = fields(&[2.0, 2e-30, huge, -huge, 2.0, 2.0, 1e28], None, &[1.0, 0.0, 1.0, 1.0, huge, -huge, 0.0]);
        let (got, counts) = corrected(of, true, &[huge, 1.0, 1.0, 1.0, 1.0, 1.0, 1e28], 0, 1);
        assert!(got.iter().all(|value| *value == 0.0), "{got:?}");
        assert_eq!((counts.clamped.non_finite, counts.clamped.dead, counts.clamped.non_positive), (2, 4, 0));
        let of = fields(&[1.0, huge], Some(&[huge, -huge]), &[0.0, 0.0]);
        let (got, counts) = corrected(of, false, &[1.0, 1.0], 1, 3);
        assert!(got == [1.0, 1.0] && counts.clamped.dead == 2, "{got:?} {counts:?}");
    }

    #[test]
    fn medians() {
        assert_eq!(median_of(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median_of(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}

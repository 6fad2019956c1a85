//! Correction of beam intensity changes between projections: transmissions are divided by those of an air region.

use super::air_pixels::Air;
use super::errors::StepFlagError;
use super::{Band, Counts, Data, Ready, RowStep, RowSteps, Step, StepFlags, may_have_transmissions, widened};
use crate::error::Result;
use crate::geometry::Roi;
use crate::operations::{AirCorrection, RowCorrection};
use crate::remark::Remark;
use multiversion::multiversion;
use rayon::prelude::*;

impl Step for Option<Air> {
    fn flag(&self) -> &'static str {
        "normalize-air"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let Some(text) = &args.steps.normalize_air else { return Ok(None) };
        if !may_have_transmissions(args) {
            return Err(StepFlagError::AirWithoutLight { flats: "--flats" }.into());
        }
        match (text.0.parse()?, &args.input.sinograms) {
            (Air::Region(_), Some(_)) => Err(StepFlagError::AirRegionOfSinograms.into()),
            (air, _) => Ok(Some(air)),
        }
    }

    fn value(&self) -> Option<String> {
        self.map(|air| air.to_string())
    }

    fn ready(&self, data: &Data, before: &RowSteps) -> Result<Option<Ready>> {
        let Some(air) = *self else { return Ok(None) };
        let projections = &data.stacks.data;
        if !data.has_flats() && !data.minus_log {
            return Err(StepFlagError::AirWithoutLight { flats: "flat fields" }.into());
        }
        air.check(projections.width(), projections.height())?;
        let step: Box<dyn RowStep> = match air {
            Air::Sides(left, right) => Box::new(AirSides { left, right }),
            Air::Region(region) => Box::new(AirLevels { levels: levels(region, data, before)?, remarks: Vec::new() }),
        };
        Ok(Some(Ready::Rows(step)))
    }
}

/// Returns the mean transmission of a region in every projection; 1 if there is no light, so that the projection does
/// not change.
fn levels(region: Roi, data: &Data, before: &RowSteps) -> Result<Vec<f64>> {
    let projections = &data.stacks.data;
    let (bins, height) = (projections.width(), projections.height());
    let wanted = region.y..region.y + region.height;
    let read = widened(&wanted, before.halo(), height);
    let level = |p: usize| -> Result<f64> {
        let mut rows = vec![0f32; read.len() * bins];
        projections.read_rows(p, read.clone(), &mut rows)?;
        let mut band = Band::new(&mut rows, height, read.clone(), wanted.clone()).of(p, projections.len());
        before.apply(&mut band, &mut Counts::default());
        let mut values = Vec::with_capacity(region.width * region.height);
        for (_, line) in band.lines() {
            values.extend_from_slice(&line[region.x..region.x + region.width]);
        }
        Ok(mean(&values).filter(|level| *level > 0.0).unwrap_or(1.0))
    };
    (0..projections.len()).into_par_iter().map(level).collect()
}

/// [`Air::Sides`], prepared.
struct AirSides {
    left: usize,
    right: usize,
}

impl RowStep for AirSides {
    fn apply(&self, band: &mut Band, _: &mut Counts) {
        band.lines().for_each(|(_, line)| normalize_sides(line, self.left, self.right));
    }

    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        correction.air = AirCorrection::Sides(self.left, self.right);
        true
    }
}

/// Division by a level of every projection: [`Air::Region`], prepared, or the current of the beam.
pub(super) struct AirLevels {
    pub levels: Vec<f64>,
    /// Remarks to the user about the levels.
    pub remarks: Vec<Remark>,
}

impl RowStep for AirLevels {
    fn apply(&self, band: &mut Band, _: &mut Counts) {
        let level = self.level(band.projection);
        band.lines().for_each(|(_, line)| divide(line, level));
    }

    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        correction.air = AirCorrection::Levels;
        correction.projections.iter_mut().for_each(|state| state.level = self.level(state.number));
        true
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.clone()
    }
}

/// Divides values by a level. Also compiled for newer processors with wider vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn divide(values: &mut [f32], level: f32) {
    values.iter_mut().for_each(|value| *value /= level);
}

impl AirLevels {
    fn level(&self, projection: usize) -> f32 {
        self.levels.get(projection).copied().unwrap_or(1.0) as f32
    }
}

/// Divides a row of transmissions by the line through the means of its `left` and `right` outermost bins, each at the
/// middle of its bins; by one mean if the other side has no bins. A row without light in these bins does not change.
fn normalize_sides(row: &mut [f32], left: usize, right: usize) {
    let bins = row.len();
    let level = |values: &[f32]| mean(values).filter(|level| *level > 0.0);
    let (start, end) = match (left, right) {
        (0, _) => (level(&row[bins - right..]), level(&row[bins - right..])),
        (_, 0) => (level(&row[..left]), level(&row[..left])),
        _ => (level(&row[..left]), level(&row[bins - right..])),
    };
    if let (Some(start), Some(end)) = (start, end) {
        let from = (left as f64 - 1.0) / 2.0;
        let span = (bins as f64 - 1.0 - (right as f64 - 1.0) / 2.0 - from).max(1.0);
        let (start, change) = (start as f32, (end - start) as f32);
        let (from, per_bin) = (from as f32, (1.0 / span) as f32);
        for (bin, value) in (0i32..).zip(row) {
            // clamped, so that the level stays between the two means
            let share = ((bin as f32 - from) * per_bin).clamp(0.0, 1.0);
            *value /= start + share * change;
        }
    }
}

/// Returns the mean, if it is finite.
fn mean(values: &[f32]) -> Option<f64> {
    let sum = values.iter().map(|v| f64::from(*v)).sum::<f64>();
    Some(sum / values.len() as f64).filter(|mean| mean.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sloping_beam_becomes_even() {
        let bins = 101;
        let beam = |b: usize| 0.8 + 0.004 * b as f64;
        let sample = |b: usize| if (40..60).contains(&b) { 0.3 } else { 1.0 };
        let make = || (0..bins).map(|b| (beam(b) * sample(b)) as f32).collect::<Vec<f32>>();
        let mut row = make();
        normalize_sides(&mut row, 11, 5);
        let error = |row: &[f32], b: usize| (f64::from(row[b]) - sample(b)).abs();
        assert!((5..99).all(|b| error(&row, b) < 1e-6), "between the middles the slope is known");
        assert!((0..bins).all(|b| error(&row, b) < 0.03));
        let mut one_sided = make();
        normalize_sides(&mut one_sided, 1, 0);
        assert!((one_sided[0] - 1.0).abs() < 1e-6 && (f64::from(one_sided[100]) - 1.5).abs() < 1e-6);
    }

    #[test]
    fn no_light_changes_nothing() {
        let mut row = [0.0, 0.0, 0.5, 0.0];
        normalize_sides(&mut row, 2, 1);
        assert_eq!(row, [0.0, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn regions_must_fit() {
        assert!(Air::Sides(3, 5).check(8, 1).is_ok());
        assert!(Air::Sides(usize::MAX, 5).check(8, 1).is_err());
        assert!(Air::Region(Roi { x: 2, y: 3, width: 6, height: 2 }).check(8, 5).is_ok());
        let message = Air::Region(Roi { x: 2, y: 4, width: 6, height: 2 }).check(8, 5).unwrap_err().to_string();
        assert!(message.contains("--normalize-air"), "{message}");
    }
}

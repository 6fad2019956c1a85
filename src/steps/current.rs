//! Correction of the current of a storage ring: transmissions are divided by what the beam had of that of the flats.

use super::air::AirLevels;
use super::errors::{FieldError, StepFlagError};
use super::transmissions::progress;
use super::{Data, Ready, RowSteps, Step, StepFlags, check_projections, may_have_transmissions};
use crate::error::Result;
use crate::remark::Remark;
use crate::source::{BeamCurrents, CurrentSource};
use std::ops::RangeInclusive;

/// Currents of projections that are possible, in parts of that of the flats.
const POSSIBLE: RangeInclusive<f64> = 1e-6..=1e6;

impl Step for Option<CurrentSource> {
    fn flag(&self) -> &'static str {
        "beam-current"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let Some(text) = &args.steps.beam_current else { return Ok(None) };
        check_projections("beam-current", args)?;
        if !may_have_transmissions(args) {
            return Err(StepFlagError::CurrentWithoutLight { flats: "--flats" }.into());
        }
        Ok(Some(CurrentSource::of(&text.0, args.input.hdf5_spec().is_some())))
    }

    fn value(&self) -> Option<String> {
        self.map(|source| source.to_string())
    }

    fn describe(&self, data: &Data) -> Option<String> {
        (*self)?;
        Some(data.stacks.currents.as_ref()?.title.trim_start_matches("--").to_owned())
    }

    fn ready(&self, data: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        if self.is_none() {
            return Ok(None);
        }
        let Some(currents) = &data.stacks.currents else { return Err(StepFlagError::NoDatasets.into()) };
        if !data.has_flats() && !data.minus_log {
            return Err(StepFlagError::CurrentWithoutLight { flats: "flat fields" }.into());
        }
        let title = &currents.title;
        let remarks = match currents.flats {
            Some(_) => Vec::new(),
            None => vec![Remark::note(format!(
                "{title} says nothing of the flats: projections are scaled to the mean of their own currents, {}",
                currents.mean()
            ))],
        };
        Ok(Some(Ready::Rows(Box::new(AirLevels { levels: levels(currents, data)?, remarks }))))
    }
}

/// Returns the current of every projection in parts of that of the flats, interpolated between those before and after the scan
/// as they are, or of the mean; 1 for projections that are not used.
fn levels(currents: &BeamCurrents, data: &Data) -> Result<Vec<f64>> {
    let count = data.stacks.data.len();
    let first = currents.flats.unwrap_or_else(|| currents.mean());
    let last = currents.flats2.filter(|_| data.stacks.flats2.is_some()).unwrap_or(first);
    let mut levels = vec![1.0; count];
    for &projection in data.used {
        let title = currents.title.clone();
        let current = currents.projections.get(projection).copied().unwrap_or(f64::NAN);
        if !(current > 0.0 && current.is_finite()) {
            return Err(FieldError::NoCurrent { title, projection, current }.into());
        }
        let of_flats = first + f64::from(progress(projection, count)) * (last - first);
        let level = current / of_flats;
        if !POSSIBLE.contains(&level) {
            return Err(FieldError::OddCurrent { title, projection, current, of_flats }.into());
        }
        levels[projection] = level;
    }
    Ok(levels)
}

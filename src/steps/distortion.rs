//! Correction of the distortion by the optics of a detector, in one interpolation with that of a tilt.

use super::errors::{DistortionError, StepFlagError};
use super::optics::{Optics, UnseenPixels};
use super::{Band, Counts, Data, Ready, RowStep, RowSteps, Step, StepFlags, Tilt, check_projections};
use crate::error::{Error, Result};
use crate::memory;
use crate::operations::RowCorrection;
use crate::remark::Remark;
use crate::resampling::{ImageRows, PlaceTable};
use crate::source::{DistortionMap, Stacks, distortion_files};
use crate::units::human;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// A distortion of projections, which files say; the correction looks up where each pixel was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distortion {
    #[serde(rename = "distortion")]
    pub form: DistortionForm,
    #[serde(rename = "distortion-beyond")]
    pub beyond: BeyondDetector,
}

/// What the files contain.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DistortionForm {
    /// The centre and coefficients of a radial polynomial.
    Coefficients,
    /// Positions along x and along y.
    Positions,
}

impl DistortionForm {
    /// Returns the form in words.
    pub fn in_words(self) -> &'static str {
        match self {
            DistortionForm::Coefficients => "a radial polynomial of given coefficients",
            DistortionForm::Positions => "given positions of the pixels",
        }
    }

    /// Returns what was done, as a sentence.
    pub fn sentence(self) -> String {
        format!("The distortion by the optics was corrected by {}.", self.in_words())
    }
}

/// What is done for pixels that were seen nowhere.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum BeyondDetector {
    /// The run is refused.
    Refuse,
    /// The outermost pixels are repeated.
    Repeat,
}

impl Step for Option<Distortion> {
    fn flag(&self) -> &'static str {
        "distortion"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let Some(text) = &args.steps.distortion else { return Ok(None) };
        check_projections("distortion", args)?;
        let (files, repeat) = distortion_files(&text.0);
        let form = match files.as_slice() {
            [file] if !file.is_empty() => DistortionForm::Coefficients,
            [x, y] if !x.is_empty() && !y.is_empty() => DistortionForm::Positions,
            _ => return Err(StepFlagError::MalformedDistortion { text: text.0.clone() }.into()),
        };
        let beyond = if repeat { BeyondDetector::Repeat } else { BeyondDetector::Refuse };
        Ok(Some(Distortion { form, beyond }))
    }

    fn value(&self) -> Option<String> {
        self.map(|Distortion { form, beyond }| match beyond {
            BeyondDetector::Refuse => form.to_string(),
            BeyondDetector::Repeat => format!("{form},{beyond}"),
        })
    }

    fn describe(&self, data: &Data) -> Option<String> {
        let Distortion { beyond, .. } = (*self)?;
        let title = data.stacks.distortion.as_ref()?.title();
        let repeat = if beyond == BeyondDetector::Repeat { ",repeat" } else { "" };
        Some(format!("{}{repeat}", title.trim_start_matches("--")))
    }

    fn halo(&self, optics: &Optics) -> usize {
        optics.places.as_ref().map_or(0, |places| places.halo)
    }

    fn in_blocks(&self) -> bool {
        self.is_some()
    }

    fn ready(&self, data: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        let Some(places) = &data.optics.places else { return Ok(None) };
        let remarks = data.optics.beyond.map(|pixels| pixels.note()).into_iter().collect();
        Ok(Some(Ready::Rows(Box::new(Undistorted { places: Arc::clone(places), remarks }))))
    }
}

impl Distortion {
    /// Returns the optics whose distortion is corrected together with a tilt.
    ///
    /// # Errors
    /// [`Error::Usage`] for a map of another detector, or one that asks for what the detector did not see.
    pub fn optics(self, stacks: &Stacks, tilt: Option<Tilt>) -> Result<Optics> {
        let Some(map) = &stacks.distortion else { return Err(Error::Internal("no distortion was read".into())) };
        let (size, by) = ([stacks.data.width(), stacks.data.height()], stacks.data.binning().by);
        let flag = map.title();
        if let Some([width, height]) = map.size().filter(|of_map| of_map.map(|length| length / by) != size) {
            let [bins, rows] = size.map(|length| length * by);
            return Err(DistortionError::OtherDetector { flag, width, height, bins, rows }.into());
        }
        if map.is_identity() {
            return Ok(Optics::of(size));
        }
        let (needed, free) = (PlaceTable::BYTES * (size[0] * size[1]) as u64, memory::available());
        if needed > free {
            let (needed, free) = (human(needed), human(free));
            return Err(DistortionError::NoMemory { flag, needed, free }.into());
        }
        let seen = |position: [f64; 2]| seen(map, by, position);
        let beyond = UnseenPixels::of(size, seen);
        if let Some(UnseenPixels { count, all, farthest }) = beyond
            && (self.beyond == BeyondDetector::Refuse || !farthest.is_finite())
        {
            let [bins, rows] = size;
            return Err(DistortionError::Beyond { flag, count, all, farthest, bins, rows }.into());
        }
        let table = match tilt {
            None => PlaceTable::new(size, seen),
            Some(tilt) => {
                let tilted = tilt.positions(size);
                PlaceTable::new(size, |position| seen(tilted(position)))
            }
        };
        Ok(Optics { places: Some(Arc::new(table)), beyond, ..Optics::of(size) })
    }
}

/// Returns where a position was seen, in pixels of `by` x `by` of the detector's.
fn seen(map: &DistortionMap, by: usize, position: [f64; 2]) -> [f64; 2] {
    let (by, middle) = (by as f64, (by as f64 - 1.0) / 2.0);
    map.at(position.map(|at| by * at + middle)).map(|at| (at - middle) / by)
}

/// Projections without distortion, by the positions of their pixels in those that the detector saw.
pub struct Undistorted {
    pub places: Arc<PlaceTable>,
    pub remarks: Vec<Remark>,
}

impl RowStep for Undistorted {
    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        correction.images.map_halo = Some(self.places.halo);
        correction.places = &self.places.places;
        true
    }

    fn apply(&self, band: &mut Band, _: &mut Counts) {
        let mut upright = vec![0f32; band.rows.len() * band.bins];
        let image = ImageRows { values: band.values, size: [band.bins, band.height], read: &band.read };
        image.resample(&band.rows, &mut upright, |bin, row| self.places.of(bin, row));
        let rows = band.rows.clone();
        band.values_of(&rows).copy_from_slice(&upright);
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binned_pixels_are_seen_as_those_of_the_detector() {
        let map = DistortionMap::radial([40.0, 30.0], vec![1.01, 0.0, -1e-5]);
        // the middle of the pixels 63 to 65, and 15 to 17
        let [x, z] = seen(&map, 3, [21.0, 5.0]);
        let [wide_x, wide_z] = map.at([64.0, 16.0]);
        assert!((3.0 * x + 1.0 - wide_x).abs() < 1e-12 && (3.0 * z + 1.0 - wide_z).abs() < 1e-12);
        assert_eq!(seen(&map, 1, [21.0, 5.0]), map.at([21.0, 5.0]));
    }
}

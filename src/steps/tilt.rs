//! Correction of a detector that is rotated about the beam: projections are rotated back.

use super::errors::StepFlagError;
use super::optics::Optics;
use super::{Band, Counts, Data, Ready, RowStep, RowSteps, Step, StepFlags, check_projections};
use crate::cli::StepArgs;
use crate::error::Result;
use crate::geometry::default_axis;
use crate::operations::{RotationForm, RowCorrection};
use crate::resampling::{ImageRows, Neighbours, REACH};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Largest rotation of the detector in degrees, in either direction.
const MAX_TILT: f64 = 10.0;

/// The rotation of projections about their middle, with cubic convolution (R. Keys, 1981, a = -1/2) between pixels;
/// beyond the projection its outermost pixels are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tilt {
    /// Rotation of the axis in the projections in degrees; with a positive tilt the axis is at higher bins further down.
    #[serde(rename = "tilt")]
    pub degrees: f64,
}

impl Step for Option<Tilt> {
    fn flag(&self) -> &'static str {
        "tilt"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let Some(text) = &args.steps.tilt else { return Ok(None) };
        check_projections("tilt", args)?;
        if is_searched(args.steps) {
            return Ok(None);
        }
        match text.0.trim().parse() {
            Ok(degrees) => Tilt::within(degrees, "--tilt"),
            Err(_) => Err(StepFlagError::MalformedTilt { text: text.0.clone() }.into()),
        }
    }

    fn value(&self) -> Option<String> {
        self.map(|tilt| tilt.degrees.to_string())
    }

    fn halo(&self, optics: &Optics) -> usize {
        let alone = self.filter(|_| optics.places.is_none());
        alone.map_or(0, |tilt| tilt.halo(optics.bins, optics.height))
    }

    fn in_blocks(&self) -> bool {
        self.is_some()
    }

    fn ready(&self, data: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        // with a distortion, pixels are interpolated once for both
        let alone = self.filter(|_| data.optics.places.is_none());
        Ok(alone.map(|tilt| Ready::Rows(Box::new(tilt))))
    }
}

impl RowStep for Tilt {
    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        let halo = self.halo(correction.bins, correction.height);
        correction.images.rotation = Some(RotationForm { degrees: self.degrees, halo });
        true
    }

    fn apply(&self, band: &mut Band, _: &mut Counts) {
        let mut rotated = vec![0f32; band.rows.len() * band.bins];
        self.rotate(band.values, (band.bins, band.height), &band.read, &band.rows, &mut rotated);
        let rows = band.rows.clone();
        band.values_of(&rows).copy_from_slice(&rotated);
    }
}

/// Reports whether `--tilt` asks for the tilt to be found from the data.
pub fn is_searched(steps: &StepArgs) -> bool {
    steps.tilt.as_ref().is_some_and(|text| text.0.trim() == "auto")
}

impl Tilt {
    /// Returns the rotation by `degrees`, or `None` if it is 0.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) that names the flag, if it is too large.
    pub fn within(degrees: f64, flag: &str) -> Result<Option<Tilt>> {
        if !(-MAX_TILT..=MAX_TILT).contains(&degrees) {
            return Err(StepFlagError::TiltOutside { flag: flag.into(), degrees, most: MAX_TILT }.into());
        }
        Ok((degrees != 0.0).then_some(Tilt { degrees }))
    }

    /// Returns the number of rows above and below that a row of `bins` depends on, in projections of `height` rows.
    fn halo(self, bins: usize, height: usize) -> usize {
        let (sin, cos) = self.degrees.to_radians().sin_cos();
        let (bins, height) = (bins as f64 - 1.0, height as f64 - 1.0);
        (bins / 2.0 * sin.abs() + height / 2.0 * (1.0 - cos)).ceil() as usize + REACH
    }

    /// Returns where the positions, `[bin, row]`, of an upright projection of `[bins, rows]` are in the tilted one.
    pub fn positions(self, size: [usize; 2]) -> impl Fn([f64; 2]) -> [f64; 2] + Sync {
        let (sin, cos) = self.degrees.to_radians().sin_cos();
        let middle = size.map(default_axis);
        move |[bin, row]| {
            let (dx, dz) = (bin - middle[0], row - middle[1]);
            [middle[0] + dx * cos + dz * sin, middle[1] - dx * sin + dz * cos]
        }
    }

    /// Writes rows `wanted` of the rotated projection to `out`, from its rows `read`, `bins` wide, of `height`. All rows
    /// within the halo of the wanted ones are read, up to the end of the projection.
    fn rotate(
        self,
        values: &[f32],
        (bins, height): (usize, usize),
        read: &Range<usize>,
        wanted: &Range<usize>,
        out: &mut [f32],
    ) {
        let position = self.positions([bins, height]);
        let image = ImageRows { values, size: [bins, height], read };
        image.resample(wanted, out, |bin, row| Neighbours::of(bin, position([bin as f64, row as f64])));
    }
}

#[cfg(test)]
mod tests {
    use super::super::widened;
    use super::*;

    const BINS: usize = 61;
    const ROWS: usize = 47;

    /// Returns a smooth image, recorded by a detector that is rotated by `degrees`.
    fn seen(degrees: f64) -> Vec<f32> {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let blob = |x: f64, z: f64| {
            [(10.0, 5.0, 6.0), (-12.0, -8.0, 5.0), (0.0, 0.0, 9.0)]
                .iter()
                .map(|(cx, cz, s)| (-((x - cx).powi(2) + (z - cz).powi(2)) / (2.0 * s * s)).exp())
                .sum::<f64>()
        };
        let pixel = |i: usize| {
            let (dx, dz) = ((i % BINS) as f64 - 30.0, (i / BINS) as f64 - 23.0);
            // the axis of the image, x = 0, runs to higher bins further down
            blob(dx * cos - dz * sin, dx * sin + dz * cos) as f32
        };
        (0..BINS * ROWS).map(pixel).collect()
    }

    fn turned(tilt: Tilt, values: &[f32], wanted: Range<usize>) -> Vec<f32> {
        let read = widened(&wanted, tilt.halo(BINS, ROWS), ROWS);
        let mut out = vec![0f32; wanted.len() * BINS];
        tilt.rotate(&values[read.start * BINS..read.end * BINS], (BINS, ROWS), &read, &wanted, &mut out);
        out
    }

    #[test]
    fn what_a_turned_detector_saw_is_upright_again() {
        let straight = seen(0.0);
        for degrees in [-3.0, -0.5, 0.2, 1.0, 4.0] {
            let back = turned(Tilt { degrees }, &seen(degrees), 0..ROWS);
            let error = |values: &[f32]| {
                let off = |i: usize| f64::from(values[i] - straight[i]).powi(2);
                ((0..BINS * ROWS).map(off).sum::<f64>() / (BINS * ROWS) as f64).sqrt()
            };
            let (before, after) = (error(&seen(degrees)), error(&back));
            assert!(after < 2e-3 && after < 0.1 * before, "{degrees}: {before} became {after}");
        }
    }

    #[test]
    fn without_tilt_nothing_changes() {
        let image = seen(0.0);
        assert_eq!(turned(Tilt { degrees: 0.0 }, &image, 0..ROWS), image);
    }

    #[test]
    fn bands_equal_the_whole() {
        let image = seen(2.5);
        let tilt = Tilt { degrees: 2.5 };
        let whole = turned(tilt, &image, 0..ROWS);
        for first in (0..ROWS).step_by(5) {
            let wanted = first..(first + 5).min(ROWS);
            let expected = &whole[wanted.start * BINS..wanted.end * BINS];
            assert_eq!(turned(tilt, &image, wanted.clone()), expected, "{wanted:?}");
        }
    }
}

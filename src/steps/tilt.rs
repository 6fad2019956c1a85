//! Correction of a detector that is rotated about the beam: projections are rotated back.

use super::errors::StepFlagError;
use super::{Band, Counts, Data, Ready, RowStep, RowSteps, Step, StepFlags, check_projections};
use crate::cli::StepArgs;
use crate::error::Result;
use crate::geometry::default_axis;
use crate::numbers::floor;
use crate::operations::{RotationForm, RowCorrection};
use multiversion::multiversion;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Largest rotation of the detector in degrees, in either direction.
const MAX_TILT: f64 = 10.0;

/// Number of pixels on either side of a position that are used for interpolation.
const REACH: usize = 2;

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

    fn halo(&self, bins: usize, height: usize) -> usize {
        self.map_or(0, |tilt| tilt.halo(bins, height))
    }

    fn in_blocks(&self) -> bool {
        self.is_some()
    }

    fn ready(&self, _: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        Ok(self.map(|tilt| Ready::Rows(Box::new(tilt))))
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
        let (sin, cos) = self.degrees.to_radians().sin_cos();
        let middle = [bins, height].map(default_axis);
        let last = [bins, height].map(|n| n as i32 - 1);
        let mut places = vec![Neighbours::default(); bins];
        for (row, line) in wanted.clone().zip(out.chunks_mut(bins)) {
            let dz = row as f64 - middle[1];
            for (bin, place) in (0i32..).zip(&mut places) {
                let dx = f64::from(bin) - middle[0];
                let (x, z) = (middle[0] + dx * cos + dz * sin, middle[1] - dx * sin + dz * cos);
                let (ix, iz) = (floor(x), floor(z));
                *place = Neighbours {
                    shift: ix - bin,
                    row: iz,
                    across: (x - f64::from(ix)) as f32,
                    down: (z - f64::from(iz)) as f32,
                };
            }
            let row_of = |z: i32| {
                let z = (z.clamp(0, last[1]) as usize).clamp(read.start, read.end - 1) - read.start;
                &values[z * bins..(z + 1) * bins]
            };
            // runs of consecutive pixels with the same offset to their neighbours
            let mut bin = 0;
            for run in places.chunk_by(|a, b| (a.shift, a.row) == (b.shift, b.row)) {
                let Neighbours { shift, row, .. } = run[0];
                let rows = [row - 1, row, row + 1, row + 2].map(row_of);
                let (first, end) = (bin as i32 + shift - 1, bin as i32 + shift + run.len() as i32 + 1);
                let line = &mut line[bin..bin + run.len()];
                if first >= 0 && end <= last[0] {
                    interpolate(line, run, rows.map(|row| &row[first as usize..=end as usize]));
                } else {
                    // beyond the ends the outermost pixels are repeated
                    let wide =
                        rows.map(|row| (first..=end).map(|x| row[x.clamp(0, last[0]) as usize]).collect::<Vec<_>>());
                    interpolate(line, run, [&wide[0], &wide[1], &wide[2], &wide[3]]);
                }
                bin += run.len();
            }
        }
    }
}

/// Position of a pixel in the tilted projection: shift in bins, row, and the fractions of both.
#[derive(Clone, Copy, Debug, Default)]
struct Neighbours {
    shift: i32,
    row: i32,
    across: f32,
    down: f32,
}

/// Interpolates pixels of a row from the four rows around them, which have three more pixels. Also compiled for newer
/// processors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn interpolate(line: &mut [f32], places: &[Neighbours], rows: [&[f32]; 4]) {
    let count = line.len().min(places.len());
    let shifted = rows.map(|row| [0, 1, 2, 3].map(|k| &row[k..k + count]));
    for i in 0..count {
        let (across, down) = (cubic(places[i].across), cubic(places[i].down));
        let mut sum = 0.0;
        for (weight, four) in down.into_iter().zip(&shifted) {
            sum += weight
                * (across[0] * four[0][i] + across[1] * four[1][i] + across[2] * four[2][i] + across[3] * four[3][i]);
        }
        line[i] = sum;
    }
}

/// Returns the weights of the pixels at -1, 0, 1 and 2 for a position at `t`, from 0 to 1.
#[inline(always)]
pub fn cubic(t: f32) -> [f32; 4] {
    let (t2, t3) = (t * t, t * t * t);
    [-0.5 * t3 + t2 - 0.5 * t, 1.5 * t3 - 2.5 * t2 + 1.0, -1.5 * t3 + 2.0 * t2 + 0.5 * t, 0.5 * t3 - 0.5 * t2]
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

    #[test]
    fn weights_sum_to_one() {
        for t in [0.0, 0.1, 0.5, 0.99] {
            assert!((cubic(t).iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }
}

//! Search for samples without texture that the detector cuts off, with a window about every trial position.
//!
//! Changes with the angle are judged as elsewhere. In addition, the mean over the angles is symmetric about the axis up
//! to stripes, which are measured, and to a slow change of the beam.

use super::grid::highest;
use super::limits::{FLOOR, LIMIT, SURE};
use super::misfit::{Against, Misfit};
use super::model::{Model, Prior};
use super::scan::{COARSE, SearchedScan, TAPER};
use super::window::AxisWindow;
use crate::center::curve::{AxisVerdict, Minimum};
use rayon::prelude::*;
use std::sync::Arc;

/// Largest number of bins that rows are reduced to.
const BINS: usize = 256;
/// Factor of the power of the harmonics that half a turn shows incompletely.
const LOW: f64 = 10.0;
/// Change of the beam over the detector that smooth samples may be mistaken for, in units of line integrals.
const SHADE: f64 = 0.002;
/// Largest misfit of the mean over the angles, per degree of freedom.
const STEADY: f64 = 1.5;

/// The logarithm of the likelihood at one position, `[row][band]`, and the misfit of the mean with its degrees of freedom.
struct TrialWindow {
    cells: Vec<Vec<f64>>,
    misfit: f64,
    freedom: f64,
}

impl TrialWindow {
    fn total(&self) -> f64 {
        self.cells.iter().flatten().sum()
    }
}

/// Finds the axis; `None` if it is not certain.
pub fn search(scan: &SearchedScan, range: Option<(f64, f64)>) -> Option<Minimum> {
    let factor = scan.bins.div_ceil(BINS);
    if factor > 1 {
        let (scale, shift) = (factor as f64, (factor as f64 - 1.0) / 2.0);
        let range = range.map(|(low, high)| ((low - shift) / scale, (high - shift) / scale));
        let found = within(&scan.binned(factor), range)?;
        return Some(Minimum { at: found.at * scale + shift, uncertainty: found.uncertainty * scale, ..found });
    }
    within(scan, range)
}

fn within(scan: &SearchedScan, range: Option<(f64, f64)>) -> Option<Minimum> {
    const FINE: f64 = 0.1;
    let middle = (scan.bins as f64 - 1.0) / 2.0;
    let model = {
        let windowed = scan.look(window(scan, middle), &vec![middle; scan.rows.len()]);
        Arc::new(Model::new(&scan.angles, &windowed, windowed.size, Prior { low: LOW, stripes: None }))
    };
    let (low, high) = scan.range(range, 0.06, 8.0);
    let over = |first: f64, step: f64, count: usize| -> Vec<TrialWindow> {
        (0..count).into_par_iter().map(|i| position(scan, &model, first + i as f64 * step)).collect()
    };
    let coarse = over(low, 1.0, (high - low + 0.25) as usize + 1);
    let totals: Vec<f64> = coarse.iter().map(TrialWindow::total).collect();
    let best = highest(&totals);
    let start = low + best as f64;
    let fine = over(start - 1.5, FINE, 31);
    let likelihoods: Vec<f64> = fine.iter().map(TrialWindow::total).collect();
    let i = highest(&likelihoods).clamp(2, fine.len() - 3);
    let top = likelihoods[i];
    let by = 2.0 * FINE;
    let slopes: Vec<Vec<f64>> = fine[i + 2]
        .cells
        .iter()
        .zip(&fine[i - 2].cells)
        .map(|(after, before)| after.iter().zip(before).map(|(after, before)| (after - before) / (2.0 * by)).collect())
        .collect();
    let curvature = (2.0 * top - likelihoods[i + 2] - likelihoods[i - 2]) / (by * by);
    if curvature <= 0.0 {
        return None;
    }
    let slope: f64 = slopes.iter().flatten().sum();
    let axis = start - 1.5 + i as f64 * FINE + (slope / curvature).clamp(-0.2, 0.2);
    let bands = slopes.first().map_or(0, Vec::len);
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let rows = slopes.len() as f64;
    let spread = squares(&mut slopes.iter().flatten().copied())
        .max(squares(&mut (0..bands).map(|band| slopes.iter().map(|row| row[band]).sum::<f64>())))
        .max(squares(&mut slopes.iter().map(|row| row.iter().sum::<f64>())) * rows / (rows - 1.0).max(1.0));
    let steady = fine[i].misfit / fine[i].freedom.max(1e-9);
    let tempered = (spread / curvature).max(steady).max(1.0);
    let far = totals.iter().enumerate().filter(|(i, _)| (low + *i as f64 - axis).abs() > 2.5);
    let gap = (top - far.map(|(_, v)| *v).fold(f64::MIN, f64::max)) / tempered;
    let part = |reach: f64| -> f64 {
        let inside =
            likelihoods.iter().enumerate().filter(|(i, _)| (start - 1.5 + *i as f64 * FINE - axis).abs() <= reach);
        inside.map(|(_, v)| ((v - top) / tempered).exp()).sum()
    };
    let mass = part(0.55 / scan.scale) / part(f64::INFINITY);
    let deviation = (tempered / curvature).sqrt();
    let uncertainty = deviation.hypot(FLOOR);
    let edge = (axis - low).min(high - axis);
    let certain =
        (deviation * scan.scale).hypot(FLOOR) < LIMIT && gap > SURE && mass > 0.99 && steady < STEADY && edge > 1.0;
    certain.then_some(Minimum { at: axis, uncertainty, confidence: mass, verdict: AxisVerdict::Ok })
}

fn window(scan: &SearchedScan, axis: f64) -> AxisWindow {
    AxisWindow { reach: scan.reach(axis), taper: TAPER, highest: COARSE, lowest: 0.0 }
}

/// Returns the likelihood of a position by a window about it.
fn position(scan: &SearchedScan, model: &Arc<Model>, axis: f64) -> TrialWindow {
    let rows = scan.rows.len();
    let windowed = scan.look(window(scan, axis), &vec![axis; rows]);
    let misfit = Misfit::new(windowed, model.clone(), &scan.angles, true);
    let mut cells: Vec<Vec<f64>> =
        (0..rows).map(|row| misfit.row_and_band(row, 0.0, Against::Free).collect()).collect();
    let (mut steady, mut freedom) = (0.0, 0.0);
    let windowed = &misfit.windowed;
    let stripes = scan.stripes();
    let frequencies = windowed.frequencies.len();
    let bands = model.assign(&windowed.frequencies);
    let means: Vec<(Vec<f64>, f64)> = model.bands.iter().map(|band| band.odd.mean()).collect();
    for (i, values) in windowed.values.chunks(windowed.projections).enumerate() {
        let (row, k) = (i / frequencies, i % frequencies);
        let (weights, variance) = &means[bands[k]];
        let w = windowed.frequencies[k];
        let mean: f64 = values.iter().zip(weights).map(|(z, weight)| f64::from(z.im) * weight).sum();
        let shade = (SHADE / scan.bins as f64).powi(2) * windowed.size * (1.0 - w * windowed.size / 12.0).max(0.0);
        let misfit = mean * mean / (variance + stripes(w + 1e-9) / 2.0 + shade) * windowed.independent;
        cells[row][bands[k]] -= misfit / 2.0;
        steady += misfit;
        freedom += windowed.independent;
    }
    TrialWindow { cells, misfit: steady, freedom }
}

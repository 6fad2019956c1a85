//! Slices by regularised least squares, from the sinograms of a chunk.

use super::errors::CutOffError;
use super::run::some_threads;
use crate::device::Session;
use crate::error::Result;
use crate::geometry::{Geometry, GridSides};
use crate::least_squares::{
    LeastSquares, ScanOperators, SliceOutcome, SliceSolver, SolvedSlice, energy, noise, values_at_ends,
};
use crate::plan::SolverMemory;
use crate::solver::{DeviceSolver, RowScale, SolverStart};
use crate::spectrum::{Filter, spectrum};
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::time::Instant;

/// Mean value at the ends of rows, relative to their largest values, from which a sample counts as cut off.
const CUT_OFF: f64 = 0.1;

/// The solver of an engine, and what it has found so far.
pub struct SolverStage {
    place: SolverPlace,
    request: LeastSquares,
    geometry: Geometry,
    threads: ThreadPool,
    found: SolverCounts,
}

enum SolverPlace {
    Host(ScanOperators),
    Device(Box<DeviceSolver>),
}

/// How slices were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolverCounts {
    /// Iterations of each slice.
    pub iterations: Vec<usize>,
    /// Noise of the rows of each slice, in units of line integrals.
    pub sigma: Vec<f64>,
    /// Minimum of each slice's objective.
    pub objective: Vec<f64>,
    /// Number of slices that still changed when their iterations ended.
    pub unfinished: usize,
}

impl SolverCounts {
    fn add(&mut self, slice: &SliceOutcome) {
        self.iterations.push(slice.iterations);
        self.sigma.push(slice.sigma);
        self.objective.push(slice.objective);
        self.unfinished += usize::from(!slice.converged);
    }

    /// Returns the counts of both.
    pub fn and(mut self, other: &SolverCounts) -> SolverCounts {
        self.iterations.extend(&other.iterations);
        self.sigma.extend(&other.sigma);
        self.objective.extend(&other.objective);
        self.unfinished += other.unfinished;
        self
    }
}

impl SolverStage {
    /// Computes what the slices of a scan share, on the device or on the host, as planned. The filter, with its cutoff, is that of
    /// the slices to begin with.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::error::Error::Memory) when there are no threads; errors of the device.
    pub fn new(
        session: &Session,
        geometry: &Geometry,
        (request, memory): (LeastSquares, &SolverMemory),
        filter: Filter,
        cutoff: f64,
    ) -> Result<SolverStage> {
        let filter = |length: usize| spectrum(filter, cutoff, length);
        let start = SolverStart { request, slices: memory.at_once, filter: &filter };
        let place = match &memory.form {
            Some(form) => SolverPlace::Device(Box::new(DeviceSolver::new(session, geometry, form, start)?)),
            None if request.interior => SolverPlace::Host(ScanOperators::interior(geometry, filter)),
            None => SolverPlace::Host(ScanOperators::new(geometry, GridSides::Thirds, filter)),
        };
        // a device leaves the noise of rows to the host
        let at_once = if memory.form.is_some() { rayon::current_num_threads() } else { memory.at_once };
        let threads = some_threads("search slices", at_once)?;
        Ok(SolverStage { place, threads, request, geometry: geometry.clone(), found: SolverCounts::default() })
    }

    /// Returns how the slices so far were found.
    pub fn counts(&self) -> SolverCounts {
        self.found.clone()
    }

    /// Forgets how slices were found, such as those of which the run is estimated.
    pub fn forget(&mut self) {
        self.found = SolverCounts::default();
    }

    /// Finds the first `count` slices of a chunk: rows `[slice][projection][bin]`, slices `[slice][y][x]` of the region. Returns
    /// the seconds that this took.
    pub fn run(&mut self, session: &Session, rows: &Buffer<f32>, slices: &Buffer<f32>, count: usize) -> Result<f64> {
        let began = Instant::now();
        let (LeastSquares { method, interior, .. }, bins) = (self.request, self.geometry.bins);
        let whole = |sinogram: &[f32]| {
            let ends = values_at_ends(sinogram, bins);
            match ends > CUT_OFF && !interior {
                true => Err(CutOffError::Sample { method, percent: 100.0 * ends }.into()),
                false => Ok(()),
            }
        };
        let outcomes = match &mut self.place {
            SolverPlace::Host(operators) => {
                let solver = SliceSolver::new(operators, self.request);
                let found = of_sinograms(&self.threads, &self.geometry, session, rows, count, |sinogram| {
                    whole(sinogram).map(|()| solver.solve(sinogram))
                })?;
                store(session, &self.geometry, slices, &found)?;
                found.iter().map(|slice| slice.outcome).collect()
            }
            SolverPlace::Device(solver) => {
                let scales = of_sinograms(&self.threads, &self.geometry, session, rows, count, |sinogram| {
                    whole(sinogram).map(|()| RowScale { sigma: noise(sinogram, bins), energy: energy(sinogram) })
                })?;
                solver.run(session, rows, slices, &scales)?
            }
        };
        outcomes.iter().for_each(|slice| self.found.add(slice));
        Ok(began.elapsed().as_secs_f64())
    }
}

/// Returns what a function says of each of the first `count` sinograms of a buffer.
fn of_sinograms<T: Send>(
    threads: &ThreadPool,
    geometry: &Geometry,
    session: &Session,
    rows: &Buffer<f32>,
    count: usize,
    of: impl Fn(&[f32]) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let values = geometry.projections() * geometry.bins;
    let all = |sinograms: &mut [f32]| -> Result<Vec<T>> {
        threads.install(|| sinograms.par_chunks(values).map(&of).collect())
    };
    session.with_mapped(rows, CL_MAP_READ, 0, count * values, "sinograms", all)?
}

/// Stores the region of slices.
fn store(session: &Session, geometry: &Geometry, slices: &Buffer<f32>, found: &[SolvedSlice]) -> Result<()> {
    let Geometry { roi, size, .. } = *geometry;
    let copy = |slices: &mut [f32]| {
        for (slice, to) in found.iter().zip(slices.chunks_exact_mut(roi.pixels())) {
            let rows = slice.slice.chunks_exact(size).skip(roi.y);
            for (row, to) in rows.zip(to.chunks_exact_mut(roi.width)) {
                to.copy_from_slice(&row[roi.x..roi.x + roi.width]);
            }
        }
    };
    session.with_mapped(slices, CL_MAP_WRITE, 0, found.len() * roi.pixels(), "slices", copy)
}

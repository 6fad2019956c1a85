//! Slices by regularised least squares, which the host computes from the sinograms of a chunk.

use super::errors::CutOffError;
use super::run::some_threads;
use crate::device::Session;
use crate::error::Result;
use crate::geometry::Geometry;
use crate::least_squares::{LeastSquares, ScanOperators, SliceSolver, SolvedSlice, values_at_ends};
use crate::spectrum::{Filter, spectrum};
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Mean value at the ends of rows, relative to their largest values, from which a sample counts as cut off.
const CUT_OFF: f64 = 0.1;

/// The solver of an engine, and what it has found so far.
pub struct SolverStage {
    operators: ScanOperators,
    request: LeastSquares,
    geometry: Geometry,
    threads: ThreadPool,
    found: Mutex<SolverCounts>,
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
    fn add(&mut self, slice: &SolvedSlice) {
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
    /// Computes what the slices of a scan share, for at most `at_once` slices at a time. The filter, with its cutoff, is that
    /// of the slices to begin with.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::error::Error::Memory) when there are no threads.
    pub fn new(
        geometry: &Geometry,
        request: LeastSquares,
        at_once: usize,
        filter: Filter,
        cutoff: f64,
    ) -> Result<SolverStage> {
        Ok(SolverStage {
            threads: some_threads("search slices", at_once)?,
            operators: match request.interior {
                true => ScanOperators::interior(geometry, |length| spectrum(filter, cutoff, length)),
                false => ScanOperators::new(geometry, |length| spectrum(filter, cutoff, length)),
            },
            request,
            geometry: geometry.clone(),
            found: Mutex::default(),
        })
    }

    /// Returns how the slices so far were found.
    pub fn counts(&self) -> SolverCounts {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets how slices were found, such as those of which the run is estimated.
    pub fn forget(&mut self) {
        self.found = Mutex::default();
    }

    /// Finds the first `count` slices of a chunk: rows `[slice][projection][bin]`, slices `[slice][y][x]` of the region. Returns
    /// the seconds that this took.
    pub fn run(&self, session: &Session, rows: &Buffer<f32>, slices: &Buffer<f32>, count: usize) -> Result<f64> {
        let began = Instant::now();
        let Geometry { roi, size, .. } = self.geometry;
        let sinogram = self.geometry.projections() * self.geometry.bins;
        let solver = SliceSolver::new(&self.operators, self.request);
        let of_slice = |sinogram: &[f32]| {
            let ends = values_at_ends(sinogram, self.geometry.bins);
            if ends > CUT_OFF && !self.request.interior {
                return Err(CutOffError::Sample { method: self.request.method, percent: 100.0 * ends }.into());
            }
            Ok(solver.solve(sinogram))
        };
        let solve = |sinograms: &mut [f32]| -> Result<Vec<SolvedSlice>> {
            self.threads.install(|| sinograms.par_chunks(sinogram).map(of_slice).collect())
        };
        let found = session.with_mapped(rows, CL_MAP_READ, 0, count * sinogram, "sinograms", solve)??;
        let store = |slices: &mut [f32]| {
            for (slice, to) in found.iter().zip(slices.chunks_exact_mut(roi.pixels())) {
                let rows = slice.slice.chunks_exact(size).skip(roi.y);
                for (row, to) in rows.zip(to.chunks_exact_mut(roi.width)) {
                    to.copy_from_slice(&row[roi.x..roi.x + roi.width]);
                }
            }
        };
        session.with_mapped(slices, CL_MAP_WRITE, 0, count * roi.pixels(), "slices", store)?;
        let mut counts = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().for_each(|slice| counts.add(slice));
        Ok(began.elapsed().as_secs_f64())
    }
}

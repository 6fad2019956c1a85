//! Slices by regularised least squares, from the sinograms of a chunk.

use super::examination::RowExamination;
use super::threads::some_threads;
use crate::device::Session;
use crate::error::{Error, Result};
use crate::geometry::{Geometry, GridSides};
use crate::least_squares::{LeastSquares, RowScale, ScanOperators, SliceOutcome, SliceSolver, SolvedSlice};
use crate::plan::SolverMemory;
use crate::solver::{DeviceSolver, SolverStart};
use crate::spectrum::{Filter, spectrum};
use opencl3::memory::{Buffer, CL_MAP_WRITE};
use rayon::ThreadPool;
use std::time::Instant;

/// The solver of an engine, and what it has found so far.
pub struct SolverStage {
    place: SolverPlace,
    found: SolverCounts,
}

enum SolverPlace {
    Host(Box<HostSolver>),
    Device(Box<DeviceSolver>),
}

/// The search on the host.
struct HostSolver {
    operators: ScanOperators,
    request: LeastSquares,
    examination: RowExamination,
    geometry: Geometry,
    threads: ThreadPool,
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
            None => SolverPlace::Host(Box::new(HostSolver {
                operators: match request.interior {
                    true => ScanOperators::interior(geometry, filter),
                    false => ScanOperators::new(geometry, GridSides::Thirds, filter),
                },
                request,
                examination: RowExamination::new(request, geometry),
                geometry: geometry.clone(),
                threads: some_threads("search slices", memory.at_once)?,
            })),
        };
        Ok(SolverStage { place, found: SolverCounts::default() })
    }

    /// Returns how the slices so far were found.
    pub fn counts(&self) -> SolverCounts {
        self.found.clone()
    }

    /// Forgets how slices were found, such as those of which the run is estimated.
    pub fn forget(&mut self) {
        self.found = SolverCounts::default();
    }

    /// Finds the first `count` slices of a chunk: rows `[slice][projection][bin]`, slices `[slice][y][x]` of the region. A device
    /// needs the scales of the rows, which the host finds before. Returns the seconds that this took.
    pub fn run(
        &mut self,
        session: &Session,
        rows: &Buffer<f32>,
        slices: &Buffer<f32>,
        count: usize,
        scales: &[RowScale],
    ) -> Result<f64> {
        let began = Instant::now();
        let outcomes = match &mut self.place {
            SolverPlace::Host(solver) => solver.run(session, rows, slices, count)?,
            SolverPlace::Device(solver) if scales.len() == count => solver.run(session, rows, slices, scales)?,
            SolverPlace::Device(_) => {
                return Err(Error::Internal(format!("{} of {count} sinograms were examined", scales.len())));
            }
        };
        outcomes.iter().for_each(|slice| self.found.add(slice));
        Ok(began.elapsed().as_secs_f64())
    }
}

impl HostSolver {
    fn run(
        &self,
        session: &Session,
        rows: &Buffer<f32>,
        slices: &Buffer<f32>,
        count: usize,
    ) -> Result<Vec<SliceOutcome>> {
        let solver = SliceSolver::new(&self.operators, self.request);
        let find = |sinogram: &[f32]| {
            self.examination.expect_whole(sinogram)?;
            Ok(solver.solve(sinogram))
        };
        let found = self.threads.install(|| self.examination.of_sinograms(session, rows, count, find))?;
        self.store(session, slices, &found)?;
        Ok(found.iter().map(|slice| slice.outcome).collect())
    }

    /// Stores the region of slices.
    fn store(&self, session: &Session, slices: &Buffer<f32>, found: &[SolvedSlice]) -> Result<()> {
        let Geometry { roi, size, .. } = self.geometry;
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
}

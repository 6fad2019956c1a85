//! Where least squares are solved, and their memory.

use super::errors::PlanFlagError;
use super::request::Request;
use crate::error::Result;
use crate::geometry::{Geometry, GridSides};
use crate::kernel::StepBackend;
use crate::least_squares::{LeastSquares, Margins, ScanOperators};
use crate::solver::SolverForm;
use crate::units::human;

/// Largest number of slices that a device searches at a time; more do not make it faster.
const MOST_ON_DEVICE: usize = 8;

/// Returns the side of slices that are searched, in pixels.
fn solved_side(request: &LeastSquares, geometry: &Geometry) -> usize {
    let margins = if request.interior { Margins::around(geometry.bins, geometry.size) } else { Margins::default() };
    geometry.size + 2 * margins.pixels
}

/// Where least squares are solved, and their memory.
#[derive(Clone, Debug)]
pub struct SolverMemory {
    /// Largest number of slices that are searched at a time.
    pub at_once: usize,
    /// Bytes of the host for these, and for what all slices share.
    pub bytes: u64,
    /// The kernels, if the device searches the slices.
    pub form: Option<SolverForm>,
    /// Bytes on the device.
    pub device_bytes: u64,
}

impl SolverMemory {
    /// Plans the search of slices, of which a pass has `pass`: by the device, if it may and has the kernels and the memory, else by
    /// the host, which has `host` bytes.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) when there is not enough for a slice.
    pub fn new(
        request: &Request,
        least_squares: &LeastSquares,
        place: StepBackend,
        pass: usize,
        host: u64,
    ) -> Result<SolverMemory> {
        if place == StepBackend::Device
            && let Some(memory) = Self::on_device(request, least_squares, pass)
            && memory.bytes < host
        {
            return Ok(memory);
        }
        Self::on_host(solved_side(least_squares, &request.scan.geometry), pass, host)
    }

    /// Returns where slices are searched.
    pub fn place(&self) -> StepBackend {
        if self.form.is_some() { StepBackend::Device } else { StepBackend::Host }
    }

    /// At most half of the device's memory is used.
    fn on_device(request: &Request, least_squares: &LeastSquares, pass: usize) -> Option<SolverMemory> {
        let Request { scan, choice, facts, .. } = *request;
        let form = SolverForm::new(&choice.profile, least_squares, &scan.geometry, facts)?;
        let budget = request.device_budget() / 2;
        let most = MOST_ON_DEVICE.min(pass.max(1));
        let fits = |at_once: &usize| {
            form.device_bytes(*at_once, facts) <= budget && form.largest_buffer(*at_once) <= facts.max_allocation
        };
        let at_once = std::iter::successors(Some(most), |n| Some(n / 2).filter(|n| *n > 0)).find(fits)?;
        let device_bytes = form.device_bytes(at_once, facts);
        let bytes = ScanOperators::bytes(scan.geometry.size, GridSides::PowersOfTwo);
        Some(SolverMemory { at_once, bytes, form: Some(form), device_bytes })
    }

    /// Divides `host` bytes among slices of side `size`: at most half of them are used, unless a single slice needs more.
    fn on_host(size: usize, pass: usize, host: u64) -> Result<SolverMemory> {
        let (shared, each) = (ScanOperators::bytes(size, GridSides::Thirds), ScanOperators::slice_bytes(size));
        if shared + each >= host {
            let (memory, needed) = (human(host), human(shared + each));
            return Err(PlanFlagError::NoMemoryForSolver { memory, needed }.into());
        }
        let at_once = ((host / 2).saturating_sub(shared) / each).clamp(1, pass.max(1) as u64);
        Ok(SolverMemory { at_once: at_once as usize, bytes: shared + at_once * each, form: None, device_bytes: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_divided_among_slices() {
        let (shared, each) = (ScanOperators::bytes(512, GridSides::Thirds), ScanOperators::slice_bytes(512));
        let at_once = |host| SolverMemory::on_host(512, 8, host).map(|memory| memory.at_once);
        assert_eq!(at_once(1 << 40).unwrap(), 8);
        assert_eq!(at_once(2 * (shared + 3 * each)).unwrap(), 3);
        assert_eq!(at_once(shared + each + 1).unwrap(), 1);
        let error = at_once(shared + each).unwrap_err().to_string();
        assert!(error.contains("--memory") && error.contains("--method fbp"), "{error}");
    }
}

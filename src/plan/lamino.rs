//! The plan of a run about an inclined axis: slices need many rows of the detector, so a chunk is as many slices as memory
//! holds, and projections are on the device in parts. Where they are corrected apart from each other, the host reads them in
//! these parts, too, and one is read while another is computed.

use super::errors::{NoKernelError, PlanDeviceError, PlanFlagError};
use super::request::{Bytes, PIECES, Request, WRITTEN_PIECES, largest, sum};
use crate::device::{SinogramStore, sinogram_bytes};
use crate::error::Result;
use crate::facts::DeviceKind;
use crate::fft::{RowStageForm, row_layout};
use crate::geometry::Lamino;
use crate::kernel::{
    Algorithm, GUARD, Interpolation, KernelSpec, Mode, Offer, Parameters, Problem, RowFilter, StepBackends, StepTarget,
    Texel,
};
use crate::operations::{LaminoForm, LaminoProjector};
use crate::units::human;

/// Least number of projections that are on the device together, unless no slice fits otherwise.
const LEAST_PART: usize = 16;
/// Number of parts in which projections are read where they can be, unless these had fewer than [`LEAST_PART`].
const PARTS: usize = 8;
/// Largest number of slices that are copied from the device at once.
const SLICES_AT_ONCE: usize = 8;

/// How slices about an inclined axis are computed on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaminoPlan {
    pub lamino: Lamino,
    /// Largest number of rows of the detector that a chunk needs.
    pub rows: usize,
    pub pieces: InclinedPieces,
    /// Number of slices that a work-item computes.
    pub depth: usize,
}

/// The pieces of a chunk that the host holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InclinedPieces {
    /// Number of projections of a piece that is read, and of such pieces.
    pub projections: usize,
    pub read: usize,
    /// Number of slices of a piece that is written, and of such pieces.
    pub slices: usize,
    pub written: usize,
}

/// Sizes of a run about an inclined axis.
struct LaminoSizes<'a> {
    request: &'a Request<'a>,
    lamino: Lamino,
    form: LaminoForm,
    spec: KernelSpec,
    filter: RowFilter,
    /// Number of slices of the device's share.
    all: usize,
    /// Bytes of host memory.
    host: u64,
}

/// The kernels, chunks and memory of a run about an inclined axis.
pub(super) struct InclinedChunks {
    /// A kernel that reads rows as they are filtered here.
    pub spec: KernelSpec,
    pub filter: RowFilter,
    pub plan: LaminoPlan,
    /// Number of slices of a chunk.
    pub chunk: usize,
    /// Number of projections that are on the device at a time.
    pub projections: usize,
    pub device_bytes: Vec<Bytes>,
    pub host_bytes: u64,
}

/// Divides a run about an inclined axis into chunks.
///
/// # Errors
/// Those of [`Plan::new`](super::Plan::new).
pub(super) fn inclined_chunks(request: &Request, lamino: Lamino) -> Result<InclinedChunks> {
    let Request { scan, choice, facts, memory, .. } = *request;
    if let Some(refused) = request.avoid.refused.first() {
        let (device, driver, why) = (facts.name.clone(), facts.driver.clone(), refused.why.clone());
        return Err(NoKernelError::Inclined { device, driver, why }.into());
    }
    let geometry = &scan.geometry;
    let (interpolation, mode) = (Interpolation::Linear, Mode::Precise);
    let parameters = Parameters::start(Algorithm::Standard, mode);
    let offer = Offer { interpolation, mode, slices: 1, parameters };
    let problem = Problem::new(geometry.projections(), geometry.same_axis());
    let spec = KernelSpec::new(&offer, &choice.profile, Texel::Buffer, problem, Some(facts));
    let filter = RowFilter::new(&spec, &choice.profile.fft, geometry.bins, Some(facts));
    let all = scan.slices.len().div_ceil(memory.devices.max(1)).max(1);
    let host = request.left_on_host(StepBackends::HOST)?;
    let form = LaminoForm::new(StepTarget { facts, sizes: &choice.profile.step_sizes }, &lamino);
    let sizes = LaminoSizes { request, lamino, form, spec, filter, all, host };
    let (chunk, projections) = sizes.fitting()?;
    Ok(InclinedChunks {
        filter,
        plan: LaminoPlan {
            lamino,
            rows: sizes.rows(chunk),
            pieces: sizes.pieces(chunk, projections),
            depth: form.depth,
        },
        chunk,
        projections,
        device_bytes: sizes.on_device(chunk, projections)?,
        host_bytes: sizes.on_host(chunk, projections),
        spec: sizes.spec,
    })
}

impl LaminoPlan {
    /// Returns where blocks of a list of slices end, each of which needs no more rows than a chunk of `chunk` slices has.
    /// A block ends with a group of slices, unless its chunk has room for less than one.
    pub fn blocks(&self, slices: &[usize], chunk: usize) -> Vec<usize> {
        let fits = |block: &[usize]| block.len() <= chunk && self.lamino.rows_of(block).len() <= self.rows;
        let group = |at: usize| self.lamino.group(slices[at], self.depth).0;
        let (mut ends, mut start) = (Vec::new(), 0);
        while start < slices.len() {
            let most =
                (start + 2..=slices.len()).take_while(|&end| fits(&slices[start..end])).last().unwrap_or(start + 1);
            let whole = |&end: &usize| end == slices.len() || group(end) != group(end - 1);
            start = (start + 1..=most).rev().find(whole).unwrap_or(most);
            ends.push(start);
        }
        ends
    }
}

impl LaminoSizes<'_> {
    /// Returns the largest number of slices of a chunk that memory holds, and the largest number of projections beside
    /// them.
    fn fitting(&self) -> Result<(usize, usize)> {
        let (scan, facts) = (self.request.scan, self.request.facts);
        let projections = scan.geometry.projections();
        let depth = self.form.depth;
        let fewer = |&slices: &usize| match slices {
            1 => None,
            _ if slices <= depth => Some(slices / 2),
            _ => Some(slices.div_ceil(2).next_multiple_of(depth)),
        };
        let least = LEAST_PART.min(projections);
        let most_parts = projections.div_ceil(least);
        let fewest = if scan.samples.apart { PARTS.min(most_parts) } else { 1 };
        let parts = || (fewest..=most_parts).map(|parts| projections.div_ceil(parts));
        let parts = || parts().map(|part| part.next_multiple_of(least).min(projections));
        let smallest = 2.min(projections);
        for slices in std::iter::successors(Some(self.all), fewer) {
            for part in parts().chain((slices == 1).then_some(smallest)) {
                let buffers = self.on_device(slices, part)?;
                let budget = self.budget(slices, part);
                // so that a chunk is not many small parts
                let most = if slices > depth { budget / 2 } else { u64::MAX };
                let fits = sum(&buffers) <= budget && self.largest(slices, part) <= facts.max_allocation;
                if fits && self.of_slices(slices) <= most && self.on_host(slices, part) <= self.host {
                    return Ok((slices, part));
                }
            }
        }
        if self.on_host(1, smallest) > self.host {
            let (memory, needed) = (human(self.host), human(self.on_host(1, smallest)));
            let (rows, projections) = (self.rows(1), self.pieces(1, smallest).projections);
            return Err(PlanFlagError::NoMemoryForInclined { memory, needed, rows, projections }.into());
        }
        let buffers = self.on_device(1, smallest)?;
        Err(PlanDeviceError::NoMemoryForInclined {
            device: facts.name.clone(),
            rows: self.rows(1),
            needed: human(sum(&buffers)),
            largest: human(largest(&buffers)),
            free: human(self.budget(1, smallest)),
            allocation: human(facts.max_allocation),
        }
        .into())
    }

    /// Returns the largest number of rows of the detector that `slices` slices in a row need.
    fn rows(&self, slices: usize) -> usize {
        let run = &self.request.scan.run_slices;
        // also for slices of other shards, of which percentiles are sampled
        let windows = run.windows(slices.min(run.len()).max(1));
        windows.map(|window| self.lamino.rows_of(window).len()).max().unwrap_or(1)
    }

    /// Returns the pieces for chunks of `slices` slices, with `part` projections at a time on the device. There are several where
    /// one is read or written while another is computed.
    fn pieces(&self, slices: usize, part: usize) -> InclinedPieces {
        let scan = self.request.scan;
        let projections = if scan.samples.apart { part } else { scan.geometry.projections() };
        let at_once = slices.clamp(1, SLICES_AT_ONCE);
        let (pieces, chunks) = (slices.div_ceil(at_once), self.all.div_ceil(slices.max(1)));
        InclinedPieces {
            projections,
            read: (scan.geometry.projections().div_ceil(projections) * chunks).clamp(1, PIECES),
            slices: at_once,
            written: (pieces * chunks).clamp(1, if pieces > 1 { WRITTEN_PIECES } else { PIECES }),
        }
    }

    /// Returns the bytes of slices.
    fn of_slices(&self, slices: usize) -> u64 {
        4 * (slices * self.request.scan.geometry.roi.pixels()) as u64
    }

    /// Returns the bytes of host memory for chunks.
    fn on_host(&self, slices: usize, part: usize) -> u64 {
        let InclinedPieces { projections, read, slices: at_once, written } = self.pieces(slices, part);
        let rows = 4 * (self.rows(slices) * projections * self.request.scan.geometry.bins) as u64;
        read as u64 * rows + written as u64 * self.of_slices(at_once)
    }

    /// Returns the bytes that may be on the device.
    fn budget(&self, slices: usize, part: usize) -> u64 {
        let Request { facts, memory, .. } = *self.request;
        let budget = memory.device.unwrap_or(facts.global_memory / 5 * 4);
        match facts.kind {
            // a processor computes in the host's memory
            DeviceKind::Cpu => budget.min(self.host.saturating_sub(self.on_host(slices, part))),
            _ => budget,
        }
    }

    /// Returns the bytes of the filtered rows of a part.
    fn filtered(&self, slices: usize, part: usize) -> u64 {
        4 * (self.rows(slices) * part * (self.request.scan.geometry.bins + 2 * GUARD)) as u64
    }

    /// Returns the bytes of the largest buffer.
    fn largest(&self, slices: usize, part: usize) -> u64 {
        self.filtered(slices, part).max(self.of_slices(slices))
    }

    /// Returns the buffers on the device for `slices` slices and `part` projections at a time.
    fn on_device(&self, slices: usize, part: usize) -> Result<Vec<Bytes>> {
        let (geometry, facts) = (&self.request.scan.geometry, self.request.facts);
        let (bins, spec) = (geometry.bins, &self.spec);
        let form = RowStageForm {
            spec,
            rows: self.filter,
            bins,
            projections: part,
            all_projections: geometry.projections(),
            in_place: true,
            units: facts.compute_units,
        };
        let sinogram = sinogram_bytes(spec.texel, bins, part, spec.element_bytes());
        Ok(vec![
            Bytes { what: "sinograms", bytes: 4 * (self.rows(slices) * part * bins) as u64 },
            Bytes { what: "slices", bytes: self.of_slices(slices) },
            Bytes { what: "filtered rows", bytes: row_layout(form).bytes() + self.filtered(slices, part) },
            Bytes { what: "compound sinogram", bytes: SinogramStore::layout(spec.texel, sinogram).bytes() },
            Bytes { what: "geometry tables", bytes: LaminoProjector::layout(self.form, geometry, slices).bytes() },
        ])
    }
}

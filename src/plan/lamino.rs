//! The plan of a run about an inclined axis: slices need many rows of the detector, so a chunk is as many slices as memory
//! holds, and projections are on the device in parts. Where they are corrected apart from each other, the host reads them in
//! these parts, too: one is read while another is copied and corrected, and a third one is back-projected.

use super::errors::{NoKernelError, PlanDeviceError, PlanFlagError};
use super::request::{Bytes, PIECES, Request, WRITTEN_PIECES, largest, sum};
use super::scan::SampleShape;
use crate::device::{SinogramStore, sinogram_bytes};
use crate::error::{Error, Result};
use crate::facts::DeviceKind;
use crate::fft::{RowStageForm, row_layout};
use crate::geometry::Lamino;
use crate::kernel::{
    Algorithm, GUARD, Interpolation, KernelSpec, Mode, Offer, Parameters, Problem, RowFilter, StepBackend,
    StepBackends, StepTarget, Texel,
};
use crate::operations::{BlockCorrector, BlockShape, ImagesTarget, LaminoForm, LaminoProjector, RowBlocks};
use crate::units::human;

/// Least number of projections that are on the device together, unless no slice fits otherwise.
const LEAST_PART: usize = 16;
/// Number of parts in which projections are read where they can be, unless these had fewer than [`LEAST_PART`].
const PARTS: usize = 16;
/// Largest number of slices that are copied from the device at once.
const SLICES_AT_ONCE: usize = 8;
/// Largest number of rows of the detector that are filtered at once, and divisor of those of a chunk, beside which they are few.
const FILTERED_AT_ONCE: usize = 16;
const FILTERED_SHARE: usize = 8;
/// Number of parts whose rows are on a device with its own memory: one is back-projected, the other one copied and corrected.
const PARTS_ON_DEVICE: usize = 2;

/// How slices about an inclined axis are computed on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaminoPlan {
    pub lamino: Lamino,
    /// Largest number of rows of the detector that a chunk needs.
    pub rows: usize,
    /// Number of these rows that are filtered at once.
    pub filtered: usize,
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
    /// Backends of the steps before the filter.
    steps: StepBackends,
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
    /// Number of projections of a part.
    pub projections: usize,
    /// Number of parts whose rows are on the device at a time.
    pub parts: usize,
    pub steps: StepBackends,
    /// Blocks in which the device corrects rows, if it does.
    pub blocks: Option<BlockShape>,
    pub device_bytes: Vec<Bytes>,
    pub host_bytes: u64,
    /// Notes for the user.
    pub notes: Vec<String>,
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
    let form = LaminoForm::new(StepTarget { facts, sizes: &choice.profile.step_sizes }, &lamino);
    let with = |steps| -> Result<InclinedChunks> {
        let host = request.left_on_host(steps)?;
        LaminoSizes { request, lamino, form, spec: spec.clone(), filter, steps, all, host }.chunks()
    };
    let on_device = StepBackends { rows: StepBackend::Device, ..StepBackends::HOST };
    match may_correct(request).then(|| with(on_device)) {
        Some(Err(Error::Device(_))) => {
            let notes = vec![request.no_room_for_steps("a slice")];
            Ok(InclinedChunks { notes, ..with(StepBackends::HOST)? })
        }
        Some(chunks) => chunks,
        None => with(StepBackends::HOST),
    }
}

/// Reports whether the device corrects rows: where it is able to, with no other rows and projections than those of a part.
fn may_correct(request: &Request) -> bool {
    let Request { recipe, scan, choice, .. } = *request;
    let SampleShape { correctable, blocks, apart, .. } = scan.samples;
    let alone = apart && blocks.is_none() && recipe.steps.stripes.is_empty() && scan.field.is_none();
    choice.profile.steps.rows == StepBackend::Device && correctable && alone
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
    /// Divides the run.
    fn chunks(self) -> Result<InclinedChunks> {
        let (chunk, projections) = self.fitting()?;
        Ok(InclinedChunks {
            filter: self.filter,
            plan: LaminoPlan {
                lamino: self.lamino,
                rows: self.rows(chunk),
                filtered: self.filtered_at_once(chunk),
                pieces: self.pieces(chunk, projections),
                depth: self.form.depth,
            },
            chunk,
            projections,
            parts: self.parts(projections),
            steps: self.steps,
            blocks: self.corrected(chunk, projections),
            device_bytes: self.on_device(chunk, projections)?,
            host_bytes: self.on_host(chunk, projections),
            notes: Vec::new(),
            spec: self.spec,
        })
    }

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

    /// Returns the number of rows of the detector that are filtered at once.
    fn filtered_at_once(&self, slices: usize) -> usize {
        (self.rows(slices) / FILTERED_SHARE).clamp(1, FILTERED_AT_ONCE)
    }

    /// Returns the number of parts whose rows are on the device at a time: one where there is nothing to copy.
    fn parts(&self, part: usize) -> usize {
        let Request { scan, facts, .. } = *self.request;
        let is_one = facts.kind == DeviceKind::Cpu || part >= scan.geometry.projections();
        if is_one { 1 } else { PARTS_ON_DEVICE }
    }

    /// Returns the blocks in which the device corrects rows, if it does.
    fn corrected(&self, slices: usize, part: usize) -> Option<BlockShape> {
        let scan = self.request.scan;
        let (rows, size) = (self.rows(slices), [scan.geometry.bins, scan.samples.height]);
        let straight = || BlockShape::straight(RowBlocks::all(rows), size, scan.geometry.projections());
        let in_parts = || BlockShape { batch: part, at_once: self.parts(part), ..straight() };
        (self.steps.rows == StepBackend::Device).then(in_parts)
    }

    /// Returns the bytes of the rows of a part as they are read: those that slices need, and those around them.
    fn read(&self, slices: usize, projections: usize) -> u64 {
        let Request { scan, .. } = *self.request;
        let SampleShape { stored, height, halo, .. } = scan.samples;
        let rows = self.rows(slices);
        let of_projection = match self.steps.rows {
            StepBackend::Device => (rows + 2 * halo).min(height) * stored.row_bytes(),
            StepBackend::Host => 4 * rows * scan.geometry.bins,
        };
        (of_projection * projections) as u64
    }

    /// Returns the bytes of host memory for chunks.
    fn on_host(&self, slices: usize, part: usize) -> u64 {
        let InclinedPieces { projections, read, slices: at_once, written } = self.pieces(slices, part);
        read as u64 * self.read(slices, projections) + written as u64 * self.of_slices(at_once)
    }

    /// Returns the bytes that may be on the device.
    fn budget(&self, slices: usize, part: usize) -> u64 {
        let budget = self.request.device_budget();
        match self.request.facts.kind {
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
        self.filtered(slices, part).max(self.of_slices(slices)).max(self.read(slices, part))
    }

    /// Returns the buffers on the device for `slices` slices and `part` projections of a part.
    fn on_device(&self, slices: usize, part: usize) -> Result<Vec<Bytes>> {
        let Request { scan, facts, choice, .. } = *self.request;
        let geometry = &scan.geometry;
        let (bins, spec, at_once) = (geometry.bins, &self.spec, self.filtered_at_once(slices));
        let form = RowStageForm {
            spec,
            rows: self.filter,
            bins,
            projections: at_once * part,
            all_projections: at_once * geometry.projections(),
            in_place: true,
            units: facts.compute_units,
        };
        let sinogram = sinogram_bytes(spec.texel, bins, at_once * part, spec.element_bytes());
        let SampleShape { stored, held, halo, .. } = scan.samples;
        let images = ImagesTarget { facts, backend: choice.profile.fft.images };
        let samples = |shape| BlockCorrector::layout(&shape, stored, halo, held, images).bytes();
        let rows = self.parts(part) * self.rows(slices);
        Ok(vec![
            Bytes { what: "sinograms", bytes: 4 * (rows * part * bins) as u64 },
            Bytes { what: "slices", bytes: self.of_slices(slices) },
            Bytes { what: "filtered rows", bytes: row_layout(form).bytes() + self.filtered(slices, part) },
            Bytes { what: "compound sinogram", bytes: SinogramStore::layout(spec.texel, sinogram).bytes() },
            Bytes { what: "geometry tables", bytes: LaminoProjector::layout(self.form, geometry, slices).bytes() },
            Bytes { what: "samples and fields", bytes: self.corrected(slices, part).map_or(0, samples) },
        ])
    }
}

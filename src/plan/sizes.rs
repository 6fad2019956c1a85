//! Bytes of what is on a device and on its way there, as functions of how a pass is cut.

use super::errors::{PlanDeviceError, PlanFlagError};
use super::kernel_choice::Chosen;
use super::kernel_memory::KernelMemory;
use super::request::{Bytes, OnDevice, PIECES, Pieces, Request, WRITTEN_PIECES, largest, sum};
use super::scan::SampleShape;
use super::solver_memory::SolverMemory;
use crate::error::Result;
use crate::facts::DeviceKind;
use crate::geometry::Cut;
use crate::kernel::{RowFilter, StepBackend, StepBackends, StepTarget};
use crate::least_squares::LeastSquares;
use crate::operations::{
    BlockCorrector, BlockPlace, BlockShape, EncodedSample, ImagesTarget, RowBlocks, RowExtender, SinogramShape,
    SliceCounter, SliceEncoder,
};
use crate::sink::Dtype;
use crate::units::human;

/// Largest number of pieces whose samples are on the device together: those of a chunk are copied while the one before
/// it is computed.
const SAMPLES_AT_ONCE: u64 = 4;

/// Bytes beyond which a piece is not made larger.
const PIECE_TARGET: u64 = 128 << 20;

/// Bytes of sinograms beyond which a chunk is not made larger, unless a pass is.
const CHUNK_TARGET: u64 = 512 << 20;

/// Divisors of device memory for a batch of a block that the host keeps: the second where memory is short.
const BATCH_SHARES: [u64; 2] = [64, 96];

/// Least number of sinograms of a pass whose stripes are removed together, if there is no room for those of all.
const LEAST_STRIPES: u64 = 4;

/// Least number of chunks of a run, if they are whole passes, so that reading, computing and writing overlap.
const CHUNKS: u64 = 8;

/// Who keeps blocks of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The device keeps the blocks that steps need.
    ByDevice,
    /// The host keeps the blocks that steps need.
    ByHost,
    /// The device keeps all rows in one block, although no step needs it, so that frames of the input are read as a
    /// whole.
    AllRows,
}

/// Bytes of what a kernel needs on the device, as functions of how a pass is cut.
pub(super) struct Sizes<'a> {
    request: &'a Request<'a>,
    chosen: &'a Chosen,
    rows: RowFilter,
    /// The backends that may do the steps.
    backends: StepBackends,
    kept: Kept,
    /// Number of slices of a pass, of the whole run: all shards have the same kernel.
    pass: u64,
    /// Number of slices of a pass that is cut.
    cut_pass: u64,
    /// Number of sinograms of a pass whose stripes are removed together.
    stripes: u64,
    /// Divisor of the memory that samples on their way to the device may have.
    share: u64,
    /// Divisor of device memory for a batch of a block that the host keeps.
    batch_share: u64,
    /// Number of batches of a block on the device, if the host keeps blocks.
    kept_batches: usize,
    /// Bytes of host memory, without those that steps hold there.
    host: u64,
    /// Number of sinograms and slices that host memory holds in each direction.
    of_host: u64,
    /// Memory of least squares, if these find the slices.
    pub solver: Option<SolverMemory>,
}

/// Numbers of slices in chunks and pieces, and the bytes of pieces.
pub(super) struct Chunks {
    /// Number of slices of a chunk.
    pub chunk: u64,
    pub chunks_held: u64,
    /// Number of further chunks of sinograms on the device.
    pub sinograms_ahead: u64,
    pub pieces: Pieces,
    /// Bytes of the pieces in host memory.
    pub host_bytes: u64,
}

/// Returns the form in which a device encodes samples of a type.
pub fn encoded_sample(dtype: Dtype) -> EncodedSample {
    match dtype {
        Dtype::F32 => EncodedSample::Float,
        Dtype::F16 => EncodedSample::Half,
        Dtype::U16 => EncodedSample::Unsigned16,
        Dtype::U8 => EncodedSample::Unsigned8,
    }
}

impl<'a> Sizes<'a> {
    pub fn new(
        request: &'a Request,
        chosen: &'a Chosen,
        rows: RowFilter,
        backends: StepBackends,
        kept: Kept,
    ) -> Result<Sizes<'a>> {
        let pass = u64::from(chosen.spec.slices).min(request.scan.run_slices.len() as u64).max(1);
        let stripes = u64::from(chosen.spec.slices);
        let cut_pass = pass;
        let mut sizes = Sizes {
            request,
            chosen,
            rows,
            backends,
            kept,
            pass,
            cut_pass,
            stripes,
            share: 1,
            batch_share: BATCH_SHARES[0],
            kept_batches: 3,
            host: 0,
            of_host: 0,
            solver: None,
        };
        let mut host = request.left_on_host(sizes.steps(sizes.uncut()))?;
        let solver = |of: &LeastSquares| SolverMemory::new(request, of, backends.solver, pass as usize, host);
        sizes.solver = request.recipe.solver.as_ref().map(solver).transpose()?;
        host -= sizes.solver.as_ref().map_or(0, |solver| solver.bytes);
        sizes.host = host;
        if kept == Kept::ByHost && sizes.kept_bytes(sizes.uncut()) > host / 2 {
            return Err(PlanDeviceError::NoMemoryForBlock.into());
        }
        let least = sizes.pieces_bytes(sizes.uncut(), [1; 2]).max(PIECES as u64 * sizes.of_slice());
        sizes.of_host = host / least.max(1);
        if sizes.of_host < 1 {
            let (memory, needed) = (human(host), human(least));
            let (sinograms, slices) = (PIECES, WRITTEN_PIECES);
            return Err(PlanFlagError::NoMemoryForSlices { memory, sinograms, slices, needed }.into());
        }
        sizes.cut_pass = pass.min(sizes.of_host);
        sizes.make_room();
        Ok(sizes)
    }

    /// Makes pieces and batches of samples smaller, and lets fewer sinograms have their stripes removed together,
    /// rather than fewer slices per pass, or copies and kernels that take turns.
    fn make_room(&mut self) {
        let short = |sizes: &Self| !sizes.fits(sizes.uncut(), sizes.wanted_passes());
        if short(self) {
            // chunks of one pass are copied in halves anyway
            self.share = 2;
        }
        if self.kept == Kept::ByHost && short(self) {
            self.batch_share = BATCH_SHARES[1];
        }
        while self.stripes > LEAST_STRIPES && short(self) {
            self.stripes /= 2;
        }
        if self.kept == Kept::ByHost && short(self) {
            self.kept_batches = 2;
        }
        // copies and kernels take turns all the same
        if short(self) {
            (self.share, self.batch_share, self.kept_batches) = (1, BATCH_SHARES[0], 3);
        }
    }

    fn uncut(&self) -> Cut {
        Cut::whole(&self.request.scan.geometry)
    }

    /// Returns the backends of the steps: the device if it may, if it has sinograms as a whole, and can do all of them.
    /// The host does not get back what a device has corrected.
    pub fn steps(&self, cut: Cut) -> StepBackends {
        let Request { recipe, scan, facts, keeps_values, histogram, .. } = *self.request;
        let StepBackends { rows, images, sinograms, slices, .. } = self.backends;
        let whole = cut == self.uncut();
        let stripes = !recipe.steps.stripes.is_empty();
        let on_device = |backend, possible| if possible { backend } else { StepBackend::Host };
        let rest_on_device = !stripes || sinograms == StepBackend::Device;
        let blocks = scan.samples.blocks;
        let of_images = blocks.is_none() || images == StepBackend::Device;
        let rows = on_device(rows, whole && rest_on_device && scan.samples.correctable && of_images);
        let images = if blocks.is_some() { rows } else { StepBackend::Host };
        // the host extends the rows that it corrects, and stripes go before
        let seen = scan.field.is_none() || rows == StepBackend::Device;
        let sinograms = on_device(sinograms, whole && stripes && seen);
        // whole numbers are scaled in f64 everywhere, so that they are the same everywhere
        let dtype = recipe.values.dtype;
        let encodes = dtype != Dtype::F32 && (!dtype.is_integer() || facts.has("cl_khr_fp64"));
        let kept = keeps_values || histogram && !self.may_count(cut);
        // values stay values, but for the unit of length and the mask
        let finishes = recipe.slice.pixel_size.is_some() || recipe.values.mask.is_some();
        let in_place = dtype == Dtype::F32 && finishes;
        let slices = on_device(slices, whole && (encodes && !kept || in_place));
        let solver = self.solver.as_ref().map_or(StepBackend::Host, SolverMemory::place);
        StepBackends { rows, images, sinograms, slices, solver }
    }

    /// Reports whether the device is able to count values, and may.
    fn may_count(&self, cut: Cut) -> bool {
        let Request { scan, facts, .. } = *self.request;
        // counts have 32 bits
        let able = SliceCounter::lacks(facts).is_none() && u32::try_from(scan.geometry.roi.pixels()).is_ok();
        able && cut == self.uncut() && self.backends.slices == StepBackend::Device
    }

    /// Reports whether the device counts the values of slices; the host counts them where they are in its memory.
    pub fn counts_values(&self, cut: Cut) -> bool {
        self.request.histogram && self.may_count(cut) && !self.mapped(cut)
    }

    /// Returns the bytes of the counts of slices, with the mask.
    fn of_histograms(&self, cut: Cut, there: OnDevice) -> u64 {
        let (height, chunks_held) = (self.request.scan.geometry.roi.height, there.chunks_held.max(1));
        let of_set = SliceCounter::layout(height, (there.slices / chunks_held) as usize).bytes();
        let all = SliceCounter::mask_layout(height).bytes() + there.chunks_held * of_set;
        if self.counts_values(cut) { all } else { 0 }
    }

    /// Returns the bytes for the encoding of slices, whose samples take the place of values.
    fn of_encoding(&self, cut: Cut, there: OnDevice) -> u64 {
        if self.steps(cut).slices == StepBackend::Host {
            return 0;
        }
        let (roi, sample) = (self.request.scan.geometry.roi, encoded_sample(self.request.recipe.values.dtype));
        let of_set =
            SliceEncoder::layout(sample, roi.width, (there.slices / there.chunks_held.max(1)) as usize).bytes();
        let chunks_held = if sample == EncodedSample::Float { 0 } else { there.chunks_held };
        SliceEncoder::mask_layout(roi.height).bytes() + chunks_held * of_set
    }

    /// Returns the bytes of the counts of a slice.
    fn of_counts(&self, cut: Cut) -> u64 {
        if self.counts_values(cut) { SliceCounter::layout(self.request.scan.geometry.roi.height, 1).bytes() } else { 0 }
    }

    /// Returns the bytes of a slice that are copied to the device, and from it.
    fn copied_bytes(&self, cut: Cut) -> [u64; 2] {
        let Request { scan, recipe, .. } = *self.request;
        let StepBackends { rows, slices, .. } = self.steps(cut);
        let (sinogram, slice) = (self.in_part(self.uncut()), self.out_band(self.uncut()));
        [
            if rows == StepBackend::Device {
                (scan.geometry.projections() * scan.samples.stored.row_bytes()) as u64
            } else {
                sinogram
            },
            if slices == StepBackend::Device { slice / 4 * recipe.values.dtype.bytes() as u64 } else { slice },
        ]
    }

    /// Returns the largest numbers of slices that are copied at once, to the device and from it.
    fn most_pieces(&self, cut: Cut) -> [u64; 2] {
        let all = self.request.scan.slices.len() as u64;
        // samples are on the device beside all else
        let target = PIECE_TARGET.min(self.request.device_budget() / 16);
        let [read, written] = self.copied_bytes(cut);
        [(read, target / self.share), (written, target)]
            .map(|(bytes, target)| self.of_host.min((target / bytes.max(1)).min(all).max(1)))
    }

    /// Returns the number of pieces whose samples are on the device together.
    fn samples_at_once(&self, cut: Cut) -> usize {
        self.at_once(self.most_pieces(cut)[0] * self.copied_bytes(cut)[0])
    }

    /// Returns the number of pieces of `bytes` bytes of samples that are on the device together.
    fn at_once(&self, bytes: u64) -> usize {
        (self.request.device_budget() / 8 / self.share / bytes.max(1)).clamp(1, SAMPLES_AT_ONCE) as usize
    }

    /// Returns the bytes of host memory for pieces of some slices, to the device and from it.
    fn pieces_bytes(&self, cut: Cut, slices: [u64; 2]) -> u64 {
        let halo = match self.steps(cut).rows {
            StepBackend::Device => 2 * self.request.scan.samples.halo as u64,
            StepBackend::Host => 0,
        };
        let [read, written] = self.copied_bytes(cut);
        let read = match self.blocks(cut) {
            Some(shape) => shape.batch as u64 * self.projection_bytes(shape.blocks),
            None => (slices[0] + halo) * read,
        };
        let written_pieces = if cut == self.uncut() { WRITTEN_PIECES } else { PIECES };
        PIECES as u64 * read + written_pieces as u64 * slices[1] * written + self.kept_bytes(cut)
    }

    /// Returns the bytes of a block of rows that the host keeps; 0 if it keeps none.
    fn kept_bytes(&self, cut: Cut) -> u64 {
        self.blocks(cut).map_or(0, |shape| shape.kept_bytes())
    }

    /// Returns the bytes of the samples of a projection that a block needs.
    fn projection_bytes(&self, blocks: RowBlocks) -> u64 {
        let SampleShape { stored, height, halo, .. } = self.request.scan.samples;
        ((blocks.rows + 2 * halo).min(height) * stored.row_bytes()) as u64
    }

    /// Returns the bytes for filtering a pair of images.
    fn pair_bytes(&self, blocks: RowBlocks) -> usize {
        blocks.pair_bytes(self.request.facts, self.request.choice.profile.fft.images)
    }

    /// Returns the number of bins of the detector.
    fn detector_bins(&self) -> usize {
        let scan = self.request.scan;
        scan.field.as_ref().map_or(scan.geometry.bins, |field| field.detector)
    }

    /// Returns the blocks of rows that the device corrects and that are kept, if there are any.
    pub fn blocks(&self, cut: Cut) -> Option<BlockShape> {
        let scan = self.request.scan;
        let all = (self.kept == Kept::AllRows).then(|| RowBlocks::all(scan.samples.height));
        let blocks = scan.samples.blocks.or(all).filter(|_| self.steps(cut).rows == StepBackend::Device)?;
        // where the host keeps blocks, a device has little room for them
        let on_host = self.kept == Kept::ByHost && scan.samples.blocks.is_some();
        let of_device = PIECE_TARGET.min(self.request.device_budget() / if on_host { self.batch_share } else { 16 });
        let target = of_device.min(self.host / (4 * PIECES as u64));
        let projections = scan.geometry.projections();
        let batch = (target / self.projection_bytes(blocks).max(1)) as usize;
        // pairs of projections are one image
        let batch = (batch.min(projections.next_multiple_of(2)) / 2 * 2).max(2);
        let pairs = (of_device as usize / self.pair_bytes(blocks).max(1)).clamp(1, batch / 2);
        let (bins, height) = (self.detector_bins(), scan.samples.height);
        // at least one is copied while the other is corrected
        let at_once = if on_host { 2 } else { self.at_once(batch as u64 * self.projection_bytes(blocks)) };
        // one is copied to the host, one corrected, and a third one, if there is room, filled
        let place = if on_host { BlockPlace::Host { batches: self.kept_batches } } else { BlockPlace::Device };
        let counted = blocks.rows;
        Some(BlockShape { blocks, bins, height, projections, batch, pairs, at_once, counted, place })
    }

    /// Returns the blocks in which the device corrects rows, if it does: those that are kept, or `rows` rows of a chunk
    /// at once.
    pub fn corrected(&self, cut: Cut, rows: usize, chunk: usize) -> Option<BlockShape> {
        let scan = self.request.scan;
        let straight = || {
            let size = [self.detector_bins(), scan.samples.height];
            let shape = BlockShape::straight(RowBlocks::all(rows), size, scan.geometry.projections());
            BlockShape { at_once: self.samples_at_once(cut), counted: chunk, ..shape }
        };
        (self.steps(cut).rows == StepBackend::Device).then(|| self.blocks(cut).unwrap_or_else(straight))
    }

    /// Returns the memory of the steps before the filter on the device.
    fn of_steps(&self, cut: Cut, there: OnDevice) -> [Bytes; 4] {
        let scan = self.request.scan;
        let StepBackends { rows, sinograms, .. } = self.steps(cut);
        let projections = scan.geometry.projections();
        let SampleShape { stored, held, halo, .. } = scan.samples;
        let (piece, counted) = (there.piece as usize, (there.slices / there.chunks_held.max(1)) as usize);
        let images = ImagesTarget { facts: self.request.facts, backend: self.request.choice.profile.fft.images };
        let [block, samples] = self.corrected(cut, piece, counted).map_or([0; 2], |shape| {
            let halo = halo - shape.blocks.halo();
            let samples = BlockCorrector::layout(&shape, stored, halo, held, images);
            [shape.kept_layout(), samples].map(|layout| layout.bytes())
        });
        let extended = scan.field.as_ref().filter(|_| rows == StepBackend::Device);
        let slices = self.chosen.spec.slices as usize;
        let stripes = if sinograms == StepBackend::Device { self.of_stripes() } else { 0 };
        [
            Bytes { what: "a block of rows", bytes: block },
            Bytes { what: "samples and fields", bytes: samples },
            Bytes {
                what: "rows of the detector",
                bytes: extended.map_or(0, |field| RowExtender::layout(field, slices, projections).bytes()),
            },
            Bytes { what: "stripes", bytes: stripes },
        ]
    }

    /// Returns the bytes for the removal of stripes.
    fn of_stripes(&self) -> u64 {
        let Request { recipe, scan, choice, facts, .. } = *self.request;
        let target = StepTarget { facts, sizes: &choice.profile.step_sizes };
        let (projections, bins) = (scan.geometry.projections(), self.detector_bins());
        let shape = SinogramShape { slices: self.stripes as usize, projections, bins };
        recipe.steps.sinogram_layout(target, shape).bytes()
    }

    /// Returns the bytes of a part of a sinogram.
    fn in_part(&self, cut: Cut) -> u64 {
        (self.request.scan.geometry.bins * cut.projections) as u64 * 4
    }

    /// Returns the bytes of a band of a slice.
    fn out_band(&self, cut: Cut) -> u64 {
        (self.request.scan.geometry.roi.width * cut.rows) as u64 * 4
    }

    /// Returns the bytes of a sinogram and its slice.
    fn of_slice(&self) -> u64 {
        self.in_part(self.uncut()) + self.out_band(self.uncut())
    }

    /// Returns the buffers on the device for the sinograms and slices that are there.
    pub fn buffers(&self, cut: Cut, there: OnDevice) -> Vec<Bytes> {
        let memory = self.kernel_memory();
        let first = [
            Bytes { what: "sinograms", bytes: there.sinograms * self.in_part(cut) },
            Bytes { what: "slices", bytes: there.slices * self.out_band(cut) },
            Bytes { what: "histograms", bytes: self.of_histograms(cut, there) },
            Bytes { what: "encoded slices", bytes: self.of_encoding(cut, there) },
            Bytes { what: "least squares", bytes: self.solver.as_ref().map_or(0, |solver| solver.device_bytes) },
        ];
        first.into_iter().chain(memory.buffers(cut)).chain(self.of_steps(cut, there)).collect()
    }

    /// Returns what determines the memory of the kernels between sinograms and slices.
    fn kernel_memory(&self) -> KernelMemory<'_> {
        let Request { scan, facts, .. } = *self.request;
        KernelMemory { geometry: &scan.geometry, chosen: self.chosen, rows: self.rows, facts }
    }

    /// Reports whether the device is a processor, which computes in host memory.
    fn shared(&self) -> bool {
        self.request.facts.kind == DeviceKind::Cpu
    }

    /// Reports whether nothing needs to be copied: a processor gets sinograms as a whole, and the host corrects rows
    /// and finishes slices.
    fn mapped(&self, cut: Cut) -> bool {
        let StepBackends { rows, slices, .. } = self.steps(cut);
        self.shared() && cut == self.uncut() && (rows, slices) == (StepBackend::Host, StepBackend::Host)
    }

    /// Returns the bytes that may be on the device.
    fn budget(&self, cut: Cut) -> u64 {
        let (host, budget) = (self.host, self.request.device_budget());
        let pieces = if cut == self.uncut() { self.most_pieces(cut) } else { [self.cut_pass; 2] };
        match (self.shared(), self.mapped(cut)) {
            (false, _) => budget,
            (true, true) => budget.min(host),
            (true, false) => budget.min(host.saturating_sub(self.pieces_bytes(cut, pieces))),
        }
    }

    /// Returns the buffers on the device for a cut of a pass, and for `passes` passes if none is cut.
    fn passes(&self, cut: Cut, passes: u64) -> Vec<Bytes> {
        let uncut = (passes * self.pass).min(self.request.scan.run_slices.len() as u64);
        let (slices, chunks_held) = if cut == self.uncut() { (uncut, passes) } else { (self.cut_pass, 1) };
        self.buffers(cut, OnDevice { sinograms: slices, slices, chunks_held, piece: self.most_pieces(cut)[0] })
    }

    /// Returns the number of passes that are on the device together so that copies and kernels do not take turns.
    ///
    /// Sinograms are free when they are filtered, and slices are copied while the device corrects the next sinograms,
    /// if it does.
    fn wanted_passes(&self) -> u64 {
        if self.steps(self.uncut()).sinograms == StepBackend::Device { 1 } else { 2 }
    }

    /// Returns the least number of passes that are on the device together.
    fn least_passes(&self) -> u64 {
        // what fills a block must not take turns with computing
        if self.kept == Kept::ByDevice { 1 } else { self.wanted_passes() }
    }

    fn fits(&self, cut: Cut, passes: u64) -> bool {
        let least = self.passes(cut, passes);
        let has_room = sum(&least) <= self.budget(cut) && largest(&least) <= self.request.facts.max_allocation;
        has_room && self.kernel_memory().grid(cut).is_some()
    }

    /// Returns the number of sinograms of a pass whose stripes the device removes together.
    pub fn stripes_at_once(&self) -> usize {
        self.stripes as usize
    }

    /// Cuts a pass as little as possible.
    pub fn cut(&self, may_cut: bool) -> Result<Cut> {
        let (uncut, facts) = (self.uncut(), self.request.facts);
        let geometry = &self.request.scan.geometry;
        let block = self.chosen.source.block[1];
        let cuts = || Cut::candidates(geometry, block).take(if may_cut { usize::MAX } else { 1 });
        if let Some(cut) = cuts().find(|cut| self.fits(*cut, self.least_passes())) {
            return Ok(cut);
        }
        let least_of = |cut| self.passes(cut, self.least_passes());
        let least = cuts().min_by_key(|&cut| sum(&least_of(cut))).unwrap_or(uncut);
        Err(PlanDeviceError::NoMemoryForPass {
            device: facts.name.clone(),
            slices: self.chosen.spec.slices,
            rows: least.rows,
            projections: least.projections,
            needed: human(sum(&least_of(least))),
            largest: human(largest(&least_of(least))),
            free: human(self.budget(least)),
            allocation: human(facts.max_allocation),
        }
        .into())
    }

    /// Returns notes on why a pass is cut, if it is, and why the host does steps that the profile leaves to the device.
    pub fn notes(&self, cut: Cut) -> impl Iterator<Item = String> {
        let is_cut = (cut != self.uncut()).then(|| {
            format!(
                "a pass of {} slices does not fit into {} of device memory (largest allocation {}), so it is cut",
                self.chosen.spec.slices,
                human(self.budget(self.uncut())),
                human(self.request.facts.max_allocation),
            )
        });
        is_cut.into_iter().chain(self.why_on_host(cut))
    }

    /// Returns a note on why the host does steps that the profile leaves to the device, if it does.
    fn why_on_host(&self, cut: Cut) -> Option<String> {
        let Request { scan, choice, .. } = *self.request;
        let of_profile = choice.profile.steps;
        let blocks = scan.samples.blocks;
        let may = scan.samples.correctable && (blocks.is_none() || of_profile.images == StepBackend::Device);
        let wanted = may && of_profile.rows == StepBackend::Device;
        if !wanted || self.steps(cut).rows == StepBackend::Device {
            return None;
        }
        let lacks_room = self.backends.rows == StepBackend::Host || cut != self.uncut();
        lacks_room.then(|| self.request.no_room_for_steps("a pass"))
    }

    pub fn chunks(&self, cut: Cut) -> Chunks {
        let (uncut, max_allocation) = (self.uncut(), self.request.facts.max_allocation);
        let slices = u64::from(self.chosen.spec.slices);
        let run = self.request.scan.slices.len() as u64;
        let larger = self.in_part(uncut).max(self.out_band(uncut)).max(self.of_counts(cut)).max(1);
        let of_slice = self.of_slice() + self.of_counts(cut);
        let whole_passes = |count: u64| count.max(slices) / slices * slices;
        let wanted = match self.request.recipe.solver {
            // a run ends when its chunk is computed, which takes long
            Some(_) => slices,
            None => (CHUNK_TARGET / self.in_part(uncut).max(1)).min(run.div_ceil(CHUNKS).next_multiple_of(slices)),
        };
        let free = self.budget(cut).saturating_sub(sum(
            &self.buffers(cut, OnDevice { piece: self.most_pieces(cut)[0], ..OnDevice::default() })
        ));
        let chunk_of = |chunks_held: u64| {
            let of_device = free / (chunks_held * of_slice).max(1);
            (of_device >= slices)
                .then(|| whole_passes(wanted.min(of_device).min(max_allocation / larger)).min(run).max(1))
        };
        let (chunk, chunks_held) = match chunk_of(2) {
            _ if cut != uncut => (self.cut_pass.min(run).max(1), 1),
            Some(chunk) if chunk < run => (chunk, 2),
            _ => (chunk_of(1).unwrap_or(self.pass).min(run).max(1), 1),
        };
        let sinograms_ahead = self.sinograms_ahead(cut, chunk, chunks_held);
        // the first is copied while the second is read
        let most = self.most_pieces(cut).map(|most| most.min(chunk.div_ceil(2)));
        let (pieces, host_bytes) = match (cut == uncut, self.mapped(cut)) {
            (false, _) => ([chunk; 2], self.pieces_bytes(cut, [chunk; 2])),
            (true, true) => ([chunk; 2], 0),
            (true, false) => (most, self.pieces_bytes(cut, most)),
        };
        let pieces = if self.blocks(cut).is_some() { [chunk, pieces[1]] } else { pieces };
        let [read, written] = pieces.map(|slices| slices as usize);
        let pieces = Pieces { read, written };
        Chunks { chunk, chunks_held, sinograms_ahead, pieces, host_bytes }
    }

    /// Returns the number of further chunks of sinograms for which there is memory, so that a block that the device
    /// keeps can be copied and the next one be corrected while slices of the first are computed.
    ///
    /// Several devices share what is left to the end instead.
    fn sinograms_ahead(&self, cut: Cut, chunk: u64, chunks_held: u64) -> u64 {
        let blocks = self.request.scan.samples.blocks.and(self.blocks(cut));
        let Some(shape) = blocks.filter(|shape| !shape.on_host() && self.request.memory.devices == 1) else { return 0 };
        let slices = chunks_held * chunk;
        let there = OnDevice { sinograms: slices, slices, chunks_held, piece: self.most_pieces(cut)[0] };
        let left = self.budget(cut).saturating_sub(sum(&self.buffers(cut, there)));
        let chunks = (self.request.scan.slices.len() as u64).div_ceil(chunk.max(1));
        let of_block = (shape.blocks.rows as u64).div_ceil(chunk.max(1));
        (left / (chunk * self.in_part(cut)).max(1)).min(of_block).min(chunks.saturating_sub(chunks_held))
    }
}

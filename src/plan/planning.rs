//! The plan of a run on one device.

use super::kernel_choice::choose;
use super::lamino::{InclinedChunks, LaminoPlan, inclined_chunks};
use super::request::{Bytes, OnDevice, Pieces, Request};
use super::sizes::{Chunks, Kept, Sizes};
use super::solver_memory::SolverMemory;
use crate::error::{Error, Result};
use crate::geometry::Cut;
use crate::kernel::{KernelSpec, RowFilter, SLICE_MODES, StepBackend, StepBackends};
use crate::operations::{BlockPlace, BlockShape};
use crate::profile::Profile;

/// How a run will be computed on one device.
#[derive(Clone, Debug)]
pub struct Plan {
    pub profile: Profile,
    pub profile_reason: String,
    pub spec: KernelSpec,
    /// How rows are filtered.
    pub row_filter: RowFilter,
    /// Backends of the steps; the host for steps that there are not.
    pub steps: StepBackends,
    /// Largest number of sinograms of a pass whose stripes the device removes together; some methods process fewer at
    /// once.
    pub stripes_at_once: usize,
    /// True if the device counts the values of slices.
    pub counts_values: bool,
    /// Number of slices that are on the device together; a multiple of the slices per pass, unless it is the whole run
    /// or a pass is cut.
    pub chunk: usize,
    /// Number of chunks that the device holds: 2 if copies and kernels are to overlap.
    pub chunks_held: usize,
    /// Number of further chunks of sinograms that the device holds.
    pub sinograms_ahead: usize,
    /// The part of a chunk that is on the device at a time.
    pub cut: Cut,
    /// Numbers of slices that are copied to and from the device at once; the whole chunk where nothing is copied.
    pub pieces: Pieces,
    /// Blocks in which the device corrects rows, if it does.
    pub blocks: Option<BlockShape>,
    /// Bytes of device memory, buffer by buffer.
    pub device_bytes: Vec<Bytes>,
    /// Bytes of host memory for the pieces in flight, besides those of the device.
    pub host_bytes: u64,
    /// Memory of least squares, if these find the slices.
    pub solver: Option<SolverMemory>,
    /// How slices about an inclined axis are computed, if the axis is inclined.
    pub lamino: Option<LaminoPlan>,
    /// Notes for the user, such as why something else than the profile's first choice is done.
    pub notes: Vec<String>,
}

impl Plan {
    /// Plans a run on one device.
    ///
    /// Unless the recipe asks for a number of slices per pass, it is the largest that memory holds, if need be with the
    /// host finishing slices and keeping blocks of rows. If memory does not hold the smallest pass with the steps on
    /// the device, the host does the steps. If memory does not hold that either, a pass is cut: its projections into
    /// parts that are added up, and then slices into bands.
    ///
    /// A kernel to avoid is replaced by the same kernel over a buffer and then, unless the recipe asks for an
    /// algorithm, by another family of the profile.
    ///
    /// # Errors
    /// [`Error::Usage`] when the host's memory does not hold a slice, [`Error::Device`] when the device's holds no part of
    /// a pass, [`Error::NoCorrectKernel`] when no kernel is left.
    pub fn new(request: &Request) -> Result<Plan> {
        if let Some(lamino) = request.scan.lamino {
            return Ok(Plan::about_inclined(request, inclined_chunks(request, lamino)?));
        }
        let asked = request.recipe.kernel.slices_per_pass.is_some();
        let largest = SLICE_MODES[SLICE_MODES.len() - 1] as usize;
        let run_slices = request.scan.run_slices.len();
        // as if the run had fewer slices
        let fewer = |&slices: &usize| Some(slices.min(largest) / 2).filter(|&fewer| fewer > 0 && !asked);
        let of_profile = request.choice.profile.steps;
        // what is done to finished slices, and who keeps blocks, must not change what slices are made with
        let backends = |steps: StepBackends, kept: Kept| {
            [steps.slices, StepBackend::Host].map(|slices| (StepBackends { slices, ..steps }, kept))
        };
        let all = request.takes_frames().then(|| backends(of_profile, Kept::AllRows));
        let needed = [Kept::ByDevice, Kept::ByHost].map(|kept| backends(of_profile, kept));
        let of_device = all.into_iter().chain(needed).collect::<Vec<_>>().concat();
        let of_host = backends(StepBackends::HOST, Kept::ByDevice).to_vec();
        let sizes: Vec<usize> = std::iter::successors(Some(run_slices), fewer).collect();
        for backends in [of_device, of_host] {
            for (&run_slices, &(steps, kept)) in sizes.iter().flat_map(|size| backends.iter().map(move |of| (size, of)))
            {
                match Plan::with_slices(request, steps, kept, run_slices, false) {
                    Err(Error::Device(_)) => {}
                    plan => return plan,
                }
            }
        }
        let least = sizes.last().copied().unwrap_or(run_slices);
        Plan::with_slices(request, StepBackends::HOST, Kept::ByDevice, least, true)
    }

    /// Returns the blocks of rows that are kept until their slices have been computed, if any are.
    pub fn kept_blocks(&self) -> Option<BlockShape> {
        self.blocks.filter(|shape| shape.place != BlockPlace::Nowhere)
    }

    /// Returns the plan of a run about an inclined axis: the host does all steps but those on rows.
    fn about_inclined(request: &Request, chunks: InclinedChunks) -> Plan {
        let Request { scan, choice, .. } = *request;
        let InclinedChunks { spec, filter, plan, chunk, projections, parts, steps, blocks, .. } = chunks;
        Plan {
            profile: choice.profile.clone(),
            profile_reason: choice.reason.clone(),
            spec,
            row_filter: filter,
            steps,
            stripes_at_once: 1,
            counts_values: false,
            chunk,
            chunks_held: 1,
            sinograms_ahead: parts - 1,
            cut: Cut { projections, rows: scan.geometry.roi.height },
            pieces: Pieces { read: chunk, written: plan.pieces.slices },
            blocks,
            device_bytes: chunks.device_bytes,
            host_bytes: chunks.host_bytes,
            solver: None,
            lamino: Some(plan),
            notes: chunks.notes,
        }
    }

    /// Plans with the kernel for a run of `run_slices` slices, at most `steps` on the device, and blocks of rows `kept`
    /// as told; a pass may be cut if `may_cut`.
    fn with_slices(
        request: &Request,
        steps: StepBackends,
        kept: Kept,
        run_slices: usize,
        may_cut: bool,
    ) -> Result<Plan> {
        let Request { scan, choice, facts, .. } = *request;
        let chosen = choose(request, run_slices)?;
        let row_filter = RowFilter::new(&chosen.spec, &choice.profile.fft, scan.geometry.bins, Some(facts));
        let sizes = Sizes::new(request, &chosen, row_filter, steps, kept)?;
        let cut = sizes.cut(may_cut)?;
        let Chunks { chunk, chunks_held, sinograms_ahead, pieces, host_bytes } = sizes.chunks(cut);
        let there = OnDevice {
            sinograms: (chunks_held + sinograms_ahead) * chunk,
            slices: chunks_held * chunk,
            chunks_held,
            piece: pieces.read as u64,
        };
        let notes = chosen.notes.iter().cloned().chain(sizes.notes(cut)).collect();
        let mut plan = Plan {
            profile: choice.profile.clone(),
            profile_reason: choice.reason.clone(),
            row_filter,
            steps: sizes.steps(cut),
            stripes_at_once: sizes.stripes_at_once(),
            counts_values: sizes.counts_values(cut),
            chunk: chunk as usize,
            chunks_held: chunks_held as usize,
            sinograms_ahead: sinograms_ahead as usize,
            cut,
            pieces,
            blocks: sizes.corrected(cut, pieces.read, chunk as usize),
            device_bytes: sizes.buffers(cut, there),
            host_bytes,
            solver: sizes.solver.clone(),
            lamino: None,
            spec: chosen.spec.clone(),
            notes,
        };
        plan.notes.extend(plan.exact_is_faster(scan, facts, request.recipe));
        Ok(plan)
    }
}

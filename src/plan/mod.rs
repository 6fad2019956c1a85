//! The plan: what will be computed where, in which chunks, with how many bytes. Pure; `--dry-run` prints it.

mod describe;
mod kernel_choice;
mod scan;

pub use kernel_choice::{Avoid, Refused};
pub use scan::{Scan, StackShape, binned};

use crate::error::{Error, Result};
use crate::facts::{DeviceFacts, DeviceKind};
use crate::geometry::Cut;
use crate::kernel::{KernelSpec, RowFilter, SLICE_MODES};
use crate::profile::{Choice, Profile};
use crate::recipe::Recipe;
use crate::units::human;
use kernel_choice::{Chosen, choose};

/// One buffer of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes {
    pub what: &'static str,
    pub bytes: u64,
}

/// What a plan is made for.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub recipe: &'a Recipe,
    /// Kernels are checked before the run.
    pub self_test: bool,
    pub scan: &'a Scan,
    pub choice: &'a Choice,
    /// Of the device; its image formats are trusted.
    pub facts: &'a DeviceFacts,
    pub memory: Memory,
    pub avoid: Avoid<'a>,
}

/// Memory that a run may use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Of the host, for what is on its way to and from a device; for a processor everything.
    pub host: u64,
    /// Of the device; 80 % of what it has if none is given.
    pub device: Option<u64>,
}

/// How a run will be computed on one device.
#[derive(Clone, Debug)]
pub struct Plan {
    pub profile: Profile,
    pub profile_reason: String,
    pub spec: KernelSpec,
    /// How rows are filtered.
    pub rows: RowFilter,
    /// Slices that are on the device together; a multiple of the slices per pass.
    pub chunk: usize,
    /// Chunks that the device holds, 2 where copies and kernels are to overlap.
    pub sets: usize,
    /// What of a chunk is on the device at a time.
    pub cut: Cut,
    /// Slices that are copied to and from the device at once; the whole chunk where nothing is copied.
    pub piece: usize,
    /// Device memory, buffer by buffer.
    pub device_bytes: Vec<Bytes>,
    /// Host memory of the pieces in flight, besides the device's.
    pub host_bytes: u64,
    /// Why something else than the profile's first choice is done.
    pub notes: Vec<String>,
}

/// Pieces on the host at one time in each direction: one being filled, one being emptied.
pub const PIECES: usize = 2;

/// A piece is not made larger than this many bytes of sinograms or slices.
const PIECE_TARGET: u64 = 128 << 20;

/// A chunk is not made larger than this (bytes of sinograms), unless a pass is.
const CHUNK_TARGET: u64 = 256 << 20;

/// A run has at least so many chunks, if they are whole passes, so that reading, computing and writing overlap.
const CHUNKS: u64 = 8;

impl Plan {
    /// Plans a run on one device.
    ///
    /// Unless the recipe asks for a number of slices per pass, it is the largest that memory holds. If it does not hold the
    /// smallest, a pass is cut: its projections into parts that are added up, and then slices into bands. In place of a
    /// kernel to avoid comes the same over a buffer, then, unless the recipe asks for an algorithm, another family of the
    /// profile.
    ///
    /// # Errors
    /// [`Error::Usage`] when the host's memory does not hold a slice, [`Error::Device`] when the device's holds no part of
    /// a pass, [`Error::NoCorrectKernel`] when no kernel is left.
    pub fn new(request: &Request) -> Result<Plan> {
        let mut run_slices = request.scan.run_slices.len();
        loop {
            let plan = Plan::with_slices(request, run_slices, false);
            // as if the run had fewer slices
            let fewer = run_slices.min(SLICE_MODES[SLICE_MODES.len() - 1] as usize) / 2;
            match plan {
                Err(Error::Device(_)) if request.recipe.kernel.slices_per_pass.is_some() || fewer == 0 => {
                    return Plan::with_slices(request, run_slices, true);
                }
                Err(Error::Device(_)) => run_slices = fewer,
                plan => return plan,
            }
        }
    }

    /// With the kernel for a run of so many slices; a pass may be cut if `may_cut`.
    fn with_slices(request: &Request, run_slices: usize, may_cut: bool) -> Result<Plan> {
        let Request { scan, choice, facts, .. } = *request;
        let chosen = choose(request, run_slices)?;
        let rows = RowFilter::new(&chosen.spec, &choice.profile.fft, scan.geometry.bins, Some(facts));
        let sizes = Sizes::new(request, &chosen, rows)?;
        let cut = sizes.cut(may_cut)?;
        let Chunks { chunk, sets, piece, host_pieces } = sizes.chunks(cut);
        let notes = chosen.notes.iter().cloned().chain(sizes.note(cut)).collect();
        Ok(Plan {
            profile: choice.profile.clone(),
            profile_reason: choice.reason.clone(),
            rows,
            chunk: chunk as usize,
            sets: sets as usize,
            cut,
            piece: piece as usize,
            device_bytes: sizes.buffers(cut, sets * chunk),
            host_bytes: host_pieces * piece * sizes.of_slice(),
            spec: chosen.spec.clone(),
            notes,
        })
    }

    /// Seconds of back projection, from the profile's measurements of this kernel on this device, if there are any.
    pub fn estimate(&self, scan: &Scan, facts: &DeviceFacts, recipe: &Recipe) -> Option<f64> {
        let measured = self.profile.measured.iter().find(|m| {
            facts.name.contains(&m.device)
                && m.algorithm == self.spec.parameters.algorithm()
                && m.interpolation == self.spec.interpolation
                && m.mode == recipe.kernel.mode
                && m.slices == self.spec.slices
        })?;
        Some(scan.updates() / (measured.gu_per_s * 1e9))
    }
}

/// Bytes of what a kernel needs on the device, as functions of how a pass is cut.
struct Sizes<'a> {
    request: &'a Request<'a>,
    chosen: &'a Chosen,
    rows: RowFilter,
    /// Slices of a pass, of the whole run: all shards have the same kernel.
    pass: u64,
    /// The same where a pass is cut.
    cut_pass: u64,
    /// Sinograms and slices that the host's memory holds in each direction.
    of_host: u64,
}

/// How many slices are where at a time.
struct Chunks {
    /// On the device together.
    chunk: u64,
    sets: u64,
    /// Copied at once.
    piece: u64,
    /// Pieces in the host's memory.
    host_pieces: u64,
}

fn sum(buffers: &[Bytes]) -> u64 {
    buffers.iter().map(|b| b.bytes).sum()
}

fn largest(buffers: &[Bytes]) -> u64 {
    buffers.iter().map(|b| b.bytes).max().unwrap_or(0)
}

impl<'a> Sizes<'a> {
    fn new(request: &'a Request, chosen: &'a Chosen, rows: RowFilter) -> Result<Sizes<'a>> {
        let host = request.memory.host;
        let pass = u64::from(chosen.spec.slices).min(request.scan.run_slices.len() as u64).max(1);
        let mut sizes = Sizes { request, chosen, rows, pass, cut_pass: pass, of_host: 0 };
        sizes.of_host = host / (PIECES as u64 * sizes.of_slice()).max(1);
        if sizes.of_host < 1 {
            return Err(Error::usage(format!(
                "--memory: {} do not hold {PIECES} sinograms and {PIECES} slices in flight, {} together",
                human(host),
                human(PIECES as u64 * sizes.of_slice())
            )));
        }
        sizes.cut_pass = pass.min(sizes.of_host);
        Ok(sizes)
    }

    fn uncut(&self) -> Cut {
        Cut::whole(&self.request.scan.geometry)
    }

    /// Part of a sinogram.
    fn in_part(&self, cut: Cut) -> u64 {
        (self.request.scan.geometry.bins * cut.projections) as u64 * 4
    }

    /// Band of a slice.
    fn out_band(&self, cut: Cut) -> u64 {
        (self.request.scan.geometry.roi.width * cut.rows) as u64 * 4
    }

    /// A sinogram and its slice.
    fn of_slice(&self) -> u64 {
        self.in_part(self.uncut()) + self.out_band(self.uncut())
    }

    /// Buffers on the device with so many slices there.
    fn buffers(&self, cut: Cut, slices_there: u64) -> Vec<Bytes> {
        let geometry = &self.request.scan.geometry;
        let Chosen { spec, source, .. } = self.chosen;
        let row_bytes = ((geometry.bins + 2 * spec.texel.guard()) * spec.element_bytes()) as u64;
        let pairs = cut.projections.div_ceil(2) as u64;
        let pair_bytes = self.rows.pair_bytes(geometry.bins) as u64;
        let sinogram = row_bytes * cut.projections as u64;
        let tables = cut.bands(geometry.roi).map(|band| geometry.block_offsets_bytes(band, source.block)).sum();
        vec![
            Bytes { what: "sinograms", bytes: slices_there * self.in_part(cut) },
            Bytes { what: "slices", bytes: slices_there * self.out_band(cut) },
            Bytes { what: "padded rows", bytes: u64::from(spec.slices) * pairs * pair_bytes },
            Bytes { what: "compound sinogram", bytes: sinogram },
            Bytes { what: "sinogram image", bytes: if spec.texel.format().is_some() { sinogram } else { 0 } },
            Bytes { what: "geometry tables", bytes: tables },
        ]
    }

    /// A processor computes in the host's memory, where nothing needs to be copied unless a pass is cut.
    fn shared(&self) -> bool {
        self.request.facts.kind == DeviceKind::Cpu
    }

    /// Bytes that may be on the device.
    fn budget(&self, cut: Cut) -> u64 {
        let Memory { host, device } = self.request.memory;
        let budget = device.unwrap_or(self.request.facts.global_memory / 5 * 4);
        match (self.shared(), cut == self.uncut()) {
            (false, _) => budget,
            (true, true) => budget.min(host),
            (true, false) => budget.min(host.saturating_sub(PIECES as u64 * self.cut_pass * self.of_slice())),
        }
    }

    /// How a pass is cut: as little as possible.
    fn cut(&self, may_cut: bool) -> Result<Cut> {
        let (uncut, facts) = (self.uncut(), self.request.facts);
        let least_of = |cut: Cut| self.buffers(cut, if cut == uncut { self.pass } else { self.cut_pass });
        let fits =
            |&cut: &Cut| sum(&least_of(cut)) <= self.budget(cut) && largest(&least_of(cut)) <= facts.max_allocation;
        let geometry = &self.request.scan.geometry;
        let block = self.chosen.source.block[1];
        let cuts = || Cut::candidates(geometry, block).take(if may_cut { usize::MAX } else { 1 });
        if let Some(cut) = cuts().find(fits) {
            return Ok(cut);
        }
        let least = cuts().min_by_key(|&cut| sum(&least_of(cut))).unwrap_or(uncut);
        Err(Error::Device(format!(
            "{}: {} slices at once, of them {} rows of pixels and {} projections at a time, need {} of device memory \
             (largest single buffer {}), there are {} (largest allocation {}); use fewer --slices-per-pass, a --roi, \
             more --memory or another --device",
            facts.name,
            self.chosen.spec.slices,
            least.rows,
            least.projections,
            human(sum(&least_of(least))),
            human(largest(&least_of(least))),
            human(self.budget(least)),
            human(facts.max_allocation),
        )))
    }

    /// Why a pass is cut, if so.
    fn note(&self, cut: Cut) -> Option<String> {
        (cut != self.uncut()).then(|| {
            format!(
                "a pass of {} slices is more than {} of device memory, the largest allocation {}: it is cut",
                self.chosen.spec.slices,
                human(self.budget(self.uncut())),
                human(self.request.facts.max_allocation),
            )
        })
    }

    fn chunks(&self, cut: Cut) -> Chunks {
        let (uncut, max_allocation) = (self.uncut(), self.request.facts.max_allocation);
        let slices = u64::from(self.chosen.spec.slices);
        let run = self.request.scan.slices.len() as u64;
        let larger = self.in_part(uncut).max(self.out_band(uncut)).max(1);
        let whole_passes = |count: u64| count.max(slices) / slices * slices;
        let wanted = (CHUNK_TARGET / self.in_part(uncut).max(1)).min(run.div_ceil(CHUNKS).next_multiple_of(slices));
        let free = self.budget(cut).saturating_sub(sum(&self.buffers(cut, 0)));
        let chunk_of = |sets: u64| {
            let of_device = free / (sets * self.of_slice()).max(1);
            (of_device >= slices)
                .then(|| whole_passes(wanted.min(of_device).min(max_allocation / larger)).min(run).max(1))
        };
        let (chunk, sets) = match chunk_of(2) {
            _ if cut != uncut => (self.cut_pass.min(run).max(1), 1),
            Some(chunk) if chunk < run => (chunk, 2),
            _ => (chunk_of(1).unwrap_or(self.pass).min(run).max(1), 1),
        };
        // the first is copied while the second is read
        let copied = self.of_host.min((PIECE_TARGET / larger).max(1)).min(chunk.div_ceil(2));
        let (piece, host_pieces) = match (cut == uncut, self.shared()) {
            (false, _) => (chunk, PIECES as u64),
            (true, true) => (chunk, 0),
            (true, false) => (copied, PIECES as u64),
        };
        Chunks { chunk, sets, piece, host_pieces }
    }
}

#[cfg(test)]
mod tests;

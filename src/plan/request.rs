//! The request that a plan answers, and the sizes that it is made of.

use super::errors::PlanFlagError;
use super::scan::{SampleShape, Scan};
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::kernel::StepBackends;
use crate::known::KnownFailures;
use crate::profile::Choice;
use crate::recipe::Recipe;
use crate::units::human;

/// The run, the device and the memory that a plan is made for.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub recipe: &'a Recipe,
    /// True if kernels are checked before the run.
    pub self_test: bool,
    /// True if values of slices are needed beside the samples that are written.
    pub keeps_values: bool,
    /// True if values of slices are to be counted.
    pub histogram: bool,
    pub scan: &'a Scan,
    pub choice: &'a Choice,
    /// Facts of the device; its image formats are trusted.
    pub facts: &'a DeviceFacts,
    pub memory: Memory,
    pub avoid: Avoid<'a>,
}

/// Memory that a run may use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of host memory for what is on its way to and from a device; for a processor, for everything.
    pub host: u64,
    /// Bytes of device memory; 80 % of what the device has if `None`.
    pub device: Option<u64>,
    /// Number of devices in the run.
    pub devices: usize,
}

/// A kernel that the device did not compute correctly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Key of the generated source.
    pub key: String,
    /// The reason: what is wrong with the kernel.
    pub why: String,
}

/// Kernels that a plan avoids.
#[derive(Clone, Copy, Debug)]
pub struct Avoid<'a> {
    pub known: &'a KnownFailures,
    pub refused: &'a [Refused],
}

impl Request<'_> {
    /// Returns the bytes of host memory that the steps of the host leave, which all devices share.
    pub(super) fn left_on_host(&self, steps: StepBackends) -> Result<u64> {
        let Request { scan, memory, .. } = *self;
        let held = scan.held.by(steps);
        memory
            .host
            .checked_sub(held / memory.devices.max(1) as u64)
            .filter(|left| *left > 0)
            .ok_or_else(|| PlanFlagError::NoMemoryForSteps { memory: human(memory.host), held: human(held) }.into())
    }

    /// Returns the bytes of device memory that the run may use.
    pub(super) fn device_budget(&self) -> u64 {
        self.memory.device.unwrap_or(self.facts.global_memory / 5 * 4)
    }

    /// Returns a note that the host does the steps before the filter, because device memory has no room for them beside
    /// `what`.
    pub(super) fn no_room_for_steps(&self, what: &str) -> String {
        let memory = human(self.device_budget());
        format!(
            "{memory} of device memory do not hold what the steps before the filter need beside {what}, so the host does them"
        )
    }

    /// Reports whether frames should be read as a whole if the device has room for all rows.
    ///
    /// They should if decoding a few rows of a frame takes as long as all, and the run needs most rows. Several devices
    /// would each decode all frames.
    pub(super) fn takes_frames(&self) -> bool {
        let SampleShape { whole_frames, blocks, height, .. } = self.scan.samples;
        whole_frames && blocks.is_none() && self.memory.devices == 1 && 2 * self.scan.slices.len() > height
    }
}

/// One buffer of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes {
    pub what: &'static str,
    pub bytes: u64,
}

pub(super) fn sum(buffers: &[Bytes]) -> u64 {
    buffers.iter().map(|b| b.bytes).sum()
}

pub(super) fn largest(buffers: &[Bytes]) -> u64 {
    buffers.iter().map(|b| b.bytes).max().unwrap_or(0)
}

/// Amounts of a run that are on the device at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct OnDevice {
    /// Number of sinograms.
    pub sinograms: u64,
    /// Number of slices.
    pub slices: u64,
    /// Number of chunks of slices.
    pub chunks_held: u64,
    /// Number of rows of a piece that the device corrects at once.
    pub piece: u64,
}

/// Numbers of slices that are copied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Number of slices that are copied to the device.
    pub read: usize,
    /// Number of slices that are copied from the device.
    pub written: usize,
}

/// Pieces on the host on their way to a device: one being filled, one being emptied.
pub const PIECES: usize = 2;

/// Pieces on the host on their way from a device: one being filled, the others being written.
pub const WRITTEN_PIECES: usize = 6;

//! Messages and channels between a device, the reader and the writer.

use crate::device::HostMemory;
use crate::engine::chunks::Engine;
use crate::engine::run::Run;
use crate::engine::seconds::DeviceSeconds;
use crate::engine::work::Work;
use crate::error::Result;
use crate::feed::{DeviceCounts, Piece};
use crate::histogram::CountedSlice;
use crate::plan::Pieces;
use crossbeam_channel::{Receiver, Sender};
use std::ops::Range;
use std::sync::Mutex;

/// A piece of a chunk that was read, with its memory unless there was nothing to read.
pub(in crate::engine) struct ReadPiece {
    /// Positions of the chunk in the list of slices.
    pub chunk: Range<usize>,
    pub piece: Piece,
    pub values: Option<HostMemory>,
}

impl ReadPiece {
    /// Returns the positions in the list of slices and the memory of a piece of slices; `None` for other pieces.
    pub fn sinograms(self) -> Option<(Range<usize>, HostMemory)> {
        match (self.piece, self.values) {
            (Piece::Slices(positions), Some(values)) => Some((positions, values)),
            _ => None,
        }
    }
}

/// Slices that a device has computed.
pub(in crate::engine) struct ComputedSlices {
    pub device: usize,
    pub positions: Range<usize>,
    pub values: HostMemory,
    pub found: FoundInSlices,
}

/// Findings of a device about slices.
#[derive(Default)]
pub(in crate::engine) struct FoundInSlices {
    /// Number of clamped samples of each slice, if slices are samples as they are written.
    pub clamped: Option<Vec<u32>>,
    /// Counts of the values of each slice, if the device counts values.
    pub counted: Option<Vec<CountedSlice>>,
    /// True if the unit of length and the mask have been applied.
    pub finished: bool,
}

impl FoundInSlices {
    /// Removes and returns what was found about the first `count` slices.
    pub fn take_first(&mut self, count: usize) -> FoundInSlices {
        FoundInSlices {
            clamped: self.clamped.as_mut().map(|clamped| clamped.drain(..count).collect()),
            counted: self.counted.as_mut().map(|counted| counted.drain(..count).collect()),
            finished: self.finished,
        }
    }
}

/// A chunk on the device: positions in the list of slices, and sinograms or slices.
pub(in crate::engine) type Chunk<T> = (Range<usize>, T);

/// Messages and channels between a device, the reader and the writer.
pub(in crate::engine) struct DeviceChannels<'a> {
    /// Number of the device.
    pub device: usize,
    pub work: &'a Work,
    pub run: Run<'a>,
    /// Counts of replaced values in the data that the device corrects.
    pub counts: &'a Mutex<DeviceCounts>,
    /// Numbers of slices that are copied at once.
    pub pieces_of: Pieces,
    /// Pieces from the reader.
    pub pieces: Receiver<ReadPiece>,
    /// Memory that goes back to the reader.
    pub free_sinograms: Sender<HostMemory>,
    /// Slices for the writer.
    pub computed: Sender<ComputedSlices>,
    /// Memory that comes back from the writer; the sender is for the first of it.
    pub free_slices: (Sender<HostMemory>, Receiver<HostMemory>),
}

/// A way in which chunks get to a device, and slices from it.
pub(in crate::engine) trait Transfer {
    /// Computes chunks until no more come. Returns the seconds of every stage.
    ///
    /// # Errors
    /// Errors of the device. A neighbour that is gone is no error: the stage ends.
    fn run(&self, engine: &mut Engine, channels: DeviceChannels) -> Result<DeviceSeconds>;
}

/// Takes a device out of the run when it is dropped, whatever the reason.
pub(in crate::engine) struct LeaveOnDrop<'a>(pub &'a Work, pub usize);

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// The way of slices to the writer.
pub(in crate::engine) struct Delivery<'a> {
    pub device: usize,
    pub work: &'a Work,
    pub run: Run<'a>,
    pub computed: Sender<ComputedSlices>,
}

impl Delivery<'_> {
    /// Passes slices on to the writer; returns false if there is no writer any more.
    pub fn deliver(&self, positions: Range<usize>, values: HostMemory, found: FoundInSlices) -> bool {
        let slices = ComputedSlices { device: self.device, positions: positions.clone(), values, found };
        let sent = self.computed.send(slices).is_ok();
        match sent {
            true => self.work.done(self.device, positions),
            // nobody waits for this device any more
            false => self.work.leave(self.device),
        }
        sent
    }
}

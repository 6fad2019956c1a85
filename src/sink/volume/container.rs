//! Interface of a format with all slices in one array.

use super::description::VolumeDescription;
use super::marks::{Mark, Marks};
use crate::sink::compression::Compression;
use crate::sink::existing::Origin;
use crate::sink::page::EncodedPage;
use crate::sink::request::OutputRequest;
use std::fmt::Debug;
use std::io;
use std::path::Path;

/// A format with all slices in one array.
pub(super) trait Container: Clone + Debug + Send + Sync + 'static {
    /// The flag about files of this format only, without dashes.
    const FLAG: &'static str;

    fn compressions(&self) -> &[Compression];

    /// Why it has no others, after their names.
    fn why_not_others(&self) -> &'static str {
        ""
    }

    /// What a volume says of itself that is made for this request.
    fn describe(&self, request: &OutputRequest) -> VolumeDescription;

    /// Makes a volume without slices where nothing is yet; `run_file` describes the run.
    fn make(&self, path: &Path, description: &VolumeDescription, run_file: &str) -> io::Result<()>;

    /// Whether everything in a volume but samples and marks is as it was made: all that other programs read it by. `path` is
    /// a volume of this description.
    fn is_as_made(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool>;

    /// Opens a volume. Nothing is written to a finished one.
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn OpenVolume>>;

    /// Who wrote what has this name.
    fn origin(&self, path: &Path) -> Origin;

    /// Removes a volume with all that belongs to it, if it is there. Until all of it is gone it has its name and can be opened,
    /// or has lost its name: an unfinished volume that cannot be opened is kept.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Whether what is there is a single file, so that another file can replace it in one step.
    fn is_single(&self, path: &Path) -> bool {
        path.is_file()
    }

    /// Gives what lies beside an unfinished volume its final name, before the volume gets its own.
    fn show_parts(&self, _description: &VolumeDescription) -> io::Result<()> {
        Ok(())
    }

    /// Hides what lies beside a volume that was finished and has lost its name.
    fn hide_parts(&self, _description: &VolumeDescription) -> io::Result<()> {
        Ok(())
    }
}

/// An open volume. Slices have their places in the list of its description.
pub(super) trait OpenVolume: Send + Sync {
    fn description(&self) -> &VolumeDescription;

    fn marks(&self) -> &Marks;

    /// Writes the samples of slices, with their places: one, or an even one and the next. They are marked as written
    /// afterwards.
    fn write(&self, slices: &[(usize, EncodedPage)]) -> io::Result<WrittenSlices>;

    /// Reads the samples of a slice.
    fn read(&self, place: usize) -> io::Result<Vec<u8>>;

    /// Whether a slice with the right checksum is stored byte by byte as it was written, with all that was made of it.
    fn is_as_written(&self, _place: usize) -> io::Result<bool> {
        Ok(true)
    }

    /// Forgets what was made of a slice that is to be written again.
    fn forget(&self, place: usize) -> io::Result<()> {
        self.marks().set(place, Mark::Missing)
    }

    /// Does what follows from slices that are written. They are marked as complete afterwards.
    fn written(&self, _slices: &WrittenSlices) -> io::Result<()> {
        Ok(())
    }

    /// Does what is left when all slices are complete.
    fn complete(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Slices that a volume wrote together.
pub(super) struct WrittenSlices {
    /// Their places, and the CRC-32 of their samples.
    pub slices: Vec<(usize, u32)>,
    /// Samples of the coarser plane above them, if all that it is made of was there.
    pub coarser: Option<Vec<u8>>,
}

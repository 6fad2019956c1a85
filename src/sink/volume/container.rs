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

/// Format with all slices in one array.
pub(super) trait Container: Clone + Debug + Send + Sync + 'static {
    /// Flag that concerns only files of this format, without dashes, if there is one.
    const FLAG: Option<&'static str>;

    fn compressions(&self) -> &[Compression];

    /// Returns the reason why other compressions are not supported, as the end of a sentence; may be empty.
    fn why_not_others(&self) -> &'static str {
        ""
    }

    /// Returns the description of a volume that is made for this request.
    fn describe(&self, request: &OutputRequest) -> VolumeDescription;

    /// Makes a volume without slices at a path where nothing exists; `run_file` describes the run.
    fn make(&self, path: &Path, description: &VolumeDescription, run_file: &str) -> io::Result<()>;

    /// Reports whether everything in a volume except samples and marks is as it was made, that is, all metadata that
    /// other programs read. `path` is a volume with this description.
    fn is_as_made(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool>;

    /// Opens a volume; nothing is ever written to a finished one.
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn OpenVolume>>;

    /// Returns the writer of what exists at a path.
    fn origin(&self, path: &Path) -> Origin;

    /// Removes a volume with everything that belongs to it, if it exists.
    ///
    /// Until all of it is removed, the volume has its name and can be opened, or has lost its name, as an unfinished
    /// volume that cannot be opened would be kept.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Reports whether `path` is a single file, so that another file can replace it in one step.
    fn is_single(&self, path: &Path) -> bool {
        path.is_file()
    }

    /// Gives the parts next to an unfinished volume their final names, before the volume gets its own.
    fn show_parts(&self, _description: &VolumeDescription) -> io::Result<()> {
        Ok(())
    }

    /// Hides the parts next to a volume that was finished and has lost its name.
    fn hide_parts(&self, _description: &VolumeDescription) -> io::Result<()> {
        Ok(())
    }
}

/// Open volume. The place of a slice is its index in the list of the description.
pub(super) trait OpenVolume: Send + Sync {
    fn description(&self) -> &VolumeDescription;

    fn marks(&self) -> &Marks;

    /// Writes the samples of slices, given with their places: one slice, or two slices at an even place and the next.
    /// The caller marks them as written afterwards.
    fn write(&self, slices: &[(usize, EncodedPage)]) -> io::Result<WrittenSlices>;

    /// Reads the samples of a slice.
    fn read(&self, place: usize) -> io::Result<Vec<u8>>;

    /// Reports whether a slice with the right checksum is stored byte by byte as it was written, including everything
    /// made of it.
    fn is_as_written(&self, _place: usize) -> io::Result<bool> {
        Ok(true)
    }

    /// Invalidates everything that was made of a slice which is to be written again.
    fn forget(&self, place: usize) -> io::Result<()> {
        self.marks().set(place, Mark::Missing)
    }

    /// Makes what depends on slices that were written. The caller marks them as complete afterwards.
    fn written(&self, _slices: &WrittenSlices) -> io::Result<()> {
        Ok(())
    }

    /// Makes what remains to be made when all slices are complete.
    fn complete(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Slices that were written to a volume together.
pub(super) struct WrittenSlices {
    /// Places of the slices, and the CRC-32 of their samples.
    pub slices: Vec<(usize, u32)>,
    /// Samples of the plane above the slices on the next coarser level, if all slices that it is made of were written
    /// together.
    pub coarser: Option<Vec<u8>>,
}

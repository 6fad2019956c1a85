//! Existing slices in a volume.

use super::container::{Container, OpenVolume};
use super::errors::VolumeError;
use super::marks::Mark;
use super::output::VolumeOutput;
use crate::error::{Error, Result};
use crate::sink::existing::{SliceState, StoredSlices};
use crate::sink::request::OutputRequest;
use crate::sink::stamp::{SliceDescription, digits};
use crate::source::to_f32;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Existing slices in a volume.
pub(super) struct StoredVolume<'a, C> {
    output: &'a VolumeOutput<C>,
    volume: Option<(PathBuf, io::Result<Box<dyn OpenVolume>>)>,
    /// True if the volume has the same slices; a volume with others is replaced.
    same: bool,
    /// True if the volume is of the run, and as it was made.
    sound: OnceLock<bool>,
}

impl<'a, C: Container> StoredVolume<'a, C> {
    /// Opens the existing volume, if it has slices with these numbers.
    pub fn new(output: &'a VolumeOutput<C>, run: &[usize]) -> Self {
        let volume = output.present();
        let same = volume.as_ref().is_some_and(|(_, v)| v.as_ref().is_ok_and(|v| v.description().slices == run));
        StoredVolume { output, volume, same, sound: OnceLock::new() }
    }

    fn is_sound(&self, path: &Path, request: &OutputRequest) -> bool {
        let look = || self.output.may_go_on(path, &self.output.container.describe(request)).unwrap_or(false);
        *self.sound.get_or_init(look)
    }
}

impl<C: Container> StoredSlices for StoredVolume<'_, C> {
    fn examine(&self, index: usize, request: &OutputRequest) -> SliceState {
        let volume = match &self.volume {
            None => return SliceState::Missing,
            Some((path, Ok(volume))) if self.same && self.is_sound(path, request) => volume,
            Some(_) => return SliceState::Unknown,
        };
        let description = volume.description();
        let look = || -> io::Result<SliceState> {
            let Ok(place) = description.slices.binary_search(&index) else { return Ok(SliceState::Missing) };
            let Mark::Complete(crc) = volume.marks().get(place)? else { return Ok(SliceState::Missing) };
            if crc32fast::hash(&volume.read(place)?) != crc || !volume.is_as_written(place)? {
                return Ok(SliceState::Damaged);
            }
            let (crc32, stamp) = (digits(crc), description.stamp.clone());
            Ok(SliceState::Complete(SliceDescription { slice: index, crc32, range: None, stamp }))
        };
        look().unwrap_or_else(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound | io::ErrorKind::InvalidData => SliceState::Damaged,
            _ => SliceState::Unreadable(e.to_string()),
        })
    }

    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        let (slice, bad) = (index, |why: VolumeError| Error::output(&self.output.file.0, why));
        let Some((_, Ok(volume))) = &self.volume else { return Err(bad(VolumeError::NoVolume { slice })) };
        let description = volume.description();
        let place = description.slices.binary_search(&index).map_err(|_| bad(VolumeError::NoSlice { slice }))?;
        let bytes = volume.read(place).map_err(|error| bad(VolumeError::SliceUnreadable { slice, error }))?;
        if bytes.len() != out.len() * description.dtype.bytes() {
            return Err(bad(VolumeError::SliceLength { slice, bytes: bytes.len() }));
        }
        to_f32(&bytes, description.dtype.sample(), cfg!(target_endian = "big"), out);
        Ok(())
    }
}

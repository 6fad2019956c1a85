//! Outputs with all slices in one array: HDF5 and OME-Zarr.
//!
//! Slices go to a hidden file or directory beside the output, `.NAME.unfinished`, which gets its name when all slices of the
//! run are there. Every slice has a mark in it, with its checksum, that is set when its samples are written. So several jobs
//! may write to it, and a run that was stopped goes on.

#[cfg(feature = "hdf5")]
mod chunk_tree;
#[cfg(feature = "hdf5")]
mod hdf5;
mod marks;
#[cfg(feature = "hdf5")]
mod parts;
#[cfg(feature = "hdf5")]
mod space;
mod stored;
mod zarr;

#[cfg(feature = "hdf5")]
pub(super) use hdf5::parse_hdf5;
#[cfg(not(feature = "hdf5"))]
pub(super) use missing::parse_hdf5;
pub(super) use zarr::parse_zarr;

use super::existing::{Origin, StoredSlices};
use super::file::failed;
use super::form::PageForm;
use super::format::{OutputFormat, Sink};
use super::page::{EncodedPage, OutputPage};
use super::spec::{OneFile, spec_of};
use super::target::Target;
use super::{Compression, Dtype, OmeZarr, OutputRequest, PageContent, Pixels, SliceStamp};
use crate::error::{Error, Result};
use crate::files::{Lock, temporary_path};
use crate::source::SampleType;
use crate::source::zarr::is_zarr;
use marks::{Mark, Marks};
use rayon::prelude::*;
use rustix::fs::{CWD, RenameFlags, rename, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use stored::StoredVolume;

/// What a volume holds, as JSON in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeDescription {
    software: String,
    /// Numbers of the slices, in their order.
    pub slices: Vec<usize>,
    height: usize,
    width: usize,
    dtype: Dtype,
    compression: Compression,
    /// Of a directory of OME-Zarr.
    #[serde(rename = "ome-zarr", skip_serializing_if = "Option::is_none")]
    ome_zarr: Option<OmeZarr>,
    /// Number of files that hold the slices, if an HDF5 output has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<usize>,
    /// Values that became 0 and the largest integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<(f32, f32)>,
    /// Unit of values: one by the unit of length.
    pub unit: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<SliceStamp>,
}

impl VolumeDescription {
    fn new(request: &OutputRequest) -> VolumeDescription {
        let form = &request.page;
        let stamp = form.stamp.clone().map(|stamp| SliceStamp { per_centimetre: None, ..stamp });
        let mut description = VolumeDescription {
            software: form.software.clone(),
            slices: request.run.clone(),
            height: form.height,
            width: form.width,
            dtype: form.encoding.dtype,
            compression: form.compression,
            ome_zarr: None,
            parts: None,
            range: form.encoding.range.filter(|_| form.encoding.dtype.is_integer()),
            unit: String::new(),
            stamp,
        };
        description.unit = format!("1/{}", description.pixel_size().map_or("pixel".to_owned(), |(_, unit)| unit));
        description
    }

    /// Side of a pixel and its unit of length, if there is one.
    fn pixel_size(&self) -> Option<(f64, String)> {
        let (value, unit) = self.stamp.as_ref()?.pixel_size.as_deref()?.split_once(' ')?;
        Some((value.parse().ok()?, unit.to_owned()))
    }

    /// Whether both are of one run: what is of no run is never of the same.
    fn is_of_the_run_of(&self, other: &VolumeDescription) -> bool {
        self.stamp.is_some() && self == other
    }

    /// Slices belong to a run, other pages do not.
    fn content(&self) -> PageContent {
        if self.stamp.is_some() { PageContent::Slices } else { PageContent::Pages }
    }

    fn sample(&self) -> SampleType {
        match self.dtype {
            Dtype::F32 => SampleType::F32,
            Dtype::F16 => SampleType::F16,
            Dtype::U16 => SampleType::U16,
            Dtype::U8 => SampleType::U8,
        }
    }

    #[cfg(feature = "hdf5")]
    /// Bytes of a slice that is not compressed.
    fn slice_bytes(&self) -> usize {
        self.width.saturating_mul(self.height).saturating_mul(self.dtype.bytes())
    }
}

/// What a finished output says of itself, if it has all slices in one array.
pub fn described_volume(path: &Path) -> Option<VolumeDescription> {
    let zarr = zarr::describe(path);
    #[cfg(feature = "hdf5")]
    let zarr = zarr.or_else(|| hdf5::describe(path));
    zarr
}

/// A format with all slices in one array.
trait Container: Clone + Debug + Send + Sync + 'static {
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
trait OpenVolume: Send + Sync {
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
struct WrittenSlices {
    /// Their places, and the CRC-32 of their samples.
    slices: Vec<(usize, u32)>,
    /// Samples of the coarser plane above them, if all that it is made of was there.
    coarser: Option<Vec<u8>>,
}

/// An output of one volume.
#[derive(Clone, Debug)]
struct VolumeOutput<C> {
    file: OneFile,
    container: C,
}

impl<C: Container> VolumeOutput<C> {
    fn target(path: impl Into<PathBuf>, container: C) -> Target {
        Target::new(VolumeOutput { file: OneFile(path.into()), container })
    }

    /// The volume before it has its name.
    fn unfinished(&self) -> PathBuf {
        unfinished(&self.file.0)
    }

    /// What may not be done by two jobs at the same time.
    fn alone(&self) -> Result<Lock> {
        Lock::wait(&volume_lock(&self.file.0))
    }

    fn failed(&self, error: &io::Error) -> Error {
        failed(&self.file.0, error)
    }

    /// The error of an unfinished volume that may hold slices, and cannot be opened.
    fn unreadable(&self, error: &io::Error) -> Error {
        Error::output(
            &self.unfinished(),
            format!(
                "this unfinished output is kept, but cannot be read: {error}; correct this and run again, or remove it to \
                 start from scratch"
            ),
        )
    }

    /// Whether a volume is of the run with this description.
    fn is_of_run(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool> {
        Ok(self.container.open(path, false)?.description().is_of_the_run_of(description))
    }

    /// Whether slices of the run with this description may be added to a volume.
    fn may_go_on(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool> {
        Ok(self.is_of_run(path, description)? && self.container.is_as_made(path, description)?)
    }

    /// The volume to which slices go. Of what is there that of the same run is kept.
    fn prepare(&self, request: &OutputRequest) -> Result<Box<dyn OpenVolume>> {
        let description = self.container.describe(request);
        let unfinished = self.unfinished();
        let goes_on = is_there(&unfinished).and_then(|there| Ok(there && self.may_go_on(&unfinished, &description)?));
        if !goes_on.map_err(|e| self.unreadable(&e))? {
            self.container.remove(&unfinished).map_err(|e| self.failed(&e))?;
            // a finished output that cannot be opened stays until it is replaced
            if self.may_go_on(&self.file.0, &description).unwrap_or(false) {
                rename(&self.file.0, &unfinished).map_err(|e| self.failed(&e.into()))?;
                self.container.hide_parts(&description).map_err(|e| self.failed(&e))?;
            } else {
                let temporary = temporary_path(&self.file.0).map_err(|e| self.failed(&e))?;
                let made = self.container.make(&temporary, &description, &request.run_file);
                // a full disk may have cut it without an error
                let whole = made.and_then(|()| self.container.open(&temporary, false));
                let named = whole.and_then(|_| Ok(rename(&temporary, &unfinished)?));
                named.inspect_err(|_| drop(self.container.remove(&temporary))).map_err(|e| self.failed(&e))?;
            }
        }
        self.container.open(&unfinished, true).map_err(|e| self.failed(&e))
    }

    /// Gives a complete volume its name, in the place of what has it.
    fn publish(&self, description: &VolumeDescription, overwrite: bool) -> Result<()> {
        let (path, unfinished) = (&self.file.0, self.unfinished());
        let there = path.symlink_metadata().is_ok();
        if there && !overwrite {
            let why = "was created in the meantime; is another run writing to the same --output?";
            return Err(Error::output(path, why));
        }
        self.container.show_parts(description).map_err(|e| self.failed(&e))?;
        let swapped = there.then(|| renameat_with(CWD, &unfinished, CWD, path, RenameFlags::EXCHANGE));
        let named = match swapped {
            Some(Ok(())) => return self.container.remove(&unfinished).map_err(|e| self.failed(&e)),
            // a file system that cannot exchange names; only a single file need not make way first
            Some(Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)) if !self.container.is_single(path) => {
                self.container.remove(path).and_then(|()| Ok(rename(&unfinished, path)?))
            }
            Some(Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)) | None => {
                rename(&unfinished, path).map_err(io::Error::from)
            }
            Some(Err(e)) => Err(e.into()),
        };
        named.map_err(|e| self.failed(&e))
    }

    /// The volume that has slices of the output: unfinished or finished.
    fn present(&self) -> Option<(PathBuf, io::Result<Box<dyn OpenVolume>>)> {
        let path = [self.unfinished(), self.file.0.clone()].into_iter().find(|path| path.exists())?;
        let volume = self.container.open(&path, false);
        Some((path, volume))
    }
}

/// The file that is locked for what may not be done by two jobs at the same time.
fn volume_lock(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.fbp-volume"))
}

/// A volume before it has its name.
fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.unfinished"))
}

/// Whether a file or directory has this name.
fn is_there(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes a file, or a directory with all in it, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Err(e) => Err(e),
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

impl<C: Container> OutputFormat for VolumeOutput<C> {
    fn spec(&self) -> String {
        spec_of(&self.file.0)
    }

    fn path_of(&self, _: usize) -> PathBuf {
        self.file.0.clone()
    }

    fn directory(&self) -> &Path {
        self.file.directory()
    }

    fn fills_directory(&self) -> bool {
        false
    }

    fn record_prefix(&self) -> String {
        self.file.name()
    }

    fn lock(&self) -> String {
        self.file.lock()
    }

    fn writes(&self, name: &str) -> bool {
        name == self.file.name() || self.unfinished().file_name().is_some_and(|unfinished| unfinished == name)
    }

    fn one_file(&self) -> bool {
        true
    }

    fn resumable(&self) -> bool {
        true
    }

    fn shareable(&self) -> bool {
        true
    }

    fn replaced(&self, _: &[usize]) -> Vec<PathBuf> {
        let with_parts = |path: PathBuf| {
            let mut parts = path.clone().into_os_string();
            parts.push(".parts");
            [path, parts.into()]
        };
        [self.file.0.clone(), self.unfinished()].into_iter().flat_map(with_parts).collect()
    }

    fn origin_of(&self, _: usize) -> Origin {
        self.container.origin(&self.file.0)
    }

    fn own_flag(&self) -> Option<&'static str> {
        Some(C::FLAG)
    }

    fn compressions(&self) -> &[Compression] {
        self.container.compressions()
    }

    fn why_not_others(&self) -> &'static str {
        self.container.why_not_others()
    }

    fn unfinished_slices(&self) -> Result<usize> {
        let unfinished = self.unfinished();
        let count = || match is_there(&unfinished)? {
            true => {
                let volume = self.container.open(&unfinished, false)?;
                volume.marks().count(volume.description().slices.len())
            }
            false => Ok(0),
        };
        match count() {
            // another job has given it its name meanwhile
            Err(_) if is_there(&unfinished).is_ok_and(|there| !there) => Ok(0),
            counted => counted.map_err(|e| self.unreadable(&e)),
        }
    }

    fn remove_unfinished(&self) -> Result<()> {
        if self.unfinished_slices()? == 0 {
            let _ = self.container.remove(&self.unfinished()); // it is hidden, and the next run tries again
        }
        Ok(())
    }

    fn stored(&self, run: &[usize]) -> Box<dyn StoredSlices + '_> {
        Box::new(StoredVolume::new(self, run))
    }

    fn create(&self, slices: &[usize], overwrite: bool) -> Result<Box<dyn Sink>> {
        let path = &self.file.0;
        let holds = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if holds && !is_zarr(path) {
            return Err(Error::output(path, "is a directory but not a Zarr; remove it or choose another --output"));
        }
        // whether something can be written here
        let temporary = temporary_path(&self.file.0).map_err(|e| Error::output(&self.file.0, e))?;
        let written = fs::write(&temporary, "").and_then(|()| fs::remove_file(&temporary));
        written.map_err(|e| {
            Error::output(self.file.directory(), format!("cannot write here: {e}; choose another --output"))
        })?;
        if slices.is_empty() {
            return Err(Error::output(&self.file.0, "there is no slice to write to this file; widen --rows"));
        }
        Ok(Box::new(VolumeSink { output: self.clone(), slices: slices.to_vec(), overwrite, volume: OnceLock::new() }))
    }
}

/// Writes slices to a volume before it has its name.
struct VolumeSink<C> {
    output: VolumeOutput<C>,
    /// Numbers of this job's slices, ascending.
    slices: Vec<usize>,
    overwrite: bool,
    volume: OnceLock<Box<dyn OpenVolume>>,
}

impl<C: Container> VolumeSink<C> {
    /// Writes slices that [`OpenVolume::write`] gets together.
    fn write_group(&self, volume: &dyn OpenVolume, group: &[(usize, Pixels)], form: &PageForm) -> Result<u64> {
        let mut pages = Vec::new();
        for (index, pixels) in group {
            let Ok(place) = volume.description().slices.binary_search(index) else { continue };
            let page = OutputPage { form, pixels: *pixels, slice: None, number: None };
            pages.push((place, page.samples(&self.output.file.0)?));
        }
        let write = || -> io::Result<()> {
            let written = volume.write(&pages)?;
            let mark = |mark: fn(u32) -> Mark| {
                written.slices.iter().try_for_each(|&(place, crc)| volume.marks().set(place, mark(crc)))
            };
            mark(Mark::Written)?;
            volume.written(&written)?;
            mark(Mark::Complete)
        };
        write().map_err(|e| self.output.failed(&e))?;
        Ok(pages.iter().map(|(_, page)| page.clamped).sum())
    }
}

impl<C: Container> Sink for VolumeSink<C> {
    fn start(&self, request: &OutputRequest, kept: &[usize]) -> Result<()> {
        let _alone = self.output.alone()?;
        let left: Vec<_> = self.slices.iter().filter(|slice| kept.binary_search(slice).is_err()).collect();
        if left.is_empty() {
            return Ok(());
        }
        let volume = self.output.prepare(request)?;
        for slice in left {
            let Ok(place) = volume.description().slices.binary_search(slice) else { continue };
            let marked = volume.marks().get(place).map_err(|e| self.output.failed(&e))?;
            if matches!(marked, Mark::Complete(_)) && !self.overwrite {
                let why = format!("slice {slice} is there already; add --resume to keep it, or --overwrite");
                return Err(Error::output(&self.output.file.0, why));
            }
            volume.forget(place).map_err(|e| self.output.failed(&e))?;
        }
        let _ = self.volume.set(volume); // a sink is started once
        Ok(())
    }

    fn write(&self, slices: &[(usize, Pixels)], form: &PageForm) -> Result<u64> {
        let volume = self.volume.get().ok_or_else(|| Error::Internal("an output was not started".into()))?;
        let pair = |index: usize| volume.description().slices.binary_search(&index).ok().map(|place| place / 2);
        let groups: Vec<_> = slices.chunk_by(|(a, _), (b, _)| pair(*a) == pair(*b)).collect();
        let written = groups.into_par_iter().map(|group| self.write_group(&**volume, group, form));
        written.collect::<Vec<_>>().into_iter().sum()
    }

    fn finish(self: Box<Self>, request: &OutputRequest) -> Result<Vec<PathBuf>> {
        let _alone = self.output.alone()?;
        let (path, unfinished) = (&self.output.file.0, self.output.unfinished());
        if !is_there(&unfinished).map_err(|e| self.output.unreadable(&e))? {
            // all was there before, or another job was the last
            let what = match self.output.is_of_run(path, &self.output.container.describe(request)) {
                Ok(true) => return Ok(vec![path.clone()]),
                Ok(false) => "this output is of another run".to_owned(),
                Err(e) => e.to_string(),
            };
            let unfinished = unfinished.display();
            return Err(Error::output(
                path,
                format!("is not written, since {unfinished} was removed during the run ({what}); run again"),
            ));
        }
        let volume = self.output.container.open(&unfinished, true).map_err(|e| self.output.failed(&e))?;
        let planes = volume.description().slices.len();
        if *volume.description() != self.output.container.describe(request) {
            let why = "is not written, since another command has replaced it during the run; run again";
            return Err(Error::output(path, why));
        }
        if volume.marks().count(planes).map_err(|e| self.output.failed(&e))? < planes {
            return Ok(Vec::new());
        }
        volume.complete().map_err(|e| self.output.failed(&e))?;
        let description = volume.description().clone();
        drop(volume);
        self.output.publish(&description, self.overwrite)?;
        Ok(vec![path.clone()])
    }
}

/// Replacement for HDF5 in a build without it.
#[cfg(not(feature = "hdf5"))]
mod missing {
    use super::super::Target;
    use crate::error::{Error, Result};

    /// Refuses names of HDF5 files.
    pub fn parse_hdf5(spec: &str) -> Result<Option<Target>> {
        match super::is_hdf5_name(spec) {
            true => Err(Error::usage(format!(
                "--output {spec}: this fbp was built without HDF5; build it with `cargo build --release --locked \
                 --features hdf5`, or name a directory, a TIFF or a directory that ends in .zarr"
            ))),
            false => Ok(None),
        }
    }
}

/// Whether a name is that of an HDF5 file.
fn is_hdf5_name(spec: &str) -> bool {
    let lower = spec.to_ascii_lowercase();
    [".h5", ".hdf5", ".hdf", ".nx", ".nxs"].iter().any(|end| lower.ends_with(end))
}

//! Datasets of frames: checks of their form, and reading of their rows.

use super::datasets::{MAX_FRAMES, chunk_bytes, files, shape, stored};
use super::direct::{DirectRequest, DirectValues};
use super::errors::{Hdf5LinkError, Hdf5Result, Hdf5ValuesError};
use super::file::{ChunkCache, is_newer};
use super::filters::filters;
use super::links;
use super::row_server::served;
use super::sources::sources;
use crate::error::{BoxedError, Result, messages};
use crate::files::open_regular;
use crate::layout::to_f32;
use crate::remark::Remark;
use crate::source::files::{InputFiles, may_stay_open, open_plain};
use crate::source::frames::{Frames, MAX_PIXELS, MAX_SIDE, as_f32};
use crate::source::{SampleType, Stack, StoredSamples};
use bytemuck::NoUninit;
use hdf5_metno::dataset::Layout;
use hdf5_metno::datatype::ByteOrder;
use hdf5_metno::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5_metno::{Dataset, Datatype, File, H5Type};
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

messages! {
    /// Why a dataset cannot be used as frames.
    pub(super) enum Hdf5DatasetError: Input {
        NewerVersion { error: hdf5_metno::Error } =>
            "cannot be opened as a dataset: {error}";
            "use an fbp built with a newer HDF5 library, or write it again for older ones (h5py: libver=\"earliest\")",
        Unopened { error: hdf5_metno::Error } =>
            "cannot be opened as a dataset: {error}"; "choose one of those that fbp info lists",
        SpecialFile { error: Hdf5LinkError } => "cannot be opened as a dataset: {error}",
        NoType { error: hdf5_metno::Error } => "has no type: {error}"; "copy or write the file again",
        SampleType { kind: String } =>
            "has values of type {kind}; expected integers of 8 to 64 bits or floats of 16, 32 or 64",
        Dimensions { shape: String } =>
            "has the shape {shape}; expected three dimensions, [frame][row][bin]",
        SingleFrame { shape: String } =>
            "has the shape {shape}, which is a single frame; expected three dimensions, [frame][row][bin]",
        FieldDimensions { shape: String } =>
            "has the shape {shape}; expected frames, [frame][row][bin] or one frame, [row][bin]",
        Empty { shape: String } =>
            "has the shape {shape}, which is empty"; "name another dataset with --hdf5-data",
        EmptyField { shape: String, flag: String } =>
            "has the shape {shape}, which is empty"; "name another dataset with {flag}, or files",
        TooLarge { shape: String } =>
            "claims the shape {shape}, more than the {MAX_FRAMES} frames, {MAX_SIDE} a side or {MAX_PIXELS} pixels \
             that can be read";
            "check whether the file is damaged",
        Unwritten => "has a shape, but no data was written to it"; "copy or write the file again",
        /// An error with the name of the dataset.
        Named { name: String, error: BoxedError } => "{name} {error}",
    }
}

/// Byte order of the values that the library returns.
const NATIVE_BIG: bool = cfg!(target_endian = "big");

/// Dataset `[frame][row][bin]`, or a single frame `[row][bin]`.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    pub name: String,
    dataset: Dataset,
    /// True if the dataset has two dimensions.
    single: bool,
    /// Number of frames, rows and bins.
    shape: [usize; 3],
    sample: SampleType,
    access: Access,
    /// The file that contains the values, files that link to it, and the sources of a virtual dataset.
    files: Vec<PathBuf>,
    /// Indices in `files` of external storage, that is, of values in files without a header.
    external: Range<usize>,
    /// Number of datasets that are stored in chunks: this one or its sources.
    chunked: u64,
    /// Size of the largest chunk in bytes.
    chunk: u64,
}

/// Way in which values are read.
#[derive(Clone, Debug)]
enum Access {
    /// Without the library, on all threads.
    Direct(Arc<DirectValues>),
    /// By the library.
    Library,
}

/// Opens a dataset by its path.
fn opened(file: &File, name: &str) -> Result<Dataset, Hdf5DatasetError> {
    match links::open_dataset(file, name) {
        Ok(Ok(dataset)) => Ok(dataset),
        Ok(Err(error)) if is_newer(&error.to_string()) => Err(Hdf5DatasetError::NewerVersion { error }),
        Ok(Err(error)) => Err(Hdf5DatasetError::Unopened { error }),
        Err(error) => Err(Hdf5DatasetError::SpecialFile { error }),
    }
}

impl Volume {
    /// Opens a dataset of the file at `path`; chunks may take a part of `memory`, in bytes.
    pub fn open(path: &Path, file: &File, name: &str, memory: u64) -> Hdf5Result<Volume> {
        Volume::of(path, file, name, memory, None)
    }

    /// Opens a dataset of flats or darks, which may be a single averaged frame; `flag` names them.
    pub fn open_field(path: &Path, file: &File, name: &str, memory: u64, flag: &str) -> Hdf5Result<Volume> {
        Volume::of(path, file, name, memory, Some(flag))
    }

    fn of(path: &Path, file: &File, name: &str, memory: u64, field: Option<&str>) -> Hdf5Result<Volume> {
        let volume = Volume::of_dataset(path, file, name, memory, field);
        Ok(volume.map_err(|error| Hdf5DatasetError::Named { name: name.to_owned(), error })?)
    }

    fn of_dataset(path: &Path, file: &File, name: &str, memory: u64, field: Option<&str>) -> Hdf5Result<Volume> {
        let dataset = opened(file, name)?;
        let single = field.is_some() && dataset.ndim() == 2;
        let shape = sides(&dataset, field)?;
        let sample = sample_type(&dataset)?;
        let files = files(path, &dataset);
        let access = Access::Library;
        let (name, external) = (name.to_owned(), 0..0);
        let mut volume = Volume { name, dataset, single, shape, sample, access, files, external, chunked: 0, chunk: 0 };
        if volume.dataset.storage_size() == 0 && volume.dataset.layout() != Layout::Virtual {
            // a missing filter may have prevented the data from being written
            filters(&volume.dataset)?;
            return Err(Hdf5DatasetError::Unwritten.into());
        }
        volume.access = volume.direct(memory, field.is_none())?.unwrap_or(Access::Library);
        if let Access::Library = volume.access {
            volume.prepare_library()?;
        }
        Ok(volume)
    }

    /// Checks that the library can read all values, and determines the files and chunks that it needs for that.
    fn prepare_library(&mut self) -> Hdf5Result<()> {
        filters(&self.dataset)?;
        if let Some(bytes) = chunk_bytes(&self.dataset) {
            (self.chunked, self.chunk) = (1, bytes);
        }
        let first = self.files.len();
        self.files.extend(links::external_files(&self.files[0], &self.dataset));
        self.external = first..self.files.len();
        if self.dataset.layout() == Layout::Virtual {
            let sources = sources(&self.files[0], &self.dataset)?;
            (self.chunked, self.chunk) = (sources.chunked, sources.chunk);
            for file in sources.files {
                if !self.files.contains(&file) {
                    self.files.push(file);
                }
            }
        }
        Ok(())
    }

    pub fn frames(&self) -> usize {
        self.shape[0]
    }

    /// Returns the number of datasets whose chunks the library caches.
    pub fn chunked(&self) -> u64 {
        self.chunked
    }

    /// Returns the number of bytes that chunks may take during reading, both kept ones and those being decoded.
    pub fn held(&self, cache: ChunkCache) -> u64 {
        if let Access::Direct(values) = &self.access {
            return values.held;
        }
        let [frames, height, width] = self.shape;
        let all = values(width, height, frames, &(0..0)).end.saturating_mul(self.sample.bytes() as u64);
        let tables = self.chunked * cache.slots * size_of::<usize>() as u64;
        (self.chunked * cache.bytes).min(all) + tables + 2 * self.chunk
    }

    /// Returns the width and height of a frame in pixels.
    pub fn size(&self) -> (usize, usize) {
        let [_, height, width] = self.shape;
        (width, height)
    }

    /// Describes type and storage in words.
    pub fn stored(&self) -> String {
        stored(&self.dataset)
    }

    /// Returns the form in which rows are read: as stored in the file, or in this machine's byte order if the
    /// library reads them. Samples of 64 bits and 16-bit floats become f32.
    fn samples(&self) -> StoredSamples {
        let big_endian = match &self.access {
            Access::Direct(values) => values.big_endian,
            Access::Library => NATIVE_BIG,
        };
        let swapped = big_endian != NATIVE_BIG;
        match self.sample {
            SampleType::F16 => StoredSamples::F32,
            sample if sample.is_long() => StoredSamples::F32,
            sample => StoredSamples { sample, swapped },
        }
    }

    /// Returns notes for the user about chunks that were never written.
    pub fn notes(&self) -> Vec<String> {
        let (Some(chunk), Some(written)) = (self.dataset.chunk(), self.dataset.num_chunks()) else { return Vec::new() };
        let chunks: usize =
            self.dataset.shape().iter().zip(&chunk).map(|(side, chunk)| side.div_ceil((*chunk).max(1))).product();
        match written < chunks {
            true => vec![format!(
                "{}: {} of {chunks} chunks were never written and are read as its fill value; was the scan stopped?",
                self.name,
                chunks - written
            )],
            false => Vec::new(),
        }
    }

    /// Returns the way to read values without the library, if storage and sample type are supported here.
    fn direct(&mut self, memory: u64, repeatedly: bool) -> Hdf5Result<Option<Access>> {
        let kind = self.dataset.dtype().map_err(|error| Hdf5DatasetError::NoType { error })?;
        let native = native(self.sample).is_some_and(|native| native == kind);
        let other = if NATIVE_BIG { ByteOrder::LittleEndian } else { ByteOrder::BigEndian };
        let certain = native || vds_sys::is_standard(&kind);
        if !certain && (kind.byte_order() != other || self.dataset.layout() == Layout::Virtual) {
            return Ok(None);
        }
        let of = DirectRequest {
            dataset: &self.dataset,
            kind: &kind,
            sample: self.sample,
            big_endian: native == NATIVE_BIG,
            shape: self.shape,
            repeatedly,
            memory,
        };
        let Some(values) = DirectValues::find(&of, &mut self.files)? else { return Ok(None) };
        if !certain {
            // the comparison needs all filters
            filters(&self.dataset)?;
            if !self.agrees(&values)? {
                return Ok(None);
            }
        }
        Ok(Some(Access::Direct(Arc::new(values))))
    }

    /// Reports whether some rows agree with those of the library, as a type of the other byte order may also differ in
    /// its bit layout.
    fn agrees(&self, values: &DirectValues) -> Hdf5Result<bool> {
        let file = open_regular(&self.files[0]).map_err(Hdf5ValuesError::unreadable)?;
        let [frames, height, width] = self.shape;
        let (mut here, mut there) = (vec![0f32; width], vec![0f32; width]);
        for frame in [0, frames / 2, frames - 1] {
            let row = height / 2..height / 2 + 1;
            values.read_f32(&file, frame, &row, &mut here)?;
            self.library_f32(frame, &row, &mut there)?;
            if here.iter().zip(&there).any(|(a, b)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan())) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the index of the file that contains a frame.
    fn file_of(&self, frame: usize) -> usize {
        match &self.access {
            Access::Direct(values) => values.file_of(frame),
            Access::Library => 0,
        }
    }

    fn read_f32(&self, file: &std::fs::File, frame: usize, rows: &Range<usize>, out: &mut [f32]) -> Hdf5Result<()> {
        match &self.access {
            Access::Direct(values) => values.read_f32(file, frame, rows, out),
            Access::Library => self.library_f32(frame, rows, out),
        }
    }

    /// Reads rows in the form of [`samples`](Self::samples); samples have up to 32 bits.
    fn read_stored(&self, file: &std::fs::File, frame: usize, rows: &Range<usize>, out: &mut [u8]) -> Hdf5Result<()> {
        match &self.access {
            Access::Direct(values) => values.read_stored(file, frame, rows, out),
            Access::Library => self.read_library(frame, rows, |samples| out.copy_from_slice(samples)),
        }
    }

    fn library_f32(&self, frame: usize, rows: &Range<usize>, out: &mut [f32]) -> Hdf5Result<()> {
        let kind = match self.sample {
            SampleType::F16 => SampleType::F32,
            sample if sample.is_long() => SampleType::F32,
            sample => sample,
        };
        self.read_library(frame, rows, |samples| to_f32(samples, kind, NATIVE_BIG, out))
    }

    /// Passes rows that the library reads to `take`, in the form of [`samples`](Self::samples). The library changes the
    /// byte order and fills unused bits; integers keep their values.
    pub fn read_library(&self, frame: usize, rows: &Range<usize>, take: impl FnOnce(&[u8])) -> Hdf5Result<()> {
        let bytes = rows.len() * self.size().0 * self.samples().sample.bytes();
        if let Some(samples) = served(&self.dataset, frame, rows, bytes) {
            take(&samples?);
            return Ok(());
        }
        match self.sample {
            SampleType::U8 => self.read_slice::<u8>(frame, rows, take),
            SampleType::U16 => self.read_slice::<u16>(frame, rows, take),
            SampleType::U32 => self.read_slice::<u32>(frame, rows, take),
            SampleType::I8 => self.read_slice::<i8>(frame, rows, take),
            SampleType::I16 => self.read_slice::<i16>(frame, rows, take),
            SampleType::I32 => self.read_slice::<i32>(frame, rows, take),
            SampleType::F16 | SampleType::F32 | SampleType::U64 | SampleType::I64 | SampleType::F64 => {
                self.read_slice::<f32>(frame, rows, take)
            }
        }
    }

    fn read_slice<T: H5Type + NoUninit>(
        &self,
        frame: usize,
        rows: &Range<usize>,
        take: impl FnOnce(&[u8]),
    ) -> Hdf5Result<()> {
        let read = match self.single {
            true => self.dataset.read_slice_2d::<T, _>((rows.clone(), ..)),
            false => self.dataset.read_slice_2d::<T, _>((frame, rows.clone(), ..)),
        };
        let values = read.map_err(Hdf5ValuesError::unreadable)?;
        let [.., width] = self.shape;
        let values = values.as_slice().filter(|values| values.len() == rows.len() * width);
        take(bytemuck::cast_slice(values.ok_or(Hdf5ValuesError::OtherShape)?));
        Ok(())
    }
}

/// Selected frames of a dataset, in order.
#[derive(Debug)]
pub(super) struct Selection {
    pub volume: Volume,
    pub frames: Vec<usize>,
}

impl Selection {
    /// Makes a stack of the frames; `flag` is used in messages.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) when one of the files cannot be opened.
    pub fn stack(self, flag: &str, notes: Vec<String>) -> Result<Stack> {
        let spec = format!("{} {}", self.volume.files[0].display(), self.volume.name);
        let paths = self.volume.files.clone();
        // other files only link to those with values
        let used: HashSet<usize> = self.frames.iter().map(|&frame| self.volume.file_of(frame)).collect();
        // projections, flats before and after, and darks may be frames of one dataset
        let keep = may_stay_open(4 * used.len());
        let opened = paths.iter().enumerate().map(|(index, path)| {
            let (file, state) = open_plain(path, flag)?;
            Ok((state, (keep && used.contains(&index)).then_some(file)))
        });
        let states = opened.collect::<Result<_>>()?;
        let files = InputFiles::new(flag, paths, states);
        Ok(Stack::of(
            flag,
            &spec,
            VolumeFrames { selection: self, files, remarks: notes.into_iter().map(Remark::Note).collect() },
        ))
    }

    fn file_of(&self, place: usize) -> usize {
        self.volume.file_of(self.frames[place])
    }

    fn read_rows(&self, file: &std::fs::File, place: usize, rows: &Range<usize>, out: &mut [f32]) -> Hdf5Result<()> {
        let done = self.volume.read_f32(file, self.frames[place], rows, out);
        done.map_err(|error| self.failed(place, error))
    }

    fn read_stored(&self, file: &std::fs::File, place: usize, rows: &Range<usize>, out: &mut [u8]) -> Hdf5Result<()> {
        let done = self.volume.read_stored(file, self.frames[place], rows, out);
        done.map_err(|error| self.failed(place, error))
    }

    fn failed(&self, place: usize, error: BoxedError) -> BoxedError {
        Hdf5ValuesError::Frame { dataset: self.volume.name.clone(), frame: self.frames[place], error }.into()
    }

    fn name(&self, place: usize) -> String {
        format!("{} frame {}", self.volume.name, self.frames[place])
    }
}

/// Frames of a dataset with their files.
#[derive(Debug)]
struct VolumeFrames {
    selection: Selection,
    files: InputFiles,
    remarks: Vec<Remark>,
}

impl VolumeFrames {
    /// Calls `read` with the file of a frame, and checks that neither this file nor external storage has changed.
    fn read(&self, frame: usize, read: impl FnOnce(&std::fs::File) -> Hdf5Result<()>) -> Result<()> {
        self.files.read(self.selection.file_of(frame), read)?;
        self.selection.volume.external.clone().try_for_each(|index| self.files.read(index, |_| Ok::<(), String>(())))
    }
}

impl Frames for VolumeFrames {
    fn count(&self) -> usize {
        self.selection.frames.len()
    }

    fn size(&self) -> (usize, usize) {
        self.selection.volume.size()
    }

    fn sample(&self) -> SampleType {
        self.selection.volume.sample
    }

    fn name(&self, frame: usize) -> String {
        self.selection.name(frame)
    }

    fn fingerprint(&self) -> String {
        let Selection { volume, frames } = &self.selection;
        format!("{} {frames:?}\n{}", volume.name, self.files.fingerprint())
    }

    fn files(&self) -> &[PathBuf] {
        self.files.paths()
    }

    fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    fn held(&self) -> u64 {
        self.selection.volume.held(ChunkCache::SMALL)
    }

    fn are_whole(&self) -> bool {
        matches!(&self.selection.volume.access, Access::Direct(values) if values.are_whole_frames())
    }

    fn read_rows(&self, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        self.read(frame, |file| self.selection.read_rows(file, frame, &rows, out))
    }

    fn stored(&self) -> StoredSamples {
        self.selection.volume.samples()
    }

    fn read_stored(&self, frame: usize, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        if self.stored().sample != self.sample() {
            return as_f32(out, |out| self.read_rows(frame, rows, out));
        }
        self.read(frame, |file| self.selection.read_stored(file, frame, &rows, out))
    }
}

/// Returns the shape after checking it; a field, which is named by the flag `field`, may be a single frame.
fn sides(dataset: &Dataset, field: Option<&str>) -> Result<[usize; 3], Hdf5DatasetError> {
    let shape = shape(dataset);
    let [frames, height, width] = match (&dataset.shape()[..], field.is_some()) {
        (&[frames, height, width], _) => [frames, height, width],
        (&[height, width], true) => [1, height, width],
        (_, true) => return Err(Hdf5DatasetError::FieldDimensions { shape }),
        ([_, _], false) => return Err(Hdf5DatasetError::SingleFrame { shape }),
        (_, false) => return Err(Hdf5DatasetError::Dimensions { shape }),
    };
    if frames == 0 || height == 0 || width == 0 {
        return Err(match field {
            None => Hdf5DatasetError::Empty { shape },
            Some(flag) => Hdf5DatasetError::EmptyField { shape, flag: flag.to_owned() },
        });
    }
    let side = |n: usize| n as u64 > MAX_SIDE;
    if frames > MAX_FRAMES || side(height) || side(width) || height as u64 * width as u64 > MAX_PIXELS {
        return Err(Hdf5DatasetError::TooLarge { shape });
    }
    Ok([frames, height, width])
}

fn sample_type(dataset: &Dataset) -> Result<SampleType, Hdf5DatasetError> {
    let kind = dataset.dtype().and_then(|kind| kind.to_descriptor());
    let sample = match &kind {
        Ok(TypeDescriptor::Unsigned(IntSize::U1)) => SampleType::U8,
        Ok(TypeDescriptor::Unsigned(IntSize::U2)) => SampleType::U16,
        Ok(TypeDescriptor::Unsigned(IntSize::U4)) => SampleType::U32,
        Ok(TypeDescriptor::Unsigned(IntSize::U8)) => SampleType::U64,
        Ok(TypeDescriptor::Integer(IntSize::U1)) => SampleType::I8,
        Ok(TypeDescriptor::Integer(IntSize::U2)) => SampleType::I16,
        Ok(TypeDescriptor::Integer(IntSize::U4)) => SampleType::I32,
        Ok(TypeDescriptor::Integer(IntSize::U8)) => SampleType::I64,
        Ok(TypeDescriptor::Float(FloatSize::U2)) => SampleType::F16,
        Ok(TypeDescriptor::Float(FloatSize::U4)) => SampleType::F32,
        Ok(TypeDescriptor::Float(FloatSize::U8)) => SampleType::F64,
        other => {
            let kind = other.as_ref().map_or_else(|e| e.to_string(), |kind| kind.to_string());
            return Err(Hdf5DatasetError::SampleType { kind });
        }
    };
    Ok(sample)
}

/// Returns the HDF5 type of samples in native byte order.
fn native(sample: SampleType) -> Option<Datatype> {
    let kind = match sample {
        SampleType::U8 => Datatype::from_type::<u8>(),
        SampleType::U16 => Datatype::from_type::<u16>(),
        SampleType::U32 => Datatype::from_type::<u32>(),
        SampleType::I8 => Datatype::from_type::<i8>(),
        SampleType::I16 => Datatype::from_type::<i16>(),
        SampleType::I32 => Datatype::from_type::<i32>(),
        SampleType::U64 => Datatype::from_type::<u64>(),
        SampleType::I64 => Datatype::from_type::<i64>(),
        SampleType::F32 => Datatype::from_type::<f32>(),
        SampleType::F64 => Datatype::from_type::<f64>(),
        SampleType::F16 => Datatype::from_type::<half::f16>(),
    };
    kind.ok()
}

/// Returns the range of the positions of the values in rows of a frame.
fn values(width: usize, height: usize, frame: usize, rows: &Range<usize>) -> Range<u64> {
    let at = |row: usize| (frame as u64 * height as u64 + row as u64) * width as u64;
    at(rows.start)..at(rows.end)
}

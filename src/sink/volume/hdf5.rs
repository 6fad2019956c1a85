//! HDF5: a dataset of all slices, and a description of the run.
//!
//! The dataset is contiguous, or virtual if slices are distributed among several files, each of which has one that is
//! contiguous. The library creates files with space for all samples; all threads then write them at their offsets, without
//! the library. Compressed slices are chunks, which all threads append; the index of the chunks is written at the end.

use super::chunk_tree::{ChunkTree, StoredFrame};
use super::marks::Marks;
use super::parts::{PartDirectories, part_name, slices_of_part};
use super::space::{ROW, SliceSpace};
use super::{
    Container, OpenVolume, VolumeDescription, VolumeOutput, WrittenSlices, is_hdf5_name, remove, unfinished,
    volume_lock,
};
use crate::error::Result;
use crate::files::open_regular;
use crate::sink::compression::DEFLATE_LEVEL;
use crate::sink::page::EncodedPage;
use crate::sink::{Compression, Dtype, SliceForm, Target};
use crate::source::codec::{ChunkFilter, Compressor, DecodeBuffers, Pipeline};
use crate::source::hdf5::index::tree_address;
use crate::source::hdf5::{Hdf5Reading, examine, is_hdf5};
use half::f16;
use hdf5_metno::plist::dataset_create::{AllocTime, FillTime, Layout};
use hdf5_metno::types::{TypeDescriptor, VarLenUnicode};
use hdf5_metno::{Dataset, File, Group, H5Type, Location, SliceOrIndex};
use rayon::prelude::*;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The slices, their numbers, their checksums, and what is said of the run.
const DATA: &str = "/entry/reconstruction/results/data";
const NUMBERS: &str = "/entry/reconstruction/results/slice";
const MARKS: &str = "/entry/reconstruction/results/checksums";
const DESCRIPTION: &str = "/entry/reconstruction/configuration/fbp";
const RUN_FILE: &str = "/entry/reconstruction/configuration/run";
/// Offsets of the slices in the parts, if there are several.
const PART_OFFSETS: &str = "/entry/reconstruction/configuration/part_offsets";
/// Where compressed slices are, and how much of each part is in use.
const PLACES: &str = "/entry/reconstruction/configuration/places";
/// The slices of a part.
const PART_DATA: &str = "/data";

/// Bytes that deflate makes of one at most.
const DEFLATES: u64 = 1032;

/// Reads a spec that is the name of an HDF5 file and not a directory.
pub fn parse_hdf5(spec: &str) -> Result<Option<Target>> {
    let single = is_hdf5_name(spec) && !Path::new(spec).is_dir();
    Ok(single.then(|| VolumeOutput::target(spec, Hdf5File(PartDirectories { output: spec.into() }))))
}

/// The format, with the places of its parts.
#[derive(Clone, Debug)]
struct Hdf5File(PartDirectories);

fn text(location: &Location, name: &str, value: &str) -> hdf5_metno::Result<()> {
    let value: VarLenUnicode =
        value.parse().map_err(|_| hdf5_metno::Error::from("a text contains a NUL character; remove it"))?;
    location.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&value)
}

fn text_dataset(file: &File, name: &str, value: &str) -> hdf5_metno::Result<()> {
    let value: VarLenUnicode =
        value.parse().map_err(|_| hdf5_metno::Error::from("a text contains a NUL character; remove it"))?;
    file.new_dataset::<VarLenUnicode>().create(name)?.write_scalar(&value)
}

/// What a file says of itself, if it is one of ours.
pub fn describe(path: &Path) -> Option<VolumeDescription> {
    let ours = path.is_file() && is_hdf5(path);
    ours.then(|| Contents::read(path).ok()).flatten().map(|contents| contents.description)
}

/// A group of a class of NeXus.
fn group(file: &File, name: &str, class: &str) -> hdf5_metno::Result<Group> {
    let group = file.create_group(name)?;
    text(&group, "NX_class", class)?;
    Ok(group)
}

/// A dataset with room for all values, none of which is written.
fn room(
    file: &File,
    name: &str,
    kind: &TypeDescriptor,
    shape: &[usize],
    fill: FillTime,
) -> hdf5_metno::Result<Dataset> {
    let builder = file.new_dataset_builder().empty_as(kind).shape(shape);
    builder
        .with_dcpl(|plist| plist.layout(Layout::Contiguous).alloc_time(Some(AllocTime::Early)).fill_time(fill))
        .create(name)
}

/// A file of the first version of the format, in which nothing has a checksum.
fn new_file(path: &Path) -> hdf5_metno::Result<File> {
    File::with_options().with_fapl(|plist| plist.libver_earliest()).create_excl(path)
}

/// The dataset of slices: with room for all samples, or without chunks yet.
fn slices_dataset(
    file: &File,
    name: &str,
    slices: usize,
    description: &VolumeDescription,
) -> hdf5_metno::Result<Dataset> {
    let VolumeDescription { height, width, compression, .. } = *description;
    let (kind, shape) = (sample_type(description.dtype), [slices, height, width]);
    if compression == Compression::None {
        return room(file, name, &kind, &shape, FillTime::Never);
    }
    let builder = file.new_dataset_builder().empty_as(&kind).shape(shape);
    let builder = builder.chunk([1, height, width]).shuffle().deflate(DEFLATE_LEVEL as u8);
    builder.with_dcpl(|plist| plist.alloc_time(Some(AllocTime::Incr)).fill_time(FillTime::Never)).create(name)
}

fn sample_type(dtype: Dtype) -> TypeDescriptor {
    match dtype {
        Dtype::F32 => f32::type_descriptor(),
        Dtype::F16 => f16::type_descriptor(),
        Dtype::U16 => u16::type_descriptor(),
        Dtype::U8 => u8::type_descriptor(),
    }
}

/// Makes a part with room for slices and returns where they begin in it, or 0 if they are compressed.
fn make_part(path: &Path, slices: usize, description: &VolumeDescription) -> io::Result<u64> {
    let file = new_file(path).map_err(other)?;
    let data = slices_dataset(&file, PART_DATA, slices, description).map_err(other)?;
    let offset = if description.compression == Compression::None { offset(&data)? } else { 0 };
    drop(data);
    file.close().map_err(other)?;
    Ok(offset)
}

/// The virtual dataset of slices in several parts.
fn make_virtual(
    file: &File,
    directory: &Path,
    parts: usize,
    description: &VolumeDescription,
) -> hdf5_metno::Result<Dataset> {
    let shape = [description.slices.len(), description.height, description.width];
    let [slices, height, width] = shape;
    let mut builder = file.new_dataset_builder().empty_as(&sample_type(description.dtype)).shape(shape);
    for part in 0..parts {
        let path = directory.join(part_name(part));
        let shape_of_part = [slices_of_part(slices, parts, part), height, width];
        let every = SliceOrIndex::SliceTo { start: part, step: parts, end: slices, block: 1 };
        let all = (.., .., ..);
        let places = (every, 0..height, 0..width);
        builder = builder.virtual_map(path.to_string_lossy(), PART_DATA, shape_of_part, all, shape, places);
    }
    builder.create(DATA)
}

/// The whole file but the samples; with parts, whose directory and offsets these are. Returns where it says where compressed
/// slices are.
fn make(
    path: &Path,
    description: &VolumeDescription,
    run_file: &str,
    parts: Option<(&Path, &[u64])>,
) -> hdf5_metno::Result<Option<u64>> {
    let file = if parts.is_none() { new_file(path)? } else { File::create_excl(path)? };
    text(&file, "NX_class", "NXroot")?;
    text(&file, "default", "entry")?;
    let entry = group(&file, "/entry", "NXentry")?;
    text(&entry, "default", "reconstruction")?;
    let process = group(&file, "/entry/reconstruction", "NXprocess")?;
    text(&process, "default", "results")?;
    let results = group(&file, "/entry/reconstruction/results", "NXdata")?;
    group(&file, "/entry/reconstruction/configuration", "NXcollection")?;
    let data = match parts {
        None => slices_dataset(&file, DATA, description.slices.len(), description)?,
        Some((directory, offsets)) => {
            file.new_dataset::<u64>().shape(offsets.len()).create(PART_OFFSETS)?.write_raw(offsets)?;
            make_virtual(&file, directory, offsets.len(), description)?
        }
    };
    text(&results, "signal", "data")?;
    text(&results, "interpretation", "image")?;
    text(&data, "interpretation", "image")?;
    text(&data, "units", &description.unit)?;
    if let Some((low, high)) = description.range {
        // a value is the sample times the factor, plus the offset
        let top = if description.dtype == Dtype::U8 { 255.0 } else { 65535.0 };
        let number = |name: &str, value: f64| data.new_attr::<f64>().create(name)?.write_scalar(&value);
        number("scaling_factor", (f64::from(high) - f64::from(low)) / top)?;
        number("offset", low.into())?;
    }
    let numbers: Vec<u64> = description.slices.iter().map(|&slice| slice as u64).collect();
    file.new_dataset::<u64>().shape(numbers.len()).create(NUMBERS)?.write_raw(&numbers)?;
    // 0: no slice is there
    let marks = room(&file, MARKS, &u64::type_descriptor(), &[numbers.len()], FillTime::Alloc)?;
    marks.write_raw(&vec![0u64; numbers.len()])?;
    let places = match description.compression {
        Compression::None => None,
        _ => {
            let rows = numbers.len() + description.parts.unwrap_or(1);
            room(&file, PLACES, &u64::type_descriptor(), &[rows, ROW], FillTime::Alloc)?.offset()
        }
    };
    text_dataset(&file, "/entry/reconstruction/program", &description.software)?;
    let json = serde_json::to_string(description).map_err(|e| hdf5_metno::Error::from(e.to_string().as_str()))?;
    text_dataset(&file, DESCRIPTION, &json)?;
    text_dataset(&file, RUN_FILE, run_file)?;
    drop((data, marks));
    file.close()?;
    Ok(places)
}

fn other(error: hdf5_metno::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Where the values of a dataset begin in its file.
fn offset(dataset: &Dataset) -> io::Result<u64> {
    let offset = dataset.offset();
    offset.ok_or_else(|| invalid("has a dataset that is not contiguous; choose another --output"))
}

/// What the library says of a file.
struct Contents {
    description: VolumeDescription,
    /// Offset of the samples in the file, or in each of its parts; 0 if they are compressed.
    data: Vec<u64>,
    /// Offset of the marks.
    marks: u64,
    /// Offset of the places of compressed slices.
    places: Option<u64>,
}

impl Contents {
    fn read(path: &Path) -> io::Result<Contents> {
        open_regular(path)?;
        examine(&Hdf5Reading::Contents { file: path.to_owned() }).map_err(io::Error::other)?;
        let file = File::open(path).map_err(other)?;
        let description = file.dataset(DESCRIPTION).and_then(|text| text.read_scalar::<VarLenUnicode>());
        let description: VolumeDescription = serde_json::from_str(description.map_err(other)?.as_str())?;
        let offset = |name: &str| offset(&file.dataset(name).map_err(other)?);
        let compressed = description.compression != Compression::None;
        let data = match description.parts {
            None => vec![if compressed { 0 } else { offset(DATA)? }],
            Some(parts) => {
                let offsets = file.dataset(PART_OFFSETS).map_err(other)?;
                if !(1..=description.slices.len()).contains(&parts) || offsets.size() != parts {
                    return Err(invalid("does not say where its parts are; run again without --resume"));
                }
                offsets.read_raw().map_err(other)?
            }
        };
        let places = compressed.then(|| offset(PLACES)).transpose()?;
        Ok(Contents { description, data, marks: offset(MARKS)?, places })
    }
}

impl Hdf5File {
    /// Directory of the parts of a volume, if it has any.
    fn parts_of(&self, path: &Path) -> Option<PathBuf> {
        let description = describe(path)?;
        description.parts.map(|_| self.0.of(path, &description))
    }

    /// The files of the samples of a volume at a path.
    fn data_paths(&self, path: &Path, description: &VolumeDescription) -> Vec<PathBuf> {
        let Some(parts) = description.parts else { return vec![path.to_owned()] };
        let directory = self.0.of(path, description);
        (0..parts).map(|part| directory.join(part_name(part))).collect()
    }

    /// Where compressed slices of a volume are.
    fn space(&self, file: fs::File, offset: u64, slices: usize) -> SliceSpace {
        SliceSpace::new(file, offset, slices, volume_lock(&self.0.output))
    }
}

impl Container for Hdf5File {
    const FLAG: &'static str = "hdf5-parts";

    fn compressions(&self) -> &[Compression] {
        &[Compression::None, Compression::Deflate]
    }

    fn why_not_others(&self) -> &'static str {
        ", which programs read from HDF5 only with a plugin"
    }

    fn describe(&self, form: &SliceForm) -> VolumeDescription {
        let parts = form.hdf5_parts.map(|parts| form.run.len().min(parts as usize)).filter(|&parts| parts > 1);
        VolumeDescription { parts, ..VolumeDescription::new(form) }
    }

    fn make(&self, path: &Path, description: &VolumeDescription, run_file: &str) -> io::Result<()> {
        if description.compression != Compression::None && u32::try_from(description.slice_bytes()).is_err() {
            return Err(invalid("cannot hold compressed slices of 4 GiB or more; use --compression none"));
        }
        let slices = description.slices.len();
        let (places, data) = match description.parts {
            None => (make(path, description, run_file, None), vec![path.to_owned()]),
            Some(parts) => {
                let directory = self.0.make(description)?;
                let paths: Vec<_> = (0..parts).map(|part| directory.join(part_name(part))).collect();
                let made = paths.iter().enumerate();
                let made = made.map(|(part, path)| make_part(path, slices_of_part(slices, parts, part), description));
                let offsets = made.collect::<io::Result<Vec<u64>>>()?;
                (make(path, description, run_file, Some((&self.0.relative(description), &offsets))), paths)
            }
        };
        if let Some(places) = places.map_err(other)? {
            let space = self.space(OpenOptions::new().write(true).open(path)?, places, slices);
            data.iter().enumerate().try_for_each(|(part, path)| space.start(part, fs::metadata(path)?.len()))?;
        }
        Ok(())
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn OpenVolume>> {
        let Contents { description, data, marks, places } = Contents::read(path)?;
        let open = |path: &Path, end: Option<u64>| {
            let file = OpenOptions::new().read(true).write(write).open(path)?;
            let long_enough = end.is_some_and(|end| file.metadata().is_ok_and(|meta| meta.len() >= end));
            long_enough.then_some(file).ok_or_else(|| invalid("is shorter than its slices; run again without --resume"))
        };
        let (slices, parts) = (description.slices.len(), data.len());
        let paths = self.data_paths(path, &description);
        let files = data.into_iter().zip(&paths).enumerate().map(|(part, (offset, path))| {
            let bytes = match places {
                None => (slices_of_part(slices, parts, part) as u64).checked_mul(description.slice_bytes() as u64),
                Some(_) => Some(0),
            };
            Ok((open(path, bytes.and_then(|bytes| offset.checked_add(bytes)))?, offset))
        });
        let files = files.collect::<io::Result<Vec<_>>>()?;
        let marks = Marks::new(open(path, marks.checked_add(8 * slices as u64))?, marks);
        let space = |offset: u64| {
            let end = offset.checked_add((8 * ROW * (slices + parts)) as u64);
            Ok::<_, io::Error>(self.space(open(path, end)?, offset, slices))
        };
        let space = places.map(space).transpose()?;
        Ok(Box::new(OpenHdf5 { description, files, paths, marks, space }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let output = &self.0.output;
        let (unfinished, ours) = (unfinished(output), self.parts_of(path));
        let other = if path == output { &unfinished } else { output };
        let ours = ours.filter(|directory| self.parts_of(other).as_ref() != Some(directory));
        if path == output {
            ours.map_or(Ok(()), |directory| self.0.remove(&directory))?;
            return remove(path);
        }
        // the file goes first: without its parts it could not be opened, while parts alone are removed by the next run
        if let Some(directory) = ours.filter(|directory| *directory != self.0.hidden() && directory.exists()) {
            self.0.hide(&directory)?;
        }
        remove(path)?;
        self.0.remove(&self.0.hidden())
    }

    fn is_single(&self, path: &Path) -> bool {
        path.is_file() && self.parts_of(path).is_none()
    }

    fn show_parts(&self, description: &VolumeDescription) -> io::Result<()> {
        description.parts.map_or(Ok(()), |_| self.0.show(description))
    }

    fn hide_parts(&self, description: &VolumeDescription) -> io::Result<()> {
        description.parts.map_or(Ok(()), |_| self.0.hide(&self.0.named(description)))
    }
}

/// An open output.
struct OpenHdf5 {
    description: VolumeDescription,
    /// Files of the samples, with the offset at which these begin.
    files: Vec<(fs::File, u64)>,
    paths: Vec<PathBuf>,
    marks: Marks,
    /// Where slices are, if they are compressed.
    space: Option<SliceSpace>,
}

impl OpenHdf5 {
    /// File and offset of a slice.
    fn place(&self, place: usize) -> (&fs::File, u64) {
        let parts = self.files.len();
        let (file, offset) = &self.files[place % parts];
        (file, offset + (place / parts) as u64 * self.description.slice_bytes() as u64)
    }

    /// Appends a slice as a chunk and returns the CRC-32 of its samples.
    fn append(&self, space: &SliceSpace, place: usize, samples: &[u8]) -> io::Result<u32> {
        let chunk = Compression::shuffled(samples, self.description.dtype.bytes())?;
        let bytes = u32::try_from(chunk.len()).map_err(io::Error::other)?;
        let part = place % self.files.len();
        let offset = space.reserve(part, bytes.into())?;
        self.files[part].0.write_all_at(&chunk, offset)?;
        space.set(place, StoredFrame { offset, bytes })?;
        Ok(crc32fast::hash(samples))
    }

    /// Reads a slice that is a chunk.
    fn decode(&self, space: &SliceSpace, place: usize) -> io::Result<Vec<u8>> {
        let (file, _) = self.place(place);
        let length = self.description.slice_bytes();
        let StoredFrame { offset, bytes } = space.get(place)?;
        // sizes that a damaged file claims take no memory
        let (stored, in_file) = (u64::from(bytes), file.metadata()?.len());
        if offset.checked_add(stored).is_none_or(|end| end > in_file) || length as u64 > stored.saturating_mul(DEFLATES)
        {
            return Err(invalid("has a slice of an impossible length; run again"));
        }
        let mut buffers = DecodeBuffers::default();
        buffers.bytes.resize(bytes as usize, 0);
        file.read_exact_at(&mut buffers.bytes, offset)?;
        let filters = vec![ChunkFilter::Shuffle, ChunkFilter::Compressed(Compressor::Zlib)];
        let pipeline = Pipeline::new(filters, self.description.dtype.bytes());
        let pipeline = pipeline.ok_or_else(|| invalid("has samples of no size; run again without --resume"))?;
        let decoded = pipeline.decode(0, &mut buffers, length, &(0..length));
        decoded.map_err(|e| invalid(&format!("slice {place} {e}")))?;
        Ok(buffers.bytes)
    }

    /// Writes the index of the chunks of a part.
    fn index(&self, space: &SliceSpace, part: usize) -> io::Result<()> {
        let parts = self.files.len();
        let frames = (part..self.description.slices.len()).step_by(parts).map(|place| space.get(place));
        let frames = frames.collect::<io::Result<Vec<_>>>()?;
        let name = if self.description.parts.is_some() { PART_DATA } else { DATA };
        let header = File::open(&self.paths[part]).and_then(|file| Ok(vds_sys::header_address(&file.dataset(name)?)));
        let file = &self.files[part].0;
        let address = header.map_err(other)?.and_then(|header| tree_address(file, header));
        let address = address.ok_or_else(|| invalid("has no dataset with chunks; run again without --resume"))?;
        // no job writes slices any more
        let start = space.reserve_alone(part, ChunkTree::bytes(frames.len()))?;
        ChunkTree::new(&frames, start).write(file, start, address)
    }
}

impl OpenVolume for OpenHdf5 {
    fn description(&self) -> &VolumeDescription {
        &self.description
    }

    fn marks(&self) -> &Marks {
        &self.marks
    }

    fn write(&self, slices: &[(usize, EncodedPage)]) -> io::Result<WrittenSlices> {
        let written = slices.par_iter().map(|(place, page)| {
            if let Some(space) = &self.space {
                return Ok((*place, self.append(space, *place, page.samples())?));
            }
            let (file, offset) = self.place(*place);
            Ok((*place, page.write_at(file, offset)?.crc32))
        });
        Ok(WrittenSlices { slices: written.collect::<io::Result<_>>()?, coarser: None })
    }

    fn read(&self, place: usize) -> io::Result<Vec<u8>> {
        if let Some(space) = &self.space {
            return self.decode(space, place);
        }
        let (file, offset) = self.place(place);
        let mut samples = vec![0; self.description.slice_bytes()];
        file.read_exact_at(&mut samples, offset)?;
        Ok(samples)
    }

    fn complete(&self) -> io::Result<()> {
        let Some(space) = &self.space else { return Ok(()) };
        (0..self.files.len()).try_for_each(|part| self.index(space, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::page::OutputPage;
    use crate::sink::{Encoding, Pixels, SliceStorage};
    use crate::source::Stack;

    /// Trees of one to three levels, in one file and in several, read by the library and by fbp itself.
    #[test]
    fn indexes_of_any_number_of_slices() {
        let directory = tempfile::tempdir().unwrap();
        let encoding = Encoding { dtype: Dtype::U16, range: Some((0.0, 65535.0)) };
        for (count, hdf5_parts) in [(1, None), (64, None), (65, None), (64 * 64 + 1, None), (200, Some(3))] {
            let path = directory.path().join(format!("{count}.h5"));
            let storage = SliceStorage { compression: Compression::Deflate, hdf5_parts, ..encoding.into() };
            let form = SliceForm::new((3, 2), storage, (0..count).collect(), "test");
            let format = Hdf5File(PartDirectories { output: path.clone() });
            let description = format.describe(&form);
            let hidden = unfinished(&path);
            format.make(&hidden, &description, "").unwrap();
            let volume = format.open(&hidden, true).unwrap();
            // backwards, so that chunks are in another order than slices
            for place in (0..count).rev() {
                let values: Vec<f32> = (0..6).map(|i| (place * 10 + i) as f32).collect();
                let page = OutputPage { form: &form, pixels: Pixels::Values(&values), slice: None, number: None };
                volume.write(&[(place, page.samples(&path).unwrap())]).unwrap();
            }
            volume.complete().unwrap();
            format.show_parts(&description).unwrap();
            fs::rename(&hidden, &path).unwrap();
            let samples = |place: usize| (0..6).map(move |i| (place * 10 + i) as u16);
            let expected: Vec<u16> = (0..count).flat_map(samples).collect();
            let data = File::open(&path).unwrap().dataset(DATA).unwrap();
            assert_eq!(data.read_raw::<u16>().unwrap(), expected, "{count}");
            let stack = Stack::open(path.to_str().unwrap(), "input").unwrap();
            let mut values = vec![0.0; 6];
            stack.read_rows(count - 1, 0..2, &mut values).unwrap();
            let last = samples(count - 1).map(f32::from);
            assert!(values.into_iter().eq(last), "{count}");
        }
    }

    #[test]
    fn descriptions_may_claim_any_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.h5");
        let encoding = Encoding { dtype: Dtype::F32, range: None };
        let form = SliceForm::new((8, 4), SliceStorage::from(encoding), vec![0, 1, 2], "test");
        let format = Hdf5File(PartDirectories { output: path.clone() });
        let description = format.describe(&form);
        format.make(&path, &description, "").unwrap();
        assert!(format.open(&path, false).is_ok());
        for width in [1 << 20, usize::MAX / 16, usize::MAX] {
            let json = serde_json::to_string(&VolumeDescription { width, ..description.clone() }).unwrap();
            let file = File::open_rw(&path).unwrap();
            let text: VarLenUnicode = json.parse().unwrap();
            file.dataset(DESCRIPTION).unwrap().write_scalar(&text).unwrap();
            file.close().unwrap();
            let error = format.open(&path, false).err().unwrap();
            assert!(error.to_string().contains("is shorter than its slices"), "{width}: {error}");
            // the length of compressed slices is only known when they are read
            let compressed = VolumeDescription { compression: Compression::Deflate, width, ..description.clone() };
            let small = VolumeDescription { width: 8, ..compressed.clone() };
            let path = directory.path().join(format!("{width}.h5"));
            format.make(&path, &small, "").unwrap();
            let file = File::open_rw(&path).unwrap();
            let text: VarLenUnicode = serde_json::to_string(&compressed).unwrap().parse().unwrap();
            file.dataset(DESCRIPTION).unwrap().write_scalar(&text).unwrap();
            file.close().unwrap();
            let error = format.open(&path, false).unwrap().read(1).unwrap_err();
            assert!(error.to_string().contains("impossible length"), "{width}: {error}");
        }
    }
}

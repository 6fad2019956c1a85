//! Creation of files without slices by the library.

use super::file::{
    DATA_PATH, DESCRIPTION_PATH, MARKS_PATH, NUMBERS_PATH, PART_DATA_PATH, PART_OFFSETS_PATH, PLACES_PATH,
    RUN_FILE_PATH, offset, other,
};
use super::nexus::{describe_scan, group, text, text_dataset};
use crate::layout::codec::DEFLATE_LEVEL;
use crate::sink::compression::Compression;
use crate::sink::encoding::Dtype;
use crate::sink::volume::description::VolumeDescription;
use crate::sink::volume::parts::{part_name, slices_of_part};
use crate::sink::volume::space::ROW;
use half::f16;
use hdf5_metno::plist::dataset_create::{AllocTime, FillTime, Layout};
use hdf5_metno::types::TypeDescriptor;
use hdf5_metno::{Dataset, File, H5Type, SliceOrIndex};
use std::io;
use std::path::Path;

/// Creates a dataset with space for all values, none of which is written.
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

/// Creates a file of the first version of the format, in which nothing has a checksum.
fn new_file(path: &Path) -> hdf5_metno::Result<File> {
    File::with_options().with_fapl(|plist| plist.libver_earliest()).create_excl(path)
}

/// Creates the dataset of slices: with space for all samples, or without chunks so far.
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

/// Makes a part with space for slices, and returns the offset of their samples, or 0 if they are compressed.
pub(super) fn make_part(path: &Path, slices: usize, description: &VolumeDescription) -> io::Result<u64> {
    let file = new_file(path).map_err(other)?;
    let data = slices_dataset(&file, PART_DATA_PATH, slices, description).map_err(other)?;
    let offset = if description.compression == Compression::None { offset(&data)? } else { 0 };
    drop(data);
    file.close().map_err(other)?;
    Ok(offset)
}

/// Creates the virtual dataset of slices in several parts.
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
        builder = builder.virtual_map(path.to_string_lossy(), PART_DATA_PATH, shape_of_part, all, shape, places);
    }
    builder.create(DATA_PATH)
}

/// The files that hold the slices of a file with parts.
pub(super) struct PartFiles<'a> {
    /// Their directory, as the file names it.
    pub directory: &'a Path,
    /// Where the slices begin in each, or 0 if they are compressed.
    pub offsets: &'a [u64],
}

/// Makes the whole file except the samples, which may be in the files of parts. Returns the offset of the table of compressed
/// slices, if slices are compressed.
pub(super) fn make(
    path: &Path,
    description: &VolumeDescription,
    run_file: &str,
    parts: Option<PartFiles>,
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
        None => slices_dataset(&file, DATA_PATH, description.slices.len(), description)?,
        Some(PartFiles { directory, offsets }) => {
            file.new_dataset::<u64>().shape(offsets.len()).create(PART_OFFSETS_PATH)?.write_raw(offsets)?;
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
    file.new_dataset::<u64>().shape(numbers.len()).create(NUMBERS_PATH)?.write_raw(&numbers)?;
    // 0 means that no slice is there
    let marks = room(&file, MARKS_PATH, &u64::type_descriptor(), &[numbers.len()], FillTime::Alloc)?;
    marks.write_raw(&vec![0u64; numbers.len()])?;
    let places = match description.compression {
        Compression::None => None,
        _ => {
            let rows = numbers.len() + description.parts.unwrap_or(1);
            room(&file, PLACES_PATH, &u64::type_descriptor(), &[rows, ROW], FillTime::Alloc)?.offset()
        }
    };
    text_dataset(&file, "/entry/reconstruction/program", &description.software)?;
    describe_scan(&file, description, run_file)?;
    let json = serde_json::to_string(description).map_err(|e| hdf5_metno::Error::from(e.to_string()))?;
    text_dataset(&file, DESCRIPTION_PATH, &json)?;
    text_dataset(&file, RUN_FILE_PATH, run_file)?;
    drop((data, marks));
    file.close()?;
    Ok(places)
}

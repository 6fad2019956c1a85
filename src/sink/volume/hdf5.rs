//! One HDF5 file: a contiguous dataset of all slices, and a description of the run.
//!
//! The library creates the file with space for all samples; all threads then write them at their offsets, without the
//! library.

use super::marks::Marks;
use super::{Container, OpenVolume, VolumeDescription, VolumeOutput, is_hdf5_name};
use crate::error::Result;
use crate::sink::page::EncodedPage;
use crate::sink::{Compression, Dtype, Target};
use crate::source::hdf5::{Hdf5Reading, examine, is_hdf5};
use half::f16;
use hdf5_metno::plist::dataset_create::{AllocTime, FillTime, Layout};
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File, Group, H5Type, Location};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The slices, their numbers, their checksums, and what is said of the run.
const DATA: &str = "/entry/reconstruction/results/data";
const NUMBERS: &str = "/entry/reconstruction/results/slice";
const MARKS: &str = "/entry/reconstruction/results/checksums";
const DESCRIPTION: &str = "/entry/reconstruction/configuration/fbp";
const RUN_FILE: &str = "/entry/reconstruction/configuration/run";

/// Reads a spec that is the name of an HDF5 file and not a directory.
pub fn parse_hdf5(spec: &str) -> Result<Option<Target>> {
    let single = is_hdf5_name(spec) && !Path::new(spec).is_dir();
    Ok(single.then(|| VolumeOutput::target(spec, Hdf5File)))
}

#[derive(Clone, Debug)]
struct Hdf5File;

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
    ours.then(|| Hdf5File.open(path, false).ok()).flatten().map(|volume| volume.description().clone())
}

/// A group of a class of NeXus.
fn group(file: &File, name: &str, class: &str) -> hdf5_metno::Result<Group> {
    let group = file.create_group(name)?;
    text(&group, "NX_class", class)?;
    Ok(group)
}

/// A dataset with room for all values, none of which is written.
fn room<T: H5Type>(file: &File, name: &str, shape: &[usize], fill: FillTime) -> hdf5_metno::Result<Dataset> {
    let builder = file.new_dataset::<T>().shape(shape);
    builder
        .with_dcpl(|plist| plist.layout(Layout::Contiguous).alloc_time(Some(AllocTime::Early)).fill_time(fill))
        .create(name)
}

/// The whole file but the samples.
fn make(path: &Path, description: &VolumeDescription, run_file: &str) -> hdf5_metno::Result<()> {
    let file = File::create_excl(path)?;
    text(&file, "NX_class", "NXroot")?;
    text(&file, "default", "entry")?;
    let entry = group(&file, "/entry", "NXentry")?;
    text(&entry, "default", "reconstruction")?;
    let process = group(&file, "/entry/reconstruction", "NXprocess")?;
    text(&process, "default", "results")?;
    let results = group(&file, "/entry/reconstruction/results", "NXdata")?;
    group(&file, "/entry/reconstruction/configuration", "NXcollection")?;
    let shape = [description.slices.len(), description.height, description.width];
    let data = match description.dtype {
        Dtype::F32 => room::<f32>(&file, DATA, &shape, FillTime::Never)?,
        Dtype::F16 => room::<f16>(&file, DATA, &shape, FillTime::Never)?,
        Dtype::U16 => room::<u16>(&file, DATA, &shape, FillTime::Never)?,
        Dtype::U8 => room::<u8>(&file, DATA, &shape, FillTime::Never)?,
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
    let marks = room::<u64>(&file, MARKS, &[numbers.len()], FillTime::Alloc)?;
    marks.write_raw(&vec![0u64; numbers.len()])?;
    text_dataset(&file, "/entry/reconstruction/program", &description.software)?;
    let json = serde_json::to_string(description).map_err(|e| hdf5_metno::Error::from(e.to_string().as_str()))?;
    text_dataset(&file, DESCRIPTION, &json)?;
    text_dataset(&file, RUN_FILE, run_file)?;
    file.close()
}

fn other(error: hdf5_metno::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Container for Hdf5File {
    fn compressions(&self) -> &[Compression] {
        &[Compression::None]
    }

    fn make(&self, path: &Path, description: &VolumeDescription, run_file: &str) -> io::Result<()> {
        make(path, description, run_file).map_err(other)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn OpenVolume>> {
        let length = fs::metadata(path)?.len();
        examine(&Hdf5Reading::Contents { file: path.to_owned() }).map_err(io::Error::other)?;
        let file = File::open(path).map_err(other)?;
        let description = file.dataset(DESCRIPTION).and_then(|text| text.read_scalar::<VarLenUnicode>());
        let description: VolumeDescription = serde_json::from_str(description.map_err(other)?.as_str())?;
        let offset = |name: &str| -> io::Result<u64> {
            file.dataset(name)
                .map_err(other)?
                .offset()
                .ok_or_else(|| invalid("has a dataset that is not contiguous; choose another --output"))
        };
        let (data, marks) = (offset(DATA)?, offset(MARKS)?);
        let bytes = description.slices.len() as u64 * description.slice_bytes() as u64;
        let marks_end = marks.checked_add(8 * description.slices.len() as u64);
        if [data.checked_add(bytes), marks_end].iter().any(|end| end.is_none_or(|end| end > length)) {
            return Err(invalid("is shorter than its slices; run again without --resume"));
        }
        let open = || OpenOptions::new().read(true).write(write).open(path);
        Ok(Box::new(OpenHdf5 { description, data, file: open()?, marks: Marks::new(open()?, marks) }))
    }
}

/// A file whose dataset begins at an offset.
struct OpenHdf5 {
    description: VolumeDescription,
    data: u64,
    file: fs::File,
    marks: Marks,
}

impl OpenHdf5 {
    fn offset(&self, place: usize) -> u64 {
        self.data + place as u64 * self.description.slice_bytes() as u64
    }
}

impl OpenVolume for OpenHdf5 {
    fn description(&self) -> &VolumeDescription {
        &self.description
    }

    fn marks(&self) -> &Marks {
        &self.marks
    }

    fn write(&self, place: usize, samples: &EncodedPage) -> io::Result<u32> {
        Ok(samples.write_at(&self.file, self.offset(place))?.crc32)
    }

    fn read(&self, place: usize) -> io::Result<Vec<u8>> {
        let mut samples = vec![0; self.description.slice_bytes()];
        self.file.read_exact_at(&mut samples, self.offset(place))?;
        Ok(samples)
    }
}

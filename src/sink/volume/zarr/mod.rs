//! OME-Zarr output: a directory with chunks of one slice, and coarser levels of the volume.
//!
//! A plane of a level is made of two planes of the level below when both exist, whichever job wrote them.

mod coarser;
mod planes;

use super::container::{Container, OpenVolume};
use super::description::VolumeDescription;
use super::errors::{VolumeError, invalid};
use super::marks::{MARK_BYTES, Marks};
use super::paths::remove;
use crate::files::{directory, name_of_temporary, read_text, temporary_path};
use crate::layout::SampleType;
use crate::layout::codec::Compressor;
use crate::layout::zarr::{
    ATTRIBUTES, ArrayMetadata, ChunkCodec, ChunkKeys, GROUP, ImageLevel, ImageMetadata, METADATA, ZarrVersion,
    group_files,
};
use crate::sink::compression::Compression;
use crate::sink::existing::Origin;
use crate::sink::request::{OmeZarr, OutputRequest};
use crate::source::zarr::{ZarrArray, attributes, is_zarr};
use crate::units::Length;
use planes::OpenZarr;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Largest side of a chunk in pixels.
const CHUNK: usize = 1024;
/// Largest side of slices in pixels of which no coarser level is made.
const COARSEST: usize = 256;
/// Name of the attribute that contains the run file.
const RUN_FILE: &str = "fbp-run";
/// Name of the array of marks, which are those of all levels, the finest first.
const MARKS: &str = "checksums";

/// OME-Zarr as a format.
#[derive(Clone, Debug)]
pub(super) struct ZarrDirectory;

/// Returns the description in a directory of OME-Zarr that this program wrote.
pub fn describe(path: &Path) -> Option<VolumeDescription> {
    Some(ZarrDirectory.open(path, false).ok()?.description().clone())
}

/// Returns the number of frames, rows and columns of each level.
fn levels(description: &VolumeDescription) -> Vec<[usize; 3]> {
    let mut shape = [description.slices.len(), description.height, description.width];
    let mut levels = vec![shape];
    while shape[1].max(shape[2]) > COARSEST {
        shape = shape.map(|side| side.div_ceil(2));
        levels.push(shape);
    }
    levels
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Returns the version of Zarr of an output.
fn version(description: &VolumeDescription) -> ZarrVersion {
    match description.ome_zarr.unwrap_or_default() {
        OmeZarr::V04 => ZarrVersion::V2,
        OmeZarr::V05 => ZarrVersion::V3,
    }
}

/// Returns all files of metadata, relative to the directory, and the number of planes of all levels.
fn metadata(description: &VolumeDescription, run_file: &str) -> (Vec<(PathBuf, String)>, usize) {
    let version = version(description);
    let mut attributes = image(description).attributes(version);
    attributes["fbp"] = json!(description);
    attributes[RUN_FILE] = json!(run_file);
    let group = group_files(version, attributes);
    let mut files: Vec<_> = group.into_iter().map(|(name, meta)| (PathBuf::from(name), pretty(&meta))).collect();
    let levels = levels(description);
    let planes = levels.iter().map(|shape| shape[0]).sum();
    for (level, shape) in levels.into_iter().enumerate() {
        let chunk = [1, shape[1].min(CHUNK), shape[2].min(CHUNK)];
        let codec = ChunkCodec { compressor: compressor(description.compression), checksum: false };
        let array = array(version, &shape, &chunk, description.dtype.sample(), codec);
        files.push(array_file(&level.to_string(), version, &array, &["z", "y", "x"]));
    }
    let marks = array(version, &[planes], &[planes], SampleType::U64, ChunkCodec::default());
    files.push(array_file(MARKS, version, &marks, &["plane"]));
    (files, planes)
}

/// Returns the metadata of an array that this machine writes.
fn array(
    version: ZarrVersion,
    shape: &[usize],
    chunk: &[usize],
    sample: SampleType,
    codec: ChunkCodec,
) -> ArrayMetadata {
    let sides = |sides: &[usize]| sides.iter().map(|&side| side as u64).collect();
    ArrayMetadata {
        shape: sides(shape),
        file: sides(chunk),
        sample,
        big_endian: cfg!(target_endian = "big"),
        codec,
        shards: None,
        keys: ChunkKeys::nested(version),
        fill: json!(0),
    }
}

/// Returns the file of the metadata of an array, and its text.
fn array_file(directory: &str, version: ZarrVersion, array: &ArrayMetadata, names: &[&str]) -> (PathBuf, String) {
    (Path::new(directory).join(version.array_file()), pretty(&array.to_json(version, names)))
}

/// Returns the compressor of chunks.
fn compressor(compression: Compression) -> Option<Compressor> {
    match compression {
        // which OME-Zarr outputs do not offer
        Compression::None | Compression::Lzw => None,
        Compression::Deflate => Some(Compressor::Gzip),
        Compression::Zstd => Some(Compressor::Zstd),
    }
}

/// Returns the levels of the image, with positions of pixels in the unit of length.
fn image(description: &VolumeDescription) -> ImageMetadata {
    let Length { value: pixel, unit } = description.pixel().unwrap_or(Length { value: 1.0, unit: String::new() });
    let step = match description.slices[..] {
        [first, second, ..] => (second - first) as f64,
        _ => 1.0,
    };
    let steps = [step, 1.0, 1.0];
    let level = |level: usize| {
        let factor = (1u64 << level) as f64;
        let scale = steps.map(|step| step * pixel * factor);
        let translation = (level > 0).then(|| steps.map(|step| step * pixel * (factor - 1.0) / 2.0));
        ImageLevel { path: level.to_string(), scale, translation }
    };
    ImageMetadata { unit, levels: (0..levels(description).len()).map(level).collect() }
}

impl Container for ZarrDirectory {
    const FLAG: Option<&'static str> = Some("ome-zarr");

    fn compressions(&self) -> &[Compression] {
        &[Compression::None, Compression::Deflate, Compression::Zstd]
    }

    fn describe(&self, request: &OutputRequest) -> VolumeDescription {
        VolumeDescription { ome_zarr: Some(request.ome_zarr), ..VolumeDescription::new(request) }
    }

    fn make(&self, path: &Path, description: &VolumeDescription, run_file: &str) -> io::Result<()> {
        let (files, planes) = metadata(description, run_file);
        fs::create_dir(path)?;
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(directory(&file))?;
            fs::write(file, text)?;
        }
        let file = marks_file(path, description);
        fs::create_dir_all(directory(&file))?;
        fs::write(file, vec![0; planes * MARK_BYTES])
    }

    fn is_as_made(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool> {
        let run_file = attributes(path).map_err(invalid)?[RUN_FILE].as_str().unwrap_or_default().to_owned();
        let (files, _) = metadata(description, &run_file);
        Ok(files.iter().all(|(name, text)| read_text(&path.join(name)).is_ok_and(|found| found == *text)))
    }

    fn origin(&self, path: &Path) -> Origin {
        match path.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Origin::Nothing,
            Ok(meta) if meta.is_dir() => {}
            _ => return Origin::Foreign,
        }
        if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
            return Origin::Nothing;
        }
        match (self.open(path, false), attributes(path)) {
            _ if has_others(path) => Origin::Foreign,
            (Ok(volume), _) => Origin::Own(volume.description().content()),
            (Err(_), Ok(attributes)) if attributes["fbp"].is_null() => Origin::Foreign,
            (Err(_), Err(_)) if !is_zarr(path) => Origin::Foreign,
            (Err(_), _) => Origin::Torn,
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if !path.is_dir() || name_of_temporary(&path.file_name().unwrap_or_default().to_string_lossy()).is_some() {
            return remove(path);
        }
        let temporary = temporary_path(path)?;
        fs::rename(path, &temporary)?;
        remove(&temporary)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn OpenVolume>> {
        let attributes = attributes(path).map_err(invalid)?;
        let description: VolumeDescription = serde_json::from_value(attributes["fbp"].clone())?;
        let arrays = (0..levels(&description).len()).map(|level| ZarrArray::open(&path.join(level.to_string())));
        let arrays = arrays.collect::<std::result::Result<Vec<_>, _>>().map_err(invalid)?;
        let differs = |(shape, array): (&[usize; 3], &ZarrArray)| {
            *shape != array.shape || array.chunk[0] != 1 || array.sharding.is_some()
        };
        if levels(&description).iter().zip(&arrays).any(differs) {
            return Err(invalid(VolumeError::OtherLevels));
        }
        let file = marks_file(path, &description);
        let marks = Marks::new(OpenOptions::new().read(true).write(write).open(file)?, 0);
        Ok(Box::new(OpenZarr { description, levels: arrays, marks }))
    }
}

/// Reports whether a directory contains anything other than metadata, levels and marks, written by another program.
fn has_others(path: &Path) -> bool {
    let is_level = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let is_own = |name: &str| [GROUP, ATTRIBUTES, METADATA, MARKS].contains(&name) || is_level(name);
    fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(|entry| !is_own(&entry.file_name().to_string_lossy())))
}

/// Returns the file of the only chunk of the array of marks.
fn marks_file(path: &Path, description: &VolumeDescription) -> PathBuf {
    path.join(MARKS).join(ChunkKeys::nested(version(description)).path([0]))
}

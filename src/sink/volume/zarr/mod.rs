//! OME-Zarr output: a directory with chunks of one slice, and coarser levels of the volume.
//!
//! A plane of a level is made of two planes of the level below when both exist, whichever job wrote them.

mod coarser;
mod planes;

use super::container::{Container, OpenVolume};
use super::description::VolumeDescription;
use super::marks::{MARK_BYTES, Marks};
use super::paths::remove;
use crate::files::{directory, name_of_temporary, read_text, temporary_path};
use crate::sink::compression::{Compression, ZSTD_LEVEL};
use crate::sink::encoding::Dtype;
use crate::sink::existing::Origin;
use crate::sink::request::{OmeZarr, OutputRequest};
use crate::source::zarr::{ZarrArray, attributes, is_zarr};
use planes::{OpenZarr, invalid};
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

/// Metadata of one array, for both versions of Zarr.
struct ArrayMeta<'a> {
    shape: &'a [usize],
    chunk: &'a [usize],
    /// Names of the sample type in both versions.
    kind: [&'a str; 2],
    compression: Compression,
}

impl ArrayMeta<'_> {
    fn version_2(&self) -> Value {
        let compressor = match self.compression {
            Compression::None | Compression::Lzw => Value::Null,
            Compression::Deflate => json!({"id": "gzip", "level": 3}),
            Compression::Zstd => json!({"id": "zstd", "level": ZSTD_LEVEL}),
        };
        let order = if cfg!(target_endian = "big") { ">" } else { "<" };
        let order = if self.kind[0].ends_with('1') { "|" } else { order };
        json!({
            "zarr_format": 2, "shape": self.shape, "chunks": self.chunk, "dtype": format!("{order}{}", self.kind[0]),
            "compressor": compressor, "fill_value": 0, "order": "C", "filters": null, "dimension_separator": "/",
        })
    }

    fn version_3(&self, names: &[&str]) -> Value {
        let endian = if cfg!(target_endian = "big") { "big" } else { "little" };
        let mut codecs = vec![json!({"name": "bytes", "configuration": {"endian": endian}})];
        match self.compression {
            Compression::None | Compression::Lzw => {}
            Compression::Deflate => codecs.push(json!({"name": "gzip", "configuration": {"level": 3}})),
            Compression::Zstd => {
                codecs.push(json!({"name": "zstd", "configuration": {"level": ZSTD_LEVEL, "checksum": false}}));
            }
        }
        json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": self.kind[1],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": codecs, "attributes": {}, "dimension_names": names,
        })
    }

    /// Returns the file for the metadata of an array, and its text.
    fn file(&self, directory: &Path, version: OmeZarr, names: &[&str]) -> (PathBuf, String) {
        match version {
            OmeZarr::V04 => (directory.join(".zarray"), pretty(&self.version_2())),
            OmeZarr::V05 => (directory.join("zarr.json"), pretty(&self.version_3(names))),
        }
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Returns all files of metadata, relative to the directory, and the number of planes of all levels.
fn metadata(description: &VolumeDescription, run_file: &str) -> (Vec<(PathBuf, String)>, usize) {
    let version = description.ome_zarr.unwrap_or_default();
    let multiscales = multiscales(description, version);
    let mut attributes = match version {
        OmeZarr::V04 => json!({"multiscales": multiscales}),
        OmeZarr::V05 => json!({"ome": {"version": "0.5", "multiscales": multiscales}}),
    };
    attributes["fbp"] = json!(description);
    attributes[RUN_FILE] = json!(run_file);
    let mut files = match version {
        OmeZarr::V04 => vec![
            (PathBuf::from(".zgroup"), pretty(&json!({"zarr_format": 2}))),
            (PathBuf::from(".zattrs"), pretty(&attributes)),
        ],
        OmeZarr::V05 => {
            let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
            vec![(PathBuf::from("zarr.json"), pretty(&group))]
        }
    };
    let kind = match description.dtype {
        Dtype::F32 => ["f4", "float32"],
        Dtype::F16 => ["f2", "float16"],
        Dtype::U16 => ["u2", "uint16"],
        Dtype::U8 => ["u1", "uint8"],
    };
    let mut planes = 0;
    for (level, shape) in levels(description).into_iter().enumerate() {
        let chunk = [1, shape[1].min(CHUNK), shape[2].min(CHUNK)];
        let meta = ArrayMeta { shape: &shape, chunk: &chunk, kind, compression: description.compression };
        files.push(meta.file(Path::new(&level.to_string()), version, &["z", "y", "x"]));
        planes += shape[0];
    }
    let marks =
        ArrayMeta { shape: &[planes], chunk: &[planes], kind: ["u8", "uint64"], compression: Compression::None };
    files.push(marks.file(Path::new(MARKS), version, &["plane"]));
    (files, planes)
}

/// Returns the OME-Zarr metadata of the levels, with positions of pixels in the unit of length.
fn multiscales(description: &VolumeDescription, version: OmeZarr) -> Value {
    let (pixel, unit) = description.pixel_size().unwrap_or((1.0, String::new()));
    let unit = match unit.as_str() {
        "nm" => Some("nanometer"),
        "um" => Some("micrometer"),
        "mm" => Some("millimeter"),
        "cm" => Some("centimeter"),
        "m" => Some("meter"),
        _ => None,
    };
    let axis = |name: &str| match unit {
        Some(unit) => json!({"name": name, "type": "space", "unit": unit}),
        None => json!({"name": name, "type": "space"}),
    };
    let step = match description.slices[..] {
        [first, second, ..] => (second - first) as f64,
        _ => 1.0,
    };
    let level = |level: usize| {
        let factor = (1u64 << level) as f64;
        let along = |step: f64| (step * pixel * factor, step * pixel * (factor - 1.0) / 2.0);
        let [z, y, x] = [along(step), along(1.0), along(1.0)];
        let mut transformations = vec![json!({"type": "scale", "scale": [z.0, y.0, x.0]})];
        if level > 0 {
            transformations.push(json!({"type": "translation", "translation": [z.1, y.1, x.1]}));
        }
        json!({"path": level.to_string(), "coordinateTransformations": transformations})
    };
    let datasets: Vec<_> = (0..levels(description).len()).map(level).collect();
    let axes = [axis("z"), axis("y"), axis("x")];
    let mut image = json!({"name": "reconstruction", "axes": axes, "datasets": datasets, "type": "mean"});
    if version == OmeZarr::V04 {
        image["version"] = json!("0.4");
    }
    json!([image])
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
        let file = marks_file(path, description.ome_zarr.unwrap_or_default());
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
            return Err(invalid(
                "has levels with other shapes than its description says; run again without --resume".into(),
            ));
        }
        let file = marks_file(path, description.ome_zarr.unwrap_or_default());
        let marks = Marks::new(OpenOptions::new().read(true).write(write).open(file)?, 0);
        Ok(Box::new(OpenZarr { description, levels: arrays, marks }))
    }
}

/// Reports whether a directory contains anything other than metadata, levels and marks, written by another program.
fn has_others(path: &Path) -> bool {
    let is_level = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let is_own = |name: &str| [".zgroup", ".zattrs", "zarr.json", MARKS].contains(&name) || is_level(name);
    fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(|entry| !is_own(&entry.file_name().to_string_lossy())))
}

/// Returns the file of the only chunk of the array of marks.
fn marks_file(path: &Path, version: OmeZarr) -> PathBuf {
    path.join(MARKS).join(if version == OmeZarr::V05 { "c/0" } else { "0" })
}

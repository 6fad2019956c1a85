//! A directory of OME-Zarr: chunks of one slice, and coarser levels of the volume.
//!
//! A plane of a level is made of two planes of the level below when both are there, whoever wrote them.

mod coarser;
mod planes;

use super::marks::{MARK_BYTES, Marks};
use super::{Container, OpenVolume, VolumeDescription, VolumeOutput, remove};
use crate::error::Result;
use crate::files::{name_of_temporary, temporary_path};
use crate::sink::compression::ZSTD_LEVEL;
use crate::sink::{Compression, Dtype, SliceForm, Target};
use crate::source::zarr::{ZarrArray, attributes};
use planes::{OpenZarr, invalid};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Largest side of a chunk in pixels.
const CHUNK: usize = 1024;
/// No level is made of slices whose sides are all at most this long.
const COARSEST: usize = 256;
/// The array of marks: those of all levels, the finest first.
const MARKS: &str = "checksums";

/// Version of OME-Zarr; 0.4 is of Zarr 2, 0.5 of Zarr 3.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
pub enum OmeZarr {
    /// which most viewers read
    #[default]
    #[serde(rename = "0.4")]
    #[strum(serialize = "0.4")]
    V04,
    /// the newest
    #[serde(rename = "0.5")]
    #[strum(serialize = "0.5")]
    V05,
}

/// Reads a spec that ends in `.zarr`.
pub fn parse_zarr(spec: &str) -> Result<Option<Target>> {
    let name = spec.trim_end_matches('/');
    let is_zarr = name.to_ascii_lowercase().ends_with(".zarr");
    Ok(is_zarr.then(|| VolumeOutput::target(name, ZarrDirectory)))
}

#[derive(Clone, Debug)]
struct ZarrDirectory;

/// What a directory of OME-Zarr says of itself, if it is one of ours.
pub fn describe(path: &Path) -> Option<VolumeDescription> {
    Some(ZarrDirectory.open(path, false).ok()?.description().clone())
}

/// Frames, rows and columns of each level.
fn levels(description: &VolumeDescription) -> Vec<[usize; 3]> {
    let mut shape = [description.slices.len(), description.height, description.width];
    let mut levels = vec![shape];
    while shape[1].max(shape[2]) > COARSEST {
        shape = shape.map(|side| side.div_ceil(2));
        levels.push(shape);
    }
    levels
}

/// Metadata of one array in the two versions.
struct ArrayMeta<'a> {
    shape: &'a [usize],
    chunk: &'a [usize],
    /// Names of the type in both versions.
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

    fn write(&self, directory: &Path, version: OmeZarr, names: &[&str]) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        match version {
            OmeZarr::V04 => put_json(&directory.join(".zarray"), &self.version_2()),
            OmeZarr::V05 => put_json(&directory.join("zarr.json"), &self.version_3(names)),
        }
    }
}

fn put_json(path: &Path, value: &Value) -> io::Result<()> {
    fs::write(path, format!("{value:#}\n"))
}

/// What OME-Zarr says of the levels: places of pixels in the unit of length.
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
    const FLAG: &'static str = "ome-zarr";

    fn compressions(&self) -> &[Compression] {
        &[Compression::None, Compression::Deflate, Compression::Zstd]
    }

    fn describe(&self, form: &SliceForm) -> VolumeDescription {
        VolumeDescription { ome_zarr: Some(form.ome_zarr), ..VolumeDescription::new(form) }
    }

    fn make(&self, path: &Path, description: &VolumeDescription, run_file: &str) -> io::Result<()> {
        let version = description.ome_zarr.unwrap_or_default();
        fs::create_dir(path)?;
        let multiscales = multiscales(description, version);
        let mut attributes = match version {
            OmeZarr::V04 => json!({"multiscales": multiscales}),
            OmeZarr::V05 => json!({"ome": {"version": "0.5", "multiscales": multiscales}}),
        };
        attributes["fbp"] = json!(description);
        attributes["fbp-run"] = json!(run_file);
        match version {
            OmeZarr::V04 => {
                put_json(&path.join(".zgroup"), &json!({"zarr_format": 2}))?;
                put_json(&path.join(".zattrs"), &attributes)?;
            }
            OmeZarr::V05 => {
                let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
                put_json(&path.join("zarr.json"), &group)?;
            }
        }
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
            meta.write(&path.join(level.to_string()), version, &["z", "y", "x"])?;
            planes += shape[0];
        }
        let marks =
            ArrayMeta { shape: &[planes], chunk: &[planes], kind: ["u8", "uint64"], compression: Compression::None };
        marks.write(&path.join(MARKS), version, &["plane"])?;
        let file = marks_file(path, version);
        fs::create_dir_all(file.parent().unwrap_or(path))?;
        fs::write(file, vec![0; planes * MARK_BYTES])
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

/// The only chunk of the array of marks.
fn marks_file(path: &Path, version: OmeZarr) -> PathBuf {
    path.join(MARKS).join(if version == OmeZarr::V05 { "c/0" } else { "0" })
}

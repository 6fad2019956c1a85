//! A directory of OME-Zarr: chunks of one slice, and coarser levels of the volume.
//!
//! A plane of a level is made of two planes of the level below when both are there, whoever wrote them.

use super::marks::{MARK_BYTES, Mark, Marks};
use super::{Container, OpenVolume, VolumeDescription, VolumeOutput};
use crate::error::Result;
use crate::sink::compression::ZSTD_LEVEL;
use crate::sink::{Compression, Dtype, SliceForm, Target};
use crate::source::zarr::{ZarrArray, attributes};
use crate::source::{SampleType, to_f32};
use half::f16;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
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
    let is_zarr = name.to_ascii_lowercase().ends_with(".zarr") && !name.contains('%');
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
    fn compressions(&self) -> &[Compression] {
        &[Compression::None, Compression::Deflate, Compression::Zstd]
    }

    fn version(&self, form: &SliceForm) -> Option<OmeZarr> {
        Some(form.ome_zarr)
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

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn OpenVolume>> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let mut attributes = attributes(path).map_err(invalid)?;
        let description: VolumeDescription = serde_json::from_value(attributes["fbp"].take())?;
        let arrays = (0..levels(&description).len()).map(|level| ZarrArray::open(&path.join(level.to_string())));
        let arrays = arrays.collect::<std::result::Result<Vec<_>, _>>().map_err(invalid)?;
        if levels(&description).iter().zip(&arrays).any(|(shape, array)| *shape != array.shape || array.chunk[0] != 1) {
            return Err(invalid(
                "has levels of other shapes than its description says; run again without --resume".into(),
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

struct OpenZarr {
    description: VolumeDescription,
    /// The finest first.
    levels: Vec<ZarrArray>,
    marks: Marks,
}

impl OpenZarr {
    /// Where the marks of a level begin.
    fn first_mark(&self, level: usize) -> usize {
        self.levels[..level].iter().map(|array| array.shape[0]).sum()
    }

    /// Writes the chunks of a plane. Files are not cut first: several jobs may write the same bytes at the same time.
    fn write_plane(&self, level: usize, plane: usize, samples: &[u8]) -> io::Result<()> {
        let ZarrArray { shape: [_, height, width], chunk: [_, high, wide], sample, .. } = self.levels[level];
        let size = sample.bytes();
        let [_, down, across] = self.levels[level].counts();
        let directory = &self.levels[level].directory;
        make_directories(directory, &self.levels[level].chunk_path([plane, 0, 0]))?;
        (0..down * across).into_par_iter().try_for_each(|number| {
            let (band, column) = (number / across, number % across);
            let used = wide.min(width - column * wide) * size;
            let mut chunk = vec![0; high * wide * size];
            for (row, out) in (band * high..height).zip(chunk.chunks_exact_mut(wide * size)) {
                let from = (row * width + column * wide) * size;
                out[..used].copy_from_slice(&samples[from..from + used]);
            }
            let stored = match self.description.compression {
                Compression::None | Compression::Lzw => chunk,
                Compression::Deflate => Compression::gzip(&chunk)?,
                Compression::Zstd => Compression::Zstd.compress(&chunk)?,
            };
            let path = self.levels[level].chunk_path([plane, band, column]);
            make_directories(directory, &path)?;
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            file.write_all_at(&stored, 0)?;
            file.set_len(stored.len() as u64)
        })
    }

    fn read_plane(&self, level: usize, plane: usize) -> io::Result<Vec<u8>> {
        let array = &self.levels[level];
        let ZarrArray { shape: [_, height, width], chunk: [_, high, wide], sample, .. } = *array;
        let size = sample.bytes();
        let [_, down, across] = array.counts();
        let mut samples = vec![0; height * width * size];
        for (band, column) in (0..down).flat_map(|band| (0..across).map(move |column| (band, column))) {
            let path = array.chunk_path([plane, band, column]);
            let chunk = array.decode(&fs::File::open(&path)?, &path);
            let chunk = chunk.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
            let used = wide.min(width - column * wide) * size;
            for (row, from) in (band * high..height).zip(chunk.chunks_exact(wide * size)) {
                let to = (row * width + column * wide) * size;
                samples[to..to + used].copy_from_slice(&from[..used]);
            }
        }
        Ok(samples)
    }

    /// Makes a plane of a level of those below it.
    fn make_plane(&self, level: usize, plane: usize) -> io::Result<()> {
        let below = &self.levels[level - 1];
        let planes = (2 * plane..(2 * plane + 2).min(below.shape[0])).map(|plane| {
            let bytes = self.read_plane(level - 1, plane)?;
            let mut values = vec![0f32; bytes.len() / below.sample.bytes()];
            to_f32(&bytes, below.sample, cfg!(target_endian = "big"), &mut values);
            Ok(values)
        });
        let planes = planes.collect::<io::Result<Vec<_>>>()?;
        let samples = halved(&planes, below.shape[2], below.sample);
        self.write_plane(level, plane, &samples)?;
        self.marks.set(self.first_mark(level) + plane, Mark::Complete(crc32fast::hash(&samples)))
    }
}

/// Makes the directories of a chunk, but never that of the array: it may have got its name.
fn make_directories(array: &Path, chunk: &Path) -> io::Result<()> {
    let above = chunk.ancestors().skip(1).take_while(|directory| *directory != array);
    for directory in above.collect::<Vec<_>>().into_iter().rev() {
        match fs::create_dir(directory) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Means of two by two pixels of all planes, as samples; at the ends, of those that there are.
fn halved(planes: &[Vec<f32>], width: usize, sample: SampleType) -> Vec<u8> {
    let height = planes.first().map_or(0, |plane| plane.len() / width);
    let rows = (0..height.div_ceil(2)).into_par_iter().map(|row| {
        let lines = 2 * row..(2 * row + 2).min(height);
        let mut sums = vec![0f64; width.div_ceil(2)];
        for plane in planes {
            for line in plane[lines.start * width..lines.end * width].chunks(width) {
                for (sum, pixels) in sums.iter_mut().zip(line.chunks(2)) {
                    *sum += pixels.iter().map(|value| f64::from(*value)).sum::<f64>();
                }
            }
        }
        let mut bytes = Vec::with_capacity(sums.len() * sample.bytes());
        for (column, sum) in sums.into_iter().enumerate() {
            let across = 2.min(width - 2 * column);
            let mean = sum / (planes.len() * lines.len() * across) as f64;
            match sample {
                SampleType::U8 => bytes.push(mean.round() as u8),
                SampleType::U16 => bytes.extend((mean.round() as u16).to_ne_bytes()),
                SampleType::F16 => bytes.extend(f16::from_f64(mean).to_ne_bytes()),
                _ => bytes.extend((mean as f32).to_ne_bytes()),
            }
        }
        bytes
    });
    rows.collect::<Vec<_>>().concat()
}

impl OpenVolume for OpenZarr {
    fn description(&self) -> &VolumeDescription {
        &self.description
    }

    fn marks(&self) -> &Marks {
        &self.marks
    }

    fn write(&self, place: usize, samples: &[u8]) -> io::Result<()> {
        self.write_plane(0, place, samples)
    }

    fn read(&self, place: usize) -> io::Result<Vec<u8>> {
        self.read_plane(0, place)
    }

    fn forget(&self, place: usize) -> io::Result<()> {
        (0..self.levels.len())
            .try_for_each(|level| self.marks.set(self.first_mark(level) + (place >> level), Mark::Missing))
    }

    fn written(&self, place: usize) -> io::Result<()> {
        let mut plane = place;
        for level in 1..self.levels.len() {
            let (first, other) = (self.first_mark(level - 1), plane ^ 1);
            if other < self.levels[level - 1].shape[0] && self.marks.get(first + other)? == Mark::Missing {
                return Ok(());
            }
            plane /= 2;
            self.make_plane(level, plane)?;
        }
        Ok(())
    }

    fn complete(&self) -> io::Result<()> {
        for level in 1..self.levels.len() {
            for plane in 0..self.levels[level].shape[0] {
                if self.marks.get(self.first_mark(level) + plane)? == Mark::Missing {
                    self.make_plane(level, plane)?;
                }
            }
        }
        Ok(())
    }
}

//! The scan of an HDF5 file.

use super::errors::Hdf5Result;
use super::examine::{Hdf5Reading, examine};
use super::file::{ChunkCache, Hdf5FileError, is_hdf5, open_file};
use super::layout::Layout;
use super::links;
use super::measures::measures_of;
use super::text::{self, Angles, length_of};
use super::volume::{Selection, Volume};
use super::{Hdf5Angles, Hdf5Contents, Hdf5Frames, Hdf5Input, Hdf5Scan};
use crate::error::{BoxedError, Error, Result, messages};
use crate::source::files::bad;
use crate::source::{BeamCurrents, FrameRoles, ScanMeasures, Stack, Stacks};
use crate::visible::Shown;
use hdf5_metno as hdf5;
use std::path::Path;

messages! {
    /// Errors of a scan in a file.
    enum Hdf5ScanError: Input {
        InFile { path: String, error: BoxedError } => "--hdf5 {path}: {error}",
        NoAngles =>
            "contains no angles where they are expected";
            "name the dataset with --hdf5-angles, or give --angles or --overall-angle",
        NoAnglesHere { lists: String } =>
            "contains no angles where they are expected";
            "name the dataset with --hdf5-angles (perhaps {lists}), or give --angles or --overall-angle",
        AngleCount { name: String, angles: usize, projections: usize } =>
            "{name} has {angles} angles, but there are {projections} projections"; "give --angles or --overall-angle",
        AngleCountOfFrames { name: String, angles: usize, projections: usize, frames: usize } =>
            "{name} has {angles} angles, but there are {projections} projections among {frames} frames";
            "give --angles or --overall-angle",
        InfiniteAngle { name: String, projection: usize, angle: f64 } =>
            "{name}: the angle of projection {projection} is {angle}, not a finite number";
            "give --angles or --overall-angle",
        NoCurrents { name: String, lists: String } =>
            "--beam-current {name}: there is neither such a dataset nor such a file"; "choose one of {lists}",
        KeyCount { name: String, keys: usize, data: String, frames: usize } =>
            "{name} has {keys} keys, but {data} has {frames} frames";
            "write the file again, or name other keys with --hdf5-keys",
        UnknownKey { name: String, key: f64, frame: usize } =>
            "{name}: key {key} of frame {frame} is not one of 0 (projection), 1 (flat), 2 (dark), 3 (invalid), -1 \
             (taken again)";
            "write the file again, or name other keys with --hdf5-keys",
        NoProjections { name: String } =>
            "{name} marks no frame as a projection (0)"; "name other keys with --hdf5-keys",
    }
}

messages! {
    /// Why no dataset of a file is read as a stack.
    enum Hdf5StackError: Input {
        NoDataset { found: String } =>
            "is an HDF5 file";
            "give it with --hdf5, which reads projections, fields and angles, or as FILE::/DATASET, which names a \
             dataset of frames or slices; there are: {found}",
        Unopened { error: Hdf5FileError } =>
            "is an HDF5 file";
            "give it with --hdf5, which reads projections, fields and angles, or as FILE::/DATASET, which names a \
             dataset of frames or slices; it {error}",
    }
}

/// Returns an error about the file of a scan.
fn bad_scan(input: &Hdf5Input, error: impl Into<BoxedError>) -> Error {
    Hdf5ScanError::InFile { path: input.file.shown(), error: error.into() }.into()
}

/// Opens a scan. `angles` tells whether angles are read from the file; chunks may take a part of `memory`, in bytes.
///
/// # Errors
/// [`Error::Input`] when the file is not an HDF5 file, contains no scan or several, or its parts are inconsistent.
pub fn open(input: &Hdf5Input, angles: bool, memory: u64) -> Result<Stacks> {
    examine(&Hdf5Reading::Scan { input: input.clone(), angles, memory })?;
    let mut cache = ChunkCache::of(memory, 1);
    let mut file = open_file(&input.file, cache).map_err(|e| bad_scan(input, e))?;
    let layout = Layout::find(&file, input).map_err(|e| bad_scan(input, e))?;
    let datasets = Volume::open(&input.file, &file, &layout.data, memory).map_err(|e| bad_scan(input, e))?.chunked();
    if datasets > 1 {
        // the sources of a virtual dataset are opened with the properties of its file
        cache = ChunkCache::of(memory, datasets);
        drop(file);
        file = open_file(&input.file, cache).map_err(|e| bad_scan(input, e))?;
    }
    let scan = read(input, &file, &layout, angles, memory).map_err(|e| bad_scan(input, e))?;
    let held = scan.projections.volume.held(cache);
    Ok(Stacks { held, ..stacks(scan)? })
}

/// Reads the parameters of the acquisition; values without a unit or not above 0 are left out.
///
/// # Errors
/// [`Error::Input`] when the file contains no scan.
pub fn measures(input: &Hdf5Input) -> Result<ScanMeasures> {
    examine(&Hdf5Reading::Measures { input: input.clone() })?;
    let file = open_file(&input.file, ChunkCache::of(0, 1)).map_err(|e| bad_scan(input, e))?;
    let layout = Layout::find(&file, input).map_err(|e| bad_scan(input, e))?;
    Ok(measures_of(&file, &layout))
}

/// Parts of a scan: the frames of each kind, and related data.
struct ScanParts {
    projections: Selection,
    flats: Option<Selection>,
    flats2: Option<Selection>,
    darks: Option<Selection>,
    angles: Option<Angles>,
    pixel_size: Option<String>,
    measures: ScanMeasures,
    /// What the frames are, if the file says it.
    roles: Option<FrameRoles>,
    /// Path and contents of the list of currents.
    currents: Option<(String, Vec<f64>)>,
    notes: Vec<String>,
}

fn read(input: &Hdf5Input, file: &hdf5::File, layout: &Layout, angles: bool, memory: u64) -> Hdf5Result<ScanParts> {
    let path = &input.file;
    let data = Volume::open(path, file, &layout.data, memory)?;
    let mut notes = data.notes();
    let mut roles = match &layout.keys {
        Some(keys) => Roles::read(file, keys, &data)?,
        None => Roles { projections: (0..data.frames()).collect(), ..Roles::default() },
    };
    // given datasets and files replace frames marked by keys
    if input.flats.is_some() {
        (roles.flats, roles.flats2, roles.between) = Default::default();
    }
    if input.darks.is_some() {
        roles.darks.clear();
    }
    notes.extend(roles.notes(layout));
    let currents = input.currents.as_deref().map(|name| currents(file, name, &data, &roles)).transpose()?;
    let of_frames = layout.keys.as_ref().map(|_| roles.of_frames(data.frames()));
    let part =
        |frames: &[usize]| (!frames.is_empty()).then(|| Selection { volume: data.clone(), frames: frames.to_vec() });
    let mut field = |dataset: &Option<String>, frames: &[usize], flag: &str| -> Hdf5Result<Option<Selection>> {
        let Some(name) = dataset else { return Ok(part(frames)) };
        let volume = Volume::open_field(path, file, name, memory, flag)?;
        notes.extend(volume.notes());
        let frames = (0..volume.frames()).collect();
        Ok(Some(Selection { volume, frames }))
    };
    let flats = field(&layout.flats, &roles.flats, "--hdf5-flats")?;
    let flats2 = part(&roles.flats2);
    let darks = field(&layout.darks, &roles.darks, "--hdf5-darks")?;
    let angles = match (angles, &layout.angles) {
        (false, _) => None,
        (true, None) => {
            let counts = [data.frames(), roles.projections.len()];
            let lists = super::layout::lists(file, |count| counts.contains(&count));
            return Err(match lists.is_empty() {
                true => Hdf5ScanError::NoAngles.into(),
                false => Hdf5ScanError::NoAnglesHere { lists: lists.join(", ") }.into(),
            });
        }
        (true, Some(name)) => {
            let angles = text::angles(file, name)?;
            notes.extend(angles.note.clone());
            let degrees = roles.pick(&angles.degrees, data.frames(), name)?;
            Some(Angles { degrees, ..angles })
        }
    };
    let pixel_size = layout.pixel_size.as_deref().and_then(|name| length_of(file, name));
    let projections = Selection { volume: data, frames: roles.projections };
    let measures = measures_of(file, layout);
    Ok(ScanParts { projections, flats, flats2, darks, angles, pixel_size, measures, roles: of_frames, currents, notes })
}

fn stacks(scan: ScanParts) -> Result<Stacks> {
    let mut notes = scan.notes;
    if let Some(size) = scan.pixel_size {
        notes.push(format!("the file gives a pixel size of {size}; values are per pixel unless --pixel-size is given"));
    }
    let field = |part: Option<Selection>, flag: &str| part.map(|part| part.stack(flag, Vec::new())).transpose();
    let stacks = Stacks {
        flats: field(scan.flats, "--hdf5 flats")?,
        flats2: field(scan.flats2, "--hdf5 flats (after)")?,
        darks: field(scan.darks, "--hdf5 darks")?,
        angles: scan.angles.map(|angles| angles.degrees),
        roles: scan.roles,
        measures: scan.measures,
        held: 0,
        ..Stacks::of(scan.projections.stack("--hdf5", notes)?)
    };
    let currents = scan.currents.map(|(name, list)| {
        BeamCurrents::of(&list, stacks.roles.as_ref(), stacks.frame_counts(), format!("--beam-current {name}"))
    });
    Ok(Stacks { currents: currents.transpose()?, ..stacks })
}

/// Reads a list of currents, and its path.
fn currents(file: &hdf5::File, name: &str, data: &Volume, roles: &Roles) -> Hdf5Result<(String, Vec<f64>)> {
    let path = format!("/{}", name.trim_matches('/'));
    if !links::exists(file, &path) {
        let counts = [data.frames(), roles.projections.len()];
        let lists = super::layout::lists(file, |count| counts.contains(&count)).join(", ");
        return Err(Hdf5ScanError::NoCurrents { name: name.to_owned(), lists }.into());
    }
    let list = text::numbers(file, &path)?;
    Ok((path, list))
}

/// Roles of the frames of a dataset.
#[derive(Default)]
struct Roles {
    projections: Vec<usize>,
    /// Flats before the first projection, or the only ones.
    flats: Vec<usize>,
    /// Flats after the last projection, if there are also some before the first.
    flats2: Vec<usize>,
    darks: Vec<usize>,
    /// Number of flats between projections, which are not used.
    between: usize,
    invalid: usize,
    /// Projections that were taken again after the scan to see whether the sample moved; they are not used.
    returns: Vec<usize>,
}

impl Roles {
    /// Reads NXtomo's keys: 0 projection, 1 flat, 2 dark, 3 invalid, -1 a projection taken again.
    fn read(file: &hdf5::File, name: &str, data: &Volume) -> Hdf5Result<Roles> {
        let keys = text::numbers(file, name)?;
        if keys.len() != data.frames() {
            let (keys, data, frames) = (keys.len(), data.name.clone(), data.frames());
            return Err(Hdf5ScanError::KeyCount { name: name.to_owned(), keys, data, frames }.into());
        }
        let mut roles = Roles::default();
        let mut flats = Vec::new();
        for (frame, key) in keys.into_iter().enumerate() {
            match key {
                0.0 => roles.projections.push(frame),
                1.0 => flats.push(frame),
                2.0 => roles.darks.push(frame),
                3.0 => roles.invalid += 1,
                -1.0 => roles.returns.push(frame),
                key => return Err(Hdf5ScanError::UnknownKey { name: name.to_owned(), key, frame }.into()),
            }
        }
        let (Some(&first), Some(&last)) = (roles.projections.first(), roles.projections.last()) else {
            return Err(Hdf5ScanError::NoProjections { name: name.to_owned() }.into());
        };
        let (before, rest): (Vec<_>, Vec<_>) = flats.into_iter().partition(|&frame| frame < first);
        let (after, between): (Vec<_>, Vec<_>) = rest.into_iter().partition(|&frame| frame > last);
        roles.between = between.len();
        match (before.is_empty(), after.is_empty()) {
            (false, _) => (roles.flats, roles.flats2) = (before, after),
            (true, false) => roles.flats = after,
            (true, true) => (roles.flats, roles.between) = (between, 0),
        }
        Ok(roles)
    }

    fn notes(&self, layout: &Layout) -> Vec<String> {
        let Some(keys) = &layout.keys else { return Vec::new() };
        let mut notes = Vec::new();
        if self.invalid > 0 {
            notes.push(format!("{keys} marks {} frames as invalid; they are left out", self.invalid));
        }
        if !self.returns.is_empty() {
            notes.push(format!(
                "{keys} marks {} frames as taken again after the scan (-1); they are left out",
                self.returns.len()
            ));
        }
        if self.between > 0 {
            notes.push(format!("{} flat fields between projections are left out", self.between));
        }
        notes
    }

    /// Returns the roles of `count` frames.
    fn of_frames(&self, count: usize) -> FrameRoles {
        let Roles { projections, flats, flats2, returns, .. } = self;
        let [projections, returns, flats, flats2] = [projections, returns, flats, flats2].map(Clone::clone);
        FrameRoles { count, projections, returns, flats, flats2 }
    }

    /// Returns the values for the projections from a list with one value for each projection, or one for each frame.
    fn pick(&self, values: &[f64], frames: usize, name: &str) -> Result<Vec<f64>, Hdf5ScanError> {
        let mut exposed = [self.projections.as_slice(), &self.returns].concat();
        exposed.sort_unstable();
        let values: Vec<f64> = match values.len() {
            n if n == frames => self.projections.iter().map(|&frame| values[frame]).collect(),
            n if n == self.projections.len() => values.to_vec(),
            // one for each projection, including those that were taken again
            n if n == exposed.len() => {
                let all = exposed.iter().zip(values);
                all.filter(|(frame, _)| self.projections.binary_search(frame).is_ok())
                    .map(|(_, &value)| value)
                    .collect()
            }
            angles => {
                let (name, projections) = (name.to_owned(), self.projections.len());
                return Err(match frames == projections {
                    true => Hdf5ScanError::AngleCount { name, angles, projections },
                    false => Hdf5ScanError::AngleCountOfFrames { name, angles, projections, frames },
                });
            }
        };
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(Hdf5ScanError::InfiniteAngle { name: name.to_owned(), projection: at, angle: values[at] }),
            None => Ok(values),
        }
    }
}

/// Path of slices in files that nabu and `fbp reconstruct` write.
const SLICES: &str = "/entry/reconstruction/results/data";
/// Returns the file and the dataset that a path of a stack means: `FILE::/DATASET`, or an HDF5 file alone.
pub fn dataset_path(spec: &str) -> Option<(&Path, Option<&str>)> {
    let (file, dataset) = spec.split_once("::").map_or((spec, None), |(file, dataset)| (file, Some(dataset)));
    let file = Path::new(file);
    (file.is_file() && is_hdf5(file)).then_some((file, dataset))
}

/// Opens a dataset of three dimensions as a stack of pages: the named one, or that of slices as `fbp reconstruct`
/// writes it. Chunks may take a part of `memory`, in bytes.
///
/// # Errors
/// [`Error::Input`] when there is no such dataset.
pub fn stack(path: &Path, dataset: Option<&str>, flag: &str, memory: u64) -> Result<Stack> {
    examine(&Hdf5Reading::Frames {
        file: path.to_owned(),
        dataset: dataset.map(str::to_owned),
        flag: flag.to_owned(),
    })?;
    let file = open_file(path, ChunkCache::SMALL).map_err(|error| match dataset {
        None => bad(flag, path, Hdf5StackError::Unopened { error }),
        Some(_) => bad(flag, path, error),
    })?;
    let name = match dataset {
        Some(name) => name.to_owned(),
        None if links::exists(&file, SLICES) => SLICES.to_owned(),
        None => {
            let found = super::layout::datasets(&file, |dataset| dataset.ndim() == 3).join(", ");
            return Err(bad(flag, path, Hdf5StackError::NoDataset { found }));
        }
    };
    let volume = match flag {
        "--flats" | "--flats2" | "--darks" => Volume::open_field(path, &file, &name, memory, flag),
        _ => Volume::open(path, &file, &name, memory),
    };
    let volume = volume.map_err(|e| bad(flag, path, e))?;
    let (notes, frames) = (volume.notes(), (0..volume.frames()).collect());
    Selection { volume, frames }.stack(flag, notes)
}

/// Describes a file for `fbp info`: its datasets and lists of numbers, and the scan that `--hdf5` would read.
///
/// # Errors
/// [`Error::Input`] when it is not an HDF5 file.
pub fn contents(path: &Path) -> Result<Hdf5Contents> {
    examine(&Hdf5Reading::Contents { file: path.to_owned() })?;
    let file = open_file(path, ChunkCache::of(0, 1)).map_err(|e| Error::input(path, e))?;
    let input = Hdf5Input { file: path.to_owned(), ..Default::default() };
    let scan = Layout::find(&file, &input).and_then(|layout| {
        let scan = read(&input, &file, &layout, layout.angles.is_some(), 0)?;
        Ok(scan.describe(layout.name()))
    });
    let (scan, problem) = match scan {
        Ok(scan) => (Some(scan), None),
        Err(problem) => (None, Some(problem.to_string())),
    };
    let shown = |dataset: &hdf5::Dataset| dataset.ndim() >= 2 || super::layout::is_list(dataset);
    Ok(Hdf5Contents { datasets: super::layout::datasets(&file, shown), scan, problem })
}

impl ScanParts {
    fn describe(&self, layout: &'static str) -> Hdf5Scan {
        let part = |part: &Selection| {
            let (width, height) = part.volume.size();
            Hdf5Frames {
                dataset: part.volume.name.clone(),
                frames: part.frames.len(),
                width,
                height,
                stored: part.volume.stored(),
            }
        };
        let angles = |angles: &Angles| {
            let ends = |pick: fn(f64, f64) -> f64| angles.degrees.iter().copied().reduce(pick).unwrap_or(f64::NAN);
            Hdf5Angles {
                dataset: angles.name.clone(),
                count: angles.degrees.len(),
                smallest: ends(f64::min),
                largest: ends(f64::max),
                unit: angles.unit.clone(),
            }
        };
        Hdf5Scan {
            layout,
            projections: part(&self.projections),
            flats: self.flats.as_ref().map(part),
            flats_after: self.flats2.as_ref().map(part),
            darks: self.darks.as_ref().map(part),
            angles: self.angles.as_ref().map(angles),
            pixel_size: self.pixel_size.clone(),
            notes: self.notes.clone(),
        }
    }
}

//! Numbers and texts other than the frames: angles, keys, units.

use super::datasets::{MAX_FRAMES, shape};
use super::errors::Hdf5LinkError;
use super::file::is_newer;
use super::links;
use crate::error::messages;
use hdf5_metno::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use hdf5_metno::{Container, Dataset, File};

messages! {
    /// Why a list of numbers cannot be read.
    pub(super) enum Hdf5ListError: Input {
        NewerVersion { name: String, error: hdf5_metno::Error } =>
            "{name}: cannot be opened: {error}";
            "use an fbp built with a newer HDF5 library, or write it again for older ones (h5py: libver=\"earliest\")",
        Unopened { name: String, error: hdf5_metno::Error } =>
            "{name}: cannot be opened: {error}"; "name datasets of the file, as fbp info lists them",
        SpecialFile { name: String, error: Hdf5LinkError } => "{name}: cannot be opened: {error}",
        Shape { name: String, shape: String } =>
            "{name} has the shape {shape}, expected a list of numbers"; "name another dataset, or give --angles",
        Unreadable { name: String, error: hdf5_metno::Error } =>
            "{name}: cannot be read: {error}"; "copy or write the file again",
        NoNumbers { name: String } =>
            "{name} contains no numbers"; "name a dataset of numbers, or give --angles",
        UnknownUnit { name: String, unit: String } =>
            "{name}: its unit `{unit}` is neither degrees nor radians"; "give --angles or --overall-angle",
    }
}

/// Longest text that is read, in bytes.
const LONGEST: usize = 256;

/// Returns the text of an attribute or dataset, the first one if it holds several.
pub(super) fn text(container: &Container) -> Option<String> {
    if container.size() == 0 || container.size() > LONGEST {
        return None;
    }
    // text that the file declares as UTF-8 may be invalid
    macro_rules! first {
        ($type:ty) => {
            String::from_utf8_lossy(container.read_raw::<$type>().ok()?.first()?.as_bytes()).into_owned()
        };
    }
    let text = match container.dtype().ok()?.to_descriptor().ok()? {
        TypeDescriptor::FixedAscii(_) => first!(FixedAscii<LONGEST>),
        TypeDescriptor::FixedUnicode(_) => first!(FixedUnicode<LONGEST>),
        TypeDescriptor::VarLenAscii => first!(VarLenAscii),
        TypeDescriptor::VarLenUnicode => first!(VarLenUnicode),
        _ => return None,
    };
    Some(text.trim().to_owned())
}

fn unit(dataset: &Dataset) -> Option<String> {
    text(&*dataset.attr("units").ok()?).filter(|unit| !unit.is_empty())
}

fn opened(file: &File, path: &str) -> Result<Dataset, Hdf5ListError> {
    let name = path.to_owned();
    match links::open_dataset(file, path) {
        Ok(Ok(dataset)) => Ok(dataset),
        Ok(Err(error)) if is_newer(&error.to_string()) => Err(Hdf5ListError::NewerVersion { name, error }),
        Ok(Err(error)) => Err(Hdf5ListError::Unopened { name, error }),
        Err(error) => Err(Hdf5ListError::SpecialFile { name, error }),
    }
}

/// Reads all numbers of a list.
pub(super) fn numbers(file: &File, name: &str) -> Result<Vec<f64>, Hdf5ListError> {
    let dataset = opened(file, name)?;
    values(&dataset, name)
}

fn values(dataset: &Dataset, path: &str) -> Result<Vec<f64>, Hdf5ListError> {
    let name = path.to_owned();
    let sides = dataset.shape();
    let list = sides.iter().filter(|&&side| side != 1).count() <= 1;
    if !list || dataset.size() > MAX_FRAMES {
        return Err(Hdf5ListError::Shape { name, shape: shape(dataset) });
    }
    match dataset.dtype().and_then(|kind| kind.to_descriptor()) {
        Ok(TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) | TypeDescriptor::Float(_)) => {
            dataset.read_raw().map_err(|error| Hdf5ListError::Unreadable { name, error })
        }
        _ => Err(Hdf5ListError::NoNumbers { name }),
    }
}

/// Spans of angles without a unit that are taken as radians: half a turn or a whole turn, or most of it.
const RADIANS: std::ops::RangeInclusive<f64> = 2.5..=6.5;

/// Angles in a dataset.
pub(super) struct Angles {
    pub name: String,
    pub degrees: Vec<f64>,
    /// Unit as given in the file.
    pub unit: Option<String>,
    /// Note for the user about the unit.
    pub note: Option<String>,
}

/// Reads angles in degrees or radians.
pub(super) fn angles(file: &File, name: &str) -> Result<Angles, Hdf5ListError> {
    let dataset = opened(file, name)?;
    let values = values(&dataset, name)?;
    let degrees = |values: Vec<f64>| values.into_iter().map(f64::to_degrees).collect();
    let Some(unit) = unit(&dataset) else {
        let span = values.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b))
            - values.iter().fold(f64::INFINITY, |a, &b| a.min(b));
        let radians = values.len() > 2 && RADIANS.contains(&span);
        let note = radians.then(|| {
            format!(
                "{name} has no unit and spans {span:.2}: taken as radians; give --angles or --overall-angle if this is incorrect"
            )
        });
        let degrees = if radians { degrees(values) } else { values };
        return Ok(Angles { name: name.to_owned(), degrees, unit: None, note });
    };
    let degrees = match unit.to_lowercase().as_str() {
        "deg" | "degs" | "degree" | "degrees" | "°" => values,
        "rad" | "rads" | "radian" | "radians" => degrees(values),
        _ => return Err(Hdf5ListError::UnknownUnit { name: name.to_owned(), unit }),
    };
    Ok(Angles { name: name.to_owned(), degrees, unit: Some(unit), note: None })
}

/// Returns the first number of a dataset.
pub(super) fn first_number(file: &File, name: &str) -> Option<f64> {
    values(&links::dataset(file, name).ok()?, name).ok()?.first().copied()
}

/// Returns the unit of a dataset.
pub(super) fn unit_of(file: &File, name: &str) -> Option<String> {
    unit(&links::dataset(file, name).ok()?)
}

/// Returns a length with its unit, such as `0.65 um`.
pub(super) fn length_of(file: &File, name: &str) -> Option<String> {
    Some(format!("{} {}", first_number(file, name)?, unit_of(file, name)?))
}

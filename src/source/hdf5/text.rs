//! Numbers and texts other than the frames: angles, keys, units.

use super::FileResult;
use super::datasets::{MAX_FRAMES, shape};
use super::file::advice_for;
use super::links;
use hdf5_metno::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use hdf5_metno::{Container, Dataset, File};

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

fn opened(file: &File, name: &str) -> FileResult<Dataset> {
    links::dataset(file, name).map_err(|e| {
        let advice = advice_for(&e, "name datasets of the file, as fbp info lists them");
        format!("{name}: cannot be opened: {e}; {advice}")
    })
}

/// Reads all numbers of a list.
pub(super) fn numbers(file: &File, name: &str) -> FileResult<Vec<f64>> {
    let dataset = opened(file, name)?;
    values(&dataset, name)
}

fn values(dataset: &Dataset, name: &str) -> FileResult<Vec<f64>> {
    let sides = dataset.shape();
    let list = sides.iter().filter(|&&side| side != 1).count() <= 1;
    if !list || dataset.size() > MAX_FRAMES {
        return Err(format!(
            "{name} has the shape {}, expected a list of numbers; name another dataset, or give --angles",
            shape(dataset)
        ));
    }
    match dataset.dtype().and_then(|kind| kind.to_descriptor()) {
        Ok(TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) | TypeDescriptor::Float(_)) => {
            dataset.read_raw().map_err(|e| format!("{name}: cannot be read: {e}; copy or write the file again"))
        }
        _ => Err(format!("{name} contains no numbers; name a dataset of numbers, or give --angles")),
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
pub(super) fn angles(file: &File, name: &str) -> FileResult<Angles> {
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
        _ => {
            return Err(format!(
                "{name}: its unit `{unit}` is neither degrees nor radians; give --angles or --overall-angle"
            ));
        }
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

//! What a file says of its scan: groups, datasets and attributes as NeXus names them (NXtomoproc, NXdata, NXprocess), and
//! as nabu and tomoscan read them.
//!
//! Everything follows from the description and the run file, so that it does not matter which job makes the file.

use super::errors::Hdf5OutputError;
use crate::files::SOFTWARE;
use crate::sink::stamp::ScanMetadata;
use crate::sink::volume::description::VolumeDescription;
use crate::units::Length;
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{File, Group, Location, Result};

/// Group of the slices.
const RESULTS: &str = "/entry/reconstruction/results";
/// Keys of a run file that name the data.
const DATA_KEYS: [&str; 4] = ["hdf5", "projections", "sinograms", "raw"];

/// Converts a text to one of the library, which cannot hold NUL characters.
fn without_nul(text: &str) -> Result<VarLenUnicode> {
    text.parse().map_err(|_| hdf5_metno::Error::from(Hdf5OutputError::NulCharacter.to_string()))
}

/// Creates an attribute with a text.
pub(super) fn text(location: &Location, name: &str, value: &str) -> Result<()> {
    let value = without_nul(value)?;
    location.new_attr::<VarLenUnicode>().create(name)?.write_scalar(&value)
}

/// Creates a dataset with a text.
pub(super) fn text_dataset(file: &File, name: &str, value: &str) -> Result<()> {
    let value = without_nul(value)?;
    file.new_dataset::<VarLenUnicode>().create(name)?.write_scalar(&value)
}

/// Creates a group of a NeXus class.
pub(super) fn group(file: &File, name: &str, class: &str) -> Result<Group> {
    let group = file.create_group(name)?;
    text(&group, "NX_class", class)?;
    Ok(group)
}

/// Creates a list of numbers, with their unit.
fn numbers(file: &File, name: &str, values: &[f64], unit: &str) -> Result<()> {
    let dataset = file.new_dataset::<f64>().shape(values.len()).create(name)?;
    dataset.write_raw(values)?;
    text(&dataset, "units", unit)
}

/// Creates a number with its unit.
fn number(file: &File, name: &str, value: f64, unit: &str) -> Result<()> {
    let dataset = file.new_dataset::<f64>().create(name)?;
    dataset.write_scalar(&value)?;
    text(&dataset, "units", unit)
}

/// Writes what is known of the scan.
pub(super) fn describe_scan(file: &File, description: &VolumeDescription, run_file: &str) -> Result<()> {
    if let Some((_, version)) = description.software.rsplit_once(' ').filter(|_| description.software == SOFTWARE) {
        text_dataset(file, "/entry/reconstruction/version", version)?;
    }
    let (Some(scan), Some(stamp)) = (&description.scan, &description.stamp) else { return Ok(()) };
    let pixel = description.pixel();
    axes(file, description, scan, pixel.as_ref())?;
    // where NXtomoproc has the slices
    file.link_soft(RESULTS, "/entry/data")?;
    group(file, "/entry/sample", "NXsample")?;
    numbers(file, "/entry/sample/rotation_angle", &scan.angles, "degree")?;
    if let Some(energy) = scan.energy_kev {
        group(file, "/entry/instrument", "NXinstrument")?;
        group(file, "/entry/instrument/beam", "NXbeam")?;
        number(file, "/entry/instrument/beam/incident_energy", energy, "keV")?;
    }
    group(file, "/entry/reconstruction/parameters", "NXparameters")?;
    number(file, "/entry/reconstruction/parameters/rotation_axis", stamp.center, "pixel")?;
    if let Some(data) = data_of(run_file) {
        text_dataset(file, "/entry/reconstruction/parameters/raw_file", &data)?;
    }
    for_nabu(file, scan, pixel.as_ref())
}

/// Writes the positions of pixels: x and y from the rotation axis, z from the first row of the detector.
fn axes(file: &File, description: &VolumeDescription, scan: &ScanMetadata, pixel: Option<&Length>) -> Result<()> {
    let (side, unit) = pixel.map_or((1.0, "pixel"), |pixel| (pixel.value, pixel.unit.as_str()));
    let line = |count: usize, axis: f64| (0..count).map(|i| (i as f64 - axis) * side).collect::<Vec<_>>();
    let slices: Vec<f64> = description.slices.iter().map(|&slice| slice as f64 * side).collect();
    let [column, row] = scan.axis;
    for (name, values) in [("z", slices), ("y", line(description.height, row)), ("x", line(description.width, column))]
    {
        numbers(file, &format!("{RESULTS}/{name}"), &values, unit)?;
    }
    let names = ["z", "y", "x"].map(without_nul);
    let names = names.into_iter().collect::<Result<Vec<_>>>()?;
    file.group(RESULTS)?.new_attr::<VarLenUnicode>().shape(names.len()).create("axes")?.write_raw(&names)
}

/// Writes what nabu calls the options of the reconstruction, where tomoscan looks for the side of a voxel.
fn for_nabu(file: &File, scan: &ScanMetadata, pixel: Option<&Length>) -> Result<()> {
    let options = "/entry/reconstruction/configuration/processing_options";
    group(file, options, "NXcollection")?;
    let options = format!("{options}/reconstruction");
    group(file, &options, "NXcollection")?;
    if let Some(metres) = pixel.and_then(Length::metres) {
        numbers(file, &format!("{options}/voxel_size_cm"), &[metres * 100.0; 3], "cm")?;
    }
    let radians: Vec<f64> = scan.angles.iter().map(|angle| angle.to_radians()).collect();
    numbers(file, &format!("{options}/angles"), &radians, "radian")
}

/// Returns the path of the data that a run file names.
fn data_of(run_file: &str) -> Option<String> {
    let table: toml::Table = run_file.parse().ok()?;
    DATA_KEYS.iter().find_map(|key| table.get(*key)?.as_str().map(str::to_owned))
}

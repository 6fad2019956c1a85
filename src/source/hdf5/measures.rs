//! Energy, distance and pixel size in a file.

use super::layout::Layout;
use super::links;
use super::text::{first_number, unit_of};
use crate::source::{ScanMeasure, ScanMeasures};
use hdf5_metno::File;

/// Units of length with their names in files in the singular.
const LENGTHS: [(&str, &[&str]); 5] = [
    ("nm", &["nm", "nanometer", "nanometre"]),
    ("um", &["um", "µm", "μm", "micron", "micrometer", "micrometre"]),
    ("mm", &["mm", "millimeter", "millimetre"]),
    ("cm", &["cm", "centimeter", "centimetre"]),
    ("m", &["m", "meter", "metre"]),
];

/// Units of energy in keV.
const ENERGIES: [(&str, f64); 4] = [("ev", 1e-3), ("kev", 1.0), ("mev", 1e3), ("j", 1.0 / 1.602_176_634e-16)];

/// Reads the parameters of the acquisition of a scan; values without a unit or not above 0 are left out.
pub(super) fn measures_of(file: &File, layout: &Layout) -> ScanMeasures {
    // groups of the detector, the instrument and the entry
    let above = |levels: usize| layout.data.rsplitn(levels + 1, '/').nth(levels).unwrap_or("").to_owned();
    let [detector, instrument, entry] = [above(1), above(2), above(3)];
    let nexus = layout.keys.is_some();
    let names = |of_nexus: &[String], exchange: &str| -> Vec<String> {
        if nexus { of_nexus.to_vec() } else { vec![format!("/measurement/instrument/{exchange}")] }
    };
    let energies = [
        format!("{entry}/beam/incident_energy"),
        format!("{instrument}/beam/incident_energy"),
        format!("{entry}/sample/beam/incident_energy"),
        format!("{instrument}/monochromator/energy"),
    ];
    let first = |names: Vec<String>| names.into_iter().find(|name| links::exists(file, name));
    let energy = first(names(&energies, "monochromator/energy"));
    let distance = first(names(&[format!("{detector}/distance")], "detector_motor_stack/setup/camera_distance"));
    let pixel = layout.pixel_size.clone().or_else(|| first(names(&[], "detection_system/objective/resolution")));
    ScanMeasures {
        energy: energy.and_then(|name| energy_of(file, name)),
        distance: distance.and_then(|name| length(file, name)),
        pixel_size: pixel.and_then(|name| length(file, name)),
    }
}

/// Reads a number above 0 with its unit in lower case.
fn number(file: &File, name: &str) -> Option<(f64, String)> {
    let value = first_number(file, name).filter(|value| value.is_finite() && *value > 0.0)?;
    Some((value, unit_of(file, name)?.to_lowercase()))
}

fn length(file: &File, dataset: String) -> Option<ScanMeasure> {
    let (value, unit) = number(file, &dataset)?;
    let is = |known: &&str| unit == **known || unit.strip_suffix('s') == Some(*known);
    let (unit, _) = LENGTHS.iter().find(|(_, names)| names.iter().any(is))?;
    Some(ScanMeasure { value, unit, dataset })
}

fn energy_of(file: &File, dataset: String) -> Option<ScanMeasure> {
    let (value, unit) = number(file, &dataset)?;
    let (_, kev) = ENERGIES.iter().find(|(name, _)| *name == unit)?;
    Some(ScanMeasure { value: value * kev, unit: "keV", dataset })
}

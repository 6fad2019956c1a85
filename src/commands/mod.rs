//! The commands, one file each.

pub mod arrays;
mod batch;
mod bench;
mod center;
mod compare;
mod devices;
mod doctor;
mod errors;
#[cfg(feature = "hdf5")]
mod examine;
mod flags;
mod help;
mod info;
mod kernel;
mod model;
mod phantom;
mod preprocess;
mod profiles;
mod reconstruct;
mod repairs;
mod report;
mod survey;
mod trials;
mod tune;

pub use batch::batch;
pub use bench::bench;
pub use center::center;
pub use compare::{compare, compare_stacks};
pub use devices::devices;
pub use doctor::doctor;
#[cfg(feature = "hdf5")]
pub use examine::examine_hdf5;
pub use help::{help, man};
pub use info::info;
pub use kernel::kernel;
pub use model::model;
pub use phantom::phantom;
pub use preprocess::preprocess;
pub use profiles::profiles;
pub use reconstruct::reconstruct;
pub use report::report;
pub use trials::trials;
pub use tune::tune;

use crate::cli::{InputArgs, InputMeasures, StepArgs};
use crate::error::{Error, Result};
use crate::recipe::Input;
use crate::remark::Remark;
use crate::source::{Hdf5Input, InputKind, PART, ScanMeasure, ScanMeasures, hdf5, xrm};
use crate::steps::phase_doubts;
use crate::units::Length;
use errors::CommandOutputError;
use std::path::Path;

/// Returns what the file of a scan says of the acquisition; none of files that say nothing.
fn measures(input: &InputArgs) -> Result<Option<ScanMeasures>> {
    // the first part stands for all
    let first = |spec: &str| input.parts().first().map_or(spec.to_owned(), |part| spec.replace(PART, part));
    match (Input::new(input, &StepArgs::default())?, input.hdf5_spec(), &input.projections) {
        (Input { kind: InputKind::Hdf5, datasets, .. }, Some(spec), _) => {
            // flats, darks and angles do not matter
            let scan = Hdf5Input { file: first(spec).into(), data: datasets.data, ..Hdf5Input::default() };
            hdf5::measures(&scan).map(Some)
        }
        (Input { kind: InputKind::Xrm, .. }, _, Some(spec)) => xrm::measures(Path::new(&first(spec))).map(Some),
        _ => Ok(None),
    }
}

/// Adds measures from the file of the scan that the flags of `--phase` leave out; returns remarks for the user on all
/// measures.
fn add_measures(input: &InputArgs, steps: &mut StepArgs, has_pixel_size: bool) -> Result<Vec<Remark>> {
    let mut remarks = Vec::new();
    let complete = steps.energy_kev.is_some() && steps.distance.is_some() && has_pixel_size;
    let wanted = steps.phase.is_some() && !complete;
    if let Some(measures) = wanted.then(|| measures(input)).transpose()?.flatten() {
        let mut used = |what: &str, measure: Option<ScanMeasure>, flag_is_given: bool| {
            let ScanMeasure { value, unit, dataset } = measure.filter(|_| !flag_is_given)?;
            remarks.push(Remark::note(format!(
                "--phase uses the {what} of {value} {unit} that the file gives as {dataset}"
            )));
            Some(Length { value, unit: unit.to_owned() })
        };
        steps.of_input = InputMeasures {
            energy_kev: used("energy", measures.energy, steps.energy_kev.is_some()).map(|energy| energy.value),
            distance: used("distance", measures.distance, steps.distance.is_some()),
            pixel_size: used("pixel size", measures.pixel_size, has_pixel_size),
        };
    }
    remarks.extend(phase_doubts(steps).into_iter().map(Remark::from));
    Ok(remarks)
}

/// Refuses a directory with files that are not hidden, unless `overwrite` is set.
fn refuse_filled(directory: &Path, overwrite: bool) -> Result<()> {
    let is_visible = |entry: std::fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
    if !overwrite && directory.read_dir().is_ok_and(|entries| entries.flatten().any(is_visible)) {
        return Err(Error::output(directory, CommandOutputError::Filled));
    }
    Ok(())
}

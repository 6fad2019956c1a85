//! The scan of a file: projections, flat field, angles and shifts.

use super::compound::CompoundStreams;
use super::details::{XrmDetails, Y_SHIFTS};
use super::errors::{XrmScanError, XrmWarning};
use super::images::{XrmForm, XrmImages, open};
use crate::error::{BoxedError, Error, Result};
use crate::numbers::brief;
use crate::remark::{Doubt, DoubtKind, Remark};
use crate::source::files::{InputFiles, bad, file_name, open_plain};
use crate::source::{ScanMeasure, ScanMeasures, Stack, Stacks};
use serde::Serialize;
use std::path::Path;

const FLAG: &str = "--projections";
/// Ending of the names of scans, in lower case.
const SCAN_END: &str = "txrm";

/// Reports whether a path is named like a scan; images alone are named otherwise.
pub fn is_xrm_scan(spec: &str) -> bool {
    Path::new(spec).extension().is_some_and(|ending| ending.eq_ignore_ascii_case(SCAN_END))
}

/// What is read of a scan besides its projections.
#[derive(Clone, Copy, Debug)]
pub struct XrmWanted {
    /// True if angles are not given by flags.
    pub angles: bool,
    /// True if flat fields are not given by flags.
    pub flats: bool,
    /// True if shifts of the axis are not given by flags.
    pub shifts: bool,
}

/// Adds to the projections of a scan what its file says of them.
///
/// # Errors
/// [`Error::Input`] for a cone beam, and where something is missing or cannot be right.
pub fn scan(data: Stack, wanted: XrmWanted) -> Result<Stacks> {
    let [path] = data.files() else { return Err(XrmScanError::SeveralFiles { count: data.files().len() }.into()) };
    let path = path.clone();
    let (file, state) = open_plain(&path, FLAG)?;
    let form = XrmForm { width: data.width(), height: data.height(), sample: data.sample() };
    let read = || -> Result<(XrmDetails, Option<XrmImages>), BoxedError> {
        let mut streams = CompoundStreams::open(&file, state.bytes)?;
        let details = XrmDetails::read(&mut streams, data.len())?;
        let reference = if wanted.flats { XrmImages::reference(&mut streams, form)? } else { None };
        Ok((details, reference))
    };
    let wrong = |error: BoxedError| bad(FLAG, &path, error);
    let (details, reference) = read().map_err(wrong)?;
    let found = Found::of(&details, wanted, reference.is_some(), &file_name(&path), form);
    let Found { angles, shifts, remarks } = found.map_err(|error| wrong(error.into()))?;
    let flats = reference.map(|images| {
        let files = InputFiles::new(FLAG, vec![path.clone()], vec![(state, Some(file))]);
        Stack::of("--projections reference", &path.to_string_lossy(), images.into_frames(files))
    });
    let stacks = Stacks::of(remarks.into_iter().fold(data, Stack::with_remark));
    Ok(Stacks { flats, angles, shifts, measures: measures_of(&details), ..stacks })
}

/// What is used of a file, and what is said about it.
struct Found {
    angles: Option<Vec<f64>>,
    shifts: Option<Vec<f64>>,
    remarks: Vec<Remark>,
}

impl Found {
    fn of(
        details: &XrmDetails,
        wanted: XrmWanted,
        has_reference: bool,
        file: &str,
        form: XrmForm,
    ) -> Result<Found, XrmScanError> {
        let mut remarks = Vec::new();
        let doubt = |kind, warning: Option<XrmWarning>| warning.map(|warning| Remark::from(Doubt::of(kind, &warning)));
        remarks.extend(doubt(DoubtKind::ConeBeam, details.check_beam(file, form)?));
        let angles = if wanted.angles { Some(details.finite_angles()?) } else { None };
        let shifts = if wanted.shifts { details.center_shifts()? } else { None };
        if let (Some(planned), Some(count)) = (details.planned, details.angles.as_ref().map(Vec::len))
            && planned > count as i64
        {
            remarks.push(Remark::note(format!("{file}: the scan was stopped after {count} of {planned} images")));
        }
        if has_reference {
            remarks.push(Remark::note(format!("{file}: its reference image is the flat field; --flats replaces it")));
            remarks.extend(doubt(DoubtKind::Exposure, details.odd_exposure(file)));
        }
        let (most, warning) = details.row_shift(file)?;
        match doubt(DoubtKind::RowShifts, warning) {
            Some(doubt) => remarks.push(doubt),
            None if most > 0.0 => {
                remarks.push(Remark::note(format!("{file}: {Y_SHIFTS}, at most {} rows, is not applied", brief(most))))
            }
            None => {}
        }
        remarks.extend(details.pixel_size_um.map(|size| {
            Remark::note(format!(
                "the file gives a pixel size of {size} um; values are per pixel unless --pixel-size is given"
            ))
        }));
        Ok(Found { angles, shifts, remarks })
    }
}

fn measures_of(details: &XrmDetails) -> ScanMeasures {
    let measure =
        |value: Option<f64>, unit, name: &str| value.map(|value| ScanMeasure { value, unit, dataset: name.to_owned() });
    ScanMeasures {
        energy: measure(details.energy_kev(), "keV", "ImageInfo/Energy"),
        distance: measure(details.axis_to_detector_mm, "mm", "ImageInfo/DtoRADistance"),
        pixel_size: measure(details.pixel_size_um, "um", "ImageInfo/PixelSize"),
    }
}

/// Reads the parameters of the acquisition.
///
/// # Errors
/// [`Error::Input`] when the file cannot be read.
pub fn measures(path: &Path) -> Result<ScanMeasures> {
    let (file, state) = open_plain(path, FLAG)?;
    let read = || Ok(XrmDetails::read(&mut CompoundStreams::open(&file, state.bytes)?, 0)?);
    let details = read().map_err(|error: BoxedError| bad(FLAG, path, error))?;
    Ok(measures_of(&details))
}

/// A scan, for `fbp info`.
#[derive(Clone, Debug, Serialize)]
pub struct XrmContents {
    pub projections: usize,
    /// Width of an image in pixels.
    pub width: usize,
    /// Height of an image in pixels.
    pub height: usize,
    /// Type of a sample.
    pub sample: String,
    /// Number of reference images.
    pub references: usize,
    #[serde(flatten)]
    pub details: XrmDetails,
    /// Shift of the axis in each projection, in bins, as `--center-shifts` takes it.
    pub center_shifts: Option<Vec<f64>>,
    /// What a run would say about the file.
    pub notes: Vec<String>,
    /// Reason why the scan cannot be reconstructed.
    pub problem: Option<String>,
}

/// Describes the scan of a file.
///
/// # Errors
/// [`Error::Input`] when it is damaged or something is missing.
pub fn contents(path: &Path) -> Result<XrmContents> {
    let frames = open(&path.to_string_lossy(), "PATH", None)?;
    let data = Stack::of("PATH", "", frames);
    let (file, state) = open_plain(path, "PATH")?;
    let form = XrmForm { width: data.width(), height: data.height(), sample: data.sample() };
    let read = || -> Result<(XrmDetails, Option<XrmImages>), BoxedError> {
        let mut streams = CompoundStreams::open(&file, state.bytes)?;
        Ok((XrmDetails::read(&mut streams, data.len())?, XrmImages::reference(&mut streams, form)?))
    };
    let (details, reference) = read().map_err(|error| Error::input(path, error))?;
    let references = reference.map_or(0, |images| images.pieces.len());
    let wanted = XrmWanted { angles: true, flats: true, shifts: true };
    let (center_shifts, notes, problem) = match Found::of(&details, wanted, references > 0, &file_name(path), form) {
        Ok(found) => (found.shifts, found.remarks.iter().map(Remark::to_string).collect(), None),
        Err(problem) => (None, Vec::new(), Some(problem.to_string())),
    };
    let (projections, XrmForm { width, height, sample }) = (data.len(), form);
    let sample = sample.to_string();
    Ok(XrmContents { projections, width, height, sample, references, details, center_shifts, notes, problem })
}

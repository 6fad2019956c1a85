//! Log files that Bruker's SkyScan scanners write beside projections: `NAME.log` with `NAME00000000.tif` and so on.

use super::beam::ConeBeam;
use super::files::file_name;
use super::tiff::{TIFF, is_log};
use super::{ScanMeasure, ScanMeasures, Stack};
use crate::error::messages;
use crate::files::{excerpt, open_regular};
use crate::numbers::brief;
use crate::remark::{Doubt, DoubtKind, Remark};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

messages! {
    /// Reasons to doubt a scan with a log.
    enum SkyScanWarning: Warning {
        Cone { log: String, source_mm: f64, camera: String, pixel_um: f64, opening: String, pixels: f64 } =>
            "{log}: the beam is a cone, with the source {source_mm} mm from the rotation axis (Object to Source) and {camera}: \
             with pixels of {pixel_um} um on the axis it opens by {opening}, and rays are up to {pixels:.1} pixels from \
             parallel ones, as which they are reconstructed";
            "use a program for cone beams, such as NRecon, CIL or ASTRA; here, slices are blurred away from the axis and \
             from the optical axis",
    }
}

/// Largest number of logs that are looked at.
const MOST_LOGS: usize = 64;
/// Largest number of bytes that are read of a log.
const MOST_BYTES: u64 = 1 << 20;
/// Largest angle of a scan in degrees.
const MOST_DEGREES: f64 = 1e6;

/// What a log says of its scan; what it does not say is missing.
#[derive(Clone, Debug, Default, PartialEq)]
struct SkyScanLog {
    name: String,
    path: PathBuf,
    prefix: String,
    /// Number of digits in the names of files.
    digits: Option<usize>,
    files: Option<usize>,
    rows: Option<usize>,
    columns: Option<usize>,
    /// Degrees from one projection to the next.
    step: Option<f64>,
    pixel_um: Option<f64>,
    source_mm: Option<f64>,
    camera_mm: Option<f64>,
    /// Line of the detector that the central ray hits.
    optical_axis: Option<f64>,
    /// Correction of the axis that was found in a reconstruction, in pixels.
    postalignment: Option<String>,
    flat_field: bool,
}

/// What is taken from a log beside projections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogUse {
    /// Nothing: it is not looked for.
    #[default]
    Nothing,
    /// Everything but angles, which flags give.
    Measures,
    /// Everything, with angles.
    Angles,
}

/// What a log beside projections adds to them.
#[derive(Debug, Default)]
pub struct BesideProjections {
    /// Path of the log that is used.
    pub log: Option<PathBuf>,
    /// Angle of every projection in degrees.
    pub angles: Option<Vec<f64>>,
    pub measures: ScanMeasures,
    pub remarks: Vec<Remark>,
}

/// Looks for a log beside projections in TIFF files. `angles` tells whether angles are not given by flags.
pub fn beside(data: &Stack, angles: bool) -> BesideProjections {
    let mut remarks = Vec::new();
    if !data.files().iter().all(|file| TIFF.has(file)) {
        return BesideProjections::default();
    }
    let Some(directory) = data.files().first().and_then(|file| file.parent()) else {
        return BesideProjections::default();
    };
    let mut fitting = Vec::new();
    for path in logs(directory) {
        let name = file_name(&path);
        let found = match text(&path) {
            Ok(text) => {
                SkyScanLog::parse(&path, &text).and_then(|log| log.map_or(Ok(None), |log| log.check(data).map(Some)))
            }
            Err(error) => Err(format!("{name} cannot be read ({error})")),
        };
        match found {
            Ok(log) => fitting.extend(log),
            Err(why) => remarks.push(Remark::note(format!("{why}, and is not used"))),
        }
    }
    // logs of reconstructions have other names than the scan
    let own: Vec<usize> = (0..fitting.len()).filter(|&at| fitting[at].is_named_by_files()).collect();
    let log = match (own.as_slice(), fitting.len()) {
        (&[at], _) => Some(fitting.swap_remove(at)),
        ([], 1) => fitting.pop(),
        ([], 0) => None,
        _ => {
            let logs = fitting.iter().map(|log| log.name.as_str()).collect::<Vec<_>>().join(", ");
            remarks.push(Remark::note(format!("{logs} may all be of this scan, and none is used")));
            None
        }
    };
    let Some(log) = log else { return BesideProjections { remarks, ..BesideProjections::default() } };
    let step = log.step.filter(|_| angles);
    remarks.push(Remark::note(log.taken(data.len(), angles)));
    remarks.extend(log.doubt((data.width(), data.height())));
    BesideProjections {
        angles: step.map(|step| (0..data.len()).map(|projection| projection as f64 * step).collect()),
        measures: ScanMeasures {
            pixel_size: log.pixel_um.map(|value| ScanMeasure {
                value,
                unit: "um",
                dataset: "Image Pixel Size (um)".into(),
            }),
            ..ScanMeasures::default()
        },
        log: Some(log.path),
        remarks,
    }
}

/// Returns the logs in a directory in the order of their names; none if it cannot be listed.
fn logs(directory: &Path) -> Vec<PathBuf> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Ok(entries) = directory.read_dir() else { return Vec::new() };
    let is_visible_log = |path: &PathBuf| is_log(path) && !file_name(path).starts_with('.');
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_visible_log).collect();
    found.sort();
    found.truncate(MOST_LOGS);
    found
}

/// Reads the text of a log, which may be in an older encoding than UTF-8.
fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Values by section and key, both in lower case; the first of several counts.
struct LogValues(HashMap<(String, String), String>);

impl LogValues {
    fn parse(text: &str) -> LogValues {
        let (mut section, mut values) = (String::new(), HashMap::new());
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name.trim().to_lowercase();
            } else if let Some((key, value)) = line.split_once('=') {
                let key = (section.clone(), key.trim().to_lowercase());
                values.entry(key).or_insert_with(|| value.trim().to_owned());
            }
        }
        LogValues(values)
    }

    /// Returns a value of the acquisition.
    fn acquired(&self, key: &str) -> Option<&str> {
        let value = self.0.get(&("acquisition".to_owned(), key.to_lowercase()))?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns a number of the acquisition that is within limits.
    fn number(&self, log: &str, key: &'static str, least: f64, most: f64) -> Result<Option<f64>, String> {
        let Some(value) = self.acquired(key) else { return Ok(None) };
        match value.parse::<f64>() {
            // NaN is refused, too
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(format!("{log} has {key} = {}, which cannot be", excerpt(value))),
        }
    }

    fn count(&self, log: &str, key: &'static str) -> Result<Option<usize>, String> {
        Ok(self.number(log, key, 1.0, 1e9)?.map(|number| number as usize))
    }
}

impl SkyScanLog {
    /// Reads a log; none if it is one of another kind.
    fn parse(path: &Path, text: &str) -> Result<Option<SkyScanLog>, String> {
        let values = LogValues::parse(text);
        if values.acquired("Number of Files").is_none() {
            return Ok(None);
        }
        let name = file_name(path);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let length = |key| values.number(&name, key, f64::MIN_POSITIVE, 1e9);
        let turn = match values.acquired("Use 360 Rotation").map(str::to_lowercase).as_deref() {
            Some("yes" | "on") => Some(360.0),
            Some("no" | "off") => Some(180.0),
            _ => None,
        };
        let files = values.count(&name, "Number of Files")?;
        let step = values.number(&name, "Rotation Step (deg)", f64::MIN_POSITIVE, 360.0)?;
        let step = step.or_else(|| Some(turn? / files? as f64));
        let in_reconstruction = ("reconstruction".to_owned(), "postalignment".to_owned());
        Ok(Some(SkyScanLog {
            prefix: values.acquired("Filename Prefix").unwrap_or(&stem).to_owned(),
            digits: values.count(&name, "Filename Index Length")?,
            rows: values.count(&name, "Number of Rows")?,
            columns: values.count(&name, "Number of Columns")?,
            step: step.filter(|step| step * files.unwrap_or(1) as f64 <= MOST_DEGREES),
            pixel_um: length("Image Pixel Size (um)")?,
            source_mm: length("Object to Source (mm)")?,
            camera_mm: length("Camera to Source (mm)")?,
            optical_axis: values.number(&name, "Optical Axis (line)", 0.0, 1e9)?,
            postalignment: values
                .acquired("Postalignment")
                .or(values.0.get(&in_reconstruction).map(String::as_str))
                .map(str::to_owned),
            flat_field: values.acquired("Flat Field Correction").is_some_and(|value| value.eq_ignore_ascii_case("on")),
            files,
            name,
            path: path.to_owned(),
        }))
    }

    /// Checks that the log is of these projections.
    fn check(self, data: &Stack) -> Result<SkyScanLog, String> {
        if !data.files().iter().all(|file| self.names(file)) {
            let prefix = excerpt(&self.prefix);
            return Err(format!("{} is of another scan, whose files are named {prefix} and a number", self.name));
        }
        let files = data.len();
        if let Some(count) = self.files.filter(|&count| count != files) {
            return Err(format!("{} is of {count} files, but there are {files}", self.name));
        }
        let (width, height) = (data.width(), data.height());
        let (columns, rows) = (self.columns.unwrap_or(width), self.rows.unwrap_or(height));
        if (columns, rows) != (width, height) {
            return Err(format!(
                "{} is of projections with {columns}x{rows} pixels, but these have {width}x{height}",
                self.name
            ));
        }
        Ok(self)
    }

    /// Reports whether a file may be one of the scan: the prefix, and a number; or the prefix alone for a file of all.
    fn names(&self, file: &Path) -> bool {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some(number) = stem.strip_prefix(&self.prefix) else { return false };
        let digits = self.digits.filter(|_| !number.is_empty()).unwrap_or(number.len());
        number.bytes().all(|byte| byte.is_ascii_digit()) && number.len() == digits
    }

    /// Reports whether the log is named like the files of its scan.
    fn is_named_by_files(&self) -> bool {
        self.path.file_stem().is_some_and(|stem| stem.to_string_lossy() == self.prefix)
    }

    /// Says what is taken from the log.
    fn taken(&self, count: usize, angles: bool) -> String {
        let mut taken = Vec::new();
        match self.step {
            Some(step) if angles => taken.push(format!("{count} angles in steps of {} degrees", brief(step))),
            Some(_) => taken.push("no angles, as flags give them".to_owned()),
            None => taken.push("no angles, as it has none".to_owned()),
        }
        taken.extend(
            self.pixel_um
                .map(|size| format!("a pixel size of {size} um (values are per pixel unless --pixel-size is given)")),
        );
        let mut said = format!("{} beside the projections gives {}", self.name, taken.join(" and "));
        if let Some(bins) = &self.postalignment {
            said += &format!("; its Postalignment of {} is not used: give --center X or --center auto", excerpt(bins));
        }
        if self.flat_field {
            said += "; its projections were corrected by flat fields (Flat Field Correction=ON)";
        }
        said
    }

    /// Returns a reason to doubt the scan if the rays of its beam are not nearly parallel.
    fn doubt(&self, (width, height): (usize, usize)) -> Option<Remark> {
        let (source_mm, pixel_um) = (self.source_mm?, self.pixel_um?);
        // the farthest row from the central ray
        let last = height as f64 - 1.0;
        let half = self.optical_axis.filter(|line| *line <= last).map_or(last / 2.0, |line| line.max(last - line));
        let beam = ConeBeam::new(source_mm, pixel_um * 1e-3, (width, (2.0 * half) as usize + 1))?;
        if beam.is_parallel() {
            return None;
        }
        let camera = match self.camera_mm {
            Some(distance) => format!("the camera {distance} mm from the source (Camera to Source)"),
            None => "the camera at an unknown distance".to_owned(),
        };
        let (opening, pixels) = (beam.to_string(), beam.deviation());
        let warning = SkyScanWarning::Cone { log: self.name.clone(), source_mm, camera, pixel_um, opening, pixels };
        Some(Doubt::of(DoubtKind::ConeBeam, &warning).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "[System]\r\nScanner=Skyscan1272\r\nNumber of Files=7\r\n[Acquisition]\r\n\
        Filename Prefix=14~01\r\nFilename Index Length=8\r\nNumber Of Files=  315\r\nNumber Of Rows=  672\r\n\
        Number Of Columns= 1008\r\nOptical Axis (line)=  300\r\nCamera to Source (mm)=273.83609\r\n\
        Object to Source (mm)=200.89000\r\nImage Pixel Size (um)=26.413040\r\nRotation Step (deg)=0.600\r\n\
        Use 360 Rotation=NO\r\nFlat Field Correction=ON\r\nFilter=Al 1mm\r\nRotation Step (deg)=0.700\r\n\
        [Reconstruction]\r\nPostalignment=-1.50\r\nNumber of Files=9\r\n";

    fn parsed(name: &str, text: &str) -> Result<Option<SkyScanLog>, String> {
        SkyScanLog::parse(Path::new(name), text)
    }

    #[test]
    fn values_are_those_of_the_acquisition() {
        let log = parsed("scans/14~01.log", LOG).unwrap().unwrap();
        let expected = SkyScanLog {
            name: "14~01.log".into(),
            path: "scans/14~01.log".into(),
            prefix: "14~01".into(),
            digits: Some(8),
            files: Some(315),
            rows: Some(672),
            columns: Some(1008),
            step: Some(0.6),
            pixel_um: Some(26.41304),
            source_mm: Some(200.89),
            camera_mm: Some(273.83609),
            optical_axis: Some(300.0),
            postalignment: Some("-1.50".into()),
            flat_field: true,
        };
        assert_eq!(log, expected);
        assert!(log.is_named_by_files());
        // the angular range in place of the step
        let with = |from: &str, to: &str| parsed("a.log", &LOG.replace(from, to));
        let step = |from: &str, to: &str| with(from, to).unwrap().unwrap().step;
        assert_eq!(with("Rotation Step (deg)", "Other").unwrap().unwrap().step, Some(180.0 / 315.0));
        let turn = LOG.replace("Rotation Step (deg)", "Other").replace("Rotation=NO", "Rotation=YES");
        assert_eq!(parsed("a.log", &turn).unwrap().unwrap().step, Some(360.0 / 315.0));
        assert_eq!(step("Rotation Step (deg)=0.600", "Rotation Step (deg)="), Some(180.0 / 315.0));
        for (key, value) in [
            ("Rotation Step (deg)=0.600", "Rotation Step (deg)=-0.6"),
            ("Rotation Step (deg)=0.600", "Rotation Step (deg)=NaN"),
            ("Object to Source (mm)=200.89000", "Object to Source (mm)=0"),
            ("Image Pixel Size (um)=26.413040", "Image Pixel Size (um)=26,4"),
            ("Number Of Files=  315", "Number Of Files=none"),
            ("Number Of Rows=  672", "Number Of Rows=0"),
        ] {
            let error = with(key, value).unwrap_err();
            assert!(error.starts_with("a.log has ") && error.ends_with(", which cannot be"), "{error}");
        }
    }

    #[test]
    fn logs_of_other_programs_are_none() {
        for text in [
            "",
            "10:31 started\n",
            "[Acquisition]\nExposure=3\n",
            "Number of Files=3\n",
            "[acquisition]\nNumber of Files=\n",
        ] {
            assert_eq!(parsed("a.log", text), Ok(None), "{text}");
        }
    }

    #[test]
    fn names_are_a_prefix_and_a_number() {
        let log = |prefix: &str, digits| SkyScanLog { prefix: prefix.into(), digits, ..SkyScanLog::default() };
        let named = |prefix, digits, file: &str| log(prefix, digits).names(Path::new(file));
        assert!(
            named("14~01", Some(8), "x/14~0100000003.tif")
                && named("a", None, "a0003.tif")
                && named("a", None, "a.tif")
        );
        assert!(named("a", Some(4), "a.tif") && named("a", Some(4), "a0003.TIF"));
        assert!(!named("mouse", Some(4), "mouse10003.tif") && named("mouse1", Some(4), "mouse10003.tif"));
        assert!(!named("a", None, "a_rec0003.tif") && !named("b", None, "a0003.tif") && !named("a", None, "a_spr.tif"));
    }

    #[test]
    fn the_farthest_row_is_counted_from_the_optical_axis() {
        let log = parsed("a.log", LOG).unwrap().unwrap();
        let said = |log: &SkyScanLog, size| log.doubt(size).map(|remark| remark.text());
        // 504 bins and 371 rows: 371.5 * 504 / (200.89 mm / 26.41304 um)
        let text = said(&log, (1008, 672)).unwrap();
        assert!(text.contains("24.6 pixels") && text.contains("200.89 mm") && text.contains("273.83609 mm"), "{text}");
        assert_eq!(said(&log, (30, 20)), None);
        assert_eq!(said(&SkyScanLog { source_mm: None, ..log.clone() }, (1008, 672)), None);
        assert_eq!(said(&SkyScanLog { pixel_um: None, ..log }, (1008, 672)), None);
    }
}

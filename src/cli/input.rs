//! Flags for the input data.

use super::values::{Text, words};
use crate::error::messages;
use crate::source::{FieldMode, PART, is_xrm_scan};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::ops::Not;
use std::path::Path;

messages! {
    /// Errors of a scan that is given without a flag.
    pub(super) enum ScanArgError: Usage {
        Stack { scan: String } =>
            "`{scan}` may contain sinograms or projections"; "give --sinograms '{scan}' or --projections '{scan}'",
    }
}

// headings of the help
const SCAN: &str = "Scan (exactly one of these)";
const PARTS: &str = "Scan in several parts";
const DATASETS: &str = "Datasets of an HDF5 scan";
const FIELDS: &str = "Flat and dark fields";
const FRAMES: &str = "Order and size of frames";

/// Suffixes of files that may contain sinograms as well as projections.
const STACKS: &[&str] = &["tif", "tiff", "edf", "npy", "zarr", "raw", "txt", "xrm"];

/// Input data, and how counts become line integrals.
#[skip_serializing_none]
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct InputArgs {
    /// Directory or glob of TIFF or EDF files, 'list FILE' with a path per line, multi-page TIFF, Zarr, NumPy, or
    /// FILE.h5::/DATASET; one sinogram per file or page, with one projection per row
    #[arg(long, value_name = "PATH", help_heading = SCAN)]
    pub sinograms: Option<String>,
    /// Directory or glob of TIFF or EDF files, 'list FILE' with a path per line, multi-page TIFF, Zarr, NumPy, or
    /// FILE.h5::/DATASET; one projection per file or page. Or a .txrm file with angles and a flat field
    #[arg(long, value_name = "PATH", help_heading = SCAN)]
    pub projections: Option<String>,
    /// HDF5 file with projections, flats, darks and angles: Data Exchange, NXtomo, or the datasets named below
    #[arg(long, value_name = "FILE", help_heading = SCAN)]
    pub hdf5: Option<String>,
    /// Raw file without a header, one projection per frame: width, height and number of frames, type, bytes before the
    /// first frame
    #[arg(long, value_name = "FILE,WxHxN,u16le[,OFFSET]", help_heading = SCAN)]
    pub raw: Option<String>,
    /// Scans at several heights, in order, which become one: HDF5 files, or what {part} stands for in --projections,
    /// --flats and --darks
    #[arg(long, value_name = "PART", num_args = 1.., help_heading = PARTS)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// Rows, or a length, from each part of --stack to the next, or one for each; negative if the next is above; auto finds it
    /// in the rows that they share [default: auto]
    #[arg(long, value_name = "ROWS|LENGTH|auto", allow_hyphen_values = true, help_heading = PARTS)]
    pub z_step: Option<Text>,
    /// Scans by detectors side by side, from left to right, whose rows become longer; as for --stack
    #[arg(long, value_name = "PART", num_args = 1.., help_heading = PARTS)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub side_by_side: Vec<String>,
    /// Bins that a part of --side-by-side shares with the next, or one number for each; auto finds them [default: auto]. With
    /// --every, what a window has in common with the next one, in degrees or projections (20p) [default: nothing]
    #[arg(long, value_name = "BINS|auto|DEG|Np", allow_hyphen_values = true, help_heading = PARTS)]
    pub overlap: Option<Text>,
    /// Dataset of the projections [default: defined by the layout]
    #[arg(long, value_name = "DATASET", help_heading = DATASETS)]
    pub hdf5_data: Option<String>,
    /// Dataset of the flat fields, or the word none [default: defined by the layout]
    #[arg(long, value_name = "DATASET", help_heading = DATASETS)]
    pub hdf5_flats: Option<String>,
    /// Dataset of the dark fields, or the word none [default: defined by the layout]
    #[arg(long, value_name = "DATASET", help_heading = DATASETS)]
    pub hdf5_darks: Option<String>,
    /// Dataset of the angles [default: defined by the layout]
    #[arg(long, value_name = "DATASET", help_heading = DATASETS)]
    pub hdf5_angles: Option<String>,
    /// Dataset that says what each frame is (0 projection, 1 flat, 2 dark, 3 invalid, -1 taken again), or the word none
    /// [default: image_key_control or image_key next to the projections]
    #[arg(long, value_name = "DATASET", help_heading = DATASETS)]
    pub hdf5_keys: Option<String>,
    /// Flat fields (beam without sample) for --projections, or to use instead of those in --hdf5
    #[arg(long, value_name = "PATH", help_heading = FIELDS)]
    pub flats: Option<String>,
    /// Flat fields taken after the scan; fbp interpolates between the two sets
    #[arg(long, value_name = "PATH", help_heading = FIELDS)]
    pub flats2: Option<String>,
    /// Dark fields (no beam) for --projections, or to use instead of those in --hdf5
    #[arg(long, value_name = "PATH", help_heading = FIELDS)]
    pub darks: Option<String>,
    /// Which number in the file names is the order of --projections or --sinograms, from 1 [default: the one that varies, or
    /// counts up by one]
    #[arg(long, value_name = "N", help_heading = FRAMES)]
    pub order_by: Option<usize>,
    /// How to combine several flats or darks [default: mean]
    #[arg(long, value_name = "MODE", value_parser = words::<FieldMode>(), help_heading = FIELDS)]
    pub field_mode: Option<FieldMode>,
    /// Take -log of the transmission [default: on with flats]
    #[arg(long, overrides_with = "no_minus_log", help_heading = FIELDS)]
    #[serde(skip_serializing_if = "Not::not")]
    pub minus_log: bool,
    /// Do not take -log
    #[arg(long, help_heading = FIELDS)]
    #[serde(skip_serializing_if = "Not::not")]
    pub no_minus_log: bool,
    /// Average N x N pixels; other flags count binned pixels, except --center, --center-shifts and --pixel-size
    /// [default: 1]
    #[arg(long, value_name = "N", help_heading = FRAMES)]
    pub binning: Option<usize>,
}

impl InputArgs {
    /// Returns the parts of a scan that consists of several.
    pub fn parts(&self) -> &[String] {
        if self.stack.is_empty() { &self.side_by_side } else { &self.stack }
    }

    /// Returns the HDF5 file of the scan, or what stands for those of its parts.
    pub fn hdf5_spec(&self) -> Option<&str> {
        let others = [&self.sinograms, &self.projections, &self.raw].into_iter().flatten().next();
        let parts = others.is_none() && !self.parts().is_empty();
        self.hdf5.as_deref().or(parts.then_some(PART))
    }
}

/// Scan that is given without a flag.
#[derive(Args, Clone, Debug)]
pub struct ScanArg {
    /// HDF5 or .txrm file of the scan; the same as --hdf5 or --projections
    #[arg(value_name = "SCAN", help_heading = SCAN, conflicts_with_all = ["sinograms", "projections", "hdf5", "raw"])]
    scan: Option<String>,
}

impl ScanArg {
    /// Moves the scan to `hdf5` or `projections` of the input: files that need no other flag to be understood.
    ///
    /// # Errors
    /// [`ScanArgError::Stack`] for a path that may contain sinograms as well as projections.
    pub(super) fn name(&mut self, input: &mut InputArgs) -> Result<(), ScanArgError> {
        let Some(scan) = self.scan.take() else { return Ok(()) };
        let path = Path::new(&scan);
        let suffix = path.extension().and_then(|suffix| suffix.to_str()).map(str::to_lowercase);
        let is_stack = scan.starts_with("list ")
            || scan.contains(['*', '?'])
            || path.is_dir()
            || suffix.is_some_and(|suffix| STACKS.contains(&suffix.as_str()));
        if is_xrm_scan(&scan) && !is_stack {
            input.projections = Some(scan);
            return Ok(());
        }
        if is_stack {
            return Err(ScanArgError::Stack { scan });
        }
        input.hdf5 = Some(scan);
        Ok(())
    }
}

//! `fbp report`.

use clap::{ArgAction, Args};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Output of a run: its directory, TIFF, HDF5 or Zarr; or its record (fbp-run.toml)
    #[arg(value_name = "OUTPUT", required_unless_present = "index")]
    pub run: Option<PathBuf>,
    /// The page to write
    #[arg(long, short, value_name = "FILE.html", required_unless_present = "index")]
    pub output: Option<PathBuf>,
    /// Directory that the outputs of fbp batch share: make its index.html anew
    #[arg(long, value_name = "DIR", conflicts_with_all = ["run", "output"])]
    pub index: Option<PathBuf>,
    /// Increase verbosity
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
    /// Print only errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
}

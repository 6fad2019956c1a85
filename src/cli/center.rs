//! `fbp center`.

use super::{InputArgs, ScanArgs, StepArgs, Text};
use clap::{ArgAction, Args};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct CenterArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub scan: ScanArgs,
    /// Pixel size with its unit, such as 0.65um, for --phase
    #[arg(long, value_name = "LENGTH")]
    pub pixel_size: Option<Text>,
    #[command(flatten)]
    pub steps: StepArgs,
    /// Detector rows to sample: A..B (B excluded), A..=B or A..B:STEP; --sweep uses the middle one [default: all]
    #[arg(long, value_name = "RANGE")]
    pub rows: Option<Text>,
    /// likelihood, registration, vo, overlap or sweep [default: likelihood, and what may contradict or confirm it]
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// Search range in bins [default: likelihood and overlap: most of the detector; others: a quarter of it on either side of its middle]
    #[arg(long, value_name = "LO,HI")]
    pub search: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Instead of searching, write trial slices and a montage of them, with the axis from A to at most B bins in steps
    /// of S
    #[arg(long, value_name = "A..B:S", requires = "output", conflicts_with_all = ["method", "search", "json"])]
    pub sweep: Option<String>,
    /// Side in pixels of the square of each slice that montage.png or the page shows, the one with the most structure
    /// [default: 256; in a page, as much as fits, at most 512]
    #[arg(long, value_name = "PIXELS", requires = "sweep", value_parser = clap::value_parser!(u16).range(16..=4096))]
    pub tile: Option<u16>,
    /// Device for the slices of --sweep, and for --tilt and --phase: index (0), platform:device (0:1), part of a name, gpu
    /// or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<Text>,
    /// Directory for the slices of --sweep (center_1023.50.tif ...) and montage.png, or FILE.html for a page to choose
    /// from
    #[arg(long, short, value_name = "DIR|FILE.html", requires = "sweep")]
    pub output: Option<PathBuf>,
    /// Write to a directory that is not empty, or replace the page
    #[arg(long, requires = "sweep")]
    pub overwrite: bool,
    /// Increase verbosity
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
    /// Print only results and errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
}

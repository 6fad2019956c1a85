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
    /// Size of a pixel with its unit, such as 0.65um, for --phase
    #[arg(long, value_name = "LENGTH")]
    pub pixel_size: Option<Text>,
    #[command(flatten)]
    pub steps: StepArgs,
    /// Rows of the detector to sample: A..B (without B), A..=B or A..B:STEP; --sweep takes the middle one [default: all]
    #[arg(long, value_name = "RANGE")]
    pub rows: Option<Text>,
    /// registration, vo, overlap or sweep [default: those that suit the scan, of which two must agree]
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// Where to look, in bins [default: a quarter of the detector on both sides of its middle; overlap: all of it]
    #[arg(long, value_name = "LO,HI")]
    pub search: Option<String>,
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Do not search, but write slices about the axes from A to at most B bins, S apart, and a picture of all
    #[arg(long, value_name = "A..B:S", requires = "output", conflicts_with_all = ["method", "search", "json"])]
    pub sweep: Option<String>,
    /// Pixels along the side of the part of each slice that montage.png shows: that with the most structure
    #[arg(long, value_name = "PIXELS", requires = "sweep", default_value_t = 256, value_parser = clap::value_parser!(u16).range(16..=4096))]
    pub tile: u16,
    /// What the slices of --sweep are made on: index (0), platform:device (0:1), part of a name, gpu or cpu [default: best
    /// GPU, else CPU]
    #[arg(long, value_name = "SEL", requires = "sweep")]
    pub device: Option<Text>,
    /// Directory for the slices of --sweep (center_1023.50.tif ...) and their picture, montage.png
    #[arg(long, short, value_name = "DIR", requires = "sweep")]
    pub output: Option<PathBuf>,
    /// Write into a directory that is not empty
    #[arg(long, requires = "sweep")]
    pub overwrite: bool,
    /// Say more
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
    /// Say nothing but results and errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
}

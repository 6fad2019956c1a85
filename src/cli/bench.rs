//! `fbp bench`.

use super::{slice_mode, words};
use crate::kernel::{Algorithm, Interpolation, Mode};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Index (0), platform:device (0:1), part of a name, gpu or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Name of a profile, a TOML file, auto, or all: every kernel of every profile, each once [default: auto]
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Only these kernel families
    #[arg(long, value_name = "NAME", value_parser = words::<Algorithm>(), value_delimiter = ',')]
    pub algorithm: Vec<Algorithm>,
    /// Only these interpolations
    #[arg(long, value_name = "KIND", value_parser = words::<Interpolation>(), value_delimiter = ',')]
    pub interpolation: Vec<Interpolation>,
    /// Only these modes
    #[arg(long, value_name = "MODE", value_parser = words::<Mode>(), value_delimiter = ',')]
    pub mode: Vec<Mode>,
    /// Only kernels with these numbers of slices per pass: 1, 2, 4, 8, 16, 32 or 64
    #[arg(long, value_name = "N", value_parser = slice_mode, value_delimiter = ',')]
    pub slices_per_pass: Vec<u32>,
    /// Side of a slice in pixels
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub size: usize,
    /// Detector bins [default: size]
    #[arg(long, value_name = "N")]
    pub bins: Option<usize>,
    /// Projections [default: size]
    #[arg(long, value_name = "N")]
    pub projections: Option<usize>,
    /// Timed passes of each kernel; the median is reported
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub passes: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write a bar chart of the speeds
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Print only results and errors
    #[arg(long, short)]
    pub quiet: bool,
}

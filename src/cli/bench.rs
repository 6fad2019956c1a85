//! `fbp bench`.

use super::KernelSelectionArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Index (0), platform:device (0:1), part of a name, gpu or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Name of a profile, a TOML file, auto, or all for every kernel of every profile, each once [default: auto]
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    pub profile: Vec<String>,
    #[command(flatten)]
    pub kernels: KernelSelectionArgs,
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
    /// Time as many passes of each kernel as this number of slices needs, instead of --passes; the paper uses 512
    #[arg(long, value_name = "N", conflicts_with = "passes")]
    pub slices: Option<usize>,
    /// Time an iteration of least squares in place of kernels of back projection: tv or huber
    #[arg(long, value_name = "METHOD", conflicts_with_all = ["slices", "plot", "bins", "projections"])]
    pub method: Option<String>,
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

//! `fbp tune`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct TuneArgs {
    /// Index (0), platform:device (0:1), part of a name, gpu or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// What to start from: name of a profile, a TOML file, or auto: what the device gets without tuning [default: auto]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Write the tuned profile there [default: the cache directory, where this device finds it by itself]
    #[arg(long, short, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// Only these families of kernels
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub algorithm: Vec<String>,
    /// Only these interpolations: linear, nearest
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub interpolation: Vec<String>,
    /// Only these modes: precise, fast
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    pub mode: Vec<String>,
    /// Only kernels of so many slices: 1, 2, 4, 8, 16, 32 or 64
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub slices_per_pass: Vec<String>,
    /// Side of a slice in pixels [default: 2048, 512 on processors; a quarter and a half of that with --quick; less where
    /// the device is too small]
    #[arg(long, value_name = "N")]
    pub size: Option<usize>,
    /// Detector bins [default: size]
    #[arg(long, value_name = "N")]
    pub bins: Option<usize>,
    /// Projections [default: size]
    #[arg(long, value_name = "N")]
    pub projections: Option<usize>,
    /// Timed passes of each kernel, of which the median counts [default: 5, with --quick 3]
    #[arg(long, value_name = "N")]
    pub passes: Option<usize>,
    /// One round of steps to the next values, on a small problem: less than two minutes
    #[arg(long)]
    pub quick: bool,
    /// Time for all measurements, such as 90s or 10m [default: 20m, with --quick 80s]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Go on where the last run stopped: what it measured is not measured again
    #[arg(long)]
    pub resume: bool,
    /// All measurements as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Say nothing but results and errors
    #[arg(long, short)]
    pub quiet: bool,
}

//! `fbp tune`.

use super::KernelSelectionArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct TuneArgs {
    /// Index (0), platform:device (0:1), part of a name, gpu or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Profile to start from: a name, a TOML file, or auto (the profile used without tuning) [default: auto]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// File for the tuned profile [default: a file in the cache directory, which fbp then uses for this device]
    #[arg(long, short, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub kernels: KernelSelectionArgs,
    /// Tune the sizes of the work-groups of the steps around the filter instead of kernels, in seconds
    #[arg(long, conflicts_with_all = ["algorithm", "interpolation", "mode", "slices_per_pass", "size", "quick", "budget", "resume",
        "balance_by_multiprocessor"])]
    pub steps: bool,
    /// Also try hybrid kernels that divide blocks by the multiprocessor that runs them; the last bits of slices then vary
    /// from run to run
    #[arg(long)]
    pub balance_by_multiprocessor: bool,
    /// Side of a slice in pixels [default: 2048, or 512 on CPUs; with --quick 512, or 256 on CPUs; less if device
    /// memory is too small]
    #[arg(long, value_name = "N")]
    pub size: Option<usize>,
    /// Detector bins [default: size; with --steps 2048, or 512 on CPUs]
    #[arg(long, value_name = "N")]
    pub bins: Option<usize>,
    /// Projections [default: size; with --steps 2048, or 512 on CPUs]
    #[arg(long, value_name = "N")]
    pub projections: Option<usize>,
    /// Timed passes of each kernel; the median is used [default: 5, with --quick 3]
    #[arg(long, value_name = "N")]
    pub passes: Option<usize>,
    /// Search only one round of neighbouring values on a small problem, in less than two minutes
    #[arg(long)]
    pub quick: bool,
    /// Total time for measurements, such as 90s or 10m [default: 20m, with --quick 80s]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Continue where the last run stopped, without repeating its measurements
    #[arg(long)]
    pub resume: bool,
    /// Print all measurements as JSON
    #[arg(long)]
    pub json: bool,
    /// Print only results and errors
    #[arg(long, short)]
    pub quiet: bool,
}

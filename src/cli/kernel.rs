//! `fbp kernel`.

use super::values::words;
use crate::kernel::{Interpolation, Mode};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct KernelArgs {
    /// Name of a profile or a TOML file
    #[arg(long, default_value = "default")]
    pub profile: String,
    /// Kernel family, or auto
    #[arg(long)]
    pub algorithm: Option<String>,
    #[arg(long, default_value = "linear", value_parser = words::<Interpolation>())]
    pub interpolation: Interpolation,
    #[arg(long, default_value = "precise", value_parser = words::<Mode>())]
    pub mode: Mode,
    /// Number of slices per pass: auto, 1, 2, 4, 8, 16, 32 or 64
    #[arg(long, default_value = "auto")]
    pub slices_per_pass: String,
    /// Detector bins
    #[arg(long, default_value_t = 2048)]
    pub bins: usize,
    /// Projections
    #[arg(long, default_value_t = 2048)]
    pub projections: usize,
    /// Side of the slice [default: bins]
    #[arg(long)]
    pub size: Option<usize>,
    /// Write every program that the profile can use to DIR, one file each; its first lines say how to build it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["algorithm", "interpolation", "mode", "slices_per_pass"])]
    pub every: Option<PathBuf>,
}

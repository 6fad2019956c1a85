//! Flags that `fbp bench` and `fbp tune` share: which kernels to run.

use super::values::{slice_mode, words};
use crate::kernel::{Algorithm, Interpolation, Mode};
use clap::Args;

/// Which kernels of the profiles are run; an empty list takes all.
#[derive(Debug, Args)]
pub struct KernelSelectionArgs {
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
}

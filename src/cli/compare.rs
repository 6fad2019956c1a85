//! `fbp compare`.

use clap::Args;

#[derive(Args, Debug)]
pub struct CompareArgs {
    /// File, directory or glob to compare
    pub a: String,
    /// Reference: file, directory or glob
    pub b: String,
    /// Compare only inside a centred circle; FRACTION is its radius relative to half the width
    #[arg(long, value_name = "FRACTION")]
    pub mask: Option<f64>,
    /// Exit with code 1 if the NRMSE is larger
    #[arg(long, value_name = "NRMSE")]
    pub tolerance: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

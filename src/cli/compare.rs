//! `fbp compare`.

use clap::Args;

#[derive(Args, Debug)]
pub struct CompareArgs {
    /// File, directory or glob
    pub a: String,
    /// The reference
    pub b: String,
    /// Compare inside the centred circle of this fraction of half the width
    #[arg(long, value_name = "FRACTION")]
    pub mask: Option<f64>,
    /// Exit with 1 when the NRMSE is larger
    #[arg(long, value_name = "NRMSE")]
    pub tolerance: Option<f64>,
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
}

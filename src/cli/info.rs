//! `fbp info`.

use clap::Args;

#[derive(Args, Debug)]
pub struct InfoArgs {
    /// File, directory or glob
    pub path: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

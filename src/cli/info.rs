//! `fbp info`.

use clap::Args;

#[derive(Args, Debug)]
pub struct InfoArgs {
    /// File, directory or glob, or 'list FILE'
    pub path: String,
    /// Which number in the file names is their order, from 1 [default: the one that varies, or counts up by one]
    #[arg(long, value_name = "N")]
    pub order_by: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

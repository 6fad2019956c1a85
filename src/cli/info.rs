//! `fbp info`.

use clap::Args;

#[derive(Args, Debug)]
pub struct InfoArgs {
    /// File, directory or glob, or 'list FILE'
    pub path: String,
    /// Which number in the file names is their order, from 1 [default: the one that varies, or counts up by one]
    #[arg(long, value_name = "N")]
    pub order_by: Option<usize>,
    /// Look at the values of all pages for the smallest and the largest; by default at 64 million values of pages spread over all
    #[arg(long)]
    pub all_pages: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

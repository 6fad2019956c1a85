//! `fbp info`.

use clap::Args;

#[derive(Args, Debug)]
pub struct InfoArgs {
    /// File, directory or glob
    pub path: String,
    /// Look at the values of all pages for the smallest and the largest; by default at 64 million values of pages spread over all
    #[arg(long)]
    pub all_pages: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

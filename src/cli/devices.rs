//! `fbp devices`.

use clap::Args;

#[derive(Args, Debug)]
pub struct DevicesArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

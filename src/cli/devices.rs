//! `fbp devices`.

use clap::Args;

#[derive(Args, Debug)]
pub struct DevicesArgs {
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
}

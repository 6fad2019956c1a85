//! `fbp model`.

use clap::Args;

#[derive(Args, Debug)]
pub struct ModelArgs {
    /// Name of a profile, a TOML file, or all
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

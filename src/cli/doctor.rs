//! `fbp doctor`.

use clap::Args;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Index (0), platform:device (0:1), part of a name, gpu or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Name of a profile, a TOML file, auto, or all for every kernel of every profile, each once [default: auto]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Check only one small problem and one row length, for simulators
    #[arg(long)]
    pub quick: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print only results and errors
    #[arg(long, short)]
    pub quiet: bool,
}

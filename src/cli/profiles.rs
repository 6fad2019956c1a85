//! `fbp profiles`.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// List all profiles
    List,
    /// Print a profile as TOML
    Show {
        /// Name of a profile, or a TOML file
        profile: String,
    },
    /// Check profile files
    Check {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

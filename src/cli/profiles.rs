//! `fbp profiles`.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// One line a profile
    List,
    /// Print a profile as TOML
    Show {
        /// Name or file
        profile: String,
    },
    /// Check profile files
    Check {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

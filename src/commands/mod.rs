//! The commands, one file each.

mod bench;
mod center;
mod compare;
mod devices;
mod doctor;
#[cfg(feature = "hdf5")]
mod examine;
mod help;
mod info;
mod kernel;
mod model;
mod phantom;
mod preprocess;
mod profiles;
mod reconstruct;
mod report;
mod trials;
mod tune;

pub use bench::bench;
pub use center::center;
pub use compare::{compare, compare_stacks};
pub use devices::devices;
pub use doctor::doctor;
#[cfg(feature = "hdf5")]
pub use examine::examine_hdf5;
pub use help::{help, man};
pub use info::info;
pub use kernel::kernel;
pub use model::model;
pub use phantom::phantom;
pub use preprocess::preprocess;
pub use profiles::profiles;
pub use reconstruct::reconstruct;
pub use report::report;
pub use tune::tune;

use crate::error::{Error, Result};
use std::path::Path;

/// Refuses a directory with files that are not hidden, unless that was asked for.
fn refuse_filled(directory: &Path, overwrite: bool) -> Result<()> {
    let is_visible = |entry: std::fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
    if !overwrite && directory.read_dir().is_ok_and(|entries| entries.flatten().any(is_visible)) {
        return Err(Error::output(directory, "the directory is not empty; add --overwrite or choose another --output"));
    }
    Ok(())
}

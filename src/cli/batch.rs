//! `fbp batch`.

use super::ReconstructArgs;
use super::values::words;
use crate::phantom::PageLayout;
use clap::{Arg, Args};
use std::path::PathBuf;

/// Flags of `fbp batch`: those of `fbp reconstruct`, which hold for every scan, and which scans there are.
#[derive(Args, Debug)]
pub struct BatchArgs {
    /// Scans: HDF5 files, or directories and stacks of the files that --projections takes; paths, globs in quotes, in which
    /// {name} is a * that stands for the name, or 'list FILE' with a path per line
    #[arg(value_name = "SCANS", required_unless_present = "table")]
    pub scans: Vec<String>,
    /// Table of scans with flags of their own: the column or key `name`, and any flags of fbp reconstruct, which take
    /// precedence over all others; a row with an input is a scan, too
    #[arg(long = "scans", value_name = "FILE.csv|FILE.toml", help_heading = "Scans")]
    pub table: Option<PathBuf>,
    /// What scans that are not HDF5 files consist of [default: the one that the run file names, else projections]
    #[arg(long = "as", value_parser = words::<PageLayout>(), help_heading = "Scans")]
    pub layout: Option<PageLayout>,
    /// Go on as with --resume, and repeat failed scans
    #[arg(long, conflicts_with = "overwrite", help_heading = "Scans")]
    pub retry_failed: bool,
    #[command(flatten)]
    pub run: ReconstructArgs,
}

/// Returns a flag of `fbp reconstruct` as `fbp batch` takes it.
pub(super) fn in_batch(flag: Arg) -> Arg {
    match flag.get_id().as_str() {
        "sinograms" | "projections" | "hdf5" | "raw" | "save_config" => flag.hide(true),
        // a batch is of scans of one volume
        "every" | "overlap" | "turns" => flag.hide(true),
        "output" => flag.help(
            "Output of each scan, as for fbp reconstruct, where {name} stands for the name of the scan: 'rec/{name}', \
             'rec/{name}.h5'; {name} also works in --report, --preview, --histogram, --sections, --log, --flats, \
             --flats2, --darks, --angles and --center-shifts",
        ),
        "overwrite" => flag.help("Do all scans again, and replace what earlier runs wrote"),
        "resume" => flag.help("Go on with an earlier batch: keep scans that are done, and complete slices of others"),
        "shard" => flag.help(
            "This job's share of the scans, counted from 0, or auto: the index in a Slurm array or the rank under srun",
        ),
        _ => flag,
    }
}

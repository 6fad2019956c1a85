//! `fbp trials`.

use super::ReconstructArgs;
use clap::{Arg, Args};

/// Flags of `fbp reconstruct` that are about the slices of a run, not about trial slices.
pub const OF_RUNS: [&str; 17] = [
    "compression",
    "dry-run",
    "dtype",
    "expect",
    "hdf5-parts",
    "histogram",
    "ome-zarr",
    "percentile",
    "preview",
    "range",
    "report",
    "resolution",
    "resume",
    "save-config",
    "sections",
    "shard",
    "watch",
];

/// Flags of `fbp trials`: those of `fbp reconstruct`, and which of them are varied.
#[derive(Args, Debug)]
pub struct TrialsArgs {
    /// Flag of fbp reconstruct and its values: a range A..=B:STEP (A..B:STEP without B), or values separated by commas,
    /// with + in the place of commas within a value; none leaves the flag out. Give it twice to vary two flags
    #[arg(long, value_name = "FLAG=VALUES", required = true, help_heading = "Trial slices")]
    pub vary: Vec<String>,
    /// Side in pixels of the square of each slice that the page or montage.png shows, the one with the most structure;
    /// --roi shows another part [default: in a page, as much as fits, at most 512; else 256]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u16).range(16..=4096), help_heading = "Trial slices")]
    pub tile: Option<u16>,
    #[command(flatten)]
    pub run: Box<ReconstructArgs>,
}

/// Returns a flag of `fbp reconstruct` as `fbp trials` takes it.
pub(super) fn in_trials(flag: Arg) -> Arg {
    let id = flag.get_id().as_str().replace('_', "-");
    match id.as_str() {
        "output" => flag.help("FILE.html for a page, or a directory for the slices as TIFF, with a montage"),
        "rows" => {
            flag.help("Detector rows: A..B (B excluded), A..=B or A..B:STEP; the middle one is used [default: all]")
        }
        "overwrite" => flag.help("Replace the page, or write to a directory that is not empty"),
        id if OF_RUNS.contains(&id) => flag.hide(true),
        // trials are of one volume
        "every" | "overlap" | "turns" => flag.hide(true),
        _ => flag,
    }
}

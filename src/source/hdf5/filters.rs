//! Filters of datasets that the library must undo, and messages about filters that it lacks.

use super::FileResult;
use hdf5_metno::Dataset;
use hdf5_metno::filters::Filter;

/// Checks that the library can decode all filters.
pub(super) fn filters(dataset: &Dataset) -> FileResult<()> {
    let plist = dataset.dcpl().map_err(|e| format!("cannot be opened: {e}; copy or write the file again"))?;
    // loaded filters; other filters may be available as plugins
    if plist.all_filters_avail() {
        return Ok(());
    }
    let filters = plist.get_filters().map_err(|e| {
        format!("has filters that cannot be read: {e}; copy the data without them, for example with h5repack")
    })?;
    let missing: Vec<_> = filters.iter().filter(|filter| !filter.is_available()).map(Filter::id).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|&id| filter_name(id)).collect();
    let advice = advice(&missing);
    Err(format!("is compressed with {}, which this system's HDF5 library lacks; {advice}", names.join(" and ")))
}

/// Filters for which Python's hdf5plugin has plugins.
const HDF5PLUGIN: [i32; 11] = [307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028];

/// Returns advice about missing filters.
fn advice(missing: &[i32]) -> String {
    const REPACK: &str =
        "`h5repack -f GZIP=1 IN OUT` writes the file again for every library, where its programs can read it";
    let without: Vec<_> = missing.iter().filter(|id| !HDF5PLUGIN.contains(id)).map(|&id| filter_name(id)).collect();
    if !without.is_empty() {
        return format!(
            "{} is in no package of plugins that fbp knows. If there is a plugin for it, set HDF5_PLUGIN_PATH to its \
             directory; else {REPACK}",
            without.join(" and ")
        );
    }
    let looked = match std::env::var("HDF5_PLUGIN_PATH") {
        Ok(path) => format!("HDF5_PLUGIN_PATH is {path} and has no plugin for it that can be loaded"),
        Err(_) => "HDF5_PLUGIN_PATH, the directory of plugins, is not set".to_owned(),
    };
    format!(
        "{looked}. `pip install hdf5plugin` brings the plugin, `export HDF5_PLUGIN_PATH=$(python3 -c 'import hdf5plugin; \
         print(hdf5plugin.PLUGIN_PATH)')` names its directory; or {REPACK}"
    )
}

/// Returns the registered name of a filter.
pub(super) fn filter_name(id: i32) -> String {
    let name = match id {
        1 => "gzip",
        4 => "szip",
        5 => "nbit",
        6 => "scale-offset",
        307 => "bzip2",
        32000 => "lzf",
        32001 => "blosc",
        32004 => "lz4",
        32008 => "bitshuffle",
        32013 => "zfp",
        32015 => "zstd",
        32017 => "sz",
        32018 => "fcidecomp",
        32024 => "sz3",
        32026 => "blosc2",
        32028 => "sperr",
        id => return format!("filter {id}"),
    };
    format!("{name} (filter {id})")
}

pub(super) fn short_name(id: i32) -> String {
    match id {
        2 => ", shuffle".into(),
        3 => ", fletcher32".into(),
        id => format!(", {}", filter_name(id)),
    }
}

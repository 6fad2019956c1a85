//! Filters of datasets that the library must undo, and messages about filters that it lacks.

use crate::error::messages;
use hdf5_metno::Dataset;
use hdf5_metno::filters::Filter;

messages! {
    /// Why the library cannot undo the filters of a dataset.
    pub(super) enum Hdf5FilterError: Input {
        Unopened { error: hdf5_metno::Error } => "cannot be opened: {error}"; "copy or write the file again",
        Unlisted { error: hdf5_metno::Error } =>
            "has filters that cannot be read: {error}"; "copy the data without them, for example with h5repack",
        /// Some of the filters are in no package of plugins.
        Unpackaged { filters: String, unpackaged: String } =>
            "is compressed with {filters}, which this system's HDF5 library lacks";
            "{unpackaged} is in no package of plugins that fbp knows. If there is a plugin for it, set \
             HDF5_PLUGIN_PATH to its directory; else `h5repack -f GZIP=1 IN OUT` writes the file again for every \
             library, where its programs can read it",
        NotInPluginPath { filters: String, path: String } =>
            "is compressed with {filters}, which this system's HDF5 library lacks";
            "HDF5_PLUGIN_PATH is {path} and has no plugin for it that can be loaded. `pip install hdf5plugin` brings \
             the plugin, `export HDF5_PLUGIN_PATH=$(python3 -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)')` \
             names its directory; or `h5repack -f GZIP=1 IN OUT` writes the file again for every library, where its \
             programs can read it",
        NoPluginPath { filters: String } =>
            "is compressed with {filters}, which this system's HDF5 library lacks";
            "HDF5_PLUGIN_PATH, the directory of plugins, is not set. `pip install hdf5plugin` brings the plugin, \
             `export HDF5_PLUGIN_PATH=$(python3 -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)')` names its \
             directory; or `h5repack -f GZIP=1 IN OUT` writes the file again for every library, where its programs can \
             read it",
    }
}

/// Checks that the library can decode all filters.
pub(super) fn filters(dataset: &Dataset) -> Result<(), Hdf5FilterError> {
    let plist = dataset.dcpl().map_err(|error| Hdf5FilterError::Unopened { error })?;
    // loaded filters; other filters may be available as plugins
    if plist.all_filters_avail() {
        return Ok(());
    }
    let filters = plist.get_filters().map_err(|error| Hdf5FilterError::Unlisted { error })?;
    let missing: Vec<_> = filters.iter().filter(|filter| !filter.is_available()).map(Filter::id).collect();
    if missing.is_empty() { Ok(()) } else { Err(unavailable(&missing)) }
}

/// Filters for which Python's hdf5plugin has plugins.
const HDF5PLUGIN: [i32; 11] = [307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028];

/// Returns the error about missing filters.
fn unavailable(missing: &[i32]) -> Hdf5FilterError {
    let names = |ids: &[i32]| ids.iter().map(|&id| filter_name(id)).collect::<Vec<_>>().join(" and ");
    let filters = names(missing);
    let unpackaged: Vec<_> = missing.iter().copied().filter(|id| !HDF5PLUGIN.contains(id)).collect();
    if !unpackaged.is_empty() {
        return Hdf5FilterError::Unpackaged { filters, unpackaged: names(&unpackaged) };
    }
    match std::env::var("HDF5_PLUGIN_PATH") {
        Ok(path) => Hdf5FilterError::NotInPluginPath { filters, path },
        Err(_) => Hdf5FilterError::NoPluginPath { filters },
    }
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

//! Properties of a dataset that the library reports.

use super::filters::short_name;
use hdf5_metno::Dataset;
use hdf5_metno::dataset::Layout;
use hdf5_metno::filters::Filter;
use std::path::{Path, PathBuf};

/// Largest number of frames of a dataset.
pub(super) const MAX_FRAMES: usize = 1 << 20;

/// Returns the size of a chunk in bytes, if a dataset is stored in chunks.
pub(super) fn chunk_bytes(dataset: &Dataset) -> Option<u64> {
    let values = dataset.chunk()?.iter().fold(1u64, |product, &side| product.saturating_mul(side as u64));
    Some(values.saturating_mul(dataset.dtype().ok()?.size() as u64))
}

/// Returns the files of a dataset: the one that contains it, and the one that was opened if it is another.
pub(super) fn files(path: &Path, dataset: &Dataset) -> Vec<PathBuf> {
    let same = |a: &Path, b: &Path| a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
    let holder = PathBuf::from(dataset.filename());
    match same(&holder, path) {
        true => vec![path.to_owned()],
        false => vec![holder, path.to_owned()],
    }
}

/// Formats the shape of a dataset, such as `1800x2048x2448`.
pub(super) fn shape(dataset: &Dataset) -> String {
    match dataset.shape() {
        sides if sides.is_empty() => "of a single value".into(),
        sides => sides.iter().map(usize::to_string).collect::<Vec<_>>().join("x"),
    }
}

/// Describes type and storage of a dataset in words.
pub(super) fn stored(dataset: &Dataset) -> String {
    let kind =
        dataset.dtype().and_then(|kind| kind.to_descriptor()).map_or("of unknown type".into(), |t| t.to_string());
    let layout = match dataset.dcpl() {
        Err(_) => "",
        Ok(plist) => match plist.layout() {
            Layout::Contiguous if plist.external().is_empty() => "contiguous",
            Layout::Contiguous => "in other files",
            Layout::Compact => "compact",
            Layout::Virtual => "virtual",
            Layout::Chunked => {
                let chunk =
                    plist.chunk().unwrap_or_default().iter().map(usize::to_string).collect::<Vec<_>>().join("x");
                let filters: Vec<_> = plist.filters().iter().map(Filter::id).map(short_name).collect();
                return format!("{kind}, chunks of {chunk}{}", filters.concat());
            }
        },
    };
    format!("{kind}, {layout}")
}

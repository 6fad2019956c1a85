//! Source files of a virtual dataset. The library silently reads missing ones as fill values.

use super::datasets::chunk_bytes;
use super::errors::{Hdf5LinkError, Hdf5Result, Hdf5SourceError};
use super::filters::filters;
use super::links::{DEPTH, open_dataset, source_file};
use crate::files::open_regular;
use crate::visible::Shown;
use hdf5_metno::dataset::Layout;
use hdf5_metno::{Dataset, File};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Largest number of missing sources that a message lists.
const NAMED: usize = 4;

/// Sources of a virtual dataset.
#[derive(Default)]
pub(super) struct Sources {
    pub files: Vec<PathBuf>,
    /// Number of datasets that are stored in chunks.
    pub chunked: u64,
    /// Size of the largest chunk in bytes.
    pub chunk: u64,
}

/// Returns all sources of a virtual dataset, including those of nested virtual datasets.
///
/// `holder` is the file that contains the dataset.
///
/// # Errors
/// A list of sources that are missing, cannot be opened, or need a filter that the library lacks.
pub(super) fn sources(holder: &Path, dataset: &Dataset) -> Hdf5Result<Sources> {
    let mut search = SourceSearch::default();
    search.follow(holder, dataset, DEPTH)?;
    let missing = search.missing.len();
    if missing == 0 {
        return Ok(search.found);
    }
    search.missing.truncate(NAMED);
    let mut sources = search.missing.join(", ");
    if missing > NAMED {
        sources += &format!(" and {} more", missing - NAMED);
    }
    let verb = if missing == 1 { "is" } else { "are" };
    Err(Hdf5SourceError::Missing { count: missing, verb, sources, holder: holder.shown() }.into())
}

#[derive(Default)]
struct SourceSearch {
    found: Sources,
    /// Files and datasets that were visited.
    seen: HashSet<(PathBuf, String)>,
    missing: Vec<String>,
}

impl SourceSearch {
    fn follow(&mut self, holder: &Path, dataset: &Dataset, depth: usize) -> Hdf5Result<()> {
        let plist = dataset.dcpl().map_err(|error| Hdf5LinkError::Unopened { error })?;
        if plist.layout() != Layout::Virtual || depth == 0 {
            return Ok(());
        }
        let listed = vds_sys::mappings(&plist).ok_or(Hdf5SourceError::Unlisted)?;
        for mapping in listed {
            let name = &mapping.dataset;
            // the dataset ends with the last existing file of a pattern
            let Some(found) = source_file(&mapping, holder) else { continue };
            let Some(path) = found else {
                self.missing(mapping.file.shown().to_string());
                continue;
            };
            if !self.seen.insert((path.clone(), name.clone())) {
                continue;
            }
            if path != holder && !self.found.files.contains(&path) {
                self.found.files.push(path.clone());
            }
            // the library would wait forever for a named pipe
            if let Err(error) = open_regular(&path) {
                self.missing(format!("{} ({error})", path.display()));
                continue;
            }
            let opened = File::open(&path).map(|file| open_dataset(&file, name));
            match opened {
                Ok(Err(error)) => {
                    let (dataset, file) = (name.clone(), path.shown());
                    return Err(Hdf5SourceError::SpecialFile { dataset, file, error }.into());
                }
                Err(error) => self.missing(format!("{} ({error})", path.shown())),
                Ok(Ok(Err(_))) => self.missing(format!("dataset {name} of {}", path.shown())),
                Ok(Ok(Ok(dataset))) => {
                    filters(&dataset).map_err(|error| {
                        let (dataset, file) = (name.clone(), path.shown());
                        Hdf5SourceError::Unusable { dataset, file, error: error.into() }
                    })?;
                    if let Some(bytes) = chunk_bytes(&dataset) {
                        self.found.chunked += 1;
                        self.found.chunk = self.found.chunk.max(bytes);
                    }
                    self.follow(&path, &dataset, depth - 1)?;
                }
            }
        }
        Ok(())
    }

    fn missing(&mut self, what: String) {
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }
}

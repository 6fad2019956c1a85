//! Lookup of objects by their paths, through links to other files, and of datasets with values in other files.
//!
//! The library would wait forever for a named pipe or a device. Therefore, the files are checked before it opens them.

use super::errors::{Hdf5LinkError, Hdf5Result};
use crate::files::special_file;
use crate::visible::Shown;
use hdf5_metno::dataset::Layout;
use hdf5_metno::{Dataset, File, Group, LocationType};
use std::env;
use std::path::{Path, PathBuf};
use vds_sys::{Link, Mapping, SelectedValues};

/// Largest number of links that a path leads through, as links may be circular.
const LINKS: usize = 64;
/// Depth to which virtual datasets of virtual datasets are followed, as they may be circular.
pub(super) const DEPTH: usize = 8;
/// Largest number of files that a pattern in a virtual dataset stands for.
const PATTERN_FILES: usize = 1 << 20;

/// Opens a dataset.
///
/// # Errors
/// The errors of the library, and one that names the link or dataset that leads to something other than a regular file.
pub fn dataset(at: &Group, path: &str) -> Hdf5Result<Dataset> {
    Ok(open_dataset(at, path)??)
}

/// Dataset or the error of the library, unless links lead to something that is no regular file.
type OpenedDataset = Result<hdf5_metno::Result<Dataset>, Hdf5LinkError>;

/// Opens a dataset, and returns errors of the library separately from others.
pub(super) fn open_dataset(at: &Group, path: &str) -> OpenedDataset {
    open_to_depth(at, path, DEPTH)
}

/// Returns the type of the object that a path leads to, if it exists.
pub(super) fn kind(at: &Group, path: &str) -> Result<Option<LocationType>, Hdf5LinkError> {
    follow(at, path)?;
    Ok(at.loc_type_by_name(path).ok())
}

/// Reports whether a path ends with a link, which may be broken. A path that leads through something other than a
/// regular file counts as existing, so that opening it reports the reason.
pub(super) fn exists(at: &Group, path: &str) -> bool {
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    follow(at, above).is_err() || at.link_exists(path)
}

fn open_to_depth(at: &Group, path: &str, depth: usize) -> OpenedDataset {
    follow(at, path)?;
    let dataset = at.dataset(path);
    if let Ok(dataset) = &dataset {
        check_values(dataset, depth)?;
    }
    Ok(dataset)
}

/// Follows the links of a path, and refuses one that leads to something other than a regular file.
fn follow(at: &Group, path: &str) -> Result<(), Hdf5LinkError> {
    let mut at = at.clone();
    let mut names = Vec::new();
    let add = |at: &mut Group, names: &mut Vec<String>, path: &str| {
        if path.starts_with('/')
            && let Ok(root) = at.file().and_then(|file| file.as_group())
        {
            *at = root;
        }
        // the last one is followed first
        names.extend(path.rsplit('/').filter(|name| !["", "."].contains(name)).map(str::to_owned));
    };
    add(&mut at, &mut names, path);
    let mut links = 0;
    while let Some(name) = names.pop().filter(|_| links < LINKS) {
        match vds_sys::link(&at, &name) {
            Some(Link::Hard) if !names.is_empty() => match at.group(&name) {
                Ok(group) => at = group,
                Err(_) => break,
            },
            Some(Link::Soft(target)) => {
                links += 1;
                add(&mut at, &mut names, &target);
            }
            Some(Link::External { file, path }) => {
                links += 1;
                let holder = PathBuf::from(at.filename());
                let link = format!("{}/{name}", at.name().trim_end_matches('/'));
                let places = places(&file, &Directories::of(&holder, "HDF5_EXT_PREFIX"));
                let places = places.map_err(|SpecialFile { path, kind }| {
                    let (holder, target) = (holder.shown(), path.shown());
                    Hdf5LinkError::SpecialFile { link, holder, target, kind }
                })?;
                let opened = places.iter().find_map(|place| File::open(place).ok()).map(|file| file.as_group());
                let Some(Ok(root)) = opened else { break };
                at = root;
                add(&mut at, &mut names, &path);
            }
            _ => break,
        }
    }
    Ok(())
}

/// Refuses a dataset whose values are in something other than a regular file.
fn check_values(dataset: &Dataset, depth: usize) -> Result<(), Hdf5LinkError> {
    let plist = dataset.dcpl().map_err(|error| Hdf5LinkError::Unopened { error })?;
    let holder = PathBuf::from(dataset.filename());
    let refused = |SpecialFile { path, kind }| Hdf5LinkError::SpecialValues { file: path.shown(), kind };
    for file in external_files(&holder, dataset) {
        refuse_special(&file).map_err(refused)?;
    }
    if plist.layout() != Layout::Virtual {
        return Ok(());
    }
    let directories = Directories::of(&holder, "HDF5_VDS_PREFIX");
    for mapping in vds_sys::mappings(&plist).unwrap_or_default() {
        // the library opens these to determine the length of the dataset; others are checked when they are opened
        let now = depth > 0 && (is_pattern(&mapping) || mapping.from == SelectedValues::Other);
        for (file, name) in sources_of(&mapping) {
            let found = match file == Path::new(".") {
                true => vec![holder.clone()],
                false => places(&file, &directories).map_err(refused)?,
            };
            let Some(first) = found.first() else { break };
            if now && File::open(first).is_ok_and(|file| file.link_exists(&name)) {
                let file = File::open(first).map_err(|error| Hdf5LinkError::Unopened { error })?;
                // a dataset that cannot be opened is reported as missing later
                let _ = open_to_depth(&file, &name, depth - 1)?;
            }
        }
    }
    Ok(())
}

/// Reports whether a mapping stands for files or datasets that may be added.
fn is_pattern(mapping: &Mapping) -> bool {
    mapping.file.to_string_lossy().contains('%') || mapping.dataset.contains('%')
}

/// Iterates over the files and datasets of a mapping; a pattern has [`PATTERN_FILES`] of them.
fn sources_of(mapping: &Mapping) -> impl Iterator<Item = (PathBuf, String)> + '_ {
    let numbered = |text: &str, number: usize| -> String {
        let parts: Vec<String> = text.split("%%").map(|part| part.replace("%b", &number.to_string())).collect();
        parts.join("%")
    };
    let count = if is_pattern(mapping) { PATTERN_FILES } else { 1 };
    (0..count).map(move |number| {
        let file = mapping.file.to_str().map_or(mapping.file.clone(), |file| numbered(file, number).into());
        (file, numbered(&mapping.dataset, number))
    })
}

/// Directories in which the library looks for files that another file names.
struct Directories {
    /// Directories from an environment variable.
    prefixes: Vec<PathBuf>,
    /// Directory of the file, and the one that contains the file if its path is a symbolic link.
    own: Vec<PathBuf>,
}

impl Directories {
    fn of(holder: &Path, variable: &str) -> Directories {
        let directory = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
        let own = directory(holder);
        let prefixes = env::var(variable).unwrap_or_default();
        let prefixes = prefixes.split(':').filter(|prefix| !prefix.is_empty());
        let prefixes = prefixes.map(|prefix| prefix.replacen("${ORIGIN}", &own.to_string_lossy(), 1).into()).collect();
        let behind = holder.canonicalize().map(|path| directory(&path)).ok().filter(|behind| *behind != own);
        Directories { prefixes, own: [Some(own), behind].into_iter().flatten().collect() }
    }

    /// Returns the paths at which a file may be, in the library's order.
    fn candidates(&self, named: &Path) -> Vec<PathBuf> {
        let mut places = Vec::new();
        if named.is_absolute() {
            places.push(named.to_owned());
        }
        // an absolute path that does not exist is looked up by its file name
        let relative = if named.is_absolute() { named.file_name().map(Path::new) } else { Some(named) };
        let Some(relative) = relative else { return places };
        places.extend(self.prefixes.iter().chain(&self.own).map(|directory| directory.join(relative)));
        places.push(relative.to_owned());
        places
    }
}

/// Returns the regular files at the paths where the library looks for a file.
///
/// # Errors
/// A file there that is not a regular file.
fn places(named: &Path, directories: &Directories) -> Result<Vec<PathBuf>, SpecialFile> {
    let candidates = directories.candidates(named);
    candidates.iter().try_for_each(|place| refuse_special(place))?;
    Ok(candidates.into_iter().filter(|place| place.is_file()).collect())
}

/// Something that is neither a regular file nor a directory.
struct SpecialFile {
    path: PathBuf,
    /// What it is, in words.
    kind: &'static str,
}

/// Refuses a path at which there is neither a regular file nor a directory.
fn refuse_special(path: &Path) -> Result<(), SpecialFile> {
    special_file(path).map_or(Ok(()), |kind| Err(SpecialFile { path: path.to_owned(), kind }))
}

/// Returns the file of a source of a dataset in the file `holder`, if it exists; `None` if its name is a pattern, which
/// stands for files that may be added.
pub(super) fn source_file(mapping: &Mapping, holder: &Path) -> Option<Option<PathBuf>> {
    if is_pattern(mapping) {
        return None;
    }
    if mapping.file == Path::new(".") {
        return Some(Some(holder.to_owned()));
    }
    let directories = Directories::of(holder, "HDF5_VDS_PREFIX");
    Some(directories.candidates(&mapping.file).into_iter().find(|file| file.is_file()))
}

/// Returns the files without a header that contain the values of a dataset in the file `holder`, in the places where
/// the library looks for them.
pub(super) fn external_files(holder: &Path, dataset: &Dataset) -> Vec<PathBuf> {
    let listed = dataset.dcpl().map(|plist| plist.external()).unwrap_or_default();
    let prefix = env::var("HDF5_EXTFILE_PREFIX").unwrap_or_default();
    let directory = holder.parent().unwrap_or(Path::new(""));
    let prefix = prefix.replacen("${ORIGIN}", &directory.to_string_lossy(), 1);
    let mut found = Vec::new();
    for path in listed.iter().map(|file| Path::new(&prefix).join(&file.name)) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_numbered_files() {
        let named = |file: &str, dataset: &str| -> Vec<(String, String)> {
            let selected = SelectedValues::All;
            let (file, dataset) = (file.into(), dataset.into());
            let mapping = Mapping { file, dataset, from: selected.clone(), to: selected };
            sources_of(&mapping).take(3).map(|(file, name)| (file.display().to_string(), name)).collect()
        };
        let pair = |file: &str, name: &str| (file.to_owned(), name.to_owned());
        assert_eq!(named("a.h5", "/d"), [pair("a.h5", "/d")]);
        assert_eq!(named("a%b.h5", "/d%b"), [pair("a0.h5", "/d0"), pair("a1.h5", "/d1"), pair("a2.h5", "/d2")]);
        assert_eq!(named("a%%b.h5", "/d")[0], pair("a%b.h5", "/d"));
    }

    #[test]
    fn files_are_looked_for_where_the_library_looks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::fs::write(folder.path().join("real/a.h5"), "").unwrap();
        std::os::unix::fs::symlink("real/a.h5", folder.path().join("a.h5")).unwrap();
        let directories = Directories::of(&folder.path().join("a.h5"), "FBP_TEST_NO_PREFIX");
        let real = folder.path().canonicalize().unwrap().join("real");
        let relative = [folder.path().join("b/c.h5"), real.join("b/c.h5"), "b/c.h5".into()];
        assert_eq!(directories.candidates(Path::new("b/c.h5")), relative);
        let absolute = ["/b/c.h5".into(), folder.path().join("c.h5"), real.join("c.h5"), "c.h5".into()];
        assert_eq!(directories.candidates(Path::new("/b/c.h5")), absolute);
    }
}

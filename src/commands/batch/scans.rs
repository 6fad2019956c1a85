//! The scans that the arguments of a batch name.

use super::errors::{BatchFlagError, ScanListError};
use crate::error::{Error, Result};
use crate::files::{excerpt, read_text};
use crate::source::{list_file, natural};
use crate::visible::Shown;
use glob::{MatchOptions, glob_with};
use std::collections::HashSet;
use std::path::Path;

/// A scan that an argument names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListedScan {
    pub name: String,
    /// Path of a file or directory, as an input flag takes it.
    pub input: String,
}

/// What stands for the name of a scan, in an argument and in the values of flags.
pub(super) const SCAN_NAME: &str = "{name}";

/// Endings of HDF5 files.
const HDF5: [&str; 5] = ["h5", "hdf5", "hdf", "nx", "nxs"];

/// Endings of directories that are not part of the name of a scan.
const OF_DIRECTORIES: [&str; 1] = ["zarr"];

/// Returns the scans in the order of the arguments; those of a glob in the order of their numbers. A path that several
/// arguments name counts once. In an argument, `{name}` is a `*` that says which part of the path is the name of the scan.
///
/// # Errors
/// [`Error::Input`] for a path or a glob that leads to nothing, [`Error::Usage`] for one without a name.
pub(super) fn listed(arguments: &[String]) -> Result<Vec<ListedScan>> {
    let mut seen = HashSet::new();
    let mut scans = Vec::new();
    for argument in arguments {
        let argument = if argument.contains(SCAN_NAME) { argument.trim_end_matches('/') } else { argument };
        for input in paths(&argument.replacen(SCAN_NAME, "*", 1))? {
            if seen.insert(input.clone()) {
                let name = match argument.split_once(SCAN_NAME) {
                    Some((before, after)) => name_within(&input, before, after, argument)?,
                    None => name_of(&input)?,
                };
                scans.push(ListedScan { name, input });
            }
        }
    }
    Ok(scans)
}

/// Reports whether a scan is an HDF5 file as a whole.
pub(super) fn is_hdf5(input: &str) -> bool {
    let ending = Path::new(input).extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    !input.contains("::") && !Path::new(input).is_dir() && HDF5.contains(&&*ending)
}

/// Checks that a name can be a part of a path.
///
/// # Errors
/// [`Error::Usage`] that begins with `place`.
pub(super) fn check_name(name: &str, place: &str) -> Result<()> {
    let is_path = name.contains(['/', '\0']) || ["", ".", ".."].contains(&name);
    match is_path {
        true => Err(BatchFlagError::NameIsPath { place: place.into(), name: excerpt(name).into() }.into()),
        false => Ok(()),
    }
}

/// Returns the paths that an argument names.
fn paths(argument: &str) -> Result<Vec<String>> {
    if let Some(list) = list_file(argument) {
        return in_list(list);
    }
    let file = argument.split_once("::").map_or(argument, |(file, _)| file);
    if Path::new(file).exists() {
        return Ok(vec![argument.to_owned()]);
    }
    if !argument.contains(['*', '?', '[']) {
        return Err(ScanListError::NoSuchScan { argument: excerpt(argument).into() }.into());
    }
    let options =
        MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let wrong = |error| BatchFlagError::NotAGlob { argument: excerpt(argument).into(), error };
    let mut found = Vec::new();
    for entry in glob_with(argument, options).map_err(wrong)? {
        let path = entry
            .map_err(|e| Error::input(e.path(), ScanListError::Unreadable { error: e.error().to_string().into() }))?;
        found.push(text(&path)?);
    }
    if found.is_empty() {
        return Err(ScanListError::NoMatch { argument: excerpt(argument).into() }.into());
    }
    found.sort_by(|a, b| natural(a, b));
    Ok(found)
}

/// Returns the paths in a list, which are relative to its directory.
fn in_list(list: &Path) -> Result<Vec<String>> {
    let content = read_text(list).map_err(|e| Error::input(list, ScanListError::Unreadable { error: e.into() }))?;
    let folder = list.parent().unwrap_or(Path::new(""));
    let lines = content.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let paths: Vec<String> = lines.map(|line| text(&folder.join(line))).collect::<Result<_>>()?;
    let file = |path: &String| path.split_once("::").map_or(path.clone(), |(file, _)| file.to_owned());
    if let Some(missing) = paths.iter().find(|path| !Path::new(&file(path)).exists()) {
        return Err(Error::input(list, ScanListError::MissingScan { path: excerpt(missing).into() }));
    }
    match paths.is_empty() {
        true => Err(Error::input(list, ScanListError::EmptyList)),
        false => Ok(paths),
    }
}

fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| BatchFlagError::NotUtf8 { path: path.shown() }.into())
}

/// Returns the part of a path that stands for `{name}` in the argument that it matches.
fn name_within(path: &str, before: &str, after: &str, argument: &str) -> Result<String> {
    let (head, tail) = (before.rsplit('/').next().unwrap_or_default(), after.split('/').next().unwrap_or_default());
    let part = path.rsplit('/').nth(after.matches('/').count());
    let name = part.and_then(|part| part.strip_prefix(head)?.strip_suffix(tail));
    let name = name
        .filter(|_| !after.contains("**"))
        .ok_or_else(|| BatchFlagError::TwoWildcards { argument: excerpt(argument).into() })?;
    check_name(name, path)?;
    Ok(name.to_owned())
}

/// Returns the name of a scan: that of the file without its ending, or that of the directory.
fn name_of(input: &str) -> Result<String> {
    let file = Path::new(input.split_once("::").map_or(input, |(file, _)| file));
    let ending = file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let has_ending = !file.is_dir() || OF_DIRECTORIES.contains(&&*ending);
    let name = if has_ending { file.file_stem() } else { file.file_name() };
    let name = name.unwrap_or_default().to_string_lossy().into_owned();
    check_name(&name, input)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn arguments_name_scans() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for name in ["s_10.h5", "s_2.h5", "s_1.nxs", "odd [1].tif"] {
            fs::write(at(name), "").unwrap();
        }
        for name in ["tooth.v2", "grain.zarr", ".hidden"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("list.txt"), "# of the night\ns_2.h5\n\ntooth.v2\n").unwrap();
        let names = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|argument| argument.replace("@", &at(""))).collect();
            let scans = listed(&arguments).map_err(|e| (e.exit_code(), e.to_string()))?;
            Ok::<_, (u8, String)>(scans.into_iter().map(|scan| scan.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["@s_*"]).unwrap(), ["s_1", "s_2", "s_10"]);
        assert_eq!(names(&["@tooth.v2/", "@grain.zarr", "@odd [1].tif"]).unwrap(), ["tooth.v2", "grain", "odd [1]"]);
        assert_eq!(names(&["list @list.txt"]).unwrap(), ["s_2", "tooth.v2"]);
        assert_eq!(names(&["@s_2.h5::/entry/data"]).unwrap(), ["s_2"]);
        // a part of the path may be the name
        for (folder, file) in [("n1", "scan_a.h5"), ("n2", "scan_b.h5")] {
            fs::create_dir(at(folder)).unwrap();
            fs::write(at(&format!("{folder}/{file}")), "").unwrap();
        }
        assert_eq!(names(&["@{name}/scan_?.h5"]).unwrap(), ["n1", "n2"]);
        assert_eq!(names(&["@n*/scan_{name}.h5"]).unwrap(), ["a", "b"]);
        assert_eq!(names(&["@n{name}/"]).unwrap(), ["1", "2"]);
        assert!(names(&["@n*/s*_{name}.h5"]).unwrap_err().1.contains("another wildcard"));
        // a path counts once
        assert_eq!(names(&["@s_2.h5", "@s_*.h5"]).unwrap(), ["s_2", "s_10"]);
        for (argument, code, word) in [
            ("@gone.h5", 3, "no such scan"),
            ("@*.edf", 3, "no file or directory matches"),
            ("@[", 2, "not a glob"),
            ("/", 2, "name of a scan"),
            ("list @s_1.nxs", 3, "names no scan"),
        ] {
            let (found, text) = names(&[argument]).unwrap_err();
            assert!(found == code && text.contains(word), "{argument}: {text}");
        }
        fs::write(at("list.txt"), "gone.h5\n").unwrap();
        assert!(names(&["list @list.txt"]).unwrap_err().1.contains("not there"));
        assert!(is_hdf5(&at("s_1.nxs")) && !is_hdf5(&at("odd [1].tif")) && !is_hdf5(&at("s_1.h5::/a")));
    }
}

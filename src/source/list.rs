//! Text files that list the files of a stack: `list FILE` in place of a path.

use super::files::{InputFileError, bad};
use crate::error::{Result, messages};
use crate::files::{excerpt, read_text};
use crate::visible::Shown;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf, absolute};

messages! {
    /// Errors of a text file that lists files.
    enum FileListError: Input {
        NotAPath { line: String } => "has the line `{line}`, which is no path"; "write one path a line",
        NamedTwice { path: String } => "names {path} twice"; "name every file once",
        Empty => "names no file"; "write one path a line",
    }
}

/// Longest path that the system accepts, in bytes.
const MAX_PATH: usize = 4095;

/// Word before the name of a list.
const LIST: &str = "list ";

/// Returns the text file of `list FILE`, unless a file has this whole name.
pub fn list_file(spec: &str) -> Option<&Path> {
    let file = spec.strip_prefix(LIST)?.trim();
    (!file.is_empty() && !Path::new(spec).exists()).then_some(Path::new(file))
}

/// Returns the paths in a list, in its order. A list has one path a line, relative to its own directory; empty lines
/// and those that begin with `#` are skipped.
pub(super) fn listed(spec: &str, flag: &str) -> Result<Vec<PathBuf>> {
    let list = list_file(spec).unwrap_or(Path::new(spec));
    let wrong = |why: FileListError| bad(flag, list, why);
    let text = read_text(list).map_err(|error| bad(flag, list, InputFileError::Unreadable { error }))?;
    let folder = list.parent().unwrap_or(Path::new(""));
    if let Some(long) = text.lines().find(|line| line.len() > MAX_PATH) {
        return Err(wrong(FileListError::NotAPath { line: excerpt(long).into() }));
    }
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let paths: Vec<PathBuf> = lines.map(|line| folder.join(line)).collect();
    let mut seen = HashSet::new();
    if let Some(twice) = paths.iter().find(|path| !seen.insert(*path)) {
        return Err(wrong(FileListError::NamedTwice { path: twice.shown() }));
    }
    match paths.is_empty() {
        true => Err(wrong(FileListError::Empty)),
        false => Ok(paths),
    }
}

/// Returns the specification of a stack with absolute paths, which mean the same in any directory.
///
/// # Errors
/// When the current directory is unknown.
pub fn absolute_spec(spec: &str) -> io::Result<String> {
    let text = |path: &Path| Ok(absolute(path)?.to_string_lossy().into_owned());
    match list_file(spec) {
        Some(list) => Ok(format!("{LIST}{}", text(list)?)),
        None => text(Path::new(spec)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_list_names_files_in_order() {
        let folder = tempfile::TempDir::new().unwrap();
        let list = folder.path().join("names.txt");
        let spec = format!("list {}", list.display());
        let read = |text: &str| {
            fs::write(&list, text).unwrap();
            listed(&spec, "--projections").map_err(|e| e.to_string())
        };
        let paths = |names: &[&str]| names.iter().map(|name| folder.path().join(name)).collect::<Vec<_>>();
        assert_eq!(read("# all\nb 2.tif\r\n\na.tif\n/x/c.tif\n").unwrap(), paths(&["b 2.tif", "a.tif", "/x/c.tif"]));
        for (text, word) in [("", "no file"), ("# only\n", "no file"), ("a\nb\na\n", "twice")] {
            let error = read(text).unwrap_err();
            assert!(error.contains(word) && error.contains("names.txt"), "{error}");
        }
        assert_eq!(list_file(&spec), Some(list.as_path()));
        assert_eq!(absolute_spec(&spec).unwrap(), spec);
        assert_eq!(absolute_spec("/a/b*.tif").unwrap(), "/a/b*.tif");
        assert_eq!((list_file("list"), list_file("list "), list_file("listing x")), (None, None, None));
    }
}

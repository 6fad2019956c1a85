//! Files that a glob matches.

use super::errors::FrameGlobError;
use crate::error::Result;
use crate::source::files::{InputFileError, bad};
use glob::{MatchOptions, Pattern};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Returns the files that a glob matches, in alphabetical order. Existing directories at the beginning of the glob are
/// taken literally, even if their names contain brackets.
pub fn matching(spec: &str, flag: &str) -> Result<Vec<PathBuf>> {
    let wrong = |error| FrameGlobError::Malformed { flag: flag.into(), spec: spec.into(), error };
    let (literal, rest) = literal_folder(spec);
    let parts: Vec<&str> = rest.split('/').collect();
    let deep = parts.iter().position(|part| *part == "**");
    let begin = Pattern::escape(&literal.to_string_lossy());
    let joined = |parts: &[&str]| match (begin.as_str(), parts.is_empty()) {
        ("", _) => parts.join("/"),
        (begin, true) => begin.to_owned(),
        (begin, false) => format!("{}/{}", begin.trim_end_matches('/'), parts.join("/")),
    };
    let paths = |pattern: &str| -> Result<Vec<PathBuf>> {
        let matches = glob::glob_with(pattern, OPTIONS).map_err(wrong)?;
        let path = |entry: glob::GlobResult| {
            entry.map_err(|e| {
                let path = e.path().to_owned();
                bad(flag, &path, InputFileError::Unreadable { error: e.into() })
            })
        };
        matches.map(path).collect()
    };
    let Some(deep) = deep else {
        let files = paths(&joined(&parts))?;
        return Ok(files.into_iter().filter(|path| !path.is_dir()).collect());
    };
    let below = Pattern::new(&parts[deep..].join("/")).map_err(wrong)?;
    let start = joined(&parts[..deep]);
    let folders = if start.is_empty() { vec![PathBuf::new()] } else { paths(&start)? };
    let mut files = Vec::new();
    for folder in folders {
        let matches = |path: &PathBuf| {
            let rest = path.strip_prefix(&folder).unwrap_or(path);
            below.matches_path_with(rest, OPTIONS)
        };
        files.extend(all_below(&folder).into_iter().filter(matches));
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// Splits a path into the directories at its beginning that literally exist, and the rest.
fn literal_folder(spec: &str) -> (PathBuf, &str) {
    let (mut folder, mut rest) = (PathBuf::new(), spec);
    if let Some(after) = spec.strip_prefix('/') {
        (folder, rest) = (PathBuf::from("/"), after);
    }
    while let Some((part, after)) = rest.split_once('/') {
        let next = folder.join(part);
        if !part.is_empty() && !next.is_dir() {
            break;
        }
        (folder, rest) = (next, after);
    }
    (folder, rest)
}

/// Lists all files below a directory. Files and directories whose names begin with a dot are skipped.
///
/// Each directory is listed once, however many links lead to it; links are followed last.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let here = |path: &Path| if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_owned() };
    let mut seen = HashSet::new();
    let (mut folders, mut links, mut files) = (vec![folder.to_owned()], Vec::new(), Vec::new());
    while let Some(next) = folders.pop().or_else(|| links.pop()) {
        let Ok(meta) = fs::metadata(here(&next)) else { continue };
        if !seen.insert((meta.dev(), meta.ino())) {
            continue;
        }
        // a directory that cannot be listed contributes no files
        let entries = fs::read_dir(here(&next)).into_iter().flatten().flatten();
        let mut entries: Vec<_> = entries.map(|entry| (next.join(entry.file_name()), entry.file_type())).collect();
        entries.sort_unstable_by(|a, b| b.0.cmp(&a.0));
        for (path, kind) in entries {
            let hidden = matches!(path.components().next_back(), Some(Component::Normal(name))
                if name.as_encoded_bytes().starts_with(b"."));
            match kind {
                _ if hidden => {}
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_symlink() && path.is_dir() => links.push(path),
                _ => files.push(path),
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn tree(files: &[&str]) -> TempDir {
        let root = TempDir::new().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    fn found(root: &TempDir, pattern: &str) -> Vec<String> {
        let spec = root.path().join(pattern);
        let files = matching(spec.to_str().unwrap(), "--projections").unwrap();
        files.iter().map(|path| path.strip_prefix(root.path()).unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn links_that_lead_back_end_the_search() {
        let root =
            tree(&["loop/p_0.tif", "loop/sub/p_1.tif", "loop/.hidden/p_2.tif", "loop/sub/note.txt", "other/p_3.tif"]);
        for link in ["loop/a", "loop/b", "loop/sub/c"] {
            symlink(root.path().join("loop"), root.path().join(link)).unwrap();
        }
        assert_eq!(found(&root, "loop/**/*.tif"), ["loop/p_0.tif", "loop/sub/p_1.tif"]);
        assert_eq!(found(&root, "**/*.tif"), ["loop/p_0.tif", "loop/sub/p_1.tif", "other/p_3.tif"]);
        assert_eq!(found(&root, "**/sub/*.tif"), ["loop/sub/p_1.tif"]);
        assert_eq!(found(&root, "l*/**/p_?.tif"), ["loop/p_0.tif", "loop/sub/p_1.tif"]);
        // a link to elsewhere is followed
        symlink(root.path().join("other"), root.path().join("loop/d")).unwrap();
        assert_eq!(found(&root, "loop/**/*.tif"), ["loop/d/p_3.tif", "loop/p_0.tif", "loop/sub/p_1.tif"]);
    }

    #[test]
    fn folders_with_brackets_are_taken_by_their_names() {
        let root = tree(&["scan [1]/p_0.tif", "scan [1]/p_1.tif", "a?/x/p_2.tif", "b1/p_3.tif", "b2/p_4.tif"]);
        assert_eq!(found(&root, "scan [1]/p_*.tif"), ["scan [1]/p_0.tif", "scan [1]/p_1.tif"]);
        assert_eq!(found(&root, "scan [1]/**/p_*.tif"), ["scan [1]/p_0.tif", "scan [1]/p_1.tif"]);
        assert_eq!(found(&root, "a?/*/p_2.tif"), ["a?/x/p_2.tif"]);
        assert_eq!(found(&root, "b[12]/p_*.tif"), ["b1/p_3.tif", "b2/p_4.tif"]);
        assert_eq!(found(&root, "b[!1]/p_*.tif"), ["b2/p_4.tif"]);
    }
}

//! Files that a path, a directory or a glob selects.

use super::errors::{FileSearchError, FileSearchWarning};
use super::glob::matching;
use crate::error::Result;
use crate::files::open_regular;
use crate::layout::hdf5::SIGNATURE;
use crate::remark::{Doubt, DoubtKind, Remark};
use crate::source::files::{InputFileError, bad, file_name, short_names};
use crate::source::list::{list_file, listed};
use crate::source::order::{Arranged, Gaps, NamesOf, arrange, natural};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Ending of the names of run records.
const RECORD_END: &str = "-run.toml";

/// File format with the extensions by which a directory is searched.
#[derive(Debug)]
pub struct FileKind {
    name: &'static str,
    /// Extensions in lower case; the first is the usual one.
    extensions: &'static [&'static str],
}

pub const TIFF: FileKind = FileKind { name: "TIFF", extensions: &["tif", "tiff"] };
pub const EDF: FileKind = FileKind { name: "EDF", extensions: &["edf"] };
pub const XRM: FileKind = FileKind { name: "XRM", extensions: &["xrm", "txrm"] };

impl FileKind {
    /// Reports whether a file has an extension of the format.
    pub fn has(&self, path: &Path) -> bool {
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        extension.is_some_and(|extension| self.extensions.iter().any(|&known| extension == known))
    }
}

/// Reports whether a path, a glob, the files of a list or those of a directory are of a format other than TIFF. A directory
/// that contains TIFF files is not.
pub fn are_of(spec: &str, kind: &FileKind) -> bool {
    if list_file(spec).is_some() {
        // errors in a list are reported when it is opened
        return listed(spec, "").is_ok_and(|paths| paths.iter().all(|path| kind.has(path)));
    }
    let Ok(entries) = fs::read_dir(spec) else { return kind.has(Path::new(spec)) };
    let mut found = false;
    for entry in entries.flatten() {
        if TIFF.has(&entry.path()) {
            return false;
        }
        found |= kind.has(&entry.path());
    }
    found
}

/// Returns the files of a format that `spec` selects, in the order of the numbers in their names; `by` selects one of
/// several.
pub fn find(
    spec: &str,
    flag: &str,
    kind: &FileKind,
    by: Option<usize>,
    remarks: &mut Vec<Remark>,
) -> Result<Vec<PathBuf>> {
    let path = Path::new(spec);
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => find_in_directory(path, flag, kind, by, remarks),
        Ok(meta) if meta.is_file() && starts_as_hdf5(path) => Err(bad(flag, path, FileSearchError::Hdf5)),
        Ok(meta) if meta.is_file() => Ok(vec![path.to_owned()]),
        Ok(_) => Err(bad(flag, path, FileSearchError::NotAFile)),
        Err(_) if list_file(spec).is_some() => listed(spec, flag),
        Err(_) if spec.contains(['*', '?', '[']) => {
            let files = matching(spec, flag)?;
            if files.is_empty() {
                return Err(bad(flag, path, FileSearchError::NothingMatches));
            }
            let names = short_names(&files);
            in_order(files, &names, NamesOf { field: is_field(flag), by, glob: true }, path, flag, remarks)
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Err(bad(flag, path, FileSearchError::Missing)),
        Err(error) => Err(bad(flag, path, InputFileError::Unreadable { error })),
    }
}

/// Refuses a file that is compressed as a whole.
pub fn refuse_archive(file: &File) -> Result<(), FileSearchError> {
    let mut start = [0; 2];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) if start == [0x1f, 0x8b] => Err(FileSearchError::Gzip),
        Ok(()) if start == *b"PK" => Err(FileSearchError::Zip),
        _ => Ok(()),
    }
}

/// Reports whether a file has the extension of a compression program.
fn is_compressed(name: &str) -> bool {
    [".gz", ".bz2", ".xz", ".zst"].iter().any(|extension| name.to_ascii_lowercase().ends_with(extension))
}

/// Reports whether a file starts with the signature of an HDF5 file.
fn starts_as_hdf5(path: &Path) -> bool {
    let mut start = [0; 8];
    open_regular(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == SIGNATURE
}

/// Returns the files that exist so far, in any order; none if they cannot be listed.
pub fn present(spec: &str, flag: &str, kind: &FileKind) -> Vec<PathBuf> {
    let path = Path::new(spec);
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => list_directory(path, flag, kind).map(|listed| listed.files).unwrap_or_default(),
        Ok(_) => vec![path.to_owned()],
        Err(_) if list_file(spec).is_some() => listed(spec, flag).unwrap_or_default(),
        Err(_) => matching(spec, flag).unwrap_or_default(),
    }
}

/// Puts files that `path` selects in the order of the numbers in `names`, which are their names.
fn in_order(
    files: Vec<PathBuf>,
    names: &[String],
    of: NamesOf,
    path: &Path,
    flag: &str,
    remarks: &mut Vec<Remark>,
) -> Result<Vec<PathBuf>> {
    let Arranged { order, note, gaps } = arrange(names, of).map_err(|e| bad(flag, path, e))?;
    remarks.extend(note.map(Remark::note));
    remarks.extend(gaps.map(|gaps| missing(gaps, flag)));
    Ok(order.into_iter().map(|index| files[index].clone()).collect())
}

/// Returns a remark about numbers that no file has. It is a doubt for projections, whose angles follow the files.
fn missing(gaps: Gaps, flag: &str) -> Remark {
    match gaps {
        Gaps::Everywhere => {
            Remark::note("the numbers in the file names are not consecutive; files are used in their order")
        }
        Gaps::Some { numbers, count } if flag == "--sinograms" => Remark::note(format!(
            "no file with number {numbers} ({count} missing); existing files are treated as consecutive"
        )),
        Gaps::Some { numbers, count } => {
            let warning = FileSearchWarning::MissingNumbers { flag: flag.into(), numbers, count };
            Remark::from(Doubt::of(DoubtKind::MissingFiles, &warning))
        }
    }
}

/// Files of a format in a directory, and the names of its other files.
struct Listed {
    files: Vec<PathBuf>,
    others: Vec<String>,
}

fn list_directory(directory: &Path, flag: &str, kind: &FileKind) -> Result<Listed> {
    let cannot = |error| bad(flag, directory, FileSearchError::Unlisted { error });
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = file_name(&path);
        if name.starts_with('.') || name.ends_with(RECORD_END) || path.is_dir() {
            continue; // hidden files are unfinished or belong to the system, a record describes slices beside it
        }
        if kind.has(&path) {
            files.push(path);
        } else {
            others.push(name);
        }
    }
    Ok(Listed { files, others })
}

fn find_in_directory(
    directory: &Path,
    flag: &str,
    kind: &FileKind,
    by: Option<usize>,
    remarks: &mut Vec<Remark>,
) -> Result<Vec<PathBuf>> {
    let Listed { files, mut others } = list_directory(directory, flag, kind)?;
    others.sort_by(|a, b| natural(a, b));
    let first = |names: &[String]| names[..names.len().min(3)].join(", ") + if names.len() > 3 { ", .." } else { "" };
    if files.is_empty() {
        if let Some(compressed) = others.iter().find(|name| is_compressed(name)) {
            return Err(bad(flag, directory, FileSearchError::CompressedFiles { name: compressed.clone() }));
        }
        let FileKind { name: kind, extensions } = *kind;
        let names = extensions.iter().map(|extension| format!("*.{extension}")).collect::<Vec<_>>().join(" or ");
        let why = match others.is_empty() {
            true => FileSearchError::EmptyDirectory { kind, names },
            false => FileSearchError::OtherFiles { kind, names, found: first(&others) },
        };
        return Err(bad(flag, directory, why));
    }
    // who opens projections looks at logs of scanners
    others.retain(|name| !is_log(Path::new(name)));
    if !others.is_empty() {
        let noun = if others.len() == 1 { "file that is" } else { "files that are" };
        let (count, kind, list) = (others.len(), kind.name, first(&others));
        remarks.push(Remark::note(format!("ignored {count} {noun} not {kind}: {list}")));
    }
    let names: Vec<String> = files.iter().map(|path| file_name(path)).collect();
    in_order(files, &names, NamesOf { field: is_field(flag), by, glob: false }, directory, flag, remarks)
}

/// Reports whether a file is named like the log of a scanner.
pub fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("log"))
}

/// Reports whether a flag names frames whose order does not matter.
fn is_field(flag: &str) -> bool {
    matches!(flag, "--flats" | "--flats2" | "--darks")
}

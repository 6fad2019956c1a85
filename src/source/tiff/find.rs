//! The files that a path, a directory or a glob selects.

use crate::error::{Error, Result};
use crate::remark::Remark;
use crate::source::files::{FileResult, bad, file_name};
use crate::source::order::{check_names, natural};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How names of records of runs end.
const RECORD_END: &str = "-run.toml";

/// A format by which a directory is searched.
#[derive(Debug)]
pub struct FileKind {
    name: &'static str,
    /// In small letters; the first is the usual one.
    extensions: &'static [&'static str],
}

pub const TIFF: FileKind = FileKind { name: "TIFF", extensions: &["tif", "tiff"] };
pub const EDF: FileKind = FileKind { name: "EDF", extensions: &["edf"] };

impl FileKind {
    /// Whether a file has an extension of the format.
    pub fn has(&self, path: &Path) -> bool {
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        extension.is_some_and(|extension| self.extensions.iter().any(|&known| extension == known))
    }
}

/// The files of a format that `spec` selects, in natural order.
pub fn find(spec: &str, flag: &str, kind: &FileKind, remarks: &mut Vec<Remark>) -> Result<Vec<PathBuf>> {
    let path = Path::new(spec);
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => find_in_directory(path, flag, kind, remarks),
        Ok(meta) if meta.is_file() && starts_as_hdf5(path) => {
            Err(bad(flag, path, "is an HDF5 file; give it with --hdf5, which reads projections, fields and angles"))
        }
        Ok(meta) if meta.is_file() => Ok(vec![path.to_owned()]),
        Ok(_) => Err(bad(flag, path, "is neither a file nor a directory; expected a TIFF or a directory of TIFFs")),
        Err(_) if spec.contains(['*', '?', '[']) => find_by_glob(spec, flag),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(bad(flag, path, "does not exist; expected a directory, a glob or a TIFF file"))
        }
        Err(e) => Err(bad(flag, path, format!("cannot be read: {e}; check the path and the permissions"))),
    }
}

/// Refuses a file that is compressed as a whole.
pub fn refuse_archive(file: &File) -> FileResult<()> {
    let mut start = [0; 2];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) if start == [0x1f, 0x8b] => {
            Err("is compressed with gzip; decompress it first, for example with gunzip".into())
        }
        Ok(()) if start == *b"PK" => {
            Err("is a ZIP archive; decompress it first, for example with unzip, and name what was in it".into())
        }
        _ => Ok(()),
    }
}

/// Whether a file has the extension of a compressor.
fn is_compressed(name: &str) -> bool {
    [".gz", ".bz2", ".xz", ".zst"].iter().any(|extension| name.to_ascii_lowercase().ends_with(extension))
}

/// Whether a file starts with the signature of an HDF5 file.
fn starts_as_hdf5(path: &Path) -> bool {
    let mut start = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"\x89HDF\r\n\x1a\n"
}

fn find_by_glob(spec: &str, flag: &str) -> Result<Vec<PathBuf>> {
    let options =
        glob::MatchOptions { require_literal_leading_dot: true, require_literal_separator: true, ..Default::default() };
    let matches = glob::glob_with(spec, options)
        .map_err(|e| Error::usage(format!("{flag} {spec}: not a glob: {e}; write for example 'scan/p_*.tif'")))?;
    let mut files = Vec::new();
    for entry in matches {
        let path = entry.map_err(|e| {
            bad(flag, e.path(), format!("cannot be read: {}; check the path and the permissions", e.error()))
        })?;
        if !path.is_dir() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(bad(
            flag,
            Path::new(spec),
            "no file matches this glob; check the path, and put the glob in quotes",
        ));
    }
    files.sort_by(|a, b| natural(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(files)
}

fn find_in_directory(directory: &Path, flag: &str, kind: &FileKind, remarks: &mut Vec<Remark>) -> Result<Vec<PathBuf>> {
    let cannot = |e| bad(flag, directory, format!("cannot be listed: {e}; check the permissions of the directory"));
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = file_name(&path);
        if name.starts_with('.') || name.ends_with(RECORD_END) || path.is_dir() {
            continue; // hidden files are unfinished or belong to the system, a record describes slices beside it
        }
        if kind.has(&path) {
            files.push((name, path));
        } else {
            others.push(name);
        }
    }
    others.sort_by(|a, b| natural(a, b));
    let dots = if others.len() > 3 { ", .." } else { "" };
    let list = others[..others.len().min(3)].join(", ") + dots;
    if files.is_empty() {
        let found = if others.is_empty() { String::new() } else { format!(" (found {list})") };
        if let Some(compressed) = others.iter().find(|name| is_compressed(name)) {
            return Err(bad(
                flag,
                directory,
                format!("contains compressed files such as {compressed}; decompress them first"),
            ));
        }
        let FileKind { name, extensions } = kind;
        let names = extensions.iter().map(|extension| format!("*.{extension}")).collect::<Vec<_>>().join(" or ");
        return Err(bad(flag, directory, format!("contains no {name}, expected files named {names}{found}")));
    }
    if !others.is_empty() {
        let noun = if others.len() == 1 { "file that is" } else { "files that are" };
        remarks.push(Remark::note(format!("ignored {} {noun} not {}: {list}", others.len(), kind.name)));
    }
    files.sort_by(|a, b| natural(&a.0, &b.0));
    let (names, files): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    remarks.extend(check_names(&names).map_err(|e| bad(flag, directory, e))?.map(Remark::Note));
    Ok(files)
}

//! Files that appear complete or not at all.

use super::errors::FileNameError;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Number of hexadecimal digits at the end of temporary names.
const DIGITS: usize = 16;

/// File with a temporary name, `.NAME.part-RANDOM` next to its final one.
///
/// The file gets its final name when it is finished, and is removed when it is dropped before.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl AtomicFile {
    /// Creates the temporary file of `path`, which must not exist yet. Does not make directories.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] when `path` does not end in a name, and those of the system.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        let temporary = temporary_path(path)?;
        let file = File::options().write(true).create_new(true).open(&temporary)?;
        Ok(AtomicFile { file, temporary, path: path.to_owned() })
    }

    /// Returns the file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the final path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file to its final name, replacing an existing one.
    ///
    /// # Errors
    /// Errors of the system; the temporary file is then removed.
    pub fn finish(self) -> Result<()> {
        fs::rename(&self.temporary, &self.path) // dropping then finds no temporary file
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary); // nothing more can be done
    }
}

/// Returns a path next to `path`, `.NAME.part-RANDOM`, that is not in use and that nobody can guess.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when `path` does not end in a name.
pub fn temporary_path(path: &Path) -> Result<PathBuf> {
    let not_a_name = || Error::new(ErrorKind::InvalidInput, FileNameError::NoName);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or_else(not_a_name)?);
    name.push(format!(".part-{:0DIGITS$x}", rand::random::<u64>()));
    Ok(path.with_file_name(name))
}

/// Writes a file that appears complete or not at all, replacing an existing one. Symbolic links are followed; devices
/// and pipes are written to directly.
///
/// # Errors
/// Errors of the system.
pub fn write_atomically(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return fs::write(path, content);
    }
    let followed = if path.is_symlink() { path.canonicalize().ok() } else { None };
    let file = AtomicFile::create(followed.as_deref().unwrap_or(path))?;
    file.file().write_all(content.as_ref())?;
    file.finish()
}

/// Returns the final name of a temporary file; `None` for other files.
pub fn name_of_temporary(name: &str) -> Option<&str> {
    let (name, random) = name.strip_prefix('.')?.rsplit_once(".part-")?;
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (random.len() == DIGITS && random.bytes().all(is_digit)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn complete_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        fs::write(&path, "old").unwrap();
        let file = AtomicFile::create(&path).unwrap();
        file.file().write_all(b"half").unwrap();
        let hidden = names(directory.path()).into_iter().find(|name| name.starts_with('.')).unwrap();
        assert_eq!(name_of_temporary(&hidden), Some("a.txt"));
        drop(file);
        assert_eq!((names(directory.path()), fs::read_to_string(&path).unwrap()), (vec!["a.txt".into()], "old".into()));
        write_atomically(&path, "new").unwrap();
        assert_eq!((names(directory.path()), fs::read_to_string(&path).unwrap()), (vec!["a.txt".into()], "new".into()));
        assert_eq!(AtomicFile::create(Path::new("..")).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn links_and_devices_stay() {
        let directory = tempfile::tempdir().unwrap();
        let [path, link] = ["a.txt", "link"].map(|name| directory.path().join(name));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_atomically(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        write_atomically(Path::new("/dev/null"), "nothing").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn names_of_temporaries() {
        assert_eq!(name_of_temporary(".a.tif.part-0123456789abcdef"), Some("a.tif"));
        for other in [
            "a.tif.part-0123456789abcdef",
            ".a.tif.part-0123456789abcde",
            ".a.tif.part-0123456789abcdeg",
            ".a.tif",
            ".part-0123456789abcdef",
        ] {
            assert_eq!(name_of_temporary(other), None, "{other}");
        }
        let path = Path::new("a.tif");
        assert_ne!(temporary_path(path).unwrap(), temporary_path(path).unwrap());
    }
}

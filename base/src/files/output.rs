//! Files next to slices: pictures, reports, run files and all others that a flag names. Every such file is written
//! here.
//!
//! An existing file is replaced only if the program wrote it, which a mark in it shows, or with `--overwrite`; a file
//! of the input is never replaced.

use super::atomic::write_atomically;
use super::mark::OutputKind;
use crate::error::{Error, Result, messages};
use crate::visible::Shown;
use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

messages! {
    /// Errors of the name of a file beside slices.
    enum OutputNameError: Usage {
        Ending { flag: String, path: String, endings: String } =>
            "{flag}: {path} must end in {endings}"; "choose such a name",
    }
}

messages! {
    /// Why a file beside slices may not be written.
    enum OutputFileError: Output {
        NoDirectory { flag: String, directory: String } =>
            "{flag}: there is no directory {directory}"; "make it, or choose another path",
        Input { flag: String } =>
            "{flag}: is a file of the input, which is never replaced"; "choose another file",
        Directory { flag: String } => "{flag}: is a directory"; "choose the name of a file",
        Foreign { flag: String } => "{flag}: exists, and was not written by fbp"; "choose another file",
        /// A file that `--overwrite` would replace.
        Kept { flag: String } =>
            "{flag}: exists, and was not written by fbp"; "choose another file, or add --overwrite to replace it",
    }
}

/// Files and directories that a run reads, by device and inode, so that another name or a link cannot hide one.
#[derive(Clone, Debug, Default)]
pub struct InputSet(Arc<HashSet<(u64, u64)>>);

impl InputSet {
    /// Collects the files and directories at `paths`; paths that do not exist are left out.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a Path>) -> InputSet {
        let found = paths.into_iter().filter_map(|path| fs::metadata(path).ok());
        InputSet(Arc::new(found.map(|meta| identity(&meta)).collect()))
    }

    /// Reports whether a path leads to one of the files or directories.
    pub fn contain(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|meta| self.0.contains(&identity(&meta)))
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// File that is named by a flag and may be written.
#[derive(Clone, Debug)]
pub struct OutputFile {
    flag: String,
    path: PathBuf,
    kind: OutputKind,
    inputs: InputSet,
    overwrite: Option<bool>,
}

impl OutputFile {
    /// Checks that the file may be written: the ending of its name, its directory, and an existing file. `overwrite`
    /// tells whether `--overwrite` was given; it is `None` if the command has no such flag.
    ///
    /// # Errors
    /// [`Error::Usage`] for a wrong ending, [`Error::Output`] for everything else.
    pub fn new(
        flag: &str,
        path: &Path,
        kind: OutputKind,
        inputs: &InputSet,
        overwrite: Option<bool>,
    ) -> Result<OutputFile> {
        let file = OutputFile { flag: flag.to_owned(), path: path.to_owned(), kind, inputs: inputs.clone(), overwrite };
        if !kind.has(path) {
            let (flag, path, endings) = (flag.to_owned(), path.shown(), kind.endings());
            return Err(OutputNameError::Ending { flag, path, endings }.into());
        }
        let parent = directory(path);
        if !parent.is_dir() {
            let (flag, directory) = (flag.to_owned(), parent.shown());
            return Err(Error::output(path, OutputFileError::NoDirectory { flag, directory }));
        }
        file.check()?;
        Ok(file)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn flag(&self) -> &str {
        &self.flag
    }

    /// Returns another file next to this one that the same flag stands for.
    ///
    /// # Errors
    /// The errors of [`OutputFile::new`].
    pub fn beside(&self, path: &Path, kind: OutputKind) -> Result<OutputFile> {
        OutputFile::new(&self.flag, path, kind, &self.inputs, self.overwrite)
    }

    /// Checks that an existing file may be replaced.
    fn check(&self) -> Result<()> {
        let Ok(meta) = fs::metadata(&self.path) else { return Ok(()) };
        let refused = |error: OutputFileError| Err(Error::output(&self.path, error));
        let flag = self.flag.clone();
        if self.inputs.contain(&self.path) {
            return refused(OutputFileError::Input { flag });
        }
        if meta.is_dir() {
            return refused(OutputFileError::Directory { flag });
        }
        // devices, pipes and empty files contain nothing that could be lost
        if !meta.is_file() || meta.len() == 0 || self.overwrite == Some(true) || self.kind.wrote(&self.path) {
            return Ok(());
        }
        match self.overwrite {
            None => refused(OutputFileError::Foreign { flag }),
            Some(_) => refused(OutputFileError::Kept { flag }),
        }
    }

    /// Writes the file, which appears complete or not at all. Links are followed.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written, or when a file that may not be replaced exists by now.
    pub fn write(&self, content: impl AsRef<[u8]>) -> Result<()> {
        if !self.kind.is_marked(content.as_ref()) {
            return Err(Error::Internal(format!("{} has no mark of the program in it", self.flag)));
        }
        self.check()?;
        write_atomically(&self.path, content).map_err(|e| Error::unwritable(&self.path, &self.flag, e))
    }

    /// Opens the file for appending.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be opened.
    pub fn append(&self) -> Result<File> {
        self.check()?;
        let failed = |e| Error::unwritable(&self.path, &self.flag, e);
        let mut file = File::options().create(true).append(true).open(&self.path).map_err(failed)?;
        if file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
            writeln!(file, "{}", super::mark::LOG).map_err(failed)?;
        }
        Ok(file)
    }
}

/// Returns the directory that contains a file.
pub fn directory(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn refused(file: Result<OutputFile>) -> (u8, String) {
        let error = file.and_then(|file| file.write(b"{\"software\": \"fbp 1\"}")).unwrap_err();
        (error.exit_code(), error.to_string())
    }

    #[test]
    fn inputs_are_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        // even if the program wrote it
        fs::write(path("input.json"), "{\"software\": \"fbp 1\"}").unwrap();
        symlink(path("input.json"), path("link.json")).unwrap();
        fs::hard_link(path("input.json"), path("hard.json")).unwrap();
        let inputs = InputSet::new([path("input.json").as_path(), &path("gone.tif")]);
        for name in ["input.json", "link.json", "hard.json"] {
            for overwrite in [false, true] {
                let (code, text) =
                    refused(OutputFile::new("--report", &path(name), OutputKind::Json, &inputs, Some(overwrite)));
                assert!(code == 5 && text.contains("--report: is a file of the input"), "{name}: {text}");
            }
        }
    }

    #[test]
    fn what_others_wrote_is_replaced_only_when_that_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.json");
        let none = InputSet::default();
        let open = |overwrite| OutputFile::new("--report", &path, OutputKind::Json, &none, Some(overwrite));
        let own = "{\"software\": \"fbp 1\"}";
        open(false).unwrap().write(own).unwrap();
        open(false).unwrap().write(own).unwrap();
        let waiting = open(false).unwrap();
        fs::write(&path, "{\"software\": \"another\"}").unwrap();
        let (code, text) = refused(open(false));
        assert!(code == 5 && text.contains("was not written by fbp"), "{text}");
        // a file that was created during the run
        assert_eq!(waiting.write(own).unwrap_err().exit_code(), 5);
        open(true).unwrap().write(own).unwrap();
        fs::write(&path, "").unwrap();
        open(false).unwrap().write(own).unwrap();
        assert!(matches!(open(true).unwrap().write("{}"), Err(Error::Internal(_))));
    }

    #[test]
    fn places_are_checked_first() {
        let directory = tempfile::tempdir().unwrap();
        let none = InputSet::default();
        let new = |name: &str, kind| OutputFile::new("--preview", &directory.path().join(name), kind, &none, None);
        assert_eq!(new("x.tif", OutputKind::Png).unwrap_err().exit_code(), 2);
        assert_eq!(new("no/x.png", OutputKind::Png).unwrap_err().exit_code(), 5);
        fs::create_dir(directory.path().join("x.png")).unwrap();
        assert_eq!(new("x.png", OutputKind::Png).unwrap_err().exit_code(), 5);
        new("y.PNG", OutputKind::Png).unwrap();
        OutputFile::new("--log", Path::new("/dev/null"), OutputKind::Log, &none, None).unwrap().append().unwrap();
    }

    #[test]
    fn logs_grow() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.log");
        let none = InputSet::default();
        let open = || OutputFile::new("--log", &path, OutputKind::Log, &none, None);
        for line in ["one", "two"] {
            writeln!(open().unwrap().append().unwrap(), "{line}").unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["one", "two"]);
        fs::write(&path, "0.0\n0.5\n").unwrap();
        assert_eq!(open().unwrap_err().exit_code(), 5);
    }
}

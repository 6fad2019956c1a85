//! Opening files for reading that cannot make a program wait for ever.

use rustix::fs::OFlags;
use std::fs::{File, FileType, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading. Queues, devices, sockets and directories are refused without waiting for them.
///
/// # Errors
/// Those of the system, and one that says what the file is.
pub fn open_regular(path: &Path) -> Result<File> {
    // not even opened if it is there as something else, as opening a device may have an effect
    refuse_other(std::fs::metadata(path)?.file_type())?;
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    refuse_other(file.metadata()?.file_type())?;
    Ok(file)
}

/// Opens a file that is read once: a regular file, a pipe that the shell made (`/dev/fd/63`), or standard input (`-`).
///
/// # Errors
/// Those of [`open_regular`].
pub fn open_once(path: &Path) -> Result<File> {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let is_open = ["/dev/fd", "/proc/self/fd"].iter().any(|directory| path.parent() == Some(Path::new(directory)));
    if !is_open && path != Path::new("/dev/stdin") {
        return open_regular(path);
    }
    let file = File::open(path)?;
    match file.metadata()?.file_type() {
        kind if kind.is_dir() => Err(other("a directory")),
        _ => Ok(file),
    }
}

fn refuse_other(kind: FileType) -> Result<()> {
    match kind {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(other("a directory")),
        kind if kind.is_fifo() => Err(other("a queue (FIFO)")),
        kind if kind.is_socket() => Err(other("a socket")),
        _ => Err(other("a device")),
    }
}

fn other(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("it is {what}, expected a regular file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        mknodat(CWD, at("queue"), Kind::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink(at("queue"), at("link")).unwrap();
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("good")).unwrap();
        for (path, what) in [
            (at("queue"), "FIFO"),
            (at("link"), "FIFO"),
            (at("socket"), "socket"),
            ("/dev/zero".into(), "device"),
            (folder.path().to_owned(), "directory"),
        ] {
            for open in [open_regular, open_once] {
                let error = open(&path).unwrap_err().to_string();
                assert!(error.contains(what) && error.contains("regular file"), "{error}");
            }
        }
        for name in ["file", "good"] {
            let mut text = String::new();
            open_regular(&at(name)).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
        assert_eq!(open_regular(&at("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_of_the_shell_is_read_once() {
        use std::os::fd::AsRawFd;
        use std::process::{Command, Stdio};
        let mut printing = Command::new("printf").arg("1\\n2\\n").stdout(Stdio::piped()).spawn().unwrap();
        let read = printing.stdout.take().unwrap();
        let path = format!("/dev/fd/{}", read.as_raw_fd());
        let mut text = String::new();
        open_once(Path::new(&path)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "1\n2\n");
        assert!(open_regular(Path::new(&path)).is_err());
        printing.wait().unwrap();
    }
}

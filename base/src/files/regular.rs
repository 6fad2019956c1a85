//! Opening of files for reading such that the program never waits forever.

use super::errors::FileKindError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{File, FileType, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Number of bytes that are read at once of a file that is opened once.
const PIECE: usize = 64 << 10;
/// Interval in nanoseconds at which a wait checks whether to stop.
const PAUSE: i64 = 100_000_000;

/// Opens a regular file for reading. Named pipes, devices, sockets and directories are refused without waiting for
/// them.
///
/// # Errors
/// Errors of the system, and one that tells what kind of file it is.
pub fn open_regular(path: &Path) -> Result<File> {
    // files of other kinds are not even opened, as opening a device may have an effect
    refuse_other(std::fs::metadata(path)?.file_type())?;
    let file = open_at_once(path)?;
    refuse_other(file.metadata()?.file_type())?;
    Ok(file)
}

/// Returns the kind of a file that is neither a regular file nor a directory, and which the program might wait for
/// forever.
pub fn special_file(path: &Path) -> Option<&'static str> {
    let kind = std::fs::metadata(path).ok()?.file_type();
    what_else(kind).filter(|_| !kind.is_dir())
}

fn open_at_once(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}

/// Reads a file that is opened once: a regular file, a pipe of the shell (`/dev/fd/63`), or standard input (`-`).
///
/// Of a file longer than `most` bytes, only `most + 1` bytes are read. The end of a pipe is waited for until `stop` is
/// set, in which case the result is `None`.
///
/// # Errors
/// The errors of [`open_regular`], and of reading.
pub fn read_once(path: &Path, most: usize, stop: &AtomicBool) -> Result<Option<Vec<u8>>> {
    let mut file = open_once(path)?;
    let mut bytes = Vec::new();
    while bytes.len() <= most {
        if stop.load(Relaxed) {
            return Ok(None);
        }
        let start = bytes.len();
        bytes.resize(start + PIECE.min(most + 1 - start), 0);
        let read = file.read(&mut bytes[start..]);
        bytes.truncate(start + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => wait_for(&file)?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(Some(bytes))
}

/// Waits until data can be read, but not longer than [`PAUSE`].
fn wait_for(file: &File) -> Result<()> {
    let pause = Timespec { tv_sec: 0, tv_nsec: PAUSE };
    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&pause)) {
        Err(e) if e != rustix::io::Errno::INTR => Err(e.into()),
        _ => Ok(()),
    }
}

/// Opens a file that is opened once, for non-blocking reading.
fn open_once(path: &Path) -> Result<File> {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let is_open = ["/dev/fd", "/proc/self/fd"].iter().any(|directory| path.parent() == Some(Path::new(directory)));
    if !is_open && path != Path::new("/dev/stdin") {
        return open_regular(path);
    }
    let file = open_at_once(path)?;
    match file.metadata()?.file_type() {
        kind if kind.is_dir() => Err(other("a directory")),
        _ => Ok(file),
    }
}

fn refuse_other(kind: FileType) -> Result<()> {
    what_else(kind).map_or(Ok(()), |what| Err(other(what)))
}

/// Returns the kind of a file in words, unless it is a regular file.
fn what_else(kind: FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a directory"),
        kind if kind.is_fifo() => Some("a queue (FIFO)"),
        kind if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

fn other(kind: &'static str) -> Error {
    Error::new(ErrorKind::InvalidInput, FileKindError::NotRegular { kind })
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
        for (name, special) in [("queue", true), ("link", true), ("socket", true), ("good", false), ("none", false)] {
            assert_eq!(special_file(&at(name)).is_some(), special, "{name}");
        }
        assert_eq!(special_file(folder.path()), None);
    }

    #[test]
    fn no_more_than_asked_for_is_read_and_no_longer_than_wanted() {
        use std::os::fd::AsRawFd;
        use std::process::{Command, Stdio};
        let mut waiting = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let path = format!("/dev/fd/{}", waiting.stdout.as_ref().unwrap().as_raw_fd());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_once(Path::new(&path), 8, &stop));
            stop.store(true, Relaxed);
            assert_eq!(reader.join().unwrap().unwrap(), None);
        });
        waiting.wait().unwrap();
        let folder = tempfile::TempDir::new().unwrap();
        let (file, go_on) = (folder.path().join("file"), AtomicBool::new(false));
        std::fs::write(&file, [7; 3 * PIECE]).unwrap();
        for most in [0, 8, PIECE, 2 * PIECE + 1, 3 * PIECE, 4 * PIECE] {
            let length = (most + 1).min(3 * PIECE);
            assert_eq!(read_once(&file, most, &go_on).unwrap(), Some(vec![7; length]), "{most}");
        }
    }

    #[test]
    fn a_pipe_of_the_shell_is_read_once() {
        use std::os::fd::AsRawFd;
        use std::process::{Command, Stdio};
        let mut printing = Command::new("printf").arg("1\\n2\\n").stdout(Stdio::piped()).spawn().unwrap();
        let read = printing.stdout.take().unwrap();
        let path = format!("/dev/fd/{}", read.as_raw_fd());
        let go_on = AtomicBool::new(false);
        let bytes = read_once(Path::new(&path), 100, &go_on).unwrap();
        assert_eq!(bytes, Some(b"1\n2\n".to_vec()));
        assert!(open_regular(Path::new(&path)).is_err());
        printing.wait().unwrap();
    }
}

//! Advisory locks on hidden files next to an output, which decide who may write to it.
//!
//! A lock ends with its process, however that ends; the last holder removes the file. The text of the file tells others
//! who holds the lock.

use crate::error::{Error, Result, messages};
use crate::visible::Shown;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

messages! {
    /// Why an output cannot be locked.
    enum LockError: Output {
        Held { owner: String } =>
            "--output: {owner} is writing here"; "wait until it has ended, stop it, or choose another --output",
        NoPlace { file: String, error: io::Error } => "cannot write here ({file}): {error}"; "choose another --output",
        NotALock =>
            "is not a lock file of fbp, but a link or a device"; "remove it or choose another --output",
        Unlockable { error: Errno } => "cannot be locked: {error}"; "choose an --output on another file system",
        Unwritable { error: io::Error } =>
            "cannot be written: {error}"; "check space and permissions, or choose another --output",
    }
}

/// Time in which a process that shares the lock must obtain it: others may hold it exclusively for a moment before they
/// share it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest number of bytes of a file's text that are read.
const LONGEST: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_millis(20);

/// Lock that is held, and released when it is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
    /// False if the file system does not support locks.
    works: bool,
}

/// Mode in which a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// By one process alone.
    Exclusive,
    /// Together with other processes that share the output.
    Shared,
}

impl Lock {
    /// Takes the lock of an output; `owner` is the text shown to others.
    ///
    /// # Errors
    /// [`Error::Output`] when another process holds it in a conflicting mode, or the file cannot be written.
    pub fn take(path: &Path, mode: LockMode, owner: &str) -> Result<Lock> {
        let started = Instant::now();
        loop {
            let mut lock = Lock::open(path)?;
            // exclusively at first: then the text in the file is not that of a running process
            let taken = match lock.attempt(FlockOperation::NonBlockingLockExclusive)? {
                true => {
                    lock.write_owner(owner)?;
                    mode == LockMode::Exclusive || lock.attempt(FlockOperation::NonBlockingLockShared)?
                }
                false => mode == LockMode::Shared && lock.attempt(FlockOperation::NonBlockingLockShared)?,
            };
            if taken && lock.is_current() {
                return Ok(lock);
            }
            let over = match mode {
                // the previous holder has removed the file; the next attempt creates a new one
                LockMode::Exclusive => !taken,
                LockMode::Shared => started.elapsed() > LOCK_TIMEOUT,
            };
            if over {
                let other = lock.owner();
                let owner = if other.is_empty() { "another run".to_owned() } else { other };
                lock.works = false; // nothing to release
                return Err(Error::output(path.parent().unwrap_or(path), LockError::Held { owner }));
            }
            lock.works = false;
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits for a lock that is only held briefly.
    ///
    /// # Errors
    /// [`Error::Output`] when the file cannot be written.
    pub fn wait(path: &Path) -> Result<Lock> {
        loop {
            let mut lock = Lock::open(path)?;
            lock.attempt(FlockOperation::LockExclusive)?;
            if lock.is_current() {
                return Ok(lock);
            }
            lock.works = false;
        }
    }

    fn open(path: &Path) -> Result<Lock> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let file =
            options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32).open(path).map_err(|error| {
                Error::output(path.parent().unwrap_or(path), LockError::NoPlace { file: path.shown(), error })
            })?;
        // a link or a device in its place may lead to another user's file
        if !file.metadata().is_ok_and(|meta| meta.is_file() && meta.nlink() <= 1) {
            return Err(Error::output(path, LockError::NotALock));
        }
        Ok(Lock { path: path.to_owned(), file, works: true })
    }

    /// Tries to acquire the lock, and reports whether it did; always true if the file system does not support locks.
    fn attempt(&mut self, operation: FlockOperation) -> Result<bool> {
        loop {
            match flock(&self.file, operation) {
                Ok(()) => return Ok(true),
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    self.works = false;
                    return Ok(true);
                }
                Err(error) => return Err(Error::output(&self.path, LockError::Unlockable { error })),
            }
        }
    }

    /// Reports whether others who open the path get the same file.
    fn is_current(&self) -> bool {
        let here = self.file.metadata().map(|meta| (meta.dev(), meta.ino()));
        let there = fs::metadata(&self.path).map(|meta| (meta.dev(), meta.ino()));
        !self.works || matches!((here, there), (Ok(here), Ok(there)) if here == there)
    }

    /// Reports whether the file system supports locks; if not, others are not kept out.
    pub fn works(&self) -> bool {
        self.works
    }

    /// Replaces the text of the file.
    fn write_owner(&mut self, owner: &str) -> Result<()> {
        let written = self.file.set_len(0).and_then(|()| writeln!(self.file, "{owner}"));
        written.map_err(|error| Error::output(&self.path, LockError::Unwritable { error }))
    }

    /// Adds a line to the text of the file.
    pub fn add(&mut self, line: &str) -> Result<()> {
        let written = writeln!(self.file, "{line}");
        written.map_err(|error| Error::output(&self.path, LockError::Unwritable { error }))
    }

    /// Returns the lines of the file; none if they cannot be read.
    pub fn lines(&mut self) -> Vec<String> {
        let mut text = Vec::new();
        let read = self.file.rewind().and_then(|()| Read::take(&self.file, LONGEST).read_to_end(&mut text));
        read.map(|_| String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()).unwrap_or_default()
    }

    fn owner(&mut self) -> String {
        self.lines().join(", ")
    }

    /// Reports whether nobody else shares the lock; if so, it is exclusive from now on.
    pub fn is_last(&mut self) -> bool {
        let had = self.works && self.attempt(FlockOperation::NonBlockingLockExclusive).unwrap_or(false);
        had && self.works
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_last() {
            let _ = fs::remove_file(&self.path); // if it fails, a harmless empty file remains
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_or_several_together() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".lock");
        let alone = Lock::take(&path, LockMode::Exclusive, "the first").unwrap();
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            let error = Lock::take(&path, mode, "other").unwrap_err();
            assert!(error.to_string().contains("the first is writing here"), "{error}");
            assert_eq!(error.exit_code(), 5);
        }
        drop(alone);
        assert!(!path.exists());
        let mut one = Lock::take(&path, LockMode::Shared, "one").unwrap();
        let mut two = Lock::take(&path, LockMode::Shared, "two").unwrap();
        two.add("more").unwrap();
        assert_eq!(one.lines(), ["one", "more"]);
        let error = Lock::take(&path, LockMode::Exclusive, "other").unwrap_err();
        assert!(error.to_string().contains("one, more"), "{error}");
        assert!(!one.is_last());
        drop(two);
        assert!(one.is_last());
        drop(one);
        assert!(!path.exists());
    }

    #[test]
    fn links_and_devices_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim.txt");
        let [symbolic, hard, pipe] = ["symbolic", "hard", "pipe"].map(|name| directory.path().join(name));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &symbolic).unwrap();
        fs::hard_link(&victim, &hard).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for path in [symbolic, hard, pipe] {
            for taken in [Lock::take(&path, LockMode::Exclusive, "me"), Lock::wait(&path)] {
                assert_eq!(taken.unwrap_err().exit_code(), 5, "{}", path.display());
            }
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        }
    }

    #[test]
    fn what_the_dead_left_is_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".lock");
        fs::write(&path, "somebody\n").unwrap();
        let mut lock = Lock::take(&path, LockMode::Shared, "me").unwrap();
        assert_eq!(lock.lines(), ["me"]);
    }
}

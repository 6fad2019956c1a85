//! Built programs, and the directory that caches them between runs.
//!
//! A file holds a program's binary and the log of its build. Its name is a digest of everything that the build depends
//! on. A file that is damaged, or that the driver rejects, is written again; losing one only costs the time of a build.

use crate::digest::PartsDigest;
use crate::facts::DeviceFacts;
use crate::fault;
use crate::files::{cache_folder, is_own, make_private, name_of_temporary, write_atomically};
use opencl3::context::Context;
use opencl3::program::Program;
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A program built for one device, and the log of its compiler.
#[derive(Debug)]
pub struct BuiltProgram {
    pub(super) program: Program,
    pub(super) log: String,
}

impl BuiltProgram {
    /// Returns the binary of the program with the log; `None` if the driver gives none.
    fn stored(&self) -> Option<StoredProgram> {
        let binary = self.program.get_binaries().ok()?.into_iter().next().filter(|binary| !binary.is_empty())?;
        Some(StoredProgram { log: self.log.clone(), binary })
    }

    /// Builds a program from its binary; returns `None` if the driver refuses it, or finds no kernel `entry` in it.
    fn from_binary(context: &Context, options: &str, entry: &str, stored: StoredProgram) -> Option<BuiltProgram> {
        let program = Program::create_and_build_from_binary(context, &[&stored.binary], options).ok()?;
        let found = program.kernel_names().split(';').any(|name| name == entry);
        found.then_some(BuiltProgram { program, log: stored.log })
    }
}

/// A program to build.
pub(super) struct ProgramRequest<'a> {
    pub context: &'a Context,
    pub facts: &'a DeviceFacts,
    pub text: &'a str,
    pub options: &'a str,
    /// Name of a kernel of the program.
    pub entry: &'a str,
}

impl ProgramRequest<'_> {
    fn key(&self) -> ProgramKey {
        ProgramKey::new(self.facts, self.text, self.options)
    }
}

/// A digest of everything that a binary depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProgramKey(PartsDigest);

impl ProgramKey {
    fn new(facts: &DeviceFacts, text: &str, options: &str) -> ProgramKey {
        let version = env!("CARGO_PKG_VERSION");
        let device = [&facts.platform, &facts.name, &facts.architecture, &facts.driver, &facts.version];
        ProgramKey(PartsDigest::of(device.map(String::as_str).into_iter().chain([version, options, text])))
    }

    /// Returns the name of the file that holds the program.
    fn file_name(&self) -> String {
        format!("{}{SUFFIX}", self.0)
    }
}

/// Name of the folder of programs in the cache directory.
pub const PROGRAMS: &str = "programs";

const SUFFIX: &str = ".program";

/// First bytes of a file, with the version of its layout. The checksum of the rest, the length of the log, the log and
/// the binary follow.
const MAGIC: &[u8; 8] = b"fbp-prg1";
const CHECKSUM: usize = 32;
const LENGTH: usize = 8;

/// Content of a file: the log of a build and the binary of its program.
#[derive(Clone, Debug, PartialEq)]
struct StoredProgram {
    log: String,
    binary: Vec<u8>,
}

impl StoredProgram {
    fn encode(&self, key: &ProgramKey) -> Vec<u8> {
        let mut bytes = vec![0; MAGIC.len() + CHECKSUM];
        bytes.extend((self.log.len() as u64).to_le_bytes());
        bytes.extend(self.log.as_bytes());
        bytes.extend(&self.binary);
        let (head, rest) = bytes.split_at_mut(MAGIC.len() + CHECKSUM);
        head[..MAGIC.len()].copy_from_slice(MAGIC);
        head[MAGIC.len()..].copy_from_slice(&checksum(key, rest));
        bytes
    }

    /// Decodes the content of a file; returns `None` unless the bytes are those that [`StoredProgram::encode`] returned
    /// for the same key.
    fn decode(bytes: &[u8], key: &ProgramKey) -> Option<StoredProgram> {
        let (sum, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(CHECKSUM)?;
        if sum != checksum(key, rest) {
            return None;
        }
        let (length, rest) = rest.split_first_chunk::<LENGTH>()?;
        let (log, binary) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        Some(StoredProgram { log: String::from_utf8(log.to_vec()).ok()?, binary: binary.to_vec() })
    }
}

/// Returns the checksum of the content and the key, so that a file under the name of another key is not valid.
fn checksum(key: &ProgramKey, content: &[u8]) -> [u8; CHECKSUM] {
    PartsDigest::of([&key.0.0[..], content]).0
}

/// The folder with programs. Several processes may use it at once: files appear complete or not at all, and a program
/// whose file another process removes is built again.
#[derive(Clone, Debug)]
pub struct ProgramStore {
    directory: PathBuf,
    most_files: usize,
    most_bytes: u64,
}

impl ProgramStore {
    /// Returns the store `programs` in the cache directory; `None` if there is no cache directory, or others may write
    /// to it.
    pub fn in_cache() -> Option<ProgramStore> {
        let store = ProgramStore::within(cache_folder(PROGRAMS)?);
        (!fault::stores_no_programs()).then_some(store)
    }

    /// Returns a store in a folder, which is created when it is needed.
    pub fn within(directory: PathBuf) -> ProgramStore {
        ProgramStore { directory, most_files: 256, most_bytes: 64 << 20 }
    }

    /// Returns the path of the folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the stored program of a request, if there is one and the driver accepts it.
    pub(super) fn find(&self, request: &ProgramRequest) -> Option<BuiltProgram> {
        let stored = self.load(&request.key())?;
        BuiltProgram::from_binary(request.context, request.options, request.entry, stored)
    }

    /// Stores a program and returns the one that [`ProgramStore::find`] will return, so that later runs use the program
    /// that is checked now. A program whose binary the driver does not give, or does not accept, is returned unchanged.
    pub(super) fn keep(&self, request: &ProgramRequest, built: BuiltProgram) -> BuiltProgram {
        let Some(stored) = built.stored() else { return built };
        let key = request.key();
        let bytes = stored.encode(&key);
        match BuiltProgram::from_binary(request.context, request.options, request.entry, stored) {
            Some(kept) => {
                self.write(&key, &bytes);
                kept
            }
            None => built,
        }
    }

    /// Reads the content of a file and marks the file as used now, so that it is not among the first to be removed.
    fn load(&self, key: &ProgramKey) -> Option<StoredProgram> {
        // programs may be code: nobody else may have put one here, nor a link
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(self.directory.join(key.file_name())).ok()?;
        file.metadata().ok().filter(|meta| meta.is_file() && is_own(meta))?;
        let mut bytes = Vec::new();
        (&file).take(self.most_bytes + 1).read_to_end(&mut bytes).ok()?;
        let stored = StoredProgram::decode(&bytes, key)?;
        let _ = file.set_modified(SystemTime::now()); // without it the file is only removed sooner
        Some(stored)
    }

    /// Writes a file, if that is possible, and removes the oldest files where there are too many.
    fn write(&self, key: &ProgramKey, bytes: &[u8]) {
        if bytes.len() as u64 > self.most_bytes {
            return;
        }
        if make_private(&self.directory)
            .and_then(|()| write_atomically(&self.directory.join(key.file_name()), bytes))
            .is_ok()
        {
            self.prune();
        }
    }

    /// Removes the files that have been unused for longest until the rest is within the limits. Files of killed
    /// processes count, files of other kinds do not.
    fn prune(&self) {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                name_of_temporary(&name).unwrap_or(&name).strip_suffix(SUFFIX)?;
                let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
        let mut count = files.len();
        for (_, length, path) in files {
            if count <= self.most_files && bytes <= self.most_bytes {
                return;
            }
            let _ = fs::remove_file(path); // another process may have done it
            count -= 1;
            bytes -= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::example;
    use std::time::Duration;

    fn key(text: &str) -> ProgramKey {
        ProgramKey::new(&example(), text, "")
    }

    fn program(bytes: usize) -> StoredProgram {
        StoredProgram { log: "Used 40 registers".into(), binary: vec![7; bytes] }
    }

    #[test]
    fn everything_that_a_build_depends_on_changes_the_key() {
        let facts = example();
        let other = |change: &dyn Fn(&mut DeviceFacts)| {
            let mut facts = facts.clone();
            change(&mut facts);
            ProgramKey::new(&facts, "text", "options")
        };
        let keys = [
            other(&|_| ()),
            other(&|facts| facts.platform += "x"),
            other(&|facts| facts.name += "x"),
            other(&|facts| facts.architecture += "x"),
            other(&|facts| facts.driver += "x"),
            other(&|facts| facts.version += "x"),
            ProgramKey::new(&facts, "text ", "options"),
            ProgramKey::new(&facts, "text", "options "),
            ProgramKey::new(&facts, "stext", "option"),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{index}");
            assert_eq!(
                name_of_temporary(&format!(".{}.part-0123456789abcdef", key.file_name())),
                Some(&*key.file_name())
            );
        }
        assert_eq!(keys[0], ProgramKey::new(&facts, "text", "options"));
    }

    #[test]
    fn only_a_whole_file_of_the_same_key_is_believed() {
        let bytes = program(100).encode(&key("a"));
        assert_eq!(StoredProgram::decode(&bytes, &key("a")), Some(program(100)));
        assert_eq!(StoredProgram::decode(&bytes, &key("b")), None);
        for length in 0..bytes.len() {
            assert_eq!(StoredProgram::decode(&bytes[..length], &key("a")), None, "{length} bytes");
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert_eq!(StoredProgram::decode(&bytes, &key("a")), None, "byte {at}");
        }
        // a length beyond the end, with the right checksum
        let mut bytes = bytes;
        let at = MAGIC.len() + CHECKSUM;
        bytes[at..at + LENGTH].fill(0xff);
        let sum = checksum(&key("a"), &bytes[at..]);
        bytes[MAGIC.len()..at].copy_from_slice(&sum);
        assert_eq!(StoredProgram::decode(&bytes, &key("a")), None);
    }

    #[test]
    fn what_was_not_used_for_longest_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join("programs").join(name);
        let mut store = ProgramStore { most_files: 3, ..ProgramStore::within(path("")) };
        let age = |file: &str, seconds: u64| {
            let file = fs::File::options().write(true).open(path(file)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        let add = |store: &ProgramStore, text: &str, bytes: usize| {
            store.write(&key(text), &program(bytes).encode(&key(text)));
        };
        for (seconds, text) in [(40, "a"), (30, "b")] {
            add(&store, text, 10);
            age(&key(text).file_name(), seconds);
        }
        let left = format!(".{}.part-0123456789abcdef", key("x").file_name());
        fs::write(path(&left), "of a killed process").unwrap();
        age(&left, 50);
        fs::write(path("other"), "of another kind").unwrap();
        age("other", 60);
        // the file of the killed process is the oldest
        add(&store, "c", 10);
        assert!(!path(&left).exists());
        assert_eq!(store.load(&key("a")), Some(program(10)));
        // now `b` is
        add(&store, "d", 10);
        let kept = |store: &ProgramStore| ["a", "b", "c", "d", "e"].map(|text| store.load(&key(text)).is_some());
        assert_eq!(kept(&store), [true, false, true, true, false]);
        age(&key("d").file_name(), 20);
        age(&key("c").file_name(), 10);
        store.most_bytes = 2 * program(10).encode(&key("a")).len() as u64;
        add(&store, "e", 10);
        assert_eq!(kept(&store), [true, false, false, false, true]);
        // larger than all may be together
        add(&store, "b", 1000);
        assert_eq!(kept(&store), [true, false, false, false, true]);
        assert!(path("other").exists());
    }

    #[test]
    fn programs_that_are_links_or_of_others_are_not_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let store = ProgramStore::within(directory.path().join("programs"));
        store.write(&key("a"), &program(1).encode(&key("a")));
        let path = store.directory().join(key("a").file_name());
        assert_eq!(store.load(&key("a")), Some(program(1)));
        let elsewhere = directory.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert_eq!(store.load(&key("a")), None);
        fs::remove_file(&path).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
        assert_eq!(store.load(&key("a")), Some(program(1)));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
            assert_eq!(store.load(&key("a")), None);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_holds_nothing() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let store = ProgramStore::within(directory.path().join("file/programs"));
        store.write(&key("a"), &program(1).encode(&key("a")));
        assert_eq!(store.load(&key("a")), None);
    }
}

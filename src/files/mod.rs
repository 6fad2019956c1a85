//! Files in general: the cache directory, locks, text files of bounded length, files that appear complete or not at all, and
//! which files may be replaced.

mod atomic;
mod cache;
mod lock;
mod mark;
mod output;
mod text;

pub use atomic::{AtomicFile, name_of_temporary, temporary_path, write_atomically};
pub use cache::cache_directory;
pub use lock::{Lock, LockMode};
pub use mark::{OutputKind, SOFTWARE, TOML};
pub use output::{InputSet, OutputFile, directory};
pub use text::read_text;

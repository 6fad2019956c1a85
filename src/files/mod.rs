//! Files in general: the cache directory, locks, files that are only read, text files of bounded length, and files that appear complete or not at all.

mod atomic;
mod cache;
mod lock;
mod npy;
mod regular;
mod text;

pub use atomic::{AtomicFile, name_of_temporary, temporary_path, write_atomically};
pub use cache::cache_directory;
pub use lock::{Lock, LockMode};
pub use regular::{open_once, open_regular};
pub use text::{excerpt, excerpt_of_lines, read_numbers, read_text, read_text_once};

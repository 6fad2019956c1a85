//! Files in general: the cache directory, locks, text files of bounded length, and files that appear complete or not at all.

mod atomic;
mod cache;
mod lock;
mod text;

pub use atomic::{AtomicFile, name_of_temporary, temporary_path, write_atomically};
pub use cache::{cache_directory, cache_folder, is_own, make_private, refused_cache};
pub use lock::{Lock, LockMode};
pub use text::read_text;

//! Files in general: the cache directory, locks, files that are only read, text files of bounded length, files that appear
//! complete or not at all, and which files may be replaced.

mod atomic;
mod cache;
mod errors;
mod lock;
mod mark;
mod npy;
mod output;
mod regular;
mod text;

pub use atomic::{AtomicFile, name_of_temporary, temporary_path, write_atomically};
pub use cache::{cache_directory, cache_folder, is_own, make_private, refused_cache};
pub use errors::NpyError;
pub use lock::{Lock, LockMode};
pub use mark::{OutputKind, SOFTWARE, TOML};
pub use npy::{NpyHeader, OWN_END};
pub use output::{InputSet, OutputFile, directory};
pub use regular::{open_regular, special_file};
pub use text::{excerpt, excerpt_of_lines, read_numbers, read_text, read_text_once};

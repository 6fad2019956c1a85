//! Files of any kind: locks, and texts of bounded length.

mod lock;
mod text;

pub use lock::{Hold, Lock};
pub use text::read_text;

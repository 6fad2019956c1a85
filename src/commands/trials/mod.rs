//! Slices of one row by several values of one or two flags: `fbp trials`, and `fbp center --sweep`.

mod command;
mod errors;
mod part;
mod set;
mod shown;
mod sweep;
mod vary;

pub use command::trials;
pub(super) use sweep::{sweep, trial_page};

//! The plan: what will be computed where, in which chunks, with how many bytes. Pure; `--dry-run` prints it.

mod angles;
mod describe;
mod errors;
mod estimate;
mod kernel_choice;
mod kernel_memory;
mod lamino;
mod planning;
mod request;
mod scan;
mod sizes;
mod solver_memory;
mod windows;

pub use lamino::{InclinedPieces, LaminoPlan};
pub use planning::Plan;
pub use request::{Avoid, Bytes, Memory, PIECES, Pieces, Refused, Request, WRITTEN_PIECES};
pub use scan::{HeldByHost, SampleShape, Scan, StackShape, binned};
pub use sizes::encoded_sample;
pub use solver_memory::SolverMemory;
pub use windows::windows;

#[cfg(test)]
mod tests;

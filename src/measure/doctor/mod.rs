//! What `fbp doctor` checks of a device that no run asks for at once: its findings, and the filter of several lengths.

mod filter;
mod findings;

pub use filter::examine_rows;
pub use findings::{DOCTOR_BINS, DOCTOR_PROBLEMS, Diagnosis, Finding, QUICK_DOCTOR_BINS, QUICK_DOCTOR_PROBLEMS};

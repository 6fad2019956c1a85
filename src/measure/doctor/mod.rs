//! Checks of `fbp doctor` that no single run asks for: its findings, and the filter of several lengths.

mod filter;
mod findings;

pub use filter::examine_rows;
pub use findings::{DOCTOR_BINS, DOCTOR_PROBLEMS, Diagnosis, Finding, QUICK_DOCTOR_BINS, QUICK_DOCTOR_PROBLEMS};

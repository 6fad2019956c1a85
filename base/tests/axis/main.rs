//! The search of the rotation axis on simulated scans.

mod samples;
mod scans;
mod verdicts;

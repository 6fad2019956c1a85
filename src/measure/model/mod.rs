//! `fbp model`: the throughput that each unit of a device allows a kernel, and the limiting unit (paper, 6.5).
//!
//! A kernel's `Load` (operations and bytes of an update) over a device's rates (`Throughput`, data of the profile) gives
//! the updates per second that every unit allows on its own ([`Units`](crate::profile::Units)); units work in parallel,
//! so the smallest is the bound. It is an upper bound: latencies, bank conflicts, power and caches beyond the first level
//! are not included.

mod occupancy;
mod rows;
mod stages;
mod table;
#[cfg(test)]
mod tests;

pub use occupancy::occupancy;
pub use rows::{ModelRow, model_of_paper, model_of_profile};
pub use table::{model_table, stage_table, table_15};

//! `fbp`: filtered back projection of X-ray sinograms and projections on any OpenCL device.
//!
//! From a command to slices:
//!
//! ```text
//! flags, run file -> job = recipe (what affects bytes) + execution (how and where)
//! source -> steps -> engine (upload, filter, back-project, download) -> sink
//! ```
//!
//! [`geometry`] states the conventions (axes, amplitude, weights), [`spectrum`] the filters. `docs/dev/architecture.md`
//! describes the modules, and which may use which.

pub mod axis;
pub mod cache;
pub mod check;
pub mod cli;
pub mod commands;
pub mod device;
pub mod digest;
pub mod engine;
pub mod execution;
pub mod facts;
mod fault;
mod feed;
pub mod fft;
pub mod html;
pub mod job;
pub mod kernel;
pub mod known;
pub mod margins;
pub mod measure;
pub mod memory;
pub mod operations;
pub mod plan;
pub mod profile;
pub mod recipe;
pub mod remark;
pub mod report;
pub mod shard;
pub mod sink;
pub mod solver;
pub mod source;
pub mod steps;
pub mod stitch;
mod threads;

pub use fbp_base::{
    center, compare, error, files, flat_fields, geometry, histogram, host_filter, layout, least_squares, numbers,
    phantom, picture, reference, resampling, resolution, spectrum, stripes, units, visible,
};

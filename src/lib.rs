//! `fbp`: filtered back projection of X-ray sinograms and projections on any OpenCL device.
//!
//! The flow goes one way:
//!
//! ```text
//! cli -> config + profile -> plan -> io/read -> pipeline (upload, filter, back-project, download) -> io/write
//!                               \-> kernelgen (pure text)           device/ and fft/ speak OpenCL
//! ```
//!
//! [`geometry`] states the conventions (axes, amplitude, weights), [`spectrum`] the filters; `docs/architecture.md`
//! is the map of the rooms.

pub mod axis;
pub mod bench;
pub mod cache;
pub mod center;
pub mod check;
pub mod cli;
pub mod commands;
pub mod compare;
pub mod device;
pub mod doctor;
pub mod engine;
pub mod error;
pub mod execution;
pub mod facts;
pub mod fft;
pub mod files;
pub mod geometry;
pub mod hash;
pub mod histogram;
pub mod job;
pub mod kernel;
pub mod known;
pub mod margins;
pub mod memory;
pub mod model;
pub mod numbers;
pub mod phantom;
pub mod picture;
pub mod plan;
pub mod profile;
pub mod recipe;
pub mod report;
pub mod shard;
pub mod sink;
pub mod source;
pub mod spectrum;
pub mod steps;
pub mod tune;
pub mod units;

//! What needs an OpenCL device: `cargo test --features test-hooks` runs this, too.

#[path = "../support/mod.rs"]
mod support;

mod bad_input;
mod batch;
mod behaviour;
mod bench;
mod binning;
mod center;
mod correction;
mod detector_images;
mod devices;
mod doctor;
mod flats;
mod flips;
mod formats;
mod gridding;
mod histogram;
mod hostile;
mod images;
mod inputs;
mod kernels;
mod kill;
mod lamino;
mod least_squares;
mod memory;
mod outliers;
mod outputs;
mod pairs;
mod phantom;
mod pipeline;
mod preprocess;
mod programs;
mod real_data;
mod reliability;
mod report;
mod resolution;
mod scans;
mod signals;
mod stitching;
mod stripes;
mod trials;
mod tune;
mod turns;
mod values;

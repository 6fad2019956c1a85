//! What needs no OpenCL device: `cargo test` runs this.

#[path = "../support/mod.rs"]
mod support;

mod center;
mod checked;
mod circles;
mod golden;
mod help;
mod hostile;
mod inputs;
mod io;
mod layering;
mod messages;
mod model;
mod outputs;
mod pages;
mod paper;
mod startup;
mod terminal;

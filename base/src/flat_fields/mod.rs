//! Flat fields that change during a scan, and how much of each change a projection has: the arithmetic of `--flats eigen`.

pub mod blocks;
pub mod components;
mod symmetric;
pub mod variation;

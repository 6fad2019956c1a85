//! What tests share; each binary uses a part of it.
#![allow(dead_code)]

pub mod cli;
pub mod reference;
pub mod samples;
pub mod skip;

//! What tests share; each binary uses a part of it.
#![allow(dead_code)]

pub mod cli;
pub mod flips;
pub mod samples;
pub mod skip;
pub mod xrm;

use fbp::kernel::KernelSpec;
use fbp::margins::TIE;
use fbp::reference::Reads;
use fbp_reference::Read;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Names and bytes of all files below a directory.
pub fn all_bytes(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(all_bytes(&path)),
            false => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    files
}

/// How a kernel finds values between bins.
pub fn read_of(spec: &KernelSpec) -> Read {
    match spec.reads() {
        Reads::Linear => Read::Linear,
        Reads::Nearest(1) => Read::Nearest { tie: TIE },
        Reads::Nearest(places) => Read::Oversampled { places, tie: TIE },
        Reads::Exact => Read::Exact,
    }
}

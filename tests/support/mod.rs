//! What tests share; each binary uses a part of it.
#![allow(dead_code)]

pub mod cli;
pub mod flips;
pub mod reference;
pub mod samples;
pub mod skip;
pub mod xrm;

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

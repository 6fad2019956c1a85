//! TIFF stacks in and out.

mod damage;
mod flips;
mod headless;
mod make;
mod reading;
mod volumes;
mod writing;
mod xrm;
mod zarr;

use fbp::sink::{Dtype, Encoding, SliceWriter};
use fbp::source::{SampleType, Stack};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const F32: Encoding = Encoding { dtype: Dtype::F32, range: None };

fn put(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn open(path: &Path) -> fbp::error::Result<Stack> {
    Stack::open(path.to_str().unwrap(), "--sinograms")
}

fn read(stack: &Stack, page: usize) -> fbp::error::Result<Vec<f32>> {
    let mut out = vec![f32::NAN; stack.width() * stack.height()];
    stack.read_rows(page, 0..stack.height(), &mut out).map(|_| out)
}

/// The text of an input error that holds all of these words.
fn input_error(path: &Path, words: &[&str]) -> String {
    let error = match open(path) {
        Err(e) => e,
        Ok(stack) => (0..stack.len()).find_map(|p| read(&stack, p).err()).expect("an error"),
    };
    assert_eq!(error.exit_code(), 3, "{error}");
    let text = error.to_string();
    for word in words.iter().chain(&["--sinograms"]) {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
    text
}

const TYPES: [SampleType; 11] = [
    SampleType::U8,
    SampleType::U16,
    SampleType::U32,
    SampleType::I8,
    SampleType::I16,
    SampleType::I32,
    SampleType::U64,
    SampleType::I64,
    SampleType::F16,
    SampleType::F32,
    SampleType::F64,
];

fn is_send<T: Send>() {}
fn is_sync<T: Sync>() {}

#[test]
fn threads_may_share() {
    is_send::<Stack>();
    is_sync::<Stack>();
    is_send::<SliceWriter>();
}

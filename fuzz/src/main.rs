//! Feeds one of the entries to the fuzzer: `FBP_FUZZ_TARGET` is its name. One program for all, as building takes longer than a
//! short run.

#![no_main]

mod entries;

use fbp::error::Result;
use std::sync::LazyLock;

static ENTRY: LazyLock<fn(&[u8]) -> Result<()>> = LazyLock::new(|| {
    let name = std::env::var("FBP_FUZZ_TARGET").expect("FBP_FUZZ_TARGET is the name of an entry");
    entries::ALL.iter().find(|(entry, _)| *entry == name).unwrap_or_else(|| panic!("there is no entry {name}")).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(ENTRY(data)));

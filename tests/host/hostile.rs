//! What a fuzzer starts from and what it found: an error or none, but soon, and no panic.

#[path = "../../fuzz/src/entries.rs"]
mod entries;

use fbp::error::Result;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// What one input may take.
const SOON: Duration = Duration::from_secs(30);

/// Every file of a directory through an entry; which of them are accepted.
fn replay(directory: &str, entry: fn(&[u8]) -> Result<()>) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut count = 0;
    for file in fs::read_dir(&directory).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() || path.ends_with("known-failures.toml") {
            continue;
        }
        let start = Instant::now();
        let result = entry(&fs::read(&path).unwrap());
        assert!(start.elapsed() < SOON, "{path:?} took {:?}", start.elapsed());
        // findings of a fuzzer are named for what they did; the other files are valid
        let found = path.file_name().unwrap().to_string_lossy().starts_with("found-");
        match result {
            Ok(()) => {}
            Err(error) => {
                assert!(found, "{path:?}: {error}");
                assert!([2, 3].contains(&error.exit_code()), "{path:?}: {error}");
            }
        }
        count += 1;
    }
    assert!(count > 1, "{directory:?} has no inputs");
}

#[test]
fn seeds_and_findings_of_the_fuzzer() {
    for (name, entry) in entries::ALL {
        replay(&format!("fuzz/corpus/{name}"), entry);
    }
    replay("configs", entries::profile);
    replay("configs/runs", entries::run);
}

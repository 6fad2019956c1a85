//! Stacks whose files are still arriving.

use super::Stack;
use super::tiff::{TIFF, find};
use crate::error::{Error, Result};
use std::fs;
use std::time::{Duration, Instant};

/// Shortest time between two checks.
const PAUSE: Duration = Duration::from_millis(200);

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watch {
    /// Waiting ends when no file has arrived or grown for this time.
    pub patience: Duration,
    /// Pages that the stack will have; `None` uses the files that exist when waiting ends.
    pub pages: Option<usize>,
}

/// Waits until a stack is complete. `look` is called at every check with the number of files and may end the wait.
///
/// A stack with a known number of pages is complete when all have arrived completely and nothing has grown since the last
/// check; any other when nothing has arrived or grown for `watch.patience`.
///
/// # Errors
/// [`Error::Usage`] when the input is not TIFF: the shape of other formats does not tell what has arrived. [`Error::Input`] when
/// pages are missing, or the files are not a stack; and those of `look`.
pub fn wait(spec: &str, flag: &str, watch: Watch, mut look: impl FnMut(usize) -> Result<()>) -> Result<Stack> {
    let mut changed = Instant::now();
    let mut last = None;
    loop {
        let start = Instant::now();
        if let Some(format) = Stack::other_format(spec) {
            return Err(Error::usage(format!(
                "--watch: waits for TIFF files, but {flag} {spec} is {format}; leave --watch out, and start when the input is \
                 complete"
            )));
        }
        let now = seen(spec, flag);
        let quiet = last == Some(now);
        if !quiet {
            last = Some(now);
            changed = Instant::now();
        }
        look(now.0)?;
        let over = changed.elapsed() >= watch.patience;
        match watch.pages {
            Some(pages) if quiet || over => {
                let stack = Stack::open(spec, flag);
                match stack {
                    Ok(stack) if stack.len() >= pages => return Ok(stack),
                    Ok(stack) if over => return Err(missing(spec, flag, watch, stack.len(), pages)),
                    Err(error) if over => return Err(error),
                    _ => {}
                }
            }
            None if over => return Stack::open(spec, flag),
            _ => {}
        }
        // checks must not saturate a slow file system
        std::thread::sleep(PAUSE.max(start.elapsed()).min(watch.patience.max(PAUSE)));
    }
}

/// Number and total size in bytes of the existing files.
fn seen(spec: &str, flag: &str) -> (usize, u64) {
    let files = find(spec, flag, &TIFF, &mut Vec::new()).unwrap_or_default();
    let bytes = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|meta| meta.len()).sum();
    (files.len(), bytes)
}

fn missing(spec: &str, flag: &str, watch: Watch, found: usize, wanted: usize) -> Error {
    Error::Input(format!(
        "{flag} {spec}: {found} of {wanted} pages have arrived, and none for {:.1} s; give a longer --watch, or the expected \
         number with --expect",
        watch.patience.as_secs_f64()
    ))
}

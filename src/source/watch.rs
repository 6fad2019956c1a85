//! Stacks whose files are still arriving.

use super::Stack;
use super::tiff::find;
use crate::error::{Error, Result};
use std::fs;
use std::time::{Duration, Instant};

/// Least time between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// What is awaited of a stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watch {
    /// Nothing has come or grown for so long: it is over.
    pub patience: Duration,
    /// Pages that the stack will have; `None` takes what is there when it is over.
    pub pages: Option<usize>,
}

/// Waits until a stack is complete. `look` is called at every look with the number of files and may end the wait.
///
/// A stack of a known number of pages is complete when all are there, whole, and nothing has grown since the last look;
/// another when nothing has come or grown for as long as `watch` is patient.
///
/// # Errors
/// [`Error::Input`] when pages are missing, or what has come is no stack; and those of `look`.
pub fn wait(spec: &str, flag: &str, watch: Watch, mut look: impl FnMut(usize) -> Result<()>) -> Result<Stack> {
    let mut changed = Instant::now();
    let mut last = None;
    loop {
        let start = Instant::now();
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
        // looking must not take all the time of a slow file system
        std::thread::sleep(PAUSE.max(start.elapsed()).min(watch.patience.max(PAUSE)));
    }
}

/// Number and bytes of the files that are there.
fn seen(spec: &str, flag: &str) -> (usize, u64) {
    let files = find(spec, flag, &mut Vec::new()).unwrap_or_default();
    let bytes = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|meta| meta.len()).sum();
    (files.len(), bytes)
}

fn missing(spec: &str, flag: &str, watch: Watch, found: usize, wanted: usize) -> Error {
    Error::Input(format!(
        "{flag} {spec}: {found} of {wanted} pages are there, and nothing has come for {:.1} s; give a longer --watch, or \
         --expect the number that will come",
        watch.patience.as_secs_f64()
    ))
}

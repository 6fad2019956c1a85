//! Stacks whose files are still arriving.

use super::Stack;
use super::tiff::{TIFF, present};
use crate::error::{Error, Result};
use crate::memory;
use crate::remark::{Doubt, DoubtKind};
use std::fs;
use std::time::{Duration, Instant};

/// Shortest time between two checks.
const PAUSE: Duration = Duration::from_millis(200);

/// Condition on which waiting for a stack ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watch {
    /// Time without new or growing files after which waiting ends.
    pub patience: Duration,
    /// Number of pages of the complete stack; with `None`, the files that exist when waiting ends are used.
    pub pages: Option<usize>,
    /// Number in the file names, counted from 1, that is their order, if the user has chosen one.
    pub order_by: Option<usize>,
}

/// Waits until a stack is complete. `look` is called at every check with the number of files and may end the wait.
///
/// A stack with a known number of pages is complete when all have arrived completely and nothing has grown since the
/// previous check. Any other stack is complete when nothing has arrived or grown for `watch.patience`.
///
/// # Errors
/// [`Error::Usage`] when the input is not TIFF, as other formats do not show which part of them has arrived.
/// [`Error::Input`] when pages are missing, or when the files do not form a stack. Also those of `look`.
pub fn wait(spec: &str, flag: &str, watch: Watch, mut look: impl FnMut(usize) -> Result<()>) -> Result<Stack> {
    let open = || Stack::open_by(spec, flag, memory::available() / 2, watch.order_by);
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
                let stack = open();
                match stack {
                    Ok(stack) if stack.len() >= pages => return Ok(stack),
                    Ok(stack) if over => return Err(missing(spec, flag, watch, stack.len(), pages)),
                    Err(error) if over => return Err(error),
                    _ => {}
                }
            }
            None if over => return Ok(ended_by_time(open()?, watch)),
            _ => {}
        }
        // checks must not saturate a slow file system
        std::thread::sleep(PAUSE.max(start.elapsed()).min(watch.patience.max(PAUSE)));
    }
}

/// Adds a doubt to a stack whose number of pages was not given.
fn ended_by_time(stack: Stack, watch: Watch) -> Stack {
    let doubt = Doubt::new(
        DoubtKind::EndedByTime,
        format!(
            "{}: waiting ended because nothing has arrived for {:.1} s; {} pages are used, and whether more should have come is \
             not known",
            stack.title(),
            watch.patience.as_secs_f64(),
            stack.len()
        ),
        "give the expected number with --expect, or --angles with a line for every projection",
    );
    stack.with_remark(doubt)
}

/// Returns number and total size in bytes of the existing files.
fn seen(spec: &str, flag: &str) -> (usize, u64) {
    let files = present(spec, flag, &TIFF);
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

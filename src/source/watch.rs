//! Stacks whose files are still arriving.

use super::Stack;
use super::tiff::{TIFF, present};
use crate::error::{Result, messages};
use crate::memory;
use crate::remark::{Doubt, DoubtKind};
use std::fs;
use std::time::{Duration, Instant};

messages! {
    /// Errors of `--watch`.
    enum WatchUsageError: Usage {
        OtherFormat { flag: String, spec: String, format: &'static str } =>
            "--watch: waits for TIFF files, but {flag} {spec} is {format}";
            "leave --watch out, and start when the input is complete",
    }
}

messages! {
    /// Errors of files that were awaited.
    enum WatchInputError: Input {
        Missing { flag: String, spec: String, found: usize, wanted: usize, seconds: f64 } =>
            "{flag} {spec}: {found} of {wanted} pages have arrived, and none for {seconds:.1} s";
            "give a longer --watch, or the expected number with --expect",
    }
}

messages! {
    /// Doubts about files that were awaited.
    enum WatchWarning: Warning {
        EndedByTime { stack: String, seconds: f64, pages: usize } =>
            "{stack}: waiting ended because nothing has arrived for {seconds:.1} s; {pages} pages are used, and \
             whether more should have come is not known";
            "give the expected number with --expect, or --angles with a line for every projection",
    }
}

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
/// [`Error::Usage`](crate::error::Error::Usage) when the input is not TIFF, as other formats do not show which part of
/// them has arrived. [`Error::Input`](crate::error::Error::Input) when pages are missing, or when the files do not form
/// a stack. Also those of `look`.
pub fn wait(spec: &str, flag: &str, watch: Watch, mut look: impl FnMut(usize) -> Result<()>) -> Result<Stack> {
    let open = || Stack::open_by(spec, flag, memory::available() / 2, watch.order_by);
    let mut changed = Instant::now();
    let mut last = None;
    loop {
        let start = Instant::now();
        if let Some(format) = Stack::other_format(spec) {
            return Err(WatchUsageError::OtherFormat { flag: flag.into(), spec: spec.into(), format }.into());
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
                    Ok(stack) if over => {
                        let (flag, spec, found) = (flag.into(), spec.into(), stack.len());
                        let seconds = watch.patience.as_secs_f64();
                        return Err(WatchInputError::Missing { flag, spec, found, wanted: pages, seconds }.into());
                    }
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
    let (seconds, pages) = (watch.patience.as_secs_f64(), stack.len());
    let warning = WatchWarning::EndedByTime { stack: stack.title(), seconds, pages };
    stack.with_remark(Doubt::of(DoubtKind::EndedByTime, &warning))
}

/// Returns number and total size in bytes of the existing files.
fn seen(spec: &str, flag: &str) -> (usize, u64) {
    let files = present(spec, flag, &TIFF);
    let bytes = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|meta| meta.len()).sum();
    (files.len(), bytes)
}

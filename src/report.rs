//! Output of a run: notes, progress, the summary and the JSON report.
//!
//! This is the only module that prints: results to stdout, everything else to stderr.

use crate::error::{Error, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Writes results to stdout. A closed pipe (`| head`) is not an error.
///
/// # Errors
/// [`Error::Output`] when they cannot be written.
pub fn results(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::Output(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

/// How progress is shown.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ProgressKind {
    /// A bar on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    Bar,
    Plain,
    Json,
    None,
}

/// Which messages of a run are printed, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Messages {
    /// -1: errors only; 0: important messages; 1 and up: details.
    pub verbosity: i8,
    pub progress: ProgressKind,
    pub log: Option<PathBuf>,
}

impl Messages {
    /// The verbosity for the number of `--verbose` flags, or for `--quiet`.
    pub fn verbosity(verbose: u8, quiet: bool) -> i8 {
        if quiet { -1 } else { verbose.min(3) as i8 }
    }
}

/// Prints messages according to the verbosity, and appends them to a log file.
pub struct Reporter {
    verbosity: i8,
    kind: ProgressKind,
    log: Option<Mutex<File>>,
    /// Notes and warnings so far.
    said: Mutex<Vec<String>>,
}

impl Reporter {
    /// `verbosity`: see [`Messages`].
    pub fn new(verbosity: i8, kind: ProgressKind, log: Option<&Path>) -> Result<Self> {
        let log = log
            .map(|path| {
                File::options()
                    .create(true)
                    .append(true)
                    .open(path)
                    .map_err(|e| Error::Output(format!("--log {}: {e}", path.display())))
            })
            .transpose()?;
        let kind = match kind {
            ProgressKind::Auto if verbosity < 0 => ProgressKind::None,
            ProgressKind::Auto if std::io::stderr().is_terminal() => ProgressKind::Bar,
            ProgressKind::Auto => ProgressKind::Plain,
            kind => kind,
        };
        Ok(Reporter { verbosity, kind, log: log.map(Mutex::new), said: Mutex::default() })
    }

    /// A reporter for the messages of a run.
    pub fn of(messages: &Messages) -> Result<Self> {
        Reporter::new(messages.verbosity, messages.progress, messages.log.as_deref())
    }

    /// A reporter that prints nothing.
    pub fn silent() -> Self {
        Reporter { verbosity: i8::MIN, kind: ProgressKind::None, log: None, said: Mutex::default() }
    }

    fn say(&self, level: i8, text: &str) {
        if self.verbosity >= level {
            eprintln!("{text}");
        }
        if let Some(log) = &self.log
            && let Ok(mut log) = log.lock()
        {
            // a full log disk must not stop a run
            let _ = writeln!(log, "{text}");
        }
    }

    /// Prints an important line.
    pub fn note(&self, text: &str) {
        if text.starts_with("note:") || text.starts_with("warning:") {
            self.said.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        }
        self.say(0, text);
    }

    /// All notes and warnings so far, printed or not.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints a line for `-v`.
    pub fn detail(&self, text: &str) {
        self.say(1, text);
    }

    /// Starts the progress of `slices` slices of `updates` updates each.
    pub fn progress(&self, slices: usize, updates: f64) -> Progress {
        let bar = match self.kind {
            ProgressKind::Bar => {
                let bar = ProgressBar::with_draw_target(Some(slices as u64), ProgressDrawTarget::stderr());
                if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} slices  {msg}  {elapsed} + {eta}")
                {
                    bar.set_style(style);
                }
                Some(bar)
            }
            _ => None,
        };
        Progress { bar, kind: self.kind, slices, updates, done: 0, start: Instant::now(), last: None }
    }
}

/// Progress of one run.
pub struct Progress {
    bar: Option<ProgressBar>,
    kind: ProgressKind,
    slices: usize,
    updates: f64,
    done: usize,
    start: Instant,
    last: Option<Instant>,
}

/// Shortest time between plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(2);

impl Progress {
    /// Records that `count` more slices are written.
    pub fn advance(&mut self, count: usize) {
        self.done += count;
        let elapsed = self.start.elapsed().as_secs_f64().max(1e-9);
        let rate = self.done as f64 * self.updates / elapsed * 1e-9;
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{rate:.2} GU/s"));
            bar.set_position(self.done as u64);
        }
        let finished = self.done == self.slices;
        let due = self.last.is_none_or(|last| last.elapsed() >= PLAIN_EVERY);
        let left = elapsed / self.done.max(1) as f64 * (self.slices - self.done) as f64;
        match self.kind {
            ProgressKind::Plain if due || finished => {
                eprintln!("{}/{} slices, {rate:.2} GU/s, {elapsed:.1} s, {left:.1} s left", self.done, self.slices);
                self.last = Some(Instant::now());
            }
            ProgressKind::Json => {
                let line = json!({
                    "slices_done": self.done, "slices": self.slices, "gu_per_s": rate,
                    "seconds": elapsed, "seconds_left": left,
                });
                eprintln!("{line}");
            }
            _ => {}
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

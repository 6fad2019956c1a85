//! Output of a run: notes, progress, the summary and the JSON report.
//!
//! This is the only module that prints: results to stdout, everything else to stderr. Control characters in the output,
//! which can only be part of quoted text, are shown as escapes.

use crate::error::{Error, Result, messages};
use crate::files::{InputSet, OutputFile, OutputKind};
use crate::remark::{Doubt, DoubtKind, Remark};
use crate::visible::{visible, visible_lines};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::dup2_stderr;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

messages! {
    /// Results that cannot be printed.
    enum StdoutError: Output {
        Unwritable { error: std::io::Error } =>
            "standard output cannot be written: {error}"; "check the file or program that it goes to",
    }
}

messages! {
    /// Reasons to doubt the result of a run with `--strict`.
    enum StrictRunError: Input {
        Doubts { names: String } =>
            "--strict: the warnings above are errors ({names})";
            "correct the input or the flags, or leave --strict out",
    }
}

/// Writes results to stdout. A closed pipe (`| head`) is not an error.
///
/// # Errors
/// [`Error::Output`] when they cannot be written.
pub fn results(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    written(stdout.write_all(visible_lines(text).as_bytes()).and_then(|()| stdout.flush()))
}

fn written(result: std::io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(StdoutError::Unwritable { error }.into()),
        _ => Ok(()),
    }
}

/// True if errors are printed as JSON, like all other messages.
static JSON: AtomicBool = AtomicBool::new(false);

/// Makes [`failure`] print JSON from now on.
pub fn failures_as_json() {
    JSON.store(true, Relaxed);
}

/// Writes a line to stderr. Errors of writing are ignored, as slices and exit codes must not depend on them.
fn print(text: &str) {
    let line = format!("{}\n", visible_lines(text));
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
}

/// Runs `work`, during which a compiler may print its number of warnings to stderr, without these lines: the warnings
/// themselves are in logs of builds. Other output to stderr follows when `work` is done.
pub fn without_compiler_counts<T>(work: impl FnOnce() -> T) -> T {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let _aside = Aside::new();
    work()
}

/// Stderr while it is collected.
struct Aside {
    stderr: OwnedFd,
    collected: File,
}

impl Aside {
    /// Begins to collect stderr; `None` if the system does not allow it.
    fn new() -> Option<Aside> {
        let collected = File::from(memfd_create("stderr", MemfdFlags::CLOEXEC).ok()?);
        let stderr = fcntl_dupfd_cloexec(std::io::stderr(), 3).ok()?;
        dup2_stderr(&collected).ok()?;
        Some(Aside { stderr, collected })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let mut text = Vec::new();
        // not while a message is written; errors are ignored, as for any message
        let mut stderr = std::io::stderr().lock();
        let _ = dup2_stderr(&self.stderr).map_err(std::io::Error::from).and_then(|()| {
            self.collected.rewind()?;
            self.collected.read_to_end(&mut text)?;
            let kept: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').filter(|line| !is_count(line)).collect();
            stderr.write_all(&kept.concat())
        });
    }
}

/// Reports whether a line has the form `4 warnings generated.`
fn is_count(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], [count, "warning" | "warnings", "generated."] if count.bytes().all(|b| b.is_ascii_digit()))
}

/// Puts the name of a scan before every line of a message.
fn about(scan: Option<&str>, text: &str) -> String {
    match scan {
        Some(scan) => text.lines().map(|line| format!("{scan}: {line}")).collect::<Vec<_>>().join("\n"),
        None => text.to_owned(),
    }
}

/// Prints the error with which one of several scans ended.
pub fn failure_of(scan: &str, error: &Error) {
    let (text, code) = (error.to_string(), error.exit_code());
    match JSON.load(Relaxed) {
        true => print(&json_line(&[("scan", json!(scan)), ("error", json!(text)), ("exit_code", json!(code))])),
        false => print(&about(Some(scan), &format!("failed, exit code {code}: {}", indented(&clipped(&text))))),
    }
}

/// Indents all lines of a message but the first, so that a line break in quoted text cannot begin another message.
fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}

/// Prints the error with which the program ends.
pub fn failure(error: &Error) {
    let text = error.to_string();
    match JSON.load(Relaxed) {
        true => print(&json!({ "error": text, "exit_code": error.exit_code() }).to_string()),
        false => print(&format!("fbp: {}", indented(&clipped(&text)))),
    }
}

/// Prints help, the version, or an error in the arguments, and returns the exit code.
pub fn usage(answer: &clap::Error) -> u8 {
    let code = answer.exit_code().clamp(0, 255) as u8;
    if !answer.use_stderr() {
        let result = answer.print().and_then(|()| std::io::stdout().flush());
        return written(result).inspect_err(failure).map_or_else(|error| error.exit_code(), |()| code);
    }
    let text = answer.to_string();
    let text = text.trim_end();
    if JSON.load(Relaxed) {
        let text = text.strip_prefix("error: ").unwrap_or(text);
        print(&json!({ "error": text, "exit_code": code }).to_string());
    } else if *visible_lines(text) == *text {
        // with colours on a terminal
        let _ = answer.print();
    } else {
        print(text);
    }
    code
}

/// Shortens very long lines of a message, which quote input, in the middle.
fn clipped(message: &str) -> String {
    const HEAD: usize = 1200;
    const TAIL: usize = 400;
    let clip = |line: &str| {
        let count = line.chars().count();
        if count <= HEAD + TAIL {
            return line.to_owned();
        }
        let head: String = line.chars().take(HEAD).collect();
        let tail: String = line.chars().skip(count - TAIL).collect();
        format!("{head} .. {tail}")
    };
    message.lines().map(clip).collect::<Vec<_>>().join("\n")
}

/// Display of progress.
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

/// Selection of the messages of a run, and where they are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Messages {
    /// Level of detail: -1 for errors only, 0 for important messages, 1 and above for details.
    pub verbosity: i8,
    pub progress: ProgressKind,
    pub log: Option<PathBuf>,
    /// True if reasons to doubt the result are errors.
    pub strict: bool,
}

impl Messages {
    /// Returns the verbosity for the number of `--verbose` flags, or for `--quiet`.
    pub fn verbosity(verbose: u8, quiet: bool) -> i8 {
        if quiet { -1 } else { verbose.min(3) as i8 }
    }
}

/// Stage of a run; all stages work concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, Display)]
#[strum(serialize_all = "lowercase")]
pub enum Stage {
    Reading,
    Uploading,
    /// Steps on sinograms, on a device.
    Correcting,
    Computing,
    Downloading,
    Writing,
}

/// Time for which each stage was busy so far; the threads of a stage add to it.
#[derive(Debug)]
pub struct StageClock {
    nanoseconds: [AtomicU64; Stage::VARIANTS.len()],
    devices: u64,
    writers: u64,
}

impl StageClock {
    /// Creates the times for this number of devices and of writing threads.
    pub fn new(devices: usize, writers: usize) -> StageClock {
        StageClock { nanoseconds: Default::default(), devices: devices.max(1) as u64, writers: writers.max(1) as u64 }
    }

    /// Adds the time for which a thread of this stage was busy.
    pub fn add(&self, stage: Stage, busy: Duration) {
        let threads = match stage {
            Stage::Reading => 1,
            Stage::Writing => self.writers,
            Stage::Uploading | Stage::Correcting | Stage::Computing | Stage::Downloading => self.devices,
        };
        self.nanoseconds[stage as usize].fetch_add(busy.as_nanos() as u64 / threads, Relaxed);
    }

    /// Returns the busiest stage, if any was busy.
    pub fn busiest(&self) -> Option<Stage> {
        let busy = |stage: &Stage| self.nanoseconds[*stage as usize].load(Relaxed);
        Stage::VARIANTS.iter().copied().max_by_key(busy).filter(|stage| busy(stage) > 0)
    }
}

/// Printer of messages according to the verbosity, which also appends them to a log file.
pub struct Reporter {
    verbosity: i8,
    kind: ProgressKind,
    log: Option<Mutex<File>>,
    /// Notes and warnings so far.
    said: Mutex<Vec<String>>,
    doubts: Mutex<Vec<Doubt>>,
    strict: bool,
    /// Name of the scan that messages are about, in a command that runs several.
    scan: Option<String>,
    /// Progress that is displayed below all messages.
    bar: Mutex<Option<ProgressBar>>,
}

impl Reporter {
    /// Creates a reporter; see [`Messages`] for `verbosity`.
    pub fn new(verbosity: i8, kind: ProgressKind, log: Option<&Path>) -> Result<Self> {
        let open = |path| OutputFile::new("--log", path, OutputKind::Log, &InputSet::default(), None)?.append();
        let log = log.map(open).transpose()?;
        let kind = match kind {
            ProgressKind::Auto if verbosity < 0 => ProgressKind::None,
            ProgressKind::Auto if std::io::stderr().is_terminal() => ProgressKind::Bar,
            ProgressKind::Auto => ProgressKind::Plain,
            kind => kind,
        };
        let log = log.map(Mutex::new);
        let mut reporter = Reporter::silent();
        (reporter.verbosity, reporter.kind, reporter.log) = (verbosity, kind, log);
        Ok(reporter)
    }

    /// Creates a reporter for the messages of a run.
    pub fn of(messages: &Messages) -> Result<Self> {
        let Messages { verbosity, progress, log, strict } = messages;
        let mut reporter = Reporter::new(*verbosity, *progress, log.as_deref())?;
        reporter.strict = *strict;
        if *progress == ProgressKind::Json {
            failures_as_json();
        }
        Ok(reporter)
    }

    /// Creates a reporter that prints nothing.
    pub fn silent() -> Self {
        Reporter {
            verbosity: i8::MIN,
            kind: ProgressKind::None,
            log: None,
            said: Mutex::default(),
            doubts: Mutex::default(),
            strict: false,
            scan: None,
            bar: Mutex::default(),
        }
    }

    /// Returns the reporter with the name of the scan that its messages are about, if there are several.
    pub fn about(mut self, scan: Option<&str>) -> Self {
        self.scan = scan.map(str::to_owned);
        self
    }

    /// Returns the reporter with what an earlier one has said of the same data, which is not printed again.
    pub fn after(mut self, earlier: &Reporter) -> Self {
        (self.said, self.doubts) = (Mutex::new(earlier.said()), Mutex::new(earlier.doubts()));
        self
    }

    /// Prints a message if the verbosity is at least `level`, and logs it; `name` is the name of a doubt.
    fn say(&self, level: i8, text: &str, name: Option<DoubtKind>) {
        let (kind, message) = match text.split_once(": ") {
            Some((kind @ ("note" | "warning"), message)) => (kind, message),
            _ => ("message", text),
        };
        // tables of the program have several lines; notes and warnings may quote other text
        let plain = if kind == "message" { text.to_owned() } else { indented(text) };
        let plain = about(self.scan.as_deref(), &plain);
        if self.verbosity >= level {
            let line = match self.kind {
                ProgressKind::Json => {
                    let scan = self.scan.iter().map(|scan| ("scan", json!(scan)));
                    let name = name.into_iter().map(|name| ("name", json!(name)));
                    json_line(&scan.chain([(kind, json!(message))]).chain(name).collect::<Vec<_>>())
                }
                _ => plain.clone(),
            };
            match &*self.bar.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(bar) => bar.suspend(|| print(&line)),
                None => print(&line),
            }
        }
        if let Some(log) = &self.log
            && let Ok(mut log) = log.lock()
        {
            // a full log disk must not stop a run
            let _ = writeln!(log, "{}", visible_lines(&plain));
        }
    }

    /// Prints an important line.
    pub fn note(&self, text: &str) {
        self.remembered(text, None);
    }

    /// Prints a note or a warning unless it was printed before.
    pub fn note_once(&self, text: &str) {
        if !self.said().iter().any(|said| said == text) {
            self.note(text);
        }
    }

    fn remembered(&self, text: &str, name: Option<DoubtKind>) {
        if text.starts_with("note:") || text.starts_with("warning:") {
            self.said.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        }
        self.say(0, text, name);
    }

    /// Prints a note, or a warning about a reason to doubt the result, and remembers it.
    pub fn remark(&self, remark: impl Into<Remark>) {
        let remark = remark.into();
        let mut name = None;
        if let Remark::Doubt(doubt) = &remark {
            name = Some(doubt.name);
            self.doubts.lock().unwrap_or_else(PoisonError::into_inner).push(doubt.clone());
        }
        self.remembered(&remark.to_string(), name);
    }

    /// Returns the reasons to doubt the result so far.
    pub fn doubts(&self) -> Vec<Doubt> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses to continue if there is a reason to doubt the result and `--strict` was given.
    ///
    /// # Errors
    /// [`Error::Input`] that names the doubts.
    pub fn refuse_doubts(&self) -> Result<()> {
        let doubts = self.doubts();
        if !self.strict || doubts.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = doubts.iter().map(|doubt| doubt.name.to_string()).collect();
        Err(StrictRunError::Doubts { names: names.join(", ") }.into())
    }

    /// Returns all notes and warnings so far, printed or not.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints a line for `-v`.
    pub fn detail(&self, text: &str) {
        self.say(1, text, None);
    }

    /// Displays a step before or after the computation of slices on a terminal, until the next one.
    pub fn stage(&self, what: &'static str) {
        if self.kind == ProgressKind::Bar {
            let bar = ProgressBar::new_spinner().with_message(about(self.scan.as_deref(), what));
            bar.enable_steady_tick(Duration::from_millis(200));
            self.show(Some(bar));
        }
    }

    /// Removes the display of progress.
    pub fn clear(&self) {
        self.show(None);
    }

    fn show(&self, bar: Option<ProgressBar>) {
        let mut shown = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = std::mem::replace(&mut *shown, bar) {
            old.finish_and_clear();
        }
    }

    /// Starts the progress of `slices` slices of `updates` updates each.
    pub fn progress<'a>(&'a self, slices: usize, updates: f64, clock: &'a StageClock) -> Progress<'a> {
        let bar = (self.kind == ProgressKind::Bar).then(|| {
            let bar = ProgressBar::with_draw_target(Some(slices as u64), ProgressDrawTarget::stderr());
            let form = "{prefix}reconstructing {bar:24} {pos}/{len} slices, {msg}";
            let scan = self.scan.as_ref().map(|scan| format!("{}: ", visible(scan)));
            bar.with_prefix(scan.unwrap_or_default())
                .with_style(ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.iter().for_each(ProgressBar::tick);
        self.show(bar.clone());
        Progress { bar, reporter: self, slices, updates, clock, done: 0, start: Instant::now(), last: None }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns a JSON object on one line, with its keys in this order.
fn json_line(entries: &[(&str, Value)]) -> String {
    let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
    format!("{{{}}}", entries.join(","))
}

/// Progress of one run.
pub struct Progress<'a> {
    bar: Option<ProgressBar>,
    reporter: &'a Reporter,
    slices: usize,
    updates: f64,
    clock: &'a StageClock,
    done: usize,
    start: Instant,
    last: Option<Instant>,
}

/// Shortest time between plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(2);

impl Progress<'_> {
    /// Records that `count` more slices are written.
    pub fn advance(&mut self, count: usize) {
        self.done += count;
        let elapsed = self.start.elapsed().as_secs_f64().max(1e-9);
        let rate = self.done as f64 * self.updates / elapsed * 1e-9;
        let left = elapsed / self.done.max(1) as f64 * (self.slices - self.done) as f64;
        let limit = self.clock.busiest();
        let limits = limit.map(|stage| format!(", limited by {stage}")).unwrap_or_default();
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
            bar.set_message(format!("{rate:.2} GU/s, {} left{limits}", readable(left)));
        }
        let finished = self.done == self.slices;
        let due = self.last.is_none_or(|last| last.elapsed() >= PLAIN_EVERY);
        match self.reporter.kind {
            ProgressKind::Plain if due || finished => {
                let Progress { done, slices, .. } = self;
                let line = format!("{done}/{slices} slices, {rate:.2} GU/s, {elapsed:.1} s, {left:.1} s left{limits}");
                print(&about(self.reporter.scan.as_deref(), &line));
                self.last = Some(Instant::now());
            }
            ProgressKind::Json => {
                let mut line = json!({
                    "slices_done": self.done, "slices": self.slices, "gu_per_s": rate,
                    "seconds": elapsed, "seconds_left": left, "limit": limit.map(|stage| stage.to_string()),
                });
                if let Some(scan) = &self.reporter.scan {
                    line["scan"] = json!(scan);
                }
                print(&line.to_string());
            }
            _ => {}
        }
    }

    /// Removes the progress bar.
    pub fn finish(self) {
        self.reporter.clear();
    }
}

/// Formats a time in seconds for people: `12 s`, `3 min 20 s`, `2 h 5 min`.
pub fn readable(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!([0.2, 59.4, 61.0, 3725.0].map(readable), ["0 s", "59 s", "1 min 1 s", "1 h 2 min"]);
    }

    #[test]
    fn the_busiest_stage_limits() {
        let clock = StageClock::new(2, 3);
        assert_eq!(clock.busiest(), None);
        clock.add(Stage::Reading, Duration::from_millis(30));
        // two devices and three writing threads share the times
        clock.add(Stage::Computing, Duration::from_millis(50));
        clock.add(Stage::Writing, Duration::from_millis(80));
        assert_eq!(clock.busiest(), Some(Stage::Reading));
        clock.add(Stage::Computing, Duration::from_millis(20));
        assert_eq!(clock.busiest().map(|stage| stage.to_string()), Some("computing".into()));
    }

    #[test]
    fn notes_are_remembered() {
        let reporter = Reporter::silent();
        ["note: a", "b", "warning: c"].iter().for_each(|text| reporter.note(text));
        assert_eq!(reporter.said(), ["note: a", "warning: c"]);
    }

    #[test]
    fn doubts_are_errors_where_that_was_asked_for() {
        let doubt = || Doubt::new(DoubtKind::Saturated, "too bright", "expose for a shorter time");
        for strict in [false, true] {
            let messages = Messages { verbosity: -1, progress: ProgressKind::None, log: None, strict };
            let reporter = Reporter::of(&messages).unwrap();
            reporter.remark(Remark::note("a fact"));
            reporter.refuse_doubts().unwrap();
            reporter.remark(doubt());
            assert_eq!(reporter.said(), ["note: a fact", "warning: too bright; expose for a shorter time"]);
            assert_eq!(reporter.doubts(), [doubt()]);
            let refused = reporter.refuse_doubts().map_err(|e| (e.exit_code(), e.to_string().contains("(saturated)")));
            assert_eq!(refused, if strict { Err((3, true)) } else { Ok(()) });
        }
    }
}

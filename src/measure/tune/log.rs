//! Log of measurements, one line of JSON each, so that an interrupted run can continue.

use super::super::verdict::Verdict;
use crate::error::{BoxedError, Error, Result, messages};
use crate::files::{make_private, open_regular};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

messages! {
    /// Why measurements are not kept.
    enum LogError: Output {
        Unwritable { error: BoxedError } =>
            "the log of measurements cannot be written: {error}"; "set FBP_CACHE_DIR to a directory with space",
    }
}

/// Conditions that measurements must share to be comparable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurementConditions {
    pub device: String,
    pub driver: String,
    /// Version of the program.
    pub version: String,
    pub bins: usize,
    pub projections: usize,
    pub size: usize,
    pub passes: usize,
}

/// A measurement of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Key of the generated source.
    pub key: String,
    pub kernel: String,
    /// Number of the turn: 0 in the search, 1 for a point measured again there, from 2 in the comparison at its end.
    pub turn: u32,
    /// `right`, `wrong` or `failed`.
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Relative error; `None` if it is not finite.
    pub error: Option<f64>,
    pub gu_per_s: Option<f64>,
    /// Registers of an item, if the driver reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Total time of the measurement, which a resumed run charges to its budget.
    pub milliseconds: u64,
}

impl LogEntry {
    /// Returns the verdict as in the benchmark.
    pub fn verdict(&self) -> Verdict {
        match self.verdict.as_str() {
            "right" => Verdict::Correct,
            "wrong" => Verdict::Incorrect,
            _ => Verdict::Failed(self.reason.clone().unwrap_or_default()),
        }
    }

    /// Returns the speed of a correct kernel; `None` for other kernels.
    pub fn speed(&self) -> Option<f64> {
        self.gu_per_s.filter(|_| self.verdict == "right")
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum LogLine {
    /// Start of a run that does not resume earlier ones.
    Start {
        start: String,
        #[serde(flatten)]
        identity: MeasurementConditions,
    },
    Point {
        #[serde(flatten)]
        identity: MeasurementConditions,
        #[serde(flatten)]
        entry: LogEntry,
    },
}

/// The log of one device and driver.
pub struct Log {
    path: PathBuf,
    file: File,
    identity: MeasurementConditions,
    known: HashMap<(String, u32), LogEntry>,
    /// Number of points from an earlier run.
    pub resumed: usize,
    /// Number of lines that cannot be read.
    pub unreadable: usize,
}

impl Log {
    /// Opens the log. With `resume`, reads everything since the last run that was not resumed.
    pub fn open(path: &Path, identity: MeasurementConditions, resume: bool, date: &str) -> Result<Log> {
        let wrong = |e: std::io::Error| Error::output(path, LogError::Unwritable { error: e.into() });
        if let Some(directory) = path.parent() {
            make_private(directory).map_err(wrong)?;
        }
        let text = match contents(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(wrong(e)),
        };
        let mut file = File::options().create(true).append(true).open(path).map_err(wrong)?;
        // an incomplete line must not corrupt the next
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(file).map_err(wrong)?;
        }
        let (mut known, mut unreadable) = (HashMap::new(), 0);
        for line in text.lines().filter(|line| resume && !line.trim().is_empty()) {
            match serde_json::from_str(line) {
                Ok(LogLine::Start { identity: i, .. }) if i == identity => known.clear(),
                Ok(LogLine::Point { identity: i, entry }) if i == identity => {
                    known.insert((entry.key.clone(), entry.turn), entry);
                }
                Ok(_) => {}
                Err(_) => unreadable += 1,
            }
        }
        let mut log = Log { path: path.to_owned(), file, resumed: known.len(), identity, known, unreadable };
        if !resume {
            log.write(&LogLine::Start { start: date.to_owned(), identity: log.identity.clone() })?;
        }
        Ok(log)
    }

    /// Returns a measurement in the log, if it is there.
    pub fn find(&self, key: &str, turn: u32) -> Option<&LogEntry> {
        self.known.get(&(key.to_owned(), turn))
    }

    /// Adds a measurement; it is in the file when this returns.
    pub fn add(&mut self, entry: LogEntry) -> Result<()> {
        self.write(&LogLine::Point { identity: self.identity.clone(), entry: entry.clone() })?;
        self.known.insert((entry.key.clone(), entry.turn), entry);
        Ok(())
    }

    fn write(&mut self, line: &LogLine) -> Result<()> {
        let wrong = |error: BoxedError| Error::output(&self.path, LogError::Unwritable { error });
        let text = serde_json::to_string(line).map_err(|e| wrong(e.into()))?;
        self.file.write_all(format!("{text}\n").as_bytes()).map_err(|e| wrong(e.into()))
    }

    /// Returns the file's name without its directory.
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Reads all bytes of an existing log.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(driver: &str) -> MeasurementConditions {
        let [device, driver, version] = ["card", driver, "1"].map(str::to_owned);
        MeasurementConditions { device, driver, version, bins: 8, projections: 8, size: 8, passes: 1 }
    }

    fn entry(key: &str, speed: f64) -> LogEntry {
        LogEntry {
            key: key.into(),
            kernel: "k".into(),
            turn: 0,
            verdict: "right".into(),
            reason: None,
            error: Some(1.0 / 3.0),
            gu_per_s: Some(speed),
            registers: None,
            milliseconds: 7,
        }
    }

    #[test]
    fn a_resumed_run_knows_what_the_last_one_measured() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/log.jsonl");
        let open = |driver, resume| Log::open(&path, identity(driver), resume, "today").unwrap();
        let mut log = open("1", true);
        log.add(entry("a", 0.1)).unwrap();
        log.add(entry("b", 2.0 / 3.0)).unwrap();
        let failed = LogEntry { verdict: "failed".into(), reason: Some("no\nway".into()), ..entry("c", 1.0) };
        log.add(failed.clone()).unwrap();
        let log = open("1", true);
        assert_eq!((log.resumed, log.unreadable, log.name().as_str()), (3, 0, "log.jsonl"));
        assert_eq!(log.find("b", 0), Some(&entry("b", 2.0 / 3.0)));
        assert_eq!((log.find("b", 1), log.find("d", 0)), (None, None));
        assert_eq!(log.find("c", 0).unwrap().verdict(), Verdict::Failed("no\nway".into()));
        assert_eq!(log.find("c", 0).unwrap().speed(), None);
        // another driver
        assert_eq!(open("2", true).resumed, 0);
        // a run that begins anew, and is cut off in the middle of a line
        let mut log = open("1", false);
        assert_eq!(log.find("a", 0), None);
        log.add(entry("a", 3.0)).unwrap();
        log.file.write_all(b"{\"key\": \"half").unwrap();
        let mut log = open("1", true);
        assert_eq!((log.resumed, log.unreadable), (1, 1));
        log.add(entry("e", 1.0)).unwrap();
        assert_eq!(open("1", true).resumed, 2);
    }
}

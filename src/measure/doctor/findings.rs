//! The problems, findings, table and verdict of `fbp doctor`.

use super::super::bench::BenchRow;
use super::super::protocol::Protocol;
use super::super::text::{markdown, scientific};
use super::super::verdict::{Verdict, verdict_word};
use crate::error::{Result, messages};
use crate::facts::DeviceFacts;
use serde::Serialize;
use std::path::PathBuf;

messages! {
    /// What a device does incorrectly.
    enum DiagnosisError: CheckFailed {
        /// Runs avoid a kernel, but nothing else.
        Kernel { device: String, driver: String, name: String, why: String, more: String } =>
            "{device}, driver {driver}: kernel {name} is incorrect ({why}){more}; fbp reconstruct checks the kernel \
             of a run and uses another one";
            "try a newer driver, another --device or another --profile",
        Needed { device: String, driver: String, what: &'static str, name: String, why: String, more: String } =>
            "{device}, driver {driver}: {what} {name} is incorrect ({why}){more}; fbp reconstruct would not run like \
             this";
            "install what the message names, or choose another --device",
    }
}

/// Problems for checking kernels: complete blocks, and few pixels (no complete block) from many projections, so that loops
/// run as often as in real scans.
pub const DOCTOR_PROBLEMS: [Protocol; 2] = [Protocol::check(96, 100, 96), Protocol::check(37, 2003, 45)];

/// Problem for checking kernels on simulators, which are about a thousand times slower than a device.
pub const QUICK_DOCTOR_PROBLEMS: [Protocol; 1] = [Protocol::check(23, 9, 40)];

/// Numbers of detector bins for which the filter is checked.
pub const DOCTOR_BINS: [usize; 6] = [64, 96, 512, 1000, 2048, 4096];
/// Number of detector bins for which the filter is checked on simulators.
pub const QUICK_DOCTOR_BINS: [usize; 1] = [23];

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub name: String,
    #[serde(serialize_with = "verdict_word")]
    pub verdict: Verdict,
    pub error: Option<f64>,
    pub margin: Option<f64>,
    pub reason: Option<String>,
    /// Key of the generated source, for a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// True if the program avoids what failed by itself: formats and kernels by using others, steps by leaving them to
    /// the host.
    pub avoided: bool,
}

impl Finding {
    /// Makes a finding without numbers; a failed check of something that the program does not use is `avoided`.
    pub fn plain(name: String, verdict: Verdict, reason: Option<String>, avoided: bool) -> Self {
        Finding { name, verdict, error: None, margin: None, reason, key: None, avoided }
    }

    /// Makes the finding for a kernel; known failures are avoided.
    pub fn kernel(row: BenchRow) -> Self {
        Finding {
            name: row.kernel,
            verdict: row.verdict,
            error: row.error,
            margin: Some(row.margin),
            reason: row.reason.filter(|reason| !reason.is_empty()),
            key: Some(row.key),
            avoided: row.known,
        }
    }

    fn is_bad(&self) -> bool {
        self.verdict.is_bad() && !self.avoided
    }
}

/// All findings, as one JSON object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    pub device: String,
    pub platform: String,
    pub driver: String,
    pub profile: String,
    /// `right` or `wrong`.
    pub verdict: String,
    /// Findings on kernels.
    pub variants: Vec<Finding>,
    pub formats: Vec<Finding>,
    pub lengths: Vec<Finding>,
    /// Findings on the steps of a device around the filter.
    pub steps: Vec<Finding>,
    /// Path at which verdicts are stored, if they are.
    pub cache: Option<PathBuf>,
}

impl Diagnosis {
    /// Combines findings.
    pub fn new(
        facts: &DeviceFacts,
        profile: String,
        [formats, lengths, steps, variants]: [Vec<Finding>; 4],
        cache: Option<PathBuf>,
    ) -> Self {
        let bad = formats.iter().chain(&lengths).chain(&steps).chain(&variants).any(Finding::is_bad);
        Diagnosis {
            device: facts.name.clone(),
            platform: facts.platform.clone(),
            driver: facts.driver.clone(),
            profile,
            verdict: if bad { "wrong" } else { "right" }.to_owned(),
            variants,
            formats,
            lengths,
            steps,
            cache,
        }
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &Finding)> {
        [("format", &self.formats), ("length", &self.lengths), ("step", &self.steps), ("kernel", &self.variants)]
            .into_iter()
            .flat_map(|(what, findings)| findings.iter().map(move |finding| (what, finding)))
    }

    /// Returns the findings as a table.
    pub fn table(&self) -> String {
        let mut lines = vec![["what", "name", "error", "margin", "verdict", "reason"].map(str::to_owned).to_vec()];
        for (what, f) in self.all() {
            let first = f.reason.as_deref().and_then(|reason| reason.lines().next()).unwrap_or("");
            lines.push(vec![
                what.to_owned(),
                f.name.clone(),
                scientific(f.error),
                f.margin.map_or("-".to_owned(), |margin| format!("{margin:.0e}")),
                f.verdict.to_string(),
                first.to_owned(),
            ]);
        }
        markdown(&lines, &[2, 3])
    }

    /// Returns a summary in one line.
    pub fn summary(&self) -> String {
        let skipped = |f: &Finding| matches!(f.verdict, Verdict::Skipped(_));
        let bad = |f: &Finding| f.verdict.is_bad() && f.avoided;
        let kernels: [(Test, &str); 3] =
            [(&skipped, "skipped"), (&Finding::is_bad, "wrong or failed"), (&bad, "known to be wrong and not used")];
        let steps: [(Test, &str); 2] = [(&skipped, "skipped"), (&bad, "wrong or failed and left to the host")];
        let groups = [counted("kernels", &self.variants, &kernels), counted("steps", &self.steps, &steps)];
        format!("{}: {}", self.verdict, groups.join("; "))
    }

    /// Returns an error if something that is offered fails: the first failure, and what to do.
    pub fn verdict(&self) -> Result<()> {
        let mut bad = self.all().filter(|(_, finding)| finding.is_bad());
        let Some((what, first)) = bad.next() else { return Ok(()) };
        let why = match (&first.reason, first.error, first.margin) {
            (_, Some(error), Some(margin)) => format!("error {error:.1e}, margin {margin:.0e}"),
            (Some(reason), ..) => reason.trim_end().to_owned(),
            _ => "it does not work".to_owned(),
        };
        let more = match bad.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (device, driver, name) = (self.device.clone(), self.driver.clone(), first.name.clone());
        let error = match what {
            "kernel" => DiagnosisError::Kernel { device, driver, name, why, more },
            what => DiagnosisError::Needed { device, driver, what, name, why, more },
        };
        Err(error.into())
    }
}

type Test<'a> = &'a dyn Fn(&Finding) -> bool;

/// Returns as text how many findings are right, and how many of each other kind, if any.
fn counted(what: &str, findings: &[Finding], kinds: &[(Test, &str)]) -> String {
    let count = |test: Test| findings.iter().filter(|finding| test(finding)).count();
    let right = count(&|finding| finding.verdict == Verdict::Correct);
    let mut text = format!("{right} of {} {what} right", findings.len());
    for (count, kind) in kinds.iter().map(|(test, kind)| (count(test), kind)).filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {kind}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::bench::example_row;
    use super::*;
    use crate::facts::example;
    use crate::kernel::Algorithm;

    fn diagnosis(known: bool) -> Diagnosis {
        let mut wrong = Finding::kernel(BenchRow { known, ..example_row(Algorithm::Alu, 1, None) });
        wrong.name = "odd".into();
        let right = Finding::kernel(example_row(Algorithm::Standard, 1, Some(1.0)));
        let format = Finding::plain("R half".into(), Verdict::Incorrect, Some("not used".into()), true);
        let length = Finding::plain("192".into(), Verdict::Correct, None, false);
        let step = |name: &str, verdict| Finding::plain(name.into(), verdict, None, true);
        let steps = vec![step("rows", Verdict::Correct), step("stripes mean", Verdict::Incorrect)];
        Diagnosis::new(&example(), "default".into(), [vec![format], vec![length], steps, vec![right, wrong]], None)
    }

    #[test]
    fn only_what_would_be_used_counts() {
        let bad = diagnosis(false);
        assert_eq!(bad.verdict, "wrong");
        let message = bad.verdict().unwrap_err();
        assert_eq!(message.exit_code(), 1);
        let message = message.to_string();
        assert!(message.contains("kernel odd is incorrect (error 2.0e-6, margin 1e-5)"), "{message}");
        assert!(message.contains("--profile") && message.contains("1.0"), "{message}");
        assert_eq!(
            bad.summary(),
            "wrong: 1 of 2 kernels right, 1 wrong or failed; 1 of 2 steps right, 1 wrong or failed and left to the host"
        );
        let fine = diagnosis(true);
        assert!(fine.verdict().is_ok());
        assert_eq!(
            fine.summary(),
            "right: 1 of 2 kernels right, 1 known to be wrong and not used; 1 of 2 steps right, 1 wrong or failed and left to the host"
        );
    }

    #[test]
    fn a_row_for_everything() {
        let table = diagnosis(false).table();
        let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|l| l.split('|').map(str::trim).collect()).collect();
        assert_eq!(rows.len(), 6);
        assert_eq!(rows[0][1..=6], ["format", "R half", "-", "-", "WRONG", "not used"]);
        assert_eq!(rows[1][1..=6], ["length", "192", "-", "-", "right", ""]);
        assert_eq!(rows[3][1..=6], ["step", "stripes mean", "-", "-", "WRONG", ""]);
        assert_eq!(rows[5][1..=6], ["kernel", "odd", "2.0e-6", "1e-5", "WRONG", ""]);
        let json = serde_json::to_value(diagnosis(false)).unwrap();
        assert_eq!(json["variants"][1]["verdict"], "wrong");
    }
}

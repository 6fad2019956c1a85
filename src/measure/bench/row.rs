//! A line of the benchmark, which describes a kernel that was measured; its JSON, and the table.

use super::super::protocol::Protocol;
use super::super::text::{markdown, scientific, three_digits};
use super::super::verdict::{Verdict, verdict_word};
use crate::facts::DeviceFacts;
use crate::kernel::{Algorithm, Interpolation, Mode, Offer};
use crate::profile::Profile;
use serde::Serialize;

/// One line of the benchmark, and one object of its JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchRow {
    pub device: String,
    pub driver: String,
    pub profile: String,
    pub algorithm: Algorithm,
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub slices: u32,
    pub bins: usize,
    pub projections: usize,
    pub size: usize,
    /// Name of the generated source.
    pub kernel: String,
    /// Key of the generated source.
    pub key: String,
    #[serde(serialize_with = "verdict_word")]
    pub verdict: Verdict,
    /// Reason why there is no result, or why the kernel is a known failure.
    pub reason: Option<String>,
    /// True if the kernel is known to fail with this driver.
    #[serde(skip)]
    pub known: bool,
    /// Relative error, see [`Reference::error`](crate::check::Reference::error).
    pub error: Option<f64>,
    pub margin: f64,
    /// Speed of the back-projection kernel in 10^9 updates per second.
    pub gu_per_s: Option<f64>,
    /// Upper bound of the speed by the model.
    pub bound_gu_per_s: Option<f64>,
    /// Unit that limits the kernel by the model.
    pub limit: Option<&'static str>,
    /// Share of the bound that was reached.
    pub share: Option<f64>,
    /// Registers of an item, as the driver reports them.
    pub registers: Option<u32>,
    /// Bytes of an item in memory, outside its registers, as the driver reports them: spills and indexed arrays.
    pub private_bytes: Option<u64>,
    /// Resident warps by the model, as a share of the most.
    pub occupancy: Option<f64>,
    /// Resource that limits the resident warps.
    pub occupancy_limit: Option<&'static str>,
    /// Share by which the rate after the timed passes differs from that before.
    pub drift: Option<f64>,
    /// True if the drift is more than what passes scatter by.
    pub moved: Option<bool>,
    /// Number of times that the kernel was timed, until its rate did not move or the patience ended.
    pub runs: Option<usize>,
    /// When the timed passes began and ended, in seconds since 1970.
    pub during: Option<[f64; 2]>,
    /// Seconds of back projection for one slice of a pass.
    pub seconds_per_slice: Option<f64>,
    /// Seconds of the whole filter for one slice of a pass: padding, transforms, spectrum, storing.
    pub filter_seconds_per_slice: Option<f64>,
}

impl BenchRow {
    /// Makes a line without results; `name` and `key` are those of the generated source.
    pub fn new(
        facts: &DeviceFacts,
        profile: &Profile,
        offer: &Offer,
        protocol: &Protocol,
        name: &str,
        key: &str,
        margin: f64,
    ) -> BenchRow {
        BenchRow {
            device: facts.name.clone(),
            driver: facts.driver.clone(),
            profile: profile.name.clone(),
            algorithm: offer.parameters.algorithm(),
            interpolation: offer.interpolation,
            mode: offer.mode,
            slices: offer.slices,
            bins: protocol.bins,
            projections: protocol.projections,
            size: protocol.size,
            kernel: name.to_owned(),
            key: key.to_owned(),
            verdict: Verdict::Skipped(String::new()),
            reason: None,
            known: false,
            error: None,
            margin,
            gu_per_s: None,
            bound_gu_per_s: None,
            limit: None,
            share: None,
            registers: None,
            private_bytes: None,
            occupancy: None,
            occupancy_limit: None,
            drift: None,
            moved: None,
            runs: None,
            during: None,
            seconds_per_slice: None,
            filter_seconds_per_slice: None,
        }
    }

    /// Adds the unit that limits the kernel and what it allows, in GU/s.
    pub fn with_bound(mut self, bound: Option<(&'static str, f64)>) -> BenchRow {
        (self.limit, self.bound_gu_per_s) = (bound.map(|(unit, _)| unit), bound.map(|(_, rate)| rate));
        self.share = self.gu_per_s.zip(self.bound_gu_per_s).map(|(rate, bound)| rate / bound);
        self
    }

    /// Adds the registers of an item, and the share of resident warps with what limits it.
    pub fn with_occupancy(self, registers: Option<u32>, occupancy: Option<(f64, &'static str)>) -> BenchRow {
        BenchRow { registers, occupancy: occupancy.map(|o| o.0), occupancy_limit: occupancy.map(|o| o.1), ..self }
    }

    /// Returns the occupancy and what limits it, for a cell of a table.
    pub fn occupancy_cell(&self) -> String {
        let percent = self.occupancy.map(|share| format!("{:.0} %", 100.0 * share));
        percent.map_or("-".to_owned(), |percent| format!("{percent} {}", self.occupancy_limit.unwrap_or("")))
    }

    /// Adds the reason of a known failure, if there is one.
    pub fn with_known(mut self, why: Option<&str>) -> BenchRow {
        self.known = why.is_some();
        self.reason = why.map(|why| format!("known: {why}"));
        self
    }

    /// Replaces the verdict and its error by a verdict without numbers.
    pub fn without_numbers(mut self, verdict: Verdict) -> BenchRow {
        let reasons = [self.reason.take(), verdict.reason().map(str::to_owned)];
        self.reason = Some(reasons.into_iter().flatten().collect::<Vec<_>>().join("; "));
        self.verdict = verdict;
        self.error = None;
        self
    }

    /// Reports whether the rate was another after the timed passes than before, however often they were repeated.
    fn has_moved(&self) -> bool {
        self.moved.unwrap_or(false)
    }

    /// Returns one line of progress.
    pub fn describe(&self) -> String {
        let mut text = match (self.gu_per_s, self.error) {
            (Some(rate), _) => format!("{} GU/s", three_digits(rate)),
            (None, Some(_)) => format!("{}, error {}", self.verdict, scientific(self.error)),
            (None, None) => self.verdict.to_string(),
        };
        if self.has_moved() {
            let percent = 100.0 * self.drift.unwrap_or(0.0);
            text += &format!(", its rate moved by {percent:+.0} % in the last of {} runs", self.runs.unwrap_or(1));
        }
        if let Some(reason) = &self.reason {
            text += &format!(", {}", reason.lines().next().unwrap_or(""));
        }
        text
    }
}

/// Returns the result as a Markdown table with aligned columns, and the reasons why kernels have no result. The table
/// has a column of profiles if there are several.
pub fn bench_table(rows: &[BenchRow]) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), three_digits);
    let milli = |value: Option<f64>| number(value.map(|v| v * 1e3));
    let several = rows.iter().any(|r| r.profile != rows[0].profile);
    let mut lines = vec![
        [
            "profile",
            "algorithm",
            "interpolation",
            "mode",
            "slices",
            "GU/s",
            "of bound",
            "limit",
            "occupancy",
            "ms/slice",
            "filter ms/slice",
            "error",
            "margin",
            "verdict",
            "kernel",
        ]
        .map(str::to_owned),
    ];
    for r in rows {
        lines.push([
            r.profile.clone(),
            r.algorithm.to_string(),
            r.interpolation.to_string(),
            r.mode.to_string(),
            r.slices.to_string(),
            number(r.gu_per_s),
            r.share.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            r.limit.unwrap_or("-").to_owned(),
            r.occupancy_cell(),
            milli(r.seconds_per_slice),
            milli(r.filter_seconds_per_slice),
            scientific(r.error),
            format!("{:.0e}", r.margin),
            r.verdict.to_string(),
            r.kernel.clone(),
        ]);
    }
    let first = usize::from(!several);
    let lines: Vec<&[String]> = lines.iter().map(|line| &line[first..]).collect();
    let mut text = markdown(&lines, &[4, 5, 6, 9, 10, 11, 12].map(|column| column - first));
    for row in rows.iter().filter(|r| r.reason.is_some() || r.has_moved()) {
        text += &format!("\n{} {}: {}\n", row.kernel, row.mode, row.describe());
    }
    text
}

#[cfg(test)]
pub(crate) fn example_row(algorithm: Algorithm, slices: u32, gu_per_s: Option<f64>) -> BenchRow {
    BenchRow {
        device: "Example <GPU> & \"9000\"".into(),
        driver: "1.0".into(),
        profile: "default".into(),
        algorithm,
        interpolation: Interpolation::Linear,
        mode: Mode::Precise,
        slices,
        bins: 64,
        projections: 48,
        size: 64,
        kernel: "example".into(),
        key: "0".into(),
        verdict: if gu_per_s.is_some() { Verdict::Correct } else { Verdict::Incorrect },
        reason: None,
        known: false,
        error: Some(2e-6),
        margin: 1e-5,
        gu_per_s,
        bound_gu_per_s: Some(200.0),
        limit: Some("local"),
        share: gu_per_s.map(|rate| rate / 200.0),
        registers: Some(40),
        private_bytes: Some(8),
        occupancy: Some(0.75),
        occupancy_limit: Some("registers"),
        drift: gu_per_s.map(|_| 0.001),
        moved: gu_per_s.map(|_| false),
        runs: gu_per_s.map(|_| 1),
        during: gu_per_s.map(|_| [1e9, 1e9 + 1.0]),
        seconds_per_slice: gu_per_s.map(|_| 1.25e-3),
        filter_seconds_per_slice: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_stands_only_beside_a_passed_check() {
        let mut rows = [
            example_row(Algorithm::Standard, 1, Some(123.4)),
            example_row(Algorithm::Alu, 16, None),
            example_row(Algorithm::Alu, 2, None).without_numbers(Verdict::Skipped("too large".into())),
        ];
        let text = bench_table(&rows);
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split('|').map(str::trim).collect()).collect();
        assert_eq!(lines.len(), 7);
        assert_eq!(
            lines[2][1..=13],
            [
                "standard",
                "linear",
                "precise",
                "1",
                "123",
                "62 %",
                "local",
                "75 % registers",
                "1.25",
                "-",
                "2.0e-6",
                "1e-5",
                "right"
            ]
        );
        assert_eq!(lines[3][5..=6], ["-", "-"]);
        assert_eq!((lines[3][13], lines[4][13]), ("WRONG", "skipped"));
        // aligned
        assert!(text.lines().take(5).all(|l| l.len() == text.lines().next().unwrap().len()));
        assert!(text.ends_with("\nexample precise: skipped, too large\n"), "{text}");
        assert!(!text.contains("profile"));
        assert!(rows[1].verdict.is_bad() && !rows[2].verdict.is_bad());
        let json = serde_json::to_value(&rows[2]).unwrap();
        assert_eq!((&json["verdict"], &json["reason"]), (&"skipped".into(), &"too large".into()));
        rows[1].profile = "other".into();
        assert!(bench_table(&rows).starts_with("| profile |"));
    }
}

//! The summary of a run, as text and as JSON.

use super::errors::ReconstructWarning;
use crate::axis::Axis;
use crate::cli::ReconstructArgs;
use crate::commands::repairs::{RepairCommand, RepairFlags, counted, doubts};
use crate::engine::{DeviceSeconds, DeviceShare, Done, ReadyDevice, SolverCounts};
use crate::error::Result;
use crate::files::{OutputFile, SOFTWARE};
use crate::geometry::Geometry;
use crate::job::Job;
use crate::least_squares::Iterations;
use crate::remark::{Doubt, DoubtKind, Remark};
use crate::report::Reporter;
use crate::resolution::Resolution;
use crate::sink::Dtype;
use crate::source::{FileNames, JoinedPart};
use crate::steps::Repairs;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The outcome of a run. Seconds are wall-clock time, except those of kernels, which the device measures.
pub(super) struct Summary<'a> {
    pub job: &'a Job,
    pub devices: &'a [ReadyDevice],
    pub done: &'a Done,
    pub geometry: &'a Geometry,
    /// Names of the files of projections or sinograms.
    pub files: FileNames,
    /// Parts of which the scan was joined.
    pub parts: &'a [JoinedPart],
    pub axis: Axis,
    /// Number of slices that were computed.
    pub slices: usize,
    /// Number of updates of one slice.
    pub updates: f64,
    /// Duration of the whole run.
    pub seconds: f64,
    /// Time until the first slice was read.
    pub start: f64,
    pub repairs: Repairs,
    /// Resolution and noise, if they were measured.
    pub resolution: Option<Resolution>,
}

/// Returns reasons to doubt the slices of a job that come from the data that were read.
pub(super) fn doubts_about(job: &Job, repairs: &Repairs) -> Vec<Doubt> {
    let recipe = &job.recipe;
    let excluded = recipe.scan.exclude.to_string();
    let flags = RepairFlags {
        sinograms: recipe.input.is_sinograms(),
        stripes: &recipe.steps.stripes,
        command: RepairCommand::Reconstruct { excluded: &excluded },
    };
    doubts(repairs, &flags)
}

/// Returns remarks for the user on the data and the slices, with the flags that help.
pub(in crate::commands) fn remarks_on(
    job: &Job,
    devices: &[ReadyDevice],
    repairs: &Repairs,
    done: &Done,
) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = doubts_about(job, repairs).into_iter().map(Remark::from).collect();
    if repairs.outliers > 0 {
        remarks.push(Remark::note(format!("{} outliers were replaced", repairs.outliers)));
    }
    if done.clipped > 0 {
        let what = match job.recipe.values.dtype {
            Dtype::F16 => "are too large for f16 and were written as infinite; use --dtype f32",
            _ => "are outside the range and were clipped",
        };
        remarks.push(Remark::note(format!("{} pixels {what}", done.clipped)));
    }
    if job.recipe.solver.is_some_and(|solver| solver.interior) {
        remarks.push(Remark::note("the sample is wider than the detector: values in slices have an offset"));
    }
    if let Some(SolverCounts { unfinished: slices @ 1.., .. }) = solver_counts(devices) {
        let (slices, iterations) = (counted(slices, "slice"), Iterations::MOST);
        let warning = ReconstructWarning::Unfinished { slices, iterations };
        remarks.push(Doubt::of(DoubtKind::Unfinished, &warning).into());
    }
    remarks
}

/// Returns how slices were found, if by least squares.
fn solver_counts(devices: &[ReadyDevice]) -> Option<SolverCounts> {
    let counts = devices.iter().filter_map(|device| device.engine.solver_counts());
    counts.reduce(|all, of_device| all.and(&of_device))
}

impl<'a> Summary<'a> {
    /// Returns the seconds of all devices together.
    fn device(&self) -> DeviceSeconds {
        self.done.devices.iter().fold(DeviceSeconds::default(), |sum, device| sum + device.seconds)
    }

    /// Returns the share of its time that every stage was busy; of several devices, that of the busiest one.
    pub fn busy(&self) -> [(&'static str, f64); 6] {
        let most = |of: fn(&DeviceSeconds) -> f64| self.done.devices.iter().map(|d| of(&d.seconds)).fold(0.0, f64::max);
        [
            ("reading", self.done.read),
            ("uploading", most(|d| d.upload)),
            ("correcting", most(|d| d.steps)),
            ("computing", most(|d| d.filter + d.back_projection + d.solver + d.finish)),
            ("downloading", most(|d| d.download)),
            ("writing", self.done.write),
        ]
        .map(|(stage, seconds)| (stage, share(seconds, self.done.seconds)))
    }

    /// Returns the name of the busiest stage.
    pub fn limit(&self) -> &'static str {
        self.busy().iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("nothing", |(stage, _)| stage)
    }

    /// Returns the seconds of every stage, summed over all devices.
    pub fn stages(&self) -> [(&'static str, f64); 10] {
        let d = self.device();
        [
            ("start", self.start),
            ("read", self.done.read),
            ("upload", d.upload),
            ("steps", d.steps),
            ("filter", d.filter),
            ("back_projection", d.back_projection),
            ("solver", d.solver),
            ("finish", d.finish),
            ("download", d.download),
            ("write", self.done.write),
        ]
    }

    /// Returns the number of slices that every device computed, and its rate of back projection in 10^9 updates per
    /// second.
    pub fn rates(&self) -> impl Iterator<Item = (usize, f64)> {
        let of = |device: &DeviceShare| {
            (device.slices, rate(device.slices as f64 * self.updates, device.seconds.back_projection))
        };
        self.done.devices.iter().map(of)
    }

    /// Returns the rate of back projection of all devices together in 10^9 updates per second.
    fn kernel_rate(&self) -> f64 {
        self.rates().map(|(_, rate)| rate).sum()
    }

    fn total_rate(&self) -> f64 {
        rate(self.slices as f64 * self.updates, self.seconds)
    }

    /// Returns how slices were found, if by least squares.
    fn solver(&self) -> Option<SolverCounts> {
        solver_counts(self.devices)
    }

    /// Reports the remarks on the data and the slices.
    pub fn warn(&self, reporter: &Reporter) {
        remarks_on(self.job, self.devices, &self.repairs, self.done)
            .into_iter()
            .for_each(|remark| reporter.remark(remark));
    }

    /// Reports the summary at the end of the run.
    pub fn tell(&self, reporter: &Reporter) {
        let seconds: Vec<String> =
            self.stages().iter().map(|(stage, seconds)| format!("{} {seconds:.2}", stage.replace('_', " "))).collect();
        reporter.detail(&format!("seconds: {}", seconds.join(", ")));
        let busy: Vec<String> =
            self.busy().iter().map(|(stage, share)| format!("{stage} {:.0} %", share * 100.0)).collect();
        reporter.detail(&format!("busy: {}; limited by {}", busy.join(", "), self.limit()));
        if self.devices.len() > 1 {
            for ((device, share), (slices, speed)) in self.devices.iter().zip(&self.done.devices).zip(self.rates()) {
                let did = match share {
                    DeviceShare { failed: true, .. } => format!("{}, then it failed", counted(slices, "slice")),
                    DeviceShare { slices: 0, .. } => "had nothing to do".to_owned(),
                    _ => format!("{}, {speed:.2} GU/s", counted(slices, "slice")),
                };
                reporter.note(&format!("{}: {did}", device.label));
            }
        }
        let device = match self.devices {
            [one] => one.label.clone(),
            several => format!("{} devices", several.len()),
        };
        let speed = match self.solver() {
            Some(SolverCounts { mut iterations, .. }) if !iterations.is_empty() => {
                iterations.sort_unstable();
                format!("{} to {} iterations", iterations[0], iterations[iterations.len() - 1])
            }
            _ => format!("back projection {:.2} GU/s, overall {:.2} GU/s", self.kernel_rate(), self.total_rate()),
        };
        reporter.note(&format!(
            "{} from {} in {:.2} s on {device}: {speed}",
            counted(self.slices, "slice"),
            counted(self.geometry.projections(), "projection"),
            self.seconds,
        ));
        if let Some(resolution) = &self.resolution {
            reporter.note(&resolution.in_words(&self.job.recipe.unit()));
        }
    }

    /// Writes the report of `--report`.
    pub fn write(&self, file: &OutputFile, flags: &ReconstructArgs, doubts: &[Doubt]) -> Result<()> {
        let first = &self.devices[0];
        let report = json!({
            "software": SOFTWARE,
            "run": flags,
            "version": env!("CARGO_PKG_VERSION"),
            "device": first.facts().name,
            "platform": first.facts().platform,
            "driver": first.facts().driver,
            "profile": first.plan.profile.name,
            "profile_reason": first.plan.profile_reason,
            "kernels": self.devices.iter().map(kernel).collect::<Vec<_>>(),
            "devices": self.devices.iter().zip(&self.done.devices).map(|(device, DeviceShare { slices, seconds, .. })| json!({
                "device": device.label,
                "kernel": device.engine.kernel_source.key,
                "slices": slices,
                "chunk": device.plan.chunk,
                "seconds": seconds,
            })).collect::<Vec<_>>(),
            "files": self.files,
            "parts": self.parts,
            "projections": self.geometry.projections(),
            "center": self.axis,
            "self_test": first.self_test,
            "padded_bins": first.plan.row_filter.length,
            "slices": self.slices,
            "shard": self.job.execution.shard.map(|shard| json!({ "index": shard.index, "count": shard.count })),
            "projection_parts": first.plan.cut.parts(self.geometry).count(),
            "slice_bands": first.plan.cut.bands(self.geometry.roi).count(),
            "seconds": self.seconds,
            "stages": BTreeMap::from(self.stages()),
            "busy": BTreeMap::from(self.busy()),
            "limit": self.limit(),
            "solver": self.solver().map(|SolverCounts { iterations, sigma, objective, unfinished }| json!({
                "iterations": iterations,
                "sigma": sigma,
                "objective": objective,
                "unfinished": unfinished,
            })),
            "gu_per_s": self.kernel_rate(),
            "total_gu_per_s": self.total_rate(),
            "peak_memory": peak_memory(),
            "clamped": self.repairs.clamped.total(),
            "clamped_by_reason": self.repairs.clamped,
            "replaced_rows": self.repairs.spoilt_rows,
            "replaced_bins": self.repairs.failing_bins.len(),
            "outliers": self.repairs.outliers,
            "saturated": self.repairs.saturated,
            "saturated_flats": self.repairs.saturated_flats,
            "unlit": self.repairs.unlit,
            "clipped": self.done.clipped,
            "resolution": self.resolution,
            "notes": first.plan.notes,
            "doubts": doubts,
        });
        file.write(format!("{report:#}\n"))
    }
}

fn kernel(device: &ReadyDevice) -> Value {
    let source = &device.engine.kernel_source;
    json!({
        "name": source.name,
        "key": source.key,
        "options": source.options,
        "uses": device.engine.resources,
    })
}

/// Returns the largest amount of host memory that the process has used, in bytes, if the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Returns a rate in 10^9 updates per second; 0 where no time is known.
fn rate(updates: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { updates / seconds * 1e-9 } else { 0.0 }
}

fn share(part: f64, total: f64) -> f64 {
    if total > 0.0 { part / total } else { 0.0 }
}

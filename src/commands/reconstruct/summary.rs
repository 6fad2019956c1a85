//! The summary of a run, as text and as JSON.

use crate::axis::Axis;
use crate::cli::ReconstructArgs;
use crate::commands::repairs::{RepairCommand, RepairFlags, counted, doubts};
use crate::engine::{DeviceSeconds, DeviceShare, Done, ReadyDevice};
use crate::error::Result;
use crate::files::{OutputFile, SOFTWARE};
use crate::geometry::Geometry;
use crate::job::Job;
use crate::remark::{Doubt, Remark};
use crate::report::Reporter;
use crate::sink::Dtype;
use crate::source::FileNames;
use crate::steps::Repairs;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How a run went. Seconds are of the wall's clock, but for kernels, which the device times.
pub(super) struct Summary<'a> {
    pub job: &'a Job,
    pub devices: &'a [ReadyDevice],
    pub done: &'a Done,
    pub geometry: &'a Geometry,
    /// Of the projections or sinograms.
    pub files: FileNames,
    pub axis: Axis,
    /// Slices of the run.
    pub slices: usize,
    /// Updates of one slice.
    pub updates: f64,
    /// The whole run.
    pub seconds: f64,
    /// Until the first slice was read.
    pub start: f64,
    pub repairs: Repairs,
}

/// Reasons to doubt the slices of a job that come from the data that were read.
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

impl<'a> Summary<'a> {
    /// Seconds of all devices.
    fn device(&self) -> DeviceSeconds {
        self.done.devices.iter().fold(DeviceSeconds::default(), |sum, device| sum + device.seconds)
    }

    /// The share of its time that every stage was busy; of several devices, the busiest.
    pub fn busy(&self) -> [(&'static str, f64); 6] {
        let most = |of: fn(&DeviceSeconds) -> f64| self.done.devices.iter().map(|d| of(&d.seconds)).fold(0.0, f64::max);
        [
            ("reading", self.done.read),
            ("uploading", most(|d| d.upload)),
            ("correcting", most(|d| d.steps)),
            ("computing", most(|d| d.filter + d.back_projection + d.finish)),
            ("downloading", most(|d| d.download)),
            ("writing", self.done.write),
        ]
        .map(|(stage, seconds)| (stage, share(seconds, self.done.seconds)))
    }

    /// The busiest stage.
    pub fn limit(&self) -> &'static str {
        self.busy().iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("nothing", |(stage, _)| stage)
    }

    /// Seconds of every stage, of all devices together.
    pub fn stages(&self) -> [(&'static str, f64); 9] {
        let d = self.device();
        [
            ("start", self.start),
            ("read", self.done.read),
            ("upload", d.upload),
            ("steps", d.steps),
            ("filter", d.filter),
            ("back_projection", d.back_projection),
            ("finish", d.finish),
            ("download", d.download),
            ("write", self.done.write),
        ]
    }

    /// For every device, how many slices it computed, and the updates a second of back projection in 10^9.
    pub fn rates(&self) -> impl Iterator<Item = (usize, f64)> {
        let of = |device: &DeviceShare| {
            (device.slices, rate(device.slices as f64 * self.updates, device.seconds.back_projection))
        };
        self.done.devices.iter().map(of)
    }

    /// Updates a second of back projection, all devices together, in 10^9.
    fn kernel_rate(&self) -> f64 {
        self.rates().map(|(_, rate)| rate).sum()
    }

    fn total_rate(&self) -> f64 {
        rate(self.slices as f64 * self.updates, self.seconds)
    }

    /// What people should know about the data and the slices, with the flags that help.
    fn remarks(&self) -> Vec<Remark> {
        let mut remarks: Vec<Remark> = doubts_about(self.job, &self.repairs).into_iter().map(Remark::from).collect();
        if self.repairs.outliers > 0 {
            remarks.push(Remark::note(format!("{} outliers were replaced", self.repairs.outliers)));
        }
        if self.done.clipped > 0 {
            let what = match self.job.recipe.values.dtype {
                Dtype::F16 => "are too large for f16 and were written as infinite; use --dtype f32",
                _ => "are outside the range and were clipped",
            };
            remarks.push(Remark::note(format!("{} pixels {what}", self.done.clipped)));
        }
        remarks
    }

    /// What people should know, as soon as it is known.
    pub fn warn(&self, reporter: &Reporter) {
        self.remarks().into_iter().for_each(|remark| reporter.remark(remark));
    }

    /// What people see at the end.
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
        reporter.note(&format!(
            "{} from {} in {:.2} s on {device}: back projection {:.2} GU/s, overall {:.2} GU/s",
            counted(self.slices, "slice"),
            counted(self.geometry.projections(), "projection"),
            self.seconds,
            self.kernel_rate(),
            self.total_rate(),
        ));
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
                "kernel": device.engine.source.key,
                "slices": slices,
                "chunk": device.plan.chunk,
                "seconds": seconds,
            })).collect::<Vec<_>>(),
            "files": self.files,
            "projections": self.geometry.projections(),
            "center": self.axis,
            "self_test": first.self_test,
            "padded_bins": first.plan.rows.length,
            "slices": self.slices,
            "shard": self.job.execution.shard.map(|shard| json!({ "index": shard.index, "count": shard.count })),
            "projection_parts": first.plan.cut.parts(self.geometry).count(),
            "slice_bands": first.plan.cut.bands(self.geometry.roi).count(),
            "seconds": self.seconds,
            "stages": BTreeMap::from(self.stages()),
            "busy": BTreeMap::from(self.busy()),
            "limit": self.limit(),
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
            "notes": first.plan.notes,
            "doubts": doubts,
        });
        file.write(format!("{report:#}\n"))
    }
}

fn kernel(device: &ReadyDevice) -> Value {
    let source = &device.engine.source;
    json!({
        "name": source.name,
        "key": source.key,
        "options": source.options,
        "uses": device.engine.resources,
    })
}

/// Most memory of the host that the process had at any time, in bytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// 10^9 updates a second; 0 where no time is known.
fn rate(updates: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { updates / seconds * 1e-9 } else { 0.0 }
}

fn share(part: f64, total: f64) -> f64 {
    if total > 0.0 { part / total } else { 0.0 }
}

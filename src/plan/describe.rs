//! The plan as text.

use super::request::sum;
use super::solver_memory::SolverMemory;
use super::{LaminoPlan, Plan, Scan};
use crate::facts::DeviceFacts;
use crate::job::Job;
use crate::kernel::{StepBackend, StepBackends};
use crate::least_squares::LeastSquares;
use crate::numbers::brief;
use crate::units::human;
use crate::visible::visible;

impl Plan {
    /// Returns the plan as text for the user; `before` describes what is done before the filter.
    pub fn describe(&self, job: &Job, scan: &Scan, facts: &DeviceFacts, before: &[(&'static str, String)]) -> String {
        let mut lines = vec![
            ("device", format!("{} [{}], driver {}", facts.name, facts.kind, facts.driver)),
            ("profile", format!("{} ({})", self.profile.name, self.profile_reason)),
            ("kernel", self.kernel(job)),
        ];
        lines.extend(of_scan(job, scan));
        lines.extend(self.lamino.map(|LaminoPlan { lamino, rows, .. }| {
            let degrees = brief(lamino.degrees);
            ("inclined axis", format!("{degrees} degrees; a chunk needs up to {rows} of {} rows", lamino.height))
        }));
        lines.extend(before.iter().cloned());
        lines.push(("steps run on", self.of_steps(job, scan)));
        lines.extend(self.of_chunks(job, scan));
        lines.extend(self.of_memory(scan));
        lines.extend(job.recipe.solver.as_ref().zip(self.solver.as_ref()).map(
            |(request, SolverMemory { at_once, bytes, .. })| {
                (
                    "least squares",
                    format!("{request}; up to {at_once} slices at a time, {} of host memory", human(*bytes)),
                )
            },
        ));
        lines.push(("work", self.work(job, scan, facts)));
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        lines.iter().map(|(name, value)| format!("{name:<16}{}\n", visible(value))).collect()
    }

    /// Returns the name of the kernel, and the mode.
    fn kernel(&self, job: &Job) -> String {
        match self.lamino {
            Some(_) => "lamino".to_owned(),
            None => format!("{} {}", self.spec.name(), job.recipe.kernel.mode),
        }
    }

    /// Returns where the steps of the run are done, as text.
    fn of_steps(&self, job: &Job, scan: &Scan) -> String {
        let StepBackends { rows, images, sinograms, slices, solver } = self.steps;
        let steps = [
            ("rows", rows, true),
            ("images", images, scan.samples.blocks.is_some()),
            ("stripes", sinograms, !job.recipe.steps.stripes.is_empty()),
            ("slices", slices, true),
            ("least squares", solver, job.recipe.solver.is_some()),
        ];
        let of = |backend| match backend {
            StepBackend::Device => "device",
            StepBackend::Host => "host",
        };
        let there = steps.iter().filter(|(.., there)| *there);
        let text =
            there.map(|(what, backend, _)| format!("{what} on the {}", of(*backend))).collect::<Vec<_>>().join(", ");
        match sinograms {
            StepBackend::Device if self.stripes_at_once < self.spec.slices as usize => {
                format!("{text}; stripes of {} sinograms at a time", self.stripes_at_once)
            }
            _ => text,
        }
    }

    fn of_chunks(&self, job: &Job, scan: &Scan) -> Vec<(&'static str, String)> {
        let (filter, geometry) = (&job.recipe.filter, &scan.geometry);
        let mut lines = vec![
            (
                "filter",
                format!(
                    "{} up to {} of Nyquist, rows padded from {} to {} bins, {}",
                    filter.name, filter.cutoff, geometry.bins, self.row_filter.length, self.row_filter.method
                ),
            ),
            (
                "chunks",
                format!(
                    "{} of {} slices, {} on the device at a time{}; {} slices per pass, {} read and {} written at once",
                    scan.slices.len().div_ceil(self.chunk),
                    self.chunk,
                    self.chunks_held,
                    if self.sinograms_ahead > 0 {
                        format!(", and sinograms of {} more", self.sinograms_ahead)
                    } else {
                        String::new()
                    },
                    self.lamino.map_or(self.spec.slices as usize, |_| self.chunk),
                    self.pieces.read,
                    self.pieces.written
                ),
            ),
        ];
        let parts = self.cut.parts(geometry).count();
        if parts > 1 {
            lines.push(("projections", format!("{parts} parts of {}, added up", self.cut.projections)));
        }
        let bands = self.cut.bands(geometry.roi).count();
        if bands > 1 {
            lines.push(("bands", format!("{bands} of {} rows of pixels", self.cut.rows)));
        }
        lines
    }

    fn of_memory(&self, scan: &Scan) -> Vec<(&'static str, String)> {
        // only what there is
        let part = |(what, bytes): (&str, u64)| (bytes > 0).then(|| ("", format!("{what:<22}{}", human(bytes))));
        let mut lines = vec![("device memory", human(sum(&self.device_bytes)))];
        lines.extend(self.device_bytes.iter().filter_map(|b| part((b.what, b.bytes))));
        let held = scan.held.by(self.steps);
        lines.push((
            "host memory",
            match self.host_bytes + held + scan.cached {
                // a device that computes in host memory
                0 => "none besides that of the device".to_owned(),
                bytes => human(bytes),
            },
        ));
        lines.extend([("steps before", held), ("input chunks", scan.cached)].into_iter().filter_map(part));
        lines
    }

    fn work(&self, job: &Job, scan: &Scan, facts: &DeviceFacts) -> String {
        if let Some(LeastSquares { iterations, .. }) = job.recipe.solver {
            return format!("at most {} iterations for each slice; no estimate of the time", iterations.most());
        }
        let updates = scan.updates() / 1e9;
        match self.estimate(scan, facts, &job.recipe) {
            Some(seconds) => format!("{updates:.2} G updates, about {seconds:.1} s of back projection"),
            None => {
                format!(
                    "{updates:.2} G updates; no estimate of the time, as this kernel was not measured on this device"
                )
            }
        }
    }
}

fn of_scan(job: &Job, scan: &Scan) -> Vec<(&'static str, String)> {
    let g = &scan.geometry;
    let mut lines = vec![(
        "slices",
        format!(
            "{} of {} x {} pixels from {} projections of {} bins",
            scan.slices.len(),
            g.roi.width,
            g.roi.height,
            g.projections(),
            g.bins
        ),
    )];
    if let Some(shard) = job.execution.shard {
        lines.push(("shard", format!("{shard} of {} slices", scan.run_slices.len())));
    }
    let (first, last) = (g.angles[0], g.angles[g.angles.len() - 1]);
    lines.push(("angles", format!("{} to {} degrees", brief(first), brief(last))));
    lines.push(("centre", format!("{} bins", brief(scan.center))));
    if let Some(field) = &scan.field {
        lines.push((
            "field",
            format!(
                "extended from {} to {} bins, opposite projections share {:.1}",
                field.detector, field.bins, field.overlap
            ),
        ));
    }
    lines
}

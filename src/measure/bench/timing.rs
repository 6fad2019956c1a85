//! Times kernels on a device, after checking each on the data used for timing.

use super::super::protocol::Protocol;
use super::steady::{Patience, SteadyTime, steady_time, unix_seconds};
use crate::check::{Checked, Checker, Loaded};
use crate::device::{Resources, Session};
use crate::error::Result;
use crate::fft::RowBatch;
use crate::kernel::{KernelSpec, Offer, RowFilter, Texel, generate_filter};
use crate::reference::Reference;
use crate::spectrum::Padding;
use opencl3::event::Event;
use std::time::Instant;

/// The measurement of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTiming {
    /// The largest error over all problems.
    pub checked: Checked,
    /// Time of a pass; only of a correct kernel.
    pub time: Option<SteadyTime>,
    /// Seconds of the filter for a pass, if there is a transform on this machine.
    pub filter: Option<f64>,
    /// What the kernel uses, as far as the driver reports it.
    pub resources: Resources,
}

/// A filter that was timed: its source, the layout that it stores into, and how rows are filtered.
struct Timed {
    key: String,
    texel: Texel,
    rows: RowFilter,
    seconds: Option<f64>,
}

/// Options for timing a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimingOptions {
    /// Seconds of a pass beyond which it is not repeated.
    pub give_up_after: Option<f64>,
    /// Number of projections that the kernel gets at most, which makes it fast and wrong: for tests.
    pub projections: Option<usize>,
    /// True to heat until rates are steady, and to time again if they moved.
    pub patient: bool,
}

/// A device with noise on it, for one problem or several; kernels are timed on the first.
pub struct Bench {
    session: Session,
    protocol: Protocol,
    checkers: Vec<Checker>,
    /// Image formats that were tried, and whether they work.
    texels: Vec<(Texel, bool)>,
    /// Filters that were timed.
    filters: Vec<Timed>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Bench {
    /// Puts the references' noise on the device.
    pub fn new(session: Session, protocol: Protocol, references: &[Reference]) -> Result<Self> {
        Ok(Bench {
            checkers: references.iter().map(|reference| Checker::new(&session, reference)).collect::<Result<_>>()?,
            texels: Vec::new(),
            filters: Vec::new(),
            notes: Vec::new(),
            protocol,
            session,
        })
    }

    /// Checks a kernel, and times it if it is right.
    pub fn time(
        &mut self,
        spec: &KernelSpec,
        rows: RowFilter,
        references: &mut [Reference],
        options: &TimingOptions,
    ) -> Result<KernelTiming> {
        Ok(self.time_first(spec, rows, references, options)?.0)
    }

    /// Checks and times a kernel as [`time`](Self::time) does; also returns what was prepared for the first problem.
    fn time_first(
        &mut self,
        spec: &KernelSpec,
        rows: RowFilter,
        references: &mut [Reference],
        options: &TimingOptions,
    ) -> Result<(KernelTiming, Option<Loaded>)> {
        let session = &self.session;
        let mut error = 0f64;
        let mut first = None;
        for (checker, reference) in self.checkers.iter_mut().zip(references) {
            let rows = if first.is_none() { rows } else { rows.for_bins(reference.geometry().bins) };
            let prepared = checker.prepare(session, spec, rows, Padding::Edge, reference, options.projections)?;
            error = error.max(checker.error(session, spec, &prepared, reference)?);
            first = first.or(Some(prepared));
        }
        let checked = Checked::new(error, spec);
        let resources = first.as_ref().map(|prepared| prepared.projector.resources()).unwrap_or_default();
        let mut measured = KernelTiming { checked, time: None, filter: None, resources };
        let (passes, count) = (self.protocol.passes_of(spec.slices), spec.slices as usize);
        let patience = if options.patient { Patience::Long } else { Patience::Short };
        if let Some(Loaded { filter, sinogram, projector }) = &first
            && checked.right()
            && passes > 0
        {
            let slices = &self.checkers[0].slices;
            let pass = || {
                let start = Instant::now();
                let events = projector.run(session, sinogram, filter.peaks(), slices, 0, count)?;
                session.finish()?;
                Ok(device_seconds(&events).unwrap_or_else(|| start.elapsed().as_secs_f64()))
            };
            let began = unix_seconds();
            let once = options.give_up_after.map(|_| pass()).transpose()?;
            measured.time = Some(match (once, options.give_up_after) {
                (Some(seconds), Some(most)) if seconds > most => {
                    SteadyTime { seconds, during: [began, unix_seconds()], drift: 0.0, moved: false, runs: 1 }
                }
                _ => steady_time(passes, patience, pass)?,
            });
        }
        Ok((measured, first))
    }

    /// Checks a kernel, and times it and its filter if it is right and the protocol has passes. Rows of the first
    /// problem are filtered as `rows` says, which is timed, too.
    pub fn measure(
        &mut self,
        spec: &KernelSpec,
        rows: RowFilter,
        references: &mut [Reference],
    ) -> Result<KernelTiming> {
        let (measured, first) =
            self.time_first(spec, rows, references, &TimingOptions { patient: true, ..TimingOptions::default() })?;
        let (Some(Loaded { mut filter, mut sinogram, projector }), Some(_)) = (first, measured.time) else {
            return Ok(measured);
        };
        let (session, noise) = (&self.session, &self.checkers[0].rows);
        let (passes, valid) = (self.protocol.passes_of(spec.slices), spec.slices as usize);
        let projections = self.protocol.projections;
        let key = generate_filter(spec, Padding::Edge, rows)?.key;
        let same = |f: &&Timed| (&f.key, f.texel, f.rows) == (&key, spec.texel, rows);
        if let Some(known) = self.filters.iter().find(same) {
            return Ok(KernelTiming { filter: known.seconds, ..measured });
        }
        let time = match filter.ready(session, None) {
            Err(why) => {
                self.notes.push(format!("the filter is not timed: {why}"));
                None
            }
            Ok(()) => {
                self.notes.extend(filter.note.take());
                let timed = steady_time(passes, Patience::Short, || {
                    let start = Instant::now();
                    let phases = projector.phases();
                    let batch = RowBatch { rows: noise, first: 0, valid, projections: 0..projections, phases };
                    let filtered = filter.run(session, &batch, &mut sinogram)?;
                    session.finish()?;
                    Ok(device_seconds(&filtered.events).unwrap_or_else(|| start.elapsed().as_secs_f64()))
                })?;
                Some(timed.seconds)
            }
        };
        self.filters.push(Timed { key, texel: spec.texel, rows, seconds: time });
        Ok(KernelTiming { filter: time, ..measured })
    }

    /// Returns the layout of the sinogram that a kernel of the profile reads on this device: the best that works.
    pub fn texel(&mut self, offer: &Offer) -> Result<Texel> {
        let facts = &self.session.facts;
        let fits = self.protocol.bins <= facts.image_max[0] && self.protocol.projections <= facts.image_max[1];
        for texel in offer.texels() {
            if texel.format().is_some_and(|format| !fits || !facts.image_formats.contains(&format)) {
                continue;
            }
            let works = match self.texels.iter().find(|(tried, _)| *tried == texel) {
                Some((_, works)) => *works,
                None => {
                    let works = self.session.texel_works(texel)?;
                    self.texels.push((texel, works));
                    works
                }
            };
            if works {
                return Ok(texel);
            }
        }
        Ok(Texel::Buffer)
    }
}

/// Returns the seconds from the start of the first command to the end of the last, by the device's clock; `None` if it
/// does not tell.
fn device_seconds(events: &[Event]) -> Option<f64> {
    let start = events.iter().map(|e| e.profiling_command_start().ok()).min()??;
    let end = events.iter().map(|e| e.profiling_command_end().ok()).max()??;
    (end > start).then(|| (end - start) as f64 * 1e-9)
}

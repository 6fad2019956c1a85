//! The plan: what will be computed where, in which chunks, with how many bytes. Pure; `--dry-run` prints it.

use crate::error::{Error, Result};
use crate::facts::{DeviceFacts, DeviceKind};
use crate::geometry::{self, Cut, ExtendedField, Geometry, Roi, widest_gap};
use crate::kernel::{Algorithm, KernelSource, KernelSpec, Offer, Problem, RowFilter, SLICE_MODES, Sampler, Texel};
use crate::known::KnownFailures;
use crate::profile::{Choice, Profile};
use crate::recipe::{AngleSource, Center, Job, MAX_ANGLE};
use std::fmt::Write as _;

/// What the headers of the input say, and the text files that were read beside it.
#[derive(Clone, Debug)]
pub struct StackShape {
    /// Slices that the stack holds.
    pub slices: usize,
    /// Projections that the stack holds, before any is left out.
    pub projections: usize,
    /// Bins of a row, binned.
    pub bins: usize,
    /// Bins of the detector that are one.
    pub binning: usize,
    /// Contents of `--angles`, in degrees.
    pub angles: Option<Vec<f64>>,
    /// Contents of `--center-shifts`, in bins.
    pub shifts: Option<Vec<f64>>,
}

/// The scan's geometry, the slices to compute and the projections that are used.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Of the rows that are filtered: those of an extended field, if there is one.
    pub geometry: Geometry,
    /// Axis without shifts as people count it, in bins of the detector.
    pub center: f64,
    /// How rows become longer than the detector.
    pub field: Option<ExtendedField>,
    /// Bytes of the host's memory that reading holds whatever the chunks are; none until there is a reader.
    pub held: u64,
    /// Bytes that the library of the input holds beside that.
    pub cached: u64,
    /// Numbers of the slices to compute, ascending.
    pub slices: Vec<usize>,
    /// Numbers of all slices of the run, of which `slices` are this job's share. What decides over values (the kernel,
    /// percentiles) goes by these, so that slices do not depend on how a run is shared.
    pub whole: Vec<usize>,
    /// Numbers of the projections that are used, ascending.
    pub used: Vec<usize>,
    /// Things a person should know.
    pub notes: Vec<String>,
}

impl Scan {
    /// Puts together what a person said and what the files hold.
    pub fn new(job: &Job, stack: &StackShape) -> Result<Scan> {
        let mut notes = Vec::new();
        let count = stack.projections;
        let excluded = job.exclude.marks(count, "--exclude", "projections")?;
        let mut used: Vec<usize> = match job.projection_range {
            Some(span) => span.within(count, "--projection-range", "projections")?,
            None => (0..count).collect(),
        };
        used.retain(|&p| !excluded[p]);
        if used.is_empty() {
            return Err(Error::usage("--exclude: leaves no projection; leave out fewer, or widen --projection-range"));
        }
        let period = if job.extended_field { 360.0 } else { 180.0 };
        let pick = |values: &[f64]| used.iter().map(|&p| values[p]).collect::<Vec<f64>>();
        let expect_count = |values: &[f64], flag: &str, what: &str| {
            if values.len() == count {
                return Ok(());
            }
            Err(Error::Input(format!(
                "{flag}: {} {what}, but the stack has {count} projections; one line a projection is needed \
                 (--exclude leaves projections out afterwards)",
                values.len()
            )))
        };
        let (angles, weights) = match (&job.angles, &stack.angles) {
            (source @ (AngleSource::File(path) | AngleSource::Hdf5(path)), values) => {
                let is_text = matches!(source, AngleSource::File(_));
                let flag = format!("{} {}", if is_text { "--angles" } else { "--hdf5" }, path.display());
                let Some(values) = values else {
                    return Err(Error::Input(format!("{flag}: its angles were not read")));
                };
                expect_count(values, &flag, "angles")?;
                within(values, MAX_ANGLE, &flag, "degrees")?;
                let angles = pick(values);
                let weights = geometry::weights(&angles, job.weights, period);
                (angles, weights)
            }
            (AngleSource::Even { start, overall }, _) => {
                let all = geometry::even_angles(*start, *overall, count);
                let angles = pick(&all);
                let weights = if used.len() == count {
                    geometry::even_weights(&angles, *overall, job.weights, period)
                } else {
                    geometry::weights(&angles, job.weights, period)
                };
                (angles, weights)
            }
        };

        let (bins, binning) = (stack.bins, stack.binning as f64);
        let detector = bins * stack.binning;
        let last = detector as f64 - 1.0;
        let middle = geometry::default_axis(detector);
        let center = match job.center {
            Center::At(center) if !(0.0..=last).contains(&center) => {
                return Err(Error::usage(format!(
                    "--center: {center} is outside the detector; bins are 0..={last} (centre of the first bin is 0)"
                )));
            }
            Center::At(center) => center,
            // until it is found
            Center::Search(_) => middle,
            Center::Middle => {
                notes.push(format!(
                    "centre {middle} is the middle of the detector, it was not searched; --center sets it, --center auto searches it"
                ));
                middle
            }
        };
        let axis: Vec<f64> = match &stack.shifts {
            Some(shifts) => {
                expect_count(shifts, "--center-shifts", "shifts")?;
                within(shifts, MAX_SHIFT, "--center-shifts", "bins")?;
                pick(shifts).iter().map(|shift| binned(center + shift, binning)).collect()
            }
            None => vec![binned(center, binning); used.len()],
        };
        let searching = matches!(job.center, Center::Search(_));
        let field = match job.extended_field && !searching {
            true => Some(ExtendedField::new(bins, binned(center, binning), &axis, &angles)?),
            false => None,
        };
        let (bins, before) = field.as_ref().map_or((bins, 0), |field| (field.bins, field.before));
        let axis: Vec<f64> = axis.iter().map(|axis| axis + before as f64).collect();
        let off = (center - middle).abs();
        if !job.extended_field && off > FAR_OFF * detector as f64 && widest_gap(&angles) < 90.0 {
            notes.push(format!(
                "the axis is {off:.1} bins off the middle of a whole turn; --extended-field makes slices of twice its \
                 distance to the detector's other end"
            ));
        }
        let size = job.size.unwrap_or(bins);
        let roi = job.roi.unwrap_or(Roi::full(size));
        if roi.x.saturating_add(roi.width) > size || roi.y.saturating_add(roi.height) > size {
            return Err(Error::usage(format!(
                "--roi: {},{},{},{} goes past the slice of {size} x {size} pixels",
                roi.x, roi.y, roi.width, roi.height
            )));
        }
        let whole: Vec<usize> = match job.rows {
            Some(span) => span.within(stack.slices, "--rows", "slices")?,
            None => (0..stack.slices).collect(),
        };
        let slices = whole[job.shard.map_or(0..whole.len(), |shard| shard.of(whole.len()))].to_vec();
        let geometry = Geometry { bins, size, roi, angles, axis, weights };
        Ok(Scan { geometry, center, field, held: 0, cached: 0, slices, whole, used, notes })
    }
}

/// Share of the detector that the axis of a whole turn may be off its middle without a remark.
const FAR_OFF: f64 = 0.1;

/// A position in bins of the detector, of which `binning` are one, in these.
pub fn binned(position: f64, binning: f64) -> f64 {
    // the position itself where nothing is binned
    (position - (binning - 1.0) / 2.0) / binning
}

/// Largest shift of the axis in bins, either way: no detector is wider.
const MAX_SHIFT: f64 = (1 << 20) as f64;

/// Checks numbers of a text file, one for each projection.
fn within(values: &[f64], limit: f64, flag: &str, unit: &str) -> Result<()> {
    match values.iter().position(|value| value.abs() > limit) {
        Some(at) => Err(Error::Input(format!(
            "{flag}: {:?} of projection {at} is not within -{limit}..{limit} {unit}",
            values[at]
        ))),
        None => Ok(()),
    }
}

/// One buffer of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes {
    pub what: &'static str,
    pub bytes: u64,
}

/// A kernel that did not come out right on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Of the generated source.
    pub key: String,
    /// What is wrong with it.
    pub why: String,
}

/// Kernels that a plan goes without.
#[derive(Clone, Copy, Debug)]
pub struct Avoid<'a> {
    pub known: &'a KnownFailures,
    pub refused: &'a [Refused],
}

/// A kernel for a run.
struct Chosen {
    spec: KernelSpec,
    source: KernelSource,
    notes: Vec<String>,
}

/// What is tried to make a plan fit.
#[derive(Clone, Copy)]
struct Attempt {
    /// The kernel is chosen as for a run of so many slices.
    run_slices: usize,
    /// Whether a pass may be cut.
    cut: bool,
}

/// How a run will be computed on one device.
#[derive(Clone, Debug)]
pub struct Plan {
    pub profile: Profile,
    pub profile_reason: String,
    pub spec: KernelSpec,
    /// How rows are filtered.
    pub rows: RowFilter,
    /// Slices that are on the device together; a multiple of the slices per pass.
    pub chunk: usize,
    /// Chunks that the device holds, 2 where copies and kernels are to overlap.
    pub sets: usize,
    /// What of a chunk is on the device at a time.
    pub cut: Cut,
    /// Slices that are copied to and from the device at once; the whole chunk where nothing is copied.
    pub piece: usize,
    /// Device memory, buffer by buffer.
    pub device_bytes: Vec<Bytes>,
    /// Host memory of the pieces in flight, besides the device's.
    pub host_bytes: u64,
    /// Why something else than the profile's first choice is done.
    pub notes: Vec<String>,
}

/// Pieces on the host at one time in each direction: one being filled, one being emptied.
pub const PIECES: usize = 2;

/// A piece is not made larger than this many bytes of sinograms or slices.
const PIECE_TARGET: u64 = 128 << 20;

/// A chunk is not made larger than this (bytes of sinograms), unless a pass is.
const CHUNK_TARGET: u64 = 256 << 20;

/// A run has at least so many chunks, if they are whole passes, so that reading, computing and writing overlap.
const CHUNKS: u64 = 8;

impl Plan {
    /// Plans a run on one device. `host_memory` is the budget of its pieces in bytes, for a processor of everything;
    /// `facts.image_formats` are trusted.
    ///
    /// Unless the job asks for a number of slices per pass, it is the largest that memory holds. If it does not hold the
    /// smallest, a pass is cut: its projections into parts that are added up, and then slices into bands. In place of a
    /// kernel to avoid comes the same over a buffer, then, unless the job asks for an algorithm, another family of the
    /// profile.
    pub fn new(
        job: &Job,
        scan: &Scan,
        choice: &Choice,
        facts: &DeviceFacts,
        host_memory: u64,
        avoid: Avoid,
    ) -> Result<Plan> {
        let attempt =
            |run_slices, cut| Plan::attempt(job, scan, choice, facts, host_memory, avoid, Attempt { run_slices, cut });
        let mut run_slices = scan.whole.len();
        loop {
            let plan = attempt(run_slices, false);
            // as if the run had fewer slices
            let fewer = run_slices.min(SLICE_MODES[SLICE_MODES.len() - 1] as usize) / 2;
            match plan {
                Err(Error::Device(_)) if job.slices_per_pass.is_some() || fewer == 0 => {
                    return attempt(run_slices, true);
                }
                Err(Error::Device(_)) => run_slices = fewer,
                plan => return plan,
            }
        }
    }

    fn attempt(
        job: &Job,
        scan: &Scan,
        choice: &Choice,
        facts: &DeviceFacts,
        host_memory: u64,
        avoid: Avoid,
        attempt: Attempt,
    ) -> Result<Plan> {
        let profile = &choice.profile;
        let geometry = &scan.geometry;
        let bins = geometry.bins;
        let Chosen { spec, source, mut notes } = Plan::choose(job, scan, choice, facts, avoid, attempt.run_slices)?;
        let texel = spec.texel;
        let rows = RowFilter::new(&spec, &profile.fft, bins, Some(facts));
        let slices = u64::from(spec.slices);
        let run = scan.slices.len() as u64;
        let row_bytes = ((bins + 2 * texel.guard()) * spec.element_bytes()) as u64;
        // of a slice
        let in_part = |cut: Cut| (bins * cut.projections) as u64 * 4;
        let out_band = |cut: Cut| (geometry.roi.width * cut.rows) as u64 * 4;
        let (pair_bytes, image) = (rows.pair_bytes(bins) as u64, texel.format().is_some());
        let buffers = |cut: Cut, slices_there: u64| {
            let pairs = cut.projections.div_ceil(2) as u64;
            let sinogram = row_bytes * cut.projections as u64;
            let tables = cut.bands(geometry.roi).map(|band| geometry.block_offsets_bytes(band, source.block)).sum();
            vec![
                Bytes { what: "sinograms", bytes: slices_there * in_part(cut) },
                Bytes { what: "slices", bytes: slices_there * out_band(cut) },
                Bytes { what: "padded rows", bytes: slices * pairs * pair_bytes },
                Bytes { what: "compound sinogram", bytes: sinogram },
                Bytes { what: "sinogram image", bytes: if image { sinogram } else { 0 } },
                Bytes { what: "geometry tables", bytes: tables },
            ]
        };
        let sum = |buffers: &[Bytes]| buffers.iter().map(|b| b.bytes).sum::<u64>();
        let largest = |buffers: &[Bytes]| buffers.iter().map(|b| b.bytes).max().unwrap_or(0);

        let whole = Cut::whole(geometry);
        let of_slice = in_part(whole) + out_band(whole);
        let of_host = host_memory / (PIECES as u64 * of_slice).max(1);
        if of_host < 1 {
            return Err(Error::usage(format!(
                "--memory: {} do not hold {PIECES} sinograms and {PIECES} slices in flight, {} together",
                human(host_memory),
                human(PIECES as u64 * of_slice)
            )));
        }
        // a processor computes in the host's memory, where nothing needs to be copied unless a pass is cut
        let shared = facts.kind == DeviceKind::Cpu;
        // of the whole run, so that all shards have the same kernel
        let pass = slices.min(scan.whole.len() as u64).max(1);
        let cut_pass = pass.min(of_host);
        let budget = job.device_memory.unwrap_or(facts.global_memory / 5 * 4);
        let budget = |cut: Cut| match (shared, cut == whole) {
            (false, _) => budget,
            (true, true) => budget.min(host_memory),
            (true, false) => budget.min(host_memory.saturating_sub(PIECES as u64 * cut_pass * of_slice)),
        };
        let least_of = |cut: Cut| buffers(cut, if cut == whole { pass } else { cut_pass });
        let fits = |&cut: &Cut| sum(&least_of(cut)) <= budget(cut) && largest(&least_of(cut)) <= facts.max_allocation;
        let cuts = || Cut::candidates(geometry, source.block[1]).take(if attempt.cut { usize::MAX } else { 1 });
        let Some(cut) = cuts().find(fits) else {
            let least = cuts().min_by_key(|&cut| sum(&least_of(cut))).unwrap_or(whole);
            return Err(Error::Device(format!(
                "{}: {} slices at once, of them {} rows of pixels and {} projections at a time, need {} of device memory \
                 (largest single buffer {}), there are {} (largest allocation {}); use fewer --slices-per-pass, a --roi, \
                 more --memory or another --device",
                facts.name,
                spec.slices,
                least.rows,
                least.projections,
                human(sum(&least_of(least))),
                human(largest(&least_of(least))),
                human(budget(least)),
                human(facts.max_allocation),
            )));
        };
        if cut != whole {
            notes.push(format!(
                "a pass of {} slices is more than {} of device memory, the largest allocation {}: it is cut",
                spec.slices,
                human(budget(whole)),
                human(facts.max_allocation),
            ));
        }

        let whole_passes = |count: u64| count.max(slices) / slices * slices;
        let wanted = (CHUNK_TARGET / in_part(whole).max(1)).min(run.div_ceil(CHUNKS).next_multiple_of(slices));
        let of_allocation = facts.max_allocation / in_part(whole).max(out_band(whole)).max(1);
        let free = budget(cut).saturating_sub(sum(&buffers(cut, 0)));
        let chunk_of = |sets: u64| {
            let of_device = free / (sets * of_slice).max(1);
            (of_device >= slices).then(|| whole_passes(wanted.min(of_device).min(of_allocation)).min(run).max(1))
        };
        let (chunk, sets) = match chunk_of(2) {
            _ if cut != whole => (cut_pass.min(run).max(1), 1),
            Some(chunk) if chunk < run => (chunk, 2),
            _ => (chunk_of(1).unwrap_or(pass).min(run).max(1), 1),
        };
        // the first is copied while the second is read
        let target = PIECE_TARGET / in_part(whole).max(out_band(whole)).max(1);
        let copied = of_host.min(target.max(1)).min(chunk.div_ceil(2));
        let (piece, host_pieces) = match (cut == whole, shared) {
            (false, _) => (chunk, PIECES as u64),
            (true, true) => (chunk, 0),
            (true, false) => (copied, PIECES as u64),
        };
        Ok(Plan {
            profile: profile.clone(),
            profile_reason: choice.reason.clone(),
            spec,
            rows,
            chunk: chunk as usize,
            sets: sets as usize,
            cut,
            piece: piece as usize,
            device_bytes: buffers(cut, sets * chunk),
            host_bytes: host_pieces * piece * of_slice,
            notes,
        })
    }

    /// The first kernel that nothing speaks against, and why it is not the one that the profile would take.
    fn choose(
        job: &Job,
        scan: &Scan,
        choice: &Choice,
        facts: &DeviceFacts,
        avoid: Avoid,
        run_slices: usize,
    ) -> Result<Chosen> {
        let profile = &choice.profile;
        let geometry = &scan.geometry;
        let problem = Problem { projections: geometry.projections(), same_axis: geometry.same_axis() };
        let first = profile.select(job.algorithm, job.interpolation, job.mode, job.slices_per_pass, run_slices)?;
        let mut offers = vec![first.clone()];
        if job.algorithm.is_none() {
            offers.extend(fallbacks(job, profile, &first, run_slices));
        }
        let mut notes = Vec::new();
        // name and what is wrong of those that are passed over
        let mut passed: Vec<(String, String)> = Vec::new();
        for offer in offers {
            let (best, why) = layout(&offer, geometry, facts);
            // in place of another family the standard kernel reads a buffer: nothing less can go wrong
            let plain = !passed.is_empty() && offer.parameters.algorithm() == Algorithm::default();
            let mut texels = if plain { vec![Texel::Buffer] } else { vec![best] };
            if texels[0].format().is_some() {
                texels.push(Texel::Buffer);
            }
            for texel in texels {
                let spec = KernelSpec::new(&offer, profile, texel, problem, Some(facts));
                let source = spec.generate()?;
                let group: usize = source.work_group.iter().product();
                let too_large = (group > facts.max_work_group)
                    .then(|| format!("its work-group of {group} is larger than the device's {}", facts.max_work_group));
                if let (Some(why), true) = (&too_large, passed.is_empty()) {
                    return Err(Error::Device(format!(
                        "{}: kernel {}: {why}; choose another --profile",
                        facts.name, source.name
                    )));
                }
                let refused = avoid.refused.iter().find(|refused| refused.key == source.key);
                let mut known = avoid.known.find(facts, &spec);
                if let (Some(why), Some(algorithm), false) = (known, job.algorithm, job.self_test) {
                    notes.push(format!("--algorithm {algorithm} is used as asked, though {why}"));
                    known = None;
                }
                if let Some(why) = refused.map(|r| r.why.clone()).or(known.map(str::to_owned)).or(too_large) {
                    // what is known of both layouts is said once
                    if known.is_none() || passed.last().is_none_or(|(_, before)| *before != why) {
                        passed.push((source.name, why));
                    }
                    continue;
                }
                let next = passed.iter().skip(1).map(|(name, _)| name).chain([&source.name]);
                notes.extend(passed.iter().zip(next).map(|((name, why), next)| format!("{name} -> {next}: {why}")));
                notes.extend(why.filter(|_| !plain));
                return Ok(Chosen { spec, source, notes });
            }
        }
        let tried: Vec<String> = passed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        let advice = match job.algorithm {
            Some(algorithm) => format!(
                "--algorithm {algorithm} lets no other family stand in: leave it out, or choose another --device or \
                 --profile (--no-self-test runs it unchecked)"
            ),
            None => {
                "nothing else that the profile offers can stand in: choose another --device or --profile, or update \
                     the driver; fbp doctor tries every kernel"
                    .to_owned()
            }
        };
        Err(Error::Wrong(format!(
            "{}, driver {}: no right kernel for {} {} in profile {}\n  {}\n{advice}",
            facts.name,
            facts.driver,
            job.interpolation,
            job.mode,
            profile.name,
            tried.join("\n  ")
        )))
    }

    /// Updates of the whole run: pixels times projections, over all slices.
    pub fn updates(scan: &Scan) -> f64 {
        scan.slices.len() as f64 * scan.geometry.roi.pixels() as f64 * scan.geometry.projections() as f64
    }

    /// Seconds of back projection, from the profile's measurements of this kernel on this device, if there are any.
    pub fn estimate(&self, scan: &Scan, facts: &DeviceFacts, job: &Job) -> Option<f64> {
        let measured = self.profile.measured.iter().find(|m| {
            facts.name.contains(&m.device)
                && m.algorithm == self.spec.parameters.algorithm()
                && m.interpolation == self.spec.interpolation
                && m.mode == job.mode
                && m.slices == self.spec.slices
        })?;
        Some(Plan::updates(scan) / (measured.gu_per_s * 1e9))
    }

    /// The plan for people, with what is done `before` the filter.
    pub fn describe(&self, job: &Job, scan: &Scan, facts: &DeviceFacts, before: &[(&'static str, String)]) -> String {
        let mut text = String::new();
        let g = &scan.geometry;
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<16}{value}");
        };
        line("device", format!("{} [{}], driver {}", facts.name, facts.kind, facts.driver));
        line("profile", format!("{} ({})", self.profile.name, self.profile_reason));
        line("kernel", format!("{} {}", self.spec.name(), job.mode));
        line(
            "slices",
            format!(
                "{} of {} x {} pixels from {} projections of {} bins",
                scan.slices.len(),
                g.roi.width,
                g.roi.height,
                g.projections(),
                g.bins
            ),
        );
        if let Some(shard) = job.shard {
            line("shard", format!("{shard} of {} slices", scan.whole.len()));
        }
        let (first, last) = (g.angles[0], g.angles[g.angles.len() - 1]);
        line("angles", format!("{first} to {last} degrees"));
        line("centre", format!("{} bins", scan.center));
        if let Some(field) = &scan.field {
            line(
                "field",
                format!(
                    "extended from {} to {} bins, projections half a turn apart share {:.1}",
                    field.detector, field.bins, field.overlap
                ),
            );
        }
        before.iter().for_each(|(name, value)| line(name, value.clone()));
        line(
            "filter",
            format!(
                "{} up to {} of Nyquist, rows padded from {} to {} bins, {}",
                job.filter, job.cutoff, g.bins, self.rows.length, self.rows.way
            ),
        );
        line(
            "chunks",
            format!(
                "{} of {} slices, {} on the device at a time; {} slices a pass, {} read and written at once",
                scan.slices.len().div_ceil(self.chunk),
                self.chunk,
                self.sets,
                self.spec.slices,
                self.piece
            ),
        );
        let parts = self.cut.parts(g).count();
        if parts > 1 {
            line("projections", format!("{parts} parts of {}, added up", self.cut.projections));
        }
        let bands = self.cut.bands(g.roi).count();
        if bands > 1 {
            line("bands", format!("{bands} of {} rows of pixels", self.cut.rows));
        }
        let total: u64 = self.device_bytes.iter().map(|b| b.bytes).sum();
        line("device memory", human(total));
        for b in &self.device_bytes {
            line("", format!("{:<20}{}", b.what, human(b.bytes)));
        }
        line("host memory", human(self.host_bytes + scan.held + scan.cached));
        for (what, bytes) in [("steps before", scan.held), ("HDF5 chunks", scan.cached)] {
            if bytes > 0 {
                line("", format!("{what:<20}{}", human(bytes)));
            }
        }
        let updates = Plan::updates(scan) / 1e9;
        line(
            "work",
            match self.estimate(scan, facts, job) {
                Some(seconds) => format!("{updates:.2} G updates, about {seconds:.1} s of back projection"),
                None => format!(
                    "{updates:.2} G updates; no measurement of this kernel on this device to tell the time from"
                ),
            },
        );
        for note in &self.notes {
            line("note", note.clone());
        }
        text
    }
}

/// The layout of the sinogram that a kernel reads, the best that the device has, and why it is not an image, if so.
fn layout(offer: &Offer, geometry: &Geometry, facts: &DeviceFacts) -> (Texel, Option<String>) {
    let texels = offer.texels();
    let last = texels.last().copied().unwrap_or(Texel::Buffer);
    if offer.parameters.sampler() == Sampler::Buffer {
        return (last, None);
    }
    let (bins, projections, max) = (geometry.bins, geometry.projections(), facts.image_max);
    match texels.iter().find(|t| t.format().is_some_and(|f| facts.image_formats.contains(&f))) {
        Some(_) if bins > max[0] || projections > max[1] => {
            let why = format!(
                "image -> buffer: {bins} bins x {projections} projections do not fit the device's largest image, {} x {}",
                max[0], max[1]
            );
            (last, Some(why))
        }
        Some(&found) => (found, None),
        None => {
            let storage = offer.parameters.storage();
            (
                last,
                Some(format!(
                    "image -> buffer: no working image format for {} slices of {storage} values",
                    offer.slices
                )),
            )
        }
    }
}

/// What may stand in for a family that is not to be used, best first.
fn fallbacks(job: &Job, profile: &Profile, first: &Offer, run_slices: usize) -> Vec<Offer> {
    let select = |&algorithm: &Algorithm| {
        let of = |slices| profile.select(Some(algorithm), job.interpolation, job.mode, slices, run_slices);
        of(job.slices_per_pass).or_else(|_| of(None)).ok()
    };
    first.parameters.family().stand_ins().iter().filter_map(select).collect()
}

/// Bytes for people.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests;

//! Every kernel of the shipped profiles once, on a problem small enough for a simulator that watches each memory
//! access. `scripts/races` runs this under oclgrind and reads its log; `scripts/implementations` runs it for its values.
//!
//! Rows are transformed on the host, so that nothing but the program's own kernels is watched. Kernels are started without
//! the engine: a verdict stays while nothing changes that decides about it, see `scripts/checked`.

#[path = "support/mod.rs"]
mod support;

use fbp::device::{BackProjector, FoundDevice, Session, SinogramStore, enumerate, grid_values};
use fbp::facts::DeviceFacts;
use fbp::facts::ImageFormat;
use fbp::fft::{FilterSetup, HostRows, RowBatch, RowStage};
use fbp::geometry::{Geometry, Roi};
use fbp::kernel::{KernelSource, KernelSpec, Problem, RowFilter, RowFilterMethod, Texel};
use fbp::margins::margin;
use fbp::profile::{Profile, ProfileStore};
use fbp::spectrum::{Filter, Padding, scaled_spectrum};
use fbp_reference::{Pad, Scan, noise, padded, relative_rms, slice_of};
use opencl3::memory::CL_MEM_READ_WRITE;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use support::read_of;

const BINS: usize = 37;
/// Odd, and more than kernels stage at once.
const PROJECTIONS: usize = 19;
/// For kernels whose items compute many cells: llvmpipe ends the loops of an item after 65535 iterations.
const FEW_PROJECTIONS: usize = 13;
/// For products of matrices, whose arithmetic for all slices is most of what a simulator interprets: every buffer of two
/// projections is filled twice, and the last stage has one.
const FEWEST_PROJECTIONS: usize = 7;

/// A kernel and the problem that it is run on.
struct Case {
    profile: String,
    spec: KernelSpec,
    scan: Scan,
}

impl Case {
    /// Chooses padding, filter and noise: of the kernel alone, so that it stays when others come and go.
    fn number(&self) -> usize {
        usize::from_str_radix(&self.spec.generate().unwrap().key[..8], 16).unwrap()
    }

    /// The file that says that this case was right before, on a device, with all else that decides about it;
    /// `FBP_RACES_PASSED` is the directory.
    fn record(&self, found: &FoundDevice) -> Option<PathBuf> {
        let facts = &found.facts;
        let device: String = format!("{} {} {}", facts.name, facts.platform, facts.driver);
        let limits = format!("{} {} {:?}", facts.local_memory, facts.max_work_group, self.scan.axis);
        let name = format!("{} {device} {limits}", self.spec.generate().unwrap().key);
        let name = Sha256::digest(name.as_bytes());
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(PathBuf::from(std::env::var_os("FBP_RACES_PASSED")?).join(name))
    }
}

/// Every different kernel, for every layout of the sinogram that it can read; prints what this device lacks.
fn cases(found: &FoundDevice, formats: &[ImageFormat]) -> Vec<Case> {
    let scans = [PROJECTIONS, FEW_PROJECTIONS, FEWEST_PROJECTIONS].map(|projections| {
        let same = Scan::even(BINS, projections, 1);
        let axis = (0..projections).map(|p| 15.0 + 0.21 * p as f64).collect();
        (Scan { axis, ..same.clone() }, same)
    });
    let store = ProfileStore::built_in().unwrap();
    let mut profiles: Vec<Profile> = match std::env::var("FBP_RACES_PROFILE") {
        Ok(selector) => vec![store.named(&selector).unwrap()],
        Err(_) => store.iter().map(|(profile, _)| profile.clone()).collect(),
    };
    if let Ok(options) = std::env::var("FBP_TEST_OPTIONS") {
        for profile in &mut profiles {
            profile.build.options.extend(options.split_whitespace().map(str::to_owned));
        }
    }
    // constants of more projections than constant memory holds are elsewhere, whatever the sinogram's layout
    let crowded = DeviceFacts { constant_buffer: 0, ..found.facts.clone() };
    let mut seen = BTreeSet::new();
    let mut cases = Vec::new();
    for profile in &profiles {
        for offer in profile.offers() {
            for texel in offer.texels() {
                if texel.format().is_some_and(|format| !formats.contains(&format)) {
                    continue;
                }
                let (drifting, same) = match texel {
                    Texel::Spectra { together: true } => &scans[1],
                    Texel::Halves { .. } => &scans[2],
                    _ => &scans[0],
                };
                let mut problems = vec![(drifting, false, &found.facts), (same, true, &found.facts)];
                if texel == Texel::Buffer {
                    problems.push((same, true, &crowded));
                }
                for (scan, same_axis, facts) in problems {
                    let problem = Problem::new(scan.angles.len(), same_axis);
                    let spec = KernelSpec::new(&offer, profile, texel, problem, Some(facts));
                    if !seen.insert(spec.generate().unwrap().key) {
                        continue;
                    }
                    let there = KernelSpec::new(&offer, profile, texel, problem, None);
                    if there.shuffle != spec.shuffle {
                        println!("without {:?}: {} {}", there.shuffle, profile.name, spec.name());
                    } else if there.parameters != spec.parameters {
                        println!("without assembly: {} {}", profile.name, spec.name());
                    }
                    let block = spec.generate().unwrap().block;
                    let scan = Scan { size: block[0].max(block[1]) + 8, ..scan.clone() };
                    cases.push(Case { profile: profile.name.clone(), spec, scan });
                }
            }
        }
    }
    cases
}

/// Runs a case; the error relative to the reference, and the largest allowed.
fn run(found: &FoundDevice, case: &Case) -> Result<(f64, f64), Box<dyn Error>> {
    let Case { spec, scan, .. } = case;
    let block = spec.generate()?.block;
    // pieces of two blocks side by side
    let roi = Roi { x: 3, y: 2, width: block[0] + 2, height: block[1].max(4) - 3 };
    let geometry = Geometry {
        bins: scan.bins,
        size: scan.size,
        roi,
        angles: scan.angles.clone(),
        axis: scan.axis.clone(),
        weights: scan.weights.clone(),
        misfit_weights: None,
    };
    let number = case.number();
    let (padding, pad) =
        [(Padding::Zero, Pad::Zero), (Padding::Edge, Pad::Edge), (Padding::Mirror, Pad::Mirror)][number % 3];
    // the last place of a pass stays empty
    let count = (spec.slices as usize - 1).max(1);
    // one kernel filters rows in every second case, a transform on the host in the others
    let filter_rows = match number % 2 {
        _ if spec.texel == (Texel::Spectra { together: true }) => {
            RowFilter { length: padded(scan.bins), method: RowFilterMethod::Vector }
        }
        0 => RowFilter { length: padded(scan.bins), method: RowFilterMethod::Transform },
        _ => RowFilter {
            length: padded(scan.bins),
            method: RowFilterMethod::Fused { rows: 1 + number / 2 % 2, parts: 1 + number as u32 / 4 % 2 },
        },
    };
    let (length, projections) = (filter_rows.length, scan.angles.len());
    let values = scan.bins * projections;
    let sinograms = noise(count * values, 7 + number as u64);
    let session = Session::open(found)?;
    let mut rows = session.buffer(sinograms.len(), CL_MEM_READ_WRITE, "sinograms")?;
    session.write(&mut rows, &sinograms, "sinograms")?;
    let spectrum = scaled_spectrum(Filter::Ramp, 1.0, length);
    // relative to pi / P
    let weight = projections as f64 / std::f64::consts::PI;
    let weights: Vec<f32> = scan.weights.iter().map(|w| (w * weight) as f32).collect();
    let mut filter = RowStage::new(
        &session,
        FilterSetup {
            spec,
            rows: filter_rows,
            padding,
            bins: scan.bins,
            projections,
            spectrum: &spectrum,
            weights: &weights,
            in_place: true,
        },
    )?;
    filter.ready(&session, Some(Box::new(HostRows::new(length, spec.slices as usize * projections.div_ceil(2)))))?;
    let mut sinogram = SinogramStore::new(&session, spec.texel, scan.bins, projections, spec.element_bytes())?
        .with_grids(&session, grid_values(&found.facts, spec, [roi].into_iter())?)?;
    let projector = BackProjector::new(&session, spec, &geometry, 0..projections)?;
    let on_device = session.buffer(count * roi.pixels(), CL_MEM_READ_WRITE, "slices")?;
    let batch =
        RowBatch { rows: &rows, first: 0, valid: count, projections: 0..projections, phases: projector.phases() };
    filter.run(&session, &batch, &mut sinogram)?;
    projector.run(&session, &sinogram, filter.peaks(), &on_device, 0, count)?;
    let mut slices = vec![f32::NAN; count * roi.pixels()];
    session.finish()?;
    session.download(&on_device, 0, &mut slices, "slices")?;

    let read = read_of(spec);
    let mut worst = 0f64;
    for (slice, sinogram) in sinograms.chunks(values).enumerate() {
        let (want, slack) = slice_of(sinogram, scan, pad, &|_| 1.0, read);
        let crop = |full: &[f64]| -> Vec<f64> {
            let row = |y: usize| (roi.y + y) * scan.size + roi.x;
            (0..roi.height).flat_map(|y| full[row(y)..row(y) + roi.width].to_vec()).collect()
        };
        let got = &slices[slice * roi.pixels()..(slice + 1) * roi.pixels()];
        worst = worst.max(relative_rms(got, &crop(&want), &crop(&slack)));
    }
    Ok((worst, margin(spec).relative_rms))
}

/// What a simulator has to say since the last session was opened: that empties its log.
fn simulator_log() -> String {
    let log = std::env::var_os("FBP_RACES_LOG");
    log.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
}

/// `FBP_RACES_PART=1/2` takes the second of two halves, `FBP_RACES_PROFILE` the kernels of one profile, by name or path;
/// `FBP_TEST_OPTIONS` are more options for the device's compiler. With `FBP_RACES_PASSED`, cases that passed before are not
/// run again.
#[test]
fn shipped_kernels_touch_memory_correctly() {
    let found = &enumerate().unwrap()[0];
    let part = std::env::var("FBP_RACES_PART").unwrap_or("0/1".into());
    let (part, parts) = part.split_once('/').unwrap();
    let (part, parts): (usize, usize) = (part.parse().unwrap(), parts.parse().unwrap());

    let mut failures = 0;
    let mut verdict = |name: String, problem: Option<String>| -> usize {
        let log = simulator_log();
        let problem = problem.or((!log.is_empty()).then(|| "see below".into()));
        let found = usize::from(problem.is_some());
        failures += found;
        match problem {
            None => println!("passed {name}"),
            Some(problem) => println!("FAILED {name}: {problem}"),
        }
        log.lines().take(12).for_each(|line| println!("    {line}"));
        found
    };
    let session = Session::open(found).unwrap();
    let works = |format: &ImageFormat| session.texel_works(Texel::Image(*format)).unwrap();
    let (formats, missing): (Vec<_>, Vec<_>) = ImageFormat::ALL.into_iter().partition(works);
    for format in missing {
        println!("without image format {format}");
    }
    verdict("image formats".into(), None);
    let all = cases(found, &formats);
    assert!(!all.is_empty());
    let mut failed = false;
    for (_, case) in all.iter().enumerate().filter(|(number, _)| number % parts == part) {
        let name = format!("{} {}", case.profile, case.spec.name());
        let record = case.record(found);
        println!("\nchecked {} {:?} by {} {}", name, case.spec.parameters, found.facts.platform, found.facts.driver);
        if record.as_ref().is_some_and(|record| record.exists()) {
            println!("passed {name}, before");
            continue;
        }
        let problem = match run(found, case) {
            Ok((error, limit)) if error <= limit => None,
            Ok((error, limit)) => Some(format!("error {error:.2e} > {limit:.0e}")),
            Err(error) => Some(error.to_string()),
        };
        // a simulator falls silent after so many mistakes: what comes after one is not trusted
        failed |= verdict(name, problem) > 0;
        if let (Some(record), false) = (record, failed) {
            std::fs::write(record, "").unwrap();
        }
    }
    assert_eq!(failures, 0);
}

/// The watch is awake: a race, a read and a write out of bounds are all in the log.
#[test]
fn planted_mistakes_are_reported() {
    let session = Session::open(&enumerate().unwrap()[0]).unwrap();
    let text = "__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void planted(__global float *values) {
        __local float shared[16];
        const int item = get_local_id(0);
        shared[item] = item;
        values[item + 1] = shared[15 - item] + values[item + 2];
    }";
    let source = KernelSource { entry: "planted", text: text.into(), ..fbp::kernel::generate_probe() };
    let kernel = session.kernel(&session.build(&source).unwrap(), source.entry).unwrap();
    let values = session.constant_buffer(&[0f32; 16], "values").unwrap();
    let launch = session.launch(&kernel, source.entry).buffer(&values, 16, "values").unwrap();
    // this kernel is none of `cl/`: the simulator has to notice what it does, and catches the accesses
    launch.run(&[16], Some(&[16])).unwrap();
    session.finish().unwrap();
    let log = std::fs::read_to_string(std::env::var("FBP_RACES_LOG").unwrap()).unwrap();
    for mistake in ["data race at local memory", "Invalid read", "Invalid write"] {
        assert!(log.contains(mistake), "no `{mistake}` in the log:\n{log}");
    }
}

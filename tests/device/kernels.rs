//! Every back-projection kernel, on the device at hand, against the `f64` reference.
//!
//! `FBP_TEST_DEVICE` selects another device, as `--device` does.

use crate::support::reference::{Pad, Read, Scan, back_project, filter, noise, padded, relative_rms};
use fbp::device::{DeviceSelector, FoundDevice, Session, enumerate};
use fbp::engine::{Engine, Setup, open, texel_works};
use fbp::facts::DeviceKind;
use fbp::fft::HostRows;
use fbp::geometry::{AngleWeights, Cut, Geometry, Roi, weights};
use fbp::kernel::{
    Algorithm, Alu, Balance, Cache, Common, Exchange, Hybrid, Interpolation, KernelSpec, Mapping, Mode, Offer, Offsets,
    Oversample, Padding, Parameters, Problem, Rounding, RowFilter, RowWay, Sampler, Standard, Storage, Tensor, Texel,
    Texture, Vector,
};
use fbp::margins::margin;
use fbp::phantom::{Kind, Phantom};
use fbp::profile::{Profile, ProfileStore};
use fbp::spectrum::Filter;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// A session that engines hand on, and the layouts of sinograms that were tried with it.
#[derive(Default)]
struct Kept {
    session: Option<Session>,
    tried: Vec<(Texel, bool)>,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// Does something with this thread's session, which engines take and give back.
fn with_session<T>(found: &FoundDevice, work: impl FnOnce(Session) -> (Session, T)) -> T {
    let session = KEPT.with_borrow_mut(|kept| kept.session.take()).unwrap_or_else(|| open(found).unwrap());
    let (session, result) = work(session);
    KEPT.with_borrow_mut(|kept| kept.session = Some(session));
    result
}

fn works(found: &FoundDevice, texel: Texel) -> bool {
    let known = KEPT.with_borrow(|kept| kept.tried.iter().find(|(t, _)| *t == texel).map(|(_, works)| *works));
    known.unwrap_or_else(|| {
        let works = with_session(found, |session| {
            let works = texel_works(&session, texel).unwrap();
            (session, works)
        });
        KEPT.with_borrow_mut(|kept| kept.tried.push((texel, works)));
        works
    })
}

fn device() -> FoundDevice {
    let devices = enumerate().expect("the tests need an OpenCL device; scripts/setup installs one");
    let facts: Vec<_> = devices.iter().map(|d| &d.facts).collect();
    let selector =
        std::env::var("FBP_TEST_DEVICE").map(|text| DeviceSelector::parse(&text).unwrap()).unwrap_or_default();
    devices[selector.select(&facts).unwrap()].clone()
}

/// Whether a kernel is one of those asked for: `FBP_TEST_KERNEL` is a part of its name, by default all are.
fn asked(spec: &KernelSpec) -> bool {
    std::env::var("FBP_TEST_KERNEL").map_or(true, |part| spec.name().contains(&part))
}

/// The profile whose build options the tests use where they choose the kernel themselves.
fn plain() -> Profile {
    ProfileStore::built_in().unwrap().named("default").unwrap()
}

/// Options of the device's compiler beside the profile's: `FBP_TEST_OPTIONS`. By default a processor's compiler does not
/// optimise kernels that are made for other devices, unless they compute so many slices that they are slow then: it takes
/// most of the time, and what is tested here is the kernel. scripts/implementations runs all kernels as they are.
fn options(found: &FoundDevice, profile: &Profile, offer: &Offer) -> Vec<String> {
    match std::env::var("FBP_TEST_OPTIONS") {
        Ok(options) => options.split_whitespace().map(str::to_owned).collect(),
        Err(_) if found.facts.kind == DeviceKind::Cpu && profile.name != "cpu" && offer.slices < 16 => {
            vec!["-cl-opt-disable".into()]
        }
        Err(_) => Vec::new(),
    }
}

fn problem(scan: &Scan) -> Problem {
    Problem { projections: scan.projections(), same_axis: scan.axis.windows(2).all(|a| a[0] == a[1]) }
}

/// An offer of a standard kernel.
fn standard(sampler: Sampler, interpolation: Interpolation, slices: u32, storage: Storage) -> Offer {
    let common = Common { sampler, storage, ..Common::default() };
    let parameters = Parameters::Standard(Standard { common, ..Standard::default() });
    Offer { interpolation, mode: Mode::Precise, slices, parameters }
}

/// An offer of 16 slices at once by a kernel with its default parameters.
fn sixteen(parameters: Parameters) -> Offer {
    Offer { interpolation: Interpolation::Linear, mode: Mode::Precise, slices: 16, parameters }
}

fn tensor(split: bool) -> Offer {
    sixteen(Parameters::Tensor(Tensor { split, flush: if split { 8 } else { 0 }, ..Tensor::default() }))
}

/// The first image format that works here for an offer.
fn image(found: &FoundDevice, offer: &Offer) -> Option<Texel> {
    let listed = |texel: &Texel| texel.format().is_some_and(|f| found.facts.image_formats.contains(&f));
    offer.texels().into_iter().find(|texel| listed(texel) && works(found, *texel))
}

/// The spec that an offer leads to here; `None` when the device has no image format for it.
fn spec(found: &FoundDevice, profile: &Profile, offer: &Offer, scan: &Scan) -> Option<KernelSpec> {
    let texel = match offer.parameters.sampler() {
        Sampler::Buffer => offer.texels()[0],
        Sampler::Image => image(found, offer)?,
    };
    let mut spec = KernelSpec::new(offer, profile, texel, problem(scan), Some(&found.facts));
    spec.build.options.extend(options(found, profile, offer));
    Some(spec)
}

fn geometry(scan: &Scan, roi: Roi) -> Geometry {
    Geometry {
        bins: scan.bins,
        size: scan.size,
        roi,
        angles: scan.angles.clone(),
        axis: scan.axis.clone(),
        weights: scan.weights.clone(),
    }
}

/// What transforms rows where nothing else filters them.
#[derive(Clone, Copy)]
enum By {
    /// What a run would take.
    Library,
    /// Ready at once, for tests of other things.
    Host,
}

/// Slices of `sinograms` from the device.
fn reconstruct(
    found: &FoundDevice,
    spec: &KernelSpec,
    scan: &Scan,
    roi: Roi,
    filter: Filter,
    padding: Padding,
    sinograms: &[f32],
) -> Vec<f32> {
    let rows = RowFilter { length: padded(scan.bins), way: RowWay::Transform };
    let whole = Cut { projections: scan.projections(), rows: roi.height };
    reconstruct_cut(found, spec, scan, (roi, whole), (rows, By::Host), (filter, padding), sinograms)
}

/// The same with another way to filter rows.
fn reconstruct_with(
    found: &FoundDevice,
    spec: &KernelSpec,
    scan: &Scan,
    roi: Roi,
    rows: RowFilter,
    how: (Filter, Padding),
    sinograms: &[f32],
) -> Vec<f32> {
    let whole = Cut { projections: scan.projections(), rows: roi.height };
    reconstruct_cut(found, spec, scan, (roi, whole), (rows, By::Library), how, sinograms)
}

/// The same in parts and bands.
fn reconstruct_cut(
    found: &FoundDevice,
    spec: &KernelSpec,
    scan: &Scan,
    (roi, cut): (Roi, Cut),
    (rows, by): (RowFilter, By),
    (filter, padding): (Filter, Padding),
    sinograms: &[f32],
) -> Vec<f32> {
    let geometry = geometry(scan, roi);
    let count = sinograms.len() / (scan.bins * scan.projections());
    let length = rows.length;
    let setup = Setup { spec, geometry: &geometry, filter, cutoff: 1.0, padding, rows, chunk: count, sets: 1, cut };
    with_session(found, |session| {
        let mut engine = match by {
            By::Library => Engine::new(session, &setup),
            By::Host => {
                let rows = cut.projections.div_ceil(2) * spec.slices as usize;
                Engine::with_transform(session, &setup, Box::new(HostRows::new(length, rows)))
            }
        }
        .unwrap();
        // a kernel that is wrong would have been replaced
        let replaced = rows.way != RowWay::Transform && engine.note.is_some();
        assert!(!replaced, "{:?}: {:?}", rows, engine.note);
        let mut slices = vec![f32::NAN; count * roi.pixels()];
        engine.reconstruct(sinograms, &mut slices).unwrap();
        (engine.into_session(), slices)
    })
}

/// Scans that together have everything that goes wrong: odd widths, one projection, an axis that is off or drifts,
/// uneven angles, slices larger and smaller than the detector.
fn scans() -> Vec<(&'static str, Scan)> {
    let odd = Scan::even(67, 41, 67);
    let one = Scan::even(67, 1, 67);
    let mut moved = Scan::even(67, 30, 50);
    moved.axis = vec![20.3; 30];
    let mut drifting = Scan::even(67, 41, 97);
    drifting.axis = (0..41).map(|p| 33.0 + 0.13 * f64::from(p) - 2.0).collect();
    let mut uneven = Scan::even(67, 23, 64);
    uneven.angles = (0..23).map(|p| f64::from(p * p) * 0.7 - 30.0).collect();
    uneven.weights = weights(&uneven.angles, AngleWeights::Spacing, 180.0);
    vec![
        ("odd widths", odd),
        ("one projection", one),
        ("moved axis", moved),
        ("drifting axis, large slice", drifting),
        ("uneven angles", uneven),
    ]
}

/// Checks one kernel on some scans; what went wrong.
fn check(found: &FoundDevice, profile: &Profile, offer: &Offer, scans: &[(&'static str, Scan)]) -> Vec<String> {
    check_cut(found, profile, offer, scans, None)
}

/// The same in parts and bands.
fn check_cut(
    found: &FoundDevice,
    profile: &Profile,
    offer: &Offer,
    scans: &[(&'static str, Scan)],
    cut: Option<Cut>,
) -> Vec<String> {
    let mut failures = Vec::new();
    let slices = offer.slices;
    for (name, scan) in scans {
        let Some(spec) = spec(found, profile, offer, scan) else {
            // no format for it here: the program falls back to the buffer, which is tested, too
            let buffered = Offer { parameters: offer.parameters.clone().with_buffer(), ..offer.clone() };
            return check_cut(found, profile, &buffered, scans, cut);
        };
        if !asked(&spec) {
            continue;
        }
        let bound = margin(&spec);
        // one slice more than a pass: the last pass has empty places
        let count = slices as usize + 1;
        let values = scan.bins * scan.projections();
        let sinograms = noise(count * values, 7 + u64::from(slices));
        let length = padded(scan.bins);
        let rows = RowFilter { length, way: RowWay::Transform };
        let cut = cut.unwrap_or(Cut { projections: scan.projections(), rows: scan.size });
        let roi = Roi::full(scan.size);
        let got = reconstruct_cut(
            found,
            &spec,
            scan,
            (roi, cut),
            (rows, By::Host),
            (Filter::Ramp, Padding::Edge),
            &sinograms,
        );
        // `scripts/test pairs` lists these lines
        let in_parts = if cut.projections < scan.projections() { ", in parts" } else { "" };
        let driver = format!("{} {}", found.facts.platform, found.facts.driver);
        println!("\nchecked {} {:?} on {name}{in_parts} by {driver}", spec.name(), spec.parameters);
        let pixels = scan.size * scan.size;
        // the first, and the last alone in its pass
        for slice in [0, count - 1] {
            let sinogram = &sinograms[slice * values..(slice + 1) * values];
            let filtered = filter(sinogram, scan.bins, length, Pad::Edge, Some(&|_| 1.0));
            let (want, slack) = back_project(&filtered, scan, Read::of(&spec));
            let error = relative_rms(&got[slice * pixels..(slice + 1) * pixels], &want, &slack);
            println!("{} slice {slice}: {error:.2e} (margin {:.0e})", spec.name(), bound.relative_rms);
            if error.is_nan() || error > bound.relative_rms {
                failures.push(format!(
                    "{} {} {name} slice {slice}: {error:.3e} > {:.0e} ({})\n    {:?}",
                    profile.name,
                    spec.name(),
                    bound.relative_rms,
                    bound.reason,
                    spec.parameters
                ));
            }
        }
    }
    failures
}

fn check_standard(sampler: Sampler, modes: &[u32]) {
    let found = device();
    let mut failures = Vec::new();
    for &interpolation in Interpolation::ALL {
        for &storage in Storage::ALL {
            for &slices in modes {
                let offer = standard(sampler, interpolation, slices, storage);
                failures.extend(check(&found, &plain(), &offer, &scans()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn standard_kernels_over_images_agree_with_the_reference() {
    check_standard(Sampler::Image, &[1, 2, 4]);
}

#[test]
fn standard_kernels_over_buffers_agree_with_the_reference() {
    check_standard(Sampler::Buffer, &[1, 2, 4, 8, 16]);
}

/// Scans for the other families: larger than a block, with a drifting axis and an odd number of projections; one with
/// a single axis for all; a single projection.
fn few_scans() -> Vec<(&'static str, Scan)> {
    let mut scans = scans();
    let keep = ["drifting axis, large slice", "moved axis", "one projection"];
    scans.retain(|(name, _)| keep.contains(name));
    scans
}

/// Every value of every parameter of every family, each at least once, and the combinations that share code.
fn variants() -> Vec<(Parameters, Vec<u32>, Vec<Interpolation>)> {
    let both = || Interpolation::ALL.to_vec();
    let mut list: Vec<(Parameters, Vec<u32>, Vec<Interpolation>)> = Vec::new();
    for sampler in [Sampler::Buffer, Sampler::Image] {
        let common = Common { sampler, ..Common::default() };
        let split = Common { packed_constants: false, unroll: 4, ..common.clone() };
        let standard = Standard { common: split.clone(), z_order: true, ..Standard::default() };
        list.push((Parameters::Standard(standard), vec![1, 4], both()));

        let texture = Texture { common: common.clone(), ..Texture::default() };
        let draft = Texture { projections_at_once: 16, ..texture.clone() };
        let textures = [
            texture.clone(),
            Texture { reduction: Exchange::Shuffle, same_centre: true, ..texture.clone() },
            Texture { cached_constants: 256, direct_writes: true, ..texture.clone() },
            Texture { cached_constants: 16, regroup: true, shared_buffer: true, ..texture.clone() },
            Texture {
                common: split.clone(),
                cached_constants: 8,
                shared_buffer: true,
                same_centre: true,
                ..texture.clone()
            },
            draft.clone(),
            Texture { float_index: true, direct_writes: true, reduction: Exchange::Shuffle, ..draft.clone() },
            Texture { cached_constants: 32, regroup: true, ..draft },
        ];
        for (number, texture) in textures.into_iter().enumerate() {
            let slices = if number < 4 { vec![1, 2, 4] } else { vec![1] };
            list.push((Parameters::Texture(texture), slices, both()));
        }

        let alu = Alu { common: common.clone(), ..Alu::default() };
        let alus = [
            (alu.clone(), vec![1, 2, 4]),
            (Alu { common: split.clone(), mapping: Mapping::Rows, offsets: Offsets::None, ..alu.clone() }, vec![1, 4]),
            (Alu { mapping: Mapping::Block, offsets: Offsets::Column, turn_cache: true, ..alu.clone() }, vec![1, 4]),
            (
                Alu {
                    mapping: Mapping::Squares,
                    offsets: Offsets::Column,
                    items: 128,
                    cached_projections: 8,
                    ..alu.clone()
                },
                vec![2],
            ),
            (
                Alu { mapping: Mapping::Block, area: 64, row_items: 32, cached_projections: 8, ..alu.clone() },
                vec![1, 2],
            ),
            (Alu { items: 128, cached_projections: 8, stage: 256, ..alu.clone() }, vec![1, 2]),
            (
                Alu {
                    area: 64,
                    row_items: 16,
                    cached_projections: 8,
                    write_pairs: true,
                    rounding: Rounding::Float,
                    ..alu.clone()
                },
                vec![1],
            ),
            (Alu { row_items: 8, write_pairs: true, rounding: Rounding::FloatIndex, ..alu.clone() }, vec![1]),
            (Alu { rounding: Rounding::FloatIndex, arrays: 2, ..alu.clone() }, vec![2, 4]),
            (Alu { rounding: Rounding::Float, arrays: 4, stage: 32, ..alu.clone() }, vec![4]),
            (Alu { half_cache: true, ..alu.clone() }, vec![1, 4]),
            (Alu { half_cache: true, arrays: 2, ..alu.clone() }, vec![4]),
            (Alu { cache: Cache::Advanced, offsets: Offsets::Column, mapping: Mapping::Block, ..alu.clone() }, vec![1]),
            (Alu { cache: Cache::Advanced, exchange: Exchange::Shuffle, turn_cache: true, ..alu.clone() }, vec![1]),
            (
                Alu {
                    cache: Cache::Advanced,
                    area: 64,
                    row_items: 32,
                    cached_projections: 8,
                    rounding: Rounding::Float,
                    ..alu.clone()
                },
                vec![1],
            ),
            (Alu { cache: Cache::Advanced, arrays: 2, rounding: Rounding::FloatIndex, ..alu.clone() }, vec![2]),
            (Alu { cache: Cache::Advanced, arrays: 4, cached_projections: 8, ..alu.clone() }, vec![4]),
        ];
        for (alu, slices) in alus {
            list.push((Parameters::Alu(alu), slices, both()));
        }
        let oversample = Alu { common: common.clone(), row_items: 32, cached_projections: 8, ..Alu::default() };
        let oversamples = [
            (oversample.clone(), vec![1, 2]),
            (
                Alu {
                    arrays: 2,
                    row_items: 64,
                    cached_projections: 4,
                    offsets: Offsets::Column,
                    mapping: Mapping::Block,
                    ..oversample.clone()
                },
                vec![2, 4],
            ),
            (
                Alu { arrays: 4, cached_projections: 4, rounding: Rounding::Float, stage: 256, ..oversample.clone() },
                vec![4],
            ),
            (
                Alu {
                    area: 64,
                    cached_projections: 4,
                    write_pairs: true,
                    rounding: Rounding::FloatIndex,
                    ..oversample
                },
                vec![1],
            ),
        ];
        for (oversample, slices) in oversamples {
            list.push((Parameters::Oversample(Oversample(oversample)), slices, vec![Interpolation::Linear]));
        }
        let hybrid = |alu: Alu| Hybrid { texture_blocks: 1, alu_blocks: 1, balance: Balance::Multiprocessor, alu };
        list.push((Parameters::Hybrid(hybrid(alu.clone())), vec![1, 2], both()));
        let large = Alu { area: 64, row_items: 32, cached_projections: 8, cache: Cache::Advanced, ..alu };
        list.push((Parameters::Hybrid(Hybrid { texture_blocks: 3, alu_blocks: 5, ..hybrid(large) }), vec![1], both()));
    }
    let tensor = Tensor::default();
    list.push((
        Parameters::Tensor(Tensor { warps: [2, 1], squares: [1, 2], band: 4, ..tensor.clone() }),
        vec![16, 64],
        both(),
    ));
    let split = Tensor {
        split: true,
        flush: 16,
        common: Common { packed_constants: false, ..tensor.common.clone() },
        ..tensor
    };
    list.push((Parameters::Tensor(split), vec![32], both()));
    let vector = Vector::default();
    list.push((Parameters::Vector(vector.clone()), vec![16, 32], both()));
    let large = Vector {
        tile: 32,
        columns: 8,
        together: 3,
        common: Common { packed_constants: false, ..vector.common.clone() },
    };
    list.push((Parameters::Vector(large), vec![16], both()));
    // slices beyond four, for processors
    list.push((Parameters::Alu(Alu::default()), vec![8, 16], both()));
    list
}

fn check_family(algorithm: Algorithm) {
    let found = device();
    let mut failures = Vec::new();
    let family = variants().into_iter().filter(|(parameters, ..)| parameters.algorithm() == algorithm);
    for (parameters, modes, interpolations) in family {
        for interpolation in interpolations {
            for &slices in &modes {
                let offer = Offer { interpolation, mode: Mode::Precise, slices, parameters: parameters.clone() };
                failures.extend(check(&found, &plain(), &offer, &few_scans()));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// A test for each family, so that they run side by side.
macro_rules! every_parameter_of {
    ($($name:ident $algorithm:ident),*) => {
        mod every_parameter_agrees_with_the_reference {
            use super::*;

            $(#[test]
            fn $name() {
                check_family(Algorithm::$algorithm);
            })*

            #[test]
            fn of_every_family() {
                assert_eq!([$(Algorithm::$algorithm),*], Algorithm::ALL);
            }
        }
    };
}

every_parameter_of!(
    standard Standard, texture Texture, alu Alu, oversample Oversample, hybrid Hybrid, tensor Tensor, vector Vector
);

#[test]
fn every_family_adds_up_parts_of_the_projections() {
    let found = device();
    let mut failures = Vec::new();
    let mut seen = BTreeSet::new();
    // 41 projections in 16, 16 and 9; 97 rows of pixels in 40, 40 and 17
    let cut = Some(Cut { projections: 16, rows: 40 });
    for (parameters, modes, interpolations) in variants() {
        let (algorithm, common) = (parameters.algorithm(), parameters.common());
        if !seen.insert((algorithm.to_string(), common.sampler == Sampler::Image, common.packed_constants)) {
            continue;
        }
        for interpolation in interpolations {
            let slices = modes[modes.len() - 1];
            let offer = Offer { interpolation, mode: Mode::Precise, slices, parameters: parameters.clone() };
            failures.extend(check_cut(&found, &plain(), &offer, &few_scans()[2..], cut));
        }
    }
    for sampler in [Sampler::Buffer, Sampler::Image] {
        let offer = standard(sampler, Interpolation::Linear, 2, Storage::Half);
        failures.extend(check_cut(&found, &plain(), &offer, &few_scans()[2..], cut));
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Every kernel of a shipped profile that none before it has.
fn check_profile(name: &str) {
    let found = device();
    let mut failures = Vec::new();
    let mut seen = BTreeSet::new();
    let (_, first) = &few_scans()[0];
    let store = ProfileStore::built_in().unwrap();
    for (profile, _) in store.iter() {
        for offer in profile.offers() {
            let buffered = Offer { parameters: offer.parameters.clone().with_buffer(), ..offer.clone() };
            for offer in [offer, buffered] {
                let Some(spec) = spec(&found, profile, &offer, first) else { continue };
                if seen.insert(spec.generate().unwrap().key) && profile.name == name {
                    failures.extend(check(&found, profile, &offer, &few_scans()[..2]));
                    let wrong = no_crops(&found, &spec, first);
                    let of = format!("{name} {} has regions that are no crops", spec.name());
                    failures.extend((!wrong.is_empty()).then(|| format!("{of}: {wrong:?}")));
                }
            }
        }
        if profile.name == name {
            break;
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// A test for each profile, so that they run side by side.
macro_rules! every_kernel_of {
    ($($test:ident $name:literal),*) => {
        mod every_kernel_agrees_with_the_reference {
            use super::*;

            $(#[test]
            fn $test() {
                check_profile($name);
            })*

            #[test]
            fn of_every_shipped_profile() {
                let store = ProfileStore::built_in().unwrap();
                let names: BTreeSet<&str> = store.iter().map(|(profile, _)| profile.name.as_str()).collect();
                assert_eq!(names, BTreeSet::from([$($name),*]));
            }
        }
    };
}

every_kernel_of!(
    amd_cdna "amd-cdna", amd_gcn1 "amd-gcn1", amd_gcn2 "amd-gcn2", amd_gcn3 "amd-gcn3", amd_rdna "amd-rdna",
    amd_vliw5 "amd-vliw5", cpu "cpu", default "default", intel_gpu "intel-gpu", nvidia_ampere "nvidia-ampere",
    nvidia_fermi "nvidia-fermi", nvidia_gt200 "nvidia-gt200", nvidia_hopper "nvidia-hopper",
    nvidia_kepler_gk104 "nvidia-kepler-gk104", nvidia_kepler_gk110 "nvidia-kepler-gk110",
    nvidia_maxwell "nvidia-maxwell", nvidia_pascal "nvidia-pascal", nvidia_turing "nvidia-turing"
);

#[test]
fn filters_and_paddings_agree_with_the_reference() {
    use std::f64::consts::PI;
    let found = device();
    let scan = Scan::even(53, 20, 53);
    let offer = standard(Sampler::Buffer, Interpolation::Linear, 1, Storage::Float);
    let spec = spec(&found, &plain(), &offer, &scan).unwrap();
    let sinogram = noise(53 * 20, 3);
    type Window = Option<fn(f64) -> f64>;
    let windows: [(Filter, Window); 8] = [
        (Filter::Ramp, Some(|_| 1.0)),
        (Filter::SheppLogan, Some(|u| if u == 0.0 { 1.0 } else { (PI * u / 2.0).sin() / (PI * u / 2.0) })),
        (Filter::Cosine, Some(|u| (PI * u / 2.0).cos())),
        (Filter::Hamming, Some(|u| 0.54 + 0.46 * (PI * u).cos())),
        (Filter::Hann, Some(|u| (PI * u / 2.0).cos().powi(2))),
        (
            Filter::Parzen,
            Some(|u| if u <= 0.5 { 1.0 - 6.0 * u * u + 6.0 * u * u * u } else { 2.0 * (1.0 - u).powi(3) }),
        ),
        (Filter::Butterworth, Some(|u| 1.0 / (1.0 + u.powi(8)))),
        (Filter::None, None),
    ];
    let ways = [
        RowFilter { length: padded(53), way: RowWay::Transform },
        RowFilter { length: 128, way: RowWay::Fused { rows: 2, parts: 1 } },
        RowFilter { length: padded(53), way: RowWay::Host },
    ];
    for (name, window) in windows {
        for (padding, pad) in [(Padding::Zero, Pad::Zero), (Padding::Edge, Pad::Edge), (Padding::Mirror, Pad::Mirror)] {
            for rows in ways {
                let got = reconstruct_with(&found, &spec, &scan, Roi::full(53), rows, (name, padding), &sinogram);
                let window = window.as_ref().map(|w| w as &dyn Fn(f64) -> f64);
                let filtered = filter(&sinogram, 53, rows.length, pad, window);
                let (want, slack) = back_project(&filtered, &scan, Read::Linear);
                let error = relative_rms(&got, &want, &slack);
                assert!(error <= 1e-5, "{name} {pad:?} {rows:?}: {error:.3e}");
            }
        }
    }
}

/// Every length and both ways to exchange values; 5 projections are two pairs and a half, and more slices than one.
#[test]
fn fused_rows_of_every_length() {
    let found = device();
    let profile = plain();
    let offer = standard(Sampler::Buffer, Interpolation::Linear, 2, Storage::Float);
    for bins in [20, 60, 100, 200, 500, 1000, 2000, 4000, 8000] {
        let scan = Scan::even(bins, 5, 8);
        let spec = spec(&found, &profile, &offer, &scan).unwrap();
        let sinograms = noise(2 * bins * 5, 3);
        let length = padded(bins);
        for (rows, parts) in [(1, 1), (if length > 1024 { 1 } else { 2 }, 2)] {
            let rows = RowFilter { length, way: RowWay::Fused { rows, parts } };
            let ramp = (Filter::Ramp, Padding::Edge);
            let got = reconstruct_with(&found, &spec, &scan, Roi::full(8), rows, ramp, &sinograms);
            for slice in 0..2 {
                let sinogram = &sinograms[slice * bins * 5..(slice + 1) * bins * 5];
                let filtered = filter(sinogram, bins, length, Pad::Edge, Some(&|_| 1.0));
                let (want, slack) = back_project(&filtered, &scan, Read::Linear);
                let error = relative_rms(&got[slice * 64..(slice + 1) * 64], &want, &slack);
                assert!(error <= 1e-5, "{rows:?}: {error:.3e}");
            }
        }
    }
}

/// However rows are filtered: a last part of an odd number of them, a pass that is not full.
#[test]
fn parts_and_bands_of_every_filter() {
    let found = device();
    let scan = Scan::even(53, 23, 53);
    let offer = standard(Sampler::Buffer, Interpolation::Linear, 2, Storage::Float);
    let spec = spec(&found, &plain(), &offer, &scan).unwrap();
    let sinograms = noise(3 * 53 * 23, 3);
    let ramp = (Filter::Ramp, Padding::Edge);
    let roi = Roi { x: 3, y: 5, width: 40, height: 41 };
    for rows in [
        RowFilter { length: 108, way: RowWay::Transform },
        RowFilter { length: 128, way: RowWay::Fused { rows: 2, parts: 1 } },
        RowFilter { length: 108, way: RowWay::Host },
    ] {
        let slices = |projections, height| {
            let cut = Cut { projections, rows: height };
            reconstruct_cut(&found, &spec, &scan, (roi, cut), (rows, By::Library), ramp, &sinograms)
        };
        let whole = slices(23, 41);
        let exact: Vec<f64> = whole.iter().map(|&v| v.into()).collect();
        // bands change no bit
        assert!(slices(23, 16) == whole, "{rows:?}");
        for (projections, height) in [(16, 41), (8, 7), (2, 20)] {
            let error = relative_rms(&slices(projections, height), &exact, &vec![0.0; exact.len()]);
            assert!(error <= 1e-6, "{rows:?} {projections} {height}: {error:.3e}");
        }
    }
}

#[test]
fn a_region_is_the_crop_of_the_full_slice_bit_for_bit() {
    let found = device();
    let scan = Scan::even(67, 41, 97);
    let hybrid = Hybrid { texture_blocks: 1, alu_blocks: 2, balance: Balance::Block, alu: Alu::default() };
    for offer in [
        standard(Sampler::Image, Interpolation::Linear, 1, Storage::Float),
        standard(Sampler::Buffer, Interpolation::Linear, 1, Storage::Float),
        Offer { slices: 1, ..sixteen(Parameters::Hybrid(hybrid)) },
        tensor(true),
        sixteen(Parameters::Vector(Vector::default())),
    ] {
        let spec = spec(&found, &plain(), &offer, &scan).unwrap();
        let wrong = no_crops(&found, &spec, &scan);
        assert!(wrong.is_empty(), "{}: {wrong:?}", spec.name());
    }
}

/// Regions that are not, bit for bit, crops of the full slice.
fn no_crops(found: &FoundDevice, spec: &KernelSpec, scan: &Scan) -> Vec<Roi> {
    let side = scan.size;
    let sinogram = noise(scan.bins * scan.projections(), 5);
    let slice = |roi| reconstruct(found, spec, scan, roi, Filter::Ramp, Padding::Edge, &sinogram);
    let full = slice(Roi::full(side));
    let regions = [
        Roi { x: 5, y: 17, width: 31, height: 9 },
        Roi { x: side - 1, y: 0, width: 1, height: side },
        Roi { x: 16, y: 32, width: 16, height: 16 },
        // from the second block of every kernel on
        Roi { x: 64, y: 1, width: side - 64, height: 3 },
    ];
    let is_crop = |roi: &Roi| {
        let region = slice(*roi);
        let row = |y: usize| (roi.y + y) * side + roi.x;
        let crop = |y: usize| full[row(y)..row(y) + roi.width].iter().map(|v| v.to_bits());
        region.chunks(roi.width).enumerate().all(|(y, got)| got.iter().map(|v| v.to_bits()).eq(crop(y)))
    };
    regions.into_iter().filter(|roi| !is_crop(roi)).collect()
}

#[test]
fn a_wide_detector_keeps_its_precision() {
    // positions near bin 4000 have an f32 step of 2.4e-4 bins: only offsets inside the block keep 1e-5
    let found = device();
    let mut scan = Scan::even(4096, 12, 64);
    scan.axis = vec![4000.37; 12];
    scan.angles = (0..12).map(|p| 3.0 + 14.9 * f64::from(p)).collect();
    let sinogram = noise(4096 * 12, 11);
    let filtered = filter(&sinogram, 4096, 8192, Pad::Edge, None);
    let (want, slack) = back_project(&filtered, &scan, Read::Linear);
    for offer in [
        standard(Sampler::Buffer, Interpolation::Linear, 1, Storage::Float),
        tensor(true),
        sixteen(Parameters::Vector(Vector::default())),
    ] {
        let spec = spec(&found, &plain(), &offer, &scan).unwrap();
        let got = reconstruct(&found, &spec, &scan, Roi::full(64), Filter::None, Padding::Edge, &sinogram);
        let error = relative_rms(&got, &want, &slack);
        assert!(error <= 2e-6, "{}: {error:.3e}", spec.name());
    }
}

#[test]
fn large_and_small_values_survive_half_storage() {
    let found = device();
    let scan = Scan::even(67, 41, 67);
    let values = 67 * 41;
    let mut sinograms = noise(2 * values, 5);
    // past the largest half (65504), and far below the smallest normal one (6e-5), in one pass
    sinograms[..values].iter_mut().for_each(|v| *v *= 1e9);
    sinograms[values..].iter_mut().for_each(|v| *v *= 1e-9);
    let half = standard(Sampler::Buffer, Interpolation::Linear, 2, Storage::Half);
    for (offer, limit) in [(half, 5e-4), (tensor(false), 5e-4), (tensor(true), 1e-5)] {
        let spec = spec(&found, &plain(), &offer, &scan).unwrap();
        let got = reconstruct(&found, &spec, &scan, Roi::full(67), Filter::Ramp, Padding::Edge, &sinograms);
        for slice in 0..2 {
            let sinogram = &sinograms[slice * values..(slice + 1) * values];
            let filtered = filter(sinogram, 67, padded(67), Pad::Edge, Some(&|_| 1.0));
            let (want, slack) = back_project(&filtered, &scan, Read::Linear);
            let error = relative_rms(&got[slice * 4489..(slice + 1) * 4489], &want, &slack);
            assert!(error <= limit, "{} slice {slice}: {error:.3e}", spec.name());
        }
    }
}

#[test]
fn the_phantom_comes_back_the_right_way_up_and_at_its_value() {
    // any flip, turn or shift by half a pixel of this phantom is worse than the limit
    let found = device();
    let (size, projections) = (128, 200);
    let phantom = Phantom::new(Kind::Asymmetric, size);
    let truth = phantom.rasterise(8);
    let mut scan = Scan::even(size + 9, projections, size);
    scan.axis = vec![61.7; projections];
    let mut sinogram = vec![0f32; scan.bins * projections];
    for (p, row) in sinogram.chunks_mut(scan.bins).enumerate() {
        phantom.project_row(scan.angles[p].to_radians(), scan.axis[p], row);
    }
    let offer = standard(Sampler::Buffer, Interpolation::Linear, 1, Storage::Float);
    let spec = spec(&found, &plain(), &offer, &scan).unwrap();
    let slice = reconstruct(&found, &spec, &scan, Roi::full(size), Filter::Ramp, Padding::Edge, &sinogram);
    let nrmse = |f: &dyn Fn(usize, usize) -> (usize, usize)| {
        let turned: Vec<f32> = (0..size * size)
            .map(|i| {
                let (x, y) = f(i % size, i / size);
                slice[y.min(size - 1) * size + x.min(size - 1)]
            })
            .collect();
        fbp::compare::images(size, size, Some(0.9), &turned, &truth).unwrap().nrmse
    };
    let right = nrmse(&|x, y| (x, y));
    let last = size - 1;
    println!("right {right:.3}");
    for (what, error) in [
        ("flipped in y", nrmse(&|x, y| (x, last - y))),
        ("flipped in x", nrmse(&|x, y| (last - x, y))),
        ("transposed", nrmse(&|x, y| (y, x))),
        ("half a turn", nrmse(&|x, y| (last - x, last - y))),
        ("shifted", nrmse(&|x, y| (x + 1, y))),
    ] {
        println!("{what} {error:.3}");
        assert!(error > 1.5 * right, "{what}: {error} against {right}");
    }
    assert!(right < 0.25, "{right}");
    for region in phantom.uniform_regions() {
        if let Some(mean) = region.mean(&slice, 2.0) {
            assert!(
                (mean - region.value()).abs() < 0.02 * region.contrast().abs().max(0.2),
                "{mean} {}",
                region.value()
            );
        }
    }
}

//! Exact interpolation: slices against a direct sum in `f64` for every bound, and whole runs.

use crate::kernels::setup::{device, is_selected, plain, reconstruct, reconstruct_with, spec};
use crate::support::cli::{Lab, Pages, SMALL, farthest};
use crate::support::skip::real_scans;
use fbp::geometry::{AngleWeights, ExtendedField, Roi, weights};
use fbp::kernel::{Bound, GridItems, Gridding, Interpolation, Mode, Offer, RowFilter, RowFilterMethod};
use fbp::phantom::{Kind, Phantom};
use fbp::profile::ProfileStore;
use fbp::source::Stack;
use fbp::spectrum::{Filter, Padding};
use fbp_reference::{Pad, Scan, exact_pixels, noise, padded, relative_rms};
use std::f64::consts::PI;

const BOUNDS: [f64; 4] = [1e-2, 1e-3, 1e-4, 1e-5];

fn offer(items: GridItems, slices: u32) -> Offer {
    let parameters = Gridding { items, ..Gridding::default() }.into();
    Offer { interpolation: Interpolation::Exact, mode: Mode::Precise, slices, parameters }
}

fn golden(bins: usize, projections: usize, size: usize) -> Scan {
    let angles: Vec<f64> = (0..projections).map(|p| (111.246_117_975 * p as f64) % 180.0).collect();
    Scan { weights: weights(&angles, AngleWeights::Spacing, 180.0), angles, ..Scan::even(bins, projections, size) }
}

fn whole_turn(bins: usize, projections: usize, size: usize) -> Scan {
    let mut scan = Scan::even(bins, projections, size);
    scan.angles.iter_mut().for_each(|angle| *angle *= 2.0);
    scan
}

fn uneven(bins: usize, projections: usize, size: usize) -> Scan {
    let angles: Vec<f64> = (0..projections).map(|p| (p * p) as f64 * 0.7 - 30.0).collect();
    Scan { weights: weights(&angles, AngleWeights::Spacing, 180.0), angles, ..Scan::even(bins, projections, size) }
}

fn drifting(bins: usize, projections: usize, size: usize) -> Scan {
    let mut scan = Scan::even(bins, projections, size);
    scan.axis.iter_mut().enumerate().for_each(|(p, axis)| *axis += 0.13 * p as f64 - 7.3);
    scan
}

/// A wedge of 60 degrees is missing.
fn missing(bins: usize, projections: usize, size: usize) -> Scan {
    let mut scan = Scan::even(bins, projections, size);
    scan.angles.iter_mut().for_each(|angle| *angle = 30.0 + *angle * 2.0 / 3.0);
    scan
}

/// Compares a region with the reference at some of its pixels.
fn error(got: &[f32], sinogram: &[f32], scan: &Scan, roi: Roi, pad: Pad) -> f64 {
    let step = (roi.pixels() / 300).max(1) | 1;
    let pixels: Vec<usize> = (0..roi.pixels()).step_by(step).collect();
    let places: Vec<[usize; 2]> = pixels.iter().map(|i| [roi.x + i % roi.width, roi.y + i / roi.width]).collect();
    let want = exact_pixels(sinogram, scan, pad, &|_| 1.0, &places);
    let got: Vec<f32> = pixels.iter().map(|&i| got[i]).collect();
    relative_rms(&got, &want, &vec![0.0; want.len()])
}

/// Every bound holds for a sinogram, in both forms.
fn check(name: &str, scan: &Scan, sinogram: &[f32], roi: Roi) {
    let found = device();
    for (items, slices) in [(GridItems::Cells, 2), (GridItems::Tiles, 8)] {
        let spec = spec(&found, &plain(), &offer(items, slices), scan).unwrap();
        if !is_selected(&spec) {
            continue;
        }
        for accuracy in BOUNDS {
            let spec = spec.bounded(Bound { accuracy, width: 4 });
            let got = reconstruct(&found, &spec, scan, roi, Filter::Ramp, Padding::Edge, sinogram);
            let error = error(&got, sinogram, scan, roi, Pad::Edge);
            println!("{name} {items} {accuracy:.0e}: {error:.2e}");
            assert!(error <= accuracy, "{name}, {items}: {error:.3e} > {accuracy:.0e}");
        }
    }
}

fn check_noise(name: &str, scan: &Scan) {
    let sinogram = noise(scan.bins * scan.projections(), 3);
    check(name, scan, &sinogram, Roi::full(scan.size));
}

#[test]
fn every_bound_holds_for_noise() {
    check_noise("64", &Scan::even(64, 50, 64));
    check_noise("odd widths", &Scan::even(67, 41, 67));
    check_noise("golden angle", &golden(100, 89, 100));
    check_noise("whole turn", &whole_turn(80, 70, 80));
    check_noise("uneven angles", &uneven(67, 23, 64));
    check_noise("missing wedge", &missing(90, 60, 90));
    check_noise("one projection", &Scan::even(67, 1, 67));
    check_noise("small slice", &drifting(150, 40, 61));
    check_noise("large slice", &drifting(67, 41, 150));
}

#[test]
fn every_bound_holds_for_larger_slices() {
    // the sides between whose grids the length of a line changes
    check_noise("372", &Scan::even(372, 40, 372));
    check_noise("373", &golden(373, 31, 373));
    check_noise("1024", &drifting(1024, 24, 1024));
}

#[test]
fn every_bound_holds_for_regions() {
    let scan = drifting(300, 50, 300);
    let sinogram = noise(scan.bins * scan.projections(), 5);
    for roi in [
        Roi { x: 211, y: 17, width: 61, height: 33 },
        Roi { x: 299, y: 0, width: 1, height: 300 },
        Roi { x: 0, y: 299, width: 300, height: 1 },
    ] {
        check(&format!("region {roi}"), &scan, &sinogram, roi);
    }
}

/// The entry that processors use, as it is: with its tile, and optimised. Sides whose grids have an odd factor and not, and a
/// second step of radix 16.
#[test]
fn every_bound_holds_for_the_kernel_of_processors() {
    let found = device();
    let cpu = ProfileStore::built_in().unwrap().named("cpu").unwrap();
    let is_exact = |offer: &Offer| offer.interpolation == Interpolation::Exact && offer.slices == 8;
    let offer = cpu.offers().into_iter().find(is_exact).unwrap();
    for (scan, bounds) in [(golden(138, 61, 138), &BOUNDS[..]), (golden(373, 31, 373), &BOUNDS[1..2])] {
        let sinogram = noise(scan.bins * scan.projections(), 3);
        let spec = spec(&found, &cpu, &offer, &scan).unwrap();
        for &accuracy in bounds {
            let spec = spec.bounded(Bound { accuracy, width: 4 });
            let roi = Roi::full(scan.size);
            let got = reconstruct(&found, &spec, &scan, roi, Filter::Ramp, Padding::Edge, &sinogram);
            let error = error(&got, &sinogram, &scan, roi, Pad::Edge);
            assert!(error <= accuracy, "{}: {error:.3e} > {accuracy:.0e}", scan.size);
        }
    }
}

/// A single bin is a line in the slice; that at the rim reaches the image's corners alone.
#[test]
fn every_bound_holds_for_single_bins() {
    for (p, bin) in [(0, 0), (7, 95), (20, 47), (13, 1)] {
        let scan = Scan::even(96, 40, 96);
        let mut sinogram = vec![0.0; 96 * 40];
        sinogram[p * 96 + bin] = 1.0;
        check(&format!("bin {bin} of projection {p}"), &scan, &sinogram, Roi::full(96));
    }
}

#[test]
fn every_bound_holds_for_a_phantom() {
    let scan = Scan::even(160, 120, 160);
    let phantom = Phantom::new(Kind::SheppLogan, 160);
    let mut sinogram = vec![0f32; 160 * 120];
    for (row, angle) in sinogram.chunks_mut(160).zip(&scan.angles) {
        phantom.project_row(angle.to_radians(), 79.5, row);
    }
    check("phantom", &scan, &sinogram, Roi::full(160));
}

/// Mean of the first rows of a folder's frames.
fn mean_row(folder: &std::path::Path) -> Vec<f64> {
    let stack = Stack::open(folder.to_str().unwrap(), "--flats").unwrap();
    let mut row = vec![0.0; stack.width()];
    let mut sum = vec![0.0; stack.width()];
    for page in 0..stack.len() {
        stack.read_rows(page, 0..1, &mut row).unwrap();
        sum.iter_mut().zip(&row).for_each(|(sum, value)| *sum += f64::from(*value) / stack.len() as f64);
    }
    sum
}

/// A measured scan, from its counts to slices.
#[test]
fn every_bound_holds_for_the_tooth() {
    let Some(data) = real_scans() else { return };
    let at = |name: &str| data.join("tooth").join(name);
    let frames = Stack::open(at("proj").to_str().unwrap(), "--projections").unwrap();
    let (bins, projections) = (frames.width(), frames.len());
    let (flat, dark) = (mean_row(&at("flat")), mean_row(&at("dark")));
    let mut row = vec![0.0; bins];
    let mut sinogram = Vec::with_capacity(bins * projections);
    for page in 0..projections {
        frames.read_rows(page, 0..1, &mut row).unwrap();
        let attenuation = |b: usize| -((f64::from(row[b]) - dark[b]) / (flat[b] - dark[b])).ln();
        sinogram.extend((0..bins).map(|b| attenuation(b) as f32));
    }
    let lines = std::fs::read_to_string(at("angles_deg.txt")).unwrap();
    let angles: Vec<f64> = lines.split_whitespace().map(|line| line.parse().unwrap()).collect();
    assert_eq!(angles.len(), projections);
    let scan = Scan { angles, axis: vec![295.5; projections], ..Scan::even(bins, projections, bins) };
    let step = 1361;
    let places: Vec<[usize; 2]> = (0..bins * bins).step_by(step).map(|i| [i % bins, i / bins]).collect();
    let want = exact_pixels(&sinogram, &scan, Pad::Edge, &|_| 1.0, &places);

    let lab = Lab::new();
    let [frames, flats, darks] = ["proj", "flat", "dark"].map(|name| at(name).to_str().unwrap().to_owned());
    let args = format!(
        "--projections {frames} --flats {flats} --darks {darks} --angles {} --angle-weights uniform --center 295.5 \
         --rows 0..1 --interpolation exact",
        at("angles_deg.txt").display()
    );
    for profile in ["cpu", "default"] {
        for accuracy in BOUNDS {
            let slices = lab.slices(
                &format!("{args} --profile {profile} --accuracy {accuracy:e}"),
                &format!("{profile}-{accuracy:e}"),
            );
            let got: Vec<f32> = slices.pages[0].iter().copied().step_by(step).collect();
            let error = relative_rms(&got, &want, &vec![0.0; want.len()]);
            println!("tooth {profile} {accuracy:.0e}: {error:.2e}");
            assert!(error <= accuracy, "{profile}: {error:.3e} > {accuracy:.0e}");
        }
    }
}

/// Filters, paddings, and each way to make spectra.
#[test]
fn spectra_are_made_in_every_way() {
    let found = device();
    let scan = drifting(53, 31, 53);
    let sinogram = noise(53 * 31, 9);
    let length = padded(53);
    let fused = |rows, parts| RowFilterMethod::Fused { rows, parts };
    for (items, methods) in [
        (GridItems::Cells, vec![RowFilterMethod::Transform, fused(1, 1), fused(4, 2)]),
        (GridItems::Tiles, vec![RowFilterMethod::Vector]),
    ] {
        let spec = spec(&found, &plain(), &offer(items, 4), &scan).unwrap();
        for method in methods {
            let ways = [(Padding::Zero, Pad::Zero), (Padding::Edge, Pad::Edge), (Padding::Mirror, Pad::Mirror)];
            for (padding, pad) in ways {
                let rows = RowFilter { length, method };
                let roi = Roi::full(53);
                let got = reconstruct_with(&found, &spec, &scan, roi, rows, (Filter::Ramp, padding), &sinogram);
                let error = error(&got, &sinogram, &scan, roi, pad);
                assert!(error <= 1e-5, "{items} {method:?} {padding}: {error:.3e}");
            }
        }
    }
}

/// The weights of projections are those of the scan.
#[test]
fn weights_are_those_of_the_scan() {
    let found = device();
    let mut scan = Scan::even(64, 30, 64);
    scan.weights.iter_mut().enumerate().for_each(|(p, weight)| *weight = PI / 30.0 * (0.5 + p as f64 / 29.0));
    let sinogram = noise(64 * 30, 4);
    let spec = spec(&found, &plain(), &offer(GridItems::Cells, 1), &scan).unwrap();
    let got = reconstruct(&found, &spec, &scan, Roi::full(64), Filter::Ramp, Padding::Edge, &sinogram);
    let error = error(&got, &sinogram, &scan, Roi::full(64), Pad::Edge);
    assert!(error <= 1e-5, "{error:.3e}");
}

fn lab(slices: usize) -> Lab {
    let lab = Lab::new();
    let page = |slice: usize| noise(60 * 44, 3 + slice as u64).iter().map(|v| v + 2.0).collect::<Vec<f32>>();
    lab.write("sin", "s", &Pages { width: 60, pages: (0..slices).map(page).collect() });
    lab
}

const EXACT: &str = "--sinograms sin --interpolation exact";

/// A slice's bits are its own: whatever shares its pass, chunk, job or device.
#[test]
fn slices_do_not_depend_on_their_neighbours() {
    let lab = lab(21);
    for profile in ["cpu", "default"] {
        let args = format!("{EXACT} --profile {profile}");
        let all = lab.slices(&args, &format!("all-{profile}"));
        assert_eq!(all.pages.len(), 21);
        for shard in 0..5 {
            lab.ok(&format!("reconstruct {args} --shard {shard}/5 --output shards-{profile}"));
        }
        assert_eq!(lab.bytes(&format!("shards-{profile}")), lab.bytes(&format!("all-{profile}")), "{profile}");
        let halves = lab.slices(&format!("{args} --device cpu/2"), &format!("halves-{profile}"));
        assert!(halves.pages == all.pages, "{profile}");
        // the kernel is that of the run's slices, so it is asked for
        let few = lab.slices(&format!("{args} --slices-per-pass 8 --rows 6..9"), &format!("few-{profile}"));
        assert!(few.pages[..] == all.pages[6..9], "{profile}");
    }
}

#[test]
fn slices_do_not_depend_on_the_slices_of_a_pass() {
    let lab = lab(9);
    for profile in ["cpu", "default"] {
        let slices = |count: u32| {
            let args = format!("{EXACT} --profile {profile} --slices-per-pass {count}");
            lab.slices(&args, &format!("x{count}-{profile}"))
        };
        let all = slices(8);
        for count in [1, 2, 4] {
            assert!(slices(count) == all, "{profile} x{count}");
        }
    }
}

/// Axes, weights and rows of whole runs.
#[test]
fn complete_runs_are_the_sums_of_their_scans() {
    let lab = lab(1);
    let sinogram = noise(60 * 44, 3).iter().map(|v| v + 2.0).collect::<Vec<f32>>();
    let even = Scan::even(60, 44, 60);
    let shifts: Vec<f64> = (0..44).map(|p| 0.13 * f64::from(p) - 3.4).collect();
    lab.numbers("shifts.txt", &shifts);
    let shifted = Scan { axis: shifts.iter().map(|shift| 27.3 + shift).collect(), ..even.clone() };
    let angles: Vec<f64> = (0..44).map(|p| f64::from(p * p) * 0.7 - 30.0).collect();
    lab.numbers("angles.txt", &angles);
    let spaced = Scan { weights: weights(&angles, AngleWeights::Spacing, 180.0), angles, ..even.clone() };
    let uniform = Scan { weights: even.weights.clone(), ..spaced.clone() };
    let turn: Vec<f64> = even.angles.iter().map(|angle| 2.0 * angle).collect();
    let field = ExtendedField::new(60, 20.25, &[20.25; 44], &turn).unwrap();
    let mut rows = sinogram.clone();
    rows.resize(field.bins * 44, 0.0);
    field.extend(&mut rows);
    let extended =
        Scan { angles: turn, axis: vec![20.25 + field.before as f64; 44], ..Scan::even(field.bins, 44, field.bins) };
    for (number, (args, scan, rows)) in [
        ("--center 27.3 --center-shifts shifts.txt", shifted, &sinogram),
        ("--angles angles.txt", spaced, &sinogram),
        ("--angles angles.txt --angle-weights uniform", uniform, &sinogram),
        ("--overall-angle 360 --center 20.25 --extended-field", extended, &rows),
    ]
    .into_iter()
    .enumerate()
    {
        let slices = lab.slices(&format!("{EXACT} {args}"), &format!("r{number}"));
        let error = error(&slices.pages[0], rows, &scan, Roi::full(scan.size), Pad::Edge);
        assert!(error <= 1e-5, "{args}: {error:.3e}");
    }
}

#[test]
fn a_cut_pass_and_a_region_keep_the_bound() {
    let lab = lab(3);
    let all = lab.slices(EXACT, "all");
    let (plan, _) = lab.ok(&format!("reconstruct {EXACT} --device-memory 110K --dry-run --output r"));
    assert!(plan.contains("added up") || plan.contains("bands"), "{plan}");
    let cut = lab.slices(&format!("{EXACT} --device-memory 110K"), "cut");
    let scale = all.pages.iter().flatten().fold(0f32, |a, v| a.max(v.abs()));
    assert!(farthest(&cut, &all) <= 1e-5 * f64::from(scale), "{}", farthest(&cut, &all));
    let region = lab.slices(&format!("{EXACT} --roi 7,11,30,20"), "region");
    for (got, full) in region.pages.iter().zip(&all.pages) {
        for (i, value) in got.iter().enumerate() {
            let want = full[(11 + i / 30) * 60 + 7 + i % 30];
            assert!((value - want).abs() <= 5e-5 * scale, "{value} {want}");
        }
    }
}

/// A device whose local memory holds no line of the grid does as processors do.
#[test]
fn lines_that_do_not_fit_local_memory_are_transformed_elsewhere() {
    let found = device();
    let scan = Scan::even(64, 30, 64);
    let spec = spec(&found, &plain(), &offer(GridItems::Cells, 1), &scan).unwrap();
    let fbp::kernel::Parameters::Gridding(gridding) = &spec.parameters else { panic!("{:?}", spec.parameters) };
    let facts = fbp::facts::DeviceFacts { local_memory: 16 << 10, ..found.facts.clone() };
    let form = |side| fbp::device::GridForm::new(&facts, gridding, Roi::full(side), 1e-3).unwrap();
    assert!(form(1024).is_some() && form(3000).is_none());
    let cached = fbp::device::GridForm::new(&facts, &gridding.in_cache(), Roi::full(3000), 1e-3).unwrap();
    assert!(cached.is_some());
}

#[test]
fn what_is_refused_says_why() {
    let lab = lab(1);
    lab.write("small", "s", &SMALL.sinograms());
    let linear = "reconstruct --sinograms sin --output r";
    lab.fails(&format!("{linear} --accuracy 1e-3"), 2, &["--accuracy", "--interpolation exact"]);
    lab.fails(&format!("reconstruct {EXACT} --output r --accuracy 1e-9"), 2, &["--accuracy", "2e-6", "0.1"]);
    lab.fails(&format!("reconstruct {EXACT} --output r --accuracy nan"), 2, &["--accuracy"]);
    lab.fails(&format!("reconstruct {EXACT} --output r --size 12000"), 2, &["exact", "12000", "--roi"]);
    lab.fails(&format!("{linear} --algorithm gridding --interpolation linear"), 2, &["gridding", "linear"]);
    lab.fails(&format!("reconstruct {EXACT} --output r --algorithm texture"), 2, &["texture", "exact"]);
    // the family has one interpolation
    let (plan, _) = lab.ok(&format!("{linear} --algorithm gridding --dry-run"));
    assert!(plan.contains("gridding-exact"), "{plan}");
}

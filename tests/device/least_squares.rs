//! `--method`: complete runs; the solver itself is tested in base/src/least_squares/.

use crate::support::cli::{Lab, Pages};
use fbp::compare::images;
use fbp::device::{Session, enumerate};
use fbp::geometry::{Geometry, GridSides};
use fbp::least_squares::{
    Iterations, LeastSquares, ProjectionWeights, RowScale, ScanOperators, SliceMethod, SliceSolver,
};
use fbp::profile::ProfileStore;
use fbp::solver::{DeviceSolver, SolverForm, SolverStart};
use fbp::spectrum::{Filter, spectrum};
use opencl3::memory::CL_MEM_READ_WRITE;
use std::fs;

const SIZE: usize = 96;

/// Four slices of a sample of distinct materials, from few noisy projections.
fn scan() -> Lab {
    let lab = Lab::new();
    lab.ok(&format!(
        "phantom --kind asymmetric --size {SIZE} --projections 24 --slices 4 --noise 0.4 --center 48.7 --output sinos --truth \
         truth.tif"
    ));
    lab
}

const FLAGS: &str = "--sinograms sinos --center 48.7";

/// Error of the slices relative to the deviation of the truth, inside the disc.
fn error(slices: &Pages, truth: &Pages) -> f64 {
    let pairs = slices.pages.iter().zip(&truth.pages);
    let errors = pairs.map(|(a, b)| images(truth.width, truth.width, Some(0.9), a, b).unwrap().nrmse);
    errors.fold(0.0, f64::max)
}

#[test]
fn slices_of_few_projections_are_nearer_to_the_truth() {
    let lab = scan();
    let truth = lab.read("truth.tif");
    let of = |method: &str| error(&lab.slices(&format!("{FLAGS} --method {method}"), method), &truth);
    let [fbp, tv, huber, tikhonov, cgls] = ["fbp", "tv", "huber", "tikhonov", "cgls"].map(of);
    assert!(tv < 0.5 * fbp && huber < 0.5 * fbp, "fbp {fbp}, tv {tv}, huber {huber}");
    assert!(tikhonov < 0.7 * fbp && cgls < 0.7 * fbp, "fbp {fbp}, tikhonov {tikhonov}, cgls {cgls}");
    // 0 is the least value, unless that is not wanted
    assert!(lab.read("tv").pages.concat().iter().all(|value| *value >= 0.0));
    let free = lab.slices(&format!("{FLAGS} --method tv --no-non-negative"), "free");
    assert!(free.pages.concat().iter().any(|value| *value < 0.0));
}

/// Each slice has the same bytes, however many are computed with it, and in a region.
#[test]
fn slices_do_not_depend_on_what_is_computed_with_them() {
    let lab = scan();
    let flags = format!("{FLAGS} --method tv --iterations 12");
    let whole = lab.slices(&flags, "whole");
    for (name, more) in [("one", "--slices-per-pass 1"), ("parts", "--device cpu/2"), ("memory", "--device-memory 1M")]
    {
        assert!(lab.slices(&format!("{flags} {more}"), name) == whole, "{more}");
    }
    for shard in ["0/2", "1/2"] {
        lab.ok(&format!("reconstruct -q {flags} --shard {shard} --output shards"));
    }
    assert!(lab.read("shards") == whole);
    let region = lab.slices(&format!("{flags} --roi 10,20,30,40"), "region");
    for (slice, region) in whole.pages.iter().zip(&region.pages) {
        let crop: Vec<f32> = (20..60).flat_map(|y| &slice[y * SIZE + 10..y * SIZE + 40]).copied().collect();
        assert!(*region == crop);
    }
    // a run that lost a slice is completed
    let bytes = lab.bytes("whole");
    fs::remove_file(lab.path("whole/slice_00002.tif")).unwrap();
    lab.ok(&format!("reconstruct -q {flags} --resume --output whole"));
    let slices = |bytes: &[(String, Vec<u8>)]| {
        bytes.iter().filter(|(name, _)| name.ends_with(".tif")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(slices(&lab.bytes("whole")), slices(&bytes));
    // another strength is another run
    let (_, err) = lab.ok(&format!("reconstruct {flags} --strength 2 --resume --output whole"));
    assert!(err.contains("0 of 4 slices are kept"), "{err}");
}

#[test]
fn larger_slices_are_begun_at_half_their_resolution() {
    let lab = Lab::new();
    lab.ok("phantom --kind discs --size 520 --projections 20 --noise 1 --output sinos --truth truth.tif");
    let truth = lab.read("truth.tif");
    let fbp = error(&lab.slices("--sinograms sinos", "fbp"), &truth);
    let tv = error(&lab.slices("--sinograms sinos --method tv --iterations 3", "tv"), &truth);
    assert!(tv < 0.4 * fbp, "fbp {fbp}, tv {tv}");
}

#[test]
fn iterations_that_do_not_settle_are_told() {
    let lab = scan();
    let flags = format!("{FLAGS} --rows 0..1 --method tv --tolerance 1e-9");
    let (_, err) = lab.ok(&format!("reconstruct {flags} --report run.json --output slices"));
    assert!(err.contains("1 slice still changed after 100 iterations"), "{err}");
    let report: serde_json::Value = serde_json::from_str(&lab.read_text("run.json")).unwrap();
    assert_eq!(report["solver"]["iterations"][0], 100);
    assert_eq!(report["solver"]["unfinished"], 1);
    assert!(report["doubts"].as_array().unwrap().iter().any(|doubt| doubt["name"] == "unfinished"));
    assert!((report["solver"]["sigma"][0].as_f64().unwrap() / 0.4 - 1.0).abs() < 0.35, "{report}");
}

/// Slices that a run computes before it begins, for the range of integers, are not among those that it reports; and what
/// is known of back projection is not said of least squares.
#[test]
fn reports_and_plans_are_of_least_squares() {
    let lab = scan();
    let flags = format!("{FLAGS} --method tv --iterations 7 --dtype u16 --output slices");
    lab.ok(&format!("reconstruct -q {flags} --report run.json --report run.html"));
    let report: serde_json::Value = serde_json::from_str(&lab.read_text("run.json")).unwrap();
    assert_eq!(report["solver"]["iterations"], serde_json::json!([7, 7, 7, 7]));
    let page = lab.read_text("run.html");
    assert!(page.contains("regularised least squares") && !page.contains("The interpolation between bins"));
    let (plan, _) = lab.ok(&format!("reconstruct {flags} --overwrite --dry-run"));
    assert!(plan.contains("tv, strength 1, iterations 7, no negative values; up to 4 slices at a time"), "{plan}");
    assert!(plan.contains("at most 7 iterations") && !plan.contains("of back projection"), "{plan}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let lab = scan();
    for (flags, words) in [
        ("--strength 2", &["--strength", "--method fbp", "tv"][..]),
        ("--method cgls --strength 2", &["--strength", "cgls"]),
        ("--method tv --strength 0", &["--strength", "0 is not within"]),
        ("--method tv --strength nan", &["--strength"]),
        ("--method tv --iterations 0", &["--iterations", "auto"]),
        ("--method tv --huber-threshold 0.1", &["--huber-threshold", "huber"]),
        ("--weights noise", &["--weights", "--method fbp", "tv"]),
        ("--method tikhonov --non-negative", &["--non-negative", "tikhonov"]),
    ] {
        lab.fails(&format!("reconstruct {FLAGS} {flags} --output out"), 2, words);
    }
    lab.ok("phantom --kind asymmetric --size 96 --bins 50 --projections 24 --output cut");
    lab.profile_with_steps("device.toml", "");
    for profile in ["cpu", "device.toml"] {
        lab.fails(
            &format!("reconstruct --sinograms cut --size 50 --method tv --profile {profile} --output out"),
            3,
            &["cuts the sample off", "--interior", "--method fbp"],
        );
    }
}

/// A device finds the slices that the host finds, with the same bytes in a region and however many are searched together.
#[test]
fn devices_find_the_slices_of_the_host() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    // the mirror image of the scan has other angles
    lab.ok(&format!(
        "phantom --kind asymmetric --size {SIZE} --projections 24 --start-angle 11 --slices 3 --noise 0.4 --center 48.7 \
         --output sinos --truth truth.tif"
    ));
    let scan = format!("{FLAGS} --start-angle 11");
    let truth = lab.read("truth.tif");
    for method in ["tv", "huber"] {
        let common = format!("{scan} --method {method} --iterations 40");
        let host = lab.slices(&format!("{common} --profile cpu"), &format!("{method}-host"));
        let flags = format!("{common} --profile device.toml");
        let device = lab.slices(&flags, &format!("{method}-device"));
        for (a, b) in host.pages.iter().zip(&device.pages) {
            let difference = images(SIZE, SIZE, None, a, b).unwrap().nrmse;
            assert!(difference < 1e-2, "{method}: {difference:e}");
        }
        let [of_host, of_device] = [&host, &device].map(|slices| error(slices, &truth));
        assert!((of_device / of_host - 1.0).abs() < 1e-2, "{method}: {of_host} {of_device}");
        if method == "huber" {
            continue;
        }
        let one = lab.slices(&format!("{flags} --slices-per-pass 1"), &format!("{method}-one"));
        assert!(one == device);
        let region = lab.slices(&format!("{flags} --roi 10,20,30,40"), &format!("{method}-region"));
        for (slice, region) in device.pages.iter().zip(&region.pages) {
            let crop: Vec<f32> = (20..60).flat_map(|y| &slice[y * SIZE + 10..y * SIZE + 40]).copied().collect();
            assert!(*region == crop);
        }
    }
    let (plan, _) = lab.ok(&format!("reconstruct {scan} --method tv --profile device.toml --output none --dry-run"));
    let steps = plan.lines().find(|line| line.starts_with("steps run on")).unwrap();
    assert!(steps.contains("least squares on the device"), "{steps}");
    // the JSON report says the same of both
    let report = |profile: &str| {
        lab.ok(&format!(
            "reconstruct -q {scan} --rows 0..2 --method tv --profile {profile} --output {profile}-auto --report \
             {profile}.json"
        ));
        let report: serde_json::Value = serde_json::from_str(&lab.read_text(&format!("{profile}.json"))).unwrap();
        report["solver"].clone()
    };
    let [host, device] = ["cpu", "device.toml"].map(report);
    let number = |of: &serde_json::Value, key: &str| of[key][1].as_f64().unwrap();
    assert_eq!(number(&host, "sigma"), number(&device, "sigma"));
    // their grids differ, of 96 and 128 pixels, and with them their preconditioners
    assert!((number(&host, "iterations") / number(&device, "iterations") - 1.0).abs() < 0.2, "{host} {device}");
    let objective = number(&device, "objective") / number(&host, "objective");
    assert!((objective - 1.0).abs() < 1e-2, "{objective}");
}

/// Every other projection has ten times the noise.
#[test]
fn weights_help_where_exposures_are_uneven() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    let phantom =
        format!("phantom --kind asymmetric --size {SIZE} --projections 60 --slices 3 --center 48.7 --truth truth.tif");
    for (noise, name) in [(0.15, "clear"), (1.5, "faint")] {
        lab.ok(&format!("{phantom} --noise {noise} --output {name} --overwrite"));
    }
    let truth = lab.read("truth.tif");
    let (clear, faint) = (lab.read("clear"), lab.read("faint"));
    for (number, (clear, faint)) in clear.pages.iter().zip(&faint.pages).enumerate() {
        let rows = clear.chunks_exact(SIZE).zip(faint.chunks_exact(SIZE)).enumerate();
        let uneven: Vec<f32> =
            rows.flat_map(|(p, (clear, faint))| if p % 2 == 0 { clear } else { faint }).copied().collect();
        lab.page(&format!("uneven/sino_{number:04}.tif"), SIZE, &uneven);
    }
    lab.numbers("weights.txt", &(0..60).map(|p| if p % 2 == 0 { 100.0 } else { 1.0 }).collect::<Vec<_>>());
    let flags = "--sinograms uneven --center 48.7 --method tv";
    for profile in ["cpu", "device.toml"] {
        let slices = |name: &str, more: &str| {
            lab.slices(&format!("{flags} --profile {profile} {more}"), &format!("{profile}-{name}"))
        };
        let of_noise = slices("noise", "--weights noise");
        let [uniform, file] =
            [("uniform", ""), ("file", "--weights weights.txt")].map(|(name, more)| error(&slices(name, more), &truth));
        let noise = error(&of_noise, &truth);
        assert!(noise < 0.5 * uniform && file < 0.5 * uniform, "{profile}: {uniform} {noise} {file}");
        // weights are of the whole run
        for shard in ["0/2", "1/2"] {
            lab.ok(&format!(
                "reconstruct -q {flags} --profile {profile} --weights noise --shard {shard} --output {profile}-shards"
            ));
        }
        assert!(lab.read(&format!("{profile}-shards")) == of_noise);
        let resume = format!("{flags} --profile {profile} --weights noise --resume");
        let (_, err) = lab.ok(&format!("reconstruct {resume} --output {profile}-noise"));
        assert!(err.contains("3 of 3 slices are kept"), "{err}");
    }
    // of projections that are used
    let (_, err) =
        lab.ok(&format!("reconstruct {flags} --weights noise --projection-range 1..60:2 --output faint-alone"));
    assert!(err.contains("noise of projections 1."), "{err}");
    lab.numbers("few.txt", &[1.0; 59]);
    lab.fails(
        &format!("reconstruct {flags} --weights few.txt --output out"),
        3,
        &["--weights", "59 weights", "60 projections"],
    );
}

/// The iterations on a device against those of the host on the same grids, over two resolutions.
#[test]
fn iterations_on_a_device_are_those_of_the_host() {
    let (size, bins, projections) = (520, 520, 24);
    let mut scan = Geometry::half_turn(bins, projections, size);
    scan.axis.iter_mut().zip(0..).for_each(|(axis, p)| *axis += 0.3 * p as f64 - 2.0);
    // the mirror image of the scan has other angles and weights
    scan.angles.iter_mut().for_each(|angle| *angle *= 0.8);
    let weight = |p: usize| 0.5 + p as f64 / (projections - 1) as f64;
    scan.misfit_weights = Some((0..projections).map(weight).collect());
    let row = |i: usize| {
        let t = (i % bins) as f64 - 240.0;
        ((150f64.powi(2) - t * t).max(0.0).sqrt() + ((i * 7919 % 1009) as f64 / 1009.0 - 0.5) * 8.0) as f32
    };
    let sinogram: Vec<f32> = (0..projections * bins).map(row).collect();
    let request = LeastSquares {
        method: SliceMethod::Tv,
        strength: 1.0,
        iterations: Iterations::Exactly(4),
        tolerance: 0.0,
        non_negative: true,
        huber: 0.05,
        interior: false,
        weights: ProjectionWeights::File,
    };
    let filter = |length: usize| spectrum(Filter::Ramp, 1.0, length);
    let operators = ScanOperators::new(&scan, GridSides::PowersOfTwo, filter);
    let want = SliceSolver::new(&operators, request).solve(&sinogram);

    let session = Session::open(&enumerate().unwrap()[0]).unwrap();
    let profile = ProfileStore::load().unwrap().for_device(None, &session.facts).unwrap().profile;
    let form = SolverForm::new(&profile, &request, &scan, &session.facts).unwrap();
    let start = SolverStart { request, slices: 2, filter: &filter };
    let mut solver = DeviceSolver::new(&session, &scan, &form, start).unwrap();
    let mut rows = session.buffer(3 * sinogram.len(), CL_MEM_READ_WRITE, "rows").unwrap();
    session.write(&mut rows, &sinogram.repeat(3), "rows").unwrap();
    let slices = session.buffer(3 * size * size, CL_MEM_READ_WRITE, "slices").unwrap();
    let scale = RowScale::of(&sinogram, bins, scan.misfit_weights.as_deref());
    let found = solver.run(&session, &rows, &slices, &[scale; 3]).unwrap();
    let mut got = vec![0f32; 3 * size * size];
    session.read(&slices, &mut got, "slices").unwrap();
    let largest = want.slice.iter().fold(0f32, |most, value| most.max(*value));
    let error = got.iter().zip(&want.slice).fold(0f32, |most, (a, b)| most.max((a - b).abs())) / largest;
    assert!(error < 1e-3, "{error:e}");
    assert!(got.chunks_exact(size * size).all(|slice| slice == &got[..size * size]));
    for of in found {
        assert_eq!((of.iterations, of.sigma), (4, want.outcome.sigma));
        assert!((of.objective / want.outcome.objective - 1.0).abs() < 1e-3, "{of:?} {:?}", want.outcome);
        assert!((of.change / want.outcome.change - 1.0).abs() < 1e-2, "{of:?} {:?}", want.outcome);
    }
}

/// Of a sample that is wider than the detector, the same region is nearer to the truth than by filtered back projection, and is
/// a crop.
#[test]
fn a_sample_that_is_cut_off_is_extended() {
    let lab = Lab::new();
    lab.ok(
        "phantom --kind asymmetric --size 192 --bins 128 --projections 60 --slices 2 --noise 0.2 --output cut --truth truth.tif",
    );
    let flags = "--sinograms cut --size 128";
    let (fbp, tv) = (lab.slices(flags, "fbp"), lab.slices(&format!("{flags} --method tv --interior"), "tv"));
    // the middle of the truth
    let truth = lab.read("truth.tif");
    let middle = |page: &Vec<f32>| (32..160).flat_map(|y| page[y * 192 + 32..y * 192 + 160].to_vec()).collect();
    let truth = Pages { width: 128, pages: truth.pages.iter().map(middle).collect() };
    let (of_fbp, of_tv) = (error(&fbp, &truth), error(&tv, &truth));
    assert!(of_tv < 0.5 * of_fbp, "fbp {of_fbp}, tv {of_tv}");
    let region = lab.slices(&format!("{flags} --method tv --interior --roi 10,20,30,40"), "region");
    for (slice, region) in tv.pages.iter().zip(&region.pages) {
        let crop: Vec<f32> = (20..60).flat_map(|y| &slice[y * 128 + 10..y * 128 + 40]).copied().collect();
        assert!(*region == crop);
    }
    let (_, err) = lab.ok(&format!("reconstruct {flags} --method tv --interior --overwrite --output tv"));
    assert!(err.contains("values in slices have an offset"), "{err}");
    lab.fails(&format!("reconstruct {flags} --interior --output out"), 2, &["--interior", "--method fbp"]);
}

//! `--method`: complete runs; the solver itself is tested in src/least_squares/.

use crate::support::cli::{Lab, Pages};
use fbp::compare::images;
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
        ("--method tikhonov --non-negative", &["--non-negative", "tikhonov"]),
    ] {
        lab.fails(&format!("reconstruct {FLAGS} {flags} --output out"), 2, words);
    }
    lab.ok("phantom --kind asymmetric --size 96 --bins 50 --projections 24 --output cut");
    lab.fails(
        "reconstruct --sinograms cut --size 50 --method tv --output out",
        3,
        &["cuts the sample off", "--interior", "--method fbp"],
    );
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

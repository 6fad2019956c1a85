//! `fbp preprocess`: what comes out as files, and what is refused.

use crate::support::cli::{self, Lab, Pages, Scan};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn rms(a: &Pages, b: &Pages) -> f64 {
    let pairs = || a.pages.iter().flatten().zip(b.pages.iter().flatten());
    (pairs().map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / pairs().count() as f64).sqrt()
}

#[test]
fn stripes_leave_sinograms() {
    let lab = Lab::new();
    let clean = Scan { width: 96, projections: 90, slices: 3, overall: 180.0 }.sinograms();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut striped = clean.clone();
    for page in &mut striped.pages {
        for bin in (5..96).step_by(9) {
            let offset = rng.random_range(5.0..9.0) * if bin % 2 == 0 { 1.0 } else { -1.0 };
            page.iter_mut().skip(bin).step_by(96).for_each(|value| *value += offset);
        }
    }
    lab.write("s", "s", &striped);
    let (out, _) = lab.ok("preprocess --sinograms s --stripes sorting:size=7 --output sorted");
    assert!(out.starts_with("3 sinograms of 96x90, "), "{out}");
    assert!(rms(&lab.read("sorted"), &clean) < 0.5 * rms(&striped, &clean));

    // several methods are one after the other, however they are written
    lab.ok("preprocess --sinograms s --stripes mean:sigma=4,blocks=2,titarenko --output one");
    lab.ok("preprocess --sinograms s --stripes mean:sigma=4,blocks=2 --stripes titarenko --output two");
    assert_eq!(lab.read("one"), lab.read("two"));
}

#[test]
fn zingers_leave_projections() {
    let lab = Lab::new();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut frame = |beam: f32| -> Vec<f32> { (0..40 * 24).map(|_| beam + rng.random_range(-3.0..3.0)).collect() };
    let (mut projections, flat) = (vec![frame(500.0), frame(500.0)], frame(1000.0));
    projections[0][40 * 7 + 9] = 65535.0;
    lab.write("p", "p", &Pages { width: 40, pages: projections });
    lab.write("f", "f", &Pages { width: 40, pages: vec![flat] });
    let (out, _) = lab.ok("preprocess --projections p --flats f --remove-outliers 3,100 --output clean");
    assert!(out.contains(" 1 outliers replaced"), "{out}");
    assert_eq!(lab.files("clean"), ["projection_00000.tif", "projection_00001.tif"]);
    assert!(lab.read("clean").pages.iter().flatten().all(|v| (v - std::f32::consts::LN_2).abs() < 0.02));
}

/// The formats of slices hold pages, too; what a run that was killed left is replaced on demand only.
#[test]
fn pages_in_one_array() {
    let lab = Lab::small();
    lab.ok("preprocess --projections proj --output p");
    let mut outputs = vec!["p.tif", "p.zarr"];
    if cfg!(feature = "hdf5") {
        outputs.push("p.h5");
    }
    for output in outputs {
        lab.ok(&format!("preprocess --projections proj --output {output}"));
        assert_eq!(lab.read(output), lab.read("p"), "{output}");
        if output != "p.tif" {
            std::fs::rename(lab.path(output), lab.path(format!(".{output}.unfinished"))).unwrap();
            let run = format!("preprocess --projections proj --output {output}");
            let err = lab.fails(&run, 5, &[output, "stopped", "--overwrite"]);
            assert!(!err.contains("--resume"), "{err}");
            lab.ok(&format!("{run} --overwrite"));
            assert_eq!(lab.read(output), lab.read("p"), "{output}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lab = Lab::small();
    for (flags, code, words) in [
        ("--sinograms sin --stripes rings", 2, "--stripes: `rings`"),
        ("--sinograms sin --remove-outliers 3,10", 2, "--remove-outliers"),
        ("--sinograms sin --unsharp 1,2", 2, "--phase"),
        ("--sinograms sin --minus-log --normalize-air 20,20", 2, "--normalize-air: 20 and 20 bins do not fit"),
        ("--projections proj --stripes sorting", 2, "--stripes and --projections: stripes are removed from sinograms"),
        ("--projections proj --phase paganin", 2, "--energy-kev, --distance, --delta-beta, --pixel-size"),
        ("--projections proj --phase paganin --distance 5mm --pixel-size 1um", 2, "--energy-kev, --delta-beta"),
        ("--sinograms nothing", 3, "nothing"),
    ] {
        lab.fails(&format!("preprocess {flags} --output out"), code, &[words]);
    }
    lab.ok("preprocess --sinograms sin --output there");
    lab.fails("preprocess --sinograms sin --output there", 5, &["--overwrite"]);
}

/// A beam that changes while the scan goes on: flats before and after it, or air beside the sample, take most of that out.
#[test]
fn beams_that_drift() {
    let lab = Lab::new();
    let scan = Scan { width: 96, projections: 120, slices: 2, overall: 180.0 };
    let lines = scan.sinograms();
    let most = lines.pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    let lines = lines.map(|line| 2.0 * line / most).transposed();
    // its brightness falls by a quarter, and its slope across the detector turns round
    let beam = |share: f32, bin: usize| {
        3000.0 * (1.0 - 0.25 * share) * (1.0 + 0.3 * (0.5 - share) * (bin as f32 / 95.0 - 0.5))
    };
    let frame = |share: f32| Pages { width: 96, pages: vec![(0..96 * 2).map(|i| beam(share, i % 96)).collect()] };
    let counts = |drifts: bool| {
        let page = |(p, page): (usize, &Vec<f32>)| {
            let share = if drifts { p as f32 / 119.0 } else { 0.0 };
            page.iter().enumerate().map(|(i, line)| beam(share, i % 96) * (-line).exp()).collect()
        };
        Pages { width: 96, pages: lines.pages.iter().enumerate().map(page).collect() }
    };
    lab.write("still", "p", &counts(false));
    lab.write("drift", "p", &counts(true));
    lab.write("before", "f", &frame(0.0));
    lab.write("after", "f", &frame(1.0));
    let clean = lab.slices("--projections still --flats before", "clean");
    let left = rms(&lab.slices("--projections drift --flats before", "left"), &clean);
    let both = rms(&lab.slices("--projections drift --flats before --flats2 after", "both"), &clean);
    let air = rms(&lab.slices("--projections drift --flats before --normalize-air 3,3", "air"), &clean);
    let harm = rms(&lab.slices("--projections still --flats before --normalize-air 3,3", "harm"), &clean);
    let signal = rms(&clean, &clean.map(|_| 0.0));
    println!("left {left:.2e}, flats {both:.2e}, air {air:.2e}, harm {harm:.2e} of {signal:.2e}");
    assert!(both < 0.1 * left && air < 0.2 * left && harm < 0.01 * signal);
}

/// What `fbp preprocess` writes is what `fbp reconstruct` works on.
#[test]
fn a_reconstruction_takes_the_same_steps() {
    let lab = Lab::new();
    let scan = Scan { width: 48, projections: 40, slices: 5, overall: 180.0 };
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut striped = scan.sinograms();
    for page in &mut striped.pages {
        page.iter_mut().skip(11).step_by(48).for_each(|value| *value += 3.0);
    }
    lab.write("s", "s", &striped);
    lab.ok("preprocess --sinograms s --stripes sorting:size=7 --output s-clean");
    let clean = lab.slices("--sinograms s-clean", "r1");
    assert_eq!(lab.slices("--sinograms s --stripes sorting:size=7", "r2"), clean);
    assert_ne!(lab.slices("--sinograms s", "r3"), clean);

    // counts behind a flat field with zingers
    let most = striped.pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    let counts = scan.sinograms().transposed().map(|line| 1000.0 * (-line / most).exp());
    let mut zingers = counts.clone();
    zingers.pages.iter_mut().for_each(|page| page[rng.random_range(50..150)] = 6e4);
    lab.write("p", "p", &zingers);
    lab.write("f", "f", &Pages { width: 48, pages: vec![vec![1000.0; 48 * 5]] });
    let steps = "--flats f --remove-outliers 3,500 --normalize-air 4,4";
    lab.ok(&format!("preprocess --projections p {steps} --output p-clean"));
    let clean = lab.slices("--projections p-clean", "r4");
    assert_eq!(lab.slices(&format!("--projections p {steps}"), "r5"), clean);
    let (_, err) = lab.ok(&format!("reconstruct --projections p {steps} --output r6 --report r.json"));
    assert!(err.contains("40 outliers were replaced"), "{err}");
    assert!(lab.read_text("r.json").contains("\"outliers\": 40"));
}

/// Doubts about pages are those of slices; with `--strict` they are errors, before the first page where they can be known.
#[test]
fn doubts_about_pages_are_those_of_slices() {
    let lab = Lab::new();
    let scan = Scan { width: 64, projections: 30, slices: 5, overall: 180.0 };
    let lines = scan.sinograms().transposed();
    let most = lines.pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    let mut counts = lines.map(|line| 10_000.0 * (-2.0 * line / most).exp());
    let flat = |level: f32| vec![level; 64 * 5];
    lab.write("f", "f", &Pages { width: 64, pages: vec![flat(10_000.0)] });
    lab.write(
        "odd",
        "f",
        &Pages { width: 64, pages: vec![flat(10_000.0), flat(10_010.0), flat(10_005.0), flat(600.0)] },
    );
    lab.write("clean", "p", &counts);
    for page in &mut counts.pages[11..14] {
        page.fill(0.4);
    }
    lab.write("lost", "p", &counts);
    lab.write("lost-sinograms", "s", &counts.map(|count| count / 10_000.0).transposed());
    let run = |command: &str| lab.ok(command).1;
    assert!(!run("preprocess --projections clean --flats f --strict --output clean-lines").contains("warning"));

    // known before the first page
    let odd = "preprocess --projections clean --flats odd --output out";
    let err = lab.fails(&format!("{odd} --strict"), 3, &["--strict", "odd-field", "frame 3"]);
    assert!(err.contains("warning: "), "{err}");
    assert!(!lab.path("out").exists());

    // known at the end, on host and device
    let lost = "11..=13; leave them out with --exclude 11..=13";
    for place in ["host", "device"] {
        if place == "device" {
            lab.directory("no-configuration/fbp/profiles");
            lab.profile_with_steps("no-configuration/fbp/profiles/steps.toml", "");
        }
        for (input, pages, count) in [
            ("--projections lost --flats f", "projections", 30),
            ("--sinograms lost-sinograms --minus-log", "sinograms", 5),
        ] {
            let output = format!("{pages}-{place}");
            let err = run(&format!("preprocess {input} --output {output}"));
            let words = format!("3 projections have no beam, or rows without any light: {lost} of fbp reconstruct");
            assert!(err.contains(&words), "{input} {place}: {err}");
            let strict = lab.run(&format!("preprocess {input} --strict --output {output} --overwrite"));
            let err = cli::text(&strict.stderr);
            assert_eq!(strict.status.code(), Some(3), "{err}");
            assert!(err.contains("--strict: the warnings above") && err.contains("unlit"), "{err}");
            assert_eq!(lab.files(&output).len(), count);
        }
    }
    let err = run("reconstruct --projections lost --flats f --output r");
    assert!(err.contains(&format!("rows without any light: {lost}")), "{err}");
}

/// Bins that fail, and rows that lose many values, get a warning with the flags that mend them.
#[test]
fn replaced_values_name_the_flags_that_help() {
    let lab = Lab::new();
    let scan = Scan { width: 64, projections: 90, slices: 5, overall: 180.0 };
    let lines = scan.sinograms().transposed();
    let most = lines.pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    let counts = lines.map(|line| 10_000.0 * (-2.0 * line / most).exp());
    lab.write("clean", "p", &counts);
    lab.write("f", "f", &Pages { width: 64, pages: vec![vec![10_000.0; 64 * 5]] });
    let clean = lab.slices("--projections clean --flats f", "r-clean");
    let run = |data: &str, flags: &str, output: &str| {
        let (_, err) = lab.ok(&format!("reconstruct --projections {data} --flats f {flags} --output {output}"));
        (err, rms(&lab.read(output), &clean))
    };
    let (err, _) = run("clean", "", "r0");
    assert!(!err.contains("replaced"), "{err}");

    // two bins of row 3 see nothing in 80 of 90 projections: 0.6 % of the run's values, 2.8 % of the row's
    let mut dead = counts.clone();
    for page in &mut dead.pages[10..] {
        for bin in [20, 41] {
            page[3 * 64 + bin] = 0.0;
        }
    }
    lab.write("dead", "p", &dead);
    let (err, spoilt) = run("dead", "--report r.json", "r1");
    for words in [
        "160 values of 28800 were replaced",
        "more than 1 % of the values of 1 row were replaced, the first is row 3",
        "2 detector bins are replaced in most projections, the first is bin 20 of row 3",
        "--stripes dead",
        "--remove-outliers SIZE,THRESHOLD,both",
    ] {
        assert!(err.contains(words), "no `{words}` in {err}");
    }
    let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    assert_eq!((&report["replaced_rows"], &report["replaced_bins"]), (&serde_json::json!([3]), &serde_json::json!(2)));
    let (err, mended) = run("dead", "--stripes dead", "r2");
    assert!(!err.contains("artefacts"), "{err}");
    let (err, filled) = run("dead", "--remove-outliers 3,500,both", "r3");
    assert!(!err.contains("values were replaced"), "{err}");
    println!("dead bins: {spoilt:.2e}, interpolated {mended:.2e}, medians {filled:.2e}");
    assert!(mended < 0.3 * spoilt && filled < 0.3 * spoilt);

    // one bin in few projections: counted, and that is all
    let mut few = counts.clone();
    few.pages[7][2 * 64 + 30] = 0.0;
    lab.write("few", "p", &few);
    let (err, _) = run("few", "", "r4");
    assert!(err.contains("1 values of 28800 were replaced") && !err.contains("artefacts"), "{err}");

    // sinograms have no pixels beside them
    let mut sinogram = scan.sinograms().map(|line| (-2.0 * line / most).exp());
    sinogram.pages[1].iter_mut().skip(9).step_by(64).for_each(|value| *value = f32::NAN);
    lab.write("s", "s", &sinogram);
    let (_, err) = lab.ok("reconstruct --sinograms s --minus-log --output r5");
    assert!(err.contains("bin 9 of row 1") && err.contains("--stripes dead"), "{err}");
    assert!(!err.contains("--remove-outliers"), "{err}");
}

/// Percentiles and pictures read rows beside the run; what is replaced in these counts once all the same.
#[test]
fn rows_that_are_read_beside_the_run_count_once() {
    let lab = Lab::new();
    let scan = Scan { width: 48, projections: 40, slices: 5, overall: 180.0 };
    let mut dead = scan.sinograms().transposed().map(|line| (-0.01 * line).exp());
    dead.pages.iter_mut().take(7).for_each(|page| page[2 * 48 + 20] = 0.0);
    lab.write("p", "p", &dead);
    for steps in ["", "--tilt 0.5"] {
        let clamped = |read_before: &str| {
            lab.ok(&format!(
                "reconstruct --projections p --minus-log {steps} {read_before} --output r --overwrite --report r.json"
            ));
            let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
            report["clamped"].as_u64().unwrap()
        };
        let alone = clamped("");
        assert!(alone > 0, "{steps}");
        assert_eq!([clamped("--dtype u8"), clamped("--preview p.png")], [alone; 2], "{steps}");
    }
}

/// Fields with where they are from, -log, and the steps in their order.
#[test]
fn the_dry_run_lists_fields_and_steps() {
    let lab = Lab::new();
    let page = |level: f32, count: usize| Pages { width: 32, pages: vec![vec![level; 32 * 6]; count] };
    for (directory, level, count) in [("p", 500.0, 8), ("f", 1000.0, 3), ("f2", 990.0, 1), ("d", 10.0, 2)] {
        lab.write(directory, "p", &page(level, count));
    }
    let plan = |flags: &str, lines: &[&str]| {
        let (out, _) = lab.ok(&format!("reconstruct {flags} --dry-run"));
        for line in lines {
            assert!(out.lines().any(|l| l == *line), "no `{line}` in\n{out}");
        }
        out
    };
    plan(
        "--projections p --flats f --flats2 f2 --darks d --dark-scale 0.5 --stripes dead --normalize-air 4,4 --tilt 1 \
         --remove-outliers 3,500 --binning 2",
        &[
            "flats           mean of 3 frames, --flats f",
            "flats after     1 frame, --flats2 f2",
            "darks           mean of 2 frames, --darks d",
            "-log            on",
            "steps           binning 2; remove-outliers 3,500; flat and dark fields (darks times 0.5); normalize-air 4,4; \
             tilt 1; -log; stripes dead:snr=3,size=51",
        ],
    );
    let flags = "--projections p --flats f --field-mode median --no-minus-log";
    let lines = [
        "flats           median of 3 frames, --flats f",
        "darks           none, the dark level is 0",
        "-log            off",
        "steps           flat and dark fields",
    ];
    plan(flags, &lines);
    let out = plan("--sinograms p", &["flats           none", "-log            off", "steps           none"]);
    assert!(!out.contains("darks"), "{out}");
    plan("--sinograms p --minus-log", &["-log            on", "steps           -log"]);
}

/// How much `fbp center` prints follows `--quiet` and `--verbose`.
#[test]
fn center_says_more_or_less() {
    let lab = Lab::new();
    lab.write("s", "s", &Scan { width: 64, projections: 90, slices: 6, overall: 180.0 }.sinograms());
    lab.text("s/notes.txt", "no TIFF");
    let (table, usual) = lab.ok("center --sinograms s");
    assert!(usual.contains("note: ignored 1 file") && !usual.contains("steps"), "{usual}");
    let (quiet, nothing) = lab.ok("center --sinograms s -q");
    assert_eq!((&quiet, nothing.as_str()), (&table, ""));
    let (verbose, more) = lab.ok("center --sinograms s -v");
    assert!(verbose == table && more.contains("-log            off\nsteps           none\n"), "{more}");
    lab.fails("center --sinograms s -v -q", 2, &["--verbose", "--quiet"]);
}

/// What methods against stripes need is a part of the run's memory: a sinogram or more for every thread.
#[test]
fn stripes_count_as_memory() {
    let lab = Lab::new();
    lab.write("s", "s", &Scan { width: 64, projections: 64, slices: 2, overall: 180.0 }.sinograms());
    let plan = |flags: &str| {
        let mut command = lab.command(&format!("reconstruct --sinograms s --dry-run {flags}"));
        let output = command.env("RAYON_NUM_THREADS", "3").output().unwrap();
        (output.status.code(), cli::text(&output.stdout), cli::text(&output.stderr))
    };
    let (_, plain, _) = plan("--memory 400K");
    assert!(!plain.contains("steps before"), "{plain}");
    // 8 bytes a value, for each of the two slices
    let (_, sorting, _) = plan("--memory 400K --stripes sorting");
    assert!(sorting.contains("steps before          64.0 KiB"), "{sorting}");
    let (code, _, err) = plan("--stripes sorting --memory 60K");
    assert!(code == Some(2) && err.contains("--memory: 60.0 KiB") && err.contains("--stripes"), "{err}");
}

/// A filter across rows sees the same rows whatever a run is cut into.
#[test]
fn the_phase_filter_does_not_depend_on_chunks() {
    let lab = Lab::new();
    let scan = Scan { width: 40, projections: 24, slices: 45, overall: 180.0 };
    let most = scan.sinograms().pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    lab.write("p", "p", &scan.sinograms().transposed().map(|line| (-line / most).exp()));
    let args =
        "--projections p --minus-log --phase paganin --energy-kev 20 --distance 50mm --pixel-size 1um --delta-beta 100";
    let full = lab.slices(args, "whole");
    let chunks = lab.slices(&format!("{args} --device-memory 300K"), "chunks");
    assert!(chunks == full, "chunks");
    // 45 rows of 24 projections of 40 bins are filtered together
    let little = lab.slices(&format!("{args} --memory 700K"), "little");
    assert!(little == full, "memory");
    let (plan, _) = lab.ok(&format!("reconstruct {args} --memory 700K --dry-run"));
    assert!(plan.contains("steps before          168.8 KiB"), "{plan}");
    lab.fails(&format!("reconstruct {args} --memory 60K --output out"), 2, &["--memory: 60.0 KiB", "--phase"]);
    let part = lab.slices(&format!("{args} --rows 14..19"), "part");
    assert!(part.pages == full.pages[14..19], "rows");
    // and is close to the filter of whole projections
    lab.ok(&format!("preprocess {args} --output filtered"));
    let filtered = lab.slices("--projections filtered --pixel-size 1um", "r");
    let plain = lab.slices("--projections p --minus-log --pixel-size 1um", "plain");
    assert!(rms(&filtered, &full) < 1e-3 * rms(&plain, &full));
}

/// A lab whose devices do all steps, with counts of a sample behind flats and darks: `pr`, `fl`, `da`.
fn with_device_steps(projections: usize) -> Lab {
    let lab = Lab::new();
    lab.directory("no-configuration/fbp/profiles");
    lab.profile_with_steps("no-configuration/fbp/profiles/steps.toml", "");
    lab.ok(&format!(
        "phantom --size 40 --projections {projections} --slices 9 --as projections --photons 900 --scale 0.05 --flats fl \
         --darks da --output pr"
    ));
    lab
}

const COUNTS: &str = "--projections pr --flats fl --darks da";
const PHASE: &str = "--phase paganin --energy-kev 20 --distance 5mm --delta-beta 100 --pixel-size 1um";

/// A device corrects projections as the host does, whatever batches it takes, and counts the same.
#[test]
fn projections_on_a_device() {
    let lab = with_device_steps(31);
    lab.text("lens.txt", "xcenter = 20\nycenter = 5\nfactor0 = 0.98\nfactor1 = -1e-3\n");
    let steps = [
        ("", 2e-6),
        ("--binning 2 --no-minus-log", 2e-6),
        ("--remove-outliers 3,150,both --normalize-air 3,3", 2e-6),
        ("--remove-outliers 3,150 --tilt 1", 2e-5),
        ("--distortion lens.txt --tilt 1", 2e-5),
        (PHASE, 4e-5),
        (&format!("--tilt 0.6 --unsharp 1.5,2 {PHASE}"), 2e-4),
    ];
    for (number, (steps, margin)) in steps.into_iter().enumerate() {
        let run = |more: &str, output: &str| {
            let output = format!("{output}-{number}");
            let (told, notes) = lab.ok(&format!("preprocess {COUNTS} {steps} {more} --output {output}"));
            assert!(!notes.contains("the host"), "{notes}");
            let (start, replaced) = told.split_once(';').unwrap();
            (start.to_owned(), replaced.to_owned(), lab.read(output.as_str()))
        };
        let (told, replaced, device) = run("", "device");
        assert!(told.starts_with("31 projections of ") && told.contains("ms each with "), "{told}");
        // memory for two projections at a time
        let (_, replaced_little, little) = run("--memory 40K", "little");
        assert_eq!((&replaced_little, &little), (&replaced, &device), "{steps}");
        std::fs::rename(lab.path("no-configuration"), lab.path("away")).unwrap();
        let (told, replaced_by_host, host) = run("", "host");
        std::fs::rename(lab.path("away"), lab.path("no-configuration")).unwrap();
        assert!(told.ends_with(" on one thread"), "{told}");
        assert_eq!(replaced_by_host, replaced, "{steps}");
        let most = host.pages.iter().flatten().fold(0f32, |most, value| most.max(value.abs()));
        let error = rms(&device, &host) / f64::from(most);
        println!("`{steps}`: {error:.1e}");
        assert!(error < margin, "{steps}: {error:.1e}");
    }
}

/// The same of sinograms and their stripes.
#[test]
fn sinograms_on_a_device() {
    let lab = with_device_steps(3);
    lab.ok("phantom --size 50 --projections 44 --slices 7 --noise 0.02 --output sin");
    for (number, steps) in ["--stripes sorting:size=5,titarenko", "--minus-log --normalize-air 4,4"].iter().enumerate()
    {
        let run = |more: &str, output: &str| {
            let output = format!("{output}-{number}");
            let (told, _) = lab.ok(&format!("preprocess --sinograms sin {steps} {more} --output {output}"));
            assert!(told.starts_with("7 sinograms of 50x44, "), "{told}");
            (told.split_once(';').unwrap().1.to_owned(), told.contains("with "), lab.read(output.as_str()))
        };
        let (replaced, on_device, device) = run("", "device");
        assert!(on_device);
        assert_eq!(run("--memory 120K", "little"), (replaced.clone(), true, device.clone()), "{steps}");
        std::fs::rename(lab.path("no-configuration"), lab.path("away")).unwrap();
        let (replaced_by_host, on_device, host) = run("", "host");
        std::fs::rename(lab.path("away"), lab.path("no-configuration")).unwrap();
        assert!(!on_device && replaced_by_host == replaced, "{steps}");
        let most = host.pages.iter().flatten().fold(0f32, |most, value| most.max(value.abs()));
        assert!(rms(&device, &host) < 2e-6 * f64::from(most), "{steps}");
    }
}

/// Where a step is wrong on a device, or its memory holds no page, the host does all, and says so.
#[test]
fn the_host_does_what_a_device_cannot() {
    let lab = with_device_steps(6);
    let run = |fault: &str, output: &str| {
        let command = format!("preprocess {COUNTS} --tilt 1 --output {output}");
        let done = lab.command(&command).env("FBP_TEST_FAULT", fault).output().unwrap();
        assert!(done.status.success(), "{fault}");
        let told = String::from_utf8(done.stderr).unwrap();
        assert_eq!(String::from_utf8(done.stdout).unwrap().contains("on one thread"), !fault.is_empty(), "{told}");
        told
    };
    assert_eq!(run("", "device"), "");
    let told = run("rotate", "wrong");
    assert!(told.contains("tilt 1: wrong on this device") && told.contains("the host does all steps"), "{told}");
    let told = run("allocation=2000", "small");
    assert!(told.contains("the host does all steps"), "{told}");
    assert_eq!(lab.read("small"), lab.read("wrong"));
    lab.fails(&format!("preprocess {COUNTS} --device 7:3 --output no"), 4, &["no device matches 7:3"]);
}

/// The rows of a search are corrected by a device where that is worth it, and lead to the same axis.
#[test]
fn the_axis_of_rows_that_a_device_corrects() {
    let lab = Lab::new();
    lab.directory("no-configuration/fbp/profiles");
    lab.profile_with_steps("no-configuration/fbp/profiles/steps.toml", "");
    let scan = Scan { width: 96, projections: 121, slices: 20, overall: 180.0 };
    let most = scan.sinograms().pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    lab.write("p", "p", &scan.sinograms().transposed().map(|line| (-2.0 * line / most).exp()));
    let input = format!("--projections p --minus-log {PHASE} --tilt 0.3");
    let axis = |more: &str| {
        let (out, told) = lab.ok(&format!("center {input} --method vo --json {more}"));
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        (report["center"]["value"].as_f64().unwrap(), told)
    };
    let (device, told) = axis("-v");
    assert!(told.contains(" corrects the rows of the search"), "{told}");
    std::fs::rename(lab.path("no-configuration"), lab.path("away")).unwrap();
    let (host, told) = axis("-v");
    std::fs::rename(lab.path("away"), lab.path("no-configuration")).unwrap();
    assert!(!told.contains("corrects the rows"), "{told}");
    assert!((device - host).abs() < 1e-3 && device != host, "{device} and {host}");
    let (_, told) = lab.ok(&format!("reconstruct {input} --center auto:vo --output r -v"));
    assert!(told.contains(" corrects the rows of the search"), "{told}");
    assert!(told.contains(&format!("centre {device:.2} bins")), "{told}");
}

/// A profile may leave the transforms of images to clFFT.
#[test]
fn images_through_the_library_of_a_profile() {
    let lab = Lab::new();
    lab.profile_with_steps("own.toml", "");
    let text = lab.read_text("own.toml").replace("[fft]\n", "[fft]\nimages = \"transform\"\n");
    lab.text("library.toml", &text);
    lab.ok("phantom --size 40 --projections 21 --slices 30 --as projections --photons 900 --scale 0.05 --flats fl \
            --darks da --output pr");
    let run = |profile: &str, more: &str| {
        let output = format!("{profile}{}", more.len());
        let args = format!("{COUNTS} {PHASE} --tilt 0.5 --profile {profile}.toml {more}");
        let (_, told) = lab.ok(&format!("reconstruct {args} --output {output} -v"));
        assert!(told.contains("steps on the device: right") || !more.is_empty(), "{told}");
        lab.read(output.as_str())
    };
    let (own, library) = (run("own", ""), run("library", ""));
    let most = own.pages.iter().flatten().fold(0f32, |most, value| most.max(value.abs()));
    assert!(own != library && rms(&own, &library) < 1e-5 * f64::from(most));
    assert_eq!(run("library", "--device-memory 5M"), library);
}

/// Pages that cannot be written stop the device's part, too, whether one is or all are.
#[test]
fn pages_that_cannot_be_written() {
    let lab = with_device_steps(31);
    for (output, pages) in [("one", 3..4), ("all", 0..31)] {
        // a directory in place of a file
        pages.for_each(|page| lab.directory(&format!("{output}/projection_{page:05}.tif/in-the-way")));
        let run = format!("preprocess {COUNTS} --memory 40K --overwrite --output {output}");
        lab.fails(&run, 5, &[&format!("{output}/projection_")]);
    }
}

/// `--rows` writes some rows of projections, or some sinograms, with the values that all have; other rows count nothing.
#[test]
fn some_rows_are_those_of_all() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    lab.ok("phantom --size 40 --projections 12 --slices 9 --as projections --photons 900 --scale 0.03 \
            --flats fl --darks da --output pr");
    let mut projections = lab.read("pr");
    // one without light, beyond the wanted rows
    projections.pages[3][40 * 8 + 7] = 0.0;
    lab.write("counts", "p", &projections);
    let fields = "preprocess --projections counts --flats fl --darks da";
    for (number, steps) in
        ["", "--remove-outliers 3,90,both", "--tilt 1.5", "--remove-outliers 5,90 --tilt -2"].iter().enumerate()
    {
        lab.ok(&format!("{fields} {steps} --output all-{number}"));
        let all = lab.read(&format!("all-{number}"));
        for (range, rows) in [("2..5", vec![2, 3, 4]), ("0..=6:3", vec![0, 3, 6]), ("8", vec![8])] {
            let output = format!("some-{number}-{}", rows[0]);
            let (out, _) = lab.ok(&format!("{fields} {steps} --rows {range} --output {output}"));
            assert!(out.starts_with(&format!("12 projections of 40x{}, ", rows.len())), "{out}");
            let cut = |page: &Vec<f32>| rows.iter().flat_map(|row| page[row * 40..(row + 1) * 40].to_vec()).collect();
            let expected: Vec<Vec<f32>> = all.pages.iter().map(cut).collect();
            assert_eq!(lab.read(&output).pages, expected, "{steps} {range}");
            if steps.is_empty() {
                assert_eq!(out.contains("; 1 values"), rows == [8], "{range}: {out}");
            }
        }
    }
    let sinograms = projections.transposed();
    lab.write("sin", "s", &sinograms);
    lab.ok("preprocess --sinograms sin --stripes mean --output all");
    lab.ok("preprocess --sinograms sin --stripes mean --rows 1..8:3 --output some");
    assert_eq!(lab.files("some"), ["sinogram_00001.tif", "sinogram_00004.tif", "sinogram_00007.tif"]);
    let (all, some) = (lab.read("all"), lab.read("some"));
    assert_eq!(some.pages, [1, 4, 7].map(|page| all.pages[page].clone()));
    lab.fails("preprocess --sinograms sin --rows 3..10 --output out", 2, &["--rows: 3..10 goes past the 9 sinograms"]);
    lab.fails(&format!("{fields} --rows 9 --output out"), 2, &["--rows: 9..10 goes past the 9 rows"]);
}

//! The axis that `--center auto` finds is the one that `fbp center` finds, and the one that slices have.

use crate::support::cli::{Lab, Scan as Whole};

#[test]
fn the_command_and_reconstruct_agree() {
    let lab = Lab::new();
    let scan = Whole { width: 64, projections: 90, slices: 6, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    let (table, _) = lab.ok("center --sinograms sin");
    assert!(table.contains("likelihood") && table.contains("registration") && table.contains(" ok\n"), "{table}");
    let (out, _) = lab.ok("center --sinograms sin --method vo --search 20,40 --rows 1..5 --json");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["rows"], serde_json::json!([1, 2, 3, 4]));
    assert!((report["center"]["value"].as_f64().unwrap() - 31.5).abs() < 0.1, "{report}");

    let (_, notes) = lab.ok("reco --sinograms sin --center auto --report r.json --output all");
    assert!(notes.contains(" bins +- 0.0") && notes.contains("found by likelihood"), "{notes}");
    let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    let found = &report["center"];
    assert!(
        found["method"] == "likelihood"
            && found["mass"].as_f64().unwrap() > 0.95
            && found["uncertainty"].as_f64().unwrap() < 0.1,
        "{report}"
    );
    let value = found["value"].as_f64().unwrap();
    assert!((value - 31.5).abs() < 0.1);
    // found is as good as given, and the same for all shards
    lab.ok(&format!("reco --sinograms sin --center {value} --output given"));
    assert_eq!(lab.read("all"), lab.read("given"));
    for shard in 0..3 {
        lab.ok(&format!("reco --sinograms sin --center auto --shard {shard}/3 --output shards"));
    }
    assert_eq!(lab.read("all"), lab.read("shards"));
    lab.fails(
        "reco --sinograms sin --center auto:guess --output no",
        2,
        &["likelihood, registration, vo, overlap, sweep"],
    );
}

#[test]
fn trial_slices_are_named_by_their_axis() {
    let lab = Lab::new();
    let scan = Whole { width: 48, projections: 72, slices: 3, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    lab.ok("center --sinograms sin --sweep 22.5..24.5:0.5 --output trials");
    let mut names: Vec<String> = std::fs::read_dir(lab.path("trials"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["center_22.50.tif", "center_23.00.tif", "center_23.50.tif", "center_24.00.tif", "center_24.50.tif"];
    assert_eq!(names[..5], expected);
    assert_eq!(names[5..], ["montage.png"]);
    // the slice about the true axis is the sample
    let truth = &scan.truth().pages[1];
    let error = |name: &str| {
        let slice = &lab.read(format!("trials/{name}").as_str()).pages[0];
        slice.iter().zip(truth).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>()
    };
    for other in [expected[0], expected[1], expected[3], expected[4]] {
        assert!(error(expected[2]) < error(other), "{other}");
    }
    // and it is the slice of a run, bit for bit
    lab.ok("reco --sinograms sin --center 23 --rows 1..2 --output slices");
    assert_eq!(lab.read("trials/center_23.00.tif"), lab.read("slices"));
    lab.fails("center --sinograms sin --sweep 22..24:1 --output trials", 5, &["--overwrite"]);
    lab.fails("center --sinograms sin --sweep 40..50:1 --output other", 2, &["outside the detector"]);
    lab.fails("center --sinograms sin --sweep 22:24:1 --output other", 2, &["--sweep"]);
    assert!(!lab.path("other").exists());
}

/// Trial slices are those of a run bit for bit where the device does the steps, too.
#[test]
fn trial_slices_take_the_steps_of_a_run() {
    let lab = Lab::new();
    lab.directory("no-configuration/fbp/profiles");
    lab.profile_with_steps("no-configuration/fbp/profiles/steps.toml", "");
    lab.ok("phantom --size 40 --projections 30 --slices 9 --as projections --photons 900 --scale 0.05 \
            --flats fl --darks da --output pr");
    for (number, steps) in
        ["--remove-outliers 3,200 --stripes sorting,titarenko", "--tilt 1 --normalize-air 3,3"].iter().enumerate()
    {
        let input = format!("--projections pr --flats fl --darks da {steps}");
        lab.ok(&format!("center {input} --sweep 19..20:0.5 --output trials-{number}"));
        let (_, told) = lab.ok(&format!("reco {input} --center 19.5 --rows 4..5 --output slices-{number} -v"));
        assert!(told.contains("profile steps"), "{told}");
        assert_eq!(lab.read(&format!("trials-{number}/center_19.50.tif")), lab.read(&format!("slices-{number}")));
    }
}

/// A run that searches takes the same axis beside shifts as one that is told, whatever their mean is.
#[test]
fn a_run_with_shifts_finds_its_axis() {
    let lab = Lab::new();
    let scan = Whole { width: 64, projections: 90, slices: 3, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    lab.numbers("shifts.txt", &[-70.0; 90]);
    let args = "--sinograms sin --center-shifts shifts.txt";
    let found = lab.slices(&format!("{args} --center auto --report r.json"), "found");
    let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    let value = report["center"]["value"].as_f64().unwrap();
    assert!((value - 101.5).abs() < 0.1, "{value}");
    assert_eq!(found, lab.slices(&format!("{args} --center {value}"), "given"));
    let (unshifted, middle) =
        (lab.slices("--sinograms sin", "plain"), lab.slices(&format!("{args} --center 101.5"), "middle"));
    assert_eq!(unshifted, middle);
    lab.ok("center --sinograms sin --center-shifts shifts.txt --sweep 101..102:0.5 --output trials");
    lab.fails(
        &format!("reconstruct {args} --center 31.5 --output out"),
        2,
        &["--center: 31.5, shifted by -70.00 bins"],
    );
}

/// A refused search writes trial slices to the page that the report was to be, and nothing to any other report.
#[test]
fn a_refusal_shows_trial_slices() {
    let lab = Lab::new();
    lab.ok("phantom --kind discs --size 96 --bins 48 --projections 40 --noise 1 --center 20 --output noisy");
    let run = "reconstruct --sinograms noisy --center auto --output slices --report";
    let said = lab.fails(&format!("{run} page.html"), 3, &["rotation axis: ambiguous", "--sweep 18..23:0.5"]);
    assert!(said.contains("page.html shows trial slices, --sweep 18..23:0.5"), "{said}");
    let page = lab.read_text("page.html");
    for part in ["\"values\":[\"18\"]", "\"values\":[\"23\"]", "fbp reconstruct --sinograms"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("--report") && !lab.path("slices").exists());
    // files of others stay, and are named
    lab.text("other.html", "<p>not of fbp</p>");
    let said = lab.fails(&format!("{run} other.html"), 3, &["rotation axis: ambiguous"]);
    assert!(said.contains("no trial slices in other.html"), "{said}");
    assert_eq!(lab.read_text("other.html"), "<p>not of fbp</p>");
    lab.fails(&format!("{run} run.json"), 3, &["rotation axis: ambiguous"]);
    // its command has the tilt of these slices, with which an axis goes that is given
    let phantom = "phantom --kind discs --size 96 --bins 48 --projections 40 --slices 6 --as projections --noise 2";
    lab.ok(&format!("{phantom} --center 20 --output rows"));
    let tilted = "reconstruct --projections rows --center auto --tilt auto --output slices --report tilted.html";
    lab.fails(tilted, 3, &["rotation axis: ", "tilted.html shows trial slices"]);
    assert!(!lab.read_text("tilted.html").contains("--tilt auto"));
    assert!(!lab.path("run.json").exists());
}

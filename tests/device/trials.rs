//! `fbp trials`: slices of one row by several values of one or two flags, against runs with their commands.

use crate::support::cli::{Lab, Scan, farthest};
use serde_json::{Value, json};

fn page(lab: &Lab, name: &str) -> Value {
    let text = lab.read_text(name);
    let (_, rest) = text.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Counts with zingers, fields and a beam that devices and the host correct.
fn counts(lab: &Lab) -> &'static str {
    lab.ok("phantom --size 40 --projections 30 --slices 9 --as projections --photons 900 --scale 0.05 \
            --flats fl --darks da --output pr");
    "--projections pr --flats fl --darks da"
}

/// Every slice of trials is that of a run with its command, for this row. Returns what was said of the work.
fn compare(lab: &Lab, flags: &str, name: &str, expected: usize) -> String {
    let (_, said) = lab.ok(&format!("trials {flags} --output {name} -v"));
    lab.ok(&format!("trials {flags} --output {name}.html"));
    let page = page(lab, &format!("{name}.html"));
    let (row, trials) = (page["row"].as_u64().unwrap(), page["trials"].as_array().unwrap());
    assert_eq!(trials.len(), expected, "{flags}");
    let files = lab.files(name);
    assert_eq!(files.len(), expected + 1, "{files:?}");
    for trial in trials {
        let command = trial["command"].as_str().unwrap();
        let rest = command.strip_prefix("fbp ").unwrap().strip_suffix("--output slices/").unwrap();
        lab.ok(&format!("{rest} --rows {row}..{} --output run-{name} --overwrite -q", row + 1));
        let values = trial["values"].as_array().unwrap().iter().zip(page["varied"].as_array().unwrap());
        let stem = values.map(|(value, varied)| {
            let (flag, value) = (varied["flag"].as_str().unwrap(), value.as_str().unwrap());
            match flag == "center" {
                true => format!("{flag}_{:.2}", value.parse::<f64>().unwrap()),
                false => format!("{flag}_{value}"),
            }
        });
        let file = format!("{name}/{}.tif", stem.collect::<Vec<_>>().join("_"));
        assert_eq!(lab.read(&file), lab.read(&format!("run-{name}")), "{command}");
    }
    said.lines().find(|line| line.starts_with("trials ")).unwrap_or_default().to_owned()
}

#[test]
fn tiles_are_the_slices_of_their_commands() {
    let lab = Lab::new();
    let input = counts(&lab);
    let said = compare(
        &lab,
        &format!("{input} --device cpu --vary center=18..=20:0.25 --vary stripes=none,dead+mean,sorting"),
        "nine",
        27,
    );
    // the input is read and corrected once, and slices about axes at the same fraction of a bin are computed together
    assert!(said.ends_with("30 reads of 30 pages, row corrected 1 times, 4 passes"), "{said}");
    let page = page(&lab, "nine.html");
    assert_eq!(page["varied"][1], json!({ "flag": "stripes", "values": ["none", "dead,mean", "sorting"] }));
    assert_eq!((&page["row"], &page["part"]["width"]), (&json!(4), &json!(40)));
    assert!(page["search"].is_null() && page["score"].is_null());
    // 9 x 3 tiles, the values of the first flag side by side
    let values: Vec<String> = page["trials"].as_array().unwrap().iter().map(|t| t["values"].to_string()).collect();
    assert_eq!(values[..2], [r#"["18","none"]"#, r#"["18.25","none"]"#]);
    assert_eq!(values[9..11], [r#"["18","dead,mean"]"#, r#"["18.25","dead,mean"]"#]);
}

#[test]
fn what_is_corrected_anew_is_not_read_anew() {
    let lab = Lab::new();
    let input = counts(&lab);
    let phase = "--phase paganin --pixel-size 1um --energy-kev 20 --distance 20mm";
    let said = compare(
        &lab,
        &format!("{input} {phase} --device cpu --vary delta-beta=10,100,1000 --vary center=19,20"),
        "phase",
        6,
    );
    assert!(said.ends_with("30 reads of 30 pages, row corrected 3 times, 1 passes"), "{said}");
    let said = compare(
        &lab,
        &format!("{input} --device cpu --vary remove-outliers=none,3+200,5+100 --vary padding=edge,zero"),
        "outliers",
        6,
    );
    assert!(said.ends_with("30 reads of 30 pages, row corrected 3 times, 1 passes"), "{said}");
    // fewer projections are corrected by themselves
    let said = compare(&lab, &format!("{input} --device cpu --vary projection-range=0..30:1,0..30:3"), "fewer", 2);
    assert!(said.contains("row corrected 2 times, 2 passes"), "{said}");
}

/// 27 slices of 9 axes and 3 filters take as many passes as 27 rows of a run, and are those of their commands. Where they
/// cannot share passes, they are, too.
#[test]
fn axes_and_filters_share_passes() {
    let lab = Lab::new();
    let input = counts(&lab);
    let filters = "--vary filter=ramp,hann,cosine";
    for (number, (flags, slices, passes)) in [
        (format!("--vary center=16..=24:1 {filters}"), 27, 2),
        // at two fractions of a bin
        (format!("--vary center=18..=22:0.5 {filters}"), 27, 2),
        // beyond both ends of the detector there are zeros
        ("--vary center=2,11.5,12,37 --vary filter-cutoff=0.5,1".to_owned(), 8, 3),
        ("--stripes mean --vary padding=edge,zero,mirror --vary mask=none,0.9".to_owned(), 6, 1),
        ("--interpolation nearest --roi 9,3,20,15 --vary center=17,19,21 --vary filter=none,ramp".to_owned(), 6, 1),
        // kernels that compute one slice at a time
        (format!("--algorithm standard --vary center=19,20 {filters}"), 6, 6),
        // spectra of rows contain the axis, and are of all slices
        ("--interpolation exact --vary center=19,20 --vary filter=ramp,hann".to_owned(), 4, 4),
    ]
    .into_iter()
    .enumerate()
    {
        let said = compare(&lab, &format!("{input} --device cpu {flags}"), &format!("shared{number}"), slices);
        let end = format!("30 reads of 30 pages, row corrected 1 times, {passes} passes");
        assert!(said.ends_with(&end), "{flags}: {said}");
    }
}

/// Weights, shifts and angles from text files, and weights by noise.
#[test]
fn text_files_can_be_varied() {
    let lab = Lab::new();
    let input = counts(&lab);
    let numbers = |file: &str, value: &dyn Fn(usize) -> f64| {
        lab.numbers(file, &(0..30).map(value).collect::<Vec<_>>());
    };
    numbers("late.txt", &|p| if p < 15 { 0.2 } else { 1.0 });
    numbers("a+b.txt", &|p| 1.0 + p as f64);
    numbers("even.txt", &|p| 6.0 * p as f64);
    numbers("uneven.txt", &|p| 6.0 * p as f64 + (p % 3) as f64);
    numbers("bent.txt", &|p| 0.05 * p as f64);
    lab.numbers("few.txt", &[1.0; 29]);
    let tv = format!("{input} --device cpu --method tv --interior --iterations 5");
    compare(&lab, &format!("{tv} --rows 4..5 --vary weights=none,noise,late.txt"), "weights", 3);
    compare(
        &lab,
        &format!("{input} --device cpu --vary center-shifts=none,bent.txt --vary mode=precise,fast"),
        "bent",
        4,
    );
    compare(&lab, &format!("{input} --device cpu --vary angles=even.txt,uneven.txt --vary center=19,20"), "angles", 4);
    for (name, files) in [("weights", 3), ("angles", 4)] {
        let slices: Vec<_> = lab.files(name).into_iter().filter(|file| file.ends_with(".tif")).collect();
        assert_eq!(slices.len(), files);
        for (at, a) in slices.iter().enumerate() {
            for b in &slices[..at] {
                let [a, b] = [a, b].map(|file| lab.read(&format!("{name}/{file}")));
                assert_ne!(a, b, "{name}");
            }
        }
    }
    // the noise of all rows decides, as in a run of all rows, however many slices have these weights
    lab.ok(&format!("trials {tv} --vary weights=noise,./a+b.txt --vary strength=0.5,1 --output noise"));
    lab.ok(&format!("reconstruct {tv} --weights noise --output all"));
    assert_eq!(lab.read("noise/weights_noise_strength_1.tif").pages[0], lab.read("all").pages[4]);
    lab.ok(&format!("reconstruct {tv} --weights a+b.txt --output all --overwrite"));
    assert_eq!(lab.read("noise/weights_.-a-b.txt_strength_1.tif").pages[0], lab.read("all").pages[4]);
    let vary = |values: &str| format!("trials {tv} --vary weights={values}");
    lab.fails(
        &format!("{} --output out.html", vary("none,few.txt")),
        3,
        &["--weights", "29 weights", "30 projections"],
    );
    lab.fails(&format!("{} --output out.html", vary("none,lost.txt")), 3, &["--weights", "lost.txt"]);
    lab.fails(&format!("{} --output late.txt --overwrite", vary("none,late.txt")), 5, &["late.txt", "is the input"]);
    let fbp = format!("trials {input} --vary weights=none,late.txt --output out.html");
    lab.fails(&fbp, 2, &["with weights=late.txt: --weights", "--method fbp"]);
}

#[test]
fn kernels_methods_and_fields_can_be_varied() {
    let lab = Lab::new();
    let input = counts(&lab);
    compare(
        &lab,
        &format!("{input} --device cpu --vary interpolation=linear,exact --vary filter=ramp,hann"),
        "kernels",
        4,
    );
    let strengths = "--method tv --interior --iterations 5 --vary strength=0.5,2 --vary no-non-negative=true,false";
    compare(&lab, &format!("{input} --device cpu {strengths}"), "strengths", 4);
    compare(&lab, &format!("{input} --device cpu --vary field-mode=mean,median --vary tilt=none,1"), "fields", 4);
    let turn = "--overall-angle 360 --extended-field --center 30 --rows 2..3";
    compare(&lab, &format!("{input} --device cpu {turn} --vary center=28,30 --vary stripes=none,mean"), "wide", 4);
    let region = "--roi 10,12,20,9";
    compare(&lab, &format!("{input} --device cpu {region} --vary filter-cutoff=0.5..=1:0.25"), "region", 3);
    let part = &page(&lab, "region.html")["part"];
    assert_eq!(part, &json!({ "left": -10, "top": -8, "width": 20, "height": 9 }));
}

/// Where a device does the steps, rows that it has corrected are used again, too.
#[test]
fn devices_correct_rows_once() {
    let lab = Lab::new();
    lab.directory("no-configuration/fbp/profiles");
    lab.profile_with_steps("no-configuration/fbp/profiles/steps.toml", "");
    let input = counts(&lab);
    let vary = "--remove-outliers 3,200 --vary center=19,20 --vary stripes=none,sorting";
    let said = compare(&lab, &format!("{input} {vary}"), "device", 4);
    assert!(said.contains("row corrected 1 times, 4 passes"), "{said}");
    let vary = "--vary tilt=none,1 --vary center=19,20";
    let said = compare(&lab, &format!("{input} {vary}"), "tilted", 4);
    assert!(said.contains("row corrected 2 times"), "{said}");
}

#[test]
fn an_axis_is_found_once_for_all() {
    let lab = Lab::new();
    let scan = Scan { width: 64, projections: 90, slices: 3, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    lab.text("run.toml", "center = \"auto\"\nreport = \"r.html\"\noutput = \"old\"\ndtype = \"u8\"\n");
    lab.ok("trials --sinograms sin --config run.toml --vary filter=ramp,hann --output t.html --device cpu");
    let filters = page(&lab, "t.html");
    let command = filters["trials"][1]["command"].as_str().unwrap();
    let center = command.split("--center ").nth(1).unwrap().split(' ').next().unwrap();
    assert!((center.parse::<f64>().unwrap() - 31.5).abs() < 0.1, "{command}");
    assert!(command.ends_with(" --filter hann --output slices/") && !command.contains("u8"), "{command}");
    // several axes alone are a sweep
    lab.ok("trials --sinograms sin --device cpu --vary center=30..=33:0.5 --output axes.html");
    lab.ok("center --sinograms sin --device cpu --sweep 30..33:0.5 --output sweep.html");
    assert_eq!(page(&lab, "axes.html"), page(&lab, "sweep.html"));
    lab.ok("trials --sinograms sin --device cpu --vary center=30..=33:0.5 --output axes");
    lab.ok("center --sinograms sin --device cpu --sweep 30..33:0.5 --output sweep");
    assert_eq!(lab.bytes("axes"), lab.bytes("sweep"));
    assert!(farthest(&lab.read("axes/center_30.00.tif"), &lab.read("axes/center_31.50.tif")) > 0.01);
}

#[test]
fn mistakes_in_trials_are_named() {
    let lab = Lab::small();
    let run = "trials --sinograms sin --device cpu";
    for (flags, words) in [
        ("--output out.html", &["--vary"][..]),
        ("--vary center=14,15", &["--output: missing"]),
        ("--vary centre=14,15 --output out.html", &["`centre`", "choose from center, tilt"]),
        ("--vary rows=1,2 --output out.html", &["`rows`"]),
        ("--vary center=14..15 --output out.html", &["`14..15`", "A..=B:STEP"]),
        ("--vary center=14,15 --vary center=16 --output out.html", &["center is varied twice"]),
        ("--vary center=14 --vary filter=hann --vary padding=zero --output out.html", &["3 flags"]),
        ("--vary filter=hann,bessel --output out.html", &["'bessel'", "--filter"]),
        ("--vary filter-cutoff=0.5,2 --output out.html", &["with filter-cutoff=2: --filter-cutoff"]),
        ("--vary center=14,40 --output out.html", &["with center=40: --center: 40 is outside the detector"]),
        ("--vary tilt=1,2 --output out.html", &["with tilt=1: --tilt"]),
        ("--vary center=14,15 --shard 0/2 --output out.html", &["--shard: is for the slices of a run"]),
        ("--vary center=14,15 --dry-run --output out.html", &["--dry-run"]),
        ("--vary center=14,15 --roi 0,0,9,9 --tile 16 --output out.html", &["--tile: --roi"]),
        ("--vary center=14..=16:0.1 --tile 4096 --output out.html", &["--tile: 21 trial slices", "at most"]),
    ] {
        lab.fails(&format!("{run} {flags}"), 2, words);
    }
    lab.text("other.html", "of others");
    lab.fails(&format!("{run} --vary center=14,15 --output other.html"), 5, &["other.html", "--overwrite"]);
    lab.fails(&format!("{run} --vary center=14,15 --output sin"), 5, &["is the input"]);
    lab.ok(&format!("{run} --vary center=14,15 --output t.html"));
    lab.fails(&format!("{run} --vary center=14,15 --output t.html"), 5, &["t.html", "--overwrite"]);
    lab.ok(&format!("{run} --vary center=14,15 --output t.html --overwrite"));
}

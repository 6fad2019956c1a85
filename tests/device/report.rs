//! Pages: `--report FILE.html`, `fbp report`, `fbp center --sweep ... --output FILE.html`, as files. What a browser shows is
//! tested by `scripts/browser`.

use crate::support::cli::{Lab, Pages, SMALL, Scan};
use serde_json::{Value, json};
use std::fs;

const RUN: &str = "reconstruct --sinograms sin --device cpu";

/// The data of a page, which must be whole and ask for nothing.
fn data(lab: &Lab, page: &str) -> Value {
    let text = lab.read_text(page);
    assert!(text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>"), "{page}");
    assert!(text.len() < 10_000_000 && text.contains("default-src 'none'"), "{page}");
    let (_, rest) = text.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_page_is_the_same_from_the_run_and_from_its_files() {
    let lab = Lab::new();
    let scan = Scan { width: 48, projections: 40, slices: 9, ..SMALL };
    lab.write("sin", "s", &scan.sinograms());
    for (flags, output) in [
        ("", "plain"),
        ("--center auto --mask 0.9 --pixel-size 2um", "found"),
        ("--dtype u16 --range=-1,12", "numbers/r-%03i.tif"),
        ("--rows 1..8:2 --roi 4,6,30,20", "one.tif"),
        // rows that are longer than the detector's, of a known axis
        ("--overall-angle 360 --center 15.5 --extended-field", "wide"),
        // beside another of this name
        ("--mask 0.8", "one.zarr"),
    ] {
        lab.directory("numbers");
        lab.ok(&format!("{RUN} {flags} --report run.html --histogram h.json --output {output}"));
        let record = match output {
            "plain" | "found" | "wide" | "one.tif" | "one.zarr" => output,
            _ => "numbers",
        };
        lab.ok(&format!("report {record} --output again.html"));
        let (mut run, mut again) = (data(&lab, "run.html"), data(&lab, "again.html"));
        if flags.contains("u16") {
            // values as they were, and as files have them: to within half a step of 13/65535
            for page in [&mut run, &mut again] {
                let mean = page["histogram"]["mean"].as_f64().unwrap();
                assert!((mean - run_mean(&lab)).abs() < 2e-4, "{mean}");
                ["histogram", "slices", "sections"].iter().for_each(|key| page[key] = Value::Null);
            }
        }
        assert!(run == again, "{flags}");
        let methods = run["search"]["methods"].as_array().unwrap();
        assert_eq!(methods.len(), 5);
        assert!(methods.iter().all(|m| m["reason"].is_string() || m["whole"].as_array().unwrap().len() > 10));
        assert_eq!(run["jobs"][0]["state"], "done");
        assert!(run["jobs"][0]["stages"]["back_projection"].as_f64().unwrap() > 0.0);
        assert!(run["record"].as_str().unwrap().contains("sinograms = "));
        fs::remove_file(lab.path("run.html")).unwrap();
    }
}

/// The mean of the histogram of the last run.
fn run_mean(lab: &Lab) -> f64 {
    serde_json::from_str::<Value>(&lab.read_text("h.json")).unwrap()["mean"].as_f64().unwrap()
}

/// The page of a run of least squares has the slice in the middle by filtered back projection, too.
#[test]
fn a_slice_of_least_squares_is_beside_one_by_filtered_back_projection() {
    let lab = Lab::new();
    lab.ok("phantom --kind asymmetric --size 48 --projections 20 --slices 3 --noise 0.2 --output sin");
    let region = "--roi 4,6,30,20 --mask 0.9";
    lab.ok(&format!("{RUN} --method tv --iterations 5 {region} --report run.html --output tv"));
    lab.ok("report tv --output again.html");
    let (run, again) = (data(&lab, "run.html"), data(&lab, "again.html"));
    assert!(run == again);
    let beside = &run["filtered"];
    assert_eq!((&beside["slice"], &beside["method"], &beside["missing"]), (&json!(1), &json!("tv"), &Value::Null));
    assert_eq!((&beside["image"]["width"], &beside["image"]["height"]), (&json!(30), &json!(20)));
    lab.ok(&format!("{RUN} {region} --report fbp.html --output fbp"));
    let fbp = data(&lab, "fbp.html");
    assert_eq!(fbp["filtered"], Value::Null);
    assert_eq!(fbp["slices"]["numbers"], run["slices"]["numbers"]);
    assert_eq!(fbp["slices"]["images"][1], beside["image"]);
    assert!(run["slices"]["images"][1] != beside["image"]);
    // without its input, nothing can be computed
    fs::remove_dir_all(lab.path("sin")).unwrap();
    lab.ok("report tv --output again.html");
    assert_eq!(data(&lab, "again.html")["filtered"], Value::Null);
}

#[test]
fn a_page_shows_what_was_done_to_the_data() {
    let lab = Lab::small();
    let beam = |level: f32| Pages { width: 32, pages: vec![vec![level; 32 * 3]; 2] };
    lab.write("scan/proj", "p", &SMALL.sinograms().transposed().map(|v| 100.0 + 900.0 * (-0.01 * v).exp()));
    lab.write("flats", "f", &beam(1000.0));
    lab.write("darks", "d", &beam(100.0));
    let run = "reconstruct --projections scan/proj --flats flats --darks darks --device cpu --stripes mean";
    lab.ok(&format!("{run} --filter hann --report run.html --output r"));
    lab.ok("report r --output again.html");
    let page = data(&lab, "run.html");
    assert!(page == data(&lab, "again.html"));
    assert!(lab.read_text("run.html").contains("<title>scan/proj: 3 slices, fbp</title>"));
    let fields = page["fields"].as_array().unwrap();
    let shown: Vec<_> =
        fields.iter().map(|f| (f["name"].as_str().unwrap(), &f["frames"], &f["image"]["low"])).collect();
    assert_eq!(shown, [("Flat field", &json!(2), &json!(1000.0)), ("Dark field", &json!(2), &json!(100.0))]);
    assert_ne!(page["seen"]["image"], page["sinogram"]["image"]);
    let methods = page["methods"].as_str().unwrap();
    for said in
        ["window hann", "mean of 2 flat fields after the mean of 2 dark fields", "mean (sigma = 15, blocks = 1)"]
    {
        assert!(methods.contains(said), "{said}: {methods}");
    }
    // without fields and stripes there is nothing to show
    lab.ok(&format!("{RUN} --report plain.html --output plain"));
    let plain = data(&lab, "plain.html");
    assert_eq!((&plain["fields"], &plain["seen"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_run_writes_a_page_and_json() {
    let lab = Lab::small();
    lab.ok(&format!("{RUN} --report a.json --report a.html --output r --save-config run.toml"));
    let json: Value = serde_json::from_str(&lab.read_text("a.json")).unwrap();
    assert_eq!((&json["slices"], &data(&lab, "a.html")["slices"]["count"]), (&json!(3), &json!(3)));
    // a run file names one or several
    assert!(lab.read_text("run.toml").contains("report = [\"a.json\", \"a.html\"]"));
    for (key, files) in [("\"b.html\"", &["b.html"][..]), ("[\"c.html\", \"c.json\"]", &["c.html", "c.json"])] {
        lab.text("key.toml", &format!("sinograms = \"sin\"\ndevice = \"cpu\"\nreport = {key}\n"));
        lab.ok("reconstruct --config key.toml --overwrite --output r");
        assert!(files.iter().all(|file| lab.path(file).exists()), "{key}");
        // flags take their place
        lab.ok(&format!(
            "reconstruct --config key.toml --report {}.json --overwrite --output r",
            &files[0][..1].repeat(2)
        ));
        assert!(lab.path(format!("{}.json", &files[0][..1].repeat(2))).exists());
    }
    for two in ["x.html --report y.html", "x.json --report y.json"] {
        lab.fails(
            &format!("{RUN} --report {two} --output out"),
            2,
            &["--report", "at most one FILE.json and one FILE.html"],
        );
    }
    lab.fails(&format!("{RUN} --report x.html --report no/x.json --output out"), 5, &["--report", "no directory"]);
    assert!(!lab.path("x.html").exists());
}

#[test]
fn scores_of_trial_slices_are_those_of_the_method_also_for_a_whole_turn() {
    let lab = Lab::new();
    let scan = Scan { width: 64, projections: 120, slices: 1, overall: 360.0 };
    lab.write("sin", "s", &scan.sinograms());
    lab.ok("center --sinograms sin --overall-angle 360 --device cpu --sweep 27.5..35.5:1 --output t.html");
    let page = data(&lab, "t.html");
    let trials = page["trials"].as_array().unwrap();
    let score = |trial: &&Value| trial["score"].as_f64().unwrap();
    let best = trials.iter().min_by(|a, b| score(a).total_cmp(&score(b))).unwrap();
    // the axis is in the middle of the detector
    assert_eq!(best["values"][0], "31.5", "{:?}", trials.iter().map(|t| score(&t)).collect::<Vec<_>>());
    assert!((page["score"]["value"].as_f64().unwrap() - 31.5).abs() < 0.2 && page["score"]["method"] == "sweep");
    assert!(page["search"]["methods"].as_array().unwrap().iter().all(|method| method["method"] != "sweep"));
    assert!(lab.read_text("t.html").contains("sin: rotation axis, fbp</title>"));
}

#[test]
fn slices_do_not_depend_on_a_page() {
    let lab = Lab::small();
    assert!(
        lab.slices(RUN.trim_start_matches("reconstruct "), "a")
            == lab.slices(&format!("{} --report p.html", RUN.trim_start_matches("reconstruct ")), "b")
    );
}

#[test]
fn what_is_gone_is_said() {
    let lab = Lab::small();
    lab.ok(&format!("{RUN} --output r"));
    fs::remove_file(lab.path("r/slice_00001.tif")).unwrap();
    fs::rename(lab.path("sin"), lab.path("elsewhere")).unwrap();
    let (_, notes) = lab.ok("report r --output r.html");
    assert!(notes.contains("1 slices are missing, the first is 1") && notes.contains("no sinogram"), "{notes}");
    let page = data(&lab, "r.html");
    assert_eq!((&page["sinogram"], &page["search"]), (&Value::Null, &Value::Null));
    assert!(page["missing"].as_str().unwrap().contains("sin"));
    assert_eq!(page["slices"]["numbers"], json!([0, 2]));
    // another scan in its place is not that of the run
    let other = Scan { width: 32, projections: 18, slices: 3, ..SMALL };
    lab.write("sin", "s", &other.sinograms());
    let (_, notes) = lab.ok("report r/fbp-run.toml --output r.html");
    assert!(notes.contains("changed since the run"), "{notes}");
    // slices that have moved are found beside their record
    fs::rename(lab.path("r"), lab.path("moved")).unwrap();
    lab.ok("report moved --output m.html");
}

#[test]
fn shards_have_pages_of_their_own_and_one_together() {
    let lab = Lab::small();
    for shard in 0..2 {
        lab.ok(&format!("{RUN} --shard {shard}/2 --report p.html --output r"));
    }
    let numbers = |page: &str| data(&lab, page)["slices"]["numbers"].as_array().unwrap().len();
    assert_eq!(numbers("p-0of2.html") + numbers("p-1of2.html"), 3);
    lab.ok("report r --output all.html");
    assert_eq!((numbers("all.html"), data(&lab, "all.html")["jobs"].as_array().unwrap().len()), (3, 2));
}

#[test]
fn pages_that_cannot_be_made_are_refused() {
    let lab = Lab::small();
    lab.ok(&format!("{RUN} --output r"));
    lab.directory("empty");
    lab.fails("report r --output r.txt", 2, &["--output", ".html"]);
    lab.fails("report r --output no/r.html", 5, &["--output", "r.html"]);
    lab.fails("report empty --output r.html", 3, &["empty", "fbp-run.toml"]);
    lab.fails("report nowhere --output r.html", 3, &["nowhere"]);
    lab.text("some.toml", "center = 3\n");
    lab.fails("report some.toml --output r.html", 3, &["some.toml", "[facts]"]);
    lab.text("odd-run.toml", "this is no TOML");
    lab.fails("report odd-run.toml --output r.html", 3, &["odd-run.toml", "not the record"]);
    fs::copy(lab.path("r/fbp-run.toml"), lab.path("empty/fbp-run.toml")).unwrap();
    lab.fails("report empty --output r.html", 3, &["none of the slices"]);
    lab.fails(&format!("{RUN} --report no/r.html --output other"), 5, &["--report", "no directory"]);
}

#[test]
fn trial_slices_in_a_page() {
    let lab = Lab::small();
    let sweep = "center --sinograms sin --device cpu --sweep 14..17:0.5";
    let (out, _) = lab.ok(&format!("{sweep} --output t.html"));
    assert!(
        out.contains("7 slices of row 1, 7 values of center from 14 to 17, in t.html; the page shows 32 x 32"),
        "{out}"
    );
    let page = data(&lab, "t.html");
    let trials = page["trials"].as_array().unwrap();
    assert_eq!(trials.iter().map(|t| t["values"][0].as_str().unwrap()).collect::<Vec<_>>()[..3], ["14", "14.5", "15"]);
    assert_eq!(
        (&trials[1]["image"]["width"], trials[1]["command"].as_str().unwrap()),
        (&json!(32), "fbp reconstruct --sinograms sin --device cpu --center 14.5 --output slices/")
    );
    lab.fails(&format!("{sweep} --output t.html"), 5, &["t.html", "--overwrite"]);
    lab.ok(&format!("{sweep} --tile 16 --overwrite --output t.html"));
    assert_eq!(data(&lab, "t.html")["part"]["width"], 16);
    lab.fails(&format!("{sweep} --tile 4096 --output big.html"), 2, &["--tile", "at most"]);
    assert!(!lab.path("big.html").exists());
}

#[test]
fn progress_says_what_limits() {
    let lab = Lab::small();
    let (_, lines) = lab.ok(&format!("{RUN} --progress json --output r"));
    let line: Value = serde_json::from_str(lines.lines().rfind(|line| line.contains("slices_done")).unwrap()).unwrap();
    let limit = line["limit"].as_str().unwrap();
    assert!(["reading", "uploading", "correcting", "computing", "downloading", "writing"].contains(&limit), "{line}");
    let (_, lines) = lab.ok(&format!("{RUN} --progress plain --overwrite --output r"));
    assert!(lines.contains("3/3 slices") && lines.contains("limited by "), "{lines}");
}

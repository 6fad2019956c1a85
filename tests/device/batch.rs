//! `fbp batch`: a night of scans, some of them broken, stopped, killed, and dealt to several jobs.

use crate::support::cli::{Lab, Pages, SMALL, Scan, assert_no_panic, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Projections with flats of their own: `night/NAME` and `fields/NAME`.
fn write_scan(lab: &Lab, name: &str, strength: f32) {
    let counts = SMALL.sinograms().transposed().map(|value| (-value * strength).exp());
    lab.write(&format!("night/{name}"), "p", &counts);
    let flat = Pages { width: SMALL.width, pages: vec![vec![1.0; SMALL.width * SMALL.slices]] };
    lab.write(&format!("fields/{name}"), "f", &flat);
}

/// The state in a file, with the entries of scans by their names.
fn state(lab: &Lab, file: &str) -> (Value, BTreeMap<String, Value>) {
    let state: Value = serde_json::from_str(&lab.read_text(file)).unwrap();
    let scans = state["scans"].as_array().unwrap().iter();
    let scans = scans.map(|scan| (scan["name"].as_str().unwrap().to_owned(), scan.clone())).collect();
    (state, scans)
}

/// The data of a page.
fn page(lab: &Lab, file: &str) -> Value {
    let page = lab.read_text(file);
    let (_, rest) = page.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// Runs to this exit code; standard output and error.
fn ends(lab: &Lab, args: &str, code: i32) -> (String, String) {
    let output = lab.run(args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "fbp {args}\n{err}");
    assert_no_panic(&err, args);
    (out, err)
}

const HOSTILE: &str = "a<b>&\"'50%i {{style}}";

/// Five scans of seven are broken in different ways; one more command finishes them.
#[test]
fn a_night_with_broken_scans_ends_with_the_slices_of_single_runs() {
    let lab = Lab::new();
    for (name, strength) in [("s1", 0.01), ("s2", 0.02), ("damaged", 0.01), ("no-flats", 0.01), ("off", 0.01)] {
        write_scan(&lab, name, strength);
    }
    write_scan(&lab, HOSTILE, 0.03);
    write_scan(&lab, "taken", 0.01);
    let torn = "night/damaged/p_0003.tif";
    let whole = fs::read(lab.path(torn)).unwrap();
    fs::write(lab.path(torn), &whole[..whole.len() / 2]).unwrap();
    fs::rename(lab.path("fields/no-flats"), lab.path("moved")).unwrap();
    lab.text("scans.csv", "name,center\noff,400\ns2,14.5\n");
    lab.directory("rec");
    lab.text("rec/taken", "precious");
    lab.text("run.toml", "center = 15.5\nprojections = \"another\"\ndevice = \"cpu\"\nflats = \"fields/{name}\"\n");
    let batch = "batch night/* --config run.toml --scans scans.csv --output rec/{name} --report rec/{name}.html";

    let (out, err) = ends(&lab, batch, 1);
    assert!(err.contains("4 of 7 scans failed") && err.contains("rec/index.html"), "{err}");
    assert!(err.contains("damaged: failed, exit code 3: "), "{err}");
    assert!(err.lines().any(|line| line.starts_with("s1: 3 slices from 16 projections")), "{err}");
    assert_eq!(out.lines().count(), 7, "{out}");
    let (whole_state, scans) = state(&lab, "rec/batch.json");
    let done = |name: &str| assert_eq!(scans[name]["state"], "done", "{}", scans[name]);
    ["s1", "s2", HOSTILE].into_iter().for_each(done);
    for (name, code, word) in
        [("damaged", 3, "p_0003.tif"), ("no-flats", 3, "fields/no-flats"), ("off", 2, "center"), ("taken", 5, "taken")]
    {
        let scan = &scans[name];
        assert_eq!((&scan["state"], &scan["error"]["exit_code"]), (&"failed".into(), &code.into()), "{scan}");
        assert!(scan["error"]["message"].as_str().unwrap().contains(word), "{scan}");
    }
    assert_eq!(lab.read_text("rec/taken"), "precious");
    // a failed scan has a page, with its input and a run file
    let failure = page(&lab, "rec/off.html");
    assert_eq!((&scans["off"]["page"], &failure["error"]), (&"off.html".into(), &scans["off"]["error"]));
    assert!(failure["contents"].as_str().unwrap().contains("16") && failure["picture"]["png"].is_string());
    assert!(failure["run"].as_str().unwrap().contains("projections = \"night/off\""), "{failure}");
    assert!(page(&lab, "rec/damaged.html")["contents"].as_str().unwrap().contains("p_0003.tif"));
    // the keys that other programs may rely on
    let counts = &whole_state["counts"];
    assert_eq!((&counts["done"], &counts["failed"], &whole_state["shard"]), (&3.into(), &4.into(), &Value::Null));
    let s2 = &scans["s2"];
    assert_eq!((&s2["axis"]["value"], &s2["axis"]["method"]), (&14.5.into(), &"given".into()));
    assert!(s2["axis"]["uncertainty"].is_null() && s2["error"].is_null() && s2["doubts"].is_array());
    assert!(s2["seconds"].as_f64().unwrap() > 0.0 && s2["slices"] == 3);
    let here = lab.path("").canonicalize().unwrap();
    assert_eq!(s2["input"].as_str().map(Path::new), Some(here.join("night/s2").as_path()));
    assert_eq!(s2["output"].as_str().map(Path::new), Some(here.join("rec/s2").as_path()));
    assert_eq!(s2["page"], "s2.html");
    assert!(lab.path("rec").join(s2["thumbnail"].as_str().unwrap()).is_file());

    // every scan has a row, whatever its name is
    let data = page(&lab, "rec/index.html");
    let names: Vec<&str> =
        data["scans"].as_array().unwrap().iter().map(|scan| scan["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 7);
    assert!(names.contains(&HOSTILE) && !lab.read_text("rec/index.html").contains("<title>a<b>"));
    let pictures = data["scans"].as_array().unwrap().iter().filter(|scan| scan["picture"].is_string()).count();
    assert_eq!(pictures, 3);
    // the same slices as alone
    for (name, flags) in [("s1", "--center 15.5"), ("s2", "--center 14.5")] {
        let run = format!("--projections night/{name} --flats fields/{name} {flags} --device cpu");
        lab.ok(&format!("reconstruct -q {run} --output single-{name}"));
        assert!(lab.bytes(&format!("rec/{name}")) == lab.bytes(&format!("single-{name}")), "{name}");
    }
    assert_eq!(lab.files(&format!("rec/{HOSTILE}")).len(), SMALL.slices);

    // nothing is done twice without a flag, and only failures with it
    let (_, err) = ends(&lab, batch, 5);
    assert!(err.contains("batch.json") && err.contains("--retry-failed"), "{err}");
    let (out, err) = ends(&lab, &format!("{batch} --resume"), 1);
    assert!(out.is_empty() && err.contains("7 of 7 scans are done or have failed before"), "{err}");
    fs::write(lab.path(torn), whole).unwrap();
    fs::rename(lab.path("moved"), lab.path("fields/no-flats")).unwrap();
    fs::remove_file(lab.path("rec/taken")).unwrap();
    // a scan with other flags is another run
    lab.text("scans.csv", "name,center\noff,15.5\ns2,14.5\n");
    let (out, _) = ends(&lab, &format!("{batch} --resume"), 1);
    assert!(out.lines().count() == 1 && out.starts_with("off"), "{out}");
    let (out, _) = ends(&lab, &format!("{batch} --retry-failed"), 0);
    assert_eq!(out.lines().count(), 3, "{out}");
    let (_, after) = state(&lab, "rec/batch.json");
    assert!(after.values().all(|scan| scan["state"] == "done" && scan["error"].is_null()));
    assert_eq!(after["s1"]["started"], scans["s1"]["started"]);
    let slices = |name: &str| lab.read(&format!("rec/{name}"));
    assert!(["off", "no-flats", "damaged", "taken"].iter().all(|name| slices(name) == slices("s1")));

    // the page is made anew from the states, wherever they are now
    fs::rename(lab.path("rec"), lab.path("elsewhere")).unwrap();
    fs::remove_file(lab.path("elsewhere/index.html")).unwrap();
    lab.ok("report --index elsewhere");
    assert_eq!(page(&lab, "elsewhere/index.html")["scans"].as_array().unwrap().len(), 7);
    // the state of another job that cannot be read is named
    lab.text("elsewhere/batch-0-of-2.json", "{}");
    lab.ok("report --index elsewhere");
    let data = page(&lab, "elsewhere/index.html");
    assert!(
        data["scans"].as_array().unwrap().len() == 7 && data["missing"][0].as_str().unwrap().contains("0-of-2.json")
    );
    lab.fails("report --index night", 3, &["night", "batch.json"]);
}

/// If all scans fail, the exit code is that of the first.
#[test]
fn a_night_of_failures_ends_with_the_first_of_them() {
    let lab = Lab::small();
    lab.directory("empty");
    let (_, err) = ends(&lab, "batch empty sin --as sinograms --center 400 --device cpu --output rec/{name}", 3);
    assert!(err.contains("all 2 scans failed, the first is empty"), "{err}");
    let (_, err) =
        ends(&lab, "batch sin --as sinograms --center 15.5 --output rec2/{name} --device nothing-like-it", 4);
    assert!(err.contains("all 1 scans failed, the first is sin"), "{err}");
}

const TALL: Scan = Scan { width: 32, projections: 16, slices: 12, overall: 180.0 };
const HELD: &str = "batch night/* --as sinograms --device cpu --slices-per-pass 1 --memory 3M --output rec/{name}";

/// The program in the background, which waits within its first scan.
fn start(lab: &Lab, args: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("fbp"))
        .args(args.split_whitespace())
        .current_dir(lab.path(""))
        .env("FBP_CACHE_DIR", lab.path("cache"))
        .env("FBP_TEST_FAULT", "hold=2")
        .env("XDG_CONFIG_HOME", lab.path("no-configuration"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn stopped_and_killed_batches_go_on() {
    let lab = Lab::new();
    for (name, factor) in [("a", 1.0), ("b", 2.0), ("c", 3.0)] {
        lab.write(&format!("night/{name}"), "s", &TALL.sinograms().map(|value| value * factor));
    }
    for (signal, more, code) in [("-TERM", "", Some(75)), ("-KILL", "--resume", None)] {
        let child = start(&lab, &format!("{HELD} {more}"));
        let began = Instant::now();
        let running =
            || lab.path("rec/batch.json").exists() && state(&lab, "rec/batch.json").1["a"]["state"] == "running";
        while !(running() && lab.path("rec/a/slice_00000.tif").exists()) {
            assert!(began.elapsed() < Duration::from_secs(120), "no slice came");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let err = text(&ended.stderr);
        assert_eq!(ended.status.code(), code, "{err}");
        let (_, scans) = state(&lab, "rec/batch.json");
        let states: Vec<&str> = scans.values().map(|scan| scan["state"].as_str().unwrap()).collect();
        match code {
            Some(_) => {
                assert_eq!(states, ["stopped", "waiting", "waiting"]);
                assert!(err.contains("0 of 3 scans are done; run again with --resume"), "{err}");
            }
            None => assert_eq!(states, ["running", "waiting", "waiting"]),
        }
        assert_eq!(page(&lab, "rec/index.html")["scans"].as_array().unwrap().len(), 3);
    }
    let (out, err) = ends(&lab, &format!("{HELD} --resume"), 0);
    assert!(out.lines().count() == 3 && err.contains("of 12 slices are kept"), "{out}{err}");
    for name in ["a", "b", "c"] {
        let run = format!("--sinograms night/{name} --device cpu --slices-per-pass 1 --memory 3M");
        lab.ok(&format!("reconstruct -q {run} --output single-{name}"));
        assert!(lab.bytes(&format!("rec/{name}")) == lab.bytes(&format!("single-{name}")), "{name}");
    }
    assert!(lab.bytes("rec/a") != lab.bytes("rec/b"));
    let hidden = fs::read_dir(lab.path("rec")).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden: Vec<_> = hidden.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert_eq!(hidden, [".batch"], "more than the thumbnails is left");
}

/// Outputs of one file cannot be resumed; those that are not done are made again.
#[test]
fn outputs_of_one_file_are_made_again() {
    let lab = Lab::small();
    let batch = "batch sin --as sinograms --device cpu --center 15.5 --output rec/{name}.tif --strict";
    ends(&lab, &format!("{batch} --minus-log"), 3);
    assert!(lab.path("rec/sin.tif").exists());
    ends(&lab, &format!("{batch} --resume"), 0);
    assert_eq!(lab.read("rec/sin.tif"), lab.slices("--sinograms sin --device cpu --center 15.5", "alone"));
}

#[test]
fn shards_deal_scans_and_share_the_page() {
    let lab = Lab::new();
    for name in ["s1", "s2", "s3", "s10"] {
        lab.write(&format!("night/{name}"), "s", &SMALL.sinograms());
    }
    let batch = "batch night/* --as sinograms --device cpu --center 15.5 --output rec/{name} --shard";
    let mut dealt = Vec::new();
    for index in 0..3 {
        let (out, _) = ends(&lab, &format!("{batch} {index}/3"), 0);
        dealt.push(out.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>());
        let (whole, scans) = state(&lab, &format!("rec/batch-{index}-of-3.json"));
        assert_eq!(whole["shard"], format!("{index}/3"));
        assert_eq!(scans.len(), dealt[index].len());
    }
    assert_eq!(dealt, [vec!["s1", "s10"], vec!["s2"], vec!["s3"]]);
    let data = page(&lab, "rec/index.html");
    let names: Vec<&str> =
        data["scans"].as_array().unwrap().iter().map(|scan| scan["name"].as_str().unwrap()).collect();
    assert_eq!((names, &data["jobs"]), (vec!["s1", "s2", "s3", "s10"], &3.into()));
    let (_, err) = ends(&lab, &format!("{batch} 7/9"), 0);
    assert!(err.contains("nothing to do"), "{err}");
}

/// Messages as JSON say which scan they are about, and the plan of every scan is printed.
#[test]
fn messages_and_plans_name_their_scans() {
    let lab = Lab::small();
    lab.directory("empty");
    let batch = "batch empty sin --as sinograms --device cpu --center 15.5";
    let (_, err) = ends(&lab, &format!("{batch} --output rec/{{name}} --progress json --log log-{{name}}.txt"), 1);
    let lines: Vec<Value> = err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, scans) = lines.split_last().unwrap();
    assert!(last["exit_code"] == 1 && last.get("scan").is_none(), "{err}");
    assert!(scans.iter().all(|line| line["scan"] == "empty" || line["scan"] == "sin"), "{err}");
    assert!(scans.iter().any(|line| line["scan"] == "empty" && line["exit_code"] == 3), "{err}");
    assert!(scans.iter().any(|line| line["slices_done"] == 3), "{err}");
    assert!(lab.read_text("log-sin.txt").lines().any(|line| line.starts_with("sin: 3 slices")));
    let (out, _) = ends(&lab, "batch sin --as sinograms --device cpu --dry-run --output new/{name}", 0);
    assert!(out.starts_with("scan            sin from sin\n") && out.contains("kernel"), "{out}");
    assert!(!lab.path("new").exists());
}

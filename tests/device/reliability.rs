//! Runs that are stopped, that go wrong, or that meet others: what is there is whole, and `--resume` ends with the bytes of
//! a run that nothing happened to. docs/reliability.md has the table.

use crate::support::cli::{Lab, SMALL, Scan, assert_no_panic, text};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const TALL: Scan = Scan { width: 32, projections: 16, slices: 40, overall: 180.0 };
const RUN: &str = "reconstruct --sinograms sin --device cpu --slices-per-pass 1";

type Files = Vec<(String, Vec<u8>)>;

/// A scan in `sin`, and the bytes of its slices.
fn lab() -> (Lab, Files) {
    let lab = Lab::new();
    lab.write("sin", "s", &TALL.sinograms());
    lab.ok(&format!("{RUN} --output whole"));
    let full = lab.bytes("whole");
    assert_eq!(full.len(), TALL.slices);
    (lab, full)
}

fn resume(lab: &Lab, args: &str) -> String {
    lab.ok(&format!("{RUN} --resume {args}")).1
}

/// The run with a fault to its failure.
fn broken(lab: &Lab, fault: &str, args: &str, code: i32) -> String {
    let output = lab.command(&format!("{RUN} {args}")).env("FBP_TEST_FAULT", fault).output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{err}");
    assert_no_panic(&err, args);
    err
}

/// Every file under a slice's name is one of the whole run; how many there are.
fn check_partial(lab: &Lab, full: &Files) -> usize {
    let there = lab.bytes("r");
    for (name, bytes) in &there {
        assert!(full.iter().any(|(n, b)| n == name && b == bytes), "{name} is torn");
    }
    there.len()
}

/// Names of hidden files.
fn hidden(lab: &Lab, directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.path(directory)).unwrap().map(|e| e.unwrap().path());
    entries.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with('.')).collect()
}

/// The program in the background, with a fault if there is one.
fn start(lab: &Lab, fault: &str, args: &str) -> Child {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("fbp"));
    command.args(args.split_whitespace()).current_dir(lab.path("")).env("FBP_CACHE_DIR", lab.path("cache"));
    command
        .env("FBP_TEST_FAULT", fault)
        .env("XDG_CONFIG_HOME", lab.path("no-configuration"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A slice is timed before the run: here a sparse volume of 128 GiB, of which hardly anything is read.
#[test]
fn a_run_of_hours_says_so_first() {
    let lab = Lab::new();
    fs::File::create(lab.path("v.raw")).unwrap().set_len(2048 * 16384 * 2048 * 2).unwrap();
    let mut child = start(
        &lab,
        "",
        "reconstruct --raw v.raw,2048x16384x2048,u16le --overall-angle 180 --center 1023.5 --device cpu --memory 1G \
         --algorithm standard --mode precise --slices-per-pass 1 --output out",
    );
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let (to_test, said) = mpsc::channel();
    std::thread::spawn(move || lines.for_each(|line| drop(to_test.send(line))));
    let until = Instant::now() + Duration::from_secs(100);
    let left = || until.saturating_duration_since(Instant::now());
    let warning = std::iter::from_fn(|| said.recv_timeout(left()).ok()).find(|line| line.contains("will take about"));
    child.kill().unwrap();
    child.wait().unwrap();
    let warning = warning.expect("nothing was said of the time");
    for part in ["warning: the run", "--interpolation exact", "--device gpu", "--binning 2", "--shard"] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn only_whole_slices_of_the_same_run_are_kept() {
    let (lab, full) = lab();
    lab.ok(&format!("{RUN} --output r"));
    let slice = |number: usize| lab.path(format!("r/slice_{number:05}.tif"));
    fs::remove_file(slice(1)).unwrap();
    OpenOptions::new().write(true).open(slice(2)).unwrap().set_len(3000).unwrap();
    // of the right length, with other samples
    let mut bytes = fs::read(slice(3)).unwrap();
    bytes[1000] ^= 1;
    fs::write(slice(3), bytes).unwrap();
    fs::write(slice(4), "").unwrap();
    fs::copy(slice(6), slice(5)).unwrap();
    lab.page("r/slice_00007.tif", 32, &[0.0; 32 * 32]);
    let before = fs::metadata(slice(0)).unwrap().modified().unwrap();
    // what another program wrote is never replaced
    let run = format!("{RUN} --output r --resume");
    let stopped = lab.run(&run);
    assert_eq!(stopped.status.code(), Some(5));
    assert!(text(&stopped.stderr).contains("slice_00007.tif: --output: was not written by fbp"));
    fs::remove_file(slice(7)).unwrap();
    let err = resume(&lab, "--output r");
    assert!(err.contains("34 of 40 slices are kept; done now: 2 missing, 4 torn"), "{err}");
    assert!(lab.bytes("r") == full);
    assert_eq!(fs::metadata(slice(0)).unwrap().modified().unwrap(), before);
    assert!(resume(&lab, "--output r").contains("40 of 40 slices are kept; nothing is left to do"));
    // what a preview shows is computed
    let err = resume(&lab, "--output r --preview p.png --report report.json");
    assert!(err.contains("39 of 40 slices are kept; done now: 1 for --preview"), "{err}");
    assert!(lab.path("p.png").is_file());
}

#[test]
fn another_key_keeps_nothing() {
    let (lab, _) = lab();
    lab.ok(&format!("{RUN} --output r"));
    // each of these differs from the one before, too
    for args in [
        "--center 15.25",
        "--filter hann",
        "--dtype f16",
        "--mask",
        "--pixel-size 2um",
        "--padding zero",
        "--exclude 3",
    ] {
        let err = resume(&lab, &format!("--output r {args}"));
        assert!(err.contains("0 of 40 slices are kept; done now: 40 of another run"), "{args}: {err}");
        let fresh = format!("fresh-{}", args.split_whitespace().next().unwrap().trim_matches('-'));
        lab.ok(&format!("{RUN} --output {fresh} {args}"));
        assert!(lab.bytes("r") == lab.bytes(&fresh), "{args}");
    }
    // the same values, written again
    lab.write("sin", "s", &TALL.sinograms());
    let err = resume(&lab, "--output r --exclude 3");
    assert!(err.contains("0 of 40"), "{err}");
}

#[test]
fn resume_says_where_it_makes_no_sense() {
    let (lab, _) = lab();
    lab.fails(&format!("{RUN} --output out.tif --resume"), 2, &["--resume", "out.tif", "pattern"]);
    lab.fails(&format!("{RUN} --output out --resume --overwrite"), 2, &["--resume", "--overwrite"]);
    lab.text("run.toml", "resume = true\noverwrite = true\n");
    lab.fails(&format!("{RUN} --output out --config run.toml"), 2, &["--resume", "--overwrite"]);
    // a flag wins over the file
    lab.text("run.toml", "overwrite = true\n");
    lab.ok(&format!("{RUN} --output whole --config run.toml --resume"));
}

#[test]
fn percentiles_are_those_of_the_first_run() {
    let (lab, _) = lab();
    let args = "--dtype u16 --percentile 1,99";
    lab.ok(&format!("{RUN} {args} --output whole --overwrite"));
    broken(&lab, "lost=0:3", &format!("{args} --output r"), 4);
    let facts: toml::Table = lab.read_text("r/fbp-run.toml").parse().unwrap();
    assert!(facts["facts"]["range"].as_array().unwrap().len() == 2);
    let err = resume(&lab, &format!("{args} --output r"));
    assert!(!err.contains(" 0 of 40"), "{err}");
    assert!(lab.bytes("r") == lab.bytes("whole"));
}

#[test]
fn a_record_does_the_run_again() {
    let (lab, _) = lab();
    for (output, record) in [("r", "r/fbp-run.toml"), ("p/x-%03i.tif", "p/x-run.toml"), ("one.tif", "one.tif-run.toml")]
    {
        let args = "--dtype u8 --rows 3..30:3 --filter hann --roi 4,4,20,22 --pixel-size 0.65um --exclude 2";
        lab.ok(&format!("{RUN} {args} --output {output}"));
        let again = format!("again/{output}");
        lab.directory("again");
        lab.ok(&format!("reconstruct --config {record} --output {again}"));
        match output {
            "one.tif" => assert!(fs::read(lab.path(output)).unwrap() == fs::read(lab.path(again)).unwrap()),
            "r" => assert!(lab.bytes("r") == lab.bytes("again/r")),
            _ => assert!(lab.bytes("p") == lab.bytes("again/p")),
        }
        let record: toml::Table = lab.read_text(record).parse().unwrap();
        let facts = record["facts"].as_table().unwrap();
        let job = &facts["jobs"][0];
        assert_eq!(job["state"].as_str(), Some("done"));
        assert_eq!(job["slices"].as_integer(), Some(9));
        assert_eq!(facts["run"].as_str().unwrap().len(), 32);
    }
}

#[test]
fn a_slice_names_its_run() {
    let (lab, _) = lab();
    lab.ok(&format!("{RUN} --center 15.25 --pixel-size 0.65um --output r"));
    let record: toml::Table = lab.read_text("r/fbp-run.toml").parse().unwrap();
    let run = record["facts"]["run"].as_str().unwrap();
    let (out, _) = lab.ok("info r/slice_00007.tif");
    for word in ["slice 7", run, "15.25", "0.65 um"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    let (out, _) = lab.ok("info --json r/slice_00007.tif");
    let info: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&info["slice"]["slice"], &info["slice"]["run"]), (&7.into(), &run.into()));
    let file = fs::File::open(lab.path("r/slice_00007.tif")).unwrap();
    let mut decoder = tiff::decoder::Decoder::new(file).unwrap();
    assert_eq!(decoder.get_tag_u32(tiff::tags::Tag::ResolutionUnit).unwrap(), 3);
    let value = decoder.get_tag(tiff::tags::Tag::XResolution).unwrap();
    assert!(format!("{value:?}").contains("Rational(153846154, 10000)"), "{value:?}");
}

#[test]
fn bytes_do_not_depend_on_how_a_run_is_divided() {
    let (lab, full) = lab();
    for (name, args) in
        [("again", ""), ("parts", "--device cpu/2"), ("small", "--memory 300K"), ("smaller", "--device-memory 200K")]
    {
        lab.ok(&format!("{RUN} {args} --output {name}")
            .replace("--device cpu --slices-per-pass 1 --device", "--slices-per-pass 1 --device"));
        assert!(lab.bytes(name) == full, "{name}");
    }
    for count in [1, 2, 5] {
        let output = format!("shards-{count}");
        // the last first
        for index in (0..count).rev() {
            lab.ok(&format!("{RUN} --output {output} --shard {index}/{count}"));
        }
        assert!(lab.bytes(&output) == full, "{count} shards");
        let record: toml::Table = lab.read_text(&format!("{output}/fbp-run.toml")).parse().unwrap();
        assert_eq!(record["facts"]["jobs"].as_array().unwrap().len(), count);
        assert_eq!(hidden(&lab, &output), [] as [PathBuf; 0]);
    }
}

/// The longer the run, the larger its chunks; its first slices stay what they are.
#[test]
fn chunks_of_1_3_7_and_64_slices_give_the_same_bytes() {
    let (lab, _) = lab();
    lab.directory("many");
    for slice in 0..512 {
        let from = lab.path(format!("sin/s_{:04}.tif", slice % TALL.slices));
        fs::hard_link(from, lab.path(format!("many/s_{slice:04}.tif"))).unwrap();
    }
    let mut first: Option<Files> = None;
    for (slices, chunk) in [(8, 1), (24, 3), (56, 7), (512, 64)] {
        let flags = "--device cpu --slices-per-pass 1 --algorithm standard --overwrite --report report.json";
        lab.ok(&format!("reconstruct --sinograms many --rows 0..{slices} {flags} --output many-{slices}"));
        let report: serde_json::Value = serde_json::from_str(&lab.read_text("report.json")).unwrap();
        assert_eq!(report["devices"][0]["chunk"], chunk, "{slices} slices");
        let bytes = lab.bytes(&format!("many-{slices}"));
        assert_eq!(bytes.len(), slices);
        let first = first.get_or_insert_with(|| bytes.clone());
        assert!(first.iter().all(|file| bytes.contains(file)), "chunks of {chunk}");
    }
}

#[test]
fn shards_of_different_runs_do_not_mix() {
    let (lab, _) = lab();
    lab.ok(&format!("{RUN} --output r --shard 0/2"));
    let output = lab.run(&format!("{RUN} --output r --shard 1/2 --filter hann"));
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{err}");
    assert!(err.contains("fbp-run.toml") && err.contains("differs in filter"), "{err}");
    assert_eq!(lab.files("r").len(), 20);
}

#[test]
fn two_runs_do_not_write_into_one_output() {
    let (lab, full) = lab();
    lab.directory("r");
    // whoever has the lock is a run
    let owner =
        fbp::files::Lock::take(&lab.path("r/.fbp-lock"), fbp::files::LockMode::Exclusive, "process 1 on elsewhere")
            .unwrap();
    for args in ["", "--resume", "--overwrite", "--shard 0/2"] {
        let output = lab.run(&format!("{RUN} --output r {args}"));
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{args}: {err}");
        assert!(err.contains("process 1 on elsewhere is writing here") && err.contains("--output"), "{err}");
        assert_eq!(lab.files("r"), [] as [String; 0]);
    }
    drop(owner);
    // shards of one run may, those of another not
    let path = lab.path("r/.fbp-lock");
    let mut shard = fbp::files::Lock::take(&path, fbp::files::LockMode::Shared, "process 2 on elsewhere").unwrap();
    shard.add("run 0123 of process 2 on elsewhere").unwrap();
    let output = lab.run(&format!("{RUN} --output r --shard 0/2 --overwrite"));
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{err}");
    assert!(err.contains("run 0123 of process 2 on elsewhere is writing here"), "{err}");
    drop(shard);
    lab.ok(&format!("{RUN} --output r"));
    assert!(lab.bytes("r") == full);
}

#[test]
fn signals_stop_a_run_that_can_be_resumed() {
    let (lab, full) = lab();
    for name in ["-INT", "-TERM", "-USR1"] {
        lab.directory("r");
        let many = Scan { slices: 300, ..SMALL };
        let sinogram = SMALL.sinograms().pages.remove(0);
        lab.page("one.tif", SMALL.width, &sinogram);
        lab.directory("many");
        for slice in 0..many.slices {
            let link = lab.path(format!("many/s_{slice:05}.tif"));
            if !link.exists() {
                fs::hard_link(lab.path("one.tif"), link).unwrap();
            }
        }
        let args = "reconstruct --sinograms many --device cpu --slices-per-pass 1 --memory 1M --output r";
        let child = start(&lab, "hold=2", &format!("{args} --histogram h.json --sections s.png"));
        wait_for("no slice came", || lab.path("r/slice_00000.tif").exists());
        signal(&child, name);
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        let err = text(&stderr);
        assert_eq!(status.code(), Some(75), "{name}: {err}");
        assert!(err.contains("run again with --resume"), "{err}");
        let first = lab.files("r").len();
        assert!(first > 0 && first < many.slices, "{first}");
        assert_eq!(hidden(&lab, "r"), [] as [PathBuf; 0]);
        assert!(["h.json", "h.png", "s.png", "s-xz.tif"].iter().all(|name| !lab.path(name).exists()), "{name}");
        let (_, err) = lab.ok(&format!("{args} --resume"));
        assert!(err.contains(&format!("{first} of 300 slices are kept")), "{err}");
        assert_eq!(lab.files("r").len(), many.slices);
        fs::remove_dir_all(lab.path("r")).unwrap();
    }
    assert_eq!(full.len(), TALL.slices);
}

#[test]
fn leftovers_of_killed_runs_are_removed() {
    let (lab, full) = lab();
    lab.directory("r");
    for name in [".slice_00003.tif.part-", ".fbp-run.toml.part-", ".fbp-write-test.part-"] {
        lab.text(&format!("r/{name}0123456789abcdef"), "left");
    }
    lab.text("r/.fbp-lock", "left");
    // not of this output
    for name in [".other.tif.part-0123456789abcdef", ".slice_3.tif.part-a"] {
        lab.text(&format!("r/{name}"), "somebody's");
    }
    lab.ok(&format!("{RUN} --output r"));
    assert_eq!(hidden(&lab, "r").len(), 2, "{:?}", hidden(&lab, "r"));
    assert!(lab.bytes("r") == full);
}

#[test]
fn a_lost_device_leaves_whole_slices() {
    let (lab, full) = lab();
    let err = broken(&lab, "lost=0:5", "--output r --memory 300K", 4);
    assert!(err.contains("lost on purpose"), "{err}");
    let kept = check_partial(&lab, &full);
    assert!(kept > 0 && kept < 40, "{kept}");
    let record: toml::Table = lab.read_text("r/fbp-run.toml").parse().unwrap();
    assert!(record["facts"]["jobs"][0]["state"].as_str().unwrap().contains("lost on purpose"));
    let err = resume(&lab, "--output r");
    assert!(err.contains(&format!("{kept} of 40")), "{err}");
    assert!(lab.bytes("r") == full);
}

/// A limit on the size of files stands for a full disk.
#[test]
fn a_full_disk_leaves_whole_slices() {
    let (lab, _) = lab();
    // slices of 4.6 MiB and files of 4 MiB, enough for what drivers keep in files
    let run = format!("{RUN} --size 1100");
    lab.ok(&format!("{run} --rows 0..4 --output all"));
    let full = lab.bytes("all");
    lab.ok(&format!("{run} --rows 0..2 --output r"));
    for (output, more) in [("r", "--resume"), ("one.tif", "")] {
        let script = format!("trap '' XFSZ; ulimit -f 8192; exec \"$0\" {run} --rows 0..4 --output {output} {more}");
        let program = assert_cmd::cargo::cargo_bin("fbp");
        let mut command = Command::new("sh");
        command.args(["-c", &script, program.to_str().unwrap()]).current_dir(lab.path(""));
        let Output { status, stderr, .. } = command.env("FBP_CACHE_DIR", lab.path("cache")).output().unwrap();
        let err = text(&stderr);
        assert_eq!(status.code(), Some(5), "{err}");
        assert!(err.contains(output) && err.contains("cannot be written") && err.contains("free some space"), "{err}");
        assert_no_panic(&err, output);
    }
    assert!(!lab.path("one.tif").exists());
    assert_eq!(hidden(&lab, "r"), [] as [PathBuf; 0]);
    assert_eq!(check_partial(&lab, &full), 2);
    let (_, err) = lab.ok(&format!("{run} --rows 0..4 --output r --resume"));
    assert!(err.contains("2 of 4 slices are kept"), "{err}");
    assert!(lab.bytes("r") == full);
}

/// Gives a disk back, whatever happens.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Disks that are full after a few slices more each, where the system lets tests make some.
#[test]
fn a_disk_may_be_full_at_any_point() {
    let (lab, full) = lab();
    lab.directory("r");
    let mount = |options: &str| {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "none"]).arg(lab.path("r"));
        command.output().is_ok_and(|output| output.status.success())
    };
    let mut counts = Vec::new();
    for kib in [16, 40, 90, 150, 220, 300] {
        if !mount(&format!("size={kib}k")) {
            eprintln!("skipped: no permission to mount a small disk");
            return;
        }
        let _mounted = Mounted(lab.path("r"));
        let err = broken(&lab, "", "--output r", 5);
        assert!(err.contains("No space left"), "{kib} KiB: {err}");
        counts.push(check_partial(&lab, &full));
        assert!(mount("remount,size=4m"), "{kib} KiB");
        resume(&lab, "--output r");
        assert!(lab.bytes("r") == full, "{kib} KiB");
    }
    assert!(counts.is_sorted() && counts[5] > counts[1], "{counts:?}");
}

/// A directory that is not there any more is as one that may not be written to, for the superuser, too.
#[test]
fn an_output_that_goes_away_is_an_error() {
    let (lab, _) = lab();
    let many = "reconstruct --sinograms sin --device cpu --slices-per-pass 1 --size 512 --memory 12M --output r";
    let child = start(&lab, "hold=1:go", many);
    wait_for("no slice came", || lab.path("r/slice_00000.tif").exists());
    let superuser = rustix::process::getuid().is_root();
    match superuser {
        true => fs::rename(lab.path("r"), lab.path("away")).unwrap(),
        false => fs::set_permissions(lab.path("r"), fs::Permissions::from_mode(0o555)).unwrap(),
    }
    lab.text("go", "");
    let output = child.wait_with_output().unwrap();
    let err = text(&output.stderr);
    if !superuser {
        fs::set_permissions(lab.path("r"), fs::Permissions::from_mode(0o755)).unwrap();
    } else {
        fs::rename(lab.path("away"), lab.path("r")).unwrap();
    }
    assert_eq!(output.status.code(), Some(5), "{err}");
    assert!(err.contains("cannot write here") || err.contains("check that the directory exists"), "{err}");
    lab.ok(&format!("{many} --resume"));
    assert_eq!(lab.files("r").len(), 40);
}

#[test]
fn input_that_changes_or_is_damaged_is_an_error() {
    let (lab, full) = lab();
    let many = "reconstruct --sinograms sin --device cpu --slices-per-pass 1 --size 512 --memory 12M --output r";
    let last = lab.path("sin/s_0039.tif");
    let good = fs::read(&last).unwrap();
    for (change, word) in [(0, "has changed"), (1, "bytes and has")] {
        let _ = fs::remove_file(lab.path("go"));
        let child = start(&lab, "hold=1:go", many);
        wait_for("no slice came", || lab.path("r/slice_00000.tif").exists());
        match change {
            0 => fs::write(&last, &good).unwrap(),
            _ => OpenOptions::new().write(true).open(&last).unwrap().set_len(100).unwrap(),
        }
        lab.text("go", "");
        let output = child.wait_with_output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{err}");
        assert!(err.contains("s_0039.tif") && err.contains(word), "{err}");
        assert!(!lab.files("r").is_empty() && lab.files("r").len() < 40);
        fs::remove_dir_all(lab.path("r")).unwrap();
    }
    fs::write(&last, &good).unwrap();
    // a file that has lost its name only is read to its end
    fs::remove_file(lab.path("go")).unwrap();
    let child = start(&lab, "hold=1:go", many);
    wait_for("no slice came", || lab.path("r/slice_00000.tif").exists());
    fs::remove_file(&last).unwrap();
    lab.text("go", "");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(lab.files("r").len(), full.len());
}

//! Every format of `--output` keeps the promises of separate TIFF files: a name means complete values, a run that was stopped
//! goes on, shards add up, and locks keep others away.

use crate::support::all_bytes;
use crate::support::cli::{Lab, Pages, Scan, assert_no_panic, text};
use crate::support::skip::skipped;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const TALL: Scan = Scan { width: 32, projections: 16, slices: 21, overall: 180.0 };
pub const RUN: &str = "reconstruct --sinograms sin --device cpu --slices-per-pass 1 --pixel-size 2um --size 260";

/// Outputs of all slices in one file or directory, with their flags.
pub fn volumes() -> Vec<(&'static str, &'static str)> {
    let mut outputs = vec![("r.npy", ""), ("r.zarr", ""), ("r.zarr", "--ome-zarr 0.5 --compression zstd")];
    if cfg!(feature = "hdf5") {
        outputs.extend([("r.h5", ""), ("r.h5", "--hdf5-parts 4")]);
        outputs.extend([("r.h5", "--compression deflate"), ("r.h5", "--compression deflate --hdf5-parts 4")]);
    }
    outputs
}

/// All outputs that can go on after a stop, but separate files without compression.
fn outputs() -> Vec<(&'static str, &'static str)> {
    let mut outputs = volumes();
    outputs.push(("r", "--compression deflate"));
    outputs
}

/// A scan in `sin`, and its slices.
pub fn lab() -> (Lab, Pages) {
    let lab = Lab::new();
    lab.write("sin", "s", &TALL.sinograms());
    lab.ok(&format!("{RUN} --output whole --histogram whole.json --sections views.png"));
    let whole = lab.read("whole");
    assert_eq!(whole.pages.len(), TALL.slices);
    (lab, whole)
}

/// Names of the hidden files of fbp.
pub fn hidden_files(lab: &Lab) -> Vec<String> {
    let names = fs::read_dir(lab.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.') && (name.contains("fbp") || name.contains("unfinished"))).collect()
}

/// What is beside an output whose run has ended: its record at most.
pub fn check_tidy(lab: &Lab, output: &str) {
    assert_eq!(hidden_files(lab), [] as [String; 0], "{output}");
}

/// Removes an output, with its parts.
pub fn remove(lab: &Lab, output: &str) {
    let path = lab.path(output);
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    let parts = lab.path(format!("{output}.parts"));
    if parts.exists() {
        fs::remove_dir_all(parts).unwrap();
    }
}

/// The parts of an HDF5 output in order.
fn parts_of(lab: &Lab, output: &str) -> Vec<PathBuf> {
    let list = |path: PathBuf| {
        let mut paths: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let directories = list(lab.path(format!("{output}.parts")));
    assert_eq!(directories.len(), 1, "parts of several outputs: {directories:?}");
    list(directories[0].clone())
}

#[test]
fn stopped_runs_go_on() {
    let (lab, whole) = lab();
    for (output, flags) in volumes() {
        let run = format!("{RUN} {flags} --output {output}");
        let failed = lab.command(&run).env("FBP_TEST_FAULT", "lost=0:3").output().unwrap();
        let err = text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(4), "{err}");
        assert_no_panic(&err, &run);
        assert!(!lab.path(output).exists(), "{output} is there before it is complete");
        // what is there is not thrown away by mistake
        lab.fails(&run, 5, &[output, "unfinished", "--resume"]);
        let (_, err) = lab.ok(&format!("{run} --resume --histogram h.json --sections s.png"));
        assert!(err.contains("of 21 slices are kept") && !err.contains(" 0 of 21"), "{err}");
        assert_eq!(lab.read(output), whole, "{output} {flags}");
        check_tidy(&lab, output);
        let without_key = |file: &str| {
            let mut json: serde_json::Value = serde_json::from_str(&lab.read_text(file)).unwrap();
            json["run"].take();
            json
        };
        assert_eq!(without_key("h.json"), without_key("whole.json"));
        for view in ["xy", "xz", "yz"] {
            assert_eq!(lab.read(&format!("s-{view}.tif")), lab.read(&format!("views-{view}.tif")));
        }
        let (_, err) = lab.ok(&format!("{run} --resume"));
        assert!(err.contains("21 of 21 slices are kept; nothing is left to do"), "{err}");
        // a finished one is in the way, and is replaced on demand
        lab.fails(&run, 5, &[output, "exists already", "--overwrite"]);
        lab.ok(&format!("{run} --overwrite --filter hann"));
        assert_ne!(lab.read(output), whole);
        let (_, err) = lab.ok(&format!("{run} --resume"));
        assert!(err.contains("0 of 21 slices are kept; done now: 21 of another run"), "{err}");
        assert_eq!(lab.read(output), whole);
        let (out, _) = lab.ok(&format!("info {output}"));
        assert!(out.contains("slices 0 to 20, values in 1/um, of run") && out.contains("pixels of 2.0 um"), "{out}");
        lab.ok(&format!("compare {output} whole --tolerance 0"));
        let record = format!("{output}-run.toml");
        lab.ok(&format!("reconstruct --config {record} --output again.tif --overwrite"));
        assert_eq!(lab.read("again.tif"), whole);
        remove(&lab, output);
    }
}

/// A slice with other samples than were written is done again, and nothing that is not whole has the name meanwhile.
#[test]
fn damaged_slices_are_done_again() {
    let (lab, whole) = lab();
    for (output, flags) in volumes() {
        let run = format!("{RUN} {flags} --output {output}");
        lab.ok(&run);
        let path = match output {
            "r.h5" if flags.contains("--hdf5-parts") => parts_of(&lab, "r.h5").remove(3),
            "r.h5" | "r.npy" => lab.path(output),
            _ if flags.is_empty() => lab.path("r.zarr/0/3/0/0"),
            _ => lab.path("r.zarr/0/c/3/0/0"),
        };
        let mut bytes = fs::read(&path).unwrap();
        let at = match output {
            "r.h5" if flags.contains("deflate") => middle_of_chunk(&path, flags.contains("--hdf5-parts")),
            "r.h5" | "r.npy" => {
                let samples: &[u8] = bytemuck::cast_slice(&whole.pages[3][130 * 260..130 * 260 + 32]);
                bytes.windows(samples.len()).position(|window| window == samples).unwrap()
            }
            _ => bytes.len() / 2,
        };
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        let (_, err) = lab.ok(&format!("{run} --resume"));
        assert!(err.contains("20 of 21 slices are kept; done now: 1 torn"), "{output}: {err}");
        assert_eq!(lab.read(output), whole);
        check_tidy(&lab, output);
        remove(&lab, output);
    }
}

/// A byte of the compressed slice 3 of an HDF5 output, or of its part 3, where it is the first.
#[cfg(feature = "hdf5")]
fn middle_of_chunk(path: &Path, part: bool) -> usize {
    let (name, chunk) = if part { ("/data", 0) } else { ("/entry/reconstruction/results/data", 3) };
    let data = hdf5_metno::File::open(path).unwrap().dataset(name).unwrap();
    let chunk = data.chunk_info(chunk).unwrap();
    (chunk.addr + chunk.size / 2) as usize
}

#[cfg(not(feature = "hdf5"))]
fn middle_of_chunk(_: &Path, _: bool) -> usize {
    unreachable!("there is no HDF5 output")
}

#[test]
fn shards_add_up() {
    let (lab, whole) = lab();
    for (output, flags) in outputs() {
        let run = format!("{RUN} {flags} --output {output}");
        let mut expected = None;
        for count in [1, 2, 5] {
            // the last first
            for index in (0..count).rev() {
                let (_, err) = lab.ok(&format!("{run} --shard {index}/{count}"));
                if output != "r" {
                    assert_eq!(lab.path(output).exists(), index == 0, "{output} {index}/{count}");
                    assert_eq!(err.contains("will appear when all of its slices are written"), index > 0, "{err}");
                }
                if index == 1 && count == 5 {
                    lab.fails(&format!("{run} --shard 2/5"), 5, &[output]);
                    lab.fails(&format!("{run} --shard 0/5 --filter hann"), 5, &["run.toml", "differs in filter"]);
                }
            }
            assert_eq!(lab.read(output), whole, "{output} in {count}");
            check_tidy(&lab, output);
            if output == "r.zarr" {
                let coarse = lab.read("r.zarr/1");
                assert_eq!((coarse.pages.len(), coarse.width), (11, 130));
                let files = all_bytes(&lab.path(output));
                assert!(expected.get_or_insert_with(|| files.clone()) == &files, "{output} in {count}");
            }
            remove(&lab, output);
            if output != "r" {
                remove(&lab, &format!("{output}-run.toml"));
            }
        }
        // shards at the same time
        let children: Vec<_> = (0..3).map(|index| start(&lab, "", &format!("{run} --shard {index}/3"))).collect();
        for child in children {
            let ended = child.wait_with_output().unwrap();
            assert_eq!(ended.status.code(), Some(0), "{output}: {}", text(&ended.stderr));
        }
        assert_eq!(lab.read(output), whole, "{output}");
        assert!(expected.is_none_or(|expected| expected == all_bytes(&lab.path(output))), "{output} at the same time");
        check_tidy(&lab, output);
        remove(&lab, output);
        if output != "r" {
            remove(&lab, &format!("{output}-run.toml"));
        }
    }
}

pub fn start(lab: &Lab, fault: &str, args: &str) -> std::process::Child {
    Command::new(assert_cmd::cargo::cargo_bin("fbp"))
        .args(args.split_whitespace())
        .current_dir(lab.path(""))
        .env("FBP_CACHE_DIR", lab.path("cache"))
        .env("FBP_TEST_FAULT", fault)
        .env("XDG_CONFIG_HOME", lab.path("no-configuration"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until a run has slices in a volume without its name, which cannot be opened while it is being made.
pub fn wait_for_slices(target: &fbp::sink::Target) {
    let began = Instant::now();
    while !matches!(target.unfinished_slices(), Ok(1..)) {
        assert!(began.elapsed() < Duration::from_secs(120), "{target}: no slice came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn killed_runs_have_a_name_when_they_are_complete() {
    let (lab, whole) = lab();
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut within = 0;
    for (output, flags) in volumes() {
        let run = format!("{RUN} {flags} --memory 3M --output {output}");
        let began = Instant::now();
        lab.ok(&run);
        let longest = began.elapsed();
        remove(&lab, output);
        for kill in 0..8 {
            let moment = longest.mul_f64(random.random_range(0.3..1.0)).max(Duration::from_millis(1));
            let args = format!("{run} {}", if kill == 0 { "--overwrite" } else { "--resume" });
            // the first is killed when it has slices and goes on after that no more, the others at any moment
            let mut child = start(&lab, if kill == 0 { "hold=2" } else { "" }, &args);
            let target = fbp::sink::Target::parse(lab.path(output).to_str().unwrap()).unwrap();
            match kill {
                0 => wait_for_slices(&target),
                _ => std::thread::sleep(moment),
            }
            let _ = child.kill(); // it may have ended
            child.wait().unwrap();
            if lab.path(output).exists() {
                assert_eq!(lab.read(output), whole, "{output} is torn at {moment:?}");
                remove(&lab, output);
                continue;
            }
            within += usize::from(target.unfinished_slices().unwrap() > 0);
        }
        let (_, err) = lab.ok(&format!("{run} --resume"));
        assert_eq!(lab.read(output), whole, "{output} {flags}: {err}");
        check_tidy(&lab, output);
        remove(&lab, output);
    }
    println!("{within} of {} runs were killed within their slices", 8 * volumes().len());
    assert!(within >= volumes().len(), "slices of killed runs were lost");
}

/// What cannot be opened may hold slices: every later run stops, and the output is kept until it can be opened.
#[test]
fn unreadable_unfinished_outputs_stop_a_run() {
    let (lab, whole) = lab();
    for (output, flags) in volumes() {
        let run = format!("{RUN} {flags} --output {output}");
        let failed = lab.command(&run).env("FBP_TEST_FAULT", "lost=0:3").output().unwrap();
        assert_eq!(failed.status.code(), Some(4), "{}", text(&failed.stderr));
        let hidden = lab.path(format!(".{output}.unfinished"));
        // HDF5 cannot be opened because of the fault below
        let damaged = match (output, flags) {
            ("r.zarr", "") => hidden.join("1/.zarray"),
            ("r.zarr", _) => hidden.join("1/zarr.json"),
            _ => hidden.clone(),
        };
        let content = fs::read(&damaged).unwrap();
        if output != "r.h5" {
            fs::write(&damaged, "{").unwrap();
        }
        for more in ["", "--resume", "--overwrite", "--shard 0/2", "--filter hann --resume"] {
            let command = format!("{run} {more}");
            let stopped = lab.command(&command).env("FBP_TEST_FAULT", "hdf5=crash").output().unwrap();
            let words = [&format!(".{output}.unfinished"), "is kept, but cannot be read", "remove it"];
            lab.check_failure(&stopped, &command, 5, &words);
        }
        fs::write(&damaged, content).unwrap();
        let (_, err) = lab.ok(&format!("{run} --resume"));
        assert!(err.contains("of 21 slices are kept") && !err.contains(" 0 of 21"), "{err}");
        assert_eq!(lab.read(output), whole, "{output} {flags}");
        check_tidy(&lab, output);
        remove(&lab, output);
    }
}

/// An output that would replace an input is refused before anything is done, with `--dry-run`, too.
#[test]
fn inputs_are_not_replaced() {
    let lab = Lab::small();
    lab.ok("preprocess --projections proj --output p.zarr");
    lab.write_single("p.tif", &lab.read("proj"));
    lab.write("dark", "d", &lab.read("proj").map(|line| line - 1000.0));
    lab.write("bright", "b", &lab.read("proj").map(|line| line + 1000.0));
    let mut cases = vec![
        ("--projections p.zarr", "p.zarr"),
        ("--projections p.zarr/0", "p.zarr"),
        ("--projections proj --flats p.zarr/0 --darks dark", "p.zarr"),
        ("--projections proj --flats bright --darks p.zarr", "./p.zarr/"),
        ("--projections proj --flats p.tif", "p.tif"),
        ("--raw p.tif,32x3x4,u8", "p.tif"),
        ("--projections proj", "proj/p_%04i.tif"),
    ];
    if cfg!(feature = "hdf5") {
        lab.ok("preprocess --projections proj --output p.h5 --overwrite");
        lab.ok("reconstruct --sinograms sin --hdf5-parts 2 --output r.h5 --device cpu");
        let part = parts_of(&lab, "r.h5").remove(0);
        let part = part.strip_prefix(lab.path("")).unwrap().to_str().unwrap().to_owned();
        cases.push(("--projections proj --flats p.h5::/entry/reconstruction/results/data", "p.h5"));
        for more in ["", "--dry-run"] {
            let run = format!("reconstruct --sinograms {part}::/data --output r.h5 --overwrite {more}");
            lab.fails(&run, 5, &["--output", "r.h5", "input"]);
        }
    }
    let before = all_bytes(&lab.path(""));
    for (input, output) in cases {
        for run in ["reconstruct", "reconstruct --dry-run", "reconstruct --center auto", "preprocess"] {
            let words = ["--output", "of the input", output.trim_matches(['.', '/'])];
            let words = if output.contains('%') { &words[..2] } else { &words[..] };
            if run != "preprocess" || !output.contains('%') {
                lab.fails(&format!("{run} {input} --overwrite --output {output}"), 5, words);
            }
        }
    }
    assert!(all_bytes(&lab.path("")) == before);
    // beside it, all is well
    lab.ok("reconstruct -q --projections p.zarr/0 --overwrite --output p.zarr.tif --device cpu");
}

/// Flags that the format of the output does not have are refused before any file is opened.
#[test]
fn flags_of_other_formats() {
    let lab = Lab::new();
    let mut cases = vec![
        ("r.zarr", "--hdf5-parts 2", "ends in .h5"),
        ("r", "--hdf5-parts 1", "ends in .h5"),
        ("r.tif", "--ome-zarr 0.4", "ends in .zarr"),
        ("r-%03i.tif", "--ome-zarr 0.5", "ends in .zarr"),
        ("r.zarr", "--compression lzw", "none or deflate or zstd"),
        ("r.npy", "--compression zstd", "give none"),
        ("r.npy", "--ome-zarr 0.4", "ends in .zarr"),
    ];
    if cfg!(feature = "hdf5") {
        cases.push(("r.h5", "--ome-zarr 0.5", "ends in .zarr"));
        cases.push(("r.h5", "--compression zstd", "only with a plugin; give none or deflate"));
    }
    for (output, flag, words) in cases {
        for more in ["", "--dry-run"] {
            let name = flag.split_once(' ').unwrap().0;
            let run = format!("reconstruct --sinograms nothing --output {output} {flag} {more}");
            lab.fails(&run, 2, &[name, output, words]);
        }
    }
}

/// One file of all slices is a BigTIFF if it is large; the sizes are made small for this.
#[test]
fn large_files_are_big() {
    let (lab, whole) = lab();
    for (flags, fault, version) in
        [("", "classic=1000000", 43), ("--compression zstd", "classic=1000000", 43), ("", "classic=100000000", 42)]
    {
        let run = format!("{RUN} {flags} --output r.tif --overwrite");
        let done = lab.command(&run).env("FBP_TEST_FAULT", fault).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        assert_eq!(fs::read(lab.path("r.tif")).unwrap()[2], version, "{flags} {fault}");
        assert_eq!(lab.read("r.tif"), whole, "{flags} {fault}");
        let mut decoder = tiff::decoder::Decoder::new(fs::File::open(lab.path("r.tif")).unwrap()).unwrap();
        for page in &whole.pages {
            let tiff::decoder::DecodingResult::F32(values) = decoder.read_image().unwrap() else { panic!("{fault}") };
            assert_eq!(&values, page);
            if decoder.more_images() {
                decoder.next_image().unwrap();
            }
        }
        assert!(!decoder.more_images());
    }
}

#[test]
fn a_full_disk_leaves_complete_slices() {
    let (lab, whole) = lab();
    let disk = lab.path("disk");
    fs::create_dir(&disk).unwrap();
    let mount = |options: &str| {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(&disk).output();
        mounted.is_ok_and(|output| output.status.success())
    };
    let mut ended = Vec::new();
    for (output, flags) in volumes() {
        // half of the slices: 21 of 352 KiB
        if !mount("size=4m") {
            return skipped("small-disk", "no permission to mount a small disk");
        }
        let run = format!("{RUN} {flags} --memory 3M --output disk/{output}");
        let failed = lab.run(&run);
        let there = disk.join(output).exists();
        // with more room it goes on
        let grown = mount("remount,size=64m");
        let resumed = lab.run(&format!("{run} --resume"));
        let slices = lab.read(&format!("disk/{output}"));
        ended.push((output, failed, there, grown, resumed, slices));
        // programs that other tests start may have inherited files that the library for HDF5 opened
        assert!(Command::new("umount").arg("--lazy").arg(&disk).status().unwrap().success());
    }
    for (output, failed, there, grown, resumed, slices) in ended {
        let err = text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(5), "{output}: {err}");
        assert!(err.contains("No space left") && err.contains(output), "{err}");
        assert!(!there && grown, "{output}");
        let err = text(&resumed.stderr);
        assert_eq!(resumed.status.code(), Some(0), "{output}: {err}");
        assert!(err.contains("of 21 slices are kept") && !err.contains(" 0 of 21"), "{err}");
        assert_eq!(slices, whole, "{output}");
    }
}

/// The parts of an HDF5 output are there exactly as long as the output, and only as its parts.
#[cfg(feature = "hdf5")]
#[test]
fn parts_belong_to_their_output() {
    let (lab, whole) = lab();
    let run = format!("{RUN} --output r.h5");
    // in the way
    lab.text("r.h5.parts", "mine");
    lab.fails(&format!("{run} --hdf5-parts 2"), 5, &["r.h5", "r.h5.parts must be a directory"]);
    assert_eq!(lab.read_text("r.h5.parts"), "mine");
    fs::remove_file(lab.path("r.h5.parts")).unwrap();
    for wrong in ["0", "65"] {
        lab.fails(&format!("{run} --hdf5-parts {wrong}"), 2, &["--hdf5-parts", wrong, "1 to 64"]);
    }

    // each replaces the one before, with another number of parts, at most one for each slice
    let mut previous = PathBuf::new();
    for (parts, expected) in [(4, 4), (64, TALL.slices), (2, 2)] {
        lab.ok(&format!("{run} --hdf5-parts {parts} --overwrite"));
        assert_eq!(lab.read("r.h5"), whole);
        let files = parts_of(&lab, "r.h5");
        assert_eq!(files.len(), expected);
        assert!(!previous.exists());
        previous.clone_from(&files[0]);
        check_tidy(&lab, "r.h5");
    }
    // a run that fails leaves the one that is to be replaced
    let failing = format!("{run} --hdf5-parts 3 --filter hann --overwrite");
    let failed = lab.command(&failing).env("FBP_TEST_FAULT", "lost=0:3").output().unwrap();
    assert_eq!(failed.status.code(), Some(4), "{}", text(&failed.stderr));
    assert_eq!(lab.read("r.h5"), whole);
    assert_eq!(parts_of(&lab, "r.h5").len(), 2);
    lab.ok(&format!("{run} --hdf5-parts 3 --filter hann --resume"));
    assert_ne!(lab.read("r.h5"), whole);
    assert_eq!(parts_of(&lab, "r.h5").len(), 3);
    lab.ok(&format!("{run} --overwrite"));
    assert!(!lab.path("r.h5.parts").exists());

    // it reads the same elsewhere
    lab.ok(&format!("{run} --hdf5-parts 4 --overwrite"));
    lab.directory("elsewhere");
    for name in ["r.h5", "r.h5.parts"] {
        fs::rename(lab.path(name), lab.path(format!("elsewhere/{name}"))).unwrap();
    }
    assert_eq!(lab.read("elsewhere/r.h5"), whole);
    lab.ok("compare elsewhere/r.h5::/entry/reconstruction/results/data whole --tolerance 0");
    let (out, _) = lab.ok("info elsewhere/r.h5");
    assert!(out.contains("in 4 parts"), "{out}");
    fs::remove_file(&parts_of(&lab, "elsewhere/r.h5")[1]).unwrap();
    lab.fails("compare elsewhere/r.h5 whole", 3, &["r.h5", "part-001.h5", "missing"]);
}

/// Wherever a run is killed while outputs get and lose their names, the next one goes on or cleans up.
#[cfg(feature = "hdf5")]
#[test]
fn parts_and_their_output_get_their_names_together() {
    let (lab, whole) = lab();
    let run = format!("{RUN} --output r.h5 --hdf5-parts 4");
    let rename = |from: &str, to: &str| fs::rename(lab.path(from), lab.path(to)).unwrap();
    let check = |resumed: &str, kept: &str| {
        let (_, err) = lab.ok(&format!("{run} {resumed}"));
        assert!(err.contains(kept), "{err}");
        assert_eq!(lab.read("r.h5"), whole);
        assert_eq!(parts_of(&lab, "r.h5").len(), 4);
        check_tidy(&lab, "r.h5");
    };
    // the parts have their name, and the output has not
    lab.ok(&run);
    rename("r.h5", ".r.h5.unfinished");
    lab.fails(&run, 5, &["r.h5", "unfinished run with 21 slices", "--resume"]);
    check("--resume", "21 of 21 slices are kept");
    rename("r.h5", ".r.h5.unfinished");
    check("--overwrite", "");
    // neither has, nor has anything been removed of an output of another run
    lab.ok(&format!("{run} --filter hann --overwrite"));
    let other = parts_of(&lab, "r.h5");
    rename("r.h5", ".r.h5.unfinished");
    rename(other[0].parent().unwrap().strip_prefix(lab.path("")).unwrap().to_str().unwrap(), ".r.h5.unfinished.parts");
    check("--resume", "0 of 21 slices are kept");
    // the output that was replaced is not yet removed
    let run_key = parts_of(&lab, "r.h5")[0].parent().unwrap().to_owned();
    fs::rename(&run_key, lab.path("kept")).unwrap();
    rename("r.h5", "kept.h5");
    lab.ok(&format!("{run} --filter hann"));
    rename("r.h5", ".r.h5.unfinished");
    rename("kept.h5", "r.h5");
    fs::rename(lab.path("kept"), &run_key).unwrap();
    assert_eq!(fs::read_dir(lab.path("r.h5.parts")).unwrap().count(), 2);
    check("--resume", "");
    // parts without an output
    lab.directory(".r.h5.unfinished.parts");
    lab.text(".r.h5.unfinished.parts/part-000.h5", "");
    check("--resume", "21 of 21 slices are kept");
    // a lost part
    fs::remove_file(&parts_of(&lab, "r.h5")[2]).unwrap();
    check("--resume", "");
}

#[test]
fn others_are_kept_away() {
    let (lab, _) = lab();
    for (output, flags) in volumes() {
        let path = lab.path(format!(".{output}.fbp-lock"));
        let owner = fbp::files::Lock::take(&path, fbp::files::LockMode::Exclusive, "process 1 on elsewhere").unwrap();
        for more in ["", "--resume", "--overwrite", "--shard 0/2"] {
            let words = ["process 1 on elsewhere is writing here", "--output"];
            lab.fails(&format!("{RUN} {flags} --output {output} {more}"), 5, &words);
        }
        drop(owner);
        assert!(!lab.path(output).exists());
        lab.fails(&format!("{RUN} --output {output} --compression lzw"), 2, &["--compression", "lzw", "none"]);
        // a directory that is something else is not removed
        lab.directory("r.zarr");
        lab.text("r.zarr/mine.txt", "mine");
        lab.fails(&format!("{RUN} --output r.zarr --overwrite"), 5, &["r.zarr", "not written by fbp"]);
        assert_eq!(lab.read_text("r.zarr/mine.txt"), "mine");
        remove(&lab, "r.zarr");
    }
}

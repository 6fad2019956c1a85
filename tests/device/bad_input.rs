//! Whatever is wrong with flags, files, device or output: the right exit code, one message that names it, and no file
//! that looks like a result.

use crate::support::cli::{F32, Lab, Pages, SMALL, Scan, text};
use fbp::sink::{Dtype, Encoding, write_image};
use predicates::prelude::*;
use serde_json::{Value, json};
use std::fs;
#[cfg(unix)]
use std::time::Duration;

/// One run a line: arguments after `fbp reconstruct`, words of the message.
type Cases<'a> = &'a [(&'a str, &'a [&'a str])];

fn all_fail(lab: &Lab, code: i32, cases: Cases) {
    for (args, words) in cases {
        lab.fails(&format!("reconstruct {args}"), code, words);
    }
}

#[test]
fn files_that_are_missing_or_do_not_fit() {
    let lab = Lab::small();
    lab.directory("empty");
    lab.directory("notes");
    lab.text("notes/readme.txt", "no slices here");
    lab.text("few.txt", "0\n90\n");
    lab.text("nan.txt", &("0\n".repeat(15) + "nan\n"));
    lab.text("words.txt", "0 # start\nabout ninety\n");
    lab.text("none.txt", "# nothing\n");
    lab.page("other/f_0.tif", 31, &[1.0; 31 * 3]);
    all_fail(
        &lab,
        3,
        &[
            ("--sinograms nowhere -o out", &["--sinograms", "nowhere", "does not exist"]),
            ("--projections nowhere.tif -o out", &["--projections", "nowhere.tif"]),
            ("--sinograms empty -o out", &["--sinograms", "empty", "no TIFF"]),
            ("--sinograms notes -o out", &["notes", "readme.txt"]),
            ("--sinograms empty/*.tif -o out", &["empty/*.tif", "glob"]),
            ("--sinograms sin --angles nowhere.txt -o out", &["--angles", "nowhere.txt"]),
            ("--sinograms sin --angles few.txt -o out", &["--angles", "few.txt", "2 angles", "16 projections"]),
            ("--sinograms sin --angles nan.txt -o out", &["--angles", "nan.txt", "line 16", "nan"]),
            ("--sinograms sin --angles words.txt -o out", &["words.txt", "line 2", "about ninety"]),
            ("--sinograms sin --angles none.txt -o out", &["none.txt", "0 angles"]),
            ("--sinograms sin --angles notes -o out", &["--angles", "notes"]),
            ("--sinograms sin --center-shifts few.txt -o out", &["--center-shifts", "2 shifts", "16 projections"]),
            ("--sinograms sin --center-shifts nan.txt -o out", &["--center-shifts", "nan.txt", "line 16"]),
            ("--sinograms sin --center-shifts nowhere.txt -o out", &["--center-shifts", "nowhere.txt"]),
            ("--projections proj --flats nowhere -o out", &["--flats", "nowhere"]),
            ("--projections proj --flats empty -o out", &["--flats", "empty"]),
            ("--projections proj --flats proj --darks nowhere -o out", &["--darks", "nowhere"]),
            ("--projections proj --flats other -o out", &["--flats", "other", "31x3", "32x3"]),
            ("--projections proj --flats proj --darks other -o out", &["--darks", "31x3", "32x3"]),
            ("--projections proj --flats proj --flats2 other -o out", &["--flats2", "31x3", "32x3"]),
        ],
    );
    // the same holds without a run
    all_fail(&lab, 3, &[("--sinograms sin --angles few.txt --dry-run", &["few.txt"])]);
    lab.fails("info nowhere", 3, &["nowhere"]);
    lab.fails("compare sin nowhere", 3, &["nowhere"]);
    lab.fails("compare sin proj", 3, &["3 page(s) of 32x16", "16 page(s) of 32x3"]);
    lab.fails("phantom --size 8 --projections 4 --angles few.txt --output out", 3, &["--angles", "2 angles"]);
}

/// What holds for `--hdf5` in builds with HDF5 and without; tests/hdf5.rs has the rest.
#[test]
fn hdf5_is_input_of_its_own() {
    let lab = Lab::small();
    let refused = |args: &str, words: &[&str]| lab.fails(&format!("reconstruct {args} --output out"), 2, words);
    refused("--hdf5 scan.h5 --sinograms sin", &["--sinograms and --hdf5", "one of them"]);
    refused("--projections proj --hdf5-data /scan", &["--hdf5-data", "--hdf5, which is missing"]);
    match cfg!(feature = "hdf5") {
        true => {
            refused("--hdf5 scan.h5 --flats proj --hdf5-flats d", &["--flats and --hdf5-flats", "give one of them"]);
            refused("--hdf5 scan.h5 --darks proj --hdf5-darks d", &["--darks and --hdf5-darks", "give one of them"]);
            refused("--hdf5 scan.h5 --flats2 proj", &["--flats2: needs --flats"]);
            refused("--hdf5 scan.h5 --watch 5", &["--watch", "--hdf5"]);
            refused("--hdf5 scan.h5 --hdf5-angles a --overall-angle 180", &["--hdf5-angles and --overall-angle"]);
        }
        false => {
            refused("--hdf5 scan.h5", &["--hdf5", "built without HDF5", "--features hdf5", "libhdf5-dev"]);
        }
    }
}

#[test]
fn one_odd_file_in_a_stack() {
    let good = Scan { slices: 5, ..SMALL }.sinograms();
    let spoil = |name: &str, spoil: &dyn Fn(&Lab), words: &[&str]| {
        let lab = Lab::new();
        lab.write("sin", "s", &good);
        spoil(&lab);
        for flag in ["--sinograms", "--projections"] {
            lab.fails(&format!("reconstruct {flag} sin -o out"), 3, &[&[flag, name], words].concat());
        }
    };
    let cut = |keep: fn(usize) -> usize| {
        move |lab: &Lab| {
            let path = lab.path("sin/s_0003.tif");
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..keep(bytes.len())]).unwrap();
        }
    };
    let other = |width: usize, height: usize| {
        move |lab: &Lab| {
            lab.page("sin/s_0002.tif", width, &vec![0.0; width * height]);
        }
    };
    spoil("s_0002.tif", &other(33, 16), &["33x16", "32x16"]);
    spoil("s_0002.tif", &other(32, 15), &["32x15", "32x16"]);
    spoil("s_0003.tif", &cut(|n| n / 2), &[]);
    spoil("s_0003.tif", &cut(|n| n - 2), &[]);
    spoil("s_0003.tif", &cut(|_| 5), &[]);
    spoil("s_0003.tif", &cut(|_| 0), &[]);
    spoil("s_0001.tif", &|lab| lab.text("sin/s_0001.tif", "this is not a picture\n"), &[]);
    spoil(
        "s_0004.tif",
        &|lab| {
            let encoding = Encoding { dtype: Dtype::U16, range: Some((0.0, 1.0)) };
            write_image(&lab.path("sin/s_0004.tif"), 32, 16, &[0.0; 512], encoding, "test").unwrap();
        },
        &["others"],
    );
    // a projection at 180 degrees that some beamlines put beside the scan
    spoil("zz_180deg.tif", &|lab| lab.page("sin/zz_180deg.tif", 32, &good.pages[0]), &["glob"]);
    spoil("s_2.tif", &|lab| lab.page("sin/s_2.tif", 32, &good.pages[2]), &["s_0002.tif"]);
}

#[test]
fn the_data_end_before_the_header_says() {
    // the header comes first here, so that only the data are cut
    let (width, height) = (32u32, 16u32);
    let mut file = b"II\x2a\0\x08\0\0\0".to_vec();
    let entries: [(u16, u16, u32); 9] = [
        (256, 4, width),
        (257, 4, height),
        (258, 3, 32),
        (259, 3, 1),
        (262, 3, 1),
        (273, 4, 8 + 2 + 9 * 12 + 4),
        (278, 4, height),
        (279, 4, width * height * 4),
        (339, 3, 3),
    ];
    file.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, value) in entries {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    let full = SMALL.sinograms().pages[0].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let lab = Lab::small();
    lab.directory("cut");
    for (number, keep) in [full.len(), full.len() - 700, full.len()].into_iter().enumerate() {
        let bytes = [&file[..], &full[..keep]].concat();
        fs::write(lab.path(format!("cut/s_{number}.tif")), bytes).unwrap();
    }
    lab.fails("reconstruct --sinograms cut -o out", 3, &["--sinograms", "s_1.tif"]);
    lab.fails("reconstruct --sinograms cut/s_1.tif -o out", 3, &["s_1.tif"]);
    lab.ok("reconstruct -q --sinograms cut/s_[02].tif -o good");
    assert_eq!(lab.files("good").len(), 2);
}

#[test]
fn flags_that_make_no_sense() {
    let lab = Lab::small();
    lab.fails("reconstruct --sinogram sin -o out", 2, &["--sinogram"]);
    lab.fails("reconstruct --sinograms sin -o out --centre 3", 2, &["--centre", "--center"]);
    lab.fails("frobnicate", 2, &["frobnicate"]);
    all_fail(
        &lab,
        2,
        &[
            ("-o out", &["--sinograms", "--projections"]),
            ("--sinograms sin --projections proj -o out", &["--sinograms", "--projections", "one of them"]),
            ("--sinograms sin", &["--output"]),
            ("--sinograms sin --flats proj -o out", &["--flats", "--projections"]),
            ("--projections proj --darks proj -o out", &["--darks", "--flats"]),
            ("--projections proj --flats2 proj -o out", &["--flats2", "--flats"]),
            ("--sinograms sin -o out --center nan", &["--center", "nan"]),
            ("--sinograms sin -o out --center inf", &["--center", "inf"]),
            ("--sinograms sin -o out --center 9999", &["--center", "9999", "31"]),
            ("--sinograms sin -o out --center -50", &["--center", "-50", "31"]),
            ("--sinograms sin -o out --center=-50", &["--center", "-50", "31"]),
            ("--sinograms sin -o out --center 31.01", &["--center", "31.01"]),
            ("--sinograms sin -o out --center left", &["--center", "left"]),
            ("--sinograms sin -o out --roi 0,0,33,32", &["--roi", "32 x 32"]),
            ("--sinograms sin -o out --roi 30,30,4,4", &["--roi", "30,30,4,4"]),
            ("--sinograms sin -o out --roi 1,2,3", &["--roi", "X,Y,W,H"]),
            ("--sinograms sin -o out --roi 0,0,0,4", &["--roi"]),
            ("--sinograms sin -o out --roi 0,0,18446744073709551615,4", &["--roi"]),
            ("--sinograms sin -o out --rows 2..9", &["--rows", "2..9", "3 slices"]),
            ("--sinograms sin -o out --rows 3", &["--rows", "3 slices"]),
            ("--sinograms sin -o out --rows 2..1", &["--rows", "2..1"]),
            ("--sinograms sin -o out --rows 0..3:0", &["--rows", "step"]),
            ("--sinograms sin -o out --rows ..=18446744073709551615", &["--rows"]),
            ("--sinograms sin -o out --rows 18446744073709551615", &["--rows"]),
            ("--sinograms sin -o out --exclude 0..16", &["--exclude", "no projection"]),
            ("--sinograms sin -o out --exclude 0..8,8..", &["--exclude", "no projection"]),
            ("--sinograms sin -o out --exclude 16", &["--exclude", "16 projections"]),
            ("--sinograms sin -o out --exclude 3,", &["--exclude"]),
            ("--sinograms sin -o out --size 0", &["--size"]),
            ("--sinograms sin -o out --size 999999999", &["--size"]),
            ("--sinograms sin -o out --overall-angle nan", &["--overall-angle"]),
            ("--sinograms sin -o out --overall-angle 0", &["--overall-angle"]),
            ("--sinograms sin -o out --start-angle inf", &["--start-angle"]),
            ("--sinograms sin -o out --angles a.txt --overall-angle 90", &["--angles", "--overall-angle"]),
            ("--sinograms sin -o out --angle-weights heavy", &["--angle-weights", "spacing"]),
            ("--sinograms sin -o out --pixel-size 3furlongs", &["--pixel-size", "furlongs"]),
            ("--sinograms sin -o out --pixel-size 0", &["--pixel-size"]),
            ("--sinograms sin -o out --filter sharp", &["--filter", "sharp"]),
            ("--sinograms sin -o out --filter-cutoff 1.5", &["--filter-cutoff"]),
            ("--sinograms sin -o out --filter-cutoff -1", &["--filter-cutoff"]),
            ("--sinograms sin -o out --padding wrap", &["--padding", "mirror"]),
            ("--sinograms sin -o out --interpolation cubic", &["--interpolation", "nearest"]),
            ("--sinograms sin -o out --mode quick", &["--mode", "fast"]),
            ("--sinograms sin -o out --slices-per-pass 3", &["--slices-per-pass"]),
            ("--sinograms sin -o out --algorithm magic", &["--algorithm", "magic"]),
            ("--sinograms sin -o out --profile nosuch", &["--profile", "nosuch", "default"]),
            ("--sinograms sin -o out --dtype i32", &["--dtype", "u16"]),
            ("--sinograms sin -o out --dtype u16 --range 2,1", &["--range", "2,1"]),
            ("--sinograms sin -o out --dtype u16 --range nan,1", &["--range"]),
            ("--sinograms sin -o out --dtype u16 --percentile 5,101", &["--percentile"]),
            ("--sinograms sin -o out --dtype u16 --percentile 5,95 --range 0,1", &["--percentile", "--range"]),
            ("--sinograms sin -o out --mask 0", &["--mask"]),
            ("--sinograms sin -o out --mask nan", &["--mask"]),
            ("--sinograms sin -o out --memory eight", &["--memory", "eight"]),
            ("--sinograms sin -o out --memory 10", &["--memory"]),
            ("--sinograms sin -o out --device-memory=-1", &["--device-memory"]),
            ("--sinograms sin -o out --progress dots", &["--progress", "json"]),
            ("--sinograms sin -o out/r-%s.tif", &["--output", "%05i"]),
            ("--sinograms sin -o out/r-%i-%i.tif", &["--output"]),
            ("--sinograms sin -o out-%i/r.tif", &["--output"]),
            ("--sinograms sin -o out/r-%05i.png", &["--output", ".tif"]),
            ("--sinograms sin -o out -q -v", &["--quiet", "--verbose"]),
        ],
    );
    for (args, word) in [
        ("phantom --size 0 --projections 4 --output out", "--size"),
        ("phantom --size 8 --projections 4 --noise nan --output out", "--noise"),
        ("phantom --size 8 --projections 4 --kind cat --output out", "cat"),
        ("phantom --size 8 --projections 4 --photons 100 --output out", "--flats"),
        ("phantom --size 8 --projections 4 --as projections --photons 1e5 --flats f --darks d -o out", "--photons"),
        ("phantom --size 8 --projections 4 --as projections --photons -5 --flats f --darks d -o out", "-5"),
        ("compare sin sin --tolerance nan", "--tolerance"),
        ("compare sin sin --mask -1", "-1"),
        ("kernel --profile nosuch", "nosuch"),
        ("kernel --slices-per-pass 7", "--slices-per-pass"),
        ("profiles show nosuch", "nosuch"),
        ("profiles check nowhere.toml", "nowhere.toml"),
        ("completions tcsh", "bash"),
    ] {
        lab.fails(args, 2, &[word]);
    }
}

#[test]
fn shards_that_make_no_sense() {
    let lab = Lab::small();
    all_fail(
        &lab,
        2,
        &[
            ("--sinograms sin -o out --shard 3/3", &["--shard", "3/3", "from 0"]),
            ("--sinograms sin -o out --shard 0/0", &["--shard", "0/0"]),
            ("--sinograms sin -o out --shard 2", &["--shard", "`2`", "I/N"]),
            ("--sinograms sin -o out --shard=-1/4", &["--shard", "-1/4", "I/N"]),
            ("--sinograms sin -o out --shard all", &["--shard", "all", "auto"]),
            ("--sinograms sin -o out --shard auto", &["--shard auto", "SLURM_ARRAY_TASK_ID", "SLURM_PROCID", "I/N"]),
            ("--sinograms sin -o out.tif --shard 0/2", &["--shard", "out.tif", "directory", "pattern"]),
        ],
    );
    let args = "reconstruct --sinograms sin -o out --shard auto";
    let output = lab.command(args).env("SLURM_PROCID", "1").output().unwrap();
    lab.check_failure(&output, args, 2, &["SLURM_NTASKS"]);
    // what is there already: slices of the other shards may be, own ones and other files may not
    lab.ok("reconstruct -q --sinograms sin --shard 1/3 -o shared");
    lab.ok("reconstruct -q --sinograms sin --shard 1/3 -o shared --overwrite");
    lab.text("shared/.slice_00000.tif.part-1-1", "of a run that was killed");
    lab.fails("reconstruct --sinograms sin --shard 1/3 -o shared", 5, &["slice_00001.tif", "exists", "--overwrite"]);
    lab.fails("reconstruct --sinograms sin --shard 1/3 -o shared/slice_%05i.tif", 5, &["slice_00001.tif", "exists"]);
    lab.fails("reconstruct --sinograms sin --rows 2 --shard 0/1 -o shared", 5, &["slice_00001.tif", "no slice of"]);
    lab.ok("reconstruct -q --sinograms sin --shard 2/3 -o shared");
    lab.text("shared/notes.txt", "of another kind");
    lab.fails("reconstruct --sinograms sin --shard 0/3 -o shared", 5, &["shared", "notes.txt", "--overwrite"]);
    lab.ok("reconstruct -q --sinograms sin --shard 0/3 -o shared --overwrite");
    assert_eq!(lab.files("shared").len(), 4);
}

#[test]
fn run_files_and_profiles_with_unknown_keys() {
    let lab = Lab::small();
    let base = "sinograms = \"sin\"\noutput = \"out\"\n";
    for (line, words) in [
        ("algoritm = \"standard\"", ["algoritm", "`algorithm`"]),
        ("centre = 15.5", ["centre", "`center`"]),
        ("slices_per_pass = 4", ["slices_per_pass", "`slices-per-pass`"]),
        ("[geometry]\ncenter = 3", ["geometry", "--help"]),
        ("size = \"big\"", ["size", "big"]),
        ("size = -4", ["size", "-4"]),
        ("padding = \"wrap\"", ["padding", "wrap"]),
        ("center = nan", ["--center", "NaN"]),
        ("center = 99", ["--center", "99"]),
        ("filter = ramp", ["run.toml", "ramp"]),
        ("angles = \"a.txt\"\noverall-angle = 90", ["--angles", "--overall-angle"]),
    ] {
        lab.text("run.toml", &format!("{base}{line}\n"));
        lab.fails("reconstruct --config run.toml", 2, &words);
    }
    lab.fails("reconstruct --config nowhere.toml", 2, &["--config", "nowhere.toml"]);

    let (good, _) = lab.ok("profiles show default");
    for (bad, words) in [
        (good.replacen("title", "titel", 1), vec!["titel"]),
        (format!("colour = \"red\"\n{good}"), vec!["colour"]),
        (good.replacen("work-group = [", "work-group = [4096, ", 1), vec!["mine.toml"]),
        ("not toml at all".into(), vec!["mine.toml"]),
        (String::new(), vec!["mine.toml"]),
    ] {
        lab.text("mine.toml", &bad);
        let words = [&["mine.toml"], &words[..]].concat();
        lab.fails("profiles check mine.toml", 2, &words);
        lab.fails("reconstruct --sinograms sin --profile mine.toml -o out", 2, &words);
        lab.fails("kernel --profile mine.toml", 2, &words);
    }
    lab.fails("reconstruct --sinograms sin --profile nowhere.toml -o out", 2, &["nowhere.toml"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let lab = Lab::small();
    lab.text("file", "in the way");
    lab.write("full", "r", &SMALL.sinograms());
    let before = lab.bytes("full");
    all_fail(
        &lab,
        5,
        &[
            ("--sinograms sin -o file", &["file", "--output"]),
            ("--sinograms sin -o file/out", &["file/out"]),
            ("--sinograms sin -o file/out.tif", &["file"]),
            ("--sinograms sin -o file/r-%03i.tif", &["file"]),
            ("--sinograms sin -o full", &["full", "not empty", "--overwrite"]),
            ("--sinograms sin -o full/r_%04i.tif", &["r_0000.tif", "exists", "--overwrite"]),
            ("--sinograms sin -o full/r_0001.tif", &["r_0001.tif", "exists", "--overwrite"]),
            ("--sinograms sin -o out --log nowhere/log", &["--log", "nowhere/log"]),
            ("--sinograms sin -o out --save-config nowhere/run.toml", &["--save-config", "nowhere/run.toml"]),
            #[cfg(target_os = "linux")]
            ("--sinograms sin -o /proc/out", &["/proc/out"]),
            #[cfg(target_os = "linux")]
            ("--sinograms sin -o /proc/out.tif", &["/proc"]),
        ],
    );
    lab.fails("phantom --size 8 --projections 4 --output full", 5, &["full", "--overwrite"]);
    let phantom = "phantom --size 8 --projections 4 --as projections --photons 1e4 --output out --darks dark";
    lab.fails(&format!("{phantom} --flats full"), 5, &["full", "--overwrite"]);
    lab.fails(&format!("{phantom} --flats f --truth file"), 5, &["--truth", "file", "--overwrite"]);
    lab.fails(&format!("{phantom} --flats f --truth file/t.tif"), 5, &["--truth", "file/t.tif"]);
    assert_eq!(lab.bytes("full"), before);
    assert_eq!(lab.read_text("file"), "in the way");
    // the data are not written over, whatever is asked for
    let before = (lab.bytes("sin"), lab.bytes("proj"));
    for (input, output) in [("sinograms sin", "sin/s_%04i.tif"), ("projections proj", "sin/../proj/p_0001.tif")] {
        lab.fails(&format!("reconstruct --{input} --overwrite -o {output}"), 5, &["--output", "input", "_000"]);
    }
    assert_eq!((lab.bytes("sin"), lab.bytes("proj")), before);
    // what was asked for beside the slices is refused before they are computed
    all_fail(
        &lab,
        5,
        &[
            ("--sinograms sin -o out --report nowhere/r.json", &["--report", "nowhere/r.json"]),
            ("--sinograms sin -o out --preview nowhere/p.png", &["--preview", "nowhere/p.png"]),
        ],
    );
}

/// A limit on the size of files stands for a full disk.
#[cfg(unix)]
#[test]
fn disks_that_fill_up() {
    let lab = Lab::small();
    // 4 MiB, enough for what drivers keep in files
    let script = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" reconstruct -q --sinograms sin $1 -o $2";
    for (size, output) in [("1100", "out"), ("1100", "out/r-%03i.tif"), ("1100", "out.tif"), ("700", "out.tif")] {
        lab.ok(&format!("reconstruct -q --sinograms sin --size {size} --overwrite -o warm"));
        let mut command = assert_cmd::Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_fbp")]).args([format!("--size {size}").as_str(), output]);
        let output = command.current_dir(lab.path(".")).timeout(Duration::from_secs(120)).output().unwrap();
        lab.check_failure(&output, size, 5, &["out"]);
    }
}

#[test]
fn devices_that_are_not_there() {
    let lab = Lab::small();
    lab.directory("no-drivers");
    for args in
        ["devices", "devices --json", "reconstruct --sinograms sin -o out", "reconstruct --sinograms sin --dry-run"]
    {
        let output = lab.command(args).env("OCL_ICD_VENDORS", lab.path("no-drivers")).output().unwrap();
        let err = lab.check_failure(&output, args, 4, &["OpenCL"]);
        let packages = predicate::str::contains("pocl").or(predicate::str::contains("PoCL"));
        assert!(packages.eval(&err) && err.contains("ocl-icd"), "{err}");
    }
    all_fail(
        &lab,
        4,
        &[
            ("--sinograms sin -o out --device nosuch", &["--device", "nosuch", "0 (0:0)"]),
            ("--sinograms sin -o out --device 99", &["--device", "99", "0 (0:0)"]),
            ("--sinograms sin -o out --device 9:9", &["--device", "9", "0 (0:0)"]),
            ("--sinograms sin -o out --device-memory 1K", &["device memory", "1.0 KiB"]),
            ("--sinograms sin --dry-run --device nosuch", &["--device"]),
        ],
    );
    lab.fails("reconstruct --sinograms sin -o out --device=", 2, &["--device"]);
}

/// Replaced values, as reported.
fn clamped(lab: &Lab, report: &str) -> (u64, u64, u64) {
    let report: serde_json::Value = serde_json::from_str(&lab.read_text(report)).unwrap();
    let by = &report["clamped_by_reason"];
    let number = |key: &str| by[key].as_u64().unwrap();
    let counts = (number("non_positive"), number("dead"), number("non_finite"));
    assert_eq!(report["clamped"].as_u64(), Some(counts.0 + counts.1 + counts.2));
    counts
}

fn assert_finite(slices: &Pages) {
    assert!(slices.pages.iter().flatten().all(|v| v.is_finite()));
}

#[test]
fn values_that_are_no_numbers() {
    let lab = Lab::new();
    let mut stack = SMALL.sinograms();
    let (clean, at) = (stack.clone(), [5, 70, 300]);
    for (i, bad) in at.into_iter().zip([f32::NAN, f32::INFINITY, f32::NEG_INFINITY]) {
        stack.pages[1][i] = bad;
    }
    lab.write("sin", "s", &stack);
    lab.write("clean", "s", &clean);
    let (_, err) = lab.ok("reconstruct --sinograms sin -o nan --report r.json --preview p.png");
    assert!(predicate::str::contains("warning: 3 values").eval(&err) && err.contains("3 not finite"), "{err}");
    assert_eq!(clamped(&lab, "r.json"), (0, 0, 3));
    let slices = lab.read("nan");
    assert_finite(&slices);
    // the others are untouched
    let clean = lab.slices("--sinograms clean", "clean-out");
    assert_eq!((&slices.pages[0], &slices.pages[2]), (&clean.pages[0], &clean.pages[2]));
    assert!(lab.path("p.png").is_file());
}

#[test]
fn counts_that_have_no_logarithm() {
    let lab = Lab::new();
    let scan = Scan { slices: 2, ..SMALL };
    let mut counts = scan.sinograms().map(|v| 10.0 + 1000.0 * (-0.02 * v).exp()).turned();
    counts.pages[3][4] = 0.0; // below the dark
    counts.pages[4][5] = 10.0; // at the dark
    counts.pages[5][6] = -7.0;
    lab.write("proj", "p", &counts);
    let mut flat = vec![1010.0; 64];
    lab.page("flats/f_0.tif", 32, &flat);
    lab.page("darks/d_0.tif", 32, &[10.0; 64]);
    (flat[7], flat[8], flat[32 + 7]) = (10.0, 5.0, 0.0); // dead
    lab.page("dead/f_0.tif", 32, &flat);

    let (_, err) =
        lab.ok("reconstruct --projections proj --flats flats --darks darks -o low --report r.json --preview p.png");
    assert!(err.contains("3 values") && err.contains("3 transmissions at or below 0"), "{err}");
    assert_eq!(clamped(&lab, "r.json"), (3, 0, 0));
    assert_finite(&lab.read("low"));

    let (_, err) = lab.ok("reconstruct --projections proj --flats dead --darks darks -o dead-out --report r.json");
    assert!(err.contains("48 where the flat is not above the dark"), "{err}");
    assert_eq!(clamped(&lab, "r.json"), (3, 48, 0));
    let slices = lab.read("dead-out");
    assert_finite(&slices);
    assert!(slices.pages.iter().flatten().all(|v| v.abs() < 10.0));
}

/// Columns that see nothing, a projection without light, a detector at its end: counted, named, and no slice is spoilt.
#[test]
fn detectors_that_failed() {
    let lab = Lab::new();
    let scan = Scan { width: 48, projections: 40, slices: 3, overall: 180.0 };
    let most = scan.sinograms().pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    let counts = scan.sinograms().turned().map(|v| (200.0 + 60000.0 * (-3.0 * v / most).exp()).round());
    let write = |directory: &str, pages: &Pages| {
        std::fs::create_dir(lab.path(directory)).unwrap();
        let range = Some((0.0, 65535.0));
        for (i, page) in pages.pages.iter().enumerate() {
            let path = lab.path(format!("{directory}/p_{i:03}.tif"));
            let encoding = Encoding { dtype: Dtype::U16, range };
            write_image(&path, 48, page.len() / 48, page, encoding, "test").unwrap();
        }
    };
    let mut bad = counts.clone();
    bad.pages[7].fill(0.0);
    bad.pages[9][..48].fill(0.0);
    for page in &mut bad.pages {
        page.iter_mut().skip(11).step_by(48).for_each(|v| *v = 0.0);
    }
    bad.pages[20][48 + 3..48 + 9].fill(65535.0);
    write("good", &counts);
    write("bad", &bad);
    let flat = vec![60200.0; 48 * 3];
    write("flats", &Pages { width: 48, pages: vec![flat.clone()] });
    let mut bright = flat;
    bright[50..54].fill(65535.0);
    write("bright", &Pages { width: 48, pages: vec![bright] });
    write("darks", &Pages { width: 48, pages: vec![vec![200.0; 48 * 3]] });
    let args = "--flats flats --darks darks";
    let (_, err) = lab.ok(&format!("reconstruct --projections bad {args} --output r --report r.json --mask"));
    assert!(err.contains("2 projections have rows without any light, the first is 7; --exclude 7,9 leaves"), "{err}");
    assert!(err.contains("6 counts, and 0 of the flat field, are as large"), "{err}");
    let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    assert_eq!((&report["saturated"], &report["unlit"]), (&json!(6), &json!([7, 9])));
    // two whole projections but for one column in the one of one row, and the column in the others
    assert_eq!(clamped(&lab, "r.json"), (48 * 3 + 48 + 38 * 3 + 2, 0, 0));
    let slices = lab.read("r");
    assert_finite(&slices);

    // what the messages and the pages of the manual tell helps
    let clean = lab.slices(&format!("--projections good {args} --mask 0.9"), "clean");
    let far = |slices: &Pages| {
        let pairs = slices.pages.iter().flatten().zip(clean.pages.iter().flatten());
        (pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / 6912.0).sqrt()
    };
    let before = far(&lab.slices(&format!("--projections bad {args} --mask 0.9"), "before"));
    let steps = "--exclude 7,9 --stripes all:large=7,small=5 --mask 0.9";
    let after = far(&lab.slices(&format!("--projections bad {args} {steps}"), "after"));
    assert!(after < 0.2 * before, "{before} became {after}");

    let (_, err) = lab.ok("reconstruct --projections good --flats bright --darks darks --output bright-out");
    assert!(err.contains("0 counts, and 4 of the flat field"), "{err}");
    assert_finite(&lab.read("bright-out"));
}

#[test]
fn integers_need_a_range() {
    let lab = Lab::new();
    lab.write("zero", "s", &SMALL.sinograms().map(|_| 0.0));
    lab.write("sin", "s", &SMALL.sinograms());
    // constant slices have no percentiles to spread
    for dtype in ["u16", "u8"] {
        let slices = lab.slices(&format!("--sinograms zero --dtype {dtype} --percentile 1,99"), dtype);
        assert!(slices.pages.iter().flatten().all(|&v| v == 0.0));
    }
    let (_, err) = lab.ok("reconstruct --sinograms sin --dtype u16 --range 0,0.5 -o clipped");
    assert!(err.contains("outside the range and were clipped"), "{err}");
    let (_, err) = lab.ok("reconstruct --sinograms sin --dtype u16 -o default");
    assert!(err.contains("percentiles 0.1 and 99.9"), "{err}");
    assert!(lab.read("default").pages.iter().flatten().any(|&v| v > 60000.0));
    let (_, err) = lab.ok("reconstruct --sinograms sin --filter none --dtype f16 --pixel-size 1e-6 -o half");
    assert!(err.contains("too large for f16"), "{err}");
    // a large constant: the values at both percentiles are the same
    let large = Pages { width: 32, pages: vec![vec![3e9; 512]] };
    write_image(&lab.path("large.tif"), 32, 16, &large.pages[0], F32, "test").unwrap();
    lab.ok("reconstruct -q --sinograms large.tif --filter none --roi 16,16,1,1 --dtype u16 -o large-out");
}

#[test]
fn no_arguments_are_a_question() {
    let lab = Lab::new();
    let output = lab.run("");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.contains("Usage") && said.contains("reconstruct") && said.contains("75"), "{said}");
    crate::support::cli::assert_calm(&said, "");
}

/// Results that are doubtful are named.
#[test]
fn what_looks_wrong_is_said() {
    let lab = Lab::small();
    let warned = |args: &str, words: &[&str]| {
        let (_, err) = lab.ok(&format!("reconstruct {args} --output r --overwrite"));
        for word in words {
            assert!(err.contains(word), "`{word}` is not said by fbp {args}\n{err}");
        }
        err
    };
    // counts without flats
    let counts: Vec<f32> = (0..32 * 3).map(|i| 20000.0 + i as f32).collect();
    let encoding = Encoding { dtype: Dtype::U16, range: Some((0.0, 65535.0)) };
    lab.directory("counts");
    for page in 0..16 {
        write_image(&lab.path(format!("counts/p_{page:02}.tif")), 32, 3, &counts, encoding, "test").unwrap();
    }
    warned("--projections counts", &["warning: --projections", "around 20048", "--flats"]);
    assert!(!warned("--projections counts --minus-log", &[]).contains("look like"));
    assert!(!warned("--projections proj", &[]).contains("look like"));
    // angles in radians, behind a byte-order mark
    let scan = Scan { projections: 40, ..SMALL };
    lab.write("forty", "s", &scan.sinograms());
    let angles = |factor: f64| scan.angles().iter().map(|a| format!("{:.8}\n", a * factor)).collect::<String>();
    lab.text("degrees.txt", &format!("\u{feff}{}", angles(1.0)));
    lab.text("radians.txt", &angles(1f64.to_radians()));
    warned("--sinograms forty --angles radians.txt", &["radians.txt", "taken as radians", "# degrees"]);
    let found = lab.read("r");
    assert!(!warned("--sinograms forty --angles degrees.txt", &[]).contains("radians"));
    assert!(crate::support::cli::farthest(&found, &lab.read("r")) < 1e-4);
    // HDF5 where TIFF is expected
    std::fs::write(lab.path("scan.h5"), b"\x89HDF\r\n\x1a\n and more").unwrap();
    for flag in ["--projections", "--sinograms"] {
        lab.fails(&format!("reconstruct {flag} scan.h5 --output out"), 3, &[flag, "scan.h5", "--hdf5"]);
    }
}

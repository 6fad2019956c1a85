//! Flags, run files and profiles that make no sense.

use super::{Cases, all_fail};
use crate::support::cli::{Lab, text};

/// What is read.
const INPUT: Cases = &[
    ("-o out", &["--sinograms", "--projections"]),
    ("--sinograms sin --projections proj -o out", &["--sinograms", "--projections", "one of them"]),
    ("--sinograms sin", &["--output"]),
    ("--sinograms sin --flats proj -o out", &["--flats", "--projections"]),
    ("--projections proj --darks proj -o out", &["--darks", "--flats"]),
    ("--projections proj --flats2 proj -o out", &["--flats2", "--flats"]),
];

/// Axis, region, slices, projections and angles.
const GEOMETRY: Cases = &[
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
];

/// Filter, padding and kernel.
const COMPUTATION: Cases = &[
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
];

/// Slices as they are written, memory and messages.
const OUTPUT: Cases = &[
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
    ("--sinograms sin -o out/r-%05i.png", &["--output", ".tif"]),
    ("--sinograms sin -o out -q -v", &["--quiet", "--verbose"]),
];

/// Other commands: all arguments, and a word of the message.
const OTHER_COMMANDS: &[(&str, &str)] = &[
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
];

#[test]
fn flags_that_make_no_sense() {
    let lab = Lab::small();
    lab.fails("reconstruct --sinogram sin -o out", 2, &["--sinogram"]);
    lab.fails("reconstruct --sinograms sin -o out --centre 3", 2, &["--centre", "--center"]);
    lab.fails("frobnicate", 2, &["frobnicate"]);
    for cases in [INPUT, GEOMETRY, COMPUTATION, OUTPUT] {
        all_fail(&lab, 2, cases);
    }
    for (args, word) in OTHER_COMMANDS {
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
    lab.text("shared/.slice_00000.tif.part-0123456789abcdef", "of a run that was killed");
    lab.fails("reconstruct --sinograms sin --shard 1/3 -o shared", 5, &["slice_00001.tif", "exists", "--overwrite"]);
    lab.fails("reconstruct --sinograms sin --shard 1/3 -o shared/slice_%05i.tif", 5, &["slice_00001.tif", "exists"]);
    lab.fails("reconstruct --sinograms sin --rows 2 --shard 0/1 -o shared", 5, &["slice_00001.tif", "not a slice of"]);
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
fn without_arguments_the_help_is_shown() {
    let lab = Lab::new();
    let output = lab.run("");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.contains("Usage") && said.contains("reconstruct") && said.contains("75"), "{said}");
    crate::support::cli::assert_no_panic(&said, "");
}

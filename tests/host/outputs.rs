//! What is there before a command is replaced only if the program wrote it; its input never is.

use crate::support::cli::{Lab, SMALL};
use clap::CommandFactory;
use fbp::cli::Cli;
use fbp::files::{Lock, LockMode};
use std::collections::BTreeMap;
use std::fs;

/// What a flag or an argument that names a file is for.
#[derive(Clone, Copy)]
enum Use {
    Reads,
    /// Files of a directory or of one name, looked at in tests of their own below.
    Output,
    /// A file beside slices, with its endings, and files that are written beside it.
    Writes(&'static [&'static str], &'static [&'static str]),
}

/// Every flag and argument of every command that names files.
const FLAGS: &[(&str, &[&str], Use)] = &[
    ("reconstruct", &["sinograms", "projections", "hdf5", "raw", "flats", "flats2", "darks"], Use::Reads),
    (
        "reconstruct",
        &["angles", "center_shifts", "weights", "distortion", "beam_current", "config", "profile"],
        Use::Reads,
    ),
    ("reconstruct", &["output"], Use::Output),
    ("reconstruct", &["preview"], Use::Writes(&["png"], &[])),
    ("reconstruct", &["histogram"], Use::Writes(&["json"], &["x.png"])),
    ("reconstruct", &["sections"], Use::Writes(&["png"], &["x-xy.tif", "x-xz.tif", "x-yz.tif"])),
    ("reconstruct", &["report"], Use::Writes(&["json", "html"], &[])),
    ("reconstruct", &["save_config"], Use::Writes(&["toml"], &[])),
    ("reconstruct", &["log"], Use::Writes(&["log"], &[])),
    ("batch", &["table"], Use::Reads),
    ("batch", &["sinograms", "projections", "hdf5", "raw", "flats", "flats2", "darks"], Use::Reads),
    ("batch", &["angles", "center_shifts", "weights", "distortion", "beam_current", "config", "profile"], Use::Reads),
    // each scan is a run
    ("batch", &["output", "preview", "histogram", "sections", "report", "save_config", "log"], Use::Output),
    ("preprocess", &["sinograms", "projections", "hdf5", "raw", "flats", "flats2", "darks"], Use::Reads),
    ("preprocess", &["distortion", "beam_current"], Use::Reads),
    ("preprocess", &["output"], Use::Output),
    ("center", &["sinograms", "projections", "hdf5", "raw", "flats", "flats2", "darks"], Use::Reads),
    ("center", &["angles", "center_shifts", "distortion", "beam_current"], Use::Reads),
    ("center", &["output"], Use::Output),
    ("trials", &["sinograms", "projections", "hdf5", "raw", "flats", "flats2", "darks"], Use::Reads),
    ("trials", &["angles", "center_shifts", "weights", "distortion", "beam_current", "config", "profile"], Use::Reads),
    ("trials", &["output", "log"], Use::Output),
    // refused
    ("trials", &["preview", "histogram", "sections", "report", "save_config"], Use::Output),
    ("report", &["run"], Use::Reads),
    ("report", &["output", "index"], Use::Output),
    ("phantom", &["angles"], Use::Reads),
    ("phantom", &["output", "flats", "darks", "truth"], Use::Output),
    ("info", &["path"], Use::Reads),
    ("kernel", &["profile"], Use::Reads),
    ("kernel", &["every"], Use::Output),
    ("model", &["profile"], Use::Reads),
    ("doctor", &["profile"], Use::Reads),
    ("bench", &["profile"], Use::Reads),
    ("bench", &["plot"], Use::Output),
    ("tune", &["profile"], Use::Reads),
    ("tune", &["output"], Use::Output),
    ("man", &["output"], Use::Output),
    ("show", &["profile"], Use::Reads),
    ("check", &["files"], Use::Reads),
];

/// Arguments whose value names a file: by their type or by what the help calls it.
fn names_files(arg: &clap::Arg) -> bool {
    let words = arg.get_value_names().unwrap_or_default().join(" ").to_uppercase();
    let is_path = arg.get_value_parser().type_id() == clap::builder::ValueParser::path_buf().type_id();
    is_path || ["FILE", "PATH", "DIR", "OUTPUT", "PROFILE"].iter().any(|word| words.contains(word))
}

fn arguments(command: &clap::Command, found: &mut Vec<(String, String)>) {
    let args = command.get_arguments().filter(|arg| names_files(arg));
    found.extend(args.map(|arg| (command.get_name().to_owned(), arg.get_id().to_string())));
    command.get_subcommands().for_each(|inner| arguments(inner, found));
}

/// A new flag that names a file belongs into the table, so that it is tested below.
#[test]
fn every_flag_that_names_a_file_is_known() {
    let mut found = Vec::new();
    arguments(&Cli::command(), &mut found);
    let known = |command: &str, id: &str| FLAGS.iter().any(|(c, ids, _)| *c == command && ids.contains(&id));
    let new: Vec<_> = found.iter().filter(|(command, id)| !known(command, id)).collect();
    assert!(new.is_empty(), "say in the table of this test what these are for: {new:?}");
    for (command, ids, _) in FLAGS {
        for id in *ids {
            assert!(found.contains(&((*command).into(), (*id).into())), "{command} has no {id} any more");
        }
    }
}

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("sin", "s", &SMALL.sinograms());
    lab
}

const RUN: &str = "reconstruct --sinograms sin --center 15.5 --output out";

#[test]
fn files_beside_slices_replace_neither_inputs_nor_what_others_wrote() {
    let lab = lab();
    let angles: String = SMALL.angles().iter().map(|angle| format!("{angle}\n")).collect();
    for (_, ids, usage) in FLAGS {
        let Use::Writes(endings, beside) = usage else { continue };
        let flag = format!("--{}", ids[0].replace('_', "-"));
        for ending in *endings {
            let name = format!("x.{ending}");
            for file in [name.as_str()].iter().chain(*beside) {
                lab.text(file, "precious");
                let err = lab.fails(&format!("{RUN} {flag} {name}"), 5, &[file]);
                assert!(err.contains(&flag) && err.contains("was not written by fbp"), "{err}");
                assert_eq!(lab.read_text(file), "precious", "{flag}");
                fs::remove_file(lab.path(file)).unwrap();
            }
            lab.text(&name, &angles);
            std::os::unix::fs::symlink(lab.path(&name), lab.path(format!("link.{ending}"))).unwrap();
            for way in [name.clone(), format!("link.{ending}")] {
                let err = lab.fails(&format!("{RUN} --angles {name} {flag} {way} --overwrite"), 5, &[&flag]);
                assert!(err.contains("is a file of the input") || flag == "--log", "{err}");
                assert_eq!(lab.read_text(&name), angles, "{flag}");
            }
            fs::remove_file(lab.path(format!("link.{ending}"))).unwrap();
            fs::remove_file(lab.path(&name)).unwrap();
        }
        // a page of the input, and a name that such a file cannot have
        let before = lab.bytes("sin");
        let page = &before[0].0;
        lab.fails(&format!("{RUN} {flag} sin/{page} --overwrite"), 2, &[&flag, "must end in"]);
        lab.fails(&format!("{RUN} {flag} new.tif"), 2, &[&flag, "must end in"]);
        assert!(lab.bytes("sin") == before && !lab.path("new.tif").exists(), "{flag}");
    }
}

/// Outputs of all commands, with a file that another program wrote in their place.
#[test]
fn outputs_of_others_are_never_replaced() {
    let lab = lab();
    let commands = [
        ("reconstruct --sinograms sin --center 15.5 --output d --overwrite", "d/slice_00001.tif"),
        ("reconstruct --sinograms sin --center 15.5 --output d --resume", "d/slice_00002.tif"),
        ("reconstruct --sinograms sin --center 15.5 --output d/r-%02i.tif --overwrite", "d/r-01.tif"),
        ("reconstruct --sinograms sin --center 15.5 --output one.tif --overwrite", "one.tif"),
        ("reconstruct --sinograms sin --center 15.5 --output one.zarr --overwrite", "one.zarr/notes/0"),
        ("reconstruct --sinograms sin --center 15.5 --output one.zarr --resume", "one.zarr/notes/0"),
        ("batch sin --as sinograms --center 15.5 --output d/{name} --overwrite", "d/batch.json"),
        ("batch sin --as sinograms --center 15.5 --output d/{name} --overwrite", "d/index.html"),
        ("batch sin --as sinograms --center 15.5 --output d/{name} --shard 0/2 --resume", "d/batch-0-of-2.json"),
        ("preprocess --sinograms sin --output d --overwrite", "d/sinogram_00000.tif"),
        ("preprocess --sinograms sin --output one.tif --overwrite", "one.tif"),
        ("phantom --size 8 --projections 4 --output d --overwrite", "d/sino_00000.tif"),
        ("phantom --size 8 --projections 4 --slices 2 --output p --truth one.tif --overwrite", "one.tif"),
        ("phantom --size 8 --projections 4 --output p2 --truth one.tif", "one.tif"),
        ("center --sinograms sin --sweep 14..16:1 --output d --overwrite", "d/center_15.00.tif"),
        ("center --sinograms sin --sweep 14..16:1 --output d --overwrite", "d/montage.png"),
        ("center --sinograms sin --sweep 14..16:1 --output page.html --overwrite", "page.html"),
        ("trials --sinograms sin --vary center=14,15 --output d --overwrite", "d/center_15.00.tif"),
        ("trials --sinograms sin --vary center=14,15 --output page.html --overwrite", "page.html"),
        ("report d --output page.html", "page.html"),
        ("bench --plot chart.svg", "chart.svg"),
        ("tune --output tuned.toml", "tuned.toml"),
        ("man --output d", "d/fbp.1"),
        ("kernel --profile default --every d", "d/default-probe-image.cl"),
    ];
    for (args, file) in commands {
        fs::create_dir_all(lab.path(file).parent().unwrap()).unwrap();
        lab.text(file, "precious");
        let name = file.split('/').next_back().unwrap();
        lab.fails(args, 5, &[if name == "0" { "one.zarr" } else { name }]);
        assert_eq!(lab.read_text(file), "precious", "{args}");
        fs::remove_file(lab.path(file)).unwrap();
    }
    let profile = include_str!("../../configs/cpu.toml");
    lab.text("p.toml", profile);
    lab.fails("tune --profile p.toml --output p.toml", 5, &["p.toml", "is a file of the input"]);
    assert_eq!(lab.read_text("p.toml"), profile);
    if cfg!(feature = "hdf5") {
        lab.text("raw.h5", "precious");
        for existing in ["--resume", "--overwrite"] {
            let args = format!("reconstruct --sinograms sin --center 15.5 --output raw.h5 {existing}");
            lab.fails(&args, 5, &["raw.h5", "not written by fbp"]);
            assert_eq!(lab.read_text("raw.h5"), "precious");
        }
    }
}

/// Every command that writes slices or pages takes the lock of the place, by whatever name another has it.
#[test]
fn commands_do_not_write_where_another_does() {
    let lab = lab();
    let commands = [
        ("reconstruct --sinograms sin --center 15.5 --output d", "d/.fbp-lock"),
        ("batch sin --as sinograms --center 15.5 --output d/{name}", "d/.batch.json.fbp-lock"),
        ("preprocess --sinograms sin --output d", "d/.fbp-lock"),
        ("preprocess --sinograms sin --output d --overwrite", "d/.fbp-lock"),
        ("phantom --size 8 --projections 4 --output d", "d/.fbp-lock"),
        (
            "phantom --size 8 --projections 4 --as projections --photons 1000 --output p1 --flats d --darks p2",
            "d/.fbp-lock",
        ),
        ("phantom --size 8 --projections 4 --slices 2 --output p3 --truth one.tif", ".one.tif.fbp-lock"),
        ("reconstruct --sinograms sin --center 15.5 --output one.tif", ".one.tif.fbp-lock"),
        ("preprocess --sinograms sin --output one.tif", ".one.tif.fbp-lock"),
        ("reconstruct --sinograms sin --center 15.5 --output one.zarr", ".one.zarr.fbp-lock"),
        ("preprocess --sinograms sin --output one.zarr --overwrite", ".one.zarr.fbp-lock"),
        ("reconstruct --sinograms sin --center 15.5 --output d/r-%03i.tif", "d/.r-.tif.fbp-lock"),
        ("preprocess --sinograms sin --output d/r-%03i.tif", "d/.r-.tif.fbp-lock"),
    ];
    lab.directory("d");
    for (args, lock) in commands {
        let held = Lock::take(&lab.path(lock), LockMode::Exclusive, "somebody else").unwrap();
        lab.fails(args, 5, &["somebody else is writing here"]);
        drop(held);
        assert!(!lab.path("one.tif").exists() && !lab.path("one.zarr").exists(), "{args}");
        assert_eq!(lab.files("d"), [] as [String; 0], "{args}");
    }
}

/// TIFF of other programs, links, and pages where slices are expected.
#[test]
fn only_outputs_of_the_same_kind_are_replaced() {
    let lab = lab();
    let before = lab.bytes("sin");
    lab.ok("preprocess --sinograms sin --output pages/p-%05i.tif");
    let pages = lab.bytes("pages");
    lab.ok("preprocess --sinograms sin --output pages/p-%05i.tif --overwrite");
    for existing in ["--resume", "--overwrite"] {
        let run = "reconstruct --sinograms sin --center 15.5 --output";
        let err = lab.fails(&format!("{run} pages/p-%05i.tif {existing}"), 5, &["p-00000.tif"]);
        assert!(err.contains("pages that fbp wrote"), "{err}");
        assert!(lab.bytes("pages") == pages);
        // the directory of the input, under another name
        let _ = std::os::unix::fs::symlink(lab.path("sin"), lab.path("alias"));
        for directory in ["sin", "alias", "./sin/"] {
            lab.fails(&format!("{run} {directory} {existing}"), 5, &["has files of the input"]);
        }
        lab.directory("links");
        std::os::unix::fs::symlink(lab.path("pages/p-00000.tif"), lab.path("links/slice_00000.tif")).unwrap();
        lab.fails(&format!("{run} links {existing}"), 5, &["slice_00000.tif", "not written by fbp"]);
        fs::remove_dir_all(lab.path("links")).unwrap();
    }
    assert!(lab.bytes("sin") == before);
    let kept: BTreeMap<_, _> = lab.bytes("pages").into_iter().collect();
    assert_eq!(kept.len(), SMALL.slices);
}

//! Files that are refused, and what the messages say.

use super::{Counts, FRAMES, ROWS, WIDTH, alone, angles, cast, exchange, file, list, refused, volume};
use crate::support::cli::{Lab, Pages, text};
use hdf5_metno::File;
use std::fs;

/// Makes the gzip filter of a file another.
fn renumber_filter(lab: &Lab, name: &str, number: u16) {
    let mut bytes = fs::read(lab.path(name)).unwrap();
    let at = bytes.windows(7).position(|word| word == b"deflate").unwrap() - 8;
    bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
    fs::write(lab.path(name), bytes).unwrap();
}

/// The message names the filter, where a plugin for it comes from, and what to do where there is none.
#[test]
fn filters_without_a_plugin_get_advice() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let new = file(&lab, "filter.h5");
    exchange(&new, &counts);
    {
        let builder = new.new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH)).chunk((1, ROWS, WIDTH)).deflate(1);
        builder.create("/exchange/data").unwrap().write_raw(&cast(&counts.projections, |v| v as u16)).unwrap();
    }
    drop(new);
    let message = |number: u16, path: Option<&str>, words: &[&str]| {
        renumber_filter(&lab, "filter.h5", number);
        let args = "reconstruct --hdf5 filter.h5 --output out";
        let mut command = lab.command(args);
        match path {
            Some(path) => command.env("HDF5_PLUGIN_PATH", path),
            None => command.env_remove("HDF5_PLUGIN_PATH"),
        };
        let words: Vec<&str> = ["--hdf5 filter.h5: /exchange/data"].iter().chain(words).copied().collect();
        lab.check_failure(&command.output().unwrap(), args, 3, &words)
    };
    let install = "pip install hdf5plugin";
    message(
        32008,
        None,
        &["bitshuffle (filter 32008)", "HDF5_PLUGIN_PATH, the directory", "not set", install, "h5repack"],
    );
    message(32013, Some("/no/plugins"), &["zfp (filter 32013)", "HDF5_PLUGIN_PATH is /no/plugins", install]);
    for (number, name) in [(305, "filter 305"), (41234, "filter 41234")] {
        let text = message(number, None, &[name, "in no package of plugins", "HDF5_PLUGIN_PATH", "h5repack -f GZIP=1"]);
        assert!(!text.contains(install), "{text}");
    }
}

/// A Data Exchange file without its data.
fn without_data(lab: &Lab, counts: &Counts, name: &str) -> File {
    let file = file(lab, name);
    exchange(&file, counts);
    file
}

/// `name` is refused with its name and these words.
fn refuse(lab: &Lab, name: &str, words: &[&str]) {
    let words: Vec<&str> = [name].iter().chain(words).copied().collect();
    refused(lab, &format!("--hdf5 {name}"), &words);
}

#[test]
fn files_that_do_not_fit() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    lab.text("text.h5", "no HDF5 at all\n");
    refuse(&lab, "text.h5", &["is not an HDF5 file"]);
    lab.text("empty.h5", "");
    refuse(&lab, "empty.h5", &["is not an HDF5 file"]);
    refuse(&lab, "nothing.h5", &["does not exist"]);
    lab.directory("directory.h5");
    refuse(&lab, "directory.h5", &["is not an HDF5 file"]);
    odd_data(&lab, &counts);
    odd_lists(&lab, &counts);
    unfinished(&lab, &counts);
}

/// Data of another shape or type, or none.
fn odd_data(lab: &Lab, counts: &Counts) {
    let new = |name: &str| without_data(lab, counts, name);
    let flat = new("rank2.h5").new_dataset::<u16>().shape((ROWS, WIDTH)).create("/exchange/data").unwrap();
    flat.write_raw(&vec![1u16; ROWS * WIDTH]).unwrap();
    drop(flat);
    refuse(lab, "rank2.h5", &["/exchange/data", "3x32", "single frame", "three dimensions"]);
    drop(new("zero.h5").new_dataset::<u16>().shape((0, ROWS, WIDTH)).create("/exchange/data").unwrap());
    refuse(lab, "zero.h5", &["/exchange/data", "0x3x32"]);
    drop(new("unwritten.h5").new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH)).create("/exchange/data").unwrap());
    refuse(lab, "unwritten.h5", &["/exchange/data", "no data was written"]);
    let huge =
        new("huge.h5").new_dataset::<u8>().chunk((1, 64, 64)).shape((4, 1 << 30, 1 << 30)).create("/exchange/data");
    drop(huge.unwrap());
    refuse(lab, "huge.h5", &["/exchange/data", "claims the shape"]);
    volume(&new("bool.h5"), "/exchange/data", &counts.projections, |v| v as u64 > 100);
    refuse(lab, "bool.h5", &["/exchange/data", "bool", "8 to 64 bits"]);
    new("dangling.h5").link_external("gone.h5", "/exchange/data", "/exchange/data").unwrap();
    refuse(lab, "dangling.h5", &["/exchange/data", "gone.h5"]);
}

/// Angles, fields and keys that do not fit the data.
fn odd_lists(lab: &Lab, counts: &Counts) {
    let data = &counts.projections;
    for (name, values, words) in [
        ("few.h5", vec![0.0; FRAMES - 1], "/exchange/theta has 15 angles, but there are 16 projections"),
        ("nan.h5", [&[f64::NAN], &angles()[1..]].concat(), "/exchange/theta: the angle of projection 0 is NaN"),
        ("far.h5", [&[1e12], &angles()[1..]].concat(), "1000000000000.0 of projection 0"),
    ] {
        let file = file(lab, name);
        volume(&file, "/exchange/data", data, |v| v as u16);
        list(&file, "/exchange/theta", &values);
        drop(file);
        refuse(lab, name, &[words]);
    }
    let size = file(lab, "size.h5");
    volume(&size, "/exchange/data", data, |v| v as u16);
    let narrow = Pages { width: 8, pages: vec![vec![1.0; 8 * ROWS]] };
    volume(&size, "/exchange/data_white", &narrow, |v| v as u16);
    list(&size, "/exchange/theta", &angles());
    drop(size);
    refuse(lab, "size.h5", &["/exchange/data_white", "8x3", "32x3"]);

    for (name, keys, words) in [
        ("short.h5", vec![0; FRAMES - 2], "/entry/instrument/detector/image_key has 14 keys"),
        ("key.h5", vec![7; FRAMES], "image_key: key 7 of frame 0"),
        ("none.h5", vec![1; FRAMES], "no frame as a projection"),
    ] {
        let file = file(lab, name);
        volume(&file, "/entry/instrument/detector/data", data, |v| v as u16);
        list(&file, "/entry/instrument/detector/image_key", &keys);
        drop(file);
        refuse(lab, name, &[words]);
    }
}

/// A file that was cut short is refused; chunks that were never written are reported.
fn unfinished(lab: &Lab, counts: &Counts) {
    let data = &counts.projections;
    volume(&without_data(lab, counts, "whole.h5"), "/exchange/data", data, |v| v as u16);
    let bytes = fs::read(lab.path("whole.h5")).unwrap();
    for length in [8, 100, 600, bytes.len() / 2, bytes.len() - 1] {
        fs::write(lab.path("cut.h5"), &bytes[..length]).unwrap();
        refuse(lab, "cut.h5", &[]);
    }
    let file = without_data(lab, counts, "stopped.h5");
    let half = Pages { width: WIDTH, pages: data.pages[..FRAMES / 2].to_vec() };
    let chunked = file.new_dataset::<u16>().shape((FRAMES / 2.., ROWS, WIDTH)).chunk((1, ROWS, WIDTH));
    let stopped = chunked.create("/exchange/data").unwrap();
    stopped.write_raw(&cast(&half, |v| v as u16)).unwrap();
    stopped.resize((FRAMES, ROWS, WIDTH)).unwrap();
    drop((stopped, chunked, file));
    let (_, err) = lab.ok("reconstruct --hdf5 stopped.h5 --output stopped");
    assert!(err.contains("8 of 16 chunks were never written"), "{err}");
}

/// Names of datasets, links and units are text of a file.
#[test]
fn names_and_units_do_not_control_the_terminal() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    for foreign in ["a\u{1b}]0!b\u{7}\u{9b}2J\u{202e}c", "a\u{1b}]0!b\nfbp: forged"] {
        let new = without_data(&lab, &counts, "x.h5");
        let values = cast(&counts.projections, |v| v as u16);
        let data = new.new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH)).create("/exchange/data").unwrap();
        data.write_raw(&values).unwrap();
        new.new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH)).create(format!("/exchange/{foreign}").as_str()).unwrap();
        new.link_soft(&format!("/nowhere/{foreign}"), &format!("/exchange/link {foreign}")).unwrap();
        drop((data, new));
        let missing = format!("x.h5::/{foreign}");
        for (args, code) in [(vec!["info", "x.h5"], 0), (vec!["preprocess", "--projections", &missing, "-o", "out"], 3)]
        {
            let output = lab.command("").args(&args).output().unwrap();
            let shown = [text(&output.stdout), text(&output.stderr)].concat();
            assert_eq!(output.status.code(), Some(code), "{args:?}: {shown:?}");
            assert!(shown.contains(r"\x1b]0!b"), "{args:?}: {shown:?}");
            let controls = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!shown.contains(controls), "{args:?}: {shown:?}");
            assert!(!shown.lines().any(|line| line.starts_with("fbp: forged")), "{args:?}: {shown:?}");
        }
    }
}

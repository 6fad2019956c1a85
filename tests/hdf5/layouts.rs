//! Data Exchange, NXtomo and paths by hand: the slices are those of the same data as TIFF.

use super::{
    Counts, FLAGS, FRAMES, ROWS, WIDTH, alone, angles, cast, check, exchange, expected, file, list, nxtomo, refused,
    unit, volume,
};
use crate::support::cli::{Lab, Pages};
use hdf5_metno::File;
use hdf5_metno::types::FixedAscii;
use std::fs;

#[test]
fn data_exchange() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let expected = expected(&lab, "--flats f --darks d");
    let new = |name: &str| {
        let file = file(&lab, name);
        exchange(&file, &counts);
        file
    };
    volume(&new("u16.h5"), "/exchange/data", &counts.projections, |v| v as u16);
    volume(&new("i16.h5"), "/exchange/data", &counts.projections, |v| v as i16);
    volume(&new("u32.h5"), "/exchange/data", &counts.projections, |v| v as u32);
    volume(&new("i32.h5"), "/exchange/data", &counts.projections, |v| v as i32);
    volume(&new("f32.h5"), "/exchange/data", &counts.projections, |v| v);
    volume(&new("f64.h5"), "/exchange/data", &counts.projections, f64::from);
    for name in ["u16.h5", "i16.h5", "u32.h5", "i32.h5", "f32.h5", "f64.h5"] {
        check(&lab, name, "", &expected);
    }

    let shape = (FRAMES, ROWS, WIDTH);
    for (name, chunk) in [("gzip.h5", (1, ROWS, WIDTH)), ("odd.h5", (3, 2, 20))] {
        let values = cast(&counts.projections, |v| v as u16);
        {
            let builder = new(name).new_dataset::<u16>().shape(shape).chunk(chunk).shuffle().deflate(4);
            builder.create("/exchange/data").unwrap().write_raw(&values).unwrap();
        }
        check(&lab, name, "", &expected);
    }
    // a device that corrects rows takes frames as a whole, or if its memory does not hold all of them, some rows at a time
    let of_device = |name: &str, flags: &str, output: &str| {
        let flags = format!("--hdf5 {name} --profile default --slices-per-pass 1 {flags} {FLAGS}");
        lab.slices(&format!("{flags} --report {output}.json"), output);
        let report: serde_json::Value = serde_json::from_str(&lab.read_text(&format!("{output}.json"))).unwrap();
        let plan = lab.ok(&format!("reconstruct {flags} --dry-run --output plan")).0;
        let keeps_block = plan.lines().any(|line| line.contains("a block of rows"));
        let counts = ["clamped_by_reason", "outliers", "saturated"].map(|count| report[count].clone());
        (lab.read(output), counts, keeps_block)
    };
    let (slices, replaced, _) = of_device("u16.h5", "", "rows-of-device");
    assert!(replaced[0].is_object());
    for (name, flags, whole) in [
        ("gzip.h5", "", true),
        ("gzip.h5", "--remove-outliers 3,50", true),
        ("gzip.h5", "--device-memory 25K", false),
        ("odd.h5", "", false),
    ] {
        let what = format!("{name}{}", flags.len());
        let (found, counts, frames) = of_device(name, flags, &what);
        assert_eq!(frames, whole, "{what}");
        match flags.contains("outliers") {
            true => assert_eq!((found, counts, false), of_device("u16.h5", flags, "outliers-of-device")),
            false => assert_eq!((&found, &counts), (&slices, &replaced), "{what}"),
        }
    }

    // behind a user block, and linked from a second file
    let moved = File::with_options().with_fcpl(|p| p.userblock(512)).create(lab.path("block.h5")).unwrap();
    exchange(&moved, &counts);
    volume(&moved, "/exchange/data", &counts.projections, |v| v as u16);
    drop(moved);
    check(&lab, "block.h5", "", &expected);
    let linked = file(&lab, "linked.h5");
    exchange(&linked, &counts);
    linked.link_external("u16.h5", "/exchange/data", "/exchange/data").unwrap();
    drop(linked);
    check(&lab, "linked.h5", "", &expected);

    // flags say otherwise
    lab.directory("others");
    let plain = lab.slices(&format!("--projections p --overall-angle 170 {FLAGS}"), "others/plain");
    check(&lab, "u16.h5", "--overall-angle 170 --hdf5-flats none --hdf5-darks none", &plain);
    let log = lab.slices(&format!("--projections p --flats f --darks d --no-minus-log {FLAGS}"), "others/log");
    check(&lab, "u16.h5", "--overall-angle 180 --no-minus-log", &log);
    let shifted: Vec<f64> = angles().iter().map(|angle| angle + 3.0).collect();
    lab.numbers("shifted.txt", &shifted);
    let shifted = lab.slices(&format!("--projections p --flats f --angles shifted.txt {FLAGS}"), "others/shifted");
    check(&lab, "u16.h5", "--hdf5-darks none --angles shifted.txt", &shifted);
}

/// Bytes of a type in the other order: the bit that says so is set in the file, and the values are written turned.
#[test]
fn big_endian_data() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let big = file(&lab, "big.h5");
    exchange(&big, &counts);
    volume(&big, "/exchange/data", &counts.projections, |v| (v as u32).swap_bytes());
    drop(big);
    let mut bytes = fs::read(lab.path("big.h5")).unwrap();
    let (little, turned) = ([0x10, 0, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0], [0x10, 1]);
    let at: Vec<usize> = (0..bytes.len() - 12).filter(|&at| bytes[at..at + 12] == little).collect();
    assert_eq!(at.len(), 1);
    bytes[at[0]..at[0] + 2].copy_from_slice(&turned);
    fs::write(lab.path("big.h5"), bytes).unwrap();
    check(&lab, "big.h5", "", &expected(&lab, "--flats f --darks d"));
}

/// Flats and darks that were averaged before, and those of other files.
#[test]
fn fields_of_one_frame_or_from_elsewhere() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let data = |name: &str| {
        let file = file(&lab, name);
        volume(&file, "/exchange/data", &counts.projections, |v| v as u16);
        unit(&list(&file, "/exchange/theta", &angles()), "degrees");
        file
    };
    // single frames, contiguous and in chunks
    let one = |stack: &Pages| Pages { width: WIDTH, pages: vec![stack.pages[1].clone()] };
    let (flat, dark) = (one(&counts.flats), one(&counts.darks));
    lab.write("f1", "f", &flat);
    lab.write("d1", "d", &dark);
    let averaged = expected(&lab, "--flats f1 --darks d1");
    let file_2d = data("averaged.h5");
    let shape = (ROWS, WIDTH);
    let dataset = file_2d.new_dataset::<f64>().shape(shape).create("/exchange/data_white").unwrap();
    dataset.write_raw(&cast(&flat, f64::from)).unwrap();
    drop(dataset);
    {
        let builder = file_2d.new_dataset::<f32>().shape(shape).chunk((2, WIDTH)).deflate(3);
        builder.create("/exchange/data_dark").unwrap().write_raw(&cast(&dark, |v| v)).unwrap();
    }
    drop(file_2d);
    check(&lab, "averaged.h5", "", &averaged);

    // from TIFF files, where the file has none, and in place of those it has
    lab.directory("others");
    let elsewhere = |flags: &str, to: &str| {
        lab.slices(&format!("--projections p {flags} --angles angles.txt {FLAGS}"), &format!("others/{to}"))
    };
    drop(data("bare.h5"));
    let both = elsewhere("--flats f --flats2 f2 --darks d", "both");
    check(&lab, "bare.h5", "--flats f --flats2 f2 --darks d", &both);
    check(&lab, "averaged.h5", "--flats f --flats2 f2 --darks d", &both);
    check(&lab, "averaged.h5", "--darks d", &elsewhere("--flats f1 --darks d", "darks"));
    check(&lab, "averaged.h5", "--flats f --hdf5-darks none", &elsewhere("--flats f", "flats"));
    nxtomo(&file(&lab, "keys.nx"), "/entry", &counts, true);
    check(&lab, "keys.nx", "--flats f1 --darks d1", &averaged);
    let (_, err) = lab.ok(&format!("reconstruct --hdf5 bare.h5 --darks d {FLAGS} --output dark-only"));
    assert!(err.contains("dark fields but no flat fields"), "{err}");

    // of another size
    lab.page("narrow/f.tif", WIDTH - 1, &[100.0; (WIDTH - 1) * ROWS]);
    lab.page("high/d.tif", WIDTH, &[1.0; WIDTH * (ROWS + 1)]);
    refused(&lab, "--hdf5 bare.h5 --flats narrow", &["--flats narrow", "31x3", "32x3", "the same size"]);
    refused(&lab, "--hdf5 averaged.h5 --darks high", &["--darks high", "32x4", "32x3", "the same size"]);
    refused(&lab, "--hdf5 bare.h5 --flats nowhere", &["--flats", "nowhere"]);
    let wrong = data("wrong.h5");
    wrong.new_dataset::<f32>().shape((ROWS, 8)).create("/exchange/data_white").unwrap().write_raw(&[1f32; 24]).unwrap();
    drop(wrong);
    refused(&lab, "--hdf5 wrong.h5", &["/exchange/data_white", "8x3", "32x3"]);
    let flat = data("list.h5");
    list(&flat, "/exchange/data_white", &[1f32; 32]);
    drop(flat);
    refused(
        &lab,
        "--hdf5 list.h5",
        &["/exchange/data_white", "the shape 32;", "[frame][row][bin] or one frame, [row][bin]"],
    );
}

#[test]
fn nxtomo_frames_go_by_their_keys() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    lab.directory("others");
    nxtomo(&file(&lab, "both.nx"), "/entry0000", &counts, true);
    check(&lab, "both.nx", "", &expected(&lab, "--flats f --flats2 f2 --darks d"));
    nxtomo(&file(&lab, "before.nx"), "/entry1/tomo_entry", &counts, false);
    let before =
        lab.slices(&format!("--projections p --flats f --darks d --angles angles.txt {FLAGS}"), "others/before");
    check(&lab, "before.nx", "", &before);

    let (_, err) = lab.ok(&format!("reconstruct --hdf5 before.nx {FLAGS} --output noted"));
    assert!(err.contains("3 frames as invalid") && err.contains("0.65 um"), "{err}");

    // two scans: one must be chosen, unless one says what it is
    let two = file(&lab, "two.nx");
    nxtomo(&two, "/a", &counts, true);
    nxtomo(&two, "/b", &counts, false);
    drop(two);
    refused(&lab, "--hdf5 two.nx", &["2 scans", "--hdf5-data", "/a/instrument/detector/data"]);
    check(&lab, "two.nx", "--hdf5-data b/instrument/detector/data", &before);
    let two = File::open_rw(lab.path("two.nx")).unwrap();
    let definition = two.new_dataset::<FixedAscii<16>>().create("/b/definition").unwrap();
    definition.write_scalar(&FixedAscii::<16>::from_ascii(b"NXtomo").unwrap()).unwrap();
    drop((definition, two));
    check(&lab, "two.nx", "", &before);

    // the other commands read the same
    lab.ok("preprocess --hdf5 both.nx --output lines-hdf5");
    lab.ok("preprocess --projections p --flats f --flats2 f2 --darks d --output lines-tiff");
    assert_eq!(lab.read("lines-hdf5"), lab.read("lines-tiff"));
    let sweep = "--sweep 14..16:1";
    lab.ok(&format!("center --hdf5 before.nx {sweep} --output trials-hdf5"));
    lab.ok(&format!("center --projections p --flats f --darks d --angles angles.txt {sweep} --output trials-tiff"));
    assert_eq!(lab.bytes("trials-hdf5"), lab.bytes("trials-tiff"));
}

#[test]
fn paths_by_hand_and_radians() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let own = file(&lab, "own.h5");
    volume(&own, "/scan/frames", &counts.projections, |v| v);
    volume(&own, "/scan/open beam", &counts.flats, |v| v);
    volume(&own, "/scan/beam", &counts.flats, f64::from);
    volume(&own, "/scan/dark", &counts.darks, |v| v as u8);
    let radians: Vec<f64> = angles().iter().map(|angle| angle.to_radians()).collect();
    unit(&list(&own, "/scan/radians", &radians), "rad");
    list(&own, "/scan/bare", &radians);
    unit(&list(&own, "/scan/turns", &radians), "turns");
    drop(own);
    // as the file's radians make them
    lab.numbers("angles.txt", &radians.iter().map(|angle| angle.to_degrees()).collect::<Vec<_>>());
    let expected = expected(&lab, "--flats f --darks d");
    let paths = "--hdf5-data scan/frames --hdf5-flats /scan/beam --hdf5-darks scan/dark";
    check(&lab, "own.h5", &format!("{paths} --hdf5-angles scan/radians"), &expected);
    check(&lab, "own.h5", &format!("{paths} --hdf5-angles /scan/bare"), &expected);
    let (_, err) = lab.ok(&format!("reconstruct --hdf5 own.h5 {paths} --hdf5-angles scan/bare --output noted"));
    assert!(err.contains("/scan/bare has no unit") && err.contains("radians"), "{err}");

    refused(
        &lab,
        "--hdf5 own.h5",
        &["/exchange/data", "NXtomo", "/scan/frames 16x3x32", "--hdf5-data", "--hdf5-angles"],
    );
    refused(&lab, &format!("--hdf5 own.h5 {paths}"), &["no angles", "--hdf5-angles", "--overall-angle"]);
    refused(&lab, "--hdf5 own.h5 --hdf5-data /scan/none", &["--hdf5-data /scan/none", "/scan/frames 16x3x32"]);
    refused(&lab, &format!("--hdf5 own.h5 {paths} --hdf5-angles scan/turns"), &["/scan/turns", "`turns`"]);

    // the record leads to the same slices
    lab.directory("elsewhere");
    lab.ok("reconstruct --config noted/fbp-run.toml --output again");
    assert_eq!(lab.read("again"), lab.read("noted"));
    let (out, _) = lab.ok("info own.h5");
    assert!(out.contains("/scan/frames 16x3x32 float32, contiguous"), "{out}");
}

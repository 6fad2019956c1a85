//! `--hdf5`: the slices are those of the same data as TIFF, and odd files are refused.
#![cfg(feature = "hdf5")]

#[path = "support/mod.rs"]
mod support;

use fbp::source::Hdf5Input;
use hdf5_metno::types::{FixedAscii, VarLenUnicode};
use hdf5_metno::{Dataset, File, H5Type};
use std::fs;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::cli::{Lab, Pages, SMALL};

const WIDTH: usize = SMALL.width;
const FRAMES: usize = SMALL.projections;
const ROWS: usize = SMALL.slices;

/// One test at a time: the library's open files, and their locks, are inherited by programs that other threads start.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whole counts of the small scan: projections, flats before and after, darks; written as TIFF, too.
struct Counts {
    projections: Pages,
    flats: Pages,
    flats2: Pages,
    darks: Pages,
}

fn frames(count: usize, level: impl Fn(usize, usize) -> f32) -> Pages {
    let page = |frame| (0..ROWS * WIDTH).map(|pixel| level(frame, pixel)).collect();
    Pages { width: WIDTH, pages: (0..count).map(page).collect() }
}

impl Counts {
    fn new(lab: &Lab) -> Counts {
        let lines = SMALL.sinograms().turned();
        let most = lines.pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
        let counts = Counts {
            projections: lines.map(|line| (100.0 + 20_000.0 * (-2.0 * line / most).exp()).round()),
            flats: frames(3, |frame, pixel| 20_100.0 + (frame * 7 + pixel % 11) as f32),
            flats2: frames(2, |frame, pixel| 20_600.0 + (frame * 5 + pixel % 13) as f32),
            darks: frames(2, |frame, pixel| 100.0 + (frame * 2 + pixel % 3) as f32),
        };
        lab.write("p", "p", &counts.projections);
        lab.write("f", "f", &counts.flats);
        lab.write("f2", "f", &counts.flats2);
        lab.write("d", "d", &counts.darks);
        lab.numbers("angles.txt", &angles());
        counts
    }
}

/// Uneven, so that none can be left out unseen.
fn angles() -> Vec<f64> {
    (0..FRAMES).map(|p| 12.0 * p as f64 + 0.25 * (p % 3) as f64).collect()
}

fn file(lab: &Lab, name: &str) -> File {
    File::create(lab.path(name)).unwrap()
}

fn cast<T>(stack: &Pages, to: impl Fn(f32) -> T) -> Vec<T> {
    stack.pages.iter().flatten().map(|&v| to(v)).collect()
}

/// A contiguous dataset `[frame][row][bin]`; groups on its way are made.
fn volume<T: H5Type>(file: &File, name: &str, stack: &Pages, to: impl Fn(f32) -> T) -> Dataset {
    let shape = (stack.pages.len(), stack.pages[0].len() / stack.width, stack.width);
    let dataset = file.new_dataset::<T>().shape(shape).create(name).unwrap();
    dataset.write_raw(&cast(stack, to)).unwrap();
    dataset
}

fn list<T: H5Type>(file: &File, name: &str, values: &[T]) -> Dataset {
    let dataset = file.new_dataset::<T>().shape(values.len()).create(name).unwrap();
    dataset.write_raw(values).unwrap();
    dataset
}

fn unit(dataset: &Dataset, unit: &str) {
    let unit: VarLenUnicode = unit.parse().unwrap();
    dataset.new_attr::<VarLenUnicode>().create("units").unwrap().write_scalar(&unit).unwrap();
}

/// All of a Data Exchange file but its data.
fn exchange(file: &File, counts: &Counts) {
    volume(file, "/exchange/data_white", &counts.flats, |v| v as u16);
    volume(file, "/exchange/data_dark", &counts.darks, |v| v as u16);
    unit(&list(file, "/exchange/theta", &angles()), "degrees");
}

const FLAGS: &str = "--center 15.2";

/// The slices of the TIFF files with fields and angles.
fn expected(lab: &Lab, flags: &str) -> Pages {
    lab.slices(&format!("--projections p {flags} --angles angles.txt {FLAGS}"), "expected")
}

fn check(lab: &Lab, name: &str, flags: &str, expected: &Pages) {
    let output = format!("slices-{name}{}", flags.len());
    assert_eq!(&lab.slices(&format!("--hdf5 {name} {flags} {FLAGS}"), &output), expected, "{name} {flags}");
}

fn refused(lab: &Lab, args: &str, words: &[&str]) -> String {
    lab.fails(&format!("reconstruct {args} --output out"), 3, words)
}

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

    // behind a block of the user's, and the whole in a second file
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
    assert!(err.contains("dark fields and no flat fields"), "{err}");

    // of another size
    lab.page("narrow/f.tif", WIDTH - 1, &[100.0; (WIDTH - 1) * ROWS]);
    lab.page("high/d.tif", WIDTH, &[1.0; WIDTH * (ROWS + 1)]);
    refused(&lab, "--hdf5 bare.h5 --flats narrow", &["--flats narrow", "31x3", "32x3", "one size"]);
    refused(&lab, "--hdf5 averaged.h5 --darks high", &["--darks high", "32x4", "32x3", "one size"]);
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

/// NXtomo: what is a frame of what, with invalid ones among them.
fn nxtomo(file: &File, entry: &str, counts: &Counts, after: bool) {
    let mut all: Vec<(i32, f64, Vec<f32>)> = Vec::new();
    let mut add = |key: i32, stack: &Pages| {
        for page in &stack.pages {
            all.push((key, 0.0, page.clone()));
        }
    };
    add(2, &counts.darks);
    add(1, &counts.flats);
    add(0, &counts.projections);
    if after {
        add(1, &counts.flats2);
    }
    let first = all.iter().position(|(key, ..)| *key == 0).unwrap();
    for (frame, angle) in all[first..].iter_mut().zip(angles()) {
        frame.1 = angle;
    }
    for at in [first + 5, first, 1] {
        all.insert(at, (3, f64::NAN, vec![9.0; ROWS * WIDTH]));
    }
    let data = Pages { width: WIDTH, pages: all.iter().map(|(.., page)| page.clone()).collect() };
    volume(file, &format!("{entry}/instrument/detector/data"), &data, |v| v as u16);
    list(
        file,
        &format!("{entry}/instrument/detector/image_key"),
        &all.iter().map(|(key, ..)| *key).collect::<Vec<_>>(),
    );
    list(file, &format!("{entry}/sample/rotation_angle"), &all.iter().map(|(_, angle, _)| *angle).collect::<Vec<_>>());
    let size = list(file, &format!("{entry}/instrument/detector/x_pixel_size"), &[0.65]);
    unit(&size, "um");
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
fn data_in_other_files() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let expected = expected(&lab, "--flats f --darks d");
    let shape = (FRAMES, ROWS, WIDTH);

    let outside = file(&lab, "outside.h5");
    exchange(&outside, &counts);
    let bytes: Vec<u8> = cast(&counts.projections, |v| (v as u16).to_ne_bytes()).concat();
    fs::write(lab.path("frames.raw"), &bytes).unwrap();
    // the library looks for it where the program runs
    let builder = outside.new_dataset::<u16>().shape(shape).external("frames.raw", 0, bytes.len());
    drop(builder.create("/exchange/data").unwrap());
    drop((builder, outside));
    check(&lab, "outside.h5", "", &expected);

    let virtual_file = file(&lab, "virtual.h5");
    exchange(&virtual_file, &counts);
    let half = FRAMES / 2;
    let mut builder = virtual_file.new_dataset::<u16>().shape(shape);
    for (part, pages) in counts.projections.pages.chunks(half).enumerate() {
        let name = format!("part_{part}.h5");
        volume(&file(&lab, &name), "/d", &Pages { width: WIDTH, pages: pages.to_vec() }, |v| v as u16);
        let to = (part * half..(part + 1) * half, .., ..);
        builder = builder.virtual_map(&name, "/d", (half, ROWS, WIDTH), (.., .., ..), shape, to);
    }
    drop(builder.create("/exchange/data").unwrap());
    drop((builder, virtual_file));
    check(&lab, "virtual.h5", "", &expected);

    // one whole dataset
    let whole = file(&lab, "whole.h5");
    exchange(&whole, &counts);
    volume(&file(&lab, "all.h5"), "/d", &counts.projections, |v| v as u16);
    let all = (.., .., ..);
    let builder = whole.new_dataset::<u16>().shape(shape).virtual_map("all.h5", "/d", shape, all, shape, all);
    drop(builder.create("/exchange/data").unwrap());
    drop((builder, whole));
    check(&lab, "whole.h5", "", &expected);
}

/// The library would read fill values in place of a source that is not there.
#[test]
fn missing_sources_of_virtual_datasets_are_refused() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let (frames, shape) = (FRAMES / 8, (FRAMES, ROWS, WIDTH));
    let part = |stack: &Pages, part: usize| Pages {
        width: WIDTH,
        pages: stack.pages[part * frames..(part + 1) * frames].to_vec(),
    };
    let all = (.., .., ..);
    // one of the eight parts is virtual itself
    let top = file(&lab, "top.h5");
    exchange(&top, &counts);
    let mut builder = top.new_dataset::<u16>().shape(shape);
    for number in 0..8 {
        let name = format!("part_{number}.h5");
        let new = file(&lab, &name);
        let size = (frames, ROWS, WIDTH);
        if number == 7 {
            volume(&file(&lab, "camera.h5"), "/d", &part(&counts.projections, 7), |v| v as u16);
            let inner = new.new_dataset::<u16>().shape(size).virtual_map("camera.h5", "/d", size, all, size, all);
            drop(inner.create("/d").unwrap());
        } else {
            volume(&new, "/d", &part(&counts.projections, number), |v| v as u16);
        }
        let to = (number * frames..(number + 1) * frames, .., ..);
        builder = builder.virtual_map(&name, "/d", size, all, shape, to);
    }
    drop(builder.create("/exchange/data").unwrap());
    drop((builder, top));
    check(&lab, "top.h5", "", &expected(&lab, "--flats f --darks d"));

    let away = |name: &str, words: &[&str]| {
        fs::rename(lab.path(name), lab.path("away")).unwrap();
        let words: Vec<&str> = ["--hdf5 top.h5: /exchange/data", "fill values"].iter().chain(words).copied().collect();
        refused(&lab, "--hdf5 top.h5", &words);
        fs::rename(lab.path("away"), lab.path(name)).unwrap();
    };
    away("part_3.h5", &["1 of its sources is missing: part_3.h5;", "beside top.h5", "HDF5_VDS_PREFIX"]);
    away("camera.h5", &["1 of its sources is missing: camera.h5;"]);
    // a file in its place that lacks the dataset, or is none
    fs::rename(lab.path("part_2.h5"), lab.path("kept")).unwrap();
    drop(file(&lab, "part_2.h5"));
    refused(&lab, "--hdf5 top.h5", &["missing: dataset /d of part_2.h5;"]);
    lab.text("part_2.h5", "something else\n");
    refused(&lab, "--hdf5 top.h5", &["missing: part_2.h5 ("]);
    fs::remove_file(lab.path("part_2.h5")).unwrap();
    for number in [1, 4, 5, 6] {
        fs::remove_file(lab.path(format!("part_{number}.h5"))).unwrap();
    }
    let message = refused(&lab, "--hdf5 top.h5", &["5 of its sources are missing: part_1.h5, part_2.h5, part_4.h5"]);
    assert!(message.contains("part_5.h5 and 1 more;"), "{message}");
    // a directory of its own
    lab.directory("store");
    for number in [0, 3, 7] {
        fs::rename(lab.path(format!("part_{number}.h5")), lab.path(format!("store/part_{number}.h5"))).unwrap();
    }
    fs::rename(lab.path("camera.h5"), lab.path("store/camera.h5")).unwrap();
    let mut command = lab.command("reconstruct --hdf5 top.h5 --output out");
    let output = command.env("HDF5_VDS_PREFIX", lab.path("store")).output().unwrap();
    lab.check_failure(&output, "with HDF5_VDS_PREFIX", 3, &["5 of its sources are missing: part_1.h5"]);
}

#[test]
fn a_file_that_changes_is_noticed() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    for (name, chunk) in [("plain.h5", None), ("chunked.h5", Some((1, ROWS, WIDTH)))] {
        let new = file(&lab, name);
        exchange(&new, &counts);
        let mut builder = new.new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH));
        if let Some(chunk) = chunk {
            builder = builder.chunk(chunk);
        }
        let values = cast(&counts.projections, |v| v as u16);
        builder.create("/exchange/data").unwrap().write_raw(&values).unwrap();
        drop((builder, new));
        let input = Hdf5Input { file: lab.path(name), ..Default::default() };
        let stacks = fbp::source::hdf5::open(&input, true, 1 << 30).unwrap();
        let mut row = vec![0f32; WIDTH];
        stacks.data.read_rows(7, 1..2, &mut row).unwrap();
        assert_eq!(row, counts.projections.pages[7][WIDTH..2 * WIDTH]);
        let mut append = fs::OpenOptions::new().append(true).open(lab.path(name)).unwrap();
        append.write_all(b"more").unwrap();
        let error = stacks.data.read_rows(7, 1..2, &mut row).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("writing to it"), "{error}");
    }
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

/// What `--hdf5` would take from a file, and what it has.
#[test]
fn info_tells_the_scan_of_a_file() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let exchanged = file(&lab, "exchange.h5");
    exchange(&exchanged, &counts);
    {
        let builder = exchanged.new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH)).chunk((2, ROWS, WIDTH)).deflate(1);
        builder.create("/exchange/data").unwrap().write_raw(&cast(&counts.projections, |v| v as u16)).unwrap();
    }
    drop(exchanged);
    let (out, _) = lab.ok("info exchange.h5");
    for line in [
        "layout          Data Exchange",
        "projections     16 of 32 x 3 pixels, /exchange/data: uint16, chunks of 2x3x32, gzip (filter 1)",
        "flats           3 of 32 x 3 pixels, /exchange/data_white: uint16, contiguous",
        "darks           2 of 32 x 3 pixels, /exchange/data_dark: uint16, contiguous",
        "angles          16, 0 to 180 degrees, /exchange/theta: given as degrees",
        "  /exchange/data 16x3x32 uint16, chunks of 2x3x32, gzip (filter 1)",
    ] {
        assert!(out.lines().any(|l| l == line), "no `{line}` in\n{out}");
    }

    nxtomo(&file(&lab, "scan.nx"), "/entry", &counts, true);
    let (out, _) = lab.ok("info scan.nx");
    let data = "/entry/instrument/detector/data: uint16, contiguous";
    for line in [
        "layout          NXtomo".to_owned(),
        format!("projections     16 of 32 x 3 pixels, {data}"),
        format!("flats           3 of 32 x 3 pixels, {data}"),
        format!("flats after     2 of 32 x 3 pixels, {data}"),
        format!("darks           2 of 32 x 3 pixels, {data}"),
        "angles          16, 0 to 180 degrees, /entry/sample/rotation_angle: no unit is given".to_owned(),
        "pixel size      0.65 um, which --pixel-size takes".to_owned(),
    ] {
        assert!(out.lines().any(|l| l == line), "no `{line}` in\n{out}");
    }
    assert!(out.contains("note            /entry/instrument/detector/image_key marks 3 frames as invalid"), "{out}");
    let (out, _) = lab.ok("info scan.nx --json");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["scan"]["layout"], "NXtomo");
    assert_eq!((&json["scan"]["flats_after"]["frames"], &json["scan"]["angles"]["count"]), (&2.into(), &16.into()));
    assert_eq!(json["datasets"].as_array().unwrap().len(), 1);

    // one without a scan that is known
    let own = file(&lab, "own.h5");
    volume(&own, "/scan/frames", &counts.projections, |v| v);
    drop(own);
    let (out, _) = lab.ok("info own.h5");
    assert!(out.contains("no scan         holds neither /exchange/data") && out.contains("--hdf5-data"), "{out}");
    assert!(out.ends_with("datasets\n  /scan/frames 16x3x32 float32, contiguous\n"), "{out}");
    let (out, _) = lab.ok("info own.h5 --json");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(json["scan"].is_null() && json["problem"].as_str().unwrap().contains("NXtomo"), "{out}");
}

/// Chunks that the library keeps are a part of the run's memory, of every source of a virtual dataset, too.
#[test]
fn chunk_caches_count_as_memory() {
    let _alone = alone();
    let lab = Lab::new();
    // 64 MiB, in chunks of a frame
    let (frames, rows, bins) = (256, 128, 1024);
    let values: Vec<u16> = (0..frames * rows * bins).map(|i| (i / 61 % 4093) as u16).collect();
    let write = |file: &File, name: &str, values: &[u16], chunked: bool| {
        let builder = file.new_dataset::<u16>().shape((values.len() / (rows * bins), rows, bins));
        match chunked {
            true => builder.chunk((1, rows, bins)).deflate(1).create(name).unwrap().write_raw(values).unwrap(),
            false => builder.create(name).unwrap().write_raw(values).unwrap(),
        }
    };
    write(&file(&lab, "plain.h5"), "/exchange/data", &values, false);
    write(&file(&lab, "chunked.h5"), "/exchange/data", &values, true);
    let parts = file(&lab, "parts.h5");
    let (shape, part, all) = ((frames, rows, bins), frames / 4, (.., .., ..));
    let mut builder = parts.new_dataset::<u16>().shape(shape);
    for (number, values) in values.chunks(part * rows * bins).enumerate() {
        let name = format!("part_{number}.h5");
        write(&file(&lab, &name), "/d", values, true);
        let to = (number * part..(number + 1) * part, .., ..);
        builder = builder.virtual_map(&name, "/d", (part, rows, bins), all, shape, to);
    }
    drop(builder.create("/exchange/data").unwrap());
    drop((builder, parts));

    let args = |name: &str, memory: &str| {
        format!("reconstruct --hdf5 {name} --overall-angle 180 --rows 0..2 --size 64 --memory {memory}")
    };
    let plan = |name: &str, memory: &str| {
        let (out, _) = lab.ok(&format!("{} --dry-run", args(name, memory)));
        out.lines().find_map(|line| Some(line.trim().strip_prefix("HDF5 chunks")?.trim().to_owned()))
    };
    assert_eq!(plan("plain.h5", "80M"), None);
    // an eighth, the table, and a chunk of 256 KiB that is decompressed
    assert_eq!(plan("chunked.h5", "80M").as_deref(), Some("10.5 MiB"));
    assert_eq!(plan("parts.h5", "80M").as_deref(), Some("10.5 MiB"));
    assert_eq!(plan("chunked.h5", "8G").as_deref(), Some("64.6 MiB"));

    let peak = |name: &str| {
        lab.ok(&format!("{} --overwrite --output r --report r.json", args(name, "80M")));
        let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
        report["peak_memory"].as_u64().unwrap() as f64 / f64::from(1 << 20)
    };
    // what is compiled and kept the first time does not count
    peak("plain.h5");
    let (plain, chunked, parts) = (peak("plain.h5"), peak("chunked.h5"), peak("parts.h5"));
    println!("peak memory in MiB: contiguous {plain:.0}, chunked {chunked:.0}, virtual {parts:.0}");
    assert!(chunked < plain + 30.0 && parts < plain + 30.0, "{plain} {chunked} {parts}");
}

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
    message(32015, Some("/no/plugins"), &["zstd (filter 32015)", "HDF5_PLUGIN_PATH is /no/plugins", install]);
    for (number, name) in [(32000, "lzf (filter 32000)"), (41234, "filter 41234")] {
        let text = message(number, None, &[name, "in no package of plugins", "HDF5_PLUGIN_PATH", "h5repack -f GZIP=1"]);
        assert!(!text.contains(install), "{text}");
    }
}

#[test]
fn files_that_do_not_fit() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let new = |name: &str| {
        let file = file(&lab, name);
        exchange(&file, &counts);
        file
    };
    let data = &counts.projections;
    let refuse = |name: &str, words: &[&str]| {
        let words: Vec<&str> = [name].iter().chain(words).copied().collect();
        refused(&lab, &format!("--hdf5 {name}"), &words);
    };
    lab.text("text.h5", "no HDF5 at all\n");
    refuse("text.h5", &["is not an HDF5 file"]);
    lab.text("empty.h5", "");
    refuse("empty.h5", &["is not an HDF5 file"]);
    refuse("nothing.h5", &["does not exist"]);
    lab.directory("directory.h5");
    refuse("directory.h5", &["is not an HDF5 file"]);

    let flat = new("rank2.h5").new_dataset::<u16>().shape((ROWS, WIDTH)).create("/exchange/data").unwrap();
    flat.write_raw(&vec![1u16; ROWS * WIDTH]).unwrap();
    drop(flat);
    refuse("rank2.h5", &["/exchange/data", "3x32", "single frame", "three dimensions"]);
    drop(new("zero.h5").new_dataset::<u16>().shape((0, ROWS, WIDTH)).create("/exchange/data").unwrap());
    refuse("zero.h5", &["/exchange/data", "0x3x32"]);
    drop(new("unwritten.h5").new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH)).create("/exchange/data").unwrap());
    refuse("unwritten.h5", &["/exchange/data", "no data was written"]);
    let huge =
        new("huge.h5").new_dataset::<u8>().chunk((1, 64, 64)).shape((4, 1 << 30, 1 << 30)).create("/exchange/data");
    drop(huge.unwrap());
    refuse("huge.h5", &["/exchange/data", "claims the shape"]);
    volume(&new("u64.h5"), "/exchange/data", data, |v| v as u64);
    refuse("u64.h5", &["/exchange/data", "uint64", "8, 16 or 32 bits"]);
    new("dangling.h5").link_external("gone.h5", "/exchange/data", "/exchange/data").unwrap();
    refuse("dangling.h5", &["/exchange/data", "gone.h5"]);

    for (name, values, words) in [
        ("few.h5", vec![0.0; FRAMES - 1], "/exchange/theta has 15 angles, but there are 16 projections"),
        ("nan.h5", [&[f64::NAN], &angles()[1..]].concat(), "/exchange/theta: the angle of projection 0 is NaN"),
        ("far.h5", [&[1e12], &angles()[1..]].concat(), "1000000000000.0 of projection 0"),
    ] {
        let file = file(&lab, name);
        volume(&file, "/exchange/data", data, |v| v as u16);
        list(&file, "/exchange/theta", &values);
        drop(file);
        refuse(name, &[words]);
    }
    let size = file(&lab, "size.h5");
    volume(&size, "/exchange/data", data, |v| v as u16);
    let narrow = Pages { width: 8, pages: vec![vec![1.0; 8 * ROWS]] };
    volume(&size, "/exchange/data_white", &narrow, |v| v as u16);
    list(&size, "/exchange/theta", &angles());
    drop(size);
    refuse("size.h5", &["/exchange/data_white", "8x3", "32x3"]);

    for (name, keys, words) in [
        ("short.h5", vec![0; FRAMES - 2], "/entry/instrument/detector/image_key has 14 keys"),
        ("key.h5", vec![7; FRAMES], "image_key: key 7 of frame 0"),
        ("none.h5", vec![1; FRAMES], "no frame as a projection"),
    ] {
        let file = file(&lab, name);
        volume(&file, "/entry/instrument/detector/data", data, |v| v as u16);
        list(&file, "/entry/instrument/detector/image_key", &keys);
        drop(file);
        refuse(name, &[words]);
    }

    // a file that was cut short
    volume(&new("whole.h5"), "/exchange/data", data, |v| v as u16);
    let bytes = fs::read(lab.path("whole.h5")).unwrap();
    for length in [8, 100, 600, bytes.len() / 2, bytes.len() - 1] {
        fs::write(lab.path("cut.h5"), &bytes[..length]).unwrap();
        refuse("cut.h5", &[]);
    }
    // chunks that were never written are told
    let file = new("stopped.h5");
    let half = Pages { width: WIDTH, pages: data.pages[..FRAMES / 2].to_vec() };
    let chunked = file.new_dataset::<u16>().shape((FRAMES / 2.., ROWS, WIDTH)).chunk((1, ROWS, WIDTH));
    let stopped = chunked.create("/exchange/data").unwrap();
    stopped.write_raw(&cast(&half, |v| v as u16)).unwrap();
    stopped.resize((FRAMES, ROWS, WIDTH)).unwrap();
    drop((stopped, chunked, file));
    let (_, err) = lab.ok("reconstruct --hdf5 stopped.h5 --output stopped");
    assert!(err.contains("8 of 16 chunks were never written"), "{err}");
}

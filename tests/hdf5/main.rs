//! `--hdf5`: the slices are those of the same data as TIFF, and odd files are refused.
#![cfg(feature = "hdf5")]

#[path = "../support/mod.rs"]
mod support;

mod chunks;
mod currents;
mod damaged;
mod examples;
mod joined;
mod keys;
mod layouts;
mod links;
mod metadata;
mod nights;
mod pages;
mod parts;
mod refusals;
mod sources;
mod stored;

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File, H5Type};
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
        let lines = SMALL.sinograms().transposed();
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

/// What `--hdf5` would take from a file, and what it has.
#[test]
fn info_describes_the_scan_of_a_file() {
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
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/hdf5.md")).unwrap();
    let shown = page.split("```text\nlayout ").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(out, format!("layout {shown}"));

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
    let datasets: Vec<&str> = json["datasets"].as_array().unwrap().iter().filter_map(|text| text.as_str()).collect();
    let detector = "/entry/instrument/detector";
    assert_eq!(
        datasets,
        [
            format!("{detector}/data 26x3x32 uint16, contiguous"),
            format!("{detector}/image_key 26 int32, contiguous"),
            "/entry/sample/rotation_angle 26 float64, contiguous".to_owned(),
        ]
    );

    // one without a scan that is known
    let own = file(&lab, "own.h5");
    volume(&own, "/scan/frames", &counts.projections, |v| v);
    drop(own);
    let (out, _) = lab.ok("info own.h5");
    assert!(out.contains("no scan         contains neither /exchange/data") && out.contains("--hdf5-data"), "{out}");
    assert!(out.ends_with("datasets\n  /scan/frames 16x3x32 float32, contiguous\n"), "{out}");
    let (out, _) = lab.ok("info own.h5 --json");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(json["scan"].is_null() && json["problem"].as_str().unwrap().contains("NXtomo"), "{out}");
}

/// What `--phase` needs is read where flags do not say it; slices stay per pixel.
#[test]
fn phase_takes_energy_distance_and_pixel_size_from_the_file() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let scan = file(&lab, "scan.nx");
    nxtomo(&scan, "/entry", &counts, false);
    unit(&list(&scan, "/entry/beam/incident_energy", &[20000.0]), "eV");
    unit(&list(&scan, "/entry/instrument/detector/distance", &[0.02]), "meters");
    drop(scan);
    let paganin = "--hdf5 scan.nx --phase paganin --center 15.2";
    let phase = format!("{paganin} --delta-beta 50");
    let (_, err) = lab.ok(&format!("reconstruct {phase} --output by-file"));
    for (what, dataset) in [
        ("energy of 20 keV", "/entry/beam/incident_energy"),
        ("distance of 0.02 m", "/entry/instrument/detector/distance"),
        ("pixel size of 0.65 um", "/entry/instrument/detector/x_pixel_size"),
    ] {
        let note = format!("note: --phase uses the {what} that the file gives as {dataset}");
        assert!(err.contains(&note), "no `{note}` in\n{err}");
    }
    // flags go before
    let (_, err) = lab.ok(&format!("reconstruct {phase} --distance 40mm --energy-kev 40 --output by-both"));
    assert!(!err.contains("uses the energy") && !err.contains("uses the distance"), "{err}");
    assert!(err.contains("uses the pixel size"), "{err}");
    let flags = "--distance 20mm --energy-kev 20 --pixel-size 0.65um";
    let (_, err) = lab.ok(&format!("reconstruct {phase} {flags} --output by-flags"));
    assert!(!err.contains("--phase uses"), "{err}");
    // the same filter, and only the flag gives values another unit
    let (by_file, by_flags) = (lab.read("by-file"), lab.read("by-flags"));
    for (a, b) in by_file.pages.iter().flatten().zip(by_flags.pages.iter().flatten()) {
        assert!((a / 0.65 - b).abs() <= 1e-5 * b.abs().max(1e-3), "{a} {b}");
    }
    // what is odd is said
    for (flags, words) in [
        ("--delta-beta 50 --energy-kev 20000", "20000 keV is no usual energy"),
        ("--delta-beta 0.003", "the inverse is 333.3"),
        ("--delta-beta 50 --distance 2um", "the filter has a length of 0.0"),
    ] {
        let (_, err) = lab.ok(&format!("reconstruct {paganin} {flags} --output odd --overwrite"));
        assert!(err.contains("warning: ") && err.contains(words), "{flags}: {err}");
    }
}

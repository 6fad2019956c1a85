//! Data in other files, virtual datasets, files that change, and the memory that chunks take.

use super::{Counts, FRAMES, ROWS, WIDTH, alone, cast, check, exchange, expected, file, refused, volume};
use crate::support::cli::{Lab, Pages};
use fbp::source::Hdf5Input;
use hdf5_metno::File;
use hdf5_metno::filters::ScaleOffset;
use hdf5_metno::plist::DatasetCreateBuilder;
use std::fs;
use std::io::Write;

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
    let full = file(&lab, "whole.h5");
    exchange(&full, &counts);
    volume(&file(&lab, "all.h5"), "/d", &counts.projections, |v| v as u16);
    let all = (.., .., ..);
    let builder = full.new_dataset::<u16>().shape(shape).virtual_map("all.h5", "/d", shape, all, shape, all);
    drop(builder.create("/exchange/data").unwrap());
    drop((builder, full));
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
        assert!(error.contains(name) && error.contains("writes to it"), "{error}");
    }

    // external storage belongs to the file
    let raw = lab.path("frames.raw");
    let bytes: Vec<u8> = cast(&counts.projections, |v| (v as u16).to_ne_bytes()).concat();
    fs::write(&raw, &bytes).unwrap();
    let outside = file(&lab, "outside.h5");
    exchange(&outside, &counts);
    let builder = outside.new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH));
    drop(builder.external(raw.to_str().unwrap(), 0, bytes.len()).create("/exchange/data").unwrap());
    drop(outside);
    let input = Hdf5Input { file: lab.path("outside.h5"), ..Default::default() };
    let stacks = fbp::source::hdf5::open(&input, true, 1 << 30).unwrap();
    assert!(stacks.data.files().contains(&raw));
    let mut row = vec![0f32; WIDTH];
    stacks.data.read_rows(7, 1..2, &mut row).unwrap();
    assert_eq!(row, counts.projections.pages[7][WIDTH..2 * WIDTH]);
    let before = stacks.data.fingerprint();
    fs::OpenOptions::new().append(true).open(&raw).unwrap().write_all(b"more").unwrap();
    let error = stacks.data.read_rows(7, 1..2, &mut row).unwrap_err().to_string();
    assert!(error.contains("frames.raw") && error.contains("writes to it"), "{error}");
    assert_ne!(fbp::source::hdf5::open(&input, true, 1 << 30).unwrap().data.fingerprint(), before);
}

/// Chunks that are kept, here or by the library, are a part of the run's memory, of every source of a virtual dataset, too.
#[test]
fn chunk_caches_count_as_memory() {
    let _alone = alone();
    let lab = Lab::new();
    // 64 MiB, in chunks of a frame
    let (frames, rows, bins) = (256, 128, 1024);
    let values: Vec<u16> = (0..frames * rows * bins).map(|i| (i / 61 % 4093) as u16).collect();
    type Filters = fn(&mut DatasetCreateBuilder) -> &mut DatasetCreateBuilder;
    let write = |file: &File, name: &str, values: &[u16], filters: Option<Filters>| {
        let builder = file.new_dataset::<u16>().shape((values.len() / (rows * bins), rows, bins));
        let builder = match filters {
            Some(filters) => builder.chunk((1, rows, bins)).with_dcpl(filters),
            None => builder,
        };
        builder.create(name).unwrap().write_raw(values).unwrap();
    };
    let gzip: Filters = |data| data.deflate(1);
    // a filter of the library
    let packed: Filters = |data| data.scale_offset(ScaleOffset::Integer(0));
    write(&file(&lab, "plain.h5"), "/exchange/data", &values, None);
    write(&file(&lab, "chunked.h5"), "/exchange/data", &values, Some(gzip));
    for (name, filters) in [("parts.h5", gzip), ("packed.h5", packed)] {
        let parts = file(&lab, name);
        let (shape, part, all) = ((frames, rows, bins), frames / 4, (.., .., ..));
        let mut builder = parts.new_dataset::<u16>().shape(shape);
        for (number, values) in values.chunks(part * rows * bins).enumerate() {
            let name = format!("part_{number}_of_{name}");
            write(&file(&lab, &name), "/d", values, Some(filters));
            let to = (number * part..(number + 1) * part, .., ..);
            builder = builder.virtual_map(&name, "/d", (part, rows, bins), all, shape, to);
        }
        drop(builder.create("/exchange/data").unwrap());
        drop((builder, parts));
    }

    let args = |name: &str, memory: &str| {
        format!("reconstruct --hdf5 {name} --overall-angle 180 --rows 0..2 --size 64 --memory {memory}")
    };
    let plan = |name: &str, memory: &str| {
        let (out, _) = lab.ok(&format!("{} --dry-run", args(name, memory)));
        out.lines().find_map(|line| Some(line.trim().strip_prefix("input chunks")?.trim().to_owned()))
    };
    assert_eq!(plan("plain.h5", "80M"), None);
    let held = |name: &str, memory: &str| -> f64 {
        plan(name, memory).and_then(|text| text.strip_suffix(" MiB")?.parse().ok()).unwrap()
    };
    // of the library: an eighth, the table, and a chunk of 256 KiB that is decompressed
    assert_eq!(held("packed.h5", "80M"), 10.5);
    // a quarter in whole chunks; all of them, and what threads decode
    let threads = std::thread::available_parallelism().unwrap().get() as f64;
    for name in ["chunked.h5", "parts.h5"] {
        let (some, all) = (held(name, "80M"), held(name, "8G"));
        assert!((19.0..=20.1).contains(&some) && (64.5..65.0 + threads).contains(&all), "{name} {some} {all}");
    }

    // the same named as a dataset
    let named = "reconstruct --projections chunked.h5::/exchange/data --overall-angle 180 --rows 0..2 --size 64";
    let (out, _) = lab.ok(&format!("{named} --memory 80M --dry-run"));
    let some = format!("input chunks          {:.1} MiB", held("chunked.h5", "80M"));
    assert!(out.contains(&some), "no {some} in {out}");

    let peak = |name: &str| {
        lab.ok(&format!("{} --overwrite --output r --report r.json", args(name, "80M")));
        let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
        report["peak_memory"].as_u64().unwrap() as f64 / f64::from(1 << 20)
    };
    // what is compiled and kept the first time does not count
    peak("plain.h5");
    let plain = peak("plain.h5");
    let others = ["chunked.h5", "parts.h5", "packed.h5"].map(peak);
    println!("peak memory in MiB: contiguous {plain:.0}, chunked, virtual, and virtual by the library {others:.0?}");
    assert!(others.iter().all(|&peak| peak < plain + 30.0), "{plain} {others:?}");
}

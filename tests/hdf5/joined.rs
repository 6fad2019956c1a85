//! Virtual datasets: those of whole frames are read without the library, the others by it, with the same values.

use super::chunks::read_all;
use super::{alone, file};
use crate::support::cli::{Lab, text};
use fbp::source::{Hdf5Input, Stack};
use hdf5_metno::filters::ScaleOffset;
use hdf5_metno::plist::DatasetCreateBuilder;
use hdf5_metno::{File, H5Type, Selection, SliceOrIndex};
use std::fs;
use std::io::Write;
use std::ops::RangeFull;

/// Frames, rows, bins.
const SHAPE: (usize, usize, usize) = (12, 5, 7);
const FRAME: usize = SHAPE.1 * SHAPE.2;
const ALL: (RangeFull, RangeFull, RangeFull) = (.., .., ..);

/// How the values of a source are stored: chunks and filters.
type Storage = (Option<(usize, usize, usize)>, fn(&mut DatasetCreateBuilder) -> &mut DatasetCreateBuilder);

const CONTIGUOUS: Storage = (None, |data| data);
const FRAMES: Storage = (Some((1, 5, 7)), |data| data);
const GZIP: Storage = (Some((2, 3, 4)), |data| data.shuffle().deflate(4));
const CHECKED: Storage = (Some((4, 5, 7)), |data| data.fletcher32());
const PACKED: Storage = (Some((2, 5, 7)), |data| data.scale_offset(ScaleOffset::Integer(0)));

fn values(frames: usize) -> Vec<u16> {
    (0..frames * FRAME).map(|i| (1000 + i / 3 + i * i % 41) as u16).collect()
}

/// A file with a dataset `/d` of frames.
fn source<T: H5Type>(lab: &Lab, name: &str, values: &[T], (chunk, filters): Storage) {
    let (new, count) = (file(lab, name), values.len() / FRAME);
    let builder = new.new_dataset::<T>().shape((count, SHAPE.1, SHAPE.2)).with_dcpl(filters);
    let builder = match chunk {
        Some((frames, rows, bins)) => builder.chunk((frames.min(count), rows, bins)),
        None => builder,
    };
    let data = builder.create("/d").unwrap();
    assert_eq!(data.is_chunked(), chunk.is_some());
    data.write_raw(values).unwrap();
}

/// A mapping: file and dataset, their shape and selection, and the selection of the virtual dataset.
type Part = (String, Vec<usize>, Selection, Selection);

fn part(name: &str, frames: usize, from: impl Into<Selection>, to: impl Into<Selection>) -> Part {
    (name.to_owned(), vec![frames, SHAPE.1, SHAPE.2], from.into(), to.into())
}

/// A virtual dataset.
fn join(lab: &Lab, name: &str, path: &str, shape: &[usize], parts: &[Part]) {
    let new = file(lab, name);
    let mut builder = new.new_dataset::<u16>().shape(shape).fill_value(77u16);
    for (name, extent, from, to) in parts {
        let (name, path) = name.split_once("::").unwrap_or((name, "/d"));
        builder = builder.virtual_map(name, path, extent, from.clone(), shape, to.clone());
    }
    drop(builder.create(path).unwrap());
}

fn steps(start: usize, step: usize, count: usize, block: usize) -> (SliceOrIndex, RangeFull, RangeFull) {
    (SliceOrIndex::SliceCount { start, step, count, block }, .., ..)
}

fn open(lab: &Lab, memory: u64) -> Stack {
    let input = Hdf5Input { file: lab.path("x.h5"), data: Some("/d".into()), ..Default::default() };
    fbp::source::hdf5::open(&input, false, memory).unwrap().data
}

/// The values are those that the library reads, whoever reads them, which is as expected.
fn check(lab: &Lab, what: &str, direct: bool, parts: &[Part]) {
    join(lab, "x.h5", "/d", &[SHAPE.0, SHAPE.1, SHAPE.2], parts);
    let library: Vec<u16> = File::open(lab.path("x.h5")).unwrap().dataset("/d").unwrap().read_raw().unwrap();
    source(lab, "expected.h5", &library, CONTIGUOUS);
    for memory in [0, 3000, 1 << 30] {
        let found = read_all(&open(lab, memory), SHAPE.1, SHAPE.2);
        assert!(found.iter().zip(&library).all(|(&a, &b)| a == f32::from(b)), "{what}, {memory} bytes");
    }
    let mut command = lab.command("compare x.h5::/d expected.h5::/d --tolerance 0");
    let output = command.env("FBP_TEST_FAULT", "hdf5=crash-rows").output().unwrap();
    let (code, err) = (output.status.code(), text(&output.stderr));
    match direct {
        true => assert_eq!(code, Some(0), "{what}: {err}"),
        false => assert!(code == Some(3) && err.contains("the HDF5 library (version"), "{what}: {code:?} {err}"),
    }
}

#[test]
fn virtual_datasets_of_whole_frames() {
    let _alone = alone();
    let lab = Lab::new();
    let all = values(12);
    let storages = [CONTIGUOUS, FRAMES, GZIP, CHECKED];
    for (number, storage) in storages.into_iter().enumerate() {
        let other = storages[(number + 1) % storages.len()];
        // unevenly, each source in another way
        source(&lab, "a.h5", &all[..FRAME], storage);
        source(&lab, "b.h5", &all[FRAME..6 * FRAME], other);
        source(&lab, "c.h5", &all[6 * FRAME..], GZIP);
        let parts = [
            part("a.h5", 1, ALL, (0..1, .., ..)),
            part("b.h5", 5, ALL, (1..6, .., ..)),
            part("c.h5", 6, ALL, (6..12, .., ..)),
        ];
        check(&lab, &format!("in turn, {number}"), true, &parts);
        // every third frame, as shards write them
        let shards: Vec<Part> = (0..3)
            .map(|shard| {
                let own: Vec<u16> = all.chunks(FRAME).skip(shard).step_by(3).flatten().copied().collect();
                let name = format!("shard-{shard}.h5");
                source(&lab, &name, &own, if shard == 1 { other } else { storage });
                part(&name, 4, ALL, steps(shard, 3, 4, 1))
            })
            .collect();
        check(&lab, &format!("shards, {number}"), true, &shards);
        // parts of a source, and blocks at distances
        source(&lab, "long.h5", &values(20), storage);
        let parts = [
            part("long.h5", 20, (3..7, .., ..), steps(0, 4, 2, 2)),
            part("long.h5", 20, steps(10, 5, 2, 2), (8..12, .., ..)),
            part("long.h5", 20, steps(7, 4, 4, 1), steps(2, 4, 2, 2)),
        ];
        check(&lab, &format!("blocks, {number}"), true, &parts);
        // a virtual dataset of a virtual one
        let all_of_it = [part("long.h5", 20, ALL, ALL)];
        join(&lab, "inner.h5", "/d", &[20, SHAPE.1, SHAPE.2], &all_of_it);
        let mut parts = vec![part("inner.h5", 20, (8..14, .., ..), steps(0, 2, 6, 1))];
        parts.extend((0..6).map(|i| part("c.h5", 6, (i..i + 1, .., ..), (2 * i + 1..2 * i + 2, .., ..))));
        check(&lab, &format!("nested, {number}"), true, &parts);
    }
}

/// Chunks of a source that were never written have its fill value, not that of the virtual dataset.
#[test]
fn sources_that_are_not_complete() {
    let _alone = alone();
    let lab = Lab::new();
    for latest in [false, true] {
        let mut options = File::with_options();
        let new = match latest {
            true => options.with_fapl(|access| access.libver_latest()).create(lab.path("a.h5")),
            false => options.create(lab.path("a.h5")),
        };
        let new = new.unwrap();
        let builder = new.new_dataset::<u16>().shape(SHAPE).chunk((2, 5, 7)).fill_value(9u16);
        let data = builder.create("/d").unwrap();
        data.write_slice(&[3u16; SHAPE.2], (5, 2, ..)).unwrap();
        drop((data, builder, new));
        check(&lab, "gaps", true, &[part("a.h5", 12, ALL, ALL)]);
        assert_eq!(read_all(&open(&lab, 1 << 20), SHAPE.1, SHAPE.2)[0], 9.0);
    }
}

/// Sources that are single frames, in files of their own and in the file itself; and a virtual dataset that is one.
#[test]
fn virtual_datasets_of_single_frames() {
    let _alone = alone();
    let lab = Lab::new();
    let all = values(12);
    let frame = [SHAPE.1, SHAPE.2];
    let single = |name: &str| (name.to_owned(), frame.to_vec(), (.., ..).into());
    let parts: Vec<Part> = (0..12)
        .map(|number| {
            let name = format!("frame-{number}.h5");
            let builder = file(&lab, &name).new_dataset::<u16>().shape(frame);
            let builder = if number % 2 == 0 { builder.chunk((2, 7)).deflate(1) } else { builder };
            builder.create("/d").unwrap().write_raw(&all[number * FRAME..][..FRAME]).unwrap();
            let (name, extent, from) = single(&name);
            (name, extent, from, (number..number + 1, .., ..).into())
        })
        .collect();
    check(&lab, "single frames", true, &parts);

    source(&lab, "a.h5", &all, FRAMES);
    let (name, extent, from) = single("frame-4.h5");
    let new = file(&lab, "x.h5");
    let builder = new.new_dataset::<u16>().shape(frame).virtual_map(name, "/d", extent, from, frame, (.., ..));
    drop(builder.create("/white").unwrap());
    let to = (SliceOrIndex::from(0..12), .., ..);
    let builder = new.new_dataset::<u16>().shape(SHAPE).virtual_map("a.h5", "/d", SHAPE, ALL, SHAPE, to);
    drop(builder.create("/inner").unwrap());
    let builder = new.new_dataset::<u16>().shape(SHAPE).virtual_map(".", "/inner", SHAPE, ALL, SHAPE, ALL);
    drop(builder.create("/d").unwrap());
    drop((builder, new));
    let input = Hdf5Input {
        file: lab.path("x.h5"),
        data: Some("/d".into()),
        flats: Some("/white".into()),
        ..Default::default()
    };
    let stacks = fbp::source::hdf5::open(&input, false, 1 << 20).unwrap();
    let as_f32 = |values: &[u16]| values.iter().map(|&value| f32::from(value)).collect::<Vec<_>>();
    assert_eq!(read_all(&stacks.data, SHAPE.1, SHAPE.2), as_f32(&all));
    assert_eq!(read_all(&stacks.flats.unwrap(), SHAPE.1, SHAPE.2), as_f32(&all[4 * FRAME..5 * FRAME]));
}

/// What the library has to read, with values of its own, too.
#[test]
fn other_virtual_datasets() {
    let _alone = alone();
    let lab = Lab::new();
    let all = values(12);
    source(&lab, "a.h5", &all, FRAMES);
    source(&lab, "b.h5", &all[..6 * FRAME], GZIP);
    source(&lab, "packed.h5", &all, PACKED);
    let bytes: Vec<u8> = all.iter().map(|&value| value as u8).collect();
    source(&lab, "bytes.h5", &bytes, FRAMES);
    let rows = [part("a.h5", 12, (.., 0..2, ..), (.., 3..5, ..)), part("a.h5", 12, (.., 2..5, ..), (.., 0..3, ..))];
    check(&lab, "parts of frames", false, &rows);
    check(&lab, "frames without a source", false, &[part("b.h5", 6, ALL, (3..9, .., ..))]);
    check(&lab, "other type", false, &[part("bytes.h5", 12, ALL, ALL)]);
    check(&lab, "other filter", false, &[part("packed.h5", 12, ALL, ALL)]);
    let twice = [part("a.h5", 12, ALL, ALL), part("b.h5", 6, ALL, (3..9, .., ..))];
    check(&lab, "one above the other", false, &twice);
    // a source that has become shorter than its mapping
    join(&lab, "x.h5", "/d", &[SHAPE.0, SHAPE.1, SHAPE.2], &[part("b.h5", 12, (0..12, .., ..), ALL)]);
    lab.fails("compare x.h5::/d expected.h5::/d", 3, &["x.h5: /d frame", "cannot be read"]);
}

/// A source is watched as the file itself is.
#[test]
fn a_source_that_changes_is_noticed() {
    let _alone = alone();
    let lab = Lab::new();
    let all = values(12);
    source(&lab, "a.h5", &all[..6 * FRAME], CONTIGUOUS);
    source(&lab, "b.h5", &all[6 * FRAME..], GZIP);
    let parts = [part("a.h5", 6, ALL, (0..6, .., ..)), part("b.h5", 6, ALL, (6..12, .., ..))];
    join(&lab, "x.h5", "/d", &[SHAPE.0, SHAPE.1, SHAPE.2], &parts);
    let stack = open(&lab, 1 << 20);
    let mut row = vec![0f32; SHAPE.2];
    stack.read_rows(7, 1..2, &mut row).unwrap();
    fs::OpenOptions::new().append(true).open(lab.path("b.h5")).unwrap().write_all(b"more").unwrap();
    stack.read_rows(2, 1..2, &mut row).unwrap();
    let error = stack.read_rows(7, 1..2, &mut row).unwrap_err().to_string();
    assert!(error.contains("b.h5") && error.contains("writes to it"), "{error}");
    // a source that is damaged is named with its dataset
    source(&lab, "b.h5", &all[6 * FRAME..], (Some((6, 5, 7)), |data| data.fletcher32()));
    let place = File::open(lab.path("b.h5")).unwrap().dataset("/d").unwrap().chunk_info(0).unwrap();
    let mut bytes = fs::read(lab.path("b.h5")).unwrap();
    bytes[place.addr as usize] ^= 1;
    fs::write(lab.path("b.h5"), &bytes).unwrap();
    let error = open(&lab, 1 << 20).read_rows(7, 1..2, &mut row).unwrap_err().to_string();
    assert!(error.contains("b.h5: /d frame 7: chunk 0, 0, 0 is damaged"), "{error}");
    fs::write(lab.path("b.h5"), &bytes[..place.addr as usize]).unwrap();
    let input = Hdf5Input { file: lab.path("x.h5"), data: Some("/d".into()), ..Default::default() };
    let error = fbp::source::hdf5::open(&input, false, 0).unwrap_err().to_string();
    assert!(error.contains("b.h5"), "{error}");
}

/// More sources than files may be open.
#[test]
fn many_sources_and_few_open_files() {
    let _alone = alone();
    let lab = Lab::new();
    let count = 150;
    let all = values(count);
    let parts: Vec<Part> = (0..count)
        .map(|number| {
            let name = format!("frame-{number}.h5");
            source(&lab, &name, &all[number * FRAME..][..FRAME], if number % 2 == 0 { GZIP } else { CONTIGUOUS });
            part(&name, 1, ALL, (number..number + 1, .., ..))
        })
        .collect();
    join(&lab, "x.h5", "/d", &[count, SHAPE.1, SHAPE.2], &parts);
    source(&lab, "expected.h5", &all, CONTIGUOUS);
    let program = assert_cmd::cargo::cargo_bin("fbp");
    let mut command = std::process::Command::new("sh");
    let limited = "ulimit -n 100 && exec \"$0\" compare x.h5::/d expected.h5::/d --tolerance 0";
    let output = command.args(["-c", limited]).arg(program).current_dir(lab.path("")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

//! Chunks that are read without the library: the values are those of the same data contiguous, whatever the chunks' shape,
//! filters, filters skipped, and places that were never written; damage is an error or leaves the values right.

use super::{alone, file};
use crate::support::cli::{Lab, Pages};
use encoders::{
    Blosc2Form, Pack, bitshuffled, blosc_of, blosc2_of, deflated, lz4_blocks_of, lz4_of, lzf_of, sorted_bytes, zstd_of,
};
use fbp::layout::hdf5::{ChunkIndex, index};
use fbp::source::{Hdf5Input, Stack};
use hdf5_metno::filters::Filter;
use hdf5_metno::plist::dataset_create::AllocTime;
use hdf5_metno::{Dataset, Extent, File, H5Type};
use std::fs;

#[path = "../support/encoders.rs"]
mod encoders;

const BLOSC2: Blosc2Form = Blosc2Form { size: 2, block: 256, codec: 1, filter: 2, divided: true };

/// Frames, rows, bins.
const SHAPE: (usize, usize, usize) = (5, 9, 70);
const VALUES: usize = SHAPE.0 * SHAPE.1 * SHAPE.2;
const CHUNKS: [(usize, usize, usize); 5] = [(1, 9, 70), (1, 4, 70), (3, 4, 33), (5, 9, 70), (2, 1, 8)];

fn values() -> Vec<u16> {
    (0..VALUES).map(|i| (1000 + i / 5 + i * i % 37) as u16).collect()
}

fn open(lab: &Lab, memory: u64) -> Stack {
    let input = Hdf5Input { file: lab.path("x.h5"), ..Default::default() };
    fbp::source::hdf5::open(&input, false, memory).unwrap().data
}

/// All rows of all frames, a few rows at a time as a run reads them.
fn read(stack: &Stack) -> Result<Vec<f32>, String> {
    let mut all = vec![0f32; VALUES];
    let rows_at_once = 4;
    for start in (0..SHAPE.1).step_by(rows_at_once) {
        let end = (start + rows_at_once).min(SHAPE.1);
        for frame in 0..SHAPE.0 {
            let at = frame * SHAPE.1 * SHAPE.2;
            let out = &mut all[at + start * SHAPE.2..at + end * SHAPE.2];
            stack.read_rows(frame, start..end, out).map_err(|e| e.to_string())?;
        }
    }
    Ok(all)
}

fn as_f32(values: &[u16]) -> Vec<f32> {
    values.iter().map(|&value| value.into()).collect()
}

/// A dataset whose chunks the test writes itself; filters as the library knows them.
fn dataset<T: H5Type>(file: &File, chunk: (usize, usize, usize), filters: &[Filter]) -> Dataset {
    let builder = file.new_dataset::<T>().shape(SHAPE).chunk(chunk).set_filters(filters);
    builder.create("/exchange/data").unwrap()
}

/// First value of every chunk.
fn firsts(chunk: (usize, usize, usize)) -> Vec<[usize; 3]> {
    let along = |side: usize, step: usize| (0..side).step_by(step).collect::<Vec<_>>();
    let (z, y, x) = (along(SHAPE.0, chunk.0), along(SHAPE.1, chunk.1), along(SHAPE.2, chunk.2));
    z.iter()
        .flat_map(|&z| {
            y.iter().flat_map({
                let x = &x;
                move |&y| x.iter().map(move |&x| [z, y, x])
            })
        })
        .collect()
}

/// The bytes of a chunk; what sticks out is noise.
fn chunk_bytes(values: &[u16], first: [usize; 3], chunk: (usize, usize, usize)) -> Vec<u8> {
    let mut bytes = Vec::new();
    for z in first[0]..first[0] + chunk.0 {
        for y in first[1]..first[1] + chunk.1 {
            for x in first[2]..first[2] + chunk.2 {
                let inside = z < SHAPE.0 && y < SHAPE.1 && x < SHAPE.2;
                let value = if inside { values[(z * SHAPE.1 + y) * SHAPE.2 + x] } else { 0xbeef };
                bytes.extend(value.to_le_bytes());
            }
        }
    }
    bytes
}

fn write_chunk(dataset: &Dataset, skipped: u32, first: [usize; 3], bytes: &[u8]) {
    assert!(vds_sys::write_chunk(dataset, skipped, &first.map(|at| at as u64), bytes));
}

/// Makes the only deflate filter of a file another.
fn renumber(lab: &Lab, number: u16) {
    let mut bytes = fs::read(lab.path("x.h5")).unwrap();
    let at = bytes.windows(7).position(|word| word == b"deflate").unwrap() - 8;
    bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
    fs::write(lab.path("x.h5"), bytes).unwrap();
}

/// Makes the filter scale-offset, which has many parameters, bitshuffle.
fn make_bitshuffle(lab: &Lab, parameters: [u32; 5]) {
    let mut bytes = fs::read(lab.path("x.h5")).unwrap();
    let at = bytes.windows(11).position(|word| word == b"scaleoffset").unwrap();
    bytes[at - 8..at - 6].copy_from_slice(&32008u16.to_le_bytes());
    for (place, parameter) in parameters.into_iter().enumerate() {
        bytes[at + 16 + 4 * place..][..4].copy_from_slice(&parameter.to_le_bytes());
    }
    fs::write(lab.path("x.h5"), bytes).unwrap();
}

/// Files with every filter that HDF5's library does not have; memory for all, some and none of the chunks.
#[test]
fn filters_that_the_library_lacks() {
    let _alone = alone();
    let lab = Lab::new();
    let values = values();
    let lz4: Pack = |data| lz4_blocks_of(100, data);
    let blosc2: Pack = |data| blosc2_of(data, BLOSC2, None);
    let blosc: [Pack; 4] = [
        |data| blosc_of(data, 2, 256, 0, 0, true),
        |data| blosc_of(data, 2, 400, 1, 4, false),
        |data| blosc_of(data, 2, 1 << 20, 3, 1, false),
        |data| blosc_of(data, 2, 256, 4, 1, true),
    ];
    let bits: [(u32, u32, Pack); 4] = [
        (0, 0, |data| bitshuffled(2, 4096, None, data)),
        (64, 0, |data| bitshuffled(2, 64, None, data)),
        (0, 2, |data| bitshuffled(2, 64, Some(lz4_of), data)),
        (0, 3, |data| bitshuffled(2, 4096, Some(zstd_of), data)),
    ];
    for chunk in CHUNKS {
        let check = |filters: &[Filter], pack: Pack, change: &dyn Fn(), what: &str| {
            let new = file(&lab, "x.h5");
            let data = dataset::<u16>(&new, chunk, filters);
            for first in firsts(chunk) {
                write_chunk(&data, 0, first, &pack(&chunk_bytes(&values, first, chunk)));
            }
            drop((data, new));
            change();
            for memory in [0, 40_000, 1 << 30] {
                let stack = open(&lab, memory);
                assert!(stack.held() > 0);
                assert_eq!(read(&stack).unwrap(), as_f32(&values), "{what}, chunks {chunk:?}, {memory} bytes");
            }
        };
        let deflate = [Filter::Deflate(1)];
        check(&deflate, deflated, &|| (), "gzip");
        check(&deflate, zstd_of, &|| renumber(&lab, 32015), "zstd");
        check(&deflate, lz4, &|| renumber(&lab, 32004), "lz4");
        check(&deflate, lzf_of, &|| renumber(&lab, 32000), "lzf");
        check(&deflate, blosc2, &|| renumber(&lab, 32026), "blosc2");
        for (number, pack) in blosc.into_iter().enumerate() {
            check(&deflate, pack, &|| renumber(&lab, 32001), &format!("blosc {number}"));
        }
        let many = [Filter::ScaleOffset(hdf5_metno::filters::ScaleOffset::Integer(0))];
        for (block, packing, pack) in bits {
            let what = format!("bitshuffle {block} {packing}");
            check(&many, pack, &|| make_bitshuffle(&lab, [0, 4, 2, block, packing]), &what);
        }
    }
}

/// Filters that chunks skip, filters in turn, and chunks that were never written.
#[test]
fn chunks_without_filters_or_values() {
    let _alone = alone();
    let lab = Lab::new();
    let values = values();
    for chunk in CHUNKS {
        let new = file(&lab, "x.h5");
        let builder = new.new_dataset::<u16>().shape(SHAPE).chunk(chunk).shuffle().deflate(1).fill_value(77u16);
        let data = builder.create("/exchange/data").unwrap();
        let mut expected = as_f32(&values);
        for (number, first) in firsts(chunk).into_iter().enumerate() {
            let bytes = chunk_bytes(&values, first, chunk);
            match number % 5 {
                0 => write_chunk(&data, 0, first, &deflated(&sorted_bytes(2, &bytes))),
                1 => write_chunk(&data, 1, first, &deflated(&bytes)),
                2 => write_chunk(&data, 2, first, &sorted_bytes(2, &bytes)),
                3 => write_chunk(&data, 3, first, &bytes),
                _ => {
                    for (i, value) in expected.iter_mut().enumerate() {
                        let at = [i / SHAPE.2 / SHAPE.1, i / SHAPE.2 % SHAPE.1, i % SHAPE.2];
                        let inside = |side: usize, length| at[side] / length == first[side] / length;
                        if inside(0, chunk.0) && inside(1, chunk.1) && inside(2, chunk.2) {
                            *value = 77.0;
                        }
                    }
                }
            }
        }
        drop((data, builder, new));
        for memory in [0, 1 << 30] {
            assert_eq!(read(&open(&lab, memory)).unwrap(), expected, "chunks {chunk:?}");
        }
    }
}

/// More chunks than a node of a tree has entries, listed fast; and threads that want the same chunks.
#[test]
fn many_chunks_and_threads() {
    let _alone = alone();
    let lab = Lab::new();
    let (frames, height, width) = (20_000, 3, 4);
    let values: Vec<u16> = (0..frames * height * width).map(|i| (i % 65_521) as u16).collect();
    let new = file(&lab, "x.h5");
    let builder = new.new_dataset::<u16>().shape((frames, height, width)).chunk((1, height, width)).fletcher32();
    builder.create("/exchange/data").unwrap().write_raw(&values).unwrap();
    drop((builder, new));
    let stack = open(&lab, 1 << 30);
    assert!(stack.held() > 0, "the library reads it, which takes many seconds to list the chunks");
    assert_eq!(read_all(&stack, height, width), as_f32(&values));
    drop(stack);

    let new = file(&lab, "x.h5");
    let builder = new.new_dataset::<u16>().shape((frames, height, width)).chunk((1000, 2, 3)).shuffle().deflate(1);
    builder.create("/exchange/data").unwrap().write_raw(&values).unwrap();
    drop((builder, new));
    for memory in [0, 500_000, 1 << 30] {
        assert_eq!(read_all(&open(&lab, memory), height, width), as_f32(&values), "{memory} bytes");
    }
}

/// All frames, from several threads.
pub fn read_all(stack: &Stack, height: usize, width: usize) -> Vec<f32> {
    let mut all = vec![0f32; stack.len() * height * width];
    let threads = 5;
    let share = stack.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (part, out) in all.chunks_mut(share * height * width).enumerate() {
            scope.spawn(move || {
                for (frame, out) in out.chunks_mut(height * width).enumerate() {
                    stack.read_rows(part * share + frame, 0..height, out).unwrap();
                }
            });
        }
    });
    all
}

/// The latest form of all structures.
fn latest(lab: &Lab) -> File {
    File::with_options().with_fapl(|access| access.libver_latest()).create(lab.path("x.h5")).unwrap()
}

/// More chunks than the library can list soon, in the arrays of the newer form: with and without filters, of datasets that may
/// grow along each dimension, and so many that the arrays have pages.
#[test]
fn arrays_of_many_chunks() {
    let _alone = alone();
    let lab = Lab::new();
    let fixed = Extent::fixed;
    let shapes = [
        ([fixed(6000), fixed(2), fixed(4)], (1, 2, 4)),
        ([Extent::new(5000, Some(7001)), fixed(2), Extent::new(4, Some(9))], (1, 2, 3)),
        ([Extent::resizable(6000), fixed(2), fixed(4)], (1, 2, 4)),
        ([Extent::resizable(2500), Extent::new(2, Some(3)), fixed(4)], (1, 1, 4)),
        ([fixed(2500), Extent::resizable(3), fixed(4)], (2, 1, 3)),
        ([fixed(1500), fixed(2), Extent::resizable(5)], (1, 2, 1)),
        // extensible arrays have pages from 131000 elements on
        ([Extent::resizable(180_000), fixed(1), fixed(4)], (1, 1, 4)),
    ];
    for (number, (shape, chunk)) in shapes.into_iter().enumerate() {
        let [frames, rows, bins] = shape.map(|extent| extent.dim);
        for filtered in [false, true] {
            let values: Vec<u16> = (0..frames * rows * bins).map(|i| (i % 65_521) as u16).collect();
            let new = latest(&lab);
            let builder = new.new_dataset::<u16>().shape(shape).chunk(chunk).fill_value(9u16);
            let builder = if filtered { builder.fletcher32() } else { builder };
            builder.create("/exchange/data").unwrap().write_raw(&values).unwrap();
            drop((builder, new));
            let stack = open(&lab, 1 << 30);
            assert!(stack.held() > 0, "{number}: the library reads it");
            assert_eq!(read_all(&stack, rows, bins), as_f32(&values), "{number}, filters: {filtered}");
        }
    }
}

/// B-trees of version 2, for datasets that may grow along several dimensions: the library lists the chunks, or reads the values
/// if there are too many.
#[test]
fn trees_of_version_2() {
    let _alone = alone();
    let lab = Lab::new();
    let grows = Extent::resizable;
    for (frames, shape) in [(40, [grows(40), grows(9), Extent::fixed(4)]), (3000, [grows(3000), grows(9), grows(4)])] {
        for filtered in [false, true] {
            let values: Vec<u16> = (0..frames * 9 * 4).map(|i| (i % 65_521) as u16).collect();
            let new = latest(&lab);
            let builder = new.new_dataset::<u16>().shape(shape).chunk((1, 5, 4));
            let builder = if filtered { builder.shuffle().deflate(1) } else { builder };
            builder.create("/exchange/data").unwrap().write_raw(&values).unwrap();
            drop((builder, new));
            let bytes = fs::read(lab.path("x.h5")).unwrap();
            assert!(bytes.windows(4).any(|four| four == b"BTHD"), "the index is no B-tree of version 2");
            let stack = open(&lab, 1 << 30);
            assert_eq!(read_all(&stack, 9, 4), as_f32(&values), "{frames}, filters: {filtered}");
            // the program does as the library of this test, in other processes
            let frames_of: Vec<Vec<f32>> = values.chunks(9 * 4).map(as_f32).collect();
            let frames_in_tiff = format!("{frames}-{filtered}.tif");
            lab.write_single(&frames_in_tiff, &Pages { width: 4, pages: frames_of });
            lab.ok(&format!("compare x.h5::/exchange/data {frames_in_tiff} --tolerance 0"));
            let (out, _) = lab.ok("info x.h5");
            assert!(out.contains("chunks of 1x5x4"), "{out}");
        }
    }
}

/// Blocks and pages of arrays that are not there: few chunks of many were written.
#[test]
fn arrays_with_gaps() {
    let _alone = alone();
    let lab = Lab::new();
    let (frames, every) = (150_000, 13_007);
    for shape in [Extent::fixed(frames), Extent::resizable(frames)] {
        let new = latest(&lab);
        let builder = new.new_dataset::<u16>().shape([shape, Extent::fixed(1), Extent::fixed(4)]).chunk((1, 1, 4));
        let builder = builder.fill_value(9u16);
        let data = builder.create("/exchange/data").unwrap();
        for frame in (3..frames).step_by(every) {
            data.write_slice(&[frame as u16; 4], (frame, 0, ..)).unwrap();
        }
        drop((data, builder, new));
        let found = read_all(&open(&lab, 1 << 30), 1, 4);
        for (frame, values) in found.chunks(4).enumerate() {
            let value = if frame % every == 3 { (frame as u16).into() } else { 9.0 };
            assert_eq!(values, [value; 4], "{shape:?} {frame}");
        }
    }
}

/// Chunks that follow each other without an index.
#[test]
fn chunks_without_an_index() {
    let _alone = alone();
    let lab = Lab::new();
    let (frames, rows, bins) = (6000, 2, 4);
    let values: Vec<u16> = (0..frames * rows * bins).map(|i| (i % 65_521) as u16).collect();
    let new = latest(&lab);
    let builder = new.new_dataset::<u16>().shape((frames, rows, bins)).chunk((1, rows, 3));
    let builder = builder.alloc_time(Some(AllocTime::Early));
    builder.create("/exchange/data").unwrap().write_raw(&values).unwrap();
    drop((builder, new));
    assert_eq!(read_all(&open(&lab, 1 << 30), rows, bins), as_f32(&values));
}

/// Every byte of an array changed: its checksums tell, and the library is left with it.
#[test]
fn damaged_arrays() {
    let _alone = alone();
    let lab = Lab::new();
    let frames = 3000;
    for (extent, blocks) in [
        (Extent::fixed(frames), [b"FAHD", b"FADB"].as_slice()),
        (Extent::resizable(frames), [b"EAHD", b"EAIB", b"EASB", b"EADB"].as_slice()),
    ] {
        let new = latest(&lab);
        let builder = new.new_dataset::<u8>().shape([extent, Extent::fixed(1), Extent::fixed(2)]).chunk((1, 1, 2));
        let builder = builder.fletcher32();
        let data = builder.create("/exchange/data").unwrap();
        data.write_raw(&vec![1u8; 2 * frames]).unwrap();
        new.flush().unwrap();
        let limits = [extent.max.map(|max| max as u64), Some(1), Some(2)];
        let header = vds_sys::header_address(&data).unwrap();
        let (shape, chunk) = ([frames as u64, 1, 2], [1, 1, 2]);
        let of = ChunkIndex { header, rank: 3, shape, limits, chunk, bytes: 2, count: frames };
        drop((data, builder, new));
        let listed = || index::chunks(&fs::File::open(lab.path("x.h5")).unwrap(), &of);
        assert_eq!(listed().map(|found| found.len()), Some(frames));
        let whole = fs::read(lab.path("x.h5")).unwrap();
        for signature in blocks {
            let starts = (0..whole.len() - 4).filter(|&at| &whole[at..at + 4] == *signature);
            // the last block may be one without elements
            for at in starts.take(2).flat_map(|start| start..start + 26) {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x11;
                fs::write(lab.path("x.h5"), damaged).unwrap();
                assert_eq!(listed(), None, "{} {at}", String::from_utf8_lossy(*signature));
            }
        }
        // claims that do not agree with the file
        fs::write(lab.path("x.h5"), &whole).unwrap();
        let file = fs::File::open(lab.path("x.h5")).unwrap();
        for wrong in [
            ChunkIndex { count: frames - 1, ..of },
            ChunkIndex { count: usize::MAX, ..of },
            ChunkIndex { rank: 2, ..of },
            ChunkIndex { rank: 0, ..of },
            ChunkIndex { chunk: [0; 3], ..of },
            ChunkIndex { header: u64::MAX - 3, ..of },
            ChunkIndex { limits: [Some(u64::MAX); 3], ..of },
            ChunkIndex { shape: [u64::MAX; 3], limits: [Some(u64::MAX), None, None], ..of },
        ] {
            assert_eq!(index::chunks(&file, &wrong), None, "{wrong:?}");
        }
    }
}

/// Any byte of the file's chunks changed: with a checksum an error that says what to do, without one an error or values.
#[test]
fn damaged_chunks() {
    let _alone = alone();
    let lab = Lab::new();
    let values = values();
    let chunk = (2, 9, 70);
    let checks: [(&str, u16, Pack); 6] = [
        ("lzf", 32000, lzf_of),
        ("blosc2", 32026, |data| blosc2_of(data, BLOSC2, None)),
        ("gzip", 1, deflated),
        ("lz4", 32004, |data| lz4_blocks_of(300, data)),
        ("blosc", 32001, |data| blosc_of(data, 2, 512, 1, 1, true)),
        ("zstd", 32015, zstd_of),
    ];
    for (what, number, pack) in checks {
        let new = file(&lab, "x.h5");
        let data = dataset::<u16>(&new, chunk, &[Filter::Deflate(1)]);
        for first in firsts(chunk) {
            write_chunk(&data, 0, first, &pack(&chunk_bytes(&values, first, chunk)));
        }
        let place = data.chunk_info(1).unwrap();
        drop((data, new));
        renumber(&lab, number);
        let whole = fs::read(lab.path("x.h5")).unwrap();
        let (mut errors, mut tried) = (0, 0);
        for at in (place.addr..place.addr + place.size).step_by(7).chain(place.addr..place.addr + 24) {
            let mut damaged = whole.clone();
            damaged[at as usize] ^= 0xff;
            fs::write(lab.path("x.h5"), damaged).unwrap();
            tried += 1;
            match read(&open(&lab, 1 << 20)) {
                Ok(found) => {
                    let frame = SHAPE.1 * SHAPE.2;
                    assert_eq!(found[..2 * frame], as_f32(&values)[..2 * frame], "{what} {at}: another chunk");
                    assert!(what != "gzip", "{what} {at}: not noticed");
                }
                Err(error) => {
                    for word in ["/exchange/data frame 2", "chunk 1, 0, 0", "write the file again"] {
                        assert!(error.contains(word), "{what} {at}: no {word} in {error}");
                    }
                    errors += 1;
                }
            }
        }
        assert!(errors > 10 && errors <= tried, "{what}: {errors} of {tried}");
    }
}

/// Addresses and sizes of chunks that a file claims are checked when it is opened.
#[test]
fn chunks_outside_of_the_file() {
    let _alone = alone();
    let lab = Lab::new();
    let new = file(&lab, "x.h5");
    let data = dataset::<u16>(&new, (5, 9, 70), &[Filter::Fletcher32]);
    data.write_raw(&values()).unwrap();
    let place = data.chunk_info(0).unwrap();
    drop((data, new));
    let whole = fs::read(lab.path("x.h5")).unwrap();
    let position = |number: u64| whole.windows(8).position(|bytes| bytes == number.to_le_bytes()).unwrap();
    let size = whole.windows(4).rposition(|bytes| bytes == (place.size as u32).to_le_bytes()).unwrap();
    let cases: [(usize, &[u8], &str); 3] = [
        (position(place.addr), &(whole.len() as u64 - 8).to_le_bytes(), "of its file"),
        (size, &(1u32 << 30).to_le_bytes(), "of its file"),
        (place.addr as usize + 100, &[9], "checksum"),
    ];
    for (at, bytes, words) in cases {
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(lab.path("x.h5"), damaged).unwrap();
        let input = Hdf5Input { file: lab.path("x.h5"), ..Default::default() };
        let opened = fbp::source::hdf5::open(&input, false, 1 << 30).map_err(|e| e.to_string());
        let error = opened.and_then(|stacks| read(&stacks.data)).unwrap_err();
        assert!(error.contains(words) && error.contains("again"), "{error}");
    }
}

//! Zarr arrays as input.

use super::{input_error, open, read};
use fbp::source::{SampleType, Stack};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// An array of Zarr 2 with chunks of two frames, and what is in its metadata changed.
fn zarr(dir: &TempDir, change: impl Fn(&mut Value)) -> std::path::PathBuf {
    let path = dir.path().join("a.zarr");
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    let mut meta = json!({
        "zarr_format": 2, "shape": [3, 2, 3], "chunks": [2, 2, 2], "dtype": ">i2", "compressor": null, "fill_value": -7,
        "order": "C", "filters": null,
    });
    change(&mut meta);
    fs::write(path.join(".zarray"), meta.to_string()).unwrap();
    for (name, first) in [("0.0.0", 0i16), ("0.0.1", 100), ("1.0.0", 200)] {
        let samples: Vec<u8> = (first..first + 8).flat_map(i16::to_be_bytes).collect();
        fs::write(path.join(name), samples).unwrap();
    }
    path
}

#[test]
fn chunks_of_zarr_in_their_places() {
    let dir = TempDir::new().unwrap();
    let stack = open(&zarr(&dir, |_| ())).unwrap();
    assert_eq!((stack.len(), stack.width(), stack.height(), stack.sample()), (3, 3, 2, SampleType::I16));
    assert_eq!(read(&stack, 0).unwrap(), [0.0, 1.0, 100.0, 2.0, 3.0, 102.0]);
    assert_eq!(read(&stack, 1).unwrap(), [4.0, 5.0, 104.0, 6.0, 7.0, 106.0]);
    // a chunk that is not there
    assert_eq!(read(&stack, 2).unwrap(), [200.0, 201.0, -7.0, 202.0, 203.0, -7.0]);
    // the same chunk compressed: one block of LZ4 after its length, and a container of Blosc with the bytes as they are
    let samples: Vec<u8> = (0i16..8).flat_map(i16::to_be_bytes).collect();
    let lz4 = [&16u32.to_le_bytes()[..], &[0xf0, 1], &samples].concat();
    let blosc = [&[2, 1, 2, 2, 16, 0, 0, 0, 16, 0, 0, 0, 32, 0, 0, 0][..], &samples].concat();
    for (id, stored) in [("lz4", lz4), ("blosc", blosc)] {
        let path = zarr(&dir, |meta| {
            meta["compressor"] = json!({"id": id});
            meta["shape"] = json!([2, 2, 2]);
        });
        fs::write(path.join("0.0.0"), &stored).unwrap();
        assert_eq!(read(&open(&path).unwrap(), 1).unwrap(), [4.0, 5.0, 6.0, 7.0], "{id}");
        fs::write(path.join("0.0.0"), &stored[..stored.len() - 1]).unwrap();
        input_error(&path, &["0.0.0", "damaged", "copy or write the file again"]);
    }
    let path = zarr(&dir, |_| ()).join("0.0.1");
    fs::write(&path, [0; 16]).unwrap();
    let stack = open(&dir.path().join("a.zarr")).unwrap();
    fs::write(&path, [0; 18]).unwrap();
    let error = read(&stack, 0).unwrap_err().to_string();
    assert!(error.contains("0.0.1 has changed since this run began"), "{error}");
}

/// Chunks that were never written are told; in fingerprints is what bytes mean, too.
#[test]
fn notes_and_fingerprints_of_zarr() {
    let dir = TempDir::new().unwrap();
    let stack = open(&zarr(&dir, |_| ())).unwrap();
    let notes = stack.remarks();
    assert!(notes.len() == 1 && notes[0].text().contains("1 of 4 chunks are not there"), "{notes:?}");
    let before = stack.fingerprint();
    let meta = dir.path().join("a.zarr/.zarray");
    let text = fs::read_to_string(&meta).unwrap();
    for (from, to) in [("-7", "-8"), (">i2", "<i2"), ("null", "{\"id\": \"lz4\"}")] {
        fs::write(&meta, text.replacen(from, to, 1)).unwrap();
        assert_ne!(open(&dir.path().join("a.zarr")).unwrap().fingerprint(), before, "{to}");
    }
    fs::write(&meta, &text).unwrap();
    assert_eq!(open(&dir.path().join("a.zarr")).unwrap().fingerprint(), before);
    fs::write(dir.path().join("a.zarr/1.0.1"), [0; 16]).unwrap();
    assert_eq!(open(&dir.path().join("a.zarr")).unwrap().remarks(), []);
    let stack = open(&sharded(&dir, "end", |_, _| ())).unwrap();
    assert!(stack.remarks()[0].text().contains("1 of 2 shards are not there"), "{:?}", stack.remarks());
}

/// Floats in hexadecimal digits of their bits, as Zarr 3 allows.
#[test]
fn fill_values_of_zarr_as_bits() {
    let dir = TempDir::new().unwrap();
    let of = |kind: &str, big: bool, fill: &str| {
        let path = sharded(&dir, "end", |meta, _| {
            meta["data_type"] = json!(kind);
            meta["fill_value"] = json!(fill);
            if big {
                meta["codecs"][0]["configuration"]["codecs"][0]["configuration"]["endian"] = json!("big");
            }
        });
        open(&path).and_then(|stack| read(&stack, 2))
    };
    for big in [false, true] {
        assert!(of("float32", big, "0x7fc00000").unwrap().iter().all(|value| value.is_nan()));
        assert_eq!(of("float32", big, "0xbfc00000").unwrap(), [-1.5; 6]);
        assert_eq!(of("float16", big, "0x3C00").unwrap(), [1.0; 6]);
        assert_eq!(of("float64", big, "0x4000000000000000").unwrap(), [2.0; 6]);
    }
    for (kind, fill) in [("float32", "0x7fc0"), ("float32", "0x+fc00000"), ("float32", "7fc00000"), ("int16", "0x0001")]
    {
        let error = of(kind, false, fill).unwrap_err().to_string();
        assert!(error.contains("fill value") && error.contains(fill), "{error}");
    }
}

/// Compressed chunks are decoded once where memory suffices, whatever rows are read; what is not there takes none.
#[test]
fn memory_for_chunks_of_zarr() {
    let dir = TempDir::new().unwrap();
    let (frames, high, wide) = (4, 64, 64);
    let path = zarr(&dir, |meta| {
        meta["shape"] = json!([frames, 3 * high, wide]);
        meta["chunks"] = json!([1, high, wide]);
        meta["dtype"] = json!("|u1");
        meta["fill_value"] = json!(9);
        meta["compressor"] = json!({"id": "lz4"});
    });
    for name in ["0.0.1", "1.0.0"] {
        let _ = fs::remove_file(path.join(name));
    }
    let chunk = |value: usize| {
        // literals of one block
        let mut stored = ((high * wide) as u32).to_le_bytes().to_vec();
        stored.push(0xf0);
        let rest = high * wide - 15;
        stored.extend(vec![255; rest / 255]);
        stored.push((rest % 255) as u8);
        stored.extend(vec![value as u8; high * wide]);
        stored
    };
    for (frame, band) in (0..frames).flat_map(|frame| [0, 1].map(|band| (frame, band))) {
        fs::write(path.join(format!("{frame}.{band}.0")), chunk(10 * frame + band)).unwrap();
    }
    let spec = path.to_str().unwrap();
    for memory in [0, 1 << 16, 1 << 30] {
        let stack = Stack::open_within(spec, "--projections", memory).unwrap();
        assert!(stack.held() > 3 * (high * wide) as u64, "{memory}: {}", stack.held());
        let read = |row: usize| -> fbp::error::Result<()> {
            for frame in 0..frames {
                let mut values = vec![0.0; wide];
                stack.read_rows(frame, row..row + 1, &mut values)?;
                let expected = if row < 2 * high { (10 * frame + row / high) as f32 } else { 9.0 };
                assert_eq!(values, vec![expected; wide], "{memory} {frame} {row}");
            }
            Ok(())
        };
        (0..3 * high).for_each(|row| read(row).unwrap());
        assert!(!stack.has_whole_frames());
        if memory == 1 << 30 {
            // all of them are in memory
            let away = dir.path().join("away.zarr");
            fs::rename(&path, &away).unwrap();
            (0..3 * high).for_each(|row| read(row).unwrap());
            fs::rename(&away, &path).unwrap();
        } else {
            fs::write(path.join("0.0.0"), [chunk(0), vec![0]].concat()).unwrap();
            let error = read(0).unwrap_err().to_string();
            assert!(error.contains("0.0.0 has changed since this run began"), "{error}");
            fs::write(path.join("0.0.0"), chunk(0)).unwrap();
        }
    }
    // two chunks of a frame are half of its rows each, as fbp writes large ones
    let halves = zarr(&dir, |meta| {
        meta["chunks"] = json!([1, 1, 3]);
        meta["compressor"] = json!({"id": "lz4"});
    });
    assert!(open(&halves).unwrap().has_whole_frames());
    // a header that claims much
    let path = zarr(&dir, |meta| {
        meta["shape"] = json!([2, 16384, 16384]);
        meta["chunks"] = json!([1, 16384, 16384]);
        meta["compressor"] = json!({"id": "lz4"});
    });
    fs::rename(path.join("0.0.1"), path.join("1.0.0")).unwrap();
    fs::remove_file(path.join("0.0.0")).unwrap();
    let stack = Stack::open_within(path.to_str().unwrap(), "--projections", 1 << 20).unwrap();
    assert!((1 << 30..5 << 28).contains(&stack.held()), "{}", stack.held());
    let mut row = vec![0.0; 16384];
    stack.read_rows(0, 5..6, &mut row).unwrap();
    assert!(row.iter().all(|value| *value == -7.0));
}

/// A sharded array of Zarr 3 with one file of two frames, of which one chunk was never written, and a change of it.
fn sharded(dir: &TempDir, location: &str, change: impl Fn(&mut Value, &mut Vec<u8>)) -> std::path::PathBuf {
    let path = dir.path().join("shards.zarr");
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(path.join("c/0/0")).unwrap();
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let sharding = json!({
        "chunk_shape": [1, 2, 2], "codecs": [bytes.clone()], "index_codecs": [bytes, {"name": "crc32c"}],
        "index_location": location,
    });
    let mut meta = json!({
        "zarr_format": 3, "node_type": "array", "shape": [3, 2, 3], "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2, 4]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": -7,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
    });
    // chunks of four samples, the last first: 8 bytes each
    let samples: Vec<u8> =
        [20i16, 21, 22, 23, 10, 11, 12, 13, 0, 1, 2, 3].into_iter().flat_map(i16::to_le_bytes).collect();
    let start = if location == "start" { 4 * 16 + 4 } else { 0 };
    let entries = [start + 16, 8, start + 8, 8, u64::MAX, u64::MAX, start, 8];
    let mut index: Vec<u8> = entries.into_iter().flat_map(u64::to_le_bytes).collect();
    index.extend(crc32c::crc32c(&index).to_le_bytes());
    let mut file = if location == "start" { [index, samples].concat() } else { [samples, index].concat() };
    change(&mut meta, &mut file);
    fs::write(path.join("zarr.json"), meta.to_string()).unwrap();
    fs::write(path.join("c/0/0/0"), file).unwrap();
    path
}

#[test]
fn shards_of_zarr() {
    let dir = TempDir::new().unwrap();
    for location in ["start", "end"] {
        let stack = open(&sharded(&dir, location, |_, _| ())).unwrap();
        assert_eq!((stack.len(), stack.width(), stack.height(), stack.sample()), (3, 3, 2, SampleType::I16));
        assert_eq!(read(&stack, 0).unwrap(), [0.0, 1.0, 10.0, 2.0, 3.0, 12.0]);
        // a chunk that was never written, and a file
        assert_eq!(read(&stack, 1).unwrap(), [-7.0, -7.0, 20.0, -7.0, -7.0, 22.0]);
        assert_eq!(read(&stack, 2).unwrap(), [-7.0; 6]);
        // the same with the checksum of a chunk, which has no room for it
        let checked = sharded(&dir, location, |meta, _| {
            let codecs = meta["codecs"][0]["configuration"]["codecs"].as_array_mut();
            codecs.unwrap().push(json!({"name": "crc32c"}));
        });
        input_error(&checked, &["chunk", "c/0/0/0", "checksum"]);
        // codecs may be named alone
        let short = sharded(&dir, location, |meta, _| {
            let sharding = &mut meta["codecs"][0]["configuration"];
            sharding["codecs"] = json!(["bytes"]);
            sharding["index_codecs"] = json!(["bytes", "crc32c"]);
        });
        assert_eq!(read(&open(&short).unwrap(), 0).unwrap(), [0.0, 1.0, 10.0, 2.0, 3.0, 12.0]);
    }
    type Change = fn(&mut Value, &mut Vec<u8>);
    let changes: [(Change, &[&str]); 9] = [
        (|_, file| file[24] ^= 1, &["shard", "c/0/0/0", "checksum of its index"]),
        (|_, file| file.truncate(67), &["shard", "too short for its index"]),
        (
            |_, file| {
                file[24..32].copy_from_slice(&85u64.to_le_bytes());
                let crc = crc32c::crc32c(&file[24..88]);
                file[88..].copy_from_slice(&crc.to_le_bytes());
            },
            &["shard", "a chunk outside it"],
        ),
        (
            |_, file| {
                file[32..40].copy_from_slice(&7u64.to_le_bytes());
                let crc = crc32c::crc32c(&file[24..88]);
                file[88..].copy_from_slice(&crc.to_le_bytes());
            },
            &["chunk", "fewer bytes than its 8"],
        ),
        (|meta, _| meta["codecs"][0]["configuration"]["chunk_shape"] = json!([1, 2, 3]), &["no multiples"]),
        (
            |meta, _| meta["codecs"][0]["configuration"]["codecs"] = json!([{"name": "sharding_indexed"}]),
            &["in shards"],
        ),
        (|meta, _| meta["codecs"][0]["configuration"]["index_codecs"][1] = json!({"name": "gzip"}), &["bytes, gzip"]),
        (|meta, _| meta["codecs"].as_array_mut().unwrap().push(json!({"name": "gzip"})), &["shards in another codec"]),
        (
            |meta, _| {
                meta["chunk_grid"]["configuration"]["chunk_shape"] = json!([1 << 14, 1 << 14, 1 << 14]);
            },
            &["chunks; write it with larger chunks"],
        ),
    ];
    for (change, words) in changes {
        input_error(&sharded(&dir, "end", change), words);
    }
}

#[test]
fn zarr_that_cannot_be_read() {
    let dir = TempDir::new().unwrap();
    type Change = fn(&mut Value);
    let changes: [(Change, &[&str]); 14] = [
        (|meta| meta["zarr_format"] = json!(1), &["version 2 or 3"]),
        (|meta| meta["shape"] = json!([2, 3]), &["shape 2x3", "[frame][row][pixel]"]),
        (|meta| meta["shape"] = json!([3, 0, 3]), &["3x0x3", "nothing"]),
        (|meta| meta["shape"] = json!([3, 2, 1u64 << 40]), &["claims the shape"]),
        (|meta| meta["shape"] = json!([1 << 20, 1 << 20, 3]), &["chunks"]),
        (|meta| meta["shape"] = json!([2, 3, 2, 3]), &["one time"]),
        (|meta| meta["chunks"] = json!([1024, 1 << 20, 1 << 20]), &["chunks of"]),
        (|meta| meta["chunks"] = json!([1, 1]), &["[frame][row][pixel]"]),
        (|meta| meta["dtype"] = json!("<c8"), &["<c8", "expected integers"]),
        (|meta| meta["compressor"] = json!({"id": "lzma"}), &["lzma", "gzip, zlib, zstd, lz4 or blosc"]),
        (|meta| meta["compressor"] = json!({"id": "zstd"}), &["0.0.0", "damaged"]),
        (|meta| meta["compressor"] = json!({"id": "gzip"}), &["0.0.0", "damaged"]),
        (|meta| meta["order"] = json!("F"), &["order F"]),
        (|meta| meta["filters"] = json!([{"id": "delta"}]), &["filters"]),
    ];
    for (change, words) in changes {
        input_error(&zarr(&dir, change), words);
    }
    let path = zarr(&dir, |_| ());
    fs::write(path.join("0.0.0"), [0; 15]).unwrap();
    input_error(&path, &["0.0.0", "fewer bytes than its 16"]);
    fs::write(path.join("0.0.0"), [0; 17]).unwrap();
    input_error(&path, &["0.0.0", "more bytes than its 16"]);
    fs::write(path.join(".zarray"), "{").unwrap();
    input_error(&path, &[".zarray", "no JSON"]);
    fs::write(path.join(".zattrs"), json!({"multiscales": [{"datasets": [{"path": "../x"}]}]}).to_string()).unwrap();
    fs::remove_file(path.join(".zarray")).unwrap();
    input_error(&path, &["which is outside it"]);
    fs::write(path.join(".zattrs"), "{}").unwrap();
    input_error(&path, &["neither an OME-Zarr image nor an array"]);
    fs::create_dir(path.join("image")).unwrap();
    fs::write(path.join("image/.zgroup"), "{}").unwrap();
    input_error(&path, &["without an OME-Zarr image", "name one", "a.zarr/image"]);
}

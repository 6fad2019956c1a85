//! Outputs with all slices in one array, and Zarr as input.

use super::{input_error, open, read};
use fbp::sink::{
    AllowedContents, Compression, Dtype, Encoding, OmeZarr, Pixels, SliceStamp, SliceStorage, SliceWriter, Target,
};
use fbp::source::{SampleType, Stack};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use strum::VariantArray;
use tempfile::TempDir;

const WIDTH: usize = 1030;
const HEIGHT: usize = 259;
const SLICES: [usize; 3] = [3, 4, 11];

fn slice(index: usize) -> Vec<f32> {
    (0..WIDTH * HEIGHT).map(|i| ((i % WIDTH) as f32 / 90.0).sin() * 100.0 + (i / WIDTH + index) as f32).collect()
}

fn writer(spec: &Path, storage: SliceStorage) -> fbp::error::Result<SliceWriter> {
    let target = Target::parse(spec.to_str().unwrap())?;
    SliceWriter::create(target, WIDTH, HEIGHT, storage, &SLICES, AllowedContents::Nothing, "fbp test")
}

/// Names of outputs, with what is stored in them.
fn volumes(dir: &TempDir) -> Vec<(std::path::PathBuf, SliceStorage)> {
    let mut all = Vec::new();
    for dtype in [Dtype::F32, Dtype::F16, Dtype::U16, Dtype::U8] {
        let encoding = Encoding { dtype, range: Some((-150.0, 500.0)) };
        for &ome_zarr in OmeZarr::VARIANTS {
            for compression in [Compression::None, Compression::Deflate, Compression::Zstd] {
                let name = format!("{dtype}-{ome_zarr}-{compression}.zarr");
                all.push((dir.path().join(name), SliceStorage { encoding, compression, ome_zarr, hdf5_parts: None }));
            }
        }
        if cfg!(feature = "hdf5") {
            all.push((dir.path().join(format!("{dtype}.h5")), encoding.into()));
            let storage = SliceStorage { hdf5_parts: Some(2), ..encoding.into() };
            all.push((dir.path().join(format!("{dtype}-parts.h5")), storage));
        }
    }
    all
}

/// The samples of every type are those of TIFF, and coarser levels are means of what is below.
#[test]
fn volumes_read_back() {
    let dir = TempDir::new().unwrap();
    for (path, storage) in volumes(&dir) {
        let tiff = dir.path().join(format!("{}.tif", storage.encoding.dtype));
        if !tiff.exists() {
            let plain = writer(&tiff, storage.encoding.into()).unwrap();
            SLICES.iter().for_each(|&index| plain.write(index, &slice(index)).unwrap());
            plain.finish().unwrap();
        }
        let volume = writer(&path, storage).unwrap();
        for index in [11, 3, 4] {
            volume.write(index, &slice(index)).unwrap();
            assert!(!path.exists(), "{path:?} is there before it is complete");
        }
        assert_eq!(volume.finish().unwrap(), std::slice::from_ref(&path));
        let (found, expected) = (open(&path).unwrap(), open(&tiff).unwrap());
        assert_eq!((found.len(), found.width(), found.height()), (3, WIDTH, HEIGHT), "{path:?}");
        assert_eq!(found.sample(), expected.sample());
        let fine: Vec<_> = (0..3).map(|page| read(&found, page).unwrap()).collect();
        (0..3).for_each(|page| assert_eq!(fine[page], read(&expected, page).unwrap(), "{path:?}"));
        let mut part = vec![0.0; 2 * WIDTH];
        found.read_rows(1, 100..102, &mut part).unwrap();
        assert_eq!(part, fine[1][100 * WIDTH..102 * WIDTH]);
        if path.extension().unwrap() == "zarr" {
            let coarse = open(&path.join("1")).unwrap();
            assert_eq!((coarse.len(), coarse.width(), coarse.height()), (2, WIDTH / 2, HEIGHT.div_ceil(2)));
            for (z, y, x) in [(0, 0, 0), (0, 60, 300), (1, 129, 514), (0, 129, 7)] {
                let of = |z: usize, y: usize, x: usize| {
                    fine.get(z).zip(Some(y).filter(|&y| y < HEIGHT)).map(|(p, y)| p[y * WIDTH + x])
                };
                let eight = [0, 1]
                    .into_iter()
                    .flat_map(|k| [0, 1].map(|j| (k, j)))
                    .flat_map(|(k, j)| [0, 1].map(|i| of(2 * z + k, 2 * y + j, 2 * x + i)));
                let known: Vec<f64> = eight.flatten().map(f64::from).collect();
                let mean = known.iter().sum::<f64>() / known.len() as f64;
                let value = f64::from(read(&coarse, z).unwrap()[y * WIDTH / 2 + x]);
                let step = match storage.encoding.dtype {
                    Dtype::F32 => 1e-4,
                    Dtype::F16 => 0.26,
                    Dtype::U16 | Dtype::U8 => 0.5,
                };
                assert!((value - mean).abs() <= step, "{path:?} {z} {y} {x}: {value} {mean}");
            }
        }
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    }
}

/// What says which run it is of is taken up again; what does not is not. Nothing is replaced unasked.
#[test]
fn volumes_of_a_run_are_taken_up() {
    let dir = TempDir::new().unwrap();
    let stamp = |run: &str| SliceStamp { run: run.into(), center: 4.5, pixel_size: None, per_centimetre: None };
    for (path, storage) in volumes(&dir).into_iter().step_by(7).chain(volumes(&dir).into_iter().take(1)) {
        let begin = |run: &str, present| {
            let target = Target::parse(path.to_str().unwrap()).unwrap();
            let made = SliceWriter::create(target, WIDTH, HEIGHT, storage, &SLICES, present, "fbp test");
            made.map(|writer| writer.stamped(stamp(run)))
        };
        let target = Target::parse(path.to_str().unwrap()).unwrap();
        begin("a", AllowedContents::Nothing).unwrap().write(3, &slice(3)).unwrap();
        assert_eq!(target.unfinished_slices().unwrap(), 1);
        let error = begin("a", AllowedContents::Nothing).err().unwrap();
        assert!(error.to_string().contains("unfinished run with 1 slice"), "{error}");
        let mut again = begin("a", AllowedContents::Anything).unwrap();
        again.keep(&[3]);
        again.write(11, &slice(11)).unwrap();
        assert_eq!(target.unfinished_slices().unwrap(), 2);
        // another run begins anew
        let other = begin("b", AllowedContents::Anything).unwrap();
        other.write(4, &slice(4)).unwrap();
        assert_eq!(target.unfinished_slices().unwrap(), 1);
        for index in [3, 11] {
            other.write(index, &slice(index)).unwrap();
        }
        other.finish().unwrap();
        assert_eq!((target.unfinished_slices().unwrap(), open(&path).unwrap().len()), (0, 3));
        let error = begin("b", AllowedContents::Nothing).err().unwrap();
        assert!(error.to_string().contains("exists already"), "{error}");
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
    }
}

/// A job with a slice in its output, and the hidden name of this.
fn begun(path: &Path, storage: SliceStorage) -> (SliceWriter, PathBuf) {
    let stamp = SliceStamp { run: "a".into(), center: 4.5, pixel_size: None, per_centimetre: None };
    let job = writer(path, storage).unwrap().stamped(stamp);
    job.write(3, &slice(3)).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    (job, path.with_file_name(format!(".{name}.unfinished")))
}

/// What cannot be read may hold slices: nobody removes or replaces it, whatever was asked for.
#[test]
fn unreadable_unfinished_outputs_are_kept() {
    let dir = TempDir::new().unwrap();
    let zarr = |name: &str, ome_zarr| {
        let storage = SliceStorage { ome_zarr, ..Encoding { dtype: Dtype::F32, range: None }.into() };
        (dir.path().join(name), storage)
    };
    let hdf5 = |name: &str, hdf5_parts| {
        let storage = SliceStorage { hdf5_parts, ..Encoding { dtype: Dtype::F32, range: None }.into() };
        (dir.path().join(name), storage)
    };
    let mut damages = vec![
        (zarr("level.zarr", OmeZarr::V04), "0/.zarray", Some("{")),
        (zarr("other-version.zarr", OmeZarr::V04), ".zattrs", Some(r#"{"fbp": {"software": "fbp 9.0"}}"#)),
        (zarr("level3.zarr", OmeZarr::V05), "1/zarr.json", None),
        (zarr("marks.zarr", OmeZarr::V04), "checksums/0", Some("")),
    ];
    if cfg!(feature = "hdf5") {
        damages.push((hdf5("file.h5", None), "", Some("no HDF5")));
        damages.push((hdf5("part.h5", Some(2)), ".parts/part-001.h5", None));
    }
    for ((path, storage), file, content) in damages {
        let (_job, unfinished) = begun(&path, storage);
        let damaged = match file {
            "" => unfinished.clone(),
            part if part.starts_with('.') && path.extension().unwrap() == "h5" => {
                PathBuf::from(format!("{}{part}", unfinished.display()))
            }
            file => unfinished.join(file),
        };
        match content {
            Some(content) => fs::write(&damaged, content).unwrap(),
            None => fs::remove_file(&damaged).unwrap(),
        }
        let target = Target::parse(path.to_str().unwrap()).unwrap();
        let name = unfinished.file_name().unwrap().to_str().unwrap();
        let check = |error: fbp::error::Error| {
            let text = error.to_string();
            assert_eq!(error.exit_code(), 5, "{text}");
            assert!(text.contains(name) && text.contains("kept") && text.contains("remove it"), "{text}");
            assert!(unfinished.symlink_metadata().is_ok(), "{text}");
        };
        check(target.remove_temporary_files().unwrap_err());
        check(target.unfinished_slices().unwrap_err());
        check(writer(&path, storage).err().unwrap());
        assert!(target.is_started());
        if file == "checksums/0" {
            continue; // what it says of its run can be read: of another one, which may be replaced
        }
        let again = SliceWriter::create(target, WIDTH, HEIGHT, storage, &SLICES, AllowedContents::Anything, "fbp test");
        check(again.unwrap().write(3, &slice(3)).unwrap_err());
    }
}

/// An output that was removed while a job wrote to it is no success, nor is another that has its name.
#[test]
fn removed_outputs_are_no_success() {
    let dir = TempDir::new().unwrap();
    let mut outputs = vec!["a.zarr"];
    if cfg!(feature = "hdf5") {
        outputs.push("a.h5");
    }
    let storage: SliceStorage = Encoding { dtype: Dtype::F32, range: None }.into();
    for name in outputs {
        let path = dir.path().join(name);
        let begin = |run: &str| {
            let stamp = SliceStamp { run: run.into(), center: 4.5, pixel_size: None, per_centimetre: None };
            let target = Target::parse(path.to_str().unwrap()).unwrap();
            let made =
                SliceWriter::create(target, WIDTH, HEIGHT, storage, &SLICES, AllowedContents::Anything, "fbp test");
            let job = made.unwrap().stamped(stamp);
            SLICES.iter().for_each(|&index| job.write(index, &slice(index)).unwrap());
            job
        };
        let unfinished = dir.path().join(format!(".{name}.unfinished"));
        let remove = || {
            if unfinished.is_dir() { fs::remove_dir_all(&unfinished) } else { fs::remove_file(&unfinished) }.unwrap();
        };
        let job = begin("a");
        remove();
        let error = job.finish().unwrap_err();
        assert_eq!(error.exit_code(), 5);
        assert!(error.to_string().contains("was removed during the run"), "{error}");
        begin("b").finish().unwrap();
        let job = begin("a");
        remove();
        let error = job.finish().unwrap_err();
        assert!(error.to_string().contains("of another run"), "{error}");
    }
}

/// Names and bytes of all files below a directory.
fn all_bytes(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(all_bytes(&path)),
            false => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    files
}

/// Every file is the same, down to the coarsest level, however slices are shared out and whether two come together.
#[test]
fn jobs_make_the_same_files() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.zarr");
    let slices: Vec<usize> = (2..9).collect();
    for (dtype, ome_zarr, compression) in [
        (Dtype::F32, OmeZarr::V04, Compression::None),
        (Dtype::U16, OmeZarr::V04, Compression::None),
        (Dtype::U16, OmeZarr::V05, Compression::Zstd),
    ] {
        let encoding = Encoding { dtype, range: Some((-150.0, 500.0)) };
        let storage = SliceStorage { encoding, compression, ome_zarr, hdf5_parts: None };
        let mut expected = None;
        for count in [1, 2, 5] {
            let job = |number: usize| {
                // in turn, so that most pairs of slices are of two jobs
                let own: Vec<usize> = slices.iter().copied().skip(number).step_by(count).collect();
                let stamp = SliceStamp { run: "a".into(), center: 4.5, pixel_size: None, per_centimetre: None };
                let target = Target::parse(path.to_str().unwrap()).unwrap();
                let present = AllowedContents::Slices(&slices);
                let made = SliceWriter::create(target, WIDTH, WIDTH, storage, &own, present, "fbp test");
                (made.unwrap().stamped(stamp).shared(&slices), own)
            };
            let values = |index: usize| -> Vec<f32> {
                let value = |i: usize| ((i % WIDTH) as f32 / 90.0).sin() * 100.0 + ((i / WIDTH) % 97 + index) as f32;
                (0..WIDTH * WIDTH).map(value).collect()
            };
            // the last first
            let jobs: Vec<_> = (0..count).map(job).collect();
            for (writer, own) in jobs.iter().rev() {
                let pages: Vec<_> = own.iter().map(|&index| (index, values(index))).collect();
                let pages: Vec<_> = pages.iter().map(|(index, page)| (*index, Pixels::Values(page))).collect();
                writer.write_all(&pages).unwrap();
            }
            let named: Vec<_> = jobs.into_iter().map(|(writer, _)| writer.finish().unwrap().len()).collect();
            assert_eq!(named, vec![1; count]);
            let found = all_bytes(&path);
            // 2 x 2 chunks of each slice, and four levels
            assert_eq!(found.keys().filter(|file| file.starts_with(path.join("0"))).count(), 7 * 4 + 1);
            assert!(path.join("3").is_dir() && !path.join("4").exists());
            assert!(expected.get_or_insert_with(|| found.clone()) == &found, "{dtype} {compression}, {count} jobs");
            fs::remove_dir_all(&path).unwrap();
        }
    }
}

/// A directory does not get its name while another job still makes coarser planes of a slice that it wrote, and a job that
/// comes too late does not make the directory again.
#[test]
fn the_last_job_gives_the_name() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.zarr");
    let storage: SliceStorage = Encoding { dtype: Dtype::F32, range: None }.into();
    let job = |slices: &[usize]| {
        let stamp = SliceStamp { run: "a".into(), center: 4.5, pixel_size: None, per_centimetre: None };
        let target = Target::parse(path.to_str().unwrap()).unwrap();
        let made = SliceWriter::create(target, WIDTH, HEIGHT, storage, slices, AllowedContents::Anything, "fbp test");
        made.unwrap().stamped(stamp).shared(&SLICES)
    };
    let (first, second, late) = (job(&[3, 11]), job(&[4]), job(&[11]));
    second.write(4, &slice(4)).unwrap();
    late.write(11, &slice(11)).unwrap();
    let marks = dir.path().join(".a.zarr.unfinished/checksums/0");
    let complete = fs::read(&marks).unwrap();
    // bit 33: written; bit 32: complete
    let mut written = complete.clone();
    assert_eq!(written[8 + 4], 1);
    written[8 + 4] = 2;
    fs::write(&marks, &written).unwrap();
    for index in [3, 11] {
        first.write(index, &slice(index)).unwrap();
    }
    assert_eq!(first.finish().unwrap(), [] as [std::path::PathBuf; 0]);
    assert!(!path.exists());
    let mut marked = fs::read(&marks).unwrap();
    marked[8 + 4] = 1;
    fs::write(&marks, &marked).unwrap();
    assert_eq!(second.finish().unwrap(), std::slice::from_ref(&path));
    assert!(late.write(11, &slice(11)).is_err());
    assert!(!dir.path().join(".a.zarr.unfinished").exists());
    assert_eq!(late.finish().unwrap(), std::slice::from_ref(&path));
}

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
    let notes = stack.notes();
    assert!(notes.len() == 1 && notes[0].contains("1 of 4 chunks were never written"), "{notes:?}");
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
    assert_eq!(open(&dir.path().join("a.zarr")).unwrap().notes(), [] as [String; 0]);
    let stack = open(&sharded(&dir, "end", |_, _| ())).unwrap();
    assert!(stack.notes()[0].contains("1 of 2 shards were never written"), "{:?}", stack.notes());
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
    input_error(&path, &["without an OME-Zarr image"]);
}

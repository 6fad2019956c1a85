//! Outputs with all slices in one array, and Zarr as input.

use super::{open, read};
use crate::support::all_bytes;
use fbp::sink::{
    AllowedContents, Compression, Dtype, Encoding, OmeZarr, PageContent, Pixels, SliceStamp, SliceStorage, SliceWriter,
    Target,
};
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
                all.push((
                    dir.path().join(name),
                    SliceStorage { compression, ome_zarr, content: PageContent::Slices, ..encoding.into() },
                ));
            }
        }
        if cfg!(feature = "hdf5") {
            for compression in [Compression::None, Compression::Deflate] {
                for hdf5_parts in [None, Some(2)] {
                    let storage =
                        SliceStorage { compression, hdf5_parts, content: PageContent::Slices, ..encoding.into() };
                    let name = format!("{dtype}-{compression}-{}.h5", hdf5_parts.unwrap_or(1));
                    all.push((dir.path().join(name), storage));
                }
            }
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
        let storage = SliceStorage {
            ome_zarr,
            content: PageContent::Slices,
            ..Encoding { dtype: Dtype::F32, range: None }.into()
        };
        (dir.path().join(name), storage)
    };
    let hdf5 = |name: &str, hdf5_parts| {
        let storage = SliceStorage {
            hdf5_parts,
            content: PageContent::Slices,
            ..Encoding { dtype: Dtype::F32, range: None }.into()
        };
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
    let encoding = Encoding { dtype: Dtype::F32, range: None };
    let storage = SliceStorage { content: PageContent::Slices, ..encoding.into() };
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
        let storage = SliceStorage { compression, ome_zarr, content: PageContent::Slices, ..encoding.into() };
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

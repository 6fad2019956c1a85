//! Every layout of a stack reads back, however it is ordered and asked for.

use super::make::Make;
use super::{TYPES, input_error, open, put, read};
use crate::support::samples::read_stored;
use fbp::remark::Remark;
use fbp::source::{Binning, SampleType, Stack, StoredRows, StoredSamples, Watch, wait};
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[test]
fn every_layout_reads_back() {
    let dir = TempDir::new().unwrap();
    let mut makes = Vec::new();
    for sample in TYPES {
        for tile in [(0, 2), (0, 5), (0, 1), (4, 2), (16, 16)] {
            for (compression, predictor) in [(1, 1), (5, 1), (5, 2), (8, 1), (32946, 2), (32773, 1), (5, 3), (8, 3)] {
                let float = matches!(sample, SampleType::F16 | SampleType::F32 | SampleType::F64);
                if predictor == 3 && !float {
                    continue;
                }
                for bits in 0..4 {
                    makes.push(Make {
                        sample,
                        tile,
                        compression,
                        predictor,
                        big_endian: bits & 1 == 1,
                        big_tiff: bits & 2 == 2,
                        header_first: bits == 0,
                        photometric: u16::from(bits != 1),
                        ..Default::default()
                    });
                }
            }
        }
    }
    for make in makes {
        let pages: Vec<Vec<f64>> = (0..3).map(|p| make.values(p)).collect();
        let path = put(&dir, "x.tif", &make.file(&pages));
        let stack = open(&path).unwrap_or_else(|e| panic!("{make:?}: {e}"));
        assert_eq!((stack.len(), stack.width(), stack.height()), (3, 7, 5), "{make:?}");
        assert_eq!(stack.sample(), make.sample);
        for (p, values) in pages.iter().enumerate() {
            let expected: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            let full = read(&stack, p).unwrap_or_else(|e| panic!("{make:?}: {e}"));
            assert_eq!(full, expected, "{make:?} page {p}");
            for start in 0..5 {
                for end in start..=5 {
                    let mut part = vec![0.0; (end - start) * 7];
                    stack.read_rows(p, start..end, &mut part).unwrap();
                    assert_eq!(part, full[start * 7..end * 7], "{make:?} {start}..{end}");
                    let stored = read_stored(&stack, p, start..end);
                    assert_eq!(stored, full[start * 7..end * 7], "{make:?} {start}..{end} as stored");
                }
            }
        }
    }
}

/// Pages that are to be binned are handed out as they are stored: all rows that form the wanted ones, and of sinograms all
/// pages.
#[test]
fn samples_before_binning() {
    let dir = TempDir::new().unwrap();
    let make = Make { sample: SampleType::U16, ..Default::default() };
    let pages: Vec<Vec<f64>> = (0..5).map(|page| (0..35).map(|i| f64::from(100 * page + i)).collect()).collect();
    let path = put(&dir, "x.tif", &make.file(&pages));
    let check = |pages_form_one: bool, page: usize, runs: &[Range<usize>], lines: &[(usize, usize)]| {
        let stack = open(&path).unwrap().binned(Binning { by: 2, pages: pages_form_one }).unwrap();
        let samples = StoredSamples { sample: SampleType::U16, swapped: false };
        assert_eq!(stack.stored(), StoredRows { samples, by: 2, width: 7 });
        let mut bytes = vec![0; lines.len() * 14];
        stack.read_stored(page, runs, &mut bytes).unwrap();
        let values: Vec<f64> = bytes.chunks(2).map(|b| u16::from_ne_bytes([b[0], b[1]]).into()).collect();
        let want: Vec<f64> = lines.iter().flat_map(|&(page, row)| &pages[page][7 * row..][..7]).copied().collect();
        assert_eq!(values, want, "{page} {runs:?}");
        bytes.push(0);
        assert!(stack.read_stored(page, runs, &mut bytes).is_err(), "more bytes than rows");
    };
    check(false, 3, &[0..2, 0..0], &[(3, 0), (3, 1), (3, 2), (3, 3)]);
    check(false, 0, &[1..2, 0..1], &[(0, 2), (0, 3), (0, 0), (0, 1)]);
    check(true, 1, &[0..1, 3..5], &[(2, 0), (2, 3), (2, 4), (3, 0), (3, 3), (3, 4)]);
}

/// Pages that differ in the order of bytes come as f32, and are binned before.
#[test]
fn samples_that_differ_come_as_values() {
    let dir = TempDir::new().unwrap();
    let values: Vec<f64> = (0..7 * 5).map(|i| f64::from(i * 257)).collect();
    for big_endian in [false, true] {
        let make = Make { sample: SampleType::U16, big_endian, ..Default::default() };
        put(&dir, &format!("p_{}.tif", u8::from(big_endian)), &make.file(std::slice::from_ref(&values)));
    }
    let stack = Stack::open(dir.path().to_str().unwrap(), "--projections").unwrap();
    assert_eq!(stack.stored(), StoredRows::unbinned(StoredSamples::F32, 7));
    for page in 0..2 {
        assert_eq!(read_stored(&stack, page, 1..4), values[7..28].iter().map(|&v| v as f32).collect::<Vec<_>>());
    }
    let stack = stack.binned(Binning { by: 2, pages: false }).unwrap();
    assert_eq!(stack.stored(), StoredRows::unbinned(StoredSamples::F32, 3));
    let mut binned = vec![0f32; 2 * 3];
    stack.read_rows(1, 0..2, &mut binned).unwrap();
    assert_eq!(read_stored(&stack, 1, 0..2), binned);
}

#[test]
fn rows_longer_than_one_read() {
    let dir = TempDir::new().unwrap();
    for tile in [(0, 400), (0, 7), (512, 128)] {
        let make = Make { width: 1500, height: 400, tile, sample: SampleType::F32, ..Default::default() };
        let values: Vec<f64> = (0..1500 * 400).map(f64::from).collect();
        let path = put(&dir, "x.tif", &make.file(&[values]));
        let stack = open(&path).unwrap();
        let mut out = vec![0.0; 397 * 1500];
        stack.read_rows(0, 2..399, &mut out).unwrap();
        assert!(out.iter().enumerate().all(|(i, &v)| v == (i + 3000) as f32));
    }
}

#[test]
fn many_threads_read_many_files() {
    use rayon::prelude::*;
    let dir = TempDir::new().unwrap();
    for compression in [1, 5] {
        let make = Make { compression, ..Default::default() };
        for i in 0..100 {
            put(&dir, &format!("p_{i}.tif"), &make.file(&[vec![f64::from(i); 35], vec![f64::from(i) + 0.5; 35]]));
        }
        let stack = open(dir.path()).unwrap();
        assert_eq!((stack.len(), stack.files().len()), (200, 100));
        (0..2000usize).into_par_iter().for_each(|k| {
            let page = k * 77 % 200;
            assert_eq!(read(&stack, page).unwrap(), vec![(page / 2) as f32; 35]);
        });
        assert_eq!(stack.page_name(21), "p_10.tif page 1");
    }
}

#[test]
fn order_notes_and_ignored_files() {
    let dir = TempDir::new().unwrap();
    let make = Make::default();
    for i in [10, 2, 0, 1, 4] {
        put(&dir, &format!("s_{i}.tif"), &make.file(&[vec![f64::from(i); 35]]));
    }
    put(&dir, "notes.txt", b"hello");
    put(&dir, ".s_11.tif.part-0123456789abcdef", b"half");
    put(&dir, ".hidden.tif", b"half");
    fs::create_dir(dir.path().join("old.tif")).unwrap();
    let stack = open(dir.path()).unwrap();
    let values: Vec<f32> = (0..5).map(|p| read(&stack, p).unwrap()[0]).collect();
    assert_eq!(values, [0.0, 1.0, 2.0, 4.0, 10.0]);
    assert_eq!(stack.page_name(4), "s_10.tif");
    let notes = stack.remarks().iter().map(Remark::text).collect::<Vec<_>>().join("\n");
    assert!(notes.contains("ignored 1 file that is not TIFF: notes.txt"), "{notes}");
    assert!(!notes.contains("hidden") && !notes.contains("part"), "{notes}");
    let glob = dir.path().join("s_?.tif");
    let stack = open(&glob).unwrap();
    assert_eq!(stack.len(), 4);
    let notes = stack.remarks().iter().map(Remark::text).collect::<Vec<_>>();
    assert!(notes.len() == 1 && notes[0].contains("no file with number 3 (1 missing)"), "{notes:?}");
    let one = open(&dir.path().join("s_10.tif")).unwrap();
    assert_eq!((one.len(), one.page_name(0)), (1, "s_10.tif".into()));
}

#[test]
fn requests_that_do_not_fit() {
    let dir = TempDir::new().unwrap();
    let stack = open(&put(&dir, "x.tif", &Make::default().file(&[vec![1.0; 35]]))).unwrap();
    assert!(stack.read_rows(1, 0..1, &mut [0.0; 7]).is_err());
    assert!(stack.read_rows(0, 4..6, &mut [0.0; 14]).is_err());
    assert!(stack.read_rows(0, 0..2, &mut [0.0; 7]).is_err());
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = 2..1;
    assert!(stack.read_rows(0, backwards, &mut []).is_err());
    assert!(stack.read_rows(0, 5..5, &mut []).is_ok());
}

#[test]
fn imagej_stacks_with_one_header() {
    let dir = TempDir::new().unwrap();
    let make = Make {
        header_first: true,
        big_endian: true,
        description: "ImageJ=1.53t\nimages=3\nslices=3\n",
        ..Default::default()
    };
    let mut bytes = make.file(&[make.values(0)]);
    for p in 1..3 {
        bytes.extend(make.predict(&make.values(p)));
    }
    let stack = open(&put(&dir, "x.tif", &bytes)).unwrap();
    assert_eq!(stack.len(), 3);
    for p in 0..3 {
        let expected: Vec<f32> = make.values(p).iter().map(|&v| v as f32).collect();
        assert_eq!(read(&stack, p).unwrap(), expected);
    }
    bytes.truncate(bytes.len() - 1);
    input_error(&put(&dir, "x.tif", &bytes), &["x.tif", "truncated", "3 images"]);
}

/// What other formats declare is there from the beginning, whatever has arrived.
/// What headers say and reading does not follow is a note, once for all files.
#[test]
fn what_headers_say_besides_is_a_note() {
    let notes = |makes: &[Make], pages: usize| -> Vec<String> {
        let dir = TempDir::new().unwrap();
        for (number, make) in makes.iter().enumerate() {
            let pages: Vec<Vec<f64>> = (0..pages).map(|page| make.values(page)).collect();
            put(&dir, &format!("p_{number}.tif"), &make.file(&pages));
        }
        let stack = open(dir.path()).unwrap();
        assert_eq!(stack.len(), makes.len() * pages);
        stack.remarks().iter().map(Remark::text).collect()
    };
    let turned = |orientation| Make { orientation, ..Default::default() };
    for orientation in 2..=8 {
        let found = notes(&[turned(1), turned(orientation), turned(orientation)], 1);
        assert_eq!(found.len(), 1, "{found:?}");
        for word in ["p_1.tif and 1 more", &format!("orientation {orientation}"), "not applied"] {
            assert!(found[0].contains(word), "no {word} in {}", found[0]);
        }
    }
    let tiled = Make { tile: (16, 16), big_endian: true, orientation: 3, ..Default::default() };
    assert!(notes(&[tiled], 2)[0].contains("orientation 3"));
    let image_j = |description| Make { description, ..Default::default() };
    let found = notes(&[image_j("ImageJ=1.53t\nimages=7\nslices=7\n")], 3);
    assert!(found.len() == 1 && found[0].contains("7 images") && found[0].contains("has 3;"), "{found:?}");
    for good in [
        turned(0),
        turned(1),
        image_j("ImageJ=1.53t\nimages=3\n"),
        image_j("ImageJ=1.53t\nimages=2\n"),
        image_j("other\nimages=7\n"),
    ] {
        assert_eq!(notes(std::slice::from_ref(&good), 3), [""; 0], "{good:?}");
    }
    let dir = TempDir::new().unwrap();
    let colours = Make { samples: 3, photometric: 2, ..Default::default() };
    input_error(&put(&dir, "x.tif", &colours.file(&[colours.values(0)])), &["RGB", "if these are 3 frames"]);
}

#[test]
fn only_tiff_is_waited_for() {
    let dir = TempDir::new().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    put("a.zarr/.zarray", b"{}");
    put("edf/p_0.edf", b"{}");
    put("tif/p_0.txt", b"");
    let in_directory = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut others = vec![
        (in_directory("a.zarr"), "Zarr"),
        (in_directory("edf"), "EDF"),
        (in_directory("edf/*.edf"), "EDF"),
        (put("a.raw", b"1") + ",1x1x1,u8", "a raw volume"),
    ];
    if cfg!(feature = "hdf5") {
        others.push((put("a.h5", b"\x89HDF\r\n\x1a\n") + "::/data", "HDF5"));
    }
    let start = Instant::now();
    for (spec, format) in others {
        let watch = Watch { patience: Duration::from_secs(60), pages: Some(1), order_by: None };
        let error = wait(&spec, "--projections", watch, |_| Ok(())).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        for word in ["--watch", "TIFF", &format!("--projections {spec} is {format};")] {
            assert!(error.to_string().contains(word), "no {word} in {error}");
        }
    }
    assert!(start.elapsed() < Duration::from_secs(20));
    let watch = Watch { patience: Duration::from_millis(1), pages: None, order_by: None };
    let error = wait(&in_directory("tif"), "--projections", watch, |_| Ok(())).unwrap_err();
    assert_eq!(error.exit_code(), 3, "{error}");
}

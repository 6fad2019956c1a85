//! Samples as they are stored: the same values as those that are converted, in every sample type and storage, and the same
//! slices whether a device or the host corrects them.

use super::{Counts, FLAGS, FRAMES, ROWS, WIDTH, alone, angles, cast, exchange, file, list, nxtomo, unit, volume};
use crate::support::cli::{Lab, Pages};
use crate::support::samples::read_stored;
use fbp::source::{Hdf5Input, SampleType, Stack, StoredRows, StoredSamples};
use hdf5_metno::{File, H5Type};
use std::fs;

/// Frames, rows, bins.
const SHAPE: (usize, usize, usize) = (3, 5, 7);
const VALUES: usize = SHAPE.0 * SHAPE.1 * SHAPE.2;

/// How a dataset is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Storage {
    Contiguous,
    Chunked,
    Compressed,
    Virtual,
}

const STORAGES: [Storage; 4] = [Storage::Contiguous, Storage::Chunked, Storage::Compressed, Storage::Virtual];

fn write<T: H5Type>(lab: &Lab, storage: Storage, values: &[T]) {
    let own = |name: &str, path: &str| {
        let source = file(lab, name);
        source.new_dataset::<T>().shape(SHAPE).create(path).unwrap().write_raw(values).unwrap();
    };
    match storage {
        Storage::Contiguous => own("x.h5", "/exchange/data"),
        Storage::Virtual => {
            own("source.h5", "/d");
            let all = (.., .., ..);
            let builder = file(lab, "x.h5").new_dataset::<T>().shape(SHAPE);
            drop(builder.virtual_map("source.h5", "/d", SHAPE, all, SHAPE, all).create("/exchange/data").unwrap());
        }
        _ => {
            let builder = file(lab, "x.h5").new_dataset::<T>().shape(SHAPE).chunk((2, 3, 4));
            let builder = if storage == Storage::Compressed { builder.shuffle().deflate(4) } else { builder };
            builder.create("/exchange/data").unwrap().write_raw(values).unwrap();
        }
    }
}

/// Changes what a file says of the only type in it, which has these bits.
fn change_type(lab: &Lab, sample: SampleType, change: impl Fn(&mut [u8])) {
    let bits = 8 * sample.bytes() as u8;
    let (class, flags, sign) = match sample {
        SampleType::I8 | SampleType::I16 | SampleType::I32 | SampleType::I64 => (0x10, 8, 0),
        SampleType::F16 | SampleType::F32 | SampleType::F64 => (0x11, 0x20, bits - 1),
        _ => (0x10, 0, 0),
    };
    let before = [class, flags, sign, 0, bits / 8, 0, 0, 0, 0, 0, bits, 0];
    let mut bytes = fs::read(lab.path("x.h5")).unwrap();
    let at: Vec<usize> = (0..bytes.len() - 12).filter(|&at| bytes[at..at + 12] == before).collect();
    assert_eq!(at.len(), 1, "{sample}");
    change(&mut bytes[at[0]..at[0] + 12]);
    fs::write(lab.path("x.h5"), bytes).unwrap();
}

fn open(lab: &Lab, name: &str) -> Stack {
    let input = Hdf5Input { file: lab.path(name), ..Default::default() };
    fbp::source::hdf5::open(&input, false, 1 << 30).unwrap().data
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Every selection of rows, as stored and converted.
fn check(lab: &Lab, what: &str, expected: &[f32], stored: StoredSamples) {
    let stack = open(lab, "x.h5");
    assert_eq!(stack.stored(), StoredRows::unbinned(stored, SHAPE.2), "{what}");
    let (_, rows, bins) = SHAPE;
    for (frame, expected) in expected.chunks(rows * bins).enumerate() {
        for start in 0..rows {
            for end in start..=rows {
                let expected = bits(&expected[start * bins..end * bins]);
                let mut values = vec![0f32; (end - start) * bins];
                stack.read_rows(frame, start..end, &mut values).unwrap();
                assert_eq!(bits(&values), expected, "{what}, frame {frame}, {start}..{end}");
                let samples = read_stored(&stack, frame, start..end);
                assert_eq!(bits(&samples), expected, "{what}, frame {frame}, {start}..{end} as stored");
            }
        }
    }
}

macro_rules! check_type {
    ($lab:expr, $sample:expr, $type:ty, $values:expr) => {{
        let values: Vec<$type> = (0..VALUES).map($values).collect();
        let expected: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let turned: Vec<$type> = values
            .iter()
            .map(|value| {
                let mut bytes = value.to_ne_bytes();
                bytes.reverse();
                <$type>::from_ne_bytes(bytes)
            })
            .collect();
        for storage in STORAGES {
            for other_order in [false, true] {
                if other_order && storage == Storage::Virtual {
                    continue;
                }
                write($lab, storage, if other_order { &turned } else { &values });
                if other_order {
                    change_type($lab, $sample, |bytes| bytes[1] ^= 1);
                }
                let stored = match $sample {
                    sample if sample.is_long() => StoredSamples::F32,
                    sample => StoredSamples { sample, swapped: other_order },
                };
                let what = format!("{} {storage:?}, other order {other_order}", $sample);
                check($lab, &what, &expected, stored);
            }
        }
    }};
}

#[test]
fn stored_samples_are_the_values() {
    let _alone = alone();
    let lab = Lab::new();
    // small, large and in between
    let whole = |i: usize| (i as u32).wrapping_mul(0x0965_4321) ^ if i % 3 == 0 { u32::MAX } else { 0 };
    let float = |i: usize| match i {
        0 => f64::from(f32::MAX),
        1 => f64::NEG_INFINITY,
        2 => 1e-40,
        3 => -0.0,
        i => f64::from(whole(i)) / 7.0 - 3e7,
    };
    check_type!(&lab, SampleType::U8, u8, |i| (whole(i) >> 24) as u8);
    check_type!(&lab, SampleType::I8, i8, |i| (whole(i) >> 24) as i8);
    check_type!(&lab, SampleType::U16, u16, |i| (whole(i) >> 16) as u16);
    check_type!(&lab, SampleType::I16, i16, |i| (whole(i) >> 16) as i16);
    check_type!(&lab, SampleType::U32, u32, whole);
    check_type!(&lab, SampleType::I32, i32, |i| whole(i) as i32);
    let long = |i: usize| (u64::from(whole(i)) << 32 | u64::from(whole(i + 1))) >> (i % 40);
    check_type!(&lab, SampleType::U64, u64, long);
    check_type!(&lab, SampleType::I64, i64, |i| long(i) as i64);
    check_type!(&lab, SampleType::F32, f32, |i| float(i) as f32);
    check_type!(&lab, SampleType::F64, f64, float);
}

/// Cameras of 12 bits: the bits above may hold anything.
#[test]
fn unused_bits_are_no_part_of_a_sample() {
    let _alone = alone();
    let lab = Lab::new();
    let values: Vec<u16> = (0..VALUES).map(|i| (i * 617 % 65536) as u16).collect();
    let expected: Vec<f32> = values.iter().map(|&value| f32::from(value & 0xfff)).collect();
    for storage in [Storage::Contiguous, Storage::Chunked, Storage::Compressed] {
        write(&lab, storage, &values);
        change_type(&lab, SampleType::U16, |bytes| bytes[10] = 12);
        check(&lab, &format!("{storage:?}"), &expected, StoredSamples { sample: SampleType::U16, swapped: false });
    }
}

/// Projections among other frames, and a file that something writes to.
#[test]
fn stored_samples_of_selected_frames() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    nxtomo(&file(&lab, "scan.nx"), "/entry", &counts, true);
    let stack = open(&lab, "scan.nx");
    let samples = StoredSamples { sample: SampleType::U16, swapped: false };
    assert_eq!(stack.stored(), StoredRows::unbinned(samples, WIDTH));
    for (frame, page) in counts.projections.pages.iter().enumerate() {
        assert_eq!(read_stored(&stack, frame, 0..ROWS), *page);
    }
    let mut bytes = fs::read(lab.path("scan.nx")).unwrap();
    bytes.extend(b"more");
    fs::write(lab.path("scan.nx"), bytes).unwrap();
    let error = stack.read_stored(0, std::slice::from_ref(&(0..1)), &mut [0; 2 * WIDTH]).unwrap_err().to_string();
    assert!(error.contains("scan.nx") && error.contains("writes to it"), "{error}");
}

/// Whole runs, whose samples the host or the device corrects: the same slices within rounding, the same counts.
#[test]
fn runs_do_not_depend_on_who_corrects() {
    let _alone = alone();
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    let mut counts = Counts::new(&lab);
    // no light, and less than the dark level
    counts.projections.pages[4][WIDTH..2 * WIDTH].fill(0.0);
    counts.projections.pages[9][17] = 3.0;
    let new = |name: &str| {
        let file = file(&lab, name);
        exchange(&file, &counts);
        file
    };
    let chunked = |file: &File, values: &[u16]| {
        let builder = file.new_dataset::<u16>().shape((FRAMES, ROWS, WIDTH)).chunk((3, 2, 20)).shuffle().deflate(4);
        builder.create("/exchange/data").unwrap().write_raw(values).unwrap();
    };
    volume(&new("u16.h5"), "/exchange/data", &counts.projections, |v| v as u16);
    volume(&new("i32.h5"), "/exchange/data", &counts.projections, |v| v as i32);
    volume(&new("f64.h5"), "/exchange/data", &counts.projections, f64::from);
    chunked(&new("gzip.h5"), &cast(&counts.projections, |v| v as u16));
    {
        // fields come from elsewhere: one type of 32 bits is in the file
        let big = file(&lab, "x.h5");
        volume(&big, "/exchange/data", &counts.projections, |v| (v as u32).swap_bytes());
        unit(&list(&big, "/exchange/theta", &angles()), "degrees");
    }
    change_type(&lab, SampleType::U32, |bytes| bytes[1] ^= 1);
    for (number, (name, flags)) in [
        ("u16.h5", ""),
        ("i32.h5", "--rows 1..3"),
        ("f64.h5", ""),
        ("gzip.h5", "--remove-outliers 3,150,both --slices-per-pass 2"),
        ("gzip.h5", "--stripes mean --exclude 3"),
        ("u16.h5", "--binning 2 --slices-per-pass 1"),
        ("gzip.h5", "--binning 2 --tilt 1 --remove-outliers 3,150"),
        ("f64.h5", "--binning 2"),
        ("x.h5", "--flats f --darks d --binning 3 --exclude 3"),
        ("x.h5", "--flats f --darks d"),
    ]
    .into_iter()
    .enumerate()
    {
        let run = |profile: &str, who: &str| -> (Pages, serde_json::Value) {
            let output = format!("{who}-{number}");
            let slices =
                lab.slices(&format!("--hdf5 {name} {flags} {FLAGS} --profile {profile} --report r.json"), &output);
            let record = lab.read_text(&format!("{output}/fbp-run.toml"));
            assert!(record.contains(&format!("row-steps = \"{who}\"")), "{name} {flags}: {record}");
            (slices, serde_json::from_str(&lab.read_text("r.json")).unwrap())
        };
        let ((host, on_host), (device, on_device)) = (run("cpu", "host"), run("device.toml", "device"));
        let range = host.pages.iter().flatten().fold(0f32, |most, value| most.max(value.abs()));
        let margin = range * if flags.contains("--stripes") { 1e-5 } else { 2e-6 };
        for (host, device) in host.pages.iter().zip(&device.pages) {
            assert!(host.iter().zip(device).all(|(a, b)| (a - b).abs() <= margin), "{name} {flags}");
        }
        for key in ["clamped", "clamped_by_reason", "replaced_rows", "replaced_bins", "outliers", "saturated"] {
            assert_eq!(on_host.get(key), on_device.get(key), "{name} {flags}: {key}");
        }
    }
}

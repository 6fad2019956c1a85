//! Frames at offsets of files: EDF and raw volumes.

use super::{TYPES, input_error, open, read};
use fbp::source::{RawVolume, SampleType, Stack};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const NAMES: [&str; 11] = ["u8", "u16", "u32", "i8", "i16", "i32", "u64", "i64", "f16", "f32", "f64"];

/// Whole numbers from `first` on as samples.
fn samples(sample: SampleType, first: u8, count: u8, big: bool) -> Vec<u8> {
    let value = |number: u8| -> Vec<u8> {
        let number = f64::from(number);
        let mut bytes = match sample {
            SampleType::U8 => vec![number as u8],
            SampleType::I8 => (number as i8).to_le_bytes().to_vec(),
            SampleType::U16 => (number as u16).to_le_bytes().to_vec(),
            SampleType::I16 => (number as i16).to_le_bytes().to_vec(),
            SampleType::U32 => (number as u32).to_le_bytes().to_vec(),
            SampleType::I32 => (number as i32).to_le_bytes().to_vec(),
            SampleType::U64 => (number as u64).to_le_bytes().to_vec(),
            SampleType::I64 => (number as i64).to_le_bytes().to_vec(),
            SampleType::F16 => half::f16::from_f64(number).to_le_bytes().to_vec(),
            SampleType::F32 => (number as f32).to_le_bytes().to_vec(),
            SampleType::F64 => number.to_le_bytes().to_vec(),
        };
        if big {
            bytes.reverse();
        }
        bytes
    };
    (first..first + count).flat_map(value).collect()
}

fn numbers(first: u8, count: u8) -> Vec<f32> {
    (first..first + count).map(f32::from).collect()
}

#[test]
fn raw_volumes_of_every_type() {
    let dir = TempDir::new().unwrap();
    for (sample, name) in TYPES.into_iter().zip(NAMES) {
        for (order, big) in [("le", false), ("be", true)] {
            let kind = if sample.bytes() == 1 { name.to_owned() } else { format!("{name}{order}") };
            let path = dir.path().join("with,commas.raw");
            fs::write(&path, [vec![9; 7], samples(sample, 0, 24, big), vec![1]].concat()).unwrap();
            let spec = format!("{},3x4x2,{kind},7", path.display());
            let stack = Stack::open(&spec, "--raw").unwrap();
            assert_eq!((stack.len(), stack.width(), stack.height(), stack.sample()), (2, 3, 4, sample), "{spec}");
            assert_eq!(read(&stack, 1).unwrap(), numbers(12, 12), "{spec}");
            let mut rows = [0.0; 6];
            stack.read_rows(0, 1..3, &mut rows).unwrap();
            assert_eq!(rows[..], numbers(3, 6));
            assert!(stack.remarks()[0].text().contains("1 bytes follow"), "{:?}", stack.remarks());
        }
    }
    let path = dir.path().join("with,commas.raw");
    let spec = |rest: &str| PathBuf::from(format!("{},{rest}", path.display()));
    input_error(&spec("3x4x9,f64be"), &["200 bytes", "too few", "9 frames of 3x4"]);
    input_error(&spec("3x4x2,u8,18446744073709551615"), &["too few"]);
    for (wrong, word) in [
        ("3x4x2,u16", "u16 is not a type"),
        ("3x0x2,u8", "3x0x2"),
        ("3x4x2,u8,-1", "-1 is not a number"),
        ("3x99999999x2,u8", "a side"),
    ] {
        let error = RawVolume::parse(spec(wrong).to_str().unwrap(), "--raw").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(word) && error.to_string().contains("FILE,WxHxN,TYPE"), "{error}");
    }
    for other in ["a.tif", "a,b,c", "a,3x4,u8", ",3x4x5,u8", "3x4x5,u8"] {
        assert!(!RawVolume::looks_like(other), "{other}");
    }
}

/// A header of EDF, as long as the format wants it, with these samples.
fn edf(lines: &str, samples: &[u8]) -> Vec<u8> {
    let text = format!("{{\nHeaderID = EH:000001:000000:000000 ;\n{lines}");
    let mut bytes = text.into_bytes();
    bytes.resize((bytes.len() + 2).next_multiple_of(512) - 2, b' ');
    bytes.extend(b"}\n");
    bytes.extend(samples);
    bytes
}

fn write_edf(path: &Path, lines: &str, samples: &[u8]) -> PathBuf {
    fs::write(path, edf(lines, samples)).unwrap();
    path.to_owned()
}

#[test]
fn edf_of_every_type() {
    let dir = TempDir::new().unwrap();
    let kinds = [
        "UnsignedByte",
        "UnsignedShort",
        "UnsignedInteger",
        "SignedByte",
        "SignedShort",
        "SignedInteger",
        "Unsigned64",
        "Signed64",
        "",
        "FloatValue",
        "DoubleValue",
    ];
    for (sample, kind) in TYPES.into_iter().zip(kinds).filter(|(_, kind)| !kind.is_empty()) {
        for (order, big) in [("LowByteFirst", false), ("HighByteFirst", true)] {
            let lines = format!(
                "ByteOrder = {order} ;\nDataType = {kind} ;\nDim_1 = 3 ;\nDim_2 = 2 ;\nSize = {} ;\n",
                6 * sample.bytes()
            );
            // natural order, and two frames in one file
            write_edf(&dir.path().join("p_9.edf"), &lines, &samples(sample, 0, 6, big));
            let both = [edf(&lines, &samples(sample, 6, 6, big)), edf(&lines, &samples(sample, 12, 6, big))].concat();
            fs::write(dir.path().join("p_10.edf"), both).unwrap();
            for spec in [dir.path().to_owned(), dir.path().join("p_*.edf")] {
                let stack = open(&spec).unwrap();
                assert_eq!((stack.len(), stack.width(), stack.height(), stack.sample()), (3, 3, 2, sample), "{kind}");
                for page in 0..3 {
                    assert_eq!(read(&stack, page).unwrap(), numbers(6 * page as u8, 6), "{kind} {order}");
                }
                assert_eq!((stack.page_name(0), stack.page_name(2)), ("p_9.edf".into(), "p_10.edf frame 1".into()));
            }
        }
    }
}

/// Other names of the types, as fabio knows them.
#[test]
fn edf_with_other_names_of_types() {
    let dir = TempDir::new().unwrap();
    for (name, sample) in [
        ("Unsigned8", SampleType::U8),
        ("Unsigned16", SampleType::U16),
        ("Unsigned32", SampleType::U32),
        ("Signed8", SampleType::I8),
        ("Signed16", SampleType::I16),
        ("Signed32", SampleType::I32),
        ("UnsignedShortInteger", SampleType::U16),
        ("UnsignedLong", SampleType::U32),
        ("SignedLong", SampleType::I32),
        ("Unsigned64", SampleType::U64),
        ("Signed64", SampleType::I64),
        ("FLOATVALUE", SampleType::F32),
        ("FloatIEEE32", SampleType::F32),
        ("Float32", SampleType::F32),
        ("FloatIEEE64", SampleType::F64),
        ("DoubleIEEE64", SampleType::F64),
    ] {
        let lines = format!("ByteOrder = LowByteFirst ;\nDataType = {name} ;\nDim_1 = 3 ;\nDim_2 = 2 ;\n");
        let path = write_edf(&dir.path().join("x.edf"), &lines, &samples(sample, 0, 6, false));
        let stack = open(&path).unwrap();
        assert_eq!((stack.sample(), read(&stack, 0).unwrap()), (sample, numbers(0, 6)), "{name}");
    }
}

/// What follows the frames must be nothing: a damaged header would hide frames.
#[test]
fn edf_with_something_after_a_frame() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.edf");
    let good = "ByteOrder = LowByteFirst ;\nDataType = UnsignedByte ;\nDim_1 = 3 ;\nDim_2 = 2 ;\n";
    let frame = edf(good, &[1; 6]);
    for rest in [&b""[..], b" \r\n", &[0; 2000], b"\n\0\0 "] {
        fs::write(&path, [&frame[..], &frame, rest].concat()).unwrap();
        assert_eq!(open(&path).unwrap().len(), 2, "{rest:?}");
    }
    let mut damaged = [&frame[..], &frame, &frame].concat();
    damaged[frame.len()] = b'[';
    fs::write(&path, &damaged).unwrap();
    input_error(&path, &["bytes after frame 0", "offset 518", "a header is damaged", "Size"]);
    // padding of which no Size tells
    fs::write(&path, [&frame[..], &[0; 506], &frame].concat()).unwrap();
    input_error(&path, &["bytes after frame 0", "Size"]);
}

#[test]
fn files_that_are_compressed_as_a_whole() {
    let dir = TempDir::new().unwrap();
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
    for name in ["x.edf.gz", "x.edf", "x.tif.gz", "x.tif"] {
        let path = dir.path().join(name);
        fs::write(&path, gzip).unwrap();
        input_error(&path, &[name, "compressed with gzip", "decompress it first"]);
        if name.ends_with(".gz") {
            input_error(dir.path(), &[name, "decompress them first"]);
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn edf_that_cannot_be_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.edf");
    let good = "ByteOrder = LowByteFirst ;\nDataType = UnsignedByte ;\nDim_1 = 3 ;\nDim_2 = 2 ;\n";
    assert_eq!(read(&open(&write_edf(&path, good, &[1; 6])).unwrap(), 0).unwrap(), [1.0; 6]);
    for (from, to, words) in [
        ("Dim_1 = 3", "Dim_1 = 0", &["Dim_1 = 0"][..]),
        ("Dim_1 = 3 ;", "", &["no Dim_1"]),
        ("Dim_1 = 3", "Dim_1 = 1048576", &["truncated"]),
        ("Dim_2 = 2", "Dim_2 = 99999999", &["Dim_2 = 99999999"]),
        ("UnsignedByte", "Complex", &["DataType = Complex"]),
        ("LowByteFirst", "Middle", &["ByteOrder = Middle"]),
        ("Dim_1", "COMPRESSION = GzipCompression ;\nDim_1", &["GzipCompression"]),
        ("Dim_1", "Dim_3 = 4 ;\nDim_1", &["third dimension"]),
        ("Dim_1", "Size = 18446744073709551615 ;\nDim_1", &["truncated"]),
    ] {
        input_error(&write_edf(&path, &good.replacen(from, to, 1), &[1; 6]), words);
    }
    fs::write(&path, b"II*\0").unwrap();
    input_error(&path, &["not an EDF"]);
    fs::write(&path, b"").unwrap();
    input_error(&path, &["empty"]);
    fs::write(&path, vec![b'{'; 200_000]).unwrap();
    input_error(&path, &["does not end with }"]);
    write_edf(&path, good, &[1; 6]);
    write_edf(&dir.path().join("y.edf"), &good.replace("Dim_1 = 3", "Dim_1 = 2"), &[1; 4]);
    input_error(dir.path(), &["y.edf is 2x2", "3x2"]);
}

//! Stacks that are no stacks, and files that are damaged or made to harm.

use super::make::Make;
use super::{input_error, open, put, read};
use fbp::source::{SampleType, Stack};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

#[test]
fn gaps_are_noted_and_strays_refused() {
    let dir = TempDir::new().unwrap();
    let bytes = Make::default().file(&[vec![1.0; 35]]);
    for i in [0, 1, 2, 4, 5] {
        put(&dir, &format!("p_{i:04}.TIFF"), &bytes);
    }
    let stack = open(dir.path()).unwrap();
    assert!(stack.remarks()[0].text().contains("no file with number 3 (1 missing)"), "{:?}", stack.remarks());
    put(&dir, "zz_180deg.tif", &bytes);
    input_error(dir.path(), &["zz_180deg.tif", "move", "glob"]);
    input_error(&dir.path().join("*"), &["zz_180deg.tif", "narrow the glob", "list FILE"]);
    let glob = open(&dir.path().join("p_*")).unwrap();
    assert!(glob.len() == 5 && glob.remarks()[0].text().contains("no file with number 3"), "{:?}", glob.remarks());
    fs::remove_file(dir.path().join("zz_180deg.tif")).unwrap();
    put(&dir, "p_004.TIFF", &bytes);
    input_error(dir.path(), &["p_004.TIFF", "p_0004.TIFF", "same number"]);
}

#[test]
fn the_odd_one_is_named() {
    let dir = TempDir::new().unwrap();
    let make = Make { width: 64, height: 64, ..Default::default() };
    for i in 0..4 {
        let height = if i == 2 { 50 } else { 64 };
        let make = Make { height, ..make.clone() };
        put(&dir, &format!("s_{i:04}.tif"), &make.file(&[vec![0.0; 64 * height]]));
    }
    input_error(dir.path(), &["slice 2: s_0002.tif is 64x50, the others are 64x64"]);
    // the first one may be the odd one
    put(&dir, "s_0002.tif", &make.file(&[vec![0.0; 64 * 64]]));
    let small = Make { width: 32, ..make.clone() };
    put(&dir, "s_0000.tif", &small.file(&[vec![0.0; 32 * 64]]));
    input_error(dir.path(), &["slice 0: s_0000.tif is 32x64, the others are 64x64"]);
    let floats = Make { sample: SampleType::F32, ..make.clone() };
    put(&dir, "s_0000.tif", &floats.file(&[vec![0.0; 64 * 64]]));
    input_error(dir.path(), &["s_0000.tif is 32-bit float, the others are 16-bit unsigned"]);
}

#[test]
fn what_is_not_there_or_not_a_tiff() {
    let dir = TempDir::new().unwrap();
    input_error(&dir.path().join("no"), &["no", "does not exist"]);
    input_error(dir.path(), &["contains no TIFF"]);
    input_error(&dir.path().join("*.tif"), &["no file matches"]);
    put(&dir, "a.txt", b"x");
    input_error(dir.path(), &["contains no TIFF", "a.txt"]);
    let text = put(&dir, "a.tif", b"this is text");
    input_error(dir.path(), &["a.tif", "is not a TIFF"]);
    input_error(&text, &["a.tif", "is not a TIFF"]);
    input_error(&put(&dir, "empty.tif", b""), &["empty.tif", "is empty"]);
    input_error(&put(&dir, "none.tif", b"II*\0\0\0\0\0"), &["without pages"]);
    input_error(Path::new("/dev/null"), &["neither a file nor a directory"]);
    let error = Stack::open("a***b[", "--sinograms").unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    std::os::unix::fs::symlink("nowhere", dir.path().join("link.tif")).unwrap();
    fs::remove_file(text).unwrap();
    fs::remove_file(dir.path().join("empty.tif")).unwrap();
    fs::remove_file(dir.path().join("none.tif")).unwrap();
    input_error(dir.path(), &["link.tif", "cannot be read"]);
}

#[test]
fn images_that_are_not_grey() {
    let dir = TempDir::new().unwrap();
    let file = |make: &Make| put(&dir, "x.tif", &make.file(&[vec![0.0; make.width * make.height]]));
    let rgb = Make { samples: 3, photometric: 2, ..Default::default() };
    input_error(&file(&rgb), &["page 0", "RGB", "one grey value"]);
    input_error(&file(&Make { samples: 2, ..Default::default() }), &["2 sample"]);
    input_error(&file(&Make { photometric: 3, ..Default::default() }), &["palette"]);
    input_error(&file(&Make { compression: 50000, ..Default::default() }), &["compressed data is damaged"]);
    input_error(&file(&Make { compression: 50001, ..Default::default() }), &["WebP"]);
    input_error(&file(&Make { compression: 7, ..Default::default() }), &["JPEG"]);
    let predicted = Make { compression: 5, predictor: 3, ..Default::default() };
    input_error(&file(&predicted), &["predictor 3"]);
    let mut bytes = Make::default().file(&[vec![0.0; 35]]);
    patch(&mut bytes, 258, 12);
    input_error(&put(&dir, "x.tif", &bytes), &["12-bit", "expected"]);
    let mut bytes = Make::default().file(&[vec![0.0; 35]]);
    patch(&mut bytes, 257, 0);
    input_error(&put(&dir, "x.tif", &bytes), &["7x0"]);
    let broken = Make { compression: 7, sample: SampleType::U8, ..Default::default() };
    input_error(&file(&broken), &["page 0", "damaged"]);
}

#[test]
fn jpeg_of_grey_pixels() {
    let dir = TempDir::new().unwrap();
    let make = Make { compression: 7, sample: SampleType::U8, width: 8, height: 8, tile: (0, 8), ..Default::default() };
    let bytes = make.file(&[vec![100.0; 64]]);
    let stack = open(&put(&dir, "x.tif", &bytes)).unwrap();
    assert_eq!(read(&stack, 0).unwrap(), [100.0; 64]);
    let mut part = [0.0; 16];
    stack.read_rows(0, 3..5, &mut part).unwrap();
    assert_eq!(part, [100.0; 16]);
    let mut wide = bytes.clone();
    patch(&mut wide, 256, 9);
    input_error(&put(&dir, "x.tif", &wide), &["page 0", "a different size"]);
}

/// Position of a tag's entry in a little-endian classic TIFF whose first page has it.
fn entry(bytes: &[u8], tag: u16) -> usize {
    let ifd = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let count = u16::from_le_bytes([bytes[ifd], bytes[ifd + 1]]) as usize;
    (0..count).map(|i| ifd + 2 + 12 * i).find(|&at| u16::from_le_bytes([bytes[at], bytes[at + 1]]) == tag).unwrap()
}

fn patch(bytes: &mut [u8], tag: u16, value: u32) {
    let at = entry(bytes, tag);
    let kind = bytes[at + 2];
    let n = if kind == 3 { 2 } else { 4 };
    bytes[at + 8..at + 8 + n].copy_from_slice(&value.to_le_bytes()[..n]);
}

#[test]
fn hostile_headers() {
    let dir = TempDir::new().unwrap();
    let good = Make::default().file(&[vec![1.0; 35], vec![2.0; 35]]);
    let check = |change: &dyn Fn(&mut Vec<u8>), words: &[&str]| {
        let mut bytes = good.clone();
        change(&mut bytes);
        input_error(&put(&dir, "x.tif", &bytes), words)
    };
    let first = Make { header_first: true, ..Default::default() }.file(&[vec![1.0; 35], vec![2.0; 35]]);
    let cut = put(&dir, "x.tif", &first[..first.len() - 5]);
    let end = format!("the file has {}", first.len() - 5);
    input_error(&cut, &["x.tif: page 1: is truncated", "strip 2 needs 14 bytes", &end]);
    check(&|b| patch(b, 256, u32::MAX), &["page 0", "4294967295x5"]);
    check(&|b| patch(b, 257, 1 << 20), &["page 0"]);
    check(&|b| (patch(b, 256, 1 << 20), patch(b, 257, 1 << 20)).0, &["1048576x1048576"]);
    check(&|b| patch(b, 278, 0), &["strips of 7x0"]);
    check(&|b| patch(b, 273, 0xffff_fff0), &["page 0", "truncated or damaged"]);
    let count = |b: &mut [u8], tag, n: u32| {
        let at = entry(b, tag);
        b[at + 4..at + 8].copy_from_slice(&n.to_le_bytes());
    };
    check(&|b| count(b, 273, u32::MAX), &["page 0", "4294967295 values, expected 3"]);
    check(&|b| count(b, 258, 0), &["page 0"]);
    // strips of one row of a page that is 2^20 rows high: a table far past the file's end
    check(
        &|b| {
            patch(b, 257, 1 << 20);
            patch(b, 278, 1);
            count(b, 273, 1 << 20);
            count(b, 279, 1 << 20);
        },
        &["page 0", "from offset"],
    );
    // a page list that is a loop
    let ifd = u32::from_le_bytes(good[4..8].try_into().unwrap());
    let next = ifd as usize + 2 + 11 * 12;
    check(&|b| b[next..next + 4].copy_from_slice(&ifd.to_le_bytes()), &["loop"]);
    check(&|b| b[next..next + 4].copy_from_slice(&[255; 4]), &["page 1", "truncated"]);
    check(&|b| b[4..8].copy_from_slice(&[3, 0, 0, 0]), &["x.tif"]);
    // much from little: 2^31 pixels in a strip of a few bytes
    let mut squeezed = Make { compression: 8, tile: (0, 5), ..Default::default() }.file(&[vec![1.0; 35]]);
    patch(&mut squeezed, 256, 1 << 20);
    patch(&mut squeezed, 257, 1 << 11);
    patch(&mut squeezed, 278, 1 << 11);
    input_error(&put(&dir, "x.tif", &squeezed), &["cannot decompress"]);
    // BigTIFF with absurd counts
    let big = Make { big_tiff: true, ..Default::default() }.file(&[vec![1.0; 35]]);
    let ifd = u64::from_le_bytes(big[8..16].try_into().unwrap()) as usize;
    let mut bytes = big.clone();
    bytes[ifd..ifd + 8].copy_from_slice(&[255; 8]);
    input_error(&put(&dir, "x.tif", &bytes), &["entries"]);
    let mut bytes = big.clone();
    bytes[8..16].copy_from_slice(&[255; 8]);
    input_error(&put(&dir, "x.tif", &bytes), &["truncated"]);
}

fn small_files() -> Vec<(Make, Vec<Vec<f64>>, Vec<u8>)> {
    let mut list = Vec::new();
    for (compression, predictor, tile, big_endian, big_tiff, header_first) in [
        (1, 1, (0, 2), false, false, false),
        (1, 1, (0, 2), true, false, true),
        (1, 1, (4, 2), false, true, true),
        (5, 2, (0, 2), false, false, true),
        (8, 1, (4, 4), true, true, true),
        (32773, 1, (0, 5), false, false, true),
        (8, 2, (0, 5), false, false, false),
    ] {
        let make = Make { compression, predictor, tile, big_endian, big_tiff, header_first, ..Default::default() };
        let pages: Vec<Vec<f64>> = (0..2).map(|p| make.values(p)).collect();
        let bytes = make.file(&pages);
        list.push((make, pages, bytes));
    }
    list
}

#[test]
fn every_prefix_is_an_error_or_reads_correctly() {
    let dir = TempDir::new().unwrap();
    for (make, pages, bytes) in small_files() {
        for length in 0..bytes.len() {
            let path = put(&dir, "x.tif", &bytes[..length]);
            match open(&path) {
                Err(e) => assert!(e.to_string().contains("x.tif"), "{e}"),
                Ok(stack) => {
                    assert_eq!(stack.len(), 2, "{make:?} {length}");
                    for (p, page) in pages.iter().enumerate() {
                        if let Ok(values) = read(&stack, p) {
                            let expected: Vec<f32> = page.iter().map(|&v| v as f32).collect();
                            assert_eq!(values, expected, "{make:?} {length}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn no_changed_byte_panics() {
    let dir = TempDir::new().unwrap();
    for (_, _, bytes) in small_files() {
        for at in 0..bytes.len() {
            for value in [0, 255, bytes[at] ^ 1, bytes[at] ^ 0x80] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let path = put(&dir, "x.tif", &changed);
                if let Ok(stack) = open(&path) {
                    assert!(stack.width() * stack.height() < 1 << 20);
                    for p in 0..stack.len() {
                        let _ = read(&stack, p);
                    }
                }
            }
        }
    }
}

#[test]
fn files_that_shrink_or_grow_after_open() {
    let dir = TempDir::new().unwrap();
    let bytes = Make { header_first: true, ..Default::default() }.file(&[vec![1.0; 35]]);
    let path = put(&dir, "x.tif", &bytes);
    let stack = open(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(bytes.len() as u64 - 5).unwrap();
    let error = read(&stack, 0).unwrap_err();
    assert!(error.to_string().contains("x.tif") && error.to_string().contains("had 240 bytes"), "{error}");
    for i in 0..70 {
        put(&dir, &format!("p{i}.tif"), &bytes);
    }
    let stack = open(&dir.path().join("p*.tif")).unwrap();
    put(&dir, "p3.tif", &[&bytes[..], b"more"].concat());
    assert!(read(&stack, 2).is_ok());
    let error = read(&stack, 3).unwrap_err();
    assert!(error.to_string().contains("p3.tif") && error.to_string().contains("now"), "{error}");
}

//! Slices written: names, tags, encodings, and what stays when it fails.

use super::{F32, open, put, read};
use crate::support::cli::write_image;
use fbp::error::Error;
use fbp::sink::{AllowedContents, Compression, Dtype, Encoding, SliceStorage, SliceWriter, Target};
use fbp::source::SampleType;
use std::fs;
use std::path::{Path, PathBuf};
use strum::VariantArray;
use tempfile::TempDir;
use tiff::tags::Tag;

fn writer(spec: &Path, indices: &[usize], encoding: Encoding, overwrite: bool) -> fbp::error::Result<SliceWriter> {
    let target = Target::parse(spec.to_str().unwrap())?;
    SliceWriter::create(target, 3, 2, encoding, indices, AllowedContents::new(overwrite, None), "fbp test")
}

fn slice(index: usize) -> Vec<f32> {
    (0..6).map(|i| index as f32 + i as f32 / 8.0).collect()
}

fn output_error<T>(result: fbp::error::Result<T>, words: &[&str]) {
    let error = result.err().expect("an error");
    assert_eq!(error.exit_code(), 5, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in: {error}");
    }
}

fn listing(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn targets() {
    let parse = |s: &str| Target::parse(s);
    assert_eq!(parse("out").unwrap(), Target::directory_of_slices("out"));
    assert_eq!(parse("a/out.tif").unwrap(), Target::single("a/out.tif"));
    assert_eq!(parse("out.TIFF").unwrap(), Target::single("out.TIFF"));
    let path = |s: &str, i| parse(s).unwrap().path_of(i).to_str().unwrap().to_owned();
    assert_eq!(path("out", 7), "out/slice_00007.tif");
    assert_eq!(path("out", 123456), "out/slice_123456.tif");
    assert_eq!(path("out/r-%05i.tif", 7), "out/r-00007.tif");
    assert_eq!(path("out/r-%d.tif", 7), "out/r-7.tif");
    assert_eq!(path("out/%03dx.tiff", 7), "out/007x.tiff");
    assert_eq!(path("/%i.tif", 7), "/7.tif");
    for wrong in ["", "o/%s.tif", "o/%5i.tif", "o/%i%i.tif", "o/%.tif", "50%", "o/%03i", "o/%099i.tif", "o/%%%.tif"] {
        let error = parse(wrong).unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{wrong}: {error}");
    }
}

/// A percent sign means something in the last part of an output alone, where two are one; the record has what can be read
/// again.
#[test]
fn percent_signs_in_names_of_outputs() {
    for (spec, path) in [
        ("50%/r-%03i.tif", "50%/r-007.tif"),
        ("%i/%d.tif", "%i/7.tif"),
        ("a%%b/50%%_%i.tif", "a%%b/50%_7.tif"),
        ("a/%%%02i%%.tif", "a/%07%.tif"),
        ("a/%%i.tif", "a/%i.tif"),
        ("50%/a.tif", "50%/a.tif"),
        ("%s/100%%.tiff", "%s/100%.tiff"),
        ("50%/", "50%/slice_00007.tif"),
        ("out/50%%", "out/50%/slice_00007.tif"),
        ("%d/%%i", "%d/%i/slice_00007.tif"),
        ("50%/50%%.zarr", "50%/50%.zarr"),
        #[cfg(feature = "hdf5")]
        ("50%/50%%.h5", "50%/50%.h5"),
    ] {
        let target = Target::parse(spec).unwrap();
        assert_eq!(target.path_of(7), Path::new(path), "{spec}");
        let again = Target::parse(&target.to_string()).unwrap();
        assert_eq!((again.path_of(7), again.one_file(), &again), (path.into(), target.one_file(), &target), "{spec}");
    }
    let error = Target::parse("out/50%_%i.tif").unwrap_err().to_string();
    assert!(error.contains("%% for a percent sign"), "{error}");
}

#[test]
fn directory_pattern_and_single_read_back() {
    let dir = TempDir::new().unwrap();
    for name in ["a/b", "c/r-%02i.tif", "d/all.tif"] {
        let spec = dir.path().join(name);
        let indices = [3, 4, 11];
        let w = writer(&spec, &indices, F32, false).unwrap();
        let single = name == "d/all.tif";
        for i in [11, 3, 4] {
            w.write(i, &slice(i)).unwrap();
            assert_eq!(w.path_of(i).exists(), !single);
        }
        assert_eq!(w.clamped(), 0);
        let files = w.finish().unwrap();
        assert_eq!(files.len(), if single { 1 } else { 3 });
        assert!(files.iter().all(|f| f.exists()));
        let directory = files[0].parent().unwrap();
        assert!(listing(directory).iter().all(|n| !n.starts_with('.')), "temporary files stay");
        let stack = open(if single { &spec } else { directory }).unwrap();
        assert_eq!((stack.len(), stack.width(), stack.height()), (3, 3, 2));
        assert_eq!(stack.sample(), SampleType::F32);
        for (p, i) in indices.into_iter().enumerate() {
            assert_eq!(read(&stack, p).unwrap(), slice(i));
        }
    }
    assert_eq!(listing(&dir.path().join("c")), ["r-03.tif", "r-04.tif", "r-11.tif"]);
}

#[test]
fn tags_of_a_slice() {
    let dir = TempDir::new().unwrap();
    let w = writer(&dir.path().join("x.tif"), &[5, 6], F32, false).unwrap();
    w.write(5, &slice(5)).unwrap();
    w.write(6, &slice(6)).unwrap();
    let files = w.finish().unwrap();
    let mut decoder = tiff::decoder::Decoder::new(fs::File::open(&files[0]).unwrap()).unwrap();
    decoder.next_image().unwrap();
    assert_eq!(decoder.get_tag_ascii_string(Tag::Software).unwrap(), "fbp test");
    let bytes: Vec<u8> = slice(6).iter().flat_map(|v| v.to_ne_bytes()).collect();
    let description = format!("{{\"slice\":6,\"crc32\":\"{:08x}\"}}", crc32fast::hash(&bytes));
    assert_eq!(decoder.get_tag_ascii_string(Tag::ImageDescription).unwrap(), description);
    assert_eq!(decoder.get_tag_u16_vec(Tag::Unknown(297)).unwrap(), [1, 2]);
    assert_eq!(decoder.get_tag_u32(Tag::RowsPerStrip).unwrap(), 2);
    write_image(&dir.path().join("y.tif"), 3, 2, &slice(0), F32).unwrap();
}

/// One file has the same bytes whichever threads write its pages, and in whatever order; numbers of different lengths
/// and pages of more than one strip leave no page without its place.
#[test]
fn pages_come_from_several_threads() {
    let dir = TempDir::new().unwrap();
    let indices: Vec<usize> = (0..40).map(|i| i * i).collect();
    let (width, height) = (331, 403);
    let data = |index: usize| -> Vec<f32> { (0..width * height).map(|i| (index * 7 + i) as f32 / 4.0).collect() };
    for dtype in [Dtype::F32, Dtype::F16, Dtype::U16, Dtype::U8] {
        let make = |name: &str| {
            let encoding = Encoding { dtype, range: Some((0.0, 40000.0)) };
            let target = Target::single(dir.path().join(name));
            SliceWriter::create(target, width, height, encoding, &indices, AllowedContents::Anything, "fbp").unwrap()
        };
        let one = make("one.tif");
        indices.iter().for_each(|&index| one.write(index, &data(index)).unwrap());
        let many = make("many.tif");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (many, indices) = (&many, &indices);
                scope.spawn(move || {
                    for &index in indices.iter().rev().skip(thread).step_by(4) {
                        many.write(index, &data(index)).unwrap();
                    }
                });
            }
        });
        assert_eq!(one.clamped(), many.clamped());
        let bytes = [one, many].map(|writer| fs::read(&writer.finish().unwrap()[0]).unwrap());
        assert!(bytes[0] == bytes[1], "{dtype}");
        let stack = open(&dir.path().join("many.tif")).unwrap();
        assert_eq!((stack.len(), stack.width(), stack.height()), (40, width, height));
        for (page, &index) in indices.iter().enumerate() {
            let (got, want) = (read(&stack, page).unwrap(), data(index));
            let step = if dtype == Dtype::U8 { 40000.0 / 255.0 } else { 40.0 };
            let scale = match dtype {
                Dtype::U16 => 40000.0 / 65535.0,
                Dtype::U8 => 40000.0 / 255.0,
                _ => 1.0,
            };
            assert!(got.iter().zip(&want).all(|(got, want)| (got * scale - want).abs() <= step), "{dtype} {index}");
        }
        let mut decoder = tiff::decoder::Decoder::new(fs::File::open(dir.path().join("many.tif")).unwrap()).unwrap();
        for (page, &index) in indices.iter().enumerate() {
            let description = decoder.get_tag_ascii_string(Tag::ImageDescription).unwrap();
            assert!(description.starts_with(&format!("{{\"slice\":{index},")), "{description}");
            assert_eq!(decoder.get_tag_u16_vec(Tag::Unknown(297)).unwrap(), [page as u16, 40]);
            assert_eq!(decoder.more_images(), page + 1 < 40);
            if decoder.more_images() {
                decoder.next_image().unwrap();
            }
        }
    }
    assert_eq!(listing(dir.path()), ["many.tif", "one.tif"]);
}

#[test]
fn encodings() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.tif");
    let data = [-1.0, 0.0, 0.5, 1.0, 2.0, f32::NAN];
    let encode = |dtype, range, data: &[f32]| {
        let w = writer(&dir.path().join("d"), &[0], Encoding { dtype, range }, true).unwrap();
        w.write(0, data).unwrap();
        let clamped = w.clamped();
        let stack = open(&w.finish().unwrap()[0]).unwrap();
        (stack.sample(), read(&stack, 0).unwrap(), clamped)
    };
    let (sample, values, clamped) = encode(Dtype::U8, Some((0.0, 1.0)), &data);
    assert_eq!((sample, values, clamped), (SampleType::U8, vec![0.0, 0.0, 128.0, 255.0, 255.0, 0.0], 3));
    let (sample, values, clamped) = encode(Dtype::U16, Some((-1.0, 2.0)), &data);
    assert_eq!(sample, SampleType::U16);
    assert_eq!((values, clamped), (vec![0.0, 21845.0, 32768.0, 43690.0, 65535.0, 0.0], 1));
    let ends = (-f32::MAX, f32::MAX);
    let infinite = [f32::INFINITY, f32::NEG_INFINITY, 0.0, 0.0, ends.0, ends.1];
    let (_, values, clamped) = encode(Dtype::U16, Some(ends), &infinite);
    assert_eq!((values, clamped), (vec![65535.0, 0.0, 32768.0, 32768.0, 0.0, 65535.0], 2));
    let (sample, values, clamped) = encode(Dtype::F16, None, &[0.5, -65504.0, 65519.0, 65520.0, -1e9, f32::INFINITY]);
    assert_eq!(sample, SampleType::F16);
    let inf = f32::INFINITY;
    assert_eq!((values, clamped), (vec![0.5, -65504.0, 65504.0, inf, -inf, inf], 2));

    for range in [None, Some((1.0, 1.0)), Some((2.0, 1.0)), Some((f32::NAN, 1.0)), Some((0.0, inf))] {
        let encoding = Encoding { dtype: Dtype::U8, range };
        let error = write_image(&path, 3, 2, &data, encoding).unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{error}");
        assert_eq!(writer(&dir.path().join("e"), &[0], encoding, false).err().unwrap().exit_code(), 2);
    }
    assert_eq!(listing(dir.path()), ["d"]);
}

#[test]
fn large_images_have_strips_that_follow_each_other() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.tif");
    let data: Vec<f32> = (0..1000 * 701).map(|i| i as f32 / 3.0).collect();
    for dtype in [Dtype::F32, Dtype::F16, Dtype::U16, Dtype::U8] {
        let encoding = Encoding { dtype, range: Some((0.0, 300000.0)) };
        write_image(&path, 1000, 701, &data, encoding).unwrap();
        let mut decoder = tiff::decoder::Decoder::new(fs::File::open(&path).unwrap()).unwrap();
        let offsets = decoder.get_tag_u64_vec(Tag::StripOffsets).unwrap();
        let counts = decoder.get_tag_u64_vec(Tag::StripByteCounts).unwrap();
        assert!(offsets.len() > 1);
        assert!((0..offsets.len() - 1).all(|i| offsets[i] + counts[i] == offsets[i + 1]));
        let image = decoder.read_image().unwrap();
        let ours = read(&open(&path).unwrap(), 0).unwrap();
        match image {
            tiff::decoder::DecodingResult::F32(v) => assert_eq!(v, data),
            tiff::decoder::DecodingResult::F16(v) => {
                assert_eq!(v.iter().map(|h| h.to_f32()).collect::<Vec<_>>(), ours)
            }
            tiff::decoder::DecodingResult::U16(v) => {
                assert_eq!(v.iter().map(|&h| h.into()).collect::<Vec<f32>>(), ours)
            }
            tiff::decoder::DecodingResult::U8(v) => {
                assert_eq!(v.iter().map(|&h| h.into()).collect::<Vec<f32>>(), ours)
            }
            _ => panic!("another type"),
        }
    }
    output_error(write_image(&path, 3, 2, &[0.0; 5], F32), &["x.tif", "3x2"]);
    assert_eq!(listing(dir.path()), ["x.tif"]);
}

#[test]
fn what_exists_is_kept() {
    let dir = TempDir::new().unwrap();
    put(&dir, "keep.txt", b"mine");
    output_error(writer(dir.path(), &[0], F32, false), &["keep.txt", "--overwrite"]);
    let w = writer(dir.path(), &[0], F32, true).unwrap();
    w.write(0, &slice(0)).unwrap();
    w.finish().unwrap();
    assert_eq!(listing(dir.path()), ["keep.txt", "slice_00000.tif"]);

    let pattern = dir.path().join("slice_%05i.tif");
    output_error(writer(&pattern, &[0, 1], F32, false), &["slice_00000.tif", "--overwrite"]);
    let w = writer(&pattern, &[1, 2], F32, false).unwrap();
    w.write(1, &slice(1)).unwrap();
    put(&dir, "slice_00002.tif", b"another run's");
    output_error(w.write(2, &slice(2)), &["slice_00002.tif", "another run"]);

    let single = put(&dir, "one.tif", b"somebody's");
    output_error(writer(&single, &[0], F32, false), &["one.tif", "--overwrite"]);
    output_error(writer(&single, &[0], F32, true), &["one.tif", "never replaced"]);
    assert_eq!(fs::read(&single).unwrap(), b"somebody's");
    fs::remove_file(&single).unwrap();
    let w = writer(&single, &[0], F32, false).unwrap();
    w.write(0, &slice(7)).unwrap();
    w.finish().unwrap();
    let old = fs::read(&single).unwrap();
    drop(writer(&single, &[0], F32, true).unwrap());
    assert_eq!(fs::read(&single).unwrap(), old);
    let w = writer(&single, &[0], F32, true).unwrap();
    w.write(0, &slice(0)).unwrap();
    w.finish().unwrap();
    assert_eq!(read(&open(&single).unwrap(), 0).unwrap(), slice(0));
}

#[test]
fn places_that_cannot_be_written() {
    let dir = TempDir::new().unwrap();
    let file = put(&dir, "file", b"x");
    output_error(writer(&file, &[0], F32, false), &["file", "cannot create this directory"]);
    output_error(writer(&file.join("out"), &[0], F32, false), &["cannot create this directory"]);
    output_error(writer(&file.join("out.tif"), &[0], F32, false), &["file"]);
    output_error(writer(Path::new("/proc/fbp-out"), &[0], F32, false), &["/proc"]);
    output_error(writer(Path::new("/proc/r-%i.tif"), &[0], F32, false), &["cannot write here"]);
    output_error(write_image(&file.join("a.tif"), 3, 2, &slice(0), F32), &["there is no directory"]);
    fs::create_dir(dir.path().join("d.tif")).unwrap();
    let target = Target::single(dir.path().join("d.tif"));
    output_error(SliceWriter::create(target, 3, 2, F32, &[0], AllowedContents::Nothing, ""), &["exists already"]);
}

#[test]
fn failures_leave_nothing() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("out");
    let w = writer(&out, &[0, 1], F32, false).unwrap();
    w.write(0, &slice(0)).unwrap();
    fs::remove_dir_all(&out).unwrap();
    output_error(w.write(1, &slice(1)), &["out", "cannot write here"]);
    output_error(w.finish(), &["1 of 2 slices"]);
    assert!(!out.exists());

    // the final name cannot be taken: the temporary goes
    let w = writer(&out, &[0], F32, true).unwrap();
    fs::create_dir(out.join("slice_00000.tif")).unwrap();
    output_error(w.write(0, &slice(0)), &["slice_00000.tif", "cannot be renamed to its final name"]);
    assert_eq!(listing(&out), ["slice_00000.tif"]);

    let single = dir.path().join("one.tif");
    let w = writer(&single, &[0, 1], F32, false).unwrap();
    w.write(0, &slice(0)).unwrap();
    assert!(!single.exists());
    assert_eq!(listing(dir.path()).iter().filter(|n| n.starts_with(".one.tif.part-")).count(), 1);
    output_error(w.finish(), &["one.tif", "1 of 2"]);
    assert_eq!(listing(dir.path()), ["out"]);
}

#[test]
fn slices_out_of_place() {
    let dir = TempDir::new().unwrap();
    let w = writer(&dir.path().join("one.tif"), &[2, 5, 7], F32, false).unwrap();
    output_error(w.write(3, &slice(3)), &["slice 3 was not announced"]);
    w.write(5, &slice(5)).unwrap();
    output_error(w.write(5, &slice(5)), &["written already"]);
    w.write(2, &slice(2)).unwrap();
    output_error(w.write(7, &[0.0]), &["1 values", "3x2"]);
    output_error(w.write(7, &slice(7)), &["since the file failed before", "1 values"]);
    drop(w);
    assert!(listing(dir.path()).is_empty());

    output_error(writer(&dir.path().join("one.tif"), &[], F32, false), &["no slice"]);
    assert_eq!(writer(&dir.path().join("d"), &[], F32, false).unwrap().finish().unwrap(), Vec::<PathBuf>::new());
    assert_eq!(writer(&dir.path().join("e"), &[1, 1], F32, false).err().unwrap().exit_code(), 4);
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

/// A disk of 200 kB, where the system lets tests make one.
#[test]
fn a_full_disk_is_an_error() {
    let dir = TempDir::new().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=200k", "none"])
        .arg(dir.path())
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        crate::support::skip::skipped("small-disk", "no permission to mount a small disk");
        return;
    }
    let mounted = Mounted(dir.path().to_owned());
    let (image, out) = (vec![1.0; 200 * 200], dir.path().join("out"));
    let make = |target| SliceWriter::create(target, 200, 200, F32, &[0, 1], AllowedContents::Nothing, "").unwrap();
    let w = make(Target::directory_of_slices(&out));
    w.write(0, &image).unwrap();
    let many = w.write(1, &image);
    let names = listing(&out);
    let _ = fs::remove_dir_all(&out);
    let w = make(Target::single(dir.path().join("one.tif")));
    w.write(0, &image).unwrap();
    let one = w.write(1, &image);
    drop(w);
    let left = listing(dir.path());
    drop(mounted);
    output_error(many, &["slice_00001.tif", "No space left"]);
    assert_eq!(names, ["slice_00000.tif"]);
    output_error(one, &["one.tif", "No space left"]);
    assert!(left.is_empty(), "{left:?}");
}

/// Compressed pages of every type read back as what they are without compression, from files of one page and of several,
/// and are smaller. What cannot be made smaller stays as it is.
#[test]
fn compressed_pages_read_back() {
    let dir = TempDir::new().unwrap();
    let (width, height, indices) = (331, 403, [0, 1, 2, 9]);
    let smooth = |index: usize| -> Vec<f32> {
        let pixel = |i: usize| ((i % width) as f32 / 50.0).sin() * 300.0 + (i / width + index) as f32;
        (0..width * height).map(pixel).collect()
    };
    // every bit of an xorshift
    let mut state = 1u32;
    let noise: Vec<f32> = (0..width * height)
        .map(|_| {
            for (left, by) in [(true, 13), (false, 17), (true, 5)] {
                state ^= if left { state << by } else { state >> by };
            }
            f32::from_bits(state)
        })
        .collect();
    for (dtype, compression) in [Dtype::F32, Dtype::F16, Dtype::U16, Dtype::U8]
        .into_iter()
        .flat_map(|dtype| Compression::VARIANTS.iter().map(move |&compression| (dtype, compression)))
    {
        let encoding = Encoding { dtype, range: Some((-400.0, 800.0)) };
        let name = format!("{dtype}-{compression}");
        for spec in [format!("{name}/all.tif"), format!("{name}/r-%i.tif")] {
            let target = Target::parse(dir.path().join(&spec).to_str().unwrap()).unwrap();
            let storage = SliceStorage { compression, ..encoding.into() };
            let writer =
                SliceWriter::create(target, width, height, storage, &indices, AllowedContents::Nothing, "fbp").unwrap();
            // the last first, with pages that stay as they are among the others
            for &index in indices.iter().rev() {
                writer.write(index, &if index == 1 { noise.clone() } else { smooth(index) }).unwrap();
            }
            let files = writer.finish().unwrap();
            let stack = open(&dir.path().join(spec.replace("%i", "*"))).unwrap();
            let plain = dir.path().join(spec.replace(&compression.to_string(), "none").replace("%i", "*"));
            let plain = open(&plain).unwrap();
            assert_eq!((stack.len(), stack.sample()), (4, plain.sample()), "{name}");
            for page in 0..4 {
                let same = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same(&read(&stack, page).unwrap(), &read(&plain, page).unwrap()), "{name} page {page}");
            }
            let bytes = |index: usize| fs::metadata(&files[index]).unwrap().len();
            let whole = (width * height * dtype.bytes()) as u64;
            match (files.len(), compression) {
                (1, Compression::None) => assert!(bytes(0) > 4 * whole),
                (1, _) => assert!(bytes(0) < 4 * whole, "{name}: {}", bytes(0)),
                (_, Compression::None) => assert!(bytes(0) > whole),
                _ => assert!(bytes(0) < whole * 3 / 4 && bytes(1) <= whole + 2048, "{name}: {} {}", bytes(0), bytes(1)),
            }
        }
    }
}

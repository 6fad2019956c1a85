//! Images and scans in compound files, as Xradia's microscopes write them.

use super::{open as open_sinograms, put};
use crate::support::xrm::{FLOAT, U16, XrmFile};
use fbp::error::Result;
use fbp::source::{SampleType, Stack, xrm};
use std::path::Path;
use tempfile::TempDir;

/// Images of counts that tell their number, row and bin.
fn images(count: usize, width: usize, height: usize) -> Vec<Vec<f32>> {
    let pixel = |image: usize, at: usize| ((image * 977 + at * 13) % 4099) as f32;
    (0..count).map(|image| (0..width * height).map(|at| pixel(image, at)).collect()).collect()
}

fn open(path: &Path) -> Result<Stack> {
    Stack::open(path.to_str().unwrap(), "--projections")
}

fn opened(file: &XrmFile) -> Result<Stack> {
    let directory = TempDir::new().unwrap();
    open(&put(&directory, "a.txrm", &file.bytes(None)))
}

/// Whole images, and some rows of them.
fn check(stack: &Stack, images: &[Vec<f32>]) {
    let (width, height) = (stack.width(), stack.height());
    assert_eq!(stack.len(), images.len());
    for (page, image) in images.iter().enumerate() {
        let mut found = vec![f32::NAN; width * height];
        stack.read_rows(page, 0..height, &mut found).unwrap();
        assert!(found == *image, "image {page}");
        let rows = height / 3..height.div_ceil(2);
        let mut found = vec![f32::NAN; rows.len() * width];
        stack.read_rows(page, rows.clone(), &mut found).unwrap();
        assert!(found == image[rows.start * width..rows.end * width], "rows of image {page}");
    }
}

/// Small images are in the stream for small ones, long ones in sectors of their own; more than a hundred are in a second
/// storage.
#[test]
fn images_of_all_sizes_and_types() {
    for (kind, sample) in [
        (3, SampleType::U8),
        (U16, SampleType::U16),
        (6, SampleType::I32),
        (FLOAT, SampleType::F32),
        (11, SampleType::F64),
    ] {
        for (count, width, height) in [(1, 1, 1), (3, 7, 5), (4, 90, 70), (2, 400, 333)] {
            let most = if kind == 3 { 256.0 } else { 1e9 };
            let images: Vec<Vec<f32>> =
                images(count, width, height).iter().map(|image| image.iter().map(|v| v % most).collect()).collect();
            let directory = TempDir::new().unwrap();
            let path = put(&directory, "A.TXRM", &XrmFile::new(kind, width, &images).bytes(None));
            let stack = open(&path).unwrap_or_else(|error| panic!("{kind} {width}x{height}: {error}"));
            assert_eq!((stack.width(), stack.height(), stack.sample()), (width, height, sample));
            assert!(stack.rows_are_apart());
            check(&stack, &images);
        }
    }
    let many = images(203, 6, 4);
    let directory = TempDir::new().unwrap();
    check(&open(&put(&directory, "many.txrm", &XrmFile::new(U16, 6, &many).bytes(None))).unwrap(), &many);
}

/// Sectors of images take turns in the file, as when a program writes them at the same time.
#[test]
fn images_in_pieces() {
    let images = images(3, 130, 110);
    for turns in [4096, 5000, 12_288] {
        let directory = TempDir::new().unwrap();
        let path = put(&directory, "a.txrm", &XrmFile::new(FLOAT, 130, &images).bytes(Some(turns)));
        check(&open(&path).unwrap(), &images);
    }
}

#[test]
fn several_files_of_one_image() {
    let images = images(4, 12, 5);
    let directory = TempDir::new().unwrap();
    for (number, image) in images.iter().enumerate() {
        let mut file = XrmFile::new(U16, 12, std::slice::from_ref(image));
        // images alone do not always say how many they are
        file.remove("ImageInfo/ImagesTaken");
        if number % 2 == 0 {
            file.remove("ImageInfo/NoOfImages");
        }
        file.write(&directory.path().join(format!("p_{number}.xrm")));
    }
    check(&open(directory.path()).unwrap(), &images);
    check(&open(&directory.path().join("p_*.xrm")).unwrap(), &images);
    XrmFile::new(FLOAT, 12, &images[..1]).write(&directory.path().join("p_4.xrm"));
    let error = open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("p_4.xrm") && error.contains("32-bit float") && error.contains("16-bit"), "{error}");
}

/// A scan that was stopped has images up to the last that was taken.
#[test]
fn scans_that_were_stopped() {
    let images = images(5, 8, 6);
    let mut file = XrmFile::new(U16, 8, &images);
    file.integer("ImageInfo/NoOfImages", 9);
    check(&opened_kept(&file).1, &images);
    file.integer("ImageInfo/ImagesTaken", 0);
    let error = opened(&file).unwrap_err().to_string();
    assert!(error.contains("no stream ImageData1/Image6"), "{error}");
}

fn opened_kept(file: &XrmFile) -> (TempDir, Stack) {
    let directory = TempDir::new().unwrap();
    let stack = open(&put(&directory, "a.txrm", &file.bytes(None))).unwrap();
    (directory, stack)
}

#[test]
fn what_is_no_image_is_refused() {
    let whole = XrmFile::new(U16, 8, &images(3, 8, 6));
    let refused = |change: &dyn Fn(&mut XrmFile), words: &[&str]| {
        let mut file = whole.clone();
        change(&mut file);
        let error = opened(&file).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.exit_code(), 3, "{text}");
        for word in words.iter().chain(&["--projections", "a.txrm"]) {
            assert!(text.contains(word), "no {word:?} in: {text}");
        }
    };
    for name in ["ImageInfo/ImageWidth", "ImageInfo/ImageHeight", "ImageInfo/DataType", "ImageData1/Image2"] {
        refused(&|file| file.remove(name), &[&format!("no stream {name}")]);
    }
    for side in ["ImageInfo/ImageWidth", "ImageInfo/ImageHeight"] {
        for value in [0, -8, i32::MIN, i32::MAX] {
            refused(&|file| file.integer(side, value), &[&format!("{side} = {value}"), "1 to 1048576"]);
        }
        refused(&|file| file.put(side, vec![8, 0]), &[&format!("no stream {side}")]);
    }
    refused(
        &|file| {
            file.integer("ImageInfo/ImageWidth", 1 << 20);
            file.integer("ImageInfo/ImageHeight", 1 << 20);
        },
        &["1048576x1048576"],
    );
    for value in [0, 1, 12, -5, i32::MAX] {
        refused(&|file| file.integer("ImageInfo/DataType", value), &[&format!("DataType = {value}"), "5 ("]);
    }
    refused(&|file| file.integer("ImageInfo/DataType", FLOAT), &["96 bytes", "192", "8x6 pixels, 32-bit float"]);
    for value in [-1, i32::MIN, i32::MAX, 1 << 21] {
        refused(&|file| file.integer("ImageInfo/ImagesTaken", value), &[&format!("ImagesTaken = {value}")]);
    }
    refused(&|file| file.integer("ImageInfo/ImagesTaken", 1 << 20), &["no stream ImageData1/Image4"]);
    refused(&|file| file.put("ImageData1/Image3", vec![0; 95]), &["ImageData1/Image3 has 95 bytes, expected 96"]);
    refused(&|file| file.put("ImageData1/Image3", Vec::new()), &["ImageData1/Image3 has 0 bytes"]);

    let directory = TempDir::new().unwrap();
    for (name, bytes, word) in [
        ("empty.txrm", Vec::new(), "compound file"),
        ("text.txrm", b"ImageInfo".repeat(900), "compound file"),
        ("gzip.txrm", [&[0x1f, 0x8b][..], &[0; 900]].concat(), "gzip"),
    ] {
        let error = open(&put(&directory, name, &bytes)).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains(name), "{error}");
    }
    let path = put(&directory, "sinograms.txrm", &whole.bytes(None));
    assert!(open_sinograms(&path).unwrap_err().to_string().contains("give it with --projections"));
}

/// Whatever byte is changed and wherever the file ends: an error or images, and no panic.
#[test]
fn damaged_files() {
    let mut file = XrmFile::new(U16, 50, &images(2, 50, 60));
    file.floats("ImageInfo/Angles", &[0.0, 90.0]);
    file.floats("ImageInfo/PixelSize", &[0.5]);
    let whole = file.bytes(None);
    let directory = TempDir::new().unwrap();
    let read = |bytes: &[u8]| {
        let path = put(&directory, "a.txrm", bytes);
        drop(xrm::contents(&path));
        open(&path).and_then(|stack| {
            let mut values = vec![0f32; stack.width() * stack.height()];
            (0..stack.len()).try_for_each(|page| stack.read_rows(page, 0..stack.height(), &mut values))
        })
    };
    read(&whole).unwrap();
    // the last sector may be in use in part
    for end in (0..=whole.len() - 4096).step_by(whole.len() / 60) {
        assert!(read(&whole[..end]).is_err(), "{end} of {} bytes", whole.len());
    }
    // tables and directory are where little else than zeros or ones is
    for at in (0..whole.len()).filter(|at| at % 977 == 0 || *at < 600 && at % 7 == 0) {
        for value in [0, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            drop(read(&bytes));
        }
    }
}

/// What `fbp info` and a run know of a scan.
#[test]
fn contents_of_a_scan() {
    let directory = TempDir::new().unwrap();
    let mut file = XrmFile::new(U16, 8, &images(3, 8, 6));
    let path = directory.path().join("a.txrm");
    let contents = |file: &XrmFile| {
        file.write(&path);
        xrm::contents(&path).unwrap()
    };
    let bare = contents(&file);
    assert_eq!((bare.projections, bare.width, bare.height, bare.references), (3, 8, 6, 0));
    assert!(bare.problem.unwrap().contains("no angles in ImageInfo/Angles; give --angles"));
    file.floats("imageinfo/ANGLES", &[-60.0, 0.0, 60.0, 0.0]);
    file.floats("ImageInfo/PixelSize", &[0.065]);
    file.floats("ImageInfo/Energy", &[520.0, 520.0, 520.0]);
    file.floats("ImageInfo/StoRADistance", &[-300.0; 3]);
    file.floats("ImageInfo/DtoRADistance", &[20.0; 3]);
    file.floats("Alignment/X-Shifts", &[1.5, 0.0, -2.0]);
    file.floats("Alignment/Y-Shifts", &[0.0, 0.25, 0.0]);
    file.integer("ImageInfo/XrayGeometry", 0);
    file.put("ReferenceData/Image", crate::support::xrm::stored(FLOAT, &[9.0; 48]));
    file.integer("ReferenceData/DataType", FLOAT);
    let found = contents(&file);
    assert_eq!(found.problem, None);
    assert_eq!(found.details.angles, Some(vec![-60.0, 0.0, 60.0]));
    assert_eq!(found.center_shifts, Some(vec![-1.5, 0.0, 2.0]));
    assert_eq!((found.references, found.details.source_to_axis_mm), (1, Some(300.0)));
    assert_eq!(found.details.energy_ev, Some(520.0));
    assert_eq!(found.details.pixel_size_um, Some(0.065));
    assert!(found.notes.iter().any(|note| note.contains("Y-Shifts") && note.contains("0.25")), "{:?}", found.notes);

    for (name, values, word) in [
        ("ImageInfo/Angles", vec![0.0, 1.0], "8 bytes, expected 12 for 3 images"),
        ("Alignment/X-Shifts", vec![0.0, 1.0], "8 bytes, expected 12 for 3 images"),
    ] {
        let mut short = file.clone();
        short.streams.retain(|known, _| !known.eq_ignore_ascii_case(name));
        short.floats(name, &values);
        short.write(&path);
        let error = xrm::contents(&path).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(word), "{error}");
    }
    for (name, values, word) in [
        ("ImageInfo/Angles", [0.0, f64::NAN, 1.0], "projection 1 is NaN"),
        ("Alignment/X-Shifts", [0.0, f64::INFINITY, 1.0], "projection 1 is inf"),
        ("Alignment/Y-Shifts", [0.0, 0.0, 1e9], "projection 2 is 1000000000"),
    ] {
        let mut wrong = file.clone();
        wrong.streams.retain(|known, _| !known.eq_ignore_ascii_case(name));
        wrong.floats(name, &values);
        let problem = contents(&wrong).problem.unwrap();
        assert!(problem.contains(name) && problem.contains(word), "{problem}");
    }
    // the reference is of another size than it claims
    file.integer("ReferenceData/ImageInfo/ImageWidth", 9);
    file.write(&path);
    let error = xrm::contents(&path).unwrap_err().to_string();
    assert!(error.contains("ReferenceData/Image has 192 bytes, expected 216 for 9x6"), "{error}");
}

/// The beam of a laboratory source, whose rays are far from parallel, and that of a synchrotron.
#[test]
fn cone_beams() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.txrm");
    let mut file = XrmFile::new(U16, 100, &images(2, 100, 80));
    file.floats("ImageInfo/Angles", &[0.0, 90.0]);
    let problem = |geometry: Option<i32>, source: f64, pixel: f64| {
        let mut file = file.clone();
        if let Some(geometry) = geometry {
            file.integer("ImageInfo/XrayGeometry", geometry);
        }
        file.floats("ImageInfo/StoRADistance", &[source; 2]);
        file.floats("ImageInfo/DtoRADistance", &[120.0; 2]);
        file.floats("ImageInfo/PixelSize", &[pixel]);
        file.write(&path);
        let contents = xrm::contents(&path).unwrap();
        (contents.problem, contents.notes.join("\n"))
    };
    // 40 rows at the distance of 50 bins: 40 * 50 / (30 mm / 20 um) = 1.33 pixels
    for geometry in [Some(1), None] {
        let text = problem(geometry, -30.0, 20.0).0.unwrap();
        for word in ["30 mm", "120 mm", "20 um", "3.82 x 3.06 degrees", "1.3 pixels", "parallel", "CIL"] {
            assert!(text.contains(word), "no {word:?} in: {text}");
        }
        assert_eq!(problem(geometry, 300.0, 20.0).0, None);
    }
    let (none, notes) = problem(Some(0), -30.0, 20.0);
    assert!(none.is_none() && notes.contains("1.3 pixels") && notes.contains("warning"), "{notes}");
    let said = "note: the file gives a pixel size of 0.01 um; values are per pixel unless --pixel-size is given";
    assert_eq!(problem(Some(0), 300.0, 0.01), (None, said.to_owned()));
    for (source, pixel) in [(0.0, 20.0), (30.0, 0.0)] {
        assert!(problem(Some(1), source, pixel).0.unwrap().contains("unknown distance"));
        assert_eq!(problem(None, source, pixel).0, None);
    }
}

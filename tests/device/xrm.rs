//! Scans of Xradia's microscopes: the slices are those of the same data as TIFF, with what the file says as flags.

use crate::support::cli::{Lab, Pages, SMALL, farthest, text};
use crate::support::xrm::{FLOAT, U16, XrmFile, stored};
use fbp::phantom::{Kind, Phantom};
use serde_json::Value;

const BEAM: f32 = 4e4;

/// Counts behind the small scan, in whole numbers.
fn counts() -> Pages {
    SMALL.sinograms().transposed().map(|line| (BEAM * (-0.02 * line).exp()).round())
}

/// Angles that no default is.
fn angles() -> Vec<f64> {
    SMALL.angles().iter().map(|angle| angle - 87.5).collect()
}

/// A file with the small scan, angles, a reference image and a pixel size; and the same as `p`, `f` and `a.txt`.
fn scan(lab: &Lab) -> XrmFile {
    let counts = counts();
    let flat = vec![BEAM; SMALL.width * SMALL.slices];
    let mut file = XrmFile::new(U16, SMALL.width, &counts.pages);
    file.floats("ImageInfo/Angles", &angles());
    file.floats("ImageInfo/PixelSize", &[0.065]);
    file.floats("ImageInfo/Energy", &[8333.0]);
    file.put("ReferenceData/Image", stored(FLOAT, &flat));
    file.integer("ReferenceData/DataType", FLOAT);
    lab.write("p", "p", &counts);
    lab.page("f/f.tif", SMALL.width, &flat);
    lab.numbers("a.txt", &angles());
    file
}

#[test]
fn slices_are_those_of_the_same_data_as_tiff() {
    let lab = Lab::new();
    let mut file = scan(&lab);
    file.write(&lab.path("scan.txrm"));
    let expected = lab.slices("--projections p --flats f --angles a.txt", "tiff");
    assert_eq!(lab.slices("--projections scan.txrm", "xrm"), expected);
    lab.ok("reconstruct -q scan.txrm --output alone");
    assert_eq!(lab.bytes("alone"), lab.bytes("xrm"));
    // some rows, corrected by the host
    lab.profile_with_steps("host.toml", "rows = \"host\"");
    let some = "--rows 1..3 --profile host.toml";
    let same = lab.slices(&format!("--projections p --flats f --angles a.txt {some}"), "tiff-some");
    assert_eq!(lab.slices(&format!("scan.txrm {some}"), "some"), same);
    // steps that need the flat field, which is in the file
    lab.numbers("currents.txt", &[vec![200.0], vec![190.0; SMALL.projections]].concat());
    for flags in ["--binning 2", "--normalize-air 2,2", "--double-flat 1.5", "--beam-current currents.txt"] {
        let same = lab.slices(&format!("--projections p --flats f --angles a.txt {flags} --overwrite"), "tiff-with");
        assert_eq!(lab.slices(&format!("scan.txrm {flags} --overwrite"), "with"), same, "{flags}");
    }

    // flags take the place of what is in the file
    for (flags, same) in [
        ("--overall-angle 170", "--flats f --overall-angle 170"),
        ("--start-angle 5", "--flats f --start-angle 5"),
        ("--angles other.txt", "--flats f --angles other.txt"),
        ("--flats g.xrm", "--flats g --angles a.txt"),
        ("--flats g --darks d", "--flats g --darks d --angles a.txt"),
        ("--darks d", "--flats f --darks d --angles a.txt"),
    ] {
        lab.numbers("other.txt", &SMALL.angles());
        lab.page("g/g.tif", SMALL.width, &vec![5e4; SMALL.width * SMALL.slices]);
        lab.page("d/d.tif", SMALL.width, &vec![100.0; SMALL.width * SMALL.slices]);
        XrmFile::new(U16, SMALL.width, &[vec![5e4; SMALL.width * SMALL.slices]]).write(&lab.path("g.xrm"));
        let expected = lab.slices(&format!("--projections p {same} --overwrite"), "other-tiff");
        assert_eq!(lab.slices(&format!("scan.txrm {flags} --overwrite"), "other"), expected, "{flags}");
    }

    // the reference images of another storage, and none
    let reference = file.streams.remove("ReferenceData/Image").unwrap();
    file.put("MultiReferenceData/Image1", reference.clone());
    file.put("MultiReferenceData/Image2", reference);
    file.integer("MultiReferenceData/DataType", FLOAT);
    file.write(&lab.path("several.txrm"));
    assert_eq!(lab.slices("several.txrm", "several"), expected);
    file.remove("MultiReferenceData/Image1");
    file.write(&lab.path("none.txrm"));
    let plain = lab.slices("--projections p --angles a.txt", "tiff-plain");
    assert_eq!(lab.slices("none.txrm", "plain"), plain);
}

/// What a run says of the file, and what it records.
#[test]
fn a_run_says_what_it_takes_from_the_file() {
    let lab = Lab::new();
    let mut file = scan(&lab);
    file.floats("Alignment/X-Shifts", &(0..16).map(|p| f64::from(p % 3) - 0.5).collect::<Vec<_>>());
    file.floats("Alignment/Y-Shifts", &(0..16).map(|p| f64::from(p) / 4.0).collect::<Vec<_>>());
    file.floats("ImageInfo/ExpTimes", &[2.0; 16]);
    file.floats("ReferenceData/ExpTime", &[1.0]);
    file.integer("ImageInfo/NoOfImages", 20);
    file.write(&lab.path("scan.txrm"));
    let (_, err) = lab.ok("reconstruct scan.txrm --output out.h5.d --report r.json");
    for line in [
        "note: scan.txrm: its reference image is the flat field; --flats replaces it",
        "note: scan.txrm: the scan was stopped after 16 of 20 images",
        "note: the file shifts the axis by -1.5 to 0.5 bins; --center-shifts replaces this",
        "note: the file gives a pixel size of 0.065 um; values are per pixel unless --pixel-size is given",
        "note: no dark fields in the file and no --darks, the dark level is assumed to be 0",
    ] {
        assert!(err.lines().any(|said| said == line), "`{line}` is not in\n{err}");
    }
    assert!(err.contains("warning: scan.txrm: Alignment/Y-Shifts moves projections by up to 3.75 rows"), "{err}");
    assert!(
        err.contains("warning: scan.txrm: projections were exposed for 2 s and the reference image for 1 s"),
        "{err}"
    );
    let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    let doubts: Vec<_> =
        report["doubts"].as_array().unwrap().iter().filter_map(|doubt| doubt["name"].as_str()).collect();
    assert!(doubts.contains(&"row-shifts") && doubts.contains(&"exposure"), "{doubts:?}");
    let record: toml::Table = lab.read_text("out.h5.d/fbp-run.toml").parse().unwrap();
    assert_eq!(record["facts"]["scan"]["shifts"].as_array().unwrap()[0].as_float(), Some(-1.5));
    assert!(record["projections"].as_str().unwrap().ends_with("/scan.txrm"));
    let slices = lab.read("out.h5.d");
    let shifts: Vec<f64> = (0..16).map(|p| 0.5 - f64::from(p % 3)).collect();
    lab.numbers("s.txt", &shifts);
    let same = "--projections p --flats f --angles a.txt --center-shifts s.txt";
    assert_eq!(slices, lab.slices(same, "tiff"));
    // the run can be resumed, and its record repeats it
    lab.ok("reconstruct -q --config out.h5.d/fbp-run.toml --output again");
    assert_eq!(lab.read("again"), slices);
    lab.ok("report out.h5.d -o page.html");
    assert!(lab.read_text("page.html").contains("as the input says, by -1.5 to 0.5 bins"));
    let strict = lab.run("reconstruct scan.txrm --strict --output refused");
    assert_eq!(strict.status.code(), Some(3), "{}", text(&strict.stderr));
    // other shifts take the place of those in the file
    lab.numbers("zeros.txt", &[0.0; 16]);
    let (_, err) = lab.ok("reconstruct scan.txrm --center-shifts zeros.txt --output zeros");
    assert!(!err.contains("shifts the axis"), "{err}");
    assert_eq!(lab.read("zeros"), lab.slices("--projections p --flats f --angles a.txt", "unshifted"));

    let (plan, err) = lab.ok("reconstruct scan.txrm --dry-run");
    assert!(plan.contains("scan.txrm") && err.contains("shifts the axis"), "{plan}\n{err}");
    let (info, _) = lab.ok("info scan.txrm");
    for line in [
        "projections     16 of 32 x 3 pixels, 16-bit",
        "reference       1 image(s)",
        "angles          -87.5 to 81.25 degrees",
        "x shifts        -0.5 to 1.5 pixels",
        "y shifts        0 to 3.75 pixels",
        "exposure        2 to 2 s",
        "pixel size      0.065 um, which --pixel-size takes",
        "energy          8333 eV",
        "warning: scan.txrm: Alignment/Y-Shifts",
    ] {
        assert!(info.lines().any(|said| said.starts_with(line)), "`{line}` is not in\n{info}");
    }
    let (json, _) = lab.ok("info scan.txrm --json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["center_shifts"].as_array().unwrap().len(), 16);
    assert_eq!(json["center_shifts"][2], -1.5);
    let (_, err) = lab.ok("preprocess --projections scan.txrm --output corrected");
    assert!(err.contains("the file shifts the axis by up to 1.5 bins, and what is written does not"), "{err}");
    lab.ok("preprocess --projections p --flats f --output tiff-corrected");
    assert_eq!(lab.read("corrected"), lab.read("tiff-corrected"));
}

/// A sample that moved to the left in some projections: the file says by how much they are to be moved back to the right.
#[test]
fn shifts_move_projections_back() {
    let lab = Lab::new();
    let (width, projections) = (64, 90);
    let phantom = Phantom::for_slice(Kind::Asymmetric, width, 0, 1);
    let angles = fbp::geometry::even_angles(0.0, 180.0, projections);
    let moved: Vec<f64> = (0..projections).map(|p| 3.0 * (p as f64 * 0.7).sin()).collect();
    let rows = |sign: f64| -> Vec<Vec<f32>> {
        let row = |(angle, moved): (&f64, &f64)| {
            let mut row = vec![0f32; width];
            phantom.project_row(angle.to_radians(), fbp::geometry::default_axis(width) - sign * moved, &mut row);
            row
        };
        angles.iter().zip(&moved).map(row).collect()
    };
    let write = |name: &str, rows: &[Vec<f32>], shifts: Option<&[f64]>| {
        let mut file = XrmFile::new(FLOAT, width, rows);
        file.floats("ImageInfo/Angles", &angles);
        if let Some(shifts) = shifts {
            file.floats("Alignment/X-Shifts", shifts);
        }
        file.write(&lab.path(name));
        lab.slices(&format!("{name} --no-minus-log --size 44"), &name.replace(".txrm", ""))
    };
    let still = write("still.txrm", &rows(0.0), None);
    let back = write("back.txrm", &rows(1.0), Some(&moved));
    let wrong = write("wrong.txrm", &rows(-1.0), Some(&moved));
    let rms = |a: &Pages| -> f64 {
        let squares = a.pages[0].iter().zip(&still.pages[0]).map(|(a, b)| f64::from(a - b).powi(2));
        (squares.sum::<f64>() / a.pages[0].len() as f64).sqrt()
    };
    assert!(rms(&back) < 0.3 * rms(&wrong), "{} {}", rms(&back), rms(&wrong));
    assert!(farthest(&back, &still).is_finite());
}

#[test]
fn scans_that_cannot_be_reconstructed() {
    let lab = Lab::new();
    let whole = scan(&lab);
    let write = |name: &str, change: &dyn Fn(&mut XrmFile)| {
        let mut file = whole.clone();
        change(&mut file);
        file.write(&lab.path(name));
    };
    write("cone.txrm", &|file| {
        file.integer("ImageInfo/XrayGeometry", 1);
        file.floats("ImageInfo/PixelSize", &[50.0]);
        file.floats("ImageInfo/StoRADistance", &[-12.5; 16]);
        file.floats("ImageInfo/DtoRADistance", &[40.0; 16]);
    });
    let words = ["cone.txrm", "cone beam", "12.5 mm", "40 mm", "50 um", "0.5 pixels", "parallel beams"];
    lab.fails("reconstruct cone.txrm --output out", 3, &words);
    lab.fails("center cone.txrm", 3, &words);
    write("noangles.txrm", &|file| file.remove("ImageInfo/Angles"));
    lab.fails("reconstruct noangles.txrm --output out", 3, &["noangles.txrm", "ImageInfo/Angles", "--angles"]);
    let expected = lab.slices("--projections p --flats f", "tiff");
    assert_eq!(lab.slices("noangles.txrm --overall-angle 180", "given"), expected);
    write("shifts.txrm", &|file| file.floats("Alignment/X-Shifts", &[1.0; 16]));
    write("plain.txrm", &|_| {});
    lab.fails(
        "reconstruct --projections {part}.txrm --stack shifts plain --z-step 3 --output out",
        3,
        &["--stack", "shifts.txrm", "--center-shifts"],
    );
    write("plain2.txrm", &|_| {});
    write("s_1.txrm", &|_| {});
    write("s_2.txrm", &|_| {});
    lab.fails("reconstruct --projections s_*.txrm --output out", 3, &["selects 2 .txrm files", "--stack"]);
    lab.fails("reconstruct --sinograms plain.txrm --output out", 3, &["plain.txrm", "--projections"]);
    lab.fails("reconstruct plain.txrm --watch 1s --output out", 2, &["--watch", "plain.txrm", "XRM"]);
    lab.fails("reconstruct missing.txrm --output out", 3, &["missing.txrm"]);
    // two scans one above the other
    let (_, err) =
        lab.ok("reconstruct --projections {part}.txrm --stack plain plain2 --z-step 3 --output no --dry-run");
    assert!(err.contains("part"), "{err}");
}

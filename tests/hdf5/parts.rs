//! Scans in several files.

use super::{Counts, FLAGS, alone, file, nxtomo};
use crate::support::cli::Lab;
use hdf5_metno::File;

/// Files `a.nx` and `b.nx`, and the same as TIFF in `a` and `b`.
fn two(lab: &Lab) {
    let counts = Counts::new(lab);
    let second = Counts { projections: counts.projections.map(|value| (0.9 * value).round()), ..Counts::new(lab) };
    for (name, counts) in [("a", &counts), ("b", &second)] {
        nxtomo(&file(lab, &format!("{name}.nx")), "/entry", counts, true);
        for (kind, stack) in
            [("p", &counts.projections), ("f", &counts.flats), ("f2", &counts.flats2), ("d", &counts.darks)]
        {
            lab.write(&format!("{name}/{kind}"), kind, stack);
        }
    }
}

#[test]
fn parts_in_hdf5_files_are_those_of_tiff_files() {
    let _alone = alone();
    let lab = Lab::new();
    two(&lab);
    let tiff = "--projections {part}/p --flats {part}/f --flats2 {part}/f2 --darks {part}/d --angles angles.txt";
    let expected = lab.slices(&format!("--stack a b {tiff} --z-step 2 {FLAGS}"), "tiff");
    assert_eq!(expected.pages.len(), 5);
    assert_eq!(lab.slices(&format!("--stack a.nx b.nx --z-step 2 {FLAGS}"), "hdf5"), expected);
    // the pixel size of the files, 0.65 um
    assert_eq!(lab.slices(&format!("--stack a.nx b.nx --z-step 1.3um {FLAGS}"), "length"), expected);
    // the record has the files and repeats the run
    lab.ok("reconstruct -q --config hdf5/fbp-run.toml --output again");
    assert_eq!(lab.read("again"), expected);
    let beside = lab.slices(&format!("--side-by-side a.nx b.nx --overlap 8 {FLAGS} --size 40"), "beside");
    assert_eq!((beside.width, beside.pages.len()), (40, 3));
    let (out, _) = lab.ok("center --help");
    assert!(out.contains("--stack"));
}

#[test]
fn files_of_different_scans_are_refused() {
    let _alone = alone();
    let lab = Lab::new();
    two(&lab);
    let replace = |name: &str, of: &str, values: &[f64]| {
        std::fs::copy(lab.path("b.nx"), lab.path(name)).unwrap();
        File::open_rw(lab.path(name)).unwrap().dataset(of).unwrap().write_raw(values).unwrap();
    };
    replace("pixel.nx", "/entry/instrument/detector/x_pixel_size", &[0.7]);
    let angles = File::open(lab.path("b.nx")).unwrap().dataset("/entry/sample/rotation_angle").unwrap();
    let mut angles: Vec<f64> = angles.read_raw().unwrap();
    angles[20] += 2.0;
    replace("angle.nx", "/entry/sample/rotation_angle", &angles);
    let refused = |part: &str, words: &[&str]| {
        lab.fails(&format!("reconstruct --stack a.nx {part} --z-step 2 --output out"), 3, words);
    };
    refused("pixel.nx", &["a.nx has pixels of 6.5000e-7 m and pixel.nx of 7.0000e-7 m"]);
    refused("angle.nx", &["degrees in a.nx", "in angle.nx", "--angles FILE"]);
    refused("none.nx", &["none.nx"]);
    // given for all
    lab.ok(&format!("reconstruct -q --stack a.nx angle.nx --z-step 2 --angles angles.txt {FLAGS} --output out"));
}

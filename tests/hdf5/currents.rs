//! `--beam-current`: lists of currents beside the frames of a scan, and what they do to slices.

use super::{Counts, FLAGS, FRAMES, ROWS, WIDTH, alone, angles, expected, file, list, refused, volume};
use crate::support::cli::{Lab, Pages, farthest};

/// Key, angle, current in mA and values of a frame.
type Frame = (i8, f64, f64, Vec<f32>);

/// Frames of a scan whose beam decays, with two sets of flats unless there are none after it. The
/// currents of darks and of the invalid frame mean nothing.
fn decaying(counts: &Counts, after: bool) -> Vec<Frame> {
    let dark = |pixel: usize| counts.darks.pages.iter().map(|page| page[pixel]).sum::<f32>() / 2.0;
    let lit = |page: &[f32], current: f64| -> Vec<f32> {
        let lit = |(pixel, &count): (usize, &f32)| dark(pixel) + (count - dark(pixel)) * (current / 200.0) as f32;
        page.iter().enumerate().map(lit).collect()
    };
    let flat = &counts.flats.pages[0];
    let mut all: Vec<Frame> = Vec::new();
    all.extend(counts.darks.pages.iter().map(|page| (2, 0.0, 0.0, page.clone())));
    all.extend([210.0, 190.0, 203.0].map(|current| (1, 0.0, current, lit(flat, current))));
    all.push((3, 0.0, f64::NAN, vec![0.0; ROWS * WIDTH]));
    for (p, (page, angle)) in counts.projections.pages.iter().zip(angles()).enumerate() {
        // refilled once
        let current = if p < 9 { 195.0 - 4.0 * p as f64 } else { 205.0 - 3.0 * p as f64 };
        all.push((0, angle, current, lit(page, current)));
    }
    if after {
        all.extend([150.0, 148.0].map(|current| (1, 0.0, current, lit(flat, current))));
    }
    all
}

fn write(lab: &Lab, name: &str, frames: &[Frame]) {
    let new = file(lab, name);
    let data = Pages { width: WIDTH, pages: frames.iter().map(|(.., page)| page.clone()).collect() };
    let each = |of: &dyn Fn(&Frame) -> f64| frames.iter().map(of).collect::<Vec<f64>>();
    volume(&new, "/entry/instrument/detector/data", &data, |v| v);
    list(&new, "/entry/instrument/detector/image_key", &frames.iter().map(|frame| frame.0).collect::<Vec<_>>());
    list(&new, "/entry/sample/rotation_angle", &each(&|frame| frame.1));
    list(&new, "/entry/control/data", &each(&|frame| frame.2));
    let of_projections: Vec<f64> = frames.iter().filter(|frame| frame.0 == 0).map(|frame| frame.2).collect();
    list(&new, "/entry/control/projections", &of_projections);
    list(&new, "/entry/control/short", &of_projections[1..]);
}

#[test]
fn a_beam_that_decays_changes_no_slice() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    lab.write("one", "f", &Pages { width: WIDTH, pages: vec![counts.flats.pages[0].clone()] });
    let expected = expected(&lab, "--flats one --darks d");
    for after in [false, true] {
        let (name, frames) = (format!("decay{after}.nx"), decaying(&counts, after));
        write(&lab, &name, &frames);
        let args = format!("--hdf5 {name} {FLAGS}");
        let plain = lab.slices(&args, &format!("plain-{after}"));
        assert!(farthest(&plain, &expected) > 0.003, "nothing decays: {}", farthest(&plain, &expected));
        // a dataset, and the same numbers as a file: for each frame, and for flats and projections alone
        lab.numbers("frames.txt", &frames.iter().map(|frame| frame.2).collect::<Vec<_>>());
        let lit = frames.iter().filter(|frame| frame.0 < 2).map(|frame| frame.2);
        lab.numbers("lit.txt", &lit.collect::<Vec<_>>());
        for (number, currents) in
            ["entry/control/data", "/entry/control/data", "frames.txt", "lit.txt"].iter().enumerate()
        {
            let slices = lab.slices(&format!("{args} --beam-current {currents}"), &format!("scaled-{after}{number}"));
            assert!(farthest(&slices, &expected) < 2e-5, "{currents}: {}", farthest(&slices, &expected));
        }
    }
    // without numbers for the flats, slices are right but for the level
    let args =
        format!("reconstruct --hdf5 decayfalse.nx {FLAGS} --beam-current /entry/control/projections --output own");
    let (_, err) = lab.ok(&args);
    assert!(err.contains("note: --beam-current /entry/control/projections says nothing of the flats"), "{err}");
    assert!(err.contains("the mean of their own currents, 174.625"), "{err}");
}

#[test]
fn currents_that_do_not_fit_are_refused() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let mut frames = decaying(&counts, false);
    frames[8].2 = 0.0;
    frames[9].2 = -1.5;
    frames[10].2 = f64::NAN;
    write(&lab, "gaps.nx", &frames);
    let args = format!("--hdf5 gaps.nx {FLAGS} --beam-current /entry/control/data");
    for (exclude, projection, current) in [("", 2, "0"), ("--exclude 2", 3, "-1.5"), ("--exclude 2,3", 4, "NaN")] {
        let said = format!("the current of projection {projection} is {current}, not a number above 0");
        refused(&lab, &format!("{args} {exclude}"), &["--beam-current /entry/control/data", &said, "--exclude"]);
    }
    lab.ok(&format!("reconstruct {args} --exclude 2,3,4 --output used"));
    refused(&lab, "--hdf5 gaps.nx --beam-current /entry/none", &["/entry/none", "/entry/control/projections"]);
    refused(
        &lab,
        "--hdf5 gaps.nx --beam-current entry/control/short",
        &["there are 15 numbers", "projections, 16", "in this order, 19", "frames in the file, 22"],
    );
    frames[2].2 = 0.0;
    write(&lab, "dark.nx", &frames);
    refused(&lab, "--hdf5 dark.nx --beam-current entry/control/data", &["the current of frame 0 of the flats is 0"]);
    let both = "reconstruct --hdf5 gaps.nx --beam-current entry/control/data --normalize-air 3,3 --output out";
    lab.fails(both, 2, &["--beam-current", "--normalize-air"]);
    lab.fails(
        "reconstruct --sinograms s --beam-current c.txt --output out",
        2,
        &["--beam-current: works on projections"],
    );
    lab.fails("reconstruct --projections p --beam-current c.txt --output out", 2, &["it needs --flats or --minus-log"]);
    let tiff = "--projections p --flats f --darks d --beam-current";
    refused(&lab, &format!("{tiff} none.txt"), &["--beam-current none.txt: there is no such file"]);
    lab.text("words.txt", "200\nmuch\n");
    refused(&lab, &format!("{tiff} words.txt"), &["--beam-current words.txt: line 2 is `much`"]);
    lab.numbers("unit.txt", &[vec![200.0; 3], vec![0.2e-5; FRAMES]].concat());
    refused(
        &lab,
        &format!("{tiff} unit.txt"),
        &["the current of projection 0, 0.000002", "currents of one unit", "200"],
    );
}

/// A run is told from one with other currents, and its record repeats it.
#[test]
fn currents_are_part_of_a_run() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let frames = decaying(&counts, false);
    write(&lab, "decay.nx", &frames);
    let args = format!("reconstruct --hdf5 decay.nx {FLAGS} --beam-current");
    let (said, _) = lab.ok(&format!("{args} entry/control/data --dry-run"));
    assert!(said.contains("beam-current /entry/control/data"), "{said}");
    lab.ok(&format!("{args} entry/control/data --output first"));
    lab.ok("reconstruct --config first/fbp-run.toml --output again");
    assert!(lab.bytes("first") == lab.bytes("again"));
    lab.numbers("c.txt", &frames.iter().map(|frame| frame.2).collect::<Vec<_>>());
    lab.ok(&format!("{args} c.txt --output file"));
    assert!(lab.read("first") == lab.read("file"));
    // other numbers in the same file are another run
    lab.numbers("c.txt", &frames.iter().map(|frame| frame.2 + 1.0).collect::<Vec<_>>());
    let (_, err) = lab.ok(&format!("{args} c.txt --output file --resume"));
    assert!(err.contains("0 of 3 slices are kept") && err.contains("of another run (different input"), "{err}");
    for shard in 0..2 {
        lab.ok(&format!("{args} entry/control/data --output shards --shard {shard}/2"));
    }
    assert!(lab.bytes("first") == lab.bytes("shards"));
}

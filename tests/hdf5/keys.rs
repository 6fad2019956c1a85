//! What frames are: keys beside them or elsewhere, frames that were taken again, groups of any name, and fields.

use super::{
    Counts, FLAGS, ROWS, WIDTH, alone, angles, cast, check, exchange, expected, file, list, refused, unit, volume,
};
use crate::support::cli::{Lab, Pages};
use hdf5_metno::File;

/// Frames with their keys, of which `-1` are projections that were taken again, at other places and with other values.
struct Exposures {
    data: Pages,
    /// As `image_key_control` has them.
    control: Vec<i8>,
    /// An angle for each.
    angles: Vec<f64>,
}

impl Exposures {
    fn new(counts: &Counts, again: usize) -> Exposures {
        let mut all: Vec<(i8, f64, Vec<f32>)> = Vec::new();
        for (key, stack) in [(2, &counts.darks), (1, &counts.flats)] {
            all.extend(stack.pages.iter().map(|page| (key, 0.0, page.clone())));
        }
        for (page, angle) in counts.projections.pages.iter().zip(angles()) {
            all.push((0, angle, page.clone()));
        }
        for number in 0..again {
            all.push((-1, 90.0 * number as f64, vec![5000.0 + number as f32; ROWS * WIDTH]));
        }
        Exposures {
            data: Pages { width: WIDTH, pages: all.iter().map(|(.., page)| page.clone()).collect() },
            control: all.iter().map(|(key, ..)| *key).collect(),
            angles: all.iter().map(|(_, angle, _)| *angle).collect(),
        }
    }

    /// Keys that do not tell projections that were taken again from others.
    fn keys(&self) -> Vec<i8> {
        self.control.iter().map(|key| *key.max(&0)).collect()
    }

    /// Angles of projections alone, with those that were taken again.
    fn exposed(&self) -> Vec<f64> {
        let exposed = self.control.iter().zip(&self.angles).filter(|(key, _)| **key <= 0);
        exposed.map(|(_, angle)| *angle).collect()
    }
}

#[test]
fn projections_that_were_taken_again_are_left_out() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let expected = expected(&lab, "--flats f --darks d");
    let detector = "/entry/instrument/detector";
    for again in [1, 3] {
        let exposures = Exposures::new(&counts, again);
        for (name, control, of_frames) in [("control", true, true), ("key", false, true), ("exposed", true, false)] {
            let name = format!("{name}{again}.nx");
            let new = file(&lab, &name);
            volume(&new, &format!("{detector}/data"), &exposures.data, |v| v as u16);
            if control {
                list(&new, &format!("{detector}/image_key"), &exposures.keys());
                list(&new, &format!("{detector}/image_key_control"), &exposures.control);
            } else {
                list(&new, &format!("{detector}/image_key"), &exposures.control);
            }
            let angles = if of_frames { exposures.angles.clone() } else { exposures.exposed() };
            list(&new, "/entry/sample/rotation_angle", &angles);
            drop(new);
            check(&lab, &name, "", &expected);
            let (out, _) = lab.ok(&format!("info {name}"));
            for line in ["projections     16 of", &format!("marks {again} frames as taken again")] {
                assert!(out.contains(line), "no {line} in {out}");
            }
        }
    }
    let (out, _) = lab.ok("info control3.nx");
    for list in ["image_key 24 int8", "image_key_control 24 int8", "/entry/sample/rotation_angle 24 float64"] {
        assert!(out.contains(list), "no {list} in {out}");
    }
    // without the control there are more projections than angles of them
    refused(&lab, "--hdf5 exposed3.nx --hdf5-keys none", &["19 angles", "24 projections"]);
    let by_key = "--hdf5-keys /entry/instrument/detector/image_key";
    let (_, err) = lab.ok(&format!("reconstruct --hdf5 control3.nx {by_key} {FLAGS} --output all"));
    assert!(err.contains("from 19 projections"), "{err}");
}

#[test]
fn keys_may_be_elsewhere() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let expected = expected(&lab, "--flats f --darks d");
    let exposures = Exposures::new(&counts, 2);
    let own = file(&lab, "own.h5");
    volume(&own, "/measured/frames", &exposures.data, |v| v as u16);
    list(&own, "/log/what", &exposures.control);
    list(&own, "/log/short", &exposures.control[1..]);
    unit(&list(&own, "/log/angle", &exposures.angles), "deg");
    drop(own);
    let flags = "--hdf5-data measured/frames --hdf5-keys log/what --hdf5-angles /log/angle";
    check(&lab, "own.h5", flags, &expected);
    let without = "--hdf5 own.h5 --hdf5-data measured/frames --hdf5-keys log";
    refused(&lab, &format!("{without}/short --hdf5-angles log/angle"), &["/log/short", "22 keys", "--hdf5-keys"]);
    refused(&lab, &format!("{without}/none"), &["--hdf5-keys /log/none", "no such dataset"]);
    refused(&lab, &format!("{without}/angle --hdf5-angles log/angle"), &["/log/angle", "key 12.25", "--hdf5-keys"]);
    refused(&lab, &format!("{without}/what"), &["no angles", "--hdf5-angles (perhaps ", "/log/angle"]);
    lab.fails("reconstruct --sinograms sin --hdf5-keys a --output out", 2, &["--hdf5-keys", "--hdf5"]);
}

#[test]
fn a_scan_is_found_in_a_group_of_any_name_and_through_links() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let expected = expected(&lab, "--flats f --darks d");
    let exposures = Exposures::new(&counts, 0);
    let fill = |file: &File, group: &str| {
        volume(file, &format!("{group}/data"), &exposures.data, |v| v as u16);
        list(file, &format!("{group}/image_key"), &exposures.control);
    };
    let imaging = "/entry/instrument/imaging";
    let new = file(&lab, "imaging.h5");
    fill(&new, imaging);
    unit(&list(&new, "/entry/scan/theta", &exposures.angles), "degrees");
    drop(new);
    check(&lab, "imaging.h5", "--hdf5-angles entry/scan/theta", &expected);
    let (out, _) = lab.ok("info imaging.h5");
    for line in [format!("{imaging}/image_key 21").as_str(), "/entry/scan/theta 21", "layout          NXtomo"] {
        assert!(out.contains(line), "no {line} in {out}");
    }

    // angles where NXtomo has them, or beside the frames
    for (name, angle) in
        [("sample.h5", "/entry/sample/rotation_angle"), ("beside.h5", "/entry/instrument/imaging/rotation_angle")]
    {
        let new = file(&lab, name);
        fill(&new, imaging);
        list(&new, angle, &exposures.angles);
        drop(new);
        check(&lab, name, "", &expected);
    }

    // the group in another file, or the frames alone
    let group = file(&lab, "group.h5");
    group.create_group("/entry/instrument").unwrap();
    group.link_external("imaging.h5", imaging, imaging).unwrap();
    list(&group, "/entry/sample/rotation_angle", &exposures.angles);
    drop(group);
    check(&lab, "group.h5", "", &expected);
    let frames = file(&lab, "frames.h5");
    list(&frames, "/entry/imaging/image_key", &exposures.control);
    frames.link_external("imaging.h5", &format!("{imaging}/data"), "/entry/imaging/data").unwrap();
    list(&frames, "/entry/sample/rotation_angle", &exposures.angles);
    drop(frames);
    check(&lab, "frames.h5", "", &expected);

    // links that lead to the same frames are one scan, and two scans are two
    let linked = file(&lab, "linked.h5");
    fill(&linked, imaging);
    linked.create_group("/entry/data").unwrap();
    for name in ["data", "image_key"] {
        linked.link_soft(&format!("{imaging}/{name}"), &format!("/entry/data/{name}")).unwrap();
    }
    list(&linked, "/entry/sample/rotation_angle", &exposures.angles);
    drop(linked);
    check(&lab, "linked.h5", "", &expected);
    let two = file(&lab, "two.h5");
    fill(&two, imaging);
    fill(&two, "/entry/instrument/other");
    drop(two);
    refused(&lab, "--hdf5 two.h5", &["2 scans", "--hdf5-data", "/entry/instrument/imaging/data"]);
}

#[test]
fn fields_are_named_by_their_own_flags_and_may_be_single_frames() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    for (dataset, flag) in [("data_white", "--hdf5-flats"), ("data_dark", "--hdf5-darks")] {
        let name = format!("{dataset}.h5");
        let new = file(&lab, &name);
        volume(&new, "/exchange/data", &counts.projections, |v| v as u16);
        list(&new, "/exchange/theta", &angles());
        new.new_dataset::<u16>().shape((0, ROWS, WIDTH)).create(format!("/exchange/{dataset}").as_str()).unwrap();
        drop(new);
        let err = refused(&lab, &format!("--hdf5 {name}"), &[dataset, "is empty", flag]);
        assert!(!err.contains("--hdf5-data"), "{err}");
        check(&lab, &name, &format!("{flag} none"), &{
            lab.directory("others");
            lab.slices(&format!("--projections p --angles angles.txt {FLAGS}"), &format!("others/{dataset}"))
        });
    }
    // single frames of a file, as stacks of fields
    let one = |stack: &Pages| Pages { width: WIDTH, pages: vec![stack.pages[1].clone()] };
    lab.write("f1", "f", &one(&counts.flats));
    lab.write("d1", "d", &one(&counts.darks));
    let averaged = expected(&lab, "--flats f1 --darks d1");
    let fields = file(&lab, "fields.h5");
    for (name, stack) in [("/flat", &counts.flats), ("/dark", &counts.darks)] {
        let dataset = fields.new_dataset::<f32>().shape((ROWS, WIDTH)).create(name).unwrap();
        dataset.write_raw(&cast(&one(stack), |v| v)).unwrap();
    }
    drop(fields);
    let new = file(&lab, "scan.h5");
    exchange(&new, &counts);
    volume(&new, "/exchange/data", &counts.projections, |v| v as u16);
    drop(new);
    check(&lab, "scan.h5", "--flats fields.h5::/flat --darks fields.h5::/dark", &averaged);
    let tiff = lab.slices(
        &format!("--projections p --flats fields.h5::/flat --darks fields.h5::/dark --angles angles.txt {FLAGS}"),
        "tiff",
    );
    assert_eq!(tiff, averaged);
    refused(&lab, "--projections fields.h5::/flat", &["--projections", "single frame", "three dimensions"]);
}

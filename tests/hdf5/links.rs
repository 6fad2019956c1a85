//! Links to queues and devices, and values in them: nothing waits for them.

use super::{Counts, FRAMES, ROWS, WIDTH, alone, check, exchange, expected, file, nxtomo, unit, volume};
use crate::support::cli::Lab;
use hdf5_metno::File;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::time::Duration;

const SHAPE: (usize, usize, usize) = (FRAMES, ROWS, WIDTH);

/// Runs that must end at once with a message that has these words.
fn refused(lab: &Lab, args: &str, words: &[&str]) {
    let output = lab.command(args).timeout(Duration::from_secs(30)).output().unwrap();
    lab.check_failure(&output, args, 3, words);
}

fn queue(lab: &Lab, name: &str) {
    mknodat(CWD, lab.path(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// A Data Exchange file with a link, or what `add` makes, in the place of one of its datasets.
fn with(lab: &Lab, counts: &Counts, name: &str, missing: &str, add: impl Fn(&File)) {
    let new = file(lab, name);
    exchange(&new, counts);
    volume(&new, "/exchange/data", &counts.projections, |v| v as u16);
    new.unlink(missing).unwrap();
    add(&new);
}

#[test]
fn links_to_what_is_no_regular_file_are_refused() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    queue(&lab, "q.h5");
    let between = file(&lab, "between.h5");
    between.link_external("q.h5", "/d", "/d").unwrap();
    between.create_group("/here").unwrap().link_soft("../d", "loop").unwrap();
    drop(between);
    let link = |place: &'static str, to: &'static str, path: &'static str| {
        move |file: &File| file.link_external(to, path, place).unwrap()
    };
    let data = "/exchange/data";
    with(&lab, &counts, "data.h5", data, link(data, "q.h5", "/d"));
    with(&lab, &counts, "group.h5", "/exchange", link("/exchange", "q.h5", "/"));
    with(&lab, &counts, "angles.h5", "/exchange/theta", link("/exchange/theta", "q.h5", "/d"));
    with(&lab, &counts, "flats.h5", "/exchange/data_white", link("/exchange/data_white", "q.h5", "/d"));
    with(&lab, &counts, "chain.h5", data, link(data, "between.h5", "/d"));
    with(&lab, &counts, "device.h5", data, link(data, "/dev/zero", "/d"));
    with(&lab, &counts, "soft.h5", data, |file| {
        file.link_external("q.h5", "/d", "/outside").unwrap();
        file.link_soft("/outside", data).unwrap();
    });
    for (name, link, what) in [
        ("data.h5", "/exchange/data of", "q.h5, a queue"),
        ("group.h5", "/exchange of", "q.h5, a queue"),
        ("angles.h5", "/exchange/theta of", "q.h5, a queue"),
        ("flats.h5", "/exchange/data_white of", "q.h5, a queue"),
        ("chain.h5", "/d of between.h5", "q.h5, a queue"),
        ("device.h5", "/exchange/data of", "/dev/zero, a device"),
        ("soft.h5", "/outside of", "q.h5, a queue"),
    ] {
        let words = [name, "the link", link, what, "regular file", "put the file there"];
        refused(&lab, &format!("reconstruct --hdf5 {name} --output out"), &words);
        let output = lab.command(&format!("info {name}")).timeout(Duration::from_secs(30)).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains(link) && shown.contains(what), "{name}: {shown}");
    }
    refused(&lab, "reconstruct --projections data.h5::/exchange/data --output out", &["the link", "q.h5"]);
    // a path that leads to the same file again and again is no file at all
    let around = file(&lab, "around.h5");
    around.link_external("around.h5", "/a", "/b").unwrap();
    around.link_external("around.h5", "/b", "/a").unwrap();
    drop(around);
    refused(&lab, "reconstruct --projections around.h5::/a --output out", &["cannot be opened"]);
}

/// Entries that nothing can be read of do not keep the scan of another one from being read.
#[test]
fn scans_beside_such_links_are_read() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    queue(&lab, "q.h5");
    for name in ["beside.nx", "only.nx", "beam.nx"] {
        let scan = file(&lab, name);
        if name != "only.nx" {
            nxtomo(&scan, "/entry0000", &counts, false);
        }
        match name {
            "beam.nx" => scan.link_external("q.h5", "/", "/entry0000/beam").unwrap(),
            _ => scan.link_external("q.h5", "/entry", "/entry0001").unwrap(),
        }
    }
    let expected = expected(&lab, "--flats f --darks d");
    check(&lab, "beside.nx", "", &expected);
    check(&lab, "beam.nx", "", &expected);
    refused(&lab, "reconstruct --hdf5 only.nx --output out", &["/entry0001 of", "q.h5, a queue", "put the file"]);
    // an energy that cannot be read is none
    let args = "reconstruct --hdf5 beam.nx --phase paganin --delta-beta 50 --distance 1mm --output out";
    let output = lab.command(args).timeout(Duration::from_secs(30)).output().unwrap();
    lab.check_failure(&output, args, 2, &["--energy-kev"]);
}

#[test]
fn values_in_what_is_no_regular_file_are_refused() {
    let _alone = alone();
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    for name in ["q", "q.h5"] {
        queue(&lab, name);
    }
    let between = file(&lab, "between.h5");
    between.link_external("q.h5", "/d", "/d").unwrap();
    drop(between);
    let all = (.., .., ..);
    let bytes = FRAMES * ROWS * WIDTH * 2;
    with(&lab, &counts, "stored.h5", "/exchange/data", |file| {
        let builder = file.new_dataset::<u16>().shape(SHAPE).external("q", 0, bytes);
        builder.create("/exchange/data").unwrap();
    });
    with(&lab, &counts, "theta.h5", "/exchange/theta", |file| {
        let builder = file.new_dataset::<f64>().shape(FRAMES).external("q", 0, 8 * FRAMES);
        unit(&builder.create("/exchange/theta").unwrap(), "degrees");
    });
    for (name, source) in [("virtual.h5", "q.h5"), ("linked.h5", "between.h5")] {
        with(&lab, &counts, name, "/exchange/data", |file| {
            let builder = file.new_dataset::<u16>().shape(SHAPE);
            let builder = builder.virtual_map(source, "/d", SHAPE, all, SHAPE, all);
            builder.create("/exchange/data").unwrap();
        });
    }
    for (name, words) in [
        ("stored.h5", &["/exchange/data", "its values are in", "q, a queue"][..]),
        ("theta.h5", &["/exchange/theta", "its values are in", "q, a queue"]),
        ("virtual.h5", &["/exchange/data", "its values are in", "q.h5, a queue"]),
        ("linked.h5", &["/exchange/data", "/d of between.h5", "the link /d of", "q.h5, a queue"]),
    ] {
        refused(&lab, &format!("reconstruct --hdf5 {name} --output out"), &[&[name], words].concat());
    }
}

/// An output of another program whose links lead to a queue is left alone.
#[test]
fn outputs_with_such_links_are_not_replaced() {
    let _alone = alone();
    let lab = Lab::small();
    queue(&lab, "q.h5");
    let run = "reconstruct --sinograms sin --output slices.h5";
    lab.ok(run);
    let results = "/entry/reconstruction/results";
    let names = [
        "/entry/reconstruction/configuration/fbp".to_owned(),
        format!("{results}/data"),
        format!("{results}/checksums"),
    ];
    for name in names {
        std::fs::copy(lab.path("slices.h5"), lab.path("other.h5")).unwrap();
        let other = File::open_rw(lab.path("other.h5")).unwrap();
        other.unlink(&name).unwrap();
        other.link_external("q.h5", "/d", &name).unwrap();
        drop(other);
        let before = std::fs::read(lab.path("other.h5")).unwrap();
        for flag in ["--resume", "--overwrite"] {
            let args = format!("reconstruct --sinograms sin --output other.h5 {flag}");
            let output = lab.command(&args).timeout(Duration::from_secs(30)).output().unwrap();
            assert_eq!(output.status.code(), Some(5), "{name} {flag}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(std::fs::read(lab.path("other.h5")).unwrap(), before, "{name} {flag}");
        }
    }
}

//! `fbp batch` with HDF5 scans: several files in one process, one of which is none.

use super::{alone, file, volume};
use crate::support::cli::{Lab, SMALL, assert_no_panic, text};

#[test]
fn a_file_that_is_no_hdf5_stops_no_other_scan() {
    let _alone = alone();
    let lab = Lab::new();
    lab.directory("night");
    for (name, factor) in [("a.h5", 1.0), ("c.nxs", 2.0)] {
        let scan = file(&lab, &format!("night/{name}"));
        volume(&scan, "/exchange/data", &SMALL.sinograms().transposed(), |value| value * factor);
    }
    lab.text("night/b.hdf5", "no HDF5");
    let flags = "--overall-angle 180 --center 15.5 --device cpu";
    let output = lab.run(&format!("batch night/* {flags} --output rec/{{name}}.h5 --report rec/{{name}}.html"));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_no_panic(&err, "batch");
    assert!(output.status.code() == Some(1) && err.contains("1 of 3 scans failed, the first is b"), "{err}");
    let states: Vec<&str> = out.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(states, ["done", "failed", "done"], "{out}");
    for (name, scan) in [("a", "a.h5"), ("c", "c.nxs")] {
        lab.ok(&format!("reconstruct --hdf5 night/{scan} {flags} --output alone-{name}.h5"));
        assert_eq!(lab.read(&format!("rec/{name}.h5")), lab.read(&format!("alone-{name}.h5")));
    }
    assert!(lab.read_text("rec/b.html").contains("night/b.hdf5"));
}

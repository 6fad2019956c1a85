//! Whatever is wrong with flags, files, device or output: the right exit code, one message that names it, and no file
//! that looks like a result.

mod files;
mod flags;
mod values;

use crate::support::cli::Lab;
use predicates::prelude::*;

/// One run a line: arguments after `fbp reconstruct`, words of the message.
type Cases<'a> = &'a [(&'a str, &'a [&'a str])];

fn all_fail(lab: &Lab, code: i32, cases: Cases) {
    for (args, words) in cases {
        lab.fails(&format!("reconstruct {args}"), code, words);
    }
}

#[test]
fn devices_that_are_not_there() {
    let lab = Lab::small();
    lab.directory("no-drivers");
    for args in
        ["devices", "devices --json", "reconstruct --sinograms sin -o out", "reconstruct --sinograms sin --dry-run"]
    {
        let output = lab.command(args).env("OCL_ICD_VENDORS", lab.path("no-drivers")).output().unwrap();
        let err = lab.check_failure(&output, args, 4, &["OpenCL"]);
        let packages = predicate::str::contains("pocl").or(predicate::str::contains("PoCL"));
        assert!(packages.eval(&err) && err.contains("ocl-icd"), "{err}");
    }
    all_fail(
        &lab,
        4,
        &[
            ("--sinograms sin -o out --device nosuch", &["--device", "nosuch", "0 (0:0)"]),
            ("--sinograms sin -o out --device 99", &["--device", "99", "0 (0:0)"]),
            ("--sinograms sin -o out --device 9:9", &["--device", "9", "0 (0:0)"]),
            ("--sinograms sin -o out --device-memory 1K", &["device memory", "1.0 KiB"]),
            ("--sinograms sin --dry-run --device nosuch", &["--device"]),
        ],
    );
    lab.fails("reconstruct --sinograms sin -o out --device=", 2, &["--device"]);
}

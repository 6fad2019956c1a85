//! Signals while slices are written to one file or directory; `reliability` has those for separate files.

use super::formats::{RUN, TALL, check_tidy, hidden_files, lab, remove, start, volumes, wait_for_slices};
use crate::support::cli::text;
use std::process::Command;

/// A signal while slices are written ends a run as it does with separate files: what is written is kept, under its hidden
/// name only, and the rest follows with `--resume`.
#[test]
fn signals_stop_runs_that_go_on() {
    let (lab, whole) = lab();
    for (output, flags) in volumes() {
        for signal in ["-INT", "-TERM"] {
            let run = format!("{RUN} {flags} --memory 3M --output {output}");
            let child = start(&lab, "hold=2", &format!("{run} --histogram h.json --sections s.png"));
            let target = fbp::sink::Target::parse(lab.path(output).to_str().unwrap()).unwrap();
            wait_for_slices(&target);
            let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            let ended = child.wait_with_output().unwrap();
            let err = text(&ended.stderr);
            let kept = target.unfinished_slices().unwrap();
            assert!(sent.success());
            assert!((1..TALL.slices).contains(&kept), "{kept}");
            assert_eq!(ended.status.code(), Some(75), "{output} {signal}: {err}");
            assert!(err.contains("run again with --resume"), "{err}");
            assert!(!lab.path(output).exists() && !lab.path("h.json").exists() && !lab.path("s-xz.tif").exists());
            let beside = hidden_files(&lab);
            assert!(beside.iter().all(|name| name.contains(".unfinished")), "{output}: {beside:?}");
            let (_, err) = lab.ok(&format!("{run} --resume"));
            assert!(err.contains(&format!("{kept} of 21 slices are kept")), "{output} {signal}: {err}");
            assert_eq!(lab.read(output), whole, "{output} {flags} {signal}");
            check_tidy(&lab, output);
            remove(&lab, output);
        }
    }
}

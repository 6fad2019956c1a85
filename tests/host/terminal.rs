//! What reaches a terminal: text of others without characters that control it, and messages that nobody can take.

use crate::support::cli::{Lab, assert_no_panic, text};
use fbp::visible::visible_lines;
use serde_json::Value;
use std::fs::{self, File};
use std::process::{Command, Output, Stdio};

/// Sets a title, clears the screen, turns the direction of text.
const HOSTILE: &str = "a\u{1b}]0!b\u{7}\u{9b}2J\u{202e}c";
/// As HOSTILE, with a line that looks like one of the program.
const LINES: &str = "a\u{1b}]0!b\nfbp: forged\nwarning: forged";
const SHOWN: &str = r"\x1b]0!b";

/// The program with arguments that may contain anything, and the rest of what [`Lab::command`] does.
fn run(lab: &Lab, args: &[&str]) -> Output {
    lab.command("").args(args).output().unwrap()
}

/// Neither stream has a raw control character, the text is there as escapes, and no line of the program is forged.
fn check(what: &str, output: &Output, code: i32) {
    let shown = [text(&output.stdout), text(&output.stderr)].concat();
    assert_eq!(output.status.code(), Some(code), "{what}\n{shown:?}");
    let controls = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!shown.contains(controls), "{what}\n{shown:?}");
    assert!(shown.contains(SHOWN), "{what}\n{shown:?}");
    for line in shown.lines() {
        assert!(!line.starts_with("fbp: forged") && !line.starts_with("warning: forged"), "{what}\n{shown:?}");
    }
}

/// An EDF file with a line of its own in the header.
fn edf(line: &str) -> Vec<u8> {
    let mut header = format!("{{\nHeaderID = x ;\n{line}\nDim_1 = 2 ;\nDim_2 = 2 ;\n");
    header += &" ".repeat(1022 - header.len());
    [header.as_bytes(), b"}\n", &[0; 16]].concat()
}

#[test]
fn names_and_contents_of_files_do_not_control_the_terminal() {
    let lab = Lab::small();
    for foreign in [HOSTILE, LINES] {
        let flags = ["reconstruct", "--sinograms", "sin", "--output", "out"];
        let reconstruct = |more: &[&str]| run(&lab, &[&flags[..], more].concat());
        check("a file that is not there", &run(&lab, &["info", foreign]), 3);
        let missing = run(&lab, &["reconstruct", "--projections", foreign, "--output", "out"]);
        check("an input that is not there", &missing, 3);
        lab.directory("stray");
        lab.page("stray/s_0.tif", 4, &[1.0; 8]);
        lab.text(&format!("stray/{foreign}"), "");
        check("a stray file", &run(&lab, &["info", "stray"]), 0);
        lab.directory("strange");
        fs::write(lab.path(format!("strange/{foreign}.tif")), "no TIFF").unwrap();
        check("the name of a damaged file", &run(&lab, &["info", "strange"]), 3);
        check("an argument", &reconstruct(&[&format!("--{foreign}")]), 2);
        check("a value", &reconstruct(&[&format!("--padding={foreign}")]), 2);
        check("a value beside its flag", &reconstruct(&["--padding", foreign]), 2);
        check("a list", &reconstruct(&["--exclude", foreign]), 2);
        check("a step", &reconstruct(&["--stripes", foreign]), 2);
        // the escapes of JSON are those of TOML
        let key = visible_lines(&serde_json::json!(foreign).to_string()).into_owned();
        lab.text("run.toml", &format!("{key} = 1\n"));
        check("a key of a run file", &reconstruct(&["--config", "run.toml"]), 2);
        lab.text("run.toml", &format!("padding = {key}\n"));
        check("a value of a run file", &reconstruct(&["--config", "run.toml"]), 2);
        lab.text("profile.toml", &format!("{key} = 1\n"));
        check("a key of a profile", &run(&lab, &["profiles", "check", "profile.toml"]), 2);
        lab.text("angles.txt", &format!("0\n1{}\n", foreign.replace('\n', "\u{b}")));
        check("a line of angles", &reconstruct(&["--angles", "angles.txt"]), 3);
        lab.directory("a.zarr");
        let meta = serde_json::json!({
            "zarr_format": 2, "shape": [3, 2, 3], "chunks": [2, 2, 2], "dtype": foreign, "compressor": null,
            "fill_value": 0, "order": "C", "filters": null,
        });
        lab.text("a.zarr/.zarray", &meta.to_string());
        check("metadata of Zarr", &run(&lab, &["info", "a.zarr"]), 3);
        let line = format!("DataType = {} ;", foreign.replace('\n', "\u{b}"));
        fs::write(lab.path("e.edf"), edf(&line)).unwrap();
        check("a header of EDF", &run(&lab, &["info", "e.edf"]), 3);
    }
}

/// The description of a slice is text of a file, too.
#[test]
fn descriptions_of_slices_do_not_control_the_terminal() {
    let lab = Lab::new();
    for foreign in [HOSTILE, LINES] {
        let description = serde_json::json!({ "slice": 3, "crc32": "0", "run": foreign, "center": 295.8430437573315, "pixel_size": foreign });
        let file = File::create(lab.path("s.tif")).unwrap();
        let mut encoder = tiff::encoder::TiffEncoder::new(file).unwrap();
        let mut image = encoder.new_image::<tiff::encoder::colortype::Gray8>(2, 2).unwrap();
        image
            .encoder()
            .write_tag(tiff::tags::Tag::ImageDescription, &*visible_lines(&description.to_string()))
            .unwrap();
        image.write_data(&[1, 2, 3, 4]).unwrap();
        let output = run(&lab, &["info", "s.tif"]);
        check("the description of a slice", &output, 0);
        let out = text(&output.stdout);
        assert!(out.contains("axis at bin 295.84,") && !out.contains("as sinograms"), "{out}");
        let json = run(&lab, &["info", "--json", "s.tif"]).stdout;
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap()["slice"]["run"], foreign);
        assert!(!text(&json).contains(['\u{1b}', '\u{9b}', '\u{202e}']));
    }
}

/// The text of a lock is that of another run, or of anybody.
#[test]
fn texts_of_locks_do_not_control_the_terminal() {
    let lab = Lab::small();
    lab.directory("out");
    let path = lab.path("out/.fbp-lock");
    fs::write(&path, format!("{LINES}\n")).unwrap();
    let lock = File::open(&path).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let output = run(&lab, &["reconstruct", "--sinograms", "sin", "--output", "out", "--center", "15.5"]);
    check("the text of a lock", &output, 5);
}

/// The program with stdout and stderr of its own.
fn with(lab: &Lab, args: &str, stdout: Stdio, stderr: Stdio) -> Option<i32> {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("fbp"));
    command.args(args.split_whitespace()).current_dir(lab.path(".")).env("FBP_CACHE_DIR", lab.path("cache"));
    command.stdout(stdout).stderr(stderr).status().unwrap().code()
}

/// The codes are those that are documented, whether anybody takes the messages or not.
#[test]
fn messages_that_nobody_takes_change_no_exit_code() {
    // a pipe whose reader is gone, and a full disk
    let gone = || Stdio::from(std::io::pipe().unwrap().1);
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let lab = Lab::small();
    lab.text("strange.tif", "no TIFF");
    lab.page("stray/s_0.tif", 4, &[1.0; 8]);
    lab.text("stray/other", "");
    for (args, code) in [
        ("info strange.tif", 3),
        ("info stray", 0),
        ("reconstruct", 2),
        ("reconstruct --sinograms sin", 2),
        ("reconstruct --sinograms nothing --output out --progress json", 3),
        ("reconstruct --unknown --progress json", 2),
        ("--unknown", 2),
        ("", 2),
        ("--help", 0),
        ("help", 0),
        ("phantom --help", 0),
        ("compare sin proj", 3),
    ] {
        for stderr in [gone(), full()] {
            assert_eq!(with(&lab, args, Stdio::null(), stderr), Some(code), "fbp {args}");
        }
        let out = with(&lab, args, gone(), Stdio::null());
        assert_eq!(out, Some(code), "fbp {args}");
    }
    for args in ["--help", "--version", "help", "info sin", "profiles list"] {
        assert_eq!(with(&lab, args, full(), full()), Some(5), "fbp {args}");
    }
}

/// With `--progress json` every line is an object, also where the arguments are wrong.
#[test]
fn failures_are_json_where_progress_is() {
    let lab = Lab::small();
    lab.text("run.toml", "progress = \"json\"\nsinograms = \"nothing\"\n");
    for (args, code, word) in [
        ("reconstruct --sinograms nothing --output out --progress json", 3, "nothing: does not exist"),
        ("reconstruct --sinograms nothing --output out --progress=json", 3, "nothing: does not exist"),
        ("reconstruct --config run.toml --output out", 3, "nothing: does not exist"),
        ("reconstruct --progress json --sinograms sin --center what", 2, "what"),
        ("reconstruct --progress json --unknown", 2, "unexpected argument '--unknown'"),
    ] {
        let output = lab.run(args);
        let err = text(&output.stderr);
        assert_no_panic(&err, args);
        assert_eq!(output.status.code(), Some(code), "{args}\n{err}");
        let lines: Vec<Value> = err.lines().map(|line| serde_json::from_str(line).expect(&err)).collect();
        let [line] = &lines[..] else { panic!("{args}\n{err}") };
        assert!(line["error"].as_str().unwrap().contains(word), "{err}");
        assert!(!line["error"].as_str().unwrap().starts_with("error"), "{err}");
        assert_eq!(line["exit_code"], code, "{err}");
    }
}

/// Codes are in one column.
#[test]
fn the_table_of_exit_codes_is_aligned() {
    let lab = Lab::new();
    for command in ["", "reconstruct "] {
        let (help, _) = lab.ok(&format!("{command}--help"));
        let rows: Vec<&str> = help.lines().skip_while(|line| !line.starts_with("Exit codes:")).skip(1).collect();
        assert_eq!(rows.len(), 7, "{help}");
        for row in rows {
            let (code, what) = row.split_at(4);
            assert!(
                code.trim().parse::<u8>().is_ok() && what.starts_with("  ") && !what[2..].starts_with(' '),
                "{row}"
            );
        }
    }
}

/// Pages that share one strip cost as much as one of them: what is looked at is bounded, and said.
#[test]
fn many_pages_of_one_strip_are_looked_at_in_part() {
    const SIDE: usize = 8192;
    let lab = Lab::new();
    let strip = {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        let row = [7u8; SIDE];
        (0..SIDE).for_each(|_| encoder.write_all(&row).unwrap());
        encoder.finish().unwrap()
    };
    // every directory points to the same strip
    let pages = 400u32;
    let mut file = [&b"II*\0"[..], &(8 + strip.len().next_multiple_of(2) as u32).to_le_bytes(), &strip].concat();
    file.resize(8 + strip.len().next_multiple_of(2), 0);
    for page in 0..pages {
        let entries: [(u16, u16, u32); 8] = [
            (256, 4, SIDE as u32),
            (257, 4, SIDE as u32),
            (258, 3, 8),
            (259, 3, 8),
            (262, 3, 1),
            (273, 4, 8),
            (278, 4, SIDE as u32),
            (279, 4, strip.len() as u32),
        ];
        file.extend((entries.len() as u16).to_le_bytes());
        for (tag, kind, value) in entries {
            file.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend([1u32.to_le_bytes(), value.to_le_bytes()].concat());
        }
        let next = if page + 1 < pages { file.len() as u32 + 4 } else { 0 };
        file.extend(next.to_le_bytes());
    }
    fs::write(lab.path("many.tif"), file).unwrap();
    let (out, _) = lab.ok("info many.tif");
    assert!(out.contains("values 7 to 7, in 1 of the 400 pages (--all-pages looks at all)"), "{out}");
    let (json, _) = lab.ok("info --json many.tif");
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["pages_examined"], 1);
    // a small stack is looked at as a whole, and its record is no stray file
    lab.page("few/s_0.tif", 4, &[1.0; 8]);
    lab.page("few/s_1.tif", 4, &[f32::INFINITY; 8]);
    lab.text("few/fbp-run.toml", "");
    let (out, _) = lab.ok("info few");
    assert!(out.contains("values 1 to 1, 8 not finite\n") && !out.contains("ignored"), "{out}");
}

//! How inputs are named, ordered and opened, by commands that need no device.

use crate::support::cli::{Lab, Pages, SMALL};
use fbp::remark::{DoubtKind, Remark};
use fbp::source::Stack;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Files with their number as the only value, under names that a function makes of it.
fn numbered(lab: &Lab, folder: &str, count: usize, name: impl Fn(usize) -> String) {
    for number in 0..count {
        lab.page(&format!("{folder}/{}", name(number)), 2, &[number as f32; 4]);
    }
}

/// The values of a stack's pages.
fn order(lab: &Lab, spec: &str, by: Option<usize>) -> Result<Vec<f32>, String> {
    let spec = match spec.strip_prefix("list ") {
        Some(list) => format!("list {}", lab.path(list).display()),
        None => lab.path(spec).display().to_string(),
    };
    let stack = Stack::open_by(&spec, "--projections", 1 << 20, by).map_err(|e| e.to_string())?;
    let mut values = [0f32; 4];
    Ok((0..stack.len())
        .map(|page| {
            stack.read_rows(page, 0..2, &mut values).unwrap();
            values[0]
        })
        .collect())
}

fn ascending(count: usize) -> Vec<f32> {
    (0..count).map(|number| number as f32).collect()
}

#[test]
fn directories_and_globs_have_the_same_order() {
    let lab = Lab::new();
    numbered(&lab, "golden", 60, |i| format!("s_{:?}_{i:03}.tif", (i as f64 * 111.246 % 180.0 * 1e3).round() / 1e3));
    numbered(&lab, "negative", 30, |i| format!("s_{}.tif", i as i32 - 15));
    numbered(&lab, "hex", 40, |i| format!("s_{i:04x}.tif"));
    for (folder, count) in [("golden", 60), ("negative", 30), ("hex", 40)] {
        for spec in [folder.to_owned(), format!("{folder}/*.tif"), format!("{folder}/**/s*")] {
            assert_eq!(order(&lab, &spec, None).unwrap(), ascending(count), "{spec}");
        }
    }
    numbered(&lab, "two", 40, |i| format!("pos{}_t{:02}.tif", i % 4, i / 4));
    for spec in ["two", "two/*.tif"] {
        let refused = order(&lab, spec, None).unwrap_err();
        for word in [
            "--order-by 1 gives pos0_t00.tif, pos0_t01.tif",
            "--order-by 2 gives pos0_t00.tif, pos1_t00.tif",
            "list FILE",
        ] {
            assert!(refused.contains(word), "{refused}");
        }
        assert_eq!(order(&lab, spec, Some(2)).unwrap(), ascending(40));
        let by_place: Vec<f32> = (0..40).map(|i| (i % 10 * 4 + i / 10) as f32).collect();
        assert_eq!(order(&lab, spec, Some(1)).unwrap(), by_place);
        assert!(order(&lab, spec, Some(3)).unwrap_err().contains("--order-by 3"));
    }
    // numbers of folders count where these differ
    numbered(&lab, "deep", 20, |i| format!("part{}/p_{:02}.tif", i / 10, i));
    assert_eq!(order(&lab, "deep/**/*.tif", None).unwrap(), ascending(20));
}

#[test]
fn a_list_of_files_is_their_order() {
    let lab = Lab::new();
    numbered(&lab, "two", 8, |i| format!("pos{}_t{}.tif", i % 4, i / 4));
    let names =
        |which: &[usize]| which.iter().map(|i| format!("two/pos{}_t{}.tif\n", i % 4, i / 4)).collect::<String>();
    lab.text("names.txt", &names(&[6, 0, 3]));
    assert_eq!(order(&lab, "list names.txt", None).unwrap(), [6.0, 0.0, 3.0]);
    lab.text("twice.txt", &names(&[6, 0, 6]));
    assert!(order(&lab, "list twice.txt", None).unwrap_err().contains("twice"));
    assert!(order(&lab, "list none.txt", None).unwrap_err().contains("none.txt"));
    let info = |args: &[&str]| lab.command("info --json").args(args).output().unwrap();
    let json: Value = serde_json::from_slice(&info(&["list names.txt"]).stdout).unwrap();
    let names = &json["names"];
    assert_eq!(
        (&names["count"], &names["first"], &names["last"]),
        (&3.into(), &"pos2_t1.tif".into(), &"pos3_t0.tif".into())
    );
    assert_eq!(names["second"], "pos0_t0.tif");
    // through a command
    let listed = lab.command("preprocess --output lines --projections").arg("list names.txt").output().unwrap();
    assert!(listed.status.success());
    assert_eq!(lab.read("lines").pages.iter().map(|page| page[0]).collect::<Vec<_>>(), [6.0, 0.0, 3.0]);
}

#[test]
fn info_shows_the_order_and_takes_another() {
    let lab = Lab::new();
    numbered(&lab, "two", 12, |i| format!("pos{}_t{}.tif", i % 4, i / 4));
    lab.fails("info two", 3, &["--order-by 1", "--order-by 2", "list FILE"]);
    let (out, _) = lab.ok("info two --order-by 2");
    assert!(out.contains("files 12: pos0_t0.tif, pos1_t0.tif ... pos3_t2.tif"), "{out}");
    let (out, _) = lab.ok("info two/pos0_t0.tif");
    assert!(!out.contains("files 1:"), "{out}");
    lab.text("a.raw", "1234");
    for args in ["--order-by 1 a.raw,2x2x1,u8", "--order-by 9 two"] {
        let error = lab.run(&format!("info {args}"));
        assert!(matches!(error.status.code(), Some(2 | 3)));
        assert!(String::from_utf8_lossy(&error.stderr).contains("--order-by"), "{args}");
    }
}

#[test]
fn a_glob_over_fields_and_projections_is_refused() {
    let lab = Lab::new();
    for (kind, count) in [("flat", 3), ("dark", 3), ("proj", 9)] {
        numbered(&lab, "scan", count, |i| format!("{kind}_{i:04}.tif"));
    }
    let args = |spec: &str| format!("preprocess --projections {spec} --output out");
    lab.fails(&args("scan/*.tif"), 3, &["--projections", "--flats", "--darks", "narrow the glob"]);
    lab.fails(&args("scan"), 3, &["--projections", "--flats", "--darks", "with a glob"]);
    lab.fails(&args("scan/*_0000.tif"), 3, &["--flats", "--darks"]);
    lab.ok("preprocess --projections scan/proj_*.tif --flats scan/flat*.tif --output lines");
    assert_eq!(lab.read("lines").pages.len(), 9);
}

#[test]
fn missing_numbers_of_projections_are_a_doubt() {
    let lab = Lab::new();
    numbered(&lab, "gap", 9, |i| format!("p_{:03}.tif", i + usize::from(i > 4)));
    for spec in ["gap", "gap/p_*.tif"] {
        let path = lab.path(spec);
        let remarks = |flag: &str| Stack::open(path.to_str().unwrap(), flag).unwrap().remarks().to_vec();
        match &remarks("--projections")[..] {
            [Remark::Doubt(doubt)] => {
                assert_eq!(doubt.name, DoubtKind::MissingFiles);
                assert!(doubt.what.contains("number 5 (1 missing)") && doubt.what.contains("angles"), "{}", doubt.what);
                assert!(doubt.advice.contains("--angles") && doubt.advice.contains("list FILE"), "{}", doubt.advice);
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(&remarks("--sinograms")[..], [Remark::Note(note)] if note.contains("number 5")));
        assert_eq!(remarks("--flats"), [], "the mean of frames has no order");
    }
    lab.text("gap.txt", &(0..9).map(|i| format!("gap/p_{:03}.tif\n", i + usize::from(i > 4))).collect::<String>());
    let spec = format!("list {}", lab.path("gap.txt").display());
    assert_eq!(Stack::open(&spec, "--projections").unwrap().remarks(), [], "what is listed is meant");
}

/// Queues in the place of every kind of input: nothing waits for them.
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let lab = Lab::small();
    let queue = |name: &str| {
        fs::create_dir_all(lab.path(name).parent().unwrap()).unwrap();
        mknodat(CWD, lab.path(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
    };
    for name in [
        "q",
        "q.tif",
        "q.edf",
        "q.h5",
        "dir/p_0000.tif",
        "edf/p_0.edf",
        "run/fbp-run.toml",
        "a.zarr/zarr.json",
        "b.zarr/c/0/0/0",
    ] {
        queue(name);
    }
    lab.page("dir/p_0001.tif", 2, &[0.0; 4]);
    lab.text("list.txt", "proj/p_0000.tif\nq.tif\n");
    lab.text("b.zarr/zarr.json", r#"{"zarr_format": 3, "node_type": "array", "shape": [1, 2, 2], "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 2, 2]}}, "fill_value": 0,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "codecs": [{"name": "bytes"}]}"#);
    let mut commands = vec![
        ("info q.tif", 3),
        ("info q.edf", 3),
        ("info q.h5", 3),
        ("info dir", 3),
        ("info edf", 3),
        ("info a.zarr", 3),
        ("info b.zarr", 3),
        ("info q,2x2x1,u8", 3),
        ("preprocess --output out --projections dir/*.tif", 3),
        ("preprocess --output out --projections q,2x2x1,u8", 3),
        ("preprocess --output out --raw q,2x2x1,u8", 3),
        ("preprocess --output out --projections proj --flats q.tif", 3),
        ("preprocess --output out --projections proj --flats proj --darks dir", 3),
        ("center --sinograms sin --angles q", 3),
        ("center --sinograms sin --center-shifts q", 3),
        ("phantom --size 8 --projections 4 --angles q --output out", 3),
        ("reconstruct --config q --output out", 2),
        ("profiles check q", 2),
        ("report run --output out.html", 3),
    ];
    if cfg!(feature = "hdf5") {
        commands.push(("preprocess --output out --hdf5 q.h5", 3));
    }
    for (args, code) in commands {
        let output = lab.command(args).timeout(std::time::Duration::from_secs(20)).output().unwrap();
        let err = lab.check_failure(&output, args, code, &[]);
        let words = ["regular file", "neither a file nor a directory", "found zarr.json"];
        assert!(words.iter().any(|word| err.contains(word)), "fbp {args}\n{err}");
    }
    let listed = lab.command("info").arg("list list.txt").output().unwrap();
    lab.check_failure(&listed, "info list", 3, &["q.tif", "FIFO"]);
}

#[test]
fn links_that_lead_back_do_not_hold_a_glob_up() {
    let lab = Lab::new();
    numbered(&lab, "loop", 4, |i| format!("p_{i}.tif"));
    for link in ["loop/a", "loop/b"] {
        std::os::unix::fs::symlink(lab.path("loop"), lab.path(link)).unwrap();
    }
    assert_eq!(order(&lab, "loop/**/*.tif", None).unwrap(), ascending(4));
}

/// A list of angles in every form leads to the same axis.
#[test]
fn angles_are_read_from_text_numpy_pipes_and_standard_input() {
    let lab = Lab::small();
    let angles: Vec<f64> = (0..SMALL.projections).map(|p| 11.25 * p as f64).collect();
    lab.numbers("a.txt", &angles);
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}\n", angles.len());
    let mut npy = b"\x93NUMPY\x01\0".to_vec();
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.bytes().chain(angles.iter().flat_map(|angle| angle.to_le_bytes())));
    fs::write(lab.path("a.npy"), npy).unwrap();
    let found = |angles: &str, input: &[u8]| {
        let args = format!("center --sinograms sin --method vo --json --angles {angles}");
        let output = lab.command(&args).write_stdin(input).output().unwrap();
        assert_ne!(output.stdout, b"", "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let text = fs::read(lab.path("a.txt")).unwrap();
    let expected = found("a.txt", b"");
    for (angles, input) in [("a.npy", &b""[..]), ("-", &text), ("/dev/stdin", &text), ("/dev/fd/0", &text)] {
        assert_eq!(found(angles, input), expected, "{angles}");
    }
}

/// A pipe that stays open is waited for until the first signal.
#[test]
fn a_signal_ends_the_wait_for_a_pipe() {
    let lab = Lab::small();
    for (flags, signal) in [
        ("--config", "-TERM"),
        ("--sinograms sin --angles", "-TERM"),
        ("--sinograms sin --angles", "-INT"),
        ("--sinograms sin --center-shifts", "-TERM"),
    ] {
        for path in ["-", "/dev/fd/0"] {
            let args = format!("reconstruct --output out {flags} {path}");
            let mut child = start(&lab, &args, Stdio::piped());
            child.stdin.as_mut().unwrap().write_all(b"0\n").unwrap();
            wait_until_opened(child.id());
            let sent = Instant::now();
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
            // what it waits for stays open
            let input = child.stdin.take();
            let output = child.wait_with_output().unwrap();
            let took = sent.elapsed();
            drop(input);
            let flag = flags.split(' ').next_back().unwrap();
            lab.check_failure(&output, &args, 75, &[flag, path, "interrupted", "run again"]);
            assert!(took < Duration::from_secs(20), "{args}: {took:?}");
        }
    }
}

/// What was written to a named queue that nobody writes to any more is all there is.
#[test]
fn a_queue_without_writers_is_not_waited_for() {
    let lab = Lab::small();
    mknodat(CWD, lab.path("queue"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let both = fs::OpenOptions::new().read(true).write(true).open(lab.path("queue")).unwrap();
    let input = fs::File::open(lab.path("queue")).unwrap();
    (&both).write_all(b"0\n1\n").unwrap();
    drop(both);
    let args = "reconstruct --sinograms sin --output out --angles -";
    let output = start(&lab, args, input.into()).wait_with_output().unwrap();
    lab.check_failure(&output, args, 3, &["--angles -", "2"]);
}

fn start(lab: &Lab, args: &str, input: Stdio) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("fbp"))
        .args(args.split_whitespace())
        .current_dir(lab.path(""))
        .env("FBP_CACHE_DIR", lab.path("cache"))
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until a process has opened its standard input a second time.
fn wait_until_opened(process: u32) {
    let file = |fd: &str| fs::read_link(format!("/proc/{process}/fd/{fd}")).ok();
    let again = || {
        let fds = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let fds = fds.map(|fd| fd.file_name().to_string_lossy().into_owned());
        fds.filter(|fd| fd != "0").any(|fd| file(&fd).is_some_and(|found| Some(found) == file("0")))
    };
    let start = Instant::now();
    while !again() {
        assert!(start.elapsed() < Duration::from_secs(60), "the input is not opened");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn text_that_is_no_list_is_named_and_not_printed_whole() {
    let lab = Lab::small();
    let wide: Vec<u8> = "\u{feff}0\n1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(lab.path("wide.txt"), &wide).unwrap();
    for flag in ["--angles", "--center-shifts"] {
        lab.fails(&format!("center --sinograms sin {flag} wide.txt"), 3, &["wide.txt", "UTF-16", "UTF-8"]);
    }
    lab.fails("reconstruct --config wide.txt --output out", 2, &["wide.txt", "UTF-16"]);
    let long = "x".repeat(2048);
    lab.text("long.txt", &format!("0\n{long}\n"));
    lab.text("long.toml", &format!("rows = \"1..2\"\n{long}\n"));
    lab.text("key.toml", &format!("{long} = 1\n"));
    lab.text("list.txt", &format!("{long}{long}\n"));
    lab.text("long.edf", &format!("{{\nDataType = {long} ;\nDim_1 = 2 ;\nDim_2 = 2 ;\n}}\n"));
    let whole = &long[..400];
    for (args, code, word) in [
        ("center --sinograms sin --angles long.txt", 3, "line 2"),
        ("center --sinograms sin --center-shifts long.txt", 3, "line 2"),
        ("reconstruct --config long.toml --output out", 2, "line 2"),
        ("reconstruct --config key.toml --output out", 2, "unknown key"),
        ("report long.txt --output out.html", 3, "record"),
    ] {
        let err = lab.fails(args, code, &[word]);
        assert!(!err.contains(whole), "{args}: {err}");
    }
    for spec in ["list list.txt", "long.edf"] {
        let output = lab.command("info").arg(spec).output().unwrap();
        let err = lab.check_failure(&output, spec, 3, &[]);
        assert!(!err.contains(whole), "{spec}: {err}");
    }
}

#[test]
fn a_glob_without_quotes_gets_a_hint() {
    let lab = Lab::small();
    let names: Vec<String> = lab.files("proj").iter().map(|name| format!("proj/{name}")).collect();
    let all = names.join(" ");
    for args in [
        format!("preprocess --projections {all} --output out"),
        format!("preprocess --output out --projections proj --flats {all}"),
        format!("reconstruct --sinograms {all} --output out"),
        format!("center --projections {all}"),
        format!("info {all}"),
    ] {
        lab.fails(&args, 2, &["unexpected argument", "the shell", "in quotes"]);
    }
    let two = lab.fails(&format!("center --projections {} {}", names[0], names[1]), 2, &["SCAN", "--projections"]);
    assert!(two.contains("give the scan once; a glob needs quotes"), "{two}");
    let other = lab.fails("info sin nowhere.tif", 2, &["unexpected argument"]);
    assert!(!other.contains("the shell"), "{other}");
}

#[test]
fn brackets_in_the_name_of_a_folder_are_no_glob() {
    let lab = Lab::new();
    numbered(&lab, "scan[1]", 5, |i| format!("p_{i}.tif"));
    numbered(&lab, "scan1", 3, |i| format!("p_{i}.tif"));
    for spec in ["scan[1]", "scan[1]/*.tif", "scan[1]/p_[0-9].tif"] {
        assert_eq!(order(&lab, spec, None).unwrap(), ascending(5), "{spec}");
    }
    assert_eq!(order(&lab, "scan[12]/*.tif", None).unwrap(), ascending(3));
}

/// The end of a wait without a number of pages is a doubt; with one it is none.
#[test]
fn a_wait_that_time_ended_is_a_doubt() {
    use fbp::source::{Watch, wait};
    let lab = Lab::new();
    lab.write("proj", "p", &Pages { width: 2, pages: vec![vec![0.0; 4]; 3] });
    let waited = |pages| {
        let watch = Watch { patience: std::time::Duration::from_millis(1), pages, order_by: None };
        wait(lab.path("proj").to_str().unwrap(), "--projections", watch, |_| Ok(())).unwrap().remarks().to_vec()
    };
    match &waited(None)[..] {
        [Remark::Doubt(doubt)] => {
            assert_eq!(doubt.name, DoubtKind::EndedByTime);
            assert!(doubt.what.contains("3 pages are used") && doubt.advice.contains("--expect"), "{doubt}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(waited(Some(3)), []);
}

//! Built programs that are kept: a later session takes them, and gives the same results.

use crate::kernels::setup::device;
use crate::support::cli::Lab;
use fbp::device::{FoundDevice, ProgramStore, Session};
use fbp::facts::ImageFormat;
use fbp::kernel::KernelSource;
use opencl3::memory::CL_MEM_READ_WRITE;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const VALUES: usize = 64;

/// A small program; `add` makes its text another one.
fn source(add: usize, options: &str) -> KernelSource {
    KernelSource {
        name: "add".into(),
        text: format!("kernel void add(global int *v) {{ v[get_global_id(0)] += {add}; }}"),
        options: options.into(),
        entry: "add",
        work_group: [1, 1],
        block: [1, 1],
        packed: true,
        clearance: 0.0,
        key: String::new(),
    }
}

/// A folder for programs, and a device.
struct Programs {
    _directory: TempDir,
    folder: PathBuf,
    found: FoundDevice,
}

impl Programs {
    fn new() -> Programs {
        let directory = tempfile::tempdir().unwrap();
        Programs { folder: directory.path().join("cache/programs"), _directory: directory, found: device() }
    }

    fn session(&self, found: &FoundDevice) -> Session {
        Session::open(found).unwrap().with_programs(Some(ProgramStore::within(self.folder.clone())))
    }

    /// Whether a new session compiles this program. The program is run.
    fn compiles(&self, found: &FoundDevice, add: usize, options: &str) -> bool {
        let session = self.session(found);
        assert_adds(&session, add, options);
        session.compiled() == 1
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.folder)
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn assert_adds(session: &Session, add: usize, options: &str) {
    let program = session.build(&source(add, options)).unwrap();
    let kernel = session.kernel(&program, "add").unwrap();
    let mut buffer = session.buffer(VALUES, CL_MEM_READ_WRITE, "values").unwrap();
    let before: Vec<i32> = (0..VALUES as i32).collect();
    session.write(&mut buffer, &before, "values").unwrap();
    let launch = session.launch(&kernel, "add").buffer(&buffer, VALUES, "values").unwrap();
    launch.run(&[VALUES], None).unwrap();
    let mut after = vec![0i32; VALUES];
    session.read(&buffer, &mut after, "values").unwrap();
    // one value more than the buffer has
    let refused = session.launch(&kernel, "add").buffer(&buffer, VALUES + 1, "values").err().unwrap();
    assert!(refused.to_string().contains("values have"), "{refused}");
    assert!(before.iter().zip(&after).all(|(before, after)| before + add as i32 == *after), "{after:?}");
}

#[test]
fn a_later_session_compiles_nothing() {
    let programs = Programs::new();
    let resources = || {
        let session = programs.session(&programs.found);
        let program = session.build(&source(3, "")).unwrap();
        (session.compiled(), session.resources(&program, &session.kernel(&program, "add").unwrap()))
    };
    let (first, second) = (resources(), resources());
    assert_eq!((first.0, second.0), (1, 0));
    assert_eq!(first.1, second.1);
    assert!(!programs.compiles(&programs.found, 3, ""));
    assert_eq!(programs.files().len(), 1);
    // another text, other options and another driver are other programs
    let mut newer = programs.found.clone();
    newer.facts.driver += " with an update";
    for (files, (found, add, options)) in
        [(&programs.found, 4, ""), (&programs.found, 3, "-DX=1"), (&newer, 3, "")].into_iter().enumerate()
    {
        assert!(programs.compiles(found, add, options));
        assert!(!programs.compiles(found, add, options));
        assert_eq!(programs.files().len(), files + 2);
    }
}

#[test]
fn files_of_no_use_are_replaced() {
    let programs = Programs::new();
    assert!(programs.compiles(&programs.found, 5, ""));
    let file = programs.files().remove(0);
    let good = fs::read(&file).unwrap();
    assert!(programs.compiles(&programs.found, 6, ""));
    let other = programs.files().into_iter().find(|path| *path != file).unwrap();
    let mut altered = good.clone();
    *altered.last_mut().unwrap() ^= 1;
    let half = good[..good.len() / 2].to_vec();
    for bad in [Vec::new(), b"what?".to_vec(), good[..20].to_vec(), half, altered, fs::read(&other).unwrap()] {
        fs::write(&file, bad).unwrap();
        assert!(programs.compiles(&programs.found, 5, ""));
        assert!(!programs.compiles(&programs.found, 5, ""));
    }
    // what cannot be read
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(programs.compiles(&programs.found, 5, ""));
}

#[test]
fn a_program_that_does_not_build_is_not_kept() {
    let programs = Programs::new();
    let session = programs.session(&programs.found);
    let wrong = KernelSource { text: "kernel void add(".into(), ..source(0, "") };
    for _ in 0..2 {
        assert_eq!(session.build(&wrong).err().unwrap().exit_code(), 4);
    }
    assert_eq!(session.compiled(), 2);
    assert!(!programs.folder.exists());
}

#[test]
fn several_at_once_share_a_folder() {
    let programs = Programs::new();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // kernels are started below: simulators do not run two at once
            scope.spawn(|| {
                (0..4).for_each(|add| _ = programs.session(&programs.found).build(&source(add, "")).unwrap())
            });
        }
    });
    assert_eq!(programs.files().len(), 4, "{:?}", programs.files());
    assert!((0..4).all(|add| !programs.compiles(&programs.found, add, "")));
}

#[test]
fn image_formats_are_tried_with_the_kept_program() {
    let programs = Programs::new();
    let tried = || {
        let session = programs.session(&programs.found);
        ImageFormat::ALL.map(|format| session.image_format_works(format).unwrap())
    };
    assert_eq!(tried(), tried());
}

/// Runs with programs of earlier runs, without a folder for them, and with faults write what the first one wrote.
#[test]
fn runs_with_kept_programs_write_the_same_slices() {
    let lab = Lab::small();
    let run = |cache: &str, output: &str, fault: &str| {
        let mut command = lab.command(&format!("reconstruct -q --sinograms sin --device cpu --output {output}"));
        command.env("FBP_CACHE_DIR", lab.path(cache)).env("FBP_TEST_FAULT", fault).env_remove("FBP_TEST_UNSTORED");
        let result = command.output().unwrap();
        assert_eq!(result.status.code(), Some(0), "{}", String::from_utf8_lossy(&result.stderr));
        (lab.bytes(output), String::from_utf8(result.stderr).unwrap())
    };
    let folder = lab.path("cache/programs");
    let first = run("cache", "a", "");
    let kept = files(&folder);
    assert!(!kept.is_empty());
    assert_eq!(run("cache", "b", ""), first);
    assert_eq!(files(&folder), kept);
    // nothing can be kept, of which nothing is said
    fs::create_dir(lab.path("full")).unwrap();
    lab.text("full/programs", "in the way");
    assert_eq!(run("full", "c", ""), first);
    // the driver is called another one
    run("cache", "d", "image");
    assert_eq!(files(&folder).len(), 2 * kept.len());
}

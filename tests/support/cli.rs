//! What the tests of the command line share: a directory of their own, small scans, and what must hold for every
//! failure.

use assert_cmd::Command;
use fbp::error::Result;
use fbp::files::{InputSet, OutputFile, OutputKind};
use fbp::phantom::{Kind, Phantom};
use fbp::sink::{self, AllowedContents, Dtype, Encoding, SliceWriter, Target};
use fbp::source::Stack;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

pub const F32: Encoding = Encoding { dtype: Dtype::F32, range: None };

/// Writes a TIFF of one page.
pub fn write_image(path: &Path, width: usize, height: usize, data: &[f32], encoding: Encoding) -> Result<()> {
    let file = OutputFile::new("--output", path, OutputKind::Tiff, &InputSet::default(), Some(true))?;
    sink::write_image(&file, (width, height), data, encoding)
}

/// A directory that goes away, and the program run inside it: paths in arguments are relative to it.
pub struct Lab(tempfile::TempDir);

/// A stack in memory, `pages` of `width` columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Pages {
    pub width: usize,
    pub pages: Vec<Vec<f32>>,
}

/// What a sinogram is made of; the slices of a scan differ.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    pub width: usize,
    pub projections: usize,
    pub slices: usize,
    pub overall: f64,
}

pub const SMALL: Scan = Scan { width: 32, projections: 16, slices: 3, overall: 180.0 };

impl Scan {
    pub fn angles(&self) -> Vec<f64> {
        fbp::geometry::even_angles(0.0, self.overall, self.projections)
    }

    fn phantom(&self, slice: usize) -> Phantom {
        // unlike in amplitude, too: a slice in the wrong place cannot go unseen
        Phantom::for_slice(Kind::Asymmetric, self.width, slice, self.slices).scaled(1.0 + slice as f64)
    }

    /// One page a slice, rows are projections.
    pub fn sinograms(&self) -> Pages {
        let axis = fbp::geometry::default_axis(self.width);
        let page = |slice: usize| {
            let mut page = vec![0f32; self.projections * self.width];
            for (row, angle) in page.chunks_mut(self.width).zip(self.angles()) {
                self.phantom(slice).project_row(angle.to_radians(), axis, row);
            }
            page
        };
        Pages { width: self.width, pages: (0..self.slices).map(page).collect() }
    }

    /// The slices that should come out.
    pub fn truth(&self) -> Pages {
        Pages { width: self.width, pages: (0..self.slices).map(|s| self.phantom(s).rasterise(4)).collect() }
    }
}

impl Pages {
    /// One page a row: sinograms to projections and back.
    pub fn transposed(&self) -> Pages {
        let rows = self.pages[0].len() / self.width;
        let at = |row: usize| row * self.width..(row + 1) * self.width;
        let page = |row: usize| self.pages.iter().flat_map(|p| p[at(row)].to_vec()).collect();
        Pages { width: self.width, pages: (0..rows).map(page).collect() }
    }

    pub fn map(&self, change: impl Fn(f32) -> f32) -> Pages {
        let pages = self.pages.iter().map(|p| p.iter().map(|&v| change(v)).collect()).collect();
        Pages { width: self.width, pages }
    }
}

impl Lab {
    pub fn new() -> Lab {
        Lab(tempfile::tempdir().unwrap())
    }

    /// With the sinograms of [`SMALL`] in `sin` and its projections in `proj`.
    pub fn small() -> Lab {
        let lab = Lab::new();
        lab.write("sin", "s", &SMALL.sinograms());
        lab.write("proj", "p", &SMALL.sinograms().transposed());
        lab
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// A profile as that of processors, with these lines in `[steps]`; without any the device does all steps.
    pub fn profile_with_steps(&self, file: &str, lines: &str) {
        let text = include_str!("../../configs/cpu.toml");
        let (before, after) = text.split_once("[steps]\n").unwrap();
        let (_, after) = after.split_once("\n\n").unwrap();
        let text = format!("{before}[steps]\n{lines}\n{after}").replace("name = \"cpu\"", "name = \"steps\"");
        self.text(file, &text);
    }

    pub fn read_text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn numbers(&self, name: &str, numbers: &[f64]) {
        self.text(name, &numbers.iter().map(|v| format!("{v:?}\n")).collect::<String>());
    }

    pub fn directory(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
    }

    /// One file: `directory/name.tif`.
    pub fn page(&self, file: &str, width: usize, values: &[f32]) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_image(&path, width, values.len() / width, values, F32).unwrap();
    }

    /// Single files `directory/prefix_0000.tif` and so on.
    pub fn write(&self, directory: &str, prefix: &str, stack: &Pages) {
        for (number, page) in stack.pages.iter().enumerate() {
            self.page(&format!("{directory}/{prefix}_{number:04}.tif"), stack.width, page);
        }
    }

    /// One file of several pages.
    pub fn write_single(&self, file: &str, stack: &Pages) {
        let indices: Vec<usize> = (0..stack.pages.len()).collect();
        let height = stack.pages[0].len() / stack.width;
        let target = Target::single(self.path(file));
        let writer =
            SliceWriter::create(target, stack.width, height, F32, &indices, AllowedContents::Nothing, "test").unwrap();
        for (index, page) in stack.pages.iter().enumerate() {
            writer.write(index, page).unwrap();
        }
        writer.finish().unwrap();
    }

    /// A file, a directory or a glob, as stored.
    pub fn read(&self, name: &str) -> Pages {
        let stack = Stack::open(self.path(name).to_str().unwrap(), name).unwrap();
        let (width, height) = (stack.width(), stack.height());
        let page = |index: usize| {
            let mut values = vec![0f32; width * height];
            stack.read_rows(index, 0..height, &mut values).unwrap();
            values
        };
        Pages { width, pages: (0..stack.len()).map(page).collect() }
    }

    /// Names of all files below a directory that are neither hidden nor the record of a run, sorted.
    pub fn files(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = list(&self.path(directory))
            .iter()
            .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.') && !name.ends_with("-run.toml"))
            .collect();
        names.sort();
        names
    }

    /// Names and bytes of all files below a directory.
    pub fn bytes(&self, directory: &str) -> Vec<(String, Vec<u8>)> {
        let at = |name: String| {
            let bytes = fs::read(self.path(directory).join(&name)).unwrap();
            (name, bytes)
        };
        self.files(directory).into_iter().map(at).collect()
    }

    /// The program with arguments that blanks separate; no profile of the user is seen, and nothing is remembered from
    /// before.
    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::cargo_bin("fbp").unwrap();
        command
            .args(args.split_whitespace())
            .current_dir(self.0.path())
            .env("XDG_CONFIG_HOME", self.path("no-configuration"))
            .env("FBP_CACHE_DIR", self.path("cache"))
            // most tests run a program once
            .env("FBP_TEST_UNSTORED", "1")
            .env_remove("FBP_PROFILE_PATH")
            .env_remove("FBP_TEST_FAULT")
            // the tests may run in a job of Slurm themselves
            .env_remove("SLURM_ARRAY_TASK_ID")
            .env_remove("SLURM_PROCID")
            .env_remove("SLURM_JOB_ID")
            .timeout(Duration::from_secs(120));
        command
    }

    pub fn run(&self, args: &str) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs to exit code 0; standard output and error.
    pub fn ok(&self, args: &str) -> (String, String) {
        let output = self.run(args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "fbp {args}\n{err}");
        assert_no_panic(&err, args);
        (out, err)
    }

    /// `fbp reconstruct`, quietly, into `output`; the slices as stored.
    pub fn slices(&self, args: &str, output: &str) -> Pages {
        self.ok(&format!("reconstruct -q {args} --output {output}"));
        self.read(&output.replace("%03i", "*"))
    }

    /// Runs to a failure: exit code, one clear message with all of `words`, and nothing left of the output.
    pub fn fails(&self, args: &str, code: i32, words: &[&str]) -> String {
        self.check_failure(&self.run(args), args, code, words)
    }

    /// [`Lab::fails`] of a run that is over.
    pub fn check_failure(&self, output: &Output, args: &str, code: i32, words: &[&str]) -> String {
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{}, fbp {args}\n{err}", output.status);
        assert_no_panic(&err, args);
        let heads = err.lines().filter(|l| l.starts_with("fbp: ") || l.starts_with("error: ")).count();
        assert_eq!(heads, 1, "not one message: fbp {args}\n{err}");
        for word in words {
            assert!(err.contains(word), "`{word}` is not in the message of fbp {args}\n{err}");
        }
        assert_eq!(out, "", "results of a failed run: fbp {args}");
        self.assert_no_output(args);
        err
    }

    /// Nothing named `out*` is there, but for empty directories.
    pub fn assert_no_output(&self, args: &str) {
        for entry in fs::read_dir(self.0.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with("out") {
                let left = list(&path);
                assert!(path.is_dir() && left.is_empty(), "left by fbp {args}: {path:?} {left:?}");
            }
        }
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All files below a directory, hidden ones, too.
fn list(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(list(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// Neither a panic nor a backtrace nor a complaint of a library.
pub fn assert_no_panic(err: &str, args: &str) {
    for word in ["panicked", "stack backtrace", "RUST_BACKTRACE", "unwrap()", "resources not freed"] {
        assert!(!err.contains(word), "fbp {args}\n{err}");
    }
}

/// Largest difference relative to the largest value of the reference; infinite for NaN.
pub fn difference(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let largest = b.iter().fold(0f64, |m, &v| m.max(f64::from(v).abs()));
    let far = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).abs());
    far.fold(0f64, |m, d| if d.is_nan() { f64::INFINITY } else { m.max(d) }) / largest.max(1e-30)
}

/// [`difference`] of stacks of one shape, page by page: the largest.
pub fn farthest(a: &Pages, b: &Pages) -> f64 {
    assert_eq!((a.width, a.pages.len()), (b.width, b.pages.len()));
    a.pages.iter().zip(&b.pages).map(|(a, b)| difference(a, b)).fold(0.0, f64::max)
}

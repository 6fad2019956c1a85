//! The runs of a batch: the flags of each scan, and checks before the first one begins.

use super::errors::{BatchFlagError, BatchOutputError, ScanTableError};
use super::scans::{ListedScan, SCAN_NAME, check_name, is_hdf5, listed};
use super::table::{self, ScanRow};
use crate::cli::{BatchArgs, ReconstructArgs};
use crate::digest::PartsDigest;
use crate::error::{Error, Result};
use crate::files::excerpt;
use crate::job::Job;
use crate::recipe::{given, merge, put_over};
use crate::report::{Messages, ProgressKind};
use crate::shard::Shard;
use crate::sink::Target;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use toml::{Table, Value};

/// Flags that name the input of one scan.
const INPUTS: [&str; 4] = ["hdf5", "projections", "sinograms", "raw"];

/// Flags in which the name of a scan may stand: those of files that are written, each of which must be another one for
/// every scan, and the others.
const WRITTEN: [&str; 5] = ["output", "report", "preview", "histogram", "sections"];
const NAMED: [&str; 9] =
    ["log", "flats", "flats2", "darks", "angles", "center-shifts", "weights", "distortion", "beam-current"];

/// Flags without an effect on the slices, with which a scan remains the same.
const OF_A_JOB: [&str; 8] =
    ["resume", "overwrite", "strict", "progress", "log", "memory", "device-memory", "save-config"];

/// The run of one scan.
pub(super) struct ScanRun {
    pub name: String,
    pub input: String,
    pub flags: ReconstructArgs,
    /// Place of its slices; `None` only with `--dry-run`.
    pub target: Option<Target>,
    /// The page that `--report` asks for.
    pub page: Option<PathBuf>,
    /// Digest of the flags that decide the slices.
    pub key: String,
}

/// All runs of a batch.
pub(super) struct BatchRuns {
    /// The runs of this job, in their order.
    pub runs: Vec<ScanRun>,
    /// Number of scans of all jobs.
    pub all: usize,
    pub shard: Option<Shard>,
    /// Directory that all outputs share.
    pub directory: PathBuf,
    pub resume: bool,
    pub retry_failed: bool,
    pub overwrite: bool,
    pub dry_run: bool,
    pub messages: Messages,
}

impl BatchRuns {
    /// Finds the scans, and checks the flags of each as far as that is possible without its data.
    ///
    /// # Errors
    /// [`Error::Usage`] for flags that cannot be, [`Error::Input`] for scans that are not there.
    pub fn new(args: BatchArgs, cancelled: &AtomicBool) -> Result<BatchRuns> {
        refuse_inputs(&args.run)?;
        let scans = listed(&args.scans)?;
        let rows = args.table.as_deref().map(|path| table::read(path, cancelled)).transpose()?.unwrap_or_default();
        let scans = with_rows(scans, &rows)?;
        let merged = merge(args.run, cancelled)?;
        let layout = args.layout.map(|layout| layout.to_string());
        let mut common = given(&merged)?;
        let from_file = ["sinograms", "projections"].into_iter().find(|key| common.contains_key(*key));
        let layout = layout.as_deref().or(from_file).unwrap_or("projections").to_owned();
        INPUTS.iter().for_each(|key| drop(common.remove(*key)));
        let shard = merged.shard.as_ref().map(|text| Shard::parse(&text.0, |name| std::env::var(name).ok()));
        common.remove("shard");
        if !merged.overwrite {
            // not every output can be resumed; each attempt decides
            common.remove("resume");
        }
        let output = merged.output.clone().unwrap_or_default();
        if output.is_empty() && !merged.dry_run {
            return Err(BatchFlagError::NoOutput.into());
        }
        let mut written = WrittenFiles::default();
        let runs = scans.iter().map(|scan| {
            let row = rows.iter().find(|row| row.name == scan.name);
            let mut flags = common.clone();
            let key = if is_hdf5(&scan.input) { "hdf5" } else { &layout };
            if !scan.input.is_empty() {
                put_over(&mut flags, Table::from_iter([(key.to_owned(), Value::String(scan.input.clone()))]));
            }
            put_over(&mut flags, row.map(|row| row.flags.clone()).unwrap_or_default());
            put_name(&mut flags, &scan.name);
            written.add(&flags, &scan.name)?;
            let run = ScanRun::new(scan, flags, &merged);
            let place = row.map_or_else(|| format!("scan {}", scan.name), |row| row.place.clone());
            run.map_err(|error| match error {
                Error::Usage(error) => BatchFlagError::OfScan { place, error }.into(),
                error => error,
            })
        });
        let runs: Vec<ScanRun> = runs.collect::<Result<_>>()?;
        let (all, shard) = (runs.len(), shard.transpose()?);
        let is_ours = |place: usize| shard.is_none_or(|Shard { index, count }| place % count == index);
        let ours = runs.into_iter().enumerate().filter(|(place, _)| is_ours(*place));
        Ok(BatchRuns {
            runs: ours.map(|(_, run)| run).collect(),
            all,
            shard,
            directory: shared_directory(&output),
            resume: merged.resume || args.retry_failed,
            retry_failed: args.retry_failed,
            overwrite: merged.overwrite,
            dry_run: merged.dry_run,
            messages: Messages {
                verbosity: Messages::verbosity(merged.verbose, merged.quiet),
                progress: match merged.progress {
                    Some(ProgressKind::Json) => ProgressKind::Json,
                    _ => ProgressKind::None,
                },
                log: None,
                strict: false,
            },
        })
    }
}

impl ScanRun {
    fn new(scan: &ListedScan, flags: Table, merged: &ReconstructArgs) -> Result<ScanRun> {
        let mut identity = flags.clone();
        OF_A_JOB.iter().chain(&WRITTEN[1..]).for_each(|key| drop(identity.remove(*key)));
        let key = PartsDigest::of(identity.iter().map(|(key, value)| format!("{key} = {value}"))).to_string();
        let flags = ReconstructArgs::deserialize(flags)
            .map_err(|e| BatchFlagError::Unreadable { error: e.message().into() })?;
        let flags = ReconstructArgs {
            config: merged.config.clone(),
            dry_run: merged.dry_run,
            verbose: merged.verbose,
            quiet: merged.quiet,
            ..flags
        };
        let job = Job::new(&flags)?;
        let page = job.execution.page.clone();
        let data = job.execution.files.stacks.data.clone();
        let input = if scan.input.is_empty() { data } else { scan.input.clone() };
        Ok(ScanRun { name: scan.name.clone(), input, target: job.execution.output, page, key, flags })
    }
}

/// Refuses flags that name one scan, or a file for one run.
fn refuse_inputs(flags: &ReconstructArgs) -> Result<()> {
    let input = &flags.input;
    let given = [&input.hdf5, &input.projections, &input.sinograms, &input.raw];
    if let Some((flag, value)) = INPUTS.into_iter().zip(given).find_map(|(flag, value)| Some((flag, value.as_ref()?))) {
        return Err(BatchFlagError::NamesOneScan { flag, value: excerpt(value).into() }.into());
    }
    if !input.parts().is_empty() {
        let flag = if input.stack.is_empty() { "side-by-side" } else { "stack" };
        return Err(BatchFlagError::Parts { flag }.into());
    }
    if flags.save_config.is_some() {
        return Err(BatchFlagError::SaveConfig.into());
    }
    Ok(())
}

/// Adds scans whose input is in their row, and checks that every row belongs to a scan and every name to one scan.
fn with_rows(mut scans: Vec<ListedScan>, rows: &[ScanRow]) -> Result<Vec<ListedScan>> {
    let mut inputs: HashMap<String, String> = HashMap::new();
    for scan in &scans {
        if let Some(first) = inputs.insert(scan.name.clone(), scan.input.clone()) {
            let (second, name) = (scan.input.clone(), scan.name.clone());
            return Err(BatchFlagError::SameName { first, second, name }.into());
        }
    }
    for row in rows {
        let (place, name) = (row.place.clone(), excerpt(&row.name).into());
        let has_input = INPUTS.iter().any(|key| row.flags.contains_key(*key));
        match (inputs.contains_key(&row.name), has_input) {
            (true, false) => {}
            (false, true) => scans.push(ListedScan { name: row.name.clone(), input: String::new() }),
            (true, true) => return Err(ScanTableError::AlsoGiven { place, name }.into()),
            (false, false) => return Err(ScanTableError::NoInput { place, name }.into()),
        }
    }
    if scans.is_empty() {
        return Err(BatchFlagError::NoScan.into());
    }
    scans.iter().try_for_each(|scan| check_name(&scan.name, &scan.input))?;
    Ok(scans)
}

/// Puts the name of a scan in its place in the values of flags.
fn put_name(flags: &mut Table, name: &str) {
    for key in WRITTEN.iter().chain(&NAMED) {
        // in an output, a percent sign may be the number of a slice
        let name = if *key == "output" { name.replace('%', "%%") } else { name.to_owned() };
        let replace = |value: &mut Value| {
            if let Value::String(text) = value {
                *text = text.replace(SCAN_NAME, &name);
            }
        };
        match flags.get_mut(*key) {
            Some(Value::Array(values)) => values.iter_mut().for_each(replace),
            Some(value) => replace(value),
            None => {}
        }
    }
}

/// The scan that writes each file.
#[derive(Default)]
struct WrittenFiles(HashMap<String, String>);

impl WrittenFiles {
    /// Adds the files of a scan.
    fn add(&mut self, flags: &Table, scan: &str) -> Result<()> {
        for flag in WRITTEN {
            let values = match flags.get(flag) {
                Some(Value::Array(values)) => values.as_slice(),
                Some(value) => std::slice::from_ref(value),
                None => &[],
            };
            for value in values.iter().filter_map(Value::as_str) {
                let path = value.trim_end_matches('/');
                if let Some(first) = self.0.insert(path.to_owned(), scan.to_owned()) {
                    let ending = Path::new(path).extension().map(|e| format!(".{}", e.to_string_lossy()));
                    let (path, ending) = (excerpt(path).into(), ending.unwrap_or_default());
                    return Err(BatchFlagError::WrittenTwice { flag, path, first, second: scan.into(), ending }.into());
                }
            }
        }
        Ok(())
    }
}

/// Returns the directory that the outputs of all scans share: the part of `--output` before the name of the scan.
fn shared_directory(output: &str) -> PathBuf {
    let before = match output.split_once(SCAN_NAME) {
        Some((before, _)) => before.rsplit_once('/').map(|(directory, _)| (directory, before)),
        None => output.trim_end_matches('/').rsplit_once('/').map(|(directory, _)| (directory, output)),
    };
    match before {
        None => PathBuf::from("."),
        Some(("", whole)) if whole.starts_with('/') => PathBuf::from("/"),
        Some((directory, _)) => PathBuf::from(directory),
    }
}

/// Makes the directory that all outputs share.
///
/// # Errors
/// [`Error::Output`] when it cannot be made.
pub(super) fn make_directory(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|error| Error::output(directory, BatchOutputError::NoDirectory { error }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command, parse};
    use std::fs;

    fn runs(folder: &Path, line: &str) -> std::result::Result<BatchRuns, (u8, String)> {
        let line = line.replace('@', &format!("{}/", folder.display()));
        let words = ["fbp", "batch"].into_iter().chain(line.split_whitespace()).map(Into::into);
        let Ok(Cli { command: Command::Batch(args) }) = parse(words) else { panic!("{line}") };
        BatchRuns::new(*args, &AtomicBool::new(false)).map_err(|e| (e.exit_code(), e.to_string()))
    }

    fn night() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.h5", "b.h5", "c%2.h5"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        for name in ["t1", "t2", "x"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("x/a.h5"), "").unwrap();
        fs::write(folder.path().join("s.toml"), "sinograms = \"old\"\ncenter = 3\n").unwrap();
        fs::write(folder.path().join("t.csv"), "name,center,output\nb,7,@o/b.zarr\n".replace('@', "")).unwrap();
        folder
    }

    #[test]
    fn every_scan_has_its_flags() {
        let night = night();
        let found =
            runs(night.path(), "@*.h5 @t1 --config @s.toml --scans @t.csv --angles @{name}/f -o @rec/{name}").unwrap();
        let names: Vec<&str> = found.runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c%2", "t1"]);
        assert_eq!((found.directory, found.all), (night.path().join("rec"), 4));
        let of = |name: &str| found.runs.iter().find(|run| run.name == name).unwrap();
        let at = |name: &str| Some(night.path().join(name).display().to_string());
        let input = &of("a").flags.input;
        assert_eq!((&input.hdf5, &input.sinograms), (&at("a.h5"), &None));
        assert_eq!(of("a").flags.scan.angles, Some(night.path().join("a/f")));
        // the run file says what a directory has
        assert_eq!((&of("t1").flags.input.sinograms, &of("t1").flags.input.hdf5), (&at("t1"), &None));
        assert_eq!((&of("a").flags.center, &of("b").flags.center), (&Some("3".into()), &Some("7".into())));
        assert_eq!(of("b").flags.output.as_deref(), Some("o/b.zarr"));
        // a percent sign of a name is no pattern
        let target = of("c%2").target.as_ref().unwrap();
        assert_eq!(target.path_of(0), night.path().join("rec/c%2/slice_00000.tif"));
        let found = runs(night.path(), "@t1 --as projections --config @s.toml -o {name}.h5").unwrap();
        assert!(found.runs[0].flags.input.projections == at("t1") && found.directory == Path::new("."));
    }

    #[test]
    fn what_does_not_decide_slices_is_not_in_the_key() {
        let night = night();
        let key = |line: &str| runs(night.path(), line).unwrap().runs[0].key.clone();
        let plain = key("@a.h5 -o r/{name}");
        for flags in ["--resume", "--memory 1G", "--log l", "--report r/{name}.html", "-v", "--strict"] {
            assert_eq!(key(&format!("@a.h5 -o r/{{name}} {flags}")), plain, "{flags}");
        }
        for flags in ["--center 3", "--dtype f16", "--device cpu"] {
            assert_ne!(key(&format!("@a.h5 -o r/{{name}} {flags}")), plain, "{flags}");
        }
        assert_ne!(key("@a.h5 -o q/{name}"), plain);
    }

    #[test]
    fn mistakes_are_found_before_anything_runs() {
        let night = night();
        fs::write(night.path().join("rows.csv"), "name,rows\na,5..2\n").unwrap();
        fs::write(night.path().join("new.csv"), "name,center\nz,5\n").unwrap();
        fs::write(night.path().join("own.csv"), "name,hdf5\na,b.h5\n").unwrap();
        for (line, words) in [
            ("@a.h5 @x/a.h5 -o r/{name}", &["x/a.h5", "name a"][..]),
            ("@a.h5 @b.h5 -o r", &["--output", "for a and for b", "'rec/{name}'"]),
            ("@a.h5 @b.h5 -o r/{name} --report p.html", &["--report", "'rec/{name}.html'"]),
            ("@a.h5 @b.h5 -o r/{name} --sections p.png", &["--sections"]),
            ("@a.h5", &["--output: missing"]),
            ("@a.h5 -o r/{name} --hdf5 b.h5", &["--hdf5: names one scan"]),
            ("@a.h5 -o r/{name} --save-config c.toml", &["--save-config"]),
            ("@a.h5 -o r/{name} --scans @rows.csv", &["rows.csv, line 2", "--rows"]),
            ("@a.h5 -o r/{name} --scans @new.csv", &["new.csv, line 2", "no scan has the name z"]),
            ("@a.h5 -o r/{name} --scans @own.csv", &["own.csv, line 2", "also among"]),
            ("@a.h5 -o r/{name} --rows 5..2", &["scan a", "--rows"]),
            ("@a.h5 -o r/{name} --shard 2/2", &["--shard"]),
            ("@a.h5 -o r/{name} --shard 0/2 --resume --overwrite", &["--resume", "--overwrite"]),
        ] {
            let (code, text) = runs(night.path(), line).err().unwrap_or_else(|| panic!("{line} is taken"));
            assert!(code == 2 && words.iter().all(|word| text.contains(word)), "{line}: {text}");
        }
        assert_eq!(runs(night.path(), "@gone.h5 -o r/{name}").err().unwrap().0, 3);
    }

    #[test]
    fn a_table_may_name_the_scans() {
        let night = night();
        fs::write(night.path().join("own.csv"), "name,hdf5,center\nfirst,/x/a.h5,3\nsecond,/y/a.h5,auto\n").unwrap();
        let found = runs(night.path(), "--scans @own.csv -o r/{name} --center 9").unwrap();
        let inputs: Vec<&str> = found.runs.iter().map(|run| run.input.as_str()).collect();
        assert_eq!((found.runs[0].name.as_str(), inputs), ("first", vec!["/x/a.h5", "/y/a.h5"]));
    }

    #[test]
    fn shards_deal_every_scan_once() {
        let night = night();
        for count in 1..6 {
            let of =
                |index| runs(night.path(), &format!("@*.h5 @t1 @t2 -o r/{{name}} --shard {index}/{count}")).unwrap();
            let mut names: Vec<String> =
                (0..count).flat_map(|index| of(index).runs.into_iter().map(|run| run.name)).collect();
            names.sort();
            assert_eq!(names, ["a", "b", "c%2", "t1", "t2"], "{count}");
        }
    }

    #[test]
    fn outputs_share_a_directory() {
        for (output, directory) in [
            ("rec/{name}", "rec"),
            ("rec/{name}/s_%05i.tif", "rec"),
            ("a/b-{name}.h5", "a"),
            ("{name}", "."),
            ("/{name}", "/"),
            ("/data/{name}.zarr", "/data"),
            ("rec", "."),
            ("rec/one/", "rec"),
        ] {
            assert_eq!(shared_directory(output), Path::new(directory), "{output}");
        }
    }
}

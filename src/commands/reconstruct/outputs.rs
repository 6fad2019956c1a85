//! Checks that the files that a run writes do not conflict with others.

use super::overview::{picture_of, section_files};
use crate::engine::Source;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::sink::Target;
use crate::visible::Shown;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Checks every file that a job writes beside its slices, when the directories of these are there.
///
/// # Errors
/// [`Error::Output`] when its directory is missing, or when it is the input, a slice or another of these files.
pub(super) fn check_files(job: &Job, source: &Source, target: &Target) -> Result<()> {
    let mut files: Vec<(&str, PathBuf)> = Vec::new();
    for (path, flag) in [(&job.execution.report, "--report"), (&job.execution.preview, "--preview")] {
        files.extend(path.iter().map(|path| (flag, path.clone())));
    }
    let others = files.len();
    if let Some(path) = &job.execution.histogram {
        files.extend([path.clone(), picture_of(path)].map(|file| ("--histogram", file)));
    }
    if let Some(path) = &job.execution.sections {
        files.push(("--sections", path.clone()));
        files.extend(section_files(path).map(|file| ("--sections", file)));
    }
    for (flag, path) in &files {
        let parent = directory(path);
        if !parent.is_dir() {
            return Err(Error::output(
                path,
                format!("{flag}: there is no directory {}; make it, or choose another path", parent.shown()),
            ));
        }
    }
    if files.len() == others {
        return Ok(());
    }
    let inputs: HashSet<_> = inputs(job, source).filter_map(|path| path.canonicalize().ok()).collect();
    let slices: HashSet<_> = source.scan.run_slices.iter().map(|&slice| place(&target.path_of(slice))).collect();
    let record = place(&target.record());
    let mut seen = HashSet::new();
    for (number, (flag, path)) in files.iter().enumerate() {
        let file = place(path);
        let wrong = |why: &str| Err(Error::output(path, format!("{flag}: {why}; choose another file")));
        let first = seen.insert(file.clone());
        if number < others {
            continue;
        }
        if path.is_dir() {
            return wrong("is a directory");
        }
        if inputs.contains(&file) {
            return wrong("is a file of the input");
        }
        if slices.contains(&file) || file == record {
            return wrong("is a file of --output");
        }
        if !first {
            return wrong("is also written for another flag");
        }
        let is_tiff = path.extension().is_some_and(|extension| extension == "tif");
        if is_tiff && inputs.contains(directory(&file)) {
            return wrong("would be read as a page of the input");
        }
        if is_tiff
            && target.fills_directory()
            && target.directory().canonicalize().is_ok_and(|output| output == directory(&file))
        {
            return wrong("would be taken for a slice in the directory of --output");
        }
    }
    Ok(())
}

/// Files and directories of the input.
pub(super) fn inputs<'a>(job: &'a Job, source: &'a Source) -> impl Iterator<Item = &'a Path> {
    job.execution.files.all().chain(source.files.iter().map(PathBuf::as_path))
}

/// The directory that a file is in.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The same for all names of a file, be it there or not.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().ok().unwrap_or_else(|| {
        let parent = directory(path).canonicalize().unwrap_or_else(|_| directory(path).to_owned());
        parent.join(path.file_name().unwrap_or_default())
    })
}

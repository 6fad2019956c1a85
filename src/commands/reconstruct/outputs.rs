//! The files that a run writes beside its slices, and checks that they do not conflict with others.

use super::errors::SideFileError;
use crate::engine::Source;
use crate::error::{Error, Result};
use crate::execution::Existing;
use crate::files::{InputSet, OutputFile, OutputKind, directory};
use crate::job::Job;
use crate::sink::Target;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The files beside slices that a job was asked for.
pub(super) struct SideFiles {
    pub preview: Option<OutputFile>,
    /// JSON, and its picture.
    pub histogram: Option<[OutputFile; 2]>,
    pub sections: Option<SectionFiles>,
    /// JSON.
    pub report: Option<OutputFile>,
    pub page: Option<OutputFile>,
}

/// The picture of three sections, and their values.
pub(super) struct SectionFiles {
    pub picture: OutputFile,
    pub values: [OutputFile; 3],
}

impl SideFiles {
    /// Checks every file that a job writes beside its slices, when the directories of these are there.
    ///
    /// # Errors
    /// [`Error::Output`] if its directory is missing, or when it is of the input, a slice or another of these files, or
    /// was not written by this program; [`Error::Usage`] for the ending of another kind.
    pub fn check(job: &Job, source: &Source, target: &Target) -> Result<SideFiles> {
        let (execution, inputs) = (&job.execution, input_set(job, source));
        let overwrite = Some(execution.existing == Existing::Overwrite);
        let file = |flag: &str, path: &Path, kind| OutputFile::new(flag, path, kind, &inputs, overwrite);
        let one = |flag: &str, path: &Option<PathBuf>, kind| path.as_deref().map(|p| file(flag, p, kind)).transpose();
        let pair = |path: &PathBuf| {
            Ok::<_, Error>([
                file("--histogram", path, OutputKind::Json)?,
                file("--histogram", &picture_of(path), OutputKind::Png)?,
            ])
        };
        let sections = |path: &PathBuf| {
            let picture = file("--sections", path, OutputKind::Png)?;
            let [xy, xz, yz] = section_files(path).map(|path| file("--sections", &path, OutputKind::Tiff));
            Ok::<_, Error>(SectionFiles { picture, values: [xy?, xz?, yz?] })
        };
        let files = SideFiles {
            preview: one("--preview", &execution.preview, OutputKind::Png)?,
            histogram: execution.histogram.as_ref().map(pair).transpose()?,
            sections: execution.sections.as_ref().map(sections).transpose()?,
            report: one("--report", &execution.report, OutputKind::Json)?,
            page: one("--report", &execution.page, OutputKind::Html)?,
        };
        files.check_places(source, target, &inputs)?;
        Ok(files)
    }

    fn all(&self) -> impl Iterator<Item = &OutputFile> {
        let sections = self.sections.iter().flat_map(|s| s.values.iter().chain([&s.picture]));
        let first = self.report.iter().chain(&self.page).chain(&self.preview);
        first.chain(self.histogram.iter().flatten()).chain(sections)
    }

    /// Refuses files that would be taken for others, or written twice.
    fn check_places(&self, source: &Source, target: &Target, inputs: &InputSet) -> Result<()> {
        let slices: HashSet<_> = source.scan.run_slices.iter().map(|&slice| place(&target.path_of(slice))).collect();
        let record = place(&target.record());
        let mut seen = HashSet::new();
        for file in self.all() {
            let (path, at, flag) = (file.path(), place(file.path()), file.flag().to_owned());
            let wrong = |error: SideFileError| Err(Error::output(path, error));
            if slices.contains(&at) || at == record {
                return wrong(SideFileError::OfOutput { flag });
            }
            if !seen.insert(at.clone()) {
                return wrong(SideFileError::WrittenTwice { flag });
            }
            let is_tiff = OutputKind::Tiff.has(path);
            if is_tiff && inputs.contain(directory(&at)) {
                return wrong(SideFileError::InInput { flag });
            }
            let of_slices = || target.directory().canonicalize().is_ok_and(|output| output == directory(&at));
            if is_tiff && target.fills_directory() && of_slices() {
                return wrong(SideFileError::LikeSlice { flag });
            }
        }
        Ok(())
    }
}

/// The files and directories of the input.
pub(super) fn input_set(job: &Job, source: &Source) -> InputSet {
    InputSet::new(inputs(job, source))
}

/// Returns the files and directories of the input.
pub(super) fn inputs<'a>(job: &'a Job, source: &'a Source) -> impl Iterator<Item = &'a Path> {
    job.execution.files.all().chain(source.files.iter().map(PathBuf::as_path))
}

/// Returns a path that is the same for all names of a file, whether it exists or not.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().ok().unwrap_or_else(|| {
        let parent = directory(path).canonicalize().unwrap_or_else(|_| directory(path).to_owned());
        parent.join(path.file_name().unwrap_or_default())
    })
}

/// The picture of a histogram, beside it.
fn picture_of(histogram: &Path) -> PathBuf {
    histogram.with_extension("png")
}

/// The three sections as TIFF, beside their picture.
fn section_files(picture: &Path) -> [PathBuf; 3] {
    ["-xy.tif", "-xz.tif", "-yz.tif"].map(|end| {
        let mut name = picture.file_stem().unwrap_or_default().to_owned();
        name.push(end);
        picture.with_file_name(name)
    })
}

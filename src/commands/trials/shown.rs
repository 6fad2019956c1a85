//! Trial slices, as files with a montage, or in a page.

use super::errors::{TrialFlagError, TrialOutputError};
use super::part::ShownPart;
use super::set::TrialSet;
use crate::axis::{sample_of, sample_rows};
use crate::center::{Method, TrialScores};
use crate::commands::reconstruct::scan_name;
use crate::commands::survey::survey_json;
use crate::device::keep_devices;
use crate::engine::{RowSlice, RowWork, Source, row_slices};
use crate::error::{Error, Result};
use crate::files::{InputSet, OutputFile, OutputKind};
use crate::html::{IMAGE_BYTES, PackedImage, TRIALS, write_page};
use crate::job::Job;
use crate::picture::{Panel, write_montage};
use crate::report::Reporter;
use crate::sink::{Dtype, Encoding, OutputLock, Target, write_image};
use crate::visible::Shown;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

/// Side in pixels of the part that a montage shows, and the largest that a page does unless it is asked for more.
const TILE: usize = 256;
const PAGE_TILE: usize = 512;

/// The picture of all slices in a directory.
const MONTAGE: &str = "montage.png";

/// Where trial slices go.
pub(super) struct TrialOutput<'a> {
    /// FILE.html for a page, or a directory.
    pub path: &'a Path,
    pub overwrite: bool,
    /// Side in pixels of the part that is shown, if it was asked for.
    pub tile: Option<usize>,
    pub inputs: InputSet,
}

impl TrialOutput<'_> {
    fn is_page(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "html")
    }

    fn file(&self, path: &Path, kind: OutputKind) -> Result<OutputFile> {
        OutputFile::new("--output", path, kind, &self.inputs, None)
    }

    fn montage(&self) -> Result<OutputFile> {
        self.file(&self.path.join(MONTAGE), OutputKind::Png)
    }

    /// Refuses to replace what is there, unless that was asked for, before the first slice is computed.
    fn check(&self, set: &TrialSet) -> Result<()> {
        if self.inputs.contain(self.path) {
            return Err(Error::output(self.path, TrialOutputError::IsInput));
        }
        let filled = std::fs::read_dir(self.path).into_iter().flatten().next().is_some();
        match (self.is_page(), self.overwrite) {
            (true, false) if self.path.exists() => return Err(Error::output(self.path, TrialOutputError::Exists)),
            (false, false) if filled => return Err(Error::output(self.path, TrialOutputError::NotEmpty)),
            _ => {}
        }
        if !self.is_page() && self.path.is_dir() {
            set.trials.iter().try_for_each(|trial| self.slice(&trial.stem).map(drop))?;
            self.montage()?;
        }
        Ok(())
    }

    fn slice(&self, stem: &str) -> Result<OutputFile> {
        self.file(&self.path.join(format!("{stem}.tif")), OutputKind::Tiff)
    }
}

/// Writes trial slices of the middle row: whole as files in a directory, with a montage of the same part of all, or this
/// part alone in a page. Returns a line about them.
///
/// # Errors
/// Errors of runs and of outputs.
pub(super) fn write_trials(
    set: &TrialSet,
    source: &Source,
    output: &TrialOutput,
    reporter: &Reporter,
) -> Result<String> {
    output.check(set)?;
    // all slices are computed by programs of one context
    keep_devices();
    let page = if output.is_page() { Some(output.file(output.path, OutputKind::Html)?) } else { None };
    let side = side(output.tile, page.is_some(), set)?;
    let target = Target::directory_of(output.path, "trial_");
    let mut lock = None;
    let shown = ShownTrials::of(set, source, side, reporter, |number, slice| {
        if page.is_some() {
            return Ok(());
        }
        // the directory is made when there is something to write: a refused run leaves nothing behind
        if lock.is_none() {
            lock = Some(OutputLock::alone(&target)?);
        }
        let encoding = Encoding { dtype: Dtype::F32, range: None };
        let width = set.jobs[number].recipe.slice.roi.map_or(slice.size, |roi| roi.width);
        let size = (width, slice.values.len() / width.max(1));
        write_image(&output.slice(&set.trials[number].stem)?, size, &slice.values, encoding)
    })?;
    match &page {
        Some(file) => shown.write_page(file, reporter)?,
        None => shown.write_montage(&output.montage()?)?,
    }
    let part = shown.part.map(|part| format!("; {} shows {part}", if page.is_some() { "the page" } else { MONTAGE }));
    let (count, row, what, part) = (set.trials.len(), shown.row, set.described(), part.unwrap_or_default());
    Ok(format!("{count} slices of row {row}, {what}, in {}{part}\n", output.path.shown()))
}

/// Returns the side in pixels of the part that is shown of each slice, unless a region is.
///
/// # Errors
/// [`Error::Usage`] if it does not fit into a page.
pub(super) fn side(asked: Option<usize>, page: bool, set: &TrialSet) -> Result<usize> {
    let count = set.trials.len();
    let most = IMAGE_BYTES / (2 * count.max(1));
    if let Some(roi) = set.jobs.first().and_then(|job| job.recipe.slice.roi) {
        return match asked {
            Some(_) => Err(TrialFlagError::TileOfRegion.into()),
            None if page && roi.pixels() > most => {
                Err(TrialFlagError::RegionTooLarge { count, width: roi.width, height: roi.height, most }.into())
            }
            None => Ok(roi.width),
        };
    }
    if !page {
        return Ok(asked.unwrap_or(TILE));
    }
    let most = (most as f64).sqrt() as usize;
    match asked {
        Some(side) if side > most => Err(TrialFlagError::TileTooLarge { count, side, most }.into()),
        asked => Ok(asked.unwrap_or(most.min(PAGE_TILE))),
    }
}

/// The part of each trial slice that is shown.
pub(super) struct ShownTrials<'a> {
    set: &'a TrialSet,
    source: &'a Source,
    row: usize,
    part: Option<ShownPart>,
    /// Values `[y][x]` of the part of every trial.
    tiles: Vec<Vec<f32>>,
}

impl<'a> ShownTrials<'a> {
    /// Computes the middle row of all trials; each slice is handed out as a whole, too.
    ///
    /// # Errors
    /// Errors of runs, and those of `whole`.
    pub fn of(
        set: &'a TrialSet,
        source: &'a Source,
        side: usize,
        reporter: &Reporter,
        mut whole: impl FnMut(usize, &RowSlice) -> Result<()>,
    ) -> Result<ShownTrials<'a>> {
        for (number, job) in set.jobs.iter().enumerate() {
            source.check(job).map_err(|error| set.in_trial(number, error))?;
        }
        let row = source.scan.run_slices.get(source.scan.run_slices.len() / 2).copied().unwrap_or_default();
        let (mut part, mut tiles) = (None, vec![Vec::new(); set.jobs.len()]);
        reporter.stage("reconstructing trial slices");
        source.keep_rows(&set.jobs, row);
        // the one in the middle decides which part is shown
        let work = row_slices(&set.jobs, source, (row, set.middle()), reporter, |number, slice| {
            whole(number, &slice)?;
            let RowSlice { size, values } = slice;
            tiles[number] = match set.jobs[number].recipe.slice.roi {
                Some(roi) => {
                    part.get_or_insert_with(|| ShownPart::region(roi, size));
                    values
                }
                None => part.get_or_insert_with(|| ShownPart::busiest(&values, size, side)).of(&values, size),
            };
            Ok(())
        })?;
        reporter.clear();
        reporter.detail(&said(source, work));
        Ok(ShownTrials { set, source, row, part, tiles })
    }

    /// Writes a page with all of them; if they are about several axes, with what every method says of the axis.
    ///
    /// # Errors
    /// Errors of the search, and [`Error::Output`].
    pub fn write_page(&self, file: &OutputFile, reporter: &Reporter) -> Result<()> {
        let set = self.set;
        let Some(job) = set.jobs.first() else { return Ok(()) };
        let (mut search, mut scores) = (Value::Null, None);
        if let Some(axes) = set.axes() {
            search = survey_json(&sample_of(self.source, job, reporter)?, None);
            if let Some(methods) = search["methods"].as_array_mut() {
                // the scores of the trials are its measure
                methods.retain(|method| method["method"] != Method::Sweep.name());
            }
            scores = self.scores(job, &axes, reporter)?;
        }
        let width = self.part.map_or(1, |part| part.width);
        let images: Vec<PackedImage> = self.tiles.par_iter().map(|tile| PackedImage::new(tile, width)).collect();
        let trials = set.trials.iter().zip(images).enumerate().map(|(number, (trial, image))| {
            json!({
                "values": trial.values,
                "command": trial.command,
                "score": scores.as_ref().map(|found| found.scores[number]),
                "image": image,
            })
        });
        let varied = set.varied.iter().map(|varied| {
            let values: Vec<&str> = varied.values.iter().map(|value| value.text.as_str()).collect();
            json!({ "flag": varied.flag, "values": values })
        });
        let name = scan_name(&job.execution.files.stacks.data);
        let data = json!({
            "program": env!("CARGO_PKG_VERSION"),
            "name": name,
            "row": self.row,
            "unit": job.recipe.unit(),
            "pixel": job.recipe.slice.pixel_size.as_ref().map(|size| json!({ "size": size.value, "unit": size.unit })),
            "part": self.part,
            "varied": varied.collect::<Vec<_>>(),
            "trials": trials.collect::<Vec<_>>(),
            "score": scores.as_ref().map(|TrialScores { between, minimum, .. }| json!({
                "method": Method::Sweep.name(),
                "value": minimum.at,
                "uncertainty": minimum.uncertainty,
                "verdict": minimum.verdict.to_string(),
                "between": between,
            })),
            "search": search,
        });
        let about = if set.axes().is_some() { "rotation axis" } else { "trial slices" };
        write_page(file, &TRIALS, &format!("{name}: {about}, fbp"), &data)
    }

    /// Returns the scores of axes from the row itself; `None` where negative values tell nothing about the axis: the
    /// sample is beyond the detector at one side, or the row has none.
    fn scores(&self, job: &Job, axes: &[f64], reporter: &Reporter) -> Result<Option<TrialScores>> {
        if job.recipe.scan.extended_field || !axes.is_sorted() {
            return Ok(None);
        }
        Ok(sample_rows(self.source, job, vec![self.row], reporter)?.trial_scores(axes))
    }

    /// Writes a picture with all of them.
    fn write_montage(&self, file: &OutputFile) -> Result<()> {
        let Some(job) = self.set.jobs.first() else { return Ok(()) };
        let stems = || self.set.trials.iter().map(|trial| trial.stem.as_str());
        // the name of a single flag is the same for all
        let flag =
            self.set.varied.first().filter(|_| self.set.varied.len() == 1).map(|varied| format!("{}_", varied.flag));
        let titles: Vec<&str> =
            stems().map(|stem| stem.strip_prefix(flag.as_deref().unwrap_or("")).unwrap_or(stem)).collect();
        let (unit, width) = (job.recipe.unit(), self.part.map_or(1, |part| part.width));
        let panels: Vec<Panel> = self
            .tiles
            .iter()
            .zip(titles)
            .map(|(tile, title)| Panel {
                title,
                unit: &unit,
                pixel: None,
                width,
                height: tile.len() / width,
                data: tile,
            })
            .collect();
        write_montage(file, &panels)
    }
}

/// Returns a line about what was done for trial slices.
fn said(source: &Source, RowWork { corrections, passes }: RowWork) -> String {
    let pages = if source.rows().sinograms { 1 } else { source.scan.used.len() };
    let reads = source.stack().kept().map_or(0, |(_, reads)| reads);
    format!("{:<16}{reads} reads of {pages} pages, row corrected {corrections} times, {passes} passes", "trials")
}

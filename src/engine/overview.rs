//! What is gathered of all slices while they pass the writer: the histogram of `--histogram`, the sections of `--sections`.

use super::SOFTWARE;
use super::record::{interrupted, middle};
use super::source::{Finish, Source};
use crate::error::{Error, Result};
use crate::geometry::Roi;
use crate::histogram::{Histogram, HistogramReport, Moments};
use crate::picture::{Panel, write_histogram, write_sections};
use crate::plan::Scan;
use crate::recipe::{Input, Job};
use crate::sink::{Dtype, Encoding, Target, write_image, write_text};
use crate::source::Stack;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Rows of a slice that are counted together.
const BAND: usize = 256;

/// All slices of a job, in their physical unit, whether they are computed or kept.
pub(super) struct Overview {
    /// Numbers of the slices, ascending.
    slices: Vec<usize>,
    roi: Roi,
    /// For every row of a slice, the columns within the mask.
    inside: Vec<Range<usize>>,
    histogram: Option<Mutex<Counted>>,
    sections: Option<Mutex<Sections>>,
}

/// Values so far, and the moments of each slice, which are summed in order at the end.
struct Counted {
    histogram: Histogram,
    moments: Vec<Moments>,
}

/// Sections through the middle of the region: `[row][column]`, `[slice][column]` and `[slice][row]`.
struct Sections {
    xy: Vec<f32>,
    xz: Vec<f32>,
    yz: Vec<f32>,
}

impl Overview {
    /// Of all slices that the scan has now; nothing if nobody asks for it.
    pub fn new(job: &Job, scan: &Scan, finish: &Finish) -> Option<Overview> {
        let (roi, slices) = (scan.geometry.roi, scan.slices.clone());
        let count = slices.len();
        let counted = || Counted { histogram: Histogram::default(), moments: vec![Moments::default(); count] };
        let sections =
            || Sections { xy: Vec::new(), xz: vec![0.0; count * roi.width], yz: vec![0.0; count * roi.height] };
        (job.histogram.is_some() || job.sections.is_some()).then(|| Overview {
            slices,
            roi,
            inside: (0..roi.height).map(|y| finish.inside(scan, y)).collect(),
            histogram: job.histogram.as_ref().map(|_| Mutex::new(counted())),
            sections: job.sections.as_ref().map(|_| Mutex::new(sections())),
        })
    }

    /// Takes in a finished slice; any thread, any order.
    pub fn add(&self, slice: usize, values: &[f32]) {
        let Ok(place) = self.slices.binary_search(&slice) else { return };
        let Roi { width, height, .. } = self.roi;
        if let Some(counted) = &self.histogram {
            let bands = values.par_chunks(BAND * width).zip(self.inside.par_chunks(BAND)).map(|(rows, inside)| {
                Histogram::of(rows.chunks(width).zip(inside).map(|(row, inside)| &row[inside.clone()]))
            });
            // always the same bands in the same order: moments do not depend on threads
            let (histograms, moments): (Vec<_>, Vec<_>) = bands.collect::<Vec<_>>().into_iter().unzip();
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            histograms.iter().for_each(|histogram| counted.histogram.merge(histogram));
            counted.moments[place] = moments.into_iter().fold(Moments::default(), Moments::with);
        }
        if let Some(sections) = &self.sections {
            let mut sections = sections.lock().unwrap_or_else(PoisonError::into_inner);
            let row = &values[height / 2 * width..][..width];
            sections.xz[place * width..][..width].copy_from_slice(row);
            let column = values.iter().skip(width / 2).step_by(width);
            sections.yz[place * height..][..height].iter_mut().zip(column).for_each(|(to, value)| *to = *value);
            if slice == middle(&self.slices) {
                sections.xy = values.to_vec();
            }
        }
    }

    /// Takes in slices that have files already; integers become the values that they stand for.
    ///
    /// # Errors
    /// [`Error::Output`] when a file cannot be read, [`Error::Interrupted`] when a signal comes.
    pub fn add_kept(&self, kept: &[usize], target: &Target, encoding: Encoding, cancelled: &AtomicBool) -> Result<()> {
        let Roi { width, height, .. } = self.roi;
        kept.par_iter().try_for_each_init(Vec::new, |values, &slice| {
            if cancelled.load(Relaxed) {
                return Err(interrupted(target));
            }
            values.resize(width * height, 0f32);
            let path = target.path_of(slice);
            let stack = Stack::open(&path.to_string_lossy(), "--resume").map_err(|e| Error::Output(e.to_string()))?;
            if (stack.len(), stack.width(), stack.height()) != (1, width, height) {
                return Err(Error::output(&path, format!("--resume: was one slice of {width}x{height} just before")));
            }
            stack.read_rows(0, 0..height, values).map_err(|e| Error::Output(e.to_string()))?;
            values.iter_mut().for_each(|value| *value = encoding.value_of(*value));
            self.add(slice, values);
            Ok(())
        })
    }

    /// Writes what was asked for.
    ///
    /// # Errors
    /// [`Error::Output`] when a file cannot be written.
    pub fn write(self, job: &Job, run: &str) -> Result<()> {
        let unit = job.unit();
        if let (Some(path), Some(counted)) = (&job.histogram, self.histogram) {
            let Counted { histogram, moments } = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
            let moments = moments.into_iter().fold(Moments::default(), Moments::with);
            let told = Told { run, unit: &unit, values: &histogram.report(moments) };
            told.write(path).map_err(|e| named("--histogram", e))?;
        }
        if let (Some(path), Some(sections)) = (&job.sections, self.sections) {
            let sections = sections.into_inner().unwrap_or_else(PoisonError::into_inner);
            sections.write(path, &unit, &self.slices, self.roi).map_err(|e| named("--sections", e))?;
        }
        Ok(())
    }
}

/// The file of `--histogram`.
#[derive(Serialize)]
struct Told<'a> {
    /// Key of the run.
    run: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    values: &'a HistogramReport,
}

impl Told<'_> {
    fn write(&self, path: &Path) -> Result<()> {
        let json = serde_json::to_string_pretty(self).map_err(|e| Error::output(path, e))?;
        write_text(path, &format!("{json}\n"))?;
        write_histogram(&picture_of(path), self.values, self.unit)
    }
}

impl Sections {
    fn write(&self, path: &Path, unit: &str, slices: &[usize], roi: Roi) -> Result<()> {
        let Roi { x, y, width, height } = roi;
        let titles = [
            format!("xy, slice {}", middle(slices)),
            format!("xz, row {}", y + height / 2),
            format!("yz, column {}", x + width / 2),
        ];
        let images = [(width, height, &self.xy), (width, slices.len(), &self.xz), (height, slices.len(), &self.yz)];
        for ((width, height, data), file) in images.iter().zip(section_files(path)) {
            write_image(&file, *width, *height, data, Encoding { dtype: Dtype::F32, range: None }, SOFTWARE)?;
        }
        let panels: Vec<Panel> = titles
            .iter()
            .zip(images)
            .map(|(title, (width, height, data))| Panel { title, unit, width, height, data })
            .collect();
        write_sections(path, &panels)
    }
}

fn named(flag: &str, error: Error) -> Error {
    Error::Output(format!("{flag}: {error}"))
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

/// Checks every file that a job writes beside its slices, when the directories of these are there.
///
/// # Errors
/// [`Error::Output`] when its directory is missing, or when it is the input, a slice or another of these files.
pub(super) fn check_files(job: &Job, source: &Source, target: &Target) -> Result<()> {
    let mut files: Vec<(&str, PathBuf)> = Vec::new();
    for (path, flag) in [(&job.report, "--report"), (&job.preview, "--preview")] {
        files.extend(path.iter().map(|path| (flag, path.clone())));
    }
    let others = files.len();
    if let Some(path) = &job.histogram {
        files.extend([path.clone(), picture_of(path)].map(|file| ("--histogram", file)));
    }
    if let Some(path) = &job.sections {
        files.push(("--sections", path.clone()));
        files.extend(section_files(path).map(|file| ("--sections", file)));
    }
    for (flag, path) in &files {
        let parent = directory(path);
        if !parent.is_dir() {
            return Err(Error::output(path, format!("{flag}: there is no directory {}", parent.display())));
        }
    }
    if files.len() == others {
        return Ok(());
    }
    let inputs = inputs(job, source);
    let slices: HashSet<_> = source.scan.whole.iter().map(|&slice| place(&target.path_of(slice))).collect();
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
            return wrong("is written for another flag, too");
        }
        let is_tiff = path.extension().is_some_and(|extension| extension == "tif");
        if is_tiff && inputs.contains(directory(&file)) {
            return wrong("would be read as a page of the input");
        }
        if let (true, Target::Directory(output)) = (is_tiff, target)
            && output.canonicalize().is_ok_and(|output| output == directory(&file))
        {
            return wrong("would be taken for a slice in the directory of --output");
        }
    }
    Ok(())
}

/// Files and directories of the input.
fn inputs(job: &Job, source: &Source) -> HashSet<PathBuf> {
    let data: &Path = match &job.input {
        Input::Sinograms(path) | Input::Projections { path, .. } => path.as_ref(),
        Input::Hdf5 { input, .. } => input.file.as_ref(),
    };
    let fields = job.input.fields().map(|fields| [&fields.flats, &fields.flats2, &fields.darks]);
    let fields = fields.into_iter().flatten().flatten().map(Path::new);
    let scan = &job.resolved.scan;
    let texts = [&scan.angles, &scan.center_shifts, &job.resolved.config].into_iter().flatten().map(PathBuf::as_path);
    let all = std::iter::once(data).chain(fields).chain(texts).chain(source.stack.files().iter().map(PathBuf::as_path));
    all.filter_map(|path| path.canonicalize().ok()).collect()
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

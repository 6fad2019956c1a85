//! What is gathered of all slices while they pass the writer: the histogram of `--histogram`, the sections of `--sections`.

use super::middle;
use crate::engine::{Finish, ObservedSlice};
use crate::error::{Error, Result};
use crate::geometry::Roi;
use crate::histogram::{CountedSlice, Histogram, HistogramReport, Moments};
use crate::job::Job;
use crate::picture::{Panel, write_histogram, write_sections};
use crate::plan::Scan;
use crate::sink::SOFTWARE;
use crate::sink::{Dtype, Encoding, Target, write_image, write_text};
use rayon::prelude::*;
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Rows of a slice that a thread counts.
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
        (job.execution.histogram.is_some() || job.execution.sections.is_some()).then(|| Overview {
            slices,
            roi,
            inside: (0..roi.height).map(|y| finish.inside(scan, y)).collect(),
            histogram: job.execution.histogram.as_ref().map(|_| Mutex::new(counted())),
            sections: job.execution.sections.as_ref().map(|_| Mutex::new(sections())),
        })
    }

    /// Takes in a finished slice; any thread, any order.
    pub fn add(&self, slice: usize, seen: ObservedSlice) {
        let Ok(place) = self.slices.binary_search(&slice) else { return };
        let Roi { width, height, .. } = self.roi;
        if let Some(all) = &self.histogram {
            let counted_here = seen.values.filter(|_| seen.counted.is_none()).map(|values| self.count(values));
            if let Some(slice) = seen.counted.or(counted_here.as_ref()) {
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.histogram.merge(&slice.histogram);
                all.moments[place] = slice.moments;
            }
        }
        if let (Some(sections), Some(values)) = (&self.sections, seen.values) {
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

    /// Counts the values of a slice.
    fn count(&self, values: &[f32]) -> CountedSlice {
        let width = self.roi.width;
        let bands = values.par_chunks(BAND * width).zip(self.inside.par_chunks(BAND)).map(|(rows, inside)| {
            Histogram::of(rows.chunks(width).zip(inside).map(|(row, inside)| &row[inside.clone()]))
        });
        let (histograms, moments): (Vec<_>, Vec<_>) = bands.collect::<Vec<_>>().into_iter().unzip();
        let mut histogram = Histogram::default();
        histograms.iter().for_each(|band| histogram.merge(band));
        CountedSlice { histogram, moments: moments.into_iter().flatten().sum() }
    }

    /// Takes in slices that have files already; integers become the values that they stand for.
    ///
    /// # Errors
    /// [`Error::Output`] when a file cannot be read, [`Error::Interrupted`] when a signal comes.
    pub fn add_kept(
        &self,
        kept: &[usize],
        (target, run): (&Target, &[usize]),
        encoding: Encoding,
        cancelled: &AtomicBool,
    ) -> Result<()> {
        let Roi { width, height, .. } = self.roi;
        let stored = target.stored(run);
        kept.par_iter().try_for_each_init(Vec::new, |values, &slice| {
            if cancelled.load(Relaxed) {
                return Err(target.interrupted());
            }
            values.resize(width * height, 0f32);
            stored.read(slice, values)?;
            values.iter_mut().for_each(|value| *value = encoding.value_of(*value));
            self.add(slice, ObservedSlice { values: Some(values), counted: None });
            Ok(())
        })
    }

    /// Writes what was asked for.
    ///
    /// # Errors
    /// [`Error::Output`] when a file cannot be written.
    pub fn write(self, job: &Job, run: &str) -> Result<()> {
        let unit = job.recipe.unit();
        if let (Some(path), Some(counted)) = (&job.execution.histogram, self.histogram) {
            let Counted { histogram, moments } = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
            let moments = moments.into_iter().sum();
            let file = HistogramFile { run, unit: &unit, values: &histogram.report(moments) };
            file.write(path).map_err(|e| named("--histogram", e))?;
        }
        if let (Some(path), Some(sections)) = (&job.execution.sections, self.sections) {
            let sections = sections.into_inner().unwrap_or_else(PoisonError::into_inner);
            sections.write(path, &unit, &self.slices, self.roi).map_err(|e| named("--sections", e))?;
        }
        Ok(())
    }
}

/// The file of `--histogram`.
#[derive(Serialize)]
struct HistogramFile<'a> {
    /// Key of the run.
    run: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    values: &'a HistogramReport,
}

impl HistogramFile<'_> {
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
pub(super) fn picture_of(histogram: &Path) -> PathBuf {
    histogram.with_extension("png")
}

/// The three sections as TIFF, beside their picture.
pub(super) fn section_files(picture: &Path) -> [PathBuf; 3] {
    ["-xy.tif", "-xz.tif", "-yz.tif"].map(|end| {
        let mut name = picture.file_stem().unwrap_or_default().to_owned();
        name.push(end);
        picture.with_file_name(name)
    })
}

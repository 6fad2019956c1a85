//! Data collected from all slices as they pass the writer, or from their files: the histogram for `--histogram`, the
//! sections for `--sections`, and for a page both and some slices.

use super::outputs::{SectionFiles, SideFiles};
use crate::engine::{Finish, ObservedSlice};
use crate::error::{Error, Result};
use crate::files::OutputFile;
use crate::geometry::Roi;
use crate::histogram::{CountedSlice, Histogram, HistogramReport, Moments};
use crate::html::{IMAGE_BYTES, PackedImage, Reduction};
use crate::job::Job;
use crate::picture::{Panel, write_histogram, write_sections};
use crate::recipe::Recipe;
use crate::sink::SOFTWARE;
use crate::sink::{Dtype, Encoding, Target, write_image};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Rows of a slice that a thread counts.
const BAND: usize = 256;

/// All slices of a job, in their physical unit, whether they are computed or kept.
pub(in crate::commands) struct Overview {
    /// Numbers of the slices, ascending.
    slices: Vec<usize>,
    roi: Roi,
    /// For every row of a slice, the columns within the mask.
    inside: Vec<Range<usize>>,
    histogram: Option<Mutex<Counted>>,
    sections: Option<Mutex<Sections>>,
    previews: Option<Mutex<Previews>>,
}

/// The parts of an overview that are to be gathered.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Wanted {
    pub histogram: bool,
    pub sections: bool,
    pub previews: bool,
    /// Number of further images of the size of a preview that the page has.
    pub beside: usize,
}

impl Wanted {
    /// Returns the parts that the flags of a run ask for.
    pub fn by(Job { recipe, execution }: &Job) -> Wanted {
        let page = execution.page.is_some();
        Wanted {
            histogram: execution.histogram.is_some() || page,
            sections: execution.sections.is_some() || page,
            previews: page,
            ..Wanted::of_page(recipe)
        }
    }

    /// Returns the parts of a page.
    pub fn of_page(recipe: &Recipe) -> Wanted {
        // a slice of least squares is beside one by filtered back projection
        let beside = usize::from(recipe.solver.is_some());
        Wanted { histogram: true, sections: true, previews: true, beside }
    }
}

/// The overview of all slices of a run.
pub(in crate::commands) struct Gathered {
    /// Numbers of the slices, ascending.
    pub slices: Vec<usize>,
    pub roi: Roi,
    pub histogram: Option<HistogramReport>,
    pub sections: Option<Sections>,
    pub previews: Option<Previews>,
}

/// Slices for a page.
pub(in crate::commands) struct Previews {
    /// Numbers of the slices that are shown, spread over all.
    chosen: Vec<usize>,
    pub reduction: Reduction,
    pub images: BTreeMap<usize, PackedImage>,
}

/// Values so far, and the moments of each slice, which are summed in order at the end.
struct Counted {
    histogram: Histogram,
    moments: Vec<Moments>,
}

/// Sections through the middle of the region: `[row][column]`, `[slice][column]` and `[slice][row]`.
pub(in crate::commands) struct Sections {
    xy: Vec<f32>,
    pub xz: Vec<f32>,
    pub yz: Vec<f32>,
}

/// Share of a page's bytes for slices; the rest is for sections, sinograms and fields.
pub(super) const PREVIEW_BYTES: usize = IMAGE_BYTES * 4 / 5;
/// Slices that a page shows at least, if there are so many; they are shrunk for that.
const ENOUGH: usize = 10;
/// Slices that a page shows at most.
const MOST: usize = 200;

impl Previews {
    fn of(slices: &[usize], roi: Roi, beside: usize) -> Previews {
        let all = slices.len() + beside;
        let (reduction, count) = Reduction::to_bytes(roi.width, roi.height, all, ENOUGH + beside, PREVIEW_BYTES);
        let (count, last) = (count.saturating_sub(beside).min(MOST), slices.len().saturating_sub(1));
        // the ends are among them, a single one is the middle
        let place = |i: usize| if count > 1 { i * last / (count - 1) } else { slices.len() / 2 };
        let chosen = (0..count).filter_map(|i| slices.get(place(i)).copied()).collect();
        Previews { chosen, reduction, images: BTreeMap::new() }
    }
}

impl Overview {
    /// Returns an empty overview of some slices of a region; `None` if nobody asks for it.
    pub fn new(wanted: Wanted, slices: Vec<usize>, roi: Roi, finish: &Finish) -> Option<Overview> {
        let count = slices.len();
        let counted = || Counted { histogram: Histogram::default(), moments: vec![Moments::default(); count] };
        let sections =
            || Sections { xy: Vec::new(), xz: vec![0.0; count * roi.width], yz: vec![0.0; count * roi.height] };
        let Wanted { histogram, sections: cut, previews, beside } = wanted;
        (histogram || cut || previews).then(|| Overview {
            roi,
            inside: (0..roi.height).map(|y| finish.inside(roi, y)).collect(),
            histogram: histogram.then(|| Mutex::new(counted())),
            sections: cut.then(|| Mutex::new(sections())),
            previews: previews.then(|| Mutex::new(Previews::of(&slices, roi, beside))),
            slices,
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
        if let (Some(previews), Some(values)) = (&self.previews, seen.values) {
            let lock = || previews.lock().unwrap_or_else(PoisonError::into_inner);
            let wanted = |previews: &Previews| previews.chosen.binary_search(&slice).ok().map(|_| previews.reduction);
            let reduction = wanted(&lock());
            if let Some(reduction) = reduction {
                let (values, width) = reduction.of(values, width);
                let image = PackedImage::new(&values, width);
                lock().images.insert(slice, image);
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
    /// [`Error::Output`] if a file cannot be read, [`Error::Interrupted`] when a signal comes.
    pub fn add_kept(
        &self,
        kept: &[usize],
        target: &Target,
        run: &[usize],
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

    /// Returns the overview, once all slices have passed.
    pub fn gathered(self) -> Gathered {
        let histogram = self.histogram.map(|counted| {
            let Counted { histogram, moments } = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
            histogram.report(moments.into_iter().sum())
        });
        Gathered {
            slices: self.slices,
            roi: self.roi,
            histogram,
            sections: self.sections.map(|all| all.into_inner().unwrap_or_else(PoisonError::into_inner)),
            previews: self.previews.map(|all| all.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl Gathered {
    /// Writes the files that the flags ask for, but for the page.
    ///
    /// # Errors
    /// [`Error::Output`] if a file cannot be written.
    pub(super) fn write(&self, files: &SideFiles, unit: &str, run: &str) -> Result<()> {
        if let (Some(files), Some(values)) = (&files.histogram, &self.histogram) {
            HistogramFile { software: SOFTWARE, run, unit, values }.write(files)?;
        }
        if let (Some(files), Some(sections)) = (&files.sections, &self.sections) {
            sections.write(files, unit, &self.slices, self.roi)?;
        }
        Ok(())
    }
}

/// The file of `--histogram`.
#[derive(Serialize)]
struct HistogramFile<'a> {
    software: &'a str,
    /// Key of the run.
    run: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    values: &'a HistogramReport,
}

impl HistogramFile<'_> {
    fn write(&self, [file, picture]: &[OutputFile; 2]) -> Result<()> {
        let json = serde_json::to_string_pretty(self).map_err(|e| Error::output(file.path(), e))?;
        file.write(format!("{json}\n"))?;
        write_histogram(picture, self.values, self.unit)
    }
}

impl Sections {
    fn write(&self, files: &SectionFiles, unit: &str, slices: &[usize], roi: Roi) -> Result<()> {
        let Roi { x, y, width, height } = roi;
        let titles = [
            format!("xy, slice {}", middle(slices)),
            format!("xz, row {}", y + height / 2),
            format!("yz, column {}", x + width / 2),
        ];
        let images = [(width, height, &self.xy), (width, slices.len(), &self.xz), (height, slices.len(), &self.yz)];
        for ((width, height, data), file) in images.iter().zip(&files.values) {
            write_image(file, (*width, *height), data, Encoding { dtype: Dtype::F32, range: None })?;
        }
        let panels: Vec<Panel> = titles
            .iter()
            .zip(images)
            .map(|(title, (width, height, data))| Panel { title, unit, pixel: None, width, height, data })
            .collect();
        write_sections(&files.picture, &panels)
    }
}

/// The slice in the middle of a list that is not empty.
pub(super) fn middle(slices: &[usize]) -> usize {
    slices.get(slices.len() / 2).copied().unwrap_or_default()
}

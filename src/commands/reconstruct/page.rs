//! The page about a run: `--report FILE.html`, and `fbp report` from the run's record and slices.

use super::overview::{Gathered, Sections, middle};
use super::record::{RecordFile, ScanRecord};
use crate::axis::sample_of;
use crate::commands::survey::survey_json;
use crate::engine::Source;
use crate::error::Result;
use crate::files::OutputFile;
use crate::geometry::Roi;
use crate::html::{PackedImage, RUN, Reduction, write_page};
use crate::job::Job;
use crate::kernel::StepBackends;
use crate::report::Reporter;
use crate::sink::Target;
use serde_json::{Value, json};
use std::path::{Path, PathBuf, absolute};

/// Largest width and height of a section in the page.
const SECTION: [usize; 2] = [384, 384];
/// Largest width and height of the sinogram in the page.
const SINOGRAM: [usize; 2] = [512, 512];

/// The content of a page.
pub(in crate::commands) struct RunPage<'a> {
    pub job: &'a Job,
    pub target: &'a Target,
    pub record: &'a RecordFile,
    pub gathered: &'a Gathered,
    /// The input, or the reason why it is no longer available.
    pub source: std::result::Result<&'a Source, String>,
}

impl RunPage<'_> {
    /// Writes the page.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) with the name of the flag; errors of reading the input.
    pub fn write(&self, file: &OutputFile) -> Result<()> {
        let RunPage { job, target, record, gathered, source } = self;
        let output = absolute(target.directory()).unwrap_or_else(|_| target.directory().to_owned());
        // without a trailing slash
        let output: PathBuf = output.components().collect();
        let (sinogram, search, missing) = match source {
            Ok(source) => (sinogram(source, middle(&gathered.slices))?, search(source, job)?, None),
            Err(why) => (Value::Null, Value::Null, Some(why)),
        };
        let data = json!({
            "program": env!("CARGO_PKG_VERSION"),
            "output": output.to_string_lossy(),
            "record": record.text,
            "record_name": target.record().file_name().map(|name| name.to_string_lossy()),
            "run": record.facts.run,
            "version": record.facts.version,
            "scan": record.facts.scan,
            "jobs": record.facts.jobs,
            "unit": job.recipe.unit(),
            "dtype": job.recipe.values.dtype,
            "pixel": job.recipe.slice.pixel_size.as_ref().map(|size| json!({
                "size": size.value, "unit": size.unit, "metres": size.metres(),
            })),
            "slices": previews(gathered),
            "sections": gathered.sections.as_ref().map(|sections| cuts(sections, gathered)),
            "histogram": gathered.histogram,
            "sinogram": sinogram,
            "search": search,
            "missing": missing,
        });
        write_page(file, &RUN, &title(&output, record.facts.scan.as_ref()), &data)
    }
}

fn title(output: &Path, scan: Option<&ScanRecord>) -> String {
    let name = output.file_name().unwrap_or(output.as_os_str()).to_string_lossy();
    let count = scan.map(|scan| format!(", {} slices", scan.slices[1])).unwrap_or_default();
    format!("{name}{count}, fbp run")
}

/// Returns the slices that are shown, with their numbers.
fn previews(gathered: &Gathered) -> Value {
    let Some(previews) = &gathered.previews else { return Value::Null };
    json!({
        "count": gathered.slices.len(),
        "region": region(gathered.roi),
        "reduction": previews.reduction,
        "numbers": previews.images.keys().collect::<Vec<_>>(),
        "images": previews.images.values().collect::<Vec<_>>(),
    })
}

fn region(Roi { x, y, width, height }: Roi) -> Value {
    json!({ "x": x, "y": y, "width": width, "height": height })
}

/// Returns an image that is reduced to at most the given sides, with the reduction.
fn shrunk(values: &[f32], width: usize, most: [usize; 2]) -> Value {
    let reduction = Reduction::to_sides(width, values.len() / width.max(1), most);
    let (values, width) = reduction.of(values, width);
    json!({ "reduction": reduction, "image": PackedImage::new(&values, width) })
}

/// Returns the sections across all slices.
fn cuts(sections: &Sections, gathered: &Gathered) -> Value {
    let Roi { x, y, width, height } = gathered.roi;
    json!({
        "row": y + height / 2,
        "column": x + width / 2,
        "xz": shrunk(&sections.xz, width, SECTION),
        "yz": shrunk(&sections.yz, height, SECTION),
    })
}

/// Returns the sinogram of a slice as it is filtered, and the axis in every projection that is shown.
fn sinogram(source: &Source, slice: usize) -> Result<Value> {
    let geometry = &source.scan.geometry;
    let values = source.read(&[slice], StepBackends::HOST)?;
    let mut sinogram = shrunk(&values, geometry.bins, SINOGRAM);
    let rows = sinogram["reduction"]["rows"].as_u64().unwrap_or(1) as usize;
    let mean = |axis: &[f64]| axis.iter().sum::<f64>() / axis.len() as f64;
    sinogram["slice"] = json!(slice);
    sinogram["bins"] = json!(geometry.bins);
    sinogram["projections"] = json!(geometry.projections());
    sinogram["axis"] = json!(geometry.axis.chunks(rows).map(mean).collect::<Vec<_>>());
    Ok(sinogram)
}

/// Returns the result of every method of finding the axis.
fn search(source: &Source, job: &Job) -> Result<Value> {
    let sampled = sample_of(source, job, &Reporter::silent())?;
    Ok(survey_json(&sampled, None))
}

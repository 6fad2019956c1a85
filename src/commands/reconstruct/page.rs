//! The page about a run: `--report FILE.html`, and `fbp report` from the run's record and slices.

use super::account::{Account, scan_name};
use super::overview::{Gathered, PREVIEW_BYTES, Sections, middle};
use super::record::{RecordFile, ScanRecord};
use crate::axis::sample_of;
use crate::commands::repairs::counted;
use crate::commands::survey::survey_json;
use crate::engine::{Source, row_slices};
use crate::error::{Error, Result};
use crate::files::OutputFile;
use crate::geometry::Roi;
use crate::html::{IMAGE_BYTES, PackedImage, RUN, Reduction, write_page};
use crate::job::Job;
use crate::kernel::StepBackends;
use crate::report::Reporter;
use crate::sink::Target;
use serde_json::{Value, json};
use std::path::{PathBuf, absolute};

/// Largest width and height of a section in the page.
const SECTION: [usize; 2] = [384, 384];
/// Largest width and height of the sinogram in the page.
const SINOGRAM: [usize; 2] = [512, 512];
/// The same of two sinograms, before and after stripes were removed.
const TWO_SINOGRAMS: [usize; 2] = [360, 360];
/// Largest width and height of a field in the page.
const FIELD: [usize; 2] = [256, 126];

// all of them fit beside the slices
const _: () = {
    const fn pixels([width, height]: [usize; 2]) -> usize {
        width * height
    }
    let (one, two) = (pixels(SINOGRAM), 2 * pixels(TWO_SINOGRAMS));
    let sinograms = if one > two { one } else { two };
    let all = 2 * pixels(SECTION) + sinograms + 3 * pixels(FIELD);
    assert!(size_of::<u16>() * all <= IMAGE_BYTES - PREVIEW_BYTES);
};

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
        let name = scan_name(&job.execution.files.stacks.data);
        let account = Account::new(&job.recipe, record);
        let [sinogram, seen, fields, search, filtered] = match source {
            Ok(source) => {
                let slice = middle(&gathered.slices);
                let (sinogram, seen) = (sinogram(source, job, slice)?, seen(source, job, slice)?);
                [sinogram, seen, fields(source), search(source, job)?, filtered(source, job, gathered)?]
            }
            Err(_) => [const { Value::Null }; 5],
        };
        let data = json!({
            "program": env!("CARGO_PKG_VERSION"),
            "name": name,
            "account": account.as_ref().map(Account::rows),
            "methods": account.as_ref().map(Account::methods),
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
            "seen": seen,
            "fields": fields,
            "search": search,
            "filtered": filtered,
            "missing": source.as_ref().err(),
        });
        write_page(file, &RUN, &title(&name, record.facts.scan.as_ref()), &data)
    }
}

fn title(name: &str, scan: Option<&ScanRecord>) -> String {
    let count = scan.map(|scan| format!(": {}", counted(scan.slices[1], "slice"))).unwrap_or_default();
    format!("{name}{count}, fbp")
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

/// Returns the largest sides of a sinogram in the page.
fn sides(job: &Job) -> [usize; 2] {
    if job.recipe.steps.stripes.is_empty() { SINOGRAM } else { TWO_SINOGRAMS }
}

/// Returns the sinogram of a slice as it is filtered, and the axis in every projection that is shown.
fn sinogram(source: &Source, job: &Job, slice: usize) -> Result<Value> {
    let geometry = &source.scan.geometry;
    let values = source.read(&[slice], StepBackends::HOST)?;
    let mut sinogram = shrunk(&values, geometry.bins, sides(job));
    let rows = sinogram["reduction"]["rows"].as_u64().unwrap_or(1) as usize;
    let mean = |axis: &[f64]| axis.iter().sum::<f64>() / axis.len() as f64;
    sinogram["slice"] = json!(slice);
    sinogram["bins"] = json!(geometry.bins);
    sinogram["projections"] = json!(geometry.projections());
    sinogram["axis"] = json!(geometry.axis.chunks(rows).map(mean).collect::<Vec<_>>());
    Ok(sinogram)
}

/// Returns the sinogram of a slice with its stripes, if the run removed any.
fn seen(source: &Source, job: &Job, slice: usize) -> Result<Value> {
    if job.recipe.steps.stripes.is_empty() {
        return Ok(Value::Null);
    }
    let values = source.read_seen(&[slice])?.concat();
    let bins = source.stack().width();
    let mut seen = shrunk(&values, bins, sides(job));
    seen["bins"] = json!(bins);
    Ok(seen)
}

/// Returns the fields that correct projections, if there are any.
fn fields(source: &Source) -> Value {
    let Some(images) = source.rows().correction().and_then(|correction| correction.fields) else { return Value::Null };
    let frames = source.field_frames();
    let width = source.stack().width();
    let one = |name: &str, frames: usize, values: &[f32]| {
        let mut field = shrunk(values, width, FIELD);
        field["name"] = json!(name);
        field["frames"] = json!(frames);
        field
    };
    let flat = if frames.flats2 > 0 { "Flat field before the scan" } else { "Flat field" };
    let mut all = vec![one(flat, frames.flats, images.flat)];
    all.extend(images.flat2.map(|after| one("Flat field after the scan", frames.flats2, after)));
    all.extend((frames.darks > 0).then(|| one("Dark field", frames.darks, images.dark)));
    Value::Array(all)
}

/// Returns a slice by filtered back projection, in the middle of those that are shown, for a run of least squares.
fn filtered(source: &Source, job: &Job, gathered: &Gathered) -> Result<Value> {
    let (Some(solver), Some(previews)) = (&job.recipe.solver, &gathered.previews) else { return Ok(Value::Null) };
    let shown: Vec<usize> = previews.images.keys().copied().collect();
    let (slice, width) = (middle(&shown), gathered.roi.width);
    let mut image = Value::Null;
    let found = row_slices(&[job.filtered()], source, (slice, 0), &Reporter::silent(), |_, found| {
        let (values, width) = previews.reduction.of(&found.values, width);
        image = json!(PackedImage::new(&values, width));
        Ok(())
    });
    let missing = match found {
        Err(error @ Error::Interrupted(_)) => return Err(error),
        // a finished run has its page, also where another slice does not fit beside it
        found => found.err().map(|error| error.to_string()),
    };
    Ok(json!({ "slice": slice, "method": solver.method, "image": image, "missing": missing }))
}

/// Returns the result of every method of finding the axis.
fn search(source: &Source, job: &Job) -> Result<Value> {
    let sampled = sample_of(source, job, &Reporter::silent())?;
    Ok(survey_json(&sampled, None))
}

//! `fbp preprocess`: corrected sinograms or projections as files.

use super::add_measures;
use crate::cli::{PreprocessArgs, ScanArgs, StepArgs, Text};
use crate::device::DeviceList;
use crate::engine::{PageDevice, PageSteps};
use crate::error::{Error, Result};
use crate::execution::{Execution, Files};
use crate::job::Job;
use crate::recipe::{Input, Recipe, SliceGrid, check_conflicts, parse_size, steps};
use crate::report::Reporter;
use crate::sink::{AllowedContents, Dtype, Encoding, OutputLock, Pixels, SOFTWARE, SliceWriter, Target};
use crate::source::{self, FieldMode, Stack};
use crate::steps::{Band, Counts, Preparation, Scope};
use rayon::prelude::*;
use std::ops::Range;
use std::time::Instant;

/// Reads, corrects and writes all pages, several at once; a line with sizes and times.
pub fn preprocess(args: &PreprocessArgs) -> Result<String> {
    let mut steps = args.steps.clone();
    let remarks = add_measures(&args.input, &mut steps, args.pixel_size.is_some())?;
    let job = job(args, &steps)?;
    let reporter = Reporter::of(&job.execution.messages)?;
    let input = &job.recipe.input;
    let sinograms = input.is_sinograms();
    let target = output(args, &job)?;
    let request = job.open_request(false);
    let stacks =
        source::open(request, |path, flag| Stack::open_by(path, flag, request.memory, request.paths.order_by))?;
    let stack = &stacks.data;
    stack.remarks().iter().for_each(|remark| reporter.remark(remark.clone()));
    let (pages, rows, bins) = (stack.len(), stack.height(), stack.width());
    let used: Vec<usize> = (0..if sinograms { rows } else { pages }).collect();
    let median = input.field_mode == FieldMode::Median;
    let scope = Scope { sinograms, median, used: &used, full_projections: true };
    let preparation = Preparation::open(&job.recipe.steps, &stacks, scope)?;
    preparation.expect_light(&(0..if sinograms { 0 } else { rows }).collect::<Vec<_>>())?;
    remarks.into_iter().chain(preparation.remarks()).for_each(|remark| reporter.remark(remark));
    let indices: Vec<usize> = (0..stack.len()).collect();
    target.check_inputs(job.execution.files.all().chain(stacks.files()), &indices)?;
    let lock = OutputLock::alone(&target)?;
    let writer = create_writer(args, &lock, stack, &indices)?;
    let write = |numbers: Range<usize>, values: &[f32]| {
        let pages: Vec<_> = numbers.zip(values.chunks(rows * bins).map(Pixels::Values)).collect();
        writer.write_all(&pages)
    };
    let page_steps = PageSteps { stack, preparation: &preparation, used: &used, sinograms };
    let start = Instant::now();
    let (counts, milliseconds, place) = match PageDevice::open(page_steps, &job, &reporter)? {
        Some(device) => {
            let name = device.name().to_owned();
            let counts = device.correct(write)?;
            (counts, 1e3 * start.elapsed().as_secs_f64(), format!("with {name}"))
        }
        None => {
            let (counts, seconds) = correct_on_host(page_steps, job.execution.host_memory(), write)?;
            (counts, 1e3 * seconds, "on one thread".to_owned())
        }
    };
    writer.finish()?;
    counts.clamped.expect_data(counts.values)?;
    Ok(format!(
        "{pages} {} of {bins}x{rows}, {:.1} ms each {place}; {} values and {} outliers replaced\n",
        if sinograms { "sinograms" } else { "projections" },
        milliseconds / pages as f64,
        counts.clamped.total(),
        counts.outliers
    ))
}

/// The input, its steps, and a device for them.
fn job(args: &PreprocessArgs, given: &StepArgs) -> Result<Job> {
    check_conflicts(&[crate::recipe::given(&args.input)?])?;
    let text = |value: &Option<Text>| value.as_ref().map(|text| text.0.clone());
    let input = Input::new(&args.input)?;
    let slice = SliceGrid::of_pixels(text(&args.pixel_size).as_deref(), input.binning)?;
    let steps = steps(&args.input, given, &slice)?;
    if !input.is_sinograms() && !steps.stripes.is_empty() {
        return Err(Error::usage(
            "--stripes: works on sinograms, but with --projections or --hdf5 this command writes projections",
        ));
    }
    let execution = Execution {
        files: Files::new(&args.input, &ScanArgs::default()),
        devices: text(&args.device).map(|text| DeviceList::parse(&text)).transpose()?.unwrap_or_default(),
        memory: text(&args.memory).map(|text| parse_size(&text, "--memory")).transpose()?,
        ..Execution::default()
    };
    Ok(Job { recipe: Recipe { input, slice, steps, ..Recipe::default() }, execution })
}

/// Where the pages go; those of a directory are not called slices.
fn output(args: &PreprocessArgs, job: &Job) -> Result<Target> {
    let target = Target::parse(&args.output)?;
    let prefix = if job.recipe.input.is_sinograms() { "sinogram_" } else { "projection_" };
    Ok(if target.fills_directory() { Target::directory_of(target.directory(), prefix) } else { target })
}

/// The output, if it may be written.
fn create_writer(args: &PreprocessArgs, lock: &OutputLock, stack: &Stack, indices: &[usize]) -> Result<SliceWriter> {
    let target = lock.target();
    if !args.overwrite && target.unfinished_slices()? > 0 {
        return Err(Error::output(
            &target.path_of(0),
            "is the output of a run that was stopped; add --overwrite to replace it, or choose another --output",
        ));
    }
    let encoding = Encoding { dtype: Dtype::F32, range: None };
    let present = AllowedContents::new(args.overwrite, None);
    SliceWriter::create(target.clone(), stack.width(), stack.height(), encoding, indices, present, SOFTWARE)
}

/// Corrects pages with all threads, as many at once as half of the memory holds, and passes them on; what was replaced, and the
/// seconds of all threads together.
fn correct_on_host(
    pages: PageSteps,
    memory: u64,
    write: impl Fn(Range<usize>, &[f32]) -> Result<()>,
) -> Result<(Counts, f64)> {
    let stack = pages.stack;
    let (count, page_len) = (stack.len(), stack.height() * stack.width());
    let held = (memory / 2) as usize / (4 * page_len);
    let at_once = rayon::current_num_threads().min(held).clamp(1, count);
    let mut chunk = vec![0f32; at_once * page_len];
    let (mut counts, mut seconds) = (Counts::default(), 0.0);
    for first in (0..count).step_by(at_once) {
        let numbers = first..(first + at_once).min(count);
        let values = &mut chunk[..numbers.len() * page_len];
        let correct = |(place, values)| correct_page(pages, first + place, values);
        let corrected = values.par_chunks_mut(page_len).enumerate().map(correct).collect::<Result<Vec<_>>>()?;
        for (replaced, time) in corrected {
            seconds += time;
            counts += replaced;
        }
        write(numbers, values)?;
    }
    Ok((counts, seconds))
}

/// Reads and corrects a page; what was replaced, and the seconds without reading.
fn correct_page(pages: PageSteps, page: usize, values: &mut [f32]) -> Result<(Counts, f64)> {
    let PageSteps { stack, preparation, sinograms, .. } = pages;
    let (rows, bins) = (stack.height(), stack.width());
    stack.read_rows(page, 0..rows, values)?;
    let start = Instant::now();
    let mut replaced = Counts::default();
    if sinograms {
        for (projection, row) in values.chunks_mut(bins).enumerate() {
            let band = Band::new(row, rows, page..page + 1, page..page + 1).of(projection, rows);
            preparation.projection(band, &mut replaced);
        }
        preparation.sinogram(values, &mut replaced);
    } else {
        preparation.projection(Band::new(values, rows, 0..rows, 0..rows).of(page, stack.len()), &mut replaced);
    }
    Ok((replaced, start.elapsed().as_secs_f64()))
}

//! `fbp preprocess`: corrected sinograms or projections as files.

use super::add_measures;
use super::errors::CommandOutputError;
use super::repairs::{RepairCommand, RepairFlags, doubts};
use crate::cli::{PreprocessArgs, ScanArgs, StepArgs, Text};
use crate::device::DeviceList;
use crate::engine::{PageDevice, prepare};
use crate::error::{Error, Result};
use crate::execution::{Execution, Files};
use crate::feed::ScanRows;
use crate::job::Job;
use crate::numbers::brief;
use crate::recipe::{CheckedCommand, Input, Recipe, SliceGrid, Span, check_conflicts, given, parse_size, steps};
use crate::remark::Remark;
use crate::report::{Messages, Reporter};
use crate::sink::{AllowedContents, Dtype, Encoding, OutputLock, Pixels, SOFTWARE, SliceWriter, Target};
use crate::source::{FieldMode, LogUse, Stack, Stacks};
use crate::steps::{Counts, Preparation, Scope};
use crate::stitch;
use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

/// Reads, corrects and writes all pages, several at once; a line with sizes and times.
pub fn preprocess(args: &PreprocessArgs) -> Result<String> {
    let mut steps = args.steps.clone();
    let remarks = add_measures(&args.input, &mut steps, args.pixel_size.is_some())?;
    let job = job(args, &steps)?;
    let reporter = Reporter::of(&job.execution.messages)?;
    let target = output(args, &job)?;
    let request = job.open_request(false);
    let stacks = stitch::open(job.stitch_request(request), |path, flag| {
        Stack::open_by(path, flag, request.memory, request.paths.order_by)
    })?;
    let scan = CorrectedScan::open(job, stacks, remarks, &reporter)?;
    let numbers = &scan.wanted.numbers;
    target.check_inputs(scan.job.execution.files.all().chain(scan.stacks.files()), numbers)?;
    let lock = OutputLock::alone(&target)?;
    let [count, rows, bins] = scan.shape();
    let writer = create_writer(args, &lock, (bins, rows), numbers)?;
    let (counts, milliseconds, place) = scan.correct(&reporter, |places, pages| {
        let pages: Vec<_> =
            numbers[places].iter().copied().zip(pages.iter().map(|page| Pixels::Values(page))).collect();
        writer.write_all(&pages)
    })?;
    writer.finish()?;
    scan.judge(&counts, &reporter)?;
    Ok(format!(
        "{count} {} of {bins}x{rows}, {:.1} ms each {place}; {} values and {} outliers replaced\n",
        if scan.is_sinograms() { "sinograms" } else { "projections" },
        milliseconds / count as f64,
        counts.clamped.total(),
        counts.outliers
    ))
}

/// A scan whose pages are to be corrected.
pub(super) struct CorrectedScan {
    job: Job,
    stacks: Stacks,
    preparation: Preparation,
    /// Projections that are used: all.
    used: Vec<usize>,
    wanted: WantedPages,
}

impl CorrectedScan {
    /// Opens the steps for stacks that are open, and reports remarks on the flags and the input.
    ///
    /// # Errors
    /// Errors of the rows that are asked for and of the steps; [`Error::Input`] for doubts with `--strict`.
    pub fn open(job: Job, stacks: Stacks, remarks: Vec<Remark>, reporter: &Reporter) -> Result<CorrectedScan> {
        let (stack, sinograms) = (&stacks.data, job.recipe.input.is_sinograms());
        stack.remarks().iter().for_each(|remark| reporter.remark(remark.clone()));
        let (pages, rows) = (stack.len(), stack.height());
        let used: Vec<usize> = (0..if sinograms { rows } else { pages }).collect();
        let wanted = WantedPages::new(&job, stack)?;
        let median = job.recipe.input.field_mode == FieldMode::Median;
        let scope = Scope { median, used: &used, rows: &(0..rows), full_projections: true, means: None };
        let preparation = prepare(&job, None, &stacks, scope, reporter)?;
        preparation.expect_light(&(0..if sinograms { 0 } else { rows }).collect::<Vec<_>>())?;
        let shifts = stacks.shift_range().map(|(low, high)| low.abs().max(high.abs()));
        if let Some(most) = shifts {
            reporter.note(&format!(
                "note: the file shifts the axis by up to {} bins, and what is written does not; fbp info --json has the \
                 center_shifts that --center-shifts takes",
                brief(most)
            ));
        }
        remarks.into_iter().chain(preparation.remarks()).for_each(|remark| reporter.remark(remark));
        reporter.refuse_doubts()?;
        Ok(CorrectedScan { job, stacks, preparation, used, wanted })
    }

    fn is_sinograms(&self) -> bool {
        self.job.recipe.input.is_sinograms()
    }

    /// Returns the numbers of pages, of rows of a page, and of bins of a row.
    pub fn shape(&self) -> [usize; 3] {
        [self.wanted.numbers.len(), self.wanted.rows.len(), self.stacks.data.width()]
    }

    /// Corrects the pages, and passes them on with their places, from several threads. Returns what was replaced, the
    /// milliseconds that this took, and where.
    ///
    /// # Errors
    /// Errors of reading, of the device, and of `write`.
    pub fn correct(
        &self,
        reporter: &Reporter,
        write: impl Fn(Range<usize>, &[Cow<[f32]>]) -> Result<()> + Sync,
    ) -> Result<(Counts, f64, String)> {
        let CorrectedScan { job, stacks, preparation, used, wanted } = self;
        let (stack, sinograms) = (&stacks.data, self.is_sinograms());
        let (page_len, bins) = (stack.height() * stack.width(), stack.width());
        let write = |places: Range<usize>, values: &[f32]| {
            let pages: Vec<_> = values.chunks(page_len).map(|page| wanted.rows_of(page, bins)).collect();
            write(places, &pages)
        };
        let wanted_rows = if sinograms { &wanted.numbers } else { &wanted.rows };
        let scan = ScanRows { stack, preparation, used, wanted: wanted_rows, sinograms, field: None, lamino: None };
        let start = Instant::now();
        match PageDevice::open(scan, job, reporter)? {
            Some(device) => {
                let name = device.name().to_owned();
                let counts = device.correct(write)?;
                Ok((counts, 1e3 * start.elapsed().as_secs_f64(), format!("with {name}")))
            }
            None => {
                let (counts, took) = scan.correct_pages(job.execution.host_memory(), write)?;
                Ok((counts, 1e3 * took.as_secs_f64(), "on one thread".to_owned()))
            }
        }
    }

    /// Reports reasons to doubt the pages that come from what was replaced.
    ///
    /// # Errors
    /// [`Error::Input`] if all values were replaced, and for doubts with `--strict`.
    pub fn judge(&self, counts: &Counts, reporter: &Reporter) -> Result<()> {
        let (sinograms, stripes) = (self.is_sinograms(), self.job.recipe.steps.stripes.as_slice());
        let flags = RepairFlags { sinograms, stripes, command: RepairCommand::Preprocess };
        doubts(&self.preparation.repairs(counts), &flags).into_iter().for_each(|doubt| reporter.remark(doubt));
        counts.clamped.expect_data(counts.values)?;
        reporter.refuse_doubts()
    }
}

/// Numbers of the pages that are written, and of the rows in them.
struct WantedPages {
    numbers: Vec<usize>,
    rows: Vec<usize>,
}

impl WantedPages {
    /// The rows of the detector that a job asks for: of sinograms the pages.
    fn new(job: &Job, stack: &Stack) -> Result<WantedPages> {
        let (numbers, rows) = ((0..stack.len()).collect(), (0..stack.height()).collect());
        Ok(match job.execution.rows {
            None => WantedPages { numbers, rows },
            Some(span) if job.recipe.input.is_sinograms() => {
                WantedPages { numbers: span.within(stack.len(), "--rows", "sinograms")?, rows }
            }
            Some(span) => WantedPages { numbers, rows: span.within(stack.height(), "--rows", "rows")? },
        })
    }

    /// The rows of a page.
    fn rows_of<'a>(&self, page: &'a [f32], bins: usize) -> Cow<'a, [f32]> {
        match self.rows.len() == page.len() / bins {
            true => Cow::Borrowed(page),
            false => self.rows.iter().flat_map(|row| &page[row * bins..(row + 1) * bins]).copied().collect(),
        }
    }
}

/// The input, its steps, and a device for them.
pub(super) fn job(args: &PreprocessArgs, given_steps: &StepArgs) -> Result<Job> {
    check_conflicts(CheckedCommand::Preprocess, &[given(&args.input)?, given(&args.steps)?])?;
    let text = |value: &Option<Text>| value.as_ref().map(|text| text.0.clone());
    let input = Input::new(&args.input, &args.steps)?;
    let slice = SliceGrid::of_pixels(text(&args.pixel_size).as_deref(), input.binning)?;
    let steps = steps(&args.input, given_steps, &slice)?;
    let execution = Execution {
        // angles are not written
        files: Files { log: LogUse::Nothing, ..Files::new(&args.input, &ScanArgs::default(), &args.steps) },
        devices: text(&args.device).map(|text| DeviceList::parse(&text)).transpose()?.unwrap_or_default(),
        rows: text(&args.rows).map(|text| Span::parse(&text, "--rows")).transpose()?,
        messages: Messages { strict: args.strict, ..Messages::default() },
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
fn create_writer(
    args: &PreprocessArgs,
    lock: &OutputLock,
    (width, height): (usize, usize),
    indices: &[usize],
) -> Result<SliceWriter> {
    let target = lock.target();
    if !args.overwrite && target.unfinished_slices()? > 0 {
        return Err(Error::output(&target.path_of(0), CommandOutputError::StoppedRun));
    }
    let encoding = Encoding { dtype: Dtype::F32, range: None };
    let present = AllowedContents::new(args.overwrite, None);
    SliceWriter::create(target.clone(), width, height, encoding, indices, present, SOFTWARE)
}

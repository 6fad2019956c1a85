//! `fbp reconstruct` from and to arrays in memory.

use super::flags::{ArrayFlag, parsed};
use crate::axis::Axis;
use crate::cli::Command;
use crate::commands::add_measures;
use crate::commands::reconstruct::{remarks_on, with_axis};
use crate::device::keep_devices;
use crate::engine::{
    Finish, Run, Source, WRITERS, leave, projection_weights, ready_devices, run_stages, with_noise_weights,
};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::report::{Reporter, StageClock};
use crate::sink::{AllowedContents, Dtype, Encoding, SOFTWARE, SliceWriter, TakeSlice, Target};
use crate::source::MemoryScan;
use crate::steps::Counts;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A reconstruction of a scan in memory whose axis is known.
pub struct ArraySlices {
    job: Job,
    source: Source,
    reporter: Reporter,
    axis: Axis,
}

impl ArraySlices {
    /// Checks flags of `fbp reconstruct` and the arrays, and finds the axis if that is requested. Devices are kept for
    /// later runs of the process.
    ///
    /// # Errors
    /// The errors of `fbp reconstruct` before it computes slices.
    pub fn open(flags: &[ArrayFlag], scan: MemoryScan) -> Result<ArraySlices> {
        keep_devices();
        let Command::Reconstruct { mut args, .. } = parsed("reconstruct", &["--quiet"], flags, &scan)? else {
            return Err(Error::Internal("fbp reconstruct is another command".into()));
        };
        let remarks = add_measures(&args.input, &mut args.steps, args.pixel_size.is_some())?;
        let job = Job::in_memory(&args)?;
        let reporter = Reporter::of(&job.execution.messages)?;
        remarks.into_iter().for_each(|remark| reporter.remark(remark));
        let (stacks, shifts) = scan.stacks(job.recipe.input.binning)?;
        let stacks = stacks.with_files(&job.execution.files.stacks)?;
        let weights = projection_weights(&job, &AtomicBool::new(false))?;
        let source = Source::of(&job, stacks, [shifts, weights], &reporter)?;
        let (job, source, axis) = with_axis(job, source, &reporter, drop)?;
        let source = with_noise_weights(source, &job, &reporter)?;
        reporter.refuse_doubts()?;
        Ok(ArraySlices { job, source, reporter, axis })
    }

    /// Returns the numbers of slices, of rows of a slice, and of pixels of a row.
    pub fn shape(&self) -> [usize; 3] {
        let (scan, roi) = (&self.source.scan, self.source.scan.geometry.roi);
        [scan.slices.len(), roi.height, roi.width]
    }

    /// Returns the axis.
    pub fn axis(&self) -> &Axis {
        &self.axis
    }

    /// Returns all notes and warnings so far.
    pub fn said(&self) -> Vec<String> {
        self.reporter.said()
    }

    /// Reconstructs. `take` gets each slice once, by its place; `advance` the number of slices that were passed on.
    ///
    /// # Errors
    /// The errors of `fbp reconstruct`.
    pub fn run(&self, take: TakeSlice, cancelled: &AtomicBool, advance: &mut (dyn FnMut(usize) + Send)) -> Result<()> {
        let ArraySlices { job, source, reporter, .. } = self;
        let (scan, roi) = (&source.scan, source.scan.geometry.roi);
        let mut devices = ready_devices(job, source, reporter)?;
        let numbers = scan.slices.clone();
        let target = Target::in_memory(Arc::new(move |number, values| {
            numbers.binary_search(&number).into_iter().for_each(|place| take(place, values));
        }));
        let encoding = Encoding { dtype: Dtype::F32, range: None };
        // nothing is there that could be replaced
        let present = AllowedContents::Anything;
        let writer =
            SliceWriter::create(target.clone(), roi.width, roi.height, encoding, &scan.slices, present, SOFTWARE)?;
        let finish = Finish::new(&job.recipe, scan.geometry.size);
        let clock = StageClock::new(devices.len(), WRITERS);
        let run = Run {
            recipe: &job.recipe,
            source,
            slices: &scan.slices,
            finish: &finish,
            reporter,
            cancelled,
            target: &target,
            keep: None,
            observer: None,
            clock: &clock,
        };
        let mut counts = Counts::default();
        let done = run_stages(run, &mut devices, writer, &mut counts, advance)?;
        let repairs = source.preparation.repairs(&counts);
        remarks_on(job, &devices, &repairs, &done).into_iter().for_each(|remark| reporter.remark(remark));
        leave(devices);
        repairs.clamped.expect_data(repairs.values)?;
        reporter.refuse_doubts()
    }
}

//! `fbp preprocess` from and to arrays in memory.

use super::flags::{ArrayFlag, parsed};
use crate::cli::Command;
use crate::commands::add_measures;
use crate::commands::preprocess::{CorrectedScan, job};
use crate::device::keep_devices;
use crate::error::{Error, Result};
use crate::report::Reporter;
use crate::source::MemoryScan;

/// Corrected pages of a scan in memory.
pub struct ArrayPages {
    scan: CorrectedScan,
    reporter: Reporter,
}

impl ArrayPages {
    /// Checks flags of `fbp preprocess` and the arrays.
    ///
    /// # Errors
    /// The errors of `fbp preprocess` before it corrects pages.
    pub fn open(flags: &[ArrayFlag], scan: MemoryScan) -> Result<ArrayPages> {
        keep_devices();
        // the output is one that no file stands for
        let Command::Preprocess { args, .. } = parsed("preprocess", &["--output=memory"], flags, &scan)? else {
            return Err(Error::Internal("fbp preprocess is another command".into()));
        };
        let mut steps = args.steps.clone();
        let remarks = add_measures(&args.input, &mut steps, args.pixel_size.is_some())?;
        let job = job(&args, &steps)?;
        let mut messages = job.execution.messages.clone();
        messages.verbosity = -1;
        let reporter = Reporter::of(&messages)?;
        let (stacks, _) = scan.stacks(job.recipe.input.binning)?;
        let stacks = stacks.with_files(&job.execution.files.stacks)?;
        Ok(ArrayPages { scan: CorrectedScan::open(job, stacks, remarks, &reporter)?, reporter })
    }

    /// Returns the numbers of pages, of rows of a page, and of bins of a row.
    pub fn shape(&self) -> [usize; 3] {
        self.scan.shape()
    }

    /// Returns all notes and warnings so far.
    pub fn said(&self) -> Vec<String> {
        self.reporter.said()
    }

    /// Corrects the pages. `take` gets each once, by its place, from several threads.
    ///
    /// # Errors
    /// The errors of `fbp preprocess`, and those of `take`, after which no more pages come.
    pub fn run(&self, take: impl Fn(usize, &[f32]) -> Result<()> + Sync) -> Result<()> {
        let (counts, ..) = self.scan.correct(&self.reporter, |places, pages| {
            places.zip(pages).try_for_each(|(place, page)| take(place, page))
        })?;
        self.scan.judge(&counts, &self.reporter)
    }
}

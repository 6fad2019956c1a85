//! A run: its computation, and how and where it takes place.

use crate::cli::ReconstructArgs;
use crate::error::{Result, messages};
use crate::execution::Execution;
use crate::recipe::{CheckedCommand, Recipe, check_conflicts, given};
use crate::source::{FieldMode, OpenRequest};
use crate::steps::Tilt;
use crate::stitch::StitchRequest;
use serde::{Deserialize, Serialize};

messages! {
    /// A flag that stands for several runs.
    enum SeveralJobsError: Usage {
        Windows =>
            "--every: divides one scan, by fbp reconstruct alone";
            "leave it out, or run fbp reconstruct for each scan",
    }
}

/// Run with typed and checked flags, which is made once and never changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Everything that determines the bytes of slices.
    pub recipe: Recipe,
    /// Everything that does not affect the bytes of slices.
    pub execution: Execution,
}

impl Job {
    /// Converts and checks merged flags.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
    pub fn new(args: &ReconstructArgs) -> Result<Job> {
        Job::made(args, Execution::new)
    }

    /// Converts and checks flags of a run whose slices stay in memory.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn in_memory(args: &ReconstructArgs) -> Result<Job> {
        Job::made(args, Execution::in_memory)
    }

    fn made(args: &ReconstructArgs, execution: fn(&ReconstructArgs) -> Result<Execution>) -> Result<Job> {
        // flags that are not keys of run files
        let others = [("verbose", args.verbose > 0), ("quiet", args.quiet)];
        let others = others.into_iter().filter(|(_, is_given)| *is_given);
        let others = others.map(|(flag, is_given)| (flag.to_owned(), is_given.into())).collect();
        check_conflicts(CheckedCommand::Reconstruct, &[given(args)?, others])?;
        if args.every.is_some() {
            return Err(SeveralJobsError::Windows.into());
        }
        Ok(Job { recipe: Recipe::new(args)?, execution: execution(args)? })
    }

    /// Returns the request to open the input; `angles` tells whether angles are read from the file of the data.
    pub fn open_request(&self, angles: bool) -> OpenRequest<'_> {
        let input = &self.recipe.input;
        OpenRequest {
            kind: input.kind,
            paths: &self.execution.files.stacks,
            datasets: &input.datasets,
            binning: input.binning,
            angles,
            log: self.execution.files.log,
            shifts: self.execution.files.center_shifts.is_none(),
            memory: self.execution.host_memory(),
        }
    }

    /// Returns the request to open the input, which may be in several parts.
    pub fn stitch_request<'a>(&'a self, open: OpenRequest<'a>) -> StitchRequest<'a> {
        let input = &self.recipe.input;
        // of the detector, before binning
        let pixel = self.recipe.slice.pixel_size.as_ref().map(|size| size.times(1.0 / input.binning as f64));
        StitchRequest {
            open,
            further: &self.execution.files.further,
            stitching: input.stitching.as_ref(),
            steps: &self.recipe.steps,
            median: input.field_mode == FieldMode::Median,
            pixel_size: pixel.and_then(|size| size.metres()),
        }
    }

    /// Returns this job with the axis at this position, in bins of the detector.
    pub fn about(&self, axis: f64) -> Job {
        Job { recipe: self.recipe.about(axis), execution: self.execution.clone() }
    }

    /// Returns the jobs of two half scans: whole slices from every other one of the projections that this job uses.
    pub fn halves(&self, used: &[usize]) -> [Job; 2] {
        // those of the other half are left out
        [1, 0].map(|other| Job {
            recipe: self.recipe.whole_slices().without(used.iter().copied().skip(other).step_by(2)),
            execution: Execution {
                preview: None,
                histogram: None,
                sections: None,
                page: None,
                ..self.execution.clone()
            },
        })
    }

    /// Returns this job for slices by filtered back projection.
    pub fn filtered(&self) -> Job {
        Job { recipe: self.recipe.filtered(), execution: self.execution.clone() }
    }

    /// Returns this job with projections that are rotated by this tilt.
    pub fn tilted(&self, tilt: Option<Tilt>) -> Job {
        Job { recipe: self.recipe.tilted(tilt), execution: self.execution.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    /// Parses a job from flags as on the command line.
    fn job(flags: &str) -> Job {
        let command = ["fbp", "reconstruct"].into_iter().chain(flags.split_whitespace());
        match Cli::try_parse_from(command).unwrap().command {
            Command::Reconstruct { args, .. } => Job::new(&args).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn jobs_are_values_that_can_be_written_and_read() {
        for flags in [
            "--sinograms s --output r",
            "--projections p --flats f --darks d --angles a.txt --center auto:vo --output r-%03i.tif --resume --shard 1/3",
            "--projections p --center-shifts s.txt --dtype u8 --range 0,1 --output one.tif --overwrite --watch 90s --expect 7",
            "--sinograms s --device 0:1,gpu/2 --memory 2G --device-memory 1G --progress json --log l --dry-run -vv",
            "--sinograms s --rows 1..9:2 --histogram h.json --sections s.png --report r.json --output r --no-self-test",
        ] {
            let job = job(flags);
            let text = serde_json::to_string(&job).unwrap();
            assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job, "{flags}");
        }
    }

    #[test]
    fn what_is_no_part_of_the_recipe_leaves_it_as_it_is() {
        let recipe = job("--sinograms s --output r").recipe;
        for flags in [
            "--sinograms elsewhere/s --output other --overwrite",
            "--sinograms s --output r --device cpu --memory 2G --device-memory 1G --no-self-test",
            "--sinograms s --output r --rows 1..3 --shard 0/2 --preview p.png --histogram h.json --report r.json -v",
            "--sinograms s --output r --watch 10s --progress none --resume --resolution",
        ] {
            assert_eq!(job(flags).recipe, recipe, "{flags}");
        }
    }

    #[test]
    fn a_job_about_an_axis_is_another_with_the_same_execution() {
        let job = job("--sinograms s --center auto --output r --size 40");
        let about = job.about(12.5);
        assert_eq!(about.recipe.scan.center, crate::recipe::Center::At(12.5));
        assert_eq!((&about.execution, about.recipe.slice.size), (&job.execution, Some(40)));
    }
}

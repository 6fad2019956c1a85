//! A run: what it computes, and how and where.

use crate::cli::ReconstructArgs;
use crate::error::Result;
use crate::execution::Execution;
use crate::recipe::{Recipe, check_conflicts};
use crate::source::OpenRequest;
use serde::{Deserialize, Serialize};

/// A run, typed and checked. It is made once and never changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Everything that decides the bytes of slices.
    pub recipe: Recipe,
    /// Everything else.
    pub execution: Execution,
}

impl Job {
    /// Types and checks merged flags.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
    pub fn new(args: &ReconstructArgs) -> Result<Job> {
        check_conflicts(args)?;
        Ok(Job { recipe: Recipe::new(args)?, execution: Execution::new(args)? })
    }

    /// What opening the input takes; `angles` are those of an HDF5 file.
    pub fn open_request(&self, angles: bool) -> OpenRequest<'_> {
        let input = &self.recipe.input;
        OpenRequest {
            kind: input.kind,
            paths: &self.execution.files.stacks,
            datasets: &input.datasets,
            binning: input.binning,
            angles,
            memory: self.execution.host_memory(),
        }
    }

    /// The same about an axis at this position, in bins of the detector.
    pub fn about(&self, axis: f64) -> Job {
        Job { recipe: self.recipe.about(axis), execution: self.execution.clone() }
    }
}

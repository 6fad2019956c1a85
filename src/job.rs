//! A run: what it computes, and how and where.

use crate::cli::ReconstructArgs;
use crate::error::Result;
use crate::execution::Execution;
use crate::recipe::{Recipe, check_conflicts};
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

    /// The same about an axis at this position, in bins of the detector.
    pub fn about(&self, axis: f64) -> Job {
        Job { recipe: self.recipe.about(axis), execution: self.execution.clone() }
    }
}

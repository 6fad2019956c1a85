//! The data that all stages of a run share.

use super::finish::Finish;
use super::source::Source;
use crate::histogram::CountedSlice;
use crate::recipe::Recipe;
use crate::report::{Reporter, StageClock};
use crate::sink::Target;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The data that all stages share.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub recipe: &'a Recipe,
    pub source: &'a Source,
    /// Numbers of the slices to compute, ascending.
    pub slices: &'a [usize],
    pub finish: &'a Finish,
    pub reporter: &'a Reporter,
    /// True to end the run: read before a piece is read and before a chunk is computed; computed slices are still
    /// written.
    pub cancelled: &'a AtomicBool,
    pub target: &'a Target,
    /// Number of the slice whose values are returned, if one is wanted.
    pub keep: Option<usize>,
    /// Called with every slice before it is written.
    pub observer: Option<&'a Observer<'a>>,
    /// Collects for how long each stage is busy.
    pub clock: &'a StageClock,
}

impl Run<'_> {
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }
}

/// Function that gets the number of a slice and what is known of it, from any thread and in any order.
pub type Observer<'a> = dyn Fn(usize, ObservedSlice) + Sync + 'a;

/// A slice before it is written.
#[derive(Clone, Copy)]
pub struct ObservedSlice<'a> {
    /// The finished values; `None` if a device encodes slices.
    pub values: Option<&'a [f32]>,
    /// Counts of the values, if a device counted them.
    pub counted: Option<&'a CountedSlice>,
}

//! The paper's benchmark (section 2.3): kernels are checked and timed at a steady rate, with a line for each.

mod least_squares;
mod plot;
mod row;
mod steady;
mod timing;

pub use least_squares::{IterationTiming, iteration_text, time_iterations};
pub use plot::bench_plot;
pub use row::{BenchRow, bench_table};
pub use timing::{Bench, KernelTiming, TimingOptions};

#[cfg(test)]
pub(super) use row::example_row;

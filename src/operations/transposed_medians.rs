//! Running medians across the columns of sinograms.

use super::files::{FLOAT_ORDER, MEDIAN, SINOGRAMS};
use super::median::define_median;
use super::program_target::ProgramTarget;
use super::sinograms::SinogramBatch;
use crate::device::Session;
use crate::error::{Error, Result};
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, StepTarget, assemble, cl_file};
use opencl3::kernel::Kernel;

const TRANSPOSED_MEDIANS: ClFile = cl_file!("transposed_medians.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, SINOGRAMS, FLOAT_ORDER, MEDIAN, TRANSPOSED_MEDIANS]];

/// Returns the source of the kernel for running medians of `size` values, an odd number; the work-group is
/// [`StepTarget::row_group`].
fn generate_transposed_medians(size: usize, target: StepTarget) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", target.row_group() as u32)?;
    define_median(&mut defines, size, true)?;
    let (name, options) = (format!("transposed-medians-{size}"), vec!["-cl-std=CL1.1".to_owned()]);
    Ok(assemble(name, &defines, FILES[0], options, "transposed_medians", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    [5, 21, 1001].map(|size| generate_transposed_medians(size, on.target)).into_iter().collect()
}

/// Number of windows between the first and the last column of a segment: the first window costs more than the others.
const WINDOWS: usize = 8;
/// Largest number of columns of a segment.
const LONGEST: usize = 512;

/// The kernel for running medians with windows of one size.
pub struct RunningMedians {
    kernel: Kernel,
    group: usize,
    size: usize,
}

impl RunningMedians {
    /// Builds the kernel for windows of `size` columns, an odd number.
    ///
    /// # Errors
    /// [`Error::Internal`] for an even number, and errors of the device in building the program.
    pub fn new(session: &Session, size: usize) -> Result<Self> {
        if size % 2 == 0 {
            return Err(Error::Internal(format!("a running median of {size} values, an even number")));
        }
        let source = generate_transposed_medians(size, session.step_target())?;
        let program = session.build(&source)?;
        Ok(RunningMedians {
            kernel: session.kernel(&program, source.entry)?,
            group: session.step_target().row_group(),
            size,
        })
    }

    /// Computes the medians of the values of `columns` around each value along bins, mirrored at the ends, into `out`,
    /// another buffer. Both are `[slice][bin][projection]`.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn run(&self, session: &Session, columns: &SinogramBatch, out: &SinogramBatch) -> Result<()> {
        let SinogramBatch { slices, projections, bins, .. } = *columns;
        if (out.slices, out.projections, out.bins) != (slices, projections, bins) {
            return Err(Error::Internal("these sinograms are not of one size".into()));
        }
        let segment = (WINDOWS * self.size).clamp(64, LONGEST).min(bins);
        let launch = session
            .launch(&self.kernel, "running medians")
            .sinograms(columns)?
            .sinograms(out)?
            .value(columns.first as u64)?
            .value(out.first as u64)?
            .value(bins as i32)?
            .value(projections as i32)?
            .value(segment as i32)?;
        let global = [projections.next_multiple_of(self.group), bins.div_ceil(segment), slices];
        launch.run(&global, Some(&[self.group, 1, 1])).map(drop)
    }
}

//! -log of transmissions on a device, after steps on images.

use super::correction::CORRECTION_GROUP;
use super::device_rows::DeviceRows;
use super::files::LOGARITHM;
use super::program_target::ProgramTarget;
use crate::device::Session;
use crate::error::Result;
use crate::kernel::{ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

const MINUS_LOG: ClFile = cl_file!("minus_log.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[LOGARITHM, MINUS_LOG]];

/// Returns the source of the kernel that takes -log after steps on images, with work-groups of `group`.
fn generate_minus_log(group: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", group as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("minus-log".to_owned(), &defines, FILES[0], options, "minus_log", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    Ok(vec![generate_minus_log(power_of_two_group(on.target.facts, CORRECTION_GROUP))?])
}

/// The kernel that takes -log.
pub(super) struct MinusLog {
    kernel: Kernel,
    group: usize,
}

impl MinusLog {
    /// Builds the kernel.
    pub fn new(session: &Session) -> Result<Self> {
        let group = power_of_two_group(&session.facts, CORRECTION_GROUP);
        let source = generate_minus_log(group)?;
        let program = session.build(&source)?;
        Ok(MinusLog { kernel: session.kernel(&program, source.entry)?, group })
    }

    /// Takes -log of `[rows, projections, bins]` values in their place; values without logarithm are counted for the
    /// rows `counted`. Does not wait for the kernel.
    pub fn run(
        &self,
        session: &Session,
        values: &DeviceRows,
        [rows, projections, bins]: [usize; 3],
        counted: &Range<usize>,
        counts: &Buffer<[u32; 4]>,
    ) -> Result<Event> {
        let launch = session
            .launch(&self.kernel, "minus_log")
            .rows(values, rows, projections * bins)?
            .buffer(counts, counted.len(), "counts of replaced values")?
            .value(values.first as u64)?
            .value(values.stride as u64)?
            .value(bins as i32)?
            .value([counted.start as i32, counted.end as i32])?;
        launch.among_uploads().run(&[self.group, projections, rows], Some(&[self.group, 1, 1]))
    }
}

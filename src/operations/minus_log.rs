//! -log of transmissions on a device, where the correction of rows does not take it.

use super::correction::CORRECTION_GROUP;
use super::files::LOGARITHM;
use super::program_target::ProgramTarget;
use super::row_operation::{BatchRows, RowKernel, RowOperation};
use crate::device::Session;
use crate::error::{Error, Result};
use crate::kernel::{ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use opencl3::event::Event;
use opencl3::kernel::Kernel;

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

/// -log of rows. Values without logarithm are counted.
#[derive(Clone, Copy, Debug)]
pub struct LineIntegrals;

/// The kernel that takes -log.
struct LogKernel {
    kernel: Kernel,
    group: usize,
}

impl RowOperation for LineIntegrals {
    fn build(&self, session: &Session) -> Result<Box<dyn RowKernel>> {
        let group = power_of_two_group(&session.facts, CORRECTION_GROUP);
        let source = generate_minus_log(group)?;
        let program = session.build(&source)?;
        Ok(Box::new(LogKernel { kernel: session.kernel(&program, source.entry)?, group }))
    }

    fn is_minus_log(&self) -> bool {
        true
    }
}

impl RowKernel for LogKernel {
    fn run(&self, session: &Session, of: &BatchRows) -> Result<Event> {
        let BatchRows { values, rows, projections, bins, counted, place, counts } = of;
        if *place > 0 {
            return Err(Error::Internal("the kernel that takes -log counts from the first row on".into()));
        }
        let launch = session
            .launch(&self.kernel, "minus_log")
            .rows(values, *rows, projections * bins)?
            .buffer(counts, counted.len(), "counts of replaced values")?
            .value(values.first as u64)?
            .value(values.stride as u64)?
            .value(*bins as i32)?
            .value([counted.start as i32, counted.end as i32])?;
        launch.among_uploads().run(&[self.group, *projections, *rows], Some(&[self.group, 1, 1]))
    }
}

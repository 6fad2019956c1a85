//! A polynomial of line integrals on a device.

use super::correction::CORRECTION_GROUP;
use super::program_target::ProgramTarget;
use super::row_operation::{BatchRows, RowKernel, RowOperation};
use crate::device::Session;
use crate::error::Result;
use crate::kernel::{ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use opencl3::event::Event;
use opencl3::kernel::Kernel;

const HARDENING: ClFile = cl_file!("hardening.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[HARDENING]];

/// Number of factors of the polynomial that the kernel takes.
pub const HARDENING_FACTORS: usize = 8;

/// Returns the source of the kernel that applies a polynomial, with work-groups of `group`.
fn generate_hardening(group: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", group as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("harden".to_owned(), &defines, FILES[0], options, "harden", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    Ok(vec![generate_hardening(power_of_two_group(on.target.facts, CORRECTION_GROUP))?])
}

/// A polynomial of line integrals `p`: `p` plus multiples of its square, its cube and so on. Results beyond `largest` become
/// 0, and are counted as not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HardeningPolynomial {
    /// Factors of the square, the cube and so on.
    pub factors: [f32; HARDENING_FACTORS],
    /// Largest magnitude of a value that later steps can carry.
    pub largest: f32,
}

/// The kernel that applies a polynomial.
struct HardeningKernel {
    polynomial: HardeningPolynomial,
    kernel: Kernel,
    group: usize,
}

impl RowOperation for HardeningPolynomial {
    fn build(&self, session: &Session) -> Result<Box<dyn RowKernel>> {
        let group = power_of_two_group(&session.facts, CORRECTION_GROUP);
        let source = generate_hardening(group)?;
        let program = session.build(&source)?;
        Ok(Box::new(HardeningKernel { polynomial: *self, kernel: session.kernel(&program, source.entry)?, group }))
    }
}

impl RowKernel for HardeningKernel {
    fn run(&self, session: &Session, of: &BatchRows) -> Result<Event> {
        let BatchRows { values, rows, projections, bins, counted, place, counts } = of;
        let launch = session
            .launch(&self.kernel, "harden")
            .rows(values, *rows, projections * bins)?
            .buffer(counts, place + counted.len(), "counts of replaced values")?
            .value(values.first as u64)?
            .value(values.stride as u64)?
            .value(*bins as i32)?
            .value([counted.start as i32, counted.end as i32])?
            .value(*place as i32)?
            .value(self.polynomial.largest)?
            .value(self.polynomial.factors)?;
        launch.among_uploads().run(&[self.group, *projections, *rows], Some(&[self.group, 1, 1]))
    }
}

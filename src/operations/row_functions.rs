//! Functions of every value of rows on a device: -log of transmissions, where the correction of rows does not take it, and a
//! polynomial of line integrals.

use super::correction::CORRECTION_GROUP;
use super::files::LOGARITHM;
use super::program_target::ProgramTarget;
use super::row_operation::{BatchRows, RowKernel, RowOperation};
use crate::device::Session;
use crate::error::Result;
use crate::kernel::{ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use opencl3::event::Event;
use opencl3::kernel::Kernel;

const ROW_FUNCTIONS: ClFile = cl_file!("row_functions.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[LOGARITHM, ROW_FUNCTIONS]];

/// Number of factors of the polynomial that the kernel takes.
pub const HARDENING_FACTORS: usize = 8;

/// -log of rows. Values without logarithm are counted.
#[derive(Clone, Copy, Debug)]
pub struct LineIntegrals;

/// A polynomial of line integrals `p`: `p` plus multiples of its square, its cube and so on. Results beyond `largest` become
/// 0, and are counted as not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HardeningPolynomial {
    /// Factors of the square, the cube and so on.
    pub factors: [f32; HARDENING_FACTORS],
    /// Largest magnitude of a value that later steps can carry.
    pub largest: f32,
}

/// A function that the kernel applies.
#[derive(Clone, Copy, Debug)]
enum RowFunction {
    MinusLog,
    Polynomial(HardeningPolynomial),
}

impl RowFunction {
    /// Returns the name of the program, and the function's number in the source.
    fn named(self) -> (&'static str, u32) {
        match self {
            RowFunction::MinusLog => ("minus-log", 0),
            RowFunction::Polynomial(_) => ("harden", 1),
        }
    }

    /// Returns the source of the kernel that applies the function, with work-groups of `group`.
    fn generate(self, group: usize) -> Result<KernelSource> {
        let (name, number) = self.named();
        let mut defines = Defines::default();
        defines.number("FUNCTION", number)?;
        defines.number("GROUP", group as u32)?;
        let options = vec!["-cl-std=CL1.1".to_owned()];
        Ok(assemble(name.to_owned(), &defines, FILES[0], options, "apply_to_rows", LaunchShape::NONE))
    }

    fn build(self, session: &Session) -> Result<Box<dyn RowKernel>> {
        let group = power_of_two_group(&session.facts, CORRECTION_GROUP);
        let source = self.generate(group)?;
        let program = session.build(&source)?;
        Ok(Box::new(RowFunctionKernel { function: self, kernel: session.kernel(&program, source.entry)?, group }))
    }
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    let group = power_of_two_group(on.target.facts, CORRECTION_GROUP);
    let polynomial = HardeningPolynomial { factors: [0.0; HARDENING_FACTORS], largest: f32::MAX };
    [RowFunction::MinusLog, RowFunction::Polynomial(polynomial)]
        .map(|function| function.generate(group))
        .into_iter()
        .collect()
}

impl RowOperation for LineIntegrals {
    fn build(&self, session: &Session) -> Result<Box<dyn RowKernel>> {
        RowFunction::MinusLog.build(session)
    }

    fn is_minus_log(&self) -> bool {
        true
    }
}

impl RowOperation for HardeningPolynomial {
    fn build(&self, session: &Session) -> Result<Box<dyn RowKernel>> {
        RowFunction::Polynomial(*self).build(session)
    }
}

/// The kernel that applies a function.
struct RowFunctionKernel {
    function: RowFunction,
    kernel: Kernel,
    group: usize,
}

impl RowKernel for RowFunctionKernel {
    fn run(&self, session: &Session, of: &BatchRows) -> Result<Event> {
        let BatchRows { values, rows, projections, bins, counted, place, counts } = of;
        let (largest, factors) = match self.function {
            RowFunction::MinusLog => (f32::MAX, [0.0; HARDENING_FACTORS]),
            RowFunction::Polynomial(HardeningPolynomial { largest, factors }) => (largest, factors),
        };
        let launch = session
            .launch(&self.kernel, "apply_to_rows")
            .rows(values, *rows, projections * bins)?
            .buffer(counts, place + counted.len(), "counts of replaced values")?
            .value(values.first as u64)?
            .value(values.stride as u64)?
            .value(*bins as i32)?
            .value([counted.start as i32, counted.end as i32])?
            .value(*place as i32)?
            .value(largest)?
            .value(factors)?;
        launch.among_uploads().run(&[self.group, *projections, *rows], Some(&[self.group, 1, 1]))
    }
}

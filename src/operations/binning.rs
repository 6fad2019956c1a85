//! Binning on a device: the mean of every square of samples as they are stored.

use super::files::SAMPLES;
use super::program_target::ProgramTarget;
use super::samples::{DeviceSamples, SampleForm, SampleKind, SampleOrder, sample_form};
use crate::device::{BufferLayout, Session};
use crate::error::Result;
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, StepTarget, assemble, cl_file};
use crate::source::StoredRows;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

const BIN_SAMPLES: ClFile = cl_file!("bin_samples.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, SAMPLES, BIN_SAMPLES]];

/// The form of the samples and the number that are binned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinningKernel {
    pub samples: SampleForm,
    /// Number of bins, and of rows, that form one.
    pub by: usize,
}

/// Returns the source of the kernel that bins samples.
fn generate_binning(target: StepTarget, kernel: BinningKernel) -> Result<KernelSource> {
    let BinningKernel { samples, by } = kernel;
    let mut defines = Defines::default();
    samples.define(&mut defines)?;
    defines.number("BINNING", by as u32)?;
    defines.switch("DOUBLE", samples.kind == SampleKind::Float && target.facts.has("cl_khr_fp64"))?;
    defines.number("GROUP", target.row_group() as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble(format!("bin-samples-{by}"), &defines, FILES[0], options, "bin_samples", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    let bins = |samples, by| generate_binning(on.target, BinningKernel { samples, by });
    Ok(vec![
        bins(SampleForm::COUNTS, 2)?,
        bins(SampleForm { bytes: 4, kind: SampleKind::Signed, swapped: false }, 3)?,
        bins(SampleForm { bytes: 2, kind: SampleKind::Float, swapped: false }, 4)?,
    ])
}

/// The kernel that bins samples, with memory for their means.
pub struct SampleBinner {
    kernel: Kernel,
    stored: StoredRows,
    order: SampleOrder,
    group: usize,
    means: Buffer<u8>,
}

impl SampleBinner {
    /// Builds the kernel for at most `rows` binned rows of a projection at a time.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for samples that the kernel cannot read.
    pub fn new(session: &Session, stored: StoredRows, order: SampleOrder, rows: usize) -> Result<Self> {
        let source = generate_binning(
            session.step_target(),
            BinningKernel { samples: sample_form(stored.samples)?, by: stored.by },
        )?;
        let program = session.build(&source)?;
        Ok(SampleBinner {
            kernel: session.kernel(&program, source.entry)?,
            stored,
            order,
            group: session.step_target().row_group(),
            means: Self::layout(stored, rows).buffer(session, "binned samples")?,
        })
    }

    /// Returns the buffers for at most `rows` binned rows of a projection at a time.
    pub fn layout(stored: StoredRows, rows: usize) -> BufferLayout {
        BufferLayout::default().with::<f32>("binned samples", rows * stored.bins())
    }

    /// Bins samples of some rows of some projections, in the order of the stack. The means are in the same order, as
    /// f32. Does not wait for the kernel.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn run<'a>(
        &self,
        session: &Session,
        samples: impl Into<DeviceSamples<'a>>,
        rows: usize,
        projections: usize,
    ) -> Result<&Buffer<u8>> {
        let DeviceSamples { values: samples, copied } = samples.into();
        let StoredRows { by, width, .. } = self.stored;
        if rows == 0 || projections == 0 {
            return Ok(&self.means);
        }
        // rows of a frame that form one are next to each other, frames that do follow one another
        let ([inner, outer], [of_outer, of_inner, of_part]) = match self.order {
            SampleOrder::Projections => ([rows, projections], [rows * by, by, 1]),
            SampleOrder::Sinograms => ([projections, rows], [projections * by, 1, projections]),
        };
        let bins = self.stored.bins();
        let launch = session
            .launch(&self.kernel, "bin_samples")
            .after(copied)
            .buffer(samples, rows * projections * self.stored.row_bytes(), "samples")?
            .buffer(&self.means, 4 * rows * projections * bins, "binned samples")?
            .value(of_outer as u64)?
            .value(of_inner as u64)?
            .value(of_part as u64)?
            .value(width as i32)?
            .value(bins as i32)?;
        let global = [bins.next_multiple_of(self.group), inner, outer];
        launch.among_uploads().run(&global, Some(&[self.group, 1, 1]))?;
        Ok(&self.means)
    }
}

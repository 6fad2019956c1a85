//! Binning on a device: the mean of every square of samples as they are stored.

use super::samples::{DeviceSamples, SampleOrder, sample_form};
use super::{BufferLayout, Session};
use crate::error::Result;
use crate::kernel::{BinningKernel, generate_binning};
use crate::source::StoredRows;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

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

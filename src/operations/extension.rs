//! Extension of the rows of a 360-degree scan on a device.

use super::program_target::ProgramTarget;
use super::sinograms::SinogramBatch;
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::fault;
use crate::geometry::ExtendedField;
use crate::kernel::{ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

const EXTEND_ROWS: ClFile = cl_file!("extend_rows.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[EXTEND_ROWS]];

/// Returns the source of the kernel that extends rows of a whole turn, with work-groups of `group`.
fn generate_extension(group: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", group as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("extend-rows".to_owned(), &defines, FILES[0], options, "extend_rows", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    Ok(vec![generate_extension(on.target.row_group())?])
}

/// The kernel that extends rows, with its weights, and memory for sinograms as the detector recorded them.
pub struct RowExtender {
    kernel: Kernel,
    weights: Buffer<f32>,
    /// True if every projection has weights of its own.
    by_projection: bool,
    detector: usize,
    bins: usize,
    before: usize,
    projections: usize,
    slices: usize,
    group: usize,
    seen: Buffer<f32>,
}

impl RowExtender {
    /// Builds the kernel for at most `slices` sinograms of `projections` projections at a time.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(session: &Session, field: &ExtendedField, slices: usize, projections: usize) -> Result<Self> {
        let group = session.step_target().row_group();
        let source = generate_extension(group)?;
        let program = session.build(&source)?;
        let wrong = 1.0 + fault::shift(&source.name) as f32;
        let weights: Vec<f32> = field.weights().iter().flatten().map(|weight| weight * wrong).collect();
        if weights.len() != field.detector && weights.len() != projections * field.detector {
            return Err(Error::Internal(format!("{} weights for {projections} projections", weights.len())));
        }
        let layout = Self::layout(field, slices, projections);
        Ok(RowExtender {
            kernel: session.kernel(&program, source.entry)?,
            by_projection: weights.len() > field.detector,
            weights: layout.constant(session, "weights of extended rows", &weights)?,
            detector: field.detector,
            bins: field.bins,
            before: field.before,
            projections,
            slices,
            group,
            seen: layout.buffer(session, "sinograms as seen")?,
        })
    }

    /// Returns the buffers for at most `slices` sinograms of `projections` projections at a time.
    pub fn layout(field: &ExtendedField, slices: usize, projections: usize) -> BufferLayout {
        BufferLayout::default()
            .with::<f32>("weights of extended rows", field.weights().iter().map(Vec::len).sum())
            .with::<f32>("sinograms as seen", slices * projections * field.detector)
    }

    /// Copies the recorded bins, which are at the beginning of each sinogram of extended rows, out of `sinograms`, so
    /// that steps can be applied to them; [`extend`](Self::extend) puts them back.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn seen(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<SinogramBatch<'_>> {
        self.check(session, sinograms)?;
        let length = self.projections * self.detector;
        for slice in 0..sinograms.slices {
            let from = sinograms.first + slice * sinograms.sinogram_len();
            let (from, to) = ((sinograms.values, 4 * from), (&self.seen, 4 * slice * length));
            session.copy_between(&session.queue, from, to, 4 * length, "sinograms")?;
        }
        let SinogramBatch { slices, projections, .. } = *sinograms;
        Ok(SinogramBatch { values: &self.seen, first: 0, slices, projections, bins: self.detector })
    }

    /// Extends the rows that were copied out, into `sinograms`.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn extend(&self, session: &Session, sinograms: &SinogramBatch) -> Result<Event> {
        self.check(session, sinograms)?;
        let weights = if self.by_projection { self.projections * self.detector } else { self.detector };
        let launch = session
            .launch(&self.kernel, "extend_rows")
            .buffer(&self.seen, sinograms.slices * self.projections * self.detector, "sinograms as seen")?
            .buffer(&self.weights, weights, "weights of extended rows")?
            .sinograms(sinograms)?
            .value(sinograms.first as u64)?
            .value(self.bins as i32)?
            .value(self.detector as i32)?
            .value(self.before as i32)?
            .value(if self.by_projection { self.detector as i32 } else { 0 })?;
        let global = [self.bins.next_multiple_of(self.group), self.projections, sinograms.slices];
        launch.run(&global, Some(&[self.group, 1, 1]))
    }

    fn check(&self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let same = (sinograms.projections, sinograms.bins) == (self.projections, self.bins);
        if !same || sinograms.slices > self.slices {
            return Err(Error::Internal("these sinograms are not those of the extended field".into()));
        }
        sinograms.check(session)
    }
}

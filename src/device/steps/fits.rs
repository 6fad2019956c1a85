//! Smoothing, across bins, of polynomials fitted to the columns of sinograms.

use super::{BufferLayout, ColumnProducts, DeviceValues, Session, SinogramBatch, SinogramShape};
use crate::error::{Error, Result};
use crate::kernel::{FitGroups, StepTarget, generate_fits};
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

/// The kernels that add to sinograms the values by which a polynomial fit of their columns becomes smooth.
pub struct SmoothedFits {
    rough_fits: Kernel,
    smooth_fits: Kernel,
    groups: FitGroups,
    degrees: usize,
    shape: SinogramShape,
    reach: usize,
    blocks: usize,
    block_of: Buffer<i32>,
    weights: Buffer<f32>,
    /// The rough part of the fits, `[slice][projection][bin]`.
    rough: DeviceValues,
}

impl SmoothedFits {
    /// Builds the kernels for fits of `degrees` polynomials over blocks of projections; `block_of` is the block of each
    /// projection. A running median of `size` bins, an odd number, is taken of the fit, and the rest is smoothed with
    /// `weights`, also an odd number.
    ///
    /// # Errors
    /// Errors of the device in building the program and allocating memory.
    pub fn new(
        session: &Session,
        shape: SinogramShape,
        degrees: usize,
        block_of: &[usize],
        size: usize,
        weights: &[f32],
    ) -> Result<Self> {
        if block_of.len() != shape.projections || size % 2 == 0 || weights.len() % 2 == 0 {
            return Err(Error::Internal(format!("blocks, medians of {size} or {} weights do not fit", weights.len())));
        }
        let groups = FitGroups::new(session.step_target(), shape.bins, size);
        let program = session.build(&generate_fits(groups, degrees, size)?)?;
        let indices: Vec<i32> = block_of.iter().map(|block| *block as i32).collect();
        let layout = Self::layout(session.step_target(), shape, size, weights.len());
        let padded = [weights, &vec![0.0; groups.span - 1]].concat();
        Ok(SmoothedFits {
            rough_fits: session.kernel(&program, "rough_fits")?,
            smooth_fits: session.kernel(&program, "smooth_fits")?,
            groups,
            degrees,
            shape,
            reach: weights.len() / 2,
            blocks: block_of.iter().max().map_or(0, |last| last + 1),
            block_of: layout.constant(session, "blocks of projections", &indices)?,
            weights: layout.constant(session, "weights of a Gaussian", &padded)?,
            rough: layout.buffer(session, "fits of columns")?,
        })
    }

    /// Returns the buffers for a running median of `size` bins and `weights` weights.
    pub fn layout(target: StepTarget, shape: SinogramShape, size: usize, weights: usize) -> BufferLayout {
        let groups = FitGroups::new(target, shape.bins, size);
        BufferLayout::default()
            .with::<i32>("blocks of projections", shape.projections)
            .with::<f32>("weights of a Gaussian", weights + groups.span - 1)
            .with::<f32>("fits of columns", shape.slices * shape.projections * shape.bins)
    }

    /// Smooths sinograms, whose `products` with the polynomials are known.
    ///
    /// # Errors
    /// [`Error::Internal`] for sinograms of another size or other products, and errors of the device.
    pub fn run(&self, session: &Session, sinograms: &SinogramBatch, products: &ColumnProducts) -> Result<()> {
        self.shape.expect(session, sinograms)?;
        let SinogramShape { projections, bins, .. } = self.shape;
        let slices = sinograms.slices;
        let local = [self.groups.group, 1, 1];
        let groups = |bins_of_item: usize| bins.div_ceil(self.groups.group * bins_of_item) * self.groups.group;
        let launch = session
            .launch(&self.rough_fits, "rough_fits")
            .buffer(products.products(), slices * self.blocks * self.degrees * bins, "products with polynomials")?
            .buffer(products.factors(), projections * self.degrees, "polynomials")?
            .buffer(&self.block_of, projections, "blocks of projections")?
            .buffer(&self.rough, slices * projections * bins, "fits of columns")?
            .value(bins as i32)?
            .value(self.blocks as i32)?;
        launch.run(&[groups(self.groups.run), projections, slices], Some(&local))?;
        let launch = session
            .launch(&self.smooth_fits, "smooth_fits")
            .sinograms(sinograms)?
            .value(sinograms.first as u64)?
            .buffer(&self.rough, slices * projections * bins, "fits of columns")?
            // zeros follow the weights
            .buffer(&self.weights, 2 * self.reach + self.groups.span, "weights of a Gaussian")?
            .value(bins as i32)?
            .value(self.reach as i32)?;
        launch.run(&[groups(self.groups.span), projections, slices], Some(&local)).map(drop)
    }
}

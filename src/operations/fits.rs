//! Smoothing, across bins, of polynomials fitted to the columns of sinograms.

use super::files::{FLOAT_ORDER, MEDIAN, SINOGRAMS};
use super::median::define_median;
use super::polynomials::ColumnProducts;
use super::program_target::ProgramTarget;
use super::sinograms::{DeviceValues, SinogramBatch, SinogramShape};
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, StepTarget, assemble, cl_file};
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

const FITS: ClFile = cl_file!("fits.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, SINOGRAMS, FLOAT_ORDER, MEDIAN, FITS]];

/// Largest number of bins for which an item finds medians.
const MOST_RUN: usize = 15;
/// Number of bins that an item smooths.
const SPAN: usize = 5;
/// Number of weights in local memory at a time.
const TILE: usize = 256;
/// Bytes of local memory that some devices need for a kernel's arguments.
const RESERVED: usize = 512;

/// The division of the rows of a fit among work-items on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitGroups {
    pub group: usize,
    /// Number of bins for which an item finds medians.
    pub run: usize,
    /// Number of bins that an item smooths.
    pub span: usize,
}

impl FitGroups {
    /// Returns the division for rows of `bins` and a running median of `size`. Numbers of bins are odd.
    pub fn new(target: StepTarget, bins: usize, size: usize) -> Self {
        let odd = |count: usize| count.saturating_sub(1) / 2 * 2 + 1;
        // room for the fit with its halo, and for the remainder
        let room = (target.facts.local_memory as usize / 4).saturating_sub(RESERVED / 4 + size) / 2;
        let halves = std::iter::successors(Some(target.row_group()), |group| Some(group / 2).filter(|half| *half > 0));
        let group = halves.take_while(|group| *group > 1).find(|group| *group <= room).unwrap_or(1);
        let most = odd((room / group).min(MOST_RUN));
        // segments of about the same length
        let segments = bins.div_ceil(group * most).max(1);
        let run = odd(bins.div_ceil(segments * group) + 1).min(most);
        FitGroups { group, run, span: SPAN }
    }
}

/// Returns the source for `degrees` polynomials and a running median of `size` bins, an odd number.
fn generate_fits(groups: FitGroups, degrees: usize, size: usize) -> Result<KernelSource> {
    let group = groups.group as u32;
    let mut defines = Defines::default();
    defines.number("DEGREES", degrees as u32)?;
    defines.number("GROUP", group)?;
    defines.number("RUN", groups.run as u32)?;
    defines.number("SPAN", groups.span as u32)?;
    defines.number("TILE", TILE as u32)?;
    // the weights return to the registers that they started from
    defines.number("UNROLL", groups.span as u32)?;
    define_median(&mut defines, size, false)?;
    Ok(assemble(
        format!("fits-{degrees}-{size}"),
        &defines,
        FILES[0],
        vec!["-cl-std=CL1.1".to_owned()],
        "rough_fits",
        LaunchShape { work_group: [group, 1], block: [group * groups.run as u32, 1] },
    ))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    [(1, 31), (3, 11), (11, 2001)]
        .map(|(degrees, size)| generate_fits(FitGroups::new(on.target, 2048, size), degrees, size))
        .into_iter()
        .collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{DeviceFacts, example};
    use crate::kernel::of;

    #[test]
    fn segments_fit_the_local_memory() {
        for (local_memory, max_work_group) in [(16 << 10, 64), (16 << 10, 1), (48 << 10, 1024)] {
            let facts = DeviceFacts { local_memory, max_work_group, ..example() };
            for bins in [1, 40, 960, 961, 2048, 100_000] {
                for size in [3, 21, 63, 2001] {
                    let groups = FitGroups::new(of(&facts), bins, size);
                    let bytes = 4 * (2 * groups.group * groups.run + size - 1);
                    assert!(bytes as u64 <= local_memory, "{groups:?}: {bytes} bytes for medians of {size}");
                    assert!(groups.group <= max_work_group && groups.run % 2 == 1, "{groups:?}");
                }
            }
        }
        let groups = FitGroups::new(of(&example()), 2048, 11);
        assert_eq!(groups, FitGroups { group: 64, run: 11, span: 5 });
    }
}

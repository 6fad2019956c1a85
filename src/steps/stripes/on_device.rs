//! The methods of stripe removal on a device.

use super::Stripes;
use super::profile::{FitsOnDevice, MeansOnDevice, Smooth};
use super::vo_on_device::{AllOnDevice, DeadOnDevice, FilteringOnDevice, LargeOnDevice, SortingOnDevice};
use super::wavelet::WaveletOnDevice;
use crate::device::{BufferLayout, Session};
use crate::error::Result;
use crate::kernel::StepTarget;
use crate::operations::SinogramShape;
use crate::steps::DeviceSinogramStep;

impl Stripes {
    /// Returns the method on a device, for the size and number of sinograms of `shape`.
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    pub fn on_device(&self, session: &Session, shape: SinogramShape) -> Result<Box<dyn DeviceSinogramStep>> {
        let means = |blocks: usize, smooth: Smooth| MeansOnDevice::new(session, shape, blocks, smooth);
        Ok(match *self {
            Stripes::Titarenko { alpha, blocks } => Box::new(means(blocks, Smooth::Regularised(alpha))?),
            Stripes::Mean { sigma, blocks } | Stripes::Fitting { order: 0, sigma, blocks } => {
                Box::new(means(blocks, Smooth::Gaussian(sigma))?)
            }
            Stripes::Fitting { order, sigma, blocks } => {
                Box::new(FitsOnDevice::new(session, shape, order, blocks, sigma)?)
            }
            Stripes::Wavelet { moments, level, sigma } => {
                Box::new(WaveletOnDevice::new(session, shape, moments, level, sigma)?)
            }
            Stripes::Sorting { size } => Box::new(SortingOnDevice::new(session, shape, size)?),
            Stripes::Filtering { sigma, size } => Box::new(FilteringOnDevice::new(session, shape, sigma, size)?),
            Stripes::Large { snr, size, drop } => Box::new(LargeOnDevice::new(session, shape, snr, size, drop)?),
            Stripes::Dead { snr, size } => Box::new(DeadOnDevice::new(session, shape, snr, size)?),
            Stripes::All { snr, large, small, drop } => {
                Box::new(AllOnDevice::new(session, shape, snr, [large, small], drop)?)
            }
        })
    }

    /// Returns the buffers of the method on a device, for the size and number of sinograms of `shape`.
    pub fn layout(&self, target: StepTarget, shape: SinogramShape) -> BufferLayout {
        match *self {
            Stripes::Titarenko { blocks, .. }
            | Stripes::Mean { blocks, .. }
            | Stripes::Fitting { order: 0, blocks, .. } => MeansOnDevice::layout(shape, blocks),
            Stripes::Fitting { order, sigma, blocks } => FitsOnDevice::layout(target, shape, order, blocks, sigma),
            Stripes::Wavelet { moments, level, sigma } => WaveletOnDevice::layout(shape, moments, level, sigma),
            Stripes::Sorting { .. } => SortingOnDevice::layout(target, shape),
            Stripes::Filtering { sigma, .. } => FilteringOnDevice::layout(target, shape, sigma),
            Stripes::Large { .. } => LargeOnDevice::layout(target, shape),
            Stripes::Dead { .. } => DeadOnDevice::layout(shape),
            Stripes::All { .. } => AllOnDevice::layout(target, shape),
        }
    }
}

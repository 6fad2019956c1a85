//! Source of the kernels that smooth polynomial fits across bins.

use super::super::files::{COMMON, FITS, FLOAT_ORDER, MEDIAN, SINOGRAMS};
use super::super::source::{LaunchShape, assemble};
use super::median::define_median;
use super::{Defines, KernelSource, StepTarget};
use crate::error::Result;

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
pub fn generate_fits(groups: FitGroups, degrees: usize, size: usize) -> Result<KernelSource> {
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
        &[COMMON, SINOGRAMS, FLOAT_ORDER, MEDIAN, FITS],
        vec!["-cl-std=CL1.1".to_owned()],
        "rough_fits",
        LaunchShape { work_group: [group, 1], block: [group * groups.run as u32, 1] },
    ))
}

#[cfg(test)]
mod tests {
    use super::super::groups::of;
    use super::*;
    use crate::facts::{DeviceFacts, example};

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

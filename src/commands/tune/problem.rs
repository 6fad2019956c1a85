//! Subjects of tuning: the kernels to compare with, and a problem that fits the device.

use super::super::bench::protocol;
use crate::cli::TuneArgs;
use crate::error::Result;
use crate::facts::{DeviceFacts, DeviceKind};
use crate::kernel::{Interpolation, Mode, Offer, SLICE_MODES};
use crate::kernel::{KernelSpec, Problem, RowFilter};
use crate::measure::{OfferFilter, Protocol, shipped_kernel, starting_kernels};
use crate::profile::Profile;

/// Default side of slices on a GPU, see `--size`.
pub const SIZE: usize = 2048;
/// Default side of slices on a CPU, see `--size`.
pub const SIZE_OF_PROCESSORS: usize = 512;

/// Returns the kernels that tuned ones are compared with, one for each interpolation and mode.
pub fn targets(profile: &Profile, wanted: &OfferFilter) -> Vec<Offer> {
    let mut targets = Vec::new();
    for &interpolation in Interpolation::ALL {
        for &mode in Mode::ALL {
            let asked = (wanted.interpolations.is_empty() || wanted.interpolations.contains(&interpolation))
                && (wanted.modes.is_empty() || wanted.modes.contains(&mode));
            if asked {
                targets.extend(shipped_kernel(profile, interpolation, mode, &|offer| wanted.matches(offer)));
            }
        }
    }
    targets
}

pub fn problem(protocol: &Protocol) -> Problem {
    protocol.problem()
}

/// Returns the way in which rows are filtered for a kernel.
pub fn rows_of(spec: &KernelSpec, profile: &Profile, protocol: &Protocol, facts: &DeviceFacts) -> RowFilter {
    RowFilter::new(spec, &profile.fft, protocol.bins, Some(facts))
}

/// Returns the reason why a device cannot run a kernel with any layout of the sinogram, if so.
fn refuses(offer: &Offer, profile: &Profile, protocol: &Protocol, facts: &DeviceFacts) -> Result<Option<String>> {
    let mut why = None;
    for texel in offer.texels() {
        let spec = KernelSpec::new(offer, profile, texel, problem(protocol), Some(facts));
        why = protocol.refuses(&spec, rows_of(&spec, profile, protocol, facts), facts)?;
        if why.is_none() {
            break;
        }
    }
    Ok(why)
}

/// Returns the requested problem, or the largest default one at which every shipped kernel fits the device.
pub fn fitting(
    args: &TuneArgs,
    requested: Protocol,
    profile: &Profile,
    targets: &[Offer],
    facts: &DeviceFacts,
) -> Result<Protocol> {
    if args.size.is_some() {
        return Ok(requested);
    }
    let (usual, part) = if facts.kind == DeviceKind::Cpu { (SIZE_OF_PROCESSORS, 2) } else { (SIZE, 4) };
    let mut size = if args.quick { usual / part } else { usual };
    loop {
        let problem = protocol(size, args.bins, args.projections, requested.passes)?;
        let mut fits = true;
        for offer in targets {
            fits &= refuses(offer, profile, &problem, facts)?.is_none();
        }
        if fits || size <= 64 {
            return Ok(problem);
        }
        size /= 2;
    }
}

/// Returns the numbers of slices per pass that may be tried.
pub fn slice_modes(wanted: &OfferFilter) -> Vec<u32> {
    SLICE_MODES.into_iter().filter(|n| wanted.slices.is_empty() || wanted.slices.contains(n)).collect()
}

/// Returns the largest number of slices that any kernel may need.
pub fn most_slices(
    profile: &Profile,
    facts: &DeviceFacts,
    targets: &[Offer],
    wanted: &OfferFilter,
    protocol: &Protocol,
) -> Result<usize> {
    let modes = slice_modes(wanted);
    let mut most = 1;
    for target in targets {
        let first =
            starting_kernels(profile, facts, target, &modes, &wanted.algorithms, &|offer| wanted.matches(offer));
        for start in first {
            for &slices in modes.iter().chain([&start.slices]) {
                let offer = Offer { slices, ..start.clone() };
                let legal = offer.check().is_ok();
                if slices > most && legal && refuses(&offer, profile, protocol, facts)?.is_none() {
                    most = slices;
                }
            }
        }
    }
    Ok(most as usize)
}

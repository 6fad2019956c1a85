//! Selection of a kernel of a profile for a run.

use super::Profile;
use super::errors::ProfileChoiceError;
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::kernel::{Algorithm, Interpolation, KernelSpec, Mode, Offer, Problem, Texel};

impl Profile {
    /// Selects the kernel for a run.
    ///
    /// `None` as `algorithm` or `slices` uses the profile's `auto` for slices of `size` pixels a side (in full,
    /// whatever the region, which must not change values), with no more slices per pass than `run_slices` needs. If the
    /// automatic algorithm does not support the given `slices`, the profile's first kernel that does is used.
    ///
    /// # Errors
    /// A usage error that lists the kernels of the profile, if it has no such kernel.
    pub fn select(
        &self,
        algorithm: Option<Algorithm>,
        interpolation: Interpolation,
        mode: Mode,
        slices: Option<u32>,
        run_slices: usize,
        size: usize,
    ) -> Result<Offer> {
        let auto = self
            .auto
            .iter()
            .filter(|a| a.interpolation == interpolation && a.mode == mode)
            .filter(|a| a.serves(run_slices, size))
            .min_by_key(|a| a.order());
        let offers = self.offers();
        let serves = |o: &&Offer| o.interpolation == interpolation && o.mode == mode;
        let chosen = auto.map(|a| a.algorithm).unwrap_or_default();
        // if the automatic choice does not support the number of slices, the first kernel that does
        let algorithm = algorithm.unwrap_or_else(|| {
            // another rule than that of the interpolation is only used on request
            let mut having = offers
                .iter()
                .filter(serves)
                .filter(|o| slices.is_none_or(|n| o.slices == n) && o.parameters.keeps_rule(interpolation));
            let first = having.clone().next().map(|o| o.parameters.algorithm());
            match having.any(|o| o.parameters.algorithm() == chosen) {
                true => chosen,
                false => first.unwrap_or(chosen),
            }
        });
        let mut available: Vec<Offer> =
            offers.iter().filter(serves).filter(|o| o.parameters.algorithm() == algorithm).cloned().collect();
        available.sort_by_key(|o| o.slices);
        let modes: Vec<u32> = available.iter().map(|o| o.slices).collect();
        let wanted = match slices {
            Some(slices) => slices,
            None => {
                let most =
                    auto.filter(|a| a.algorithm == algorithm).map(|a| a.slices).or(modes.last().copied()).unwrap_or(1);
                let enough = modes.iter().copied().find(|&m| m as usize >= run_slices);
                enough.map_or(most, |m| m.min(most))
            }
        };
        available.into_iter().find(|o| o.slices == wanted).ok_or_else(|| {
            let (profile, slices, has) = (self.name.clone(), wanted, modes);
            match has.is_empty() {
                true => ProfileChoiceError::NoKernel { profile, algorithm, interpolation, mode, slices },
                false => ProfileChoiceError::OtherSlices { profile, algorithm, interpolation, mode, slices, has },
            }
            .into()
        })
    }
}

/// Returns the keys of the kernels that a profile's `[[auto]]` selects on a device, each once. They change with the
/// files of `cl/`, the generator, the profile's parameters and the capabilities of the device.
pub fn auto_keys(profile: &Profile, facts: &DeviceFacts) -> Result<Vec<String>> {
    let problem = Problem::new(1, true);
    let offers = profile.offers();
    let mut keys = Vec::new();
    for offer in profile.auto.iter().filter_map(|auto| offers.iter().find(|offer| auto.is_for(offer))) {
        let texel = offer.texels().first().copied().unwrap_or(Texel::Buffer);
        let key = KernelSpec::new(offer, profile, texel, problem, Some(facts)).generate()?.key;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

//! Kernels of a profile by the model.

use super::occupancy::{Occupancy, occupancy};
use super::stages::{StageRow, of_kernel, sized};
use crate::kernel::{Alu, Interpolation, KernelSpec, Load, Mode, Offer, Problem, Texel};
use crate::profile::{Profile, Throughput, Units};
use serde::Serialize;

/// One line of the model, and one object of its JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelRow {
    pub profile: String,
    /// The device that the rates belong to.
    pub device: String,
    /// Name of the kernel.
    pub spec: String,
    pub mode: Mode,
    pub units: Units,
    pub gu_per_s: Option<f64>,
    pub limit: Option<&'static str>,
    pub occupancy: Option<Occupancy>,
    pub load: Load,
    /// The profile's best measurement of this kernel family with the same interpolation, mode and slices.
    pub measured: Option<f64>,
    /// The stages of a slice with interpolation `exact`, beginning with the filter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRow>,
}

/// Returns the kernel of an offer for the device of the rates; it reads images only if there are rates for them.
pub(super) fn spec_of(offer: &Offer, profile: &Profile, rates: &Throughput, problem: Problem) -> KernelSpec {
    let images = rates.texels[0] > 0.0;
    let texels = offer.texels();
    let texel = texels.iter().find(|t| images || t.format().is_none()).copied().unwrap_or(Texel::Buffer);
    KernelSpec::new(offer, profile, texel, problem, None)
}

fn row(spec: &KernelSpec, offer: &Offer, profile: &Profile, rates: &Throughput) -> ModelRow {
    let spec = &sized(spec);
    let load = spec.load();
    let units = Units::of(&load, rates, 1.0);
    let limit = units.limit();
    let same = profile.measured.iter().filter(|m| {
        (m.algorithm, m.interpolation, m.mode, m.slices)
            == (offer.parameters.algorithm(), offer.interpolation, offer.mode, offer.slices)
    });
    ModelRow {
        profile: profile.name.clone(),
        device: rates.device.clone(),
        spec: spec.name(),
        mode: offer.mode,
        units,
        gu_per_s: limit.map(|(_, rate)| rate),
        limit: limit.map(|(name, _)| name),
        occupancy: occupancy(spec, rates, None),
        load,
        measured: same.map(|m| m.gu_per_s).max_by(f64::total_cmp),
        stages: of_kernel(spec, rates),
    }
}

/// Returns the model of every kernel that a profile offers; empty if the profile has no rates.
pub fn model_of_profile(profile: &Profile, problem: Problem) -> Vec<ModelRow> {
    let Some(rates) = &profile.throughput else { return Vec::new() };
    profile.offers().iter().map(|offer| row(&spec_of(offer, profile, rates, problem), offer, profile, rates)).collect()
}

/// Returns the model of the paper's kernel ([`Alu::of_paper`]) on the device of a profile: a row of Table 16.
pub fn model_of_paper(profile: &Profile, problem: Problem) -> Option<ModelRow> {
    let rates = profile.throughput.as_ref()?;
    let offer = Offer {
        interpolation: Interpolation::Linear,
        // positions from bin 0 are less exact than those of the precise kernels
        mode: Mode::Fast,
        slices: 1,
        parameters: Alu::of_paper().into(),
    };
    let spec = spec_of(&offer, profile, rates, problem);
    Some(ModelRow { measured: None, ..row(&spec, &offer, profile, rates) })
}

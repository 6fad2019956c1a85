//! `fbp model`: the throughput that each unit of a device allows a kernel, and the limiting unit (paper, 6.5).
//!
//! A kernel's [`Load`] (operations and bytes of an update) over a device's rates ([`Throughput`], data of the profile)
//! gives the updates per second that every unit allows on its own; units work in parallel, so the smallest is the bound.
//! It is an upper bound: latencies, bank conflicts, power and caches beyond the first level are not included.

use crate::facts::DeviceFacts;
use crate::kernel::{Alu, Interpolation, KernelSpec, Load, Mode, Offer, Problem, Texel};
use crate::profile::{Profile, Throughput};
use serde::Serialize;

mod stages;
mod tables;
mod units;

pub use stages::StageRow;
pub use tables::{stage_table, table, table_15};
pub use units::{Occupancy, Units};

/// The unit that limits a kernel on a device, and the GU/s that it allows.
pub fn bound(spec: &KernelSpec, rates: &Throughput, facts: &DeviceFacts) -> Option<(&'static str, f64)> {
    Units::of(&spec.load(), rates, rates.scale(facts)).limit()
}

/// Resident warps of a kernel, by the registers of an item that the compiler reports, else by the most that it is asked for.
pub fn occupancy(spec: &KernelSpec, rates: &Throughput, registers: Option<u32>) -> Option<Occupancy> {
    let [x, y] = spec.parameters.family().shape(&spec.form()).work_group;
    Occupancy::of(rates.residency.as_ref()?, x * y, spec.local_memory(), registers.or(spec.registers))
}

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
    /// What a slice passes through with interpolation `exact`, beginning with the filter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRow>,
}

/// The kernel of an offer for the device of the rates: with images if the kernel uses them.
fn spec_of(offer: &Offer, profile: &Profile, rates: &Throughput, problem: Problem) -> KernelSpec {
    let images = rates.texels[0] > 0.0;
    let texels = offer.texels();
    let texel = texels.iter().find(|t| images || t.format().is_none()).copied().unwrap_or(Texel::Buffer);
    KernelSpec::new(offer, profile, texel, problem, None)
}

fn row(spec: &KernelSpec, offer: &Offer, profile: &Profile, rates: &Throughput) -> ModelRow {
    let spec = &stages::sized(spec);
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
        stages: stages::of_kernel(spec, rates),
    }
}

/// Every kernel that a profile offers; empty if it has no rates.
pub fn of_profile(profile: &Profile, problem: Problem) -> Vec<ModelRow> {
    let Some(rates) = &profile.throughput else { return Vec::new() };
    profile.offers().iter().map(|offer| row(&spec_of(offer, profile, rates, problem), offer, profile, rates)).collect()
}

/// The paper's kernel ([`Alu::of_paper`]) on the device of a profile: a row of Table 16.
pub fn of_paper(profile: &Profile, problem: Problem) -> Option<ModelRow> {
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

#[cfg(test)]
mod tests;

//! `fbp model`: the throughput that each unit of a device allows a kernel, and the limiting unit (paper, 6.5).
//!
//! A kernel's [`Load`] (operations and bytes of an update) over a device's rates ([`Throughput`], data of the profile)
//! gives the updates per second that every unit allows on its own; units work in parallel, so the smallest is the bound.
//! It is an upper bound: latencies, bank conflicts, power and caches beyond the first level are not included.

use crate::bench::markdown;
use crate::kernel::{Alu, Interpolation, KernelSpec, Load, Mode, Offer, Problem, Residency, Texel};
use crate::profile::{Profile, Throughput, Units};
use serde::Serialize;

mod stages;

pub use stages::{StageRow, stage_table};

/// Number of resident warps, and what limits it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    pub warps: u32,
    /// Share of the largest possible number of warps.
    pub share: f64,
    pub limit: &'static str,
}

impl Occupancy {
    /// For work-groups of `items` with `local` bytes of local memory and, if known, `registers` per item; `None` if not even
    /// one group fits.
    pub fn of(held: &Residency, items: u32, local: u64, registers: Option<u32>) -> Option<Occupancy> {
        let warps = items.div_ceil(held.warp);
        let mut limits = vec![("warps", held.warps / warps.max(1)), ("groups", held.groups)];
        limits.extend(u64::from(held.local_memory).checked_div(local).map(|groups| ("local memory", groups as u32)));
        limits.extend(registers.map(|each| ("registers", held.warps_for(each) / warps.max(1))));
        let (limit, groups) = limits.into_iter().min_by_key(|(_, groups)| *groups)?;
        let resident = groups * warps;
        (groups > 0).then(|| Occupancy { warps: resident, share: f64::from(resident) / f64::from(held.warps), limit })
    }
}

/// Resident warps of a kernel, by the registers of an item that the compiler reports, else by the most that it is asked for.
pub fn occupancy(spec: &KernelSpec, rates: &Throughput, registers: Option<u32>) -> Option<Occupancy> {
    let [x, y] = spec.parameters.family().shape(spec).work_group;
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

/// Three digits, or a dash for `None`.
fn cell(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(v) if v >= 100.0 => format!("{v:.0}"),
        Some(v) if v >= 10.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.2}"),
    }
}

/// Rows as a Markdown table with aligned columns.
pub fn table(rows: &[ModelRow]) -> String {
    let mut lines: Vec<Vec<String>> = vec![
        ["profile", "device", "kernel", "mode"]
            .into_iter()
            .chain(Units::default().named().map(|(name, _)| name))
            .chain(["GU/s", "limit", "occupancy", "by", "measured", "share"])
            .map(str::to_owned)
            .collect(),
    ];
    for r in rows {
        let mut line = vec![r.profile.clone(), r.device.clone(), r.spec.clone(), r.mode.to_string()];
        line.extend(r.units.named().map(|(_, rate)| cell(rate)));
        line.push(cell(r.gu_per_s));
        line.push(r.limit.unwrap_or("-").to_owned());
        line.push(r.occupancy.map_or("-".into(), |o| format!("{:.0} %", 100.0 * o.share)));
        line.push(r.occupancy.map_or("-", |o| o.limit).to_owned());
        line.push(cell(r.measured));
        let share = r.measured.zip(r.gu_per_s).map(|(measured, bound)| format!("{:.0} %", 100.0 * measured / bound));
        line.push(share.unwrap_or("-".into()));
        lines.push(line);
    }
    markdown(&lines, &[4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17])
}

/// The operations of an update as the estimated row of the paper's Table 15 has them.
pub fn table_15(load: &Load) -> String {
    format!(
        "operations of an update: SFU {}, Int {}, FP {}, Shared {}, Constant {} (paper, Table 15)\n\
         bytes: local memory {}, constant memory {}\n",
        load.conversions, load.shifts, load.fp, load.local, load.constant, load.local_bytes, load.constant_bytes
    )
}

#[cfg(test)]
mod tests;

//! The number of warps of a kernel that are resident on a device (thinning paper, 4.5).

use crate::kernel::{KernelSpec, Residency};
use crate::profile::Throughput;
use serde::Serialize;

/// Number of resident warps, and the resource that limits it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    pub warps: u32,
    /// Share of the largest possible number of warps.
    pub share: f64,
    pub limit: &'static str,
}

impl Occupancy {
    /// Returns the occupancy of work-groups of `items` with `local` bytes of local memory and, if known, `registers`
    /// per item; `None` if not even one group fits.
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

/// Returns the resident warps of a kernel, by the registers of an item that the compiler reports, else by the most that
/// it is asked for.
pub fn occupancy(spec: &KernelSpec, rates: &Throughput, registers: Option<u32>) -> Option<Occupancy> {
    let [x, y] = spec.parameters.family().shape(&spec.form()).work_group;
    Occupancy::of(rates.residency.as_ref()?, x * y, spec.local_memory(), registers.or(spec.registers))
}

//! What the units of a device allow a kernel, by the rates of its profile (paper, 6.5).

use super::throughput::{Special, Throughput};
use crate::facts::DeviceFacts;
use crate::kernel::{KernelSpec, Load};
use serde::Serialize;

/// 10^9 updates per second that each unit allows; `None` if the kernel does not use it or the device does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Units {
    /// Constant memory by itself.
    pub constant: Option<f64>,
    /// Local memory by itself; for buffers and on processors the first-level cache.
    pub local: Option<f64>,
    /// Bytes of local and constant memory together over the rate of local memory: column Mem of Table 16.
    pub memory: Option<f64>,
    pub alu: Option<f64>,
    pub sfu: Option<f64>,
    /// Instructions that schedulers issue: column OPS of Table 16.
    pub instructions: Option<f64>,
    pub texture: Option<f64>,
    pub matrix: Option<f64>,
}

impl Units {
    /// Throughput that a device's units allow a load; all rates are multiplied by `scale`.
    pub fn of(load: &Load, rates: &Throughput, scale: f64) -> Units {
        let unit = |rate: f64, need: f64| (need > 0.0 && rate > 0.0).then(|| rate * scale / need);
        // conversions of halves count by time: as the number of operations of the unit that take equally long
        let halves = |unit_rate: f64| load.half_conversions * rates.half_conversions.map_or(1.0, |own| unit_rate / own);
        let arithmetic = load.fp + load.shifts;
        let all = arithmetic + load.conversions + load.half_conversions;
        let (alu, sfu) = match rates.special {
            Special::None => (arithmetic + load.conversions + halves(rates.alu), 0.0),
            Special::Slot => (arithmetic + load.conversions + halves(rates.alu), load.conversions),
            Special::Conversions => match rates.half_conversions {
                None => (arithmetic, load.conversions + load.half_conversions),
                Some(_) => (arithmetic + halves(rates.alu), load.conversions),
            },
            Special::ConversionsAndShifts => (load.fp, load.conversions + load.half_conversions + load.shifts),
        };
        let loads =
            if rates.loads_issue { load.constant + load.local + load.texels.iter().sum::<f64>() } else { load.staging };
        let texels: f64 =
            load.texels.iter().zip(rates.texels).map(|(n, rate)| if *n > 0.0 { n / rate } else { 0.0 }).sum();
        // emulated images have no rate
        let texels = if texels.is_finite() { texels } else { 0.0 };
        Units {
            constant: unit(rates.constant, load.constant_bytes),
            local: unit(rates.local, load.local_bytes),
            memory: unit(rates.local, load.local_bytes + load.constant_bytes),
            alu: unit(rates.alu, alu),
            sfu: unit(rates.sfu, sfu),
            instructions: unit(rates.instructions, all + loads + load.matrix_instructions),
            texture: unit(1.0, texels),
            matrix: unit(rates.matrix, load.matrix),
        }
    }

    /// The units by name, in the order of the tables.
    pub fn named(&self) -> [(&'static str, Option<f64>); 8] {
        [
            ("constant", self.constant),
            ("local", self.local),
            ("memory", self.memory),
            ("alu", self.alu),
            ("sfu", self.sfu),
            ("instructions", self.instructions),
            ("texture", self.texture),
            ("matrix", self.matrix),
        ]
    }

    /// The limiting unit and its throughput; schedulers only if they are the limit by half a percent, because their number
    /// of operations is the least certain.
    pub fn limit(&self) -> Option<(&'static str, f64)> {
        let allowed = |(name, rate): &(&str, f64)| if *name == "instructions" { 1.005 * rate } else { *rate };
        let there: Vec<_> = self.named().into_iter().filter_map(|(name, rate)| Some((name, rate?))).collect();
        let (name, _) = there.iter().min_by(|a, b| allowed(a).total_cmp(&allowed(b)))?;
        let least = there.iter().map(|(_, rate)| *rate).min_by(f64::total_cmp)?;
        Some((*name, least))
    }
}

impl Throughput {
    /// The unit that limits a kernel on a device, and the GU/s that it allows.
    pub fn bound(&self, spec: &KernelSpec, facts: &DeviceFacts) -> Option<(&'static str, f64)> {
        Units::of(&spec.load(), self, self.scale(facts)).limit()
    }
}

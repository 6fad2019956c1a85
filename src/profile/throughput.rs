//! Throughput of the units of a device, as data of a profile: the paper's Table 10, extended to newer devices.

use super::errors::ProfileCheckError;
use crate::facts::DeviceFacts;
use crate::kernel::Residency;
use serde::{Deserialize, Serialize};
use strum::Display;

/// The operations that run on special function units instead of arithmetic units (paper, 3.7 and 6.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Special {
    /// No operations: conversions and shifts are counted with all others (Fermi, GCN, CPUs).
    None,
    /// Conversions (Maxwell and later, where shifts can run on both).
    Conversions,
    /// Conversions and shifts (Kepler).
    ConversionsAndShifts,
    /// Conversions, where the special unit is one of those that the arithmetic rate includes (VLIW).
    Slot,
}

/// Rates of one device, in 10^9 per second for the whole device, at `clock-mhz`. For another device of the family they
/// are scaled by compute units and clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Throughput {
    /// The device that the rates belong to.
    pub device: String,
    pub source: String,
    pub compute_units: u32,
    pub clock_mhz: u32,
    /// Floating-point instructions; a fused multiply-add is one.
    pub alu: f64,
    /// Instructions of the special units; 0 without them.
    #[serde(default)]
    pub sfu: f64,
    pub special: Special,
    /// Conversions between half and float, if they have a rate of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_conversions: Option<f64>,
    /// Instructions that schedulers issue.
    pub instructions: f64,
    /// True if each load also takes an issued instruction; the paper's Table 16 assumes that it does not.
    #[serde(default)]
    pub loads_issue: bool,
    /// Bytes of local memory, on CPUs of the first-level cache.
    pub local: f64,
    /// Bytes of constant memory.
    pub constant: f64,
    /// Bytes of device memory, read and written; 0 if not known.
    #[serde(default)]
    pub device_memory: f64,
    /// Texels: of 32 bits; of 64 bits, interpolated; of 64 bits, nearest; of 128 bits, nearest. All 0 without texture
    /// units.
    #[serde(default)]
    pub texels: [f64; 4],
    /// Multiply-adds of matrix units, halves to float; 0 without them.
    #[serde(default)]
    pub matrix: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency: Option<Residency>,
}

impl Throughput {
    /// Returns the speed of a device relative to the one that the rates belong to; 1 if its clock or size is unknown.
    pub fn scale(&self, facts: &DeviceFacts) -> f64 {
        let own = f64::from(self.compute_units) * f64::from(self.clock_mhz);
        match f64::from(facts.compute_units) * f64::from(facts.clock_mhz) {
            there if there > 0.0 => there / own,
            _ => 1.0,
        }
    }

    /// Checks rules that serde cannot express.
    pub(super) fn check(&self) -> Result<(), ProfileCheckError> {
        let rates = [
            ("alu", self.alu),
            ("instructions", self.instructions),
            ("local", self.local),
            ("constant", self.constant),
        ];
        for (name, rate) in rates {
            if !(rate.is_finite() && rate > 0.0) {
                return Err(ProfileCheckError::Rate { name, rate });
            }
        }
        if self.compute_units == 0 || self.clock_mhz == 0 {
            return Err(ProfileCheckError::UnitsOrClock);
        }
        if (self.special == Special::None) != (self.sfu == 0.0) || !(self.sfu.is_finite() && self.sfu >= 0.0) {
            return Err(ProfileCheckError::Sfu { sfu: self.sfu, special: self.special.to_string() });
        }
        let rest =
            self.texels.iter().copied().chain([self.device_memory, self.matrix, self.half_conversions.unwrap_or(1.0)]);
        if rest.clone().any(|rate| !(rate.is_finite() && rate >= 0.0)) || self.half_conversions == Some(0.0) {
            return Err(ProfileCheckError::NegativeRate);
        }
        if let Some(r) = self.residency
            && [r.warp, r.warps, r.groups, r.registers, r.local_memory, r.register_granule, r.warp_granule].contains(&0)
        {
            return Err(ProfileCheckError::Residency);
        }
        Ok(())
    }
}

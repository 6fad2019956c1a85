//! Device profiles: tuning for a device is data (TOML), not code.
//!
//! A profile states which devices it is for, how programs are built for them, and which kernel with which parameters
//! serves every combination of interpolation, mode and slices per pass. Files are strict: an unknown key is an error,
//! and every number has a source.

mod check;
mod entry;
mod errors;
mod matching;
mod select;
mod store;
mod throughput;
mod units;

pub use entry::KernelEntry;
pub use matching::{Choice, choose};
pub use select::auto_keys;
pub use store::{ProfileStore, TUNED, read_profile, tuned_directory};
pub use throughput::{Special, Throughput};
pub use units::Units;

use crate::error::{Error, Result};
use crate::facts::{DeviceFacts, DeviceKind};
use crate::files::excerpt_of_lines;
use crate::kernel::{
    Algorithm, Build, Fft, Hardware, Interpolation, KernelTarget, Mode, Offer, StepBackends, StepSizes,
};
use serde::{Deserialize, Serialize};

/// Version of the schema that this version of the program reads.
pub const SCHEMA: u32 = 2;

/// A device profile, with the content of its TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// Version of the schema; must be [`SCHEMA`].
    pub schema: u32,
    /// Short name, as `--profile` takes it.
    pub name: String,
    /// One-line description.
    pub title: String,
    /// Source of the numbers, unless an entry has its own.
    pub source: String,
    /// Conditions on the devices that the profile is for.
    #[serde(default)]
    pub r#match: Match,
    /// Properties of the architecture.
    #[serde(default)]
    pub hardware: Hardware,
    /// Throughput of the units of one of its devices, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// Options for building programs.
    #[serde(default)]
    pub build: Build,
    /// Means by which rows and images are filtered; the padded length does not depend on the profile, see
    /// `spectrum::padded_length`.
    #[serde(default)]
    pub fft: Fft,
    /// Processors that run the steps around the filter.
    #[serde(default)]
    pub steps: StepBackends,
    /// Sizes of the work-groups of steps.
    #[serde(default)]
    pub step_sizes: StepSizes,
    /// Choices that `--algorithm auto` and `--slices-per-pass auto` stand for.
    pub auto: Vec<Auto>,
    /// Kernels and their parameters.
    pub kernel: Vec<KernelEntry>,
    /// Measurements behind the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredSpeed>,
    /// Origin of the profile, if `fbp tune` created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<Tuned>,
}

/// Conditions on a device, all of which must hold; without conditions every device matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Match {
    /// Parts of the device's name, any of them, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
    /// Architecture words, any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architecture: Vec<String>,
    /// Vendor words, any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vendor: Vec<String>,
    /// Device types, any of them.
    #[serde(default, rename = "type", skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<DeviceKind>,
}

/// The automatic choice for one interpolation and mode, for any run or only for runs of few or small slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Auto {
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub algorithm: Algorithm,
    /// Number of slices per pass where the run has that many.
    pub slices: u32,
    /// Largest number of slices of the runs that the choice is for; `None` for all other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<u32>,
    /// Largest side in pixels of the slices that the choice is for; `None` for all others. Decides before `up_to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_size: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Auto {
    /// Reports whether the choice is for a run of `run_slices` slices of `size` pixels a side.
    fn serves(&self, run_slices: usize, size: usize) -> bool {
        let within = |value: usize, most: Option<u32>| most.is_none_or(|most| value <= most as usize);
        within(run_slices, self.up_to) && within(size, self.up_to_size)
    }

    /// Returns the order in which choices are taken: the one for the smallest and fewest slices first.
    pub fn order(&self) -> [u32; 2] {
        [self.up_to_size, self.up_to].map(|most| most.unwrap_or(u32::MAX))
    }

    /// Reports whether this choice selects the kernel.
    pub fn is_for(&self, offer: &Offer) -> bool {
        (self.interpolation, self.mode, self.slices) == (offer.interpolation, offer.mode, offer.slices)
            && self.algorithm == offer.parameters.algorithm()
    }
}

/// Validity of a tuned profile: the device, driver and kernels that it was tuned with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tuned {
    pub device: String,
    pub driver: String,
    /// Version of the program that tuned.
    pub version: String,
    pub date: String,
    /// Keys of the generated sources that `[[auto]]` selects, see [`auto_keys`].
    pub keys: Vec<String>,
    /// Summary of the measurements of the sizes of steps, if they are tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<String>,
}

impl Tuned {
    /// Returns the reason why the profile is no longer valid for the device, if so; `keys` are the present keys of its
    /// kernels.
    fn stale(&self, facts: &DeviceFacts, keys: &[String]) -> Option<String> {
        if self.driver != facts.driver {
            return Some(format!("it was tuned with driver {}, the device now has {}", self.driver, facts.driver));
        }
        (self.keys != keys)
            .then(|| format!("kernels have changed since it was tuned on {} by fbp {}", self.date, self.version))
    }
}

/// A measured speed of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeasuredSpeed {
    pub device: String,
    pub driver: String,
    pub date: String,
    pub algorithm: Algorithm,
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub slices: u32,
    /// Key of the generated source, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Number of bins, number of projections and side of the slice.
    pub problem: [u32; 3],
    pub gu_per_s: f64,
    /// Relative RMS error against the `f64` reference, measured in the same run; `None` for cited measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Source of a cited measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Profile {
    /// Reads and checks a profile; `name` is used in messages.
    pub fn parse(text: &str, name: &str) -> Result<Profile> {
        let profile = Profile::read(text, name)?;
        profile.check().map_err(|error| Error::profile(name, error))?;
        Ok(profile)
    }

    /// Reads a profile that is known to be right.
    fn read(text: &str, name: &str) -> Result<Profile> {
        toml::from_str(text).map_err(|e| Error::profile(name, excerpt_of_lines(e.to_string().trim_end())))
    }

    /// Returns every kernel of the profile, one for each combination.
    pub fn offers(&self) -> Vec<Offer> {
        self.kernel.iter().flat_map(KernelEntry::offers).collect()
    }
}

impl<'a> From<&'a Profile> for KernelTarget<'a> {
    fn from(profile: &'a Profile) -> Self {
        let residency = profile.throughput.as_ref().and_then(|rates| rates.residency.as_ref());
        KernelTarget { hardware: &profile.hardware, build: &profile.build, residency }
    }
}

#[cfg(test)]
mod tests;

//! Device profiles: how fast a card goes is data (TOML), never code.
//!
//! A profile says which devices it is for, how programs are built there, and which kernel with which
//! parameters serves every combination of interpolation, mode and slices per pass. Files are strict: an unknown
//! key is an error, and every number names its source.

pub mod architecture;
pub mod facts;
mod matching;
mod store;

pub use facts::DeviceFacts;
pub use matching::{Choice, choose};
pub use store::ProfileStore;

use crate::error::{Error, Result};
use facts::DeviceKind;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The schema that this version reads.
pub const SCHEMA: u32 = 1;

/// Slices that a kernel can reconstruct at once.
pub const SLICE_MODES: [u32; 5] = [1, 2, 4, 8, 16];

/// Defines an enum whose names are the same on the command line, in TOML and in messages.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in the order that messages list them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(Error::usage(format!(
                        "unknown {} `{text}`; it is one of {}",
                        $what,
                        [$($word),+].join(", ")
                    ))),
                }
            }
        }
    };
}


words! {
    /// How a value between two bins is found.
    Interpolation, "interpolation" {
        Linear = "linear",
        Nearest = "nearest",
    }
}

words! {
    /// The two columns of the paper's Table 25.
    Mode, "mode" {
        /// No loss beyond the rounding of `f32` arithmetic.
        Precise = "precise",
        /// Half storage, texture weights of 8 bits and the like are allowed.
        Fast = "fast",
    }
}

words! {
    /// The families of back-projection kernels.
    Algorithm, "algorithm" {
        /// One pixel a work-item (paper, Algorithm 1).
        Standard = "standard",
    }
}

words! {
    /// How the sinogram is stored for back projection.
    Storage, "storage" {
        Float = "float",
        Half = "half",
    }
}

words! {
    /// Where a kernel reads the sinogram from.
    Sampler, "sampler" {
        /// The texture unit; a plain buffer where the device has no fitting image format.
        Image = "image",
        /// A plain buffer and explicit interpolation.
        Buffer = "buffer",
    }
}

words! {
    /// Address space of the per-projection constants.
    Constants, "constants" {
        /// Constant memory; global memory when there are more projections than it holds.
        Constant = "constant",
        Global = "global",
    }
}

/// A device profile, as its TOML file says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// Must be [`SCHEMA`].
    pub schema: u32,
    /// Short name, as `--profile` takes it.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the numbers come from, unless an entry says otherwise.
    pub source: String,
    /// The devices this profile is for.
    #[serde(default)]
    pub r#match: Match,
    /// How programs are built.
    #[serde(default)]
    pub build: Build,
    /// The transform of the filter.
    #[serde(default)]
    pub fft: Fft,
    /// What `--algorithm auto` and `--slices-per-pass auto` mean.
    pub auto: Vec<Auto>,
    /// Kernels and their parameters.
    pub kernel: Vec<KernelEntry>,
    /// Measurements that back the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

/// Conditions on a device; all that are given must hold, none matches everything.
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

/// Options of the device's compiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Build {
    /// `-cl-mad-enable`: a product and a sum may become one instruction.
    pub mad: bool,
    /// `-cl-fast-relaxed-math`.
    pub relaxed_math: bool,
    /// More options, passed on as they are.
    pub options: Vec<String>,
}

impl Default for Build {
    fn default() -> Self {
        Build {
            mad: true,
            relaxed_math: false,
            options: Vec::new(),
        }
    }
}

/// The transform of the filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Fft {
    /// Prime factors that a padded row's length may have: some of 2, 3, 5, 7, 11 and 13.
    pub radices: Vec<usize>,
}

impl Default for Fft {
    fn default() -> Self {
        Fft {
            radices: vec![2, 3, 5, 7],
        }
    }
}

/// The automatic choice for one interpolation and mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Auto {
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub algorithm: Algorithm,
    /// Slices per pass when the run has that many.
    pub slices: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Parameters of one kernel for some interpolations, modes and slice modes; exactly one family is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KernelEntry {
    pub interpolation: Vec<Interpolation>,
    pub mode: Vec<Mode>,
    pub slices: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard: Option<Standard>,
}

/// Parameters of the standard kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Standard {
    pub sampler: Sampler,
    pub storage: Storage,
    /// Work-items of a work-group, and pixels of its block, in x and y.
    pub work_group: [u32; 2],
    pub constants: Constants,
    /// Unroll hint of the projection loop; 1 leaves it to the compiler.
    pub unroll: u32,
    /// Registers a work-item may use, on compilers with such an option; 0 leaves it to the compiler.
    pub registers: u32,
}

impl Default for Standard {
    fn default() -> Self {
        Standard {
            sampler: Sampler::Buffer,
            storage: Storage::Float,
            work_group: [16, 16],
            constants: Constants::Constant,
            unroll: 1,
            registers: 0,
        }
    }
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Measured {
    pub device: String,
    pub driver: String,
    pub date: String,
    pub algorithm: Algorithm,
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub slices: u32,
    /// Bins, projections and side of the slice.
    pub problem: [u32; 3],
    pub gu_per_s: f64,
    /// Relative RMS error against the `f64` reference, measured in the same run.
    pub error: f64,
}

/// Parameters of the kernel that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    Standard(Standard),
}

impl Parameters {
    /// The family.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Parameters::Standard(_) => Algorithm::Standard,
        }
    }

    /// How the sinogram is stored.
    pub fn storage(&self) -> Storage {
        match self {
            Parameters::Standard(p) => p.storage,
        }
    }

    /// Where the sinogram is read from.
    pub fn sampler(&self) -> Sampler {
        match self {
            Parameters::Standard(p) => p.sampler,
        }
    }

    /// The same kernel over a plain buffer.
    pub fn with_buffer(mut self) -> Self {
        match &mut self {
            Parameters::Standard(p) => p.sampler = Sampler::Buffer,
        }
        self
    }
}

impl KernelEntry {
    /// The one family that the entry gives.
    fn parameters(&self) -> Option<Parameters> {
        self.standard.clone().map(Parameters::Standard)
    }

    fn serves(&self, interpolation: Interpolation, mode: Mode, slices: u32) -> bool {
        self.interpolation.contains(&interpolation)
            && self.mode.contains(&mode)
            && self.slices.contains(&slices)
    }
}

/// A kernel that a profile offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub slices: u32,
    pub parameters: Parameters,
}

impl Profile {
    /// Reads and checks a profile; `name` is used in messages.
    pub fn parse(text: &str, name: &str) -> Result<Profile> {
        let profile: Profile =
            toml::from_str(text).map_err(|e| Error::profile(name, e.to_string().trim_end()))?;
        profile.check().map_err(|message| Error::profile(name, message))?;
        Ok(profile)
    }

    /// Every kernel of the profile, one for each combination.
    pub fn offers(&self) -> Vec<Offer> {
        let mut offers = Vec::new();
        for entry in &self.kernel {
            let Some(parameters) = entry.parameters() else { continue };
            for &interpolation in &entry.interpolation {
                for &mode in &entry.mode {
                    for &slices in &entry.slices {
                        offers.push(Offer {
                            interpolation,
                            mode,
                            slices,
                            parameters: parameters.clone(),
                        });
                    }
                }
            }
        }
        offers
    }

    /// The kernel for a run.
    ///
    /// `algorithm` and `slices` of `None` are what the profile's `auto` says, with no more slices per pass than
    /// `run_slices` needs.
    ///
    /// # Errors
    /// A usage error that lists what the profile has, when it has no such kernel.
    pub fn select(
        &self,
        algorithm: Option<Algorithm>,
        interpolation: Interpolation,
        mode: Mode,
        slices: Option<u32>,
        run_slices: usize,
    ) -> Result<Offer> {
        let auto = self
            .auto
            .iter()
            .find(|a| a.interpolation == interpolation && a.mode == mode);
        let algorithm = algorithm
            .or(auto.map(|a| a.algorithm))
            .unwrap_or(Algorithm::Standard);
        let mut available: Vec<Offer> = self
            .offers()
            .into_iter()
            .filter(|o| {
                o.interpolation == interpolation
                    && o.mode == mode
                    && o.parameters.algorithm() == algorithm
            })
            .collect();
        available.sort_by_key(|o| o.slices);
        let modes: Vec<u32> = available.iter().map(|o| o.slices).collect();
        let wanted = match slices {
            Some(slices) => slices,
            None => {
                let most = auto
                    .filter(|a| a.algorithm == algorithm)
                    .map(|a| a.slices)
                    .or(modes.last().copied())
                    .unwrap_or(1);
                let enough = modes.iter().copied().find(|&m| m as usize >= run_slices);
                enough.map_or(most, |m| m.min(most))
            }
        };
        available
            .into_iter()
            .find(|o| o.slices == wanted)
            .ok_or_else(|| {
                Error::usage(format!(
                    "profile {} has no {algorithm} kernel for {interpolation} {mode} with {wanted} slices per pass; \
                     it has {}; choose another --slices-per-pass, --algorithm or --profile",
                    self.name,
                    if modes.is_empty() {
                        "none for that algorithm, interpolation and mode".to_owned()
                    } else {
                        format!("{modes:?}")
                    }
                ))
            })
    }

    /// What is wrong with the profile, as far as that can be said without a device.
    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!(
                "schema is {}, this version reads schema {SCHEMA}",
                self.schema
            ));
        }
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(word) {
            return Err(format!(
                "name `{}` must be lower-case letters, digits and dashes",
                self.name
            ));
        }
        if self.source.trim().is_empty() {
            return Err("source must say where the numbers come from".into());
        }
        let known = architecture::words();
        for architecture in &self.r#match.architecture {
            if !known.contains(&architecture.as_str()) && architecture != "unknown" {
                return Err(format!(
                    "match.architecture `{architecture}` is not known; it is one of {}",
                    known.join(", ")
                ));
            }
        }
        if !self.fft.radices.contains(&2)
            || !self.fft.radices.iter().all(|r| [2, 3, 5, 7, 11, 13].contains(r))
        {
            return Err(format!(
                "fft.radices {:?} must hold 2 and only primes up to 13",
                self.fft.radices
            ));
        }
        let offers = self.check_kernels()?;
        for &interpolation in Interpolation::ALL {
            for &mode in Mode::ALL {
                let what = format!("{interpolation} {mode}");
                let choices: Vec<&Auto> = self
                    .auto
                    .iter()
                    .filter(|a| a.interpolation == interpolation && a.mode == mode)
                    .collect();
                let [auto] = choices[..] else {
                    return Err(format!(
                        "{what} needs exactly one [[auto]] entry, it has {}",
                        choices.len()
                    ));
                };
                for slices in [1, auto.slices] {
                    let found = offers.iter().any(|o| {
                        o.interpolation == interpolation
                            && o.mode == mode
                            && o.slices == slices
                            && o.parameters.algorithm() == auto.algorithm
                    });
                    if !found {
                        return Err(format!(
                            "[[auto]] for {what} chooses {} and {} slices, but no [[kernel]] serves {slices}",
                            auto.algorithm, auto.slices
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks of the kernel entries; the combinations that they serve.
    fn check_kernels(&self) -> Result<Vec<Offer>, String> {
        for (number, entry) in self.kernel.iter().enumerate() {
            let at = format!("[[kernel]] number {}", number + 1);
            let Some(parameters) = entry.parameters() else {
                return Err(format!("{at} names no family; add [kernel.standard]"));
            };
            if entry.interpolation.is_empty() || entry.mode.is_empty() || entry.slices.is_empty() {
                return Err(format!(
                    "{at}: interpolation, mode and slices need at least one value each"
                ));
            }
            if let Some(bad) = entry.slices.iter().find(|s| !SLICE_MODES.contains(s)) {
                return Err(format!("{at}: slices {bad} is not one of {SLICE_MODES:?}"));
            }
            parameters.check(&entry.slices).map_err(|e| format!("{at}: {e}"))?;
        }
        for (number, entry) in self.kernel.iter().enumerate() {
            for other in &self.kernel[number + 1..] {
                for &interpolation in &entry.interpolation {
                    for &mode in &entry.mode {
                        for &slices in &entry.slices {
                            if other.serves(interpolation, mode, slices)
                                && entry.parameters().map(|p| p.algorithm())
                                    == other.parameters().map(|p| p.algorithm())
                            {
                                return Err(format!(
                                    "two [[kernel]] entries serve {interpolation} {mode} with {slices} slices"
                                ));
                            }
                        }
                    }
                }
            }
        }
        Ok(self.offers())
    }
}

impl Parameters {
    /// Rules that hold on any device.
    fn check(&self, slices: &[u32]) -> Result<(), String> {
        match self {
            Parameters::Standard(p) => {
                let [x, y] = p.work_group;
                if x == 0 || y == 0 || x > 64 || y > 64 || x * y > 1024 {
                    return Err(format!(
                        "standard.work-group {:?} must have sides of 1 to 64 and at most 1024 work-items",
                        p.work_group
                    ));
                }
                if p.sampler == Sampler::Image && slices.iter().any(|&s| s > 4) {
                    return Err("standard.sampler `image` serves at most 4 slices".into());
                }
                if p.unroll == 0 || p.unroll > 64 {
                    return Err(format!("standard.unroll {} must be 1 to 64", p.unroll));
                }
                if p.registers > 255 {
                    return Err(format!("standard.registers {} must be 0 to 255", p.registers));
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;

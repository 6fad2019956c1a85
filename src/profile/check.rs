//! Checks of a profile that need no device.

use super::{Auto, Profile, SCHEMA};
use crate::facts::architecture;
use crate::kernel::{Declared, Interpolation, Mode, Offer, Parameters, SLICE_MODES, StepSizes};

impl Profile {
    /// Checks everything that can be checked without a device.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!(
                "schema is {}, this version reads schema {SCHEMA}; run fbp tune again, or rename keys as in CHANGELOG.md",
                self.schema
            ));
        }
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(word) {
            return Err(format!("name `{}` must be lower-case letters, digits and dashes", self.name));
        }
        if self.source.trim().is_empty() {
            return Err("source must say where the numbers come from".into());
        }
        if let Some(throughput) = &self.throughput {
            throughput.check()?;
        }
        self.check_architecture()?;
        self.check_step_sizes()?;
        self.check_kernels()?;
        let offers = self.offers();
        Interpolation::ALL.iter().try_for_each(|&interpolation| {
            Mode::ALL.iter().try_for_each(|&mode| self.check_choices(interpolation, mode, &offers))
        })
    }

    fn check_architecture(&self) -> Result<(), String> {
        let known = architecture::words();
        for architecture in &self.r#match.architecture {
            if !known.contains(&architecture.as_str()) && architecture != "unknown" {
                return Err(format!(
                    "match.architecture `{architecture}` is not known; it is one of {}",
                    known.join(", ")
                ));
            }
        }
        let function = &self.hardware.matrix_function;
        for (key, name) in [("matrix-function", function), ("warp-attribute", &self.hardware.warp_attribute)] {
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("hardware.{key} `{name}` must be a plain name"));
            }
        }
        let lanes = self.hardware.matrix_lanes;
        if !matches!(lanes, 0 | 16 | 64) || (lanes > 0 && function.is_empty()) {
            return Err(format!("hardware.matrix-lanes {lanes} must be 16 or 64, with a matrix-function"));
        }
        if self.hardware.matrix && !function.is_empty() {
            return Err(
                "hardware: matrix and matrix-function are for different matrix units; leave one of them out".into()
            );
        }
        Ok(())
    }

    fn check_step_sizes(&self) -> Result<(), String> {
        let table = toml::Table::try_from(&self.step_sizes).map_err(|e| format!("[step-sizes]: {e}"))?;
        let checked = StepSizes::parameters().iter().try_for_each(|parameter| parameter.check(&table));
        checked.map_err(|e| format!("[step-sizes]: {e}"))
    }

    /// Checks the automatic choices for one interpolation and mode against the kernels of the profile.
    fn check_choices(&self, interpolation: Interpolation, mode: Mode, offers: &[Offer]) -> Result<(), String> {
        let what = format!("{interpolation} {mode}");
        let choices: Vec<&Auto> =
            self.auto.iter().filter(|a| a.interpolation == interpolation && a.mode == mode).collect();
        // profiles that users wrote may be older than this interpolation
        if choices.is_empty() && interpolation == Interpolation::Exact {
            return Ok(());
        }
        let mut limits: Vec<[u32; 2]> = choices.iter().map(|a| a.order()).collect();
        limits.sort_unstable();
        if limits.last() != Some(&[u32::MAX; 2]) || limits.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!(
                "{what} needs exactly one [[auto]] entry without up-to and up-to-size, and others with different up-to or \
                 up-to-size"
            ));
        }
        for auto in choices {
            let algorithm = auto.algorithm;
            if !Parameters::start(algorithm, mode).keeps_rule(interpolation) {
                return Err(format!(
                    "[[auto]] for {what} chooses {algorithm}, which does not interpolate linearly; choose another \
                     algorithm, and give --algorithm {algorithm} where it is wanted"
                ));
            }
            if !offers.iter().any(|offer| auto.is_for(offer)) {
                return Err(format!(
                    "[[auto]] for {what} chooses {algorithm}, but no [[kernel]] of this family has {} slices; add one, or change `slices`",
                    auto.slices
                ));
            }
        }
        Ok(())
    }

    /// Checks each kernel entry, and that no two entries conflict.
    fn check_kernels(&self) -> Result<(), String> {
        for (number, entry) in self.kernel.iter().enumerate() {
            let at = format!("[[kernel]] number {}", number + 1);
            if entry.interpolation.is_empty() || entry.mode.is_empty() || entry.slices.is_empty() {
                return Err(format!("{at}: interpolation, mode and slices need at least one value each"));
            }
            if let Some(bad) = entry.slices.iter().find(|s| !SLICE_MODES.contains(s)) {
                return Err(format!("{at}: slices {bad} is not one of {SLICE_MODES:?}"));
            }
            entry.parameters.check(&entry.slices).map_err(|e| format!("{at}: {e}"))?;
            let (family, algorithm) = (entry.parameters.family(), entry.parameters.algorithm());
            if let Some(other) = entry.interpolation.iter().find(|&&interpolation| !family.serves(interpolation)) {
                return Err(format!(
                    "{at}: a kernel of {algorithm} has no {other} interpolation; leave it out of `interpolation`"
                ));
            }
        }
        for (number, entry) in self.kernel.iter().enumerate() {
            if let Some((interpolation, mode, slices)) =
                self.kernel[number + 1..].iter().find_map(|other| entry.clash(other))
            {
                return Err(format!(
                    "two [[kernel]] entries serve {interpolation} {mode} with {slices} slices; leave one of them out"
                ));
            }
        }
        Ok(())
    }
}

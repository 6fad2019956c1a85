//! Checks of a profile that need no device.

use super::errors::ProfileCheckError;
use super::{Auto, Profile, SCHEMA};
use crate::facts::architecture;
use crate::kernel::{Declared, Interpolation, Mode, Offer, Parameters, SLICE_MODES, StepSizes};

impl Profile {
    /// Checks everything that can be checked without a device.
    pub(super) fn check(&self) -> Result<(), ProfileCheckError> {
        if self.schema != SCHEMA {
            return Err(ProfileCheckError::Schema { schema: self.schema, read: SCHEMA });
        }
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(word) {
            return Err(ProfileCheckError::Name { name: self.name.clone() });
        }
        if self.source.trim().is_empty() {
            return Err(ProfileCheckError::Source);
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

    fn check_architecture(&self) -> Result<(), ProfileCheckError> {
        let known = architecture::words();
        for architecture in &self.r#match.architecture {
            if !known.contains(&architecture.as_str()) && architecture != "unknown" {
                let (architecture, known) = (architecture.clone(), known.join(", "));
                return Err(ProfileCheckError::Architecture { architecture, known });
            }
        }
        let function = &self.hardware.matrix_function;
        for (key, name) in [("matrix-function", function), ("warp-attribute", &self.hardware.warp_attribute)] {
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(ProfileCheckError::PlainName { key, name: name.clone() });
            }
        }
        let lanes = self.hardware.matrix_lanes;
        if !matches!(lanes, 0 | 16 | 64) || (lanes > 0 && function.is_empty()) {
            return Err(ProfileCheckError::MatrixLanes { lanes });
        }
        if self.hardware.matrix && !function.is_empty() {
            return Err(ProfileCheckError::TwoMatrixUnits);
        }
        Ok(())
    }

    fn check_step_sizes(&self) -> Result<(), ProfileCheckError> {
        let table =
            toml::Table::try_from(&self.step_sizes).map_err(|e| ProfileCheckError::StepSizes { error: e.into() })?;
        let checked = StepSizes::parameters().iter().try_for_each(|parameter| parameter.check(&table));
        checked.map_err(|e| ProfileCheckError::StepSizes { error: e.into() })
    }

    /// Checks the automatic choices for one interpolation and mode against the kernels of the profile.
    fn check_choices(
        &self,
        interpolation: Interpolation,
        mode: Mode,
        offers: &[Offer],
    ) -> Result<(), ProfileCheckError> {
        let choices: Vec<&Auto> =
            self.auto.iter().filter(|a| a.interpolation == interpolation && a.mode == mode).collect();
        // profiles that users wrote may be older than this interpolation
        if choices.is_empty() && interpolation == Interpolation::Exact {
            return Ok(());
        }
        let mut limits: Vec<[u32; 2]> = choices.iter().map(|a| a.order()).collect();
        limits.sort_unstable();
        if limits.last() != Some(&[u32::MAX; 2]) || limits.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ProfileCheckError::AutoLimits { interpolation, mode });
        }
        for auto in choices {
            let algorithm = auto.algorithm;
            if !Parameters::start(algorithm, mode).keeps_rule(interpolation) {
                return Err(ProfileCheckError::AutoRule { interpolation, mode, algorithm });
            }
            if !offers.iter().any(|offer| auto.is_for(offer)) {
                let slices = auto.slices;
                return Err(ProfileCheckError::AutoSlices { interpolation, mode, algorithm, slices });
            }
        }
        Ok(())
    }

    /// Checks each kernel entry, and that no two entries conflict.
    fn check_kernels(&self) -> Result<(), ProfileCheckError> {
        for (number, entry) in (1..).zip(&self.kernel) {
            if entry.interpolation.is_empty() || entry.mode.is_empty() || entry.slices.is_empty() {
                return Err(ProfileCheckError::ServesNothing { number });
            }
            if let Some(&slices) = entry.slices.iter().find(|s| !SLICE_MODES.contains(s)) {
                return Err(ProfileCheckError::Slices { number, slices });
            }
            let checked = entry.parameters.check(&entry.slices);
            checked.map_err(|error| ProfileCheckError::KernelRule { number, error })?;
            let (family, algorithm) = (entry.parameters.family(), entry.parameters.algorithm());
            if let Some(&interpolation) = entry.interpolation.iter().find(|&&other| !family.serves(other)) {
                return Err(ProfileCheckError::OtherInterpolation { number, algorithm, interpolation });
            }
        }
        for (number, entry) in self.kernel.iter().enumerate() {
            if let Some((interpolation, mode, slices)) =
                self.kernel[number + 1..].iter().find_map(|other| entry.clash(other))
            {
                return Err(ProfileCheckError::Clash { interpolation, mode, slices });
            }
        }
        Ok(())
    }
}

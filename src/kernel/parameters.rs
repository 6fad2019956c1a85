//! Statements about the parameters of any family, and the rules that hold for all.

use super::errors::KernelRuleError;
use super::parameter::alternatives;
use super::{Algorithm, Common, Interpolation, Mode, Parameters, Sampler, Storage};
use crate::reference::Reads;
use toml::Table;

impl Parameters {
    /// Parameters that every family has.
    pub fn common(&self) -> &Common {
        self.family().common()
    }

    /// How the sinogram is stored.
    pub fn storage(&self) -> Storage {
        self.common().storage
    }

    /// Where the sinogram is read from.
    pub fn sampler(&self) -> Sampler {
        self.common().sampler
    }

    /// The same kernel reading a plain buffer.
    pub fn with_buffer(mut self) -> Self {
        self.family_mut().common_mut().sampler = Sampler::Buffer;
        self
    }

    /// How values are interpolated.
    pub fn reads(&self, interpolation: Interpolation) -> Reads {
        self.family().reads(interpolation)
    }

    /// Reports whether values are interpolated by the rule of the interpolation; other kernels are only used on
    /// request.
    pub fn keeps_rule(&self, interpolation: Interpolation) -> bool {
        self.reads(interpolation) == interpolation.reads()
    }

    /// Slices per pass that are tried first.
    pub fn usual_slices(&self) -> u32 {
        4.max(*self.family().slices().start())
    }

    /// The parameters as their TOML table, defaults written out.
    pub fn table(&self) -> Table {
        Table::try_from(self).unwrap_or_default()
    }

    /// Checks the rules that hold on any device.
    ///
    /// # Errors
    /// The rule that is violated.
    pub fn check(&self, slices: &[u32]) -> Result<(), KernelRuleError> {
        let most = slices.iter().max().copied().unwrap_or(1);
        if self.sampler() == Sampler::Image && most > 4 {
            return Err(KernelRuleError::ImageSlices { most });
        }
        self.check_slices(slices, most)?;
        let table = self.table();
        Parameters::declared(self.algorithm()).iter().try_for_each(|parameter| parameter.check(&table))?;
        self.family().check(slices)
    }

    fn check_slices(&self, slices: &[u32], most: u32) -> Result<(), KernelRuleError> {
        let legal = self.family().slices();
        let (first, last) = legal.clone().into_inner();
        if slices.iter().all(|n| legal.contains(n)) {
            return Ok(());
        }
        let algorithm = self.algorithm();
        if first > 1 {
            return Err(KernelRuleError::OtherSlices { algorithm, first, last, slices: slices.to_vec() });
        }
        let linear = |parameters: &Parameters| parameters.family().serves(Interpolation::Linear);
        let more = |algorithm: &Algorithm| {
            let other = Parameters::start(*algorithm, Mode::Fast);
            *other.family().slices().end() > last && linear(&other) == linear(self)
        };
        let others: Vec<Algorithm> = Algorithm::ALL.iter().copied().filter(more).collect();
        Err(KernelRuleError::TooManySlices { others: alternatives(&others).replace(" or ", " and "), most })
    }
}

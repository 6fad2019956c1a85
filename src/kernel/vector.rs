//! The family of kernels that use vectors of slices, with tiles that fit into a CPU's cache.

use super::errors::KernelRuleError;
use super::family::{Family, rule};
use super::files::{ClFile, cl_file};
use super::form::KernelForm;
use super::parameter::parameters;
use super::{
    Algorithm, Common, Constants, Defines, Hardware, Interpolation, LaunchShape, Load, Mode, Sampler, Storage, Texel,
};
use crate::error::Result;
use crate::facts::{DeviceFacts, DeviceKind};
use std::ops::RangeInclusive;

parameters! {
    /// Parameters of the kernel for processors.
    pub struct Vector {
        table common: Common = Common { constants: Constants::Global, ..Common::default() };
        /// Side in pixels of the tile of a work-item.
        tile: u32 = 16, Domain::one_of(&[16, 32, 64]);
        /// Pixels of a row whose sums are in registers at a time.
        columns: u32 = 4, Domain::one_of(&[4, 8]);
        /// Number of projections added to these pixels at a time; their bins should fit into the first-level cache.
        projections_at_once: u32 = 8, Domain::range(1, 64, 1).tries(&[1, 2, 4, 8, 16, 32, 64]);
    }
}

impl Vector {
    /// Returns the largest number of bins that a tile covers: its diagonal, one to interpolate, one because it starts
    /// between two bins, one for rounding, and both ends.
    pub fn window(&self) -> u32 {
        let side = f64::from(self.tile - 1);
        side.hypot(side) as u32 + 4
    }
}

impl Family for Vector {
    fn meaning(&self) -> &'static str {
        "vectors of slices, and tiles that fit into a CPU's cache (based on 6.10)"
    }

    fn notes(&self) -> &'static str {
        "`common` must have `storage = \"float\"` and `sampler = \"buffer\"`, its `constants` are `global` by default."
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn start(_: Mode) -> Self {
        Vector::default()
    }

    fn suits(&self, _: &Hardware, facts: &DeviceFacts) -> bool {
        facts.kind == DeviceKind::Cpu
    }

    fn slices(&self) -> RangeInclusive<u32> {
        16..=64
    }

    fn fixed(&self) -> &'static [&'static str] {
        &["common.sampler", "common.storage", "common.unroll"]
    }

    fn check(&self, _: &[u32]) -> Result<(), KernelRuleError> {
        let algorithm = Algorithm::Vector;
        rule(self.common.storage == Storage::Float, KernelRuleError::NoFloats { algorithm })?;
        rule(self.common.sampler == Sampler::Buffer, KernelRuleError::NoBuffer { algorithm })
    }

    fn files(&self) -> &'static [ClFile] {
        &[cl_file!("backproject_vector.cl")]
    }

    fn define(&self, _: &KernelForm, defines: &mut Defines) -> Result<()> {
        defines.number("TILE", self.tile)?;
        defines.number("COLUMNS", self.columns)?;
        defines.number("PROJECTIONS_AT_ONCE", self.projections_at_once)?;
        defines.number("WINDOW", self.window())
    }

    fn shape(&self, _: &KernelForm) -> LaunchShape {
        LaunchShape { work_group: [1, 1], block: [self.tile; 2] }
    }

    fn texels(&self, _: Interpolation, _: u32) -> Vec<Texel> {
        vec![Texel::GuardedBuffer { guard: self.window() }]
    }

    /// Sixteen slices form a vector; a value of a pixel for all of them is broadcast to a vector.
    fn load(&self, form: &KernelForm) -> Load {
        const WIDTH: f64 = 16.0;
        let slices = f64::from(form.slices);
        let linear = form.interpolation == Interpolation::Linear;
        let (reads, broadcasts, rounds) = if linear { (2.0, 2.0, 2.0) } else { (1.0, 1.0, 1.0) };
        // sums are loaded and stored once for the projections that are added together
        let sums = Load::local(2.0 / f64::from(self.projections_at_once), 4.0);
        let updates = Load { fp: reads, ..Load::local(reads, 4.0) } + sums;
        // positions are computed for sixteen pixels at once; then each is one load, and weights fill a vector
        let pixel = Load { fp: 3.0, conversions: rounds, shifts: 1.0, ..Load::local(broadcasts, 4.0 * (WIDTH + 1.0)) };
        let weight = Load { fp: if linear { WIDTH } else { 0.0 }, ..Load::default() };
        updates + (pixel + weight) * (1.0 / slices)
    }
}

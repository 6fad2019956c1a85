//! The family of kernels that use the texture unit for some blocks and the arithmetic units for others, at the same
//! time (paper, 7.1).

use super::alu::{Alu, SOURCE as ALU};
use super::errors::KernelRuleError;
use super::family::Family;
use super::files::{ClFile, EXCHANGE, ROUND, SAMPLE, cl_file};
use super::form::{KernelForm, Matrix};
use super::load::{position, row, sample};
use super::parameter::parameters;
use super::{Common, Defines, Interpolation, LaunchShape, Load, Mode, Positions};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use strum::VariantNames;

/// The division of blocks between two units (paper, 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Balance {
    /// Division by the block's number: a block always uses the same unit.
    Block,
    /// Division by the multiprocessor: the last bits of a slice then depend on scheduling.
    Multiprocessor,
}

parameters! {
    /// Parameters of the hybrid kernel: those of the arithmetic one, and the ratio.
    pub struct Hybrid {
        table alu: Alu = Alu::default();
        /// Blocks on the texture unit, alternating with `alu-blocks`.
        texture_blocks: u32 = 1, Domain::at_least(1).tries(&[1, 2, 3, 4, 5]);
        /// Blocks on the arithmetic units.
        alu_blocks: u32 = 1, Domain::at_least(1).tries(&[1, 2, 3, 4, 5]);
        /// `block`: depends on the block's number. `multiprocessor`: depends on the multiprocessor that runs it, if
        /// assembly can query it; the last bits of a slice then depend on scheduling.
        balance: Balance = Balance::Block, Domain::words::<Balance>().depends_on_scheduling();
    }
}

impl Family for Hybrid {
    fn meaning(&self) -> &'static str {
        "some blocks on the texture unit and others on the arithmetic units, at the same time (7.1)"
    }

    fn notes(&self) -> &'static str {
        "It has a table `alu` with the keys of `[kernel.alu]`, including `common`. Tuning tries `balance = \"multiprocessor\"` only with \
         `--balance-by-multiprocessor`: regions are then no longer identical to crops of the slice, and results vary between runs."
    }

    fn common(&self) -> &Common {
        &self.alu.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.alu.common
    }

    fn start(_: Mode) -> Self {
        Hybrid::default()
    }

    fn check(&self, slices: &[u32]) -> Result<(), KernelRuleError> {
        self.alu.check(slices)
    }

    fn files(&self) -> &'static [ClFile] {
        &[SAMPLE, EXCHANGE, ROUND, ALU, cl_file!("backproject_hybrid.cl")]
    }

    fn define(&self, form: &KernelForm, defines: &mut Defines) -> Result<()> {
        self.alu.define(form, defines)?;
        defines.number("TEXTURE_BLOCKS", self.texture_blocks)?;
        defines.number("ALU_BLOCKS", self.alu_blocks)?;
        defines.switch("BALANCE", self.balance == Balance::Multiprocessor)
    }

    fn shape(&self, form: &KernelForm) -> LaunchShape {
        self.alu.shape(form)
    }

    fn counts_from_bin_0(&self) -> bool {
        self.alu.counts_from_bin_0()
    }

    fn count_from_blocks(&mut self) {
        self.alu.count_from_blocks();
    }

    fn clearance(&self) -> f64 {
        self.alu.clearance()
    }

    fn rounds_to_half(&self) -> bool {
        self.alu.half_cache
    }

    fn exchange_span(&self) -> u32 {
        self.alu.exchange_span()
    }

    fn adapt(&mut self, assembly: bool, _: &Matrix) {
        if !assembly {
            self.balance = Balance::Block;
        }
    }

    fn load(&self, form: &KernelForm) -> Load {
        let slices = f64::from(form.slices);
        let item = position(self.alu.positions, &self.alu.common, form) + row(form);
        // a multiply-add, and where positions are in two parts what position() has once: both added, rounded, and centred
        let (fp, rounded) = match (self.alu.positions, form.interpolation) {
            (Positions::Absolute, _) => (1.0, 0.0),
            (Positions::Block, Interpolation::Linear) => (3.0, 0.0),
            (Positions::Block, _) => (4.0, 1.0),
        };
        let pixel = Load { fp, conversions: rounded, ..Load::default() } + sample(&self.alu.common, form);
        let by_texture = item * (1.0 / (f64::from(self.alu.pixels()) * slices)) + pixel * (1.0 / slices);
        let [texture, arithmetic] = [self.texture_blocks, self.alu_blocks].map(f64::from);
        (by_texture * texture + self.alu.load(form) * arithmetic) * (1.0 / (texture + arithmetic))
    }

    fn local_memory(&self, form: &KernelForm) -> u64 {
        self.alu.local_memory(form)
    }
}

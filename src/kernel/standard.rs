//! The family of kernels in which a work-item computes one pixel (paper, Algorithm 1).

use super::errors::KernelRuleError;
use super::family::{Family, rule};
use super::files::{ClFile, SAMPLE, cl_file};
use super::form::KernelForm;
use super::load::{position, row, sample};
use super::parameter::parameters;
use super::{Algorithm, Common, Defines, Hardware, LaunchShape, Load, Mode, Positions};
use crate::error::Result;
use crate::facts::DeviceFacts;

parameters! {
    /// Parameters of the standard kernel.
    pub struct Standard {
        table common: Common = Common::default();
        /// Work-items of a work-group, and pixels of its block, in x and y.
        work_group: [u32; 2] = [16, 16], Domain::pair(64, 1024, "work-items").tries(&[
            [8, 4],
            [8, 8],
            [16, 4],
            [16, 8],
            [16, 16],
            [32, 4],
            [32, 8],
            [32, 16],
            [32, 32],
            [64, 2],
            [64, 4],
            [64, 8],
            [64, 16],
        ]);
        /// Origin of positions: the first pixel of a `block`, from tables in global memory, or bin 0, from the
        /// constants alone (`absolute`, Algorithm 1); see [positions](#positions).
        positions: Positions = Positions::Block, Domain::words::<Positions>();
        /// Items fill 4 x 4 squares in Z-order (Algorithm 2); the work-group must be 16 x 16.
        z_order: bool = false, Domain::switch();
        /// Items of a work-group wait for each other at every projection, for CPUs, which run them one after another
        /// (6.10).
        synchronized: bool = false, Domain::switch();
    }
}

impl Family for Standard {
    fn meaning(&self) -> &'static str {
        "one work-item computes one pixel (paper, 5.1)"
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn start(_: Mode) -> Self {
        Standard::default()
    }

    fn suits(&self, _: &Hardware, _: &DeviceFacts) -> bool {
        true
    }

    fn check(&self, _: &[u32]) -> Result<(), KernelRuleError> {
        rule(!self.z_order || self.work_group == [16, 16], KernelRuleError::ZOrderGroup)
    }

    fn files(&self) -> &'static [ClFile] {
        &[SAMPLE, cl_file!("backproject_standard.cl")]
    }

    fn define(&self, _: &KernelForm, defines: &mut Defines) -> Result<()> {
        defines.switch("ABSOLUTE", self.positions == Positions::Absolute)?;
        defines.switch("SYNCHRONIZED", self.synchronized)?;
        defines.switch("Z_ORDER", self.z_order)
    }

    fn shape(&self, _: &KernelForm) -> LaunchShape {
        LaunchShape { work_group: self.work_group, block: self.work_group }
    }

    fn counts_from_bin_0(&self) -> bool {
        self.positions == Positions::Absolute
    }

    fn count_from_blocks(&mut self) {
        self.positions = Positions::Block;
    }

    fn load(&self, form: &KernelForm) -> Load {
        (position(self.positions, &self.common, form) + row(form) + sample(&self.common, form))
            * (1.0 / f64::from(form.slices))
    }

    fn stand_ins(&self) -> &'static [Algorithm] {
        &[]
    }
}

//! The family of kernels that multiply weights and values on matrix units.

use super::errors::KernelRuleError;
use super::family::{Family, rule};
use super::files::{ClFile, cl_file};
use super::form::{KernelForm, Matrix};
use super::parameter::parameters;
use super::{Algorithm, Common, Defines, Hardware, Interpolation, LaunchShape, Load, Mode, Sampler, Storage, Texel};
use crate::error::Result;
use crate::facts::DeviceFacts;
use std::ops::RangeInclusive;

parameters! {
    /// Parameters of the kernel for matrix units.
    pub struct Tensor {
        table common: Common = Common { storage: Storage::Half, ..Common::default() };
        /// Values and weights are sums of two halves with a total of 22 bits: single precision at about a third of the
        /// speed; at most 32 slices.
        split: bool = false, Domain::switch().trades_exactness();
        /// Warps per work-group in x and y; of 32 work-items, or `matrix-lanes` with `matrix-function`.
        warps: [u32; 2] = [4, 2], Domain::pair(32, 32, "warps")
            .tries(&[[2, 2], [4, 1], [4, 2], [2, 4], [4, 4], [8, 2], [8, 4]])
            .rank(1);
        /// Squares of 4 x 4 pixels per warp in x and y.
        squares: [u32; 2] = [2, 2], Domain::pair(16, 16, "squares")
            .tries(&[[1, 1], [2, 1], [1, 2], [2, 2], [4, 2], [2, 4], [4, 4]])
            .rank(2);
        /// Number of projections copied to local memory together.
        stage: u32 = 8, Domain::range(2, 32, 2).tries(&[2, 4, 8, 16]).rank(3);
        /// Number of stages in local memory.
        buffers: u32 = 2, Domain::range(2, 16, 1).tries(&[2, 3, 4, 6, 8]).rank(4);
        /// Number of stages copied ahead of their use, less than `buffers`.
        lead: u32 = 1, Domain::range(1, 15, 1).tries(&[1, 2, 3]).rank(5);
        /// Number of projections after which sums move from the matrix unit, which truncates, to f32 additions; a
        /// multiple of `stage`, or 0 for never.
        flush: u32 = 0, Domain::at_least(0).tries(&[0, 128, 64, 32]).rank(6).trades_exactness();
        /// Number of rows of blocks computed together, column by column, so that concurrent blocks share bins.
        band: u32 = 1, Domain::range(1, 64, 1).tries(&[1, 2, 4, 8, 16, 32]).rank(7);
    }
}

impl Tensor {
    /// Returns the number of pixels of a block in x and y.
    fn block(&self) -> [u32; 2] {
        [0, 1].map(|i| 4 * self.warps[i] * self.squares[i])
    }

    /// Returns the largest number of bins that the squares of a block read, see `window_bins` in the kernel.
    fn window(&self) -> u32 {
        let [x, y] = self.block().map(|side| f64::from(side - 4));
        x.hypot(y) as u32 + 10
    }
}

impl Family for Tensor {
    fn meaning(&self) -> &'static str {
        "products of weights and values on matrix units; slow plain arithmetic if neither assembly nor the compiler's \
         function can use them"
    }

    fn notes(&self) -> &'static str {
        "`common` must have `storage = \"half\"`, its default here, and `sampler = \"buffer\"`. Without a matrix unit \
         `stage`, `buffers` and `lead` are 2, 2 and 1, which fits the local memory of any device."
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn start(mode: Mode) -> Self {
        match mode {
            // f32 sums often enough that single precision is kept
            Mode::Precise => Tensor { split: true, flush: 32, ..Tensor::default() },
            Mode::Fast => Tensor::default(),
        }
    }

    fn suits(&self, hardware: &Hardware, _: &DeviceFacts) -> bool {
        hardware.has_matrix_unit()
    }

    fn slices(&self) -> RangeInclusive<u32> {
        16..=if self.split { 32 } else { 64 }
    }

    fn fixed(&self) -> &'static [&'static str] {
        &["common.sampler", "common.storage"]
    }

    fn check(&self, _: &[u32]) -> Result<(), KernelRuleError> {
        rule(self.common.storage == Storage::Half, KernelRuleError::NoHalves)?;
        rule(self.common.sampler == Sampler::Buffer, KernelRuleError::NoBuffer { algorithm: Algorithm::Tensor })?;
        rule(self.lead < self.buffers, KernelRuleError::Lead { lead: self.lead, most: self.buffers - 1 })?;
        rule(self.flush % self.stage == 0, KernelRuleError::Flush { flush: self.flush, stage: self.stage })
    }

    fn files(&self) -> &'static [ClFile] {
        &[cl_file!("matrix.cl"), cl_file!("backproject_tensor.cl")]
    }

    fn define(&self, form: &KernelForm, defines: &mut Defines) -> Result<()> {
        let matrix = match form.matrix {
            Matrix::Plain => 0,
            Matrix::Assembly => 1,
            Matrix::Function { name, warp_attribute } => {
                defines.word("MATRIX_FUNCTION", name)?;
                if !warp_attribute.is_empty() {
                    defines.word("WARP_ATTRIBUTE", warp_attribute)?;
                }
                if form.lanes == 16 { 3 } else { 2 }
            }
        };
        defines.number("MATRIX", matrix)?;
        defines.number("LANES", form.lanes)?;
        defines.switch("BULK_COPIES", form.bulk_copies)?;
        defines.number("WINDOW", self.window())?;
        for (name, value) in [
            ("WARPS_X", self.warps[0]),
            ("WARPS_Y", self.warps[1]),
            ("SQUARES_X", self.squares[0]),
            ("SQUARES_Y", self.squares[1]),
            ("STAGE", self.stage),
            ("BUFFERS", self.buffers),
            ("LEAD", self.lead),
            ("FLUSH", self.flush),
            ("BAND", self.band),
        ] {
            defines.number(name, value)?;
        }
        Ok(())
    }

    fn shape(&self, form: &KernelForm) -> LaunchShape {
        LaunchShape { work_group: [form.lanes, self.warps[0] * self.warps[1]], block: self.block() }
    }

    fn texels(&self, _: Interpolation, _: u32) -> Vec<Texel> {
        vec![Texel::Halves { split: self.split, guard: self.window() }]
    }

    fn uses_matrix_unit(&self) -> bool {
        true
    }

    fn adapt(&mut self, _: bool, matrix: &Matrix) {
        // the local memory of devices without matrix units is small
        if *matrix == Matrix::Plain {
            (self.stage, self.buffers, self.lead) = (2, 2, 1);
        }
    }

    /// A warp multiplies the weights of 16 pixels for 8 bins of two projections by these bins: 8 multiply-adds an update.
    fn load(&self, form: &KernelForm) -> Load {
        let slices = f64::from(form.slices);
        let linear = form.interpolation == Interpolation::Linear;
        let lanes = f64::from(form.lanes);
        // 16 pixels and two projections
        let of_lane = lanes / (32.0 * slices);
        let parts = if self.split { 2.0 } else { 1.0 };
        let products = match (self.split, linear) {
            (false, _) => 1.0,
            (true, false) => 2.0,
            (true, true) => 3.0,
        };
        // 256 weights: distance and hat function for each, then conversion to half; the lower half from the remainder
        let weights = 256.0 / lanes;
        let (fp, halves, shifts) = match (linear, self.split) {
            (true, false) => (2.0, 0.5, 0.0),
            (true, true) => (3.0, 2.0, 0.0),
            (false, _) => (1.0, 0.0, 1.0),
        };
        let lane = Load {
            fp: weights * fp + 3.0,
            half_conversions: weights * halves,
            shifts: weights * shifts,
            ..Load::local(1.0, 16.0)
        };
        // start of a square's bins, found by one item for a projection of the pair
        let place = Load { fp: 9.0, conversions: 3.0, shifts: 2.0, ..Load::constant(4.0, 8.0) + Load::local(1.0, 8.0) };
        let [x, y] = self.block().map(f64::from);
        let row_bytes = 2.0 * parts * slices;
        let copy = Load::local(f64::from(self.window()), row_bytes) * (1.0 / (x * y * slices));
        let reads = Load { local: parts * slices / 16.0 * of_lane, local_bytes: parts, ..Load::default() };
        let product = match form.matrix {
            Matrix::Plain => Load { fp: 8.0 * products, ..Load::default() },
            _ => {
                let instructions = products * slices / 8.0 * of_lane;
                Load { matrix: 8.0 * products, matrix_instructions: instructions, ..Load::default() }
            }
        };
        lane * of_lane + place * (1.0 / (16.0 * slices)) + copy + reads + product
    }

    fn local_memory(&self, form: &KernelForm) -> u64 {
        let [stage, warps] = [self.stage, self.warps[0] * self.warps[1]].map(u64::from);
        let squares = u64::from(self.squares[0] * self.squares[1]);
        let window = u64::from(self.window()) * (self.common.storage.bytes() * form.texel.channels(form.slices)) as u64;
        u64::from(self.buffers) * stage * window + 16 * warps * stage * squares + 16 * warps * stage
    }

    fn stand_ins(&self) -> &'static [Algorithm] {
        &[Algorithm::Texture, Algorithm::Alu, Algorithm::Standard]
    }
}

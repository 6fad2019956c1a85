//! The family of kernels that process several projections at a time on the texture unit (paper, Algorithms 3 to 5).

use super::errors::KernelRuleError;
use super::family::{Family, rule};
use super::files::{ClFile, EXCHANGE, SAMPLE, cl_file};
use super::form::KernelForm;
use super::load::sample;
use super::parameter::parameters;
use super::{Common, Defines, Exchange, LaunchShape, Load, Mode};
use crate::error::Result;

parameters! {
    /// Parameters of the cache-aware texture kernel.
    pub struct Texture {
        table common: Common = Common::default();
        /// Projections at a time; 2, 4 or 8 use work-groups of 64 items for each, 16 (draft) one of 256 in total.
        projections_at_once: u32 = 4, Domain::one_of(&[2, 4, 8, 16]).rank(1);
        /// Number of projections whose constants are kept in local memory, a multiple of `projections-at-once`; 0 for none
        /// (Algorithm 5).
        cached_constants: u32 = 0, Domain::range(0, 1024, 4).tries(&[0, 64, 128, 256, 512]).rank(2);
        /// The cached axes of an item are contiguous (draft).
        regroup: bool = false, Domain::switch();
        /// No axis is loaded if all projections have the same (draft).
        same_centre: bool = false, Domain::switch();
        /// The projection loop counts rows of texels in float (draft).
        float_index: bool = false, Domain::switch();
        /// Constants and partial sums share one local buffer (draft).
        shared_buffer: bool = false, Domain::switch();
        /// Sums are written as soon as they are ready (draft).
        direct_writes: bool = false, Domain::switch();
        /// How partial sums are added: through `local` memory or by `shuffle` (Algorithm 4).
        reduction: Exchange = Exchange::Local, Domain::words::<Exchange>().rank(3);
    }
}

impl Texture {
    /// Returns the number of work-items of a work-group: 64 or 16 pixels of a step for each projection.
    fn items(&self) -> u32 {
        self.projections_at_once * if self.projections_at_once < 16 { 64 } else { 16 }
    }

    /// Reports whether no axis is loaded.
    fn leaves_axes_out(&self, form: &KernelForm) -> bool {
        self.same_centre && form.same_axis
    }
}

impl Family for Texture {
    fn meaning(&self) -> &'static str {
        "several projections at a time on the texture unit (5.6, Algorithms 3 to 5, and variants from the paper's \
         draft)"
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn start(_: Mode) -> Self {
        Texture::default()
    }

    fn check(&self, _: &[u32]) -> Result<(), KernelRuleError> {
        let at_once = self.projections_at_once;
        rule(
            self.cached_constants % at_once == 0,
            KernelRuleError::CachedConstants { cached: self.cached_constants, step: at_once },
        )?;
        rule(self.cached_constants > 0 || !(self.regroup || self.shared_buffer), KernelRuleError::NoCachedConstants)?;
        rule(!(self.regroup && self.same_centre), KernelRuleError::NothingToRegroup)
    }

    fn files(&self) -> &'static [ClFile] {
        &[SAMPLE, EXCHANGE, cl_file!("backproject_texture.cl")]
    }

    fn define(&self, form: &KernelForm, defines: &mut Defines) -> Result<()> {
        defines.number("GROUPS", self.projections_at_once)?;
        defines.number("CACHED", self.cached_constants)?;
        defines.switch("REGROUP", self.regroup)?;
        defines.switch("SAME_CENTRE", self.leaves_axes_out(form))?;
        defines.switch("FLOAT_INDEX", self.float_index)?;
        defines.switch("SHARED_BUFFER", self.shared_buffer)?;
        defines.switch("DIRECT_WRITES", self.direct_writes)?;
        form.shuffle.define(defines)
    }

    fn shape(&self, _: &KernelForm) -> LaunchShape {
        LaunchShape { work_group: [16, self.items() / 16], block: [16, 16] }
    }

    fn counts_from_bin_0(&self) -> bool {
        true
    }

    fn exchange_span(&self) -> u32 {
        match self.reduction {
            Exchange::Local => 0,
            Exchange::Shuffle => self.projections_at_once,
        }
    }

    fn load(&self, form: &KernelForm) -> Load {
        let slices = f64::from(form.slices);
        // an item handles one of the simultaneous projections and this many pixels: a work-group computes 256 pixels
        let pixels = 256.0 * f64::from(self.projections_at_once) / f64::from(self.items());
        let axis = if self.leaves_axes_out(form) { 0.0 } else { 1.0 };
        let constants = match self.cached_constants {
            0 => Load::constants(&self.common, 1.0 + axis, 8.0),
            // filled once by the block's items for its 256 pixels
            _ => {
                Load::local(1.0 + axis, (8.0 + 4.0 * axis) / (1.0 + axis)).staged()
                    + Load::constants(&self.common, 2.0 * pixels / 256.0, 8.0)
            }
        };
        // position and 1/2; the centre of a row from the counter, or the counter itself: either is converted once
        let item = constants + Load { fp: 4.0, conversions: 1.0, shifts: 1.0, ..Load::default() };
        // all pixels but the first are a multiply-add from there
        let pixel = Load { fp: 1.0 - 1.0 / pixels, ..Load::default() } + sample(&self.common, form);
        item * (1.0 / (pixels * slices)) + pixel * (1.0 / slices)
    }

    fn local_memory(&self, form: &KernelForm) -> u64 {
        let slices = u64::from(form.slices);
        let cached = u64::from(self.cached_constants);
        let groups = u64::from(self.projections_at_once);
        let axes = if self.regroup { groups * (cached / groups + 4) } else { cached };
        let cache = if cached > 0 { 8 * cached + 4 * axes } else { 0 };
        let partial = 4 * u64::from(self.items()) * slices;
        let tile = if self.direct_writes { 0 } else { 1024 * slices };
        tile + if self.shared_buffer { partial.max(cache) } else { partial + cache }
    }
}

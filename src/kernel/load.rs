//! The cost of one update, derived from what the kernel is generated from: its family's parameters and its [`KernelForm`].
//!
//! The method is that of section 6.5 of the paper for the arithmetic kernel: the work of a block for a projection is
//! divided by the block's pixels and slices, the work of an item by the item's pixels and slices, and the work of a
//! pixel by its slices. The other families are counted in the same way from their files in `cl/`, each in its own
//! module.

use super::form::KernelForm;
use super::{Common, Constants, Interpolation, Positions, Storage, Texel};
use crate::facts::ChannelType;
use serde::Serialize;
use std::ops::{Add, AddAssign, Mul};

/// Operations and bytes of one update: one pixel, one projection, one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Loads from constant memory.
    pub constant: f64,
    /// Bytes of the loads from constant memory.
    pub constant_bytes: f64,
    /// Loads and stores of local memory, and of buffers and tables through the first cache.
    pub local: f64,
    /// Bytes of the loads and stores of local memory, and of buffers and tables through the first cache.
    pub local_bytes: f64,
    /// Floating-point instructions; a fused multiply-add is one.
    pub fp: f64,
    /// Rounding, and conversions between integer and float.
    pub conversions: f64,
    /// Conversions between half and float.
    pub half_conversions: f64,
    /// Shifts and products that compute addresses.
    pub shifts: f64,
    /// Memory operations that prepare the inner loop, each of which takes an issue slot.
    pub staging: f64,
    /// Texels: of 32 bits; of 64 bits, interpolated; of 64 bits, nearest; of 128 bits, nearest.
    pub texels: [f64; 4],
    /// Multiply-adds of matrix units.
    pub matrix: f64,
    /// Instructions of matrix units.
    pub matrix_instructions: f64,
}

impl Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        Load {
            constant: self.constant + other.constant,
            constant_bytes: self.constant_bytes + other.constant_bytes,
            local: self.local + other.local,
            local_bytes: self.local_bytes + other.local_bytes,
            fp: self.fp + other.fp,
            conversions: self.conversions + other.conversions,
            half_conversions: self.half_conversions + other.half_conversions,
            shifts: self.shifts + other.shifts,
            staging: self.staging + other.staging,
            texels: [0, 1, 2, 3].map(|i| self.texels[i] + other.texels[i]),
            matrix: self.matrix + other.matrix,
            matrix_instructions: self.matrix_instructions + other.matrix_instructions,
        }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Load) {
        *self = *self + other;
    }
}

impl Mul<f64> for Load {
    type Output = Load;

    fn mul(self, times: f64) -> Load {
        Load {
            constant: self.constant * times,
            constant_bytes: self.constant_bytes * times,
            local: self.local * times,
            local_bytes: self.local_bytes * times,
            fp: self.fp * times,
            conversions: self.conversions * times,
            half_conversions: self.half_conversions * times,
            shifts: self.shifts * times,
            staging: self.staging * times,
            texels: self.texels.map(|t| t * times),
            matrix: self.matrix * times,
            matrix_instructions: self.matrix_instructions * times,
        }
    }
}

impl Load {
    pub(super) fn local(count: f64, bytes: f64) -> Load {
        Load { local: count, local_bytes: count * bytes, ..Load::default() }
    }

    pub(super) fn constant(count: f64, bytes: f64) -> Load {
        Load { constant: count, constant_bytes: count * bytes, ..Load::default() }
    }

    /// Loads of a projection's constants, from where they are: constant memory, or a buffer.
    pub(super) fn constants(common: &Common, count: f64, bytes: f64) -> Load {
        match common.constants {
            Constants::Constant => Load::constant(count, bytes),
            Constants::Global => Load::local(count, bytes),
        }
    }

    /// Returns the load with all of its memory operations preparing the inner loop.
    pub(super) fn staged(self) -> Load {
        Load { staging: self.constant + self.local, ..self }
    }

    pub(super) fn texel(texel: Texel, interpolated: bool) -> Load {
        let mut texels = [0.0; 4];
        if let Some(format) = texel.format() {
            let channel = if format.channel_type == ChannelType::Half { 16 } else { 32 };
            match (format.channels.count() * channel, interpolated) {
                (..=32, _) => texels[0] = 1.0,
                (64, true) => texels[1] = 1.0,
                (64, false) => texels[2] = 1.0,
                // interpolated: counted as two of 64 bits
                (_, true) => texels[1] = 2.0,
                (_, false) => texels[3] = 1.0,
            }
        }
        Load { texels, ..Load::default() }
    }
}

/// Load of finding the position on the detector for a pixel, up to where the sinogram is read: by the constants of a
/// projection alone, or by them and tables of where the block's column and row start.
pub(super) fn position(positions: Positions, common: &Common, form: &KernelForm) -> Load {
    let packed = common.packed_constants;
    let by_image = form.texel.format().is_some();
    let rounded = by_image && form.interpolation == Interpolation::Nearest;
    // two multiply-adds; a texel's centre along bins and projections, or the whole bin and the rest from there
    let constants = |count, bytes| Load::constants(common, count, bytes);
    let (fp, loads) = match (positions, packed) {
        (Positions::Absolute, true) => (3.0, constants(1.0, 16.0)),
        (Positions::Absolute, false) => (3.0, constants(3.0, 4.0)),
        (Positions::Block, true) => (6.0, constants(1.0, 8.0) + Load::local(2.0, 8.0)),
        (Positions::Block, false) => (6.0, constants(2.0, 4.0) + Load::local(2.0, 8.0)),
    };
    // the nearest bin is rounded here, with an addition of 1/2, and then read at its centre
    let each = |yes: bool| f64::from(u8::from(yes));
    loads + Load { fp: fp + each(by_image) + each(rounded), conversions: each(rounded), ..Load::default() }
}

/// Load of finding a projection's row: its number as a float for a texel, its address in a buffer.
pub(super) fn row(form: &KernelForm) -> Load {
    let by_image = form.texel.format().is_some();
    Load { conversions: f64::from(u8::from(by_image)), shifts: 1.0, ..Load::default() }
}

/// Returns the load of computing where a block's row starts.
pub(super) fn row_start(positions: Positions, common: &Common) -> Load {
    let constants = |count, bytes| Load::constants(common, count, bytes);
    let (fp, loads) = match (positions, common.packed_constants) {
        (Positions::Absolute, true) => (4.0, constants(1.0, 16.0)),
        (Positions::Absolute, false) => (4.0, constants(4.0, 4.0)),
        (Positions::Block, _) => (5.0, constants(1.0, 4.0) + Load::local(2.0, 8.0)),
    };
    loads + Load { fp, conversions: 1.0, shifts: 2.0, ..Load::default() }
}

/// Load of reading the sinogram at a position, for one pixel with all its slices, and adding to the sums.
pub(super) fn sample(common: &Common, form: &KernelForm) -> Load {
    let slices = f64::from(form.slices);
    let linear = form.interpolation == Interpolation::Linear;
    let half = common.storage == Storage::Half;
    if form.texel.format().is_some() {
        let unpacked = if matches!(form.texel, Texel::PackedHalves(_)) { slices } else { 0.0 };
        return Load { fp: slices, half_conversions: unpacked, ..Load::texel(form.texel, linear) };
    }
    let (reads, sums) = if linear { (2.0, 3.0) } else { (1.0, 1.0) };
    let bytes = if half { 2.0 } else { 4.0 };
    Load {
        // clamped twice
        fp: sums * slices + 2.0,
        // down to a whole number, and that to an index
        conversions: 2.0,
        shifts: 1.0,
        half_conversions: if half { reads * slices } else { 0.0 },
        ..Load::local(reads, slices * bytes)
    }
}

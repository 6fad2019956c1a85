//! Parameters that every family has.

use super::parameter::parameters;
use super::{Constants, Sampler, Storage};

parameters! {
    /// Parameters that every family has.
    pub struct Common {
        /// `buffer`: explicit interpolation in single precision. `image`: the texture unit reads values (and
        /// interpolates, for `standard`, `texture` and `oversample`); at most 4 slices.
        sampler: Sampler = Sampler::Buffer, Domain::words::<Sampler>().tries(&["buffer", "image"]);
        /// Data type of the filtered sinogram.
        storage: Storage = Storage::Float, Domain::words::<Storage>().trades_exactness();
        /// Memory for angles and axes; always global if constant memory is too small.
        constants: Constants = Constants::Constant, Domain::words::<Constants>().rank(4);
        /// One vector per projection instead of separate arrays (paper, 5.7).
        packed_constants: bool = true, Domain::switch().rank(3);
        /// `-cl-fast-relaxed-math`: the compiler may reorder sums and round freely.
        relaxed_math: bool = false, Domain::switch().trades_exactness();
        /// Unroll hint of the projection loop; 1 leaves it to the compiler.
        unroll: u32 = 1, Domain::range(1, 64, 1).tries(&[1, 2, 4, 8, 16]).rank(1);
        /// Occupancy in percent that the registers of a work-item should allow (paper, 5.7 and 6.9), using
        /// `[hardware]`; 0 leaves it to the compiler.
        occupancy: u32 = 0, Domain::percent().tries(&[0, 25, 37, 43, 50, 66, 75, 100]).rank(2);
    }
}

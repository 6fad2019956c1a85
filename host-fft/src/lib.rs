//! Plans of Fourier transforms on the host.
//!
//! rustfft is generic, so its code is compiled in the crate that first names a type: a fifth of what the compiler would make
//! of fbp. Here it is compiled once. Transforms are not normalised: forward and inverse together multiply by the length.

pub use realfft::{ComplexToReal, RealToComplex};
pub use rustfft::Fft;
pub use rustfft::num_complex::Complex;

use realfft::RealFftPlanner;
use rustfft::{FftNum, FftPlanner};
use std::sync::Arc;

/// Type of a real value, `f32` or `f64`, with plans for transforms of `length` values.
pub trait Real: FftNum {
    /// Returns the complex transform with `exp(-2 pi i j k / length)`.
    fn forward(length: usize) -> Arc<dyn Fft<Self>>;
    /// Returns the complex transform with `exp(2 pi i j k / length)`.
    fn inverse(length: usize) -> Arc<dyn Fft<Self>>;
    /// Returns the forward transform of real values to `length / 2 + 1` frequencies.
    fn real_forward(length: usize) -> Arc<dyn RealToComplex<Self>>;
    /// Returns the inverse transform of `length / 2 + 1` frequencies to real values.
    fn real_inverse(length: usize) -> Arc<dyn ComplexToReal<Self>>;
}

macro_rules! plans {
    ($real:ty) => {
        impl Real for $real {
            fn forward(length: usize) -> Arc<dyn Fft<Self>> {
                FftPlanner::new().plan_fft_forward(length)
            }

            fn inverse(length: usize) -> Arc<dyn Fft<Self>> {
                FftPlanner::new().plan_fft_inverse(length)
            }

            fn real_forward(length: usize) -> Arc<dyn RealToComplex<Self>> {
                RealFftPlanner::new().plan_fft_forward(length)
            }

            fn real_inverse(length: usize) -> Arc<dyn ComplexToReal<Self>> {
                RealFftPlanner::new().plan_fft_inverse(length)
            }
        }
    };
}

plans!(f32);
plans!(f64);

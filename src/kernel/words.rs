//! Values of flags and profile keys, each declared once as the variant of an enum.

use crate::error::{Error, messages};
use crate::reference::Reads;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

messages! {
    /// A word that is none of an enum.
    enum UnknownWordError: Usage {
        Unknown { what: &'static str, text: String, words: String } => "unknown {what} `{text}`; it is one of {words}",
    }
}

/// Numbers of slices that a kernel can reconstruct at once.
pub const SLICE_MODES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// An enum that is read from the command line.
pub(super) trait Word: Display + VariantArray {
    /// Noun for the enum in messages.
    const WHAT: &'static str;
}

/// Returns the error for a word that is not a variant of `T`.
pub(super) fn unknown<T: Word>(text: &str) -> Error {
    let words: Vec<String> = T::VARIANTS.iter().map(T::to_string).collect();
    UnknownWordError::Unknown { what: T::WHAT, text: text.to_owned(), words: words.join(", ") }.into()
}

/// The families of back-projection kernels.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", parse_err_ty = Error, parse_err_fn = unknown::<Algorithm>)]
pub enum Algorithm {
    /// The family that works everywhere.
    #[default]
    Standard,
    Texture,
    Alu,
    Oversample,
    Hybrid,
    Tensor,
    Vector,
    Gridding,
}

impl Algorithm {
    /// Every family, in the order that messages list them.
    pub const ALL: &'static [Algorithm] = Algorithm::VARIANTS;
}

impl Word for Algorithm {
    const WHAT: &'static str = "algorithm";
}

/// How a value between two bins is interpolated.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", parse_err_ty = Error, parse_err_fn = unknown::<Interpolation>)]
pub enum Interpolation {
    Linear,
    Nearest,
    /// Interpolation by the band-limited row itself, within `--accuracy`.
    Exact,
}

impl Interpolation {
    /// Every interpolation, in the order that messages list them.
    pub const ALL: &'static [Interpolation] = Interpolation::VARIANTS;

    /// Returns by which rule rows are read.
    pub fn reads(self) -> Reads {
        match self {
            Interpolation::Linear => Reads::Linear,
            Interpolation::Nearest => Reads::Nearest(1),
            Interpolation::Exact => Reads::Exact,
        }
    }
}

impl Word for Interpolation {
    const WHAT: &'static str = "interpolation";
}

/// The modes of the paper's Table 25.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", parse_err_ty = Error, parse_err_fn = unknown::<Mode>)]
pub enum Mode {
    /// Mode without losses beyond the rounding of `f32` arithmetic.
    Precise,
    /// Mode that allows half storage, texture weights of 8 bits and the like.
    Fast,
}

impl Mode {
    /// Every mode, in the order that messages list them.
    pub const ALL: &'static [Mode] = Mode::VARIANTS;
}

impl Word for Mode {
    const WHAT: &'static str = "mode";
}

/// The data type of the sinogram that is stored for back projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, VariantArray, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Storage {
    Float,
    Half,
}

impl Storage {
    /// Every data type.
    pub const ALL: &'static [Storage] = <Storage as VariantArray>::VARIANTS;

    /// Returns the bytes of a value.
    pub fn bytes(self) -> usize {
        match self {
            Storage::Float => 4,
            Storage::Half => 2,
        }
    }
}

/// The memory from which a kernel reads the sinogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Sampler {
    /// The texture unit; a plain buffer where the device has no suitable image format.
    Image,
    /// A plain buffer and explicit interpolation.
    Buffer,
}

/// The address space of the per-projection constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Constants {
    /// Constant memory; global memory when there are more projections than it holds.
    Constant,
    Global,
}

/// The origin from which positions on the detector are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Positions {
    /// The first pixel of a block, whose position two tables in global memory hold, split into whole bins and a
    /// fraction: as exact on any detector.
    Block,
    /// Bin 0, by the constants of a projection alone (paper, Algorithms 1 and 6).
    Absolute,
}

impl Positions {
    /// Largest number of bins up to which positions counted from bin 0 keep the margin of kernels that do so, see
    /// `crate::margins`.
    pub const WIDEST_ABSOLUTE: usize = 4096;
}

/// The way in which items exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Exchange {
    /// Through local memory.
    Local,
    /// Through the warp's shuffle instruction, or local memory if the device has none.
    Shuffle,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_listed() {
        assert_eq!("nearest".parse::<Interpolation>().unwrap(), Interpolation::Nearest);
        assert_eq!(format!("{:<8}|", Mode::Fast), "fast    |");
        let message = "cubic".parse::<Interpolation>().unwrap_err().to_string();
        assert_eq!(message, "unknown interpolation `cubic`; it is one of linear, nearest, exact");
        let message = "magic".parse::<Algorithm>().unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown algorithm `magic`; it is one of standard, texture, alu, oversample, hybrid, tensor, vector, gridding"
        );
    }
}

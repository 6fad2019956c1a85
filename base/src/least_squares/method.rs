//! The requested method, and when it stops.

use crate::error::messages;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// How slices are found from corrected rows.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SliceMethod {
    /// Filtered back projection.
    #[default]
    Fbp,
    /// Least squares with the total variation of the slice.
    Tv,
    /// As `tv`, but quadratic for small gradients, which keeps slopes.
    Huber,
    /// Least squares with the squared gradient of the slice.
    Tikhonov,
    /// Least squares by conjugate gradients that stop early.
    Cgls,
}

messages! {
    /// Errors of `--iterations`.
    pub enum IterationsError: Usage {
        Malformed { text: String } => "--iterations: `{text}` is neither auto nor a number from 1 to 100000",
    }
}

/// Number of iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum Iterations {
    /// Until the slice hardly changes.
    #[default]
    Auto,
    Exactly(usize),
}

impl Iterations {
    /// Largest number that `auto` tries.
    pub const MOST: usize = 100;

    /// Returns the largest number of iterations.
    pub fn most(self) -> usize {
        match self {
            Iterations::Auto => Iterations::MOST,
            Iterations::Exactly(count) => count,
        }
    }
}

/// Formats the number as `--iterations` takes it.
impl fmt::Display for Iterations {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Iterations::Auto => f.write_str("auto"),
            Iterations::Exactly(count) => write!(f, "{count}"),
        }
    }
}

/// Parses the number as `--iterations` takes it.
impl FromStr for Iterations {
    type Err = IterationsError;

    fn from_str(text: &str) -> Result<Iterations, IterationsError> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Iterations::Auto),
            (_, Ok(count @ 1..=100_000)) => Ok(Iterations::Exactly(count)),
            _ => Err(IterationsError::Malformed { text: text.to_owned() }),
        }
    }
}

/// How projections are weighted in the misfit.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ProjectionWeights {
    /// All the same.
    #[default]
    Uniform,
    /// By the noise of each.
    Noise,
    /// As a text file says, one number a line.
    File,
}

impl ProjectionWeights {
    /// Returns the weights that `--weights` asks for: those of the noise, or of a file.
    pub fn of(given: Option<&Path>) -> ProjectionWeights {
        match given {
            None => ProjectionWeights::Uniform,
            Some(path) if path == Path::new("noise") => ProjectionWeights::Noise,
            Some(_) => ProjectionWeights::File,
        }
    }
}

/// A request for regularised least squares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LeastSquares {
    pub method: SliceMethod,
    /// Weight of the regularisation, in units of what the noise suggests.
    pub strength: f64,
    pub iterations: Iterations,
    /// Change of the slice between iterations, relative to its contrast, at which `auto` stops.
    pub tolerance: f64,
    /// Values below 0 are excluded.
    pub non_negative: bool,
    /// Gradient up to which `huber` is quadratic, relative to the contrast.
    pub huber: f64,
    /// The sample is wider than the detector.
    pub interior: bool,
    #[serde(default)]
    pub weights: ProjectionWeights,
}

/// Formats the request for a table of a run.
impl fmt::Display for LeastSquares {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.method)?;
        if self.method != SliceMethod::Cgls {
            write!(f, ", strength {}", self.strength)?;
        }
        if self.method == SliceMethod::Huber {
            write!(f, ", threshold {}", self.huber)?;
        }
        write!(f, ", iterations {}", self.iterations)?;
        if self.non_negative {
            f.write_str(", no negative values")?;
        }
        if self.interior {
            f.write_str(", of a sample that is cut off")?;
        }
        match self.weights {
            ProjectionWeights::Uniform => Ok(()),
            ProjectionWeights::Noise => f.write_str(", weighted by the noise of projections"),
            ProjectionWeights::File => f.write_str(", weighted by a file"),
        }
    }
}

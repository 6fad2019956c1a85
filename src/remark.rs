//! What a user should know about a run: notes, and reasons to doubt its result.

use serde::{Deserialize, Serialize};
use std::fmt;
use strum::{Display, VariantArray};

/// Kinds of doubts, by the names that records and reports have for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Display, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DoubtKind {
    /// Whole numbers that look like detector counts are reconstructed as line integrals.
    DetectorCounts,
    /// Input values were replaced, because they are no transmissions or not finite.
    ReplacedValues,
    /// So many values of a row or of a bin were replaced that slices have artefacts.
    DefectiveRows,
    /// Counts have the largest value that their files can hold.
    Saturated,
    /// Projections have no beam.
    Unlit,
    /// The numbers in the names of projections have gaps.
    MissingFiles,
    /// Files were awaited until none came any more, and nothing says how many there should be.
    EndedByTime,
    /// Data that are reconstructed as line integrals look like transmissions or counts.
    MissingLogarithm,
    /// The energy or the ratio delta / beta of a phase filter is not usual.
    PhaseValues,
    /// The length of a phase filter is not usual.
    PhaseLength,
    /// Values of slices are so small, or so close together, that samples of 16-bit floats do not tell them apart.
    CoarseF16,
    /// A flat or dark field has another level than the others.
    OddField,
    /// Angles in degrees look like radians.
    Radians,
    /// Angles leave out a part of the turn.
    MissingAngles,
    /// The axis of rows changes over the height, and nothing corrects it.
    TiltedAxis,
}

/// A reason why slices may be wrong although the run succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    pub name: DoubtKind,
    /// What was found in the data.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

impl Doubt {
    pub fn new(name: DoubtKind, what: impl Into<String>, advice: impl Into<String>) -> Doubt {
        Doubt { name, what: what.into(), advice: advice.into() }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.advice)
    }
}

/// Something that a user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// A fact that explains what the program does.
    Note(String),
    Doubt(Doubt),
}

impl Remark {
    /// A note.
    pub fn note(text: impl Into<String>) -> Remark {
        Remark::Note(text.into())
    }

    /// Without the word that says which of the two it is.
    pub fn text(&self) -> String {
        match self {
            Remark::Note(text) => text.clone(),
            Remark::Doubt(doubt) => doubt.to_string(),
        }
    }
}

impl From<Doubt> for Remark {
    fn from(doubt: Doubt) -> Remark {
        Remark::Doubt(doubt)
    }
}

/// As it is printed.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Remark::Note(text) => write!(f, "note: {text}"),
            Remark::Doubt(doubt) => write!(f, "warning: {doubt}"),
        }
    }
}

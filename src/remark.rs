//! Remarks for the user about a run: notes, and reasons to doubt its result.

use crate::error::Message;
use serde::{Deserialize, Serialize};
use std::fmt;
use strum::{Display, VariantArray};

/// Kind of a doubt, named as in records and reports.
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
    /// Slices of least squares had not settled when their iterations ended.
    Unfinished,
    /// The axis of rows changes over the height, and nothing corrects it.
    TiltedAxis,
    /// The file of a scan has shifts of projections along the axis, which are not done.
    RowShifts,
    /// The flat field in the file of a scan was exposed for another time than the projections.
    Exposure,
    /// Rays of a cone beam are not nearly parallel.
    ConeBeam,
}

/// Reason why slices may be wrong although the run succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    pub name: DoubtKind,
    /// Finding in the data.
    pub what: String,
    /// Advice to the user.
    pub advice: String,
}

impl Doubt {
    pub fn new(name: DoubtKind, what: impl Into<String>, advice: impl Into<String>) -> Doubt {
        Doubt { name, what: what.into(), advice: advice.into() }
    }

    /// Returns the doubt that a message declares.
    pub fn of(name: DoubtKind, message: &impl Message) -> Doubt {
        Doubt { name, what: message.problem(), advice: message.advice() }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.advice)
    }
}

/// Remark for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// Fact that explains the behaviour of the program.
    Note(String),
    Doubt(Doubt),
}

impl Remark {
    /// Creates a note.
    pub fn note(text: impl Into<String>) -> Remark {
        Remark::Note(text.into())
    }

    /// Returns the text without the prefix that distinguishes notes and warnings.
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

/// Formats the remark as it is printed, with the prefix `note` or `warning`.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Remark::Note(text) => write!(f, "note: {text}"),
            Remark::Doubt(doubt) => write!(f, "warning: {doubt}"),
        }
    }
}

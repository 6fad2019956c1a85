//! Paths of the data and their fields, as flags give them.

use serde::{Deserialize, Serialize};

/// Directories, globs or files of the data and their fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StackPaths {
    pub data: String,
    pub flats: Option<String>,
    pub flats2: Option<String>,
    pub darks: Option<String>,
    /// Files of the distortion by the optics: one, two, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distortion: Vec<String>,
    /// File of the currents of the storage ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currents: Option<String>,
    /// Number in the names of the data's files, counted from 1, that is their order, if the user has chosen one.
    pub order_by: Option<usize>,
}

/// Word in paths that stands for the part of a scan that consists of several.
pub const PART: &str = "{part}";

impl StackPaths {
    /// Returns the paths of one part of a scan.
    pub fn of_part(&self, part: &str) -> StackPaths {
        let with = |path: &str| path.replace(PART, part);
        StackPaths {
            data: with(&self.data),
            flats: self.flats.as_deref().map(with),
            flats2: self.flats2.as_deref().map(with),
            darks: self.darks.as_deref().map(with),
            distortion: self.distortion.clone(),
            currents: self.currents.as_deref().map(with),
            order_by: self.order_by,
        }
    }
}

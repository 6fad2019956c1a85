//! Files of metadata, and groups.

use serde_json::{Value, json};

/// Version of Zarr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZarrVersion {
    V2,
    V3,
}

/// Name of the file of metadata of a group or an array, attributes included, of version 3.
pub const METADATA: &str = "zarr.json";
/// Name of the file of metadata of a group of version 2.
pub const GROUP: &str = ".zgroup";
/// Name of the file of attributes of version 2.
pub const ATTRIBUTES: &str = ".zattrs";

impl ZarrVersion {
    /// Returns the version as metadata say it.
    pub fn number(self) -> u8 {
        match self {
            ZarrVersion::V2 => 2,
            ZarrVersion::V3 => 3,
        }
    }

    /// Returns the name of the file of metadata of an array.
    pub fn array_file(self) -> &'static str {
        match self {
            ZarrVersion::V2 => ".zarray",
            ZarrVersion::V3 => METADATA,
        }
    }
}

/// Reports whether metadata of version 3 are those of an array.
pub fn is_array(meta: &Value) -> bool {
    meta["node_type"] == "array"
}

/// Returns the files of metadata of a group, each a name and its content.
pub fn group_files(version: ZarrVersion, attributes: Value) -> Vec<(&'static str, Value)> {
    let number = version.number();
    match version {
        ZarrVersion::V2 => vec![(GROUP, json!({"zarr_format": number})), (ATTRIBUTES, attributes)],
        ZarrVersion::V3 => {
            vec![(METADATA, json!({"zarr_format": number, "node_type": "group", "attributes": attributes}))]
        }
    }
}

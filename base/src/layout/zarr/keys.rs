//! Names of the files of chunks.

use super::errors::ZarrMetadataError;
use super::group::ZarrVersion;
use serde_json::{Value, json};

/// How the numbers of a chunk along each dimension become the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkKeys {
    /// Text before the numbers.
    pub prefix: String,
    /// Text between the numbers.
    pub separator: String,
}

impl ChunkKeys {
    /// Returns the names with slashes, which are those of directories and of files in them.
    pub fn nested(version: ZarrVersion) -> ChunkKeys {
        ChunkKeys::new(version == ZarrVersion::V3, "/")
    }

    /// Returns the names with a separator, which all follow a `c` if they are the default ones of version 3.
    fn new(default: bool, separator: &str) -> ChunkKeys {
        let prefix = if default { format!("c{separator}") } else { String::new() };
        ChunkKeys { prefix, separator: separator.to_owned() }
    }

    /// Reads the metadata of an array.
    ///
    /// # Errors
    /// A message about an unsupported separator.
    pub(super) fn parse(meta: &Value, version: ZarrVersion) -> Result<ChunkKeys, ZarrMetadataError> {
        let (default, separator) = match version {
            ZarrVersion::V2 => (false, &meta["dimension_separator"]),
            ZarrVersion::V3 => {
                let key = &meta["chunk_key_encoding"];
                (key["name"] != "v2", &key["configuration"]["separator"])
            }
        };
        let separator = separator.as_str().unwrap_or(if default { "/" } else { "." });
        if separator != "/" && separator != "." {
            return Err(ZarrMetadataError::Separator { separator: separator.into() });
        }
        Ok(ChunkKeys::new(default, separator))
    }

    /// Returns the metadata of version 3.
    pub(super) fn version_3(&self) -> Value {
        let name = if self.prefix.is_empty() { "v2" } else { "default" };
        json!({"name": name, "configuration": {"separator": self.separator}})
    }

    /// Returns the names of chunks whose numbers along `leading` more dimensions, the first ones, are 0.
    pub fn after(mut self, leading: usize) -> ChunkKeys {
        self.prefix += &format!("0{}", self.separator).repeat(leading);
        self
    }

    /// Returns the name of a chunk, relative to the directory of the array.
    pub fn path<const N: usize>(&self, numbers: [usize; N]) -> String {
        let ChunkKeys { prefix, separator } = self;
        prefix.clone() + &numbers.map(|number| number.to_string()).join(separator)
    }
}

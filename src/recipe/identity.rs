//! What a run is known by: the hash of everything that decides the bytes of its slices.

use super::Recipe;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that decides the bytes of slices. Shards of a run have the same; so have runs on one device and on several
/// alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Identity {
    pub version: &'static str,
    /// With the axis that was found in place of a search.
    pub recipe: Recipe,
    /// Digest of names, sizes, times and shapes of the input's files, and of the angles and shifts that were read.
    pub input: String,
    /// Digest of the numbers of the slices that percentiles are taken from.
    pub sampled: Option<String>,
    /// Values that became 0 and the largest integer.
    pub range: Option<(f32, f32)>,
    pub devices: BTreeSet<DeviceIdentity>,
}

/// A device, and how it computes slices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeviceIdentity {
    pub device: String,
    pub platform: String,
    pub driver: String,
    /// Key of the back-projection kernel's source.
    pub kernel: String,
    /// Who filters rows.
    pub rows: String,
    /// Projections whose sum is computed at a time.
    pub part: usize,
}

impl Identity {
    /// 128 bits in hexadecimal digits.
    pub fn key(&self) -> String {
        digest([self.to_json().to_string()])
    }

    /// The same with the range that percentiles led to.
    pub fn with_range(&self, range: (f32, f32)) -> Identity {
        Identity { range: Some(range), ..self.clone() }
    }

    /// Names of all parts, with dots between their levels, and their values; for people.
    pub fn parts(&self) -> BTreeMap<String, String> {
        fn flatten(name: &str, value: &Value, parts: &mut BTreeMap<String, String>) {
            let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
            match value {
                Value::Object(map) => map.iter().for_each(|(key, value)| flatten(&below(key), value, parts)),
                Value::Null => {}
                Value::String(text) => drop(parts.insert(name.to_owned(), text.clone())),
                value => drop(parts.insert(name.to_owned(), value.to_string())),
            }
        }
        let mut parts = BTreeMap::new();
        flatten("", &self.to_json(), &mut parts);
        parts
    }

    fn to_json(&self) -> Value {
        // numbers, words and lists of them, which all have a form in JSON
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The first half of a SHA-256, in hexadecimal digits.
pub fn digest(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

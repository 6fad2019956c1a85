//! An entry `[[kernel]]` of a profile: its use, and exactly one family with its parameters, under the family's name.

use super::errors::ProfileCheckError;
use crate::kernel::{Algorithm, Interpolation, Mode, Offer, Parameters};
use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::LazyLock;

/// Keys besides the family's, in the order in which profiles are written.
const KEYS: [&str; 4] = ["interpolation", "mode", "slices", "source"];

/// All keys of an entry, for messages.
static ALL_KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| KEYS.into_iter().chain(Algorithm::ALL.iter().map(|&family| family.into())).collect());

/// Parameters of one kernel for some interpolations, modes and numbers of slices per pass.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelEntry {
    pub interpolation: Vec<Interpolation>,
    pub mode: Vec<Mode>,
    pub slices: Vec<u32>,
    pub source: Option<String>,
    pub parameters: Parameters,
}

impl KernelEntry {
    /// Returns an entry for one combination.
    pub fn of(offer: &Offer, source: Option<String>) -> KernelEntry {
        KernelEntry {
            interpolation: vec![offer.interpolation],
            mode: vec![offer.mode],
            slices: vec![offer.slices],
            source,
            parameters: offer.parameters.clone(),
        }
    }

    /// Returns the combinations that the entry serves.
    pub fn offers(&self) -> impl Iterator<Item = Offer> {
        self.interpolation.iter().flat_map(move |&interpolation| {
            self.mode.iter().flat_map(move |&mode| {
                self.slices.iter().map(move |&slices| Offer {
                    interpolation,
                    mode,
                    slices,
                    parameters: self.parameters.clone(),
                })
            })
        })
    }

    /// Returns a combination that the entry and another one of the same family both serve, if there is one.
    pub(super) fn clash(&self, other: &KernelEntry) -> Option<(Interpolation, Mode, u32)> {
        fn common<T: Copy + PartialEq>(list: &[T], other: &[T]) -> Option<T> {
            list.iter().copied().find(|value| other.contains(value))
        }
        if self.parameters.algorithm() != other.parameters.algorithm() {
            return None;
        }
        let interpolation = common(&self.interpolation, &other.interpolation)?;
        Some((interpolation, common(&self.mode, &other.mode)?, common(&self.slices, &other.slices)?))
    }
}

impl Serialize for KernelEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("interpolation", &self.interpolation)?;
        map.serialize_entry("mode", &self.mode)?;
        map.serialize_entry("slices", &self.slices)?;
        if let Some(source) = &self.source {
            map.serialize_entry("source", source)?;
        }
        map.serialize_entry(&self.parameters.algorithm(), &self.parameters)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for KernelEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor)
    }
}

/// Deserialiser of the table of a family.
struct FamilyTable(Algorithm);

impl<'de> DeserializeSeed<'de> for FamilyTable {
    type Value = Parameters;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parameters, D::Error> {
        Parameters::read(self.0, deserializer)
    }
}

/// A key of an entry.
enum Key {
    Interpolation,
    Mode,
    Slices,
    Source,
    Family(Algorithm),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(match word.as_str() {
            "interpolation" => Key::Interpolation,
            "mode" => Key::Mode,
            "slices" => Key::Slices,
            "source" => Key::Source,
            _ => Key::Family(word.parse().map_err(|_| de::Error::unknown_field(&word, &ALL_KEYS))?),
        })
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = KernelEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of interpolation, mode, slices and one family")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KernelEntry, A::Error> {
        let (mut interpolation, mut mode, mut slices, mut source, mut parameters) = (None, None, None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::Interpolation => interpolation = Some(map.next_value()?),
                Key::Mode => mode = Some(map.next_value()?),
                Key::Slices => slices = Some(map.next_value()?),
                Key::Source => source = Some(map.next_value()?),
                Key::Family(_) if parameters.is_some() => {
                    return Err(de::Error::custom(ProfileCheckError::TwoFamilies));
                }
                Key::Family(family) => parameters = Some(map.next_value_seed(FamilyTable(family))?),
            }
        }
        let missing = |key: &'static str| move || de::Error::missing_field(key);
        Ok(KernelEntry {
            interpolation: interpolation.ok_or_else(missing("interpolation"))?,
            mode: mode.ok_or_else(missing("mode"))?,
            slices: slices.ok_or_else(missing("slices"))?,
            source,
            parameters: parameters.ok_or_else(|| de::Error::custom(no_family()))?,
        })
    }
}

/// Returns the error for an entry without a family.
fn no_family() -> ProfileCheckError {
    let words: Vec<&str> = Algorithm::ALL.iter().map(|&family| family.into()).collect();
    let (first, rest) = words.split_first().unwrap_or((&"", &[]));
    let (last, others) = rest.split_last().unwrap_or((&"", &[]));
    ProfileCheckError::NoFamily { tables: format!("[kernel.{first}], {} or {last}", others.join(", ")) }
}

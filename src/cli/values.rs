//! Values of flags, as several commands take them.

use crate::error::messages;
use crate::kernel::SLICE_MODES;
use crate::spectrum::Filter;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::str::FromStr;
use strum::VariantArray;

/// Accepts the names of an enum's variants, and lists them in the help.
pub(super) fn words<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantArray + Copy + Into<&'static str> + FromStr<Err: Error + Send + Sync> + Send + Sync,
{
    PossibleValuesParser::new(T::VARIANTS.iter().map(|&word| word.into())).try_map(|word| T::from_str(&word))
}

messages! {
    /// Errors of a number of slices per pass.
    pub(super) enum SliceModeError: Usage {
        Unknown => "it is not one of {SLICE_MODES:?}",
    }
}

/// Takes a number of slices per pass.
pub(super) fn slice_mode(text: &str) -> Result<u32, SliceModeError> {
    match text.parse() {
        Ok(slices) if SLICE_MODES.contains(&slices) => Ok(slices),
        _ => Err(SliceModeError::Unknown),
    }
}

/// Accepts the names of filters; the ramp has aliases.
pub(super) fn filters() -> impl TypedValueParser<Value = Filter> {
    let name = |&filter: &Filter| PossibleValue::new(<&'static str>::from(filter));
    let mut names: Vec<PossibleValue> = Filter::VARIANTS.iter().map(name).collect();
    names[0] = names[0].clone().aliases(["ramlak", "ram-lak"]);
    PossibleValuesParser::new(names).try_map(|word| Filter::from_str(&word))
}

/// Text of a flag, or of a key in a run file: a string, or a number or list without quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text(pub String);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Text(String),
            Whole(i64),
            Real(f64),
            List(Vec<Any>),
        }
        fn text(any: Any) -> String {
            match any {
                Any::Text(text) => text,
                Any::Whole(value) => value.to_string(),
                Any::Real(value) => value.to_string(),
                Any::List(list) => list.into_iter().map(text).collect::<Vec<_>>().join(","),
            }
        }
        Any::deserialize(deserializer).map(|any| Text(text(any)))
    }
}

/// Reads one value or a list of them.
pub(super) fn one_or_many<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany<T> {
        Many(Vec<T>),
        One(T),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::Many(values) => values,
        OneOrMany::One(value) => vec![value],
    })
}

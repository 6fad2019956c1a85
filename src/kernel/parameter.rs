//! Declaration of a family's parameters: each once, with name, meaning, default, legal values and the values that
//! tuning tries. The schema of profiles, its checks, tuning and the tables of docs/profiles.md are derived from it.

use super::errors::KernelRuleError;
use serde::Serialize;
use std::fmt;
use strum::VariantNames;
use toml::{Table, Value};

/// Values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegalValues {
    /// A number of the list.
    OneOf(&'static [u32]),
    /// Multiples of `step` from `first` to `last`.
    Range {
        first: u32,
        last: u32,
        step: u32,
    },
    /// 0 to 100.
    Percent,
    /// Any number from the given one on.
    AtLeast(u32),
    /// Two numbers, each from 1 to `side`, whose product is at most `product`; `what` names the unit of the product.
    Pair {
        side: u32,
        product: u32,
        what: &'static str,
    },
    /// A word of the list.
    Words(&'static [&'static str]),
    Switch,
}

impl LegalValues {
    /// Reports whether a value is legal. Words and switches always are, otherwise they could not have been read.
    fn allows(&self, value: &Value) -> bool {
        let number = |value: &Value| value.as_integer().and_then(|n| u32::try_from(n).ok());
        match self {
            LegalValues::OneOf(list) => number(value).is_some_and(|n| list.contains(&n)),
            LegalValues::Range { first, last, step } => {
                number(value).is_some_and(|n| (*first..=*last).contains(&n) && n % step == 0)
            }
            LegalValues::Percent => number(value).is_some_and(|n| n <= 100),
            LegalValues::AtLeast(least) => number(value).is_some_and(|n| n >= *least),
            LegalValues::Pair { side, product, .. } => {
                let sides: Option<Vec<u32>> = value.as_array().and_then(|pair| pair.iter().map(number).collect());
                sides.is_some_and(|sides| {
                    let legal = sides.iter().all(|n| (1..=*side).contains(n));
                    legal && sides.iter().map(|&n| u64::from(n)).product::<u64>() <= u64::from(*product)
                })
            }
            LegalValues::Words(_) | LegalValues::Switch => true,
        }
    }
}

/// Formats the values for messages and documentation: `16, 32 or 64`.
impl fmt::Display for LegalValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LegalValues::OneOf(list) => f.write_str(&alternatives(list)),
            LegalValues::Range { first, last, step: 1 } => write!(f, "{first} to {last}"),
            LegalValues::Range { first, last, step: 2 } => write!(f, "even, from {first} to {last}"),
            LegalValues::Range { first, last, step } => write!(f, "a multiple of {step} from {first} to {last}"),
            LegalValues::Percent => f.write_str("0 to 100 percent"),
            LegalValues::AtLeast(0) => f.write_str("any number"),
            LegalValues::AtLeast(least) => write!(f, "at least {least}"),
            LegalValues::Pair { side, product, .. } if side == product => write!(f, "1 to {product} together"),
            LegalValues::Pair { side, product, what } => write!(f, "1 to {side} each, at most {product} {what}"),
            LegalValues::Words(words) => {
                f.write_str(&alternatives(&words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>()))
            }
            LegalValues::Switch => f.write_str("`true` or `false`"),
        }
    }
}

/// Returns the items as `a, b or c`.
pub(super) fn alternatives<T: fmt::Display>(list: &[T]) -> String {
    let words: Vec<String> = list.iter().map(T::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Properties of a parameter besides its name, meaning and default.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    legal: LegalValues,
    tried: Vec<Value>,
    rank: u8,
    trades_exactness: bool,
    depends_on_scheduling: bool,
}

impl Domain {
    fn new<T: Serialize>(legal: LegalValues, tried: &[T]) -> Domain {
        let (rank, trades_exactness, depends_on_scheduling) = (u8::MAX, false, false);
        Domain { legal, tried: Vec::new(), rank, trades_exactness, depends_on_scheduling }.tries(tried)
    }

    /// Allows one of these numbers; tuning tries all of them.
    pub(super) fn one_of(list: &'static [u32]) -> Domain {
        Domain::new(LegalValues::OneOf(list), list)
    }

    /// Allows multiples of `step` from `first` to `last`.
    pub(super) fn range(first: u32, last: u32, step: u32) -> Domain {
        Domain::new::<u32>(LegalValues::Range { first, last, step }, &[])
    }

    /// Allows 0 to 100.
    pub(super) fn percent() -> Domain {
        Domain::new::<u32>(LegalValues::Percent, &[])
    }

    /// Allows any number from `least`.
    pub(super) fn at_least(least: u32) -> Domain {
        Domain::new::<u32>(LegalValues::AtLeast(least), &[])
    }

    /// Allows two numbers from 1 to `side`, whose product, a number of `what`, is at most `product`.
    pub(super) fn pair(side: u32, product: u32, what: &'static str) -> Domain {
        Domain::new::<u32>(LegalValues::Pair { side, product, what }, &[])
    }

    /// Allows a word of the type; tuning tries all words.
    pub(super) fn words<T: VariantNames>() -> Domain {
        Domain::new(LegalValues::Words(T::VARIANTS), T::VARIANTS)
    }

    /// Allows true or false; tuning tries both.
    pub(super) fn switch() -> Domain {
        Domain::new(LegalValues::Switch, &[false, true])
    }

    /// Sets the values that tuning tries, ordered so that neighbours are similar.
    pub(super) fn tries<T: Serialize>(self, values: &[T]) -> Domain {
        Domain { tried: values.iter().filter_map(|value| Value::try_from(value).ok()).collect(), ..self }
    }

    /// Sets the order in which tuning tries the parameter: low ranks first, equal ranks in the order of declaration, no
    /// rank last.
    pub(super) fn rank(self, rank: u8) -> Domain {
        Domain { rank, ..self }
    }

    /// Marks other values as less exact: in the mode `precise` tuning does not change the parameter.
    pub(super) fn trades_exactness(self) -> Domain {
        Domain { trades_exactness: true, ..self }
    }

    /// Marks values with which the last bits of a slice depend on scheduling: tuning changes the parameter only on request.
    pub(super) fn depends_on_scheduling(self) -> Domain {
        Domain { depends_on_scheduling: true, ..self }
    }
}

/// A parameter of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Key in the family's table; with dots for a nested table, such as `common.unroll`.
    pub key: String,
    pub meaning: String,
    pub default: Value,
    pub legal: LegalValues,
    /// Values that tuning tries.
    pub tried: Vec<Value>,
    /// True if other values are less exact.
    pub trades_exactness: bool,
    /// True if the last bits of a slice depend on scheduling with some values.
    pub depends_on_scheduling: bool,
    rank: u8,
}

impl Parameter {
    /// Declares a parameter of `defaults`; `doc` is its documentation.
    pub(super) fn new(field: &str, doc: &str, defaults: &Table, domain: Domain) -> Parameter {
        let key = field.replace('_', "-");
        Parameter {
            meaning: doc.trim().trim_end_matches('.').to_owned(),
            default: defaults.get(&key).cloned().unwrap_or(Value::Boolean(false)),
            legal: domain.legal,
            tried: domain.tried,
            trades_exactness: domain.trades_exactness,
            depends_on_scheduling: domain.depends_on_scheduling,
            rank: domain.rank,
            key,
        }
    }

    /// Returns the same parameter in a nested table.
    pub(super) fn within(self, table: &str) -> Parameter {
        Parameter { key: format!("{}.{}", table.replace('_', "-"), self.key), ..self }
    }

    /// Returns the last part of the key, without nested tables.
    pub fn name(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or(&self.key)
    }

    /// Returns the parameter's value in a family's table.
    pub fn value<'a>(&self, table: &'a Table) -> Option<&'a Value> {
        let mut keys = self.key.split('.');
        let first = table.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get(key))
    }

    /// Returns a copy of the table with another value of the parameter.
    pub fn replaced(&self, table: &Table, value: Value) -> Table {
        let mut changed = table.clone();
        let (tables, name) = self.key.rsplit_once('.').unwrap_or(("", &self.key));
        let inner = tables
            .split('.')
            .filter(|key| !key.is_empty())
            .try_fold(&mut changed, |table, key| table.get_mut(key).and_then(Value::as_table_mut));
        if let Some(inner) = inner {
            inner.insert(name.to_owned(), value);
        }
        changed
    }

    /// Checks that the value in a family's table is legal.
    ///
    /// # Errors
    /// The values that are legal.
    pub fn check(&self, table: &Table) -> Result<(), KernelRuleError> {
        match self.value(table) {
            Some(value) if !self.legal.allows(value) => {
                let (name, legal) = (self.name().to_owned(), self.legal.to_string());
                Err(KernelRuleError::Illegal { name, value: value.to_string(), legal })
            }
            _ => Ok(()),
        }
    }
}

/// Access to declared parameters; implemented by `parameters!`.
pub trait Declared {
    /// Returns the parameters in the order in which tuning tries them, those of nested tables last.
    fn parameters() -> Vec<Parameter>;
}

/// Sorts parameters by rank.
pub(super) fn by_rank(mut own: Vec<Parameter>) -> Vec<Parameter> {
    own.sort_by_key(|parameter| parameter.rank);
    own
}

/// Declares a table of parameters. First come nested tables with their defaults, then the parameters: documentation
/// (the meaning in docs/profiles.md), name, type, default, and a [`Domain`].
macro_rules! parameters {
    (
        $(#[doc = $title:literal])+
        pub struct $name:ident {
            $(table $table:ident: $inner:ty = $inner_default:expr;)*
            $($(#[doc = $meaning:literal])+ $field:ident: $kind:ty = $default:expr, $domain:expr;)+
        }
    ) => {
        $(#[doc = $title])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub struct $name {
            $(pub $table: $inner,)*
            $($(#[doc = $meaning])+ pub $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($table: $inner_default,)* $($field: $default,)+ }
            }
        }

        impl $crate::kernel::parameter::Declared for $name {
            fn parameters() -> Vec<$crate::kernel::Parameter> {
                use $crate::kernel::parameter::{Domain, Parameter, by_rank};
                let defaults = toml::Table::try_from($name::default()).unwrap_or_default();
                let own = vec![
                    $(Parameter::new(stringify!($field), concat!($($meaning),+), &defaults, $domain)),+
                ];
                let within: Vec<Vec<Parameter>> = vec![$(
                    <$inner as $crate::kernel::parameter::Declared>::parameters()
                        .into_iter()
                        .map(|parameter| parameter.within(stringify!($table)))
                        .collect()
                ),*];
                by_rank(own).into_iter().chain(within.into_iter().flatten()).collect()
            }
        }
    };
}
pub(super) use parameters;

#[cfg(test)]
mod tests {
    use crate::kernel::{Algorithm, Hybrid, Interpolation, Parameters, Sampler, Standard, Tensor, Texture, Vector};

    fn refusal(parameters: impl Into<Parameters>, slices: u32) -> String {
        parameters.into().check(&[slices]).unwrap_err().to_string()
    }

    #[test]
    fn illegal_values_say_what_is_legal() {
        let texture = |projections_at_once, cached_constants| {
            refusal(Texture { projections_at_once, cached_constants, ..Texture::default() }, 1)
        };
        assert_eq!(texture(5, 0), "projections-at-once 5 must be 2, 4, 8 or 16");
        assert_eq!(texture(16, 8), "cached-constants 8 must be a multiple of 16 up to 1024");
        assert_eq!(texture(4, 2048), "cached-constants 2048 must be a multiple of 4 from 0 to 1024");
        let work_group = |work_group| refusal(Standard { work_group, ..Standard::default() }, 1);
        assert_eq!(work_group([64, 64]), "work-group [64, 64] must be 1 to 64 each, at most 1024 work-items");
        assert_eq!(work_group([0, 8]), "work-group [0, 8] must be 1 to 64 each, at most 1024 work-items");
        let tensor = |tensor: Tensor| refusal(tensor, 16);
        assert_eq!(tensor(Tensor { warps: [8, 8], ..Tensor::default() }), "warps [8, 8] must be 1 to 32 together");
        assert_eq!(tensor(Tensor { stage: 3, ..Tensor::default() }), "stage 3 must be even, from 2 to 32");
        assert_eq!(tensor(Tensor { lead: 2, ..Tensor::default() }), "lead 2 must be 1 to 1, one less than buffers");
        let huge = [u32::MAX, u32::MAX];
        assert!(tensor(Tensor { squares: huge, ..Tensor::default() }).ends_with("must be 1 to 16 together"));
        assert_eq!(refusal(Hybrid { alu_blocks: 0, ..Hybrid::default() }, 1), "alu-blocks 0 must be at least 1");
        let mut hybrid = Hybrid::default();
        hybrid.alu.common.occupancy = 101;
        assert_eq!(refusal(hybrid, 1), "occupancy 101 must be 0 to 100 percent");
    }

    #[test]
    fn slices_are_those_of_the_family() {
        let many = refusal(Standard::default(), 32);
        assert_eq!(
            many,
            "only tensor and vector kernels support 32 slices at once; choose one of them, or change `slices`"
        );
        assert_eq!(refusal(Vector::default(), 8), "a vector kernel has 16 to 64 slices, not [8]; change `slices`");
        let split = Tensor { split: true, ..Tensor::default() };
        assert_eq!(refusal(split, 64), "a tensor kernel has 16 to 32 slices, not [64]; change `slices`");
        let mut image = Standard::default();
        image.common.sampler = Sampler::Image;
        assert_eq!(refusal(image, 8), "sampler `image` serves at most 4 slices, not 8");
    }

    #[test]
    fn every_family_starts_legal_and_ends_at_the_one_that_works_everywhere() {
        for &algorithm in Algorithm::ALL {
            let parameters = Parameters::start(algorithm, crate::kernel::Mode::Precise);
            parameters.check(&[parameters.usual_slices()]).unwrap();
            // nothing else has exact interpolation
            if parameters.family().serves(Interpolation::Linear) {
                let last = parameters.family().stand_ins().last().copied().unwrap_or(algorithm);
                assert_eq!(last, Algorithm::default());
            }
        }
    }
}

//! `--vary FLAG=VALUES`: a flag and the values that trial slices have of it.

use super::errors::VaryError;
use crate::commands::flags::{as_switch, keys_of, switches};
use crate::error::Result;
use crate::files::excerpt;
use toml::Table;

/// Largest number of slices, and so of values.
pub(super) const MOST: usize = 400;

/// Flags that can be varied: those that change a slice of the same data, but not its size.
const VARIABLE: [&str; 43] = [
    "center",
    "tilt",
    "center-shifts",
    "angles",
    "start-angle",
    "overall-angle",
    "projection-range",
    "exclude",
    "angle-weights",
    "extended-field",
    "lamino-angle",
    "field-mode",
    "minus-log",
    "no-minus-log",
    "dark-scale",
    "eigen-flats",
    "normalize-air",
    "double-flat",
    "beam-hardening",
    "remove-outliers",
    "stripes",
    "phase",
    "energy-kev",
    "distance",
    "delta-beta",
    "unsharp",
    "filter",
    "filter-cutoff",
    "padding",
    "method",
    "strength",
    "iterations",
    "tolerance",
    "huber-threshold",
    "interior",
    "weights",
    "non-negative",
    "no-non-negative",
    "algorithm",
    "interpolation",
    "accuracy",
    "mode",
    "mask",
];
/// Flags whose values are ranges themselves.
const OF_RANGES: [&str; 2] = ["projection-range", "exclude"];
/// Flags whose values are text files, with names that may contain two dots or a plus sign.
const OF_FILES: [&str; 3] = ["center-shifts", "angles", "weights"];
/// Flags of which nothing but numbers can be compared: a search would find the same for all.
const OF_NUMBERS: [&str; 2] = ["center", "tilt"];
/// Flags that are not left out: `none` is a filter, all slices have an axis, and all have their angles from the flags or
/// none has.
const NOT_LEFT_OUT: [&str; 5] = ["center", "angles", "start-angle", "overall-angle", "filter"];
/// The value without the flag.
const NONE: &str = "none";

/// A flag with its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Varied {
    pub flag: String,
    pub values: Vec<VariedValue>,
}

/// A value as the flag takes it, and the keys that it stands for; none if the flag is left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VariedValue {
    pub text: String,
    keys: Table,
}

impl Varied {
    /// Reads a flag and its values.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) that says what is wrong.
    pub fn parse(text: &str) -> Result<Varied> {
        let Some((flag, values)) = text.split_once('=') else {
            return Err(VaryError::Malformed { text: excerpt(text).into() }.into());
        };
        let flag = flag.trim().trim_start_matches("--").to_owned();
        if !VARIABLE.contains(&flag.as_str()) {
            return Err(VaryError::OtherFlag { flag: excerpt(&flag).into(), known: VARIABLE.join(", ") }.into());
        }
        let mut texts = Vec::new();
        let [are_ranges, are_files] = [&OF_RANGES[..], &OF_FILES].map(|flags| flags.contains(&flag.as_str()));
        for word in values.split(',').map(str::trim) {
            match word.contains("..") && !are_ranges && !are_files {
                true => texts.extend(range(&flag, word)?.into_iter().map(|value| value.to_string())),
                // a sign of an exponent is no comma
                false if are_files || word.parse::<f64>().is_ok() => texts.push(word.to_owned()),
                false => texts.push(word.replace('+', ",")),
            }
        }
        if texts.iter().any(String::is_empty) {
            return Err(VaryError::NoValue { flag, text: excerpt(text).into() }.into());
        }
        if let Some(value) = texts.iter().enumerate().find_map(|(at, text)| texts[..at].contains(text).then_some(text))
        {
            return Err(VaryError::TwoValues { flag, value: value.clone() }.into());
        }
        let switches = switches();
        let values = texts.into_iter().map(|text| VariedValue::new(&flag, text, switches.contains(&flag)));
        Ok(Varied { values: values.collect::<Result<_>>()?, flag })
    }

    /// Returns axes as values of `--center`.
    pub fn axes(axes: &[f64]) -> Result<Varied> {
        let values = axes.iter().map(|axis| VariedValue::new("center", axis.to_string(), false));
        Ok(Varied { values: values.collect::<Result<_>>()?, flag: "center".to_owned() })
    }

    /// Puts a value of the flag in the place of what is given.
    pub fn put(&self, value: usize, keys: &mut Table) {
        keys.remove(&self.flag);
        keys.extend(self.values[value].keys.clone());
    }

    /// Returns names of files for the values.
    pub fn stems(&self) -> Vec<String> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || ".,=:-".contains(c) { c } else { '-' };
        let texts = || self.values.iter().map(|value| value.text.as_str());
        // programs that rank trial axes read them from names with two decimals
        let hundredths: Vec<String> =
            texts().filter_map(|text| Some(format!("{:.2}", text.parse::<f64>().ok()?))).collect();
        let differ = hundredths.iter().enumerate().all(|(at, text)| !hundredths[..at].contains(text));
        let values = match self.flag == "center" && differ && hundredths.len() == self.values.len() {
            true => hundredths,
            false => apart(texts().map(|text| text.chars().map(plain).collect()).collect()),
        };
        values.into_iter().map(|value| format!("{}_{value}", self.flag)).collect()
    }
}

/// Adds a number to each name that is there earlier, too.
fn apart(mut names: Vec<String>) -> Vec<String> {
    for at in 1..names.len() {
        let (earlier, name) = (&names[..at], names[at].clone());
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        if let Some(free) = std::iter::once(name.clone()).chain(numbered).find(|name| !earlier.contains(name)) {
            names[at] = free;
        }
    }
    names
}

impl VariedValue {
    fn new(flag: &str, text: String, is_switch: bool) -> Result<VariedValue> {
        let left_out = text == NONE && !NOT_LEFT_OUT.contains(&flag);
        if left_out {
            return Ok(VariedValue { text, keys: Table::new() });
        }
        if OF_NUMBERS.contains(&flag) && text.parse::<f64>().is_err() {
            return Err(VaryError::NotANumber { flag: flag.into(), value: excerpt(&text).into() }.into());
        }
        let words = match as_switch(&text) {
            _ if !is_switch => vec![format!("--{flag}={text}")],
            Some(true) => vec![format!("--{flag}")],
            Some(false) => Vec::new(),
            None => return Err(VaryError::NotASwitch { flag: flag.into(), value: excerpt(&text).into() }.into()),
        };
        let keys = keys_of(words.into_iter());
        let keys = keys.map_err(|error| VaryError::WrongValue { flag: flag.into(), error })?;
        Ok(VariedValue { text, keys })
    }
}

/// Reads `A..=B:STEP`, or `A..B:STEP` without B.
fn range(flag: &str, text: &str) -> Result<Vec<f64>> {
    let wrong = || VaryError::Range { flag: flag.to_owned(), text: excerpt(text).into() };
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(wrong);
    let (first, rest) = text.split_once("..").ok_or_else(wrong)?;
    let (end, step) = rest.split_once(':').ok_or_else(wrong)?;
    let (end, is_included) = end.strip_prefix('=').map_or((end, false), |end| (end, true));
    let (first, end, step) = (number(first)?, number(end)?, number(step)?);
    let end = if is_included { end } else { end - 2.0 * ROUNDING * step };
    if step <= 0.0 || end < first {
        return Err(wrong().into());
    }
    match (end - first) / step < MOST as f64 {
        true => Ok(spaced(first, end, step)),
        false => Err(VaryError::Count { count: ((end - first) / step) as usize + 1, most: MOST }.into()),
    }
}

/// Part of a step that rounding may be off by.
const ROUNDING: f64 = 1e-6;

/// Returns numbers from `first` to at most `end` in steps, as they are written in decimal digits.
pub(super) fn spaced(first: f64, end: f64, step: f64) -> Vec<f64> {
    let last = ((end - first) / step + ROUNDING).floor() as usize;
    let rounded = |value: f64| format!("{value:.11e}").parse().unwrap_or(value);
    (0..=last).map(|i| rounded(first + i as f64 * step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::OF_RUNS;
    use crate::recipe::known_keys;

    fn texts(text: &str) -> Vec<String> {
        Varied::parse(text).unwrap().values.into_iter().map(|value| value.text).collect()
    }

    fn refused(text: &str) -> String {
        let error = Varied::parse(text).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{text}");
        error.to_string()
    }

    #[test]
    fn values_are_ranges_or_lists() {
        assert_eq!(texts("center=1020..=1021:0.5"), ["1020", "1020.5", "1021"]);
        assert_eq!(texts("center=1020..1021:0.5"), ["1020", "1020.5"]);
        assert_eq!(texts("filter-cutoff=0.1..=0.4:0.1"), ["0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(texts("delta-beta=100,1e+3,2000..=4000:1000"), ["100", "1e+3", "2000", "3000", "4000"]);
        assert_eq!(texts("center= -2..=-1:1 , 5"), ["-2", "-1", "5"]);
        assert_eq!(texts("stripes=none,dead+titarenko,all"), ["none", "dead,titarenko", "all"]);
        assert_eq!(texts("--projection-range=0..90:2,0..90:3"), ["0..90:2", "0..90:3"]);
        assert_eq!(texts("weights=none,noise,../a+b.txt"), ["none", "noise", "../a+b.txt"]);
    }

    #[test]
    fn values_take_the_place_of_what_is_given() {
        let put = |text: &str, value: usize| {
            let mut keys: Table =
                "stripes = ['all']\ninterior = true\nstrength = 3.0\nfilter = 'ramp'".parse().unwrap();
            Varied::parse(text).unwrap().put(value, &mut keys);
            keys
        };
        let keys = put("stripes=none,dead+titarenko", 1);
        assert_eq!(keys["stripes"].as_array().unwrap()[0].as_str(), Some("dead,titarenko"));
        assert!(!put("stripes=none,dead+titarenko", 0).contains_key("stripes"));
        assert!(!put("interior=true,no", 1).contains_key("interior"));
        assert_eq!(put("interior=true,no", 0)["interior"].as_bool(), Some(true));
        assert_eq!(put("strength=0.5", 0)["strength"].as_float(), Some(0.5));
        assert!(!put("strength=none,1", 0).contains_key("strength"));
        assert_eq!(put("filter=none,hann", 0)["filter"].as_str(), Some("none"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("center", &["a flag and its values", "1020"][..]),
            ("output=a,b", &["`output`", "choose from center, ", "stripes"]),
            ("centre=1,2", &["`centre`"]),
            ("center=1..2", &["`1..2`", "STEP"]),
            ("center=2..=1:1", &["STEP above 0"]),
            ("center=1..=2:0", &["STEP above 0"]),
            ("center=1..x:1", &["`1..x:1`"]),
            ("center=0..=1e9:1", &["more than 400"]),
            ("center=1,auto", &["`auto` is not a number"]),
            ("center=1,none", &["`none` is not a number"]),
            ("stripes=all,,dead", &["empty value"]),
            ("strength=1,2,1", &["1 is there twice"]),
            ("filter=hann,han", &["'han'"]),
            ("strength=1,big", &["'big'", "--strength"]),
            ("interior=true,maybe", &["`maybe`", "true,false"]),
        ] {
            let said = refused(text);
            assert!(said.starts_with("--vary") && words.iter().all(|word| said.contains(word)), "{text}: {said}");
        }
    }

    #[test]
    fn every_variable_flag_is_one_of_a_run() {
        let known = known_keys();
        assert!(VARIABLE.iter().all(|flag| known.iter().any(|key| key == flag)));
        let special = [&OF_RANGES[..], &OF_FILES, &OF_NUMBERS, &NOT_LEFT_OUT].concat();
        assert!(special.iter().all(|flag| VARIABLE.contains(flag)));
    }

    /// Every flag of a run can be varied, is refused in trials, or is listed here with what speaks against it.
    #[test]
    fn every_flag_of_a_run_that_changes_a_slice_is_variable() {
        let others: [(&str, &[&str]); 6] = [
            (
                "other data, which are opened once for all slices",
                &[
                    "sinograms",
                    "projections",
                    "hdf5",
                    "raw",
                    "stack",
                    "z-step",
                    "side-by-side",
                    "overlap",
                    "hdf5-data",
                    "hdf5-flats",
                    "hdf5-darks",
                    "hdf5-angles",
                    "hdf5-keys",
                    "flats",
                    "flats2",
                    "darks",
                    "order-by",
                    "distortion",
                    "beam-current",
                ],
            ),
            ("slices of another size, part or unit", &["binning", "size", "roi", "rows", "slab", "pixel-size"]),
            ("several volumes", &["every", "turns"]),
            ("where and how fast it is computed", &["device", "profile", "slices-per-pass", "memory", "device-memory"]),
            ("whether kernels are tested before", &["self-test", "no-self-test"]),
            ("the output and messages", &["output", "overwrite", "progress", "log", "strict"]),
        ];
        let others: Vec<&str> = others.iter().flat_map(|(_, flags)| *flags).copied().collect();
        let known = known_keys();
        for key in &known {
            let lists = [&VARIABLE[..], &OF_RUNS, &others];
            let found = lists.iter().filter(|list| list.contains(&key.as_str())).count();
            assert_eq!(found, 1, "--{key}: can it be varied?");
        }
        assert!(others.iter().all(|flag| known.iter().any(|key| key == flag)));
    }

    #[test]
    fn files_are_named_after_values() {
        let stems = |text: &str| Varied::parse(text).unwrap().stems();
        assert_eq!(stems("center=1023.5,1024"), ["center_1023.50", "center_1024.00"]);
        assert_eq!(stems("center=1.001,1.002"), ["center_1.001", "center_1.002"]);
        assert_eq!(stems("stripes=none,dead+mean"), ["stripes_none", "stripes_dead,mean"]);
        assert_eq!(
            stems("weights=a/w.txt,a-w.txt,a+w.txt"),
            ["weights_a-w.txt", "weights_a-w.txt-2", "weights_a-w.txt-3"]
        );
    }
}

//! The parameters that tuning may change, with their values: the one place that lists them. Names are those of the
//! profile's schema, so a point is a kernel's TOML table with a few values replaced.

use crate::facts::{DeviceFacts, DeviceKind};
use crate::profile::{
    Algorithm, Alu, Balance, Hybrid, Interpolation, Mode, Offer, Parameters, Profile, SLICE_MODES, Standard, Tensor,
    Texture, Vector,
};
use toml::{Table, Value};

/// Values of a parameter, in an order in which neighbours are alike.
#[derive(Clone, Copy, Debug)]
enum Values {
    Numbers(&'static [i64]),
    Pairs(&'static [[i64; 2]]),
    Words(&'static [&'static str]),
    Switch,
}
use Values::{Numbers, Pairs, Switch, Words};

impl Values {
    fn list(self) -> Vec<Value> {
        match self {
            Numbers(list) => list.iter().map(|&n| Value::Integer(n)).collect(),
            Pairs(list) => list.iter().map(|pair| Value::Array(pair.map(Value::Integer).into())).collect(),
            Words(list) => list.iter().map(|&word| Value::String(word.to_owned())).collect(),
            Switch => [false, true].map(Value::Boolean).into(),
        }
    }
}

/// What every family has. [`FAST_ONLY`] and [`Space::registers`] take some away.
const COMMON: &[(&str, Values)] = &[
    ("common.unroll", Numbers(&[1, 2, 4, 8, 16])),
    ("common.occupancy", Numbers(&[0, 25, 37, 43, 50, 66, 75, 100])),
    ("common.packed-constants", Switch),
    ("common.constants", Words(&["constant", "global"])),
    ("common.sampler", Words(&["buffer", "image"])),
    ("common.storage", Words(&["float", "half"])),
];

const STANDARD: &[(&str, Values)] = &[
    (
        "work-group",
        Pairs(&[
            [8, 4],
            [8, 8],
            [16, 4],
            [16, 8],
            [16, 16],
            [32, 4],
            [32, 8],
            [32, 16],
            [32, 32],
            [64, 2],
            [64, 4],
            [64, 8],
            [64, 16],
        ]),
    ),
    ("z-order", Switch),
];

const TEXTURE: &[(&str, Values)] = &[
    ("projections-at-once", Numbers(&[4, 16])),
    ("cached-constants", Numbers(&[0, 64, 128, 256, 512])),
    ("reduction", Words(&["local", "shuffle"])),
    ("regroup", Switch),
    ("same-centre", Switch),
    ("float-index", Switch),
    ("shared-buffer", Switch),
    ("direct-writes", Switch),
];

/// Of the arithmetic and the oversampling kernel; of the hybrid one below `alu`.
const ALU: &[(&str, Values)] = &[
    ("area", Numbers(&[32, 64])),
    ("items", Numbers(&[128, 256])),
    ("cached-projections", Numbers(&[4, 8, 12, 16, 24, 32])),
    ("row-items", Numbers(&[8, 16, 32, 64])),
    ("arrays", Numbers(&[1, 2, 4])),
    ("cache", Words(&["standard", "advanced"])),
    ("exchange", Words(&["local", "shuffle"])),
    ("half-cache", Switch),
    ("write-pairs", Switch),
    ("offsets", Words(&["none", "row", "column"])),
    ("turn-cache", Switch),
    ("stage", Numbers(&[0, 64, 128, 256, 512])),
    ("mapping", Words(&["rows", "squares", "block"])),
    ("rounding", Words(&["convert", "float", "float-index"])),
];

const HYBRID: &[(&str, Values)] =
    &[("texture-blocks", Numbers(&[1, 2, 3, 4, 5])), ("alu-blocks", Numbers(&[1, 2, 3, 4, 5]))];

const TENSOR: &[(&str, Values)] = &[
    ("warps", Pairs(&[[2, 2], [4, 1], [4, 2], [2, 4], [4, 4], [8, 2], [8, 4]])),
    ("squares", Pairs(&[[1, 1], [2, 1], [1, 2], [2, 2], [4, 2], [2, 4], [4, 4]])),
    ("stage", Numbers(&[2, 4, 8, 16])),
    ("buffers", Numbers(&[2, 3, 4, 6, 8])),
    ("lead", Numbers(&[1, 2, 3])),
    ("flush", Numbers(&[0, 128, 64, 32])),
    ("band", Numbers(&[1, 2, 4, 8, 16, 32])),
    ("split", Switch),
];

const VECTOR: &[(&str, Values)] = &[
    ("tile", Numbers(&[16, 32, 64])),
    ("columns", Numbers(&[4, 8])),
    ("together", Numbers(&[1, 2, 4, 8, 16, 32, 64])),
];

/// Parameters that trade exactness: what `precise` has of them stays.
const FAST_ONLY: &[&str] = &["common.storage", "half-cache", "flush", "split"];

/// Parameters that a family's rules fix, or that its kernel does not look at.
fn is_fixed(algorithm: Algorithm, key: &str) -> bool {
    match algorithm {
        Algorithm::Tensor => ["common.sampler", "common.storage"].contains(&key),
        Algorithm::Vector => ["common.sampler", "common.storage", "common.unroll"].contains(&key),
        _ => false,
    }
}

/// How far a step goes in the list of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To the values beside the present one.
    Beside,
    /// To any.
    Any,
}

/// A kernel that may be tried: a family, its slices per pass and its parameters.
pub type Point = Offer;

/// What may be changed.
#[derive(Clone, Debug)]
pub struct Space {
    pub reach: Reach,
    /// Slices per pass.
    pub slices: Vec<u32>,
    /// Whether registers can be limited here.
    pub registers: bool,
}

impl Space {
    /// All points that differ from `point` in one parameter, or in the slices per pass, in the order of the lists above;
    /// legal or not.
    pub fn neighbours(&self, point: &Point) -> Vec<Point> {
        let algorithm = point.parameters.algorithm();
        let table = table(&point.parameters);
        let mut points = Vec::new();
        for (key, values) in parameters(algorithm) {
            // the arithmetic part of a hybrid kernel has the same rules
            let name = key.strip_prefix("alu.").unwrap_or(&key);
            if is_fixed(algorithm, name)
                || point.mode == Mode::Precise && FAST_ONLY.contains(&name)
                || !self.registers && name == "common.occupancy"
            {
                continue;
            }
            for value in self.steps(&values.list(), get(&table, &key)) {
                let mut changed = table.clone();
                set(&mut changed, &key, value);
                points.extend(from_table(algorithm, changed).map(|parameters| Point { parameters, ..point.clone() }));
            }
        }
        let slices: Vec<u32> = SLICE_MODES.into_iter().filter(|n| self.slices.contains(n)).collect();
        points
            .extend(self.steps(&slices, Some(&point.slices)).into_iter().map(|n| Point { slices: n, ..point.clone() }));
        points
    }

    /// The other values that a step leads to; all when the present one is not in the list.
    fn steps<T: Clone + PartialEq>(&self, values: &[T], now: Option<&T>) -> Vec<T> {
        let at = values.iter().position(|v| Some(v) == now);
        let near = |i: usize| match (self.reach, at) {
            (_, Some(at)) if i == at => false,
            (Reach::Beside, Some(at)) => i.abs_diff(at) == 1,
            _ => true,
        };
        values.iter().enumerate().filter(|(i, _)| near(*i)).map(|(_, v)| v.clone()).collect()
    }
}

/// Names and values of a family's parameters, its own first.
fn parameters(algorithm: Algorithm) -> Vec<(String, Values)> {
    let (prefix, own, more): (&str, _, &[_]) = match algorithm {
        Algorithm::Standard => ("", STANDARD, &[]),
        Algorithm::Texture => ("", TEXTURE, &[]),
        Algorithm::Alu | Algorithm::Oversample => ("", ALU, &[]),
        Algorithm::Hybrid => ("alu.", HYBRID, ALU),
        Algorithm::Tensor => ("", TENSOR, &[]),
        Algorithm::Vector => ("", VECTOR, &[]),
    };
    let below = more.iter().chain(COMMON).map(|(key, values)| (format!("{prefix}{key}"), *values));
    own.iter().map(|(key, values)| ((*key).to_owned(), *values)).chain(below).collect()
}

/// Parameters as their TOML table.
fn table(parameters: &Parameters) -> Table {
    let table = match parameters {
        Parameters::Standard(p) => Table::try_from(p),
        Parameters::Texture(p) => Table::try_from(p),
        Parameters::Alu(p) | Parameters::Oversample(p) => Table::try_from(p),
        Parameters::Hybrid(p) => Table::try_from(p),
        Parameters::Tensor(p) => Table::try_from(p),
        Parameters::Vector(p) => Table::try_from(p),
    };
    table.unwrap_or_default()
}

/// The parameters that a table holds; `None` for what the schema refuses.
fn from_table(algorithm: Algorithm, table: Table) -> Option<Parameters> {
    Some(match algorithm {
        Algorithm::Standard => Parameters::Standard(table.try_into().ok()?),
        Algorithm::Texture => Parameters::Texture(table.try_into().ok()?),
        Algorithm::Alu => Parameters::Alu(table.try_into().ok()?),
        Algorithm::Oversample => Parameters::Oversample(table.try_into().ok()?),
        Algorithm::Hybrid => Parameters::Hybrid(table.try_into().ok()?),
        Algorithm::Tensor => Parameters::Tensor(table.try_into().ok()?),
        Algorithm::Vector => Parameters::Vector(table.try_into().ok()?),
    })
}

/// The value at a dotted key.
fn get<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        Some((head, rest)) => get(table.get(head)?.as_table()?, rest),
        None => table.get(key),
    }
}

/// Replaces the value at a dotted key.
fn set(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        Some((head, rest)) => {
            if let Some(inner) = table.get_mut(head).and_then(Value::as_table_mut) {
                set(inner, rest, value);
            }
        }
        None => {
            table.insert(key.to_owned(), value);
        }
    }
}

/// Name and value of everything in which `point` differs from `base`, in a fixed order. Of another family than the
/// base it is what differs from that family's defaults.
pub fn changes(base: &Point, point: &Point) -> Vec<(String, String)> {
    fn flatten(prefix: &str, table: &Table, out: &mut Vec<(String, String)>) {
        for (key, value) in table {
            match value {
                Value::Table(inner) => flatten(&format!("{prefix}{key}."), inner, out),
                Value::String(word) => out.push((format!("{prefix}{key}"), word.clone())),
                value => out.push((format!("{prefix}{key}"), value.to_string())),
            }
        }
    }
    let flat = |parameters: &Parameters| {
        let mut list = Vec::new();
        flatten("", &table(parameters), &mut list);
        list
    };
    let algorithm = point.parameters.algorithm();
    let mut changes = Vec::new();
    let before = if algorithm == base.parameters.algorithm() {
        flat(&base.parameters)
    } else {
        changes.push(("algorithm".to_owned(), algorithm.to_string()));
        flat(&default_parameters(algorithm, point.mode))
    };
    if point.slices != base.slices {
        changes.push(("slices".to_owned(), point.slices.to_string()));
    }
    changes.extend(flat(&point.parameters).into_iter().filter(|pair| !before.contains(pair)));
    changes
}

/// [`changes`] in words; `as shipped` where there is none.
pub fn describe(changes: &[(String, String)]) -> String {
    if changes.is_empty() {
        return "as shipped".to_owned();
    }
    changes.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

/// Where the search of a family begins that the profile does not offer.
fn default_parameters(algorithm: Algorithm, mode: Mode) -> Parameters {
    match algorithm {
        Algorithm::Standard => Parameters::Standard(Standard::default()),
        Algorithm::Texture => Parameters::Texture(Texture::default()),
        Algorithm::Alu => Parameters::Alu(Alu::default()),
        Algorithm::Oversample => Parameters::Oversample(Alu::default()),
        Algorithm::Hybrid => Parameters::Hybrid(Hybrid {
            texture_blocks: 1,
            alu_blocks: 1,
            balance: Balance::Block,
            alu: Alu::default(),
        }),
        // f32 sums often enough that single precision is kept
        Algorithm::Tensor if mode == Mode::Precise => {
            Parameters::Tensor(Tensor { split: true, flush: 32, ..Tensor::default() })
        }
        Algorithm::Tensor => Parameters::Tensor(Tensor::default()),
        Algorithm::Vector => Parameters::Vector(Vector::default()),
    }
}

/// Whether it makes sense to try a family on a device whose profile does not offer it.
fn suits(algorithm: Algorithm, profile: &Profile, facts: &DeviceFacts) -> bool {
    let processor = facts.kind == DeviceKind::Cpu;
    match algorithm {
        Algorithm::Standard => true,
        Algorithm::Vector => processor,
        Algorithm::Tensor => profile.hardware.matrix || !profile.hardware.matrix_function.is_empty(),
        Algorithm::Texture | Algorithm::Alu | Algorithm::Oversample | Algorithm::Hybrid => !processor,
    }
}

/// The kernel that tuned ones are compared with: what the base `[[auto]]` leads to if it is wanted, else the wanted
/// kernel of another `[[auto]]`, else the wanted one of most slices, else what `[[auto]]` leads to all the same.
pub fn shipped(
    profile: &Profile,
    interpolation: Interpolation,
    mode: Mode,
    wanted: &dyn Fn(&Offer) -> bool,
) -> Option<Offer> {
    let offers: Vec<Offer> =
        profile.offers().into_iter().filter(|o| (o.interpolation, o.mode) == (interpolation, mode)).collect();
    let mut choices: Vec<_> = profile.auto.iter().collect();
    choices.sort_by_key(|auto| std::cmp::Reverse(auto.up_to.unwrap_or(u32::MAX)));
    let chosen = |auto| offers.iter().find(|offer| offer.is_of(auto));
    let chosen: Vec<&Offer> = choices.into_iter().filter_map(chosen).collect();
    let wanted_choice = chosen.iter().copied().find(|o| wanted(o));
    let largest = || offers.iter().filter(|o| wanted(o)).max_by_key(|o| o.slices);
    wanted_choice.or_else(largest).or(chosen.first().copied()).cloned()
}

/// Where the search begins, the shipped kernel first: every wanted kernel of the profile, and the defaults of every
/// wanted family that it lacks and that suits the device. `asked` families are tried whether they suit or not.
pub fn starts(
    profile: &Profile,
    facts: &DeviceFacts,
    shipped: &Offer,
    slices: &[u32],
    asked: &[Algorithm],
    wanted: &dyn Fn(&Offer) -> bool,
) -> Vec<Point> {
    let (interpolation, mode) = (shipped.interpolation, shipped.mode);
    let mut starts = vec![shipped.clone()];
    for offer in profile.offers() {
        if (offer.interpolation, offer.mode) == (interpolation, mode) && wanted(&offer) && offer != *shipped {
            starts.push(offer);
        }
    }
    for &algorithm in Algorithm::ALL {
        let offered = starts.iter().any(|point| point.parameters.algorithm() == algorithm);
        if offered || !(suits(algorithm, profile, facts) || asked.contains(&algorithm)) {
            continue;
        }
        let parameters = default_parameters(algorithm, mode);
        let point = |slices| Point { interpolation, mode, slices, parameters: parameters.clone() };
        let usual = if matches!(algorithm, Algorithm::Tensor | Algorithm::Vector) { 16 } else { 4 };
        let sizes = if slices.contains(&usual) { vec![usual] } else { slices.to_vec() };
        starts.extend(sizes.into_iter().map(point).filter(|point| wanted(point)));
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::example;
    use crate::profile::{ProfileStore, Storage};

    fn space(reach: Reach) -> Space {
        Space { reach, slices: SLICE_MODES.to_vec(), registers: true }
    }

    fn point(parameters: Parameters, slices: u32, mode: Mode) -> Point {
        Point { interpolation: Interpolation::Linear, mode, slices, parameters }
    }

    #[test]
    fn every_name_and_value_is_of_the_schema() {
        for &algorithm in Algorithm::ALL {
            let parameters_now = default_parameters(algorithm, Mode::Fast);
            let before = table(&parameters_now);
            assert_eq!(from_table(algorithm, before.clone()).as_ref(), Some(&parameters_now));
            for (key, values) in parameters(algorithm) {
                assert!(get(&before, &key).is_some(), "{algorithm}: {key} is no parameter");
                for value in values.list() {
                    let mut changed = before.clone();
                    set(&mut changed, &key, value.clone());
                    let read = from_table(algorithm, changed).unwrap_or_else(|| panic!("{algorithm}: {key} = {value}"));
                    assert_eq!(get(&table(&read), &key), Some(&value));
                }
            }
        }
        for key in FAST_ONLY {
            assert!(Algorithm::ALL.iter().any(|&a| parameters(a).iter().any(|(k, _)| k == key)), "{key}");
        }
    }

    #[test]
    fn values_of_shipped_profiles_are_in_the_lists() {
        // else a quick search around them would not be one
        let store = ProfileStore::built_in().unwrap();
        for (profile, _) in store.iter() {
            for offer in profile.offers() {
                let table = table(&offer.parameters);
                for (key, values) in parameters(offer.parameters.algorithm()) {
                    let value = get(&table, &key).unwrap();
                    assert!(values.list().contains(value), "{}: {key} = {value}", profile.name);
                }
            }
        }
    }

    #[test]
    fn neighbours_differ_in_one_thing() {
        let start = point(Parameters::Vector(Vector::default()), 32, Mode::Precise);
        let near = space(Reach::Beside).neighbours(&start);
        let words: Vec<String> = near.iter().map(|p| describe(&changes(&start, p))).collect();
        assert_eq!(
            words,
            [
                "tile = 32",
                "columns = 8",
                "together = 4",
                "together = 16",
                "common.occupancy = 25",
                "common.packed-constants = false",
                "common.constants = constant",
                "slices = 16",
                "slices = 64",
            ]
        );
        let all = space(Reach::Any).neighbours(&start);
        assert!(all.len() > near.len() && near.iter().all(|p| all.contains(p)));
        assert!(all.iter().all(|p| changes(&start, p).len() == 1));
        let few = Space { slices: vec![32], registers: false, ..space(Reach::Any) };
        let words: Vec<String> = few.neighbours(&start).iter().map(|p| describe(&changes(&start, p))).collect();
        assert!(!words.iter().any(|w| w.contains("slices") || w.contains("occupancy")), "{words:?}");
        // a value that no list has leads to all
        let odd = point(Parameters::Vector(Vector { together: 5, ..Vector::default() }), 32, Mode::Precise);
        let steps = space(Reach::Beside).neighbours(&odd);
        assert_eq!(steps.iter().filter(|p| describe(&changes(&odd, p)).contains("together")).count(), 7);
    }

    #[test]
    fn precise_does_not_trade_exactness() {
        for &algorithm in Algorithm::ALL {
            let start = point(default_parameters(algorithm, Mode::Precise), 16, Mode::Precise);
            for near in space(Reach::Any).neighbours(&start) {
                assert_eq!(near.parameters.storage(), start.parameters.storage());
                if let (Parameters::Tensor(a), Parameters::Tensor(b)) = (&near.parameters, &start.parameters) {
                    assert!(a.split && a.flush == b.flush);
                }
            }
        }
        let fast = point(Parameters::Standard(Standard::default()), 4, Mode::Fast);
        assert!(space(Reach::Any).neighbours(&fast).iter().any(|p| p.parameters.storage() == Storage::Half));
    }

    #[test]
    fn a_search_starts_from_what_the_profile_has_and_from_families_that_suit() {
        let store = ProfileStore::built_in().unwrap();
        let families = |name: &str, facts: &DeviceFacts, asked: &[Algorithm]| {
            let profile = store.named(name).unwrap();
            let shipped = shipped(&profile, Interpolation::Linear, Mode::Fast, &|_| true).unwrap();
            let points = starts(&profile, facts, &shipped, &SLICE_MODES, asked, &|_| true);
            assert_eq!(points[0], shipped);
            let mut families: Vec<Algorithm> = points.iter().map(|p| p.parameters.algorithm()).collect();
            families.dedup();
            families.sort_unstable();
            families.dedup();
            families
        };
        let card = example();
        let processor = DeviceFacts { kind: DeviceKind::Cpu, ..example() };
        use Algorithm::{Alu, Hybrid, Oversample, Standard, Tensor, Texture, Vector};
        assert_eq!(families("default", &card, &[]), [Standard, Texture, Alu, Oversample, Hybrid]);
        assert_eq!(families("cpu", &processor, &[]), [Standard, Vector]);
        assert_eq!(families("cpu", &processor, &[Alu]), [Standard, Alu, Vector]);
        assert!(families("nvidia-hopper", &card, &[]).contains(&Tensor));
    }

    #[test]
    fn the_shipped_kernel_is_the_automatic_one_that_is_wanted() {
        let hopper = ProfileStore::built_in().unwrap().named("nvidia-hopper").unwrap();
        let of = |wanted: &dyn Fn(&Offer) -> bool| {
            let offer = shipped(&hopper, Interpolation::Linear, Mode::Precise, wanted).unwrap();
            (offer.parameters.algorithm(), offer.slices)
        };
        assert_eq!(of(&|_| true), (Algorithm::Tensor, 32));
        assert_eq!(of(&|o| o.slices <= 4), (Algorithm::Alu, 4));
        assert_eq!(of(&|o| o.parameters.algorithm() == Algorithm::Standard), (Algorithm::Standard, 4));
        assert_eq!(of(&|o| o.parameters.algorithm() == Algorithm::Vector), (Algorithm::Tensor, 32));
    }
}

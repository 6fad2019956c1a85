//! Search space of tuning: points, and their neighbours, which differ in one parameter. Parameters and their values are
//! those declared by the families; names are those of the profile's schema, so a point is a kernel's TOML table with a few
//! values replaced.

use crate::facts::DeviceFacts;
use crate::kernel::{Algorithm, Interpolation, Mode, Offer, Parameters, SLICE_MODES};
use crate::profile::{Auto, Profile};
use toml::{Table, Value};

/// Other values of a parameter that a step may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The values next to the present one in the list.
    Adjacent,
    /// Any value.
    Any,
}

/// A kernel that may be tried: a family, its slices per pass and its parameters.
pub type Point = Offer;

/// The search space.
#[derive(Clone, Debug)]
pub struct Space {
    pub reach: Reach,
    /// Numbers of slices per pass.
    pub slices: Vec<u32>,
    /// True if registers can be limited here.
    pub registers: bool,
    /// True if values may be tried with which the last bits of a slice depend on scheduling.
    pub scheduling: bool,
}

impl Space {
    /// Returns all points that differ from `point` in one parameter, or in the slices per pass, in the order in which
    /// the family declares them; legal or not.
    pub fn neighbours(&self, point: &Point) -> Vec<Point> {
        let algorithm = point.parameters.algorithm();
        let fixed = point.parameters.family().fixed();
        let table = point.parameters.table();
        let mut points = Vec::new();
        for parameter in Parameters::declared(algorithm) {
            if fixed.contains(&parameter.key.as_str())
                || point.mode == Mode::Precise && parameter.trades_exactness
                || !self.registers && parameter.name() == "occupancy"
                || !self.scheduling && parameter.depends_on_scheduling
            {
                continue;
            }
            for value in self.steps(&parameter.tried, parameter.value(&table)) {
                // tables that the schema rejects are skipped
                if let Ok(parameters) = Parameters::read(algorithm, parameter.replaced(&table, value)) {
                    points.push(Point { parameters, ..point.clone() });
                }
            }
        }
        let slices: Vec<u32> = SLICE_MODES.into_iter().filter(|n| self.slices.contains(n)).collect();
        points
            .extend(self.steps(&slices, Some(&point.slices)).into_iter().map(|n| Point { slices: n, ..point.clone() }));
        points
    }

    /// Returns the other values that a step leads to; all when the present one is not in the list.
    fn steps<T: Clone + PartialEq>(&self, values: &[T], now: Option<&T>) -> Vec<T> {
        let at = values.iter().position(|v| Some(v) == now);
        let near = |i: usize| match (self.reach, at) {
            (_, Some(at)) if i == at => false,
            (Reach::Adjacent, Some(at)) => i.abs_diff(at) == 1,
            _ => true,
        };
        values.iter().enumerate().filter(|(i, _)| near(*i)).map(|(_, v)| v.clone()).collect()
    }
}

/// Returns the name and value of everything in which `point` differs from `base`, in a fixed order; if the family
/// differs, everything that differs from the defaults of its own family.
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
        flatten("", &parameters.table(), &mut list);
        list
    };
    let algorithm = point.parameters.algorithm();
    let mut changes = Vec::new();
    let before = if algorithm == base.parameters.algorithm() {
        flat(&base.parameters)
    } else {
        changes.push(("algorithm".to_owned(), algorithm.to_string()));
        flat(&Parameters::start(algorithm, point.mode))
    };
    if point.slices != base.slices {
        changes.push(("slices".to_owned(), point.slices.to_string()));
    }
    changes.extend(flat(&point.parameters).into_iter().filter(|pair| !before.contains(pair)));
    changes
}

/// Returns [`changes`] as text; `as shipped` if there are none.
pub fn describe_changes(changes: &[(String, String)]) -> String {
    if changes.is_empty() {
        return "as shipped".to_owned();
    }
    changes.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

/// Returns the kernel that tuned ones are compared with: that of the base `[[auto]]` if it is wanted, else the wanted
/// kernel of another `[[auto]]`, else the wanted one with most slices, else that of `[[auto]]` in any case.
pub fn shipped_kernel(
    profile: &Profile,
    interpolation: Interpolation,
    mode: Mode,
    wanted: &dyn Fn(&Offer) -> bool,
) -> Option<Offer> {
    let offers: Vec<Offer> =
        profile.offers().into_iter().filter(|o| (o.interpolation, o.mode) == (interpolation, mode)).collect();
    let mut choices: Vec<_> = profile.auto.iter().collect();
    choices.sort_by_key(|auto| std::cmp::Reverse(auto.order()));
    let chosen = |auto: &Auto| offers.iter().find(|offer| auto.is_for(offer));
    let chosen: Vec<&Offer> = choices.into_iter().filter_map(chosen).collect();
    let wanted_choice = chosen.iter().copied().find(|o| wanted(o));
    let largest = || offers.iter().filter(|o| wanted(o)).max_by_key(|o| o.slices);
    wanted_choice.or_else(largest).or(chosen.first().copied()).cloned()
}

/// Returns the starting points of the search, the shipped kernel first: every wanted kernel of the profile, and the
/// defaults of every wanted family that the profile lacks and that suits the device. Families in `asked` are tried even
/// if they do not suit.
pub fn starting_kernels(
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
        let parameters = Parameters::start(algorithm, mode);
        let suits = parameters.family().suits(&profile.hardware, facts);
        let serves = parameters.family().serves(interpolation);
        if offered || !serves || !(suits || asked.contains(&algorithm)) {
            continue;
        }
        let point = |slices| Point { interpolation, mode, slices, parameters: parameters.clone() };
        let usual = parameters.usual_slices();
        let sizes = if slices.contains(&usual) { vec![usual] } else { slices.to_vec() };
        starts.extend(sizes.into_iter().map(point).filter(|point| wanted(point)));
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::DeviceKind;
    use crate::facts::example;
    use crate::kernel::{Hybrid, Standard, Storage, Vector};
    use crate::profile::ProfileStore;

    fn space(reach: Reach) -> Space {
        Space { reach, slices: SLICE_MODES.to_vec(), registers: true, scheduling: false }
    }

    fn point(parameters: Parameters, slices: u32, mode: Mode) -> Point {
        Point { interpolation: Interpolation::Linear, mode, slices, parameters }
    }

    #[test]
    fn every_name_and_value_is_of_the_schema() {
        for &algorithm in Algorithm::ALL {
            let start = Parameters::start(algorithm, Mode::Fast);
            let before = start.table();
            assert_eq!(Parameters::read(algorithm, before.clone()).unwrap(), start);
            for parameter in Parameters::declared(algorithm) {
                let key = &parameter.key;
                parameter.check(&before).unwrap();
                for value in &parameter.tried {
                    let changed = parameter.replaced(&before, value.clone());
                    parameter.check(&changed).unwrap();
                    let read = Parameters::read(algorithm, changed);
                    let read = read.unwrap_or_else(|_| panic!("{algorithm}: {key} = {value}"));
                    assert_eq!(parameter.value(&read.table()), Some(value));
                }
            }
            for key in start.family().fixed() {
                assert!(Parameters::declared(algorithm).iter().any(|p| p.key == *key), "{algorithm}: {key}");
            }
        }
    }

    #[test]
    fn values_of_shipped_profiles_are_in_the_lists() {
        // else a quick search around them would not be one
        let store = ProfileStore::built_in().unwrap();
        for (profile, _) in store.iter() {
            for offer in profile.offers() {
                let table = offer.parameters.table();
                let declared = Parameters::declared(offer.parameters.algorithm()).iter();
                for parameter in declared.filter(|p| !p.tried.is_empty()) {
                    let value = parameter.value(&table).unwrap();
                    assert!(parameter.tried.contains(value), "{}: {} = {value}", profile.name, parameter.key);
                }
            }
        }
    }

    #[test]
    fn neighbours_differ_in_one_thing() {
        let start = point(Parameters::Vector(Vector::default()), 32, Mode::Precise);
        let near = space(Reach::Adjacent).neighbours(&start);
        let words: Vec<String> = near.iter().map(|p| describe_changes(&changes(&start, p))).collect();
        assert_eq!(
            words,
            [
                "tile = 32",
                "columns = 8",
                "projections-at-once = 4",
                "projections-at-once = 16",
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
        let words: Vec<String> = few.neighbours(&start).iter().map(|p| describe_changes(&changes(&start, p))).collect();
        assert!(!words.iter().any(|w| w.contains("slices") || w.contains("occupancy")), "{words:?}");
        // a value that no list has leads to all
        let odd = point(Parameters::Vector(Vector { projections_at_once: 5, ..Vector::default() }), 32, Mode::Precise);
        let steps = space(Reach::Adjacent).neighbours(&odd);
        assert_eq!(
            steps.iter().filter(|p| describe_changes(&changes(&odd, p)).contains("projections-at-once")).count(),
            7
        );
    }

    #[test]
    fn blocks_are_divided_by_multiprocessor_only_on_request() {
        let start = point(Parameters::Hybrid(Hybrid::default()), 2, Mode::Precise);
        let tried = |scheduling| {
            let near = Space { scheduling, ..space(Reach::Adjacent) }.neighbours(&start);
            near.iter()
                .map(|p| describe_changes(&changes(&start, p)))
                .filter(|w| w.contains("balance"))
                .collect::<Vec<_>>()
        };
        assert_eq!(tried(false), [""; 0]);
        assert_eq!(tried(true), ["balance = multiprocessor"]);
    }

    #[test]
    fn precise_does_not_trade_exactness() {
        for &algorithm in Algorithm::ALL {
            let start = point(Parameters::start(algorithm, Mode::Precise), 16, Mode::Precise);
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
            let shipped = shipped_kernel(&profile, Interpolation::Linear, Mode::Fast, &|_| true).unwrap();
            let points = starting_kernels(&profile, facts, &shipped, &SLICE_MODES, asked, &|_| true);
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
        assert_eq!(families("cpu", &processor, &[]), [Standard, Alu, Vector]);
        assert_eq!(families("cpu", &processor, &[Texture]), [Standard, Texture, Alu, Vector]);
        assert!(families("nvidia-hopper", &card, &[]).contains(&Tensor));
    }

    #[test]
    fn the_shipped_kernel_is_the_automatic_one_that_is_wanted() {
        let hopper = ProfileStore::built_in().unwrap().named("nvidia-hopper").unwrap();
        let of = |wanted: &dyn Fn(&Offer) -> bool| {
            let offer = shipped_kernel(&hopper, Interpolation::Linear, Mode::Precise, wanted).unwrap();
            (offer.parameters.algorithm(), offer.slices)
        };
        assert_eq!(of(&|_| true), (Algorithm::Tensor, 32));
        assert_eq!(of(&|o| o.slices <= 4), (Algorithm::Alu, 4));
        assert_eq!(of(&|o| o.parameters.algorithm() == Algorithm::Standard), (Algorithm::Standard, 4));
        assert_eq!(of(&|o| o.parameters.algorithm() == Algorithm::Vector), (Algorithm::Tensor, 32));
    }
}

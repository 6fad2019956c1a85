//! `[[kernel]]` against Tables 13, 14, 18, 20, 23 and 24: every parameter of every kernel of the nine profiles.

use super::{Gpu, PaperTables, whole};
use fbp::kernel::{Algorithm, Interpolation, Mode, Offer, Parameters};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Parameters by dotted key.
type Flat = BTreeMap<String, Value>;

/// What a kernel is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    family: String,
    interpolation: String,
    mode: String,
    slices: i64,
}

fn flatten(prefix: &str, table: &Table, flat: &mut Flat) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => flatten(&format!("{prefix}{key}."), inner, flat),
            _ => drop(flat.insert(format!("{prefix}{key}"), value.clone())),
        }
    }
}

pub(super) fn flat(parameters: &Parameters) -> Flat {
    let mut flat = Flat::new();
    flatten("", Value::try_from(parameters).unwrap().as_table().unwrap(), &mut flat);
    flat
}

/// The family's defaults, by reading an empty table.
fn defaults(family: Algorithm) -> Flat {
    flat(&Parameters::read(family, Value::Table(Table::new())).unwrap())
}

fn set(flat: &mut Flat, key: &str, value: impl Into<Value>) {
    flat.insert(key.to_owned(), value.into());
}

/// The paper's word for the units that round, as a parameter.
fn rounding(row: &Table) -> &'static str {
    match (row["rounding"].as_str().unwrap(), row.contains_key("no-sfu-index")) {
        ("ALU", true) => "float-index",
        ("ALU", false) => "float",
        ("SFU" | "-", false) => "convert",
        other => panic!("{other:?}"),
    }
}

/// The row of Table 14.
fn copying<'a>(tables: &'a PaperTables, gpu: &Gpu, cache: &str, area: i64, slices: i64) -> &'a Table {
    let split = gpu.is_amd() || gpu.is_fermi();
    let platform = match (cache, slices) {
        ("advanced", _) => "all",
        (_, 4) if split => "AMD and Fermi",
        (_, 4) => "Kepler+",
        // 6.3: pairs of bins are written on Kepler and both older AMD GPUs, which gain by 64-bit loads
        _ if tables.specification("gain-of-64-bit-loads-percent", gpu).is_some() => "64-bit",
        _ => "32-bit",
    };
    // the advanced cache of several slices is one array a slice (6.8), so its rows are those of one slice
    let slices = if cache == "advanced" { 1 } else { slices };
    let mut rows = tables.rows(14).filter(|row| {
        (row["cache"].as_str(), whole(row, "area"), whole(row, "slices"), row["platform"].as_str())
            == (Some(cache), Some(area), Some(slices), Some(platform))
    });
    rows.next().unwrap_or_else(|| panic!("Table 14: {cache} {area} {slices} {platform}"))
}

/// The row of Table 18.
fn caches<'a>(tables: &'a PaperTables, gpu: &Gpu, slices: i64) -> &'a Table {
    let mut rows = tables.rows(18).filter(|row| {
        row["gpus"].as_str() == gpu.caches.as_deref()
            && row["slices"].as_array().unwrap().contains(&Value::Integer(slices))
    });
    rows.next().unwrap_or_else(|| panic!("Table 18: {} {slices}", gpu.name))
}

/// What Tables 18 and one of 20, 23 and 24 say of the kernel, whichever samples it caches.
fn arithmetic(tables: &PaperTables, gpu: &Gpu, row: &Table, pixels: i64) -> Flat {
    let mut flat = Flat::new();
    let block = if pixels == 16 { 64 } else { 32 };
    set(&mut flat, "block", block);
    set(&mut flat, "items", block * block / pixels);
    let caches = caches(tables, gpu, whole(row, "slices").unwrap());
    let columns = caches["offsets"].as_str() == Some("h_x");
    set(&mut flat, "offsets", if columns { "column" } else { "row" });
    // 6.3 and Figure 13; 6.8 for offsets of columns
    set(&mut flat, "mapping", if columns { "block" } else { "squares" });
    set(&mut flat, "rotation-cache", caches["rotation"].clone());
    set(&mut flat, "stage", whole(caches, "stage").unwrap_or(0));
    set(&mut flat, "rounding", rounding(row));
    set(&mut flat, "common.unroll", whole(row, "unroll").unwrap_or(1));
    flat
}

/// The kernel of a row of Table 20 or 23.
fn alu(tables: &PaperTables, gpu: &Gpu, row: &Table, interpolation: Interpolation, mode: Mode) -> Flat {
    let nearest = interpolation == Interpolation::Nearest;
    let pick = |key: &str| {
        let of_nearest = format!("nearest-{key}");
        let key = if nearest && row.contains_key(&of_nearest) { &of_nearest } else { key };
        whole(row, key)
    };
    let slices = whole(row, "slices").unwrap();
    let mut flat = arithmetic(tables, gpu, row, pick("pixels").unwrap());
    set(&mut flat, "cached-projections", pick("projections").unwrap());
    set(&mut flat, "common.occupancy", pick("occupancy").unwrap_or(0));
    // nearest reads one value, so there is no second to cache (6.4)
    let cache = if nearest { "standard" } else { caches(tables, gpu, slices)["cache"].as_str().unwrap() };
    set(&mut flat, "cache", cache);
    let copying = copying(tables, gpu, cache, flat["block"].as_integer().unwrap(), slices);
    let items = whole(copying, "items").unwrap();
    if nearest && row.contains_key("nearest-items") {
        assert_eq!(whole(row, "nearest-items"), Some(items), "a note of Table 20 and Table 14, {row:?}");
    }
    set(&mut flat, "row-items", items);
    let option = copying["option"].as_str().unwrap();
    set(&mut flat, "write-pairs", option == "write64");
    set(
        &mut flat,
        "arrays",
        match cache {
            "advanced" => slices,
            _ if option == "double-buffer" => 2,
            _ => 1,
        },
    );
    // 6.4: shuffles where there are some, else local memory
    set(&mut flat, "exchange", if cache == "advanced" && gpu.shuffles() { "shuffle" } else { "local" });
    let half = row.contains_key("half") && mode == Mode::Fast;
    set(&mut flat, "half-cache", half);
    set(&mut flat, "common.storage", if half { "half" } else { "float" });
    flat
}

/// The kernel of a row of Table 24.
fn oversample(tables: &PaperTables, gpu: &Gpu, row: &Table) -> Flat {
    let mut flat = arithmetic(tables, gpu, row, whole(row, "pixels").unwrap());
    set(&mut flat, "cached-projections", whole(row, "projections").unwrap());
    set(&mut flat, "row-items", whole(row, "items").unwrap());
    set(&mut flat, "arrays", whole(row, "arrays").unwrap());
    set(&mut flat, "write-pairs", row.contains_key("pairs"));
    set(&mut flat, "common.occupancy", whole(row, "occupancy").unwrap_or(0));
    flat
}

/// The kernel of a row of Table 13.
fn texture(gpu: &Gpu, row: &Table, mode: Mode) -> Flat {
    let mut flat = Flat::new();
    set(&mut flat, "common.occupancy", whole(row, "occupancy").unwrap_or(0));
    let cached = whole(row, "cache").unwrap_or(0);
    set(&mut flat, "cached-constants", cached);
    // what is copied to local memory comes from global memory on AMD (Algorithm 5)
    if gpu.is_amd() && cached > 0 {
        set(&mut flat, "common.constants", "global");
    }
    set(&mut flat, "reduction", if gpu.shuffles() { "shuffle" } else { "local" });
    // four slices are half values in forged texels (5.3); as floats in precise mode
    let half = whole(row, "slices") == Some(4) && mode == Mode::Fast;
    set(&mut flat, "common.storage", if half { "half" } else { "float" });
    flat
}

/// Every kernel that the tables describe for a GPU.
fn described(tables: &PaperTables, gpu: &Gpu) -> BTreeMap<Use, Flat> {
    use Interpolation::{Linear, Nearest};
    let mut all = BTreeMap::new();
    let mut add = |family: Algorithm, interpolation: Interpolation, mode: Mode, slices: i64, decided: Flat| {
        let family: &'static str = family.into();
        let mut parameters = defaults(family.parse().unwrap());
        let chosen = tables.chosen(gpu, family).filter(|(key, _)| parameters.contains_key(*key)).collect::<Vec<_>>();
        parameters.extend(chosen.into_iter().map(|(key, value)| (key.to_owned(), value.clone())));
        parameters.extend(decided);
        let place =
            Use { family: family.into(), interpolation: interpolation.to_string(), mode: mode.to_string(), slices };
        assert!(all.insert(place, parameters).is_none());
    };
    for mode in [Mode::Precise, Mode::Fast] {
        for interpolation in [Linear, Nearest] {
            for slices in [1, 2, 4] {
                add(Algorithm::Standard, interpolation, mode, slices, Flat::new());
            }
            for row in tables.rows_of(13, gpu) {
                let slices = whole(row, "slices").unwrap();
                // four interpolated slices are nowhere in the table (5.3)
                if slices < 4 || interpolation == Nearest {
                    add(Algorithm::Texture, interpolation, mode, slices, texture(gpu, row, mode));
                }
                // Table 25 has the texture kernel of several slices there, Table 13 its parameters for one
                if gpu.choice == "VLIW" && interpolation == Nearest {
                    for slices in [2, 4] {
                        add(Algorithm::Texture, interpolation, mode, slices, texture(gpu, row, mode));
                    }
                }
            }
            for row in tables.rows_of(20, gpu) {
                let kernel = alu(tables, gpu, row, interpolation, mode);
                add(Algorithm::Alu, interpolation, mode, whole(row, "slices").unwrap(), kernel);
            }
        }
        for row in tables.rows_of(23, gpu) {
            let kernel = alu(tables, gpu, row, Linear, mode);
            let mut inner: Flat = kernel.into_iter().map(|(key, value)| (format!("alu.{key}"), value)).collect();
            for key in ["texture-blocks", "alu-blocks"] {
                set(&mut inner, key, row[key].clone());
            }
            add(Algorithm::Hybrid, Linear, mode, whole(row, "slices").unwrap(), inner);
        }
    }
    for row in tables.rows_of(24, gpu) {
        let slices = whole(row, "slices").unwrap();
        add(Algorithm::Oversample, Linear, Mode::Fast, slices, oversample(tables, gpu, row));
    }
    all
}

/// Every kernel that a profile has, but those of families that the paper does not know.
fn offered(offers: &[Offer]) -> BTreeMap<Use, Flat> {
    let offers = offers.iter().filter(|offer| offer.parameters.algorithm() != Algorithm::Gridding);
    let keyed = offers.map(|offer| {
        let family: &'static str = offer.parameters.algorithm().into();
        let place = Use {
            family: family.into(),
            interpolation: offer.interpolation.to_string(),
            mode: offer.mode.to_string(),
            slices: offer.slices.into(),
        };
        (place, flat(&offer.parameters))
    });
    keyed.collect()
}

/// The tables that a profile's `source` names are those that have its GPU.
#[test]
fn sources_name_the_tables_that_have_the_gpu() {
    let tables = PaperTables::read();
    for gpu in tables.gpus() {
        let has_rows = |number: u32| tables.rows_of(number, &gpu).next().is_some();
        // speeds of one GPU
        let is_of = |number: u32| tables.table(number)["gpu"].as_str() == Some(&gpu.name);
        let cited = [(10, true), (11, is_of(11)), (13, has_rows(13)), (14, gpu.caches.is_some())].into_iter();
        let wanted = cited.chain([(18, gpu.caches.is_some()), (20, has_rows(20)), (22, is_of(22)), (23, has_rows(23))]);
        let wanted: Vec<u32> = wanted
            .chain([(24, has_rows(24)), (25, true)])
            .filter(|(_, there)| *there)
            .map(|(number, _)| number)
            .collect();
        let source = gpu.read_profile().source;
        let named = source.strip_prefix("paper, tables ").unwrap_or_else(|| panic!("{}: {source}", gpu.profile));
        let named: Vec<u32> = named.replace(" and ", ", ").split(", ").map(|number| number.parse().unwrap()).collect();
        assert_eq!(named, wanted, "{}", gpu.profile);
    }
}

#[test]
fn every_kernel_has_the_parameters_of_the_tables() {
    let tables = PaperTables::read();
    let mut problems = Vec::new();
    let mut compared = 0;
    for gpu in tables.gpus() {
        let (wanted, found) = (described(&tables, &gpu), offered(&gpu.read_profile().offers()));
        let places: BTreeSet<&Use> = wanted.keys().chain(found.keys()).collect();
        for place in places {
            match (wanted.get(place), found.get(place)) {
                (Some(wanted), Some(found)) => {
                    let keys: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
                    compared += keys.len();
                    let unequal = keys.into_iter().filter(|key| wanted.get(*key) != found.get(*key));
                    let shown = unequal.map(|key| {
                        let word = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
                        let (found, wanted) = (word(found.get(key)), word(wanted.get(key)));
                        format!("{} {place:?} {key}: {found}, the tables say {wanted}", gpu.profile)
                    });
                    problems.extend(shown);
                }
                (None, _) => problems.push(format!("{} {place:?}: in no table", gpu.profile)),
                (_, None) => problems.push(format!("{} {place:?}: not in the profile", gpu.profile)),
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(compared > 1000, "{compared}");
}

//! `[throughput]` and `[hardware]` against Table 10; the bound of the model against what the paper measured.

use super::{Gpu, PaperTables, number, whole};
use crate::support::cli::{Lab, text};
use fbp::kernel::{Algorithm, Interpolation, Mode};
use fbp::profile::Special;
use std::collections::BTreeSet;
use toml::Value;

/// The paper rounds to whole numbers or three digits.
fn near(what: &str, found: f64, wanted: f64) {
    assert!(
        (found - wanted).abs() <= (0.001 * wanted).max(0.51),
        "{what}: {found} in the profile, {wanted} in Table 10"
    );
}

fn units(tables: &PaperTables, row: &str, gpu: &Gpu) -> String {
    tables.table(10)[row].as_array().unwrap()[gpu.column].as_str().unwrap().to_owned()
}

fn derived(tables: &PaperTables, row: &str, gpu: &Gpu) -> f64 {
    number(&tables.0["derived"].as_table().unwrap()[row].as_array().unwrap()[gpu.column]).unwrap()
}

/// What runs on special units, from the two rows of Table 10.
fn special(tables: &PaperTables, gpu: &Gpu) -> Special {
    let (shifts, conversions) = (units(tables, "shift-units", gpu), units(tables, "conversion-units", gpu));
    match (shifts.as_str(), conversions.as_str()) {
        ("ALU", "ALU") => Special::None,
        ("ALU,SFU", "SFU") => Special::Conversions,
        // where the special unit is one of the five slots of an instruction, Table 16 counts conversions alone
        ("SFU", "SFU") if tables.specification("instructions-per-warp", gpu) == Some(5.0) => Special::Slot,
        ("SFU", "SFU") => Special::ConversionsAndShifts,
        other => panic!("{}: {other:?}", gpu.name),
    }
}

#[test]
fn rates_are_those_of_table_10() {
    let tables = PaperTables::read();
    for gpu in tables.gpus() {
        let profile = gpu.read_profile();
        let rates = profile.throughput.as_ref().unwrap();
        let of = |row: &str| tables.specification(row, &gpu).unwrap();
        let check = |key: &str, found: f64, wanted: f64| near(&format!("{} {key}", gpu.profile), found, wanted);
        check("compute-units", rates.compute_units.into(), of("multiprocessors"));
        check("clock-mhz", rates.clock_mhz.into(), of("benchmark-mhz"));
        // a multiply-add is two operations in its row (note g)
        check("alu", rates.alu, of("gflops") / 2.0);
        assert_eq!(rates.special, special(&tables, &gpu), "{}", gpu.profile);
        check("sfu", rates.sfu, if rates.special == Special::None { 0.0 } else { of("conversions") });
        let issued = of("multiprocessors")
            * of("warp-schedulers")
            * derived(&tables, "issued-at-once", &gpu)
            * derived(&tables, "issue-lanes", &gpu)
            * of("benchmark-mhz")
            / 1000.0;
        check("instructions", rates.instructions, issued);
        check("local", rates.local, of("shared-bandwidth"));
        check("constant", rates.constant, of("constant-bandwidth"));
        let texels = ["texels", "texels-64-linear", "texels-64-nearest", "texels-128-nearest"];
        for (found, row) in rates.texels.iter().zip(texels) {
            check(row, *found, of(row));
        }
        assert!(!rates.loads_issue && rates.matrix == 0.0 && rates.half_conversions.is_none(), "{}", gpu.profile);
        let held = rates.residency.as_ref().unwrap();
        check("warp", held.warp.into(), of("warp-size"));
        check("warps", held.warps.into(), of("resident-warps"));
        check("registers", held.registers.into(), of("registers-kb") * 256.0);
        check("local-memory", held.local_memory as f64, of("shared-kb") * 1024.0);
        // registers can be asked for on NVIDIA's platform alone (5.7)
        let hardware = &profile.hardware;
        assert_eq!(hardware.register_option.is_empty(), gpu.is_amd(), "{}", gpu.profile);
        if !gpu.is_amd() {
            let wanted = (of("registers-at-full-occupancy") as u32, of("registers-per-thread") as u32);
            assert_eq!((hardware.registers_at_full_occupancy, hardware.max_registers), wanted, "{}", gpu.profile);
        }
    }
}

/// What the paper measured of a kernel of the profile: interpolation, slices, whether values are half, speed.
fn measured(tables: &PaperTables, gpu: &Gpu) -> Vec<(Algorithm, Interpolation, i64, Mode, f64)> {
    use Interpolation::{Linear, Nearest};
    let mode = |half: bool| if half { Mode::Fast } else { Mode::Precise };
    let mut speeds = Vec::new();
    for row in tables.rows_of(13, gpu) {
        let slices = whole(row, "slices").unwrap();
        // four slices: nearest, as half (its note in Figure 6)
        let interpolation = if slices == 4 { Nearest } else { Linear };
        speeds.push((Algorithm::Texture, interpolation, slices, mode(slices == 4), number(&row["speed"]).unwrap()));
    }
    for row in tables.rows_of(20, gpu) {
        let (slices, mode) = (whole(row, "slices").unwrap(), mode(row.contains_key("half")));
        speeds.push((Algorithm::Alu, Linear, slices, mode, number(&row["linear"]).unwrap()));
        speeds.push((Algorithm::Alu, Nearest, slices, mode, number(&row["nearest"]).unwrap()));
    }
    for (table, algorithm, mode) in [(23, Algorithm::Hybrid, Mode::Precise), (24, Algorithm::Oversample, Mode::Fast)] {
        for row in tables.rows_of(table, gpu) {
            let speed = number(&row["speed"]).unwrap();
            speeds.push((algorithm, Linear, whole(row, "slices").unwrap(), mode, speed));
        }
    }
    speeds
}

/// A unit cannot be faster than it is: every speed of Tables 13, 20, 23 and 24 is at most the model's bound for the
/// kernel of the profile that the row describes.
#[test]
fn no_bound_is_below_what_the_paper_measured() {
    let tables = PaperTables::read();
    let mut compared = 0;
    let mut above = BTreeSet::new();
    let lab = Lab::new();
    for gpu in tables.gpus() {
        let profile = gpu.read_profile();
        let rows = text(&lab.run(&format!("model --profile {} --json", gpu.profile)).stdout);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&rows).unwrap();
        assert_eq!(rows.len(), profile.offers().len());
        for (algorithm, interpolation, slices, mode, speed) in measured(&tables, &gpu) {
            let offers = profile.offers();
            let found = offers.iter().position(|offer| {
                (offer.parameters.algorithm(), offer.interpolation, i64::from(offer.slices), offer.mode)
                    == (algorithm, interpolation, slices, mode)
            });
            let found = found.unwrap_or_else(|| panic!("{} has no {algorithm} {interpolation} {slices}", gpu.profile));
            let bound = rows[found]["gu_per_s"].as_f64().unwrap();
            compared += 1;
            if speed > bound {
                above.insert(format!("{} {}: {speed} GU/s, bound {bound:.1}", gpu.profile, rows[found]["spec"]));
            }
        }
    }
    assert_eq!(compared, 17 + 2 * 24 + 4 + 24);
    assert!(above.is_empty(), "{above:#?}");
}

/// The speeds that a profile has of the paper, by `source`.
fn cited(gpu: &Gpu) -> Vec<(String, String, String, i64, f64)> {
    let profile = Value::try_from(gpu.read_profile()).unwrap();
    let none = Vec::new();
    let rows = profile.get("measured").map_or(&none, |rows| rows.as_array().unwrap());
    let word = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let cited = rows.iter().filter(|row| word(row, "source").starts_with("paper"));
    let row = |row: &Value| {
        let speed = number(&row["gu-per-s"]).unwrap();
        let slices = row["slices"].as_integer().unwrap();
        (word(row, "algorithm"), word(row, "interpolation"), word(row, "mode"), slices, speed)
    };
    cited.map(row).collect()
}

/// Speeds in profiles are those of Tables 11 (in Z-order), 13, 20, 22 and 23; a profile that has some has all. Those of
/// Table 24 are misprinted.
#[test]
fn speeds_in_profiles_are_those_of_the_tables() {
    let tables = PaperTables::read();
    for gpu in tables.gpus() {
        let family = |family: Algorithm| -> String { <&'static str>::from(family).to_owned() };
        let mut speeds: Vec<_> = (measured(&tables, &gpu).into_iter())
            .filter(|row| row.0 != Algorithm::Oversample)
            .map(|(algorithm, interpolation, slices, mode, speed)| {
                (family(algorithm), interpolation.to_string(), mode.to_string(), slices, speed)
            })
            .collect();
        let of_table = |table: u32| tables.table(table)["gpu"].as_str() == Some(&gpu.name);
        let linear = |family: &str, mode: &str, slices: i64, row: &toml::Table| {
            (family.to_owned(), "linear".to_owned(), mode.to_owned(), slices, number(&row["speed"]).unwrap())
        };
        for row in tables.rows(11).filter(|row| of_table(11) && row["mapping"].as_str() == Some("z-order")) {
            speeds.push(linear("standard", "precise", whole(row, "slices").unwrap(), row));
        }
        for row in tables.rows(22).filter(|row| of_table(22) && row["algorithm"].as_str() == Some("oversample")) {
            speeds.push(linear("oversample", "fast", 2, row));
        }
        let cited = cited(&gpu);
        for row in &cited {
            assert!(speeds.contains(row), "{} {row:?}: in no table", gpu.profile);
        }
        for row in speeds.iter().filter(|_| !cited.is_empty()) {
            assert!(cited.contains(row), "{} {row:?}: not in the profile", gpu.profile);
        }
    }
}

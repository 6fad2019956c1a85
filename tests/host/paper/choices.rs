//! `[[auto]]` against Table 25.

use super::{Gpu, PaperTables, whole};
use fbp::kernel::{Algorithm, Interpolation, Mode};
use fbp::profile::Profile;
use toml::Table;

/// The family and slices per pass that a run of so many slices gets.
fn automatic(profile: &Profile, interpolation: Interpolation, mode: Mode, run: u32) -> (Algorithm, u32) {
    let mut entries: Vec<_> =
        profile.auto.iter().filter(|auto| (auto.interpolation, auto.mode) == (interpolation, mode)).collect();
    entries.sort_by_key(|auto| auto.up_to.unwrap_or(u32::MAX));
    let entry = entries.iter().find(|auto| auto.up_to.unwrap_or(u32::MAX) >= run).unwrap();
    (entry.algorithm, entry.slices.min(run))
}

/// What Table 25 says of a mode; `fast` is `precise` where its column is empty, and wherever it has oversampling, which is
/// another rule than linear interpolation (`not-taken`).
fn suggested(cell: &Table, mode: Mode) -> Algorithm {
    let word = |key: &str| cell.get(key).map(|word| word.as_str().unwrap().parse::<Algorithm>().unwrap());
    match word("fast").filter(|_| mode == Mode::Fast) {
        None | Some(Algorithm::Oversample) => word("precise").unwrap(),
        Some(family) => family,
    }
}

fn compare(tables: &PaperTables, gpu: &Gpu) -> usize {
    let profile = gpu.read_profile();
    let mut compared = 0;
    for row in tables.rows(25).filter(|row| row["gpus"].as_str() == Some(&gpu.choice)) {
        for interpolation in [Interpolation::Linear, Interpolation::Nearest] {
            let cell = row[&interpolation.to_string()].as_table().unwrap();
            for mode in [Mode::Precise, Mode::Fast] {
                let many = whole(cell, "slices").unwrap() as u32;
                let runs: &[(u32, u32)] = match row["runs"].as_str().unwrap() {
                    "single" => &[(1, 1)],
                    "several" => &[(512, many)],
                    _ => &[(1, 1), (512, many)],
                };
                for &(run, slices) in runs {
                    let wanted = (suggested(cell, mode), slices);
                    let found = automatic(&profile, interpolation, mode, run);
                    assert_eq!(found, wanted, "{} {interpolation} {mode}, {run} slices", gpu.profile);
                    compared += 1;
                }
            }
        }
    }
    compared
}

#[test]
fn automatic_choices_are_those_of_table_25() {
    let tables = PaperTables::read();
    for gpu in tables.gpus() {
        assert!(compare(&tables, &gpu) >= 4, "{}", gpu.profile);
    }
}

//! Every number that the profiles of the paper's nine GPUs take from the paper, against its tables as data
//! (`docs/dev/paper/tables.toml`), in both directions; and the table of what of the seeds is where
//! (`docs/dev/traceability.md`); and the page of its experiments (`docs/dev/paper.md`).

mod choices;
mod kernels;
mod page;
mod rates;
mod traceability;

use fbp::profile::{Profile, ProfileStore};
use std::fs;
use std::path::Path;
use toml::{Table, Value};

/// The paper's tables.
struct PaperTables(Table);

/// One of the nine GPUs.
#[derive(Clone)]
struct Gpu {
    /// Its column in Table 10.
    column: usize,
    name: String,
    profile: String,
    /// Its rows in Table 18, if the arithmetic kernel runs on it.
    caches: Option<String>,
    /// Its rows in Table 25.
    choice: String,
}

impl Gpu {
    fn is_amd(&self) -> bool {
        self.profile.starts_with("amd-")
    }

    /// Kepler and later, which exchange values by shuffles (3.8).
    fn shuffles(&self) -> bool {
        self.caches.as_deref() == Some("Kepler and later")
    }

    fn is_fermi(&self) -> bool {
        self.choice == "Fermi"
    }

    fn read_profile(&self) -> Profile {
        ProfileStore::built_in().unwrap().named(&self.profile).unwrap()
    }
}

impl PaperTables {
    fn read() -> PaperTables {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dev/paper/tables.toml");
        PaperTables(fs::read_to_string(path).unwrap().parse().unwrap())
    }

    fn gpus(&self) -> Vec<Gpu> {
        let word = |row: &Table, key: &str| row.get(key).map(|value| value.as_str().unwrap().to_owned());
        let gpus: Vec<Gpu> = (self.0["gpu"].as_array().unwrap().iter().map(|row| row.as_table().unwrap()).enumerate())
            .map(|(column, row)| Gpu {
                column,
                name: word(row, "name").unwrap(),
                profile: word(row, "profile").unwrap(),
                caches: word(row, "caches"),
                choice: word(row, "choice").unwrap(),
            })
            .collect();
        assert_eq!(gpus.len(), 9);
        gpus
    }

    fn table(&self, number: u32) -> &Table {
        self.0[&format!("table-{number}")].as_table().unwrap()
    }

    /// The rows of a table.
    fn rows(&self, number: u32) -> impl Iterator<Item = &Table> {
        self.table(number)["rows"].as_array().unwrap().iter().map(|row| row.as_table().unwrap())
    }

    /// The rows of a table about a GPU.
    fn rows_of<'a>(&'a self, number: u32, gpu: &'a Gpu) -> impl Iterator<Item = &'a Table> {
        self.rows(number).filter(|row| row["gpu"].as_str() == Some(&gpu.name))
    }

    /// The number in a row of Table 10; none for a dash.
    fn specification(&self, row: &str, gpu: &Gpu) -> Option<f64> {
        number(&self.table(10)[row].as_array().unwrap()[gpu.column])
    }

    /// What is chosen for a parameter of a family that no table decides.
    fn chosen<'a>(&'a self, gpu: &'a Gpu, family: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let rows = self.0["chosen"].as_array().unwrap().iter().map(|row| row.as_table().unwrap());
        let is_for = |row: &Table| row.get("choice").is_none_or(|choice| choice.as_str() == Some(&gpu.choice));
        rows.filter(move |row| row["family"].as_str() == Some(family) && is_for(row)).map(|row| {
            assert!(row["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{row:?}");
            (row["key"].as_str().unwrap(), &row["value"])
        })
    }
}

/// A number of a table; none for a dash.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(f) => Some(*f),
        Value::String(dash) if dash == "-" => None,
        other => panic!("{other}: neither a number nor a dash"),
    }
}

/// A whole number of a row; none for a dash.
fn whole(row: &Table, key: &str) -> Option<i64> {
    number(&row[key]).map(|n| n as i64)
}

/// Every row of Table 10 has the nine GPUs, and every other row names one of them.
#[test]
fn the_tables_are_complete() {
    let tables = PaperTables::read();
    let gpus = tables.gpus();
    for (key, row) in tables.table(10) {
        if let Some(row) = row.as_array() {
            assert_eq!(row.len(), 9, "table 10, {key}");
        }
    }
    for (table, rows) in [(13, 17), (16, 8), (20, 24), (23, 4), (24, 24)] {
        assert_eq!(tables.rows(table).count(), rows, "table {table}");
        for row in tables.rows(table) {
            assert!(gpus.iter().any(|gpu| row["gpu"].as_str() == Some(&gpu.name)), "table {table}: {row:?}");
        }
    }
    // the second part of Table 10 is ratios of the first; of constant memory nominal ones, where the first has measured
    // bandwidths on NVIDIA's platform (note e)
    for gpu in &gpus {
        let value = |row: &str| tables.specification(row, gpu).unwrap();
        for (ratio, over, under, unit) in [
            ("constant-to-shared", "constant-bandwidth", "shared-bandwidth", 1.0),
            ("shared-to-texture", "shared-bandwidth", "texels", 4.0),
            ("constant-to-texture", "constant-bandwidth", "texels", 4.0),
            ("conversions-to-texture", "conversions", "texels", 1.0),
            ("gflops-to-texture", "gflops", "texels", 1.0),
            ("gflops-to-shared", "gflops", "shared-bandwidth", 0.25),
            ("gflops-to-conversions", "gflops", "conversions", 1.0),
        ] {
            let computed = value(over) / value(under) / unit;
            let printed = value(ratio);
            let margin = if over == "constant-bandwidth" && !gpu.is_amd() { 0.35 } else { 0.02 };
            assert!((computed / printed - 1.0).abs() < margin, "{} {ratio}: {computed} for {printed}", gpu.name);
        }
    }
}

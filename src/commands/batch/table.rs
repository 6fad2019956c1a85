//! `--scans`: a table of scans with flags of their own.

use super::errors::ScanTableError;
use super::scans::check_name;
use crate::cli::ReconstructArgs;
use crate::commands::flags::{as_switch, keys_of, switches};
use crate::error::Result;
use crate::files::{excerpt, excerpt_of_lines, read_text_once};
use crate::recipe::{known_keys, nearest_key};
use crate::visible::Shown;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use toml::de::{DeTable, DeValue};

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScanRow {
    pub name: String,
    /// Flags, in the form of a run file.
    pub flags: toml::Table,
    /// Path and line, for messages.
    pub place: String,
}

/// The column or key with the name of the scan.
const NAME_COLUMN: &str = "name";

/// Flags that hold for the whole batch.
const OF_ALL: [&str; 4] = ["shard", "resume", "overwrite", "progress"];

/// Reads the table, from CSV or TOML by its ending; `stop` ends the wait for it.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) that names the file and the line.
pub(super) fn read(path: &Path, stop: &AtomicBool) -> Result<Vec<ScanRow>> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let read = || read_text_once(path, "--scans", stop);
    let rows = match ending.as_str() {
        "csv" => of_csv(&read()?, path)?,
        "toml" => of_toml(&read()?, path)?,
        _ => {
            return Err(ScanTableError::OtherEnding { path: path.shown() }.into());
        }
    };
    let mut places: HashMap<&str, &str> = HashMap::new();
    for row in &rows {
        check_name(&row.name, &row.place)?;
        if let Some(first) = places.insert(&row.name, &row.place) {
            let (place, name, first) = (row.place.clone(), excerpt(&row.name).into(), first.to_owned());
            return Err(ScanTableError::Repeated { place, name, first }.into());
        }
    }
    Ok(rows)
}

/// Names a line of the table.
fn place(path: &Path, line: usize) -> String {
    format!("--scans {}, line {line}", path.shown())
}

/// Checks that a column or key is the name of the scan or a flag of its own.
fn check_key(key: &str, known: &[String], place: &str) -> Result<()> {
    if OF_ALL.contains(&key) {
        return Err(ScanTableError::ForWholeBatch { place: place.into(), key: key.into() }.into());
    }
    if key == NAME_COLUMN || known.iter().any(|name| name == key) {
        return Ok(());
    }
    let (place, nearest, key) = (place.to_owned(), nearest_key(key), excerpt(key).into());
    Err(match nearest {
        Some(nearest) => ScanTableError::MisspeltKey { place, key, nearest },
        None => ScanTableError::UnknownKey { place, key },
    }
    .into())
}

/// Reads CSV with a head: fields are separated by commas, semicolons or tabs, as in its first line. Empty fields are not
/// given.
fn of_csv(text: &str, path: &Path) -> Result<Vec<ScanRow>> {
    let head = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    let separator = ['\t', ';'].into_iter().find(|&separator| head.contains(separator)).unwrap_or(',');
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator as u8)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    // a record begins where the one before ended, so that its line follows lines that are skipped
    let line_of = |position: Option<&csv::Position>| {
        let (line, at) = position.map_or((1, 0), |position| (position.line() as usize, position.byte() as usize));
        let is_skipped = |line: &&str| line.trim().is_empty() || line.starts_with('#');
        line + text.get(at..).unwrap_or_default().lines().take_while(is_skipped).count()
    };
    let wrong = |error: csv::Error| {
        let line = line_of(error.position());
        ScanTableError::NotCsv { place: place(path, line), error }
    };
    let columns = reader.headers().map_err(wrong)?.clone();
    let (known, first) = (known_keys(), line_of(columns.position()));
    columns.iter().try_for_each(|column| check_key(column, &known, &place(path, first)))?;
    let Some(names) = columns.iter().position(|column| column == NAME_COLUMN) else {
        return Err(ScanTableError::NoNameColumn { place: place(path, first) }.into());
    };
    let switches = switches();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(wrong)?;
        let place = place(path, line_of(record.position()));
        let fields = columns.iter().zip(&record).filter(|(column, field)| *column != NAME_COLUMN && !field.is_empty());
        let flags = flags_of(fields, &switches, &place)?;
        rows.push(ScanRow { name: record[names].to_owned(), flags, place });
    }
    Ok(rows)
}

/// Reads fields as the command line of `fbp reconstruct` does.
fn flags_of<'a>(
    fields: impl Iterator<Item = (&'a str, &'a str)>,
    switches: &[String],
    place: &str,
) -> Result<toml::Table> {
    let mut words = Vec::new();
    for (flag, value) in fields {
        let is_switch = switches.iter().any(|switch| switch == flag);
        match as_switch(value) {
            _ if !is_switch => words.push(format!("--{flag}={value}")),
            Some(true) => words.push(format!("--{flag}")),
            Some(false) => {}
            None => {
                let (place, flag, value) = (place.to_owned(), flag.to_owned(), excerpt(value).into());
                return Err(ScanTableError::NotASwitch { place, flag, value }.into());
            }
        }
    }
    keys_of(words.into_iter()).map_err(|error| ScanTableError::WrongField { place: place.into(), error }.into())
}

/// Reads TOML with a table `[[scan]]` for each scan.
fn of_toml(text: &str, path: &Path) -> Result<Vec<ScanRow>> {
    let wrong = |e: toml::de::Error| ScanTableError::NotToml {
        path: path.shown(),
        error: excerpt_of_lines(e.to_string().trim_end()),
    };
    let line = |at: usize| place(path, text[..at].lines().count().max(1) + usize::from(text[..at].ends_with('\n')));
    let document = DeTable::parse(text).map_err(wrong)?;
    let values: toml::Table = toml::from_str(text).map_err(wrong)?;
    let known = known_keys();
    let mut rows = Vec::new();
    for (key, value) in document.get_ref() {
        let tables = match value.get_ref() {
            DeValue::Array(tables) if key.get_ref() == "scan" => tables,
            _ => {
                let (place, key) = (line(key.span().start), excerpt(key.get_ref()).into());
                return Err(ScanTableError::KeyOutsideScan { place, key }.into());
            }
        };
        let scans = values.get("scan").and_then(toml::Value::as_array);
        for (table, scan) in tables.iter().zip(scans.into_iter().flatten()) {
            let place = line(table.span().start);
            let (DeValue::Table(keys), Some(mut flags)) = (table.get_ref(), scan.as_table().cloned()) else {
                return Err(ScanTableError::NoKeys { place }.into());
            };
            keys.keys().try_for_each(|key| check_key(key.get_ref(), &known, &line(key.span().start)))?;
            let Some(toml::Value::String(name)) = flags.remove(NAME_COLUMN) else {
                return Err(ScanTableError::NoName { place }.into());
            };
            ReconstructArgs::deserialize(flags.clone()).map_err(|e| {
                let error = excerpt_of_lines(e.to_string().trim_end());
                ScanTableError::WrongValue { place: place.clone(), error }
            })?;
            rows.push(ScanRow { name, flags, place });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, text: &str) -> std::result::Result<Vec<ScanRow>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&path, &AtomicBool::new(false)).map_err(|e| {
            assert_eq!(e.exit_code(), 2, "{e}");
            e.to_string()
        })
    }

    #[test]
    fn rows_have_flags_of_their_own() {
        let csv = "# the night\nname,center,rows,mask,extended-field,roi\na,511.5,0..4,,,\n\"b, c\",auto,,0.9,yes,\"0,0,8,8\"\n";
        let toml = "[[scan]]\nname = \"a\"\ncenter = 511.5\nrows = \"0..4\"\n\n[[scan]]\nname = \"b, c\"\ncenter = \"auto\"\n\
                    mask = 0.9\nextended-field = true\nroi = [0, 0, 8, 8]\n";
        let of = |name, text| {
            let rows = table(name, text).unwrap();
            let flags = |row: &ScanRow| ReconstructArgs::deserialize(row.flags.clone()).unwrap();
            rows.iter().map(|row| (row.name.clone(), flags(row))).collect::<Vec<_>>()
        };
        let rows = of("s.csv", csv);
        assert_eq!(rows, of("s.toml", toml));
        assert_eq!(rows, of("s.CSV", &csv.replace(',', ";").replace("b; c", "b, c").replace("0;0;8;8", "0,0,8,8")));
        assert_eq!((rows[0].0.as_str(), &rows[0].1.center, rows[0].1.mask), ("a", &Some("511.5".into()), None));
        assert!(rows[1].1.extended_field && rows[1].1.roi == Some("0,0,8,8".into()));
        // nothing else is given
        let only = ReconstructArgs { center: Some("511.5".into()), rows: Some("0..4".into()), ..Default::default() };
        assert_eq!(rows[0].1, only);
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        for (name, text, words) in [
            ("s.csv", "name,centre\na,3\n", &["line 1", "`centre`", "did you mean `center`?"][..]),
            ("s.csv", "center\n3\n", &["line 1", "no column `name`"]),
            ("s.csv", "name,resume\na,1\n", &["line 1", "--resume is for the whole batch"]),
            ("s.csv", "name,center\na,3\n\na,4\n", &["line 4", "line 2", "one row"]),
            ("s.csv", "# night\n\nname,center\n\"a\nb\",3\n# c\n\nx/y,4\n", &["line 8", "without slashes"]),
            ("s.csv", "name,center\r\na,3\r\n\r\na,4\r\n", &["line 4", "line 2", "one row"]),
            ("s.csv", "name,center\na,3,4\n", &["line 2", "as many fields"]),
            ("s.csv", "name,padding\na,edge\nb,edges\n", &["line 3", "'edges'", "--padding"]),
            ("s.csv", "name,extended-field\na,maybe\n", &["line 2", "neither true nor false"]),
            ("s.csv", "name\na/b\n", &["line 2", "without slashes"]),
            ("s.toml", "[[scan]]\nname = \"a\"\ncentre = 3\n", &["line 3", "`centre`"]),
            ("s.toml", "[[scan]]\ncenter = 3\n", &["line 1", "no name"]),
            ("s.toml", "\nname = \"a\"\n", &["line 2", "[[scan]]"]),
            ("s.toml", "[[scan]]\nname = \"a\"\nsize = \"big\"\n", &["line 1", "size"]),
            ("s.toml", "[[scan]\n", &["like a run file"]),
            ("s.txt", "", &[".csv or .toml"]),
        ] {
            let text = table(name, text).unwrap_err();
            assert!(text.starts_with("--scans") && words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
        }
    }
}

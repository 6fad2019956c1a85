//! The numbers of docs/values.md: its commands are run, and its tables hold what comes out.

use crate::support::cli::Lab;
use serde_json::Value;
use std::path::Path;

/// Commands in the fenced blocks of a page, in order; a backslash at the end of a line joins the next.
fn commands(page: &str) -> Vec<String> {
    let blocks: String = page.split("```").skip(1).step_by(2).collect();
    let joined = blocks.replace("\\\n", " ");
    joined.lines().filter_map(|line| line.trim().strip_prefix("fbp ").map(str::to_owned)).collect()
}

/// Cells of the rows of tables.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let cells = |line: &str| line.trim_matches('|').split('|').count() > 1 && line.starts_with('|');
    page.lines().filter(move |line| cells(line)).map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

/// The first number of a cell, and what is behind it.
fn number(cell: &str) -> (f64, &str) {
    let (number, remaining) = cell.split_once(' ').unwrap_or((cell, ""));
    (number.parse().unwrap_or_else(|_| panic!("no number in `{cell}`")), remaining)
}

#[test]
fn the_page_about_values_holds() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/values.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lab = Lab::new();
    for command in commands(&page) {
        lab.ok(&command);
    }
    let (mut histograms, mut infos) = (0, 0);
    for cells in rows(&page) {
        let named = |cell: &str| cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).map(str::to_owned);
        for (at, name) in cells.iter().enumerate().filter_map(|(at, cell)| Some((at, named(cell)?))) {
            if name.ends_with(".json") {
                // mean with its unit, and how far it may be off
                let json: Value = serde_json::from_str(&lab.read_text(&name)).unwrap();
                let ((stated, unit), (percent, _)) = (number(cells[at + 1]), number(cells[at + 2]));
                let mean = json["mean"].as_f64().unwrap();
                println!("{name}: {mean:.6} {}, stated {stated}", json["unit"]);
                assert_eq!(json["unit"], unit, "{name}");
                assert!((mean - stated).abs() <= percent / 100.0 * stated.abs(), "{name}: {mean}, stated {stated}");
                histograms += 1;
            } else if let Some(files) = name.strip_prefix("fbp info ") {
                let (out, _) = lab.ok(&format!("info {files} --json"));
                let json: Value = serde_json::from_str(&out).unwrap();
                let (low, high) = (number(cells[at + 1]).0, number(cells[at + 2]).0);
                let (min, max) = (json["min"].as_f64().unwrap(), json["max"].as_f64().unwrap());
                println!("{files}: {min} to {max}, stated {low} to {high}");
                let margin = 0.02 * high.abs();
                assert!((min - low).abs() <= margin && (max - high).abs() <= margin, "{files}: {min} to {max}");
                infos += 1;
            }
        }
    }
    assert!(histograms >= 15 && infos >= 5, "{histograms} and {infos}");
}

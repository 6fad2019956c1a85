//! What a run must give, whatever way it is cut, ordered, stored or asked for.

mod commands;
mod geometry;
mod messages;
mod same_scan;
mod values;

use crate::support::cli::Lab;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Two runs whose files must be the same, byte for byte.
fn same_bytes(lab: &Lab, a: &str, b: &str) {
    let bytes = |args: &str, output: &str| {
        lab.ok(&format!("reconstruct -q --overwrite {args} --output {output}"));
        lab.bytes(output)
    };
    let (left, right) = (bytes(a, "left"), bytes(b, "right"));
    assert!(!left.is_empty());
    assert!(left == right, "unlike: {a} | {b}");
}

/// Two runs on other files or with other flags whose slices must be the same, bit for bit; only what they say of their runs
/// differs.
fn same_slices(lab: &Lab, a: &str, b: &str) {
    let bits = |args: &str, output: &str| -> Vec<Vec<u32>> {
        let slices = lab.slices(&format!("--overwrite {args}"), output);
        slices.pages.iter().map(|page| page.iter().map(|v| v.to_bits()).collect()).collect()
    };
    assert!(bits(a, "left") == bits(b, "right"), "unlike: {a} | {b}");
}

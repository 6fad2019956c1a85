//! The model as tables.

use super::super::text::markdown;
use super::rows::ModelRow;
use super::stages::StageRow;
use crate::kernel::Load;
use crate::profile::Units;

/// Formats a number with three digits, or `None` as a dash.
fn cell(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(v) if v >= 100.0 => format!("{v:.0}"),
        Some(v) if v >= 10.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.2}"),
    }
}

/// Returns rows as a Markdown table with aligned columns.
pub fn model_table(rows: &[ModelRow]) -> String {
    let mut lines: Vec<Vec<String>> = vec![
        ["profile", "device", "kernel", "mode"]
            .into_iter()
            .chain(Units::default().named().map(|(name, _)| name))
            .chain(["GU/s", "limit", "occupancy", "by", "measured", "share"])
            .map(str::to_owned)
            .collect(),
    ];
    for r in rows {
        let mut line = vec![r.profile.clone(), r.device.clone(), r.spec.clone(), r.mode.to_string()];
        line.extend(r.units.named().map(|(_, rate)| cell(rate)));
        line.push(cell(r.gu_per_s));
        line.push(r.limit.unwrap_or("-").to_owned());
        line.push(r.occupancy.map_or("-".into(), |o| format!("{:.0} %", 100.0 * o.share)));
        line.push(r.occupancy.map_or("-", |o| o.limit).to_owned());
        line.push(cell(r.measured));
        let share = r.measured.zip(r.gu_per_s).map(|(measured, bound)| format!("{:.0} %", 100.0 * measured / bound));
        line.push(share.unwrap_or("-".into()));
        lines.push(line);
    }
    markdown(&lines, &[4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17])
}

/// Returns the operations of an update as the estimated row of the paper's Table 15 has them.
pub fn table_15(load: &Load) -> String {
    format!(
        "operations of an update by the list of the paper's section 6.5 (Table 15): SFU {}, Int {}, FP {}, Shared {}, \
         Constant {}\n\
         bytes: local memory {}, constant memory {}\n",
        load.conversions, load.shifts, load.fp, load.local, load.constant, load.local_bytes, load.constant_bytes
    )
}

/// Returns the stages of all rows that have them as a Markdown table, with their sums; empty if no row has any.
pub fn stage_table(rows: &[ModelRow]) -> String {
    let head = ["profile", "kernel", "mode", "grid", "width", "stage", "Mop", "local MB", "device MB", "ms", "limit"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for r in rows {
        let line = |stage: &StageRow| {
            let [x, y] = stage.cells;
            let millions = |value: f64| cell(Some(1e-6 * value));
            let numbers = [stage.operations, stage.local_bytes, stage.device_bytes].map(millions);
            let mut line = vec![r.profile.clone(), r.spec.clone(), r.mode.to_string()];
            line.extend([format!("{x} x {y}"), stage.width.to_string(), stage.stage.to_owned()]);
            line.extend(numbers);
            line.extend([format!("{:.4}", stage.ms), stage.limit.to_owned()]);
            line
        };
        lines.extend(r.stages.iter().map(line));
        let all = r.stages.iter().cloned().reduce(|sum, stage| StageRow {
            stage: "all",
            operations: sum.operations + stage.operations,
            local_bytes: sum.local_bytes + stage.local_bytes,
            device_bytes: sum.device_bytes + stage.device_bytes,
            ms: sum.ms + stage.ms,
            limit: "sum",
            ..stage
        });
        lines.extend(all.as_ref().map(line));
    }
    if lines.len() == 1 {
        return String::new();
    }
    markdown(&lines, &[4, 6, 7, 8, 9])
}

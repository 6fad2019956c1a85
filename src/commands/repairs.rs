//! Consequences of replaced values and lost projections for a result, and the flags that help.

use super::errors::RepairWarning;
use crate::remark::{Doubt, DoubtKind};
use crate::steps::{ClampedCounts, Repairs, Stripes, ranges};

/// Options of a command that decide which flags help.
pub(super) struct RepairFlags<'a> {
    pub sinograms: bool,
    pub stripes: &'a [Stripes],
    pub command: RepairCommand<'a>,
}

/// The command that repairs belong to.
#[derive(Clone, Copy)]
pub(super) enum RepairCommand<'a> {
    /// `fbp reconstruct`, with the projections that `--exclude` names.
    Reconstruct { excluded: &'a str },
    /// `fbp preprocess`.
    Preprocess,
}

/// Returns reasons to doubt a result that come from its data.
pub(super) fn doubts(repairs: &Repairs, flags: &RepairFlags) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let c = repairs.clamped;
    if c.total() > 0 {
        let (count, values) = (c.total(), repairs.values);
        let ClampedCounts { non_positive, dead, non_finite } = c;
        let replaced = RepairWarning::Replaced { count, values, non_positive, dead, non_finite };
        doubts.push(Doubt::of(DoubtKind::ReplacedValues, &replaced));
    }
    doubts.extend(defects(repairs, flags));
    if repairs.saturated + repairs.saturated_flats > 0 {
        let saturated = RepairWarning::Saturated { counts: repairs.saturated, flats: repairs.saturated_flats };
        doubts.push(Doubt::of(DoubtKind::Saturated, &saturated));
    }
    doubts.extend(unlit(&repairs.unlit, flags.command));
    doubts
}

/// Returns a doubt about the effect of replaced values on slices if there are too many, with the flags that help.
fn defects(repairs: &Repairs, flags: &RepairFlags) -> Option<Doubt> {
    let Repairs { spoilt_rows, failing_bins, .. } = repairs;
    let mut faults = Vec::new();
    let interpolates = |method: &Stripes| matches!(method, Stripes::Dead { .. } | Stripes::All { .. });
    let interpolated = flags.stripes.iter().any(interpolates);
    let mended = |row: usize| interpolated && failing_bins.iter().any(|(failing, _)| *failing == row);
    let rows: Vec<usize> = spoilt_rows.iter().copied().filter(|&row| !mended(row)).collect();
    if let [first, ..] = rows[..] {
        faults.push(format!(
            "more than 1 % of the values of {} were replaced, the first is row {first}",
            counted(rows.len(), "row")
        ));
    }
    if let ([(row, bin), ..], false) = (&failing_bins[..], interpolated) {
        faults.push(format!(
            "{} replaced in most projections, the first is bin {bin} of row {row}",
            match failing_bins.len() {
                1 => "1 detector bin is".to_owned(),
                count => format!("{count} detector bins are"),
            }
        ));
    }
    if faults.is_empty() {
        return None;
    }
    let faults = faults.join("; ");
    let defects = match (flags.sinograms, flags.command) {
        (true, _) => RepairWarning::DefectsOfSinograms { faults },
        (false, RepairCommand::Reconstruct { .. }) => {
            RepairWarning::DefectsOfProjections { faults, flag: "--stripes dead" }
        }
        // projections have no stripes
        (false, RepairCommand::Preprocess) => {
            RepairWarning::DefectsOfProjections { faults, flag: "--stripes dead of fbp reconstruct" }
        }
    };
    Some(Doubt::of(DoubtKind::DefectiveRows, &defects))
}

/// Returns a doubt about projections without light, with the flag that excludes them as well.
fn unlit(projections: &[usize], command: RepairCommand) -> Option<Doubt> {
    let list = ranges(projections);
    let exclude = match command {
        RepairCommand::Reconstruct { excluded: "" } => list.clone(),
        RepairCommand::Reconstruct { excluded } => format!("{excluded},{list}"),
        RepairCommand::Preprocess => format!("{list} of fbp reconstruct"),
    };
    let unlit = match *projections {
        [] => return None,
        [projection] => RepairWarning::UnlitProjection { projection, exclude },
        _ => RepairWarning::UnlitProjections { count: projections.len(), list, exclude },
    };
    Some(Doubt::of(DoubtKind::Unlit, &unlit))
}

pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projections_without_light_are_named_so_that_they_can_be_pasted() {
        let of = |projections: &[usize], command| unlit(projections, command).map(|doubt| doubt.to_string());
        let text = |projections: &[usize], excluded| of(projections, RepairCommand::Reconstruct { excluded });
        assert_eq!(text(&[], ""), None);
        assert!(text(&[7], "").unwrap().ends_with("; leave it out with --exclude 7"));
        let several = text(&[59, 60, 61, 74, 90, 91], "3,100..104").unwrap();
        assert!(several.starts_with("6 projections have no beam"), "{several}");
        assert!(several.ends_with("--exclude 3,100..104,59..=61,74,90..=91"), "{several}");
        let pages = of(&[59, 60], RepairCommand::Preprocess).unwrap();
        assert!(pages.ends_with("; leave them out with --exclude 59..=60 of fbp reconstruct"), "{pages}");
    }
}

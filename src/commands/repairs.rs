//! Consequences of replaced values and lost projections for a result, and the flags that help.

use crate::remark::{Doubt, DoubtKind};
use crate::steps::{Repairs, Stripes, ranges};

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
        doubts.push(Doubt::new(
            DoubtKind::ReplacedValues,
            format!(
                "{} values of {} were replaced: {} transmissions at or below 0, {} where the flat is not above the \
                 dark, {} not finite or too large",
                c.total(),
                repairs.values,
                c.non_positive,
                c.dead,
                c.non_finite
            ),
            "check that --flats and --darks are those of this scan",
        ));
    }
    doubts.extend(defects(repairs, flags));
    if repairs.saturated + repairs.saturated_flats > 0 {
        doubts.push(Doubt::new(
            DoubtKind::Saturated,
            format!(
                "{} counts, and {} in the flat field, have the largest value that their files can hold: the \
                 detector was saturated, and the true values are unknown",
                repairs.saturated, repairs.saturated_flats
            ),
            "use a shorter exposure for the next scan",
        ));
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
    let outliers = match flags.sinograms {
        true => "",
        false => {
            ", --remove-outliers SIZE,THRESHOLD,both (such as 3,500,both) replaces single dark or bright pixels \
             first"
        }
    };
    // projections have no stripes
    let of = match (flags.command, flags.sinograms) {
        (RepairCommand::Preprocess, false) => " of fbp reconstruct",
        _ => "",
    };
    Some(Doubt::new(
        DoubtKind::DefectiveRows,
        format!("{}: this causes artefacts in slices", faults.join("; ")),
        format!("try --stripes dead{of}, which interpolates bins that always fail{outliers}"),
    ))
}

/// Returns a doubt about projections without light, with the flag that excludes them as well.
fn unlit(projections: &[usize], command: RepairCommand) -> Option<Doubt> {
    let list = ranges(projections);
    let (what, them) = match projections {
        [] => return None,
        [one] => (format!("projection {one} has no beam, or a row without any light"), "it"),
        several => (format!("{} projections have no beam, or rows without any light: {list}", several.len()), "them"),
    };
    let (before, of) = match command {
        RepairCommand::Reconstruct { excluded: "" } => (String::new(), ""),
        RepairCommand::Reconstruct { excluded } => (format!("{excluded},"), ""),
        RepairCommand::Preprocess => (String::new(), " of fbp reconstruct"),
    };
    Some(Doubt::new(DoubtKind::Unlit, what, format!("leave {them} out with --exclude {before}{list}{of}")))
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

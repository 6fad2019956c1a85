//! Angles that cannot be right, wherever they come from.

use crate::error::messages;
use crate::geometry::Coverage;
use crate::remark::{Doubt, DoubtKind};
use std::f64::consts::PI;

messages! {
    /// Reasons to doubt the angles of a scan.
    enum AngleWarning: Warning {
        RadiansOfFlags { covered: f64, period: f64, span: f64, degrees: f64 } =>
            "--overall-angle: angles cover {covered:.1} of {period} degrees and look like radians: {span:.2} radians \
             are {degrees:.1} degrees";
            "give degrees, --overall-angle {degrees:.0}",
        RadiansOfText { flag: String, covered: f64, period: f64, span: f64, degrees: f64 } =>
            "{flag}: angles cover {covered:.1} of {period} degrees and look like radians: {span:.2} radians \
             are {degrees:.1} degrees";
            "multiply them by 57.29577951 (awk '{{ print $1 * 57.29577951 }}' FILE > degrees.txt)",
        RadiansOfHdf5 { flag: String, covered: f64, period: f64, span: f64, degrees: f64 } =>
            "{flag}: angles cover {covered:.1} of {period} degrees and look like radians: {span:.2} radians \
             are {degrees:.1} degrees";
            "set the attribute units of the angles to rad, or give --angles FILE or --overall-angle",
        RadiansOfInput { flag: String, covered: f64, period: f64, span: f64, degrees: f64 } =>
            "{flag}: angles cover {covered:.1} of {period} degrees and look like radians: {span:.2} radians \
             are {degrees:.1} degrees";
            "give --angles FILE or --overall-angle {degrees:.0}",
        Missing { covered: f64, period: f64, missing: f64 } =>
            "angles cover {covered:.1} of {period} degrees: the largest gap leaves {missing:.1} degrees out";
            "check the angles; if the scan is like that, slices have artefacts along the missing directions",
        LeftOut { covered: f64, period: f64, missing: f64 } =>
            "angles cover {covered:.1} of {period} degrees: the largest gap leaves {missing:.1} degrees out";
            "check --exclude and --projection-range; slices have artefacts along the missing directions",
    }
}

/// Degrees that may be missing without a warning.
const MOST_MISSING: f64 = 15.0;

/// Origin of the angles of a scan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AngleOrigin {
    /// `--start-angle` and `--overall-angle`, or their defaults.
    Even,
    /// A text file, with its flag.
    Text(String),
    /// An HDF5 file, with its flag.
    Hdf5(String),
    /// A `.txrm` file, or a log beside projections, with the flag.
    Input(String),
}

/// Returns a doubt if angles in degrees may be wrong. `all` are those of all projections, `used` those of the
/// projections that are used.
///
/// `period` is that of the scan: 180 degrees, or 360 where opposite projections do not see the same.
pub(super) fn doubt(origin: &AngleOrigin, all: &[f64], used: &[f64], period: f64) -> Option<Doubt> {
    let coverage = Coverage::of(used, period);
    // projections of a whole turn have no opposite ones that see the same
    let most = if period > 180.0 { 3.0 * period / used.len().max(1) as f64 } else { MOST_MISSING };
    // few angles may be as far apart as they like
    if used.len() < 2 || coverage.missing() <= most || coverage.gap <= 2.0 * coverage.step {
        return None;
    }
    let (covered, missing) = (coverage.covered(), coverage.missing());
    if let Some(span) = radians(all) {
        let degrees = span.to_degrees();
        let warning = match origin.clone() {
            AngleOrigin::Even => AngleWarning::RadiansOfFlags { covered, period, span, degrees },
            AngleOrigin::Text(flag) => AngleWarning::RadiansOfText { flag, covered, period, span, degrees },
            AngleOrigin::Hdf5(flag) => AngleWarning::RadiansOfHdf5 { flag, covered, period, span, degrees },
            AngleOrigin::Input(flag) => AngleWarning::RadiansOfInput { flag, covered, period, span, degrees },
        };
        return Some(Doubt::of(DoubtKind::Radians, &warning));
    }
    let warning = match all.len() == used.len() {
        true => AngleWarning::Missing { covered, period, missing },
        false => AngleWarning::LeftOut { covered, period, missing },
    };
    Some(Doubt::of(DoubtKind::MissingAngles, &warning))
}

/// Returns the span of angles that look like radians: most of a half or whole turn, or several half turns.
fn radians(angles: &[f64]) -> Option<f64> {
    let (low, high) = angles.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &a| (l.min(a), h.max(a)));
    let span = high - low;
    let step = span / (angles.len().max(2) - 1) as f64;
    let turns = (span + step) / PI;
    let several = turns < 8.5 && turns > 0.9 && (turns - turns.round()).abs() < 0.02;
    // degrees that steps this wide cover with this few projections are no scan in either unit
    let likely = (1.0..=2.0 * PI * 1.05).contains(&span) || several;
    (likely && step < 0.5).then_some(span + step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::even_angles;

    /// Repeatable values from -1 to 1.
    fn noise(i: usize) -> f64 {
        (i as f64 * 12.9898).sin() * 43758.5453 % 1.0
    }

    fn jittered(overall: f64, count: usize) -> Vec<f64> {
        let step = overall / count as f64;
        even_angles(0.0, overall, count).into_iter().enumerate().map(|(i, a)| a + 0.4 * step * noise(i)).collect()
    }

    fn found(origin: &AngleOrigin, all: &[f64], used: &[f64]) -> Option<DoubtKind> {
        doubt(origin, all, used, 180.0).map(|doubt| doubt.name)
    }

    fn origins() -> [AngleOrigin; 4] {
        let text = |flag: &str| flag.to_owned();
        [
            AngleOrigin::Even,
            AngleOrigin::Text(text("--angles a.txt")),
            AngleOrigin::Hdf5(text("--hdf5 a.h5")),
            AngleOrigin::Input(text("--projections a.txrm")),
        ]
    }

    #[test]
    fn radians_are_recognised_wherever_they_come_from() {
        for origin in origins() {
            for (overall, count) in [(180.0, 120), (360.0, 900), (180.0, 20), (150.0, 100), (720.0, 1500), (200.0, 90)]
            {
                for offset in [0.0, -90.0, 720.0] {
                    let angles: Vec<f64> = jittered(overall, count).iter().map(|a| (a + offset).to_radians()).collect();
                    assert_eq!(found(&origin, &angles, &angles), Some(DoubtKind::Radians), "{overall} {count}");
                    // of some of them
                    assert_eq!(found(&origin, &angles, &angles[3..13]), Some(DoubtKind::Radians), "{overall} {count}");
                }
            }
            let even = even_angles(0.0, 2.0 * PI, 180);
            let text = doubt(&origin, &even, &even, 180.0).unwrap().to_string();
            assert!(text.contains("6.28 radians are 360.0 degrees"), "{text}");
            let advice = ["--overall-angle 360", "57.29577951", "units", "--overall-angle 360"];
            assert!(text.contains(advice[origins().iter().position(|o| *o == origin).unwrap()]), "{text}");
        }
    }

    #[test]
    fn wedges_that_are_missing_on_purpose_are_no_radians() {
        for origin in origins() {
            for (overall, count) in [(120.0, 61), (140.0, 41), (90.0, 400), (30.0, 60), (10.0, 100)] {
                let angles = jittered(overall, count);
                assert_eq!(found(&origin, &angles, &angles), Some(DoubtKind::MissingAngles), "{overall} {count}");
            }
            // of a whole scan only some are used
            let angles = jittered(180.0, 240);
            assert_eq!(found(&origin, &angles, &angles[..4]), Some(DoubtKind::MissingAngles));
            let text = doubt(&origin, &angles, &angles[..120], 180.0).unwrap().to_string();
            assert!(text.contains("--exclude") && text.contains("angles cover 9"), "{text}");
        }
    }

    #[test]
    fn gaps_of_an_extended_field_are_named_with_their_size() {
        let all = even_angles(0.0, 360.0, 360);
        let without = |lost: std::ops::Range<usize>| {
            let used: Vec<f64> = (0..360).filter(|p| !lost.contains(p)).map(|p| all[p]).collect();
            doubt(&AngleOrigin::Even, &all, &used, 360.0).map(|doubt| doubt.to_string())
        };
        assert_eq!(without(100..103), None);
        let text = without(100..105).unwrap();
        assert!(text.contains("355.0 of 360 degrees") && text.contains("leaves 5.0 degrees out"), "{text}");
        assert!(without(100..130).unwrap().contains("leaves 30.0 degrees out"));
    }

    #[test]
    fn whole_scans_give_no_warning() {
        for origin in origins() {
            for (overall, count) in [(180.0, 120), (180.0, 8), (360.0, 400), (360.0, 17), (200.0, 90), (170.0, 500)] {
                for angles in [jittered(overall, count), even_angles(3.0, overall, count)] {
                    assert_eq!(found(&origin, &angles, &angles), None, "{overall} {count}");
                }
            }
            let golden: Vec<f64> = (0..200).map(|i| f64::from(i) * 111.246_117_975).collect();
            assert_eq!(found(&origin, &golden, &golden), None);
            // few projections are lost
            let mut some = jittered(180.0, 240);
            some.drain(60..75);
            assert_eq!(found(&origin, &jittered(180.0, 240), &some), None);
            assert_eq!(found(&origin, &[0.0, 30.0, 90.0], &[0.0, 30.0, 90.0]), None);
            assert_eq!(found(&origin, &[0.0], &[0.0]), None);
        }
    }
}

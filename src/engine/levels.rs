//! Input that does not look like line integrals although no -log is taken.

use crate::error::messages;
use crate::plan::Scan;
use crate::remark::{Doubt, DoubtKind};
use crate::source::{SampleType, Stack};
use crate::steps::{Logarithm, Preparation};

messages! {
    /// Why samples do not look like line integrals.
    enum LevelWarning: Warning {
        WholeNumbers { stack: String, level: f32 } =>
            "{stack}: reconstructing whole numbers around {level}, which look like detector counts, as line integrals";
            "give --projections with --flats and --darks, or --hdf5, for counts, and --minus-log for transmissions",
        Transmissions { stack: String, level: String } =>
            "{stack}: rows end near {level} on both sides and are lower between, so these look like transmissions, but \
             are reconstructed as line integrals";
            "give --minus-log, or --no-minus-log if they are line integrals",
        Percent { stack: String, level: String } =>
            "{stack}: rows end near {level} on both sides and are lower between, so these look like transmissions in \
             percent, but are reconstructed as line integrals";
            "divide them by 100 and give --minus-log, or --no-minus-log if they are line integrals",
        Counts { stack: String, level: String } =>
            "{stack}: rows end near {level} on both sides and are lower between, so these look like detector counts, but \
             are reconstructed as line integrals";
            "give the flat fields with --flats, or divide by the level of the beam and give --minus-log; --no-minus-log if \
             they are line integrals",
    }
}

/// Number of rows that are examined, each of another projection and, as far as there are enough, of another slice.
const ROWS: usize = 16;

/// Level from which whole numbers are taken for counts of a detector, whatever their rows look like.
const COUNTS: f32 = 1000.0;

/// Returns a doubt if data that are taken as line integrals do not look like them.
pub(super) fn doubt(
    stack: &Stack,
    preparation: &Preparation,
    logarithm: Logarithm,
    scan: &Scan,
    sinograms: bool,
) -> Option<Doubt> {
    if preparation.has_fields() || preparation.minus_log() {
        return None;
    }
    if let Some(level) = counts(stack, scan, sinograms) {
        let message = LevelWarning::WholeNumbers { stack: stack.title(), level };
        return Some(Doubt::of(DoubtKind::DetectorCounts, &message));
    }
    if logarithm == Logarithm::Never {
        return None;
    }
    let rows = (0..ROWS).filter_map(|number| row(stack, scan, sinograms, number));
    let (level, beam) = transmissions(rows)?;
    let (stack, level) = (stack.title(), rounded(level));
    let message = match beam {
        Beam::One => LevelWarning::Transmissions { stack, level },
        Beam::Percent => LevelWarning::Percent { stack, level },
        Beam::Counts => LevelWarning::Counts { stack, level },
    };
    Some(Doubt::of(DoubtKind::MissingLogarithm, &message))
}

/// Reads row `number` of a few that are spread over slices and projections; `None` if it cannot be read, which is an
/// error when the row is needed.
fn row(stack: &Stack, scan: &Scan, sinograms: bool, number: usize) -> Option<Vec<f32>> {
    let spread = |list: &[usize], place: usize| list.get((2 * place + 1) * list.len() / (2 * ROWS)).copied();
    // neighbours of a projection are of slices that are far apart
    let (slice, projection) = (spread(&scan.run_slices, number * 5 % ROWS)?, spread(&scan.used, number)?);
    let (page, at) = if sinograms { (slice, projection) } else { (projection, slice) };
    let mut row = vec![0f32; stack.width()];
    stack.read_rows(page, at..at + 1, &mut row).ok()?;
    Some(row)
}

/// Returns the median of a row in the middle of the scan, if samples are unsigned integers and look like detector
/// counts.
fn counts(stack: &Stack, scan: &Scan, sinograms: bool) -> Option<f32> {
    if !matches!(stack.sample(), SampleType::U16 | SampleType::U32) {
        return None;
    }
    let (slice, projection) = (*scan.slices.get(scan.slices.len() / 2)?, *scan.used.get(scan.used.len() / 2)?);
    let (page, at) = if sinograms { (slice, projection) } else { (projection, slice) };
    let mut row = vec![0f32; stack.width()];
    stack.read_rows(page, at..at + 1, &mut row).ok()?;
    let (_, median, _) = row.select_nth_unstable_by(stack.width() / 2, f32::total_cmp);
    Some(*median).filter(|level| *level >= COUNTS)
}

/// Scale of the beam to which a level of air belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Beam {
    One,
    Percent,
    Counts,
}

/// Course of the values of a row from its ends to its middle.
enum Shape {
    /// Lower between the ends, which have this level.
    Below(f32),
    Above,
    Flat,
}

/// Returns the level of air if rows look like transmissions or counts: most of those with a sample end near the same
/// level of a beam on both sides, and are lower between.
fn transmissions(rows: impl Iterator<Item = Vec<f32>>) -> Option<(f32, Beam)> {
    let (mut levels, mut above, mut count) = (Vec::new(), 0, 0);
    for row in rows {
        count += 1;
        match shape(&row) {
            Shape::Below(level) => levels.push(level),
            Shape::Above => above += 1,
            Shape::Flat => {}
        }
    }
    if levels.is_empty() || 4 * levels.len() < count || levels.len() < 4 * above {
        return None;
    }
    levels.sort_unstable_by(f32::total_cmp);
    let level = levels[levels.len() / 2];
    // all rows that are lower between end near this level: those through a sample that goes on do not
    let near = levels.iter().filter(|&&l| (l / level - 1.0).abs() < 0.25).count();
    let beam = match level {
        0.75..1.3 => Beam::One,
        75.0..130.0 => Beam::Percent,
        130.0.. => Beam::Counts,
        _ => return None,
    };
    (4 * near >= 3 * levels.len()).then_some((level, beam))
}

/// The fraction `1 / END` of a row at either end is expected to be air.
const END: usize = 32;

fn shape(row: &[f32]) -> Shape {
    let end = (row.len() / END).max(2);
    if row.len() < 8 * end {
        return Shape::Flat;
    }
    // means of some bins, so that noise and single bins do not count
    let means: Vec<f32> = row
        .chunks_exact(end)
        .map(|bins| {
            let finite: Vec<f32> = bins.iter().copied().filter(|value| value.is_finite()).collect();
            finite.iter().sum::<f32>() / finite.len() as f32
        })
        .filter(|mean| mean.is_finite())
        .collect();
    let [left, next, inside @ .., before, right] = &means[..] else { return Shape::Flat };
    let level = 0.5 * (left + right);
    let lowest = inside.iter().copied().fold(f32::INFINITY, f32::min);
    let highest = inside.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (below, above) = (level - lowest, highest - level);
    // how far two means of air are apart, by noise and by a beam that is not even
    let uneven = (left - right).abs().max((left - next).abs()).max((right - before).abs());
    if below.max(above) <= 3.0 * uneven || below.max(above) <= 0.02 * level.abs() {
        return Shape::Flat;
    }
    match below > above {
        true if lowest > -0.1 * level => Shape::Below(level),
        true => Shape::Flat,
        false => Shape::Above,
    }
}

/// Formats a level with as many digits as are meaningful.
fn rounded(level: f32) -> String {
    if level < 10.0 { format!("{level:.2}") } else { format!("{level:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINS: usize = 200;

    /// Repeatable values around 0 with standard deviation 1, about.
    fn noise(i: usize) -> f32 {
        (0..6).map(|k| (((i * 6 + k) as f32 * 12.9898).sin() * 43758.547).fract()).sum::<f32>()
    }

    /// Line integrals of a disc off the axis and a smaller one in it, as they move along the rows.
    fn integrals(p: usize, radius: f32, peak: f32) -> Vec<f32> {
        let middle = 100.0 + 25.0 * (p as f32 * 0.4).cos();
        let chord = |b: usize, radius: f32| (1.0 - ((b as f32 - middle) / radius).powi(2)).max(0.0).sqrt();
        (0..BINS).map(|b| peak * (chord(b, radius) + 0.5 * chord(b, radius / 3.0))).collect()
    }

    fn found(value: impl Fn(usize, f32) -> f32, radius: f32, peak: f32) -> Option<(f32, Beam)> {
        let row = |p: usize| {
            let row = integrals(p, radius, peak).into_iter().enumerate();
            row.map(|(b, v)| value(p * BINS + b, v)).collect::<Vec<f32>>()
        };
        transmissions((0..ROWS).map(row))
    }

    #[test]
    fn data_before_minus_log_are_recognised() {
        for peak in [0.1f32, 0.7, 2.5] {
            for sigma in [0.0, 0.02] {
                let transmission = |i: usize, v: f32| (-v).exp() + sigma * peak.min(1.0) * noise(i);
                let is = |scale: f32, offset: f32| {
                    found(|i, v| scale * transmission(i, v) + offset, 60.0, peak).map(|(_, beam)| beam)
                };
                assert_eq!(is(1.0, 0.0), Some(Beam::One), "{peak} {sigma}");
                assert_eq!(is(0.9, 0.02), Some(Beam::One), "{peak} {sigma}");
                assert_eq!(is(100.0, 0.0), Some(Beam::Percent), "{peak} {sigma}");
                assert_eq!(is(3000.7, 100.2), Some(Beam::Counts), "{peak} {sigma}");
            }
        }
        // a beam that is not even
        let uneven = |i: usize, v: f32| 20000.3 * (-v).exp() * (1.0 + 0.1 * ((i % BINS) as f32 / 9.0).sin());
        assert_eq!(found(uneven, 60.0, 1.5).map(|(_, beam)| beam), Some(Beam::Counts));
        // not finite in places
        let holes = |i: usize, v: f32| if i % 37 == 0 { f32::NAN } else { (-v).exp() };
        assert_eq!(found(holes, 60.0, 1.0).map(|(_, beam)| beam), Some(Beam::One));
    }

    #[test]
    fn line_integrals_are_no_transmissions() {
        for peak in [0.01, 0.7, 2.5, 40.0, 5000.0] {
            for offset in [0.0, 0.1, -0.1, 1.0, 100.0] {
                for sigma in [0.0, 0.05] {
                    // with air, and with a sample that goes on beyond the detector
                    for radius in [60.0, 150.0] {
                        let value = |i: usize, v: f32| v + offset + sigma * peak * noise(i);
                        assert_eq!(found(value, radius, peak), None, "{peak} {offset} {sigma} {radius}");
                    }
                }
            }
        }
        // nothing but air, or zeros
        assert_eq!(found(|i, _| 1.0 + 0.02 * noise(i), 60.0, 1.0), None);
        assert_eq!(found(|i, _| 0.02 * noise(i), 60.0, 1.0), None);
        assert_eq!(found(|_, _| 0.0, 60.0, 1.0), None);
        // the middle of a hollow sample: lower between ends, which differ from projection to projection
        assert_eq!(found(|i, v| 3.0 - v + 0.3 * ((i / BINS) as f32).sin(), 60.0, 1.0), None);
        assert_eq!(transmissions(std::iter::empty()), None);
        assert_eq!(transmissions(std::iter::once(vec![1.0, 0.5, 1.0])), None);
    }
}

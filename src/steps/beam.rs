//! Light of projections: mean transmissions, and projections without beam.

use multiversion::multiversion;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Limit of the magnitude of transmissions in a mean: larger ones, which are bright single pixels, count as this.
pub const MOST_TRANSMISSION: f32 = 4.0;

/// Level of a transmission of 1.
pub const LEVEL_UNITS: f32 = 4096.0;

/// Share of the median level below which a projection may have no beam.
const DARK: f64 = 0.05;

/// Smallest ratio of the level of a neighbour to that of a projection without beam: samples do not become opaque from
/// one projection to the next.
const JUMP: f64 = 3.0;

/// Mean transmission of every projection, added up over rows. A level is a whole number, [`LEVEL_UNITS`] for a
/// transmission of 1, so that sums do not depend on the order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BeamLevels(BTreeMap<usize, i64>);

impl BeamLevels {
    /// Adds the level of a row of a projection, or of several.
    pub fn add(&mut self, projection: usize, level: i64) {
        *self.0.entry(projection).or_default() += level;
    }

    /// Returns the projections without beam, ascending: much darker than most, and darker from one projection to the
    /// next.
    pub fn lost(&self) -> Vec<usize> {
        let levels: Vec<(usize, f64)> = self.0.iter().map(|(&p, &level)| (p, level as f64)).collect();
        let mut sorted: Vec<f64> = levels.iter().map(|(_, level)| *level).collect();
        sorted.sort_by(f64::total_cmp);
        let Some(&median) = sorted.get(sorted.len() / 2).filter(|median| **median > 0.0) else { return Vec::new() };
        let dark = |at: usize| levels[at].1 < DARK * median;
        let mut lost = Vec::new();
        let mut at = 0;
        while at < levels.len() {
            let first = at;
            while at < levels.len() && dark(at) {
                at += 1;
            }
            if at > first {
                let jumps = |inside: usize, outside: Option<&(usize, f64)>| {
                    outside.is_some_and(|(_, level)| *level >= JUMP * levels[inside].1.max(0.0))
                };
                let before = first.checked_sub(1).and_then(|before| levels.get(before));
                if jumps(first, before) || jumps(at - 1, levels.get(at)) {
                    lost.extend(levels[first..at].iter().map(|(p, _)| *p));
                }
            }
            at += 1;
        }
        lost
    }
}

impl AddAssign for BeamLevels {
    fn add_assign(&mut self, other: Self) {
        other.0.into_iter().for_each(|(projection, level)| self.add(projection, level));
    }
}

/// Returns the mean transmission of a row, in units of which [`LEVEL_UNITS`] are a transmission of 1. Also compiled for newer
/// processors with wider vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
pub fn level(values: &[f32]) -> i64 {
    const LANES: usize = 16;
    let mut lanes = [0f32; LANES];
    let limited = |value: f32| value.clamp(-MOST_TRANSMISSION, MOST_TRANSMISSION);
    let rows = values.chunks_exact(LANES);
    let rest: f32 = rows.remainder().iter().map(|&value| limited(value)).sum();
    for row in rows {
        lanes.iter_mut().zip(row).for_each(|(sum, &value)| *sum += limited(value));
    }
    let sum = lanes.iter().sum::<f32>() + rest;
    (sum / values.len().max(1) as f32 * LEVEL_UNITS).round() as i64
}

/// Formats ascending numbers as `--exclude` takes them: `3,60..=74`.
pub fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let texts: Vec<String> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}..={last}"),
            _ => run.iter().map(usize::to_string).collect(),
        })
        .collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(transmissions: impl IntoIterator<Item = f64>) -> Vec<usize> {
        let mut levels = BeamLevels::default();
        for (p, transmission) in transmissions.into_iter().enumerate() {
            // three rows
            (0..3).for_each(|_| levels.add(p, (transmission * f64::from(LEVEL_UNITS)).round() as i64));
        }
        levels.lost()
    }

    #[test]
    fn projections_without_beam_are_lost_whatever_the_noise_is() {
        for noise in [0.0, 1e-5, -1e-5, 1e-3, -1e-3] {
            let beam = |p: usize| if (60..75).contains(&p) { noise } else { 0.7 + 0.1 * (p as f64 * 0.1).sin() };
            assert_eq!(lost((0..240).map(beam)), (60..75).collect::<Vec<_>>(), "{noise}");
            let ends = |p: usize| if !(3..235).contains(&p) || p == 100 { noise } else { 0.4 };
            assert_eq!(lost((0..240).map(ends)), [0, 1, 2, 100, 235, 236, 237, 238, 239], "{noise}");
        }
        // a beam that goes in steps
        let fades = |p: usize| 0.8 * [0.7, 0.5, 0.3, 0.1, 0.02, 0.0, 0.0].get(p.wrapping_sub(20)).unwrap_or(&1.0);
        assert_eq!(lost((0..60).map(fades)), [24, 25, 26]);
        // of a sample that lets little through
        assert_eq!(lost((0..60).map(|p| if p == 30 { 0.0 } else { 0.02 })), [30]);
    }

    #[test]
    fn samples_that_become_opaque_are_not_lost() {
        // a plate that is seen edge on
        let plate = |p: usize| (-1.0 / (0.1 + (p as f64 - 90.0).to_radians().sin().abs())).exp();
        assert!(lost((0..180).map(plate)).is_empty());
        assert!(lost((0..100).map(|p| 0.9 * (-(p as f64) * 0.1).exp())).is_empty());
        assert!(lost([0.0; 20]).is_empty() && lost([]).is_empty() && lost([0.5]).is_empty());
        // a dim beam is no lost one
        assert!(lost((0..100).map(|p| if p == 50 { 0.1 } else { 1.0 })).is_empty());
    }

    #[test]
    fn levels_are_means_of_limited_transmissions() {
        let values: Vec<f32> = (0..1000).map(|i| if i == 500 { 1e6 } else { 0.5 }).collect();
        assert_eq!(level(&values), ((0.5 * 999.0 + 4.0) / 1000.0 * 4096.0f64).round() as i64);
        assert_eq!((level(&[]), level(&[-9.0; 3]), level(&[1.0; 17])), (0, -4 * 4096, 4096));
    }

    #[test]
    fn numbers_as_ranges_that_can_be_pasted() {
        assert_eq!(ranges(&[3, 60, 61, 62, 90, 91]), "3,60..=62,90..=91");
        assert_eq!((ranges(&[]), ranges(&[7])), (String::new(), "7".into()));
    }
}

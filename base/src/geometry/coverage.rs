//! The part of a turn that angles cover.

/// The distribution of angles on a circle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Degrees after which angles repeat themselves.
    pub period: f64,
    /// The largest gap between neighbours, in degrees.
    pub gap: f64,
    /// Step between the other neighbours in degrees: half of the range that they cover is covered in steps of at most
    /// this.
    pub step: f64,
}

impl Coverage {
    /// Returns the coverage of angles in degrees on a circle of `period` degrees; without angles nothing is covered.
    ///
    /// The step is a median by length, so that angles that occur twice, exactly or nearly, do not make it smaller.
    pub fn of(angles: &[f64], period: f64) -> Coverage {
        let mut order: Vec<f64> = angles.iter().map(|a| a.rem_euclid(period)).collect();
        order.sort_by(f64::total_cmp);
        let (Some(first), Some(last)) = (order.first(), order.last()) else {
            return Coverage { period, gap: period, step: 0.0 };
        };
        let mut gaps: Vec<f64> = order.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.push(first + period - last);
        gaps.sort_by(f64::total_cmp);
        let gap = gaps.pop().unwrap_or(period);
        let half = gaps.iter().sum::<f64>() / 2.0;
        let mut sum = 0.0;
        let middle = gaps.iter().find(|gap| {
            sum += *gap;
            sum >= half
        });
        Coverage { period, gap, step: middle.copied().unwrap_or(0.0).min(gap) }
    }

    /// Returns the range in degrees that is covered: all but the excess of the largest gap over a step.
    pub fn covered(&self) -> f64 {
        self.period - self.missing()
    }

    /// Returns the range in degrees that is not covered.
    pub fn missing(&self) -> f64 {
        self.gap - self.step
    }
}

#[cfg(test)]
mod tests {
    use super::super::even_angles;
    use super::*;

    #[test]
    fn whole_scans_cover_all_and_others_what_they_span() {
        for (start, overall, count) in [(0.0, 180.0, 7), (-31.0, 180.0, 900), (5.0, 360.0, 400), (0.0, 360.0, 401)] {
            let covered = Coverage::of(&even_angles(start, overall, count), 180.0).covered();
            assert!((covered - 180.0).abs() < 1e-9, "{overall} {count}: {covered}");
        }
        for (overall, count) in [(120.0, 60), (3.1, 400), (90.0, 30)] {
            let covered = Coverage::of(&even_angles(-60.0, overall, count), 180.0).covered();
            assert!((covered - overall).abs() < 1e-9, "{overall} {count}: {covered}");
        }
        // the end included, and angles that occur twice or nearly so
        let mut angles: Vec<f64> = (0..=90).map(|i| f64::from(i) * 2.0).collect();
        angles.extend((0..90).map(|i| f64::from(i) * 2.0 + 180.001));
        assert!(Coverage::of(&angles, 180.0).missing() < 0.01);
    }

    #[test]
    fn few_angles_and_equal_ones() {
        assert_eq!(Coverage::of(&[], 180.0).covered(), 0.0);
        assert_eq!(Coverage::of(&[7.0; 12], 180.0).covered(), 0.0);
        assert_eq!(Coverage::of(&[0.0, 90.0], 180.0).covered(), 180.0);
        assert_eq!(Coverage::of(&[0.0, 1.0], 180.0).covered(), 2.0);
    }
}

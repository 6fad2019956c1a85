//! The minimum of a cost over trial positions, and whether it is one.

use std::fmt;

/// What is to be thought of a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One clear minimum.
    Ok,
    /// The lowest cost is at an end of the range: the minimum may lie beyond.
    Railed,
    /// The cost does not go down anywhere by more than it goes up and down everywhere.
    Flat,
    /// Another position is about as good.
    Ambiguous,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Verdict::Ok => "ok",
            Verdict::Railed => "railed",
            Verdict::Flat => "flat",
            Verdict::Ambiguous => "ambiguous",
        })
    }
}

/// Costs at evenly spread positions.
#[derive(Clone, Debug)]
pub struct Curve {
    /// First position in bins.
    pub first: f64,
    /// Distance of positions in bins.
    pub step: f64,
    /// At least three, none negative.
    pub costs: Vec<f64>,
}

/// The lowest point of a [`Curve`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minimum {
    /// Position in bins, between those of the curve.
    pub at: f64,
    /// How far the cost goes down from its median, as a share of that; from 0 to 1.
    pub confidence: f64,
    pub verdict: Verdict,
}

/// The minimum is this many times deeper than the cost is rough, or the curve is flat.
const DEPTH: f64 = 6.0;
/// A shallower minimum, as a share of the median, is flat, too: rounding makes one.
const SHALLOWEST: f64 = 1e-3;
/// A second minimum that has this share of the first one's depth competes with it,
const RIVAL: f64 = 0.85;
/// if it is at least so many bins away.
const APART: f64 = 2.0;

impl Curve {
    /// `step` apart from `first` to at most `last` (bins), by a function of the position.
    pub fn sample(first: f64, last: f64, step: f64, cost: impl Fn(f64) -> f64 + Sync) -> Curve {
        use rayon::prelude::*;
        let count = ((last - first) / step + 1e-6).floor() as usize + 1;
        let costs = (0..count).into_par_iter().map(|i| cost(first + i as f64 * step)).collect();
        Curve { first, step, costs }
    }

    /// Position of a trial in bins.
    pub fn position(&self, index: usize) -> f64 {
        self.first + index as f64 * self.step
    }

    fn lowest(&self) -> usize {
        (0..self.costs.len()).min_by(|&a, &b| self.costs[a].total_cmp(&self.costs[b])).unwrap_or(0)
    }

    /// Where the parabola through the lowest cost and its neighbours has its vertex, in bins.
    pub fn vertex(&self) -> f64 {
        let lowest = self.lowest();
        let at = self.position(lowest);
        if lowest == 0 || lowest + 1 >= self.costs.len() {
            return at;
        }
        let [before, here, after] = [self.costs[lowest - 1], self.costs[lowest], self.costs[lowest + 1]];
        let bend = before - 2.0 * here + after;
        if bend > 0.0 { at + self.step * (before - after) / (2.0 * bend) } else { at }
    }

    /// The minimum with its verdict.
    pub fn minimum(&self) -> Minimum {
        let costs = &self.costs;
        let lowest = self.lowest();
        let typical = median(costs.iter().copied());
        let depth = typical - costs[lowest];
        let confidence = if typical > 0.0 { (depth / typical).clamp(0.0, 1.0) } else { 0.0 };
        let roughness = median(costs.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()));
        let rival = (1..costs.len().saturating_sub(1)).any(|i| {
            let local = costs[i] <= costs[i - 1] && costs[i] <= costs[i + 1];
            local && i.abs_diff(lowest) as f64 * self.step >= APART && typical - costs[i] > RIVAL * depth
        });
        let verdict = if confidence < SHALLOWEST || depth < DEPTH * roughness {
            Verdict::Flat
        } else if lowest == 0 || lowest + 1 == costs.len() {
            Verdict::Railed
        } else if rival {
            Verdict::Ambiguous
        } else {
            Verdict::Ok
        };
        Minimum { at: self.vertex(), confidence, verdict }
    }
}

/// The middle one of some values; 0 of none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(cost: impl Fn(f64) -> f64 + Sync) -> Minimum {
        Curve::sample(10.0, 30.0, 0.5, cost).minimum()
    }

    #[test]
    fn verdicts() {
        let valley = |at: f64| move |x: f64| 1.0 - 0.8 * (-(x - at).powi(2) / 2.0).exp();
        let found = curve(valley(17.3));
        assert!(found.verdict == Verdict::Ok && (found.at - 17.3).abs() < 0.02, "{found:?}");
        assert!((found.confidence - 0.8).abs() < 0.05);
        assert_eq!(curve(valley(9.0)).verdict, Verdict::Railed);
        assert_eq!(curve(valley(32.0)).verdict, Verdict::Railed);
        assert_eq!(curve(|_| 2.5).verdict, Verdict::Flat);
        assert_eq!(curve(|_| 0.0).verdict, Verdict::Flat);
        let jagged = |x: f64| 1.0 + 0.1 * ((7919.0 * x).sin() * 43758.5).fract();
        assert_eq!(curve(jagged).verdict, Verdict::Flat);
        let two = |x: f64| valley(14.0)(x).min(0.02 + valley(25.0)(x));
        assert_eq!(curve(two).verdict, Verdict::Ambiguous);
        let unequal = |x: f64| valley(14.0)(x).min(0.3 + 0.7 * valley(25.0)(x));
        assert_eq!(curve(unequal).verdict, Verdict::Ok);
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median(std::iter::empty()), 0.0);
    }
}

//! The minimum of a cost over trial positions: its position, its uncertainty, and whether it is clear.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::fmt;

/// Two methods that differ by more than this many bins do not confirm each other.
pub const AGREEMENT: f64 = 0.5;

/// How reliable a minimum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisVerdict {
    /// There is one clear minimum.
    Ok,
    /// The lowest cost is at an end of the range: the minimum may lie beyond.
    Railed,
    /// No minimum is deeper than the roughness of the cost.
    Flat,
    /// Another position is about as good.
    Ambiguous,
    /// There is one minimum, but parts of the data differ in its position.
    Uncertain,
    /// The projections contradict the angles: a whole turn declared as half a turn, or the other way round.
    Angles,
}

impl fmt::Display for AxisVerdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            AxisVerdict::Ok => "ok",
            AxisVerdict::Railed => "railed",
            AxisVerdict::Flat => "flat",
            AxisVerdict::Ambiguous => "ambiguous",
            AxisVerdict::Uncertain => "uncertain",
            AxisVerdict::Angles => "angles",
        })
    }
}

/// Evenly spaced trial positions in bins.
#[derive(Clone, Copy, Debug)]
pub struct TrialPositions {
    pub first: f64,
    pub step: f64,
    pub count: usize,
}

impl TrialPositions {
    /// Returns positions that are `step` apart, from `first` to at most `last`.
    pub fn new(first: f64, last: f64, step: f64) -> TrialPositions {
        TrialPositions { first, step, count: ((last - first) / step + 1e-6).floor() as usize + 1 }
    }

    /// Returns the position with index `i`.
    pub fn at(&self, i: usize) -> f64 {
        self.first + i as f64 * self.step
    }
}

/// Costs at evenly spaced positions, separately for parts of the data: rows, projections, bins, frequencies.
#[derive(Clone, Debug)]
pub struct Curve {
    positions: TrialPositions,
    /// Cost of each part, `[position][part]`: a difference, and the total that it is a share of. Neither is negative.
    shares: Vec<Vec<[f64; 2]>>,
}

/// Costs that a method computed on its way to a [`Minimum`], for display: positions in bins with their costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostCurve {
    /// Costs over the whole range.
    pub whole: Vec<[f64; 2]>,
    /// Costs about the minimum, in finer steps; empty if the whole range already has the finest. They come from data
    /// that are less binned, and are not to be compared with those of the whole range.
    pub near: Vec<[f64; 2]>,
}

impl CostCurve {
    /// Returns the costs of a curve over binned data, whose bin `b` is at `b * scale + shift`.
    pub fn of_binned(curve: &Curve, scale: f64, shift: f64) -> CostCurve {
        CostCurve { whole: curve.points(), near: Vec::new() }.moved(scale, shift)
    }

    fn least(&self) -> f64 {
        self.whole.iter().map(|point| point[1]).fold(f64::INFINITY, f64::min)
    }

    /// Returns the difference of the cost at a position from the lowest cost; `None` outside the range.
    pub fn rise(&self, at: f64) -> Option<f64> {
        let (first, last) = (self.whole.first()?[0], self.whole.last()?[0]);
        let distance = |point: &[f64; 2]| (point[0] - at).abs();
        let nearest = self.whole.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?[1];
        (first..=last).contains(&at).then(|| nearest - self.least())
    }

    /// Returns the [rise](CostCurve::rise) at a position as a share of the rise to the median cost.
    pub fn rank(&self, at: f64) -> Option<f64> {
        let typical = median(self.whole.iter().map(|point| point[1])) - self.least();
        self.rise(at).filter(|_| typical > 0.0).map(|rise| rise / typical)
    }

    /// Moves every position `b` to `b * scale + shift`.
    pub fn moved(mut self, scale: f64, shift: f64) -> CostCurve {
        self.whole.iter_mut().chain(&mut self.near).for_each(|[at, _]| *at = *at * scale + shift);
        self
    }
}

/// The lowest point of a [`Curve`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minimum {
    /// Position in bins, interpolated between those of the curve.
    pub at: f64,
    /// Standard deviation of the position in bins, estimated from parts of the data.
    pub uncertainty: f64,
    /// Depth of the minimum below the median cost, as a share of the median; from 0 to 1.
    pub confidence: f64,
    pub verdict: AxisVerdict,
}

/// Depth of a minimum, in multiples of the roughness of the cost, below which the curve is flat.
const DEPTH: f64 = 6.0;
/// Depth of a minimum, as a share of the median, below which it also counts as flat: rounding can cause such a minimum.
const SHALLOWEST: f64 = 1e-3;
/// Depth, as a share of that of the lowest minimum, above which a second minimum competes with it.
const RIVAL: f64 = 0.85;
/// Smallest distance in bins of a competing minimum.
const APART: f64 = 2.0;
/// Largest uncertainty in bins of a clear minimum.
pub const CLEAR: f64 = 0.15;
/// Number of bootstrap samples of the parts.
const DRAWS: usize = 64;

impl Curve {
    /// Builds a curve from a function that computes the shares `[position][part]` of all positions at once, so that it
    /// can compute only once what positions have in common.
    pub fn sample(positions: TrialPositions, shares: impl FnOnce(&TrialPositions) -> Vec<Vec<[f64; 2]>>) -> Curve {
        Curve { positions, shares: shares(&positions) }
    }

    /// Returns the cost at each position, with each part counted the given number of times.
    fn costs(&self, times: Option<&[f64]>) -> Vec<f64> {
        let cost = |shares: &Vec<[f64; 2]>| {
            let mut sum = [0f64; 2];
            for (i, share) in shares.iter().enumerate() {
                let times = times.map_or(1.0, |times| times[i]);
                sum = [sum[0] + times * share[0], sum[1] + times * share[1]];
            }
            // with nothing to compare, the difference is that of unrelated rows
            if sum[1] > 0.0 { sum[0] / sum[1] } else { 1.0 }
        };
        self.shares.iter().map(cost).collect()
    }

    /// Returns the positions in bins, each with its cost.
    pub fn points(&self) -> Vec<[f64; 2]> {
        self.costs(None).into_iter().enumerate().map(|(i, cost)| [self.positions.at(i), cost]).collect()
    }

    /// Returns the vertex, in bins, of the parabola through the lowest cost and its neighbours.
    fn vertex_of(&self, costs: &[f64]) -> f64 {
        let lowest = lowest(costs);
        let at = self.positions.at(lowest);
        if lowest == 0 || lowest + 1 >= costs.len() {
            return at;
        }
        let [before, here, after] = [costs[lowest - 1], costs[lowest], costs[lowest + 1]];
        let bend = before - 2.0 * here + after;
        if bend > 0.0 { at + self.positions.step * (before - after) / (2.0 * bend) } else { at }
    }

    /// Returns the position of the minimum in bins.
    pub fn vertex(&self) -> f64 {
        self.vertex_of(&self.costs(None))
    }

    /// Returns the position of the minimum in bins and the lowest cost.
    pub fn bottom(&self) -> (f64, f64) {
        let costs = self.costs(None);
        (self.vertex_of(&costs), costs[lowest(&costs)])
    }

    /// Returns the root mean square in bins by which the minimum moves when parts are drawn at random with replacement
    /// (B. Efron, Bootstrap methods, Ann. Statist. 7, 1979). Infinite for a single part.
    pub fn uncertainty(&self) -> f64 {
        let parts = self.shares.first().map_or(0, Vec::len);
        if parts < 2 {
            return f64::INFINITY;
        }
        let at = self.vertex();
        let squares: Vec<f64> = (0..DRAWS as u64)
            .into_par_iter()
            .map(|draw| {
                let rng = &mut ChaCha8Rng::seed_from_u64(draw);
                let mut times = vec![0f64; parts];
                (0..parts).for_each(|_| times[rng.random_range(0..parts)] += 1.0);
                (self.vertex_of(&self.costs(Some(&times))) - at).powi(2)
            })
            .collect();
        (squares.iter().sum::<f64>() / DRAWS as f64).sqrt()
    }

    /// Returns the minimum with its verdict.
    pub fn minimum(&self) -> Minimum {
        let costs = &self.costs(None);
        let lowest = lowest(costs);
        let typical = median(costs.iter().copied());
        let depth = typical - costs[lowest];
        let confidence = if typical > 0.0 { (depth / typical).clamp(0.0, 1.0) } else { 0.0 };
        let roughness = median(costs.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()));
        let rival = (1..costs.len().saturating_sub(1)).any(|i| {
            let local = costs[i] <= costs[i - 1] && costs[i] <= costs[i + 1];
            local && i.abs_diff(lowest) as f64 * self.positions.step >= APART && typical - costs[i] > RIVAL * depth
        });
        let verdict = if confidence < SHALLOWEST || depth < DEPTH * roughness {
            AxisVerdict::Flat
        } else if lowest == 0 || lowest + 1 == costs.len() {
            AxisVerdict::Railed
        } else if rival {
            AxisVerdict::Ambiguous
        } else {
            AxisVerdict::Ok
        };
        Minimum { at: self.vertex_of(costs), uncertainty: self.uncertainty(), confidence, verdict }
    }
}

impl Minimum {
    /// Adds an error of the position that parts of the data do not show, as a standard deviation in bins. A minimum
    /// whose uncertainty exceeds [`CLEAR`] is not ok.
    pub fn with_error(mut self, deviation: f64) -> Minimum {
        self.uncertainty = self.uncertainty.hypot(deviation);
        if self.verdict == AxisVerdict::Ok && self.uncertainty > CLEAR {
            self.verdict = AxisVerdict::Uncertain;
        }
        self
    }
}

fn lowest(costs: &[f64]) -> usize {
    (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0)
}

/// Returns the median; 0 if there are no values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(shares: impl Fn(f64) -> Vec<[f64; 2]>) -> Minimum {
        let positions = TrialPositions::new(10.0, 30.0, 0.5);
        Curve::sample(positions, |positions| (0..positions.count).map(|i| shares(positions.at(i))).collect()).minimum()
    }

    /// Parts of the data that all have the same cost.
    fn curve(cost: impl Fn(f64) -> f64) -> Minimum {
        sample(|x| vec![[cost(x), 1.0]; 8])
    }

    fn valley(at: f64) -> impl Fn(f64) -> f64 + Sync {
        move |x: f64| 1.0 - 0.8 * (-(x - at).powi(2) / 2.0).exp()
    }

    #[test]
    fn verdicts() {
        let found = curve(valley(17.3));
        assert!(found.verdict == AxisVerdict::Ok && (found.at - 17.3).abs() < 0.02, "{found:?}");
        assert!((found.confidence - 0.8).abs() < 0.05);
        assert_eq!(curve(valley(9.0)).verdict, AxisVerdict::Railed);
        assert_eq!(curve(valley(32.0)).verdict, AxisVerdict::Railed);
        assert_eq!(curve(|_| 2.5).verdict, AxisVerdict::Flat);
        assert_eq!(curve(|_| 0.0).verdict, AxisVerdict::Flat);
        let jagged = |x: f64| 1.0 + 0.1 * ((7919.0 * x).sin() * 43758.5).fract();
        assert_eq!(curve(jagged).verdict, AxisVerdict::Flat);
        let two = |x: f64| valley(14.0)(x).min(0.02 + valley(25.0)(x));
        assert_eq!(curve(two).verdict, AxisVerdict::Ambiguous);
        let unequal = |x: f64| valley(14.0)(x).min(0.3 + 0.7 * valley(25.0)(x));
        assert_eq!(curve(unequal).verdict, AxisVerdict::Ok);
    }

    #[test]
    fn parts_that_differ_make_uncertain() {
        let of = |spread: f64| {
            let part = |x: f64, i: i32| [valley(17.3 + spread * f64::from(2 * (i % 2) - 1))(x), 1.0];
            sample(|x| (0..16).map(|i| part(x, i)).collect())
        };
        assert!(of(0.0).uncertainty < 1e-9 && of(0.0).with_error(0.1).verdict == AxisVerdict::Ok);
        // the mean of 16 places that are 0.4 bins off, either way, is off by a tenth
        let found = of(0.4);
        assert!((0.05..0.15).contains(&found.uncertainty), "{found:?}");
        assert_eq!(found.with_error(0.2).verdict, AxisVerdict::Uncertain);
        let one = sample(|x| vec![[valley(17.3)(x), 1.0]]);
        assert!(one.uncertainty.is_infinite() && one.with_error(0.0).verdict == AxisVerdict::Uncertain);
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median(std::iter::empty()), 0.0);
    }
}

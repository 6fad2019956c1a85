//! Histograms: exact counts in bins that depend only on the values, not on their order.
//!
//! Bins are `[k * 2^e, (k + 1) * 2^e)` with one exponent `e` for all. It follows from the smallest and the largest
//! value: `e` is the smallest exponent at which at most [`BINS`] bins reach from one to the other, but no bin is
//! narrower than the step between neighbouring `f32` at the larger magnitude. When the range grows, so does `e`, and
//! neighbouring bins are merged; thus, any parts of the data, added up in any order, give the same counts.

use crate::numbers::floor;
use serde::{Serialize, Serializer};
use std::iter::Sum;

/// Largest number of bins. More than half of them are used if the data have that many different values.
pub const BINS: usize = 4096;

/// Percentiles that are reported.
const PERCENTILES: [f64; 11] = [0.1, 0.5, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.5, 99.9];

/// Counts of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    non_finite: u64,
    bins: Option<Bins>,
}

/// Bins from the one of the smallest to the one of the largest value.
#[derive(Clone, Debug, PartialEq)]
struct Bins {
    extent: Extent,
    counts: Vec<u64>,
}

/// Smallest and largest finite value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    low: f32,
    high: f32,
}

impl Extent {
    /// Creates an extent from the smallest and the largest value; `None` unless both are finite and in this order.
    pub fn new(low: f32, high: f32) -> Option<Extent> {
        // the sign of a zero must not depend on the order of values
        (low <= high && low.is_finite() && high.is_finite()).then_some(Extent { low: low + 0.0, high: high + 0.0 })
    }

    fn with(self, other: Extent) -> Extent {
        Extent { low: self.low.min(other.low) + 0.0, high: self.high.max(other.high) + 0.0 }
    }

    /// Returns the scale and the number of the first bin. The bin of a value, counted from the bin of the smallest
    /// value, is the value times the scale, rounded down, minus the number of the first bin. All this is exact in
    /// `f64`.
    pub fn places(self) -> [f64; 2] {
        let exponent = self.exponent();
        [2f64.powi(-exponent), self.ends(exponent).0.into()]
    }

    /// Returns the exponent `e` of the bins.
    fn exponent(self) -> i32 {
        let largest = self.low.abs().max(self.high.abs());
        let step = ((largest.to_bits() >> 23) as i32).max(1) - 127 - 23;
        let fits = |&e: &i32| bin(self.high, e) - bin(self.low, e) < BINS as i32;
        (step..).find(fits).unwrap_or(step)
    }

    /// Returns the numbers of the first and of the last bin.
    fn ends(self, exponent: i32) -> (i32, i32) {
        (bin(self.low, exponent), bin(self.high, exponent))
    }
}

/// Returns the number of a value's bin. Bins are not narrower than the steps of `f32` at the value, so the number is
/// within 2^24.
fn bin(value: f32, exponent: i32) -> i32 {
    floor(f64::from(value) * 2f64.powi(-exponent))
}

impl Bins {
    fn new(extent: Extent) -> Bins {
        let (first, last) = extent.ends(extent.exponent());
        Bins { extent, counts: vec![0; (last - first + 1) as usize] }
    }

    /// Adds the counts of bins within this extent.
    fn add(&mut self, other: &Bins) {
        let (to, from) = (self.extent.exponent(), other.extent.exponent());
        let (first, _) = self.extent.ends(to);
        let (start, _) = other.extent.ends(from);
        // bin numbers have fewer than 31 bits
        let halvings = (to - from).min(31);
        for (number, count) in (start..).zip(&other.counts) {
            self.counts[((number >> halvings) - first) as usize] += count;
        }
    }
}

/// Number of lanes of the sums over a row: value `i` is added in lane `i % LANES`. Devices have a work-item for each
/// lane.
pub const LANES: usize = 64;

/// Number of lanes that are summed at once, so that loops over them vectorise and their sums stay in registers.
const TOGETHER: usize = 8;

/// Calls `each` with the values of [`TOGETHER`] lanes from lane `first` on, and with their places among these lanes.
#[inline(always)]
fn in_lanes(row: &[f32], first: usize, mut each: impl FnMut(usize, f32)) {
    let blocks = row.chunks_exact(LANES);
    let remainder = blocks.remainder();
    for block in blocks {
        let lanes = &block[first..first + TOGETHER];
        (0..TOGETHER).for_each(|lane| each(lane, lanes[lane]));
    }
    remainder.iter().skip(first).take(TOGETHER).enumerate().for_each(|(lane, &value)| each(lane, value));
}

/// Sums all lanes as a work-group does: the upper half is added to the lower half until one lane is left.
fn total(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        (0..half).for_each(|lane| lanes[lane] += lanes[lane + half]);
        half /= 2;
    }
    lanes[0]
}

/// Returns the smallest and the largest finite value of a row, infinite if there is none, and the moments of the row.
fn of_row(row: &[f32]) -> ([f32; 2], Moments) {
    let (mut low, mut high, mut count) = ([f32::INFINITY; TOGETHER], [f32::NEG_INFINITY; TOGETHER], 0);
    let mut lanes = [0f64; LANES];
    for (number, lanes) in lanes.chunks_exact_mut(TOGETHER).enumerate() {
        let (mut sum, mut finite) = ([0f64; TOGETHER], [0u32; TOGETHER]);
        in_lanes(row, number * TOGETHER, |lane, value| {
            let is_finite = value.is_finite();
            low[lane] = if is_finite && value < low[lane] { value } else { low[lane] };
            high[lane] = if is_finite && value > high[lane] { value } else { high[lane] };
            finite[lane] += u32::from(is_finite);
            sum[lane] += f64::from(if is_finite { value } else { 0.0 });
        });
        lanes.copy_from_slice(&sum);
        count += finite.iter().map(|&finite| u64::from(finite)).sum::<u64>();
    }
    let extremes = [low.into_iter().fold(f32::INFINITY, f32::min), high.into_iter().fold(f32::NEG_INFINITY, f32::max)];
    if count == 0 {
        return (extremes, Moments::default());
    }
    let mean = total(lanes) / count as f64;
    for (number, lanes) in lanes.chunks_exact_mut(TOGETHER).enumerate() {
        let mut squares = [0f64; TOGETHER];
        in_lanes(row, number * TOGETHER, |lane, value| {
            let step = if value.is_finite() { f64::from(value) - mean } else { 0.0 };
            squares[lane] += step * step;
        });
        lanes.copy_from_slice(&squares);
    }
    (extremes, Moments { count, mean, squares: total(lanes) })
}

/// Number of separate counts of each bin: most values are in a few bins, and increments of one count wait for each
/// other.
const COUNTS: usize = 4;

/// Returns the number of a value's bin by [`Extent::places`], or `none` if the value is not finite, without branches
/// and conversions that do not vectorise.
#[inline(always)]
fn place(value: f32, [scale, first]: [f64; 2], none: u32) -> u32 {
    // the last bits of the sum with this number are the nearest integer
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let scaled = f64::from(value) * scale;
    let nearest = (scaled + ROUND) - ROUND;
    let floor = nearest - if nearest > scaled { 1.0 } else { 0.0 };
    let number = (floor - first + ROUND).to_bits() as u32;
    if value.is_finite() { number } else { none }
}

/// Counts the values of a row in their bins, and those that are not finite after the last bin.
fn count_row(row: &[f32], places: [f64; 2], counts: &mut [[u32; COUNTS]]) {
    const BLOCK: usize = 2 * COUNTS;
    let none = counts.len() as u32 - 1;
    let blocks = row.chunks_exact(BLOCK);
    let remainder = blocks.remainder();
    for block in blocks {
        let mut bins = [0; BLOCK];
        (0..BLOCK).for_each(|i| bins[i] = place(block[i], places, none));
        (0..BLOCK).for_each(|i| counts[bins[i] as usize][i % COUNTS] += 1);
    }
    remainder.iter().for_each(|&value| counts[place(value, places, none) as usize][0] += 1);
}

impl Histogram {
    /// Returns the histogram of the values in rows of less than 2^32 values each, and the moments of each row. Values
    /// that are not finite are counted separately.
    pub fn of<'a>(rows: impl Iterator<Item = &'a [f32]> + Clone) -> (Histogram, Vec<Moments>) {
        let ([mut low, mut high], mut all) = ([f32::INFINITY, f32::NEG_INFINITY], 0);
        let mut moments = Vec::with_capacity(rows.size_hint().0);
        for row in rows.clone() {
            let (extremes, of_row) = of_row(row);
            (low, high) = (low.min(extremes[0]), high.max(extremes[1]));
            all += row.len() as u64;
            moments.push(of_row);
        }
        let finite: u64 = moments.iter().map(|row| row.count).sum();
        let non_finite = all - finite;
        let Some(extent) = Extent::new(low, high) else { return (Histogram { non_finite, bins: None }, moments) };
        let mut bins = Bins::new(extent);
        let mut counts = vec![[0u32; COUNTS]; bins.counts.len() + 1];
        let places = extent.places();
        rows.for_each(|row| count_row(row, places, &mut counts));
        for (sum, counts) in bins.counts.iter_mut().zip(&counts) {
            *sum = counts.iter().map(|&count| u64::from(count)).sum();
        }
        (Histogram { non_finite, bins: Some(bins) }, moments)
    }

    /// Creates a histogram from the counts of a device in the bins from the one of the smallest value on; `extent` is
    /// `None` without a finite value.
    pub fn counted(extent: Option<Extent>, non_finite: u64, counts: &[u32]) -> Histogram {
        let bins = extent.map(|extent| {
            let mut bins = Bins::new(extent);
            bins.counts.iter_mut().zip(counts).for_each(|(to, &count)| *to = count.into());
            bins
        });
        Histogram { non_finite, bins }
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.non_finite += other.non_finite;
        let Some(theirs) = &other.bins else { return };
        let Some(ours) = &mut self.bins else {
            self.bins = Some(theirs.clone());
            return;
        };
        let extent = ours.extent.with(theirs.extent);
        if extent != ours.extent {
            let mut wider = Bins::new(extent);
            wider.add(ours);
            *ours = wider;
        }
        ours.add(theirs);
    }

    /// Returns statistics of all values, whose moments are `moments`, and the counts.
    pub fn report(&self, moments: Moments) -> HistogramReport {
        let mut report = HistogramReport {
            count: 0,
            non_finite: self.non_finite,
            minimum: None,
            maximum: None,
            mean: None,
            standard_deviation: None,
            percentiles: Vec::new(),
            first_edge: None,
            bin_width: None,
            counts: Vec::new(),
        };
        let Some(Bins { extent, counts }) = &self.bins else { return report };
        let exponent = extent.exponent();
        let width = 2f64.powi(exponent);
        report.count = counts.iter().sum();
        report.minimum = Some(extent.low);
        report.maximum = Some(extent.high);
        report.mean = Some(moments.mean);
        report.standard_deviation = Some((moments.squares / moments.count as f64).sqrt());
        report.first_edge = Some(f64::from(extent.ends(exponent).0) * width);
        report.bin_width = Some(width);
        report.counts.clone_from(counts);
        report.percentiles = PERCENTILES.iter().filter_map(|&share| Some((share, report.percentile(share)?))).collect();
        report
    }
}

/// Number, mean and sum of squares about the mean of finite values.
///
/// Sums are rounded, so they depend on the order, which is that of the lanes of a row ([`LANES`]), then rows and slices
/// one after another. As this order is the same everywhere, the moments are as well.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub count: u64,
    pub mean: f64,
    pub squares: f64,
}

impl Sum for Moments {
    fn sum<I: Iterator<Item = Moments>>(parts: I) -> Moments {
        parts.fold(Moments::default(), Moments::with)
    }
}

/// Histogram and moments of a slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedSlice {
    pub histogram: Histogram,
    pub moments: Moments,
}

impl Moments {
    /// Returns the moments of both sets of values together.
    pub fn with(self, other: Moments) -> Moments {
        if other.count == 0 {
            return self;
        }
        let count = self.count + other.count;
        let share = other.count as f64 / count as f64;
        let step = other.mean - self.mean;
        Moments {
            count,
            mean: self.mean + step * share,
            squares: self.squares + other.squares + step * step * self.count as f64 * share,
        }
    }
}

/// Histogram as it is reported, with these names in JSON. Without finite values, numbers are `null` and there are no
/// bins.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistogramReport {
    /// Number of finite values, which is the sum of all counts.
    pub count: u64,
    /// Number of values that are infinite or NaN.
    pub non_finite: u64,
    pub minimum: Option<f32>,
    pub maximum: Option<f32>,
    pub mean: Option<f64>,
    /// Standard deviation of the population.
    pub standard_deviation: Option<f64>,
    /// Percentages, each with the value below which that share of the values lies; exact to a bin.
    #[serde(serialize_with = "by_name")]
    pub percentiles: Vec<(f64, f64)>,
    /// Lower edge of the first bin. Bin `i` contains the values from `first_edge + i * bin_width` up to that of the
    /// next bin.
    pub first_edge: Option<f64>,
    /// Width of a bin, a power of 2.
    pub bin_width: Option<f64>,
    pub counts: Vec<u64>,
}

fn by_name<S: Serializer>(percentiles: &[(f64, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(percentiles.iter().map(|(share, value)| (share.to_string(), value)))
}

impl HistogramReport {
    /// Returns the value that `share` percent of the values do not exceed: the bin follows from the counts, and the
    /// position in the bin from the rank.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let (first, width) = (self.first_edge?, self.bin_width?);
        let (low, high) = (f64::from(self.minimum?), f64::from(self.maximum?));
        let rank = ((share / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut before = 0;
        for (bin, &count) in self.counts.iter().enumerate() {
            if before + count >= rank {
                let inside = ((rank - before) as f64 - 0.5) / count as f64;
                return Some((first + (bin as f64 + inside) * width).clamp(low, high));
            }
            before += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f32]) -> Histogram {
        Histogram::of([values].into_iter()).0
    }

    fn report_of(values: &[f32]) -> HistogramReport {
        let (histogram, moments) = Histogram::of([values].into_iter());
        histogram.report(moments.into_iter().sum())
    }

    fn merged(parts: &[Histogram]) -> Histogram {
        parts.iter().fold(Histogram::default(), |mut all, part| {
            all.merge(part);
            all
        })
    }

    /// Returns values with any bits, and values like those of slices.
    fn value() -> impl Strategy<Value = f32> {
        prop_oneof![
            any::<u32>().prop_map(f32::from_bits),
            -1f32..2.0,
            Just(0.0),
            Just(-0.0),
            Just(f32::MAX),
            Just(f32::MIN),
            Just(f32::from_bits(1)),
            Just(f32::NAN),
        ]
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(values in prop::collection::vec(value(), 0..200), cuts in prop::collection::vec(0usize..200, 0..5)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(values.len())).collect();
            cuts.extend([0, values.len()]);
            cuts.sort_unstable();
            let mut parts: Vec<Histogram> = cuts.windows(2).map(|cut| of(&values[cut[0]..cut[1]])).collect();
            let full = of(&values);
            prop_assert_eq!(&merged(&parts), &full);
            parts.reverse();
            prop_assert_eq!(&merged(&parts), &full);
        }

        #[test]
        fn merging_is_associative_and_commutative(
            a in prop::collection::vec(value(), 0..50),
            b in prop::collection::vec(value(), 0..50),
            c in prop::collection::vec(value(), 0..50),
        ) {
            let (a, b, c) = (of(&a), of(&b), of(&c));
            let left = merged(&[merged(&[a.clone(), b.clone()]), c.clone()]);
            let right = merged(&[a.clone(), merged(&[b.clone(), c.clone()])]);
            prop_assert_eq!(&left, &right);
            prop_assert_eq!(merged(&[c, b, a]), left);
        }

        #[test]
        fn counts_are_exact(values in prop::collection::vec(value(), 0..300)) {
            let report = report_of(&values);
            let finite: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
            prop_assert_eq!(report.count, finite.len() as u64);
            prop_assert_eq!(report.non_finite, (values.len() - finite.len()) as u64);
            prop_assert_eq!(report.counts.iter().sum::<u64>(), report.count);
            prop_assert!(report.counts.len() <= BINS);
            let (Some(first), Some(width)) = (report.first_edge, report.bin_width) else {
                prop_assert!(finite.is_empty());
                return Ok(());
            };
            for (bin, &count) in report.counts.iter().enumerate() {
                let edge = first + bin as f64 * width;
                let inside = finite.iter().filter(|&&v| f64::from(v) >= edge && f64::from(v) < edge + width).count();
                prop_assert_eq!(count, inside as u64);
            }
            // the first and the last bin are in use, and there are as many bins as the data allow
            prop_assert!(report.counts[0] > 0 && *report.counts.last().unwrap() > 0);
            let (low, high) = (report.minimum.unwrap(), report.maximum.unwrap());
            let largest = low.abs().max(high.abs());
            let step = f64::from(f32::from_bits(largest.to_bits() + 1)) - f64::from(largest);
            prop_assert!(report.counts.len() > BINS / 2 || width <= step);
            let mut sorted = finite.clone();
            sorted.sort_unstable_by(f32::total_cmp);
            for (share, value) in report.percentiles {
                let rank = (share / 100.0 * finite.len() as f64).ceil().max(1.0) as usize;
                prop_assert!((value - f64::from(sorted[rank - 1])).abs() <= width);
            }
        }
    }

    #[test]
    fn constants_zeros_subnormal_and_huge_values() {
        for value in [1.0, -0.1, f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::from_bits(1), -f32::from_bits(7)] {
            let report = report_of(&[value; 5]);
            assert_eq!((report.minimum, report.maximum, &report.counts[..]), (Some(value), Some(value), &[5][..]));
            assert!(report.percentiles.iter().all(|&(_, v)| v == f64::from(value)), "{value:?}");
            assert_eq!((report.mean, report.standard_deviation), (Some(f64::from(value)), Some(0.0)));
            assert_eq!(report.first_edge, Some(f64::from(value)));
        }
        assert_eq!(of(&[0.0, -0.0]), of(&[-0.0, 0.0]));
        assert!(report_of(&[-0.0]).minimum.unwrap().is_sign_positive());
        let wide = report_of(&[f32::MIN, -f32::from_bits(1), 0.0, f32::MAX]);
        assert_eq!(wide.bin_width, Some(2f64.powi(117)));
        assert_eq!((wide.counts.len(), wide.counts[2047], wide.counts[2048]), (4096, 1, 1));
        // every subnormal number has a bin
        let all: Vec<f32> = (0..4096).map(f32::from_bits).collect();
        assert_eq!(report_of(&all).counts, [1; 4096]);
    }

    #[test]
    fn nothing_finite() {
        for values in [&[][..], &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]] {
            let report = report_of(values);
            assert_eq!((report.count, report.non_finite), (0, values.len() as u64));
            assert_eq!(
                (report.minimum, report.mean, report.first_edge, report.percentile(50.0)),
                (None, None, None, None)
            );
            assert!(report.counts.is_empty() && report.percentiles.is_empty());
        }
        assert_eq!(merged(&[of(&[f32::NAN]), of(&[1.0]), of(&[f32::NAN])]), of(&[f32::NAN, 1.0, f32::NAN]));
    }

    #[test]
    fn moments_of_parts() {
        let values: Vec<f32> = (0..1000).map(|i| 5.0 + (i as f32).sin()).collect();
        let of = |values: &[f32]| Histogram::of([values].into_iter()).1[0];
        let full = of(&values);
        let parts = values.chunks(300).fold(Moments::default(), |all, part| all.with(of(part)).with(of(&[f32::NAN])));
        assert_eq!(parts.count, 1000);
        assert!((parts.mean - full.mean).abs() < 1e-12 && (parts.squares - full.squares).abs() < 1e-9);
        let report = report_of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!((report.mean, report.standard_deviation), (Some(2.5), Some(1.25f64.sqrt())));
    }

    #[test]
    fn names_in_json() {
        let json = serde_json::to_string(&report_of(&[0.0, 1.0])).unwrap();
        assert!(json.starts_with(r#"{"count":2,"non_finite":0,"minimum":0.0,"maximum":1.0,"mean":0.5,"#), "{json}");
        assert!(json.contains(r#""percentiles":{"0.1":"#) && json.contains(r#""50":"#), "{json}");
    }
}

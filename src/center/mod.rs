//! Where the rotation axis is: methods on corrected sinograms, each with a verdict instead of a guess.
//!
//! Positions are bins, counted from the centre of bin 0 as in [`geometry`](crate::geometry). Every method computes a cost
//! for trial positions; [`curve`] finds its minimum and says whether there is one. What they use:
//!
//! * [`mirror`]: `h_p(x, y) - c` changes its sign when the angle grows by 180 degrees, so that a projection is the
//!   mirror image of the one on the other side. `registration` and `overlap` compare them.
//! * [`vo`]: a sinogram over a whole turn has no energy outside of a double wedge of its Fourier transform.
//! * [`sweep`]: a slice that is reconstructed with a wrong axis has more negative values than the right one.

mod curve;
mod mirror;
pub mod sweep;
mod vo;

pub use curve::{Curve, Minimum, Verdict};

use crate::error::{Error, Result};
use crate::geometry::default_axis;
use std::fmt;
use std::str::FromStr;

/// Two methods that differ by more than this many bins do not confirm each other.
pub const AGREEMENT: f64 = 1.0;

/// Rows whose mean profile varies less than this share of the best row's, as variance, hold no sample.
const EMPTY: f64 = 0.02;

/// Rows whose ends are below this share of their peak end in air.
const AIR: f64 = 0.1;

/// Narrowest range of a search in bins.
pub const NARROWEST: f64 = 4.0;

/// How the axis is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Projections half a turn apart, one of them mirrored, near the middle of the detector.
    Registration,
    /// Fourier metric of Vo, Drakopoulos, Atwood and Reinhard (2014).
    Vo,
    /// As registration, for whole turns, with the axis anywhere on the detector.
    Overlap,
    /// Negative values of trial slices: Donath, Beckmann and Schreyer (2006).
    Sweep,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 4] = [Method::Registration, Method::Vo, Method::Overlap, Method::Sweep];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Method::Registration => "registration",
            Method::Vo => "vo",
            Method::Overlap => "overlap",
            Method::Sweep => "sweep",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(word: &str) -> Result<Method> {
        Method::ALL.into_iter().find(|method| method.name() == word).ok_or_else(|| {
            let names = Method::ALL.map(Method::name).join(", ");
            Error::usage(format!("`{word}` is no way to search the axis; there are {names}"))
        })
    }
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub method: Method,
    /// Axis in bins; the best guess where the verdict is not [`Verdict::Ok`].
    pub value: f64,
    /// From 0 to 1: how much of the cost goes away at the minimum, less where sampled rows differ.
    pub confidence: f64,
    pub verdict: Verdict,
}

/// Corrected sinograms of sampled rows, in the order of their angles.
#[derive(Clone, Debug)]
pub struct Sinograms {
    bins: usize,
    /// Degrees, ascending.
    angles: Vec<f64>,
    /// `[projection][bin]` of each row.
    rows: Vec<Vec<f32>>,
}

impl Sinograms {
    /// Takes `[projection][bin]` line integrals of several rows, `bins` wide, at angles in degrees. Rows without a sample
    /// are left out.
    pub fn new(bins: usize, angles: &[f64], rows: &[&[f32]]) -> Sinograms {
        let mut order: Vec<usize> = (0..angles.len()).collect();
        order.sort_by(|&a, &b| angles[a].total_cmp(&angles[b]));
        let structure: Vec<f64> = rows.iter().map(|row| profile_variance(row, bins)).collect();
        let best = structure.iter().copied().fold(0.0, f64::max);
        let sorted = |row: &[f32]| order.iter().flat_map(|&p| &row[p * bins..(p + 1) * bins]).copied().collect();
        let kept = rows.iter().zip(&structure).filter(|(_, variance)| **variance > EMPTY * best);
        Sinograms {
            bins,
            angles: order.iter().map(|&p| angles[p]).collect(),
            rows: kept.map(|(row, _)| sorted(row)).collect(),
        }
    }

    /// Degrees from the first to the last projection.
    fn coverage(&self) -> f64 {
        self.angles.last().map_or(0.0, |last| last - self.angles[0])
    }

    /// Median step between projections in degrees.
    fn step(&self) -> f64 {
        let mut steps: Vec<f64> = self.angles.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.sort_by(f64::total_cmp);
        steps.get(steps.len() / 2).copied().unwrap_or(0.0)
    }

    /// Number of projections of the first half turn, its end not included.
    fn half_turn(&self) -> usize {
        let end = self.angles.first().map_or(0.0, |first| first + 180.0 - self.step() / 2.0);
        self.angles.partition_point(|angle| *angle < end)
    }

    /// Whether the sample lies within the field of view, so that rows end in air.
    fn within_view(&self) -> bool {
        self.rows.iter().all(|row| {
            let profile = profile(row, self.bins);
            let peak = profile.iter().copied().fold(0.0, f64::max);
            profile[0].abs().max(profile[self.bins - 1].abs()) < AIR * peak
        })
    }

    /// Whether the scan goes around whole turns, so that nearly every projection has one on the other side.
    fn whole_turn(&self) -> bool {
        self.coverage() + self.step() > 355.0
    }

    /// Means of `factor` bins, a part of them left out at the end. Bin `b` is at `factor * b + (factor - 1) / 2`.
    fn binned(&self, factor: usize) -> Sinograms {
        let bins = self.bins / factor;
        let reduce =
            |row: &[f32]| row.chunks_exact(factor).map(|part| part.iter().sum::<f32>() / factor as f32).collect();
        let row = |values: &Vec<f32>| {
            values.chunks(self.bins).flat_map(|row| -> Vec<f32> { reduce(&row[..bins * factor]) }).collect()
        };
        Sinograms { bins, angles: self.angles.clone(), rows: self.rows.iter().map(row).collect() }
    }
}

/// Sum of all projections.
fn profile(sinogram: &[f32], bins: usize) -> Vec<f64> {
    let mut profile = vec![0f64; bins];
    for row in sinogram.chunks(bins) {
        profile.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    profile
}

/// Variance over the bins of the sum of all projections.
fn profile_variance(sinogram: &[f32], bins: usize) -> f64 {
    let profile = profile(sinogram, bins);
    let mean = profile.iter().sum::<f64>() / bins as f64;
    profile.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / bins as f64
}

/// Where a method looks, in bins.
fn range_of(method: Method, bins: usize) -> (f64, f64) {
    let (middle, width) = (default_axis(bins), bins as f64);
    let reach = match method {
        // a few bins must be seen from both sides
        Method::Overlap => middle - (0.03 * width).max(6.0),
        _ => 0.25 * width,
    };
    (middle - reach, middle + reach)
}

/// Searches the axis with one method, within `range` (bins, both ends included) or where the method looks by itself.
///
/// # Errors
/// [`Error::Input`] when the scan has not what the method needs, [`Error::Usage`] for a range that is too narrow.
pub fn search(method: Method, sinograms: &Sinograms, range: Option<(f64, f64)>) -> Result<Found> {
    let last = sinograms.bins as f64 - 1.0;
    let (low, high) = range.unwrap_or(range_of(method, sinograms.bins));
    if low < 0.0 || high > last || high - low < NARROWEST {
        return Err(Error::usage(format!(
            "the axis is searched within bins 0 to {last}, over at least {NARROWEST} bins; {low} to {high} is not that"
        )));
    }
    if sinograms.rows.is_empty() {
        return Ok(Found { method, value: (low + high) / 2.0, confidence: 0.0, verdict: Verdict::Flat });
    }
    let minimum = match method {
        Method::Registration | Method::Overlap => mirror::search(sinograms, low, high)?,
        Method::Vo => vo::search(sinograms, low, high)?,
        Method::Sweep => sweep::search(sinograms, low, high),
    };
    Ok(Found { method, value: minimum.at, confidence: minimum.confidence, verdict: minimum.verdict })
}

/// Searches the axis with the two methods that suit the scan; the first is the answer, the second confirms it.
///
/// Whole turns: `overlap` and, where the sample is within the field of view, `vo` on one half; otherwise the two quarter
/// turns of pairs that `overlap` compares anyway confirm each other. Half a turn: `registration` and `vo`; `vo` and `sweep`
/// where a few degrees are missing. Where the two differ by more than [`AGREEMENT`], or the second finds nothing, the verdict is
/// [`Verdict::Ambiguous`].
///
/// # Errors
/// As [`search`].
pub fn auto(sinograms: &Sinograms, range: Option<(f64, f64)>) -> Result<Vec<Found>> {
    let methods: &[Method] = if sinograms.whole_turn() {
        if sinograms.within_view() { &[Method::Overlap, Method::Vo] } else { &[Method::Overlap] }
    } else if mirror::has_pairs(sinograms) {
        &[Method::Registration, Method::Vo]
    } else if vo::suits(sinograms) {
        &[Method::Vo, Method::Sweep]
    } else {
        return Err(Error::Input(format!(
            "rotation axis: the projections cover {:.1} degrees, and no two methods that could confirm each other work with \
             less than half a turn; try --method sweep (--center auto:sweep), or give --center in bins",
            sinograms.coverage()
        )));
    };
    let mut found = vec![search(methods[0], sinograms, range)?];
    if let (Some(&second), Verdict::Ok) = (methods.get(1), found[0].verdict) {
        // the second needs only look around the first, but wide enough to contradict it
        let second = search(second, sinograms, range.or(Some(around(found[0].value, sinograms.bins))))?;
        let agree = second.verdict == Verdict::Ok && (second.value - found[0].value).abs() <= AGREEMENT;
        if !agree {
            found[0].verdict = Verdict::Ambiguous;
        }
        found.push(second);
    }
    Ok(found)
}

/// An eighth of the detector on both sides, as far as there are bins.
fn around(value: f64, bins: usize) -> (f64, f64) {
    let reach = (bins as f64 / 8.0).max(NARROWEST);
    ((value - reach).max(0.0), (value + reach).min(bins as f64 - 1.0))
}

/// The axis that was found, or what to do instead.
///
/// # Errors
/// [`Error::Input`] unless the first verdict is [`Verdict::Ok`].
pub fn accept(found: &[Found]) -> Result<Found> {
    let Some(&first) = found.first() else {
        return Err(Error::Input("the axis was not searched".into()));
    };
    let Found { method, value, verdict, .. } = first;
    let others: Vec<String> =
        found[1..].iter().map(|other| format!(", {} {:.2} ({})", other.method, other.value, other.verdict)).collect();
    let (why, what) = match verdict {
        Verdict::Ok => return Ok(first),
        Verdict::Railed => (
            "the best position is at the end of the search range",
            "the axis may lie beyond: widen --search of fbp center, or give --center in bins",
        ),
        Verdict::Flat => (
            "no position is better than the others",
            "the sampled rows may be empty: choose --rows with a sample, check --flats and -log, or give --center in bins",
        ),
        Verdict::Ambiguous => (
            "there is no single best position",
            "look at trial slices with fbp center --sweep A..B:S --output DIR, narrow --search, or give --center in bins",
        ),
    };
    Err(Error::Input(format!("rotation axis: {verdict}: {why} ({method} {value:.2}{}); {what}", others.concat())))
}

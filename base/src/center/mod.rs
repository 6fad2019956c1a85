//! Search of the rotation axis: methods that work on corrected sinograms, each with a verdict on its result.
//!
//! Positions are bins, counted from the centre of bin 0 as in [`geometry`](crate::geometry). Every method computes a cost
//! for trial positions; [`curve`] finds its minimum and judges whether there is one. The methods:
//!
//! * [`likelihood`]: the evidence of all projections together; the answer, where nothing contradicts it.
//! * [`mirror`]: `h_p(x, y) - c` changes its sign when the angle increases by 180 degrees, so opposite projections are
//!   mirror images. `registration` and `overlap` compare them; `rings` compares the mean of all with its own mirror image,
//!   which is all that an inclined axis leaves.
//! * [`vo`]: a sinogram over 360 degrees has no energy outside a double wedge of its Fourier transform.
//! * [`sweep`]: a slice that is reconstructed with a wrong axis has more negative values than with the correct one.
//!
//! [`turn`] compares the first and last projections to check that the scan covers the given angles.

mod curve;
mod errors;
mod jitter;
mod likelihood;
mod mirror;
mod sinograms;
mod sweep;
mod tilt;
mod turn;
mod vo;
mod zingers;

pub use curve::{AGREEMENT, AxisVerdict, CostCurve, Curve, Minimum};
pub use sinograms::Sinograms;
pub use sweep::TrialScores;
pub use tilt::AxisTilt;
use turn::{ScanEnds, Turn, ends};

use crate::error::{Error, Result};
use crate::geometry::default_axis;
use errors::{AxisMethodError, AxisVerdictError};
use jitter::jitter;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Systematic error of a method in bins, as standard deviation, however well its data agree.
const BIAS: f64 = 0.1;

/// Largest uncertainty of the mean of two methods, and by jitter, in bins.
const CERTAIN: f64 = 0.2;

/// Rise of the cost at an axis, as a share of that to the median, above which mirrored projections contradict the axis.
const UNLIKE: f64 = 0.5;

/// Smallest number of projections, and of bins, from which an axis can be found.
const FEWEST: usize = 8;

/// Narrowest range of a search in bins.
pub const NARROWEST: f64 = 4.0;

/// A method that finds the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// [`likelihood`]: the evidence of all projections.
    Likelihood,
    /// Comparison of projections half a turn apart, one of them mirrored, near the middle of the detector.
    Registration,
    /// Fourier metric of Vo, Drakopoulos, Atwood and Reinhard (2014).
    Vo,
    /// Comparison as in [`Method::Registration`], for whole turns, with the axis anywhere on the detector.
    Overlap,
    /// Negative values of trial slices: Donath, Beckmann and Schreyer (2006).
    Sweep,
    /// Comparison of the mean of a whole turn with its mirror image; for an inclined axis, and for no other.
    Rings,
    /// Mean of methods that agree although none is certain enough by itself, each weighted by its variance.
    Weighted,
}

impl Method {
    /// Methods that can be requested.
    pub const ALL: [Method; 5] = [Method::Likelihood, Method::Registration, Method::Vo, Method::Overlap, Method::Sweep];

    /// Returns the names of the methods that can be requested, for messages.
    fn names() -> String {
        Method::ALL.map(Method::name).join(", ")
    }

    /// Returns the name of the method on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Method::Likelihood => "likelihood",
            Method::Registration => "registration",
            Method::Vo => "vo",
            Method::Overlap => "overlap",
            Method::Sweep => "sweep",
            Method::Rings => "rings",
            Method::Weighted => "weighted",
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
        let found = Method::ALL.into_iter().find(|method| method.name() == word);
        found.ok_or_else(|| AxisMethodError::Unknown { word: word.to_owned(), names: Method::names() }.into())
    }
}

/// The result of one method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisEstimate {
    pub method: Method,
    /// Axis in bins; the best guess where the verdict is not [`AxisVerdict::Ok`].
    pub value: f64,
    /// Standard deviation of the value in bins, estimated from differences between parts of the data.
    pub uncertainty: f64,
    /// Probability that the axis lies within half a bin of the value.
    pub mass: f64,
    pub verdict: AxisVerdict,
}

/// The default search range of a method, in bins.
fn range_of(method: Method, bins: usize) -> (f64, f64) {
    let (middle, width) = (default_axis(bins), bins as f64);
    let reach = match method {
        // some bins must be seen from both sides
        Method::Overlap => middle - (0.03 * width).max(6.0),
        _ => 0.25 * width,
    };
    (middle - reach, middle + reach)
}

/// The result of one method, with its costs.
struct Traced {
    estimate: AxisEstimate,
    costs: CostCurve,
    /// Second most likely position with its share of the likelihood of both; only from [`Method::Likelihood`].
    second: Option<(f64, f64)>,
    /// Tilt of the axis; only from [`Method::Likelihood`].
    tilt: Option<AxisTilt>,
}

impl Traced {
    fn new(method: Method, minimum: Minimum, costs: CostCurve) -> Traced {
        let Minimum { at, uncertainty, verdict, .. } = minimum;
        let mass = libm::erf(AGREEMENT / (std::f64::consts::SQRT_2 * uncertainty));
        let estimate = AxisEstimate { method, value: at, uncertainty, mass, verdict };
        Traced { estimate, costs, second: None, tilt: None }
    }
}

/// Finds the axis with one method, within `range` (bins, both ends included) or the default range of the method.
///
/// # Errors
/// [`Error::Input`] if the scan does not suit the method, [`Error::Usage`] for a range that is too narrow.
fn search(method: Method, sinograms: &Sinograms, range: Option<(f64, f64)>) -> Result<Traced> {
    let last = sinograms.bins as f64 - 1.0;
    let (low, high) = range.unwrap_or(range_of(method, sinograms.bins));
    if low < 0.0 || high > last || high - low < NARROWEST {
        return Err(AxisMethodError::Range { low, high, last, narrowest: NARROWEST }.into());
    }
    if sinograms.rows.is_empty() || sinograms.angles.len().min(sinograms.bins) < FEWEST {
        let verdict = AxisVerdict::Flat;
        let minimum = Minimum { at: (low + high) / 2.0, uncertainty: f64::INFINITY, confidence: 0.0, verdict };
        return Ok(Traced::new(method, minimum, CostCurve::default()));
    }
    let (minimum, costs) = match method {
        Method::Likelihood => {
            let likelihood::LikelyAxis { minimum, second, tilt, costs, .. } = likelihood::search(sinograms, range);
            // rows and bands share the jitter of projections, which therefore does not show in their spread
            let jitter = 2.0 * jitter(sinograms) / (sinograms.angles.len() as f64).sqrt();
            let traced = Traced::new(method, minimum, costs);
            let uncertainty = minimum.uncertainty.hypot(jitter);
            let shaken = minimum.verdict == AxisVerdict::Ok && jitter > CERTAIN;
            let verdict = if shaken { AxisVerdict::Uncertain } else { minimum.verdict };
            let estimate = AxisEstimate { uncertainty, mass: minimum.confidence, verdict, ..traced.estimate };
            return Ok(Traced { estimate, second, tilt, ..traced });
        }
        Method::Registration | Method::Overlap => mirror::search(sinograms, low, high)?,
        Method::Rings => mirror::rings(sinograms, low, high)?,
        Method::Vo => vo::search(sinograms, low, high)?,
        Method::Sweep => sweep::search(sinograms, low, high),
        Method::Weighted => return Err(AxisMethodError::Weighted { names: Method::names() }.into()),
    };
    Ok(Traced::new(method, minimum, costs))
}

/// Finds the axis by the likelihood and by the methods that may contradict or confirm it. The first result is the
/// answer.
///
/// The likelihood's answer stands unless mirrored projections, or `vo` on the first half of a whole turn, have a clear
/// minimum elsewhere, or mirrored projections do not look alike about it. If it is not ok, `vo` runs on half turns as
/// well. The answer is then the more certain one of the two results that agree best ([`confirm`]), unless another clear
/// result contradicts it. Otherwise it is the weighted mean of all results if they agree, or of the results of the
/// other methods if these agree and the likelihood does not exclude their mean.
///
/// # Errors
/// Errors as of [`search`].
fn auto(sinograms: &Sinograms, range: Option<(f64, f64)>) -> Result<AxisSearch> {
    let Traced { estimate, costs, second, tilt } = search(Method::Likelihood, sinograms, range)?;
    // results that the likelihood does not exclude
    let possible = |found: &AxisEstimate| costs.rise(found.value).is_some_and(|rise| rise < likelihood::GAP);
    let mut found = vec![estimate];
    let answer = |found| AxisSearch { found, note: None, second, tilt };
    let mirrored = if sinograms.whole_turn() { Method::Overlap } else { Method::Registration };
    let mut unlikely = false;
    if mirror::has_pairs(sinograms) {
        let Traced { estimate, costs, .. } = search(mirrored, sinograms, range)?;
        unlikely = estimate.verdict != AxisVerdict::Flat
            && (estimate.value - found[0].value).abs() > 2.0 * AGREEMENT
            && costs.rank(found[0].value).is_some_and(|rank| rank > UNLIKE);
        found.push(estimate);
    }
    let whole = sinograms.whole_turn() && sinograms.within_view();
    let suits = vo::suits(sinograms) && (whole || !sinograms.whole_turn());
    let clear = |found: &AxisEstimate| found.verdict == AxisVerdict::Ok;
    let apart = |a: &AxisEstimate, b: &AxisEstimate| (a.value - b.value).abs() > 2.0 * AGREEMENT;
    // of a whole turn, `vo` sees only the first half, which must agree with the other methods; all methods but the
    // likelihood assume one axis for all rows and cannot confirm a tilted one
    let tilted = tilt.is_some_and(|tilt| tilt.slope != 0.0);
    if suits && !tilted && (whole || !clear(&found[0])) {
        found.push(search(Method::Vo, sinograms, range)?.estimate);
    }
    if clear(&found[0]) {
        if unlikely || found[1..].iter().any(|other| clear(other) && apart(other, &found[0])) {
            found[0].verdict = AxisVerdict::Ambiguous;
        }
        return Ok(answer(found));
    }
    if tilted {
        return Ok(answer(found));
    }
    let distance = |&(a, b): &(usize, usize)| (found[a].value - found[b].value).abs();
    let pairs = (0..found.len()).flat_map(|a| (a + 1..found.len()).map(move |b| (a, b)));
    let best = pairs.filter(|&(a, b)| confirm(&found[a], &found[b])).min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let contradicted = |(a, _): &(usize, usize)| found.iter().any(|other| clear(other) && apart(other, &found[*a]));
    if let Some((a, b)) = best.filter(|pair| !contradicted(pair)) {
        let doubt = |i: &usize| (!clear(&found[*i]), found[*i].uncertainty);
        let better = if doubt(&a) <= doubt(&b) { a } else { b };
        found.swap(0, better);
    } else if let Some(mean) = weighted(&found).or_else(|| weighted(&found[1..]).filter(possible)) {
        found.insert(0, mean);
    }
    Ok(answer(found))
}

/// Reports whether a method found an axis, even if an uncertain one.
fn found_something(found: &AxisEstimate) -> bool {
    matches!(found.verdict, AxisVerdict::Ok | AxisVerdict::Uncertain | AxisVerdict::Ambiguous)
}

/// Returns the variance of a result in square bins.
fn variance(found: &AxisEstimate) -> f64 {
    found.uncertainty.powi(2) + BIAS.powi(2)
}

/// Reports whether the results of two methods agree.
fn agree(a: &AxisEstimate, b: &AxisEstimate) -> bool {
    (a.value - b.value).abs() <= AGREEMENT.min(3.0 * (variance(a) + variance(b)).sqrt())
}

/// Reports whether the results of two methods agree and at least one of them is clear.
fn confirm(a: &AxisEstimate, b: &AxisEstimate) -> bool {
    let clear = a.verdict == AxisVerdict::Ok || b.verdict == AxisVerdict::Ok;
    clear && found_something(a) && found_something(b) && agree(a, b)
}

/// Returns the mean of results that all agree, weighted by their inverse variances, if it is certain enough or there
/// are at least three.
fn weighted(found: &[AxisEstimate]) -> Option<AxisEstimate> {
    let usable: Vec<&AxisEstimate> = found.iter().filter(|found| found_something(found)).collect();
    let all_agree = usable.iter().enumerate().all(|(i, a)| usable[..i].iter().all(|b| agree(a, b)));
    if usable.len() < 2 || !all_agree {
        return None;
    }
    let weights: f64 = usable.iter().map(|found| variance(found).recip()).sum();
    let mean =
        |of: fn(&AxisEstimate) -> f64| usable.iter().map(|found| of(found) / variance(found)).sum::<f64>() / weights;
    let uncertainty = weights.recip().sqrt();
    (uncertainty <= CERTAIN || usable.len() > 2).then(|| AxisEstimate {
        method: Method::Weighted,
        value: mean(|found| found.value),
        uncertainty,
        mass: libm::erf(AGREEMENT / (std::f64::consts::SQRT_2 * uncertainty)),
        verdict: AxisVerdict::Ok,
    })
}

/// Returns the range of an eighth of the detector on either side of a position, clipped to the detector.
fn around(value: f64, bins: usize) -> (f64, f64) {
    let reach = (bins as f64 / 8.0).max(NARROWEST);
    ((value - reach).max(0.0), (value + reach).min(bins as f64 - 1.0))
}

/// The results of a search.
#[derive(Clone, Debug)]
pub struct AxisSearch {
    /// Results of the methods; the first is the answer.
    pub found: Vec<AxisEstimate>,
    /// Note for the user.
    pub note: Option<&'static str>,
    /// Second most likely position in bins, where it cannot be excluded, and its share of the likelihood of both.
    pub second: Option<(f64, f64)>,
    /// Change of the axis from row to row; `None` from fewer than three rows.
    pub tilt: Option<AxisTilt>,
}

/// Finds the axis with one method, or with those that suit the scan. If the first and last projections contradict the
/// angles, every verdict is [`AxisVerdict::Angles`].
///
/// # Errors
/// [`Error::Input`] if the scan does not suit the method, [`Error::Usage`] for a range that is too narrow.
pub fn find(sinograms: &Sinograms, method: Option<Method>, range: Option<(f64, f64)>) -> Result<AxisSearch> {
    let mut answer = match method {
        Some(method) => {
            let Traced { estimate, second, tilt, .. } = search(method, sinograms, range)?;
            AxisSearch { found: vec![estimate], note: None, second, tilt }
        }
        None => auto(sinograms, range)?,
    };
    let (contradicted, note) = judge(sinograms);
    if contradicted {
        answer.found.iter_mut().for_each(|found| found.verdict = AxisVerdict::Angles);
    }
    Ok(AxisSearch { note, ..answer })
}

/// Reports whether the first and last projections contradict the angles, with a note on them for the user.
fn judge(sinograms: &Sinograms) -> (bool, Option<&'static str>) {
    match ends(sinograms) {
        ScanEnds::Consistent => (false, None),
        ScanEnds::Suggest(Turn::Whole) => (
            true,
            Some(
                "the last projection is next to the first one: the scan seems to cover 360 degrees (--overall-angle \
                 360)",
            ),
        ),
        ScanEnds::Suggest(Turn::Half) => (
            true,
            Some(
                "the last projection is next to the mirror image of the first one: the scan seems to cover 180 degrees \
                 (--overall-angle 180)",
            ),
        ),
        ScanEnds::Unrelated => (
            false,
            Some(
                "the last projection matches neither the first one, as after 360 degrees, nor its mirror image, as \
                 after 180: check --overall-angle or --angles, or whether the sample moved",
            ),
        ),
    }
}

/// Applies every method to the same data on its own, within `range` or the method's default range, in the order of
/// [`Method::ALL`]. The outcome is an error where the method does not suit the scan. `sweep` is easily misled, so it
/// only searches near a clear result of another method. The note is that of [`find`].
pub fn survey(sinograms: &Sinograms, range: Option<(f64, f64)>) -> (Vec<AxisSurvey>, Option<&'static str>) {
    let (contradicted, note) = judge(sinograms);
    let mut surveys: Vec<AxisSurvey> = Vec::new();
    for method in Method::ALL {
        let clear = surveys.iter().filter_map(|survey| survey.outcome.as_ref().ok());
        let clear = clear.map(|(found, _)| found).find(|found| found.verdict == AxisVerdict::Ok);
        let near = clear.filter(|_| method == Method::Sweep).map(|found| around(found.value, sinograms.bins));
        let outcome = search(method, sinograms, range.or(near)).map(|found| (found.estimate, found.costs));
        surveys.push(AxisSurvey { method, outcome });
    }
    if contradicted {
        let found = surveys.iter_mut().filter_map(|survey| survey.outcome.as_mut().ok());
        found.for_each(|(found, _)| found.verdict = AxisVerdict::Angles);
    }
    (surveys, note)
}

/// Returns the scores of trial axes in bins, ascending, from the middle one of the sampled rows, as the method `sweep`
/// measures them; `None` if there are too few projections or bins, or no sample in the row.
pub fn trial_scores(sinograms: &Sinograms, axes: &[f64]) -> Option<TrialScores> {
    let enough = !sinograms.rows.is_empty() && sinograms.angles.len().min(sinograms.bins) >= FEWEST;
    enough.then(|| sweep::scores(sinograms, axes))
}

/// The outcome of one method, with the costs that led there.
pub struct AxisSurvey {
    pub method: Method,
    pub outcome: Result<(AxisEstimate, CostCurve)>,
}

/// Returns the axis that was found, or an error that tells the user how to proceed.
///
/// # Errors
/// [`Error::Input`] unless the first verdict is [`AxisVerdict::Ok`].
pub fn accept(search: &AxisSearch) -> Result<AxisEstimate> {
    let Some(&first) = search.found.first() else {
        return Err(Error::Internal("no method was used to find the axis".into()));
    };
    let all: Vec<String> = search.found.iter().map(AxisEstimate::to_string).collect();
    let results = all.join(", ");
    let error = match first.verdict {
        AxisVerdict::Ok => return Ok(first),
        AxisVerdict::Railed => AxisVerdictError::Railed { results },
        AxisVerdict::Flat => AxisVerdictError::Flat { results },
        AxisVerdict::Ambiguous => {
            let (trials, choice) = next_steps(search, first);
            AxisVerdictError::Ambiguous { results, trials, choice }
        }
        AxisVerdict::Uncertain => {
            let (trials, choice) = next_steps(search, first);
            AxisVerdictError::Uncertain { results, trials, choice }
        }
        AxisVerdict::Angles => AxisVerdictError::Angles { results },
    };
    Err(error.into())
}

/// Returns the trial slices about the position of a search that is in doubt, as `--sweep` takes them; `None` also where the axis
/// is inclined, which `fbp center` does not know.
pub fn next_sweep(search: &AxisSearch) -> Option<String> {
    let first = search.found.first()?;
    let in_doubt = matches!(first.verdict, AxisVerdict::Ambiguous | AxisVerdict::Uncertain);
    (in_doubt && first.method != Method::Rings).then(|| sweep_about(first.value, first))
}

fn sweep_about(at: f64, found: &AxisEstimate) -> String {
    let reach = (3.0 * found.uncertainty).clamp(2.0, 8.0).ceil();
    let step = if reach > 4.0 { "1" } else { "0.5" };
    format!("{}..{}:{step}", (at - reach).floor().max(0.0), (at + reach).ceil())
}

/// Returns the flags that show trial slices about the most likely positions, and what takes the likelier one.
fn next_steps(search: &AxisSearch, first: AxisEstimate) -> (String, String) {
    if first.method == Method::Rings {
        let positions = sweep_about(first.value, &first).replace("..", "..=");
        let trials = format!("fbp trials --vary center={positions} --output trials.html");
        return (trials, format!("the likeliest with --center {:.2}", first.value));
    }
    let around = |at: f64| format!("--sweep {}", sweep_about(at, &first));
    let mut trials = format!("fbp center {} --output trials.html", around(first.value));
    if let Some((at, share)) = search.second {
        let percent = |share: f64| (100.0 * share).round();
        trials += &format!(
            ", or {} (likely: {:.2}, {} %, and {at:.2}, {} %)",
            around(at),
            first.value,
            percent(1.0 - share),
            percent(share)
        );
    }
    let clear = search.found.iter().find(|found| found.verdict == AxisVerdict::Ok);
    let choice = match clear.filter(|found| Method::ALL.contains(&found.method)) {
        Some(found) => format!("what one method is sure of with --center auto:{}", found.method),
        None => format!("the likeliest with --center {:.2}", first.value),
    };
    (trials, choice)
}

impl fmt::Display for AxisEstimate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {:.2} +- {:.2} ({})", self.method, self.value, self.uncertainty, self.verdict)
    }
}

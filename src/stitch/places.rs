//! Where parts lie beside each other: given, or found in what their projections share; and how their levels and axes differ.

use super::errors::{OverlapError, StitchError, StitchFlagError};
use super::frames::{Place, ScanPart};
use super::overlap::{ChangeLines, FoundShift, NoShift, REACH, ShiftSums, find};
use crate::error::Result;
use crate::recipe::{Distance, Join};
use crate::units::Length;
use rayon::prelude::*;
use std::ops::Range;

/// Number of projections in which parts are compared.
const SAMPLED: usize = 24;
/// Smallest number of pixels in which an overlap is found.
const LEAST: usize = 2 * REACH + 4;
/// Share of a part that is not looked at for an overlap with the next: what is at rest on the detector is the same at 0.
const LEAST_STEP: f64 = 0.1;
/// Largest difference of axes that is looked for, in bins, and as a share of a row.
const MOST_BINS: usize = 64;
const MOST_OF_ROW: usize = 4;
/// Smallest difference of axes that is corrected: in bins, and in standard deviations.
const LEAST_BINS: f64 = 0.1;
const LEAST_DEVIATIONS: f64 = 3.0;
/// Remainder of a position that is rounding.
const ROUNDING: f64 = 1e-6;

/// How a part lies beside the one before it in the order of the flag.
pub(super) struct PartStep {
    /// Rows or bins from the beginning of one to that of the next.
    pub pixels: f64,
    /// Standard deviation, if it was found.
    pub uncertainty: Option<f64>,
}

/// What two parts show in what they share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// Level of the first over that of the second, and its standard deviation.
    pub level: f64,
    pub level_uncertainty: f64,
    /// Bins by which the axis of the second is further left on its detector.
    pub bins: f64,
}

impl Join {
    pub(super) fn flag(self) -> &'static str {
        if self == Join::Rows { "stack" } else { "side-by-side" }
    }

    fn unit(self) -> &'static str {
        if self == Join::Rows { "rows" } else { "bins" }
    }

    fn length(self, part: &ScanPart) -> usize {
        let (bins, rows) = part.size();
        if self == Join::Rows { rows } else { bins }
    }

    /// Returns an overlap or a step as its flag takes it.
    fn instead(self) -> &'static str {
        if self == Join::Rows { "--z-step ROWS" } else { "--overlap BINS" }
    }
}

/// Returns the steps between parts, given or found; `pixel_size` is in metres.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) where an overlap is not certain; errors of reading.
pub(super) fn steps(
    join: Join,
    distance: &Distance,
    parts: &[ScanPart],
    pixel_size: Option<f64>,
) -> Result<Vec<PartStep>> {
    let pairs = parts.len() - 1;
    let given = |pixels: f64| PartStep { pixels, uncertainty: None };
    // one for all, or one for each
    let of = |count: usize, pair: usize| if count == 1 { 0 } else { pair };
    match distance {
        Distance::Auto => parts.windows(2).map(|pair| found(join, &pair[0], &pair[1])).collect(),
        Distance::Pixels(values) if join == Join::Rows => {
            Ok((0..pairs).map(|pair| given(values[of(values.len(), pair)])).collect())
        }
        Distance::Pixels(values) => {
            let step = |pair: usize| {
                let (overlap, bins) = (values[of(values.len(), pair)], join.length(&parts[pair]));
                let least = bins.min(join.length(&parts[pair + 1])) as f64;
                match overlap < least {
                    true => Ok(given(bins as f64 - overlap)),
                    false => Err(StitchError::NoOverlap { overlap, bins }.into()),
                }
            };
            (0..pairs).map(step).collect()
        }
        Distance::Lengths(values) => {
            let step = |pair: usize| {
                let (negative, length) = &values[of(values.len(), pair)];
                let rows = rows_of(length, pixel_size)?;
                Ok(given(if *negative { -rows } else { rows }))
            };
            (0..pairs).map(step).collect()
        }
    }
}

fn rows_of(length: &Length, pixel_size: Option<f64>) -> Result<f64> {
    let metres = length.metres().ok_or_else(|| StitchFlagError::NoUnit { step: length.to_string() })?;
    Ok(metres / pixel_size.ok_or(StitchFlagError::NoPixelSize)?)
}

/// Returns the numbers of projections in which parts are compared.
fn sampled(part: &ScanPart) -> Vec<usize> {
    let all = part.stacks.data.len();
    let count = SAMPLED.min(all);
    (0..count).map(|i| (2 * i + 1) * all / (2 * count)).collect()
}

/// Compares some rows of two parts in projections at every shift along rows or bins.
fn compared(parts: [(&ScanPart, Range<usize>); 2], along: Join, shifts: &[i64]) -> Result<Vec<ShiftSums>> {
    let of_projection = |&projection: &usize| {
        let lines = |(part, rows): &(&ScanPart, Range<usize>)| -> Result<ChangeLines> {
            Ok(ChangeLines::of(&part.transmissions(projection, rows)?, part.size().0, along))
        };
        Ok(ShiftSums::of(&lines(&parts[0])?, &lines(&parts[1])?, shifts))
    };
    sampled(parts[0].0).par_iter().map(of_projection).collect()
}

/// Finds the step between two parts.
fn found(join: Join, first: &ScanPart, second: &ScanPart) -> Result<PartStep> {
    let [one, two] = [first, second].map(|part| join.length(part));
    let flag = join.flag();
    let names = || (first.name.clone(), second.name.clone());
    let step = |length: usize| ((LEAST_STEP * length as f64).ceil() as i64).max(1);
    let mut shifts: Vec<i64> = (step(one)..=one as i64 - LEAST as i64).collect();
    if join == Join::Rows {
        // the next part may be above
        shifts.splice(0..0, -(two as i64 - LEAST as i64)..=-step(two));
    }
    if one.min(two) < 2 * LEAST {
        let ((first, second), pixels) = (names(), one.min(two));
        let (unit, instead) = (join.unit(), join.instead());
        return Err(OverlapError::TooSmall { flag, first, second, pixels, unit, instead }.into());
    }
    let whole = |part: &ScanPart| 0..part.size().1;
    let sums = compared([(first, whole(first)), (second, whole(second))], join, &shifts)?;
    // as the flag takes it
    let value = |shift: f64| match join {
        Join::Rows => format!("--z-step {shift}"),
        Join::Bins => format!("--overlap {}", one as f64 - shift),
    };
    let error = |why: NoShift| {
        let ((first, second), instead) = (names(), join.instead());
        match why {
            NoShift::Unlike(likeness) => {
                let place = if join == Join::Rows { "rows" } else { "bins" };
                OverlapError::Unlike { flag, first, second, likeness, place, instead }
            }
            NoShift::Faint => OverlapError::Faint { flag, first, second, instead },
            NoShift::Ambiguous(shifts) => {
                let candidates: Vec<String> = shifts.iter().map(|&shift| value(shift as f64)).collect();
                OverlapError::Ambiguous { flag, first, second, candidates: candidates.join(", ") }
            }
            NoShift::Uncertain(FoundShift { shift, uncertainty }) => {
                let found = value(shift);
                OverlapError::Uncertain { flag, first, second, found, uncertainty, instead }
            }
        }
    };
    let FoundShift { shift, uncertainty } = find(&shifts, &sums).map_err(error)?;
    Ok(PartStep { pixels: shift, uncertainty: Some(uncertainty) })
}

/// Returns the order of parts by their places, and these, with the levels and axes as they are.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) where parts leave a gap, or are not in order.
pub(super) fn places(join: Join, parts: &[ScanPart], steps: &[PartStep]) -> Result<(Vec<usize>, Vec<Place>)> {
    let mut at = vec![0f64];
    for step in steps {
        at.push(at[at.len() - 1] + step.pixels);
    }
    let down = steps.iter().all(|step| step.pixels > 0.0);
    if let (false, Some(pair)) = (down, steps.iter().position(|step| step.pixels >= 0.0)) {
        let [first, second] = [pair, pair + 1].map(|part| parts[part].name.clone());
        return Err(StitchError::Order { first, second }.into());
    }
    let order: Vec<usize> = if down { (0..parts.len()).collect() } else { (0..parts.len()).rev().collect() };
    let least = at.iter().copied().fold(f64::INFINITY, f64::min);
    let place = |&part: &usize| {
        let (at, length) = (at[part] - least, join.length(&parts[part]));
        match join {
            Join::Rows => Place { first: at.round() as usize, count: length, offset: 0.0, level: 1.0 },
            Join::Bins => {
                let whole = (at + ROUNDING).floor();
                let rest = at - whole;
                match rest < ROUNDING {
                    true => Place { first: whole as usize, count: length, offset: 0.0, level: 1.0 },
                    // only bins between two of the part
                    false => Place { first: whole as usize + 1, count: length - 1, offset: 1.0 - rest, level: 1.0 },
                }
            }
        }
    };
    let places: Vec<Place> = order.iter().map(place).collect();
    let (flag, name) = (join.flag(), |place: usize| parts[order[place]].name.clone());
    for i in 1..places.len() {
        let (before, here) = (places[i - 1], places[i]);
        if here.first > before.end() {
            let (pixels, unit, instead) = (here.first - before.end(), join.unit(), join.instead());
            return Err(StitchError::Gap { flag, first: name(i - 1), second: name(i), pixels, unit, instead }.into());
        }
        if here.first <= before.first || here.end() <= before.end() {
            return Err(StitchError::Order { first: name(i - 1), second: name(i) }.into());
        }
        if i > 1 && places[i - 2].end() > here.first {
            return Err(StitchError::Thrice { flag, first: name(i - 2), third: name(i) }.into());
        }
    }
    Ok((order, places))
}

/// Where a part shows what it shares with another: rows or bins one apart, the first of which may be between two of the part.
struct SharedWindow {
    start: f64,
    count: usize,
}

/// What a part has within its window, and by how much that grows if the window is moved by a pixel.
#[derive(Clone, Copy)]
struct WindowSum {
    sum: f64,
    growth: f64,
}

impl SharedWindow {
    /// Adds up a part's transmissions of a projection, interpolated linearly.
    fn sum(&self, join: Join, part: &ScanPart, projection: usize) -> Result<WindowSum> {
        let whole = self.start.floor();
        let rest = self.start - whole;
        let seen = whole as usize..whole as usize + self.count + usize::from(rest > 0.0);
        let (bins, rows) = part.size();
        let pixels: Vec<f64> = match join {
            Join::Rows => {
                let values = part.transmissions(projection, &seen)?;
                values.chunks(bins).map(|line| line.iter().copied().map(f64::from).sum()).collect()
            }
            Join::Bins => {
                let values = part.transmissions(projection, &(0..rows))?;
                let mut sums = vec![0f64; seen.len()];
                for line in values.chunks(bins) {
                    sums.iter_mut().zip(&line[seen.clone()]).for_each(|(sum, value)| *sum += f64::from(*value));
                }
                sums
            }
        };
        let growth = pixels[pixels.len() - 1] - pixels[0];
        let sum = pixels[..self.count].iter().sum::<f64>() + if rest > 0.0 { rest * growth } else { 0.0 };
        Ok(WindowSum { sum, growth })
    }
}

/// Compares what two parts share at their places; `first` and `second` are in the order of the flag, and `step` is between
/// them.
///
/// # Errors
/// Errors of reading.
pub(super) fn shared(
    join: Join,
    first: (&ScanPart, &Place),
    second: (&ScanPart, &Place),
    step: &PartStep,
) -> Result<Shared> {
    let [a, b] = [first, second].map(|(_, place)| place.first..place.end());
    let both = a.start.max(b.start)..a.end.min(b.end);
    let none = Shared { level: 1.0, level_uncertainty: 0.0, bins: 0.0 };
    if both.is_empty() {
        return Ok(none);
    }
    // parts lie at whole rows, and show what is this many rows further
    let further = match join {
        Join::Rows => step.pixels - (b.start as f64 - a.start as f64),
        Join::Bins => 0.0,
    };
    // both parts have the rows around those of the window
    let margin = usize::from(further.abs() > ROUNDING && both.len() > 2);
    let further = if margin == 0 { 0.0 } else { further };
    let count = both.len() - 2 * margin;
    let window = |place: &Place, further: f64| {
        let start = (both.start + margin - place.first) as f64 + place.offset - further;
        SharedWindow { start: if (start - start.round()).abs() < ROUNDING { start.round() } else { start }, count }
    };
    let windows = (window(first.1, 0.0), window(second.1, further));
    let sums = |&projection: &usize| -> Result<[WindowSum; 2]> {
        Ok([windows.0.sum(join, first.0, projection)?, windows.1.sum(join, second.0, projection)?])
    };
    let sums: Vec<[WindowSum; 2]> = sampled(first.0).par_iter().map(sums).collect::<Result<_>>()?;
    let all = |of: fn(&[WindowSum; 2]) -> f64| sums.iter().map(of).sum::<f64>();
    let [one, two] = [all(|[one, _]| one.sum), all(|[_, two]| two.sum)];
    let (level, level_uncertainty) = match one > 0.0 && two > 0.0 {
        true => {
            let of_place = one / two * all(|[_, two]| two.growth) / two * step.uncertainty.unwrap_or(0.0);
            (one / two, deviation(&sums, one / two).hypot(of_place))
        }
        false => (1.0, 0.0),
    };
    let bins = match join {
        Join::Rows => {
            let rows = |place: &Place| both.start - place.first..both.end - place.first;
            sideways([(first.0, rows(first.1)), (second.0, rows(second.1))])?
        }
        Join::Bins => 0.0,
    };
    Ok(Shared { level, level_uncertainty, bins })
}

/// Returns the standard deviation of a ratio of sums, from how those of projections differ.
fn deviation(sums: &[[WindowSum; 2]], ratio: f64) -> f64 {
    let count = sums.len() as f64;
    let mean = sums.iter().map(|[_, two]| two.sum).sum::<f64>() / count;
    let squares: f64 = sums.iter().map(|[one, two]| ((one.sum - ratio * two.sum) / mean).powi(2)).sum();
    (squares / (count * (count - 1.0).max(1.0))).sqrt()
}

/// Returns the bins by which what two parts show in rows that they share differs, if it does by more than chance.
fn sideways(parts: [(&ScanPart, Range<usize>); 2]) -> Result<f64> {
    let bins = parts[0].0.size().0;
    let most = MOST_BINS.min(bins / MOST_OF_ROW) as i64;
    let shifts: Vec<i64> = (-most..=most).collect();
    let sums = compared(parts, Join::Bins, &shifts)?;
    Ok(match find(&shifts, &sums) {
        Ok(FoundShift { shift, uncertainty })
            if shift.abs() >= LEAST_BINS && shift.abs() >= LEAST_DEVIATIONS * uncertainty =>
        {
            shift
        }
        _ => 0.0,
    })
}

//! Geometry of a scan, and the definition of its conventions.
//!
//! * A sinogram is `s[p][b]`: projection `p` in `0..P`, detector bin `b` in `0..B`. A projection image is
//!   `i[row][b]`; slice `z` comes from row `z` of every projection.
//! * Coordinates are **pixel-centre indices**: the centre of bin `b` is at the real number `b`. The rotation
//!   axis is at bin `c`, by default the middle of the detector, `c = (B - 1) / 2`.
//! * A slice is `N x N` pixels (by default `N = B`); pixel `(x, y)` has its centre at the integers, `y` grows
//!   downwards, and the axis passes through `x0 = y0 = (N - 1) / 2`. A region of interest is a crop: it moves no pixel.
//! * The ray through a pixel meets the detector at (equation 1 of the paper, with the axis and the shift `d_p`)
//!   `h_p(x, y) = c + d_p + (x - x0) cos(theta_p) - (y - y0) sin(theta_p)`.
//! * Angles are given in degrees; by default `theta_p = start + p * overall / P`, overall 180, end excluded.
//! * Linear interpolation of the filtered row `q` at `h`: with `i = floor(h)`, `w = h - i` the value is
//!   `(1 - w) q[i] + w q[i + 1]`; nearest: `q[floor(h + 1/2)]`. Bins outside `0..B` count as 0.
//! * `f(x, y) = sum_p w_p q_p(h_p(x, y))`, see [`weights`] for `w_p`.
//!
//! Everything here is `f64`; values for the kernels are rounded once, from numbers that are kept small
//! (see [`Geometry::block_offsets`]).

mod coverage;
mod errors;
mod extended;
mod grid;
mod gridding;
mod lamino;

pub use coverage::Coverage;
pub use extended::{ExtendedField, widest_gap};
pub use grid::{ACCURACIES, FrequencyGrid, GRID_LENGTHS, GridSides, KERNEL_WIDTHS, coefficients};
pub use gridding::{Segment, SplitTile, Spreading, Tile, Tiling};
pub use lamino::{Lamino, LaminoTables, SliceGroups};

use crate::error::{Error, Result};
use crate::files::excerpt;
use errors::{NumbersError, RoiError};
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::f64::consts::PI;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The weighting of projections in the sum.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum AngleWeights {
    /// Half the distance to both neighbours on the circle modulo 180 degrees.
    #[default]
    Spacing,
    /// `pi / P` for every projection, whatever the angles.
    Uniform,
}

/// A rectangle of pixels inside the `N x N` slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub struct Roi {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

/// Formats the region as `--roi` takes it.
impl fmt::Display for Roi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},{}", self.x, self.y, self.width, self.height)
    }
}

/// Parses the region as `--roi` takes it.
impl FromStr for Roi {
    type Err = Error;

    fn from_str(text: &str) -> Result<Roi> {
        let parts: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        match parts.as_deref() {
            Some(&[x, y, width, height]) if width > 0 && height > 0 => Ok(Roi { x, y, width, height }),
            _ => Err(RoiError::Malformed { text: text.to_owned() }.into()),
        }
    }
}

impl Roi {
    /// Returns the whole slice of side `size`.
    pub fn full(size: usize) -> Self {
        Roi { x: 0, y: 0, width: size, height: size }
    }

    /// Returns the number of pixels.
    pub fn pixels(&self) -> usize {
        self.width * self.height
    }

    /// First pixel of block (0, 0), and the number of blocks in x and y that cover the rectangle.
    pub fn block_grid(&self, block: [usize; 2]) -> ([usize; 2], [usize; 2]) {
        let origin = [self.x / block[0] * block[0], self.y / block[1] * block[1]];
        let blocks = [
            (self.x + self.width - origin[0]).div_ceil(block[0]),
            (self.y + self.height - origin[1]).div_ceil(block[1]),
        ];
        (origin, blocks)
    }
}

/// The part of a pass that a device processes at a time: all of it, or as much as its memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Number of projections per part; the sums of the parts are added up.
    pub projections: usize,
    /// Number of rows of pixels per band; a slice is computed band by band.
    pub rows: usize,
}

/// Divisor of the number of projections of a part, as kernels read several projections at a time.
const PART: usize = 16;

impl Cut {
    /// Returns the cut that processes everything at once.
    pub fn whole(geometry: &Geometry) -> Cut {
        Cut { projections: geometry.projections(), rows: geometry.roi.height }
    }

    /// Returns cuts from everything at once to the smallest, for blocks of `block_rows` rows of pixels. Few bands come
    /// before few parts, because every band needs all parts again.
    pub fn candidates(geometry: &Geometry, block_rows: usize) -> impl Iterator<Item = Cut> {
        let Cut { projections: all, rows } = Cut::whole(geometry);
        let halved = move |&rows: &usize| (rows > block_rows).then(|| rows.div_ceil(2).next_multiple_of(block_rows));
        std::iter::successors(Some(rows), halved).flat_map(move |rows| {
            let part = move |parts| all.div_ceil(parts).next_multiple_of(PART).min(all);
            (1..=all.div_ceil(PART)).map(move |parts| Cut { projections: part(parts), rows })
        })
    }

    /// Returns the parts of a scan, as ranges of projections.
    pub fn parts(self, geometry: &Geometry) -> impl Iterator<Item = Range<usize>> {
        let all = geometry.projections();
        (0..all).step_by(self.projections).map(move |first| first..(first + self.projections).min(all))
    }

    /// Returns the bands of a region.
    pub fn bands(self, roi: Roi) -> impl Iterator<Item = Roi> {
        let height = move |top| self.rows.min(roi.height - top);
        (0..roi.height).step_by(self.rows).map(move |top| Roi { y: roi.y + top, height: height(top), ..roi })
    }
}

/// A parallel-beam scan and the grid of pixels on which it is reconstructed.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Number of detector bins `B`.
    pub bins: usize,
    /// Side `N` of the full slice, in pixels.
    pub size: usize,
    /// The part of the slice that is computed.
    pub roi: Roi,
    /// Angle of every projection, in degrees.
    pub angles: Vec<f64>,
    /// Axis position `c + d_p` of every projection, in bins.
    pub axis: Vec<f64>,
    /// Weight of every projection, in radians; the sum is pi.
    pub weights: Vec<f64>,
    /// Weight of every projection in least squares, with the mean 1; `None` if all have the same.
    pub misfit_weights: Option<Vec<f64>>,
}

/// Position of a block's first pixel on the detector, split into whole bins and a fraction in `[0, 1)` to keep
/// precision in `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Offset {
    pub whole: f32,
    pub rest: f32,
}

impl Offset {
    /// Splits `axis + position`. The fraction does not depend on the whole bins of the axis: those are added to the other
    /// whole bins.
    fn from_axis(axis: f64, position: f64) -> Self {
        let whole = axis.floor();
        let offset = Offset::new(axis - whole + position);
        Offset { whole: (whole + f64::from(offset.whole)) as f32, ..offset }
    }

    fn new(position: f64) -> Self {
        let whole = position.floor();
        let rest = (position - whole) as f32;
        if rest >= 1.0 {
            // the fraction was rounded up to the next bin
            return Offset { whole: (whole + 1.0) as f32, rest: 0.0 };
        }
        Offset { whole: whole as f32, rest }
    }
}

/// Per-projection positions of the columns and rows of pixel blocks; see [`Geometry::block_offsets`].
pub struct BlockOffsets {
    /// `columns[bx * P + p]`: axis plus the cosine part of block column `bx`.
    pub columns: Vec<Offset>,
    /// `rows[by * P + p]`: the sine part of block row `by`.
    pub rows: Vec<Offset>,
    /// Number of blocks in x and y.
    pub blocks: [usize; 2],
    /// First pixel of block (0, 0) in the full slice; a multiple of the block's sides.
    pub origin: [usize; 2],
}

impl Geometry {
    /// A scan over 180 degrees around the middle of the detector, for full slices.
    pub fn half_turn(bins: usize, projections: usize, size: usize) -> Geometry {
        Geometry {
            bins,
            size,
            roi: Roi::full(size),
            angles: even_angles(0.0, 180.0, projections),
            axis: vec![default_axis(bins); projections],
            weights: vec![PI / projections as f64; projections],
            misfit_weights: None,
        }
    }

    /// Returns the number of projections `P`.
    pub fn projections(&self) -> usize {
        self.angles.len()
    }

    /// Returns the geometry with only some of its projections, whose weights do not change.
    pub fn part(&self, projections: Range<usize>) -> Geometry {
        let of = |values: &[f64]| values[projections.clone()].to_vec();
        Geometry {
            angles: of(&self.angles),
            axis: of(&self.axis),
            weights: of(&self.weights),
            misfit_weights: self.misfit_weights.as_deref().map(of),
            ..*self
        }
    }

    /// Returns the position `h_p(x, y)` in bins, for pixel `(x, y)` of the full slice.
    pub fn position(&self, projection: usize, x: f64, y: f64) -> f64 {
        let (cos, sin) = cos_sin_degrees(self.angles[projection]);
        let centre = slice_centre(self.size);
        self.axis[projection] + (x - centre) * cos - (y - centre) * sin
    }

    /// Returns constants of every projection for blocks of `block[0] x block[1]` pixels, rounded once: cosine and sine
    /// of the angle, the axis, and the offset of a block's lowest position from its first pixel's (at most 0 bins; the
    /// paper's `c_m`, section 6.1, with the opposite sign), less a `clearance` in bins.
    pub fn constants(&self, block: [usize; 2], clearance: f64) -> Vec<[f32; 4]> {
        let last = block.map(|side| side as f64 - 1.0);
        self.angles
            .iter()
            .zip(&self.axis)
            .map(|(&angle, &axis)| {
                let (cos, sin) = cos_sin_degrees(angle);
                let lowest = (last[0] * cos).min(0.0) + (-last[1] * sin).min(0.0) - clearance;
                [cos as f32, sin as f32, axis as f32, lowest as f32]
            })
            .collect()
    }

    /// Returns the number of bins, from 0, that positions inside the detector span, including the terms that a kernel
    /// adds up to compute them: the axis, and half a slice to one side.
    pub fn span(&self) -> usize {
        let axes = self.axis.iter().map(|axis| axis.abs() + self.size as f64 / 2.0);
        (axes.fold(0.0, f64::max).ceil() as usize).max(self.bins)
    }

    /// Reports whether all projections have the same axis.
    pub fn same_axis(&self) -> bool {
        self.axis.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Returns by how many bins the axis of another scan is further to the right, if the scans do not differ otherwise: by the
    /// same whole number of bins in every projection. Blocks of both are then at the same fractions of a bin.
    pub fn whole_bins_to(&self, other: &Geometry) -> Option<isize> {
        let parts = |axis: f64| (axis.floor(), axis - axis.floor());
        let apart = |(&from, &to): (&f64, &f64)| {
            let ((from, part), (to, other_part)) = (parts(from), parts(to));
            (part == other_part).then_some((to - from) as isize)
        };
        let mut bins = self.axis.iter().zip(&other.axis).map(apart);
        let first = bins.next()??;
        let Geometry { bins: width, size, roi, angles, axis, weights, misfit_weights } = self;
        let same = (*width, *size, *roi, axis.len()) == (other.bins, other.size, other.roi, other.axis.len())
            && (angles, weights, misfit_weights) == (&other.angles, &other.weights, &other.misfit_weights);
        (same && bins.all(|bins| bins == Some(first))).then_some(first)
    }

    /// Returns the detector positions of the first pixel of every block of `block[0] x block[1]` pixels, as sums of a
    /// column part and a row part.
    ///
    /// A kernel adds the two offsets of its block and then only the few pixels inside the block, so that the
    /// position keeps an error of about 1e-6 bins however wide the detector is (a plain `f32` position near
    /// bin 2000 is off by 1e-4). Blocks start at multiples of their sides in the *full* slice, so a region
    /// of interest has bit for bit the pixels of the full slice.
    pub fn block_offsets(&self, block: [usize; 2]) -> BlockOffsets {
        let (origin, blocks) = self.roi.block_grid(block);
        let centre = slice_centre(self.size);
        let rotations: Vec<(f64, f64)> = self.angles.iter().map(|&a| cos_sin_degrees(a)).collect();
        let mut columns = Vec::with_capacity(blocks[0] * rotations.len());
        for bx in 0..blocks[0] {
            let x = (origin[0] + bx * block[0]) as f64 - centre;
            let parts = rotations.iter().zip(&self.axis);
            columns.extend(parts.map(|(&(cos, _), &axis)| Offset::from_axis(axis, x * cos)));
        }
        let mut rows = Vec::with_capacity(blocks[1] * rotations.len());
        for by in 0..blocks[1] {
            let y = (origin[1] + by * block[1]) as f64 - centre;
            rows.extend(rotations.iter().map(|&(_, sin)| Offset::new(-y * sin)));
        }
        BlockOffsets { columns, rows, blocks, origin }
    }
}

/// Returns `x0 = y0`: the pixel-centre coordinate of the axis in a slice of side `size`.
pub fn slice_centre(size: usize) -> f64 {
    (size as f64 - 1.0) / 2.0
}

/// Returns the default axis, the middle of the detector, in bins.
pub fn default_axis(bins: usize) -> f64 {
    (bins as f64 - 1.0) / 2.0
}

/// Returns cosine and sine of an angle in degrees, exact at multiples of 90.
pub fn cos_sin_degrees(degrees: f64) -> (f64, f64) {
    let turn = degrees.rem_euclid(360.0);
    let quarter = (turn / 90.0).round();
    let (sin, cos) = (turn - quarter * 90.0).to_radians().sin_cos();
    match quarter as u32 % 4 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

/// Returns `start + p * overall / count` degrees for `p` in `0..count`.
pub fn even_angles(start: f64, overall: f64, count: usize) -> Vec<f64> {
    (0..count).map(|p| start + p as f64 * overall / count as f64).collect()
}

/// Difference of angles (degrees, modulo the period) below which projections share one angle.
const SAME_ANGLE: f64 = 1e-6;

/// Returns the weight of every projection in radians; the weights sum to pi.
///
/// With [`AngleWeights::Spacing`] a projection gets half the distance to both neighbours on the circle modulo `period`,
/// and projections at one angle share its weight; for angles spread evenly over a period or a multiple of it this is
/// `pi / P`. The period is 180 degrees, or 360 where opposite projections differ ([`ExtendedField`]).
pub fn weights(angles: &[f64], scheme: AngleWeights, period: f64) -> Vec<f64> {
    let pi = std::f64::consts::PI;
    let count = angles.len();
    if scheme == AngleWeights::Uniform {
        return vec![pi / count as f64; count];
    }
    let mut order: Vec<(f64, usize)> = angles.iter().map(|a| a.rem_euclid(period)).zip(0..).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));

    // groups of projections at one angle; the last may belong to the first, across the seam of the period
    let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
    for (angle, projection) in order {
        match groups.last_mut() {
            Some((last, members)) if angle - *last < SAME_ANGLE => members.push(projection),
            _ => groups.push((angle, vec![projection])),
        }
    }
    if groups.len() > 1 {
        let seam = groups[0].0 + period - groups[groups.len() - 1].0;
        if seam < SAME_ANGLE
            && let Some((_, members)) = groups.pop()
        {
            groups[0].1.extend(members);
        }
    }

    let mut result = vec![0.0; count];
    let distinct = groups.len();
    for (g, (angle, members)) in groups.iter().enumerate() {
        let before = groups[(g + distinct - 1) % distinct].0 - if g == 0 { period } else { 0.0 };
        let after = groups[(g + 1) % distinct].0 + if g + 1 == distinct { period } else { 0.0 };
        debug_assert!(before <= *angle && *angle <= after);
        let share = (after - before) / 2.0 * pi / period / members.len() as f64;
        for &projection in members {
            result[projection] = share;
        }
    }
    result
}

/// Returns weights of the angles of [`even_angles`]: exactly `pi / P` over any multiple of the period, by `scheme`
/// otherwise.
pub fn even_weights(angles: &[f64], overall: f64, scheme: AngleWeights, period: f64) -> Vec<f64> {
    let periods = overall / period;
    let even = periods != 0.0 && periods.fract() == 0.0;
    weights(angles, if even { AngleWeights::Uniform } else { scheme }, period)
}

/// Smallest number of angles that may be recognised as radians by their span.
const MANY_ANGLES: usize = 30;

/// Reads the angles of a text in degrees, see [`parse_numbers`], with a note for the user about their unit.
///
/// Many angles that span half a turn or a turn in radians, end included or not, are taken as radians, unless a comment
/// says degrees: in degrees the scan would cover only three or six degrees.
pub fn parse_angles(text: &str, what: &str) -> Result<(Vec<f64>, Option<String>)> {
    let values = parse_numbers(text, what)?;
    let count = values.len();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let span = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low;
    let steps = count.saturating_sub(1).max(1) as f64;
    let is = |turn: f64| [span, span * count as f64 / steps].iter().any(|span| (span / turn - 1.0).abs() < 1e-3);
    let says_degrees = || {
        let comments = text.lines().filter_map(|line| Some(line.split_once('#')?.1.to_lowercase()));
        comments.into_iter().any(|comment| comment.contains("deg"))
    };
    if count < MANY_ANGLES || !(is(PI) || is(2.0 * PI)) || says_degrees() {
        return Ok((values, None));
    }
    let note = format!(
        "{what}: {count} angles that span {span:.3}: taken as radians; if they are degrees, add a line `# degrees` to the file"
    );
    Ok((values.into_iter().map(f64::to_degrees).collect(), Some(note)))
}

/// Reads the numbers of a text, one per line; `#` starts a comment, empty lines are skipped.
///
/// `what` names flag and file in messages. A value that is not a finite number is an input error.
pub fn parse_numbers(text: &str, what: &str) -> Result<Vec<f64>> {
    let mut values = Vec::new();
    for (line_number, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or("").trim();
        if content.is_empty() {
            continue;
        }
        match content.parse::<f64>() {
            Ok(value) if value.is_finite() => values.push(value),
            _ => {
                let (what, line, text) = (what.to_owned(), line_number + 1, excerpt(content).into_owned());
                return Err(NumbersError::NotANumber { what, line, text }.into());
            }
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::PI;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn radians_are_known_by_their_span() {
        let text = |count: usize, last: f64| -> String {
            (0..count).map(|p| format!("{:.7}\n", p as f64 * last / (count - 1) as f64)).collect()
        };
        for (turn, degrees) in [(PI, 180.0), (2.0 * PI, 360.0)] {
            // the end included, and not
            for (last, end) in [(turn, degrees), (turn * 59.0 / 60.0, degrees * 59.0 / 60.0)] {
                let (angles, note) = parse_angles(&text(60, last), "--angles a.txt").unwrap();
                assert!((angles[59] - end).abs() < 1e-4 && note.unwrap().contains("radians"));
            }
        }
        // few angles, other spans, and what says degrees stay
        let said = format!("# Degrees\n{}", text(60, PI));
        for (text, last) in [(text(20, PI), PI), (text(60, 3.0), 3.0), (text(60, 180.0), 180.0), (said, PI)] {
            let (angles, note) = parse_angles(&text, "--angles a.txt").unwrap();
            assert!((angles[angles.len() - 1] - last).abs() < 1e-6 && note.is_none(), "{last}");
        }
    }

    #[test]
    fn quarter_turns_are_exact() {
        for (degrees, expected) in
            [(0.0, (1.0, 0.0)), (90.0, (0.0, 1.0)), (180.0, (-1.0, 0.0)), (-90.0, (0.0, -1.0)), (450.0, (0.0, 1.0))]
        {
            assert_eq!(cos_sin_degrees(degrees), expected, "{degrees}");
        }
        let (cos, sin) = cos_sin_degrees(217.3);
        assert!(close(cos, 217.3f64.to_radians().cos()) && close(sin, 217.3f64.to_radians().sin()));
    }

    #[test]
    fn even_angles_weigh_the_same() {
        for overall in [180.0, 360.0, -180.0, 540.0] {
            for count in [1, 2, 7, 180, 181] {
                let angles = even_angles(3.0, overall, count);
                for w in even_weights(&angles, overall, AngleWeights::Spacing, 180.0) {
                    assert!(close(w, PI / count as f64));
                }
                // and the general rule agrees
                for w in weights(&angles, AngleWeights::Spacing, 180.0) {
                    assert!((w - PI / count as f64).abs() < 1e-7, "{overall} {count} {w}");
                }
            }
        }
    }

    #[test]
    fn uneven_angles_share_the_circle() {
        let w = weights(&[0.0, 30.0, 90.0], AngleWeights::Spacing, 180.0);
        let degrees: Vec<f64> = w.iter().map(|w| w.to_degrees()).collect();
        for (got, want) in degrees.iter().zip([60.0, 45.0, 75.0]) {
            assert!((got - want).abs() < 1e-9);
        }
        // the end point included: 0 and 180 are one angle
        let w = weights(&[0.0, 60.0, 120.0, 180.0], AngleWeights::Spacing, 180.0);
        assert!(close(w[0], PI / 6.0) && close(w[3], PI / 6.0) && close(w[1], PI / 3.0));
    }

    /// Axes that differ by whole bins have blocks at the same fractions of a bin, bit for bit.
    #[test]
    fn whole_bins_of_the_axis_change_no_fraction() {
        let of = |axis: f64| Geometry { axis: vec![axis; 700], ..Geometry::half_turn(1024, 700, 1024) };
        for axis in [511.5, 512.0, 530.3, 600.0 + 1.0 / 3.0] {
            let (near, scan) = (of(axis).block_offsets([16, 16]), of(axis));
            for bins in [-40isize, -1, 0, 3, 300] {
                let far = of(axis + bins as f64);
                assert_eq!(scan.whole_bins_to(&far), Some(bins), "{axis}");
                let offsets = far.block_offsets([16, 16]);
                assert_eq!(offsets.rows, near.rows);
                for (far, near) in offsets.columns.iter().zip(&near.columns) {
                    assert_eq!((far.whole, far.rest.to_bits()), (near.whole + bins as f32, near.rest.to_bits()));
                }
            }
        }
        let scan = of(511.5);
        let mut bent = of(512.5);
        bent.axis[9] = 513.5;
        assert!(of(490.3).whole_bins_to(&of(530.3)).is_none(), "two numbers that are rounded to different fractions");
        let others = [of(511.75), bent, Geometry { size: 1000, ..of(511.5) }, Geometry { bins: 1000, ..of(511.5) }];
        assert!(others.iter().all(|other| scan.whole_bins_to(other).is_none()));
    }

    proptest! {
        #[test]
        fn no_weight_is_lost_or_negative(angles in prop::collection::vec(-720.0f64..720.0, 1..60)) {
            let w = weights(&angles, AngleWeights::Spacing, 180.0);
            prop_assert!(w.iter().all(|w| *w >= 0.0));
            prop_assert!((w.iter().sum::<f64>() - PI).abs() < 1e-9);
        }

        #[test]
        fn block_offsets_add_up_to_the_position(
            angle in -400.0f64..400.0, axis in 0.0f64..3000.0, x in 0usize..2900, y in 0usize..2900,
        ) {
            let geometry = Geometry {
                bins: 3000, size: 3000, roi: Roi { x, y, width: 100, height: 50 },
                angles: vec![angle], axis: vec![axis], weights: vec![PI], misfit_weights: None,
            };
            let offsets = geometry.block_offsets([16, 8]);
            prop_assert_eq!(offsets.origin[0] % 16, 0);
            prop_assert!(offsets.origin[0] + offsets.blocks[0] * 16 >= x + 100);
            let last = [offsets.blocks[0] - 1, offsets.blocks[1] - 1];
            let (column, row) = (offsets.columns[last[0]], offsets.rows[last[1]]);
            let got = f64::from(column.whole) + f64::from(row.whole) + f64::from(column.rest) + f64::from(row.rest);
            let want = geometry.position(
                0, (offsets.origin[0] + last[0] * 16) as f64, (offsets.origin[1] + last[1] * 8) as f64);
            prop_assert!((got - want).abs() < 2e-7, "{} {}", got, want);
        }
    }

    #[test]
    fn number_files() {
        let values = parse_numbers("# degrees\n0\n 1.5 # half\n\n-3e1\n", "--angles a.txt");
        assert_eq!(values.unwrap(), [0.0, 1.5, -30.0]);
        for bad in ["nan", "inf", "1,5", "1 2", "x"] {
            let message = parse_numbers(&format!("0\n{bad}\n"), "--angles a.txt").unwrap_err().to_string();
            assert!(message.contains("line 2") && message.contains("--angles a.txt"));
        }
    }
}

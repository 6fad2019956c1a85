//! Gridding: computes the band-limited slice from its spectrum.
//!
//! Filtered rows are trigonometric polynomials of period `L`, the padded length, so the slice is a sum of waves:
//! `f(x, y) = sum_p w_p sum_k S_p[k] exp(2 pi i k (h_p(x, y)) / L)`. The waves' frequencies lie on lines through the origin.
//! They are spread over a regular grid by a Kaiser-Bessel kernel, the grid is transformed, and the slice divided by the
//! kernel's transform (Jackson and others, IEEE Trans. Med. Imaging 10, 1991; Fessler and Sutton, IEEE Trans. Signal
//! Process. 51, 2003).

use super::grid::FrequencyGrid;
use super::{Geometry, Offset, Roi, cos_sin_degrees};
use crate::spectrum::padded_length;
use rayon::prelude::*;

/// Samples of a projection that are spread over a tile of the grid, in the layout that kernels read.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Segment {
    /// Frequency of the first sample, from -1/2 to 1/2 of the padded length.
    pub frequency: i32,
    /// Number of the projection times 256, plus the number of samples.
    pub projection_and_count: u32,
    /// Position of the first sample along x, in cells from the tile's first cell.
    pub x: f32,
    /// Position of the first sample along y, in cells from the tile's first cell.
    pub y: f32,
}

/// Segments of a tile of the grid that one work-group spreads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Tile {
    /// First cell of the tile along x, plus 65536 times that along y.
    pub place: u32,
    /// Index of the first segment.
    pub first: u32,
    /// Index after the last segment.
    pub end: u32,
    /// Index of the part of a tile's sum; [`Tile::WHOLE`] for a tile that is not divided.
    pub part: u32,
}

impl Tile {
    /// Value of [`Tile::part`] for a tile that is not divided.
    pub const WHOLE: u32 = u32::MAX;
}

/// A tile whose sum consists of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SplitTile {
    /// First cell of the tile, see [`Tile::place`].
    pub place: u32,
    pub first_part: u32,
    pub parts: u32,
    pub unused: u32,
}

/// The division of the grid into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Side of a tile in cells.
    pub side: usize,
    /// Largest number of samples of a segment; fewer than 256.
    pub samples: usize,
    /// Largest number of parts of all tiles together; 0 if tiles are not divided. All projections meet in the middle of
    /// the grid, and the work of groups should be about equal.
    pub parts: usize,
}

/// Smallest limit on the number of segments of a part of a tile.
const LEAST_SEGMENTS: usize = 32;
/// Divisor of the number of projections that gives a higher limit on the segments of a part.
const OF_PROJECTIONS: usize = 16;

/// The samples that are spread over the grid, by tile.
pub struct Spreading {
    /// Tiles and parts of tiles; those with most segments first, so that none of them is left to the end.
    pub tiles: Vec<Tile>,
    /// Tiles that are divided into parts.
    pub split: Vec<SplitTile>,
    pub segments: Vec<Segment>,
    /// Distance in cells along x and y from one sample of a projection to the next.
    pub steps: Vec<[f32; 2]>,
    /// Range of cells of every row of tiles to which nothing is spread: first cell, and cell after the last.
    pub empty: Vec<[i32; 2]>,
}

/// The line of a projection's samples in the grid.
#[derive(Clone, Copy)]
struct Line {
    projection: u32,
    step: [f64; 2],
}

impl Geometry {
    /// Returns the distance in bins of the region's middle pixel from the axis' bin in every projection, by which
    /// frequencies are turned.
    pub fn phases(&self) -> Vec<Offset> {
        let Roi { x, y, width, height } = self.roi;
        let [x, y] = [(x + width / 2) as f64, (y + height / 2) as f64];
        (0..self.projections()).map(|p| Offset::new(self.position(p, x, y))).collect()
    }

    /// Returns the tiles and segments to which the samples of all projections are spread, in half of the grid. `None`
    /// where 32 bits are too few for their numbers.
    pub fn spreading(&self, grid: &FrequencyGrid, tiling: Tiling) -> Option<Spreading> {
        let Tiling { side: tile, samples: most, parts } = tiling;
        let length = padded_length(self.bins);
        u32::try_from(self.projections() << 8).ok()?;
        let [width, height] = grid.lengths.map(|cells| cells as f64);
        let line = |(projection, &angle): (usize, &f64)| {
            let (cos, sin) = cos_sin_degrees(angle);
            Line { projection: projection as u32, step: [width * cos / length as f64, -height * sin / length as f64] }
        };
        let lines: Vec<Line> = self.angles.iter().enumerate().map(line).collect();
        let (columns, rows) = (grid.lengths[0] / tile, grid.rows(tile) / tile);
        let of_row = |row| tiles_of_row(&lines, grid, tile, most, row, length);
        let found: Vec<Vec<Vec<Segment>>> = (0..rows).into_par_iter().map(of_row).collect();
        let total: usize = found.iter().flatten().map(Vec::len).sum();
        u32::try_from(total).ok()?;
        let mut spreading = Spreading {
            tiles: Vec::new(),
            split: Vec::new(),
            segments: Vec::with_capacity(total),
            steps: lines.iter().map(|line| line.step.map(|step| step as f32)).collect(),
            empty: Vec::with_capacity(rows),
        };
        for (row, tiles) in found.iter().enumerate() {
            let any = |column: &usize| !tiles[*column].is_empty();
            let middle = columns / 2;
            let low = (0..middle).rfind(any).map_or(0, |column| column + 1);
            let high = (middle..columns).find(any).unwrap_or(columns);
            spreading.empty.push([low * tile, high * tile].map(|cell| cell as i32));
            for (column, segments) in tiles.iter().enumerate().filter(|(column, _)| *column < low || *column >= high) {
                let first = spreading.segments.len() as u32;
                spreading.segments.extend(segments);
                let place = (column * tile + ((row * tile) << 16)) as u32;
                spreading.tiles.push(Tile { place, first, end: spreading.segments.len() as u32, part: Tile::WHOLE });
            }
        }
        if parts > 0 {
            spreading.divide((lines.len() / OF_PROJECTIONS).max(LEAST_SEGMENTS), parts);
            spreading.tiles.sort_by_key(|tile| std::cmp::Reverse(tile.end - tile.first));
        }
        Some(spreading)
    }
}

impl Spreading {
    /// Divides tiles into parts of at most `least` segments, or of more if there were more than `most_parts` parts.
    fn divide(&mut self, least: usize, most_parts: usize) {
        let count = |tile: &Tile, limit: usize| ((tile.end - tile.first) as usize).div_ceil(limit);
        let parts = |limit: &usize| self.tiles.iter().map(|tile| count(tile, *limit)).filter(|&n| n > 1).sum::<usize>();
        let limits = std::iter::successors(Some(least), |limit| Some(2 * limit));
        let limit = limits.take(32).find(|limit| parts(limit) <= most_parts).unwrap_or(usize::MAX);
        let mut parts = Vec::with_capacity(self.tiles.len());
        let mut kept = 0;
        for tile in std::mem::take(&mut self.tiles) {
            let number = count(&tile, limit);
            if number < 2 {
                parts.push(tile);
                continue;
            }
            self.split.push(SplitTile { place: tile.place, first_part: kept, parts: number as u32, unused: 0 });
            for first in (tile.first..tile.end).step_by(limit) {
                parts.push(Tile { first, end: tile.end.min(first + limit as u32), part: kept, ..tile });
                kept += 1;
            }
        }
        self.tiles = parts;
    }
}

/// Returns the segments of every tile of a row of tiles. The grid begins at frequency 0, and negative frequencies are
/// in its second half. Frequencies repeat with the grid, so that samples near one end are also spread beyond the other.
fn tiles_of_row(
    lines: &[Line],
    grid: &FrequencyGrid,
    tile: usize,
    most: usize,
    row: usize,
    length: usize,
) -> Vec<Vec<Segment>> {
    let [width, height] = grid.lengths;
    let columns = width / tile;
    let reach = f64::from(grid.width()) / 2.0;
    let span = (tile - 1) as f64;
    let signed = |cell: usize, length: usize| cell as f64 - if 2 * cell < length { 0.0 } else { length as f64 };
    let nyquist = (length / 2) as f64;
    let mut tiles = vec![Vec::new(); columns];
    let y = signed(row * tile, height);
    for line in lines {
        for around_y in [-1.0, 0.0, 1.0] {
            let y = y + around_y * height as f64;
            let Some([low, high]) = crossing(line.step[1], y - reach, y + span + reach, [-nyquist, nyquist]) else {
                continue;
            };
            let ends = [low * line.step[0], high * line.step[0]];
            let [left, right] = [ends[0].min(ends[1]) - reach - span, ends[0].max(ends[1]) + reach];
            let first = (left / tile as f64).floor() as i64;
            let last = (right / tile as f64).ceil() as i64;
            for number in first..=last {
                let x = (number * tile as i64) as f64;
                let Some([low, high]) = crossing(line.step[0], x - reach, x + span + reach, [low, high]) else {
                    continue;
                };
                let (low, high) = (low.ceil() as i64, high.floor() as i64);
                let column = number.rem_euclid(columns as i64) as usize;
                for start in (low..=high).step_by(most) {
                    let count = (high - start + 1).min(most as i64) as u32;
                    tiles[column].push(Segment {
                        frequency: start as i32,
                        projection_and_count: line.projection << 8 | count,
                        x: (start as f64 * line.step[0] - x) as f32,
                        y: (start as f64 * line.step[1] - y) as f32,
                    });
                }
            }
        }
    }
    tiles
}

/// Returns the range of samples within `limits` at which a line is between `low` and `high`, if there is one.
fn crossing(step: f64, low: f64, high: f64, limits: [f64; 2]) -> Option<[f64; 2]> {
    if step.abs() < 1e-12 {
        return (low <= 0.0 && high >= 0.0).then_some(limits);
    }
    let [a, b] = [low / step, high / step];
    let range = [a.min(b).max(limits[0]), a.max(b).min(limits[1])];
    (range[0] <= range[1]).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::super::grid::GridSides;
    use super::*;

    fn full(size: usize) -> Roi {
        Roi::full(size)
    }

    #[test]
    fn every_sample_is_spread_to_every_cell_that_it_reaches() {
        let geometry = Geometry {
            bins: 40,
            size: 40,
            roi: full(40),
            angles: vec![0.0, 90.0, 37.0, 179.9, 271.0],
            axis: vec![19.5; 5],
            weights: vec![1.0; 5],
            misfit_weights: None,
        };
        let length = padded_length(geometry.bins) as i64;
        for (region, tiling) in [
            (full(40), Tiling { side: 8, samples: 16, parts: 0 }),
            (full(40), Tiling { side: 8, samples: 5, parts: 4096 }),
            (full(40), Tiling { side: 16, samples: 240, parts: 0 }),
            (full(60), Tiling { side: 32, samples: 240, parts: 0 }),
        ] {
            let grid = FrequencyGrid::new(region, 1e-3, GridSides::Thirds).unwrap();
            assert_eq!(grid.lengths[0], if tiling.side == 32 { 96 } else { 64 });
            let [width, height] = grid.lengths.map(|cells| cells as i64);
            let reach = f64::from(grid.width()) / 2.0;
            let spreading = geometry.spreading(&grid, tiling).unwrap();
            let mut reached = std::collections::BTreeMap::new();
            for tile in &spreading.tiles {
                let place = [i64::from(tile.place & 65535), i64::from(tile.place >> 16)];
                for segment in &spreading.segments[tile.first as usize..tile.end as usize] {
                    let count = segment.projection_and_count & 255;
                    assert!(count as usize <= tiling.samples);
                    for i in 0..count as i32 {
                        let p = segment.projection_and_count >> 8;
                        for y in 0..tiling.side as i64 {
                            for x in 0..tiling.side as i64 {
                                let step = spreading.steps[p as usize];
                                let dx = f64::from(segment.x + i as f32 * step[0]) - x as f64;
                                let dy = f64::from(segment.y + i as f32 * step[1]) - y as f64;
                                if dx.abs() < reach - 1e-4 && dy.abs() < reach - 1e-4 {
                                    let key = (p, segment.frequency + i, place[0] + x, place[1] + y);
                                    *reached.entry(key).or_insert(0) += 1;
                                }
                            }
                        }
                    }
                }
            }
            assert!(reached.values().all(|&times| times == 1));
            let mut expected = 0;
            for (p, &angle) in geometry.angles.iter().enumerate() {
                let (cos, sin) = cos_sin_degrees(angle);
                for k in -length / 2..=length / 2 {
                    let at = [width as f64 * cos, -height as f64 * sin].map(|step| step * k as f64 / length as f64);
                    for y in 0..=height / 2 {
                        for x in 0..width {
                            let near = |cell: i64, at: f64, cells: i64| {
                                let d = (cell as f64 - at).rem_euclid(cells as f64);
                                d.min(cells as f64 - d) < reach - 1e-4
                            };
                            if near(x, at[0], width) && near(y, at[1], height) {
                                expected += 1;
                                assert!(reached.contains_key(&(p as u32, k as i32, x, y)), "{angle} {k} {x} {y}");
                            }
                        }
                    }
                }
            }
            let within = reached.keys().filter(|key| key.3 <= height / 2).count();
            assert_eq!(within, expected);
        }
    }
}

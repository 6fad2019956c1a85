//! The grid over whose cells gridding spreads frequencies: its lengths and its kernel for a region and a bound.

use super::Roi;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// Smallest number of grid cells per pixel of a side: fewer cells need wider kernels, which cost more than the smaller
/// grid saves.
const LEAST_OVERSAMPLING: f64 = 1.375;

/// Shortest and longest length of a side of the grid.
pub const GRID_LENGTHS: [usize; 2] = [64, 16384];

/// Lengths of a side that a device can transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridSides {
    /// Powers of two.
    PowersOfTwo,
    /// Powers of two, and three times powers of two.
    Thirds,
}

impl GridSides {
    /// Returns the lengths for a side of `pixels`, shortest first: twice the smallest power of two is enough for every
    /// bound.
    fn lengths(self, pixels: usize) -> Vec<usize> {
        let least = (pixels as f64 * LEAST_OVERSAMPLING).ceil() as usize;
        let [shortest, longest] = GRID_LENGTHS;
        let most = (2 * least.next_power_of_two().max(shortest)).min(longest);
        let factors = if self == GridSides::Thirds { [shortest, shortest / 2 * 3].to_vec() } else { vec![shortest] };
        let doubled = |factor| std::iter::successors(Some(factor), |length| Some(2 * length));
        let within = |factor| doubled(factor).take_while(|length| *length <= most).filter(|length| *length >= least);
        let mut lengths: Vec<usize> = factors.into_iter().flat_map(within).collect();
        lengths.sort_unstable();
        lengths
    }
}

/// Smallest and largest number of cells of a side of the kernel.
pub const KERNEL_WIDTHS: [u32; 2] = [2, 8];

/// Returns the number of coefficients of the polynomial for a cell of a kernel of this width, whose error is far below
/// the kernel's.
pub fn coefficients(width: u32) -> usize {
    width as usize + 5
}

/// Range of the bounds that may be requested.
pub const ACCURACIES: std::ops::RangeInclusive<f64> = 2e-6..=1e-1;

/// Rounding error of `f32` relative to a wave where the kernel's transform is largest; elsewhere slices are divided by
/// less, so that the error is larger.
const ROUNDING: f64 = 5e-7;

/// Number of pixels below which a region is small: the root mean square of its errors is that of few values.
const SMALL: usize = 1024;

/// Returns the factor by which the error of a region, relative to its values, may exceed the expected error of the
/// kernel: for a few pixels both are sums that may happen to be large and small.
fn chance(roi: Roi) -> f64 {
    match roi.pixels() {
        pixels if pixels < SMALL => 1.0 + 16.0 / (pixels as f64).sqrt(),
        _ => 1.0,
    }
}

/// A Kaiser-Bessel kernel, 1 at its middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KaiserBessel {
    /// Number of cells that the kernel covers.
    pub width: u32,
    shape: f64,
}

thread_local! {
    /// Kernels found by a search, by width and cells per pixel.
    static BEST: RefCell<BTreeMap<(u32, u64), KaiserBessel>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns the modified Bessel function of order 0.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..200 {
        term *= quarter / f64::from(k * k);
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    sum
}

impl KaiserBessel {
    /// Returns the kernel with the smallest bound for a number of cells per pixel. Kernels are cached, because a plan
    /// requests the same ones many times.
    fn best(width: u32, oversampling: f64) -> KaiserBessel {
        let key = (width, oversampling.to_bits());
        let found = BEST.with_borrow(|known| known.get(&key).copied());
        found.unwrap_or_else(|| {
            let best = KaiserBessel::search(width, oversampling);
            BEST.with_borrow_mut(|known| known.insert(key, best));
            best
        })
    }

    fn search(width: u32, oversampling: f64) -> KaiserBessel {
        let widest = PI * f64::from(width) * (1.0 - 0.5 / oversampling);
        let of = |share: f64| KaiserBessel { width, shape: widest * share };
        let candidates = (0..48).map(|i| of(0.80 + 0.005 * f64::from(i)));
        let bound = |kernel: &KaiserBessel| kernel.bound(oversampling);
        candidates.min_by(|a, b| bound(a).total_cmp(&bound(b))).unwrap_or(of(1.0))
    }

    /// Returns the kernel's value at a distance in cells.
    pub fn value(&self, distance: f64) -> f64 {
        let z = 2.0 * distance / f64::from(self.width);
        if z.abs() > 1.0 {
            return 0.0;
        }
        bessel_i0(self.shape * (1.0 - z * z).sqrt()) / bessel_i0(self.shape)
    }

    /// Returns the kernel's Fourier transform at a frequency in periods per cell.
    pub fn transform(&self, frequency: f64) -> f64 {
        self.scaled_transform(frequency) / bessel_i0(self.shape)
    }

    /// Returns the kernel's Fourier transform except for a constant factor.
    fn scaled_transform(&self, frequency: f64) -> f64 {
        let width = f64::from(self.width);
        let square = self.shape * self.shape - (PI * width * frequency).powi(2);
        let root = square.abs().sqrt();
        let ratio = match square {
            _ if root < 1e-9 => 1.0,
            square if square > 0.0 => root.sinh() / root,
            _ => root.sin() / root,
        };
        width * ratio
    }

    /// Returns the error of a wave: root mean square over a side of the image, relative to the wave.
    fn bound(&self, oversampling: f64) -> f64 {
        const PLACES: u32 = 32;
        let at = |place: u32| {
            let x = 0.5 / oversampling * (f64::from(place) + 0.5) / f64::from(PLACES);
            let both = |l: f64| self.scaled_transform(x + l).abs() + self.scaled_transform(x - l).abs();
            let others: f64 = (1..8).map(|l| both(f64::from(l))).sum();
            (others / self.scaled_transform(x)).powi(2)
        };
        ((0..PLACES).map(at).sum::<f64>() / f64::from(PLACES)).sqrt()
    }

    /// Returns the factor by which rounding errors grow when slices are divided by the kernel's transform: root mean
    /// square over a side.
    fn growth(&self, oversampling: f64) -> f64 {
        const PLACES: u32 = 32;
        let at = |place: u32| {
            let x = 0.5 / oversampling * (f64::from(place) + 0.5) / f64::from(PLACES);
            (self.scaled_transform(0.0) / self.scaled_transform(x)).powi(2)
        };
        ((0..PLACES).map(at).sum::<f64>() / f64::from(PLACES)).sqrt()
    }

    /// Returns the coefficients, highest power first, of a polynomial for each cell that the kernel covers: the
    /// kernel's value there for a sample that is `f` cells, from -1/2 to 1/2, beyond the middle of these cells.
    pub fn polynomials(&self) -> Vec<f32> {
        let count = coefficients(self.width);
        let middle = (f64::from(self.width) - 1.0) / 2.0;
        let of_cell = |cell: u32| {
            let value = |f: f64| self.value(f + middle - f64::from(cell));
            chebyshev(count, value).into_iter().map(|c| c as f32)
        };
        (0..self.width).flat_map(of_cell).collect()
    }
}

/// Returns the polynomial with `count` coefficients, highest power first, that equals a function at the Chebyshev nodes
/// of [-1/2, 1/2]: Newton's divided differences, multiplied out.
fn chebyshev(count: usize, function: impl Fn(f64) -> f64) -> Vec<f64> {
    let nodes: Vec<f64> = (0..count).map(|i| 0.5 * (PI * (i as f64 + 0.5) / count as f64).cos()).collect();
    let mut differences: Vec<f64> = nodes.iter().map(|&node| function(node)).collect();
    for order in 1..count {
        for i in (order..count).rev() {
            differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order]);
        }
    }
    // lowest power first during the multiplication
    let mut polynomial = vec![0.0; count];
    for (node, difference) in nodes.iter().zip(&differences).rev() {
        for i in (1..count).rev() {
            polynomial[i] = polynomial[i - 1] - node * polynomial[i];
        }
        polynomial[0] = difference - node * polynomial[0];
    }
    polynomial.reverse();
    polynomial
}

/// The grid for a region, and its kernels along x and y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrequencyGrid {
    /// Number of cells along x and y.
    pub lengths: [usize; 2],
    pub kernels: [KaiserBessel; 2],
}

impl FrequencyGrid {
    /// Returns the grid with the fewest cells, and with the narrowest kernel, whose bound is within `accuracy`. `None`
    /// for regions of more pixels than grids have room for, and for bounds that no kernel reaches.
    pub fn new(roi: Roi, accuracy: f64, of: GridSides) -> Option<FrequencyGrid> {
        let sides = [roi.width, roi.height];
        let [narrowest, widest] = KERNEL_WIDTHS;
        let oversampling = |length: usize, side: usize| length as f64 / side as f64;
        // the bound must also hold along one axis alone
        let chance = chance(roi);
        let bound = |cells: f64| chance * KaiserBessel::best(widest, cells).bound(cells);
        let [along_x, along_y] = sides.map(|side| {
            let lengths = of.lengths(side).into_iter();
            lengths.filter(|&length| bound(oversampling(length, side)) <= accuracy).collect::<Vec<_>>()
        });
        let mut pairs: Vec<[usize; 2]> = along_x.iter().flat_map(|&x| along_y.iter().map(move |&y| [x, y])).collect();
        pairs.sort_unstable_by_key(|[x, y]| (x * y, *x));
        pairs.into_iter().find_map(|lengths| {
            let cells = [0, 1].map(|axis| oversampling(lengths[axis], sides[axis]));
            let of_width =
                |width| FrequencyGrid { lengths, kernels: cells.map(|cells| KaiserBessel::best(width, cells)) };
            (narrowest..=widest).map(of_width).find(|grid| grid.bound(roi) <= accuracy)
        })
    }

    /// Returns the side in pixels of the largest square that has a grid.
    pub fn largest_square(accuracy: f64, of: GridSides) -> usize {
        let most = (GRID_LENGTHS[1] as f64 / LEAST_OVERSAMPLING) as usize;
        let mut range = 1..most + 1;
        while range.end - range.start > 1 {
            let middle = range.start.midpoint(range.end);
            let has_grid = FrequencyGrid::new(Roi::full(middle), accuracy, of).is_some();
            range = if has_grid { middle..range.end } else { range.start..middle };
        }
        range.start
    }

    /// Returns the number of cells of a side of the kernels.
    pub fn width(&self) -> u32 {
        self.kernels[0].width
    }

    /// Returns the error of slices by the kernel and by rounding: root mean square, relative to that of the slice. The
    /// error of regions of few pixels may be several times as large as that of larger ones, see [`chance`].
    pub fn bound(&self, roi: Roi) -> f64 {
        let of = |axis: usize, side: usize| {
            let oversampling = self.lengths[axis] as f64 / side as f64;
            (self.kernels[axis].bound(oversampling), self.kernels[axis].growth(oversampling))
        };
        let [(kernel_x, growth_x), (kernel_y, growth_y)] = [of(0, roi.width), of(1, roi.height)];
        chance(roi) * kernel_x.hypot(kernel_y) + ROUNDING * growth_x * growth_y
    }

    /// Returns the number of rows of the grid that are computed in tiles of side `tile` (in cells): slices are real, so
    /// frequencies along y from 0 to the highest are enough.
    pub fn rows(&self, tile: usize) -> usize {
        (self.lengths[1] / 2 + 1).next_multiple_of(tile)
    }

    /// Returns the factors of the pixels along x (`axis` 0) or y.
    pub fn corrections(&self, axis: usize, pixels: usize) -> Vec<f32> {
        let length = self.lengths[axis] as f64;
        let middle = (pixels / 2) as f64;
        (0..pixels).map(|i| (1.0 / self.kernels[axis].transform((i as f64 - middle) / length)) as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_fft::Complex;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn full(size: usize) -> Roi {
        Roi::full(size)
    }

    #[test]
    fn bessel_functions_are_those_of_tables() {
        // Abramowitz and Stegun, table 9.8
        for (x, value) in [(0.0, 1.0), (1.0, 1.266_065_877_752_008), (5.0, 27.239_871_823_604_45)] {
            assert!((bessel_i0(x) - value).abs() <= 1e-13 * value, "{x}");
        }
    }

    #[test]
    fn the_transform_is_that_of_the_kernel() {
        let kernel = KaiserBessel::best(6, 2.0);
        for frequency in [0.0, 0.1, 0.25, 0.7, 1.3] {
            // the kernel jumps to 0 at its ends: the midpoint rule
            let steps = 60_000;
            let sum: f64 = (0..steps)
                .map(|i| {
                    let t = 6.0 * ((f64::from(i) + 0.5) / f64::from(steps) - 0.5);
                    kernel.value(t) * (2.0 * PI * frequency * t).cos()
                })
                .sum();
            let want = sum * 6.0 / f64::from(steps);
            assert!((kernel.transform(frequency) - want).abs() < 1e-8, "{frequency}");
        }
    }

    #[test]
    fn polynomials_follow_the_kernel() {
        for width in KERNEL_WIDTHS[0]..=KERNEL_WIDTHS[1] {
            for oversampling in [1.375, 2.0, 2.75] {
                let kernel = KaiserBessel::best(width, oversampling);
                let polynomials = kernel.polynomials();
                let count = coefficients(width);
                assert_eq!(polynomials.len(), width as usize * count);
                let mut worst = 0f64;
                for (cell, polynomial) in polynomials.chunks(count).enumerate() {
                    for i in 0..=40 {
                        let f = f64::from(i) / 40.0 - 0.5;
                        let value = polynomial.iter().fold(0.0, |sum, &c| sum * f + f64::from(c));
                        let distance = f + (f64::from(width) - 1.0) / 2.0 - cell as f64;
                        worst = worst.max((value - kernel.value(distance)).abs());
                    }
                }
                let bound = kernel.bound(oversampling);
                assert!(worst <= (0.1 * bound).max(3e-7), "{width} {oversampling}: {worst:.1e}, bound {bound:.1e}");
            }
        }
    }

    #[test]
    fn grids_are_as_small_as_the_bound_allows() {
        let (powers, thirds) = (GridSides::PowersOfTwo, GridSides::Thirds);
        for (of, size, accuracy, lengths, width) in [
            (powers, 2048, 1e-3, 4096, 5),
            (powers, 2048, 1e-5, 4096, 7),
            (powers, 1489, 1e-3, 2048, 6),
            (powers, 1490, 1e-3, 4096, 4),
            (powers, 1489, 2e-6, 4096, 7),
            (powers, 1, 0.1, 64, 3),
            (thirds, 2048, 1e-3, 3072, 5),
            (thirds, 2048, 1e-5, 3072, 8),
            (thirds, 2048, 2e-6, 4096, 8),
            (thirds, 1489, 1e-3, 2048, 6),
            (thirds, 1490, 1e-3, 3072, 5),
            (thirds, 1, 0.1, 64, 3),
            (thirds, 60, 1e-3, 96, 5),
            // 2048 cells are not enough for the bound
            (thirds, 1489, 2e-6, 3072, 8),
        ] {
            let grid = FrequencyGrid::new(full(size), accuracy, of).unwrap();
            assert_eq!((grid.lengths, grid.width()), ([lengths; 2], width), "{of:?} {size} {accuracy}");
            assert!(grid.bound(full(size)) <= accuracy);
        }
        let uneven = FrequencyGrid::new(Roi { x: 0, y: 0, width: 700, height: 300 }, 1e-3, GridSides::Thirds).unwrap();
        assert_eq!(uneven.lengths, [1024, 512]);
        for sides in [GridSides::PowersOfTwo, GridSides::Thirds] {
            assert!(FrequencyGrid::new(full(11_915), 1e-4, sides).is_some());
            assert!(FrequencyGrid::new(full(11_916), 1e-1, sides).is_none());
            // every bound that may be asked for has a kernel, up to the side with whose grid the largest begins
            for size in (1..=55).map(|i| 108 * i + 17) {
                assert!(FrequencyGrid::new(full(size), *ACCURACIES.start(), sides).is_some(), "{size}");
            }
        }
    }

    #[test]
    fn each_side_is_as_short_as_the_bound_allows() {
        let grid = |width: usize, height: usize, accuracy: f64, sides: GridSides| {
            let region = Roi { x: 0, y: 0, width, height };
            let grid = FrequencyGrid::new(region, accuracy, sides).unwrap();
            assert!(grid.bound(region) <= accuracy, "{width} {height} {accuracy}");
            grid.lengths
        };
        // 744 pixels need more than 1024 cells where 11900 need all that there may be
        assert_eq!(grid(11_900, 744, 1e-5, GridSides::PowersOfTwo), [16384, 2048]);
        assert_eq!(grid(744, 11_900, 1e-5, GridSides::PowersOfTwo), [2048, 16384]);
        assert_eq!(grid(7000, 728, 1e-5, GridSides::PowersOfTwo), [16384, 1024]);
        assert_eq!(grid(7000, 728, 5e-6, GridSides::PowersOfTwo), [16384, 2048]);
        assert_eq!(grid(7000, 728, 5e-6, GridSides::Thirds), [12288, 1536]);
        // bands of wide slices, down to a row
        for height in (1..=7000).step_by(311) {
            for sides in [GridSides::PowersOfTwo, GridSides::Thirds] {
                assert!(grid(7000, height, 5e-6, sides)[0] >= 12288);
            }
        }
    }

    /// Returns for every pixel of a side its place in periods of the grid, and the factors of its aliases: the waves a
    /// whole number of periods away.
    fn aliases(grid: &FrequencyGrid, axis: usize, pixels: usize) -> Vec<(f64, Vec<f64>)> {
        let of_pixel = |i: usize| {
            let x = (i as f64 - (pixels / 2) as f64) / grid.lengths[axis] as f64;
            let transform = |l: i32| grid.kernels[axis].transform(x + f64::from(l));
            (x, (-7..=7).map(|l| transform(l) / transform(0)).collect())
        };
        (0..pixels).map(of_pixel).collect()
    }

    /// The error of a region with this grid in exact arithmetic, relative to its values, for a sum of waves.
    fn error_of(grid: &FrequencyGrid, [along_x, along_y]: [&[(f64, Vec<f64>)]; 2], seed: u64) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let turn = |angle: f64| Complex::cis(2.0 * PI * angle);
        let pixels = along_x.len() * along_y.len();
        let (mut values, mut errors) = (vec![0.0; pixels], vec![0.0; pixels]);
        for p in 0..12 {
            let (sin, cos) = (PI * f64::from(p) / 12.0).sin_cos();
            for k in (1..=32).map(f64::from) {
                let wave = turn(rng.random()) * k * rng.random::<f64>();
                let side = |axis: usize, places: &[(f64, Vec<f64>)], share: f64| -> Vec<[Complex<f64>; 2]> {
                    let step = k * grid.lengths[axis] as f64 * share / 64.0;
                    let alias = |(l, factor): (i32, &f64)| turn(f64::from(l) * step) * factor;
                    places.iter().map(|(x, of)| [turn(step * x), (-7..).zip(of).map(alias).sum()]).collect()
                };
                let (along_x, along_y) = (side(0, along_x, cos), side(1, along_y, -sin));
                for (at, (value, error)) in values.iter_mut().zip(&mut errors).enumerate() {
                    let ([x, of_x], [y, of_y]) = (along_x[at % along_x.len()], along_y[at / along_x.len()]);
                    *value += (wave * x * y).re;
                    *error += (wave * x * y * (of_x * of_y - 1.0)).re;
                }
            }
        }
        let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
        (norm(&errors) / norm(&values)).sqrt()
    }

    #[test]
    fn the_bound_holds_for_a_few_pixels() {
        for sides in [[1, 1], [1, 2], [2, 1], [2, 2], [3, 2], [4, 4], [5, 5], [8, 8], [17, 3], [1, 40]] {
            for accuracy in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 2e-6] {
                let roi = Roi { x: 0, y: 0, width: sides[0], height: sides[1] };
                let grid = FrequencyGrid::new(roi, accuracy, GridSides::PowersOfTwo).unwrap();
                let [along_x, along_y] = [0, 1].map(|axis| aliases(&grid, axis, sides[axis]));
                for seed in 0..20 {
                    let error = error_of(&grid, [&along_x, &along_y], seed);
                    assert!(error <= accuracy, "{sides:?} {accuracy}: {error:e} with {grid:?}, seed {seed}");
                }
            }
        }
    }

    #[test]
    fn the_largest_square_is_the_largest() {
        // those of docs/geometry.md
        for (accuracy, side) in [(2e-5, 11_915), (1e-5, 11_404), (5e-6, 10_590), (3e-6, 9839), (2e-6, 9122)] {
            let has_grid = |side| FrequencyGrid::new(full(side), accuracy, GridSides::Thirds).is_some();
            assert!(has_grid(side) && !has_grid(side + 1), "{accuracy}");
        }
        assert_eq!(FrequencyGrid::largest_square(1e-1, GridSides::Thirds), 11_915);
        assert_eq!(FrequencyGrid::largest_square(5e-6, GridSides::PowersOfTwo), 10_590);
    }
}

//! The state of a slice in the alternating direction method, and what each iteration does with it, row by row.
//!
//! The slice's gradient is split off as `z` with the scaled multiplier `u`, and the slice within its bounds as `v` with
//! `e`. As `z` is what shrinking makes of `t = z + u`, and `v` what clipping makes of `v + e`, only these sums are kept.

use std::ops::Range;

/// How gradients are shrunk and values are clipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitBounds {
    /// Length that gradients lose.
    pub tau: f32,
    /// Least share of a gradient that remains: 0 for the total variation.
    pub least: f32,
    /// Smallest value in the disc.
    pub low: f32,
}

/// Weights of what is split off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitWeights {
    /// Weight of the gradient.
    pub rho: f64,
    /// Weight of the bounds.
    pub nu: f64,
}

/// Images of `side x side` pixels.
pub struct SplitState {
    pub side: usize,
    pub slice: Vec<f32>,
    /// `Q f`, kept by recurrence.
    pub projected: Vec<f32>,
    /// `z + u` along x and y; in the first iteration `u` alone, as `z` is the gradient then.
    pub gradient: [Vec<f32>; 2],
    /// `v + e`.
    pub bounded: Vec<f32>,
    /// No iteration has been done.
    pub first: bool,
}

/// Returns what remains of a gradient.
fn shrink(t: [f32; 2], bounds: &SplitBounds) -> [f32; 2] {
    let length = (t[0] * t[0] + t[1] * t[1]).sqrt().max(1e-20);
    let share = (1.0 - bounds.tau / length).max(bounds.least);
    t.map(|t| t * share)
}

impl SplitState {
    /// The state of a slice with multipliers of its gradient.
    pub fn new(
        slice: Vec<f32>,
        multipliers: Option<[Vec<f32>; 2]>,
        bounds: &SplitBounds,
        disc: &[Range<usize>],
    ) -> SplitState {
        let side = disc.len();
        let zero = || vec![0f32; side * side];
        let mut state = SplitState {
            side,
            projected: zero(),
            gradient: multipliers.unwrap_or_else(|| [zero(), zero()]),
            bounded: slice.clone(),
            slice,
            first: true,
        };
        state.bounded = state.bounded(bounds, disc);
        state
    }

    /// Returns the slice within its bounds, 0 outside the disc.
    pub fn bounded(&self, bounds: &SplitBounds, disc: &[Range<usize>]) -> Vec<f32> {
        let mut slice = vec![0f32; self.side * self.side];
        let rows = slice.chunks_exact_mut(self.side).zip(self.bounded.chunks_exact(self.side)).zip(disc);
        for ((to, from), inside) in rows {
            for (to, from) in to[inside.clone()].iter_mut().zip(&from[inside.clone()]) {
                *to = from.max(bounds.low);
            }
        }
        slice
    }

    /// Returns the multipliers of the gradient, in units of the step `tau`.
    pub fn multipliers(&self, bounds: &SplitBounds) -> [Vec<f32>; 2] {
        let mut multipliers = self.gradient.clone();
        let [along_x, along_y] = &mut multipliers;
        for (x, y) in along_x.iter_mut().zip(along_y.iter_mut()) {
            let t = [*x, *y];
            let z = shrink(t, bounds);
            [*x, *y] = [0, 1].map(|axis| (t[axis] - z[axis]) / bounds.tau);
        }
        multipliers
    }

    /// Returns the differences of an image to its right and lower neighbours in row `y`, around the torus.
    fn gradients<'a>(image: &'a [f32], side: usize, y: usize) -> impl Fn(usize) -> [f32; 2] + use<'a> {
        let row = &image[y * side..][..side];
        let below = &image[(y + 1) % side * side..][..side];
        move |x| {
            let right = if x + 1 < side { row[x + 1] } else { row[0] };
            [right - row[x], below[x] - row[x]]
        }
    }

    /// Stores the residual of the step along the slice: `b - Q f + rho div (z - u - grad f) + nu (v - e - f)`.
    pub fn residual(
        &self,
        data: &[f32],
        weights: SplitWeights,
        bounds: &SplitBounds,
        disc: &[Range<usize>],
        out: &mut [f32],
    ) {
        let side = self.side;
        let (rho, nu) = (weights.rho as f32, weights.nu as f32);
        let [along_x, along_y] = &self.gradient;
        // z - u - grad f of a row
        let difference = |y: usize, to: &mut [[f32; 2]]| {
            let gradient = SplitState::gradients(&self.slice, side, y);
            for (x, to) in to.iter_mut().enumerate() {
                let t = [along_x[y * side + x], along_y[y * side + x]];
                *to = match self.first {
                    true => t.map(|t| -t),
                    false => {
                        let (z, g) = (shrink(t, bounds), gradient(x));
                        [0, 1].map(|axis| 2.0 * z[axis] - t[axis] - g[axis])
                    }
                };
            }
        };
        let (mut above, mut row) = (vec![[0f32; 2]; side], vec![[0f32; 2]; side]);
        difference(side - 1, &mut above);
        for (y, out) in out.chunks_exact_mut(side).enumerate() {
            difference(y, &mut row);
            let at = y * side;
            let (slice, projected, bounded) = (&self.slice[at..], &self.projected[at..], &self.bounded[at..]);
            let inside = &disc[y];
            for (x, out) in out.iter_mut().enumerate() {
                let left = if x > 0 { row[x - 1][0] } else { row[side - 1][0] };
                let divergence = left - row[x][0] + above[x][1] - row[x][1];
                let t = bounded[x];
                let v = if inside.contains(&x) { t.max(bounds.low) } else { 0.0 };
                *out = data[at + x] - projected[x] + rho * divergence + nu * (2.0 * v - t - slice[x]);
            }
            std::mem::swap(&mut above, &mut row);
        }
    }

    /// Moves the slice by `length` times `direction`, whose `Q` is `projected`, and updates the multipliers. Returns the
    /// sum of squared changes of the slice within its bounds.
    pub fn advance(
        &mut self,
        length: f32,
        direction: &[f32],
        projected: &[f32],
        relax: f32,
        bounds: &SplitBounds,
        disc: &[Range<usize>],
    ) -> f64 {
        let side = self.side;
        let mut change = 0.0;
        for (y, inside) in disc.iter().enumerate() {
            let row = y * side..(y + 1) * side;
            let (slice, bounded) = (&mut self.slice[row.clone()], &mut self.bounded[row.clone()]);
            for (f, d) in slice.iter_mut().zip(&direction[row.clone()]) {
                *f += length * d;
            }
            for (q, d) in self.projected[row.clone()].iter_mut().zip(&projected[row.clone()]) {
                *q += length * d;
            }
            let mut of_row = 0f32;
            for (x, (t, f)) in bounded.iter_mut().zip(slice.iter()).enumerate() {
                let clip = |t: f32| if inside.contains(&x) { t.max(bounds.low) } else { 0.0 };
                let before = clip(*t);
                *t += relax * (f - before);
                let change = clip(*t) - before;
                of_row += change * change;
            }
            change += f64::from(of_row);
        }
        let first = self.first;
        let [along_x, along_y] = &mut self.gradient;
        for y in 0..side {
            let gradient = SplitState::gradients(&self.slice, side, y);
            let moved = SplitState::gradients(direction, side, y);
            let row = y * side..(y + 1) * side;
            for (x, (t_x, t_y)) in along_x[row.clone()].iter_mut().zip(&mut along_y[row]).enumerate() {
                let (t, g) = ([*t_x, *t_y], gradient(x));
                [*t_x, *t_y] = match first {
                    // z is the gradient before the step, and t is u
                    true => {
                        let d = moved(x);
                        [0, 1].map(|axis| t[axis] + g[axis] - (1.0 - relax) * length * d[axis])
                    }
                    false => {
                        let z = shrink(t, bounds);
                        [0, 1].map(|axis| t[axis] + relax * (g[axis] - z[axis]))
                    }
                };
            }
        }
        self.first = false;
        change
    }

    /// Returns the sum of squares of an image's gradient.
    pub fn squared_gradient(image: &[f32], side: usize) -> f64 {
        let row = |y| {
            let gradient = SplitState::gradients(image, side, y);
            let squares = (0..side).map(|x| gradient(x).map(|g| g * g).iter().sum::<f32>());
            f64::from(squares.sum::<f32>())
        };
        (0..side).map(row).sum()
    }

    /// Returns the total variation of an image; with `huber` above 0, gradients below it count by their square.
    pub fn variation(image: &[f32], side: usize, huber: f64) -> f64 {
        let penalty = |length: f64| match length < huber {
            true => length * length / (2.0 * huber),
            false => length - 0.5 * huber,
        };
        let row = |y| {
            let gradient = SplitState::gradients(image, side, y);
            let lengths = (0..side).map(|x| gradient(x).map(|g| g * g).iter().sum::<f32>().sqrt());
            lengths.map(|length| penalty(f64::from(length))).sum::<f64>()
        };
        (0..side).map(row).sum()
    }
}

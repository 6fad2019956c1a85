//! Simulated scans with a known rotation axis.

use fbp_base::center::{Method, Sinograms};
use fbp_base::geometry::even_angles;
use fbp_base::phantom::add_gaussian;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Methods of the columns of the table in docs/dev/axis.md; the last is the choice without `--method`.
pub const COLUMNS: [Option<Method>; 6] = [
    Some(Method::Likelihood),
    Some(Method::Registration),
    Some(Method::Vo),
    Some(Method::Overlap),
    Some(Method::Sweep),
    None,
];

/// Centre, half axes, tilt and value of an ellipse, in bins from the axis.
pub struct Ellipse {
    pub centre: [f64; 2],
    pub half: [f64; 2],
    pub tilt: f64,
    pub value: f64,
}

impl Ellipse {
    /// Half axes are up to `size` of the radius.
    pub fn random(rng: &mut ChaCha8Rng, radius: f64, size: f64) -> Ellipse {
        let half = [0, 1].map(|_| radius * size * rng.random_range(0.125..1.0));
        let distance = (radius - half[0].max(half[1])) * rng.random_range(0.0..1f64).sqrt();
        let (sin, cos) = rng.random_range(0.0..std::f64::consts::TAU).sin_cos();
        let centre = [distance * cos, distance * sin];
        Ellipse { centre, half, tilt: rng.random_range(0.0..3.0), value: rng.random_range(0.2..1.0) }
    }

    /// A disc that the axis passes through, near its middle.
    pub fn disc(rng: &mut ChaCha8Rng, radius: f64) -> Ellipse {
        let [x, y] = [0, 1].map(|_| 0.1 * radius * rng.random_range(-1.0..1.0));
        Ellipse { centre: [x, y], half: [0.85 * radius; 2], tilt: 0.0, value: 1.0 }
    }

    /// Line integral at `s` bins from the axis, `theta` in radians.
    fn project(&self, theta: f64, s: f64) -> f64 {
        let t = s - self.centre[0] * theta.cos() + self.centre[1] * theta.sin();
        let (sin, cos) = (theta + self.tilt).sin_cos();
        let width = (self.half[0] * cos).powi(2) + (self.half[1] * sin).powi(2);
        let chord = (width - t * t).max(0.0).sqrt();
        2.0 * self.value * self.half[0] * self.half[1] * chord / width
    }
}

/// A scan of ellipses, bins averaged over their width.
pub struct Scan {
    pub bins: usize,
    pub axis: f64,
    /// Degrees.
    pub angles: Vec<f64>,
    pub rows: Vec<Vec<f32>>,
}

impl Scan {
    /// `axis` is that of each projection; `noise` is a share of the largest value.
    pub fn of(
        bins: usize,
        axis: &[f64],
        angles: Vec<f64>,
        rows: &[Vec<Ellipse>],
        noise: f64,
        rng: &mut ChaCha8Rng,
    ) -> Scan {
        let value = |sample: &[Ellipse], angle: f64, axis: f64, bin: usize| {
            let at =
                |part: f64| sample.iter().map(|e| e.project(angle.to_radians(), bin as f64 + part - axis)).sum::<f64>();
            ([-0.375, -0.125, 0.125, 0.375].map(at).iter().sum::<f64>() / 4.0) as f32
        };
        let row = |sample: &Vec<Ellipse>| {
            let projections = angles.iter().zip(axis);
            let mut values: Vec<f32> = projections
                .flat_map(|(&angle, &axis)| (0..bins).map(move |bin| value(sample, angle, axis, bin)))
                .collect();
            let largest = values.iter().copied().fold(0f32, f32::max);
            add_gaussian(&mut values, noise * f64::from(largest), rng);
            values
        };
        let rows = rows.iter().map(row).collect();
        Scan { bins, axis: axis[0], angles, rows }
    }

    /// The axis is up to `offset` widths from the middle; the sample reaches to the nearer end of the detector, or of an
    /// off-centre scan to the farther one.
    pub fn random(seed: u64, overall: f64, offset: f64, off_centre: bool) -> Scan {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let bins = rng.random_range(64..=160usize);
        let count = (bins as f64 * rng.random_range(0.9..1.8) * (overall / 180.0).round()) as usize;
        let last = bins as f64 - 1.0;
        let axis = last / 2.0 + bins as f64 * offset * rng.random_range(-1.0..1.0);
        let radius = 0.95 * if off_centre { axis.max(last - axis) } else { axis.min(last - axis) };
        let sample =
            |rng: &mut ChaCha8Rng| (0..rng.random_range(4..10)).map(|_| Ellipse::random(rng, radius, 0.4)).collect();
        let rows: Vec<Vec<Ellipse>> = (0..rng.random_range(1..5)).map(|_| sample(rng)).collect();
        let angles = even_angles(rng.random_range(-90.0..90.0), overall, count);
        let noise = rng.random_range(0.0..0.04);
        Scan::of(bins, &vec![axis; count], angles, &rows, noise, rng)
    }

    pub fn sinograms(&self) -> Sinograms {
        // spread over the height, as a search samples them
        let numbers: Vec<usize> = (0..self.rows.len()).map(|row| 100 * row).collect();
        let rows: Vec<&[f32]> = self.rows.iter().map(Vec::as_slice).collect();
        Sinograms::of_rows(self.bins, &self.angles, &numbers, &rows)
    }
}

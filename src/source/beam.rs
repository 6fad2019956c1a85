//! How far the rays of a cone beam are from parallel ones.

use std::fmt;

/// Pixels by which rays may deviate from parallel ones that count as such.
pub const PARALLEL: f64 = 0.5;

/// A beam from a point, and the part of the rotation axis that a detector sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConeBeam {
    /// Distance from the source to the rotation axis, in pixels on the axis.
    source: f64,
    /// Half the width and half the height of the detector, in pixels.
    half: [f64; 2],
}

impl ConeBeam {
    /// Creates a beam from a source at a distance from the axis, in the unit of the pixel's side on the axis. None if
    /// one of them is not above 0.
    pub fn new(source: f64, pixel: f64, (width, height): (usize, usize)) -> Option<ConeBeam> {
        let source = source.abs() / pixel;
        (source.is_finite() && source > 0.0)
            .then_some(ConeBeam { source, half: [width, height].map(|side| side as f64 / 2.0) })
    }

    /// Returns the largest distance, in pixels, between where a point of the sample is seen and where a parallel beam
    /// shows it, to first order in the size of the sample relative to the distance of the source.
    ///
    /// A point at the distance x from the axis, y in front of it and z above the central ray is seen at x (1 + y / S) and
    /// z (1 + y / S). On the circle that the detector sees, of radius R, x y / S is at most R^2 / 2S, and z y / S is at most
    /// H R / S for half the height H.
    pub fn deviation(&self) -> f64 {
        let [radius, height] = self.half;
        (radius / 2.0).max(height) * radius / self.source
    }

    /// Reports whether the beam may be taken for a parallel one.
    pub fn is_parallel(&self) -> bool {
        self.deviation() <= PARALLEL
    }
}

/// Formats the opening angles.
impl fmt::Display for ConeBeam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [across, along] = self.half.map(|half| 2.0 * (half / self.source).atan().to_degrees());
        write!(f, "{across:.2} x {along:.2} degrees")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest deviation over a cylinder of points, from where each is seen.
    fn searched(source: f64, radius: f64, height: f64) -> f64 {
        let mut most = 0f64;
        for step in 0..3600 {
            let (y, x) = (f64::from(step) * 0.1).to_radians().sin_cos();
            let scale = source / (source - radius * y);
            most = most.max((radius * x * (scale - 1.0)).abs()).max((height * (scale - 1.0)).abs());
        }
        most
    }

    #[test]
    fn the_deviation_is_that_of_the_points_of_a_cylinder() {
        for (source, width, height) in [(1e6, 1000, 10), (1e6, 1000, 2000), (54.35e3 / 11.0, 100, 100)] {
            let beam = ConeBeam::new(source, 1.0, (width, height)).unwrap();
            let (expected, found) = (searched(source, width as f64 / 2.0, height as f64 / 2.0), beam.deviation());
            assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
        }
        // twice as far away, with pixels of the same size, half as much; in other units the same
        let of = |source: f64, pixel: f64| ConeBeam::new(source, pixel, (1000, 1000)).unwrap();
        assert_eq!(of(200.0, 0.01).deviation() * 2.0, of(100.0, 0.01).deviation());
        assert_eq!(of(-200.0, 0.01), of(200.0, 0.01));
        assert_eq!(of(100.0, 0.1).to_string(), "53.13 x 53.13 degrees");
        assert!(of(5e4, 1e-3).is_parallel() && !of(50.0, 1e-2).is_parallel());
    }

    #[test]
    fn what_is_no_beam_is_none() {
        for (source, pixel) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (f64::INFINITY, 1.0), (1.0, -1.0)] {
            assert_eq!(ConeBeam::new(source, pixel, (10, 10)), None, "{source} {pixel}");
        }
    }
}

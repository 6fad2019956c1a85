//! Phantoms of ellipsoids, for scans about an inclined axis.

use super::{Ellipse, Kind, Phantom};

/// Height of an ellipsoid, relative to the mean of its other half axes: such samples are flat.
const FLATNESS: f64 = 0.25;
/// How far an ellipsoid is above or below the middle, relative to its distance to the side.
const SLOPE: f64 = 0.1;
/// Number of rays across a pixel in each direction, of which it has the mean.
const RAYS: usize = 4;

/// One ellipsoid, lengths in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ellipsoid {
    /// Its section through the middle.
    section: Ellipse,
    /// The third half axis.
    c: f64,
    /// Distance of the centre below the middle of the volume.
    z: f64,
}

/// A flat phantom: the ellipses of a kind become ellipsoids, and the phantom of a slice is a section of them.
#[derive(Clone, Debug, PartialEq)]
pub struct FlatPhantom {
    size: usize,
    ellipsoids: Vec<Ellipsoid>,
}

impl FlatPhantom {
    /// Returns the flat phantom for slices of `size x size` pixels.
    pub fn new(kind: Kind, size: usize) -> FlatPhantom {
        let ellipsoid = |&section: &Ellipse| Ellipsoid {
            section,
            c: FLATNESS * (section.a * section.b).sqrt(),
            z: SLOPE * section.x,
        };
        FlatPhantom { size, ellipsoids: Phantom::new(kind, size).ellipses().iter().map(ellipsoid).collect() }
    }

    /// Multiplies every contrast by `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> FlatPhantom {
        self.ellipsoids.iter_mut().for_each(|ellipsoid| ellipsoid.section.contrast *= factor);
        self
    }

    /// Returns the phantom of the slice that is `z` pixels below the middle.
    pub fn slice(&self, z: f64) -> Phantom {
        let section = |ellipsoid: &Ellipsoid| {
            let share = 1.0 - ((z - ellipsoid.z) / ellipsoid.c).powi(2);
            let Ellipse { a, b, .. } = ellipsoid.section;
            let scale = share.max(0.0).sqrt();
            (share > 0.0).then_some(Ellipse { a: a * scale, b: b * scale, ..ellipsoid.section })
        };
        Phantom { size: self.size, ellipses: self.ellipsoids.iter().filter_map(section).collect() }
    }

    /// Computes one row of a projection, `row` rows below the middle of the detector, at the angle `theta` about an axis that
    /// is inclined by `phi` (both in radians): bin `b` of `out` becomes the mean of the line integrals over its pixel.
    pub fn project_row(&self, [theta, phi]: [f64; 2], row: f64, axis: f64, out: &mut [f32]) {
        let shadows: Vec<_> = self.ellipsoids.iter().map(|ellipsoid| ellipsoid.shadow([theta, phi])).collect();
        let offset = |ray: usize| (ray as f64 + 0.5) / RAYS as f64 - 0.5;
        for (bin, value) in out.iter_mut().enumerate() {
            let rays = (0..RAYS * RAYS).map(|ray| {
                let (s, w) = (bin as f64 - axis + offset(ray % RAYS), row + offset(ray / RAYS));
                shadows.iter().map(|shadow| shadow.line(s, w)).sum::<f64>()
            });
            *value = (rays.sum::<f64>() / (RAYS * RAYS) as f64) as f32;
        }
    }
}

/// The projection of an ellipsoid: a line integral is `scale * sqrt(1 - q)`, with `q` a quadratic form of the position on
/// the detector.
struct EllipsoidShadow {
    contrast: f64,
    /// Centre on the detector.
    centre: [f64; 2],
    /// Directions of bins, of rows and of the beam, in units of the half axes.
    across: [f64; 3],
    down: [f64; 3],
    beam: [f64; 3],
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

impl Ellipsoid {
    fn shadow(&self, [theta, phi]: [f64; 2]) -> EllipsoidShadow {
        let ((sin, cos), (inclined, upright)) = (theta.sin_cos(), phi.sin_cos());
        let (turn_sin, turn_cos) = self.section.phi.sin_cos();
        let Ellipse { x, y, a, b, contrast, .. } = self.section;
        let scaled =
            |[x, y, z]: [f64; 3]| [(x * turn_cos + y * turn_sin) / a, (y * turn_cos - x * turn_sin) / b, z / self.c];
        let down = [-sin * inclined, cos * inclined, upright];
        EllipsoidShadow {
            contrast,
            centre: [x * cos + y * sin, dot(down, [x, y, self.z])],
            across: scaled([cos, sin, 0.0]),
            down: scaled(down),
            beam: scaled([-sin * upright, cos * upright, -inclined]),
        }
    }
}

impl EllipsoidShadow {
    /// Returns the line integral at a position on the detector.
    fn line(&self, s: f64, w: f64) -> f64 {
        let (s, w) = (s - self.centre[0], w - self.centre[1]);
        let from = [0, 1, 2].map(|i| s * self.across[i] + w * self.down[i]);
        let (speed, mixed) = (dot(self.beam, self.beam), dot(from, self.beam));
        let root = mixed * mixed - speed * (dot(from, from) - 1.0);
        if root > 0.0 { 2.0 * self.contrast * root.sqrt() / speed } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upright_projection_is_that_of_the_slices() {
        let flat = FlatPhantom::new(Kind::Asymmetric, 64);
        for (theta, z) in [(0.0, 0.0), (0.7, 1.5), (2.1, -3.0)] {
            let (mut row, mut section) = (vec![0f32; 64], vec![0f32; 64]);
            flat.project_row([theta, 0.0], z, 30.2, &mut row);
            // the mean over the height of a pixel
            for ray in 0..RAYS {
                let mut line = vec![0f32; 64];
                let height = z + (ray as f64 + 0.5) / RAYS as f64 - 0.5;
                flat.slice(height).project_row(theta, 30.2, &mut line);
                section.iter_mut().zip(&line).for_each(|(mean, value)| *mean += value / RAYS as f32);
            }
            let largest = section.iter().fold(0f32, |most, v| most.max(v.abs()));
            let far = row.iter().zip(&section).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            // rays across a bin, and its exact mean
            assert!(far < 0.02 * largest, "{theta} {z}: {far} of {largest}");
        }
    }

    #[test]
    fn every_projection_has_the_whole_mass() {
        let flat = FlatPhantom::new(Kind::SheppLogan, 48);
        let mass = |theta: f64, phi: f64| -> f64 {
            let row = |row: i32| {
                let mut values = vec![0f32; 64];
                flat.project_row([theta, phi], f64::from(row), 31.5, &mut values);
                values.iter().map(|v| f64::from(*v)).sum::<f64>()
            };
            (-32..=32).map(row).sum()
        };
        let first = mass(0.0, 0.0);
        for (theta, phi) in [(0.4, 0.5), (1.9, -0.8), (4.0, 1.2)] {
            let other = mass(theta, phi);
            assert!((other - first).abs() < 2e-3 * first, "{theta} {phi}: {other} {first}");
        }
    }
}

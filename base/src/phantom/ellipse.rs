//! Ellipses and their exact projections.

use std::f64::consts::FRAC_1_SQRT_2;

/// One ellipse, lengths in pixels, the origin on the rotation axis, X right and Y up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipse {
    /// X of the centre.
    pub x: f64,
    /// Y of the centre.
    pub y: f64,
    /// The semi-axis that lies along X before rotation.
    pub a: f64,
    /// The semi-axis that lies along Y before rotation.
    pub b: f64,
    /// Anticlockwise rotation in radians.
    pub phi: f64,
    /// Increase of the attenuation inside, in 1/pixel.
    pub contrast: f64,
}

impl Ellipse {
    /// Returns the point in the frame of the ellipse's own axes.
    fn local(&self, x: f64, y: f64) -> (f64, f64) {
        let (sin, cos) = self.phi.sin_cos();
        let (x, y) = (x - self.x, y - self.y);
        (x * cos + y * sin, y * cos - x * sin)
    }

    /// Reports whether the point lies inside.
    pub fn contains(&self, x: f64, y: f64) -> bool {
        let (u, v) = self.local(x, y);
        (u / self.a).powi(2) + (v / self.b).powi(2) <= 1.0
    }

    /// Returns the distance of the point from the boundary in pixels, positive inside, negative outside.
    pub fn depth(&self, x: f64, y: f64) -> f64 {
        // The nearest boundary point, by walking along circles of curvature: converges from anywhere.
        let (u, v) = self.local(x, y);
        let (u, v) = (u.abs(), v.abs());
        let (a, b) = (self.a, self.b);
        let (mut cos, mut sin) = (FRAC_1_SQRT_2, FRAC_1_SQRT_2);
        for _ in 0..8 {
            let centre_u = (a * a - b * b) * cos.powi(3) / a;
            let centre_v = (b * b - a * a) * sin.powi(3) / b;
            let radius = (a * cos - centre_u).hypot(b * sin - centre_v);
            let reach = (u - centre_u).hypot(v - centre_v);
            if reach == 0.0 {
                break;
            }
            cos = (((u - centre_u) * radius / reach + centre_u) / a).clamp(0.0, 1.0);
            sin = (((v - centre_v) * radius / reach + centre_v) / b).clamp(0.0, 1.0);
            let norm = cos.hypot(sin);
            (cos, sin) = (cos / norm, sin / norm);
        }
        let distance = (u - a * cos).hypot(v - b * sin);
        if self.contains(x, y) { distance } else { -distance }
    }

    /// Reports whether the other ellipse lies wholly inside this one.
    pub(super) fn holds(&self, other: &Ellipse) -> bool {
        let (sin, cos) = other.phi.sin_cos();
        (0..256).all(|k| {
            let (v, u) = (f64::from(k) * std::f64::consts::PI / 128.0).sin_cos();
            let (u, v) = (other.a * u, other.b * v);
            self.contains(other.x + u * cos - v * sin, other.y + u * sin + v * cos)
        })
    }

    /// Returns the projection of the ellipse at one angle.
    pub(super) fn shadow(&self, theta: f64) -> EllipseProjection {
        let (sin, cos) = (theta - self.phi).sin_cos();
        let half_width = (self.a * cos).hypot(self.b * sin);
        EllipseProjection {
            centre: self.x * theta.cos() + self.y * theta.sin(),
            half_width,
            scale: 2.0 * self.contrast * self.a * self.b / (half_width * half_width),
        }
    }
}

/// The projection of one ellipse at one angle: `scale * sqrt(half_width^2 - (t - centre)^2)`.
pub(super) struct EllipseProjection {
    centre: f64,
    pub(super) half_width: f64,
    scale: f64,
}

impl EllipseProjection {
    /// Returns the line integral at `t`.
    pub(super) fn sample(&self, t: f64) -> f64 {
        let t = t - self.centre;
        let square = self.half_width * self.half_width - t * t;
        if square > 0.0 { self.scale * square.sqrt() } else { 0.0 }
    }

    /// Returns the mean of the line integrals over `t - 1/2 .. t + 1/2`.
    pub(super) fn average(&self, t: f64) -> f64 {
        let t = t - self.centre;
        if t.abs() >= self.half_width + 0.5 {
            return 0.0;
        }
        self.scale * (self.area(t + 0.5) - self.area(t - 0.5))
    }

    /// Returns the integral of `sqrt(half_width^2 - t^2)` from 0.
    fn area(&self, t: f64) -> f64 {
        let s = self.half_width;
        let t = t.clamp(-s, s);
        0.5 * (t * (s * s - t * t).max(0.0).sqrt() + s * s * (t / s).asin())
    }
}

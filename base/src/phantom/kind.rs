//! The phantoms, as tables of ellipses.

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The kind of a phantom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// The head of Shepp and Logan (IEEE Trans. Nucl. Sci. 21, 1974) with the contrasts of Toft's thesis
    /// (The Radon Transform, 1996, table B.3; MATLAB's "modified"), whose values span 0 to 1.
    SheppLogan,
    /// Ellipses without any symmetry: a flip, a transpose, a quarter turn and a shift by half a pixel
    /// each change it a lot.
    Asymmetric,
    /// Uniform discs of different contrasts and sizes, down to two per cent of the half width.
    Discs,
    /// One uniform disc about the middle, five eighths of the half width in radius.
    Disc,
}

impl Kind {
    /// Returns rows of contrast, semi-axes a and b, centre X and Y (unit disc), and rotation (degrees, anticlockwise).
    /// Outer ellipses come before those that they contain.
    pub(super) fn table(self) -> &'static [[f64; 6]] {
        match self {
            Kind::SheppLogan => &[
                [1.0, 0.69, 0.92, 0.0, 0.0, 0.0],
                [-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0],
                [-0.2, 0.11, 0.31, 0.22, 0.0, -18.0],
                [-0.2, 0.16, 0.41, -0.22, 0.0, 18.0],
                [0.1, 0.21, 0.25, 0.0, 0.35, 0.0],
                [0.1, 0.046, 0.046, 0.0, 0.1, 0.0],
                [0.1, 0.046, 0.046, 0.0, -0.1, 0.0],
                [0.1, 0.046, 0.023, -0.08, -0.605, 0.0],
                [0.1, 0.023, 0.023, 0.0, -0.606, 0.0],
                [0.1, 0.023, 0.046, 0.06, -0.605, 0.0],
            ],
            Kind::Asymmetric => &[
                [0.4, 0.62, 0.78, 0.07, -0.05, 24.0],
                [-0.2, 0.34, 0.17, -0.17, 0.29, 37.0],
                [0.3, 0.11, 0.25, 0.33, 0.12, -15.0],
                [0.5, 0.13, 0.09, 0.02, -0.45, 68.0],
                [0.6, 0.03, 0.03, 0.41, -0.31, 0.0],
                [0.6, 0.28, 0.012, -0.27, -0.16, 71.0],
                [1.0, 0.19, 0.008, 0.05, -0.21, 9.0],
                [0.8, 0.04, 0.025, -0.24, 0.34, -30.0],
            ],
            Kind::Discs => &[
                [0.2, 0.9, 0.9, 0.0, 0.0, 0.0],
                [0.8, 0.22, 0.22, 0.38, 0.31, 0.0],
                [0.3, 0.18, 0.18, -0.41, 0.36, 0.0],
                [-0.2, 0.15, 0.15, -0.12, -0.02, 0.0],
                [0.5, 0.12, 0.12, 0.45, -0.35, 0.0],
                [0.1, 0.09, 0.09, -0.45, -0.3, 0.0],
                [0.4, 0.06, 0.06, 0.02, 0.62, 0.0],
                [0.6, 0.04, 0.04, -0.14, -0.58, 0.0],
                [0.6, 0.03, 0.03, 0.14, -0.65, 0.0],
                [0.6, 0.02, 0.02, 0.04, -0.45, 0.0],
            ],
            Kind::Disc => &[[1.0, 0.625, 0.625, 0.0, 0.0, 0.0]],
        }
    }
}

/// The content of a page of a phantom's scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum PageLayout {
    Sinograms,
    Projections,
}

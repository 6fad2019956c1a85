//! `fbp phantom`.

use super::values::words;
use crate::phantom::{Kind, PageLayout};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct PhantomArgs {
    /// Side of a slice in pixels, and number of bins unless --bins is given
    #[arg(long)]
    pub size: usize,
    /// Number of projections
    #[arg(long)]
    pub projections: usize,
    /// Number of slices
    #[arg(long, default_value_t = 1)]
    pub slices: usize,
    /// Which phantom
    #[arg(long, default_value = "shepp-logan", value_parser = words::<Kind>())]
    pub kind: Kind,
    /// What to write: one file per slice or one per projection
    #[arg(long = "as", default_value = "sinograms", value_parser = words::<PageLayout>())]
    pub layout: PageLayout,
    /// Directory for the files
    #[arg(long, short)]
    pub output: PathBuf,
    /// Write the true slices as one TIFF file
    #[arg(long, value_name = "FILE.tif")]
    pub truth: Option<PathBuf>,
    /// Detector bins [default: size]
    #[arg(long)]
    pub bins: Option<usize>,
    /// Rotation axis in bins [default: (bins - 1) / 2]
    #[arg(long, allow_hyphen_values = true)]
    pub center: Option<f64>,
    /// Angular range of the scan in degrees, end excluded
    #[arg(long, default_value_t = 180.0, allow_hyphen_values = true)]
    pub overall_angle: f64,
    /// Angle of the first projection in degrees
    #[arg(long, default_value_t = 0.0, allow_hyphen_values = true)]
    pub start_angle: f64,
    /// Laminography: a flat phantom of ellipsoids about an axis that is inclined by this many degrees; the detector has as
    /// many rows as there are slices
    #[arg(long, value_name = "DEG", allow_hyphen_values = true)]
    pub lamino_angle: Option<f64>,
    /// File with one angle in degrees per line, one line for each of --projections
    #[arg(long, value_name = "FILE")]
    pub angles: Option<PathBuf>,
    /// Factor by which all values are multiplied: attenuation per pixel where the phantom is 1
    #[arg(long, default_value_t = 1.0)]
    pub scale: f64,
    /// Standard deviation of Gaussian noise on the line integrals
    #[arg(long, default_value_t = 0.0)]
    pub noise: f64,
    /// Write detector counts (16-bit, Poisson noise) for a beam of this many photons per pixel (at most 55000); needs
    /// --as projections
    #[arg(long, value_name = "PHOTONS", requires = "flats")]
    pub photons: Option<f64>,
    /// Directory for flat fields, with --photons
    #[arg(long, value_name = "DIR", requires = "photons", requires = "darks")]
    pub flats: Option<PathBuf>,
    /// Directory for dark fields, with --photons
    #[arg(long, value_name = "DIR", requires = "photons")]
    pub darks: Option<PathBuf>,
    /// Seed of the noise generator
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Replace existing files
    #[arg(long)]
    pub overwrite: bool,
}

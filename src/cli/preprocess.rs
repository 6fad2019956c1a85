//! `fbp preprocess`.

use super::{InputArgs, StepArgs, Text};
use clap::Args;

#[derive(Args, Debug)]
pub struct PreprocessArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Rows of the detector to write: A..B (B excluded), A..=B or A..B:STEP; of sinograms, their numbers [default: all]
    #[arg(long, value_name = "RANGE")]
    pub rows: Option<Text>,
    /// Pixel size with its unit, such as 0.65um, for --phase
    #[arg(long, value_name = "LENGTH")]
    pub pixel_size: Option<Text>,
    #[command(flatten)]
    pub steps: StepArgs,
    /// Device that does the steps: index (0), platform:device (0:1), part of a name, gpu or cpu; on CPUs the host does them
    /// [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<Text>,
    /// Host memory to use, such as 8G [default: half of the free memory]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Text>,
    /// Directory (projection_00000.tif or sinogram_00000.tif ...), pattern such as out/p-%05i.tif, or one file of all
    /// pages: out.tif, out.h5 or out.zarr; f32
    #[arg(long, short, value_name = "PATH")]
    pub output: String,
    /// Treat every warning about the data as an error, with exit code 3, before the first page is written where it can be
    /// known then
    #[arg(long)]
    pub strict: bool,
    /// Write to an output that is not empty, replacing files of the same name
    #[arg(long)]
    pub overwrite: bool,
}

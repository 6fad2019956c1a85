//! `fbp preprocess`.

use super::{InputArgs, StepArgs, Text};
use clap::Args;

#[derive(Args, Debug)]
pub struct PreprocessArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Pixel size with its unit, such as 0.65um, for --phase
    #[arg(long, value_name = "LENGTH")]
    pub pixel_size: Option<Text>,
    #[command(flatten)]
    pub steps: StepArgs,
    /// Directory (projection_00000.tif or sinogram_00000.tif ...), pattern such as out/p-%05i.tif, or one file of all
    /// pages: out.tif, out.h5 or out.zarr; f32
    #[arg(long, short, value_name = "PATH")]
    pub output: String,
    /// Write to an output that is not empty, replacing files of the same name
    #[arg(long)]
    pub overwrite: bool,
}

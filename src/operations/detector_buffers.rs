//! Images of the detector on a device, by which rows are corrected.

use super::row_correction::{DetectorImages, RowCorrection};
use crate::device::{BufferLayout, Launch, Session};
use crate::error::Result;
use opencl3::memory::Buffer;

/// The buffers of fields, of components of the beam with their weights, and of what transmissions are divided by; those that
/// are not held have one value.
pub(super) struct DetectorBuffers {
    held: DetectorImages,
    pixels: usize,
    flat: Buffer<f32>,
    flat2: Buffer<f32>,
    dark: Buffer<f32>,
    divisor: Buffer<f32>,
    components: Buffer<f32>,
    weights: Buffer<f32>,
}

impl DetectorBuffers {
    /// Returns the buffers for a detector of so many pixels.
    pub fn layout(held: DetectorImages, pixels: usize, projections: usize) -> BufferLayout {
        let DetectorImages { flats, components, divisor } = held;
        let image = |used: bool| if used { pixels } else { 1 };
        BufferLayout::default()
            .with::<f32>("flat fields", image(flats > 0))
            .with::<f32>("flat fields after the scan", image(flats > 1))
            .with::<f32>("dark fields", image(flats > 0))
            .with::<f32>("mean of projections", image(divisor))
            .with::<f32>("components of the beam", (components * pixels).max(1))
            .with::<f32>("weights of components", (components * projections).max(1))
    }

    /// Copies the images of a correction to the device.
    ///
    /// # Errors
    /// Errors of the device, and of images that do not have the size of the detector.
    pub fn new(session: &Session, correction: &RowCorrection) -> Result<Self> {
        let (fields, held) = (correction.fields, correction.detector_images());
        let pixels = correction.height * correction.bins;
        let layout = Self::layout(held, pixels, correction.projections.len());
        let field = |image: Option<&[f32]>, what: &'static str| layout.constant(session, what, image.unwrap_or(&[0.0]));
        let components = fields.map(|f| f.components).filter(|images| !images.is_empty());
        let weights = Some(correction.weights.as_slice()).filter(|_| held.components > 0);
        Ok(DetectorBuffers {
            held,
            pixels,
            flat: field(fields.map(|f| f.flat), "flat fields")?,
            flat2: field(fields.and_then(|f| f.flat2), "flat fields after the scan")?,
            dark: field(fields.map(|f| f.dark), "dark fields")?,
            divisor: field(correction.divisor, "mean of projections")?,
            components: field(components, "components of the beam")?,
            weights: field(weights, "weights of components")?,
        })
    }

    /// Reports whether there is any image, so that a row of the detector must be known.
    pub fn any(&self) -> bool {
        self.held.flats > 0 || self.held.divisor
    }

    /// Sets the next arguments of a kernel to the buffers, which it reads for the first `projections`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn arguments<'a>(&self, launch: Launch<'a>, projections: usize) -> Result<Launch<'a>> {
        let DetectorImages { flats, components, divisor } = self.held;
        let image = |used: bool| if used { self.pixels } else { 0 };
        launch
            .buffer(&self.flat, image(flats > 0), "flat fields")?
            .buffer(&self.flat2, image(flats > 1), "flat fields after the scan")?
            .buffer(&self.dark, image(flats > 0), "dark fields")?
            .buffer(&self.divisor, image(divisor), "mean of projections")?
            .buffer(&self.components, components * self.pixels, "components of the beam")?
            .buffer(&self.weights, components * projections, "weights of components")
    }
}

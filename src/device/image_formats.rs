//! Search for working image formats: drivers list formats that they then reject, or that return wrong values.

use super::images::{create, listed};
use super::{Session, cl_error};
use crate::error::Result;
use crate::facts::{ChannelType, ImageFormat};
use crate::kernel::{Texel, generate_probe};
use half::f16;
use opencl3::memory::CL_MEM_WRITE_ONLY;
use opencl3::types::CL_BLOCKING;

impl Session {
    /// Reports whether the image format of a kernel returns correct values on this device; buffers always do.
    pub fn texel_works(&self, texel: Texel) -> Result<bool> {
        texel.format().map_or(Ok(true), |format| self.image_format_works(format))
    }

    /// Reports whether an image of this format returns the values written to it, tested with real values.
    pub fn image_format_works(&self, format: ImageFormat) -> Result<bool> {
        verify(self, format)
    }

    /// Returns the image formats that the driver lists.
    pub fn listed_image_formats(&self) -> Vec<ImageFormat> {
        listed(&self.context)
    }
}

/// Reports whether values written to an image of this format are read correctly by both samplers, inside and at the
/// border.
///
/// # Errors
/// Device errors other than a wrong value, for which the answer is `false`.
fn verify(session: &Session, format: ImageFormat) -> Result<bool> {
    const SIZE: [usize; 2] = [8, 4];
    let channels = format.channels.count();
    // small whole numbers: exact as half
    let value = |x: usize, y: usize, c: usize| (1 + x * 5 + y * 11 + c * 3) as f32;
    let mut floats = Vec::new();
    for y in 0..SIZE[1] {
        for x in 0..SIZE[0] {
            floats.extend((0..channels).map(|c| value(x, y, c)));
        }
    }
    let bytes: Vec<u8> = match format.channel_type {
        ChannelType::Float => floats.iter().flat_map(|v| v.to_ne_bytes()).collect(),
        ChannelType::Half => floats.iter().flat_map(|v| f16::from_f32(*v).to_ne_bytes()).collect(),
    };
    // texel centres, quarters between two of them, and the border on both sides
    let at: Vec<[f32; 2]> = [-0.5, 0.0, 0.5, 1.5, 2.25, 4.75, 7.5, 8.0, 8.5]
        .iter()
        .flat_map(|&x| (0..SIZE[1]).map(move |y| [x, y as f32 + 0.5]))
        .collect();

    let mut image = match create(&session.context, format, SIZE) {
        Ok(image) => image,
        Err(_) => return Ok(false),
    };
    let program = session.build(&generate_probe())?;
    let kernel = session.kernel(&program, "probe_image")?;
    let positions = session.constant_buffer(&at, "probe positions")?;
    let values = session.buffer::<[f32; 4]>(2 * at.len(), CL_MEM_WRITE_ONLY, "probe values")?;
    let (origin, region) = ([0usize; 3], [SIZE[0], SIZE[1], 1]);
    // SAFETY: the image holds exactly `bytes`, and the call blocks.
    unsafe {
        session.queue.enqueue_write_image(
            &mut image,
            CL_BLOCKING,
            origin.as_ptr(),
            region.as_ptr(),
            0,
            0,
            bytes.as_ptr().cast_mut().cast(),
            &[],
        )
    }
    .map_err(|e| cl_error(&format!("writing while trying the image format {format}"), session.device_name(), e))?;
    let launch = session
        .launch(&kernel, "probe_image")
        .handle(&image)?
        .buffer(&positions, at.len(), "probe positions")?
        .buffer(&values, 2 * at.len(), "probe values")?;
    launch.run(&[at.len()], None)?;
    let mut got = vec![[0f32; 4]; 2 * at.len()];
    session.read(&values, &mut got, "probe values")?;

    let texel = |x: f32, y: f32, c: usize| {
        let inside = x >= 0.0 && x < SIZE[0] as f32;
        if inside { value(x as usize, y as usize, c) } else { 0.0 }
    };
    for (&[x, y], (nearest_got, linear_got)) in at.iter().zip(got.iter().zip(&got[at.len()..])) {
        for c in 0..channels {
            let nearest = texel(x.floor(), y, c);
            let left = (x - 0.5).floor();
            let weight = x - 0.5 - left;
            let linear = (1.0 - weight) * texel(left, y, c) + weight * texel(left + 1.0, y, c);
            // texture units keep 8 bits of the weight
            if nearest_got[c] != nearest || (linear_got[c] - linear).abs() > 0.25 {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

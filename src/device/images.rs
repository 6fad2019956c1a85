//! Images of a context, and the formats that its driver lists and creates.

use crate::facts::{ChannelType, Channels, ImageFormat};
use opencl3::context::Context;
use opencl3::memory::{CL_FLOAT, CL_HALF_FLOAT, CL_MEM_OBJECT_IMAGE2D, CL_MEM_READ_ONLY, CL_R, CL_RG, CL_RGBA, Image};
use opencl3::types::{cl_image_desc, cl_image_format};
use std::ptr;

/// Converts an image format to its OpenCL representation.
fn raw(format: ImageFormat) -> cl_image_format {
    cl_image_format {
        image_channel_order: match format.channels {
            Channels::R => CL_R,
            Channels::RG => CL_RG,
            Channels::RGBA => CL_RGBA,
        },
        image_channel_data_type: match format.channel_type {
            ChannelType::Float => CL_FLOAT,
            ChannelType::Half => CL_HALF_FLOAT,
        },
    }
}

/// Creates a two-dimensional image that kernels read.
pub(super) fn create(context: &Context, format: ImageFormat, [width, height]: [usize; 2]) -> opencl3::Result<Image> {
    let description = cl_image_desc {
        image_type: CL_MEM_OBJECT_IMAGE2D,
        image_width: width,
        image_height: height,
        image_depth: 1,
        image_array_size: 1,
        image_row_pitch: 0,
        image_slice_pitch: 0,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: ptr::null_mut(),
    };
    // SAFETY: both descriptions live through the call, and no host memory is handed over.
    unsafe { Image::create(context, CL_MEM_READ_ONLY, &raw(format), &description, ptr::null_mut()) }
}

/// Returns the image formats that the driver lists.
pub(super) fn listed(context: &Context) -> Vec<ImageFormat> {
    let listed = context.get_supported_image_formats(CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D).unwrap_or_default();
    let there = |format: &ImageFormat| {
        let wanted = raw(*format);
        listed.iter().any(|f| {
            f.image_channel_order == wanted.image_channel_order
                && f.image_channel_data_type == wanted.image_channel_data_type
        })
    };
    ImageFormat::ALL.into_iter().filter(there).collect()
}

/// Returns the image formats that the driver lists and of which it creates an image.
pub(super) fn creatable(context: &Context) -> Vec<ImageFormat> {
    listed(context).into_iter().filter(|&format| create(context, format, [8, 4]).is_ok()).collect()
}

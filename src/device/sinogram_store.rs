//! The compound sinogram on a device, and the memory of gridding beside it.

use super::{BufferLayout, Session, cl_error, images};
use crate::error::Result;
use crate::kernel::Texel;
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, Image};

/// Returns the bytes of a compound sinogram of `projections` rows of `bins` bins of `element_bytes` each, and guard
/// bins.
pub(crate) fn sinogram_bytes(texel: Texel, bins: usize, projections: usize, element_bytes: usize) -> usize {
    texel.row_length(bins) * element_bytes * projections
}

/// Name of the image of a compound sinogram in layouts.
const IMAGE: &str = "the sinogram as an image";

/// The compound sinogram on the device: the buffer that the filter writes, and the image if kernels read one.
pub struct SinogramStore {
    pub(crate) buffer: Buffer<u8>,
    pub(crate) image: Option<Image>,
    /// Memory in which gridding computes slices.
    pub(crate) grids: Option<GridMemory>,
    size: [usize; 2],
}

impl SinogramStore {
    /// Allocates a compound sinogram of `projections` rows of `bins` bins of `element_bytes` each, and guard bins.
    pub fn new(session: &Session, texel: Texel, bins: usize, projections: usize, element_bytes: usize) -> Result<Self> {
        let layout = Self::layout(texel, sinogram_bytes(texel, bins, projections, element_bytes));
        let buffer = layout.buffer(session, "the compound sinogram")?;
        let image = texel
            .format()
            .map(|format| images::create(&session.context, format, [bins, projections]))
            .transpose()
            .map_err(|e| {
                cl_error(&format!("creating an image of {bins} x {projections} texels"), session.device_name(), e)
            })?;
        if image.is_some() {
            session.count_allocation(IMAGE, layout.bytes_of(IMAGE)?);
        }
        Ok(SinogramStore { buffer, image, grids: None, size: [bins, projections] })
    }

    /// Returns the layout of a buffer of `bytes` bytes and, if there is an image, as many for it.
    pub fn layout(texel: Texel, bytes: usize) -> BufferLayout {
        let layout = BufferLayout::default().with::<u8>("the compound sinogram", bytes);
        layout.with_if::<u8>(texel.format().is_some(), IMAGE, bytes)
    }

    /// Returns the sinogram with memory for `values` complex values of grids.
    pub fn with_grids(self, session: &Session, values: usize) -> Result<Self> {
        let grids = if values > 0 { Some(GridMemory::new(session, values)?) } else { None };
        Ok(SinogramStore { grids, ..self })
    }

    /// Copies the buffer into the image, if there is one (paper, section 4: OpenCL copies where CUDA binds).
    pub fn publish(&mut self, session: &Session) -> Result<Option<Event>> {
        let Some(image) = &mut self.image else {
            return Ok(None);
        };
        let (origin, region) = ([0usize; 3], [self.size[0], self.size[1], 1]);
        // SAFETY: buffer and image were created with the same number of bytes.
        unsafe {
            session.queue.enqueue_copy_buffer_to_image(&self.buffer, image, 0, origin.as_ptr(), region.as_ptr(), &[])
        }
        .map(Some)
        .map_err(|e| cl_error("copying the sinogram into an image", session.device_name(), e))
    }
}

/// Memory for the grids of a pass, which all parts of a run share.
pub struct GridMemory {
    pub(super) grids: Buffer<[f32; 2]>,
}

impl GridMemory {
    /// Allocates memory for `values` complex values, as many as the largest grid needs.
    pub fn new(session: &Session, values: usize) -> Result<GridMemory> {
        Ok(GridMemory { grids: session.buffer(values, CL_MEM_READ_WRITE, "grids")? })
    }
}

//! Steps on the images of a batch of projections, after the correction of its rows.

use super::block_shape::BlockShape;
use super::device_rows::{DeviceRows, ImagePart};
use super::image_filter::ImageFilter;
use super::rotation::RowRotator;
use super::row_correction::RowCorrection;
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::kernel::ImageFilterBackend;
use opencl3::event::Event;
use opencl3::memory::Buffer;
use std::ops::Range;

/// The kernels for the steps on the images of a batch of projections.
pub(super) struct BatchImages {
    rotator: Option<RowRotator>,
    filter: Option<ImageFilter>,
    bins: usize,
    /// Transmissions of a batch, `[row][projection][bin]`.
    pub transmissions: Buffer<f32>,
    /// The rotated transmissions, if a filter follows the rotation.
    rotated: Option<Buffer<f32>>,
}

/// Detector rows of a batch: the rows that were read, those left after the rotation, and those of the block.
pub(super) struct ImageBatch {
    pub read: Range<usize>,
    pub upright: Range<usize>,
    pub wanted: Range<usize>,
    pub projections: usize,
}

impl BatchImages {
    pub fn new(session: &Session, correction: &RowCorrection, shape: &BlockShape) -> Result<Self> {
        let BlockShape { blocks, bins, height, pairs, .. } = *shape;
        let rotator = match (correction.images.map_halo, correction.images.rotation) {
            (Some(_), _) => Some(RowRotator::of_places(session, correction.places, [bins, height])?),
            (None, Some(form)) => Some(RowRotator::new(session, form.degrees, [bins, height])?),
            (None, None) => None,
        };
        let filter = match (&correction.images.filter, blocks.images) {
            (Some(form), Some(size)) => Some(ImageFilter::new(session, form, size, bins, pairs.max(1))?),
            (None, None) => None,
            _ => return Err(Error::Internal("blocks of other steps".into())),
        };
        let layout = Self::layout(shape, &session.facts, session.image_backend);
        Ok(BatchImages {
            bins,
            transmissions: layout.buffer(session, "transmissions")?,
            rotated: (rotator.is_some() && filter.is_some())
                .then(|| layout.buffer(session, "rotated rows"))
                .transpose()?,
            rotator,
            filter,
        })
    }

    /// Returns the buffers for blocks of this shape.
    pub fn layout(shape: &BlockShape, facts: &DeviceFacts, backend: ImageFilterBackend) -> BufferLayout {
        let BlockShape { blocks, bins, height, batch, pairs, .. } = *shape;
        let (rows, rotation) = (shape.corrected() * batch * bins, blocks.rotation_halo > 0);
        let mut layout = BufferLayout::default().with::<f32>("transmissions", rows).with_if::<f32>(
            rotation && blocks.images.is_some(),
            "rotated rows",
            rows,
        );
        if rotation {
            let of_rotator = if blocks.mapped { RowRotator::layout_of_places } else { RowRotator::layout };
            layout = layout.and(of_rotator([bins, height]));
        }
        match blocks.images {
            Some(size) => layout.and(ImageFilter::layout(facts, backend, size, pairs.max(1))),
            None => layout,
        }
    }

    /// Computes rows of the block from the transmissions. Returns the event of the last kernel, without waiting for it.
    pub fn run(&mut self, session: &Session, rows: &ImageBatch, into_block: &DeviceRows) -> Result<Option<Event>> {
        let ImageBatch { read, upright, wanted, projections } = rows;
        let part = |read: &Range<usize>, wanted: &Range<usize>| ImagePart {
            read: read.clone(),
            wanted: wanted.clone(),
            projections: *projections,
        };
        let mut last = None;
        let rotated = match (&self.rotator, &self.rotated) {
            (Some(rotator), Some(rotated)) => {
                let to = DeviceRows { values: rotated, first: 0, stride: projections * self.bins };
                rotator.run(session, &self.transmissions, &part(read, upright), &to)?;
                rotated
            }
            (Some(rotator), None) => {
                last = Some(rotator.run(session, &self.transmissions, &part(read, wanted), into_block)?);
                &self.transmissions
            }
            (None, _) => &self.transmissions,
        };
        if let Some(filter) = &mut self.filter {
            last = filter.run(session, rotated, &part(upright, wanted), into_block)?;
        }
        Ok(last)
    }
}

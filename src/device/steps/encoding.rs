//! Encoding of slices on a device as the samples that are written.

use super::{BufferLayout, Session, cl_error, fault};
use crate::error::{Error, Result};
use crate::kernel::{EncodedSample, generate_encoding, power_of_two_group};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

/// Largest work-group of the kernel.
const GROUP: usize = 128;

/// The kernel with the mask on the device.
pub struct SliceEncoder {
    kernel: Kernel,
    sample: EncodedSample,
    width: usize,
    height: usize,
    group: usize,
    factor: f32,
    inside: Buffer<[i32; 2]>,
    /// Values that become 0 and the largest number.
    range: (f32, f32),
}

/// What encoding needs besides the slices, and how many values of each were clamped.
pub struct EncodedSlices {
    /// Samples of the first row, before they replace its values.
    first: Buffer<f32>,
    clamped: Buffer<u32>,
    slices: usize,
}

impl EncodedSample {
    fn bytes(self) -> usize {
        match self {
            EncodedSample::Float => 4,
            EncodedSample::Half | EncodedSample::Unsigned16 => 2,
            EncodedSample::Unsigned8 => 1,
        }
    }
}

impl SliceEncoder {
    /// For slices of `width`, of which a mask leaves the pixels `inside` of every row; values are multiplied by `factor`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        session: &Session,
        sample: EncodedSample,
        width: usize,
        inside: &[[i32; 2]],
        factor: f32,
    ) -> Result<Self> {
        let group = power_of_two_group(&session.facts, GROUP);
        let source = generate_encoding(sample, group)?;
        let program = session.build(&source)?;
        Ok(SliceEncoder {
            kernel: session.kernel(&program, source.entry)?,
            sample,
            width,
            height: inside.len(),
            group,
            factor: factor * (1.0 + fault::shift(&source.name) as f32),
            inside: Self::mask_layout(inside.len()).constant(session, "the mask", inside)?,
            range: (0.0, 1.0),
        })
    }

    /// Buffers of the encoder itself, for slices of `height` rows.
    pub fn mask_layout(height: usize) -> BufferLayout {
        BufferLayout::default().with::<[i32; 2]>("the mask", height)
    }

    /// Buffers to encode so many slices with rows of `width` pixels at once.
    pub fn layout(sample: EncodedSample, width: usize, slices: usize) -> BufferLayout {
        BufferLayout::default()
            .with::<f32>("an encoded row", (width * sample.bytes()).div_ceil(4))
            .with::<u32>("counts of clamped values", slices)
    }

    /// Sets the values that become 0 and the largest number.
    pub fn set_range(&mut self, range: (f32, f32)) {
        self.range = range;
    }

    /// Bytes of a slice.
    pub fn slice_bytes(&self) -> usize {
        self.width * self.height * self.sample.bytes()
    }

    /// Whether samples are values, each where it was, without more memory.
    pub fn in_place(&self) -> bool {
        self.sample == EncodedSample::Float
    }

    /// Memory to encode this many slices at once.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn buffers(&self, session: &Session, slices: usize) -> Result<EncodedSlices> {
        let layout = Self::layout(self.sample, self.width, slices);
        Ok(EncodedSlices {
            first: layout.buffer(session, "an encoded row")?,
            clamped: layout.buffer(session, "counts of clamped values")?,
            slices,
        })
    }

    /// Encodes the first `count` slices where they are.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for what does not fit, or samples that are no values.
    pub fn run_in_place(&self, session: &Session, slices: &mut Buffer<f32>, count: usize) -> Result<Event> {
        if !self.in_place() {
            return Err(Error::Internal(format!("{:?} has samples of its own", self.sample)));
        }
        session.expect_length(slices, count * self.width * self.height, "slices")?;
        let launch = session
            .launch(&self.kernel, "encode_slices")
            .handle(slices)?
            .handle(&self.inside)?
            .value(self.factor)?
            .value(self.width as i32)?;
        // SAFETY: slices were checked, and the mask has a value for each row.
        unsafe { launch.run(&[self.group, self.height, count], Some(&[self.group, 1, 1])) }
    }

    /// Encodes the first `count` slices as samples, `[slice][y][x]` at the beginning of the memory of their values.
    ///
    /// Samples have at most half as many bytes as values. So those of the rows from `k` to `m` do not reach beyond the values of
    /// the rows before `k`, if `m` rows of samples have no more bytes than `k` of values: these are encoded at once, after those
    /// before them, and only the first row by way of other memory. Whole slices follow likewise.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn run(
        &self,
        session: &Session,
        slices: &mut Buffer<f32>,
        encoded: &mut EncodedSlices,
        count: usize,
    ) -> Result<Event> {
        if count == 0 || count > encoded.slices || self.in_place() {
            let (sample, most) = (self.sample, encoded.slices);
            return Err(Error::Internal(format!("{count} slices of {sample:?} are not for buffers of {most}")));
        }
        session.expect_length(slices, count * self.width * self.height, "slices")?;
        session.write(&mut encoded.clamped, &vec![0; encoded.slices], "counts of clamped values")?;
        let EncodedSlices { first, clamped, .. } = encoded;
        let times = 4 / self.sample.bytes();
        self.encode(session, slices, first, clamped, [0..1, 0..1])?;
        for rows in growing(times, self.height) {
            self.encode(session, slices, slices, clamped, [rows, 0..1])?;
        }
        for some in growing(times, count) {
            self.encode(session, slices, slices, clamped, [0..self.height, some])?;
        }
        // SAFETY: both have these bytes, and the values that are overwritten were encoded before in the same queue.
        unsafe { session.queue.enqueue_copy_buffer(first, slices, 0, 0, self.width * self.sample.bytes(), &[]) }
            .map_err(|e| cl_error("copying an encoded row", session.device_name(), e))
    }

    /// Encodes rows of the first slice, or all rows of some slices, into the places in `samples` that their numbers say.
    fn encode(
        &self,
        session: &Session,
        slices: &Buffer<f32>,
        samples: &Buffer<f32>,
        clamped: &Buffer<u32>,
        [rows, some]: [Range<usize>; 2],
    ) -> Result<Event> {
        let launch = session
            .launch(&self.kernel, "encode_slices")
            .handle(slices)?
            .handle(samples)?
            .handle(&self.inside)?
            .handle(clamped)?
            .value(self.factor)?
            .value(self.width as i32)?
            .value(self.range.0)?
            .value(self.range.1)?
            .starting_at([0, rows.start, some.start]);
        // SAFETY: slices and samples were checked, or have one row; what is written is not read, the mask has a value for each
        // row, and counts one for each slice.
        unsafe { launch.run(&[self.group, rows.len(), some.len()], Some(&[self.group, 1, 1])) }
    }
}

/// What comes after the first of `count` things, in parts whose samples fit into the values of the things before each, if values have
/// so many `times` the bytes of samples.
fn growing(times: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    std::iter::successors(Some(1), move |start| Some(start * times))
        .take_while(move |start| *start < count)
        .map(move |start| start..(start * times).min(count))
}

impl EncodedSlices {
    /// How many values of each of the first `count` slices were clamped.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn clamped(&self, session: &Session, count: usize) -> Result<Vec<u32>> {
        let mut clamped = vec![0; count.min(self.slices)];
        session.download(&self.clamped, 0, &mut clamped, "counts of clamped values")?;
        Ok(clamped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_replace_only_values_that_were_encoded() {
        for (times, count) in [2, 4].into_iter().flat_map(|times| (1..70).map(move |count| (times, count))) {
            let mut encoded = 1;
            for part in growing(times, count) {
                // in samples, of which a value takes the place of so many
                assert!(part.start == encoded && part.end <= times * part.start && !part.is_empty());
                encoded = part.end;
            }
            assert_eq!(encoded, count);
        }
        assert_eq!(growing(4, 20).collect::<Vec<_>>(), [1..4, 4..16, 16..20]);
    }
}

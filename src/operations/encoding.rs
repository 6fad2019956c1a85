//! Encoding of slices on a device as the samples that are written.

use super::program_target::ProgramTarget;
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::fault;
use crate::kernel::{ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

const ENCODE_SLICES: ClFile = cl_file!("encode_slices.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[ENCODE_SLICES]];

/// The type of encoded samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedSample {
    /// Values, which stay as and where they are.
    Float,
    Half,
    Unsigned16,
    Unsigned8,
}

/// Returns the source of the kernel that encodes slices, with work-groups of `group`.
fn generate_encoding(sample: EncodedSample, group: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("DTYPE", sample as u32)?;
    defines.number("GROUP", group as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("encode-slices".to_owned(), &defines, FILES[0], options, "encode_slices", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    let whole = [EncodedSample::Unsigned16, EncodedSample::Unsigned8];
    let whole = whole.into_iter().filter(|_| on.target.facts.has("cl_khr_fp64"));
    let all = [EncodedSample::Float, EncodedSample::Half].into_iter().chain(whole);
    all.map(|sample| generate_encoding(sample, on.target.row_group())).collect()
}

/// Largest number of work-items of a work-group.
const GROUP: usize = 128;

/// The kernel that encodes slices, with the mask on the device.
pub struct SliceEncoder {
    kernel: Kernel,
    sample: EncodedSample,
    width: usize,
    height: usize,
    group: usize,
    factor: f32,
    inside: Buffer<[i32; 2]>,
    /// Values that become 0 and the largest sample.
    range: (f32, f32),
}

/// Buffers that encoding needs besides the slices, with the number of clamped values of each slice.
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
    /// Builds the kernel for slices of `width` pixels, of whose rows a mask leaves the pixels `inside`; values are
    /// multiplied by `factor`.
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

    /// Returns the buffers of the encoder itself, for slices of `height` rows.
    pub fn mask_layout(height: usize) -> BufferLayout {
        BufferLayout::default().with::<[i32; 2]>("the mask", height)
    }

    /// Returns the buffers to encode `slices` slices with rows of `width` pixels at once.
    pub fn layout(sample: EncodedSample, width: usize, slices: usize) -> BufferLayout {
        BufferLayout::default()
            .with::<f32>("an encoded row", (width * sample.bytes()).div_ceil(4))
            .with::<u32>("counts of clamped values", slices)
    }

    /// Sets the values that become 0 and the largest sample.
    pub fn set_range(&mut self, range: (f32, f32)) {
        self.range = range;
    }

    /// Returns the number of bytes of an encoded slice.
    pub fn slice_bytes(&self) -> usize {
        self.width * self.height * self.sample.bytes()
    }

    /// Reports whether samples are floats that replace the values one by one, without more memory.
    pub fn in_place(&self) -> bool {
        self.sample == EncodedSample::Float
    }

    /// Allocates memory to encode `slices` slices at once.
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

    /// Encodes the first `count` slices in place.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for slices that do not fit, or samples that are not floats.
    pub fn run_in_place(&self, session: &Session, slices: &mut Buffer<f32>, count: usize) -> Result<Event> {
        if !self.in_place() {
            return Err(Error::Internal(format!("{:?} has samples of its own", self.sample)));
        }
        let launch = session
            .launch(&self.kernel, "encode_slices")
            .buffer(slices, count * self.width * self.height, "slices")?
            .buffer(&self.inside, self.height, "the mask")?
            .value(self.factor)?
            .value(self.width as i32)?;
        launch.run(&[self.group, self.height, count], Some(&[self.group, 1, 1]))
    }

    /// Encodes the first `count` slices as samples, `[slice][y][x]` at the beginning of the memory of their values.
    ///
    /// Samples have at most half as many bytes as values. The samples of rows `k` to `m` therefore do not reach beyond
    /// the values of the rows before `k`, if `m` rows of samples have no more bytes than `k` rows of values. These rows
    /// are encoded at once, after those before them, and only the first row passes through other memory. Whole slices
    /// follow likewise.
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
        // the values that are overwritten were encoded before in the same queue
        session.copy_between(
            &session.queue,
            (first, 0),
            (slices, 0),
            self.width * self.sample.bytes(),
            "an encoded row",
        )
    }

    /// Encodes rows of the first slice, or all rows of some slices, into the places in `samples` that belong to them.
    fn encode(
        &self,
        session: &Session,
        slices: &Buffer<f32>,
        samples: &Buffer<f32>,
        clamped: &Buffer<u32>,
        [rows, some]: [Range<usize>; 2],
    ) -> Result<Event> {
        let pixels = ((some.end - 1) * self.height + rows.end) * self.width;
        // what is written is not read
        let launch = session
            .launch(&self.kernel, "encode_slices")
            .buffer(slices, pixels, "slices")?
            .buffer(samples, (pixels * self.sample.bytes()).div_ceil(4), "samples of slices")?
            .buffer(&self.inside, rows.end, "the mask")?
            .buffer(clamped, some.end, "counts of clamped values")?
            .value(self.factor)?
            .value(self.width as i32)?
            .value(self.range.0)?
            .value(self.range.1)?
            .starting_at([0, rows.start, some.start]);
        launch.run(&[self.group, rows.len(), some.len()], Some(&[self.group, 1, 1]))
    }
}

/// Divides the items after the first of `count` into parts whose samples fit into the values of the items before each
/// part, if a value has as many bytes as `times` samples.
fn growing(times: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    std::iter::successors(Some(1), move |start| Some(start * times))
        .take_while(move |start| *start < count)
        .map(move |start| start..(start * times).min(count))
}

impl EncodedSlices {
    /// Returns the number of clamped values of each of the first `count` slices.
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

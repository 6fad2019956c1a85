//! Arrays in memory that a caller lends: frames, rows and columns, read where they are.

use super::frames::{Frames, MAX_PIXELS, MAX_SIDE, as_f32};
use super::npy::{MAX_FRAMES, sample_of};
use super::{Binning, InputKind, SampleType, Stack, Stacks, StoredSamples};
use crate::error::{Error, Result, messages};
use crate::layout::to_f32;
use crate::remark::Remark;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Value of flags that stand for arrays, for messages.
pub const ARRAY: &str = "array";

messages! {
    /// Errors of an array.
    enum ArrayInputError: Input {
        ArrayShape { flag: String, frames: usize, height: usize, width: usize } =>
            "{flag}: the array has the shape {frames} x {height} x {width}, not 1 to {MAX_SIDE} a side, {MAX_PIXELS} \
             pixels and {MAX_FRAMES} frames";
            "give a part of it",
        ArrayType { flag: String, kind: String } =>
            "{flag}: the array has values of type {kind}, expected whole or real numbers"; "convert it to float32",
        NotFinite { flag: String, index: usize, value: f64 } =>
            "{flag}: value {index} is {value}"; "give a finite number for each projection",
    }
}

/// Array `[frame][row][bin]` in memory, whose samples of a row follow each other.
#[derive(Clone)]
pub struct MemoryArray {
    /// Bytes from the first sample to the last.
    pub bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    /// Number of frames, of rows of a frame, and of samples of a row.
    pub shape: [usize; 3],
    /// Bytes from a frame to the next one, and from a row to the next one.
    pub strides: [usize; 2],
    /// Type of a sample as NumPy names it, such as `<u2`.
    pub kind: String,
}

/// Scan whose data and fields are arrays in memory.
pub struct MemoryScan {
    /// Sinograms or projections.
    pub kind: InputKind,
    pub data: MemoryArray,
    pub flats: Option<MemoryArray>,
    pub flats2: Option<MemoryArray>,
    pub darks: Option<MemoryArray>,
    /// Angle of every projection in degrees.
    pub angles: Option<Vec<f64>>,
    /// Shift of the axis in every projection, in bins.
    pub shifts: Option<Vec<f64>>,
}

impl MemoryScan {
    /// Returns the flags that stand for the arrays, without dashes.
    pub fn flags(&self) -> Vec<&'static str> {
        let data = if self.kind == InputKind::Sinograms { "sinograms" } else { "projections" };
        let others = [
            ("flats", self.flats.is_some()),
            ("flats2", self.flats2.is_some()),
            ("darks", self.darks.is_some()),
            ("angles", self.angles.is_some()),
            ("center-shifts", self.shifts.is_some()),
        ];
        [(data, true)].into_iter().chain(others).filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect()
    }

    /// Returns the arrays as stacks with these bins, and the shifts of the axis.
    ///
    /// # Errors
    /// [`Error::Input`] that names the flag; the error of binning.
    pub fn stacks(self, by: usize) -> Result<(Stacks, Option<Vec<f64>>)> {
        let MemoryScan { kind, data, flats, flats2, darks, angles, shifts } = self;
        for (flag, values) in [("--angles", &angles), ("--center-shifts", &shifts)] {
            let wrong = values.iter().flatten().position(|value| !value.is_finite());
            if let (Some(index), Some(values)) = (wrong, values) {
                return Err(ArrayInputError::NotFinite { flag: flag.into(), index, value: values[index] }.into());
            }
        }
        let sinograms = kind == InputKind::Sinograms;
        let field = |array: Option<MemoryArray>, flag| array.map(|array| array.stack(flag)).transpose();
        let stacks = Stacks {
            flats: field(flats, "--flats")?,
            flats2: field(flats2, "--flats2")?,
            darks: field(darks, "--darks")?,
            angles,
            ..Stacks::of(data.stack(if sinograms { "--sinograms" } else { "--projections" })?)
        };
        Ok((stacks.binned(Binning { by, pages: sinograms })?, shifts))
    }
}

impl MemoryArray {
    /// Returns the array as a stack; `flag` is used in messages.
    fn stack(self, flag: &str) -> Result<Stack> {
        let MemoryArray { bytes, shape, strides, kind } = self;
        let Some((sample, big_endian)) = sample_of(&kind) else {
            return Err(ArrayInputError::ArrayType { flag: flag.into(), kind }.into());
        };
        let [frames, height, width] = shape;
        let fits =
            width.max(height) as u64 <= MAX_SIDE && (width * height) as u64 <= MAX_PIXELS && frames <= MAX_FRAMES;
        if shape.contains(&0) || !fits {
            return Err(ArrayInputError::ArrayShape { flag: flag.into(), frames, height, width }.into());
        }
        // no overflow where it lies in memory
        let end = (frames - 1) * strides[0] + (height - 1) * strides[1] + width * sample.bytes();
        if end > (*bytes).as_ref().len() {
            return Err(Error::Internal(format!("{flag}: the array ends beyond its memory")));
        }
        Ok(Stack::of(flag, ARRAY, MemoryFrames { bytes, shape, strides, sample, big_endian }))
    }
}

/// The frames of an array.
struct MemoryFrames {
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    shape: [usize; 3],
    strides: [usize; 2],
    sample: SampleType,
    big_endian: bool,
}

impl MemoryFrames {
    /// Returns the bytes of rows, as one piece where they follow each other.
    fn pieces(&self, frame: usize, rows: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let ([_, _, width], [of_frame, of_row]) = (self.shape, self.strides);
        let row = width * self.sample.bytes();
        let (count, length) = if of_row == row { (1, rows.len() * row) } else { (rows.len(), row) };
        let first = frame * of_frame + rows.start * of_row;
        let bytes = (*self.bytes).as_ref();
        (0..count).map(move |piece| &bytes[first + piece * of_row..][..length])
    }
}

impl fmt::Debug for MemoryFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryFrames { shape, sample, .. } = self;
        write!(f, "array of {shape:?}, {sample}")
    }
}

impl Frames for MemoryFrames {
    fn count(&self) -> usize {
        self.shape[0]
    }

    fn size(&self) -> (usize, usize) {
        (self.shape[2], self.shape[1])
    }

    fn sample(&self) -> SampleType {
        self.sample
    }

    fn name(&self, frame: usize) -> String {
        format!("frame {frame}")
    }

    /// Memory has neither a name nor a time of its last change.
    fn fingerprint(&self) -> String {
        format!("{self:?}")
    }

    fn files(&self) -> &[PathBuf] {
        &[]
    }

    fn remarks(&self) -> &[Remark] {
        &[]
    }

    fn rows_are_apart(&self) -> bool {
        true
    }

    fn read_rows(&self, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let mut rest = out;
        for bytes in self.pieces(frame, rows) {
            let (values, after) = rest.split_at_mut(bytes.len() / self.sample.bytes());
            to_f32(bytes, self.sample, self.big_endian, values);
            rest = after;
        }
        Ok(())
    }

    fn stored(&self) -> StoredSamples {
        let swapped = self.sample.bytes() > 1 && self.big_endian != cfg!(target_endian = "big");
        StoredSamples { sample: self.sample, swapped }
    }

    fn read_stored(&self, frame: usize, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        if self.sample.is_long() {
            return as_f32(out, |out| self.read_rows(frame, rows, out));
        }
        let mut rest = out;
        for bytes in self.pieces(frame, rows) {
            let (values, after) = rest.split_at_mut(bytes.len());
            values.copy_from_slice(bytes);
            rest = after;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(bytes: Vec<u8>, shape: [usize; 3], strides: [usize; 2], kind: &str) -> MemoryArray {
        MemoryArray { bytes: Arc::new(bytes), shape, strides, kind: kind.into() }
    }

    fn scan(kind: InputKind, data: MemoryArray) -> MemoryScan {
        MemoryScan { kind, data, flats: None, flats2: None, darks: None, angles: None, shifts: None }
    }

    #[test]
    fn frames_are_read_where_they_are() {
        let bytes: Vec<u8> = (0..24u16).flat_map(u16::to_be_bytes).collect();
        // 3 x 2 x 4 in order; its axes exchanged; and columns 1 and 2 of every other frame
        for (shape, strides, skipped, at) in [
            ([3, 2, 4], [16, 8], 0, [20.0, 21.0, 22.0, 23.0].as_slice()),
            ([2, 3, 4], [8, 16], 0, [12.0, 13.0, 14.0, 15.0, 20.0, 21.0, 22.0, 23.0].as_slice()),
            ([2, 2, 2], [32, 8], 2, [21.0, 22.0].as_slice()),
        ] {
            let data = array(bytes[skipped..].to_vec(), shape, strides, ">u2");
            let (stacks, _) = scan(InputKind::Projections, data).stacks(1).unwrap();
            let (frame, rows) = (shape[0] - 1, 1..shape[1]);
            let mut values = vec![0.0; rows.len() * shape[2]];
            stacks.data.read_rows(frame, rows.clone(), &mut values).unwrap();
            assert_eq!(values, at);
            let mut stored = vec![0; 2 * values.len()];
            stacks.data.read_stored(frame, &[rows], &mut stored).unwrap();
            let read: Vec<_> = stored.chunks(2).map(|word| f32::from(u16::from_be_bytes([word[0], word[1]]))).collect();
            assert_eq!(read, at);
            assert_eq!(stacks.data.stored().samples.swapped, cfg!(target_endian = "little"));
            assert_eq!((stacks.data.file_names().count, stacks.data.title()), (0, "--projections array".into()));
        }
    }

    #[test]
    fn what_is_no_scan_is_refused() {
        let refused = |scan: MemoryScan, by, word: &str| {
            let error = scan.stacks(by).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains(';'), "{error}");
        };
        let whole = || array(vec![0; 24], [3, 2, 4], [8, 4], "|u1");
        refused(scan(InputKind::Sinograms, MemoryArray { kind: "|b1".into(), ..whole() }), 1, "--sinograms");
        refused(scan(InputKind::Projections, MemoryArray { shape: [3, 0, 4], ..whole() }), 1, "3 x 0 x 4");
        refused(scan(InputKind::Projections, MemoryArray { shape: [4, 2, 4], ..whole() }), 1, "beyond its memory");
        refused(scan(InputKind::Projections, whole()), 4, "--binning");
        let angles = Some(vec![0.0, f64::NAN]);
        refused(MemoryScan { angles, ..scan(InputKind::Projections, whole()) }, 1, "--angles: value 1 is NaN");
    }
}

//! Arrays in NumPy files (`.npy`): frames, rows and columns, or a single frame.

use super::SampleType;
use super::files::{InputFileError, InputFiles, bad, open_plain};
use super::frames::{MAX_PIXELS, MAX_SIDE};
use super::plain::PlainFrames;
use crate::error::{BoxedError, Result, messages};
use crate::files::{NpyHeader, OWN_END};
use crate::remark::Remark;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Largest number of bytes that a header may take.
const MAX_HEADER: u64 = 1 << 16;
/// Largest number of frames.
pub(super) const MAX_FRAMES: usize = 1 << 20;

messages! {
    /// Errors of a NumPy file of frames.
    enum NpyInputError: Input {
        Truncated { frames: usize, width: usize, height: usize, sample: SampleType, needed: u64, bytes: u64 } =>
            "is truncated: {frames} frames of {width}x{height} pixels, {sample}, need {needed} bytes, the file has \
             {bytes}";
            "copy it again",
        Dimensions { count: usize } =>
            "is an array of {count} dimensions, expected [frame][row][bin]"; "save it again with numpy.reshape",
        FortranOrder => "is in Fortran order"; "save numpy.ascontiguousarray of it",
        Shape { frames: usize, height: usize, width: usize } =>
            "has the shape {frames} x {height} x {width}, not 1 to {MAX_SIDE} a side, {MAX_PIXELS} pixels and \
             {MAX_FRAMES} frames";
            "save a part of it",
        ValueType { kind: String } =>
            "has values of type {kind}, expected whole or real numbers"; "save them as float32",
    }
}

/// Reports whether a path has the ending of a NumPy file.
pub(super) fn is_npy(spec: &str) -> bool {
    Path::new(spec).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
}

/// Opens a NumPy file whose values are `[frame][row][bin]`, or `[row][bin]` of one frame.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) when the file cannot be read, is too short, or contains something else.
pub(super) fn open(spec: &str, flag: &str) -> Result<PlainFrames> {
    let path = Path::new(spec).to_owned();
    let (file, state) = open_plain(&path, flag)?;
    let look = || -> Result<(NpyHeader, Form), BoxedError> {
        let mut head = vec![0; state.bytes.min(MAX_HEADER) as usize];
        file.read_exact_at(&mut head, 0).map_err(|error| InputFileError::Unreadable { error })?;
        let header = NpyHeader::parse(&head)?;
        let form = form(&header)?;
        Ok((header, form))
    };
    let (header, form) = look().map_err(|why| bad(flag, &path, why))?;
    let Form { frames, height, width, sample, big_endian } = form;
    let frame = (width * height * sample.bytes()) as u64;
    // no overflow: at most 2^31 pixels of 8 bytes, 2^20 times
    let end = header.start as u64 + frame * frames as u64;
    if end > state.bytes {
        let bytes = state.bytes;
        return Err(bad(flag, &path, NpyInputError::Truncated { frames, width, height, sample, needed: end, bytes }));
    }
    let rest = state.bytes - end;
    let remarks = match rest > 0 && !is_own(&file, state.bytes) {
        true => vec![Remark::note(format!("{rest} bytes follow the array and are not read"))],
        false => Vec::new(),
    };
    Ok(PlainFrames {
        files: InputFiles::new(flag, vec![path], vec![(state, Some(file))]),
        scattered: BTreeMap::new(),
        places: (0..frames as u64).map(|number| (0, header.start as u64 + number * frame)).collect(),
        size: (width, height),
        sample,
        big_endian,
        remarks,
        layout: format!("NumPy from byte {}", header.start),
    })
}

/// Shape and type of the frames of a file.
#[derive(Debug, PartialEq)]
struct Form {
    frames: usize,
    height: usize,
    width: usize,
    sample: SampleType,
    big_endian: bool,
}

fn form(header: &NpyHeader) -> Result<Form, NpyInputError> {
    let (frames, height, width) = match header.shape[..] {
        [height, width] => (1, height, width),
        [frames, height, width] => (frames, height, width),
        _ => return Err(NpyInputError::Dimensions { count: header.shape.len() }),
    };
    if header.fortran_order {
        return Err(NpyInputError::FortranOrder);
    }
    let shapes = [frames, height, width];
    let fits = width.max(height) as u64 <= MAX_SIDE && (width * height) as u64 <= MAX_PIXELS && frames <= MAX_FRAMES;
    if shapes.contains(&0) || !fits {
        return Err(NpyInputError::Shape { frames, height, width });
    }
    let Some((sample, big_endian)) = sample_of(&header.kind) else {
        return Err(NpyInputError::ValueType { kind: header.kind.clone() });
    };
    Ok(Form { frames, height, width, sample, big_endian })
}

/// Returns the type of a sample by NumPy's name for it, such as `<u2`, and whether it is big-endian.
pub(super) fn sample_of(kind: &str) -> Option<(SampleType, bool)> {
    let sample = match kind.get(1..).unwrap_or_default() {
        "u1" => SampleType::U8,
        "i1" => SampleType::I8,
        "u2" => SampleType::U16,
        "i2" => SampleType::I16,
        "u4" => SampleType::U32,
        "i4" => SampleType::I32,
        "u8" => SampleType::U64,
        "i8" => SampleType::I64,
        "f2" => SampleType::F16,
        "f4" => SampleType::F32,
        "f8" => SampleType::F64,
        _ => return None,
    };
    Some((sample, kind.starts_with('>')))
}

/// Reports whether fbp wrote a file of this length.
fn is_own(file: &File, length: u64) -> bool {
    let mut end = [0; OWN_END.len()];
    length.checked_sub(end.len() as u64).is_some_and(|at| file.read_exact_at(&mut end, at).is_ok()) && end == OWN_END
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Stack;

    /// Writes an array of bytes, and opens it.
    fn opened(header: &NpyHeader, values: &[u8]) -> Result<Stack> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        std::fs::write(&path, [header.bytes().as_slice(), values].concat()).unwrap();
        Stack::open(path.to_str().unwrap(), "--projections")
    }

    #[test]
    fn frames_of_all_types_are_read() {
        let numbers = |kind: &str, count: usize| -> Vec<u8> {
            let ordered = |mut bytes: Vec<u8>| {
                if kind.starts_with('>') {
                    bytes.reverse();
                }
                bytes
            };
            let value = |i: usize| match &kind[1..] {
                "u1" | "i1" => vec![i as u8],
                "u2" | "i2" => ordered((i as u16).to_le_bytes().to_vec()),
                "u4" | "i4" => ordered((i as u32).to_le_bytes().to_vec()),
                "u8" | "i8" => ordered((i as u64).to_le_bytes().to_vec()),
                "f2" => ordered(half::f16::from_f32(i as f32).to_le_bytes().to_vec()),
                "f4" => ordered((i as f32).to_le_bytes().to_vec()),
                _ => ordered((i as f64).to_le_bytes().to_vec()),
            };
            (0..count).flat_map(value).collect()
        };
        for kind in ["|u1", "|i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">i4", "<u8", ">i8", "<f2", ">f2", "<f4", ">f8"] {
            for (shape, frames) in [(vec![3, 2, 4], 3), (vec![2, 4], 1)] {
                let header = NpyHeader::new(kind, &shape);
                let stack = opened(&header, &numbers(kind, frames * 8)).unwrap_or_else(|e| panic!("{kind}: {e}"));
                assert_eq!((stack.len(), stack.width(), stack.height()), (frames, 4, 2), "{kind}");
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("A.NPY");
        std::fs::write(&path, [NpyHeader::new(">u2", &[3, 2, 4]).bytes(), numbers(">u2", 24)].concat()).unwrap();
        let mut values = [0.0; 4];
        let stack = Stack::open(path.to_str().unwrap(), "--projections").unwrap();
        stack.read_rows(2, 1..2, &mut values).unwrap();
        assert_eq!(values, [20.0, 21.0, 22.0, 23.0]);
    }

    #[test]
    fn what_is_no_stack_is_refused() {
        let refused = |header: NpyHeader, bytes: usize, word: &str| {
            let error = opened(&header, &vec![0; bytes]).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("a.npy") && error.contains(';'), "{error}");
        };
        refused(NpyHeader::new("<f4", &[6]), 24, "1 dimensions");
        refused(NpyHeader::new("<f4", &[1, 1, 2, 3]), 24, "4 dimensions");
        refused(NpyHeader::new("<f4", &[2, 0, 3]), 0, "2 x 0 x 3");
        refused(NpyHeader::new("<c8", &[2, 3]), 48, "<c8");
        refused(NpyHeader::new("|b1", &[2, 3]), 6, "|b1");
        refused(NpyHeader::new("<f4", &[2, 3]), 23, "truncated");
        refused(NpyHeader::new("<f4", &[usize::MAX / 2, 3, 4]), 23, "a side");
        refused(NpyHeader { fortran_order: true, ..NpyHeader::new("<f4", &[2, 3]) }, 24, "Fortran");
    }
}

//! EDF, the format of the ESRF: headers of text in braces, each followed by the samples of a frame.

use super::SampleType;
use super::files::{InputFileError, InputFiles, bad, file_name, may_stay_open, open_plain};
use super::frames::{MAX_PIXELS, MAX_SIDE};
use super::plain::PlainFrames;
use super::tiff::{EDF, are_of, find, refuse_archive};
use crate::error::{BoxedError, Result, messages};
use crate::files::excerpt;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

messages! {
    /// Errors of EDF files.
    enum EdfError: Input {
        OddFrame { flag: String, file: String, form: EdfForm, usual: EdfForm } =>
            "{flag}: {file} is {form}, the first frame is {usual}"; "select the files that belong together with a glob",
        NoFrames => "contains no frames"; "name files that do",
        OtherFormat => "is not an EDF file: it does not begin with a header in braces"; "copy or write it again",
        OtherBytes { frame: usize, offset: u64 } =>
            "has bytes after frame {frame} that are neither a header nor blanks, from offset {offset}: a header is \
             damaged, or its Size is missing";
            "copy or write it again",
        InFrame { frame: usize, error: Box<EdfError> } => "frame {frame}: {error}",
        Truncated { frame: usize, needed: u64, offset: u64, length: u64 } =>
            "is truncated: frame {frame} needs {needed} bytes from offset {offset}, the file has {length}";
            "copy it again",
        TooManyFrames => "has more than {MAX_FRAMES} frames"; "divide it into several files",
        Empty => "is empty (0 bytes), expected EDF",
        EndlessHeader { offset: u64 } =>
            "has a header at offset {offset} that does not end with }} within {MAX_HEADER} bytes";
            "copy or write it again",
        NoKey { key: String } => "has no {key}"; "copy or write it again",
        Side { key: String, value: String } => "has {key} = {value}, expected 1 to {MAX_SIDE}",
        Shape { width: u64, height: u64 } =>
            "claims {width}x{height} pixels or a third dimension, which cannot be read"; "save two-dimensional frames",
        Compressed { method: String } => "is compressed by {method}, expected none"; "save it again",
        DataType { name: String } =>
            "has DataType = {name}, expected UnsignedByte, UnsignedShort, UnsignedInteger, the same with Signed, \
             FloatValue, DoubleValue, or another name of one of these";
            "save it again as one of them",
        ByteOrder { name: String } =>
            "has ByteOrder = {name}, expected LowByteFirst or HighByteFirst"; "save it again with one",
    }
}

/// Bytes of a header block; the length of a header is a multiple of it.
const BLOCK: usize = 512;
const MAX_BLOCKS: usize = 256;
/// Largest number of bytes of a header.
const MAX_HEADER: usize = MAX_BLOCKS * BLOCK;
/// Largest number of frames of a file.
const MAX_FRAMES: usize = 1 << 20;

/// Reports whether a path, a glob or the files of a directory are EDF. A directory that contains TIFF files is not.
pub(super) fn is_edf(spec: &str) -> bool {
    are_of(spec, &EDF)
}

/// Size and sample type that all frames have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EdfForm {
    width: usize,
    height: usize,
    sample: SampleType,
    big_endian: bool,
}

/// Formats size and type for messages.
impl fmt::Display for EdfForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.big_endian { "HighByteFirst" } else { "LowByteFirst" };
        write!(f, "{}x{}, {}, {order}", self.width, self.height, self.sample)
    }
}

/// Opens a directory, a glob, a list or one file of EDF. Frames are in the order of the file names, in which `by`
/// selects the number to sort by, and within a file in the order in which they are stored.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) when a file is not EDF or too short, or when frames differ.
pub(super) fn open(spec: &str, flag: &str, by: Option<usize>) -> Result<PlainFrames> {
    let mut remarks = Vec::new();
    let paths = find(spec, flag, &EDF, by, &mut remarks)?;
    let keep = may_stay_open(paths.len());
    let opened = paths.par_iter().map(|path| {
        let (file, state) = open_plain(path, flag)?;
        let frames = frames(&file, state.bytes).map_err(|e| bad(flag, path, e))?;
        Ok((state, keep.then_some(file), frames))
    });
    let (mut states, mut places, mut form) = (Vec::new(), Vec::new(), None);
    for (index, opened) in opened.collect::<Result<Vec<_>>>()?.into_iter().enumerate() {
        let (state, file, frames) = opened;
        states.push((state, file));
        for (offset, found) in frames {
            let usual = *form.get_or_insert(found);
            if usual != found {
                let (flag, file) = (flag.to_owned(), file_name(&paths[index]));
                return Err(EdfError::OddFrame { flag, file, form: found, usual }.into());
            }
            places.push((index, offset));
        }
    }
    let Some(EdfForm { width, height, sample, big_endian }) = form else {
        return Err(bad(flag, Path::new(spec), EdfError::NoFrames));
    };
    let files = InputFiles::new(flag, paths, states);
    let layout = "EDF".to_owned();
    let scattered = BTreeMap::new();
    Ok(PlainFrames { files, places, scattered, size: (width, height), sample, big_endian, remarks, layout })
}

/// Returns the offset of the samples and the form of each frame of a file of `length` bytes.
fn frames(file: &File, length: u64) -> Result<Vec<(u64, EdfForm)>, BoxedError> {
    let mut frames = Vec::new();
    let mut at = 0;
    while at < length {
        let Some((header, data)) = header(file, at, length)? else {
            if frames.is_empty() {
                refuse_archive(file)?;
                return Err(EdfError::OtherFormat.into());
            }
            if is_blank(file, at..length)? {
                break;
            }
            return Err(EdfError::OtherBytes { frame: frames.len() - 1, offset: at }.into());
        };
        let frame = frames.len();
        let (form, bytes) = form(&header).map_err(|error| EdfError::InFrame { frame, error: error.into() })?;
        let end = data.checked_add(bytes).filter(|&end| end <= length);
        let Some(end) = end else {
            return Err(EdfError::Truncated { frame, needed: bytes, offset: data, length }.into());
        };
        frames.push((data, form));
        if frames.len() > MAX_FRAMES {
            return Err(EdfError::TooManyFrames.into());
        }
        at = end;
    }
    match frames.is_empty() {
        true => Err(EdfError::Empty.into()),
        false => Ok(frames),
    }
}

/// Reports whether a range of bytes of the file contains only blanks and zeros.
fn is_blank(file: &File, bytes: Range<u64>) -> Result<bool, InputFileError> {
    const PIECE: u64 = 1 << 20;
    let mut piece = Vec::new();
    for from in bytes.clone().step_by(PIECE as usize) {
        piece.resize(PIECE.min(bytes.end - from) as usize, 0);
        file.read_exact_at(&mut piece, from).map_err(|error| InputFileError::Unreadable { error })?;
        if piece.iter().any(|byte| *byte != 0 && !byte.is_ascii_whitespace()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the text of the header that begins at offset `at`, and the offset after it; `None` if no brace follows the
/// blanks there.
fn header(file: &File, at: u64, length: u64) -> Result<Option<(String, u64)>, BoxedError> {
    let mut text = Vec::new();
    for block in 0..MAX_BLOCKS {
        let from = at + (block * BLOCK) as u64;
        let bytes = (BLOCK as u64).min(length.saturating_sub(from)) as usize;
        let start = text.len();
        text.resize(start + bytes, 0);
        file.read_exact_at(&mut text[start..], from).map_err(|error| InputFileError::Unreadable { error })?;
        if block == 0 && text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Ok(None);
        }
        // the brace that ends a header also ends a block
        let trimmed = text.trim_ascii_end();
        if trimmed.ends_with(b"}") {
            let header = String::from_utf8_lossy(trimmed).into_owned();
            return Ok(Some((header, at + text.len() as u64)));
        }
        if bytes < BLOCK {
            break;
        }
    }
    Err(EdfError::EndlessHeader { offset: at }.into())
}

/// Returns size and type of a frame, and the number of its bytes.
fn form(header: &str) -> Result<(EdfForm, u64), EdfError> {
    let value = |name: &str| {
        let pairs = header.trim_matches(['{', '}', '\r', '\n', ' ']).split(';').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(key, value)| (key.trim(), value.trim()))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    };
    let needed = |name: &str| value(name).ok_or_else(|| EdfError::NoKey { key: name.into() });
    let side = |name: &str| -> Result<u64, EdfError> {
        let text = needed(name)?;
        text.parse()
            .ok()
            .filter(|side| (1..=MAX_SIDE).contains(side))
            .ok_or_else(|| EdfError::Side { key: name.into(), value: excerpt(text).into() })
    };
    let (width, height) = (side("Dim_1")?, side("Dim_2")?);
    if width * height > MAX_PIXELS || value("Dim_3").is_some_and(|depth| depth != "1") {
        return Err(EdfError::Shape { width, height });
    }
    if let Some(method) = value("COMPRESSION").filter(|method| !method.eq_ignore_ascii_case("none")) {
        return Err(EdfError::Compressed { method: excerpt(method).into() });
    }
    let kind = needed("DataType")?;
    let sample = match kind.to_ascii_lowercase().as_str() {
        "unsignedbyte" | "unsigned8" => SampleType::U8,
        "signedbyte" | "signed8" => SampleType::I8,
        "unsignedshort" | "unsignedshortinteger" | "unsigned16" => SampleType::U16,
        "signedshort" | "signed16" => SampleType::I16,
        "unsignedinteger" | "unsignedlong" | "unsigned32" => SampleType::U32,
        "signedinteger" | "signedlong" | "signed32" => SampleType::I32,
        "unsigned64" => SampleType::U64,
        "signed64" => SampleType::I64,
        "float" | "floatvalue" | "real" | "floatieee32" | "float32" => SampleType::F32,
        "double" | "doublevalue" | "floatieee64" | "doubleieee64" | "float64" => SampleType::F64,
        _ => return Err(EdfError::DataType { name: excerpt(kind).into() }),
    };
    let big_endian = match value("ByteOrder").unwrap_or("LowByteFirst") {
        order if order.eq_ignore_ascii_case("LowByteFirst") => false,
        order if order.eq_ignore_ascii_case("HighByteFirst") => true,
        order => return Err(EdfError::ByteOrder { name: excerpt(order).into() }),
    };
    let bytes = width * height * sample.bytes() as u64;
    // some programs write a Size with padding after the samples
    let size = value("Size").and_then(|size| size.parse().ok()).filter(|&size| size >= bytes).unwrap_or(bytes);
    let form = EdfForm { width: width as usize, height: height as usize, sample, big_endian };
    Ok((form, size))
}

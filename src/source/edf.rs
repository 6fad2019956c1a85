//! EDF, the format of the ESRF: headers of text in braces, each followed by the samples of a frame.

use super::SampleType;
use super::files::{FileResult, InputFiles, bad, file_name, may_stay_open, open_plain};
use super::frames::{MAX_PIXELS, MAX_SIDE};
use super::list::{list_file, listed};
use super::plain::PlainFrames;
use super::tiff::{EDF, TIFF, find, refuse_archive};
use crate::error::{Error, Result};
use crate::files::excerpt;
use rayon::prelude::*;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a header block; the length of a header is a multiple of it.
const BLOCK: usize = 512;
const MAX_BLOCKS: usize = 256;
/// Largest number of frames of a file.
const MAX_FRAMES: usize = 1 << 20;

/// Reports whether a path, a glob or the files of a directory are EDF. A directory that contains TIFF files is not.
pub(super) fn is_edf(spec: &str) -> bool {
    if list_file(spec).is_some() {
        // errors in a list are reported when it is opened
        return listed(spec, "").is_ok_and(|paths| paths.iter().all(|path| EDF.has(path)));
    }
    let Ok(entries) = fs::read_dir(spec) else { return EDF.has(Path::new(spec)) };
    let mut found = false;
    for entry in entries.flatten() {
        if TIFF.has(&entry.path()) {
            return false;
        }
        found |= EDF.has(&entry.path());
    }
    found
}

/// Size and sample type that all frames have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EdfForm {
    width: usize,
    height: usize,
    sample: SampleType,
    big_endian: bool,
}

/// Opens a directory, a glob, a list or one file of EDF. Frames are in the order of the file names, in which `by`
/// selects the number to sort by, and within a file in the order in which they are stored.
///
/// # Errors
/// [`Error::Input`] when a file is not EDF or too short, or when frames differ.
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
                let say = |f: EdfForm| {
                    let order = if f.big_endian { "HighByteFirst" } else { "LowByteFirst" };
                    format!("{}x{}, {}, {order}", f.width, f.height, f.sample)
                };
                return Err(Error::Input(format!(
                    "{flag}: {} is {}, the first frame is {}; select the files that belong together with a glob",
                    file_name(&paths[index]),
                    say(found),
                    say(usual)
                )));
            }
            places.push((index, offset));
        }
    }
    let Some(EdfForm { width, height, sample, big_endian }) = form else {
        return Err(bad(flag, Path::new(spec), "contains no frames; name files that do"));
    };
    let files = InputFiles::new(flag, paths, states);
    let layout = "EDF".to_owned();
    Ok(PlainFrames { files, places, size: (width, height), sample, big_endian, remarks, layout })
}

/// Returns the offset of the samples and the form of each frame of a file of `length` bytes.
fn frames(file: &File, length: u64) -> FileResult<Vec<(u64, EdfForm)>> {
    let mut frames = Vec::new();
    let mut at = 0;
    while at < length {
        let Some((header, data)) = header(file, at, length)? else {
            if frames.is_empty() {
                refuse_archive(file)?;
                return Err(
                    "is not an EDF file: it does not begin with a header in braces; copy or write it again".into()
                );
            }
            if is_blank(file, at..length)? {
                break;
            }
            return Err(format!(
                "has bytes after frame {} that are neither a header nor blanks, from offset {at}: a header is damaged, or its \
                 Size is missing; copy or write it again",
                frames.len() - 1
            ));
        };
        let (form, bytes) = form(&header).map_err(|e| format!("frame {}: {e}", frames.len()))?;
        let end = data.checked_add(bytes).filter(|&end| end <= length);
        let Some(end) = end else {
            return Err(format!(
                "is truncated: frame {} needs {bytes} bytes from offset {data}, the file has {length}; copy it again",
                frames.len()
            ));
        };
        frames.push((data, form));
        if frames.len() > MAX_FRAMES {
            return Err(format!("has more than {MAX_FRAMES} frames; divide it into several files"));
        }
        at = end;
    }
    match frames.is_empty() {
        true => Err("is empty (0 bytes), expected EDF".into()),
        false => Ok(frames),
    }
}

/// Reports whether a range of bytes of the file contains only blanks and zeros.
fn is_blank(file: &File, bytes: Range<u64>) -> FileResult<bool> {
    const PIECE: u64 = 1 << 20;
    let mut piece = Vec::new();
    for from in bytes.clone().step_by(PIECE as usize) {
        piece.resize(PIECE.min(bytes.end - from) as usize, 0);
        file.read_exact_at(&mut piece, from)
            .map_err(|e| format!("cannot be read: {e}; check the path and the permissions"))?;
        if piece.iter().any(|byte| *byte != 0 && !byte.is_ascii_whitespace()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the text of the header that begins at offset `at`, and the offset after it; `None` if no brace follows the
/// blanks there.
fn header(file: &File, at: u64, length: u64) -> FileResult<Option<(String, u64)>> {
    let mut text = Vec::new();
    for block in 0..MAX_BLOCKS {
        let from = at + (block * BLOCK) as u64;
        let bytes = (BLOCK as u64).min(length.saturating_sub(from)) as usize;
        let start = text.len();
        text.resize(start + bytes, 0);
        file.read_exact_at(&mut text[start..], from)
            .map_err(|e| format!("cannot be read: {e}; check the path and the permissions"))?;
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
    Err(format!(
        "has a header at offset {at} that does not end with }} within {} bytes; copy or write it again",
        MAX_BLOCKS * BLOCK
    ))
}

/// Returns size and type of a frame, and the number of its bytes.
fn form(header: &str) -> FileResult<(EdfForm, u64)> {
    let value = |name: &str| {
        let pairs = header.trim_matches(['{', '}', '\r', '\n', ' ']).split(';').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(key, value)| (key.trim(), value.trim()))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    };
    let side = |name: &str| -> FileResult<u64> {
        let text = value(name).ok_or_else(|| format!("has no {name}; copy or write it again"))?;
        text.parse()
            .ok()
            .filter(|side| (1..=MAX_SIDE).contains(side))
            .ok_or_else(|| format!("has {name} = {}, expected 1 to {MAX_SIDE}", excerpt(text)))
    };
    let (width, height) = (side("Dim_1")?, side("Dim_2")?);
    if width * height > MAX_PIXELS || value("Dim_3").is_some_and(|depth| depth != "1") {
        return Err(format!(
            "claims {width}x{height} pixels or a third dimension, which cannot be read; save two-dimensional frames"
        ));
    }
    if let Some(method) = value("COMPRESSION").filter(|method| !method.eq_ignore_ascii_case("none")) {
        return Err(format!("is compressed by {}, expected none; save it again", excerpt(method)));
    }
    let kind = value("DataType").ok_or("has no DataType; copy or write it again")?;
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
        _ => {
            return Err(format!(
                "has DataType = {}, expected UnsignedByte, UnsignedShort, UnsignedInteger, the same with Signed, FloatValue, \
                 DoubleValue, or another name of one of these; save it again as one of them",
                excerpt(kind)
            ));
        }
    };
    let big_endian = match value("ByteOrder").unwrap_or("LowByteFirst") {
        order if order.eq_ignore_ascii_case("LowByteFirst") => false,
        order if order.eq_ignore_ascii_case("HighByteFirst") => true,
        order => {
            let order = excerpt(order);
            return Err(format!(
                "has ByteOrder = {order}, expected LowByteFirst or HighByteFirst; save it again with one"
            ));
        }
    };
    let bytes = width * height * sample.bytes() as u64;
    // some programs write a Size with padding after the samples
    let size = value("Size").and_then(|size| size.parse().ok()).filter(|&size| size >= bytes).unwrap_or(bytes);
    let form = EdfForm { width: width as usize, height: height as usize, sample, big_endian };
    Ok((form, size))
}

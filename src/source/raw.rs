//! Volumes without a header, described by a word: `FILE,WxHxN,TYPE` or `FILE,WxHxN,TYPE,OFFSET`.

use super::SampleType;
use super::files::{InputFiles, bad, open_plain};
use super::frames::{MAX_PIXELS, MAX_SIDE};
use super::plain::PlainFrames;
use crate::error::{Result, messages};
use crate::remark::Remark;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest number of frames.
const MAX_FRAMES: u64 = 1 << 20;
/// Form of the word that describes a raw volume, for messages.
pub const RAW_FORM: &str = "FILE,WxHxN,TYPE[,OFFSET] such as scan.raw,2048x1024x1800,u16le,512";

messages! {
    /// Errors of a word that describes a raw volume.
    enum RawWordError: Usage {
        OtherForm { flag: String, word: String } =>
            "{flag} {word}: does not describe a raw volume"; "expected {RAW_FORM}",
        Offset { flag: String, word: String, offset: String } =>
            "{flag} {word}: {offset} is not a number of bytes"; "expected {RAW_FORM}",
        SampleType { flag: String, word: String, name: String } =>
            "{flag} {word}: {name} is not a type: u8, i8, or u16, i16, u32, i32, u64, i64, f16, f32, f64 with le or be";
            "expected {RAW_FORM}",
        Size { flag: String, word: String, width: u64, height: u64, frames: u64 } =>
            "{flag} {word}: {width}x{height}x{frames} is not 1 to {MAX_SIDE} a side, {MAX_PIXELS} pixels and \
             {MAX_FRAMES} frames";
            "expected {RAW_FORM}",
    }
}

messages! {
    /// Errors of the file of a raw volume.
    enum RawFileError: Input {
        TooShort { bytes: u64, frames: u64, width: u64, height: u64, sample: SampleType, offset: u64 } =>
            "has {bytes} bytes, too few for {frames} frames of {width}x{height} pixels, {sample}, from byte {offset}";
            "correct the numbers behind its name, or copy it again",
    }
}

/// Description of a file without a header, as a word gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawVolume {
    file: PathBuf,
    /// Width, height and number of frames.
    sides: [u64; 3],
    sample: SampleType,
    big_endian: bool,
    /// Bytes before the first frame.
    offset: u64,
}

impl RawVolume {
    /// Reports whether `word` has the form of a raw volume: a file, three sides, a type and perhaps an offset.
    pub fn looks_like(word: &str) -> bool {
        split(word).is_some()
    }

    /// Parses a word; `flag` is used in messages.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) if the word does not describe a raw volume.
    pub fn parse(word: &str, flag: &str) -> Result<RawVolume> {
        let [flag, word] = [flag, word].map(str::to_owned);
        let Some((file, sides, kind, offset)) = split(&word) else {
            return Err(RawWordError::OtherForm { flag, word }.into());
        };
        let Ok(offset) = offset.parse() else {
            let offset = offset.to_owned();
            return Err(RawWordError::Offset { flag, word, offset }.into());
        };
        let Some((sample, big_endian)) = sample_type(kind) else {
            let name = kind.to_owned();
            return Err(RawWordError::SampleType { flag, word, name }.into());
        };
        let [width, height, frames] = sides;
        let too_large = width > MAX_SIDE || height > MAX_SIDE || frames > MAX_FRAMES || width * height > MAX_PIXELS;
        if sides.contains(&0) || too_large {
            return Err(RawWordError::Size { flag, word, width, height, frames }.into());
        }
        Ok(RawVolume { file: file.into(), sides, sample, big_endian, offset })
    }

    /// Opens the file and checks its size.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) when the file cannot be read or is too short.
    pub(super) fn open(self, flag: &str) -> Result<PlainFrames> {
        let RawVolume { file: path, sides: [width, height, frames], sample, big_endian, offset } = self;
        let (file, state) = open_plain(&path, flag)?;
        let frame = width * height * sample.bytes() as u64;
        // no overflow: at most 2^31 pixels of 8 bytes, 2^20 times
        let end = offset.checked_add(frame * frames);
        if end.is_none_or(|end| end > state.bytes) {
            let bytes = state.bytes;
            return Err(bad(flag, &path, RawFileError::TooShort { bytes, frames, width, height, sample, offset }));
        }
        let end = end.unwrap_or(state.bytes);
        let rest = state.bytes - end;
        let note = || Remark::note(format!("{rest} bytes follow the last frame and are not read"));
        let remarks = if rest > 0 { vec![note()] } else { Vec::new() };
        Ok(PlainFrames {
            files: InputFiles::new(flag, vec![path], vec![(state, Some(file))]),
            scattered: BTreeMap::new(),
            places: (0..frames).map(|number| (0, offset + number * frame)).collect(),
            size: (width as usize, height as usize),
            sample,
            big_endian,
            remarks,
            layout: format!("raw from byte {offset}"),
        })
    }
}

/// Splits a word into file, sides, type and offset, if it has their form; the file name may contain commas.
fn split(word: &str) -> Option<(&Path, [u64; 3], &str, &str)> {
    let sides = |text: &str| -> Option<[u64; 3]> {
        let numbers = text.split('x').map(|side| side.parse().ok()).collect::<Option<Vec<u64>>>()?;
        numbers.try_into().ok()
    };
    let (rest, last) = word.rsplit_once(',')?;
    let (before, middle) = rest.rsplit_once(',')?;
    if let Some(sides) = sides(middle) {
        return (!before.is_empty()).then_some((Path::new(before), sides, last, "0"));
    }
    let (file, shape) = before.rsplit_once(',')?;
    (!file.is_empty()).then_some((Path::new(file), sides(shape)?, middle, last))
}

/// Returns the sample type of a name, and whether it is big-endian.
fn sample_type(name: &str) -> Option<(SampleType, bool)> {
    let (kind, big_endian) = match name {
        "u8" => return Some((SampleType::U8, false)),
        "i8" => return Some((SampleType::I8, false)),
        name => match name.strip_suffix("le") {
            Some(kind) => (kind, false),
            None => (name.strip_suffix("be")?, true),
        },
    };
    let sample = match kind {
        "u16" => SampleType::U16,
        "i16" => SampleType::I16,
        "u32" => SampleType::U32,
        "i32" => SampleType::I32,
        "u64" => SampleType::U64,
        "i64" => SampleType::I64,
        "f16" => SampleType::F16,
        "f32" => SampleType::F32,
        "f64" => SampleType::F64,
        _ => return None,
    };
    Some((sample, big_endian))
}

//! Images of a file, as frames.

use super::compound::CompoundStreams;
use super::errors::XrmError;
use crate::error::{BoxedError, Result};
use crate::source::SampleType;
use crate::source::files::{InputFiles, bad, file_name, may_stay_open, open_plain};
use crate::source::frames::{MAX_PIXELS, MAX_SIDE};
use crate::source::plain::{FilePiece, PlainFrames};
use crate::source::tiff::{XRM, are_of, find, refuse_archive};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::Path;

/// Largest number of images of a file.
pub(super) const MAX_IMAGES: usize = 1 << 20;
/// Images in a storage of a file.
const IN_STORAGE: usize = 100;

/// Reports whether a path, a glob, or the files of a list or a directory are images of Xradia's microscopes.
pub fn is_xrm(spec: &str) -> bool {
    are_of(spec, &XRM)
}

/// Size and sample type that all images of a file have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct XrmForm {
    pub width: usize,
    pub height: usize,
    pub sample: SampleType,
}

/// Formats size and type for messages.
impl fmt::Display for XrmForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} pixels, {}", self.width, self.height, self.sample)
    }
}

/// Images of one form, and the pieces of the file that each consists of.
pub(super) struct XrmImages {
    pub form: XrmForm,
    pub pieces: Vec<Vec<FilePiece>>,
}

impl XrmImages {
    /// Finds the images that the file was made for.
    ///
    /// # Errors
    /// [`XrmError`] where one is missing or has another size.
    fn of(streams: &mut CompoundStreams) -> Result<XrmImages, XrmError> {
        let form = XrmForm::read(streams, "ImageInfo", "ImageInfo/DataType", None)?;
        let count = count(streams)?;
        let name = |number: usize| format!("ImageData{}/Image{}", number / IN_STORAGE + 1, number + 1);
        XrmImages::named(streams, form, (0..count).map(name))
    }

    /// Finds the reference images, which are the beam without sample; none if the file has none. Images of the file have
    /// the form `usual`.
    ///
    /// # Errors
    /// [`XrmError`] where one has another size than it claims.
    pub fn reference(streams: &mut CompoundStreams, usual: XrmForm) -> Result<Option<XrmImages>, XrmError> {
        const ONE: &str = "ReferenceData/Image";
        if streams.length(ONE).is_ok_and(|bytes| bytes > 0) {
            let form = XrmForm::read(streams, "ReferenceData/ImageInfo", "ReferenceData/DataType", Some(usual))?;
            return XrmImages::named(streams, form, [ONE.to_owned()]).map(Some);
        }
        let name = |number: usize| format!("MultiReferenceData/Image{}", number + 1);
        let count = (0..MAX_IMAGES).take_while(|&number| streams.has(&name(number))).count();
        if count == 0 {
            return Ok(None);
        }
        let form = XrmForm::read(streams, "MultiReferenceData/ImageInfo", "MultiReferenceData/DataType", Some(usual))?;
        XrmImages::named(streams, form, (0..count).map(name)).map(Some)
    }

    fn named(
        streams: &mut CompoundStreams,
        form: XrmForm,
        names: impl IntoIterator<Item = String>,
    ) -> Result<XrmImages, XrmError> {
        let XrmForm { width, height, sample } = form;
        let needed = (width * height * sample.bytes()) as u64;
        let pieces = |name: String| {
            let bytes = streams.length(&name)?;
            if bytes != needed {
                return Err(XrmError::Length { name, bytes, width, height, sample, needed });
            }
            streams.pieces(&name)
        };
        let pieces = names.into_iter().map(pieces).collect::<Result<_, _>>()?;
        Ok(XrmImages { form, pieces })
    }

    /// Returns the frames of one file or more, each with its images of this form.
    fn frames(form: XrmForm, files: InputFiles, images: Vec<Vec<Vec<FilePiece>>>) -> PlainFrames {
        let (mut places, mut scattered) = (Vec::new(), BTreeMap::new());
        for (file, images) in images.into_iter().enumerate() {
            for pieces in images {
                let at = pieces.first().map_or(0, |piece| piece.at);
                if pieces.len() > 1 {
                    scattered.insert(places.len(), pieces);
                }
                places.push((file, at));
            }
        }
        let XrmForm { width, height, sample } = form;
        let (remarks, layout) = (Vec::new(), "XRM".to_owned());
        PlainFrames { files, places, scattered, size: (width, height), sample, big_endian: false, remarks, layout }
    }

    /// Returns the images as frames of an open file.
    pub fn into_frames(self, files: InputFiles) -> PlainFrames {
        XrmImages::frames(self.form, files, vec![self.pieces])
    }
}

impl XrmForm {
    /// Reads the form of images from the streams of a storage and the one of their type; `usual` stands for what is missing.
    fn read(
        streams: &mut CompoundStreams,
        storage: &str,
        kind: &str,
        usual: Option<XrmForm>,
    ) -> Result<XrmForm, XrmError> {
        let mut side = |name: &str, usual: Option<usize>| {
            let name = format!("{storage}/{name}");
            match (streams.integer(&name)?, usual) {
                (Some(value), _) => match u64::try_from(value) {
                    Ok(side) if (1..=MAX_SIDE).contains(&side) => Ok(side as usize),
                    _ => Err(XrmError::Side { name, value }),
                },
                (None, Some(usual)) => Ok(usual),
                (None, None) => Err(XrmError::NoStream { name }),
            }
        };
        let width = side("ImageWidth", usual.map(|form| form.width))?;
        let height = side("ImageHeight", usual.map(|form| form.height))?;
        if (width * height) as u64 > MAX_PIXELS {
            return Err(XrmError::Shape { width: width as u64, height: height as u64 });
        }
        let name = if streams.has(kind) { kind.to_owned() } else { format!("{storage}/DataType") };
        let sample = match (streams.integer(&name)?, usual) {
            (Some(value), _) => sample_type(value).ok_or(XrmError::DataType { name, value })?,
            (None, Some(usual)) => usual.sample,
            (None, None) => return Err(XrmError::NoStream { name }),
        };
        Ok(XrmForm { width, height, sample })
    }
}

/// Returns the sample type of a number.
fn sample_type(value: i64) -> Option<SampleType> {
    Some(match value {
        2 => SampleType::I8,
        3 => SampleType::U8,
        4 => SampleType::I16,
        5 => SampleType::U16,
        6 => SampleType::I32,
        7 => SampleType::U32,
        8 => SampleType::I64,
        9 => SampleType::U64,
        10 => SampleType::F32,
        11 => SampleType::F64,
        _ => return None,
    })
}

/// Returns the number of images that were taken; 1 if the file does not say it.
pub(super) fn count(streams: &mut CompoundStreams) -> Result<usize, XrmError> {
    const NAMES: [&str; 2] = ["ImageInfo/ImagesTaken", "ImageInfo/NoOfImages"];
    let [taken, planned] = NAMES.map(|name| streams.integer(name));
    let (taken, planned) = (taken?, planned?);
    // a file that was not closed properly has taken none
    let (name, value) = match (taken, planned) {
        (None, None) => return Ok(1),
        (Some(0), Some(planned)) => (NAMES[1], planned),
        (Some(taken), _) => (NAMES[0], taken),
        (None, Some(planned)) => (NAMES[1], planned),
    };
    match usize::try_from(value) {
        Ok(count) if (1..=MAX_IMAGES).contains(&count) => Ok(count),
        _ => Err(XrmError::Count { name: name.to_owned(), value, most: MAX_IMAGES }),
    }
}

/// Returns the images of a file of this length.
fn images_of(file: &File, bytes: u64) -> Result<XrmImages, BoxedError> {
    let opened = CompoundStreams::open(file, bytes);
    if opened.is_err() {
        refuse_archive(file)?;
    }
    Ok(XrmImages::of(&mut opened?)?)
}

/// Opens a directory, a glob, a list or one file of images. Frames are in the order of the file names, in which `by` selects
/// the number to sort by, and within a file in their order.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) when a file has another format, is damaged, or has other images than the
/// first.
pub fn open(spec: &str, flag: &str, by: Option<usize>) -> Result<PlainFrames> {
    if flag == "--sinograms" {
        return Err(bad(flag, Path::new(spec), XrmError::Sinograms));
    }
    let mut remarks = Vec::new();
    let paths = find(spec, flag, &XRM, by, &mut remarks)?;
    let keep = may_stay_open(paths.len());
    let opened = paths.par_iter().map(|path| {
        let (file, state) = open_plain(path, flag)?;
        let images = images_of(&file, state.bytes).map_err(|e| bad(flag, path, e))?;
        Ok((state, keep.then_some(file), images))
    });
    let (mut states, mut all, mut form) = (Vec::new(), Vec::new(), None);
    for (index, opened) in opened.collect::<Result<Vec<_>>>()?.into_iter().enumerate() {
        let (state, file, images) = opened;
        states.push((state, file));
        let usual = *form.get_or_insert(images.form);
        if usual != images.form {
            let (flag, file) = (flag.to_owned(), file_name(&paths[index]));
            let (form, usual) = (images.form.to_string(), usual.to_string());
            return Err(XrmError::OddImages { flag, file, form, usual }.into());
        }
        all.push(images.pieces);
    }
    let Some(form) = form else { return Err(bad(flag, Path::new(spec), XrmError::NoImages)) };
    let frames = XrmImages::frames(form, InputFiles::new(flag, paths, states), all);
    Ok(PlainFrames { remarks, ..frames })
}

//! TIFF files as input.

mod errors;
mod find;
mod glob;
mod header;
mod page;

pub(super) use find::{EDF, TIFF, XRM, are_of, find, is_log, present, refuse_archive};

use super::files::{FileState, InputFiles, bad, file_name, may_stay_open, open_plain};
use super::frames::{Frames, as_f32};
use super::{SampleType, StoredSamples};
use crate::error::Result;
use crate::remark::Remark;
use errors::TiffStackError;
use header::{TiffHeaders, read_pages};
use page::Page;
use rayon::prelude::*;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Pages of TIFF files, the files in the order of their names.
#[derive(Debug)]
pub(super) struct TiffPages {
    files: InputFiles,
    /// For each page, the index of its file, its number in the file, and its layout.
    pages: Vec<(usize, usize, Page)>,
    size: (usize, usize),
    sample: SampleType,
    stored: StoredSamples,
    remarks: Vec<Remark>,
}

impl TiffPages {
    /// Opens a directory, a glob, a list or one file and reads the headers of all pages. `by` is the number in the file
    /// names, counted from 1, that the user has chosen as their order.
    ///
    /// # Errors
    /// The errors of [`Stack::open`](super::Stack::open).
    pub fn open(spec: &str, flag: &str, by: Option<usize>) -> Result<TiffPages> {
        let mut remarks = Vec::new();
        let paths = find(spec, flag, &TIFF, by, &mut remarks)?;
        let keep = may_stay_open(paths.len());
        let opened: Vec<Result<_>> = paths.par_iter().map(|path| open_file(path, flag, keep)).collect();
        let (mut states, mut pages) = (Vec::new(), Vec::new());
        let mut notes = HeaderNotes::default();
        for (index, result) in opened.into_iter().enumerate() {
            let (state, handle, found) = result?;
            states.push((state, handle));
            notes.add(&paths[index], &found);
            pages.extend(found.pages.into_iter().enumerate().map(|(number, page)| (index, number, page)));
        }
        let Some((_, _, first)) = pages.first() else {
            return Err(bad(flag, Path::new(spec), TiffStackError::NoPages));
        };
        remarks.extend(notes.remarks());
        let (size, sample) = ((first.width, first.height), first.sample);
        let files = InputFiles::new(flag, paths, states);
        let mut stack = TiffPages { files, pages, size, sample, stored: StoredSamples::F32, remarks };
        stack.agree(flag)?;
        stack.stored = stack.stored_alike();
        Ok(stack)
    }

    /// Returns the form in which all pages store their samples; f32 if pages differ in byte order.
    fn stored_alike(&self) -> StoredSamples {
        let mut pages = self.pages.iter().map(|(_, _, page)| page.swapped());
        let swapped = pages.next().unwrap_or(false);
        match pages.all(|other| other == swapped) {
            true => StoredSamples { sample: self.sample, swapped },
            false => StoredSamples::F32,
        }
    }

    /// Checks that all pages agree in size and sample type; the majority decides which page is wrong.
    fn agree(&mut self, flag: &str) -> Result<()> {
        let key = |page: &Page| ((page.width, page.height), page.sample);
        let mut groups: HashMap<_, usize> = HashMap::new();
        for (_, _, page) in &self.pages {
            *groups.entry(key(page)).or_default() += 1;
        }
        let most = groups.values().copied().max().unwrap_or(0);
        if let Some((_, _, page)) = self.pages.iter().find(|(_, _, p)| groups[&key(p)] == most) {
            (self.size, self.sample) = key(page);
        }
        let usual = (self.size, self.sample);
        let Some(odd) = self.pages.iter().position(|(_, _, p)| key(p) != usual) else {
            return Ok(());
        };
        let (_, _, page) = &self.pages[odd];
        let others = if self.pages.len() == 2 { "the other is" } else { "the others are" };
        let (flag, name, size) = (flag.to_owned(), self.name(odd), (page.width, page.height));
        let shown = |(width, height)| format!("{width}x{height}");
        Err(match size == self.size {
            true => {
                TiffStackError::OddSample { flag, page: odd, name, sample: page.sample, others, usual: self.sample }
                    .into()
            }
            false => {
                let (size, usual) = (shown(size), shown(self.size));
                TiffStackError::OddSize { flag, page: odd, name, size, others, usual }.into()
            }
        })
    }
}

impl Frames for TiffPages {
    fn count(&self) -> usize {
        self.pages.len()
    }

    fn size(&self) -> (usize, usize) {
        self.size
    }

    fn sample(&self) -> SampleType {
        self.sample
    }

    fn name(&self, frame: usize) -> String {
        let (file, number, _) = &self.pages[frame];
        let name = file_name(&self.files.paths()[*file]);
        let next = self.pages.get(frame + 1);
        if next.is_some_and(|p| p.0 == *file) || *number > 0 { format!("{name} page {number}") } else { name }
    }

    fn fingerprint(&self) -> String {
        self.files.fingerprint()
    }

    fn files(&self) -> &[PathBuf] {
        self.files.paths()
    }

    fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    fn rows_are_apart(&self) -> bool {
        self.pages.iter().all(|(_, _, page)| page.is_plain())
    }

    fn read_rows(&self, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let (file, number, page) = &self.pages[frame];
        self.files.read(*file, |file| page.read_rows(file, rows, out).map_err(|e| e.in_page(*number)))
    }

    fn stored(&self) -> StoredSamples {
        self.stored
    }

    fn read_stored(&self, frame: usize, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        let (file, number, page) = &self.pages[frame];
        if self.stored != (StoredSamples { sample: page.sample, swapped: page.swapped() }) {
            return as_f32(out, |out| self.read_rows(frame, rows, out));
        }
        self.files.read(*file, |file| page.read_stored(file, rows, out).map_err(|e| e.in_page(*number)))
    }
}

/// Notes about headers for the user: of each kind, the number of files and the first of them.
#[derive(Default)]
struct HeaderNotes {
    turned: Option<(usize, String, u64)>,
    promising: Option<(usize, String, u64, usize)>,
}

impl HeaderNotes {
    fn add(&mut self, path: &Path, headers: &TiffHeaders) {
        if let Some(orientation) = headers.orientation {
            self.turned.get_or_insert_with(|| (0, file_name(path), orientation)).0 += 1;
        }
        if let Some(images) = headers.promised {
            let pages = headers.pages.len();
            self.promising.get_or_insert_with(|| (0, file_name(path), images, pages)).0 += 1;
        }
    }

    fn remarks(self) -> Vec<Remark> {
        let others = |count: usize| if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let turned = self.turned.map(|(count, name, orientation)| {
            Remark::note(format!(
                "{name}{} has the orientation {orientation} (tag 274), which is not applied: rows and bins are taken as they \
                 are stored",
                others(count)
            ))
        });
        let promising = self.promising.map(|(count, name, images, pages)| {
            Remark::note(format!(
                "{name}{} should have {images} images, as its description by ImageJ says, but has {pages}; check whether the \
                 file is complete",
                others(count)
            ))
        });
        turned.into_iter().chain(promising).collect()
    }
}

type Opened = (FileState, Option<File>, TiffHeaders);

fn open_file(path: &Path, flag: &str, keep: bool) -> Result<Opened> {
    let (file, state) = open_plain(path, flag)?;
    let pages = read_pages(&file, state.bytes).map_err(|e| bad(flag, path, e))?;
    Ok((state, keep.then_some(file), pages))
}

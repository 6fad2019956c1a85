//! Frames whose samples are stored uncompressed in files: raw volumes, EDF, NumPy, and images in compound files.

use super::files::{InputFileError, InputFiles};
use super::frames::{Frames, as_f32};
use super::{SampleType, StoredSamples};
use crate::error::Result;
use crate::layout::to_f32;
use crate::remark::Remark;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Bytes that are read and converted at once.
const PIECE: usize = 1 << 20;

/// Part of a file: offset and number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePiece {
    pub at: u64,
    pub bytes: u64,
}

/// Uncompressed frames of one size and type, all of which lie within their files.
#[derive(Debug)]
pub(super) struct PlainFrames {
    pub files: InputFiles,
    /// For every frame, the index of its file and the offset of its first sample.
    pub places: Vec<(usize, u64)>,
    /// Pieces of those frames that are not stored in one.
    pub scattered: BTreeMap<usize, Vec<FilePiece>>,
    pub size: (usize, usize),
    pub sample: SampleType,
    pub big_endian: bool,
    pub remarks: Vec<Remark>,
    /// Text for the fingerprint that says where frames begin.
    pub layout: String,
}

impl PlainFrames {
    fn read_at(&self, frame: usize, rows: &Range<usize>, from: usize, out: &mut [u8]) -> Result<()> {
        let (file, offset) = self.places[frame];
        let start = ((rows.start * self.size.0) * self.sample.bytes() + from) as u64;
        self.files.read(file, |file| match self.scattered.get(&frame) {
            None => read_piece(file, offset + start, out),
            Some(pieces) => read_pieces(file, pieces, start, out),
        })
    }
}

fn read_piece(file: &File, at: u64, out: &mut [u8]) -> Result<(), InputFileError> {
    file.read_exact_at(out, at).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => InputFileError::BecameShorter,
        _ => InputFileError::Unreadable { error },
    })
}

/// Reads bytes from `start` on of what lies in pieces.
fn read_pieces(file: &File, pieces: &[FilePiece], start: u64, out: &mut [u8]) -> Result<(), InputFileError> {
    let (mut skipped, mut rest) = (start, out);
    for piece in pieces {
        if skipped >= piece.bytes {
            skipped -= piece.bytes;
            continue;
        }
        let here = rest.len().min(usize::try_from(piece.bytes - skipped).unwrap_or(usize::MAX));
        let (now, after) = std::mem::take(&mut rest).split_at_mut(here);
        read_piece(file, piece.at + skipped, now)?;
        (skipped, rest) = (0, after);
        if rest.is_empty() {
            break;
        }
    }
    Ok(())
}

impl Frames for PlainFrames {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn size(&self) -> (usize, usize) {
        self.size
    }

    fn sample(&self) -> SampleType {
        self.sample
    }

    fn name(&self, frame: usize) -> String {
        let (file, _) = self.places[frame];
        let name = super::files::file_name(&self.files.paths()[file]);
        let first = self.places.partition_point(|&(other, _)| other < file);
        let alone = self.places.get(first + 1).is_none_or(|&(other, _)| other != file);
        if alone { name } else { format!("{name} frame {}", frame - first) }
    }

    fn fingerprint(&self) -> String {
        format!("{} {} {}\n{}", self.layout, self.sample, self.big_endian, self.files.fingerprint())
    }

    fn files(&self) -> &[PathBuf] {
        self.files.paths()
    }

    fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    fn rows_are_apart(&self) -> bool {
        true
    }

    fn read_rows(&self, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let size = self.sample.bytes();
        let mut bytes = vec![0; PIECE.min(out.len() * size)];
        for (piece, out) in out.chunks_mut(PIECE / size).enumerate() {
            let bytes = &mut bytes[..out.len() * size];
            self.read_at(frame, &rows, piece * (PIECE / size) * size, bytes)?;
            to_f32(bytes, self.sample, self.big_endian, out);
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
        self.read_at(frame, &rows, 0, out)
    }
}

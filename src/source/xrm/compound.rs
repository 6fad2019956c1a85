//! Streams of a compound file (OLE2), and where they lie in it.

use super::errors::XrmError;
use crate::source::plain::FilePiece;
use cfb::{CompoundFile, OpenOptions};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Bytes that are read at once; the crate reads pieces from this size on from the file directly.
const PIECE: usize = 1 << 20;
/// Largest number of bytes that the crate keeps of a stream.
const BUFFER: usize = 1 << 16;

/// Pieces of the file that were asked for, while they are recorded.
type Recorded = Rc<RefCell<Option<Vec<FilePiece>>>>;

/// File that a compound file is read from. While pieces are recorded, their bytes are not read.
struct RecordingFile<'a> {
    file: &'a File,
    bytes: u64,
    at: u64,
    recorded: Recorded,
}

impl Read for RecordingFile<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let count = out.len().min(left);
        let count = match &mut *self.recorded.borrow_mut() {
            None => self.file.read_at(&mut out[..count], self.at)?,
            Some(pieces) => {
                let piece = FilePiece { at: self.at, bytes: count as u64 };
                match pieces.last_mut() {
                    Some(last) if last.at + last.bytes == piece.at => last.bytes += piece.bytes,
                    _ if count > 0 => pieces.push(piece),
                    _ => {}
                }
                count
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for RecordingFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// A compound file that is open for reading. Names of streams are paths such as `ImageInfo/Angles`, in either case.
pub(super) struct CompoundStreams<'a> {
    streams: CompoundFile<RecordingFile<'a>>,
    recorded: Recorded,
    piece: Vec<u8>,
}

impl<'a> CompoundStreams<'a> {
    /// Opens a file of this length; only its tables are read.
    pub fn open(file: &'a File, bytes: u64) -> Result<CompoundStreams<'a>, XrmError> {
        let recorded = Recorded::default();
        let file = RecordingFile { file, bytes, at: 0, recorded: Rc::clone(&recorded) };
        let streams = OpenOptions::new().max_buffer_size(BUFFER).open_with(file);
        let streams = streams.map_err(|error| XrmError::OtherFormat { error })?;
        Ok(CompoundStreams { streams, recorded, piece: Vec::new() })
    }

    /// Reports whether there is a stream of this name.
    pub fn has(&self, name: &str) -> bool {
        self.streams.is_stream(name)
    }

    /// Returns the first numbers of a stream, at most `most`; none if it does not exist.
    fn words(&mut self, name: &str, most: usize) -> Result<Option<Vec<[u8; 4]>>, XrmError> {
        if !self.has(name) {
            return Ok(None);
        }
        let wrong = |error| XrmError::Stream { name: name.to_owned(), error };
        let stream = self.streams.open_stream(name).map_err(wrong)?;
        let mut bytes = Vec::new();
        // what is claimed may be more than there is
        stream.take(4 * most as u64).read_to_end(&mut bytes).map_err(wrong)?;
        Ok(Some(bytes.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]).collect()))
    }

    /// Returns the whole number at the start of a stream, if it exists and is not empty.
    pub fn integer(&mut self, name: &str) -> Result<Option<i64>, XrmError> {
        Ok(self.words(name, 1)?.and_then(|words| words.first().map(|word| i32::from_le_bytes(*word).into())))
    }

    /// Returns the numbers of a stream, at most `most`; none if it does not exist.
    pub fn floats(&mut self, name: &str, most: usize) -> Result<Option<Vec<f64>>, XrmError> {
        let words = self.words(name, most)?;
        Ok(words.map(|words| words.into_iter().map(|word| f32::from_le_bytes(word).into()).collect()))
    }

    /// Returns the number at the start of a stream, if it is finite and not 0: the shortest decimal that is stored as it is.
    pub fn float(&mut self, name: &str) -> Result<Option<f64>, XrmError> {
        let words = self.words(name, 1)?.unwrap_or_default();
        let value = words.first().map(|word| f32::from_le_bytes(*word));
        let decimal = value.and_then(|value| value.to_string().parse::<f64>().ok());
        Ok(decimal.filter(|value| value.is_finite() && *value != 0.0))
    }

    /// Returns the number of bytes of a stream.
    pub fn length(&self, name: &str) -> Result<u64, XrmError> {
        match self.streams.entry(name) {
            Ok(entry) if entry.is_stream() => Ok(entry.len()),
            _ => Err(XrmError::NoStream { name: name.to_owned() }),
        }
    }

    /// Returns the pieces of the file that a stream consists of, in order, without reading them.
    pub fn pieces(&mut self, name: &str) -> Result<Vec<FilePiece>, XrmError> {
        let bytes = self.length(name)?;
        let wrong = |error| XrmError::Stream { name: name.to_owned(), error };
        let mut stream = self.streams.open_stream(name).map_err(wrong)?;
        self.piece.resize(PIECE, 0);
        *self.recorded.borrow_mut() = Some(Vec::new());
        let mut left = bytes;
        let walked = loop {
            match stream.read(&mut self.piece) {
                Ok(0) => break Ok(()),
                Ok(count) => left = left.saturating_sub(count as u64),
                Err(error) => break Err(error),
            }
            if left == 0 {
                break Ok(());
            }
        };
        let pieces = self.recorded.borrow_mut().take().unwrap_or_default();
        walked.map_err(wrong)?;
        // the end of the file may lie within the last sector
        match pieces.iter().map(|piece| piece.bytes).sum::<u64>() == bytes {
            true => Ok(pieces),
            false => Err(XrmError::Truncated { name: name.to_owned() }),
        }
    }
}

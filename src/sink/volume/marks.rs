//! Marks in the file itself that tell which planes of a volume are complete: a number for each plane.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Number of bytes of a mark.
pub(super) const MARK_BYTES: usize = 8;
/// Bit in the mark of a plane whose samples are written; the lower 32 bits are their CRC-32.
const WRITTEN: u64 = 1 << 33;
/// Bit in the mark of a plane for which everything that depends on it was made as well; the lower 32 bits are the
/// CRC-32.
const COMPLETE: u64 = 1 << 32;

/// State of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Missing,
    /// All samples are written, with this CRC-32.
    Written(u32),
    /// All samples are written, with this CRC-32, and no job will write anything else for this plane.
    Complete(u32),
}

/// Marks as unsigned little-endian numbers of 64 bits, which are 0 until a plane is written.
#[derive(Debug)]
pub(super) struct Marks {
    file: File,
    /// Offset of the first mark.
    offset: u64,
}

impl Marks {
    pub fn new(file: File, offset: u64) -> Marks {
        Marks { file, offset }
    }

    pub fn get(&self, plane: usize) -> io::Result<Mark> {
        let mut bytes = [0; MARK_BYTES];
        self.file.read_exact_at(&mut bytes, self.place(plane))?;
        let mark = u64::from_le_bytes(bytes);
        Ok(match mark & !u64::from(u32::MAX) {
            COMPLETE => Mark::Complete(mark as u32),
            WRITTEN => Mark::Written(mark as u32),
            // no mark, or a number that no job has written
            _ => Mark::Missing,
        })
    }

    pub fn set(&self, plane: usize, mark: Mark) -> io::Result<()> {
        let number = match mark {
            Mark::Missing => 0,
            Mark::Written(crc) => WRITTEN | u64::from(crc),
            Mark::Complete(crc) => COMPLETE | u64::from(crc),
        };
        self.file.write_all_at(&number.to_le_bytes(), self.place(plane))
    }

    /// Counts the complete planes among the first `planes`.
    pub fn count(&self, planes: usize) -> io::Result<usize> {
        let marks = (0..planes).map(|plane| Ok(usize::from(matches!(self.get(plane)?, Mark::Complete(_)))));
        marks.sum()
    }

    fn place(&self, plane: usize) -> u64 {
        self.offset + (plane * MARK_BYTES) as u64
    }
}

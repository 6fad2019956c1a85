//! Which planes of a volume are complete, in the file itself: a number for each plane.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a mark.
pub(super) const MARK_BYTES: usize = 8;
/// Set in the mark of a plane that is complete; the 32 bits below are the CRC-32 of its samples.
const COMPLETE: u64 = 1 << 32;

/// Unsigned little-endian numbers of 64 bits: 0 until a plane is complete.
#[derive(Debug)]
pub(super) struct Marks {
    file: File,
    /// Of the first mark.
    offset: u64,
}

impl Marks {
    pub fn new(file: File, offset: u64) -> Marks {
        Marks { file, offset }
    }

    /// The checksum of a plane, if it is complete.
    pub fn get(&self, plane: usize) -> io::Result<Option<u32>> {
        let mut bytes = [0; MARK_BYTES];
        self.file.read_exact_at(&mut bytes, self.place(plane))?;
        let mark = u64::from_le_bytes(bytes);
        Ok((mark & COMPLETE != 0).then_some(mark as u32))
    }

    /// Says that a plane is complete, or is not.
    pub fn set(&self, plane: usize, crc: Option<u32>) -> io::Result<()> {
        let mark = crc.map_or(0, |crc| COMPLETE | u64::from(crc));
        self.file.write_all_at(&mark.to_le_bytes(), self.place(plane))
    }

    /// How many of the first planes are complete.
    pub fn count(&self, planes: usize) -> io::Result<usize> {
        let marks = (0..planes).map(|plane| Ok(usize::from(self.get(plane)?.is_some())));
        marks.sum()
    }

    fn place(&self, plane: usize) -> u64 {
        self.offset + (plane * MARK_BYTES) as u64
    }
}

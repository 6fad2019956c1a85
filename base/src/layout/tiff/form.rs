//! Kind and byte order of a TIFF file, as its header says them.

use crate::error::messages;

/// Kind of TIFF, which determines the width of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TiffKind {
    /// Offsets of 32 bits.
    Classic,
    /// Offsets of 64 bits.
    Big,
}

/// Kind and byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TiffForm {
    pub kind: TiffKind,
    pub big_endian: bool,
}

messages! {
    /// Reason why the first bytes of a file are not a header of TIFF.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub enum TiffHeaderError: Input {
        Start =>
            "is not a TIFF (it does not begin with II or MM)"; "name the TIFF files alone, for example with a glob",
        Version { version: u64 } => "is not a TIFF (version {version}, expected 42 or 43)"; "copy or write it again",
        Incomplete => "is truncated or damaged: its TIFF header is incomplete"; "copy or write it again",
    }
}

/// Version of classic TIFF.
const CLASSIC: u16 = 42;
/// Version of BigTIFF.
const BIG: u16 = 43;
/// Number of bytes of an offset in BigTIFF, which its header says, followed by 0.
const OFFSET: u16 = 8;

impl TiffForm {
    /// Number of bytes of the longest header.
    pub const HEADER: usize = 16;

    /// Returns the form of files that this machine writes.
    pub fn native(kind: TiffKind) -> TiffForm {
        TiffForm { kind, big_endian: cfg!(target_endian = "big") }
    }

    /// Reads the header from the first bytes of a file, all of them if the file is shorter than
    /// [`HEADER`](Self::HEADER). Returns the form and the offset of the first directory.
    ///
    /// # Errors
    /// When they are not a header.
    pub fn parse(start: &[u8]) -> Result<(TiffForm, u64), TiffHeaderError> {
        let big_endian = match start.get(..2) {
            Some(b"II") => false,
            Some(b"MM") => true,
            _ => return Err(TiffHeaderError::Start),
        };
        let classic = TiffForm { kind: TiffKind::Classic, big_endian };
        let number = |at: usize, length: usize| start.get(at..at + length).map(|bytes| classic.number(bytes));
        let version = number(2, 2).ok_or(TiffHeaderError::Incomplete)?;
        let (form, first) = match u16::try_from(version) {
            Ok(CLASSIC) => (classic, number(4, 4)),
            Ok(BIG) => {
                let known = number(4, 2) == Some(OFFSET.into()) && number(6, 2) == Some(0);
                (TiffForm { kind: TiffKind::Big, big_endian }, number(8, 8).filter(|_| known))
            }
            _ => return Err(TiffHeaderError::Version { version }),
        };
        Ok((form, first.ok_or(TiffHeaderError::Incomplete)?))
    }

    /// Returns the header of a file whose first directory is at the offset `first`.
    pub fn header(self, first: u64) -> Vec<u8> {
        let mut bytes = if self.big_endian { b"MM".to_vec() } else { b"II".to_vec() };
        match self.kind {
            TiffKind::Classic => bytes.extend(self.short(CLASSIC)),
            TiffKind::Big => [BIG, OFFSET, 0].iter().for_each(|&word| bytes.extend(self.short(word))),
        }
        self.put_offset(&mut bytes, first);
        bytes
    }

    /// Returns the number of bytes of the header.
    pub fn header_bytes(self) -> usize {
        2 * self.offset_bytes()
    }

    /// Returns the number of bytes of an offset.
    pub fn offset_bytes(self) -> usize {
        match self.kind {
            TiffKind::Classic => 4,
            TiffKind::Big => 8,
        }
    }

    /// Returns the number of bytes of the number of entries before a directory.
    pub fn count_bytes(self) -> usize {
        match self.kind {
            TiffKind::Classic => 2,
            TiffKind::Big => 8,
        }
    }

    /// Reports whether offsets can represent everything before `end`.
    pub fn reaches(self, end: u64) -> bool {
        self.kind == TiffKind::Big || u32::try_from(end).is_ok()
    }

    /// Decodes an unsigned number of up to 8 bytes.
    pub fn number(self, bytes: &[u8]) -> u64 {
        let shift = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.big_endian { bytes.iter().fold(0, shift) } else { bytes.iter().rev().fold(0, shift) }
    }

    /// Encodes a number of 2 bytes.
    pub(super) fn short(self, number: u16) -> [u8; 2] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    /// Encodes a number of 4 bytes.
    pub(super) fn long(self, number: u32) -> [u8; 4] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    /// Encodes an offset or a length.
    pub(super) fn put_offset(self, bytes: &mut Vec<u8>, offset: u64) {
        match (self.kind, self.big_endian) {
            (TiffKind::Classic, _) => bytes.extend(self.long(offset as u32)),
            (TiffKind::Big, true) => bytes.extend(offset.to_be_bytes()),
            (TiffKind::Big, false) => bytes.extend(offset.to_le_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        for kind in [TiffKind::Classic, TiffKind::Big] {
            for big_endian in [false, true] {
                let form = TiffForm { kind, big_endian };
                let header = form.header(0x0102_0304);
                assert_eq!(header.len(), form.header_bytes());
                assert_eq!(TiffForm::parse(&header), Ok((form, 0x0102_0304)));
                for length in 4..header.len() {
                    assert_eq!(TiffForm::parse(&header[..length]), Err(TiffHeaderError::Incomplete), "{length}");
                }
            }
        }
        assert_eq!(TiffForm::parse(b"I"), Err(TiffHeaderError::Start));
        assert_eq!(TiffForm::parse(b"%PDF-1.4"), Err(TiffHeaderError::Start));
        assert_eq!(TiffForm::parse(b"MM\0\x2c\0\0\0\x08"), Err(TiffHeaderError::Version { version: 44 }));
        // offsets of another width
        assert_eq!(TiffForm::parse(b"II\x2b\0\x04\0\0\0\x10\0\0\0\0\0\0\0"), Err(TiffHeaderError::Incomplete));
    }

    #[test]
    fn only_big_tiff_reaches_beyond_4_gib() {
        let reaches = |kind, end| TiffForm::native(kind).reaches(end);
        assert!(reaches(TiffKind::Classic, u32::MAX.into()) && !reaches(TiffKind::Classic, 1 << 32));
        assert!(reaches(TiffKind::Big, 1 << 40));
    }
}

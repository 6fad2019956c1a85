//! Superblock, with which a file begins.

/// Signature of an HDF5 file, at its start or after a user block.
pub const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Properties of a file that the first bytes of its superblock say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    pub version: u8,
    /// Number of bytes of an address.
    offset_bytes: u8,
    /// Number of bytes of a length.
    length_bytes: u8,
}

impl Superblock {
    /// Number of bytes that [`parse`](Self::parse) needs.
    pub const BYTES: usize = 16;
    /// Offset of the address of the end of the file in a superblock of version 0.
    pub const END: u64 = 40;

    /// Reads the first bytes of a superblock, which follow the signature.
    pub fn parse(start: &[u8; Superblock::BYTES]) -> Superblock {
        let version = start[8];
        let sizes = if version < 2 { 13 } else { 9 };
        Superblock { version, offset_bytes: start[sizes], length_bytes: start[sizes + 1] }
    }

    /// Reports whether addresses and lengths have 8 bytes.
    pub fn is_wide(self) -> bool {
        (self.offset_bytes, self.length_bytes) == (8, 8)
    }
}

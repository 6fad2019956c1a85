//! The one digest of the program: it names kernels, runs, files in the cache and files beside outputs.

use sha2::{Digest, Sha256};
use std::fmt;

/// SHA-256 of several parts, each with its length, so that parts are told apart: stable over versions and machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartsDigest(pub [u8; 32]);

impl PartsDigest {
    pub fn of(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> PartsDigest {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        PartsDigest(hash.finalize().into())
    }
}

/// Formats the first half in hexadecimal digits, as names and keys contain it; with a precision, as many digits.
impl fmt::Display for PartsDigest {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let digits: String = self.0[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        f.write_str(&digits[..f.precision().unwrap_or(digits.len()).min(digits.len())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        assert_ne!(PartsDigest::of(["ab", "c"]), PartsDigest::of(["a", "bc"]));
        assert_ne!(PartsDigest::of([""]), PartsDigest::of([] as [&str; 0]));
        // of 8 bytes, 1 and zeros, and the letter a
        let one = PartsDigest::of(["a"]);
        assert_eq!(one.0[..], Sha256::digest(b"\x01\0\0\0\0\0\0\0a")[..]);
        assert_eq!(format!("{one:.8}"), one.to_string()[..8]);
        assert_eq!(one.to_string().len(), 32);
    }
}

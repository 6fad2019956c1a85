//! LZF, the HDF5 filter 32000 of h5py: literal runs of bytes, and copies of earlier ones.

use super::error::{DecodeError, Decoded};

/// Control bytes below this value are the length of a run minus one.
///
/// In other control bytes, the upper 3 bits are the length of a copy minus 2, where 7 means that the next byte is
/// added. The lower 5 bits and the next byte are the distance minus one.
const RUNS: usize = 32;

/// Decodes a stream to exactly the bytes of `out`.
pub(super) fn decode(stored: &[u8], out: &mut [u8]) -> Decoded {
    let mut stored = stored;
    let mut next = |count: usize| -> Result<&[u8], DecodeError> {
        let (bytes, rest) = stored.split_at_checked(count).ok_or(DecodeError::Short)?;
        stored = rest;
        Ok(bytes)
    };
    let mut at = 0;
    while at < out.len() {
        let control = usize::from(next(1)?[0]);
        if control < RUNS {
            let run = next(control + 1)?;
            out.get_mut(at..at + run.len()).ok_or(DecodeError::Length)?.copy_from_slice(run);
            at += run.len();
            continue;
        }
        let more = if control >> 5 == 7 { usize::from(next(1)?[0]) } else { 0 };
        let length = (control >> 5) + more + 2;
        let distance = (control & 31) << 8 | usize::from(next(1)?[0]);
        if distance >= at || length > out.len() - at {
            return Err(DecodeError::Invalid);
        }
        for i in at..at + length {
            out[i] = out[i - distance - 1];
        }
        at += length;
    }
    if stored.is_empty() { Ok(()) } else { Err(DecodeError::Length) }
}

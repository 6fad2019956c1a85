//! The filter bitshuffle of HDF5 (32008).

use super::error::{DecodeError, Decoded};
use super::shuffle::bits_back;
use super::streams::{block_of, is_wanted, lz4, take, zstd, zstd_decoder};
use std::ops::Range;

/// Compression of the sorted bits of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitPacking {
    None,
    Lz4,
    Zstd,
}

/// Parameters of the filter bitshuffle, which sorts the bits of samples in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitshuffle {
    /// Number of bytes of a sample, above 0.
    pub size: usize,
    /// Number of samples of a block, a multiple of 8; with compression, the chunk itself says it.
    pub block: usize,
    pub packing: BitPacking,
}

impl Bitshuffle {
    /// Bytes of the largest sample that is known to occur: a complex number of two doubles.
    const MOST: u32 = 16;
    /// Bytes of a block where the parameters do not give its size.
    const BLOCK: usize = 8192;
    /// Smallest number of samples of a block of such a size.
    const LEAST: usize = 128;

    /// Reads the parameters of the filter: version, version, bytes of a sample, samples of a block, compression.
    pub fn of(parameters: &[u32]) -> Option<Bitshuffle> {
        let &size = parameters.get(2).filter(|&&size| (1..=Bitshuffle::MOST).contains(&size))?;
        let size = size as usize;
        let block = match parameters.get(3) {
            None | Some(0) => Bitshuffle::usual_block(size),
            Some(&block) => Some(block as usize).filter(|block| block % 8 == 0)?,
        };
        let packing = match parameters.get(4) {
            None | Some(0) => BitPacking::None,
            Some(2) => BitPacking::Lz4,
            Some(3) => BitPacking::Zstd,
            Some(_) => return None,
        };
        Some(Bitshuffle { size, block, packing })
    }

    fn usual_block(size: usize) -> usize {
        (Bitshuffle::BLOCK / size / 8 * 8).max(Bitshuffle::LEAST)
    }

    pub(super) fn decode(self, stored: &[u8], out: &mut [u8], wanted: &Range<usize>, spare: &mut Vec<u8>) -> Decoded {
        let Bitshuffle { size, packing, .. } = self;
        let (mut stored, mut block) = (stored, self.block * size);
        if packing != BitPacking::None {
            let length = u64::from_be_bytes(take(&mut stored)?);
            block = u32::from_be_bytes(take(&mut stored)?) as usize;
            if length != out.len() as u64 || block % (8 * size) != 0 {
                return Err(DecodeError::Length);
            }
            if block == 0 {
                block = Bitshuffle::usual_block(size) * size;
            }
        }
        let mut zstd_decoder = (packing == BitPacking::Zstd).then(zstd_decoder).transpose()?;
        // the last block has the largest multiple of 8 samples that is left; samples after it are stored unchanged
        let sorted = out.len() / (8 * size) * (8 * size);
        let (blocks, rest) = out.split_at_mut(sorted);
        let mut unpacked = vec![0; if packing == BitPacking::None { 0 } else { block.min(sorted) }];
        for (number, out) in blocks.chunks_mut(block).enumerate() {
            let wanted = is_wanted(wanted, number * block, out);
            let bits = match packing {
                BitPacking::None => {
                    let (bits, behind) = stored.split_at_checked(out.len()).ok_or(DecodeError::Short)?;
                    stored = behind;
                    bits
                }
                _ => {
                    let (part, unpacked) = (block_of(&mut stored)?, &mut unpacked[..out.len()]);
                    if !wanted {
                        continue;
                    }
                    match &mut zstd_decoder {
                        Some(decoder) => zstd(decoder, part, unpacked)?,
                        None => lz4(part, unpacked)?,
                    }
                    unpacked
                }
            };
            if wanted {
                bits_back(size, bits, out, spare);
            }
        }
        rest.copy_from_slice(stored.get(..rest.len()).ok_or(DecodeError::Short)?);
        Ok(())
    }
}

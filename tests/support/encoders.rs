//! Encoders written from the definitions of formats, for tests of decoders.

use std::io::Write;

/// An encoder.
pub type Pack = fn(&[u8]) -> Vec<u8>;

pub fn sorted_bytes(size: usize, data: &[u8]) -> Vec<u8> {
    let count = data.len() / size;
    let mut out: Vec<u8> = (0..size).flat_map(|place| (0..count).map(move |i| data[i * size + place])).collect();
    out.extend(&data[count * size..]);
    out
}

/// Bit by bit; a multiple of 8 samples.
pub fn sorted_bits(size: usize, data: &[u8]) -> Vec<u8> {
    let count = data.len() / size;
    let mut out = vec![0; data.len()];
    for i in 0..count {
        for bit in 0..8 * size {
            let one = data[i * size + bit / 8] >> (bit % 8) & 1;
            out[bit * count / 8 + i / 8] |= one << (i % 8);
        }
    }
    out
}

pub fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub fn lz4_of(data: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(data)
}

pub fn zstd_of(data: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(data, 1).unwrap()
}

pub fn with_length(block: &[u8]) -> Vec<u8> {
    [&(block.len() as u32).to_be_bytes()[..], block].concat()
}

/// What the filter bitshuffle of HDF5 writes: blocks of so many samples, packed by `pack`.
pub fn bitshuffled(size: usize, block: usize, pack: Option<Pack>, data: &[u8]) -> Vec<u8> {
    let block = block * size;
    let sorted = data.len() / (8 * size) * (8 * size);
    let mut out = match pack {
        None => Vec::new(),
        Some(_) => [&(data.len() as u64).to_be_bytes()[..], &(block as u32).to_be_bytes()].concat(),
    };
    for part in data[..sorted].chunks(block) {
        let bits = sorted_bits(size, part);
        out.extend(pack.map_or(bits.clone(), |pack| with_length(&pack(&bits))));
    }
    out.extend(&data[sorted..]);
    out
}

/// What the filter LZ4 of HDF5 writes.
pub fn lz4_blocks_of(block: usize, data: &[u8]) -> Vec<u8> {
    let mut out = [&(data.len() as u64).to_be_bytes()[..], &(block as u32).to_be_bytes()].concat();
    for part in data.chunks(block) {
        let packed = lz4_of(part);
        out.extend(with_length(if packed.len() < part.len() { &packed } else { part }));
    }
    out
}

/// A stream of runs alone.
pub fn blosclz_of(data: &[u8]) -> Vec<u8> {
    data.chunks(32).flat_map(|run| [&[run.len() as u8 - 1][..], run].concat()).collect()
}

/// A container of Blosc, with or without a division by the bytes of samples.
pub fn blosc_of(data: &[u8], size: usize, block: usize, codec: u8, sorts: u8, divided: bool) -> Vec<u8> {
    let block = block.min(data.len()) / size * size;
    let flags = codec << 5 | sorts | if divided { 0 } else { 16 };
    let blocks = data.len().div_ceil(block);
    let mut body = Vec::new();
    let mut starts = Vec::new();
    for part in data.chunks(block) {
        starts.extend(((16 + 4 * blocks + body.len()) as u32).to_le_bytes());
        let sorted = match sorts {
            1 => sorted_bytes(size, part),
            4 if part.len() / size % 8 == 0 => {
                let whole = part.len() / size * size;
                [sorted_bits(size, &part[..whole]), part[whole..].to_vec()].concat()
            }
            _ => part.to_vec(),
        };
        let splits = if divided && part.len() == block && size <= 16 && block / size >= 128 { size } else { 1 };
        for piece in sorted.chunks(sorted.len() / splits) {
            let packed = match codec {
                0 => blosclz_of(piece),
                1 => lz4_of(piece),
                3 => deflated(piece),
                _ => zstd_of(piece),
            };
            let packed = if packed.len() < piece.len() { &packed } else { piece };
            body.extend((packed.len() as u32).to_le_bytes());
            body.extend(packed);
        }
    }
    let mut out = vec![2, 1, flags, size as u8];
    for number in [data.len(), block, 16 + starts.len() + body.len()] {
        out.extend((number as u32).to_le_bytes());
    }
    [out, starts, body].concat()
}

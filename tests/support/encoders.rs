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

/// A stream of LZF: copies where the last bytes have some.
pub fn lzf_of(data: &[u8]) -> Vec<u8> {
    let (mut out, mut run, mut at) = (Vec::new(), Vec::new(), 0);
    let write_run = |out: &mut Vec<u8>, run: &mut Vec<u8>| {
        run.chunks(32).for_each(|run| out.extend([&[run.len() as u8 - 1][..], run].concat()));
        run.clear();
    };
    while at < data.len() {
        let shared = |from: usize| data[from..].iter().zip(&data[at..]).take(264).take_while(|(a, b)| a == b).count();
        let copy = (at.saturating_sub(700)..at).map(|from| (shared(from), from)).max().filter(|copy| copy.0 > 2);
        if let Some((length, from)) = copy {
            write_run(&mut out, &mut run);
            let distance = at - from - 1;
            let high = (distance >> 8) as u8;
            match length - 2 {
                length if length < 7 => out.push((length as u8) << 5 | high),
                length => out.extend([7 << 5 | high, (length - 7) as u8]),
            }
            out.push(distance as u8);
            at += length;
        } else {
            run.push(data[at]);
            at += 1;
        }
    }
    write_run(&mut out, &mut run);
    out
}

/// How data are stored in a frame of Blosc 2.
#[derive(Clone, Copy, Debug)]
pub struct Blosc2Form {
    /// Bytes of a sample and of a block.
    pub size: usize,
    pub block: usize,
    pub codec: u8,
    /// 0 none, 1 bytes, 2 bits, 3 differences.
    pub filter: u8,
    pub divided: bool,
}

/// A frame with one chunk; `boxes` are its sides and those of its blocks, if it has several dimensions.
pub fn blosc2_of(data: &[u8], form: Blosc2Form, boxes: Option<(&[usize], &[usize])>) -> Vec<u8> {
    let Blosc2Form { size, .. } = form;
    let chunk = match boxes {
        None => blosc2_chunk(data, form),
        Some((sides, block)) => {
            let of_block = size * block.iter().product::<usize>();
            blosc2_chunk(&in_boxes(data, size, sides, block), Blosc2Form { block: of_block, ..form })
        }
    };
    let mut contents = Vec::new();
    if let Some((sides, block)) = boxes {
        let list = |bytes: usize, numbers: &[usize]| -> Vec<u8> {
            let number =
                |n: &usize| [&[if bytes == 8 { 0xd3 } else { 0xd2 }][..], &n.to_be_bytes()[8 - bytes..]].concat();
            [vec![0x90 | numbers.len() as u8], numbers.iter().flat_map(number).collect()].concat()
        };
        contents = [vec![0x97, 0, sides.len() as u8], list(8, sides), list(4, sides), list(4, block), vec![0]].concat();
    }
    let names = usize::from(boxes.is_some());
    let header = 87 + 7 + names * (5 + 5) + 3 + names * 5 + contents.len();
    let index = blosc2_chunk(&[0; 8], Blosc2Form { size: 8, block: 8, codec: 0, filter: 0, divided: false });
    let mut out = vec![0x9e, 0xa8];
    out.extend(b"b2frame\0");
    out.push(0xd2);
    out.extend((header as u32).to_be_bytes());
    out.push(0xcf);
    out.extend(((header + chunk.len() + index.len()) as u64).to_be_bytes());
    out.extend([0xa4, 0x12, 0, form.codec, 3]);
    for (marker, number) in [(0xd3, data.len()), (0xd3, chunk.len())] {
        out.push(marker);
        out.extend((number as u64).to_be_bytes());
    }
    for number in [size, form.block, data.len()] {
        out.push(0xd2);
        out.extend((number as u32).to_be_bytes());
    }
    out.extend([0xd1, 0, 0, 0xd1, 0, 1, 0xc2, 0xd8, 6]);
    out.extend([0; 16]);
    out.extend([0x93, 0xcd, 0, (4 + names * 10) as u8 + 3, 0xde, 0, names as u8]);
    if boxes.is_some() {
        out.extend([0xa4, b'b', b'2', b'n', b'd', 0xd2]);
        out.extend((header as u32 - 5 - contents.len() as u32).to_be_bytes());
    }
    out.extend([0xdc, 0, names as u8]);
    if boxes.is_some() {
        out.push(0xc6);
        out.extend((contents.len() as u32).to_be_bytes());
        out.extend(contents);
    }
    assert_eq!(out.len(), header);
    [out, chunk, index].concat()
}

/// Samples block by block; what blocks have beyond the sides is 0.
fn in_boxes(data: &[u8], size: usize, sides: &[usize], block: &[usize]) -> Vec<u8> {
    let grid: Vec<usize> = sides.iter().zip(block).map(|(side, block)| side.div_ceil(*block)).collect();
    let digits = |mut number: usize, of: &[usize]| -> Vec<usize> {
        let mut place = vec![0; of.len()];
        for i in (0..of.len()).rev() {
            (place[i], number) = (number % of[i], number / of[i]);
        }
        place
    };
    let mut out = Vec::new();
    for number in 0..grid.iter().product() {
        for within in 0..block.iter().product() {
            let (corner, within) = (digits(number, &grid), digits(within, block));
            let place: Vec<usize> = (0..sides.len()).map(|i| corner[i] * block[i] + within[i]).collect();
            let at = place.iter().zip(sides).try_fold(0, |at, (p, side)| (p < side).then(|| at * side + p));
            out.extend(at.map_or(vec![0; size], |at| data[at * size..(at + 1) * size].to_vec()));
        }
    }
    out
}

fn blosc2_chunk(data: &[u8], form: Blosc2Form) -> Vec<u8> {
    let Blosc2Form { size, codec, filter, divided, .. } = form;
    let block = form.block.min(data.len()) / size * size;
    let (mut starts, mut body) = (Vec::new(), Vec::new());
    let blocks = data.len().div_ceil(block);
    for (number, part) in data.chunks(block).enumerate() {
        starts.extend(((32 + 4 * blocks + body.len()) as u32).to_le_bytes());
        let whole = part.len() / size / 8 * 8 * size;
        let step = if [1, 2, 4, 8, 16].contains(&size) { size.min(8) } else { 1 };
        let before = |i: usize| match number {
            0 if i < step || i >= part.len() / step * step => 0,
            0 => part[i - step],
            _ => data[i],
        };
        let filtered = match filter {
            1 => sorted_bytes(size, part),
            2 => [sorted_bits(size, &part[..whole]), part[whole..].to_vec()].concat(),
            3 => part.iter().enumerate().map(|(i, byte)| byte ^ before(i)).collect(),
            _ => part.to_vec(),
        };
        let parts = if divided && part.len() == block { size } else { 1 };
        for piece in filtered.chunks(filtered.len() / parts) {
            let packed = match codec {
                0 => blosclz_of(piece),
                1 => lz4_of(piece),
                3 => deflated(piece),
                _ => zstd_of(piece),
            };
            match piece {
                [first, rest @ ..] if rest.iter().all(|byte| byte == first) => {
                    body.extend((-i32::from(*first)).to_le_bytes());
                    body.extend((*first > 0).then_some(1));
                }
                _ => {
                    let packed = if packed.len() < piece.len() { &packed } else { piece };
                    body.extend((packed.len() as u32).to_le_bytes());
                    body.extend(packed);
                }
            }
        }
    }
    let mut out = vec![5, 1, codec << 5 | 5 | if divided { 0 } else { 16 }, size as u8];
    for number in [data.len(), block, 32 + starts.len() + body.len()] {
        out.extend((number as u32).to_le_bytes());
    }
    out.extend([0, 0, 0, 0, 0, filter]);
    out.extend([0; 10]);
    [out, starts, body].concat()
}

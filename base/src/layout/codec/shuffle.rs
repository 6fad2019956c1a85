//! Inverses of the sorting of bytes and bits by their position in the sample.

/// Restores the order of bytes that were sorted: first the first byte of every sample, then the second, and so on.
/// Bytes after the last whole sample stay where they are.
pub(super) fn bytes_back(size: usize, sorted: &[u8], out: &mut [u8]) {
    let count = if size > 1 { out.len() / size } else { 0 };
    let whole = count * size;
    let (planes, rest) = sorted.split_at(whole);
    let (samples, end) = out.split_at_mut(whole);
    end.copy_from_slice(rest);
    match size {
        _ if count == 0 => {}
        2 => words_back::<2>(planes, count, samples),
        4 => words_back::<4>(planes, count, samples),
        8 => words_back::<8>(planes, count, samples),
        size => {
            for (place, plane) in planes.chunks_exact(count).enumerate() {
                for (sample, &byte) in samples.chunks_exact_mut(size).zip(plane) {
                    sample[place] = byte;
                }
            }
        }
    }
}

/// Restores the order of bytes of samples of `N` bytes, in blocks whose loops the compiler vectorises.
fn words_back<const N: usize>(planes: &[u8], count: usize, samples: &mut [u8]) {
    const BLOCK: usize = 64;
    let mut blocks = samples.chunks_exact_mut(N * BLOCK);
    let mut at = 0;
    for block in blocks.by_ref() {
        let mut parts = [[0u8; BLOCK]; N];
        for (place, part) in parts.iter_mut().enumerate() {
            part.copy_from_slice(&planes[place * count + at..][..BLOCK]);
        }
        for (i, sample) in block.chunks_exact_mut(N).enumerate() {
            for place in 0..N {
                sample[place] = parts[place][i];
            }
        }
        at += BLOCK;
    }
    for (i, sample) in blocks.into_remainder().chunks_exact_mut(N).enumerate() {
        for (place, byte) in sample.iter_mut().enumerate() {
            *byte = planes[place * count + at + i];
        }
    }
}

/// Restores the order of bits that were sorted: first the lowest bit of the first byte of every sample, then the next
/// bit, and so on. The number of samples must be a multiple of 8; `spare` is memory for them.
pub(super) fn bits_back(size: usize, sorted: &[u8], out: &mut [u8], spare: &mut Vec<u8>) {
    let count = out.len() / size;
    if count == 0 {
        return;
    }
    if size == 1 {
        return plane_back(sorted, out);
    }
    spare.resize(out.len(), 0);
    for (sorted, plane) in sorted.chunks_exact(count).zip(spare.chunks_exact_mut(count)) {
        plane_back(sorted, plane);
    }
    bytes_back(size, spare, out);
}

/// Restores the order of bits of samples of one byte: eight rows of bits become bytes, 64 at a time.
fn plane_back(rows: &[u8], bytes: &mut [u8]) {
    let length = rows.len() / 8;
    let mut blocks = bytes.chunks_exact_mut(64);
    let mut at = 0;
    for block in blocks.by_ref() {
        let mut words = [0u64; 8];
        for (row, word) in words.iter_mut().enumerate() {
            *word = u64::from_le_bytes(eight(&rows[row * length + at..][..8]));
        }
        for (bytes, word) in block.chunks_exact_mut(8).zip(transposed(words)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        at += 8;
    }
    let rest = blocks.into_remainder();
    let mut words = [0u64; 8];
    for (row, word) in words.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        bytes[..rest.len() / 8].copy_from_slice(&rows[row * length + at..][..rest.len() / 8]);
        *word = u64::from_le_bytes(bytes);
    }
    for (bytes, word) in rest.chunks_exact_mut(8).zip(transposed(words)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.copy_from_slice(bytes);
    eight
}

/// Transposes bits: bit `k` of byte `i` of word `w` becomes bit `w` of byte `k` of word `i`.
fn transposed(mut words: [u64; 8]) -> [u64; 8] {
    // first the bits of each byte with the words, then the bytes with the words, by halves
    exchange::<4>(&mut words, 4, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(&mut words, 2, 0x3333_3333_3333_3333);
    exchange::<1>(&mut words, 1, 0x5555_5555_5555_5555);
    exchange::<4>(&mut words, 32, 0x0000_0000_ffff_ffff);
    exchange::<2>(&mut words, 16, 0x0000_ffff_0000_ffff);
    exchange::<1>(&mut words, 8, 0x00ff_00ff_00ff_00ff);
    words
}

/// Exchanges the high bits of each word with the low bits of the word `STEP` further on.
fn exchange<const STEP: usize>(words: &mut [u64; 8], shift: u32, low: u64) {
    for pair in words.chunks_exact_mut(2 * STEP) {
        let (first, second) = pair.split_at_mut(STEP);
        for (a, b) in first.iter_mut().zip(second) {
            let both = ((*a >> shift) ^ *b) & low;
            *b ^= both;
            *a ^= both << shift;
        }
    }
}

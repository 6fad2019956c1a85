//! Tests of decoders with encoders written from the definitions of the formats, and with damaged bytes.

use super::*;
use encoders::{
    Blosc2Form, blosc_of, blosc2_of, blosclz_of, deflated, lz4_blocks_of, lz4_of, lzf_of, sorted_bytes, zstd_of,
};
use std::io::Write;

#[path = "../../../../tests/support/encoders.rs"]
mod encoders;

/// Returns the bytes of `count` samples of `size` bytes: small changes with some noise.
fn samples(size: usize, count: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count).flat_map(|i| (1000 + i as u64 / 3 + noise() % 40).to_le_bytes()[..size].to_vec()).collect()
}

fn decoded(compressor: Compressor, stored: &[u8], length: usize) -> Result<Vec<u8>, DecodeError> {
    let mut out = vec![0xa5; length];
    compressor.decode(stored, &mut out, &(0..length), &mut Vec::new()).map(|()| out)
}

/// Returns every compressor with the data as it compresses them.
fn all(size: usize, data: &[u8]) -> Vec<(Compressor, Vec<u8>)> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(data).unwrap();
    let mut found = vec![
        (Compressor::Gzip, gzip.finish().unwrap()),
        (Compressor::Zlib, deflated(data)),
        (Compressor::Zstd, zstd_of(data)),
        (Compressor::Lz4, [&(data.len() as u32).to_le_bytes()[..], &lz4_of(data)].concat()),
    ];
    found.push((Compressor::Lzf, lzf_of(data)));
    for (codec, filter) in [(0, 0), (1, 1), (3, 2), (4, 3), (4, 1), (1, 2)] {
        for (block, divided) in [(128 * size, true), (200 * size, false), (1 << 16, true)] {
            let form = Blosc2Form { size, block, codec, filter, divided };
            found.push((Compressor::Blosc2, blosc2_of(data, form, None)));
        }
    }
    for block in [100, 1 << 20] {
        found.push((Compressor::Lz4Blocks, lz4_blocks_of(block, data)));
    }
    for packing in [BitPacking::None, BitPacking::Lz4, BitPacking::Zstd] {
        for block in [8, 64, 136, 1 << 13] {
            let form = Bitshuffle { size, block, packing };
            let pack: Option<encoders::Pack> = match packing {
                BitPacking::None => None,
                BitPacking::Lz4 => Some(lz4_of),
                BitPacking::Zstd => Some(zstd_of),
            };
            found.push((Compressor::Bitshuffle(form), encoders::bitshuffled(size, block, pack, data)));
        }
    }
    for codec in [0, 1, 3, 4] {
        for sorts in [0, 1, 4] {
            for (block, divided) in [(128 * size, true), (200 * size, false), (1 << 16, true)] {
                found.push((Compressor::Blosc, blosc_of(data, size, block, codec, sorts, divided)));
            }
        }
    }
    found
}

#[test]
fn every_compressor_gives_the_values_back() {
    for size in [1, 2, 3, 4, 8, 16] {
        for count in [1, 7, 8, 64, 100, 1000, 1024, 4099] {
            for data in [samples(size.min(8), count * size.div_ceil(8)), vec![7; count * size]] {
                for (compressor, stored) in all(size, &data) {
                    assert!(
                        decoded(compressor, &stored, data.len()).as_ref() == Ok(&data),
                        "{compressor:?} {size} {count}"
                    );
                    for length in [data.len() - 1, data.len() + 1] {
                        let wrong = decoded(compressor, &stored, length);
                        // bits alone have no length of their own
                        let told =
                            !matches!(compressor, Compressor::Bitshuffle(form) if form.packing == BitPacking::None);
                        assert!(wrong.is_err() || !told, "{compressor:?} {count} {length}");
                    }
                }
            }
        }
    }
}

/// What the program's own encoders write, its decoders read; pieces of sorted bytes are shorter than the last chunk.
#[test]
fn encoded_bytes_are_decoded() {
    for (size, count) in [(1, 1), (2, 1000), (4, 70_000), (8, 3)] {
        let data = samples(size, count);
        for (compressor, stored) in [
            (Compressor::Gzip, gzip_encoded(&data)),
            (Compressor::Zlib, zlib_encoded(&data)),
            (Compressor::Zstd, zstd_encoded(&data)),
        ] {
            assert!(decoded(compressor, &stored.unwrap(), data.len()).as_ref() == Ok(&data), "{compressor:?} {count}");
        }
        let lzw = lzw_encoded(&data).unwrap();
        let mut decoder = weezl::decode::Decoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8);
        assert!(decoder.decode(&lzw).unwrap() == data, "{count}");
        let mut buffers = DecodeBuffers::default();
        buffers.bytes = shuffled(&data, size).unwrap();
        Pipeline::shuffled(size).unwrap().decode(0, &mut buffers, data.len(), &(0..data.len())).unwrap();
        assert!(buffers.bytes == data, "{size} {count}");
    }
}

/// Only the wanted bytes are compared, as the bytes of other blocks are undefined.
#[test]
fn wanted_bytes_are_right() {
    let data = samples(2, 4099);
    for (compressor, stored) in all(2, &data) {
        for wanted in [0..1, 100..1000, 2047..2049, 8190..8198, 8197..8198] {
            let mut out = vec![0xa5; data.len()];
            compressor.decode(&stored, &mut out, &wanted, &mut Vec::new()).unwrap();
            assert!(out[wanted.clone()] == data[wanted.clone()], "{compressor:?} {wanted:?}");
        }
    }
}

/// Copies of BloscLZ: near, far, overlapping and long.
#[test]
fn copies_of_blosclz() {
    let container = |stream: &[u8], length: usize| {
        let mut out = vec![2, 1, 16, 1];
        for number in [length, length, 24 + stream.len(), 20, stream.len()] {
            out.extend((number as u32).to_le_bytes());
        }
        [&out[..], stream].concat()
    };
    // a run of three; 4 from 2 back, 265 from 1 back, 300 from 3 back
    let stream = [2, b'a', b'b', b'c', 2 << 5, 1, 7 << 5, 255, 1, 0, 7 << 5, 255, 36, 2];
    let mut expected = b"abc".to_vec();
    for (length, distance) in [(4, 2), (265, 1), (300, 3)] {
        for _ in 0..length {
            expected.push(expected[expected.len() - distance]);
        }
    }
    let stored = container(&stream, expected.len());
    assert_eq!(decoded(Compressor::Blosc, &stored, expected.len()), Ok(expected));
    // 8000 bytes that differ, then copies from 300 and from 9000 back
    let data: Vec<u8> = (0..10_000usize).map(|i| (i * i / 7 % 251) as u8).collect();
    let mut stream = blosclz_of(&data);
    stream.extend([1 << 5 | 1, (299 - 256) as u8]);
    let far = 9000 - 8192;
    stream.extend([3 << 5 | 31, 255, (far >> 8) as u8, (far & 255) as u8]);
    let mut expected = data;
    for (length, distance) in [(3, 300), (5, 9000)] {
        for _ in 0..length {
            expected.push(expected[expected.len() - distance]);
        }
    }
    let stored = container(&stream, expected.len());
    assert_eq!(decoded(Compressor::Blosc, &stored, expected.len()), Ok(expected));
    for bad in [&[1 << 5, 9][..], &[0, 1, 1 << 5, 4], &[0, 1, 7 << 5, 255, 255, 255, 0], &[5, 1], &[0, 1, 1 << 5]] {
        assert!(decoded(Compressor::Blosc, &container(bad, 30), 30).is_err(), "{bad:?}");
    }
}

/// Damaged bytes result in an error, or in values of the right length.
#[test]
fn damaged_bytes_end_in_an_error() {
    let data = samples(2, 700);
    for (compressor, stored) in all(2, &data) {
        let checked = matches!(compressor, Compressor::Gzip | Compressor::Zlib);
        for at in 0..stored.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = stored.clone();
                damaged[at] ^= flip;
                let result = decoded(compressor, &damaged, data.len());
                // the header of gzip has bytes without a meaning, and the last bits before the checksum may have none
                let end = stored.len() - if compressor == Compressor::Gzip { 9 } else { 5 };
                assert!(!checked || at < 10 || at == end || result.is_err(), "{compressor:?} {at}");
            }
        }
        for length in 0..stored.len() {
            assert!(decoded(compressor, &stored[..length], data.len()).is_err(), "{compressor:?} {length}");
        }
    }
    let blosc = |change: fn(&mut Vec<u8>)| {
        let mut stored = blosc_of(&data, 2, 512, 1, 1, true);
        change(&mut stored);
        decoded(Compressor::Blosc, &stored, data.len())
    };
    assert_eq!(blosc(|stored| stored[0] = 5), Err(DecodeError::Form));
    assert_eq!(blosc(|stored| stored[2] = 2 << 5), Err(DecodeError::Form));
    assert_eq!(blosc(|stored| stored[3] = 0), Err(DecodeError::Invalid));
    assert_eq!(blosc(|stored| stored[8..12].fill(0)), Err(DecodeError::Invalid));
    assert_eq!(blosc(|stored| stored[8..12].fill(255)), Err(DecodeError::Invalid));
}

#[test]
fn parameters_of_bitshuffle() {
    let of = |parameters: &[u32]| Bitshuffle::of(parameters);
    let form = |size, block, packing| Some(Bitshuffle { size, block, packing });
    assert_eq!(of(&[0, 4, 2, 0, 2]), form(2, 4096, BitPacking::Lz4));
    assert_eq!(of(&[0, 4, 4, 256, 3, 5]), form(4, 256, BitPacking::Zstd));
    assert_eq!(of(&[0, 4, 8]), form(8, 1024, BitPacking::None));
    for refused in [&[0, 4][..], &[0, 4, 0], &[0, 4, 17], &[0, 4, 2, 12], &[0, 4, 2, 0, 1], &[6]] {
        assert_eq!(of(refused), None, "{refused:?}");
    }
}

/// Filters in the order of a dataset, with all of the filters that chunks may leave out.
#[test]
fn pipelines_undo_filters_in_turn() {
    let data = samples(2, 333);
    let sum = |data: &[u8]| {
        let (mut a, mut b) = (0u64, 0u64);
        for word in data.chunks(2) {
            a = (a + (u64::from(word[0]) << 8) + u64::from(*word.get(1).unwrap_or(&0))) % 65535;
            b = (b + a) % 65535;
        }
        [data, &((b << 16 | a) as u32).to_le_bytes()].concat()
    };
    let filters = vec![
        ChunkFilter::Shuffle,
        ChunkFilter::Fletcher32,
        ChunkFilter::Compressed(Compressor::Zlib),
        ChunkFilter::Fletcher32,
    ];
    let pipeline = Pipeline::new(filters.clone(), 2).unwrap();
    let mut buffers = DecodeBuffers::default();
    for skipped in 0..16u32 {
        let mut stored = data.clone();
        for (number, filter) in filters.iter().enumerate() {
            if skipped >> number & 1 == 0 {
                stored = match filter {
                    ChunkFilter::Shuffle => sorted_bytes(2, &stored),
                    ChunkFilter::Fletcher32 => sum(&stored),
                    ChunkFilter::Compressed(_) => deflated(&stored),
                };
            }
        }
        buffers.bytes.clone_from(&stored);
        pipeline.decode(skipped, &mut buffers, data.len(), &(0..data.len())).unwrap();
        assert_eq!(buffers.bytes, data, "{skipped:04b}");
        buffers.bytes.clone_from(&stored);
        *buffers.bytes.last_mut().unwrap() ^= 1;
        let last = pipeline.decode(skipped, &mut buffers, data.len(), &(0..data.len()));
        assert_eq!(last.is_err(), skipped & 14 != 14, "{skipped:04b} {last:?}");
    }
    let twice = vec![ChunkFilter::Compressed(Compressor::Zlib), ChunkFilter::Compressed(Compressor::Zstd)];
    assert_eq!(Pipeline::new(twice, 2), None);
    assert_eq!(ChunkFilter::of(32001, &[2, 2, 2, 100, 5, 1, 3]), None);
    assert_eq!(ChunkFilter::of(32000, &[4, 261, 1200]), Some(ChunkFilter::Compressed(Compressor::Lzf)));
    let blosc2 = |filter, codec| ChunkFilter::of(32026, &[1, 0, 2, 1200, 5, filter, codec, 3, 2, 10, 30]).is_some();
    assert!(blosc2(1, 0) && blosc2(4, 5) && ChunkFilter::of(32026, &[]).is_some());
    // Snappy, a codec and a filter of plugins
    assert!(!blosc2(1, 3) && !blosc2(1, 32) && !blosc2(35, 1));
}

fn from_digits(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn words(values: impl IntoIterator<Item = u16>) -> Vec<u8> {
    values.into_iter().flat_map(u16::to_le_bytes).collect()
}

/// Chunks that h5py 3.16 wrote.
#[test]
fn lzf_of_another_program() {
    let stored =
        from_digits("02070007e00001032c012d01c0030005e00015401fc0154007e02d190601000200030004e0ff07e1ff07e1ae07010400");
    let start = [7, 7, 7, 7, 7, 7, 300, 301, 300, 301, 300, 301, 5];
    let data = words(std::iter::repeat_n(start, 4).flatten().chain(std::iter::repeat_n([1, 2, 3, 4], 90).flatten()));
    assert_eq!(decoded(Compressor::Lzf, &stored, data.len()), Ok(data));
    for bad in [&[0x20, 0][..], &[0, 1, 0x20, 1], &[0, 1, 0xe0, 255, 0], &[5, 1], &[0, 1, 0x20], &[1, 1, 1, 0, 9]] {
        assert!(decoded(Compressor::Lzf, bad, 2).is_err(), "{bad:?}");
    }
}

/// Chunks of 2 x 9 x 14 samples that hdf5plugin 7.1 wrote: Zstandard of sorted bits, and zeros that only the index
/// contains.
#[test]
fn blosc2_of_another_program() {
    let stored = from_digits(
        "9ea862326672616d6500d2000000b8cf0000000000000249a412009503d300000000000001f8d30000000000000146d20000\
         0002d2000001f8d2000001f8d10000d10001c2d8060000000000020500000000000000000093cd0011de0001a462326e64d2\
         0000006bdc0001c60000004897000393d30000000000000002d30000000000000009d3000000000000000e93d200000002d2\
         00000009d20000000e93d200000002d200000009d20000000e00db000000037c563205019502f8010000f801000046010000\
         00000000000205000000000000000000240000001e01000028b52ffd60f800a508000410f8e0830f3e504001051460d50056\
         0d60d5f0a9f26fd580a9726035ff57ed9fd5fc59ed7f153f9612908099aa3203640e7066559b718059aaccfc1f99aac4fc9f\
         596a8d11e0001e335baaaab499e3018087992d2555cb663cfc1f1e3369a94acbe67c100000e0c363cccc262db5aaaa524b9b\
         eccc381efc03e01f3c8e31936d4ba9baaa0000fc830f0fc7c13933c36412d236694daba84a554a69558b561b195b96690000\
         00fc0ff0070e3e3c0c87631c478e91333193996cb269d284adadadc44200f0ff0700c03f00f803e007f0013cc0031e70c081\
         03070e0e0e078300f80f00c00f007c0078001ec0011ce080030e1c18303030180c009001f401580200000600da000d409b29\
         2e80080002ec07bbbc0105010708080000000800000028000000000000000001000000000000000000000000000000000000\
         940193cd0006de0000dc0000ce00000023d80000000000000000000000000000000000",
    );
    let data = words((0..252u32).map(|i| (i * i / 5 % 700) as u16));
    assert_eq!(decoded(Compressor::Blosc2, &stored, 504), Ok(data));
    let zeros = from_digits(
        "9ea862326672616d6500d2000000b8cf0000000000000103a412005003d300000000000001f8d30000000000000000d20000\
         0002d2000001f8d2000001f8d10000d10001c2d8060000000000010000000000000000000093cd0011de0001a462326e64d2\
         0000006bdc0001c60000004897000393d30000000000000002d30000000000000009d3000000000000000e93d200000002d2\
         00000009d20000000e93d200000002d200000009d20000000e00db000000037c563205010708080000000800000028000000\
         000000000001000000000000000000000000000000000081940193cd0006de0000dc0000ce00000023d80000000000000000\
         000000000000000000",
    );
    assert_eq!(decoded(Compressor::Blosc2, &zeros, 504), Ok(vec![0; 504]));
    assert_eq!(decoded(Compressor::Blosc2, &zeros, 1008), Ok(vec![0; 1008]));
}

#[test]
fn blocks_of_blosc2_are_boxes() {
    for (sides, block) in [
        (&[40][..], &[16][..]),
        (&[13, 17], &[5, 17]),
        (&[13, 17], &[4, 6]),
        (&[3, 11, 20], &[2, 11, 7]),
        (&[3, 11, 20], &[3, 4, 20]),
        (&[2, 3, 5, 7], &[1, 2, 3, 4]),
    ] {
        for (size, filter) in [(1, 0), (2, 1), (4, 2), (8, 3)] {
            let data = samples(size, sides.iter().product());
            let form = Blosc2Form { size, block: 0, codec: 4, filter, divided: false };
            let stored = blosc2_of(&data, form, Some((sides, block)));
            assert_eq!(decoded(Compressor::Blosc2, &stored, data.len()), Ok(data), "{sides:?} {block:?} {size}");
        }
    }
    let form = Blosc2Form { size: 2, block: 0, codec: 4, filter: 1, divided: false };
    let data = samples(2, 40);
    let stored = blosc2_of(&data, form, Some((&[5, 8], &[2, 3])));
    let changed = |at: usize, value: u8| {
        let mut stored = stored.clone();
        stored[at] = value;
        decoded(Compressor::Blosc2, &stored, data.len())
    };
    // whatever is damaged, there are values or an error
    for at in 0..stored.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let _ = changed(at, value);
        }
    }
    // the name, the kind of header, flags, a filter of a plugin, a parameter
    let chunk = stored.windows(4).position(|bytes| bytes == [5, 1, 0x95, 2]).unwrap();
    for (at, value) in [(3, 0), (chunk + 2, 0x94), (chunk + 31, 1), (chunk + 21, 35), (chunk + 29, 3)] {
        assert_eq!(changed(at, value), Err(DecodeError::Form), "{at}");
    }
}

//! Samples as files store them.

use fbp::source::{SampleType, Stack, StoredRows, StoredSamples};
use half::f16;
use std::ops::Range;

/// Samples as they are stored, as numbers.
pub fn read_stored(stack: &Stack, page: usize, rows: Range<usize>) -> Vec<f32> {
    let StoredRows { samples: StoredSamples { sample, swapped }, .. } = stack.stored();
    let mut bytes = vec![0; rows.len() * stack.stored().row_bytes()];
    stack.read_stored(page, &[rows], &mut bytes).unwrap();
    let number = |sample_bytes: &[u8]| -> f32 {
        let mut b = sample_bytes.to_vec();
        if swapped {
            b.reverse();
        }
        match sample {
            SampleType::U8 => b[0].into(),
            SampleType::I8 => (b[0] as i8).into(),
            SampleType::U16 => u16::from_ne_bytes([b[0], b[1]]).into(),
            SampleType::I16 => i16::from_ne_bytes([b[0], b[1]]).into(),
            SampleType::F16 => f16::from_ne_bytes([b[0], b[1]]).into(),
            SampleType::U32 => u32::from_ne_bytes([b[0], b[1], b[2], b[3]]) as f32,
            SampleType::I32 => i32::from_ne_bytes([b[0], b[1], b[2], b[3]]) as f32,
            SampleType::F32 => f32::from_ne_bytes([b[0], b[1], b[2], b[3]]),
            SampleType::U64 | SampleType::I64 | SampleType::F64 => panic!("64-bit samples come as f32"),
        }
    };
    bytes.chunks(sample.bytes()).map(number).collect()
}

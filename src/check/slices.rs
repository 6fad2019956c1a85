//! Tests of what a device does to slices: encoding and counting.

use super::values::{largest, noise};
use crate::device::Session;
use crate::error::Result;
use crate::histogram::{CountedSlice, Histogram};
use crate::operations::{EncodedSample, SliceCounter, SliceEncoder};
use half::f16;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

/// Returns how far the farthest sample is off: slices with an odd number of values in and beyond a range, as the
/// samples that are written.
pub(super) fn samples(session: &Session, sample: EncodedSample) -> Result<f64> {
    let (width, height, count, range) = (37, 5, 5, (-0.2f32, 0.7f32));
    let values: Vec<f32> = (0..count * width * height).map(|i| (1.4 * noise(i) - 0.4) as f32).collect();
    let inside = vec![[1, width as i32 - 2]; height];
    let mut encoder = SliceEncoder::new(session, sample, width, &inside, 2.0)?;
    encoder.set_range(range);
    let mut slices: Buffer<f32> = session.buffer(values.len(), CL_MEM_READ_WRITE, "slices")?;
    session.write(&mut slices, &values, "slices")?;
    let mut got = vec![0f32; values.len()];
    if encoder.in_place() {
        encoder.run_in_place(session, &mut slices, count)?;
    } else {
        let mut encoded = encoder.buffers(session, count)?;
        encoder.run(session, &mut slices, &mut encoded, count)?;
    }
    session.read(&slices, &mut got, "samples")?;
    let got: &[u8] = bytemuck::cast_slice(&got);
    let top = if sample == EncodedSample::Unsigned8 { 255.0 } else { 65535.0 };
    let want = |i: usize| {
        let value = if (1..width - 2).contains(&(i % width)) { values[i] * 2.0 } else { 0.0 };
        let place = (f64::from(value) - f64::from(range.0)) * (top / (f64::from(range.1) - f64::from(range.0)));
        match sample {
            EncodedSample::Float => value.into(),
            EncodedSample::Half => f16::from_f32(value).to_f64(),
            _ => place.clamp(0.0, top).round_ties_even(),
        }
    };
    let got = |i: usize| match sample {
        EncodedSample::Float => f32::from_ne_bytes([got[4 * i], got[4 * i + 1], got[4 * i + 2], got[4 * i + 3]]).into(),
        EncodedSample::Half => f16::from_ne_bytes([got[2 * i], got[2 * i + 1]]).to_f64(),
        EncodedSample::Unsigned16 => u16::from_ne_bytes([got[2 * i], got[2 * i + 1]]).into(),
        EncodedSample::Unsigned8 => got[i].into(),
    };
    Ok(largest((0..values.len()).map(|i| (got(i) - want(i)).abs())))
}

/// Returns 1 if the host and the device count slices differently, else 0: two slices with noise of two ranges and
/// values that are not finite.
pub(super) fn histogram(session: &Session) -> Result<f64> {
    let (width, height, factor) = (141, 9, 1.7);
    let value = |i: usize| match i % 97 {
        13 => f32::NAN,
        31 => f32::NEG_INFINITY,
        _ => (1.4 * noise(i) - 0.4) as f32 * if i < width * height { 1.0 } else { 1e4 },
    };
    let values: Vec<f32> = (0..2 * width * height).map(value).collect();
    let inside: Vec<[i32; 2]> = (0..height as i32).map(|y| [y, width as i32 - 2 * y]).collect();
    let mut slices: Buffer<f32> = session.buffer(values.len(), CL_MEM_READ_WRITE, "slices")?;
    session.write(&mut slices, &values, "slices")?;
    let counter = SliceCounter::new(session, width, &inside, factor)?;
    let mut counts = counter.buffers(session, 2)?;
    counter.run(session, &slices, &mut counts, 2)?;
    session.finish()?;
    let finished: Vec<f32> = values.iter().map(|value| value * factor).collect();
    let want = |slice: &[f32]| {
        let rows = slice.chunks(width).zip(&inside).map(|(row, &[start, end])| &row[start as usize..end as usize]);
        let (histogram, moments) = Histogram::of(rows);
        CountedSlice { histogram, moments: moments.into_iter().sum() }
    };
    let want: Vec<CountedSlice> = finished.chunks(width * height).map(want).collect();
    Ok(if counts.slices(session)? == want { 0.0 } else { 1.0 })
}

//! Coarser planes of an OME-Zarr, whose pixels are means of two by two by two pixels.

use crate::layout::SampleType;
use half::f16;

/// Writes means to `out`, the rows of a coarser plane, each of which begins where its first mean belongs.
///
/// `planes` are one or two planes with the same rows of `stride` values, of which the first `used` are in the plane. A
/// last row or value without a neighbour is averaged alone. Values are summed in pairs, so that the mean of equal
/// values is that value.
pub(super) fn halve<'a>(
    planes: &[&[f32]],
    [stride, used]: [usize; 2],
    sample: SampleType,
    out: impl Iterator<Item = &'a mut [u8]>,
) {
    let rows = planes.first().map_or(0, |plane| plane.len() / stride);
    let (mut sums, mut means) = (vec![0f32; used], vec![0f32; used.div_ceil(2)]);
    for (row, out) in (0..rows).step_by(2).zip(out) {
        let pair = row..(row + 2).min(rows);
        let count = planes.len() * pair.len();
        for (number, plane) in planes.iter().enumerate() {
            let line = |row: usize| &plane[row * stride..][..used];
            let lines = sums.iter_mut().zip(line(pair.start)).zip(line(pair.end - 1));
            match (number, pair.len()) {
                (0, 1) => lines.for_each(|((sum, a), _)| *sum = *a),
                (0, _) => lines.for_each(|((sum, a), b)| *sum = a + b),
                (_, 1) => lines.for_each(|((sum, a), _)| *sum += a),
                _ => lines.for_each(|((sum, a), b)| *sum += a + b),
            }
        }
        let pairs = sums.chunks_exact(2);
        if let (&[value], Some(mean)) = (pairs.remainder(), means.last_mut()) {
            *mean = value / count as f32;
        }
        let factor = 0.5 / count as f32;
        means.iter_mut().zip(pairs).for_each(|(mean, pair)| *mean = (pair[0] + pair[1]) * factor);
        encode(&means, sample, out);
    }
}

fn encode(means: &[f32], sample: SampleType, out: &mut [u8]) {
    match sample {
        // to the nearest, halves upwards
        SampleType::U8 => put(out, means, |mean| [(mean + 0.5) as u8]),
        SampleType::U16 => put(out, means, |mean| ((mean + 0.5) as u16).to_ne_bytes()),
        SampleType::F16 => put(out, means, |mean| f16::from_f32(mean).to_ne_bytes()),
        _ => put(out, means, f32::to_ne_bytes),
    }
}

fn put<const N: usize>(out: &mut [u8], means: &[f32], sample: impl Fn(f32) -> [u8; N]) {
    out.chunks_exact_mut(N).zip(means).for_each(|(out, mean)| out.copy_from_slice(&sample(*mean)));
}

//! Stripe removal by wavelets and Fourier transforms.
//!
//! B. Muench, P. Trtik, F. Marone, M. Stampanoni, *Stripe and ring artifact removal with combined wavelet-Fourier
//! filtering*, Optics Express 17 (2009) 8567: of the wavelet coefficients that are fine across bins and coarse along
//! projections, frequencies along projections are damped by `1 - exp(-k^2 / (2 sigma^2))`.
//!
//! The method is linear and the wavelet transform exactly invertible, so the stripes are these coefficients multiplied by
//! the complementary factor, `exp(-k^2 / (2 sigma^2))`, and transformed back; they are subtracted.

use crate::device::{BufferLayout, Session};
use crate::error::Result;
use crate::numbers::mirrored;
use crate::operations::{ColumnProducts, DeviceValues, LowFrequencies, SinogramBatch};
use crate::operations::{SinogramShape, WaveletTransform};
use crate::steps::DeviceSinogramStep;
use crate::stripes::columns::{PAD, low_frequencies};
use std::f64::consts::FRAC_1_SQRT_2;

/// Low-pass filters of the inverse transform for Daubechies wavelets with 1 to 10 vanishing moments: I. Daubechies, *Ten
/// Lectures on Wavelets*, SIAM (1992), table 6.1.
pub(super) const DAUBECHIES: [&[f64]; 10] = [
    &[FRAC_1_SQRT_2, FRAC_1_SQRT_2],
    &[0.48296291314453416, 0.8365163037378079, 0.2241438680420134, -0.12940952255126037],
    &[
        0.33267055295008263,
        0.8068915093110925,
        0.45987750211849154,
        -0.13501102001025458,
        -0.08544127388202666,
        0.03522629188570953,
    ],
    &[
        0.2303778133088965,
        0.7148465705529157,
        0.6308807679298589,
        -0.027983769416859854,
        -0.18703481171909309,
        0.030841381835560764,
        0.0328830116668852,
        -0.010597401785069032,
    ],
    &[
        0.16010239797419293,
        0.6038292697971896,
        0.7243085284377729,
        0.13842814590132074,
        -0.24229488706638203,
        -0.032244869584638375,
        0.07757149384004572,
        -0.006241490212798274,
        -0.012580751999081999,
        0.0033357252854737712,
    ],
    &[
        0.11154074335010947,
        0.49462389039845306,
        0.7511339080210954,
        0.31525035170919763,
        -0.22626469396543983,
        -0.12976686756726194,
        0.09750160558732304,
        0.027522865530305727,
        -0.03158203931748603,
        0.0005538422011614961,
        0.004777257510945511,
        -0.0010773010853084796,
    ],
    &[
        0.07785205408500918,
        0.3965393194819173,
        0.7291320908462351,
        0.4697822874051931,
        -0.14390600392856498,
        -0.22403618499387498,
        0.07130921926683026,
        0.08061260915108308,
        -0.03802993693501441,
        -0.01657454163066688,
        0.01255099855609984,
        0.0004295779729213665,
        -0.0018016407040474908,
        0.00035371379997452024,
    ],
    &[
        0.05441584224310401,
        0.31287159091429995,
        0.6756307362972898,
        0.5853546836542067,
        -0.015829105256349306,
        -0.2840155429615469,
        0.0004724845739132828,
        0.12874742662047847,
        -0.017369301001807547,
        -0.044088253930794755,
        0.013981027917398282,
        0.008746094047405777,
        -0.004870352993451574,
        -0.00039174037337694705,
        0.0006754494064505693,
        -0.00011747678412476953,
    ],
    &[
        0.038077947363878345,
        0.24383467461259034,
        0.6048231236901112,
        0.6572880780513005,
        0.13319738582500756,
        -0.2932737832791749,
        -0.09684078322297646,
        0.14854074933810638,
        0.03072568147933338,
        -0.06763282906132997,
        0.00025094711483145197,
        0.022361662123679096,
        -0.004723204757751397,
        -0.00428150368246343,
        0.0018476468830562265,
        0.00023038576352319597,
        -0.0002519631889427101,
        3.93473203162716e-05,
    ],
    &[
        0.026670057900555554,
        0.1881768000776915,
        0.5272011889317256,
        0.6884590394536035,
        0.2811723436605775,
        -0.24984642432731538,
        -0.19594627437737705,
        0.12736934033579325,
        0.09305736460357235,
        -0.07139414716639708,
        -0.029457536821875813,
        0.033212674059341,
        0.0036065535669561697,
        -0.010733175483330575,
        0.001395351747052901,
        0.001992405295185056,
        -0.0006858566949597116,
        -0.00011646685512928545,
        9.358867032006959e-05,
        -1.3264202894521244e-05,
    ],
];

/// Approximate smallest side of the coarsest coefficients.
const COARSEST: usize = 16;

/// Removes stripes from `sinogram`, `[projection][bin]`, with the wavelet with `moments` vanishing moments and `level`
/// levels, by default as many as leave 16 values per side. `sigma` is in periods over all projections.
///
/// Columns are padded with their mean before the first and after the last projection, rows with their outermost bins, by
/// a tenth of the shorter side, at most [`PAD`].
pub fn remove(sinogram: &mut [f32], bins: usize, moments: usize, level: Option<usize>, sigma: f64) {
    let projections = sinogram.len() / bins;
    let (pad, levels) = padding_and_levels(projections, bins, level);
    let columns = bins + 2 * pad;
    let filters = Filters::new(DAUBECHIES[moments - 1]);

    let mut image = padded(sinogram, bins, pad);
    let mut columns = columns;
    // stripes of every level, with the size of its input
    let mut found = Vec::new();
    for _ in 0..levels {
        let rows = image.len() / columns;
        let coarse = filters.down_columns(&image, columns);
        let (low, high) =
            (filters.down_rows(&coarse, columns, &filters.low), { filters.down_rows(&coarse, columns, &filters.high) });
        let width = filters.halved(columns);
        let lines: Vec<usize> = (0..high.len() / width).collect();
        found.push((low_frequencies(&high, width, &lines, 0..lines.len(), sigma), rows, columns));
        (image, columns) = (low, width);
    }
    let mut stripes: Vec<f32> = Vec::new();
    for (high, rows, columns) in found.into_iter().rev() {
        let width = filters.halved(columns);
        let wide = filters.up_rows(&stripes, &high, width, columns);
        stripes = filters.up_columns(&wide, columns, rows);
    }
    if levels > 0 {
        let wide = bins + 2 * pad;
        for (row, stripes) in sinogram.chunks_mut(bins).zip(stripes.chunks(wide).skip(pad)) {
            row.iter_mut().zip(&stripes[pad..]).for_each(|(value, stripe)| *value -= stripe);
        }
    }
}

/// Returns the number of values by which a sinogram is padded on each side, and the number of levels, of which `level`
/// are wanted.
fn padding_and_levels(projections: usize, bins: usize, level: Option<usize>) -> (usize, usize) {
    let shorter = projections.min(bins);
    let pad = PAD.min(shorter / 10);
    let most = ((shorter + 2 * pad) / COARSEST).checked_ilog2().unwrap_or(0) as usize;
    (pad, level.unwrap_or(most).min(most))
}

/// Returns the sinogram padded with `pad` values on each side.
fn padded(sinogram: &[f32], bins: usize, pad: usize) -> Vec<f32> {
    let projections = sinogram.len() / bins;
    let wide = bins + 2 * pad;
    let mut image = vec![0f32; (projections + 2 * pad) * wide];
    let mut sums = vec![0f64; bins];
    let put = |row: &mut [f32], values: &[f32]| {
        row[..pad].fill(values[0]);
        row[pad..pad + bins].copy_from_slice(values);
        row[pad + bins..].fill(values[bins - 1]);
    };
    for (row, values) in image.chunks_mut(wide).skip(pad).zip(sinogram.chunks(bins)) {
        put(row, values);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let means: Vec<f32> = sums.iter().map(|sum| (sum / projections as f64) as f32).collect();
    let end = (projections + pad) * wide;
    let (before, after) = image.split_at_mut(end);
    before[..pad * wide].chunks_mut(wide).chain(after.chunks_mut(wide)).for_each(|row| put(row, &means));
    image
}

/// A pair of filters for one level of the transform, with values mirrored at both ends.
struct Filters {
    /// Low-pass filter of the inverse transform.
    low: Vec<f32>,
    /// High-pass filter of the inverse transform.
    high: Vec<f32>,
}

impl Filters {
    fn new(low: &[f64]) -> Self {
        let sign = |i: usize| if i % 2 == 0 { 1.0 } else { -1.0 };
        Filters {
            low: low.iter().map(|v| *v as f32).collect(),
            high: low.iter().rev().enumerate().map(|(i, v)| (sign(i) * v) as f32).collect(),
        }
    }

    /// Returns the number of coefficients for `count` values.
    fn halved(&self, count: usize) -> usize {
        (count + self.low.len() - 1) / 2
    }

    /// Returns the index of the value for tap `tap` of coefficient `place` of `count` values.
    fn source(&self, place: usize, tap: usize, count: usize) -> usize {
        let first = 2 * place as isize + 2 - self.low.len() as isize;
        mirrored(first + tap as isize, count)
    }

    /// Returns the low-pass coefficients along columns of an image, `[row][column]`.
    fn down_columns(&self, image: &[f32], columns: usize) -> Vec<f32> {
        let rows = image.len() / columns;
        let mut out = vec![0f32; self.halved(rows) * columns];
        for (place, out) in out.chunks_mut(columns).enumerate() {
            for (tap, factor) in self.low.iter().enumerate() {
                let from = self.source(place, tap, rows) * columns;
                out.iter_mut().zip(&image[from..]).for_each(|(sum, value)| *sum += factor * value);
            }
        }
        out
    }

    /// Returns the coefficients along rows of an image with rows of `columns`, for one filter.
    fn down_rows(&self, image: &[f32], columns: usize, filter: &[f32]) -> Vec<f32> {
        let width = self.halved(columns);
        let mut out = vec![0f32; image.len() / columns * width];
        // the row with its mirrored ends, so that the values of a coefficient are contiguous
        let first = 2 - filter.len() as isize;
        let sources: Vec<usize> =
            (0..2 * width + filter.len()).map(|i| mirrored(first + i as isize, columns)).collect();
        let mut wide = vec![0f32; sources.len()];
        for (row, out) in image.chunks(columns).zip(out.chunks_mut(width)) {
            wide.iter_mut().zip(&sources).for_each(|(value, source)| *value = row[*source]);
            for (place, out) in out.iter_mut().enumerate() {
                *out = filter.iter().zip(&wide[2 * place..]).map(|(factor, value)| factor * value).sum();
            }
        }
        out
    }

    /// Returns rows of `columns` values from coefficients, `width` per row; missing low-pass coefficients are 0.
    fn up_rows(&self, low: &[f32], high: &[f32], width: usize, columns: usize) -> Vec<f32> {
        let mut out = vec![0f32; high.len() / width * columns];
        let lost = self.low.len() - 2;
        let mut wide = vec![0f32; 2 * width + self.low.len()];
        for (r, out) in out.chunks_mut(columns).enumerate() {
            wide.fill(0.0);
            for (coefficients, filter) in [(low, &self.low), (high, &self.high)] {
                let row = coefficients.get(r * width..(r + 1) * width).unwrap_or_default();
                for (place, value) in row.iter().enumerate() {
                    let to = &mut wide[2 * place..];
                    to.iter_mut().zip(filter).for_each(|(sum, factor)| *sum += factor * value);
                }
            }
            out.copy_from_slice(&wide[lost..lost + columns]);
        }
        out
    }

    /// Returns `rows` rows from low-pass coefficients along columns.
    fn up_columns(&self, low: &[f32], columns: usize, rows: usize) -> Vec<f32> {
        let mut out = vec![0f32; rows * columns];
        let taps = self.low.len();
        for (place, row) in low.chunks(columns).enumerate() {
            for (tap, factor) in self.low.iter().enumerate() {
                if let Some(to) = (2 * place + tap + 2).checked_sub(taps).filter(|to| *to < rows) {
                    let out = &mut out[to * columns..(to + 1) * columns];
                    out.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * value);
                }
            }
        }
        out
    }
}

/// [`remove`] on a device.
pub struct WaveletOnDevice {
    shape: SinogramShape,
    pad: usize,
    means: ColumnProducts,
    transform: WaveletTransform,
    /// Levels from fine to coarse.
    levels: Vec<DeviceLevel>,
    /// Coefficients of columns of one level at a time.
    coarse: DeviceValues,
    /// Low-pass coefficients of one level at a time; on the way back, the stripes of these coefficients.
    low: DeviceValues,
}

/// A level of the transform.
struct DeviceLevel {
    size: LevelSize,
    high: DeviceValues,
    filter: LowFrequencies,
}

/// Sizes at a level: an image of `columns` columns has `coarse_rows` x `columns` coefficients of columns, and
/// `coarse_rows` x `width` coefficients of both kinds.
#[derive(Clone, Copy)]
struct LevelSize {
    columns: usize,
    coarse_rows: usize,
    width: usize,
}

impl LevelSize {
    /// Returns the sizes of all levels, from fine to coarse.
    fn all(shape: SinogramShape, pad: usize, levels: usize, filters: &Filters) -> Vec<LevelSize> {
        let size = |rows: usize, columns: usize| {
            let (coarse_rows, width) = (filters.halved(rows), filters.halved(columns));
            LevelSize { columns, coarse_rows, width }
        };
        let first = size(shape.projections + 2 * pad, shape.bins + 2 * pad);
        std::iter::successors(Some(first), |above| Some(size(above.coarse_rows, above.width))).take(levels).collect()
    }

    /// Returns the buffers for the coefficients of one kind, which other levels do not use.
    fn layout(&self, slices: usize) -> BufferLayout {
        BufferLayout::default().with::<f32>("high-pass coefficients", slices * self.coarse_rows * self.width)
    }

    /// Returns `values` as the coefficients of columns of `slices` images.
    fn coarse<'a>(&self, values: &'a DeviceValues, slices: usize) -> SinogramBatch<'a> {
        SinogramBatch { values, first: 0, slices, projections: self.coarse_rows, bins: self.columns }
    }

    /// Returns `values` as the coefficients of one kind of `slices` images.
    fn coefficients<'a>(&self, values: &'a DeviceValues, slices: usize) -> SinogramBatch<'a> {
        SinogramBatch { values, first: 0, slices, projections: self.coarse_rows, bins: self.width }
    }
}

impl WaveletOnDevice {
    /// Builds the kernels for the size and number of sinograms of `shape`; the other arguments are those of [`remove`].
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    pub fn new(
        session: &Session,
        shape: SinogramShape,
        moments: usize,
        level: Option<usize>,
        sigma: f64,
    ) -> Result<Self> {
        let SinogramShape { slices, projections, bins } = shape;
        let filters = Filters::new(DAUBECHIES[moments - 1]);
        let (pad, levels) = padding_and_levels(projections, bins, level);
        let sizes = LevelSize::all(shape, pad, levels, &filters);
        let layout = Self::layout(shape, moments, level, sigma);
        let on_device = |size: &LevelSize| {
            let lines: Vec<usize> = (0..size.coarse_rows).collect();
            Ok(DeviceLevel {
                size: *size,
                high: size.layout(slices).buffer(session, "high-pass coefficients")?,
                filter: LowFrequencies::new(session, slices, size.width, &lines, 0..lines.len(), sigma)?,
            })
        };
        let share = (1.0 / projections.max(1) as f64) as f32;
        Ok(WaveletOnDevice {
            shape,
            pad,
            means: ColumnProducts::new(session, shape, &[0, projections], &vec![share; projections])?,
            transform: WaveletTransform::new(session, &filters.low, &filters.high)?,
            levels: sizes.iter().map(on_device).collect::<Result<_>>()?,
            coarse: layout.buffer(session, "coefficients of columns")?,
            low: layout.buffer(session, "low-pass coefficients")?,
        })
    }

    /// Returns the buffers for the size and number of sinograms of `shape`.
    pub fn layout(shape: SinogramShape, moments: usize, level: Option<usize>, sigma: f64) -> BufferLayout {
        let SinogramShape { slices, projections, bins } = shape;
        let filters = Filters::new(DAUBECHIES[moments - 1]);
        let (pad, levels) = padding_and_levels(projections, bins, level);
        let sizes = LevelSize::all(shape, pad, levels, &filters);
        let [coarse, low] = sizes.first().map_or([0, 0], |s| [s.coarse_rows * s.columns, s.coarse_rows * s.width]);
        let shared = ColumnProducts::layout(shape, 1, 1)
            .and(WaveletTransform::layout(filters.low.len()))
            .with::<f32>("coefficients of columns", slices * coarse)
            .with::<f32>("low-pass coefficients", slices * low);
        let of_level = |size: &LevelSize| {
            size.layout(slices).and(LowFrequencies::layout(slices, size.width, size.coarse_rows, sigma))
        };
        sizes.iter().map(of_level).fold(shared, BufferLayout::and)
    }
}

impl DeviceSinogramStep for WaveletOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.shape.expect(session, sinograms)?;
        let (slices, means) = (sinograms.slices, self.means.products());
        if self.levels.is_empty() {
            return self.transform.make_finite(session, sinograms);
        }
        // the image of a level is the low-pass coefficients of the one before
        let finer = |i: usize| self.levels[i - 1].size.coefficients(&self.low, slices);
        if self.pad > 0 {
            self.means.run(session, sinograms)?;
        }
        for (i, DeviceLevel { size, high, filter }) in self.levels.iter().enumerate() {
            let coarse = size.coarse(&self.coarse, slices);
            if i == 0 {
                self.transform.down_columns(session, sinograms, means, self.pad, &self.coarse)?;
            } else {
                self.transform.down_columns(session, &finer(i), means, 0, &self.coarse)?;
            }
            self.transform.down_rows(session, &coarse, &self.low, high)?;
            // in place: the frequencies are known before the first value is written
            filter.run(session, &size.coefficients(high, slices), high)?;
        }
        for (i, DeviceLevel { size, high, .. }) in self.levels.iter().enumerate().rev() {
            let low = (i + 1 < self.levels.len()).then_some(&self.low);
            self.transform.up_rows(session, low, high, &size.coarse(&self.coarse, slices))?;
            if i == 0 {
                self.transform.up_columns(session, &self.coarse, sinograms, self.pad, true)?;
            } else {
                self.transform.up_columns(session, &self.coarse, &finer(i), 0, false)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_orthonormal_and_their_moments_vanish() {
        for (index, low) in DAUBECHIES.iter().enumerate() {
            let taps = 2 * (index + 1);
            assert_eq!(low.len(), taps);
            for shift in (0..taps).step_by(2) {
                let product: f64 = low.iter().zip(&low[shift..]).map(|(a, b)| a * b).sum();
                assert!((product - f64::from(u8::from(shift == 0))).abs() < 1e-9, "{taps} taps, {shift}");
            }
            for moment in 0..=index as i32 {
                let term = |(i, v): (usize, &f64)| (1 - 2 * (i as i32 % 2)) as f64 * v * (i as f64).powi(moment);
                let sum: f64 = low.iter().rev().enumerate().map(term).sum();
                let size: f64 = low.iter().rev().enumerate().map(|x| term(x).abs()).sum();
                assert!(sum.abs() < 1e-8 * size.max(1.0), "{taps} taps, moment {moment}: {sum}");
            }
        }
    }
}

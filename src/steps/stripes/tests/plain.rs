//! Every method once more in `f64`, written from its description.

use super::{Image, wavelet};
use std::f64::consts::PI;

pub fn fold(i: i64, n: usize) -> usize {
    let n = n as i64;
    let mut i = i;
    while i < 0 || i >= n {
        i = if i < 0 { -1 - i } else { 2 * n - 1 - i };
    }
    i as usize
}

pub fn median(row: &[f64], size: usize) -> Vec<f64> {
    let half = (size / 2) as i64;
    (0..row.len() as i64)
        .map(|x| {
            let mut near: Vec<f64> = (x - half..=x + half).map(|i| row[fold(i, row.len())]).collect();
            near.sort_by(f64::total_cmp);
            near[size / 2]
        })
        .collect()
}

pub fn transposed(image: &Image) -> Image {
    (0..image[0].len()).map(|b| image.iter().map(|row| row[b]).collect()).collect()
}

fn ranks(image: &Image) -> (Image, Vec<Vec<usize>>) {
    let (mut columns, mut orders) = (Vec::new(), Vec::new());
    for column in transposed(image) {
        let mut order: Vec<usize> = (0..column.len()).collect();
        order.sort_by(|a, b| column[*a].total_cmp(&column[*b]));
        columns.push(order.iter().map(|i| column[*i]).collect());
        orders.push(order);
    }
    (transposed(&columns), orders)
}

fn unsort(image: &Image, orders: &[Vec<usize>]) -> Image {
    let mut out = transposed(image);
    for (column, order) in out.iter_mut().zip(orders) {
        let sorted = column.clone();
        order.iter().zip(sorted).for_each(|(place, value)| column[*place] = value);
    }
    transposed(&out)
}

pub fn sorting(image: &Image, size: usize) -> Image {
    let (sorted, orders) = ranks(image);
    unsort(&sorted.iter().map(|row| median(row, size)).collect(), &orders)
}

/// Gaussian in frequency, by the sums that define the transform.
pub fn low_pass(column: &[f64], sigma: f64) -> Vec<f64> {
    let n = column.len();
    let angle = |i: usize, k: usize| 2.0 * PI * (i * k % n) as f64 / n as f64;
    let mut out = vec![0.0; n];
    for k in 0..n {
        let re: f64 = column.iter().enumerate().map(|(i, v)| v * angle(i, k).cos()).sum();
        let im: f64 = column.iter().enumerate().map(|(i, v)| v * angle(i, k).sin()).sum();
        let factor = (-(k.min(n - k) as f64 / sigma).powi(2) / 2.0).exp() / n as f64;
        for (i, v) in out.iter_mut().enumerate() {
            *v += factor * (re * angle(i, k).cos() + im * angle(i, k).sin());
        }
    }
    out
}

pub fn filtering(image: &Image, sigma: f64, size: usize) -> Image {
    let count = image.len();
    let pad = (count / 10).min(150);
    let smooth: Image = transposed(image)
        .iter()
        .map(|column| {
            let reflected = |i: i64| {
                column[if i < 0 {
                    -i
                } else if i >= count as i64 {
                    2 * count as i64 - 2 - i
                } else {
                    i
                } as usize]
            };
            let long: Vec<f64> = (-(pad as i64)..(count + pad) as i64).map(reflected).collect();
            low_pass(&long, sigma)[pad..pad + count].to_vec()
        })
        .collect();
    let smooth = transposed(&smooth);
    let made = sorting(&smooth, size);
    combine(image, &smooth, &made, |v, low, new| v - low + new)
}

pub fn combine(a: &Image, b: &Image, c: &Image, f: impl Fn(f64, f64, f64) -> f64) -> Image {
    a.iter()
        .zip(b)
        .zip(c)
        .map(|((a, b), c)| a.iter().zip(b).zip(c).map(|((a, b), c)| f(*a, *b, *c)).collect())
        .collect()
}

/// `None` are columns of air.
fn outstanding(list: &[Option<f64>], snr: f64, others: f64) -> Vec<bool> {
    let mut sorted: Vec<f64> = list.iter().filter_map(|v| *v).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let used: Vec<(f64, f64)> = (n / 4..n - n / 4 - 1).map(|i| (i as f64, sorted[i])).collect();
    let m = used.len() as f64;
    let (sx, sy): (f64, f64) = (used.iter().map(|p| p.0).sum(), used.iter().map(|p| p.1).sum());
    let (sxx, sxy): (f64, f64) = (used.iter().map(|p| p.0 * p.0).sum(), used.iter().map(|p| p.0 * p.1).sum());
    let slope = (m * sxy - sx * sy) / (m * sxx - sx * sx);
    let start = (sy - slope * sx) / m;
    let end = start + slope * (n - 1) as f64;
    let noise = (end - start).abs().max(1e-5);
    let set: Vec<bool> = list
        .iter()
        .map(|v| {
            let Some(v) = *v else { return false };
            (sorted[n - 1] - end) / noise >= snr && v > end + noise * others
                || (start - sorted[0]) / noise >= snr && v <= start - noise * others
        })
        .collect();
    (0..set.len()).map(|i| (i.saturating_sub(1)..=(i + 1).min(set.len() - 1)).any(|j| set[j])).collect()
}

fn column_means(image: &[Vec<f64>]) -> Vec<f64> {
    (0..image[0].len()).map(|b| image.iter().map(|row| row[b]).sum::<f64>() / image.len() as f64).collect()
}

pub fn large(image: &Image, snr: f64, size: usize, drop: f64) -> Image {
    let (sorted, orders) = ranks(image);
    let smooth: Image = sorted.iter().map(|row| median(row, size)).collect();
    let dropped = (0.5 * drop * image.len() as f64) as usize;
    let kept = dropped..image.len() - dropped;
    let (own, near) = (column_means(&sorted[kept.clone()]), column_means(&smooth[kept]));
    let average = near.iter().map(|v| v.abs()).sum::<f64>() / near.len() as f64;
    let sample: Vec<f64> = near.iter().map(|v| v.abs()).filter(|v| *v >= average).collect();
    let sample = sample.iter().sum::<f64>() / sample.len() as f64;
    let factors: Vec<Option<f64>> =
        (0..own.len()).map(|b| if near[b].abs() > 0.1 * sample { Some(own[b] / near[b]) } else { None }).collect();
    let corrected = |v: f64, b: usize| match factors[b] {
        Some(factor) if factor >= 0.01 => v / factor,
        _ => v + near[b] - own[b],
    };
    let mut odd = outstanding(&factors, snr, snr);
    if 3 * odd.iter().filter(|odd| **odd).count() >= factors.iter().flatten().count() {
        odd.fill(false);
    }
    let smooth = unsort(&smooth, &orders);
    image
        .iter()
        .zip(&smooth)
        .map(|(row, s)| (0..row.len()).map(|b| if odd[b] { s[b] } else { corrected(row[b], b) }).collect())
        .collect()
}

pub fn dead(image: &Image, snr: f64, size: usize) -> Image {
    let count = image.len();
    let changes: Vec<f64> = transposed(image)
        .iter()
        .map(|column| {
            (0..count as i64)
                .map(|p| {
                    let mean = (p - 5..p + 5).map(|i| column[fold(i, count)]).sum::<f64>() / 10.0;
                    (column[p as usize] - mean).abs()
                })
                .sum()
        })
        .collect();
    let usual = median(&changes, size);
    let factors: Vec<Option<f64>> = changes.iter().zip(&usual).map(|(c, u)| Some(c / u)).collect();
    let bins = changes.len();
    let odd: Vec<bool> =
        outstanding(&factors, snr, snr / 2.0).iter().enumerate().map(|(b, o)| *o && b >= 2 && b < bins - 2).collect();
    image
        .iter()
        .map(|row| {
            (0..bins)
                .map(|b| {
                    if !odd[b] {
                        return row[b];
                    }
                    let left = (0..b).rev().find(|i| !odd[*i]).unwrap();
                    let right = (b..bins).find(|i| !odd[*i]).unwrap();
                    row[left] + (row[right] - row[left]) * (b - left) as f64 / (right - left) as f64
                })
                .collect()
        })
        .collect()
}

/// Solves `a x = b` by elimination.
fn solve(mut a: Image, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|j, k| a[*j][i].abs().total_cmp(&a[*k][i].abs())).unwrap();
        a.swap(i, pivot);
        b.swap(i, pivot);
        for j in i + 1..n {
            let f = a[j][i] / a[i][i];
            let upper = a[i].clone();
            a[j].iter_mut().zip(upper).for_each(|(v, u)| *v -= f * u);
            b[j] -= f * b[i];
        }
    }
    for i in (0..n).rev() {
        b[i] = (b[i] - (i + 1..n).map(|j| a[i][j] * b[j]).sum::<f64>()) / a[i][i];
    }
    b
}

fn gaussian(profile: &[f64], sigma: f64) -> Vec<f64> {
    let reach = (4.0 * sigma + 0.5) as i64;
    let weight = |d: i64| (-(d as f64).powi(2) / (2.0 * sigma * sigma)).exp();
    let total: f64 = (-reach..=reach).map(weight).sum();
    (0..profile.len() as i64)
        .map(|x| (-reach..=reach).map(|d| weight(d) * profile[fold(x + d, profile.len())]).sum::<f64>() / total)
        .collect()
}

/// A row without what a running median over `2 reach + 1` bins leaves of it.
fn rough(row: &[f64], reach: usize) -> Vec<f64> {
    row.iter().zip(median(row, 2 * reach + 1)).map(|(v, median)| v - median).collect()
}

/// Least squares with powers of the projection's number; what is rough in rows of the fit is smoothed.
pub fn fitting(image: &Image, order: usize, sigma: f64) -> Image {
    let count = image.len();
    let x = |p: usize| 2.0 * p as f64 / (count - 1) as f64 - 1.0;
    let power = |p: usize, k: usize| x(p).powi(k as i32);
    let fit: Image = transposed(image)
        .iter()
        .map(|column| {
            let n = order + 1;
            let a =
                (0..n).map(|i| (0..n).map(|j| (0..count).map(|p| power(p, i) * power(p, j)).sum()).collect()).collect();
            let b = (0..n).map(|i| (0..count).map(|p| power(p, i) * column[p]).sum()).collect();
            let c = solve(a, b);
            (0..count).map(|p| (0..n).map(|k| c[k] * power(p, k)).sum()).collect()
        })
        .collect();
    let fit: Image = transposed(&fit).iter().map(|row| rough(row, sigma.ceil() as usize)).collect();
    let smooth = fit.iter().map(|row| gaussian(row, sigma)).collect();
    combine(image, &fit, &smooth, |v, fit, smooth| v - fit + smooth)
}

pub fn titarenko(image: &Image, alpha: f64, blocks: usize) -> Image {
    let (count, bins) = (image.len(), image[0].len());
    let mut out = Vec::new();
    for block in 0..blocks {
        let rows = &image[block * count / blocks..(block + 1) * count / blocks];
        let mean = rough(&column_means(rows), alpha.sqrt().recip().ceil() as usize);
        // D^T D from D
        let d: Image = (0..bins - 1)
            .map(|i| (0..bins).map(|j| if j == i { -1.0 } else { f64::from(u8::from(j == i + 1)) }).collect())
            .collect();
        let dtd: Image =
            (0..bins).map(|i| (0..bins).map(|j| d.iter().map(|row| row[i] * row[j]).sum()).collect()).collect();
        let right = dtd.iter().map(|row| -row.iter().zip(&mean).map(|(a, b)| a * b).sum::<f64>()).collect();
        let mut left = dtd.clone();
        (0..bins).for_each(|i| left[i][i] += alpha);
        let q = solve(left, right);
        out.extend(rows.iter().map(|row| row.iter().zip(&q).map(|(v, q)| v + q).collect::<Vec<_>>()));
    }
    out
}

fn analyse(line: &[f64], filter: &[f64]) -> Vec<f64> {
    let taps = filter.len();
    // convolution, every second value
    (0..(line.len() + taps - 1) / 2)
        .map(|k| (0..taps).map(|j| filter[j] * line[fold((2 * k + 1) as i64 - j as i64, line.len())]).sum())
        .collect()
}

fn synthesise(low: &[f64], high: &[f64], filters: [&[f64]; 2], count: usize) -> Vec<f64> {
    let taps = filters[0].len();
    let mut long = vec![0.0; 2 * low.len() + taps];
    for (coefficients, filter) in [low, high].into_iter().zip(filters) {
        for (k, c) in coefficients.iter().enumerate() {
            filter.iter().enumerate().for_each(|(j, f)| long[2 * k + j] += c * f);
        }
    }
    long[taps - 2..taps - 2 + count].to_vec()
}

/// `level` halvings with filters of analysis and synthesis, low and high each; the columns of stripes lose their low
/// frequencies.
fn damp(image: &Image, level: usize, sigma: f64, dec: [&[f64]; 2], rec: [&[f64]; 2]) -> Image {
    if level == 0 {
        return image.clone();
    }
    let (rows, columns) = (image.len(), image[0].len());
    let along = |image: &Image, f: &[f64]| -> Image { image.iter().map(|row| analyse(row, f)).collect() };
    let down_rows = |image: &Image, f: &[f64]| transposed(&along(&transposed(image), f));
    let (low, high) = (along(image, dec[0]), along(image, dec[1]));
    let bands = [down_rows(&low, dec[0]), down_rows(&low, dec[1]), down_rows(&high, dec[1])];
    let stripes = down_rows(&high, dec[0]);
    let smooth: Image = transposed(&stripes).iter().map(|column| low_pass(column, sigma)).collect();
    let damped = combine(&stripes, &transposed(&smooth), &stripes, |v, low, _| v - low);
    let coarse = damp(&bands[0], level - 1, sigma, dec, rec);
    let up_rows = |low: &Image, high: &Image| {
        let columns: Image =
            transposed(low).iter().zip(&transposed(high)).map(|(low, high)| synthesise(low, high, rec, rows)).collect();
        transposed(&columns)
    };
    let (low, high) = (up_rows(&coarse, &bands[1]), up_rows(&damped, &bands[2]));
    low.iter().zip(&high).map(|(low, high)| synthesise(low, high, rec, columns)).collect()
}

/// All coefficients, damped where they hold stripes, and all of them back.
pub fn wavelet(image: &Image, moments: usize, level: usize, sigma: f64) -> Image {
    let (rows, bins) = (image.len(), image[0].len());
    let pad = (rows.min(bins) / 10).min(150);
    let means = column_means(image);
    let wide = |row: &Vec<f64>| -> Vec<f64> {
        (0..bins + 2 * pad).map(|x| row[x.saturating_sub(pad).min(bins - 1)]).collect()
    };
    let ends = std::iter::repeat_n(&means, pad);
    let padded: Image = ends.clone().chain(image).chain(ends).map(wide).collect();

    let rec_low = wavelet::DAUBECHIES[moments - 1];
    let taps = rec_low.len();
    let rec_high: Vec<f64> = (0..taps).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 } * rec_low[taps - 1 - i]).collect();
    let dec_low: Vec<f64> = rec_low.iter().rev().copied().collect();
    let dec_high: Vec<f64> = rec_high.iter().rev().copied().collect();

    let back = damp(&padded, level, sigma, [&dec_low, &dec_high], [rec_low, &rec_high]);
    back[pad..pad + rows].iter().map(|row| row[pad..pad + bins].to_vec()).collect()
}

//! Filters and paddings, whatever filters the rows.

use super::setup::{RowTransform, device, plain, reconstruct_cut, reconstruct_with, spec, standard};
use fbp::geometry::{Cut, Roi};
use fbp::kernel::{Interpolation, Sampler, Storage};
use fbp::kernel::{RowFilter, RowFilterMethod};
use fbp::spectrum::{Filter, Padding};
use fbp_reference::{Pad, Read, Scan, back_project, filter, noise, padded, relative_rms};

#[test]
fn filters_and_paddings_agree_with_the_reference() {
    use std::f64::consts::PI;
    let found = device();
    let scan = Scan::even(53, 20, 53);
    let offer = standard(Sampler::Buffer, Interpolation::Linear, 1, Storage::Float);
    let spec = spec(&found, &plain(), &offer, &scan).unwrap();
    let sinogram = noise(53 * 20, 3);
    type Window = Option<fn(f64) -> f64>;
    let windows: [(Filter, Window); 8] = [
        (Filter::Ramp, Some(|_| 1.0)),
        (Filter::SheppLogan, Some(|u| if u == 0.0 { 1.0 } else { (PI * u / 2.0).sin() / (PI * u / 2.0) })),
        (Filter::Cosine, Some(|u| (PI * u / 2.0).cos())),
        (Filter::Hamming, Some(|u| 0.54 + 0.46 * (PI * u).cos())),
        (Filter::Hann, Some(|u| (PI * u / 2.0).cos().powi(2))),
        (
            Filter::Parzen,
            Some(|u| if u <= 0.5 { 1.0 - 6.0 * u * u + 6.0 * u * u * u } else { 2.0 * (1.0 - u).powi(3) }),
        ),
        (Filter::Butterworth, Some(|u| 1.0 / (1.0 + u.powi(8)))),
        (Filter::None, None),
    ];
    let ways = [
        RowFilter { length: padded(53), method: RowFilterMethod::Transform },
        RowFilter { length: 128, method: RowFilterMethod::Fused { rows: 2, parts: 1 } },
        RowFilter { length: padded(53), method: RowFilterMethod::Host },
    ];
    for (name, window) in windows {
        for (padding, pad) in [(Padding::Zero, Pad::Zero), (Padding::Edge, Pad::Edge), (Padding::Mirror, Pad::Mirror)] {
            for rows in ways {
                let got = reconstruct_with(&found, &spec, &scan, Roi::full(53), rows, (name, padding), &sinogram);
                let window = window.as_ref().map(|w| w as &dyn Fn(f64) -> f64);
                let filtered = filter(&sinogram, 53, rows.length, pad, window);
                let (want, slack) = back_project(&filtered, &scan, Read::Linear);
                let error = relative_rms(&got, &want, &slack);
                assert!(error <= 1e-5, "{name} {pad:?} {rows:?}: {error:.3e}");
            }
        }
    }
    // rows that are mirrored several times, to the same padded length
    for bins in [33, 42] {
        let scan = Scan::even(bins, 5, bins);
        let sinogram = noise(bins * 5, 4);
        for rows in ways {
            let mirror = (Filter::Ramp, Padding::Mirror);
            let got = reconstruct_with(&found, &spec, &scan, Roi::full(bins), rows, mirror, &sinogram);
            let filtered = filter(&sinogram, bins, rows.length, Pad::Mirror, Some(&|_| 1.0));
            let (want, slack) = back_project(&filtered, &scan, Read::Linear);
            let error = relative_rms(&got, &want, &slack);
            assert!(error <= 2e-6, "{bins} {rows:?}: {error:.3e}");
        }
    }
}

/// Every length and both ways to exchange values; 5 projections are two pairs and a half, and more slices than one.
#[test]
fn fused_rows_of_every_length() {
    let found = device();
    let profile = plain();
    let offer = standard(Sampler::Buffer, Interpolation::Linear, 2, Storage::Float);
    for bins in [20, 60, 100, 200, 500, 1000, 2000, 4000, 8000] {
        let scan = Scan::even(bins, 5, 8);
        let spec = spec(&found, &profile, &offer, &scan).unwrap();
        let sinograms = noise(2 * bins * 5, 3);
        let length = padded(bins);
        for (rows, parts) in [(1, 1), (if length > 1024 { 1 } else { 2 }, 2)] {
            let rows = RowFilter { length, method: RowFilterMethod::Fused { rows, parts } };
            let ramp = (Filter::Ramp, Padding::Edge);
            let got = reconstruct_with(&found, &spec, &scan, Roi::full(8), rows, ramp, &sinograms);
            for slice in 0..2 {
                let sinogram = &sinograms[slice * bins * 5..(slice + 1) * bins * 5];
                let filtered = filter(sinogram, bins, length, Pad::Edge, Some(&|_| 1.0));
                let (want, slack) = back_project(&filtered, &scan, Read::Linear);
                let error = relative_rms(&got[slice * 64..(slice + 1) * 64], &want, &slack);
                assert!(error <= 1e-5, "{rows:?}: {error:.3e}");
            }
        }
    }
}

/// However rows are filtered: a last part of an odd number of them, a pass that is not full.
#[test]
fn parts_and_bands_of_every_filter() {
    let found = device();
    let scan = Scan::even(53, 23, 53);
    let offer = standard(Sampler::Buffer, Interpolation::Linear, 2, Storage::Float);
    let spec = spec(&found, &plain(), &offer, &scan).unwrap();
    let sinograms = noise(3 * 53 * 23, 3);
    let ramp = (Filter::Ramp, Padding::Edge);
    let roi = Roi { x: 3, y: 5, width: 40, height: 41 };
    for rows in [
        RowFilter { length: 108, method: RowFilterMethod::Transform },
        RowFilter { length: 128, method: RowFilterMethod::Fused { rows: 2, parts: 1 } },
        RowFilter { length: 108, method: RowFilterMethod::Host },
    ] {
        let slices = |projections, height| {
            let cut = Cut { projections, rows: height };
            reconstruct_cut(&found, &spec, &scan, (roi, cut), (rows, RowTransform::Library), ramp, &sinograms)
        };
        let whole = slices(23, 41);
        let exact: Vec<f64> = whole.iter().map(|&v| v.into()).collect();
        // bands change no bit
        assert!(slices(23, 16) == whole, "{rows:?}");
        for (projections, height) in [(16, 41), (8, 7), (2, 20)] {
            let error = relative_rms(&slices(projections, height), &exact, &vec![0.0; exact.len()]);
            assert!(error <= 1e-6, "{rows:?} {projections} {height}: {error:.3e}");
        }
    }
}

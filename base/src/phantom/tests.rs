use super::*;
use std::f64::consts::PI;
use strum::VariantArray;

fn row(phantom: &Phantom, theta: f64, axis: f64, bins: usize) -> Vec<f32> {
    let mut row = vec![0.0; bins];
    phantom.project_row(theta, axis, &mut row);
    row
}

fn nrmse(a: &[f32], b: &[f32]) -> f64 {
    let mean = b.iter().map(|&v| f64::from(v)).sum::<f64>() / b.len() as f64;
    let spread: f64 = b.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum();
    let error: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2)).sum();
    (error / spread).sqrt()
}

#[test]
fn names() {
    for &kind in Kind::VARIANTS {
        assert_eq!(kind.to_string().parse::<Kind>().unwrap(), kind);
    }
    assert!("shepp".parse::<Kind>().is_err());
}

#[test]
fn everything_lies_in_the_unit_disc() {
    for &kind in Kind::VARIANTS {
        for slice in 0..9 {
            for e in Phantom::for_slice(kind, 200, slice, 9).ellipses() {
                for k in 0..360 {
                    let (v, u) = f64::from(k).to_radians().sin_cos();
                    let (sin, cos) = e.phi.sin_cos();
                    let (u, v) = (e.a * u, e.b * v);
                    let far = (e.x + u * cos - v * sin).hypot(e.y + u * sin + v * cos);
                    assert!(far < 100.0, "{kind} {slice} {far}");
                }
            }
        }
    }
}

/// A disc off the centre: where it must appear says which way the axes point.
#[test]
fn geometry() {
    let disc = Ellipse { x: 20.0, y: 10.0, a: 4.0, b: 4.0, phi: 0.0, contrast: 0.5 };
    let phantom = Phantom { size: 101, ellipses: vec![disc] };
    let image = phantom.rasterise(4);
    let mass: f64 = image.iter().map(|&v| f64::from(v)).sum();
    let x = image.iter().enumerate().map(|(i, &v)| (i % 101) as f64 * f64::from(v)).sum::<f64>() / mass;
    let y = image.iter().enumerate().map(|(i, &v)| (i / 101) as f64 * f64::from(v)).sum::<f64>() / mass;
    assert!((x - 70.0).abs() < 1e-3 && (y - 40.0).abs() < 1e-3);
    for theta in [0.0f64, 0.3, PI / 2.0, 2.0, 4.0] {
        let axis = 47.3;
        let row = row(&phantom, theta, axis, 101);
        let sum: f64 = row.iter().map(|&v| f64::from(v)).sum();
        let at = row.iter().enumerate().map(|(b, &v)| b as f64 * f64::from(v)).sum::<f64>() / sum;
        let expected = axis + (x - 50.0) * theta.cos() - (y - 50.0) * theta.sin();
        // Bins are wide: their centroid is that of the disc but nearly.
        assert!((at - expected).abs() < 0.01, "{theta} {at} {expected}");
        assert!((sum - 0.5 * PI * 16.0).abs() < 1e-4);
    }
}

#[test]
fn rows_are_the_integrals_of_the_truth() {
    let phantom = Phantom::new(Kind::Asymmetric, 64);
    for theta in [0.0f64, 0.4, 1.1, 2.7, 5.0] {
        let axis = 31.2;
        let row = row(&phantom, theta, axis, 64);
        let mut sampled = vec![0.0; 64];
        phantom.project_row_sampled(theta, axis, &mut sampled);
        let (sin, cos) = theta.sin_cos();
        // A plain sum along rays, over the bin and at its centre.
        let along = |t: f64| -> f64 {
            (0..2000)
                .map(|k| (f64::from(k) + 0.5) * 0.035 - 35.0)
                .map(|s| phantom.value_at(t * cos - s * sin, t * sin + s * cos) * 0.035)
                .sum()
        };
        for bin in (0..64).step_by(7) {
            let t = bin as f64 - axis;
            let mean = (0..40).map(|k| along(t + (f64::from(k) + 0.5) / 40.0 - 0.5)).sum::<f64>() / 40.0;
            assert!((f64::from(row[bin]) - mean).abs() < 0.03, "{theta} {bin} {} {mean}", row[bin]);
            assert!((f64::from(sampled[bin]) - along(t)).abs() < 0.15);
        }
    }
}

#[test]
fn the_mass_of_a_row_is_that_of_the_phantom() {
    for &kind in Kind::VARIANTS {
        let phantom = Phantom::new(kind, 256);
        let mass: f64 = phantom.ellipses().iter().map(|e| PI * e.a * e.b * e.contrast).sum();
        for theta in [0.0, 0.7, 1.9, 3.0] {
            let sum: f64 = row(&phantom, theta, 128.0, 257).iter().map(|&v| f64::from(v)).sum();
            assert!((sum / mass - 1.0).abs() < 1e-6, "{kind} {sum} {mass}");
        }
        let sum: f64 = phantom.rasterise(4).iter().map(|&v| f64::from(v)).sum();
        assert!((sum / mass - 1.0).abs() < 2e-3, "{kind} {sum} {mass}");
    }
}

#[test]
fn shepp_logan_spans_zero_to_one() {
    let phantom = Phantom::new(Kind::SheppLogan, 128);
    let image = phantom.rasterise(1);
    let (low, high) = image.iter().fold((9f32, -9f32), |(l, h), &v| (l.min(v), h.max(v)));
    assert!(low.abs() < 1e-6 && (high - 1.0).abs() < 1e-6, "{low} {high}");
    // The small ones lie at the bottom.
    assert!(phantom.ellipses()[9].y < -30.0);
    let values: Vec<f64> = phantom.uniform_regions().iter().map(Region::value).collect();
    let expected = [1.0, 0.2, 0.0, 0.0, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3];
    assert!(values.iter().zip(expected).all(|(v, e)| (v - e).abs() < 1e-9), "{values:?}");
}

#[test]
fn the_asymmetric_one_has_no_symmetry() {
    let n = 128;
    let image = Phantom::new(Kind::Asymmetric, n).rasterise(4);
    let last = n - 1;
    type Map = fn(usize, usize, usize) -> (usize, usize);
    let maps: [Map; 7] = [
        |x, y, l| (l - x, y),
        |x, y, l| (x, l - y),
        |x, y, l| (l - x, l - y),
        |x, y, _| (y, x),
        |x, y, l| (l - y, l - x),
        |x, y, l| (l - y, x),
        |x, y, l| (y, l - x),
    ];
    for map in maps {
        let moved: Vec<f32> = (0..n * n)
            .map(|i| {
                let (x, y) = map(i % n, i / n, last);
                image[y * n + x]
            })
            .collect();
        assert!(nrmse(&moved, &image) > 0.5, "{}", nrmse(&moved, &image));
    }
    for (dx, dy) in [(0.5, 0.0), (0.0, 0.5)] {
        let mut shifted = Phantom::new(Kind::Asymmetric, n);
        for ellipse in &mut shifted.ellipses {
            ellipse.x += dx;
            ellipse.y += dy;
        }
        let change = nrmse(&shifted.rasterise(4), &image);
        assert!(change > 0.08, "{change}");
    }
}

#[test]
fn the_stack() {
    for &kind in Kind::VARIANTS {
        let plain = Phantom::new(kind, 64);
        for slices in [1, 2, 5, 8] {
            assert_eq!(Phantom::for_slice(kind, 64, slices / 2, slices), plain);
        }
        let rows: Vec<_> = (0..8).map(|slice| row(&Phantom::for_slice(kind, 64, slice, 8), 0.3, 31.5, 64)).collect();
        for i in 0..8 {
            for j in 0..i {
                assert!(nrmse(&rows[i], &rows[j]) > 0.005, "{kind} {i} {j} {}", nrmse(&rows[i], &rows[j]));
            }
        }
    }
}

#[test]
fn depth_is_the_distance_from_the_boundary() {
    for b in [9.0, 2.0, 0.4] {
        let e = Ellipse { x: 3.0, y: -2.0, a: 9.0, b, phi: 0.6, contrast: 1.0 };
        let (sin, cos) = e.phi.sin_cos();
        let points =
            [(0.0, 0.0), (8.5, 0.0), (1.0, 0.1), (-4.0, 1.5), (12.0, 0.0), (-3.0, -7.0), (0.0, 5.0), (8.9, 0.3)];
        for (u, v) in points {
            let nearest = (0..20_000)
                .map(|k| {
                    let (s, c) = (f64::from(k) * PI / 10_000.0).sin_cos();
                    (u - e.a * c).hypot(v - e.b * s)
                })
                .fold(f64::INFINITY, f64::min);
            let depth = e.depth(e.x + u * cos - v * sin, e.y + u * sin + v * cos);
            assert!((depth.abs() - nearest).abs() < 3e-3, "{b}: {u} {v} {depth} {nearest}");
            assert_eq!(depth > 0.0, (u / 9.0f64).powi(2) + (v / b).powi(2) < 1.0);
        }
    }
}

#[test]
fn regions_are_uniform() {
    for &kind in Kind::VARIANTS {
        let phantom = Phantom::new(kind, 256);
        let image = phantom.rasterise(4);
        for (index, region) in phantom.uniform_regions().iter().enumerate() {
            let pixels = region.pixels(0.75);
            assert!(!pixels.is_empty() || region.contrast() > 0.9, "{kind} {index}");
            for pixel in pixels {
                assert!((f64::from(image[pixel]) - region.value()).abs() < 1e-6, "{kind} {index}");
            }
            if let Some(mean) = region.mean(&image, 1.5) {
                assert!((mean - region.value()).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn counts_come_back_as_line_integrals() {
    let phantom = Phantom::new(Kind::SheppLogan, 256);
    let scale = 2.0 / phantom.densest_ray();
    let phantom = phantom.scaled(scale);
    assert!((phantom.densest_ray() - 2.0).abs() < 1e-6);
    let clean = row(&phantom, 0.5, 127.5, 256);
    let detector = Detector { bins: 256, rows: 5, photons: 40_000.0 };
    let mean = |make: &dyn Fn(u32) -> Vec<u16>| -> Vec<f64> {
        let mut sum = vec![0.0; 256];
        for frame in 0..50 {
            sum.iter_mut().zip(make(frame)).for_each(|(s, v)| *s += f64::from(v) / 50.0);
        }
        sum
    };
    let dark = mean(&|k| detector.dark_row(3, &mut row_rng(1, u32::MAX - k, 3)));
    let flat = mean(&|k| detector.flat_row(3, &mut row_rng(1, u32::MAX - 100 - k, 3)));
    let light = mean(&|k| detector.counts(3, &clean, &mut row_rng(1, k, 3)));
    for bin in 0..256 {
        let p = -((light[bin] - dark[bin]) / (flat[bin] - dark[bin])).ln();
        assert!((p - f64::from(clean[bin])).abs() < 0.02, "{bin} {p} {}", clean[bin]);
    }
    assert!(dark.iter().all(|&d| (85.0..115.0).contains(&d)));
    // The beam is uneven, and there are weak columns, the same in every row.
    let weak: Vec<usize> =
        (0..256).filter(|&bin| detector.open_beam(2, bin) < 0.65 * detector.open_beam(2, 128)).collect();
    assert!(!weak.is_empty() && weak.len() < 10, "{weak:?}");
    assert!(flat.iter().all(|&f| f > 10_000.0 && f < 50_000.0));
}

#[test]
fn noise_is_poisson_and_depends_on_its_place_alone() {
    let detector = Detector { bins: 2000, rows: 1, photons: 1000.0 };
    let zeros = vec![0.0f32; 2000];
    let counts = detector.counts(0, &zeros, &mut row_rng(9, 4, 0));
    assert_eq!(counts, detector.counts(0, &zeros, &mut row_rng(9, 4, 0)));
    for other in [row_rng(8, 4, 0), row_rng(9, 5, 0), row_rng(9, 4, 1)] {
        assert_ne!(counts, detector.counts(0, &zeros, &mut other.clone()));
    }
    // Pearson's sum over 2000 bins has mean 2000 and standard deviation 63.
    let chi: f64 = (0..2000)
        .map(|bin| {
            let light = detector.open_beam(0, bin);
            let error = f64::from(counts[bin]) - light - detector.dark_level(0, bin);
            error * error / (light + Detector::READ_NOISE.powi(2))
        })
        .sum();
    assert!((chi - 2000.0).abs() < 300.0, "{chi}");
    // Extremes clip and never fail.
    let mut rng = row_rng(0, 0, 0);
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -500.0, 500.0];
    let counts = detector.counts(0, &odd, &mut rng);
    assert!(counts[0] < 120 && counts[1] < 120 && counts[4] < 120);
    assert_eq!((counts[2], counts[3]), (u16::MAX, u16::MAX));
}

#[test]
fn gaussian_noise() {
    let mut row = vec![1.0f32; 10_000];
    add_gaussian(&mut row, 0.0, &mut row_rng(1, 2, 3));
    add_gaussian(&mut row, f64::NAN, &mut row_rng(1, 2, 3));
    add_gaussian(&mut row, f64::INFINITY, &mut row_rng(1, 2, 3));
    assert!(row.iter().all(|&v| v == 1.0));
    add_gaussian(&mut row, 0.5, &mut row_rng(1, 2, 3));
    let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / 1e4;
    let variance = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / 1e4;
    assert!((mean - 1.0).abs() < 0.02 && (variance.sqrt() - 0.5).abs() < 0.02);
}

/// The table in the module's documentation, for 180 degrees.
#[test]
fn averaged_rows_give_the_better_slice() {
    type Project = fn(&Phantom, f64, f64, &mut [f32]);
    let (n, projections) = (512usize, 800usize);
    let half = centre(n);
    let phantom = Phantom::new(Kind::SheppLogan, n);
    let regions: Vec<(Vec<usize>, f64, f64)> = phantom
        .uniform_regions()
        .iter()
        .map(|region| (region.pixels(2.0), region.value(), region.contrast()))
        .collect();
    let kernel: Vec<f64> = (0..n)
        .map(|k| match k {
            0 => 0.25,
            k if k % 2 == 1 => -1.0 / (PI * k as f64).powi(2),
            _ => 0.0,
        })
        .collect();
    let worst = |project: Project| -> f64 {
        let filtered: Vec<(f64, f64, Vec<f64>)> = (0..projections)
            .into_par_iter()
            .map(|p| {
                let theta = p as f64 * PI / projections as f64;
                let mut row = vec![0.0; n];
                project(&phantom, theta, half, &mut row);
                let q = (0..n).map(|b| (0..n).map(|k| f64::from(row[k]) * kernel[b.abs_diff(k)]).sum()).collect();
                (theta.cos(), theta.sin(), q)
            })
            .collect();
        let mean = |pixels: &[usize]| -> f64 {
            let sum: f64 = pixels
                .par_iter()
                .map(|i| {
                    let (x, y) = ((i % n) as f64 - half, (i / n) as f64 - half);
                    let at = |(cos, sin, q): &(f64, f64, Vec<f64>)| {
                        let h = half + x * cos - y * sin;
                        let bin = h as usize;
                        q[bin] + (h - bin as f64) * (q[bin + 1] - q[bin])
                    };
                    filtered.iter().map(at).sum::<f64>()
                })
                .sum();
            sum * PI / (projections * pixels.len()) as f64
        };
        regions.iter().map(|(pixels, value, contrast)| ((mean(pixels) - value) / contrast).abs()).fold(0.0, f64::max)
    };
    let averaged = worst(Phantom::project_row);
    let sampled = worst(Phantom::project_row_sampled);
    assert!(averaged < 0.002 && sampled > averaged, "{averaged} {sampled}");
}

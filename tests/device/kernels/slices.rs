//! Regions, wide detectors, large and small values, and the phantom as slices show it.

use super::no_crops;
use super::setup::{device, plain, reconstruct, sixteen, spec, standard, tensor};
use fbp::geometry::Roi;
use fbp::kernel::{Alu, Balance, Hybrid, Interpolation, Offer, Parameters, Sampler, Storage, Vector};
use fbp::phantom::{Kind, Phantom};
use fbp::spectrum::{Filter, Padding};
use fbp_reference::{Pad, Read, Scan, back_project, filter, noise, padded, relative_rms};

#[test]
fn a_region_is_the_crop_of_the_full_slice_bit_for_bit() {
    let found = device();
    let scan = Scan::even(67, 41, 97);
    let hybrid = Hybrid { texture_blocks: 1, alu_blocks: 2, balance: Balance::Block, alu: Alu::default() };
    for offer in [
        standard(Sampler::Image, Interpolation::Linear, 1, Storage::Float),
        standard(Sampler::Buffer, Interpolation::Linear, 1, Storage::Float),
        Offer { slices: 1, ..sixteen(Parameters::Hybrid(hybrid)) },
        tensor(true),
        sixteen(Parameters::Vector(Vector::default())),
    ] {
        let spec = spec(&found, &plain(), &offer, &scan).unwrap();
        let wrong = no_crops(&found, &spec, &scan);
        assert!(wrong.is_empty(), "{}: {wrong:?}", spec.name());
    }
}

#[test]
fn a_wide_detector_keeps_its_precision() {
    // positions near bin 4000 have an f32 step of 2.4e-4 bins: only offsets inside the block keep 1e-5
    let found = device();
    let mut scan = Scan::even(4096, 12, 64);
    scan.axis = vec![4000.37; 12];
    scan.angles = (0..12).map(|p| 3.0 + 14.9 * f64::from(p)).collect();
    let sinogram = noise(4096 * 12, 11);
    let filtered = filter(&sinogram, 4096, 8192, Pad::Edge, None);
    let (want, slack) = back_project(&filtered, &scan, Read::Linear);
    for offer in [
        standard(Sampler::Buffer, Interpolation::Linear, 1, Storage::Float),
        tensor(true),
        sixteen(Parameters::Vector(Vector::default())),
    ] {
        let spec = spec(&found, &plain(), &offer, &scan).unwrap();
        let got = reconstruct(&found, &spec, &scan, Roi::full(64), Filter::None, Padding::Edge, &sinogram);
        let error = relative_rms(&got, &want, &slack);
        assert!(error <= 2e-6, "{}: {error:.3e}", spec.name());
    }
}

#[test]
fn large_and_small_values_survive_half_storage() {
    let found = device();
    let scan = Scan::even(67, 41, 67);
    let values = 67 * 41;
    let mut sinograms = noise(2 * values, 5);
    // past the largest half (65504), and far below the smallest normal one (6e-5), in one pass
    sinograms[..values].iter_mut().for_each(|v| *v *= 1e9);
    sinograms[values..].iter_mut().for_each(|v| *v *= 1e-9);
    let half = standard(Sampler::Buffer, Interpolation::Linear, 2, Storage::Half);
    for (offer, limit) in [(half, 5e-4), (tensor(false), 5e-4), (tensor(true), 1e-5)] {
        let spec = spec(&found, &plain(), &offer, &scan).unwrap();
        let got = reconstruct(&found, &spec, &scan, Roi::full(67), Filter::Ramp, Padding::Edge, &sinograms);
        for slice in 0..2 {
            let sinogram = &sinograms[slice * values..(slice + 1) * values];
            let filtered = filter(sinogram, 67, padded(67), Pad::Edge, Some(&|_| 1.0));
            let (want, slack) = back_project(&filtered, &scan, Read::Linear);
            let error = relative_rms(&got[slice * 4489..(slice + 1) * 4489], &want, &slack);
            assert!(error <= limit, "{} slice {slice}: {error:.3e}", spec.name());
        }
    }
}

#[test]
fn the_phantom_comes_back_the_right_way_up_and_at_its_value() {
    // any flip, turn or shift by half a pixel of this phantom is worse than the limit
    let found = device();
    let (size, projections) = (128, 200);
    let phantom = Phantom::new(Kind::Asymmetric, size);
    let truth = phantom.rasterise(8);
    let mut scan = Scan::even(size + 9, projections, size);
    scan.axis = vec![61.7; projections];
    let mut sinogram = vec![0f32; scan.bins * projections];
    for (p, row) in sinogram.chunks_mut(scan.bins).enumerate() {
        phantom.project_row(scan.angles[p].to_radians(), scan.axis[p], row);
    }
    let offer = standard(Sampler::Buffer, Interpolation::Linear, 1, Storage::Float);
    let spec = spec(&found, &plain(), &offer, &scan).unwrap();
    let slice = reconstruct(&found, &spec, &scan, Roi::full(size), Filter::Ramp, Padding::Edge, &sinogram);
    let nrmse = |f: &dyn Fn(usize, usize) -> (usize, usize)| {
        let turned: Vec<f32> = (0..size * size)
            .map(|i| {
                let (x, y) = f(i % size, i / size);
                slice[y.min(size - 1) * size + x.min(size - 1)]
            })
            .collect();
        fbp::compare::images(size, size, Some(0.9), &turned, &truth).unwrap().nrmse
    };
    let upright = nrmse(&|x, y| (x, y));
    let last = size - 1;
    println!("upright {upright:.3}");
    for (what, error) in [
        ("flipped in y", nrmse(&|x, y| (x, last - y))),
        ("flipped in x", nrmse(&|x, y| (last - x, y))),
        ("transposed", nrmse(&|x, y| (y, x))),
        ("half a turn", nrmse(&|x, y| (last - x, last - y))),
        ("shifted", nrmse(&|x, y| (x + 1, y))),
    ] {
        println!("{what} {error:.3}");
        assert!(error > 1.5 * upright, "{what}: {error} against {upright}");
    }
    assert!(upright < 0.25, "{upright}");
    for region in phantom.uniform_regions() {
        if let Some(mean) = region.mean(&slice, 2.0) {
            assert!(
                (mean - region.value()).abs() < 0.02 * region.contrast().abs().max(0.2),
                "{mean} {}",
                region.value()
            );
        }
    }
}

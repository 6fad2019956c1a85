//! One command gives one picture, whatever the profile: the profile says how, never what.

use crate::support::cli::{Lab, Pages};
use fbp::margins::TIE;
use fbp_reference::{Pad, Read, Scan, back_project, filter, noise, padded, relative_rms};
use std::f64::consts::PI;

/// Profiles whose kernels differ as much as they can: a transform, one kernel or the host for rows; arithmetic, texture
/// units, products of matrices.
const PROFILES: [&str; 6] = ["cpu", "nvidia-hopper", "nvidia-pascal", "amd-gcn2", "amd-vliw5", "default"];

/// `--padding`, its rule, `--filter` and its window.
type Case<'a> = (&'a str, Pad, &'a str, &'a dyn Fn(f64) -> f64);

/// Every slice of a scan of noise, whose rows do not end in air, from one command with every profile, and what it should be.
fn check(bins: usize, projections: usize, cases: &[Case]) {
    let lab = Lab::new();
    let scan = Scan::even(bins, projections, bins);
    // levels far from 0, on which padding acts
    let page = |slice: u64| noise(bins * projections, 3 + slice).iter().map(|v| v + 2.0).collect::<Vec<f32>>();
    let sinograms = Pages { width: bins, pages: (0..3).map(page).collect() };
    lab.write("sin", "s", &sinograms);
    for (padding, pad, name, window) in cases {
        let want: Vec<_> = sinograms
            .pages
            .iter()
            .map(|page| back_project(&filter(page, bins, padded(bins), *pad, Some(window)), &scan, Read::Linear))
            .collect();
        for profile in PROFILES {
            let args = format!("--sinograms sin --padding {padding} --filter {name} --profile {profile}");
            let slices = lab.slices(&format!("{args} --overwrite"), "r");
            for (slice, (want, slack)) in slices.pages.iter().zip(&want) {
                let error = relative_rms(slice, want, slack);
                println!("{bins} bins, {args}: {error:.1e}");
                assert!(error <= 1e-5, "{bins} bins, {args}: {error:.2e}");
            }
        }
    }
}

#[test]
fn rows_of_an_odd_width_with_every_padding() {
    let ramp = |_: f64| 1.0;
    check(
        67,
        31,
        &[
            ("edge", Pad::Edge, "ramp", &ramp),
            ("mirror", Pad::Mirror, "ramp", &ramp),
            ("zero", Pad::Zero, "ramp", &ramp),
        ],
    );
}

#[test]
fn filters_beside_the_ramp() {
    let hann = |u: f64| 0.5 + 0.5 * (PI * u).cos();
    let shepp_logan = |u: f64| if u == 0.0 { 1.0 } else { (PI * u / 2.0).sin() / (PI * u / 2.0) };
    check(67, 31, &[("edge", Pad::Edge, "hann", &hann), ("mirror", Pad::Mirror, "shepp-logan", &shepp_logan)]);
}

/// Twice this is far below the next power of two, twice the next just above one.
#[test]
fn rows_just_below_and_above_a_power_of_two() {
    let ramp = |_: f64| 1.0;
    for bins in [70, 129] {
        check(bins, 20, &[("edge", Pad::Edge, "ramp", &ramp)]);
    }
}

/// The padded length is a part of the run: the plan and the report say it, and no profile changes it.
#[test]
fn the_padded_length_is_the_run_s() {
    let lab = Lab::small();
    for profile in PROFILES {
        let args = format!("reconstruct --sinograms sin --profile {profile} --output r --overwrite");
        let (plan, _) = lab.ok(&format!("{args} --dry-run"));
        assert!(plan.contains("rows padded from 32 to 64 bins"), "{plan}");
        lab.ok(&format!("{args} --report r.json"));
        let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
        assert_eq!(report["padded_bins"], 64, "{profile}");
    }
}

/// A trial slice is the volume's picture: however many rows are asked for, what a mode chooses keeps to one rule and to the
/// widest margin of the mode.
#[test]
fn few_rows_are_the_picture_of_many() {
    let lab = Lab::new();
    let (bins, scan) = (48, Scan::even(48, 40, 48));
    let page = |slice: u64| noise(bins * 40, 3 + slice).iter().map(|v| v + 2.0).collect::<Vec<f32>>();
    let sinograms = Pages { width: bins, pages: (0..20).map(page).collect() };
    lab.write("sin", "s", &sinograms);
    for (interpolation, read) in [("linear", Read::Linear), ("nearest", Read::Nearest { tie: TIE })] {
        let filtered = |page: &Vec<f32>| filter(page, bins, padded(bins), Pad::Edge, Some(&|_| 1.0));
        let want: Vec<_> = sinograms.pages.iter().map(|page| back_project(&filtered(page), &scan, read)).collect();
        for profile in PROFILES {
            for rows in [1, 2, 4, 8, 20] {
                let args = format!("--sinograms sin --mode fast --interpolation {interpolation} --profile {profile}");
                let slices = lab.slices(&format!("{args} --rows 0..{rows} --overwrite"), &format!("r{rows}"));
                assert_eq!(slices.pages.len(), rows);
                for (slice, (want, slack)) in slices.pages.iter().zip(&want) {
                    let error = relative_rms(slice, want, slack);
                    assert!(error <= 4e-3, "{args} --rows 0..{rows}: {error:.2e}");
                }
            }
        }
    }
}

/// Oversampling is for those who ask: no profile chooses it, whatever the number of slices.
#[test]
fn no_profile_chooses_another_rule() {
    use fbp::kernel::{Algorithm, Interpolation, Mode, SLICE_MODES};
    use fbp::profile::ProfileStore;
    for (profile, _) in ProfileStore::built_in().unwrap().iter() {
        for &interpolation in Interpolation::ALL {
            for &mode in Mode::ALL {
                for run in [1, 2, 3, 4, 8, 12, 16, 64, 2048] {
                    for slices in SLICE_MODES.map(Some).into_iter().chain([None]) {
                        if let Ok(offer) = profile.select(None, interpolation, mode, slices, run, 2048) {
                            assert_ne!(offer.parameters.algorithm(), Algorithm::Oversample, "{} {run}", profile.name);
                        }
                    }
                }
            }
        }
    }
}

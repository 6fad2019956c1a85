use super::outcome::{Outcome, TimedKernel, forbids, tuning_table};
use super::profile::{TuningRun, compose_profile, tuned_file_stem};
use super::space::shipped_kernel;
use crate::facts::{DeviceFacts, example};
use crate::kernel::{
    Algorithm, Alu, Common, Interpolation, KernelSpec, Mode, Offer, Oversample, Parameters, Problem, Sampler, Standard,
    Storage, Tensor, Texture, Vector,
};
use crate::profile::{Profile, ProfileStore, auto_keys};

fn named(name: &str) -> Profile {
    ProfileStore::built_in().unwrap().named(name).unwrap()
}

fn offer(parameters: Parameters, slices: u32, mode: Mode) -> Offer {
    Offer { interpolation: Interpolation::Linear, mode, slices, parameters }
}

fn spec(offer: &Offer) -> KernelSpec {
    let problem = Problem::new(64, true);
    KernelSpec::new(offer, &named("default"), offer.texels()[0], problem, None)
}

#[test]
fn precise_keeps_its_margin_and_its_rule() {
    let plain = spec(&offer(Parameters::Standard(Standard::default()), 4, Mode::Precise));
    let forbidden = |parameters, interpolation, mode| {
        let other = Offer { interpolation, ..offer(parameters, 4, mode) };
        let shipped = KernelSpec { interpolation, ..plain.clone() };
        forbids(mode, &spec(&other), &shipped, 2048)
    };
    let common = |sampler, storage| Common { sampler, storage, ..Common::default() };
    let standard =
        |sampler, storage| Parameters::Standard(Standard { common: common(sampler, storage), ..Standard::default() });
    use Interpolation::{Linear, Nearest};
    use Mode::{Fast, Precise};
    for (parameters, interpolation, mode, word) in [
        (standard(Sampler::Buffer, Storage::Half), Linear, Precise, "margin"),
        (standard(Sampler::Image, Storage::Float), Linear, Precise, "margin"),
        (standard(Sampler::Image, Storage::Half), Linear, Precise, "margin"),
        (Parameters::Alu(Alu { half_cache: true, ..Alu::default() }), Linear, Precise, "margin"),
        (Parameters::Tensor(Tensor::default()), Linear, Precise, "margin"),
        (Parameters::Texture(Texture::default()), Linear, Precise, "margin"),
        (Parameters::Texture(Texture::default()), Nearest, Precise, "positions"),
        (Parameters::Oversample(Oversample::default()), Linear, Precise, "coarser"),
        (Parameters::Oversample(Oversample::default()), Nearest, Fast, "coarser"),
        (Parameters::Oversample(Oversample::default()), Linear, Fast, "coarser"),
    ] {
        let why = forbidden(parameters.clone(), interpolation, mode);
        assert!(why.as_ref().is_some_and(|why| why.contains(word)), "{parameters:?}: {why:?}");
    }
    for (parameters, interpolation, mode) in [
        (standard(Sampler::Image, Storage::Float), Nearest, Precise),
        (standard(Sampler::Image, Storage::Half), Linear, Fast),
        (Parameters::Alu(Alu::default()), Linear, Precise),
        (Parameters::Tensor(Tensor { split: true, ..Tensor::default() }), Linear, Precise),
    ] {
        assert_eq!(forbidden(parameters.clone(), interpolation, mode), None, "{parameters:?}");
    }
}

fn side(offer: Offer, speed: Option<f64>) -> TimedKernel {
    TimedKernel { offer, kernel: "k".into(), key: format!("{speed:?}"), speed, error: speed.map(|_| 1e-6) }
}

#[test]
fn the_shipped_kernel_stays_unless_another_is_faster() {
    let shipped = offer(Parameters::Vector(Vector::default()), 64, Mode::Precise);
    let other = Offer { slices: 32, ..shipped.clone() };
    for (before, after, gains) in [
        (Some(2.0), Some(3.0), true),
        (Some(2.0), Some(2.0), false),
        (Some(2.0), Some(1.9), false),
        (Some(2.0), None, false),
        (None, Some(1.0), true),
        (None, None, false),
    ] {
        let outcome = Outcome::decide(side(shipped.clone(), before), Some(side(other.clone(), after)));
        assert_eq!(outcome.is_gain(), gains, "{before:?} {after:?}");
        assert!(outcome.gain().is_none_or(|gain| gain >= 1.0));
    }
    assert!(!Outcome::decide(side(shipped, Some(1.0)), None).is_gain());
}

fn tuned_profile(base: &Profile, earlier: Option<&Profile>, outcomes: &[Outcome]) -> Profile {
    let facts = example();
    let run = TuningRun { facts: &facts, version: "1.2.3", date: "2026-01-02", problem: [64, 48, 60], log: "x.jsonl" };
    let profile = compose_profile(base, earlier, outcomes, &run).unwrap();
    assert_eq!(profile.tuned.as_ref().unwrap().keys, auto_keys(&profile, &facts).unwrap());
    let text = toml::to_string_pretty(&profile).unwrap();
    assert_eq!(Profile::parse(&text, "tuned.toml").unwrap(), profile);
    profile
}

#[test]
fn a_gain_replaces_one_kernel_and_its_choice() {
    let cpu = named("cpu");
    let vector = |tile| Parameters::Vector(Vector { tile, ..Vector::default() });
    let (shipped, tuned) = (offer(vector(16), 64, Mode::Precise), offer(vector(32), 32, Mode::Precise));
    let outcome = Outcome::decide(side(shipped.clone(), Some(10.0)), Some(side(tuned.clone(), Some(12.0))));
    let profile = tuned_profile(&cpu, None, &[outcome]);
    assert_eq!(profile.name, "cpu-tuned");
    assert!(profile.source.contains("fbp 1.2.3 on Example GPU 9000, driver 1.0") && profile.source.contains("x.jsonl"));
    assert_eq!(profile.r#match.device, ["Example GPU 9000"]);
    let chosen = |mode| profile.select(None, Interpolation::Linear, mode, None, 1000, 2048).unwrap();
    assert_eq!(chosen(Mode::Precise), tuned);
    assert_eq!(chosen(Mode::Fast), Offer { mode: Mode::Fast, ..shipped.clone() });
    // all other combinations are served as before
    let changed = |o: &Offer| (o.interpolation, o.mode, o.slices) == (tuned.interpolation, tuned.mode, tuned.slices);
    let rest = |p: &Profile| -> Vec<Offer> { p.offers().into_iter().filter(|o| !changed(o)).collect() };
    let (before, after) = (rest(&cpu), rest(&profile));
    assert!(before.len() == after.len() && before.iter().all(|o| after.contains(o)));
    // both were measured; what is known of other kernels stays
    let speeds: Vec<f64> = profile.measured.iter().map(|m| m.gu_per_s).collect();
    assert_eq!(profile.measured.len(), cpu.measured.len());
    assert!(speeds.ends_with(&[12.0, 10.0]), "{speeds:?}");

    // another run of other modes keeps that
    let fast = Offer { mode: Mode::Fast, ..shipped };
    let stays = Outcome::decide(side(fast, Some(9.0)), None);
    let again = tuned_profile(&cpu, Some(&profile), std::slice::from_ref(&stays));
    assert_eq!(again.select(None, Interpolation::Linear, Mode::Precise, None, 1000, 2048).unwrap(), tuned);
    assert_eq!(again.offers().len(), cpu.offers().len());
    let stranger = Profile { name: "other-tuned".into(), ..profile };
    let again = tuned_profile(&cpu, Some(&stranger), &[stays]);
    assert_ne!(again.select(None, Interpolation::Linear, Mode::Precise, None, 1000, 2048).unwrap(), tuned);
}

#[test]
fn another_family_leaves_few_slices_to_the_shipped_kernel() {
    let standard = |slices| offer(Parameters::Standard(Standard::default()), slices, Mode::Precise);
    let base = named("default");
    let shipped = shipped_kernel(&base, Interpolation::Linear, Mode::Precise, &|_| true).unwrap();
    assert_eq!(shipped.parameters.algorithm(), Algorithm::Standard);
    let vector = offer(Parameters::Vector(Vector::default()), 32, Mode::Precise);
    let outcome = Outcome::decide(side(shipped.clone(), Some(4.0)), Some(side(vector.clone(), Some(10.0))));
    let profile = tuned_profile(&base, None, &[outcome]);
    let chosen = |run| profile.select(None, Interpolation::Linear, Mode::Precise, None, run, 2048).unwrap();
    assert_eq!(chosen(12).parameters.algorithm(), standard(1).parameters.algorithm());
    assert_eq!(chosen(13), vector);
}

#[test]
fn file_names_hold_device_and_driver() {
    let facts = example();
    let stem = tuned_file_stem(&facts);
    assert!(stem.starts_with("example-gpu-9000-"), "{stem}");
    assert_ne!(stem, tuned_file_stem(&DeviceFacts { driver: "2.0".into(), ..facts.clone() }));
    let odd = DeviceFacts { name: "///".into(), ..facts };
    assert!(tuned_file_stem(&odd).chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
}

#[test]
fn the_table_tells_gains() {
    let shipped = offer(Parameters::Vector(Vector::default()), 64, Mode::Precise);
    let tuned = Offer { slices: 32, ..shipped.clone() };
    let gain = Outcome::decide(side(shipped.clone(), Some(10.0)), Some(side(tuned, Some(12.5))));
    let stays = Outcome::decide(side(Offer { mode: Mode::Fast, ..shipped }, Some(10.0)), None);
    let text = tuning_table(&[gain, stays]);
    let cells: Vec<Vec<&str>> = text.lines().map(|l| l.split('|').map(str::trim).collect()).collect();
    assert_eq!(
        cells[2][3..=9],
        ["vector, 64 slices", "10.0", "vector, 32 slices", "12.5", "1.25", "1.0e-6", "slices = 32"]
    );
    assert_eq!(cells[3][5..=9], ["vector, 64 slices", "10.0", "1.00", "1.0e-6", "-"]);
}

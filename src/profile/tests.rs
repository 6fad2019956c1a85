use super::*;
use crate::facts::example;
use crate::kernel::{Common, KernelSpec, Problem, Standard, Texel};

fn shipped() -> ProfileStore {
    ProfileStore::built_in().unwrap()
}

fn default_text() -> &'static str {
    include_str!("../../configs/default.toml")
}

#[test]
fn every_shipped_profile_is_legal_and_round_trips() {
    let store = shipped();
    for (profile, _) in store.iter() {
        let text = toml::to_string(profile).unwrap();
        assert_eq!(&Profile::parse(&text, &profile.name).unwrap(), profile);
    }
    let mut names: Vec<&str> = store.iter().map(|(p, _)| p.name.as_str()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "names are unique");
}

#[test]
fn every_shipped_profile_serves_every_auto_choice() {
    for (profile, _) in shipped().iter() {
        for &interpolation in Interpolation::ALL {
            // profiles may do without exact interpolation
            if interpolation == Interpolation::Exact && profile.auto.iter().all(|a| a.interpolation != interpolation) {
                continue;
            }
            for &mode in Mode::ALL {
                for run_slices in [1, 2, 3, 5, 13, 40, 1000] {
                    let offer = profile.select(None, interpolation, mode, None, run_slices, 2048);
                    let offer = offer.unwrap_or_else(|e| panic!("{}: {e}", profile.name));
                    assert!(offer.slices as usize <= run_slices.next_power_of_two().max(16));
                }
            }
        }
    }
}

#[test]
fn matching_prefers_the_special_rule_and_explains_itself() {
    let mut facts = example();
    let store = shipped();
    let choice = store.for_device(None, &facts).unwrap();
    assert_eq!((choice.profile.name.as_str(), choice.reason.as_str()), ("default", "it matches every device"));
    facts.kind = DeviceKind::Cpu;
    let choice = store.for_device(None, &facts).unwrap();
    assert_eq!((choice.profile.name.as_str(), choice.reason.as_str()), ("cpu", "type is cpu"));

    let mut mine = store.named("default").unwrap();
    mine.name = "mine".into();
    mine.r#match.device = vec!["gpu 9".into()];
    let mut vendor = mine.clone();
    vendor.r#match = Match { vendor: vec!["example".into()], ..Match::default() };
    let choice = choose(&[vendor.clone(), mine, store.named("cpu").unwrap()], &facts).unwrap();
    assert_eq!(choice.reason, "name contains `gpu 9`");
    vendor.r#match.kind = vec![DeviceKind::Gpu];
    assert!(choose(&[vendor], &facts).is_none(), "all conditions must hold");
    assert_eq!(store.for_device(Some("cpu"), &facts).unwrap().reason, "--profile cpu");
    assert!(store.for_device(Some("nonesuch"), &facts).is_err());
}

#[test]
fn malformed_profiles_say_what_is_wrong() {
    let cases = [
        ("schema = 2", "schema = 9", "this version reads schema 2"),
        (
            "mode = \"fast\"\nalgorithm = \"standard\"",
            "mode = \"fast\"\nalgorithm = \"oversample\"",
            "--algorithm oversample",
        ),
        ("schema = 2", "schema = 2\ncolour = \"red\"", "unknown field `colour`"),
        ("name = \"default\"", "name = \"My Profile\"", "lower-case"),
        ("sampler = \"image\"", "sampler = \"film\"", "unknown variant `film`"),
        ("storage = \"half\" }", "storage = \"half\", unrol = 4 }", "unknown field `unrol`"),
        ("slices = [1, 2, 4]", "slices = [3]", "slices 3 is not one of"),
        ("[kernel.standard]", "[kernel.alu]\n[kernel.standard]", "more than one family"),
        ("images = \"transform\"", "radices = [2, 17]", "unknown field `radices`"),
        ("work-group = [16, 16]", "work-group = [64, 64]", "at most 1024 work-items"),
        ("slices = [1, 2, 4, 8, 16]", "slices = [32]", "only tensor and vector kernels support"),
        (
            "interpolation = \"nearest\"\nmode = \"fast\"",
            "interpolation = \"linear\"\nmode = \"fast\"",
            "exactly one [[auto]] entry without up-to and up-to-size",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(default_text().contains(from), "{from}");
        let text = default_text().replacen(from, to, 1);
        let message = Profile::parse(&text, "mine.toml").unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("mine.toml"), "{message}");
    }
}

#[test]
fn few_slices_may_have_their_own_choice() {
    let mut profile = shipped().named("default").unwrap();
    let few = |up_to, slices| Auto {
        interpolation: Interpolation::Linear,
        mode: Mode::Precise,
        algorithm: Algorithm::Standard,
        slices,
        up_to,
        up_to_size: None,
        source: None,
    };
    profile.auto.retain(|a| (a.interpolation, a.mode) != (Interpolation::Linear, Mode::Precise));
    profile.auto.extend([few(Some(8), 2), few(None, 16), few(Some(1), 1)]);
    profile.check().unwrap();
    for (run_slices, slices) in [(1, 1), (2, 2), (8, 2), (9, 16), (1000, 16)] {
        let offer = profile.select(None, Interpolation::Linear, Mode::Precise, None, run_slices, 2048).unwrap();
        assert_eq!(offer.slices, slices, "{run_slices}");
    }
    // more than the automatic kernel has, fewer than another has
    let cpu = shipped().named("cpu").unwrap();
    let asked = |slices| cpu.select(None, Interpolation::Linear, Mode::Precise, Some(slices), 100, 2048).unwrap();
    assert_eq!(asked(2).parameters.algorithm(), Algorithm::Standard);
    assert_eq!(asked(32).parameters.algorithm(), Algorithm::Vector);
    profile.auto.push(few(Some(8), 4));
    assert!(profile.check().unwrap_err().to_string().contains("different up-to"));
}

#[test]
fn small_slices_may_have_their_own_choice() {
    let mut profile = shipped().named("default").unwrap();
    let auto = |up_to, up_to_size, slices| Auto {
        interpolation: Interpolation::Linear,
        mode: Mode::Precise,
        algorithm: Algorithm::Standard,
        slices,
        up_to,
        up_to_size,
        source: None,
    };
    profile.auto.retain(|a| (a.interpolation, a.mode) != (Interpolation::Linear, Mode::Precise));
    profile.auto.extend([auto(None, None, 16), auto(Some(8), None, 8), auto(None, Some(512), 4)]);
    profile.auto.push(auto(Some(1), Some(512), 1));
    profile.check().unwrap();
    for (run_slices, size, slices) in [
        (1000, 2048, 16),
        (8, 2048, 8),
        // the size decides first
        (1000, 512, 4),
        (8, 512, 4),
        (1, 512, 1),
        (1, 513, 1),
        (9, 513, 16),
    ] {
        let offer = profile.select(None, Interpolation::Linear, Mode::Precise, None, run_slices, size).unwrap();
        assert_eq!(offer.slices, slices, "{run_slices} {size}");
    }
    let text = toml::to_string(&profile).unwrap();
    assert!(text.contains("up-to-size = 512"), "{text}");
    assert_eq!(Profile::parse(&text, "mine").unwrap(), profile);
    profile.auto.push(auto(None, Some(512), 2));
    assert!(profile.check().unwrap_err().to_string().contains("different up-to or up-to-size"));
    profile
        .auto
        .retain(|a| a.up_to_size.is_some() || a.interpolation != Interpolation::Linear || a.mode != Mode::Precise);
    assert!(profile.check().unwrap_err().to_string().contains("exactly one"));
}

#[test]
fn few_and_small_slices_have_the_kernel_that_was_measured_for_them() {
    let hopper = shipped().named("nvidia-hopper").unwrap();
    for (interpolation, mode, run_slices, size, algorithm, slices) in [
        (Interpolation::Linear, Mode::Precise, 1, 256, Algorithm::Alu, 1),
        (Interpolation::Linear, Mode::Precise, 2, 256, Algorithm::Tensor, 16),
        (Interpolation::Linear, Mode::Precise, 4, 257, Algorithm::Alu, 4),
        (Interpolation::Linear, Mode::Precise, 5, 512, Algorithm::Tensor, 16),
        (Interpolation::Linear, Mode::Precise, 12, 513, Algorithm::Alu, 4),
        (Interpolation::Nearest, Mode::Precise, 1, 256, Algorithm::Tensor, 16),
        (Interpolation::Nearest, Mode::Precise, 1, 257, Algorithm::Alu, 1),
        (Interpolation::Linear, Mode::Fast, 1, 256, Algorithm::Texture, 1),
        (Interpolation::Linear, Mode::Fast, 8, 200, Algorithm::Texture, 4),
        (Interpolation::Linear, Mode::Fast, 9, 256, Algorithm::Tensor, 16),
        (Interpolation::Linear, Mode::Fast, 1, 512, Algorithm::Alu, 1),
        (Interpolation::Linear, Mode::Fast, 2, 512, Algorithm::Texture, 2),
        (Interpolation::Linear, Mode::Fast, 2, 513, Algorithm::Alu, 2),
        (Interpolation::Nearest, Mode::Fast, 1, 256, Algorithm::Texture, 1),
        (Interpolation::Nearest, Mode::Fast, 1, 257, Algorithm::Alu, 1),
        (Interpolation::Linear, Mode::Fast, 500, 256, Algorithm::Tensor, 64),
    ] {
        let offer = hopper.select(None, interpolation, mode, None, run_slices, size).unwrap();
        let chosen = (offer.parameters.algorithm(), offer.slices);
        assert_eq!(chosen, (algorithm, slices), "{interpolation} {mode}, {run_slices} of {size}");
    }
}

#[test]
fn selection_says_what_there_is() {
    let profile = shipped().named("default").unwrap();
    let message =
        profile.select(None, Interpolation::Nearest, Mode::Fast, Some(16), 100, 2048).unwrap_err().to_string();
    assert!(message.contains("[1, 2, 4]") && message.contains("--slices-per-pass"), "{message}");
}

/// Registers of Tables 12 and 19 and of 6.9 and 7.2 of the paper, and the occupancy that they have there.
#[test]
fn registers_are_those_of_the_paper() {
    let store = shipped();
    let held = |name: &str| store.named(name).unwrap().throughput.unwrap().residency.unwrap();
    for (profile, occupancy, registers) in [
        // Table 12; 7.2: "72 registers are used per thread" at 43 %, as shared memory allows
        ("nvidia-kepler-gk110", 100, 32),
        ("nvidia-kepler-gk110", 50, 64),
        ("nvidia-kepler-gk110", 43, 72),
        ("nvidia-kepler-gk110", 37, 80),
        // Table 19
        ("nvidia-pascal", 100, 32),
        ("nvidia-pascal", 75, 40),
        ("nvidia-pascal", 62, 48),
        ("nvidia-pascal", 50, 64),
        // by 64 registers a warp, 2 an item
        ("nvidia-fermi", 100, 20),
        ("nvidia-fermi", 75, 28),
        ("nvidia-fermi", 50, 42),
        ("nvidia-gt200", 75, 20),
    ] {
        assert_eq!(held(profile).registers_for(occupancy), registers, "{profile} {occupancy} %");
    }
    for (profile, registers, warps) in [
        // Table 12 has 38 registers at 75 %, Table 19 40 at 75 % and 48 at 62 %
        ("nvidia-kepler-gk110", 38, 48),
        ("nvidia-kepler-gk110", 72, 28),
        ("nvidia-kepler-gk110", 74, 24),
        ("nvidia-pascal", 40, 48),
        ("nvidia-pascal", 42, 40),
        ("nvidia-pascal", 48, 40),
        ("nvidia-fermi", 42, 24),
        ("nvidia-fermi", 43, 22),
    ] {
        assert_eq!(held(profile).warps_for(registers), warps, "{profile} {registers}");
    }
    let asked = |name: &str, occupancy| {
        let profile = store.named(name).unwrap();
        let common = Common { occupancy, ..Common::default() };
        let parameters = Standard { common, ..Standard::default() }.into();
        let offer = Offer { interpolation: Interpolation::Linear, mode: Mode::Precise, slices: 1, parameters };
        KernelSpec::new(&offer, &profile, Texel::Buffer, Problem::new(64, true), None)
    };
    // more registers than an item can have are not asked for, and none where no option limits them
    assert_eq!(asked("nvidia-kepler-gk104", 37).registers, Some(63));
    assert_eq!((asked("nvidia-pascal", 0).registers, asked("amd-gcn1", 50).registers), (None, None));
    assert!(asked("nvidia-kepler-gk110", 43).generate().unwrap().options.ends_with("-cl-nv-maxrregcount=72"));
}

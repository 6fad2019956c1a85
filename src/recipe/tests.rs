use super::*;
use crate::center::Method;
use crate::cli::Text;
use crate::cli::{InputArgs, ScanArgs, StepArgs};
use crate::job::Job;
use crate::sink::Dtype;
use crate::steps::{Air, Outliers, Stripes, Unsharp};
use crate::units::{Length, parse_length};
use std::sync::atomic::AtomicBool;

static GO_ON: AtomicBool = AtomicBool::new(false);

fn args() -> ReconstructArgs {
    ReconstructArgs { input: sinograms(), output: Some("r".into()), ..Default::default() }
}

fn sinograms() -> InputArgs {
    InputArgs { sinograms: Some("s".into()), ..Default::default() }
}

fn message(args: ReconstructArgs) -> String {
    let error = Job::new(&args).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string()
}

#[test]
fn centers() {
    for (text, center) in [
        ("12.5", Center::At(12.5)),
        (" auto ", Center::Search(None)),
        ("auto:vo", Center::Search(Some(Method::Vo))),
        ("auto:overlap", Center::Search(Some(Method::Overlap))),
    ] {
        assert_eq!(Center::parse(text).unwrap(), center);
    }
    for wrong in ["", "nan", "inf", "auto:", "auto:eye", "middle"] {
        assert_eq!(Center::parse(wrong).unwrap_err().exit_code(), 2, "{wrong}");
    }
}

#[test]
fn spans() {
    let list = |text: &str, n| Span::parse(text, "--rows").and_then(|s| s.within(n, "--rows", "slices"));
    assert_eq!(list("2..5", 9).unwrap(), [2, 3, 4]);
    assert_eq!(list("2..=5", 9).unwrap(), [2, 3, 4, 5]);
    assert_eq!(list("1..8:3", 9).unwrap(), [1, 4, 7]);
    assert_eq!(list("7..", 9).unwrap(), [7, 8]);
    assert_eq!(list("..2", 9).unwrap(), [0, 1]);
    assert_eq!(list("4", 9).unwrap(), [4]);
    for bad in ["5..5", "6..2", "a..b", "1..2:0", "-1..3", "3..10", "9.."] {
        let error = list(bad, 9).unwrap_err();
        assert!(error.to_string().contains("--rows"), "{error}");
    }
    let marks = Ranges::parse("0,2..4", "--exclude").unwrap().marks(5, "--exclude", "projections");
    assert_eq!(marks.unwrap(), [true, false, true, true, false]);
}

#[test]
fn a_colon_without_two_points_is_refused_everywhere_with_the_right_spelling() {
    let args = |flag: &str, range: &str| {
        let text = Some(Text::from(range));
        let mut scan = ScanArgs::default();
        let mut rows = None;
        match flag {
            "--rows" => rows = text,
            "--exclude" => scan.exclude = text,
            _ => scan.projection_range = text,
        }
        ReconstructArgs { input: sinograms(), scan, rows, ..args() }
    };
    for (range, right) in [
        ("4:10", "write 4..10"),
        ("0:90", "write 0..90"),
        (" 4 : 10 ", "write 4..10"),
        ("4:", "write 4.."),
        (":10", "write ..10"),
        ("0:90:2", "write 0..90:2"),
        ("::2", "write ..:2"),
        ("-5:", "write A..B"),
    ] {
        for flag in ["--rows", "--exclude", "--projection-range"] {
            let refused = message(args(flag, range));
            for word in [flag, range, "no `..`", right] {
                assert!(refused.contains(word), "{flag} {range}: {refused}");
            }
        }
    }
    assert!(message(args("--exclude", "1,4..6,7:9")).contains("write 7..9"));
    assert!("4:10".parse::<Span>().is_err(), "in a run file, too");
    for right in ["4..10:2", "4..:2", "..:2", "4..=10:2", "4..10", "4"] {
        assert!(Span::parse(right, "--rows").is_ok(), "{right}");
    }
}

#[test]
fn sizes() {
    assert_eq!(parse_size("8G", "--memory").unwrap(), 8 << 30);
    assert_eq!(parse_size("1.5MiB", "--memory").unwrap(), 3 << 19);
    assert_eq!(parse_size("700", "--memory").unwrap(), 700);
    for bad in ["", "-1G", "eight", "0", "nan"] {
        assert!(parse_size(bad, "--memory").is_err(), "{bad}");
    }
}

#[test]
fn wrong_values_name_their_flag() {
    assert!(message(ReconstructArgs { input: InputArgs::default(), ..args() }).contains("--sinograms"));
    assert!(message(ReconstructArgs { output: None, ..args() }).contains("--output"));
    let read = |input| message(ReconstructArgs { input, ..args() });
    assert!(read(InputArgs { projections: Some("p".into()), ..sinograms() }).contains("one of them"));
    assert!(read(InputArgs { flats: Some("f".into()), ..sinograms() }).contains("--flats"));
    let darks = InputArgs { projections: Some("p".into()), darks: Some("d".into()), ..Default::default() };
    assert!(read(darks).contains("needs --flats"));
    for bad in ["nan", "inf", "left", "auto:guess"] {
        assert!(message(ReconstructArgs { center: Some(bad.into()), ..args() }).contains("--center"));
    }
    assert!(message(ReconstructArgs { filter_cutoff: Some(2.0), ..args() }).contains("--filter-cutoff"));
    assert!(message(ReconstructArgs { roi: Some("1,2,0,4".into()), ..args() }).contains("--roi"));
    assert!(message(ReconstructArgs { pixel_size: Some("0.5 inch".into()), ..args() }).contains("--pixel-size"));
    let u8 = Some(Dtype::U8);
    assert!(message(ReconstructArgs { range: Some("2,1".into()), dtype: u8, ..args() }).contains("--range"));
    // floats have no range
    for dtype in [None, Some(Dtype::F32), Some(Dtype::F16)] {
        for (range, percentile) in [(Some("0,1".into()), None), (None, Some("1,99".into()))] {
            let told = message(ReconstructArgs { range, percentile, dtype, ..args() });
            assert!(told.contains("add --dtype u16 or u8"), "{told}");
        }
    }
    assert!(message(ReconstructArgs { percentile: Some("1,101".into()), ..args() }).contains("--percentile"));
    assert!(message(ReconstructArgs { slices_per_pass: Some("3".into()), ..args() }).contains("--slices-per-pass"));
    assert!(message(ReconstructArgs { algorithm: Some("magic".into()), ..args() }).contains("--algorithm"));
    let scan = ScanArgs { overall_angle: Some(f64::NAN), ..Default::default() };
    assert!(message(ReconstructArgs { scan, ..args() }).contains("--overall-angle"));
}

#[test]
fn lengths_have_units() {
    let parse = |text| parse_length(text, "--pixel-size");
    assert_eq!(parse("0.65um").unwrap(), Length { value: 0.65, unit: "um".into() });
    assert_eq!(parse("1e-3 mm").unwrap(), Length { value: 1e-3, unit: "mm".into() });
    assert_eq!(parse("2").unwrap().value, 2.0);
    assert_eq!((parse("5cm").unwrap().metres(), parse("2").unwrap().metres()), (Some(0.05), None));
}

fn prepared(steps: StepArgs) -> ReconstructArgs {
    ReconstructArgs {
        input: InputArgs {
            projections: Some("p".into()),
            flats: Some("f".into()),
            darks: Some("d".into()),
            ..Default::default()
        },
        pixel_size: Some("1um".into()),
        steps,
        ..args()
    }
}

fn paganin() -> StepArgs {
    StepArgs {
        phase: Some("paganin".into()),
        energy_kev: Some(20.0),
        distance: Some("10cm".into()),
        delta_beta: Some(1000.0),
        ..Default::default()
    }
}

#[test]
fn steps_are_read() {
    let steps = StepArgs {
        dark_scale: Some(0.5),
        normalize_air: Some("10,0".into()),
        remove_outliers: Some("5, 300,both".into()),
        stripes: vec!["dead,wavelet:level=4,sigma=1.5".into(), "sorting".into()],
        unsharp: Some("1.5,2".into()),
        ..paganin()
    };
    let steps = Job::new(&prepared(steps)).unwrap().recipe.steps;
    assert_eq!(steps.fields.dark_scale, Some(0.5));
    assert_eq!(steps.air, Some(Air::Sides(10, 0)));
    assert_eq!(steps.outliers, Some(Outliers::new(5, 300.0, true)));
    assert_eq!(
        steps.stripes,
        [
            Stripes::Dead { snr: 3.0, size: 51 },
            Stripes::Wavelet { moments: 5, level: Some(4), sigma: 1.5 },
            Stripes::Sorting { size: 21 }
        ]
    );
    let phase = steps.phase.unwrap();
    assert!((phase.length - 22.21).abs() < 0.01);
    assert_eq!(phase.unsharp, Some(Unsharp { sigma: 1.5, amount: 2.0 }));
}

#[test]
fn wrong_steps_name_their_flag() {
    let none = StepArgs::default;
    for (steps, words) in [
        (StepArgs { dark_scale: Some(-1.0), ..none() }, "--dark-scale"),
        (StepArgs { dark_scale: Some(f64::NAN), ..none() }, "--dark-scale"),
        (StepArgs { normalize_air: Some("0,0".into()), ..none() }, "--normalize-air"),
        (StepArgs { normalize_air: Some("1,2,3".into()), ..none() }, "--normalize-air"),
        (StepArgs { normalize_air: Some("1,2,0,3".into()), ..none() }, "--normalize-air"),
        (StepArgs { double_flat: Some("".into()), ..none() }, "--double-flat: `` is not SIGMA"),
        (StepArgs { double_flat: Some("0".into()), ..none() }, "above 0 and up to 1000, or all"),
        (StepArgs { double_flat: Some("-3".into()), ..none() }, "--double-flat"),
        (StepArgs { double_flat: Some("nan".into()), ..none() }, "--double-flat"),
        (StepArgs { double_flat: Some("1001".into()), ..none() }, "--double-flat"),
        (StepArgs { double_flat: Some("scan.h5".into()), ..none() }, "an argument after it is taken as SIGMA"),
        (StepArgs { beam_hardening: Some("".into()), ..none() }, "--beam-hardening"),
        (StepArgs { beam_hardening: Some("0.1,x".into()), ..none() }, "--beam-hardening: `0.1,x` is not A2,A3"),
        (StepArgs { beam_hardening: Some("nan".into()), ..none() }, "--beam-hardening"),
        (StepArgs { beam_hardening: Some("1,2,3,4,5,6,7,8,9".into()), ..none() }, "1 to 8 factors"),
        (StepArgs { beam_hardening: Some("2e6".into()), ..none() }, "within -1000000..1000000"),
        (StepArgs { remove_outliers: Some("4,100".into()), ..none() }, "--remove-outliers"),
        (StepArgs { remove_outliers: Some("3".into()), ..none() }, "--remove-outliers"),
        (StepArgs { remove_outliers: Some("3,nan".into()), ..none() }, "--remove-outliers"),
        (StepArgs { stripes: vec!["rings".into()], ..none() }, "--stripes: `rings` is not one of sorting"),
        (StepArgs { stripes: vec!["".into()], ..none() }, "--stripes"),
        (StepArgs { stripes: vec!["sorting:size=4".into()], ..none() }, "size=4: expected an odd number"),
        (StepArgs { stripes: vec!["sorting:size=5,size=7".into()], ..none() }, "twice"),
        (StepArgs { stripes: vec!["sorting:5".into()], ..none() }, "key=value"),
        (StepArgs { stripes: vec!["mean:size=5".into()], ..none() }, "unknown parameter `size`; use sigma, blocks"),
        (StepArgs { stripes: vec!["wavelet:wavelet=sym4".into()], ..none() }, "db1 to db10"),
        (StepArgs { stripes: vec!["large:drop=1".into()], ..none() }, "0 to 0.8"),
        (StepArgs { stripes: vec!["titarenko:alpha=nan".into()], ..none() }, "alpha=nan"),
        (StepArgs { phase: Some("tie".into()), ..paganin() }, "phase"),
        (StepArgs { energy_kev: None, ..paganin() }, "--energy-kev"),
        (StepArgs { energy_kev: Some(0.0), ..paganin() }, "--energy-kev"),
        (StepArgs { distance: None, ..paganin() }, "--distance"),
        (StepArgs { distance: Some("10".into()), ..paganin() }, "has no unit"),
        (StepArgs { distance: Some("10km".into()), ..paganin() }, "unknown unit"),
        (StepArgs { distance: Some("1000m".into()), ..paganin() }, "check their units"),
        (StepArgs { delta_beta: Some(-3.0), ..paganin() }, "--delta-beta"),
        (StepArgs { unsharp: Some("0,1".into()), ..paganin() }, "--unsharp"),
        (StepArgs { phase: None, ..paganin() }, "belongs to --phase"),
    ] {
        let text = message(prepared(steps));
        assert!(text.contains(words), "{text}");
    }
    let with = |steps| ReconstructArgs { steps, ..args() };
    assert!(message(with(paganin())).contains("--phase"));
    let outliers = StepArgs { remove_outliers: Some("3,100".into()), ..none() };
    assert!(message(with(outliers)).contains("--remove-outliers"));
    let double_flat = StepArgs { double_flat: Some("20".into()), ..none() };
    assert!(Job::new(&prepared(double_flat.clone())).is_ok());
    assert!(message(with(double_flat.clone())).contains("--double-flat: works on projections"));
    let input = InputArgs { projections: Some("p".into()), ..Default::default() };
    assert!(message(ReconstructArgs { input, ..with(double_flat) }).contains("needs --flats or --minus-log"));
    let hardening = StepArgs { beam_hardening: Some("0.1,-0.02".into()), ..none() };
    assert!(Job::new(&with(hardening.clone())).is_ok());
    let transmissions = InputArgs { no_minus_log: true, ..prepared(none()).input };
    let transmissions = ReconstructArgs { input: transmissions, ..prepared(hardening) };
    assert!(message(transmissions).contains("--no-minus-log leaves transmissions"));
    let air = StepArgs { normalize_air: Some("3,4".into()), ..none() };
    assert!(message(with(air.clone())).contains("needs --flats or --minus-log"));
    let input = InputArgs { minus_log: true, ..sinograms() };
    assert!(Job::new(&ReconstructArgs { input, ..with(air) }).is_ok());
    assert!(message(ReconstructArgs { pixel_size: Some("2".into()), ..prepared(paganin()) }).contains("--pixel-size"));
}

#[test]
fn steps_in_run_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.toml");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        merge(ReconstructArgs { config: Some(path.clone()), output: Some("r".into()), ..Default::default() }, &GO_ON)
    };
    let merged = read("sinograms = \"a\"\nstripes = \"dead,sorting:size=31\"\nenergy-kev = 20\n").unwrap();
    assert_eq!(merged.steps.stripes, ["dead,sorting:size=31".into()]);
    assert_eq!(merged.steps.energy_kev, Some(20.0));
    let merged = read("sinograms = \"a\"\nstripes = [\"dead\", \"mean\"]\n").unwrap();
    assert_eq!(Job::new(&merged).unwrap().recipe.steps.stripes.len(), 2);
    let again = read(&run_file(&merged).unwrap()).unwrap();
    assert_eq!(again, merged);
    assert!(read("stripe = \"dead\"").unwrap_err().to_string().contains("`stripes`"));
}

#[test]
fn flags_win_over_the_run_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.toml");
    std::fs::write(&path, "sinograms = \"a\"\ncenter = 31.5\nrows = [1]\nangles = \"x\"\nfilter = \"hann\"\n").unwrap();
    let flags = ReconstructArgs {
        config: Some(path.clone()),
        filter: Some(Filter::Parzen),
        scan: ScanArgs { overall_angle: Some(360.0), ..Default::default() },
        output: Some("r".into()),
        ..Default::default()
    };
    let merged = merge(flags, &GO_ON).unwrap();
    assert_eq!(merged.center, Some("31.5".into()));
    assert_eq!(merged.filter, Some(Filter::Parzen));
    assert_eq!((merged.scan.angles.clone(), merged.scan.overall_angle), (None, Some(360.0)));
    // what is saved is read back as the same run
    std::fs::write(&path, run_file(&merged).unwrap()).unwrap();
    let again = merge(ReconstructArgs { config: Some(path), ..Default::default() }, &GO_ON).unwrap();
    assert_eq!(ReconstructArgs { config: None, ..again }, ReconstructArgs { config: None, ..merged });
}

#[test]
fn unknown_keys_get_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.toml");
    for (text, hint) in [("algoritm = \"alu\"", "`algorithm`"), ("zzzzzzzzzzzz = 1", "fbp reconstruct --help")] {
        std::fs::write(&path, text).unwrap();
        let error = merge(ReconstructArgs { config: Some(path.clone()), ..Default::default() }, &GO_ON).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(hint), "{error}");
    }
}

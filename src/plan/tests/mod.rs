mod short_memory;

use super::request::sum;
use super::*;
use crate::cli::{InputArgs, ReconstructArgs};
use crate::error::{Error, Result};
use crate::facts;
use crate::facts::DeviceFacts;
use crate::facts::{DeviceKind, example};
use crate::geometry::Cut;
use crate::job::Job;
use crate::kernel::StepBackend;
use crate::kernel::{Algorithm, Interpolation, Mode};
use crate::kernel::{Positions, Texel};
use crate::known::KnownFailures;
use crate::operations::{ImageFilterForm, ImageSteps, RotationForm, RowBlocks};
use crate::profile::Choice;
use crate::profile::{MeasuredSpeed, ProfileStore};
use crate::sink::Dtype;
use crate::source::{StoredRows, StoredSamples};

fn job(change: impl FnOnce(&mut ReconstructArgs)) -> Job {
    let input = InputArgs { sinograms: Some("s".into()), ..Default::default() };
    let mut args = ReconstructArgs { input, output: Some("r".into()), ..Default::default() };
    change(&mut args);
    Job::new(&args).unwrap()
}

fn stack() -> StackShape {
    StackShape { slices: 100, projections: 180, bins: 256, binning: 1, angles: None, shifts: None, weights: None }
}

fn known() -> KnownFailures {
    KnownFailures::built_in().unwrap()
}

fn nothing(known: &KnownFailures) -> Avoid<'_> {
    Avoid { known, refused: &[] }
}

/// Plans a job with so many bytes of the host's memory.
fn planned(job: &Job, scan: &Scan, choice: &Choice, facts: &DeviceFacts, host: u64, avoid: Avoid) -> Result<Plan> {
    let memory = Memory { host, device: job.execution.device_memory, devices: 1 };
    let self_test = !job.execution.skip_self_test;
    Plan::new(&Request {
        recipe: &job.recipe,
        self_test,
        keeps_values: false,
        histogram: false,
        scan,
        choice,
        facts,
        memory,
        avoid,
    })
}

/// Plans a run with a histogram, and with values of slices on the host or without.
fn counting(job: &Job, facts: &DeviceFacts, keeps_values: bool) -> Plan {
    let (scan, known) = (Scan::new(job, &stack()).unwrap(), known());
    let choice = ProfileStore::built_in().unwrap().for_device(Some("default"), facts).unwrap();
    let memory = Memory { host: 8 << 30, device: job.execution.device_memory, devices: 1 };
    let request = Request {
        recipe: &job.recipe,
        self_test: false,
        keeps_values,
        histogram: true,
        scan: &scan,
        choice: &choice,
        facts,
        memory,
        avoid: nothing(&known),
    };
    let plan = Plan::new(&request).unwrap();
    assert!(sum(&plan.device_bytes) <= memory.device.unwrap_or(u64::MAX), "{:?}", plan.device_bytes);
    assert_eq!(plan.device_bytes.iter().any(|b| b.what == "histograms" && b.bytes > 0), plan.counts_values);
    plan
}

#[test]
fn devices_count_what_they_are_able_to() {
    let single = example();
    let double = DeviceFacts { extensions: vec!["cl_khr_fp64".into()], ..example() };
    let job_with = |dtype: Option<Dtype>, memory: Option<&str>| {
        job(|a| {
            a.dtype = dtype;
            a.range = dtype.filter(|dtype| dtype.is_integer()).map(|_| "0,1".into());
            a.device_memory = memory.map(Into::into);
        })
    };
    for (dtype, facts, keeps_values, encodes, counts) in [
        (None, &double, false, false, true),
        (None, &single, false, false, false),
        (Some(Dtype::U16), &double, false, true, true),
        (Some(Dtype::U16), &double, true, false, true),
        (Some(Dtype::F16), &single, false, false, false),
        // in the memory of the host
        (None, &DeviceFacts { kind: DeviceKind::Cpu, ..double.clone() }, false, false, false),
    ] {
        let plan = counting(&job_with(dtype, None), facts, keeps_values);
        let slices = if encodes { StepBackend::Device } else { StepBackend::Host };
        assert_eq!((plan.steps.slices, plan.counts_values), (slices, counts), "{dtype:?} {keeps_values}");
    }
    // values are finished where they are
    let plan = counting(&job(|a| a.mask = Some(0.9)), &single, true);
    assert_eq!(plan.steps.slices, StepBackend::Device);
    // what does not fit beside the kernels is done by the host, and changes nothing else
    let job = |memory: u64| job_with(Some(Dtype::U16), Some(&memory.to_string()));
    let least = (8..100).map(|i| i << 16).find(|&memory| counting(&job(memory), &double, false).counts_values).unwrap();
    let [with, without] = [least, least - (1 << 16)].map(|memory| counting(&job(memory), &double, false));
    assert!(!without.counts_values && without.steps.slices == StepBackend::Host);
    assert_eq!((with.steps.rows, with.spec), (without.steps.rows, without.spec));
}

fn plan(job: &Job, facts: &DeviceFacts, host: u64) -> Result<Plan> {
    let scan = Scan::new(job, &stack())?;
    let choice = ProfileStore::built_in()?.for_device(Some("default"), facts)?;
    planned(job, &scan, &choice, facts, host, nothing(&known()))
}

#[test]
fn chunks_are_whole_passes_within_both_budgets() {
    let facts = example();
    for (device, host) in [("1G", 8u64 << 30), ("40M", 8 << 30), ("1G", 20 << 20), ("16M", 10 << 20)] {
        let job = job(|a| a.device_memory = Some(device.into()));
        let plan = plan(&job, &facts, host).unwrap();
        assert_eq!(plan.spec.slices, 4);
        assert_eq!(plan.chunk % 4, 0, "{device} {host}");
        let total: u64 = plan.device_bytes.iter().map(|b| b.bytes).sum();
        assert!(total <= job.execution.device_memory.unwrap() && plan.host_bytes <= host, "{device} {host} {total}");
    }
}

#[test]
fn what_cannot_fit_is_said() {
    let message = plan(&job(|a| a.device_memory = Some("50K".into())), &example(), 1 << 30).unwrap_err();
    assert_eq!(message.exit_code(), 4);
    assert!(message.to_string().contains("--slices-per-pass"), "{message}");
    let message = plan(&job(|_| {}), &example(), 1 << 10).unwrap_err();
    assert_eq!(message.exit_code(), 2);
    assert!(message.to_string().contains("--memory"), "{message}");
    let small = DeviceFacts { max_work_group: 128, ..example() };
    assert_eq!(plan(&job(|_| {}), &small, 1 << 30).unwrap_err().exit_code(), 4);
}

#[test]
fn a_pass_is_cut_only_if_no_smaller_one_fits() {
    let cut = |device: &str, facts: &DeviceFacts| {
        let job = job(|a| a.device_memory = Some(device.into()));
        let plan = plan(&job, facts, 8 << 30).unwrap();
        let total: u64 = plan.device_bytes.iter().map(|b| b.bytes).sum();
        assert!(total <= job.execution.device_memory.unwrap(), "{device} {total}");
        assert!(plan.device_bytes.iter().all(|b| b.bytes <= facts.max_allocation), "{:?}", plan.device_bytes);
        let scan = Scan::new(&job, &stack()).unwrap();
        let text = plan.describe(&job, &scan, facts, &[]);
        assert_eq!(text.contains("added up"), plan.cut.projections < 180, "{text}");
        assert_eq!(text.contains("rows of pixels"), plan.cut.rows < 256, "{text}");
        assert_eq!(plan.notes.len(), usize::from(plan.cut != Cut { projections: 180, rows: 256 }), "{:?}", plan.notes);
        (plan.spec.slices, plan.cut.projections, plan.cut.rows)
    };
    let facts = example();
    assert_eq!(cut("40M", &facts), (4, 180, 256));
    assert_eq!(cut("1500K", &facts), (1, 180, 256));
    assert_eq!(cut("1M", &facts), (1, 96, 256));
    assert_eq!(cut("400K", &facts), (1, 16, 256));
    assert_eq!(cut("300K", &facts), (1, 16, 128));
    // a slice is 256 KiB
    assert_eq!(cut("4M", &DeviceFacts { max_allocation: 200 << 10, ..example() }), (1, 96, 128));
    // a pass that was asked for is cut as it is
    let asked = job(|a| (a.device_memory, a.slices_per_pass) = (Some("2M".into()), Some("4".into())));
    let plan = plan(&asked, &facts, 8 << 30).unwrap();
    assert_eq!((plan.spec.slices, plan.chunk % 4), (4, 0));
    assert!(plan.cut.projections < 180);
}

#[test]
fn wide_scans_count_positions_from_blocks_and_say_so() {
    let fast = job(|a| a.mode = Some(Mode::Fast));
    let choice = ProfileStore::built_in().unwrap().for_device(Some("default"), &example()).unwrap();
    let plan = |bins| {
        let scan = Scan::new(&fast, &StackShape { bins, ..stack() }).unwrap();
        planned(&fast, &scan, &choice, &example(), 8 << 30, nothing(&known())).unwrap()
    };
    let from_bin_0 = |plan: &Plan| plan.spec.parameters.family().counts_from_bin_0();
    let widest = plan(Positions::WIDEST_ABSOLUTE);
    assert!(from_bin_0(&widest) && widest.notes.is_empty(), "{:?}", widest.notes);
    let wide = plan(Positions::WIDEST_ABSOLUTE + 2);
    assert!(!from_bin_0(&wide));
    assert_eq!(
        wide.notes,
        [
            "positions from bin 0 -> from blocks: in f32 they keep the margin up to 4096 bins, here axis and slices reach 4098"
        ]
    );
}

#[test]
fn images_are_used_only_where_they_work_and_fit() {
    let fast = job(|a| a.mode = Some(Mode::Fast));
    let texel = |facts: &DeviceFacts| {
        let plan = plan(&fast, facts, 1 << 30).unwrap();
        (plan.spec.texel, plan.notes.len())
    };
    let (with, notes) = texel(&example());
    assert!(with.format().is_some() && notes == 0);
    let none = DeviceFacts { image_formats: Vec::new(), ..example() };
    assert_eq!(texel(&none), (Texel::Buffer, 1));
    let tiny = DeviceFacts { image_max: [256, 128], ..example() };
    assert_eq!(texel(&tiny), (Texel::Buffer, 1));
    let wide_only = DeviceFacts {
        image_formats: vec![facts::ImageFormat::new(facts::Channels::RGBA, facts::ChannelType::Half)],
        ..example()
    };
    assert!(texel(&wide_only).0.format().is_some());
}

#[test]
fn scans_are_checked() {
    let scan = |change: fn(&mut ReconstructArgs), stack: StackShape| Scan::new(&job(change), &stack);
    assert_eq!(scan(|_| {}, stack()).unwrap().geometry.axis[0], 127.5);
    let excluded = scan(|a| a.scan.exclude = Some("0,10..20".into()), stack()).unwrap();
    assert_eq!((excluded.used.len(), excluded.used[0]), (169, 1));
    let sum: f64 = excluded.geometry.weights.iter().sum();
    assert!((sum - std::f64::consts::PI).abs() < 1e-12);
    for (change, code) in [
        ((|a| a.scan.exclude = Some("..".into())) as fn(&mut ReconstructArgs), 2),
        (|a| a.center = Some("256".into()), 2),
        (|a| a.center = Some("-0.1".into()), 2),
        (|a| a.roi = Some("200,0,57,1".into()), 2),
        (|a| a.rows = Some("90..101".into()), 2),
    ] {
        assert_eq!(scan(change, stack()).unwrap_err().exit_code(), code);
    }
    let wrong = StackShape { shifts: Some(vec![0.0; 179]), ..stack() };
    assert_eq!(scan(|_| {}, wrong).unwrap_err().exit_code(), 3);
    let weighted = |weights: Vec<f64>| {
        let change: fn(&mut ReconstructArgs) = |a| a.scan.exclude = Some("0..10".into());
        Scan::new(&job(change), &StackShape { weights: Some(weights), ..stack() })
    };
    let weights = (0..180).map(|p| if p < 10 { 1000.0 } else { 2.0 }).collect();
    assert_eq!(weighted(weights).unwrap().geometry.misfit_weights, Some(vec![1.0; 170]));
    for (weights, words) in
        [(vec![1.0; 179], "179 weights"), ([vec![1.0; 9], vec![0.0; 171]].concat(), "0.0 of projection 9")]
    {
        let message = weighted(weights).unwrap_err().to_string();
        assert!(message.contains("--weights") && message.contains(words), "{message}");
    }
    let wrong = StackShape { angles: Some(vec![0.0; 181]), ..stack() };
    let message = scan(|a| a.scan.angles = Some("a.txt".into()), wrong).unwrap_err().to_string();
    assert!(message.contains("181 angles") && message.contains("180 projections"), "{message}");
}

#[test]
fn many_projections_leave_constant_memory() {
    use crate::kernel::Constants;
    let mut stack = stack();
    stack.projections = 9000;
    let job = job(|_| {});
    let scan = Scan::new(&job, &stack).unwrap();
    let choice = ProfileStore::built_in().unwrap().for_device(None, &example()).unwrap();
    let plan = planned(&job, &scan, &choice, &example(), 8 << 30, nothing(&known())).unwrap();
    assert_eq!(plan.spec.constants, Constants::Global);
}

#[test]
fn slices_per_pass_are_as_many_as_memory_holds() {
    let scan = Scan::new(&job(|_| {}), &stack()).unwrap();
    let cpu = ProfileStore::built_in().unwrap().named("cpu").unwrap();
    let choice = Choice { profile: cpu, reason: "test".into(), notes: Vec::new() };
    let slices_on = |facts: &DeviceFacts, device_memory: &str, per_pass: Option<&str>, host: u64| {
        let job = job(|a| {
            a.device_memory = Some(device_memory.into());
            a.algorithm = Some("vector".into());
            a.slices_per_pass = per_pass.map(Into::into);
        });
        planned(&job, &scan, &choice, facts, host, nothing(&known())).map(|plan| plan.spec.slices)
    };
    let slices =
        |device_memory: &str, per_pass: Option<&str>, host| slices_on(&example(), device_memory, per_pass, host);
    assert_eq!(slices("1GiB", None, 8 << 30).unwrap(), 64);
    assert_eq!(slices("35MiB", None, 8 << 30).unwrap(), 32);
    // a processor's memory is the host's
    let processor = DeviceFacts { kind: facts::DeviceKind::Cpu, ..example() };
    assert_eq!(slices("1GiB", None, 30 << 20).unwrap(), 64);
    assert_eq!(slices_on(&processor, "1GiB", None, 15 << 20).unwrap(), 16);
    // as asked, in parts of the projections
    assert_eq!(slices("35MiB", Some("64"), 8 << 30).unwrap(), 64);
    assert!(slices("1MiB", None, 8 << 30).unwrap_err().to_string().contains("device memory"));
}

#[test]
fn frames_are_read_as_a_whole_where_all_rows_fit() {
    let facts = DeviceFacts { max_work_group: 1024, local_memory: 64 << 10, max_allocation: 5 << 30, ..example() };
    let choice = ProfileStore::built_in().unwrap().for_device(Some("nvidia-hopper"), &facts).unwrap();
    let planned = |device_memory: &str, rows: Option<&str>, whole_frames: bool, devices: usize| {
        let job = job(|a| {
            a.mode = Some(Mode::Fast);
            a.device_memory = Some(device_memory.into());
            a.rows = rows.map(Into::into);
        });
        let stack = StackShape { slices: 1000, projections: 1000, bins: 1000, ..stack() };
        let mut scan = Scan::new(&job, &stack).unwrap();
        scan.samples = SampleShape { height: 1000, correctable: true, whole_frames, ..scan.samples };
        let known = known();
        let plan = Plan::new(&Request {
            recipe: &job.recipe,
            self_test: false,
            keeps_values: false,
            histogram: false,
            scan: &scan,
            choice: &choice,
            facts: &facts,
            memory: Memory { host: 64 << 30, device: job.execution.device_memory, devices },
            avoid: nothing(&known),
        })
        .unwrap();
        assert!(sum(&plan.device_bytes) <= job.execution.device_memory.unwrap());
        assert!(plan.kept_blocks().is_none_or(|shape| shape.blocks == RowBlocks::all(1000) && !shape.on_host()));
        (plan.kept_blocks().is_some(), plan.spec.slices, plan.chunks_held)
    };
    assert_eq!(planned("8GiB", None, true, 1), (true, 64, 2));
    assert_eq!(planned("8GiB", None, false, 1), (false, 64, 2));
    // too large, only a few rows of them, and decoded by each of two
    assert_eq!(planned("3GiB", None, true, 1), (false, 64, 2));
    assert_eq!(planned("8GiB", Some("..400"), true, 1), (false, 64, 2));
    assert_eq!(planned("8GiB", None, true, 2), (false, 64, 2));
}

#[test]
fn a_shard_has_the_kernel_of_the_whole_run() {
    let facts = DeviceFacts { max_work_group: 1024, ..example() };
    let choice = ProfileStore::built_in().unwrap().for_device(Some("nvidia-hopper"), &facts).unwrap();
    let planned = |device_memory: &str, change: fn(&mut ReconstructArgs)| {
        let job = job(|a| {
            change(a);
            a.device_memory = Some(device_memory.into());
        });
        let scan = Scan::new(&job, &stack()).unwrap();
        let plan = planned(&job, &scan, &choice, &facts, 8 << 30, nothing(&known())).unwrap();
        (scan.slices, plan.spec.parameters.algorithm(), plan.spec.slices)
    };
    let share = vec![99];
    let rows = |a: &mut ReconstructArgs| a.rows = Some("99..".into());
    let shard = |a: &mut ReconstructArgs| a.shard = Some("99/100".into());
    // one slice by itself is below a limit of the profile
    assert_eq!(planned("1G", rows), (share.clone(), Algorithm::Alu, 1));
    assert_eq!(planned("1G", shard), (share.clone(), Algorithm::Tensor, 32));
    // little memory lowers both alike
    let (_, algorithm, slices) = planned("15M", |_| {});
    assert!(slices < 32, "{slices}");
    assert_eq!(planned("15M", shard), (share, algorithm, slices));
}

#[test]
fn what_is_known_to_be_wrong_is_avoided() {
    let facts = DeviceFacts { name: "llvmpipe (LLVM)".into(), kind: DeviceKind::Cpu, ..example() };
    let planned = |change: fn(&mut ReconstructArgs)| {
        let job = job(change);
        let scan = Scan::new(&job, &stack()).unwrap();
        let choice = ProfileStore::built_in().unwrap().for_device(None, &facts).unwrap();
        assert_eq!(choice.profile.name, "cpu");
        planned(&job, &scan, &choice, &facts, 8 << 30, nothing(&known()))
    };
    let changes: [fn(&mut ReconstructArgs); 3] =
        [|_| {}, |a| a.no_self_test = true, |a| a.slices_per_pass = Some("64".into())];
    for change in changes {
        let plan = planned(change).unwrap();
        assert_eq!((plan.spec.parameters.algorithm(), plan.spec.slices), (Algorithm::Standard, 16));
        let [note] = &plan.notes[..] else { panic!("{:?}", plan.notes) };
        assert!(note.contains("-> standard-linear-float-x16-buffer") && note.contains("65535"), "{note}");
    }
    let refused: [fn(&mut ReconstructArgs); 2] =
        [|a| a.algorithm = Some("vector".into()), |a| a.interpolation = Some(Interpolation::Exact)];
    for (change, word) in refused.into_iter().zip(["--algorithm vector", "gridding"]) {
        let error = planned(change).unwrap_err();
        assert_eq!(error.exit_code(), 4);
        assert!([word, "65535", "llvmpipe", "1.0"].iter().all(|w| error.to_string().contains(w)), "{error}");
    }
    let asked = planned(|a| (a.algorithm, a.no_self_test) = (Some("vector".into()), true)).unwrap();
    assert_eq!(asked.spec.parameters.algorithm(), Algorithm::Vector);
    assert!(asked.notes[0].contains("--algorithm vector is used as requested"), "{:?}", asked.notes);
}

/// Kernels that are chosen one after the other when each that was chosen is refused, and the last error.
fn refusals(profile: &str, change: fn(&mut ReconstructArgs), facts: &DeviceFacts) -> (Vec<String>, Error) {
    let job = job(change);
    let scan = Scan::new(&job, &stack()).unwrap();
    let choice = ProfileStore::built_in().unwrap().for_device(Some(profile), facts).unwrap();
    let (mut names, mut refused) = (Vec::new(), Vec::new());
    loop {
        let avoid = Avoid { known: &known(), refused: &refused };
        match planned(&job, &scan, &choice, facts, 8 << 30, avoid) {
            Ok(plan) => {
                assert_eq!(plan.notes.len(), refused.len(), "{:?}", plan.notes);
                let source = plan.spec.generate().unwrap();
                names.push(source.name);
                refused.push(Refused { key: source.key, why: "error 1".into() });
            }
            Err(error) => return (names, error),
        }
    }
}

#[test]
fn a_wrong_kernel_is_replaced_first_by_its_layout_then_by_its_family() {
    let facts = DeviceFacts { max_work_group: 1024, ..example() };
    let chain = |profile: &str, change: fn(&mut ReconstructArgs)| {
        let (names, error) = refusals(profile, change, &facts);
        assert_eq!(error.exit_code(), 4);
        for name in &names {
            assert!(error.to_string().contains(&format!("{name}: error 1")), "{error}");
        }
        (names, error.to_string())
    };
    let (names, message) = chain("default", |a| a.mode = Some(Mode::Fast));
    assert_eq!(names, ["standard-linear-half-x4-image-rgba-half", "standard-linear-half-x4-buffer"]);
    assert!(
        message.contains("nothing else") && message.contains("--device") && message.contains("fbp doctor"),
        "{message}"
    );
    let (names, _) = chain("cpu", |_| {});
    assert_eq!(names, ["vector-linear-float-x64-buffer", "standard-linear-float-x16-buffer"]);
    let (names, message) = chain("cpu", |a| a.algorithm = Some("vector".into()));
    assert_eq!(names, ["vector-linear-float-x64-buffer"]);
    assert!(message.contains("--algorithm vector"), "{message}");
    let (names, _) = chain("nvidia-hopper", |a| {
        (a.mode, a.slices_per_pass) = (Some(Mode::Fast), Some("32".into()));
    });
    let families: Vec<&str> = names.iter().map(|name| name.split('-').next().unwrap()).collect();
    assert_eq!(families, ["tensor", "texture", "texture", "alu", "alu", "standard"], "{names:?}");
    assert!(names[1].contains("image") && names[2].ends_with("buffer") && names[5].ends_with("buffer"), "{names:?}");
}

#[test]
fn every_band_of_a_cut_pass_has_a_grid() {
    let facts = example();
    let choice = ProfileStore::built_in().unwrap().for_device(Some("default"), &facts).unwrap();
    let exact = job(|args| {
        args.interpolation = Some(Interpolation::Exact);
        args.accuracy = Some(5e-6);
        args.device_memory = Some("170M".into());
    });
    let scan = Scan::new(&exact, &StackShape { projections: 48, bins: 7000, ..stack() }).unwrap();
    let plan = planned(&exact, &scan, &choice, &facts, 64 << 30, nothing(&known())).unwrap();
    assert!(sum(&plan.device_bytes) <= 170 << 20);
    // the last of 728 rows needs more cells for a row than the others
    assert_eq!(plan.cut.rows, 896);
    assert!(crate::device::grid_values(&facts, &plan.spec, plan.cut.bands(scan.geometry.roi)).unwrap() > 0);
}

#[test]
fn lines_without_local_memory_are_transformed_as_vectors_of_at_most_8_slices() {
    use crate::kernel::{GridItems, Parameters};
    let facts = DeviceFacts { max_work_group: 256, local_memory: 64 << 10, ..example() };
    for (profile, asked) in [("amd-rdna", None), ("amd-rdna", Some("16"))] {
        let exact = job(|args| {
            args.interpolation = Some(Interpolation::Exact);
            args.slices_per_pass = asked.map(Into::into);
        });
        let choice = ProfileStore::built_in().unwrap().for_device(Some(profile), &facts).unwrap();
        let planned = |bins: usize| {
            let scan = Scan::new(&exact, &StackShape { bins, ..stack() }).unwrap();
            planned(&exact, &scan, &choice, &facts, 64 << 30, nothing(&known())).unwrap()
        };
        let items = |plan: &Plan| match &plan.spec.parameters {
            Parameters::Gridding(gridding) => gridding.items,
            other => panic!("{other:?}"),
        };
        let (small, large) = (planned(1000), planned(3000));
        assert_eq!((items(&small), small.spec.slices, small.notes.len()), (GridItems::Cells, 16, 0), "{profile}");
        assert_eq!((items(&large), large.spec.slices), (GridItems::Tiles, 8), "{profile}");
        assert!(large.notes.iter().any(|note| note.contains("8 slices at a time")), "{:?}", large.notes);
    }
}

#[test]
fn processors_are_told_of_exact_interpolation() {
    let facts = DeviceFacts { kind: DeviceKind::Cpu, name: "pthread-skylake-avx512-AMD EPYC".into(), ..example() };
    let choice = ProfileStore::built_in().unwrap().for_device(None, &facts).unwrap();
    assert_eq!(choice.profile.name, "cpu");
    for (slices_per_pass, slices, told) in [("64", 1000, true), ("16", 1000, true), ("64", 100, false)] {
        let fast = job(|args| {
            args.mode = Some(Mode::Fast);
            args.slices_per_pass = Some(slices_per_pass.into());
        });
        let scan = Scan::new(&fast, &StackShape { slices, projections: 2048, bins: 2048, ..stack() }).unwrap();
        let plan = planned(&fast, &scan, &choice, &facts, 64 << 30, nothing(&known())).unwrap();
        assert_eq!(plan.notes.iter().any(|note| note.contains("--interpolation exact")), told, "{:?}", plan.notes);
    }
}

#[test]
fn long_runs_are_told_of_exact_interpolation() {
    let plan = |slices: usize, interpolation| {
        let of_pass = if interpolation == Interpolation::Exact { "8" } else { "16" };
        let job = job(|args| {
            args.interpolation = Some(interpolation);
            args.slices_per_pass = Some(of_pass.into());
        });
        let stack = StackShape { slices, projections: 2048, bins: 2048, ..stack() };
        let scan = Scan::new(&job, &stack).unwrap();
        let mut profile = ProfileStore::built_in().unwrap().named("cpu").unwrap();
        let facts = DeviceFacts { kind: DeviceKind::Cpu, ..example() };
        let measured = |interpolation, algorithm, slices, gu_per_s| MeasuredSpeed {
            device: facts.name.clone(),
            interpolation,
            algorithm,
            mode: Mode::Precise,
            slices,
            problem: [1024; 3],
            gu_per_s,
            ..profile.measured[0].clone()
        };
        profile.measured = vec![
            measured(Interpolation::Linear, Algorithm::Vector, 16, 20.0),
            measured(Interpolation::Exact, Algorithm::Gridding, 8, 80.0),
        ];
        let choice = Choice { profile, reason: String::new(), notes: Vec::new() };
        let known = known();
        let plan = planned(&job, &scan, &choice, &facts, 64 << 30, nothing(&known)).unwrap();
        (plan.estimate(&scan, &facts, &job.recipe).unwrap(), plan.notes.join(" "))
    };
    // 2048^3 updates a slice: 0.43 s by linear interpolation, 0.054 s exactly
    let (seconds, notes) = plan(1000, Interpolation::Linear);
    assert!((seconds - 429.5).abs() < 1.0, "{seconds}");
    assert!(notes.contains("about 429 s; --interpolation exact takes about 54 s"), "{notes}");
    assert!(!plan(100, Interpolation::Linear).1.contains("exact"));
    let (seconds, notes) = plan(1000, Interpolation::Exact);
    assert!((seconds - 53.7).abs() < 0.2 && !notes.contains("exact"), "{seconds} {notes}");
}

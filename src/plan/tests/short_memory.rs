//! Plans for devices with little memory.

use super::*;
use crate::operations::DetectorImages;

#[test]
fn the_host_keeps_blocks_rather_than_that_passes_are_smaller() {
    let facts = DeviceFacts { max_work_group: 1024, local_memory: 64 << 10, ..example() };
    let choice = ProfileStore::built_in().unwrap().for_device(Some("nvidia-hopper"), &facts).unwrap();
    let planned = |device_memory: &str| {
        let job = job(|a| {
            a.mode = Some(Mode::Fast);
            a.device_memory = Some(device_memory.into());
        });
        let stack = StackShape { slices: 1000, projections: 1000, bins: 1000, ..stack() };
        let mut scan = Scan::new(&job, &stack).unwrap();
        let tilt = ImageSteps { rotation: Some(RotationForm { degrees: 0.3, halo: 4 }), ..ImageSteps::default() };
        let blocks = RowBlocks::new(&tilt, [1000; 2], 1000);
        scan.samples = SampleShape { height: 1000, halo: 4, blocks, correctable: true, ..scan.samples };
        let plan = planned(&job, &scan, &choice, &facts, 64 << 30, nothing(&known())).unwrap();
        assert!(sum(&plan.device_bytes) <= job.execution.device_memory.unwrap());
        (plan.kept_blocks().unwrap().on_host(), plan.spec.slices, plan.chunks_held)
    };
    assert_eq!(planned("8GiB"), (false, 64, 2));
    assert_eq!(planned("1GiB"), (true, 32, 2));
    // copies and kernels do not take turns
    assert_eq!(planned("512MiB"), (true, 16, 2));
}

/// The plan of a whole run on an H200: 2048 projections of 2048 x 2048 samples of 16 bits to as many slices.
fn of_h200(device_memory: &str, outliers: bool, images: ImageSteps, change: fn(&mut ReconstructArgs)) -> Plan {
    let facts = DeviceFacts {
        name: "NVIDIA H200".into(),
        extensions: vec!["cl_khr_fp64".into()],
        compute_units: 132,
        max_work_group: 1024,
        local_memory: 48 << 10,
        global_memory: 140 << 30,
        max_allocation: 35 << 30,
        ..example()
    };
    let choice = ProfileStore::built_in().unwrap().for_device(Some("nvidia-hopper"), &facts).unwrap();
    let job = job(|a| {
        a.mode = Some(Mode::Fast);
        a.device_memory = Some(device_memory.into());
        change(a);
    });
    let stack = StackShape { slices: 2048, projections: 2048, bins: 2048, ..stack() };
    let mut scan = Scan::new(&job, &stack).unwrap();
    let blocks = images.any().then(|| RowBlocks::new(&images, [2048; 2], 2048).unwrap());
    let halo = usize::from(outliers) + blocks.map_or(0, |blocks| blocks.halo());
    let sample = crate::source::SampleType::U16;
    let stored = StoredRows::unbinned(StoredSamples { sample, ..StoredSamples::F32 }, 2048);
    let held = DetectorImages { flats: 1, ..Default::default() };
    scan.samples =
        SampleShape { stored, height: 2048, held, halo, blocks, correctable: true, whole_frames: false, apart: false };
    let plan = planned(&job, &scan, &choice, &facts, 64 << 30, nothing(&known())).unwrap();
    assert!(sum(&plan.device_bytes) <= job.execution.device_memory.unwrap());
    plan
}

fn all_stripes(a: &mut ReconstructArgs) {
    a.steps.stripes = vec!["all".into()];
}

fn all_stripes_u16(a: &mut ReconstructArgs) {
    all_stripes(a);
    a.dtype = Some(Dtype::U16);
    a.range = Some("0,1".into());
}

/// --tilt 0.3, --phase paganin with L = 6.3 pixels.
fn tilt_and_phase(tilt: bool, phase: bool) -> ImageSteps {
    let filter = ImageFilterForm { length: 6.3, sigma: 0.0, sharpening: 0.0, halo: 78 };
    let rotation = tilt.then_some(RotationForm { degrees: 0.3, halo: 8 });
    ImageSteps { rotation, filter: phase.then_some(filter), ..ImageSteps::default() }
}

/// What is made smaller so that passes have more slices, and copies and kernels do not take turns: pieces of samples, batches of a
/// block, and the number of sinograms whose stripes are removed together.
#[test]
fn short_memory_holds_large_passes_with_every_step() {
    let (none, every) = (tilt_and_phase(false, false), tilt_and_phase(true, true));
    let of = |plan: Plan| {
        let samples = plan.device_bytes.iter().find(|bytes| bytes.what == "samples and fields").unwrap();
        (plan.spec.slices, plan.chunks_held, plan.sinograms_ahead, plan.stripes_at_once, samples.bytes >> 20)
    };
    // one pass is enough where slices are copied while stripes of the next are removed
    assert_eq!(of(of_h200("2G", false, none, all_stripes)), (32, 1, 0, 32, 288));
    assert_eq!(of(of_h200("2G", true, none, all_stripes)), (32, 1, 0, 8, 320));
    assert_eq!(of(of_h200("2G", true, every, all_stripes)), (32, 1, 0, 32, 212));
    assert_eq!(of(of_h200("2G", true, tilt_and_phase(true, true), |_| {})), (16, 2, 0, 16, 292));
    // slices are encoded in the memory of their values
    assert_eq!(of(of_h200("2G", true, none, all_stripes_u16)), (32, 1, 0, 8, 320));
    let plan = of_h200("2G", true, every, all_stripes_u16);
    assert_eq!(plan.steps.slices, StepBackend::Device);
    assert_eq!(of(plan), (32, 1, 0, 32, 212));
}

/// A block that the device keeps is copied as a whole, so that the next one can take its place.
#[test]
fn sinograms_of_a_block_are_ahead() {
    let sinograms_ahead = |memory: &str, images| {
        let plan = of_h200(memory, false, images, all_stripes);
        let sinograms = plan.device_bytes.iter().find(|bytes| bytes.what == "sinograms").unwrap();
        assert_eq!(sinograms.bytes, ((plan.chunks_held + plan.sinograms_ahead) * plan.chunk * 4 * 2048 * 2048) as u64);
        (plan.kept_blocks().map(|shape| shape.on_host()), plan.chunks_held, plan.sinograms_ahead)
    };
    assert_eq!(sinograms_ahead("100G", tilt_and_phase(true, true)), (Some(false), 2, 6));
    assert_eq!(sinograms_ahead("15G", tilt_and_phase(true, true)), (Some(false), 2, 3));
    assert_eq!(sinograms_ahead("2G", tilt_and_phase(true, true)), (Some(true), 1, 0));
    assert_eq!(sinograms_ahead("100G", tilt_and_phase(false, false)), (None, 2, 0));
}

/// Where lines of images do not fit into a work-group, a library transforms them on the device, which takes as much memory
/// again: fewer pairs at a time.
#[test]
fn a_library_transforms_long_lines() {
    let choice = ProfileStore::built_in().unwrap().for_device(Some("nvidia-hopper"), &example()).unwrap();
    let job = job(|a| a.mode = Some(Mode::Precise));
    let stack = StackShape { slices: 40, projections: 300, bins: 3000, ..stack() };
    let mut scan = Scan::new(&job, &stack).unwrap();
    let blocks = RowBlocks::new(&tilt_and_phase(false, true), [3000, 40], 300);
    assert_eq!(blocks.unwrap().images, Some([4096, 256]));
    scan.samples = SampleShape { height: 40, halo: 78, blocks, correctable: true, ..scan.samples };
    let pairs = |max_work_group: usize| {
        let facts = DeviceFacts { max_work_group, local_memory: 48 << 10, ..example() };
        let plan = planned(&job, &scan, &choice, &facts, 64 << 30, nothing(&known())).unwrap();
        assert_eq!(plan.steps.images, StepBackend::Device);
        plan.kept_blocks().unwrap().pairs
    };
    assert_eq!(pairs(256), 2 * pairs(128));
}

/// Batches of the block that the host keeps are made smaller before another kernel computes precise slices, whose values would
/// differ from those of more memory.
#[test]
fn short_memory_does_not_change_the_kernel() {
    let precise = |a: &mut ReconstructArgs| {
        all_stripes(a);
        a.mode = Some(Mode::Precise);
    };
    let of = |memory: &str| {
        let plan = of_h200(memory, true, tilt_and_phase(true, true), precise);
        (plan.spec.parameters.algorithm(), plan.spec.slices, plan.chunks_held, plan.stripes_at_once)
    };
    assert_eq!(of("100G"), (Algorithm::Tensor, 32, 2, 32));
    assert_eq!(of("2G"), (Algorithm::Tensor, 32, 1, 4));
}

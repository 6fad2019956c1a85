//! Histograms that a device counts: those of the host, bit for bit, whatever the values, the chunks and the devices.

use crate::support::cli::{Lab, Scan, text};
use fbp::device::{Session, enumerate};
use fbp::histogram::{CountedSlice, Histogram};
use fbp::operations::SliceCounter;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Slices of `size` values: any bits, few finite values, none, subnormal numbers, zeros, one huge value, a narrow range far
/// from 0.
fn slices(size: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut all = Vec::new();
    all.extend((0..size).map(|_| f32::from_bits(rng.random())));
    all.extend((0..size).map(|i| if i == size / 2 { -3.25 } else { f32::INFINITY }));
    all.extend((0..size).map(|i| if i % 2 == 0 { f32::NAN } else { f32::NEG_INFINITY }));
    all.extend((0..size).map(|_| f32::from_bits(rng.random_range(0..5000) | rng.random_range(0..2u32) << 31)));
    all.extend((0..size).map(|i| if i % 3 == 0 { 0.0 } else { -0.0 }));
    all.extend((0..size).map(|i| if i == 1 { f32::MAX } else { rng.random_range(-1.0..2.0) }));
    all.extend((0..size).map(|_| rng.random_range(1e6..1e6 + 50.0)));
    all.extend((0..size).map(|_| rng.random_range(-0.01..0.3)));
    all
}

/// On the host, by rows.
fn counted_by_host(slice: &[f32], width: usize, inside: &[[i32; 2]], factor: f32) -> CountedSlice {
    let finished: Vec<f32> = slice.iter().map(|value| value * factor).collect();
    let rows = finished.chunks(width).zip(inside).map(|(row, &[start, end])| &row[start as usize..end as usize]);
    let (histogram, moments) = Histogram::of(rows);
    CountedSlice { histogram, moments: moments.into_iter().sum() }
}

#[test]
fn every_value_counts_as_on_the_host() {
    let found = enumerate().unwrap().into_iter().next().unwrap();
    for (width, height, local_memory, factor) in
        [(300, 37, 1 << 20, 1.0f32), (64, 5, 1 << 10, 0.3), (1, 9, 1 << 20, 1.0), (2500, 33, 1 << 15, 1e4)]
    {
        let mut session = Session::open(&found).unwrap();
        session.facts.local_memory = session.facts.local_memory.min(local_memory);
        if local_memory == 1 << 10 {
            session.facts.max_work_group = 64;
        }
        let values = slices(width * height);
        let count = values.len() / (width * height);
        // the first row is hidden, the others in part
        let span = |y: usize| if y == 0 { [0, 0] } else { [(y % 7).min(width - 1) as i32, width as i32] };
        let inside: Vec<[i32; 2]> = (0..height).map(span).collect();
        let mut buffer: Buffer<f32> = session.buffer(values.len(), CL_MEM_READ_WRITE, "slices").unwrap();
        session.write(&mut buffer, &values, "slices").unwrap();
        let counter = SliceCounter::new(&session, width, &inside, factor).unwrap();
        let mut counts = counter.buffers(&session, count).unwrap();
        let run = |counts: &mut _, slices| {
            counter.run(&session, &buffer, counts, slices).unwrap();
            session.finish().unwrap();
        };
        run(&mut counts, count);
        let want: Vec<_> =
            values.chunks(width * height).map(|slice| counted_by_host(slice, width, &inside, factor)).collect();
        for (number, (got, want)) in counts.slices(&session).unwrap().iter().zip(&want).enumerate() {
            assert!(got == want, "{width}x{height}, slice {number}: {got:?} {want:?}");
        }
        // buffers are used again, for fewer slices
        run(&mut counts, 3);
        assert_eq!(counts.slices(&session).unwrap(), want[..3]);
        assert!(counter.run(&session, &buffer, &mut counts, count + 1).is_err(), "more than there are buffers for");
        let mut more = counter.buffers(&session, count + 1).unwrap();
        assert!(counter.run(&session, &buffer, &mut more, count + 1).is_err(), "past the slices");
        assert!(SliceCounter::new(&session, width, &[[0, width as i32 + 1]], factor).is_err(), "a mask past the rows");
        assert!(SliceCounter::new(&session, width, &[[-1, 0]], factor).is_err(), "a mask before the rows");
    }
}

const TALL: Scan = Scan { width: 32, projections: 16, slices: 21, overall: 180.0 };
const RUN: &str = "reconstruct --sinograms sin --slices-per-pass 1 --overwrite -q --histogram h.json";

/// The histogram of a run without the key of the run, which says who corrected rows.
fn histogram(lab: &Lab, file: &str) -> String {
    let text = lab.read_text(file);
    text.lines().filter(|line| !line.contains("\"run\"")).collect::<Vec<_>>().join("\n")
}

/// Whether the plan has memory for counts on the device.
fn counts_on_device(lab: &Lab, args: &str) -> bool {
    let plan = lab.ok(&format!("{RUN} {args} --dry-run --output o")).0;
    plan.lines().any(|line| line.trim_start().starts_with("histograms"))
}

#[test]
fn runs_do_not_depend_on_who_counts() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    lab.write("sin", "s", &TALL.sinograms());
    for (case, args) in [
        "",
        "--mask 0.8 --roi 2,0,20,31",
        "--pixel-size 0.65um --rows 2..20:3",
        // from slice 3 on values are too large for f32
        "--pixel-size 1e-38",
        "--mask 0.5 --roi 0,0,4,4",
        "--dtype u16 --range -1,5 --mask 0.9",
        "--dtype u8 --percentile 1,99 --pixel-size 2um",
        "--dtype f16 --mask",
        "--shard 1/3 --dtype u16 --range -1,5",
    ]
    .into_iter()
    .enumerate()
    {
        let (on_host, on_device) = (format!("host-{case}"), format!("device-{case}"));
        let file = if args.contains("--shard") { "h-1of3.json" } else { "h.json" };
        let run = |more: &str, output: &str| {
            lab.ok(&format!("{RUN} {args} {more} --output {output}"));
            histogram(&lab, file)
        };
        let host = run("--device cpu --profile cpu", &on_host);
        assert!(!counts_on_device(&lab, &format!("{args} --device cpu --profile cpu")), "{args}");
        for more in [
            "--device cpu --profile device.toml",
            "--device cpu --profile device.toml --device-memory 80K",
            "--device cpu/2 --profile device.toml",
        ] {
            assert!(counts_on_device(&lab, &format!("{args} {more}")), "{args} {more}");
            assert!(run(more, &on_device) == host, "{args} {more}");
            assert!(lab.read(&on_device) == lab.read(&on_host), "{args} {more}");
        }
        // values are there for sections, whoever counts
        let sections = "--device cpu --sections s.png --profile";
        assert!(run(&format!("{sections} device.toml"), &on_device) == host, "{args}");
    }
}

#[test]
fn kept_slices_and_lost_devices_count_once() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    lab.write("sin", "s", &Scan { slices: 56, ..TALL }.sinograms());
    let args = format!("{RUN} --profile device.toml");
    lab.ok(&format!("{args} --device cpu -o whole"));
    let whole = lab.read_text("h.json");
    let output =
        lab.command(&format!("{args} --device cpu/2 -o lost")).env("FBP_TEST_FAULT", "lost=0:1").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(lab.read_text("h.json") == whole);
    for slice in [0, 7, 30, 55] {
        std::fs::remove_file(lab.path(format!("whole/slice_{slice:05}.tif"))).unwrap();
    }
    lab.ok(&format!("{} --device cpu -o whole --resume", args.replace(" --overwrite", "")));
    assert!(lab.read_text("h.json") == whole);
}

/// A device that counts incorrectly is found out before the run.
#[test]
fn wrong_counts_are_left_to_the_host() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    lab.write("sin", "s", &TALL.sinograms());
    lab.ok(&format!("{RUN} --device cpu --profile cpu --output host"));
    let host = histogram(&lab, "h.json");
    let run = format!("{RUN} --device cpu --profile device.toml --output device");
    let output = lab.command(&run.replace(" -q", "")).env("FBP_TEST_FAULT", "histogram").output().unwrap();
    let told = text(&output.stderr);
    assert!(output.status.success() && told.contains("histogram of slices: wrong on this device"), "{told}");
    assert!(histogram(&lab, "h.json") == host);
    // and its counts are those that are written
    let trusted = format!("{run} --no-self-test");
    assert!(lab.command(&trusted).env("FBP_TEST_FAULT", "histogram").output().unwrap().status.success());
    assert!(histogram(&lab, "h.json") != host);
    // without a histogram nothing is wrong
    let plain = run.replace(" -q", "").replace(" --histogram h.json", "");
    let output = lab.command(&plain).env("FBP_TEST_FAULT", "histogram").output().unwrap();
    assert!(output.status.success() && !text(&output.stderr).contains("wrong"), "{}", text(&output.stderr));
}

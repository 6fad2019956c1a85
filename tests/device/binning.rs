//! Samples that a device bins: means from the definition, in every sample type, and whole runs beside those of frames that
//! were binned before.

use crate::correction::{OFFSET, negative, stored};
use crate::support::cli::{Lab, Pages};
use fbp::device::{Session, enumerate};
use fbp::operations::{SampleBinner, SampleOrder};
use fbp::source::{SampleType, StoredRows, StoredSamples};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use SampleType::{F16, F32, I8, I16, I32, U8, U16, U32};

/// Binned rows and projections.
const ROWS: usize = 3;
const PROJECTIONS: usize = 5;

fn session() -> Session {
    Session::open(&enumerate().unwrap()[0]).unwrap()
}

/// Means on the device of samples `[projection][row][bin]`, of `ROWS` rows of `PROJECTIONS` projections; the result is
/// `[projection][row][bin]`, too.
fn on_device(session: &Session, rows: StoredRows, order: SampleOrder, samples: &[u8]) -> Vec<f32> {
    let (by, line) = (rows.by, rows.width * rows.samples.sample.bytes());
    let at = |p: usize, row: usize| &samples[(p * ROWS * by + row) * line..][..line];
    let bytes: Vec<u8> = match order {
        SampleOrder::Projections => samples.to_vec(),
        SampleOrder::Sinograms => {
            (0..ROWS * by).flat_map(|row| (0..PROJECTIONS).flat_map(move |p| at(p, row))).copied().collect()
        }
    };
    let mut buffer: Buffer<u8> = session.buffer(bytes.len(), CL_MEM_READ_WRITE, "samples").unwrap();
    session.write(&mut buffer, &bytes, "samples").unwrap();
    let binner = SampleBinner::new(session, rows, order, ROWS * PROJECTIONS).unwrap();
    let means = binner.run(session, &buffer, ROWS, PROJECTIONS).unwrap();
    let mut got = vec![0f32; ROWS * PROJECTIONS * rows.bins()];
    session.read_uploaded(means, bytemuck::cast_slice_mut(&mut got), "means").unwrap();
    assert!(binner.run(session, &buffer, ROWS + 1, PROJECTIONS).is_err(), "more than there are");
    let line_of = |p: usize, row: usize| match order {
        SampleOrder::Projections => p * ROWS + row,
        SampleOrder::Sinograms => row * PROJECTIONS + p,
    };
    let lines = (0..PROJECTIONS).flat_map(|p| (0..ROWS).map(move |row| line_of(p, row)));
    lines.flat_map(|line| &got[line * rows.bins()..][..rows.bins()]).copied().collect()
}

/// From the definition: sums in f64, bin by bin and then row by row, and their mean, rounded once.
fn means(values: &[f64], width: usize, by: usize) -> Vec<f32> {
    let row = |rows: &[f64]| -> Vec<f32> {
        let bin = |bin: usize| {
            let of_row = |row: &[f64]| row[bin * by..][..by].iter().fold(0.0, |sum, value| sum + value);
            (rows.chunks(width).map(of_row).fold(0.0, |sum, value| sum + value) / (by * by) as f64) as f32
        };
        (0..width / by).map(bin).collect()
    };
    values.chunks(by * width).flat_map(row).collect()
}

#[test]
fn every_sample_type_is_binned_as_by_the_host() {
    let session = session();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for by in [2, 3, 4, 7, 64] {
        // some samples are left over
        let width = 11 * by + by - 1;
        let most = [(U8, 255.0), (I8, 252.0), (U16, 65535.0), (I16, 32000.0), (F16, 2048.0)];
        let most = most.into_iter().chain([U32, I32, F32].map(|sample| (sample, 2e9)));
        for (sample, most) in most {
            // as files hold them, and as numbers of f32
            let counts: Vec<f64> =
                (0..PROJECTIONS * ROWS * by * width).map(|_| rng.random_range(0.0..=most)).map(f64::floor).collect();
            let offset = if negative(sample) { OFFSET } else { 0.0 };
            let values: Vec<f64> = counts.iter().map(|count| f64::from((count - offset) as f32)).collect();
            for (swapped, order) in [(false, SampleOrder::Projections), (true, SampleOrder::Sinograms)] {
                let samples = StoredSamples { sample, swapped };
                let rows = StoredRows { samples, by, width };
                let got = on_device(&session, rows, order, &stored(&counts, samples));
                assert!(got == means(&values, width, by), "{samples:?} {order:?}, by {by}");
            }
        }
    }
}

#[test]
fn floats_of_all_sizes_are_binned() {
    let mut session = session();
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let (by, width) = (5, 43);
    let mut values: Vec<f32> = (0..PROJECTIONS * ROWS * by * width)
        .map(|_| rng.random_range(-1.0f32..1.0) * 10f32.powi(rng.random_range(-6..7)))
        .collect();
    (values[0], values[70], values[7 * by]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
    let wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
    let want = means(&wide, width, by);
    let rows = StoredRows { samples: StoredSamples::F32, by, width };
    let run = |session: &Session| on_device(session, rows, SampleOrder::Projections, bytemuck::cast_slice(&values));
    let bits = |values: &[f32]| -> Vec<u32> {
        values.iter().map(|value| if value.is_nan() { u32::MAX } else { value.to_bits() }).collect()
    };
    if session.facts.has("cl_khr_fp64") {
        assert!(bits(&run(&session)) == bits(&want));
    }
    // as a device without double precision
    session.facts.extensions.retain(|extension| extension != "cl_khr_fp64");
    let (got, largest) = (run(&session), means(&wide.iter().map(|value| value.abs()).collect::<Vec<_>>(), width, by));
    for ((got, want), largest) in got.iter().zip(&want).zip(&largest) {
        if want.is_finite() {
            assert!((got - want).abs() <= 4e-7 * want.abs() + 1e-12 * largest, "{got}, {want}");
        } else {
            assert!(!got.is_finite(), "{got}, {want}");
        }
    }
    assert_eq!(want.iter().filter(|value| !value.is_finite()).count(), 3);
    // nothing of 64 bits, and nothing that is not there
    let long = StoredRows { samples: StoredSamples { sample: SampleType::F64, swapped: false }, ..rows };
    assert!(SampleBinner::new(&session, long, SampleOrder::Projections, 1).is_err());
}

/// Projections of 93 x 13 pixels with pixels that fail, and fields.
fn scan(lab: &Lab) -> Pages {
    lab.profile_with_steps("device.toml", "");
    lab.ok("phantom --size 93 --projections 50 --slices 13 --as projections --photons 3000 --scale 0.03 \
            --flats fl --darks da --output pr");
    let mut projections = lab.read("pr");
    for (p, page) in projections.pages.iter_mut().enumerate() {
        for row in 3..9 {
            page[row * 93 + 15..row * 93 + 21].fill(0.0);
        }
        if p % 20 == 4 {
            page[8 * 93..10 * 93].fill(0.0);
        }
        page[93 + p] = 60_000.0;
    }
    lab.write("planted", "proj", &projections);
    projections
}

const FIELDS: &str = "--projections planted --flats fl --darks da";
/// A filter of few pixels.
const PHASE: &str = "--phase paganin --energy-kev 20 --distance 20mm --delta-beta 50 --pixel-size 1um";

/// Slices of binned samples have the same bits whatever a piece, a chunk, a job or a device takes, and counts are those of
/// the host.
#[test]
fn binned_rows_change_no_bit() {
    let lab = Lab::new();
    let sinograms = scan(&lab).transposed();
    lab.write("sin", "s", &sinograms);
    for (number, flags) in [
        format!("{FIELDS} --binning 2 --dark-scale 0.9 --remove-outliers 3,100 --exclude 7,9"),
        format!("{FIELDS} --binning 2 --tilt 1 {PHASE} --normalize-air 3,2"),
        format!("{FIELDS} --binning 3 --normalize-air 2,1,6,2 --stripes mean"),
        "--sinograms sin --minus-log --binning 3 --exclude 5,30 --stripes mean".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let name = |what: &str| format!("{what}-{number}");
        let device = format!("{flags} --profile device.toml --slices-per-pass 2");
        let whole = lab.slices(&format!("{device} --report whole.json"), &name("whole"));
        let record = lab.read_text(&format!("{}/fbp-run.toml", name("whole")));
        assert!(record.contains("row-steps = \"device\""), "{flags}: {record}");
        let report = |name: &str| -> Value { serde_json::from_str(&lab.read_text(name)).unwrap() };
        let counts = |name: &str| {
            ["clamped", "clamped_by_reason", "replaced_rows", "replaced_bins", "outliers", "saturated"]
                .map(|key| report(name).get(key).cloned())
        };
        for (other, more) in ["--device-memory 1M", "--device-memory 600K", "--device 0/2"].iter().enumerate() {
            let output = name(&format!("other-{other}"));
            assert!(lab.slices(&format!("{device} {more} --report other.json"), &output) == whole, "{flags} {more}");
            assert_eq!(counts("other.json"), counts("whole.json"), "{flags} {more}");
        }
        for shard in 0..2 {
            lab.ok(&format!("reconstruct {device} --shard {shard}/2 --output {}", name("shards")));
        }
        assert!(lab.read(&name("shards")) == whole, "{flags}");
        let some = lab.slices(&format!("{device} --rows 1..3"), &name("some"));
        assert!(some.pages == whole.pages[1..3], "{flags}");
        let host = lab.slices(&format!("{flags} --profile cpu --report host.json"), &name("host"));
        assert_eq!(counts("host.json"), counts("whole.json"), "{flags}");
        // a filter spreads what has no light
        let replaced = counts("whole.json")[0].as_ref().and_then(Value::as_u64);
        assert!(replaced > Some(0) || flags.contains("--phase"), "{flags}: {replaced:?}");
        let range = host.pages.iter().flatten().fold(0f32, |most, v| most.max(v.abs()));
        let pairs = host.pages.iter().zip(&whole.pages).flat_map(|(a, b)| a.iter().zip(b));
        let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(worst <= 1e-4 * range, "{flags}: {worst:e} of {range}");
    }
}

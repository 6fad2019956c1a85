//! Rows that a device corrects from samples as they are stored: what comes out, and what is counted, in every sample type.

use crate::support::cli::Lab;
use fbp::device::{Session, enumerate};
use fbp::operations::{
    AirCorrection, BatchRows, BlockCorrector, BlockShape, DetectorBatch, DeviceRows, FieldImages, HardeningPolynomial,
    LineIntegrals, ProjectionState, RowBlocks, RowCorrection, RowCounts, RowOperation, SampleOrder,
};
use fbp::source::{SampleType, StoredRows, StoredSamples};
use half::f16;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

pub const BINS: usize = 77;
pub const HEIGHT: usize = 9;
const PROJECTIONS: usize = 13;
/// Rows of the detector, in chunks that do not begin at 0.
pub const ROWS: [usize; 5] = [2, 3, 4, 6, 8];
const LARGEST: f64 = 250.0;
/// Signed samples are counts without it.
pub const OFFSET: f64 = 125.0;

/// Counts `[projection][row of the detector][bin]`, fields `[row][bin]`: a beam, bins without light, counts below the dark
/// level, saturated ones.
pub struct Scan {
    pub counts: Vec<f64>,
    pub flat: Vec<f32>,
    pub flat2: Vec<f32>,
    pub dark: Vec<f32>,
}

pub fn scan() -> Scan {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut field =
        |low: f32, high: f32| -> Vec<f32> { (0..HEIGHT * BINS).map(|_| rng.random_range(low..high)).collect() };
    let (mut flat, mut flat2, dark) = (field(150.0, 220.0), field(140.0, 210.0), field(8.0, 12.0));
    // dead in row 3, and at one end of the scan only in row 4
    for image in [&mut flat, &mut flat2] {
        image[3 * BINS + 20] = 5.0;
    }
    flat[4 * BINS + 30] = 1.0;
    let mut counts: Vec<f64> =
        (0..PROJECTIONS * HEIGHT * BINS).map(|_| f64::from(rng.random_range(20..200u8))).collect();
    let at = |p: usize, row: usize, bin: usize| (p * HEIGHT + row) * BINS + bin;
    for p in 0..PROJECTIONS {
        counts[at(p, 6, 11)] = LARGEST;
        counts[at(p, 8, 40)] = 3.0;
    }
    counts[at(7, 2, 0)..at(7, 3, 0)].fill(1.0);
    Scan { counts, flat, flat2, dark }
}

/// Counts as samples of a type, as its files hold them.
pub fn stored(counts: &[f64], samples: StoredSamples) -> Vec<u8> {
    let bytes = |count: f64| -> Vec<u8> {
        let mut bytes = match samples.sample {
            SampleType::U8 => vec![count as u8],
            SampleType::U16 => (count as u16).to_ne_bytes().to_vec(),
            SampleType::U32 => (count as u32).to_ne_bytes().to_vec(),
            // negative ones, too
            SampleType::I8 => ((count - OFFSET) as i8).to_ne_bytes().to_vec(),
            SampleType::I16 => ((count - OFFSET) as i16).to_ne_bytes().to_vec(),
            SampleType::I32 => ((count - OFFSET) as i32).to_ne_bytes().to_vec(),
            SampleType::F16 => f16::from_f64(count).to_ne_bytes().to_vec(),
            SampleType::F32 => (count as f32).to_ne_bytes().to_vec(),
            SampleType::U64 | SampleType::I64 | SampleType::F64 => unreachable!("converted before"),
        };
        if samples.swapped {
            bytes.reverse();
        }
        bytes
    };
    counts.iter().flat_map(|&count| bytes(count)).collect()
}

/// Level of air in a projection.
fn level(p: usize) -> f32 {
    0.9 + 0.02 * p as f32
}

/// What should come out of a row: line integrals, and {dead, not finite, without logarithm, saturated} with the bins.
pub struct Wanted {
    pub line: Vec<f64>,
    pub counts: [u32; 4],
    replaced: Vec<usize>,
    /// Mean of the transmissions before air, each limited to 4 either way.
    level: f64,
}

/// From the definition, in f64.
pub fn wanted(scan: &Scan, p: usize, row: usize, offset: f64, air: AirCorrection, minus_log: bool) -> Wanted {
    let share = p as f64 / (PROJECTIONS - 1) as f64;
    let mut found = Wanted { line: Vec::new(), counts: [0; 4], replaced: Vec::new(), level: 0.0 };
    for bin in 0..BINS {
        let field = row * BINS + bin;
        let count = scan.counts[(p * HEIGHT + row) * BINS + bin] - offset;
        let (first, last) = (f64::from(scan.flat[field]), f64::from(scan.flat2[field]));
        let beam = first + share * (last - first) - f64::from(scan.dark[field]);
        let value = if beam > 0.0 { (count - f64::from(scan.dark[field])) / beam } else { 1.0 };
        let counts = [beam <= 0.0, false, minus_log && value <= 0.0, count >= LARGEST - offset];
        found.counts.iter_mut().zip(counts).for_each(|(sum, now)| *sum += u32::from(now));
        if counts[..3].contains(&true) {
            found.replaced.push(bin);
        }
        found.level += value.clamp(-4.0, 4.0) / BINS as f64;
        found.line.push(value);
    }
    if air == AirCorrection::Levels {
        found.line.iter_mut().for_each(|value| *value /= f64::from(level(p)));
    }
    if let AirCorrection::Sides(left, right) = air {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        // one side alone decides
        let (start, end) = match (left, right) {
            (_, 0) => (mean(&found.line[..left]), mean(&found.line[..left])),
            (0, _) => (mean(&found.line[BINS - right..]), mean(&found.line[BINS - right..])),
            _ => (mean(&found.line[..left]), mean(&found.line[BINS - right..])),
        };
        let (from, to) = ((left as f64 - 1.0) / 2.0, BINS as f64 - 1.0 - (right as f64 - 1.0) / 2.0);
        if start > 0.0 && end > 0.0 {
            for (bin, value) in found.line.iter_mut().enumerate() {
                *value /= start + ((bin as f64 - from) / (to - from)).clamp(0.0, 1.0) * (end - start);
            }
        }
    }
    if minus_log {
        found.line.iter_mut().for_each(|value| *value = -value.max(1e-6).ln());
    }
    found
}

/// Rows of all projections, in all of which replaced values are counted.
pub fn batch(rows: &[usize], place: usize, projections: usize) -> DetectorBatch {
    DetectorBatch { rows: rows.to_vec(), counted: 0..rows.len(), place, projections: 0..projections }
}

/// Corrects all rows, in pieces of 2, into sinograms with a gap between them.
fn correct(
    session: &Session,
    scan: &Scan,
    (samples, order): (StoredSamples, SampleOrder),
    air: AirCorrection,
    minus_log: bool,
) -> (Vec<Vec<f32>>, RowCounts) {
    let state = |number| ProjectionState {
        number,
        progress: number as f32 / (PROJECTIONS - 1) as f32,
        level: level(number),
        watched: number % 2 == 0,
    };
    let correction = RowCorrection {
        fields: Some(FieldImages { flat: &scan.flat, flat2: Some(&scan.flat2), dark: &scan.dark, components: &[] }),
        saturation: Some(if negative(samples.sample) { (LARGEST - OFFSET) as f32 } else { LARGEST as f32 }),
        air,
        after: if minus_log { vec![&LineIntegrals] } else { Vec::new() },
        ..RowCorrection::nothing(BINS, HEIGHT, (0..PROJECTIONS).map(state).collect())
    };
    let shape = BlockShape::straight(RowBlocks::all(2), [BINS, HEIGHT], PROJECTIONS);
    let shape = BlockShape { counted: ROWS.len(), at_once: 2, ..shape };
    let mut corrector =
        BlockCorrector::new(session, &correction, StoredRows::unbinned(samples, BINS), order, shape).unwrap();
    let length = PROJECTIONS * BINS + 5;
    let sinograms: Buffer<f32> = session.buffer(ROWS.len() * length, CL_MEM_READ_WRITE, "sinograms").unwrap();
    for (number, rows) in ROWS.chunks(2).enumerate() {
        let row = |p: usize, row: usize| &scan.counts[(p * HEIGHT + row) * BINS..][..BINS];
        let counts: Vec<f64> = match order {
            SampleOrder::Projections => {
                (0..PROJECTIONS).flat_map(|p| rows.iter().flat_map(move |&r| row(p, r))).copied().collect()
            }
            SampleOrder::Sinograms => {
                rows.iter().flat_map(|&r| (0..PROJECTIONS).flat_map(move |p| row(p, r))).copied().collect()
            }
        };
        let place = 2 * number;
        let into = DeviceRows { values: &sinograms, first: place * length, stride: length };
        corrector.correct_into(session, &batch(rows, place, PROJECTIONS), &stored(&counts, samples), &into).unwrap();
    }
    let counts = corrector.take_counts(session, ROWS.len()).unwrap();
    // what was handed out is forgotten
    let again = corrector.take_counts(session, ROWS.len()).unwrap();
    assert!(again.rows.iter().flatten().chain(&again.unlit).chain(&again.bins).all(|&count| count == 0));
    assert!(again.levels.iter().all(|&level| level == 0) && again.levels.is_empty() != minus_log);
    let mut values = vec![0f32; ROWS.len() * length];
    session.read(&sinograms, &mut values, "sinograms").unwrap();
    (values.chunks(length).map(|sinogram| sinogram[..PROJECTIONS * BINS].to_vec()).collect(), counts)
}

pub fn negative(sample: SampleType) -> bool {
    matches!(sample, SampleType::I8 | SampleType::I16 | SampleType::I32)
}

pub fn session() -> Session {
    Session::open(&enumerate().unwrap()[0]).unwrap()
}

fn check(scan: &Scan, samples: StoredSamples, air: AirCorrection, minus_log: bool, got: &(Vec<Vec<f32>>, RowCounts)) {
    let what = format!("{samples:?} {air:?}, -log {minus_log}");
    let offset = if negative(samples.sample) { OFFSET } else { 0.0 };
    let (sinograms, counts) = got;
    let (mut unlit, mut levels) = ([0; PROJECTIONS], [0.0; PROJECTIONS]);
    for (place, &row) in ROWS.iter().enumerate() {
        let (mut sum, mut bins) = ([0; 4], vec![0; BINS]);
        for p in 0..PROJECTIONS {
            let want = wanted(scan, p, row, offset, air, minus_log);
            for (bin, (got, want)) in sinograms[place][p * BINS..].iter().zip(&want.line).enumerate() {
                assert!(
                    (f64::from(*got) - want).abs() < 2e-6 * want.abs().max(1.0),
                    "{what}: {row}, {p}, {bin}: {got}, {want}"
                );
            }
            sum.iter_mut().zip(want.counts).for_each(|(sum, count)| *sum += count);
            levels[p] += want.level;
            unlit[p] |= u32::from(want.counts[2] == BINS as u32);
            want.replaced.iter().filter(|_| p % 2 == 0).for_each(|&bin| bins[bin] += 1);
        }
        assert_eq!(counts.rows[place], sum, "{what}: row {row}");
        assert_eq!(counts.bins[place * BINS..][..BINS], bins, "{what}: row {row}");
    }
    assert_eq!(counts.unlit, unlit, "{what}");
    for (p, (&got, want)) in counts.levels.iter().zip(levels).enumerate() {
        assert!(
            (f64::from(got) / 4096.0 - want).abs() < ROWS.len() as f64 * 1e-3,
            "{what}: level of {p}: {got}, {want}"
        );
    }
}

#[test]
fn every_sample_type_becomes_line_integrals() {
    let (session, scan) = (session(), scan());
    use SampleType::{F16, F32, I8, I16, I32, U8, U16, U32};
    for sample in [U8, U16, U32, I8, I16, I32, F16, F32] {
        for swapped in [false, true] {
            for order in [SampleOrder::Projections, SampleOrder::Sinograms] {
                let samples = StoredSamples { sample, swapped };
                let got = correct(&session, &scan, (samples, order), AirCorrection::Without, true);
                check(&scan, samples, AirCorrection::Without, true, &got);
            }
        }
    }
}

#[test]
fn air_and_transmissions() {
    let (session, scan) = (session(), scan());
    let form = (StoredSamples { sample: SampleType::U16, swapped: false }, SampleOrder::Projections);
    for (air, minus_log) in [
        (AirCorrection::Sides(9, 5), true),
        (AirCorrection::Sides(9, 5), false),
        (AirCorrection::Sides(0, 4), true),
        (AirCorrection::Sides(7, 0), true),
        (AirCorrection::Levels, true),
        (AirCorrection::Without, false),
    ] {
        let got = correct(&session, &scan, form, air, minus_log);
        check(&scan, form.0, air, minus_log, &got);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (session, scan) = (session(), scan());
    let state = ProjectionState { number: 0, progress: 0.0, level: 1.0, watched: false };
    let correction = RowCorrection {
        fields: Some(FieldImages { flat: &scan.flat, flat2: None, dark: &scan.dark, components: &[] }),
        after: vec![&LineIntegrals],
        ..RowCorrection::nothing(BINS, HEIGHT, vec![state])
    };
    let samples = StoredSamples { sample: SampleType::U8, swapped: false };
    let new = |correction: &RowCorrection, samples| {
        let shape = BlockShape { counted: 3, ..BlockShape::straight(RowBlocks::all(2), [BINS, HEIGHT], 1) };
        let rows = StoredRows::unbinned(samples, BINS);
        BlockCorrector::new(&session, correction, rows, SampleOrder::Projections, shape)
    };
    let mut corrector = new(&correction, samples).unwrap();
    let sinograms: Buffer<f32> = session.buffer(3 * BINS, CL_MEM_READ_WRITE, "sinograms").unwrap();
    let mut run = |bytes: usize, rows: &[usize], place: usize, length: usize| {
        let into = DeviceRows { values: &sinograms, first: place * length, stride: length };
        corrector.correct_into(&session, &batch(rows, place, 1), &vec![9; bytes], &into).is_ok()
    };
    assert!(run(2 * BINS, &[0, 8], 1, BINS));
    assert!(!run(2 * BINS - 1, &[0, 1], 0, BINS), "too few samples");
    assert!(!run(BINS, &[HEIGHT], 0, BINS), "a row without fields");
    assert!(!run(2 * BINS, &[0, 1], 2, BINS), "past the chunk");
    assert!(!run(2 * BINS, &[0, 1], 0, BINS - 1), "sinograms that overlap");
    assert!(!run(2 * BINS, &[0, 1], 1, 2 * BINS), "past the buffer");
    assert!(!run(3 * BINS, &[0, 1, 2], 0, BINS), "more than a piece");
    assert!(new(&correction, StoredSamples { sample: SampleType::F64, swapped: false }).is_err());
    assert!(new(&RowCorrection { bins: BINS - 1, ..correction.clone() }, samples).is_err(), "rows of other bins");
    let twice = vec![&LineIntegrals as &dyn RowOperation; 2];
    assert!(new(&RowCorrection { after: twice, ..correction.clone() }, samples).is_err(), "-log of line integrals");
    let fields = Some(FieldImages { flat: &scan.flat, flat2: None, dark: &scan.dark[1..], components: &[] });
    assert!(new(&RowCorrection { fields, ..correction }, samples).is_err(), "fields of two sizes");
}

/// -log and a polynomial of some rows within a buffer, counted from a later place on: the values of their definitions, what
/// has no result in the counts of its row, and nothing else touched.
#[test]
fn functions_of_rows_count_from_any_place() {
    let session = session();
    let (rows, counted, place, first) = (4, 1..3, 5, 11);
    let (length, counts) = (PROJECTIONS * BINS, [7u32; 4 * 8]);
    let stride = length + 9;
    let at = |row: usize, p: usize, bin: usize| first + row * stride + p * BINS + bin;
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut before: Vec<f32> = (0..first + rows * stride).map(|_| rng.random_range(0.02..2.5)).collect();
    // what neither function has a result for
    for (row, p, bin) in [(0, 0, 0), (1, 3, 76), (2, 0, 0), (2, 12, 64), (2, 12, 76), (3, 1, 5)] {
        before[at(row, p, bin)] = -40.0;
    }
    let minus_log = |value: f64| (-value.max(1e-6).ln(), value <= 0.0);
    let factors = [0.1, -0.02, 0.0, 0.003, 0.0, 0.0, 0.0, 1e-4];
    let polynomial = |p: f64| {
        let value = factors.iter().zip(2..).fold(p, |sum, (&factor, power)| sum + f64::from(factor) * p.powi(power));
        if value.abs() <= 1e6 { (value, false) } else { (0.0, true) }
    };
    let hardening = HardeningPolynomial { factors, largest: 1e6 };
    /// Value of the function, and whether it is replaced.
    type Definition<'a> = &'a dyn Fn(f64) -> (f64, bool);
    let functions: [(&dyn RowOperation, usize, Definition); 2] =
        [(&LineIntegrals, 2, &minus_log), (&hardening, 1, &polynomial)];
    for (operation, column, definition) in functions {
        let mut values: Buffer<f32> = session.buffer(before.len(), CL_MEM_READ_WRITE, "rows").unwrap();
        session.upload(&mut values, 0, &before, "rows").unwrap();
        let mut replaced: Buffer<[u32; 4]> = session.buffer(8, CL_MEM_READ_WRITE, "counts").unwrap();
        session.upload(&mut replaced, 0, bytemuck::cast_slice(&counts), "counts").unwrap();
        let run = |place: usize| {
            let values = DeviceRows { values: &values, first, stride };
            let (counted, counts) = (counted.clone(), &replaced);
            let of = BatchRows { values, rows, projections: PROJECTIONS, bins: BINS, counted, place, counts };
            operation.build(&session).unwrap().run(&session, &of)
        };
        assert!(run(7).is_err(), "past the counts");
        session.wait_for_upload(&run(place).unwrap()).unwrap();
        let (mut got, mut after) = (vec![0f32; before.len()], vec![[0u32; 4]; 8]);
        session.read_uploaded(&values, &mut got, "rows").unwrap();
        session.read_uploaded(&replaced, &mut after, "counts").unwrap();
        let mut want = vec![[7u32; 4]; 8];
        let mut wanted: Vec<f64> = before.iter().map(|&value| value.into()).collect();
        for row in 0..rows {
            for value in &mut wanted[at(row, 0, 0)..][..length] {
                let (result, is_doubtful) = definition(*value);
                *value = result;
                if counted.contains(&row) {
                    want[place + row - counted.start][column] += u32::from(is_doubtful);
                }
            }
        }
        for (i, (&got, want)) in got.iter().zip(&wanted).enumerate() {
            assert!((f64::from(got) - want).abs() < 2e-6 * want.abs().max(1.0), "{operation:?} at {i}: {got}, {want}");
        }
        assert_eq!(after, want, "{operation:?}");
    }
}

/// A filter of 1.4 pixels.
const PHASE: &str = "--phase paganin --energy-kev 20 --distance 20mm --delta-beta 50 --pixel-size 1um";

/// Whole runs, whose rows the host or the device corrects: the same slices within rounding, the same counts.
#[test]
fn runs_do_not_depend_on_who_corrects() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    lab.ok("phantom --size 90 --projections 70 --slices 11 --as projections --photons 3000 --scale 0.03 \
            --flats fl --darks da --output pr");
    // projections without light, bins that fail
    let mut projections = lab.read("pr");
    for (p, page) in projections.pages.iter_mut().enumerate() {
        page[3 * 90 + 17] = 0.0;
        if p % 20 == 4 {
            page[5 * 90..6 * 90].fill(0.0);
        }
    }
    lab.write("planted", "proj", &projections);
    let fields = "--projections planted --flats fl --darks da";
    lab.text("lens.txt", "xcenter = 22.0\nycenter = 4.0\nfactor0 = 0.98\nfactor1 = -1e-3\n");
    for (number, flags) in [
        format!("{fields} --no-minus-log"),
        format!("{fields} --normalize-air 6,4 --slices-per-pass 2"),
        format!("{fields} --normalize-air 2,1,20,3 --binning 2"),
        format!("{fields} --projection-range 4..60 --overall-angle 144 --rows 2..9"),
        "--projections planted --minus-log --exclude 7,9".to_owned(),
        format!("{fields} --stripes sorting:size=5,titarenko --slices-per-pass 4"),
        format!("{fields} --remove-outliers 3,150,both --slices-per-pass 4"),
        format!("{fields} --eigen-flats 0 --rows 2..9"),
        format!("{fields} --double-flat --rows 2..9 --slices-per-pass 2"),
        format!("{fields} --double-flat 2.5 --normalize-air 6,4 --no-minus-log"),
        format!("{fields} --double-flat 1.5 --tilt 1.5 --binning 2 --slices-per-pass 4"),
        format!("{fields} --beam-hardening 0.05,-0.004 --rows 2..9 --slices-per-pass 2"),
        format!("{fields} --beam-hardening=-0.1,0.02 --tilt 1.5 --stripes mean --slices-per-pass 4"),
        format!("{fields} --remove-outliers 5,400 --rows 1..10:3 --normalize-air 6,4"),
        format!("{fields} --tilt 1.5 --slices-per-pass 4"),
        format!("{fields} --tilt 1.5 --binning 2 --remove-outliers 3,150,both --dark-scale 0.8"),
        format!("{fields} --tilt -0.4 --no-minus-log --rows 3..8"),
        format!("{fields} --distortion lens.txt --tilt 1.5 --slices-per-pass 4"),
        format!("{fields} --distortion lens.txt {PHASE} --rows 3..8"),
        format!("{fields} {PHASE} --slices-per-pass 4"),
        format!("{fields} {PHASE} --unsharp 1.2,2 --tilt 1 --remove-outliers 3,150 --normalize-air 6,4 --rows 1..10:2"),
        format!("{fields} {PHASE} --stripes mean --dtype u16 --percentile 1,99 --projection-range 4..61"),
        format!("{fields} --overall-angle 360 --center 20 --extended-field --stripes mean --dtype f16"),
        format!("{fields} --overall-angle 360 --center 20 --extended-field --tilt 0.7 --stripes mean"),
        format!("{fields} --overall-angle 360 --center 70 --extended-field --dtype u16 --percentile 1,99"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut both = Vec::new();
        for profile in ["cpu", "device.toml"] {
            let output = format!("{profile}-{number}");
            let slices = lab.slices(&format!("{flags} --profile {profile} --report r.json"), &output);
            let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
            both.push((slices, report));
        }
        let [(host, on_host), (device, on_device)] = &both[..] else { unreachable!() };
        let range = host.pages.iter().flatten().fold(0f32, |most, v| most.max(v.abs()));
        for (host, device) in host.pages.iter().zip(&device.pages) {
            // the filter amplifies what steps are off by
            let margin = match &flags {
                // next to each other among samples
                _ if flags.contains("--dtype") => 1e-3,
                // images of other sizes, which end beyond the filter's halo
                _ if flags.contains("--phase") => 1e-4,
                // little is left of the transmissions that are interpolated
                _ if flags.contains("--double-flat") && flags.contains("--tilt") => 3e-5,
                _ if ["--stripes", "--tilt", "--distortion"].iter().any(|flag| flags.contains(flag)) => 1e-5,
                _ => 2e-6,
            };
            let worst = host.iter().zip(device).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(worst <= margin * range, "{flags}: {worst:e} of {range}");
        }
        for key in ["clamped", "clamped_by_reason", "replaced_rows", "replaced_bins", "outliers", "saturated"] {
            assert_eq!(on_host.get(key), on_device.get(key), "{flags}: {key}");
        }
    }
}

/// Samples that a device encodes are those of the host, bit for bit, with the same number of clamped values.
#[test]
fn encoded_slices_are_those_of_the_host() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "rows = \"host\"\nsinograms = \"host\"\n");
    lab.ok("phantom --size 61 --projections 40 --slices 7 --noise 0.3 --scale 0.5 --output sin");
    let outside = "--range 0.1,0.3";
    for flags in [
        format!("--dtype u16 {outside}"),
        format!("--dtype u8 {outside} --mask 0.8 --roi 3,5,50,41"),
        "--dtype u16 --percentile 1,99 --slices-per-pass 2".to_owned(),
        // slices of an odd number of bytes, several in a chunk and in a piece
        format!("--dtype u8 {outside} --slices-per-pass 8"),
        "--dtype f16 --slices-per-pass 8 --roi 3,5,49,41".to_owned(),
        "--dtype f16 --mask 1 --pixel-size 0.7um".to_owned(),
        "--mask 0.8 --roi 3,5,50,41 --slices-per-pass 2".to_owned(),
        "--pixel-size 0.7um --sections s.png".to_owned(),
        // values above the largest half
        "--dtype f16 --pixel-size 0.000001um".to_owned(),
    ] {
        for output in ["out", "out.tif"] {
            let mut both = Vec::new();
            for profile in ["cpu", "device.toml"] {
                // else the host would do what the device does wrong
                let checked = format!("--profile {profile} --no-self-test");
                let args = format!("--sinograms sin {flags} {checked} --overwrite --report r.json");
                let pages = lab.slices(&args, output);
                let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
                both.push((pages, report["clipped"].clone()));
            }
            assert!(both[0] == both[1], "{flags} {output}");
            assert!(both[0].1.is_u64(), "{flags}: {}", both[0].1);
        }
    }
    assert_ne!(
        lab.ok("reconstruct --sinograms sin --dtype f16 --pixel-size 0.000001um --profile device.toml --overwrite --output out").1,
        "",
        "values that became infinite are told"
    );
}

/// A step that a device computes incorrectly is found before the run, told, and done by the host.
#[test]
fn wrong_steps_are_left_to_the_host() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    lab.ok("phantom --size 40 --projections 30 --slices 3 --output sin");
    let args = "--sinograms sin --dtype f16 --stripes mean";
    let host = lab.slices(&format!("{args} --profile cpu"), "host");
    let run = format!("reconstruct {args} --profile device.toml --output device");
    let output = lab.command(&run).env("FBP_TEST_FAULT", "encode").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && told.contains("samples of slices, f16: wrong on this device"), "{told}");
    assert!(told.contains("the host does the steps"), "{told}");
    assert_eq!(lab.read("device"), host);
    let extended = "--sinograms sin --overall-angle 360 --center 11 --extended-field";
    let host = lab.slices(&format!("{extended} --profile cpu"), "host-extended");
    let run_extended = format!("reconstruct {extended} --profile device.toml --output extended");
    let output = lab.command(&run_extended).env("FBP_TEST_FAULT", "extend").output().unwrap();
    let told_extended = String::from_utf8(output.stderr).unwrap();
    assert!(told_extended.contains("extension of rows: wrong on this device"), "{told_extended}");
    assert!(output.status.success() && lab.read("extended") == host);
    // without the fault nothing is told, and the verdict is not that of the faulty driver
    let told = lab.ok(&format!("{run} --overwrite")).1;
    assert!(!told.contains("wrong"), "{told}");
}

/// Slices of steps that need the rows around them have the same bits whatever a chunk, a job or a device takes, and
/// values that were replaced are counted once.
#[test]
fn blocks_of_rows_change_no_bit() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    lab.ok("phantom --size 40 --projections 21 --slices 300 --as projections --photons 900 --scale 0.05 \
            --flats fl --darks da --output pr");
    let mut projections = lab.read("pr");
    for page in &mut projections.pages {
        for (row, bin) in [(20, 7), (190, 17), (280, 20)] {
            (row - 4..row + 4).for_each(|row| page[row * 40 + bin - 4..row * 40 + bin + 4].fill(0.0));
        }
    }
    lab.write("planted", "proj", &projections);
    let steps = "--phase paganin --energy-kev 20 --distance 20mm --delta-beta 50 --pixel-size 1um --tilt 0.8";
    let input = format!("--projections planted --flats fl --darks da {steps} --remove-outliers 3,200");
    let device = format!("{input} --profile device.toml --slices-per-pass 4");
    let whole = lab.slices(&format!("{device} --report whole.json"), "whole");
    let host = lab.slices(&format!("{input} --profile cpu --report host.json"), "host");
    let range = host.pages.iter().flatten().fold(0f32, |most, v| most.max(v.abs()));
    let pairs = whole.pages.iter().zip(&host.pages).flat_map(|(a, b)| a.iter().zip(b));
    assert!(pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max) <= 1e-4 * range);
    let report = |name: &str| -> Value { serde_json::from_str(&lab.read_text(name)).unwrap() };
    let counts = |name: &str| ["clamped", "outliers", "saturated"].map(|key| report(name).get(key).cloned());
    assert_eq!(counts("whole.json"), counts("host.json"));
    // the device keeps a block, and the host does
    for (memory, bytes) in [("5M", "630.0 KiB"), ("1M", "120.0 KiB")] {
        let plan = lab.ok(&format!("reconstruct {device} --output o --dry-run --device-memory {memory}")).0;
        assert!(plan.contains(&format!("a block of rows       {bytes}")), "{plan}");
    }
    for (number, flags) in ["--device-memory 5M", "--device-memory 1M", "--device 0/2"].iter().enumerate() {
        let output = format!("other-{number}");
        assert!(lab.slices(&format!("{device} {flags} --report other.json"), &output) == whole, "{flags}");
        assert_eq!(counts("other.json"), counts("whole.json"), "{flags}");
    }
    // the host's memory is in parts of some projections each
    for (number, bytes) in [1, 200_000].iter().enumerate() {
        let output = format!("parts-{number}");
        let mut command = lab.command(&format!("reconstruct {device} --device-memory 1M --output {output}"));
        assert!(command.env("FBP_TEST_FAULT", format!("part={bytes}")).output().unwrap().status.success());
        assert!(lab.read(&output) == whole, "{bytes}");
    }
    for shard in 0..3 {
        lab.ok(&format!("reconstruct {device} --shard {shard}/3 --output shards"));
    }
    assert!(lab.read("shards") == whole);
    let picked: Vec<_> = whole.pages.iter().skip(40).step_by(19).cloned().collect();
    for (output, memory) in [("some", ""), ("some-short", "--device-memory 1M")] {
        let some = lab.slices(&format!("{device} --rows 40..300:19 {memory}"), output);
        assert!(some.pages == picked && picked.len() == 14, "{memory}");
    }
    // where rows of sinograms are longer than those of the block
    let extended = format!("{device} --overall-angle 360 --center 6 --extended-field");
    let plan = lab.ok(&format!("reconstruct {extended} --output o --dry-run --device-memory 1300K")).0;
    assert!(plan.contains("a block of rows       180.0 KiB"), "{plan}");
    let all = lab.slices(&extended, "extended");
    assert!(lab.slices(&format!("{extended} --device-memory 1300K"), "extended-short") == all);
    // rows of a block that nobody asked for are not counted
    for profile in ["cpu", "device.toml"] {
        lab.slices(
            &format!("{input} --profile {profile} --rows 180..205 --report {profile}.json"),
            &format!("rows-{profile}"),
        );
    }
    assert_eq!(counts("cpu.json"), counts("device.toml.json"));
    assert_ne!(counts("cpu.json"), counts("whole.json"));
}

/// Where memory is short, stripes of fewer sinograms are removed together, rather than fewer slices computed per pass, which
/// changes no bit.
#[test]
fn stripes_of_fewer_sinograms_at_a_time() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    lab.ok("phantom --size 60 --projections 40 --slices 40 --output sin");
    let run = "--sinograms sin --profile device.toml --stripes all,titarenko --slices-per-pass 16";
    let whole = lab.slices(run, "whole");
    for (number, (memory, at_once)) in [("800K", 4), ("900K", 8)].iter().enumerate() {
        let some = format!("{run} --device-memory {memory}");
        let (plan, _) = lab.ok(&format!("reconstruct {some} --output o --dry-run"));
        assert!(plan.contains(&format!("stripes of {at_once} sinograms at a time")), "{plan}");
        assert!(plan.contains("16 slices per pass"), "{plan}");
        assert!(lab.slices(&some, &format!("some-{number}")) == whole, "{memory}");
    }
}

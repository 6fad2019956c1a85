//! Steps on projections as images on a device: blocks of rows beside definitions in f64, whatever the blocks and batches.

use fbp::device::{Session, enumerate};
use fbp::fft::image_transform;
use fbp::kernel::ImageFilterBackend;
use fbp::operations::{
    BlockCorrector, BlockPlace, BlockShape, DetectorBatch, ImageFilterForm, ImageSteps, LineIntegrals, ProjectionState,
    RotationForm, RowBlocks, RowCorrection, RowCounts, RowOperation, SampleOrder,
};
use fbp::resampling::PlaceTable;
use fbp::source::{StoredRows, StoredSamples};
use fbp_reference::fourier;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;
use std::ops::Range;

/// Samples of a row.
const F32_ROWS: StoredRows = StoredRows { samples: StoredSamples::F32, by: 1, width: BINS };
const BINS: usize = 41;
const HEIGHT: usize = 37;
const PROJECTIONS: usize = 5;

/// Transmissions of a sample with noise, `[projection][row][bin]`; some rows have values without a logarithm.
fn transmissions() -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let value = |i: usize| {
        let (p, y, x) = (i / (BINS * HEIGHT), i / BINS % HEIGHT, i % BINS);
        let off = [x as f64 / BINS as f64 - 0.4 - 0.02 * p as f64, y as f64 / HEIGHT as f64 - 0.55];
        let inside = if off[0].powi(2) / 0.06 + off[1].powi(2) / 0.1 < 1.0 { 0.3 } else { 0.95 };
        (inside + rng.random_range(-0.05..0.05)) as f32
    };
    let mut values: Vec<f32> = (0..PROJECTIONS * HEIGHT * BINS).map(value).collect();
    for (row, p, bin) in [(6, 0, 5), (18, 2, 17), (20, 4, 18), (30, 1, 33)] {
        let around = (0..49).map(|i| (p * HEIGHT + row - 3 + i / 7) * BINS + bin - 3 + i % 7);
        around.for_each(|at| values[at] = -0.3);
    }
    values
}

/// Pixels beyond the halo change less than the margin.
fn form(length: f64, sigma: f64, sharpening: f64, halo: usize) -> ImageFilterForm {
    ImageFilterForm { length, sigma, sharpening, halo }
}

/// Where pixels of undistorted projections were seen: farther from a centre by 2 % at a distance of 25, and rotated by 1.1
/// degrees.
fn seen([x, z]: [f64; 2]) -> [f64; 2] {
    let [x, z] = rotated_by(1.1)([x, z]);
    let [dx, dz] = [x - 22.5, z - 16.0];
    let factor = 1.0 + 0.02 * (dx * dx + dz * dz) / 625.0;
    [22.5 + factor * dx, 16.0 + factor * dz]
}

fn places() -> PlaceTable {
    PlaceTable::new([BINS, HEIGHT], seen)
}

fn rotated(degrees: f64, filter: Option<ImageFilterForm>) -> ImageSteps {
    ImageSteps { rotation: Some(rotation(degrees)), filter, ..ImageSteps::default() }
}

fn mapped(filter: Option<ImageFilterForm>) -> ImageSteps {
    ImageSteps { map_halo: Some(places().halo), filter, ..ImageSteps::default() }
}

fn rotation(degrees: f64) -> RotationForm {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let halo = (BINS as f64 / 2.0 * sin.abs() + HEIGHT as f64 / 2.0 * (1.0 - cos)).ceil() as usize + 2;
    RotationForm { degrees, halo }
}

/// Positions about the middle of the detector, rotated.
fn rotated_by(degrees: f64) -> impl Fn([f64; 2]) -> [f64; 2] {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let middle = [BINS, HEIGHT].map(|length| (length as f64 - 1.0) / 2.0);
    move |[x, z]| {
        let (dx, dz) = (x - middle[0], z - middle[1]);
        [middle[0] + dx * cos + dz * sin, middle[1] - dx * sin + dz * cos]
    }
}

/// A projection at other positions, by the definition of cubic convolution.
fn resampled(image: &[f64], position: impl Fn([f64; 2]) -> [f64; 2]) -> Vec<f64> {
    let kernel = |x: f64| match x.abs() {
        x if x < 1.0 => 1.5 * x.powi(3) - 2.5 * x * x + 1.0,
        x if x < 2.0 => -0.5 * x.powi(3) + 2.5 * x * x - 4.0 * x + 2.0,
        _ => 0.0,
    };
    let at =
        |y: i64, x: i64| image[y.clamp(0, HEIGHT as i64 - 1) as usize * BINS + x.clamp(0, BINS as i64 - 1) as usize];
    let value = |i: usize| {
        let [x, z] = position([(i % BINS) as f64, (i / BINS) as f64]);
        let mut sum = 0.0;
        for row in z.floor() as i64 - 1..=z.floor() as i64 + 2 {
            for bin in x.floor() as i64 - 1..=x.floor() as i64 + 2 {
                sum += kernel(z - row as f64) * kernel(x - bin as f64) * at(row, bin);
            }
        }
        sum
    };
    (0..HEIGHT * BINS).map(value).collect()
}

/// A projection, extended far by its outermost pixels, filtered by sums over frequencies.
fn filtered(image: &[f64], form: &ImageFilterForm) -> Vec<f64> {
    let pad = 60;
    let [w, h] = [BINS + 2 * pad, HEIGHT + 2 * pad];
    let inner = |i: usize, n: usize| i.saturating_sub(pad).min(n - 1);
    let wide: Vec<(f64, f64)> =
        (0..w * h).map(|i| (image[inner(i / w, HEIGHT) * BINS + inner(i % w, BINS)], 0.0)).collect();
    let turned = |values: &[(f64, f64)], n: usize| -> Vec<(f64, f64)> {
        let lines = values.len() / n;
        (0..values.len()).map(|i| values[i % lines * n + i / lines]).collect()
    };
    let transform = |values: &[(f64, f64)], n: usize, sign: f64| -> Vec<(f64, f64)> {
        values.chunks(n).flat_map(|line| fourier(line, sign)).collect()
    };
    let mut spectrum = transform(&turned(&transform(&wide, w, -1.0), w), h, -1.0);
    for (i, value) in spectrum.iter_mut().enumerate() {
        let f = |i: usize, n: usize| (TAU * i.min(n - i) as f64 / n as f64).powi(2);
        let k2 = f(i / h, w) + f(i % h, h);
        let sharpened = 1.0 + form.sharpening * (1.0 - (-form.sigma.powi(2) * k2 / 2.0).exp());
        let response = sharpened / (1.0 + form.length.powi(2) * k2) / (w * h) as f64;
        *value = (value.0 * response, value.1 * response);
    }
    let back = transform(&turned(&transform(&spectrum, h, 1.0), h), w, 1.0);
    (0..HEIGHT * BINS).map(|i| back[(i / BINS + pad) * w + i % BINS + pad].0).collect()
}

/// All rows `[row][projection][bin]` from a device in blocks of so many rows, in batches of projections, with the counts of
/// every block.
fn on_device(
    session: &Session,
    steps: ImageSteps,
    minus_log: bool,
    rows: usize,
    batch: usize,
) -> (Vec<f32>, Vec<RowCounts>) {
    let values = transmissions();
    let state = |number| ProjectionState { number, progress: 0.0, level: 1.0, watched: true };
    let projections = (0..PROJECTIONS).map(state).collect();
    let after: Vec<&dyn RowOperation> = if minus_log { vec![&LineIntegrals] } else { Vec::new() };
    let table = places();
    let places: &[[i32; 4]] = if steps.map_halo.is_some() { &table.places } else { &[] };
    let nothing = RowCorrection::nothing(BINS, HEIGHT, projections);
    let correction = RowCorrection { images: steps, places, after, ..nothing };
    let blocks = blocks(&steps, rows);
    let shape = BlockShape {
        blocks,
        bins: BINS,
        height: HEIGHT,
        projections: PROJECTIONS,
        batch,
        pairs: 2,
        at_once: 1,
        counted: rows,
        place: match rows == 7 && steps.any() {
            true => BlockPlace::Host { batches: 2 + batch % 4 / 2 },
            false => BlockPlace::Device,
        },
    };
    let order = SampleOrder::Projections;
    let mut corrector = BlockCorrector::new(session, &correction, F32_ROWS, order, shape).unwrap();
    let length = PROJECTIONS * BINS;
    let mut sinograms: Buffer<f32> = session.buffer(HEIGHT * length, CL_MEM_READ_WRITE, "sinograms").unwrap();
    let mut counts = Vec::new();
    for block in 0..HEIGHT.div_ceil(rows) {
        let wanted = blocks.of(block, HEIGHT);
        let read = around(&wanted, blocks.halo());
        for start in (0..PROJECTIONS).step_by(batch) {
            let projections = start..(start + batch).min(PROJECTIONS);
            let samples = samples(&values, projections.clone(), &read);
            let rows: Vec<usize> = wanted.clone().collect();
            let batch = DetectorBatch { counted: 0..rows.len(), rows, place: 0, projections };
            corrector.correct(session, &batch, &samples).unwrap();
        }
        counts.push(corrector.take_counts(session, wanted.len()).unwrap());
        let first = wanted.start * length;
        corrector.copy(session, &wanted.collect::<Vec<_>>(), &mut sinograms, first, length).unwrap();
    }
    session.finish_uploads().unwrap();
    let mut out = vec![0f32; HEIGHT * length];
    session.read(&sinograms, &mut out, "sinograms").unwrap();
    (out, counts)
}

fn blocks(steps: &ImageSteps, rows: usize) -> RowBlocks {
    RowBlocks {
        rows,
        rotation_halo: steps.map_halo.or(steps.rotation.map(|rotation| rotation.halo)).unwrap_or(0),
        mapped: steps.map_halo.is_some(),
        filter_halo: steps.filter.map_or(0, |filter| filter.halo),
        images: steps.filter.map(|filter| {
            let length = |least: usize| (least + 2 * filter.halo).next_power_of_two();
            [length(BINS), length(rows)]
        }),
    }
}

/// Rows with those around them.
fn around(rows: &Range<usize>, halo: usize) -> Range<usize> {
    rows.start.saturating_sub(halo)..(rows.end + halo).min(HEIGHT)
}

fn samples(values: &[f32], projections: Range<usize>, rows: &Range<usize>) -> Vec<u8> {
    let rows_of = |p: usize| &values[(p * HEIGHT + rows.start) * BINS..(p * HEIGHT + rows.end) * BINS];
    projections.flat_map(rows_of).flat_map(|value| value.to_ne_bytes()).collect()
}

/// The same from definitions, with the number of values without a logarithm in every row.
fn wanted(steps: ImageSteps, minus_log: bool) -> (Vec<f64>, Vec<u32>) {
    let (mut out, mut dark) = (vec![0.0; PROJECTIONS * HEIGHT * BINS], vec![0; HEIGHT]);
    for (p, image) in transmissions().chunks(HEIGHT * BINS).enumerate() {
        let mut image: Vec<f64> = image.iter().map(|&value| f64::from(value)).collect();
        if let Some(rotation) = steps.rotation {
            image = resampled(&image, rotated_by(rotation.degrees));
        }
        if steps.map_halo.is_some() {
            image = resampled(&image, seen);
        }
        if let Some(filter) = &steps.filter {
            image = filtered(&image, filter);
        }
        for (i, value) in image.into_iter().enumerate() {
            let (row, bin) = (i / BINS, i % BINS);
            dark[row] += u32::from(minus_log && value <= 0.0);
            out[(row * PROJECTIONS + p) * BINS + bin] = if minus_log { -value.max(1e-6).ln() } else { value };
        }
    }
    (out, dark)
}

fn session() -> Session {
    Session::open(&enumerate().unwrap()[0]).unwrap()
}

/// A device whose local memory holds no line of an image: clFFT transforms them.
fn small_session() -> Session {
    let mut session = session().with_image_transforms(ImageFilterBackend::Fused, image_transform);
    session.facts.local_memory = 256;
    session
}

#[test]
fn blocks_are_what_definitions_say() {
    compare(&session(), &[(HEIGHT, 6), (16, 2), (7, 4)]);
}

/// Also of the last batch, which has fewer pairs than are transformed at once.
#[test]
fn images_that_a_library_transforms() {
    compare(&small_session(), &[(HEIGHT, 6), (7, 4)]);
    let steps = ImageSteps { filter: Some(form(1.4, 1.0, 1.0, 40)), ..ImageSteps::default() };
    let bits = |session: &Session, batch| -> Vec<u32> {
        on_device(session, steps, true, 16, batch).0.into_iter().map(f32::to_bits).collect()
    };
    let small = small_session();
    let all = bits(&small, 6);
    assert!(all == bits(&small, 2) && all != bits(&session(), 6));
    // as a profile says, whatever fits
    assert!(all == bits(&session().with_image_transforms(ImageFilterBackend::Transform, image_transform), 6));
}

/// Without a library there is an error, and no image is left as it was.
#[test]
fn long_lines_need_a_library() {
    let mut session = session();
    session.facts.local_memory = 256;
    let state = ProjectionState { number: 0, progress: 0.0, level: 1.0, watched: false };
    let steps = ImageSteps { filter: Some(form(1.0, 0.0, 0.0, 10)), ..ImageSteps::default() };
    let correction = RowCorrection { images: steps, ..RowCorrection::nothing(BINS, HEIGHT, vec![state; 2]) };
    let shape = BlockShape::straight(blocks(&steps, 8), [BINS, HEIGHT], 2);
    assert!(BlockCorrector::new(&session, &correction, F32_ROWS, SampleOrder::Projections, shape).is_err());
}

fn compare(session: &Session, sizes: &[(usize, usize)]) {
    let filter = Some(form(1.4, 0.0, 0.0, 40));
    for (steps, minus_log) in [
        (ImageSteps::default(), true),
        (rotated(3.0, None), false),
        (rotated(-0.7, None), true),
        (ImageSteps { filter, ..ImageSteps::default() }, true),
        (ImageSteps { filter: Some(form(1.0, 1.3, 2.5, 110)), ..ImageSteps::default() }, false),
        (rotated(1.1, filter), true),
        (mapped(None), true),
        (mapped(filter), false),
    ] {
        let (want, dark) = wanted(steps, minus_log);
        let largest = 1.0 + steps.filter.map_or(0.0, |filter| filter.sharpening);
        for &(rows, batch) in sizes {
            let what = format!("{steps:?}, -log {minus_log}, blocks of {rows}");
            let (got, counts) = on_device(session, steps, minus_log, rows, batch);
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                // of transmissions, and what -log makes of that
                let margin = 2e-5 * largest * if minus_log { want.exp().max(1.0) } else { 1.0 };
                assert!((f64::from(*got) - want).abs() < margin, "{what}: {i}: {got}, {want}");
            }
            let found: Vec<u32> = counts.iter().flat_map(|counts| counts.rows.iter().map(|row| row[2])).collect();
            assert!(!minus_log || dark.iter().sum::<u32>() > 2, "{what}");
            assert_eq!(found, dark, "{what}");
            assert!(counts.iter().flat_map(|counts| &counts.rows).all(|row| row[0] + row[1] + row[3] == 0), "{what}");
        }
    }
}

#[test]
fn batches_change_no_bit() {
    let session = session();
    for steps in [rotated(1.1, Some(form(1.4, 1.0, 1.0, 40))), mapped(None)] {
        let bits = |batch| -> Vec<u32> {
            on_device(&session, steps, true, 16, batch).0.into_iter().map(f32::to_bits).collect()
        };
        let all = bits(6);
        assert!(all == bits(2) && all == bits(4));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let session = session();
    let steps = rotated(1.0, None);
    let state = ProjectionState { number: 0, progress: 0.0, level: 1.0, watched: false };
    let correction = |images| RowCorrection { images, ..RowCorrection::nothing(BINS, HEIGHT, vec![state; 3]) };
    let place = BlockPlace::Device;
    let shape = BlockShape { batch: 2, place, ..BlockShape::straight(blocks(&steps, 8), [BINS, HEIGHT], 3) };
    let order = SampleOrder::Projections;
    let new = |images, shape| BlockCorrector::new(&session, &correction(images), F32_ROWS, order, shape);
    let mut corrector = new(steps, shape).unwrap();
    assert!(new(ImageSteps::default(), shape).is_err(), "rows around blocks that no step needs");
    let all = BlockShape { blocks: RowBlocks::all(HEIGHT), ..shape };
    let on_host = BlockPlace::Host { batches: 2 };
    assert!(new(ImageSteps::default(), BlockShape { place: on_host, ..all }).is_err(), "kept for no step");
    assert!(new(steps, BlockShape { batch: 3, ..shape }).is_err(), "half a pair");
    assert!(new(steps, BlockShape { projections: 4, ..shape }).is_err(), "other projections");
    let filter = ImageSteps { filter: Some(form(1.0, 0.0, 0.0, 40)), ..steps };
    assert!(new(filter, shape).is_err(), "blocks without images");
    let mut run = |block: usize, projections: Range<usize>, more: usize| {
        let rows = shape.blocks.of(block, HEIGHT);
        let read = around(&rows, shape.blocks.halo());
        let bytes = 4 * BINS * read.len() * projections.len() + more;
        let batch = DetectorBatch { counted: 0..rows.len(), rows: rows.collect(), place: 0, projections };
        corrector.correct(&session, &batch, &vec![0; bytes]).is_ok()
    };
    assert!(run(0, 0..2, 0) && run(4, 2..3, 0));
    assert!(!run(0, 0..2, 4), "too many samples");
    assert!(!run(5, 0..2, 0), "past the detector");
    assert!(!run(0, 1..2, 0), "half a pair");
    assert!(!run(0, 2..4, 0), "past the scan");
    assert!(!run(0, 0..3, 0), "more than a batch");
    let mut sinograms: Buffer<f32> = session.buffer(3 * BINS, CL_MEM_READ_WRITE, "sinograms").unwrap();
    let length = 3 * BINS;
    assert!(corrector.copy(&session, &[3], &mut sinograms, 0, length).is_ok());
    assert!(corrector.copy(&session, &[3], &mut sinograms, 1, length).is_err(), "past the buffer");
    assert!(corrector.copy(&session, &[3, 4], &mut sinograms, 0, length).is_err(), "more than the buffer");
}

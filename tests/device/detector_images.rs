//! What a device corrects by images of the detector beside flat and dark fields, against the definition.

use super::correction::{BINS, HEIGHT, ROWS, batch, scan, session, stored, wanted};
use fbp::operations::{
    AirCorrection, BlockCorrector, BlockShape, DeviceRows, FieldImages, LineIntegrals, ProjectionState, RowBlocks,
    RowCorrection, SampleOrder,
};
use fbp::source::{SampleType, StoredRows, StoredSamples};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

/// The beam of a projection is that of the flats and components of it, each with a weight.
#[test]
fn components_are_added_to_the_beam() {
    let (session, scan) = (session(), scan());
    let samples = StoredSamples { sample: SampleType::U16, swapped: false };
    let count = 3;
    let components: Vec<f32> = (0..count * HEIGHT * BINS).map(|i| 12.0 * (i as f32 * 0.37).sin()).collect();
    let weights: Vec<f32> = (0..2 * count).map(|i| 1.4 - 0.6 * i as f32).collect();
    for flat2 in [None, Some(scan.flat2.as_slice())] {
        let state = |number: usize| ProjectionState { number, progress: number as f32, level: 1.0, watched: false };
        let correction = RowCorrection {
            fields: Some(FieldImages { flat: &scan.flat, flat2, dark: &scan.dark, components: &components }),
            weights: weights.clone(),
            ..RowCorrection::nothing(BINS, HEIGHT, vec![state(0), state(1)])
        };
        let shape =
            BlockShape { counted: ROWS.len(), ..BlockShape::straight(RowBlocks::all(ROWS.len()), [BINS, HEIGHT], 2) };
        let rows = StoredRows::unbinned(samples, BINS);
        let mut corrector = BlockCorrector::new(&session, &correction, rows, SampleOrder::Projections, shape).unwrap();
        let sinograms: Buffer<f32> = session.buffer(ROWS.len() * 2 * BINS, CL_MEM_READ_WRITE, "sinograms").unwrap();
        let of_projection = |p: usize| {
            ROWS.iter().flat_map(move |row| p * HEIGHT * BINS + row * BINS..p * HEIGHT * BINS + (row + 1) * BINS)
        };
        let counts: Vec<f64> = (0..2).flat_map(of_projection).map(|at| scan.counts[at]).collect();
        let into = DeviceRows { values: &sinograms, first: 0, stride: 2 * BINS };
        corrector.correct_into(&session, &batch(&ROWS, 0, 2), &stored(&counts, samples), &into).unwrap();
        corrector.take_counts(&session, ROWS.len()).unwrap();
        let mut values = vec![0f32; ROWS.len() * 2 * BINS];
        session.read(&sinograms, &mut values, "sinograms").unwrap();
        for (at, got) in values.into_iter().enumerate() {
            let (row, p, bin) = (ROWS[at / (2 * BINS)], at / BINS % 2, at % BINS);
            let pixel = row * BINS + bin;
            let last = flat2.unwrap_or(&scan.flat)[pixel];
            let mean = if p == 0 { scan.flat[pixel] } else { last };
            let dark = f64::from(scan.dark[pixel]);
            let beam = (0..count).fold(f64::from(mean) - dark, |beam, k| {
                beam + f64::from(weights[p * count + k]) * f64::from(components[k * HEIGHT * BINS + pixel])
            });
            let count = scan.counts[(p * HEIGHT + row) * BINS + bin];
            let want = if beam > 0.0 { (count - dark) / beam } else { 1.0 };
            assert!((f64::from(got) - want).abs() < 3e-6 * want.abs().max(1.0), "{p}, {row}, {bin}: {got}, {want}");
        }
    }
}

/// What is divided by varies from pixel to pixel, and makes some values too large to be carried.
#[test]
fn transmissions_are_divided_by_an_image() {
    let (session, scan) = (session(), scan());
    let samples = StoredSamples { sample: SampleType::U16, swapped: false };
    let image: Vec<f32> =
        (0..HEIGHT * BINS).map(|i| if i % 50 == 7 { 1e-6 } else { 0.4 + (i % 97) as f32 * 0.01 }).collect();
    let largest = 1e5;
    for minus_log in [true, false] {
        let state = ProjectionState { number: 0, progress: 0.0, level: 1.0, watched: false };
        let correction = RowCorrection {
            fields: Some(FieldImages { flat: &scan.flat, flat2: Some(&scan.flat2), dark: &scan.dark, components: &[] }),
            divisor: Some(&image),
            largest,
            after: if minus_log { vec![&LineIntegrals] } else { Vec::new() },
            ..RowCorrection::nothing(BINS, HEIGHT, vec![state])
        };
        let shape =
            BlockShape { counted: ROWS.len(), ..BlockShape::straight(RowBlocks::all(ROWS.len()), [BINS, HEIGHT], 1) };
        let rows = StoredRows::unbinned(samples, BINS);
        let mut corrector = BlockCorrector::new(&session, &correction, rows, SampleOrder::Projections, shape).unwrap();
        let sinograms: Buffer<f32> = session.buffer(ROWS.len() * BINS, CL_MEM_READ_WRITE, "sinograms").unwrap();
        let counts: Vec<f64> = ROWS.iter().flat_map(|row| &scan.counts[row * BINS..][..BINS]).copied().collect();
        let into = DeviceRows { values: &sinograms, first: 0, stride: BINS };
        corrector.correct_into(&session, &batch(&ROWS, 0, 1), &stored(&counts, samples), &into).unwrap();
        let found = corrector.take_counts(&session, ROWS.len()).unwrap();
        let mut values = vec![0f32; ROWS.len() * BINS];
        session.read(&sinograms, &mut values, "sinograms").unwrap();
        for (place, &row) in ROWS.iter().enumerate() {
            let without = wanted(&scan, 0, row, 0.0, AirCorrection::Without, false);
            let mut counts = wanted(&scan, 0, row, 0.0, AirCorrection::Without, minus_log).counts;
            counts[3] = 0;
            for (bin, transmission) in without.line.into_iter().enumerate() {
                let divided = transmission / f64::from(image[row * BINS + bin]);
                let too_large = divided.abs() > f64::from(largest);
                counts[1] += u32::from(too_large);
                counts[2] -= u32::from(minus_log && too_large && divided <= 0.0);
                let value = if too_large { f64::from(u8::from(minus_log)) } else { divided };
                let want = if minus_log { -value.max(1e-6).ln() } else { value };
                let got = f64::from(values[place * BINS + bin]);
                assert!((got - want).abs() < 2e-6 * want.abs().max(1.0), "{row}, {bin}: {got}, {want}");
            }
            assert_eq!(found.rows[place], counts, "row {row}");
        }
    }
}

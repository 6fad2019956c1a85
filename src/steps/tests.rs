use super::*;
use crate::files::{InputSet, OutputFile, OutputKind};
use crate::geometry::Roi;
use crate::sink::{Dtype, Encoding, write_image};
use crate::source::{DistortionMap, Stack};
use fbp_reference::smoothed;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;

const BINS: usize = 60;
const ROWS: usize = 90;
const COUNT: usize = 3;

fn write(directory: &Path, name: &str, frames: &[Vec<f32>]) -> Stack {
    let directory = directory.join(name);
    std::fs::create_dir(&directory).unwrap();
    let encoding = Encoding { dtype: Dtype::F32, range: None };
    for (i, frame) in frames.iter().enumerate() {
        let path = directory.join(format!("f_{i}.tif"));
        let file = OutputFile::new("--output", &path, OutputKind::Tiff, &InputSet::default(), None).unwrap();
        write_image(&file, (BINS, ROWS), frame, encoding).unwrap();
    }
    Stack::open(directory.to_str().unwrap(), "--projections").unwrap()
}

/// A sample in the middle, a beam that fades from projection to projection, and zingers.
fn scan(directory: &Path) -> Stack {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let frames: Vec<Vec<f32>> = (0..COUNT)
        .map(|p| {
            let beam = 1000.0 * (1.0 - 0.2 * p as f32);
            let pixel = |i: usize| {
                let inside = (20..40).contains(&(i % BINS)) && (10..80).contains(&(i / BINS));
                100.0 + beam * if inside { 0.3 } else { 1.0 } + rng.random_range(-5.0..5.0)
            };
            let mut frame: Vec<f32> = (0..ROWS * BINS).map(pixel).collect();
            for _ in 0..40 {
                frame[rng.random_range(0..ROWS * BINS)] = 60000.0;
            }
            frame
        })
        .collect();
    write(directory, "projections", &frames)
}

/// The scan with its fields.
fn stacks(directory: &Path) -> Stacks {
    let field = |name: &str, level: f32| Some(write(directory, name, &[vec![level; ROWS * BINS]]));
    Stacks { flats: field("flats", 1100.0), darks: field("darks", 50.0), ..Stacks::of(scan(directory)) }
}

/// All rows of some projections.
fn scope(used: &[usize], full_projections: bool) -> Scope<'_> {
    Scope { median: false, used, rows: &(0..ROWS), full_projections, means: None }
}

fn preparation(stacks: &Stacks, steps: &Steps, full_projections: bool) -> Preparation {
    let used: Vec<usize> = (0..COUNT).collect();
    Preparation::open(steps, stacks, scope(&used, full_projections)).unwrap()
}

fn steps() -> Steps {
    Steps {
        outliers: Some(Outliers::new(3, 300.0, false)),
        air: Some(Air::Region(Roi { x: 2, y: 5, width: 10, height: 60 })),
        tilt: Some(Tilt { degrees: 1.2 }),
        phase: Some(Paganin { length: 1.5, unsharp: None }),
        fields: FieldCorrection { dark_scale: Some(2.0), eigen: None },
        ..Default::default()
    }
}

fn whole(projections: &Stack, preparation: &Preparation, p: usize) -> (Vec<f32>, Counts) {
    let mut values = vec![0f32; ROWS * BINS];
    projections.read_rows(p, 0..ROWS, &mut values).unwrap();
    let mut counts = Counts::default();
    preparation.projection(Band::new(&mut values, ROWS, 0..ROWS, 0..ROWS).of(p, COUNT), &mut counts);
    (values, counts)
}

#[test]
fn counts_become_line_integrals() {
    let directory = tempfile::tempdir().unwrap();
    let stacks = stacks(directory.path());
    for air in [Air::Region(Roi { x: 2, y: 5, width: 10, height: 60 }), Air::Sides(8, 8)] {
        let steps = Steps { phase: None, tilt: None, air: Some(air), ..steps() };
        let preparation = preparation(&stacks, &steps, true);
        let mut counts = Counts::default();
        for p in 0..COUNT {
            let (values, replaced) = whole(&stacks.data, &preparation, p);
            counts += replaced;
            for (i, value) in values.iter().enumerate() {
                let inside = (20..40).contains(&(i % BINS)) && (10..80).contains(&(i / BINS));
                let expected = if inside { -(0.3f32.ln()) } else { 0.0 };
                // corners of the sample are outliers of nothing but themselves
                assert!((value - expected).abs() < 0.04, "{p}: {value} at {},{}", i % BINS, i / BINS);
            }
        }
        assert!(counts.outliers > 100);
        assert_eq!((counts.clamped, counts.values), (ClampedCounts::default(), (COUNT * ROWS * BINS) as u64));
    }
}

#[test]
fn bands_equal_whole_projections() {
    let directory = tempfile::tempdir().unwrap();
    let stacks = stacks(directory.path());
    let (all, bands) = (preparation(&stacks, &steps(), true), preparation(&stacks, &steps(), false));
    let block = bands.block().unwrap();
    assert!(block < ROWS);
    let mut counts = [Counts::default(), Counts::default()];
    for p in 0..COUNT {
        let (expected, replaced) = whole(&stacks.data, &all, p);
        counts[0] += replaced;
        for first in (0..ROWS).step_by(block) {
            let wanted = first..(first + block).min(ROWS);
            let read = widened(&wanted, bands.halo(), ROWS);
            let mut values = vec![0f32; read.len() * BINS];
            stacks.data.read_rows(p, read.clone(), &mut values).unwrap();
            let band = Band::new(&mut values, ROWS, read.clone(), wanted.clone()).of(p, COUNT);
            bands.projection(band, &mut counts[1]);
            let found = &values[(wanted.start - read.start) * BINS..(wanted.end - read.start) * BINS];
            for (a, b) in found.iter().zip(&expected[wanted.start * BINS..]) {
                assert!((a - b).abs() < 3e-5, "{a} and {b} in projection {p}, rows {wanted:?}");
            }
        }
    }
    // what is read twice is counted once
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn what_steps_have_in_common_is_prepared_once() {
    let directory = tempfile::tempdir().unwrap();
    let stacks = stacks(directory.path());
    let used: Vec<usize> = (0..COUNT).collect();
    let scope = scope(&used, true);
    let other = Steps { phase: Some(Paganin { length: 3.0, unsharp: None }), ..steps() };
    let [first, anew] = [steps(), other.clone()].map(|steps| Preparation::open(&steps, &stacks, scope).unwrap());
    std::fs::write(directory.path().join("flats/f_0.tif"), "not read again").unwrap();
    let steps_before = steps();
    let like = |steps: &Steps| Preparation::like(Some((&steps_before, &first)), steps, &stacks, scope);
    let found = like(&other).unwrap();
    for p in 0..COUNT {
        assert_eq!(whole(&stacks.data, &found, p), whole(&stacks.data, &anew, p));
    }
    // fields after another step are others
    assert!(like(&Steps { outliers: None, ..steps() }).is_err());
}

#[test]
fn outliers_leave_the_fields_frames() {
    let directory = tempfile::tempdir().unwrap();
    let mut frame = vec![100f32; ROWS * BINS];
    for place in [0, 15 * BINS + 7, 16 * BINS + 30, ROWS * BINS - 1] {
        frame[place] = 9000.0;
    }
    let projections = write(directory.path(), "projections", &[vec![50.0; ROWS * BINS]]);
    let flats = write(directory.path(), "flats", &[frame]);
    let stacks = Stacks { flats: Some(flats), ..Stacks::of(projections) };
    let outliers = Some(Outliers::new(3, 100.0, false));
    let steps = Steps { outliers, logarithm: Logarithm::Never, ..Steps::default() };
    let (values, counts) = whole(&stacks.data, &preparation(&stacks, &steps, true), 0);
    assert!(values.iter().all(|v| *v == 0.5));
    assert_eq!(counts.outliers, 0);
}

#[test]
fn steps_are_plain_data() {
    let stripes = vec![Stripes::Sorting { size: 21 }, Stripes::Wavelet { moments: 5, level: None, sigma: 2.0 }];
    let steps = Steps { stripes, ..steps() };
    let text = serde_json::to_string(&steps).unwrap();
    assert_eq!(serde_json::from_str::<Steps>(&text).unwrap(), steps);
}

const CENTER: [f64; 2] = [27.5, 49.0];
/// Pixels are seen nearer to the centre, by 6 % at the corners.
const FACTORS: [f64; 3] = [0.999, -1e-4, -1.6e-5];

/// The polynomial from its definition.
fn seen_at([x, y]: [f64; 2]) -> [f64; 2] {
    let r = ((x - CENTER[0]).powi(2) + (y - CENTER[1]).powi(2)).sqrt();
    let factor = FACTORS[0] + FACTORS[1] * r + FACTORS[2] * r * r;
    [CENTER[0] + factor * (x - CENTER[0]), CENTER[1] + factor * (y - CENTER[1])]
}

fn distortion(beyond: BeyondDetector) -> Option<Distortion> {
    Some(Distortion { form: DistortionForm::Coefficients, beyond })
}

/// Corrects distortion and tilt alone, besides the fields.
fn undistorted(tilt: Option<Tilt>) -> Steps {
    Steps { distortion: distortion(BeyondDetector::Refuse), tilt, logarithm: Logarithm::Never, ..Steps::default() }
}

/// The positions of all pixels as images.
fn positions(seen: impl Fn([f64; 2]) -> [f64; 2]) -> DistortionMap {
    let along =
        |axis: usize| (0..ROWS * BINS).map(|i| seen([(i % BINS) as f64, (i / BINS) as f64])[axis] as f32).collect();
    DistortionMap::of_positions([BINS, ROWS], [along(0), along(1)])
}

#[test]
fn a_distortion_and_a_tilt_are_one_interpolation() {
    let directory = tempfile::tempdir().unwrap();
    let mut stacks = stacks(directory.path());
    let (image, _) =
        whole(&stacks.data, &preparation(&stacks, &Steps { distortion: None, ..undistorted(None) }, true), 0);
    let kernel = |x: f64| match x.abs() {
        x if x < 1.0 => 1.5 * x.powi(3) - 2.5 * x * x + 1.0,
        x if x < 2.0 => -0.5 * x.powi(3) + 2.5 * x * x - 4.0 * x + 2.0,
        _ => 0.0,
    };
    let pixel = |row: i64, bin: i64| {
        let (row, bin) = (row.clamp(0, ROWS as i64 - 1) as usize, bin.clamp(0, BINS as i64 - 1) as usize);
        f64::from(image[row * BINS + bin])
    };
    let largest = image.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    for (tilt, of_images, margin) in [
        (None, false, 3e-6),
        (Some(Tilt { degrees: -1.7 }), false, 3e-6),
        // positions are f32, with lines between them: 6e-4 pixels beside a curve like this, on an edge of all values
        (None, true, 3e-5),
        (Some(Tilt { degrees: 2.3 }), true, 1e-3),
    ] {
        let radial = DistortionMap::radial(CENTER, FACTORS.to_vec());
        stacks.distortion = Some(if of_images { positions(seen_at) } else { radial });
        let (values, _) = whole(&stacks.data, &preparation(&stacks, &undistorted(tilt), true), 0);
        let (sin, cos) = tilt.map_or(0.0, |tilt| tilt.degrees).to_radians().sin_cos();
        for (i, value) in values.iter().enumerate() {
            let (dx, dz) = ((i % BINS) as f64 - 29.5, (i / BINS) as f64 - 44.5);
            let upright = [29.5 + dx * cos + dz * sin, 44.5 - dx * sin + dz * cos];
            if of_images && (upright[0] < 0.0 || upright[0] > 59.0 || upright[1] < 0.0 || upright[1] > 89.0) {
                continue;
            }
            let [x, z] = seen_at(upright);
            let (ix, iz) = (x.floor() as i64, z.floor() as i64);
            let around = (iz - 1..=iz + 2).flat_map(|row| (ix - 1..=ix + 2).map(move |bin| (row, bin)));
            let want: f64 =
                around.map(|(row, bin)| kernel(z - row as f64) * kernel(x - bin as f64) * pixel(row, bin)).sum();
            let off = (f64::from(*value) - want).abs() / f64::from(largest);
            assert!(off < margin, "{tilt:?}, {of_images}: {value} and {want} at {},{}: {off:.1e}", i % BINS, i / BINS);
        }
    }
}

#[test]
fn without_distortion_no_bit_changes() {
    let directory = tempfile::tempdir().unwrap();
    let mut stacks = stacks(directory.path());
    for tilt in [None, Some(Tilt { degrees: 1.2 })] {
        let of = |steps: &Steps, stacks: &Stacks| {
            let preparation = preparation(stacks, steps, true);
            (whole(&stacks.data, &preparation, 1).0, preparation.halo(), preparation.block())
        };
        let without = of(&Steps { distortion: None, ..undistorted(tilt) }, &stacks);
        for map in [DistortionMap::radial(CENTER, vec![1.0, 0.0, 0.0, 0.0, 0.0]), positions(|at| at)] {
            stacks.distortion = Some(map);
            assert_eq!(of(&undistorted(tilt), &stacks), without);
        }
        stacks.distortion = None;
    }
}

#[test]
fn bands_of_undistorted_projections_equal_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut stacks = stacks(directory.path());
    stacks.distortion = Some(DistortionMap::radial(CENTER, FACTORS.to_vec()));
    for tilt in [None, Some(Tilt { degrees: 2.5 })] {
        let (all, bands) =
            (preparation(&stacks, &undistorted(tilt), true), preparation(&stacks, &undistorted(tilt), false));
        let (expected, _) = whole(&stacks.data, &all, 2);
        for first in (0..ROWS).step_by(5) {
            let wanted = first..(first + 5).min(ROWS);
            let read = widened(&wanted, bands.halo(), ROWS);
            let mut values = vec![0f32; read.len() * BINS];
            stacks.data.read_rows(2, read.clone(), &mut values).unwrap();
            bands.projection(
                Band::new(&mut values, ROWS, read.clone(), wanted.clone()).of(2, COUNT),
                &mut Counts::default(),
            );
            let found = &values[(wanted.start - read.start) * BINS..(wanted.end - read.start) * BINS];
            assert_eq!(found, &expected[wanted.start * BINS..wanted.end * BINS], "{tilt:?}: {wanted:?}");
        }
    }
}

#[test]
fn pixels_that_no_detector_saw_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut stacks = stacks(directory.path());
    let steps = |beyond| Steps { distortion: distortion(beyond), ..undistorted(None) };
    let used: Vec<usize> = (0..COUNT).collect();
    let scope = scope(&used, true);
    // by 3 % farther from the middle
    stacks.distortion = Some(DistortionMap::radial([29.5, 44.5], vec![1.03]));
    let outside = |i: usize| {
        let past = |at: usize, middle: f64| 1.03 * (at as f64 - middle).abs() > middle + 0.5;
        past(i % BINS, 29.5) || past(i / BINS, 44.5)
    };
    let count = (0..ROWS * BINS).filter(|&i| outside(i)).count();
    let said = Preparation::open(&steps(BeyondDetector::Refuse), &stacks, scope).err().unwrap().to_string();
    assert!(said.contains(&format!("{count} of 5400 pixels")) && said.contains("up to 0.8 pixels beyond"), "{said}");
    let remarks = Preparation::open(&steps(BeyondDetector::Repeat), &stacks, scope).unwrap().remarks();
    assert!(remarks.iter().any(|remark| remark.text().contains(&format!("{count} of 5400 pixels"))), "{remarks:?}");
    // nowhere at all, whatever is repeated
    stacks.distortion = Some(DistortionMap::radial([29.5, 44.5], vec![1.0, f64::MAX, f64::MAX]));
    assert!(Preparation::open(&steps(BeyondDetector::Repeat), &stacks, scope).is_err());
    // positions of another detector
    stacks.distortion = Some(DistortionMap::of_positions([2, 2], [vec![0.0; 4], vec![0.0; 4]]));
    let said = Preparation::open(&steps(BeyondDetector::Repeat), &stacks, scope).err().unwrap().to_string();
    assert!(said.contains("2x2 pixels") && said.contains("60x90"), "{said}");
}

/// What is divided by, from the definition.
fn common(transmissions: &[Vec<f64>], sigma: Option<f64>) -> Vec<f64> {
    let mean = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
        let pixel = |i: usize| transmissions.iter().map(|page| of(page[i])).sum::<f64>() / transmissions.len() as f64;
        (0..ROWS * BINS).map(pixel).collect()
    };
    let Some(sigma) = sigma else { return mean(&|value| value) };
    let lines = mean(&|value| -value.max(1e-6).ln());
    lines.iter().zip(smoothed(&lines, BINS, sigma)).map(|(line, smooth)| (smooth - line).exp()).collect()
}

/// Transmissions without noise in the fields; of the others only the definition is known.
fn transmissions(stacks: &Stacks, used: &[usize]) -> Vec<Vec<f64>> {
    let page = |&p: &usize| {
        let mut values = vec![0f32; ROWS * BINS];
        stacks.data.read_rows(p, 0..ROWS, &mut values).unwrap();
        values.iter().map(|count| (f64::from(*count) - 50.0) / (1100.0 - 50.0)).collect()
    };
    used.iter().map(page).collect()
}

#[test]
fn transmissions_are_divided_by_what_projections_have_in_common() {
    let directory = tempfile::tempdir().unwrap();
    let stacks = stacks(directory.path());
    let steps = |double_flat| Steps { double_flat, logarithm: Logarithm::Never, ..Steps::default() };
    // the last Gaussian is wider than the detector
    for (double_flat, sigma) in [
        (DoubleFlat::Mean, None),
        (DoubleFlat::HighPass(0.7), Some(0.7)),
        (DoubleFlat::HighPass(2.3), Some(2.3)),
        (DoubleFlat::HighPass(25.0), Some(25.0)),
    ] {
        for used in [&[0, 1, 2][..], &[0, 2]] {
            let wide = sigma.is_some_and(|sigma| sigma > 20.0);
            if wide && used.len() < COUNT {
                continue;
            }
            let all = transmissions(&stacks, used);
            let by = common(&all, sigma);
            let open = |rows: &Range<usize>| {
                let scope = Scope { rows, ..scope(used, true) };
                Preparation::open(&steps(Some(double_flat)), &stacks, scope).unwrap()
            };
            let (prepared, some) = (open(&(0..ROWS)), open(&(20..31)));
            for (page, &p) in all.iter().zip(used) {
                let (values, counts) = whole(&stacks.data, &prepared, p);
                for (at, got) in values.iter().enumerate() {
                    let want = page[at] / by[at];
                    let off = (f64::from(*got) - want).abs() / want.abs().max(1.0);
                    assert!(off < 3e-6, "{double_flat}, {used:?}: {got} and {want} at {},{}", at % BINS, at / BINS);
                }
                assert_eq!(counts.clamped.total(), 0);
                // no bit depends on the rows that are needed
                let (found, _) = whole(&stacks.data, &some, p);
                assert_eq!(found[20 * BINS..31 * BINS], values[20 * BINS..31 * BINS]);
                // nor on a step before that needs rows around them, and changes nothing
                let outliers = Some(Outliers::new(3, 1e9, false));
                let before =
                    Preparation::open(&Steps { outliers, ..steps(Some(double_flat)) }, &stacks, scope(used, true));
                assert_eq!(whole(&stacks.data, &before.unwrap(), p).0, values);
            }
        }
    }
}

#[test]
fn what_is_measured_of_some_projections_does_not_serve_others() {
    let directory = tempfile::tempdir().unwrap();
    let stacks = stacks(directory.path());
    let steps = Steps { double_flat: Some(DoubleFlat::Mean), ..Steps::default() };
    let open = |used: &[usize], rows: &Range<usize>| {
        Preparation::open(&steps, &stacks, Scope { rows, ..scope(used, false) }).unwrap()
    };
    let first = open(&[0, 1], &(10..40));
    assert!(first.serves(&[0, 1], &(12..40)) && !first.serves(&[0, 2], &(12..40)));
    assert!(!first.serves(&[0, 1], &(9..40)) && !first.serves(&[0, 1], &(10..41)));
    for (used, rows) in [(&[0, 1][..], 10..40), (&[0, 2], 10..40), (&[0, 1], 0..ROWS)] {
        let scope = Scope { rows: &rows, ..scope(used, false) };
        let like = Preparation::like(Some((&steps, &first)), &steps, &stacks, scope).unwrap();
        let anew = open(used, &rows);
        let [like, anew] = [like, anew].map(|preparation| whole(&stacks.data, &preparation, used[1]));
        assert_eq!(like, anew, "{used:?}, {rows:?}");
    }
    // without the step, all projections are served
    assert!(preparation(&stacks, &Steps::default(), false).serves(&[2], &(0..1)));
}

#[test]
fn pixels_without_light_are_not_divided() {
    let directory = tempfile::tempdir().unwrap();
    let dark = |level: f32| {
        let mut page = vec![level; ROWS * BINS];
        page[7] = 0.0;
        page[8] = -1.0;
        page[9] = f32::NAN;
        page
    };
    let stacks = Stacks::of(write(directory.path(), "projections", &[dark(0.5), dark(1.0), dark(1.5)]));
    let steps = |logarithm| Steps { double_flat: Some(DoubleFlat::Mean), logarithm, ..Steps::default() };
    let (values, _) = whole(&stacks.data, &preparation(&stacks, &steps(Logarithm::Always), true), 0);
    assert!((f64::from(values[0]) - 2f64.ln()).abs() < 1e-6, "{}", values[0]);
    assert!(values[7] == values[8] && (values[7] - 13.8155).abs() < 1e-3 && values[9] == 0.0, "{:?}", &values[..10]);
    let said = Preparation::open(&steps(Logarithm::Never), &stacks, scope(&[0], true)).err().unwrap().to_string();
    assert!(said.contains("--double-flat: divides transmissions"), "{said}");
}

#[test]
fn currents_scale_projections() {
    let directory = tempfile::tempdir().unwrap();
    let plain = stacks(directory.path());
    let flats2 = write(directory.path(), "flats2", &[vec![900.0; ROWS * BINS]]);
    let steps = |current| Steps { current, logarithm: Logarithm::Never, ..Steps::default() };
    let currents = BeamCurrents {
        projections: vec![180.0, 150.0, 160.0],
        flats: Some(200.0),
        flats2: Some(140.0),
        title: "--beam-current c.txt".into(),
        file: None,
    };
    let mut stacks = Stacks { currents: Some(currents.clone()), ..plain };
    for (flats2, of_flats) in [(None, [200.0; 3]), (Some(flats2), [200.0, 170.0, 140.0])] {
        stacks.flats2 = flats2;
        let [before, scaled] =
            [None, Some(CurrentSource::File)].map(|current| preparation(&stacks, &steps(current), true));
        for (p, of_flat) in of_flats.into_iter().enumerate() {
            let factor = of_flat / currents.projections[p];
            let (values, counts) = whole(&stacks.data, &scaled, p);
            for (got, before) in values.iter().zip(whole(&stacks.data, &before, p).0) {
                let want = f64::from(before) * factor;
                assert!((f64::from(*got) - want).abs() < 3e-7 * want.abs(), "{p}: {got} and {want}");
            }
            assert_eq!(counts.clamped.total(), 0);
        }
    }
    // relative to the mean of the projections, without those that have no current
    let of_projections = BeamCurrents { flats: None, flats2: None, projections: vec![180.0, 0.0, 160.0], ..currents };
    stacks.currents = Some(of_projections);
    let open = |used: &[usize]| Preparation::open(&steps(Some(CurrentSource::File)), &stacks, scope(used, true));
    let said = open(&[0, 1]).err().unwrap().to_string();
    assert!(said.contains("--beam-current c.txt: the current of projection 1 is 0"), "{said}");
    let prepared = open(&[0, 2]).unwrap();
    assert!(prepared.remarks()[0].text().contains("the mean of their own currents, 170"), "{:?}", prepared.remarks());
    let before = preparation(&stacks, &steps(None), true);
    let [scaled, before] = [prepared, before].map(|prepared| f64::from(whole(&stacks.data, &prepared, 2).0[5]));
    assert!((scaled / before - 170.0 / 160.0).abs() < 1e-6, "{scaled} and {before}");
}

//! The search of the rotation axis: random samples with a known axis, and what must be refused.

use super::scans::{Ellipse, Scan};
use fbp_base::center::{AGREEMENT, AxisEstimate, AxisSearch, AxisVerdict, Method, Sinograms, accept, find};
use fbp_base::error::Result;
use fbp_base::geometry::even_angles;
use fbp_base::phantom::add_gaussian;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Median, largest and number of refusals; prints the row of docs/dev/axis.md.
fn errors(name: &str, scans: &[Scan], find: impl Fn(&Scan) -> Result<AxisEstimate>) -> (f64, f64, usize) {
    let mut errors = Vec::new();
    for scan in scans {
        match find(scan) {
            Ok(found) => errors.push((found.value - scan.axis).abs()),
            Err(error) => println!("axis {:.2}: {error}", scan.axis),
        }
    }
    errors.sort_by(f64::total_cmp);
    let (median, worst) = (errors[errors.len() / 2], errors[errors.len() - 1]);
    let refused = scans.len() - errors.len();
    println!("{name}: median {median:.3}, worst {worst:.3}, refused {refused} of {}", scans.len());
    (median, worst, refused)
}

fn search(method: Method, sinograms: &Sinograms, range: Option<(f64, f64)>) -> Result<AxisEstimate> {
    find(sinograms, Some(method), range).map(|search| search.found[0])
}

fn one(method: Method) -> impl Fn(&Scan) -> Result<AxisEstimate> {
    move |scan| accept(&find(&scan.sinograms(), Some(method), None)?)
}

fn by_itself(scan: &Scan) -> Result<AxisEstimate> {
    accept(&find(&scan.sinograms(), None, None)?)
}

#[test]
fn random_samples() {
    for (name, overall, most_refused) in [("half turn", 180.0, 2), ("181 degrees", 181.0, 2), ("whole turn", 360.0, 2)]
    {
        let scans: Vec<Scan> = (0..30).map(|seed| Scan::random(seed, overall, 0.15, false)).collect();
        for method in [Method::Likelihood, Method::Registration, Method::Vo] {
            let (median, worst, _) = errors(&format!("{name}, {method}"), &scans, one(method));
            assert!(median <= 0.1 && worst <= 0.5);
        }
        let (median, worst, refused) = errors(&format!("{name}, auto"), &scans, by_itself);
        assert!(median <= 0.1 && worst <= 0.5 && refused <= most_refused);
    }
}

#[test]
fn off_centre_whole_turns() {
    let scans: Vec<Scan> = (0..30).map(|seed| Scan::random(seed, 360.0, 0.42, true)).collect();
    assert!(scans.iter().any(|s| s.axis < 0.15 * s.bins as f64) && scans.iter().any(|s| s.axis > 0.85 * s.bins as f64));
    let (median, worst, refused) = errors("off centre, auto", &scans, by_itself);
    assert!(median <= 0.1 && worst <= 0.5 && refused <= 5);
}

#[test]
fn sharp_slices() {
    let scans: Vec<Scan> = (0..12).map(|seed| Scan::random(seed, 180.0, 0.1, false)).collect();
    let (median, worst, refused) = errors("half turn, sweep", &scans, one(Method::Sweep));
    // half of them are correct, but not certain
    assert!(median <= 0.05 && worst <= 0.15 && refused <= 6);
}

#[test]
fn nothing_to_find_is_refused() {
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let mut noise = vec![0f32; 90 * 80];
    add_gaussian(&mut noise, 1.0, rng);
    for (what, row) in [("zeros", vec![0f32; 90 * 80]), ("a constant", vec![2.5; 90 * 80]), ("noise", noise)] {
        for overall in [180.0, 360.0] {
            let sinograms = Sinograms::new(80, &even_angles(0.0, overall, 90), &[&row]);
            let error = accept(&find(&sinograms, None, None).unwrap()).unwrap_err();
            assert_eq!(error.exit_code(), 3, "{what}");
            assert!(error.to_string().contains("rotation axis: "), "{what}: {error}");
            for method in [Method::Likelihood, Method::Registration, Method::Vo, Method::Overlap] {
                let found = search(method, &sinograms, None);
                assert!(
                    found.is_err() || found.unwrap().verdict != AxisVerdict::Ok,
                    "{method} finds an axis in {what}"
                );
            }
        }
    }
}

#[test]
fn an_axis_beyond_the_range_is_refused() {
    for seed in 0..8 {
        let scan = Scan::random(seed, 180.0, 0.05, false);
        for (low, high) in [(scan.axis - 25.0, scan.axis - 4.0), (scan.axis + 4.0, scan.axis + 25.0)] {
            for method in [Method::Likelihood, Method::Registration, Method::Vo] {
                let found = search(method, &scan.sinograms(), Some((low, high))).unwrap();
                assert_ne!(found.verdict, AxisVerdict::Ok, "{method} finds {:.2} in {low:.1}..{high:.1}", found.value);
            }
        }
        let narrow = search(Method::Vo, &scan.sinograms(), Some((scan.axis - 6.0, scan.axis + 6.0))).unwrap();
        assert!(narrow.verdict == AxisVerdict::Ok && (narrow.value - scan.axis).abs() < 0.3);
    }
}

#[test]
fn round_samples_about_the_axis_have_one() {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    for (overall, axis) in [(180.0, 47.3), (360.0, 52.8)] {
        let disc = |radius: f64, value| Ellipse { centre: [0.0; 2], half: [radius; 2], tilt: 0.0, value };
        let rows = [vec![disc(30.0, 1.0), disc(12.0, 0.5)]];
        let scan = Scan::of(100, &[axis; 120], even_angles(0.0, overall, 120), &rows, 0.01, rng);
        let found = by_itself(&scan).unwrap();
        assert!((found.value - axis).abs() < 0.1, "{}", found.value);
    }
}

#[test]
fn methods_say_what_they_need() {
    let rng = &mut ChaCha8Rng::seed_from_u64(7);
    let rows = [vec![Ellipse::random(rng, 30.0, 0.4)]];
    let scan = Scan::of(80, &[40.0; 60], even_angles(0.0, 90.0, 60), &rows, 0.0, rng);
    for method in [Method::Registration, Method::Overlap, Method::Vo] {
        let error = search(method, &scan.sinograms(), None).unwrap_err();
        assert!(error.exit_code() == 3 && error.to_string().contains("try the method sweep"), "{error}");
    }
    // a quarter of a turn says little: it is refused, or right
    let found = find(&scan.sinograms(), None, None).unwrap().found[0];
    assert!(found.verdict != AxisVerdict::Ok || (found.value - 40.0).abs() < 0.5, "{found}");
    for range in [(-1.0, 30.0), (30.0, 80.0), (30.0, 32.0)] {
        assert_eq!(search(Method::Sweep, &scan.sinograms(), Some(range)).unwrap_err().exit_code(), 2);
    }
}

#[test]
fn methods_that_differ_are_refused_with_both_values() {
    // the detector was moved after half a turn, of which the first half knows nothing
    let mut scan = Scan::random(4, 360.0, 0.05, false);
    let (bins, half) = (scan.bins, scan.angles.len() / 2);
    for row in &mut scan.rows {
        row[half * bins..].chunks_mut(bins).for_each(|values| values.rotate_right(6));
    }
    let search = find(&scan.sinograms(), None, None).unwrap();
    let error = accept(&search).unwrap_err().to_string();
    let found = &search.found;
    let of = |method| found.iter().find(|found| found.method == method).unwrap().value;
    let [overlap, vo] = [Method::Overlap, Method::Vo].map(of);
    assert!((overlap - vo).abs() > AGREEMENT, "{found:?}");
    for named in ["ambiguous".to_owned(), format!("overlap {overlap:.2}"), format!("vo {vo:.2}")] {
        assert!(error.contains(&named), "{error}");
    }
}

#[test]
fn angles_that_the_ends_contradict_are_refused() {
    let mut full = Scan::random(2, 360.0, 0.1, false);
    let mut half = Scan::random(2, 180.0, 0.1, false);
    let (of_whole, of_half) = (full.angles.len(), half.angles.len());
    full.angles = even_angles(0.0, 180.0, of_whole);
    half.angles = even_angles(0.0, 360.0, of_half);
    for (scan, instead) in [(full, "--overall-angle 360"), (half, "--overall-angle 180")] {
        for method in [None, Some(Method::Registration), Some(Method::Vo), Some(Method::Sweep)] {
            let search = find(&scan.sinograms(), method, None).unwrap();
            assert!(search.found.iter().all(|found| found.verdict == AxisVerdict::Angles), "{search:?}");
            assert!(search.note.unwrap().contains(instead), "{search:?}");
            assert!(accept(&search).unwrap_err().to_string().contains("--overall-angle 360"));
        }
    }
    // the sample moved half way: the ends do not match at all, which is a note
    let mut moved = Scan::random(2, 180.0, 0.1, false);
    let (bins, count) = (moved.bins, moved.angles.len());
    for row in &mut moved.rows {
        row[(count - 3) * bins..].chunks_mut(bins).for_each(|values| values.iter_mut().for_each(|v| *v = 1.0));
        row[(count - 3) * bins..].chunks_mut(bins).for_each(|values| values[bins / 5] = 40.0);
    }
    assert!(find(&moved.sinograms(), None, None).unwrap().note.unwrap().contains("the sample moved"));
    // a round sample about the axis looks the same from everywhere
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let disc = Ellipse { centre: [0.0; 2], half: [30.0; 2], tilt: 0.0, value: 1.0 };
    let round = Scan::of(100, &[47.3; 120], even_angles(0.0, 180.0, 120), &[vec![disc]], 0.01, rng);
    assert_eq!(find(&round.sinograms(), None, None).unwrap().note, None);
}

/// Rows of which each has an axis of its own, on a line: the slope and its error, and none where there is none. The last
/// detector is so wide that its rows are binned.
#[test]
fn the_tilt_of_the_axis_is_found() {
    let numbers: Vec<usize> = (0..8).map(|row| 100 * row).collect();
    let scans = [(160, 0.0), (160, 0.1), (160, -0.5), (160, 1.5), (160, 0.0), (160, 0.0), (1200, 0.6)];
    for (seed, (bins, degrees)) in scans.into_iter().enumerate() {
        let rng = &mut ChaCha8Rng::seed_from_u64(20 + seed as u64);
        let (slope, middle) = (f64::tan(f64::to_radians(degrees)), bins as f64 / 2.0 + 3.0);
        let (count, rows) = (if bins > 1000 { 500 } else { 200 }, if bins > 1000 { 3 } else { 8 });
        let numbers = &numbers[..rows];
        let between = (numbers[0] + numbers[rows - 1]) as f64 / 2.0;
        let rows: Vec<Vec<f32>> = numbers
            .iter()
            .map(|row| {
                let axis = middle + slope * (*row as f64 - between);
                let sample: Vec<Ellipse> = (0..6).map(|_| Ellipse::random(rng, bins as f64 / 3.0, 0.4)).collect();
                Scan::of(bins, &vec![axis; count], even_angles(0.0, 180.0, count), &[sample], 0.02, rng).rows.remove(0)
            })
            .collect();
        let slices: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let sinograms = Sinograms::of_rows(bins, &even_angles(0.0, 180.0, count), numbers, &slices);
        let search = find(&sinograms, None, None).unwrap();
        let (found, tilt) = (accept(&search).unwrap(), search.tilt.unwrap());
        assert!((found.value - middle).abs() < 0.2, "{degrees}: {found}");
        let [of, error] = [tilt.slope.atan().to_degrees(), tilt.uncertainty.to_degrees()];
        println!("tilt {degrees}: {of:.4} +- {error:.4} degrees");
        let allowed = (0.1 * degrees.abs()).max(2.0 * error);
        assert!(if degrees == 0.0 { of == 0.0 } else { (of - degrees).abs() <= allowed }, "{degrees}: {of} +- {error}");
        assert!(error < 0.1, "{degrees}: +- {error}");
    }
}

/// A sample that is cut off does not draw the axis to the middle of the detector.
#[test]
fn samples_that_are_cut_off_have_an_axis() {
    for (seed, axis) in [85.0, 90.0, 101.0, 106.0].into_iter().enumerate() {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed as u64);
        let rows: Vec<Vec<Ellipse>> =
            (0..4).map(|_| (0..30).map(|_| Ellipse::random(rng, 180.0, 0.12)).collect()).collect();
        let scan = Scan::of(192, &[axis; 300], even_angles(0.0, 180.0, 300), &rows, 0.01, rng);
        let found = by_itself(&scan).unwrap();
        assert!((found.value - axis).abs() < 0.3, "{axis}: {found}");
    }
}

/// A refusal names what to try, with numbers.
#[test]
fn a_refusal_is_a_next_step() {
    let estimate = |method, value, verdict| AxisEstimate { method, value, uncertainty: 0.3, mass: 0.9, verdict };
    let doubtful = estimate(Method::Likelihood, 45.9, AxisVerdict::Ambiguous);
    let mut search = AxisSearch { found: vec![doubtful], note: None, second: Some((62.7, 0.08)), tilt: None };
    let refused = |search: &AxisSearch| accept(search).unwrap_err().to_string();
    let error = refused(&search);
    for part in ["--sweep 43..48:0.5", "--sweep 60..65:0.5", "45.90, 92 %, and 62.70, 8 %", "--center 45.90"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    search.found.push(estimate(Method::Registration, 46.1, AxisVerdict::Ok));
    search.second = None;
    let error = refused(&search);
    assert!(error.contains("--sweep 43..48:0.5 --output") && error.contains("--center auto:registration"), "{error}");
    search.found[0].verdict = AxisVerdict::Flat;
    assert!(refused(&search).contains("--rows"));
}

/// Scans that are too small to say anything end in an answer or a refusal.
#[test]
fn the_smallest_scans_are_answered() {
    for (bins, count) in [(4, 9), (8, 8), (8, 9), (9, 40), (12, 8), (16, 200)] {
        let bump = |bin: usize| (1.0 - ((bin as f32 - bins as f32 / 2.0) / (bins as f32 / 3.0 + 1.0)).powi(2)).max(0.0);
        let row: Vec<f32> = (0..bins * count).map(|i| bump(i % bins)).collect();
        for overall in [90.0, 180.0, 360.0] {
            let sinograms = Sinograms::new(bins, &even_angles(0.0, overall, count), &[&row]);
            if let Ok(search) = find(&sinograms, None, None) {
                assert!((0.0..bins as f64).contains(&search.found[0].value), "{bins} {count}: {search:?}");
            }
        }
    }
}

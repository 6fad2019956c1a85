//! Scans in several parts: at several heights, and by detectors side by side.

use crate::support::cli::{Lab, Pages, farthest};
use fbp::geometry::{cos_sin_degrees, even_angles};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use std::f64::consts::TAU;

const BINS: usize = 96;
const ROWS: usize = 112;
const COUNT: usize = 20;
const AXIS: f64 = 47.5;
/// Where parts are cut off from the whole detector, in rows.
const STEP: usize = 40;
const HEIGHT: usize = 72;
const DARK: f64 = 100.0;

/// Gaussians `[x, y, z, sigma, value]` all over the volume, y upwards.
fn sample() -> Vec<[f64; 5]> {
    let mut random = ChaCha8Rng::seed_from_u64(47);
    let mut blob = || {
        let (radius, angle) = (34.0 * random.random::<f64>().sqrt(), random.random_range(0.0..TAU));
        let (z, sigma) = (random.random_range(-10.0..ROWS as f64 + 10.0), random.random_range(2.5..4.0));
        [radius * angle.cos(), radius * angle.sin(), z, sigma, random.random_range(0.005..0.02)]
    };
    (0..90).map(|_| blob()).collect()
}

/// Transmissions of a sample by a detector of so many bins and rows, whose first row and bin are anywhere.
fn transmissions(sample: &[[f64; 5]], [bins, rows]: [usize; 2], [bin, row]: [f64; 2]) -> Vec<Vec<f64>> {
    let page = |angle: f64| {
        let (cos, sin) = cos_sin_degrees(angle);
        let mut page = vec![0f64; bins * rows];
        for [x, y, z, sigma, value] in sample {
            let at = AXIS + x * cos + y * sin;
            let gauss = |from: f64, count: usize, at: f64| -> Vec<f64> {
                (0..count).map(|i| (-(from + i as f64 - at).powi(2) / (2.0 * sigma * sigma)).exp()).collect()
            };
            let (across, down) = (gauss(bin, bins, at), gauss(row, rows, *z));
            for (line, down) in page.chunks_mut(bins).zip(down) {
                let height = value * sigma * TAU.sqrt() * down;
                line.iter_mut().zip(&across).for_each(|(pixel, across)| *pixel += height * across);
            }
        }
        page.into_iter().map(|line| (-line).exp()).collect()
    };
    even_angles(0.0, 180.0, COUNT).into_iter().map(page).collect()
}

/// Gain of a pixel of a detector, unlike that of another.
fn gain(detector: usize, pixel: usize) -> f64 {
    9000.0 + 1000.0 * ((pixel * (7 + 2 * detector)) % 13) as f64 / 13.0
}

/// Counts of a detector for a beam that is `beam` times that of its flats, with noise of a standard deviation.
fn write_part(lab: &Lab, name: &str, detector: usize, width: usize, seen: &[Vec<f64>], [beam, noise]: [f64; 2]) {
    let mut random = ChaCha8Rng::seed_from_u64(detector as u64 + 1);
    let normal = Normal::new(0.0, noise).unwrap();
    let mut counts = |page: &Vec<f64>| {
        let count = |(pixel, value): (usize, &f64)| {
            (DARK + gain(detector, pixel) * beam * value + normal.sample(&mut random)) as f32
        };
        page.iter().enumerate().map(count).collect::<Vec<f32>>()
    };
    let stack = Pages { width, pages: seen.iter().map(&mut counts).collect() };
    let field = |level: &dyn Fn(usize) -> f64| Pages {
        width,
        pages: vec![(0..seen[0].len()).map(|pixel| level(pixel) as f32).collect()],
    };
    lab.write(&format!("{name}/p"), "p", &stack);
    lab.write(&format!("{name}/f"), "f", &field(&|pixel| DARK + gain(detector, pixel)));
    lab.write(&format!("{name}/d"), "d", &field(&|_| DARK));
}

/// Flags for the files that [`write_part`] writes.
const FILES: &str = "--projections {part}/p --flats {part}/f --darks {part}/d";

/// Rows or bins of pages.
fn cut(whole: &[Vec<f64>], width: usize, rows: std::ops::Range<usize>, bins: std::ops::Range<usize>) -> Vec<Vec<f64>> {
    let page = |page: &Vec<f64>| {
        let lines = page.chunks(width).skip(rows.start).take(rows.len());
        lines.flat_map(|line| line[bins.clone()].to_vec()).collect()
    };
    whole.iter().map(page).collect()
}

/// The numbers after a word in the line of a part that a dry run prints: overlap and its uncertainty.
fn printed(plan: &str, part: &str) -> [f64; 2] {
    let line = plan.lines().find(|line| line.contains(&format!("{part}/p: "))).unwrap_or_else(|| panic!("{plan}"));
    let after = line.split("overlap ").nth(1).unwrap_or_else(|| panic!("{line}"));
    let numbers: Vec<f64> = after.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    [numbers[0], numbers[1]]
}

/// Largest difference of values.
fn apart(a: &Pages, b: &Pages) -> f64 {
    let values = |pages: &Pages| pages.pages.concat();
    let (a, b) = (values(a), values(b));
    assert_eq!(a.len(), b.len());
    a.iter().zip(&b).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max)
}

/// Parts `a` and `b` of the whole detector, one above the other, and the whole itself as `whole`.
fn two_heights(lab: &Lab, [beam, noise]: [f64; 2]) -> Vec<Vec<f64>> {
    let whole = transmissions(&sample(), [BINS, ROWS], [0.0, 0.0]);
    write_part(lab, "whole", 5, BINS, &whole, [1.0, 0.0]);
    write_part(lab, "a", 0, BINS, &cut(&whole, BINS, 0..HEIGHT, 0..BINS), [1.0, noise]);
    write_part(lab, "b", 1, BINS, &cut(&whole, BINS, STEP..ROWS, 0..BINS), [beam, noise]);
    whole
}

/// Two parts with other gains, the second with another beam than in its flats, are those of the whole detector.
///
/// The error of a transmission is at most five roundings, 5 x 2^-24; that of its logarithm is as large. Filter and back
/// projection multiply it by at most pi / 2 (the sum of the ramp's magnitudes is 1/2, that of the weights pi), and do their own
/// rounding in both runs, which is below 1e-6 of the values, of at most 0.1.
#[test]
fn parts_at_two_heights_give_the_slices_of_the_whole() {
    let lab = Lab::new();
    two_heights(&lab, [0.97, 0.0]);
    let flags = "--center 47.5 --device 0";
    let whole = lab.slices(&format!("--projections whole/p --flats whole/f --darks whole/d {flags}"), "whole-slices");
    let stack = lab.slices(&format!("--stack a b {FILES} --z-step 40 {flags}"), "stack-slices");
    let margin = std::f64::consts::FRAC_PI_2 * 5.0 / f64::from(1 << 24) + 2e-7;
    let found = apart(&stack, &whole);
    println!("{found:.2e} of {margin:.2e}");
    assert!(found < margin, "{found:e}");
    // parts in the other order, and found rather than given
    for (name, order) in [("upwards", "b a"), ("again", "a b")] {
        let found = lab.slices(&format!("--stack {order} {FILES} {flags}"), name);
        // the level is that of the first part
        let level = if name == "upwards" { 0.97f64.ln().abs() } else { 0.0 };
        assert!(apart(&found, &whole) < margin + level, "{name}: {:e}", apart(&found, &whole));
    }
    // nothing depends on what is read at once
    let bytes = lab.bytes("stack-slices");
    for (name, more) in
        [("bands", "--memory 60M --device-memory 40M"), ("few", "--device 0/2"), ("own", "--slices-per-pass 1")]
    {
        lab.ok(&format!("reconstruct -q --stack a b {FILES} --z-step 40 {flags} {more} --output {name}"));
        if name == "own" {
            assert!(apart(&lab.read(name), &stack) < margin);
        } else {
            assert!(lab.bytes(name) == bytes, "{name}");
        }
    }
    for shard in ["0/2", "1/2"] {
        lab.ok(&format!("reconstruct -q --stack a b {FILES} --z-step 40 {flags} --shard {shard} --output shards"));
    }
    assert!(lab.bytes("shards") == bytes);
    lab.ok(&format!("reconstruct -q --stack a b {FILES} --z-step 40 {flags} --rows 50..60 --output rows"));
    // a run of few slices may take another kernel
    let some = Pages { width: BINS, pages: stack.pages[50..60].to_vec() };
    assert!(apart(&lab.read("rows"), &some) < margin);
}

/// Transmissions of a part in `f64`.
fn corrected(lab: &Lab, name: &str) -> Vec<Vec<f64>> {
    let read = |kind: &str| lab.read(&format!("{name}/{kind}")).pages;
    let (flats, darks) = (read("f").concat(), read("d").concat());
    let value = |(pixel, count): (usize, &f32)| {
        let dark = f64::from(darks[pixel]);
        (f64::from(*count) - dark) / (f64::from(flats[pixel]) - dark)
    };
    read("p").iter().map(|page| page.iter().enumerate().map(value).collect()).collect()
}

/// What the joined projections are, from the definition in `f64`: transmissions, levels by sums over what is shared, linear
/// weights that are neither 0 nor 1.
#[test]
fn joined_projections_are_as_defined() {
    let lab = Lab::new();
    two_heights(&lab, [0.9, 30.0]);
    let (a, b) = (corrected(&lab, "a"), corrected(&lab, "b"));
    let shared = HEIGHT - STEP;
    let of_a: f64 = a.iter().map(|page| page[STEP * BINS..].iter().sum::<f64>()).sum();
    let of_b: f64 = b.iter().map(|page| page[..shared * BINS].iter().sum::<f64>()).sum();
    let level = of_a / of_b;
    assert!((level - 1.0 / 0.9).abs() < 1e-3);
    let value = |page: usize, row: usize, bin: usize| match row {
        row if row < STEP => a[page][row * BINS + bin],
        row if row >= HEIGHT => level * b[page][(row - STEP) * BINS + bin],
        row => {
            let weight = (row - STEP + 1) as f64 / (shared + 1) as f64;
            (1.0 - weight) * a[page][row * BINS + bin] + weight * level * b[page][(row - STEP) * BINS + bin]
        }
    };
    let page = |page: usize| (0..ROWS * BINS).map(|i| value(page, i / BINS, i % BINS) as f32).collect();
    let defined = Pages { width: BINS, pages: (0..COUNT).map(page).collect() };
    lab.ok(&format!("preprocess --stack a b {FILES} --z-step 40 --no-minus-log --output joined"));
    let joined = lab.read("joined");
    assert!(farthest(&joined, &defined) < 5.0 / f64::from(1 << 23), "{:e}", farthest(&joined, &defined));
    // binned afterwards
    let means = |page: &Vec<f32>| {
        let at = |row: usize, bin: usize| page[row * BINS + bin];
        let mean = |i: usize| {
            let (row, bin) = (2 * (i / (BINS / 2)), 2 * (i % (BINS / 2)));
            (at(row, bin) + at(row, bin + 1) + at(row + 1, bin) + at(row + 1, bin + 1)) / 4.0
        };
        (0..ROWS * BINS / 4).map(mean).collect()
    };
    let binned = Pages { width: BINS / 2, pages: joined.pages.iter().map(means).collect() };
    lab.ok(&format!("preprocess --stack a b {FILES} --z-step 40 --no-minus-log --binning 2 --output binned"));
    assert!(farthest(&lab.read("binned"), &binned) < 1e-6);
}

#[test]
fn a_stack_of_one_is_a_plain_scan() {
    let lab = Lab::new();
    two_heights(&lab, [1.0, 30.0]);
    let flags = "--center 47.5 --rows 3..9 --remove-outliers 3,500";
    lab.ok(&format!("reconstruct -q --projections a/p --flats a/f --darks a/d {flags} --output plain"));
    for (name, parts) in [("one", "--stack a"), ("side", "--side-by-side a")] {
        lab.ok(&format!("reconstruct -q {parts} {FILES} {flags} --output {name}"));
        assert!(lab.bytes(name) == lab.bytes("plain"), "{name}");
    }
}

/// Rows and bins that are shared are found within three of the stated standard deviations, whole or not, and of parts in either
/// order; a part whose axis is elsewhere is shifted.
#[test]
fn overlaps_are_found_within_their_error() {
    let sample = sample();
    let noise = 60.0;
    let upper = transmissions(&sample, [BINS, HEIGHT], [0.0, 0.0]);
    let left = transmissions(&sample, [64, HEIGHT], [0.0, 0.0]);
    for (case, step, axis) in [(0, 40.0, 0.0), (1, 46.37, 0.0), (2, 30.5, 1.25), (3, 52.81, 0.0)] {
        let lab = Lab::new();
        write_part(&lab, "a", 0, BINS, &upper, [1.0, noise]);
        write_part(&lab, "b", 1, BINS, &transmissions(&sample, [BINS, HEIGHT], [axis, step]), [1.02, noise]);
        for order in ["a b", "b a"] {
            let (plan, _) = lab.ok(&format!("reconstruct --dry-run --stack {order} {FILES} --center 47.5"));
            let [overlap, error] = printed(&plan, "b");
            let truth = HEIGHT as f64 - step;
            println!("rows {case} {order}: {overlap} +- {error}, in truth {truth:.2}");
            assert!(error < 0.2 && (overlap - truth).abs() <= 3.0 * error, "{case}: {overlap} +- {error} of {truth}");
            let shift = plan
                .split("shifted by ")
                .nth(1)
                .map_or(0.0, |after| after.split_whitespace().next().unwrap().parse::<f64>().unwrap().abs());
            assert!((shift - axis).abs() < 0.1, "{case}: {shift} of {axis}\n{plan}");
        }
        let at = step - 10.0;
        write_part(&lab, "l", 0, 64, &left, [1.0, noise]);
        write_part(&lab, "r", 1, 64, &transmissions(&sample, [64, HEIGHT], [at, 0.0]), [1.0, noise]);
        let (plan, _) = lab.ok(&format!("reconstruct --dry-run --side-by-side l r {FILES} --center 47.5"));
        let [overlap, error] = printed(&plan, "r");
        let truth = 64.0 - at;
        println!("bins {case}: {overlap} +- {error}, in truth {truth:.2}");
        assert!(error < 0.2 && (overlap - truth).abs() <= 3.0 * error, "{case}: {overlap} +- {error} of {truth}");
    }
}

/// Two detectors side by side give the slices of a wider one; where they do not lie a whole number of bins apart, up to the
/// error of cubic convolution.
#[test]
fn detectors_side_by_side_give_the_slices_of_a_wider_one() {
    let sample = sample();
    let rows = [40.0, 48.0];
    let whole = transmissions(&sample, [BINS, 8], [0.0, rows[0]]);
    for (at, margin) in [(40.0, 1.2e-6), (40.43, 6e-4)] {
        let lab = Lab::new();
        write_part(&lab, "whole", 5, BINS, &whole, [1.0, 0.0]);
        write_part(&lab, "l", 0, 60, &cut(&whole, BINS, 0..8, 0..60), [1.0, 0.0]);
        write_part(&lab, "r", 1, 56, &transmissions(&sample, [56, 8], [at, rows[0]]), [1.03, 0.0]);
        let slices = |scan: &str, output: &str| lab.slices(&format!("{scan} --center 47.5 --size {BINS}"), output);
        let wide = slices("--projections whole/p --flats whole/f --darks whole/d", "wide");
        let joined = slices(&format!("--side-by-side l r {FILES} --overlap {}", 60.0 - at), "joined");
        let found = apart(&joined, &wide);
        println!("{at}: {found:.2e}");
        assert!(found < margin, "{at}: {found:e}");
    }
}

/// What joined rows are, from the definition in `f64`: a cosine ramp, and cubic convolution (R. Keys, a = -1/2) between bins.
#[test]
fn joined_rows_are_as_defined() {
    let sample = sample();
    let (left, right, rows) = (60, 56, 9);
    for overlap in [20.0, 19.6] {
        let lab = Lab::new();
        let at = left as f64 - overlap;
        write_part(&lab, "l", 0, left, &transmissions(&sample, [left, rows], [0.0, 40.0]), [1.0, 40.0]);
        write_part(&lab, "r", 1, right, &transmissions(&sample, [right, rows], [at, 40.0]), [0.9, 40.0]);
        let (l, r) = (corrected(&lab, "l"), corrected(&lab, "r"));
        let keys = |x: f64| match x.abs() {
            x if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            x if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            _ => 0.0,
        };
        let first = at.ceil() as usize;
        let width = first + (left as f64 + right as f64 - overlap - first as f64 + 1e-9).floor() as usize;
        // beyond the ends the outermost bin is repeated
        let moved = |line: &[f64], bin: usize| -> f64 {
            let position = bin as f64 - at;
            let of = |i: i64| line[i.clamp(0, right as i64 - 1) as usize] * keys(position - i as f64);
            (position.floor() as i64 - 1..=position.floor() as i64 + 2).map(of).sum()
        };
        let shared = left - first;
        // the sum of what is shared, of the right part interpolated linearly
        let sum = |pages: &[Vec<f64>], width: usize, start: f64| -> f64 {
            let (whole, rest) = (start.floor() as usize, start - start.floor());
            let next = if rest > 0.0 { whole + 1 } else { whole };
            let within = |line: &[f64], start: usize| line[start..start + shared].iter().sum::<f64>();
            let between = |line: &[f64]| (1.0 - rest) * within(line, whole) + rest * within(line, next);
            pages.iter().flat_map(|page| page.chunks(width)).map(between).sum()
        };
        let level = sum(&l, left, first as f64) / sum(&r, right, first as f64 - at);
        let value = |page: usize, row: usize, bin: usize| {
            let of_left = || l[page][row * left + bin];
            let of_right = || level * moved(&r[page][row * right..][..right], bin);
            match bin {
                bin if bin < first => of_left(),
                bin if bin >= left => of_right(),
                bin => {
                    let weight = 0.5 - 0.5 * (TAU / 2.0 * (bin - first + 1) as f64 / (shared + 1) as f64).cos();
                    (1.0 - weight) * of_left() + weight * of_right()
                }
            }
        };
        let page = |page: usize| (0..rows * width).map(|i| value(page, i / width, i % width) as f32).collect();
        let defined = Pages { width, pages: (0..COUNT).map(page).collect() };
        let flags = format!("--side-by-side l r {FILES} --overlap {overlap} --no-minus-log");
        lab.ok(&format!("preprocess {flags} --output joined"));
        let found = farthest(&lab.read("joined"), &defined);
        println!("{overlap}: {found:.2e}");
        assert!(found < 10.0 / f64::from(1 << 23), "{overlap}: {found:e}");
    }
}

/// Levels are compared at the same places of the sample, wherever these are between pixels.
#[test]
fn an_edge_in_what_is_shared_does_not_change_levels() {
    let edge = |x: f64| 1.0 - 0.5 / (1.0 + (-(x - 45.0) / 3.0).exp());
    for step in [29.5, 29.4, -29.7] {
        for (flag, across) in [("--side-by-side", 60), ("--stack", 12)] {
            if across == 60 && step < 0.0 {
                continue;
            }
            let lab = Lab::new();
            let seen = |from: f64| -> Vec<Vec<f64>> {
                let along = |i: usize| edge(from + i as f64 + if step < 0.0 { 30.0 } else { 0.0 });
                let page = (0..60 * 12).map(|i| along(if across == 60 { i % across } else { i / across })).collect();
                vec![page; COUNT]
            };
            write_part(&lab, "a", 0, across, &seen(0.0), [1.0, 0.0]);
            write_part(&lab, "b", 1, across, &seen(step), [1.0, 0.0]);
            let place = if across == 60 { format!("--overlap {}", 60.0 - step) } else { format!("--z-step={step}") };
            let (plan, _) = lab.ok(&format!(
                "reconstruct {flag} a b {FILES} {place} --center 5.5 --dry-run --device 0 --output slices"
            ));
            let line = plan.lines().find(|line| line.contains("b/p: ")).unwrap_or_else(|| panic!("{plan}"));
            let level = line.split("level ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
            let level: f64 = level.parse().unwrap();
            assert!((level - 1.0).abs() < 5e-5, "{flag} {place}: {line}");
        }
    }
}

/// What is not certain is refused with what to give.
#[test]
fn what_is_not_certain_is_refused() {
    let lab = Lab::new();
    // the same every 18 rows
    let periodic: Vec<[f64; 5]> = (0..10).map(|i| [12.0, 5.0, 18.0 * f64::from(i) - 20.0, 3.0, 0.02]).collect();
    let write = |name: &str, detector: usize, sample: &[[f64; 5]], row: f64| {
        write_part(&lab, name, detector, BINS, &transmissions(sample, [BINS, HEIGHT], [0.0, row]), [1.0, 40.0]);
    };
    write("periodic-a", 0, &periodic, 0.0);
    write("periodic-b", 1, &periodic, 40.0);
    let flags = |parts: &str| format!("reconstruct --stack {parts} {FILES} --center 47.5 --output out");
    lab.fails(&flags("periodic-a periodic-b"), 3, &["look alike in several places", "--z-step ", "give the right one"]);
    // nothing changes along the axis
    let rod: Vec<[f64; 5]> = (0..90).map(|i| [12.0, 5.0, 2.0 * f64::from(i) - 40.0, 4.0, 0.01]).collect();
    write("rod-a", 0, &rod, 0.0);
    write("rod-b", 1, &rod, 40.0);
    lab.fails(&flags("rod-a rod-b"), 3, &["--stack: ", "--z-step ROWS"]);
    // no overlap
    write("a", 0, &sample(), 0.0);
    write("far", 1, &sample(), HEIGHT as f64 + 5.0);
    lab.fails(&flags("a far"), 3, &["share no rows that look alike", "--z-step ROWS"]);
    lab.fails(&(flags("a far") + " --z-step 77"), 3, &["begins 5 rows beyond the end of a/p"]);
    // parts may touch
    lab.ok(&format!("reconstruct -q --stack a far {FILES} --z-step 72 --rows 70..74 --center 47.5 --output touching"));
    assert_eq!(lab.files("touching").len(), 4);
    // parts of other sizes and numbers
    write_part(&lab, "narrow", 1, 90, &transmissions(&sample(), [90, HEIGHT], [0.0, 40.0]), [1.0, 0.0]);
    write_part(&lab, "few", 1, BINS, &transmissions(&sample(), [BINS, HEIGHT], [0.0, 40.0])[..19], [1.0, 0.0]);
    let other = |parts: &str| format!("reconstruct --stack {parts} {FILES} --output other");
    lab.fails(&other("a narrow"), 3, &["a/p has 96 bins and narrow/p has 90"]);
    lab.fails(&other("a few"), 3, &["a/p has 20 projections and few/p has 19"]);
    lab.fails(&other("a far --z-step 0"), 3, &["--stack: ", "order of their heights"]);
    lab.fails(&other("a far a --z-step 20"), 3, &["another part lies between them"]);
    for (flags, words) in [
        ("--stack a b --projections a/p", ["`a/p` is the same for all parts", "{part}"]),
        ("--stack a b --projections {part}/p --z-step 3,4", ["2 numbers for 1 pairs", "--z-step"]),
        ("--stack a b --projections {part}/p --z-step near", ["--z-step", "1.2mm"]),
        ("--side-by-side a b --projections {part}/p --overlap 2mm", ["--overlap", "auto"]),
        ("--side-by-side a b --projections {part}/p --overlap=-2", ["--overlap", "auto"]),
        ("--stack a b --side-by-side a b", ["--stack", "--side-by-side"]),
        ("--projections a/p --z-step 3", ["--z-step: needs --stack", "give both"]),
    ] {
        lab.fails(&format!("reconstruct {flags} --output other"), 2, &words);
    }
    lab.fails(&(other("a far") + " --z-step 1mm"), 2, &["--z-step", "--pixel-size"]);
    lab.fails("batch a/p --as projections --stack a b --output out/{name}", 2, &["--stack", "fbp reconstruct"]);
}

/// The record and the report have the parts.
#[test]
fn parts_are_recorded() {
    let lab = Lab::new();
    two_heights(&lab, [1.0, 20.0]);
    let scan = format!("--stack a b {FILES} --center 47.5 --rows 50..52");
    let (_, err) = lab.ok(&format!("reconstruct {scan} --output out --report report.json"));
    assert!(err.contains("part b/p: rows 40..112, overlap "), "{err}");
    let report: serde_json::Value = serde_json::from_str(&lab.read_text("report.json")).unwrap();
    assert_eq!((&report["parts"][1]["first"], &report["parts"][1]["count"]), (&40.into(), &72.into()));
    let record = lab.read_text("out/fbp-run.toml");
    assert!(record.contains("[[facts.scan.parts]]") && record.contains("{part}/p"), "{record}");
    // the record repeats the run
    lab.ok("reconstruct -q --config out/fbp-run.toml --output again");
    assert!(lab.bytes("again") == lab.bytes("out"));
    lab.ok(&format!("reconstruct -q {scan} --output out --resume"));
    // lengths, with binning
    lab.ok(&format!("reconstruct -q {scan} --z-step 26um --pixel-size 0.65um --binning 2 --rows 20 --output lengths"));
    let record = lab.read_text("lengths/fbp-run.toml");
    assert!(record.contains("first = 40"), "{record}");
}

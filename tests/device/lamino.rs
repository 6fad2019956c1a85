//! Laminography: slices about an inclined axis against the definition in `f64`, against known answers, and against
//! tomography.

use crate::support::cli::{Lab, Pages, farthest};
use fbp::check::LaminoTest;
use fbp::device::{DeviceList, Session, find};
use fbp::geometry::{cos_sin_degrees, default_axis, even_angles};
use fbp::kernel::StepSizes;
use fbp_reference::{Pad, filter, padded, relative_rms};
use std::f64::consts::{PI, TAU};

/// A detector and a scan about an inclined axis.
#[derive(Clone, Copy)]
struct Tilted {
    bins: usize,
    rows: usize,
    projections: usize,
    center: f64,
    /// Inclination in degrees.
    degrees: f64,
}

const SCAN: Tilted = Tilted { bins: 40, rows: 26, projections: 48, center: 18.3, degrees: 27.0 };

/// An ellipsoid: value, half axes, centre in pixels from the middle of the volume (y up, z down), turn about z in degrees.
struct Ellipsoid {
    value: f64,
    half: [f64; 3],
    centre: [f64; 3],
    turn: f64,
}

const ELLIPSOIDS: [Ellipsoid; 4] = [
    Ellipsoid { value: 1.0, half: [14.0, 11.0, 6.0], centre: [0.5, -1.0, 0.0], turn: 20.0 },
    Ellipsoid { value: 0.7, half: [3.0, 5.0, 2.5], centre: [6.0, 3.0, -1.5], turn: -35.0 },
    Ellipsoid { value: -0.5, half: [2.5, 2.0, 3.0], centre: [-7.0, 2.0, 2.0], turn: 0.0 },
    Ellipsoid { value: 1.5, half: [1.5, 1.5, 1.2], centre: [-2.0, -6.0, -3.0], turn: 0.0 },
];

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

impl Ellipsoid {
    /// The vector in units of the half axes.
    fn scaled(&self, v: [f64; 3]) -> [f64; 3] {
        let (cos, sin) = cos_sin_degrees(self.turn);
        let [a, b, c] = self.half;
        [(v[0] * cos + v[1] * sin) / a, (v[1] * cos - v[0] * sin) / b, v[2] / c]
    }

    /// Line integral along the unit vector `beam` through a point.
    fn line(&self, point: [f64; 3], beam: [f64; 3]) -> f64 {
        let from = self.scaled([0, 1, 2].map(|i| point[i] - self.centre[i]));
        let along = self.scaled(beam);
        let (speed, mixed) = (dot(along, along), dot(from, along));
        let root = mixed * mixed - speed * (dot(from, from) - 1.0);
        self.value * 2.0 * root.max(0.0).sqrt() / speed
    }
}

impl Tilted {
    fn angles(&self) -> Vec<f64> {
        even_angles(0.0, 360.0, self.projections)
    }

    /// Directions of bins, of rows and of the beam in the sample.
    fn frame(&self, angle: f64) -> [[f64; 3]; 3] {
        let ((cos, sin), (upright, inclined)) = (cos_sin_degrees(angle), cos_sin_degrees(self.degrees));
        let ahead = [-sin, cos, 0.0];
        let row = [inclined * ahead[0], inclined * ahead[1], upright];
        let beam = [upright * ahead[0], upright * ahead[1], -inclined];
        [[cos, sin, 0.0], row, beam]
    }

    /// Projections `[row][bin]`, one a page; `line` is the line integral through a point along the beam.
    fn projections(&self, line: impl Fn([f64; 3], [f64; 3]) -> f64) -> Pages {
        let page = |angle: f64| {
            let [across, down, beam] = self.frame(angle);
            let pixel = |i: usize| {
                let (s, w) = ((i % self.bins) as f64 - self.center, (i / self.bins) as f64 - default_axis(self.rows));
                line([0, 1, 2].map(|k| s * across[k] + w * down[k]), beam) as f32
            };
            (0..self.rows * self.bins).map(pixel).collect()
        };
        Pages { width: self.bins, pages: self.angles().into_iter().map(page).collect() }
    }

    fn ellipsoids(&self) -> Pages {
        self.projections(|point, beam| ELLIPSOIDS.iter().map(|e| e.line(point, beam)).sum())
    }

    fn flags(&self) -> String {
        format!("--projections p --overall-angle 360 --center {} --lamino-angle {}", self.center, self.degrees)
    }

    /// Slice `z` of side `size` by the definition.
    fn slice(&self, rows: &[Vec<f64>], size: usize, z: usize) -> Vec<f64> {
        let (upright, inclined) = cos_sin_degrees(self.degrees);
        let (middle, centre) = (default_axis(self.rows), default_axis(size));
        let value = |row: f64, projection: usize, bin: f64| {
            let inside = row >= 0.0 && row < self.rows as f64 && bin >= 0.0 && bin < self.bins as f64;
            if inside { rows[row as usize][projection * self.bins + bin as usize] } else { 0.0 }
        };
        let voxel = |i: usize| {
            let (x, y) = ((i % size) as f64 - centre, centre - (i / size) as f64);
            let of_projection = |(p, &angle): (usize, &f64)| {
                let (cos, sin) = cos_sin_degrees(angle);
                let u = self.center + x * cos + y * sin;
                let v = middle + (z as f64 - middle) * upright + (y * cos - x * sin) * inclined;
                let (bin, row) = (u.floor(), v.floor());
                let (a, b) = (u - bin, v - row);
                (1.0 - b) * ((1.0 - a) * value(row, p, bin) + a * value(row, p, bin + 1.0))
                    + b * ((1.0 - a) * value(row + 1.0, p, bin) + a * value(row + 1.0, p, bin + 1.0))
            };
            let sum: f64 = self.angles().iter().enumerate().map(of_projection).sum();
            sum * upright * PI / self.projections as f64
        };
        (0..size * size).map(voxel).collect()
    }

    /// Filtered rows `[row][projection * bins + bin]`.
    fn filtered(&self, projections: &Pages) -> Vec<Vec<f64>> {
        let rows = projections.transposed();
        let filtered = |row: &Vec<f32>| filter(row, self.bins, padded(self.bins), Pad::Edge, Some(&|_| 1.0));
        rows.pages.iter().map(filtered).collect()
    }
}

#[test]
fn slices_are_those_of_the_definition() {
    for (scan, more, size, slab, roi) in [
        (SCAN, "--slab 3..22", 40, (3..22).collect::<Vec<_>>(), None),
        (
            Tilted { degrees: -48.5, rows: 31, ..SCAN },
            "--slab 2..=29:3 --size 33",
            33,
            (2..=29).step_by(3).collect(),
            None,
        ),
        (Tilted { degrees: 11.0, ..SCAN }, "--slab 12..14 --roi 5,9,20,7", 40, vec![12, 13], Some([5, 9, 20, 7])),
        // beyond the detector
        (Tilted { degrees: 70.0, rows: 9, ..SCAN }, "--size 61", 61, (0..9).collect(), None),
    ] {
        let (lab, projections) = (Lab::new(), scan.ellipsoids());
        lab.write("p", "p", &projections);
        let got = lab.slices(&format!("{} {more}", scan.flags()), "r");
        let rows = scan.filtered(&projections);
        assert_eq!(got.pages.len(), slab.len());
        for (page, &z) in got.pages.iter().zip(&slab) {
            let mut want = scan.slice(&rows, size, z);
            if let Some([left, top, width, height]) = roi {
                let row = |y: usize| want[(top + y) * size + left..][..width].to_vec();
                want = (0..height).flat_map(row).collect();
            }
            let error = relative_rms(page, &want, &vec![0.0; want.len()]);
            assert!(error < 1e-5, "{more}, slice {z}: {error:e}");
        }
    }
}

/// A turn about an axis inclined by phi sees all frequencies but those within phi of the axis, so a round Gaussian has the
/// value cos(phi) at its centre.
#[test]
fn blobs_are_where_they_are_with_the_value_of_the_seen_frequencies() {
    let (sigma, place) = (4.0, [9.0, -6.0, 3.0]);
    for degrees in [20.0, 35.0] {
        let scan = Tilted { bins: 61, rows: 61, projections: 120, center: 30.0, degrees };
        let lab = Lab::new();
        let blob = |point: [f64; 3], beam: [f64; 3]| {
            let from = [0, 1, 2].map(|i| point[i] - place[i]);
            let distance2 = dot(from, from) - dot(from, beam).powi(2);
            sigma * TAU.sqrt() * (-distance2 / (2.0 * sigma * sigma)).exp()
        };
        lab.write("p", "p", &scan.projections(blob));
        let volume = lab.slices(&format!("{} --slab 20..46", scan.flags()), "r");
        let all =
            volume.pages.iter().enumerate().flat_map(|(z, page)| page.iter().enumerate().map(move |(i, v)| (v, z, i)));
        let (&peak, z, i) = all.max_by(|a, b| a.0.total_cmp(b.0)).unwrap();
        assert_eq!([i % 61, i / 61, z + 20], [39, 36, 33], "{degrees}");
        let expected = cos_sin_degrees(degrees).0;
        println!("{degrees}: {peak} for {expected}");
        assert!((f64::from(peak) - expected).abs() < 0.03 * expected, "{degrees}: {peak} for {expected}");
        // the other sign is no reconstruction
        let wrong = lab.slices(&format!("{} --slab 20..46", Tilted { degrees: -degrees, ..scan }.flags()), "w");
        let highest = wrong.pages.iter().flatten().copied().fold(0.0, f32::max);
        assert!(f64::from(highest) < 0.8 * expected, "{degrees}: {highest}");
    }
}

#[test]
fn an_upright_axis_is_tomography() {
    let (lab, scan) = (Lab::new(), Tilted { degrees: 0.0, ..SCAN });
    lab.write("p", "p", &scan.ellipsoids());
    let plain = "--projections p --overall-angle 360 --center 18.3";
    let tomography = lab.slices(&format!("{plain} --rows 8..18"), "plain");
    lab.ok(&format!("reconstruct {plain} --lamino-angle 0 --rows 8..18 --output zero"));
    assert_eq!(lab.read("zero"), tomography);
    // by the kernel for inclined axes
    let nearly = lab.slices(&format!("{plain} --lamino-angle 1e-6 --slab 8..18"), "nearly");
    assert!(farthest(&nearly, &tomography) < 2e-5, "{:e}", farthest(&nearly, &tomography));
}

#[test]
fn slices_do_not_depend_on_memory_shards_and_devices() {
    let lab = Lab::new();
    lab.write("p", "p", &SCAN.ellipsoids());
    let flags = format!("reconstruct {} --slab 2..25 --device cpu", SCAN.flags());
    lab.ok(&format!("{flags} --output all"));
    let all = lab.read("all");
    let same = |output: &str| assert!(lab.read(output) == all, "{output}");
    for (memory, chunk) in [("500K", 23), ("210K", 8), ("60K", 1)] {
        let (plan, _) = lab.ok(&format!("{flags} --device-memory {memory} --dry-run"));
        assert!(plan.contains(&format!(" of {chunk} slices, ")) && plan.contains("added up"), "{memory}: {plan}");
        lab.ok(&format!("{flags} --device-memory {memory} --output {memory}"));
        same(memory);
    }
    // with the steps of all projections, these are read together; sinograms are, too
    let stripes = format!("{flags} --stripes mean");
    lab.ok(&format!("{stripes} --output stripes"));
    lab.ok(&format!("{stripes} --device-memory 60K --output few-stripes"));
    assert_eq!(lab.read("few-stripes"), lab.read("stripes"));
    let (projections, bins) = (lab.read("p").pages, SCAN.bins);
    let sinogram =
        |row: usize| projections.iter().flat_map(|page| page[row * bins..(row + 1) * bins].to_vec()).collect();
    lab.write("s", "s", &Pages { width: bins, pages: (0..SCAN.rows).map(sinogram).collect() });
    lab.ok(&format!("{} --device-memory 210K --output turned", flags.replace("--projections p", "--sinograms s")));
    same("turned");
    for shard in ["0/3", "2/3", "1/3"] {
        lab.ok(&format!("{flags} --shard {shard} --output shards"));
    }
    same("shards");
    lab.ok(&format!("{} --device-memory 210K --output both", flags.replace("--device cpu", "--device cpu/2")));
    same("both");
    // slices that are left are far apart
    lab.ok(&format!("{flags} --device-memory 210K --output again"));
    for slice in [2, 3, 13, 24] {
        std::fs::remove_file(lab.path(format!("again/slice_{slice:05}.tif"))).unwrap();
    }
    lab.ok(&format!("{flags} --device-memory 210K --resume --output again"));
    same("again");
}

/// Counts with defects, which a device corrects in parts of an even and of an odd number of projections.
#[test]
fn rows_that_the_device_corrects_are_those_of_the_host() {
    let lab = Lab::new();
    lab.profile_with_steps("steps.toml", "");
    lab.ok("phantom --kind asymmetric --size 48 --projections 61 --overall-angle 360 --slices 24 --lamino-angle 30 \
        --as projections --photons 20000 --scale 0.02 --flats f --darks d --output p");
    let mut projections = lab.read("p");
    for (page, at) in [(3, 10 * 48 + 7), (60, 23 * 48), (31, 12 * 48 + 40)] {
        projections.pages[page][at] = 60000.0;
        projections.pages[page][at + 1] = 0.0;
    }
    lab.write("q", "q", &projections);
    let flags = "--projections q --flats f --darks d --overall-angle 360 --center 23.5 --lamino-angle 30 --slab 3..20 \
        --remove-outliers 3,20000 --device cpu";
    let replaced = |said: &str| -> Vec<String> {
        let lines = said.lines().filter(|line| line.contains("outlier") || line.contains("replaced"));
        lines.map(str::to_owned).collect()
    };
    let (_, said) = lab.ok(&format!("reconstruct {flags} --output host"));
    let of_host = replaced(&said);
    assert!(of_host.iter().any(|line| line.contains("3 outliers were replaced")), "{said}");
    let flags = format!("{flags} --profile steps.toml");
    let (plan, _) = lab.ok(&format!("reconstruct {flags} --dry-run --output device"));
    assert!(plan.contains("rows on the device"), "{plan}");
    let (_, said) = lab.ok(&format!("reconstruct {flags} --output device"));
    assert_eq!(replaced(&said), of_host);
    let (host, device) = (lab.read("host"), lab.read("device"));
    assert!(farthest(&device, &host) < 1e-5, "{:e}", farthest(&device, &host));
    for memory in ["1500K", "600K", "300K"] {
        let (plan, _) = lab.ok(&format!("reconstruct {flags} --device-memory {memory} --dry-run --output {memory}"));
        assert!(plan.contains("rows on the device") && plan.contains("added up"), "{memory}: {plan}");
        let (_, said) = lab.ok(&format!("reconstruct {flags} --device-memory {memory} --output {memory}"));
        assert_eq!(replaced(&said), of_host, "{memory}");
        assert!(lab.read(memory) == device, "{memory}");
    }
    lab.ok(&format!(
        "{} --output both",
        format!("reconstruct {flags} --device-memory 600K").replace("--device cpu", "--device cpu/2")
    ));
    assert!(lab.read("both") == device);
    // no room for samples and fields
    let (plan, _) = lab.ok(&format!("reconstruct {flags} --device-memory 45K --dry-run --output few"));
    assert!(
        plan.contains("rows on the host") && plan.contains("45.0 KiB") && plan.contains("the host does them"),
        "{plan}"
    );
    lab.ok(&format!("reconstruct {flags} --device-memory 45K --output few"));
    assert!(lab.read("few") == host);
}

#[test]
fn the_kernel_agrees_with_the_definition() {
    let devices = find(&DeviceList::parse("cpu").unwrap()).unwrap();
    let mut session = Session::open(&devices[0]).unwrap();
    for lamino_slices in [8, 16, 32] {
        session = session.with_step_sizes(StepSizes { lamino_slices, ..StepSizes::default() });
        for (degrees, step) in [(-60.0, 1), (-3.0, 1), (0.5, 2), (30.0, 1), (45.0, 7), (80.0, 50)] {
            let checked = LaminoTest::new(degrees, step).run(&session).unwrap();
            println!("{degrees}, every {step}, {lamino_slices}: {:.1e}", checked.error);
            assert!(checked.right(), "{degrees}, every {step}, {lamino_slices}: {:e}", checked.error);
        }
    }
}

#[test]
fn what_an_inclined_axis_leaves_no_room_for_is_refused() {
    let lab = Lab::new();
    lab.write("p", "p", &SCAN.ellipsoids());
    let flags = format!("reconstruct {} --device cpu --output r", SCAN.flags());
    for (more, words) in [
        ("--rows 1..3", ["--rows", "--slab"]),
        ("--method tv", ["--method", "--lamino-angle"]),
        ("--interpolation exact", ["--interpolation", "linear"]),
        ("--mode fast", ["--mode", "precise"]),
        ("--algorithm standard", ["--algorithm", "auto"]),
        ("--slices-per-pass 4", ["--slices-per-pass", "auto"]),
        ("--extended-field", ["--extended-field", "--lamino-angle"]),
        ("--slab 3..40", ["--slab", "26 slices"]),
        ("--memory 8K", ["--memory", "--roi"]),
    ] {
        lab.fails(&format!("{flags} {more}"), 2, &words);
    }
    lab.fails(&format!("{flags} --device-memory 9K"), 4, &["inclined axis", "--device-memory"]);
    let upright = "reconstruct --projections p --output r";
    lab.fails(&format!("{upright} --slab 1..3"), 2, &["--slab", "--lamino-angle"]);
    lab.fails(&format!("{upright} --lamino-angle 85"), 2, &["--lamino-angle", "80"]);
    for (axis, word) in
        [("auto:vo", "--center auto:METHOD"), ("17,19", "--center C0,C1"), ("auto --tilt auto", "--tilt auto")]
    {
        lab.fails(&format!("{upright} --lamino-angle 20 --center {axis}"), 2, &[word, "--lamino-angle"]);
    }
    // the mean of half a turn is not its own mirror image
    lab.fails(&format!("{upright} --lamino-angle 20 --center auto"), 3, &["--center auto", "whole turn", "fbp trials"]);
    let wrong = lab.command(&flags).env("FBP_TEST_FAULT", "lamino").output().unwrap();
    lab.check_failure(&wrong, &flags, 4, &["--lamino-angle", "wrong on this device"]);
    lab.assert_no_output("r");
    // half a turn does not see all
    let (_, said) = lab.ok("reconstruct --projections p --center 18.3 --lamino-angle 27 --slab 12 --output half");
    assert!(said.contains("of 360 degrees"), "{said}");
}

#[test]
fn other_commands_and_outputs_know_inclined_axes() {
    let lab = Lab::new();
    lab.write("p", "p", &SCAN.ellipsoids());
    let flags = SCAN.flags();
    let plain = lab.slices(&format!("{flags} --slab 11..15"), "r");
    lab.ok(&format!(
        "reconstruct {flags} --slab 11..15 --output o --report r.html --report r.json --preview p.png --histogram h.json \
         --sections s.png --resolution --dtype u16"
    ));
    assert!(lab.read_text("r.html").contains("27"));
    let vary = flags.replace(" --lamino-angle 27", "");
    lab.ok(&format!("trials {vary} --vary lamino-angle=26,27 --output t"));
    let trials = lab.read("t");
    // of the middle row, by both angles
    assert_eq!(trials.pages.len(), 2);
    assert_eq!(trials.pages[1], plain.pages[2]);
}

#[test]
fn the_axis_is_found_by_the_mean_of_a_turn() {
    let lab = Lab::new();
    for center in [55.4, 70.25] {
        lab.ok(&format!(
            "phantom --kind asymmetric --size 128 --projections 180 --overall-angle 360 --slices 64 --lamino-angle 30 \
             --as projections --center {center} --noise 0.3 --output p --overwrite"
        ));
        let run = "reconstruct --projections p --overall-angle 360 --lamino-angle 30 --center auto --slab 30..34";
        let (_, said) = lab.ok(&format!("{run} --report r.json --output r --overwrite"));
        assert!(said.contains("found by rings"), "{said}");
        let record: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
        let axis = &record["center"];
        let [value, deviation] = ["value", "uncertainty"].map(|key| axis[key].as_f64().unwrap());
        assert!((value - center).abs() < (4.0 * deviation).max(0.05) && deviation < 0.15, "{center}: {axis}");
    }
}

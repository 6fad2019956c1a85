//! The command that searches for the rotation axis. How good its answers are is tested in `base/tests/axis`.

/// Simulated scans, of which tests of the search use the rest.
#[allow(dead_code)]
#[path = "../../base/tests/axis/scans.rs"]
mod scans;

use crate::support::cli::{Lab, Pages};
use fbp::center::AGREEMENT;
use fbp::geometry::even_angles;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scans::{COLUMNS, Ellipse, Scan};

#[test]
fn real_scans() {
    let Some(data) = crate::support::skip::real_scans() else { return };
    let lab = Lab::new();
    for (name, axis) in [("tooth", 295.5), ("tomo77", 39.0)] {
        let scan = data.join(name);
        let part = |part: &str| scan.join(part).to_str().unwrap().to_owned();
        let (out, _) = lab.ok(&format!(
            "center --projections {} --flats {} --darks {} --angles {} --json",
            part("proj"),
            part("flat"),
            part("dark"),
            part("angles_deg.txt")
        ));
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        println!("{name}: {report}");
        assert_eq!(report["methods"].as_array().unwrap().len(), 2);
        assert!((report["center"]["value"].as_f64().unwrap() - axis).abs() <= 0.5, "{name}: {report}");
    }
}

#[test]
fn the_command_refuses_to_guess() {
    let lab = Lab::new();
    lab.write("flat", "s", &Pages { width: 32, pages: vec![vec![1.0; 32 * 40]; 2] });
    // the table is there all the same
    let refused = lab.command("center --sinograms flat").output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8(refused.stdout).unwrap().contains("registration"));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("rotation axis: flat") && message.contains("--rows"), "{message}");
    lab.fails("reco --sinograms flat --center auto --output out", 3, &["rotation axis: flat"]);
    lab.fails("center --sinograms flat --method guess", 2, &["--method", "overlap"]);
    lab.fails("center --sinograms flat --search 9", 2, &["--search"]);
}

#[test]
fn the_axis_of_whole_turns_near_an_end() {
    let lab = Lab::new();
    let scan = Scan::random(11, 360.0, 0.42, true);
    lab.page("sino.tif", scan.bins, &scan.rows[0]);
    let start = scan.angles[0];
    let (out, _) = lab.ok(&format!("center --sinograms sino.tif --overall-angle 360 --start-angle={start} --json"));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["center"]["method"], "likelihood");
    assert!(report["center"]["mass"].as_f64().unwrap() > 0.95 && report["tilt"].is_null(), "{report}");
    assert!((report["center"]["value"].as_f64().unwrap() - scan.axis).abs() < 0.3, "{report}");
}

/// What is found is the axis that a run with the same shifts takes, whatever their mean is.
#[test]
fn shifts_of_any_mean_are_known_to_the_search() {
    let lab = Lab::new();
    let rng = &mut ChaCha8Rng::seed_from_u64(11);
    let (bins, count, center) = (90, 110, 41.7);
    let jitter: Vec<f64> = (0..count).map(|_| rng.random_range(1.0..5.0)).collect();
    let forms: [(&str, Vec<f64>); 4] = [
        ("constant", vec![5.0; count]),
        ("drift", (0..count).map(|p| -6.0 * p as f64 / count as f64).collect()),
        ("random", jitter),
        ("far", vec![-60.0; count]),
    ];
    for (number, (name, shifts)) in forms.iter().enumerate() {
        // counted from beyond the detector, too
        let center = if *name == "far" { center + 60.0 } else { center };
        let overall = if number % 2 == 0 { 180.0 } else { 360.0 };
        let axis: Vec<f64> = shifts.iter().map(|shift| center + shift).collect();
        let samples: Vec<Vec<Ellipse>> =
            (0..2).map(|_| (0..4).map(|_| Ellipse::random(rng, 32.0, 0.5)).collect()).collect();
        let scan = Scan::of(bins, &axis, even_angles(0.0, overall, count), &samples, 0.002, rng);
        let sinograms = Pages { width: bins, pages: scan.rows };
        lab.write(&format!("{name}/sin"), "s", &sinograms);
        lab.write(&format!("{name}/proj"), "p", &sinograms.transposed());
        lab.numbers(&format!("{name}/shifts.txt"), shifts);
        let input = match number % 2 {
            0 => format!("--projections {name}/proj --no-minus-log"),
            _ => format!("--sinograms {name}/sin"),
        };
        let scan = format!("center {input} --overall-angle {overall} --center-shifts {name}/shifts.txt --json");
        for more in ["", " --binning 2", &format!(" --method vo --search {},{}", center - 8.0, center + 9.0)] {
            let (out, _) = lab.ok(&format!("{scan}{more}"));
            let report: serde_json::Value = serde_json::from_str(&out).unwrap();
            let value = report["center"]["value"].as_f64().unwrap();
            assert!((value - center).abs() < 0.15, "{name}{more}: {value}, not {center}");
        }
    }
}

/// The real scans as they are and with less of what helps. Prints rows of the table, with one scan each.
#[test]
fn verdicts_on_real_scans() {
    let Some(data) = crate::support::skip::real_scans() else { return };
    let lab = Lab::new();
    let ways = [
        ("", true),
        (" --projection-range ..:4", true),
        (" --binning 2", true),
        (" --rows 0..2", true),
        (" --normalize-air 5,5", true),
        ("360 degrees", false),
    ];
    for (name, axis) in [("tooth", 295.5), ("tomo77", 39.0)] {
        let part = |part: &str| data.join(name).join(part).to_str().unwrap().to_owned();
        let scan = format!("--projections {} --flats {} --darks {}", part("proj"), part("flat"), part("dark"));
        for (way, possible) in ways {
            let angles = match possible {
                true => format!("--angles {}{way}", part("angles_deg.txt")),
                false => "--overall-angle 360".to_owned(),
            };
            let mut cells = Vec::new();
            for method in COLUMNS {
                let method = method.map_or(String::new(), |method| format!("--method {method}"));
                let output = lab.command(&format!("center {scan} {angles} {method} --json")).output().unwrap();
                let Ok(report) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else {
                    cells.push("0 0 0 0");
                    continue;
                };
                let value = report["center"]["value"].as_f64().unwrap();
                let correct = possible && (value - axis).abs() <= AGREEMENT;
                let ok = report["center"]["verdict"] == "ok";
                assert!(correct || !ok, "{name} {angles} {method}: {report}");
                cells.push(match (ok, correct) {
                    (true, _) => "1 0 0 0",
                    (false, true) => "0 0 1 0",
                    (false, false) => "0 0 0 1",
                });
            }
            println!("| {name}, {way} | {} |", cells.join(" | "));
            assert_eq!(cells[5], if possible { "1 0 0 0" } else { "0 0 0 1" }, "{name} {way}");
        }
    }
}

//! Real scans with reference slices by independent programs. The data are not part of the project: the tests look for
//! them as crate::support::skip says.

use crate::support::cli::Lab;
use crate::support::skip::real_scans;
use assert_cmd::Command;
use fbp::commands::compare_stacks;
use fbp::source::Stack;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// A reference: its file name says row, centre, whether the side is odd, and filter (`row020_c39_odd_hann_skimage.tif`).
struct Reference {
    file: PathBuf,
    row: usize,
    center: f64,
    filter: &'static str,
    tolerance: f64,
}

fn references(directory: &Path) -> Vec<Reference> {
    let mut references: Vec<Reference> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "tif"))
        .map(|file| {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let parts: Vec<&str> = name.split('_').collect();
            let hann = parts.contains(&"hann");
            Reference {
                row: parts[0].strip_prefix("row").unwrap().parse().unwrap(),
                center: parts[1].strip_prefix('c').unwrap().replace('p', ".").parse().unwrap(),
                filter: if hann { "hann" } else { "ramp" },
                tolerance: if hann { 0.005 } else { 0.001 },
                file,
            }
        })
        .collect();
    references.sort_by(|a, b| a.file.cmp(&b.file));
    assert!(!references.is_empty());
    references
}

/// Reconstructs a row from raw projections and compares it with its reference.
fn check(reference: &Reference, [projections, flats, darks]: [&Path; 3], angles: &Path) {
    let bins = Stack::open(projections.to_str().unwrap(), "--projections").unwrap().width();
    let side = Stack::open(reference.file.to_str().unwrap(), "reference").unwrap().width();
    let output = tempfile::tempdir().unwrap();
    let slice = output.path().join("slice.tif");
    Command::cargo_bin("fbp")
        .unwrap()
        .env("FBP_CACHE_DIR", output.path().join("cache"))
        .arg("reconstruct")
        .args([Path::new("--projections"), projections, Path::new("--flats"), flats, Path::new("--darks"), darks])
        .args([Path::new("--angles"), angles, Path::new("--output"), &slice])
        .args(["--padding", "zero", "--angle-weights", "uniform", "--filter", reference.filter])
        .args(["--center", &reference.center.to_string(), "--size", &side.to_string()])
        .args(["--rows", &reference.row.to_string()])
        .assert()
        .success();
    let radius = 0.95 * reference.center.min(bins as f64 - 1.0 - reference.center);
    let mask = radius / (side as f64 / 2.0);
    let result = compare_stacks(slice.to_str().unwrap(), reference.file.to_str().unwrap(), Some(mask)).unwrap();
    println!("{}: NRMSE {:.2e}", reference.file.display(), result.nrmse);
    assert!(result.nrmse <= reference.tolerance, "{}: {result:?}", reference.file.display());
}

#[test]
fn tooth_from_single_files_and_from_multi_page_stacks() {
    let Some(data) = real_scans() else { return };
    let tooth = data.join("tooth");
    let angles = tooth.join("angles_deg.txt");
    for reference in references(&tooth.join("ref")) {
        check(&reference, [&tooth.join("proj"), &tooth.join("flat"), &tooth.join("dark")], &angles);
        let pages = tooth.join("multipage");
        let stacks = [pages.join("proj_stack.tif"), pages.join("flat_stack.tif"), pages.join("dark_stack.tif")];
        check(&reference, [&stacks[0], &stacks[1], &stacks[2]], &angles);
    }
}

/// By which a reader can compare the file from its public address with what the pages were made from.
#[test]
fn the_tutorial_has_the_digest_of_the_tooth() {
    let Some(data) = real_scans() else { return };
    let stack = Stack::open(data.join("tooth/proj").to_str().unwrap(), "--projections").unwrap();
    let mut digest = Sha256::new();
    let mut page = vec![0f32; stack.width() * stack.height()];
    for index in 0..stack.len() {
        stack.read_rows(index, 0..stack.height(), &mut page).unwrap();
        page.iter().for_each(|&count| digest.update((count as u16).to_le_bytes()));
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md")).unwrap();
    assert!(page.contains(&digest), "{digest}");
}

#[test]
fn porous_particle() {
    let Some(data) = real_scans() else { return };
    let scan = data.join("tomo77");
    let angles = scan.join("angles_deg.txt");
    for reference in references(&scan.join("ref")) {
        check(&reference, [&scan.join("proj"), &scan.join("flat"), &scan.join("dark")], &angles);
    }
}

/// What the table of docs/real.md says of a row with the axis that was found, without ring removal or with it.
fn stated_error(scan: &str, row: usize, rings_removed: bool) -> f64 {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/real.md")).unwrap();
    let name = if scan == "tomo77" { "particle" } else { scan };
    let line = page.lines().find(|line| line.starts_with(&format!("| {name}, row {row} |"))).unwrap();
    line.split('|').nth(if rings_removed { 4 } else { 3 }).unwrap().trim().parse().unwrap()
}

/// From raw projections with one command: the axis is found, and slices are nearer to the references, which have the known
/// axis and their rings, than they are half a bin beside that axis, whether rings are taken out or not.
#[test]
fn one_command_each() {
    let Some(data) = real_scans() else { return };
    for (scan, row, side, axis, off, reference) in [
        // the axes of the references are known to half a bin and to a quarter
        ("tooth", 0, 640, 295.5, 0.4, "row000_c295p50_ramlak_algotom.tif"),
        ("tomo77", 40, 83, 39.0, 0.25, "row040_c39_odd_ramlak_skimage.tif"),
    ] {
        let lab = Lab::new();
        let at = |name: &str| data.join(scan).join(name).to_str().unwrap().to_owned();
        let args = format!(
            "reconstruct --projections {} --flats {} --darks {} --angles {} --size {side} --rows {row} --padding zero \
             --angle-weights uniform --report r.json --overwrite",
            at("proj"),
            at("flat"),
            at("dark"),
            at("angles_deg.txt")
        );
        let mask = 0.95 * f64::min(axis, side as f64 - 1.0 - axis) / (side as f64 / 2.0);
        let error = |flags: &str| {
            lab.ok(&format!("{args} {flags} --output slice.tif"));
            let (slice, reference) = (lab.path("slice.tif"), at(&format!("ref/{reference}")));
            compare_stacks(slice.to_str().unwrap(), &reference, Some(mask)).unwrap().nrmse
        };
        // a device that does the steps replaces the same values; where some are equal within rounding, it may sort them in
        // another order
        lab.profile_with_steps("device.toml", "");
        for (stripes, margin) in [("", 2e-6), ("--stripes all", 5e-4)] {
            let flags = format!("--center {axis} --remove-outliers 3,300 --normalize-air 10,10 {stripes}");
            let [on_host, on_device] = ["cpu", "device.toml"].map(|profile| {
                lab.ok(&format!("{args} {flags} --profile {profile} --output {profile}.tif"));
                serde_json::from_str::<serde_json::Value>(&lab.read_text("r.json")).unwrap()
            });
            for key in ["clamped_by_reason", "replaced_rows", "replaced_bins", "outliers", "saturated"] {
                assert_eq!(on_host.get(key), on_device.get(key), "{scan}: {key}");
            }
            let [host, device] = ["cpu.tif", "device.toml.tif"].map(|file| lab.path(file).to_str().unwrap().to_owned());
            let nrmse = compare_stacks(&device, &host, None).unwrap().nrmse;
            println!("{scan} {stripes}: {} outliers; device against host, NRMSE {nrmse:.1e}", on_host["outliers"]);
            assert!(nrmse < margin, "{scan} {stripes}: {nrmse:e}");
        }
        for rings in ["", "--stripes sorting:size=11"] {
            let beside = [-0.5, 0.5].map(|shift| error(&format!("--center {} {rings}", axis + shift)));
            let found = error(&format!("--center auto {rings}"));
            let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
            let center = report["center"]["value"].as_f64().unwrap();
            println!("{scan} {rings}: axis {center:.2}, NRMSE {found:.3}, half a bin beside {beside:.3?}");
            let stated = stated_error(scan, row, !rings.is_empty());
            assert!((found - stated).abs() <= 0.02 * stated, "{scan} {rings}: docs/real.md says {stated}");
            assert!((center - axis).abs() <= off, "{scan}: axis at {center}");
            assert!(beside.iter().all(|beside| found < 0.95 * beside), "{scan} {rings}: {found} and {beside:?}");
        }
    }
}

use super::*;
use crate::axis::Axis;
use crate::cli::{Cli, Command};
use crate::geometry::Roi;
use clap::Parser;

fn flags_of(words: &str) -> ReconstructArgs {
    let words = ["fbp", "reconstruct"].into_iter().chain(words.split(' ').filter(|word| !word.is_empty()));
    let Command::Reconstruct { args: flags, .. } = Cli::try_parse_from(words).unwrap().command else {
        panic!("no run")
    };
    *flags
}

/// The table and the paragraph of a run with these flags, as its record has them.
fn account(words: &str, fields: Option<FieldCounts>, method: Option<&str>) -> (Vec<(&'static str, String)>, String) {
    let flags = flags_of(words);
    let recipe = Recipe::new(&flags).unwrap();
    let axis = Axis {
        value: 131.4,
        method: method.map(str::to_owned),
        uncertainty: method.map(|_| 0.052),
        mass: None,
        tilt: None,
    };
    let scan = ScanRecord {
        slices: [0, 24, 1],
        size: 256,
        region: Roi { x: 0, y: 0, width: 256, height: 200 },
        projections: 240,
        files: None,
        fields,
        bins: 256,
        angles: [0.0, 179.25],
        parts: Vec::new(),
        shifts: None,
        log: None,
        axis,
    };
    let facts = Facts::of_scan(scan, None);
    let record = RecordFile { text: String::new(), flags, facts };
    let account = Account::new(&recipe, &record).unwrap();
    (account.rows(), account.methods())
}

const FIELDS: FieldCounts = FieldCounts { flats: 10, flats2: 0, darks: 5 };

#[test]
fn scans_are_named_by_their_files() {
    for (data, name) in [
        ("/data/tooth/projections", "tooth/projections"),
        ("/data/tooth_0012", "tooth_0012"),
        ("/data/tooth/proj/*.tif", "tooth/proj"),
        ("tooth/Proj/", "tooth/Proj"),
        ("/sin", "sin"),
        ("/x/a.tif", "a"),
        ("/x/scan.zarr", "scan"),
        ("/x/b.h5::/entry/data", "b"),
        ("/data/2024/fuel_cell_80C.nxs", "fuel_cell_80C"),
        ("scan.0012", "scan.0012"),
        ("list /data/first_ten.txt", "first_ten"),
        ("/x/rock.raw,640x480x720,u16le", "rock"),
        ("/", "a scan"),
    ] {
        assert_eq!(scan_name(data), name, "{data}");
    }
}

#[test]
fn a_paragraph_says_what_was_done_and_nothing_else() {
    let (rows, plain) = account("--sinograms s", Some(FieldCounts::default()), None);
    for said in [
        "24 slices of 256 x 200 pixels were reconstructed from 240 parallel-beam projections, at angles from 0 to 179.25 \
         degrees, by filtered back projection [1] with fbp 1.2.3.",
        "continued beyond the detector by its first and last value and filtered with the ramp filter.",
        "The rotation axis is at bin 131.4 (counted from 0).",
        "The interpolation between bins is linear.",
        "Values are attenuation per pixel, stored as f32.",
        "[1] S. Chilingaryan",
        "doi:10.1007/s11554-019-00883-w",
    ] {
        assert!(plain.contains(said), "{said}: {plain}");
    }
    for unsaid in ["flat", "Stripes", "Phase", "logarithm", "[2]", "mask", "fast", "cutoff", "  "] {
        assert!(!plain.contains(unsaid), "{unsaid}: {plain}");
    }
    for row in [
        ("Fields", "none"),
        ("Stripes", "not removed"),
        ("Phase", "no phase retrieval"),
        ("Logarithm", "not taken"),
        ("Filter", "ramp, cutoff 1 of the Nyquist frequency"),
        ("Padding", "edge: its first and last value"),
    ] {
        assert!(rows.contains(&(row.0, row.1.to_owned())), "{row:?} {rows:?}");
    }
}

#[test]
fn every_step_is_said_with_its_publication() {
    for (flags, said, cited) in [
        ("--filter hann --filter-cutoff 0.8", "the ramp filter with the window hann, with a cutoff at 0.8 of", ""),
        ("--filter none", "by back projection [1]", ""),
        ("--padding zero", "by zeros and filtered", ""),
        ("--padding mirror", "by its mirror image", ""),
        ("--stripes sorting", "by the methods sorting (size = 21) [2].", "Optics Express 26 (2018) 28396"),
        ("--stripes wavelet", "wavelet (wavelet = db5, sigma = 2) [2]", "Optics Express 17 (2009) 8567"),
        ("--stripes mean", "by the methods mean (sigma = 15, blocks = 1).", ""),
        (
            "--stripes dead,titarenko",
            "dead (snr = 3, size = 51) [2] and titarenko (alpha = 0.01, blocks = 1) [3], in this order.",
            "Letters 23 (2010) 1489",
        ),
        ("--stripes fitting", "fitting (order = 2, sigma = 5, blocks = 1) after [2]", "28396"),
        (
            "--phase paganin --energy-kev 20 --distance 50mm --delta-beta 300 --pixel-size 1um",
            "single material [2] (20 keV, distance 50mm, delta / beta = 300, filter length",
            "Microscopy 206 (2002) 33",
        ),
        ("--remove-outliers 3,400,both", "brighter or darker than the median of the 3 x 3 pixels", ""),
        ("--normalize-air 10,20", "its first 10 and last 20 bins", ""),
        ("--eigen-flats", "components of the flat fields were added to their mean", "Express 23 (2015) 27975"),
        ("--eigen-flats 1 --normalize-air 9,9", "The first principal component of the flat fields was", "27975"),
        ("--beam-current c.txt", "scaled by the current of the storage ring.", ""),
        ("--double-flat", "Transmissions were divided by the mean of all projections.", ""),
        ("--double-flat 10", "what a Gaussian of 10 pixels leaves of the mean line integrals of all projections.", ""),
        ("--distortion c.txt,repeat", "by a radial polynomial of given coefficients", ""),
        ("--beam-hardening 0.1,-0.02", "Line integrals p were replaced by p + 0.1 p^2 - 0.02 p^3.", ""),
        ("--tilt 0.5", "rotated by 0.5 degrees", ""),
        ("--binning 2", "2 x 2 pixels of the detector were averaged into one.", ""),
        ("--dark-scale 2", "after the mean of 5 dark fields, times 2, had been subtracted from both", ""),
        ("--field-mode median", "divided by the median of 10 flat fields after the median of 5 dark fields", ""),
        ("--interpolation nearest", "between bins is nearest", ""),
        ("--interpolation exact", "at most 1e-5 (root mean square)", ""),
        ("--mask 0.9", "of 0.9 times the largest radius, are 0", ""),
        ("--dtype u16 --range=-1,3", "stored as u16 from -1 to 3", ""),
        ("--pixel-size 0.65um", "attenuation per um, with pixels of 0.65 um", ""),
        ("--angle-weights uniform", "the scheme uniform", ""),
        ("--method tv --weights noise", "weighted by the inverse variance of its noise", "2 (2009) 323"),
        ("--method cgls --weights w.txt", "weighted by a given number", ""),
    ] {
        let input = format!("--projections p --flats f --darks d {flags}");
        let (_, text) = account(&input, Some(FIELDS), None);
        assert!(text.contains(said) && text.contains(cited), "{flags}: {text}");
        assert!(text.contains("negative logarithm") && !text.contains("  "), "{flags}: {text}");
        // every publication is referred to, and none twice
        let (body, list) = text.split_once("\n\n").unwrap();
        for (line, number) in list.lines().zip(1..) {
            assert!(line.starts_with(&format!("[{number}] ")) && body.contains(&format!("[{number}]")), "{text}");
        }
        let marks = body.matches('[').count();
        assert!(marks >= list.lines().count() && !body.contains(&format!("[{}]", list.lines().count() + 1)), "{text}");
    }
}

#[test]
fn axes_are_said_as_they_were_found() {
    let text = |method| account("--sinograms s", None, method).1;
    assert!(
        text(Some("likelihood"))
            .contains("131.4 +- 0.05 (counted from 0), as found in the data by the method likelihood.")
    );
    assert!(text(Some("vo")).contains("the method vo [2].") && text(Some("vo")).contains("22 (2014) 19078"));
    assert!(text(Some("sweep")).contains("23 (2006) 1048"));
}

#[test]
fn what_a_record_of_an_earlier_version_does_not_say_is_not_said() {
    let (rows, text) = account("--projections p --flats f", None, None);
    assert!(!text.contains("flat") && !text.contains("logarithm"), "{text}");
    assert!(rows.iter().all(|(name, _)| *name != "Fields" && *name != "Logarithm"), "{rows:?}");
    // unless flags leave no doubt
    assert!(account("--projections p --minus-log", None, None).1.contains("negative logarithm"));
}

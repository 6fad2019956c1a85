//! What outputs say of their scan, by the names that NeXus, nabu and OME-Zarr have for it.

use super::support::cli::Lab;
use super::{Counts, angles, file, list, nxtomo, unit};
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Container, File};
use serde_json::{Value, json};
use std::path::Path;

const SCAN: &str = "--hdf5 scan.nx --center 15.25 --rows 1..3 --roi 4,6,20,10 --exclude 3";
const RESULTS: &str = "/entry/reconstruction/results";

fn text_of(container: &Container) -> String {
    container.read_scalar::<VarLenUnicode>().unwrap().to_string()
}

fn attribute(file: &File, name: &str, attribute: &str) -> String {
    match file.dataset(name) {
        Ok(dataset) => text_of(&dataset.attr(attribute).unwrap()),
        Err(_) => text_of(&file.group(name).unwrap().attr(attribute).unwrap()),
    }
}

fn values(file: &File, name: &str, units: &str) -> Vec<f64> {
    assert_eq!(attribute(file, name, "units"), units, "{name}");
    file.dataset(name).unwrap().read_raw().unwrap()
}

/// Angles of the projections that are used.
fn used() -> Vec<f64> {
    angles().into_iter().enumerate().filter(|(projection, _)| *projection != 3).map(|(_, angle)| angle).collect()
}

/// Returns a laboratory with a scan that states a pixel size of the detector, perhaps one of the sample, and an energy.
fn scan(of_sample: bool) -> Lab {
    let lab = Lab::new();
    let counts = Counts::new(&lab);
    let scan = file(&lab, "scan.nx");
    nxtomo(&scan, "/entry", &counts, false);
    unit(&list(&scan, "/entry/beam/incident_energy", &[20500.0]), "eV");
    if of_sample {
        unit(&list(&scan, "/entry/sample/x_pixel_size", &[0.25]), "um");
    }
    lab
}

fn check_hdf5(path: &Path, pixel: Option<f64>, value_units: &str, raw_file: &Path) {
    let file = File::open(path).unwrap();
    let (side, units) = pixel.map_or((1.0, "pixel"), |side| (side, "um"));
    let line = |count: usize, axis: f64| (0..count).map(|i| (i as f64 - axis) * side).collect::<Vec<_>>();
    // the axis is in the middle of 32 pixels, of which the region begins at 4 and 6
    for name in [RESULTS, "/entry/data"] {
        assert_eq!(values(&file, &format!("{name}/x"), units), line(20, 11.5));
        assert_eq!(values(&file, &format!("{name}/y"), units), line(10, 9.5));
        assert_eq!(values(&file, &format!("{name}/z"), units), [side, 2.0 * side]);
        assert_eq!(attribute(&file, name, "NX_class"), "NXdata");
    }
    let axes = file.group(RESULTS).unwrap().attr("axes").unwrap().read_raw::<VarLenUnicode>().unwrap();
    assert_eq!(axes.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["z", "y", "x"]);
    assert_eq!(attribute(&file, &format!("{RESULTS}/data"), "units"), value_units);
    assert_eq!(values(&file, "/entry/sample/rotation_angle", "degree"), used());
    assert_eq!(values(&file, "/entry/instrument/beam/incident_energy", "keV"), [20.5]);
    assert_eq!(values(&file, "/entry/reconstruction/parameters/rotation_axis", "pixel"), [15.25]);
    for (group, class) in [
        ("/entry/sample", "NXsample"),
        ("/entry/instrument", "NXinstrument"),
        ("/entry/instrument/beam", "NXbeam"),
        ("/entry/reconstruction/parameters", "NXparameters"),
        ("/entry/reconstruction/configuration/processing_options/reconstruction", "NXcollection"),
    ] {
        assert_eq!(attribute(&file, group, "NX_class"), class, "{group}");
    }
    let text = |name: &str| text_of(&file.dataset(name).unwrap());
    assert_eq!(text("/entry/reconstruction/version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(text("/entry/reconstruction/parameters/raw_file"), raw_file.to_str().unwrap());
    let options = "/entry/reconstruction/configuration/processing_options/reconstruction";
    let radians: Vec<f64> = used().iter().map(|angle| angle.to_radians()).collect();
    assert_eq!(values(&file, &format!("{options}/angles"), "radian"), radians);
    let voxel = format!("{options}/voxel_size_cm");
    assert_eq!(file.link_exists(&voxel), pixel.is_some());
    if let Some(side) = pixel {
        assert!(values(&file, &voxel, "cm").iter().all(|&found| (found / (side * 1e-4) - 1.0).abs() < 1e-12));
    }
}

/// Everything is there by its name, whichever job makes the file, and an output that lacks it is not taken up.
#[test]
fn volumes_say_what_scan_they_are_of() {
    let _alone = super::alone();
    let lab = scan(true);
    let raw_file = lab.path("scan.nx").canonicalize().unwrap();
    lab.ok(&format!("reconstruct {SCAN} --output by-file.h5"));
    check_hdf5(&lab.path("by-file.h5"), Some(0.25), "1/pixel", &raw_file);
    lab.ok(&format!("reconstruct {SCAN} --pixel-size 0.5um --hdf5-parts 2 --output given.h5"));
    check_hdf5(&lab.path("given.h5"), Some(0.5), "1/um", &raw_file);
    // the same bytes by two jobs, the second of which goes on with what the first has made
    let whole = std::fs::read(lab.path("by-file.h5")).unwrap();
    std::fs::remove_file(lab.path("by-file.h5")).unwrap();
    for shard in ["1/2", "0/2"] {
        lab.ok(&format!("reconstruct {SCAN} --shard {shard} --resume --output by-file.h5"));
    }
    assert!(std::fs::read(lab.path("by-file.h5")).unwrap() == whole);
    let (_, err) = lab.ok(&format!("reconstruct {SCAN} --resume --output by-file.h5"));
    assert!(err.contains("2 of 2 slices are kept"), "{err}");
    let (out, _) = lab.ok("info by-file.h5 --json");
    let told: Value = serde_json::from_str(&out).unwrap();
    let expected = json!({"axis": [11.5, 9.5], "pixel": "0.25um", "energy_kev": 20.5, "angles": used()});
    assert_eq!(told["volume"]["scan"], expected);

    lab.ok(&format!("reconstruct {SCAN} --output by-file.zarr"));
    let text = lab.read_text("by-file.zarr/.zattrs");
    let attributes: Value = serde_json::from_str(&text).unwrap();
    let image = &attributes["multiscales"][0];
    assert_eq!(image["axes"][2], json!({"name": "x", "type": "space", "unit": "micrometer"}));
    assert_eq!(image["datasets"][0]["coordinateTransformations"][0]["scale"], json!([0.25, 0.25, 0.25]));
    assert_eq!((&attributes["fbp"]["scan"], &attributes["fbp"]["center"]), (&expected, &json!(15.25)));
}

/// TIFF has the pixel size of the input; nothing is said that nobody said.
#[test]
fn pixels_have_the_size_that_the_input_says() {
    use tiff::decoder::Decoder;
    use tiff::decoder::ifd::Value as TagValue;
    use tiff::tags::Tag;
    let _alone = super::alone();
    let lab = scan(false);
    for (flags, unit, per_centimetre) in [
        ("--hdf5 scan.nx", 3, Some((153_846_154, 10_000))),
        ("--hdf5 scan.nx --binning 2", 3, Some((76_923_077, 10_000))),
        ("--hdf5 scan.nx --pixel-size 2um", 3, Some((50_000_000, 10_000))),
        ("--projections p --flats f --darks d --angles angles.txt", 1, Some((1, 1))),
    ] {
        lab.ok(&format!("reconstruct {flags} --center 15.25 --rows 0 --overwrite --output one.tif"));
        let mut decoder = Decoder::new(std::fs::File::open(lab.path("one.tif")).unwrap()).unwrap();
        assert_eq!(decoder.get_tag_u32(Tag::ResolutionUnit).unwrap(), unit, "{flags}");
        for tag in [Tag::XResolution, Tag::YResolution] {
            let found = match decoder.get_tag(tag).unwrap() {
                TagValue::Rational(above, below) => Some((above, below)),
                _ => None,
            };
            assert_eq!(found, per_centimetre, "{flags}");
        }
    }
    lab.ok("reconstruct --projections p --flats f --darks d --angles angles.txt --center 15.25 --output none.h5");
    let plain = File::open(lab.path("none.h5")).unwrap();
    assert!(!plain.link_exists("/entry/instrument"));
    assert_eq!(attribute(&plain, &format!("{RESULTS}/x"), "units"), "pixel");
    assert!(!plain.link_exists("/entry/reconstruction/configuration/processing_options/reconstruction/voxel_size_cm"));
}

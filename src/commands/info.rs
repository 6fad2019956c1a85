//! `fbp info`: the contents of a stack, or of a file with a scan.

use crate::cli::InfoArgs;
use crate::error::Result;
use crate::memory;
use crate::numbers::{brief, significant};
use crate::remark::Remark;
use crate::sink::{SliceDescription, VolumeDescription, described, described_volume};
use crate::source::{
    Hdf5Contents, Hdf5Frames, Hdf5Scan, SampleType, Stack, XrmContents, beside, hdf5, is_xrm_scan, xrm,
};
use crate::visible::visible;
use serde_json::json;
use std::fmt;
use std::path::Path;

/// Describes the scan of an HDF5 file, or why it has none, and its datasets.
fn hdf5_text(contents: &Hdf5Contents) -> String {
    let mut lines = Vec::new();
    match &contents.scan {
        Some(scan) => hdf5_scan(scan, &mut lines),
        None => lines.extend(contents.problem.as_ref().map(|problem| named("no scan", problem))),
    }
    lines.push("datasets".to_owned());
    lines.extend(contents.datasets.iter().map(|dataset| format!("  {}", visible(&dataset.to_string()))));
    lines.join("\n") + "\n"
}

fn hdf5_scan(scan: &Hdf5Scan, lines: &mut Vec<String>) {
    let frames = |frames: &Hdf5Frames| {
        let Hdf5Frames { dataset, frames, width, height, stored } = frames;
        format!("{frames} of {width} x {height} pixels, {dataset}: {stored}")
    };
    let field = |part: &Option<Hdf5Frames>| part.as_ref().map_or("none".to_owned(), frames);
    lines.push(named("layout", scan.layout));
    lines.push(named("projections", &frames(&scan.projections)));
    lines.push(named("flats", &field(&scan.flats)));
    if scan.flats_after.is_some() {
        lines.push(named("flats after", &field(&scan.flats_after)));
    }
    lines.push(named("darks", &field(&scan.darks)));
    let angles = scan.angles.as_ref().map(|angles| {
        let unit = angles.unit.as_ref().map_or("no unit is given".to_owned(), |unit| format!("given as {unit}"));
        let (low, high) = (brief(angles.smallest), brief(angles.largest));
        format!("{}, {low} to {high} degrees, {}: {unit}", angles.count, angles.dataset)
    });
    let missing = "none; --angles or --overall-angle is needed";
    lines.push(named("angles", angles.as_deref().unwrap_or(missing)));
    lines
        .extend(scan.pixel_size.as_ref().map(|size| named("pixel size", &format!("{size}, which --pixel-size takes"))));
    lines.extend(scan.notes.iter().map(|note| named("note", note)));
}

/// Describes the scan of a `.txrm` file.
fn xrm_text(contents: &XrmContents) -> String {
    let XrmContents { projections, width, height, sample, references, details, notes, problem, .. } = contents;
    let ends = |values: &Option<Vec<f64>>, unit: &str| {
        let values = values.as_ref()?.iter().copied();
        let (low, high) = values.clone().reduce(f64::min).zip(values.reduce(f64::max))?;
        Some(format!("{} to {} {unit}", brief(low), brief(high)))
    };
    let number = |value: Option<f64>, unit: &str| value.map(|value| format!("{} {unit}", brief(value)));
    let beam = match details.geometry {
        Some(1) => Some("a cone".to_owned()),
        Some(number) => Some(format!("parallel ({number})")),
        None => None,
    };
    let values = [
        ("projections", Some(format!("{projections} of {width} x {height} pixels, {sample}"))),
        ("reference", Some(format!("{references} image(s)"))),
        ("angles", ends(&details.angles, "degrees").or(Some("none; --angles or --overall-angle is needed".to_owned()))),
        ("x shifts", ends(&details.x_shifts, "pixels")),
        ("y shifts", ends(&details.y_shifts, "pixels")),
        ("exposure", ends(&details.exposure_seconds.map(Vec::from), "s")),
        ("pixel size", number(details.pixel_size_um, "um, which --pixel-size takes")),
        ("energy", number(details.energy_ev, "eV")),
        ("voltage", number(details.voltage_kv, "kV")),
        ("source", number(details.source_to_axis_mm, "mm from the axis")),
        ("detector", number(details.axis_to_detector_mm, "mm from the axis")),
        ("beam", beam),
        ("no scan", problem.clone()),
    ];
    let lines = values.into_iter().filter_map(|(name, value)| Some(named(name, &value?)));
    lines.chain(notes.iter().map(|note| visible(note).to_string())).map(|line| line + "\n").collect()
}

fn named(name: &str, value: &str) -> String {
    format!("{name:<16}{}", visible(value))
}

/// Number of values that are examined unless all pages are requested; pages are examined as a whole.
const ENOUGH: usize = 1 << 26;

/// The smallest and the largest value of some pages of a stack.
#[derive(Default)]
struct Extremes {
    /// Number of pages that were examined.
    pages: usize,
    /// Number of all pages.
    of: usize,
    low: f32,
    high: f32,
    not_finite: u64,
}

impl Extremes {
    /// Examines all pages, or as many as have enough values together, spread evenly from the first to the last.
    fn of(stack: &Stack, all: bool) -> Result<Extremes> {
        let (height, area, count) = (stack.height(), stack.width() * stack.height(), stack.len());
        let pages = if all { count } else { (ENOUGH / area.max(1)).clamp(1, count) };
        let mut found = Extremes { pages, of: count, low: f32::INFINITY, high: f32::NEG_INFINITY, not_finite: 0 };
        let mut values = vec![0f32; area];
        for place in 0..pages {
            let page = if pages > 1 { place * (count - 1) / (pages - 1) } else { 0 };
            stack.read_rows(page, 0..height, &mut values)?;
            for &v in &values {
                if v.is_finite() {
                    found.low = found.low.min(v);
                    found.high = found.high.max(v);
                } else {
                    found.not_finite += 1;
                }
            }
        }
        Ok(found)
    }
}

impl fmt::Display for Extremes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Extremes { pages, of, low, high, not_finite } = self;
        match low <= high {
            true => write!(f, "values {} to {}", significant(*low), significant(*high))?,
            false => write!(f, "no finite values")?,
        }
        if *not_finite > 0 {
            write!(f, ", {not_finite} not finite")?;
        }
        match pages == of {
            true => Ok(()),
            false => write!(f, ", in {pages} of the {of} pages (--all-pages looks at all)"),
        }
    }
}

/// Describes the run that wrote a file of all slices.
fn volume_text(volume: &VolumeDescription) -> String {
    let VolumeDescription { slices, unit, stamp, parts, .. } = volume;
    let (first, last) = (slices.first().unwrap_or(&0), slices.last().unwrap_or(&0));
    let mut text = format!("slices {first} to {last}, values in {}", visible(unit));
    if let Some(stamp) = stamp {
        text += &format!(", of run {}, axis at bin {}", visible(&stamp.run), brief(stamp.center));
        text += &stamp.pixel_size.as_ref().map(|size| format!(", pixels of {}", visible(size))).unwrap_or_default();
    }
    text += &parts.map(|parts| format!(", in {parts} parts")).unwrap_or_default();
    text + "\n"
}

/// Runs `fbp info`: describes a stack, or the scan and the datasets of an HDF5 file, or that of a `.txrm` file.
pub fn info(args: &InfoArgs) -> Result<String> {
    let volume = described_volume(Path::new(&args.path));
    if volume.is_none() && hdf5::is_hdf5(Path::new(&args.path)) {
        let contents = hdf5::contents(Path::new(&args.path))?;
        return Ok(if args.json { format!("{:#}\n", json!(contents)) } else { hdf5_text(&contents) });
    }
    if is_xrm_scan(&args.path) {
        let contents = xrm::contents(Path::new(&args.path))?;
        return Ok(if args.json { format!("{:#}\n", json!(contents)) } else { xrm_text(&contents) });
    }
    let stack = Stack::open_by(&args.path, "PATH", memory::available() / 2, args.order_by)?;
    let values = Extremes::of(&stack, args.all_pages)?;
    // as for a run without flags
    let beside = beside(&stack, true).remarks;
    let description = described(&stack.files()[0]);
    // all slices of a run have the same range
    let range = description.as_ref().and_then(|description| description.range);
    if args.json {
        return Ok(format!(
            "{:#}\n",
            json!({
                "slice": description.filter(|_| stack.len() == 1), "range": range, "volume": volume, "pages": stack.len(),
                "files": stack.files().len(), "names": stack.file_names(),
                "width": stack.width(), "height": stack.height(), "sample": stack.sample().to_string(),
                "pages_examined": values.pages, "min": values.low, "max": values.high, "not_finite": values.not_finite,
                "notes": stack.remarks().iter().chain(&beside).map(Remark::text).collect::<Vec<_>>(),
            })
        ));
    }
    let text = stack_text(&stack, &values, description, volume);
    Ok(beside.iter().fold(text, |text, remark| text + &format!("{}\n", visible(&remark.to_string()))))
}

fn stack_text(
    stack: &Stack,
    values: &Extremes,
    description: Option<SliceDescription>,
    volume: Option<VolumeDescription>,
) -> String {
    let (pages, width, height) = (stack.len(), stack.width(), stack.height());
    let files = stack.files().len();
    let mut text = format!("{pages} page(s) in {files} file(s), {width} x {height}, {}\n{values}\n", stack.sample());
    if let Some((low, high)) = description.as_ref().and_then(|description| description.range) {
        let largest = if stack.sample() == SampleType::U8 { 255 } else { 65535 };
        text += &format!("integers 0 to {largest} are values {low} to {high}\n");
    }
    let slices_of_a_run = volume.as_ref().is_some_and(|volume| volume.stamp.is_some());
    match (description, volume) {
        (Some(SliceDescription { slice, stamp: Some(stamp), .. }), _) => {
            let what = if pages == 1 { "" } else { "reconstructed slices, the first is " };
            text += &format!("{what}slice {slice} of run {}, axis at bin {}", visible(&stamp.run), brief(stamp.center));
            text += &stamp.pixel_size.map(|size| format!(", pixels of {}", visible(&size))).unwrap_or_default();
            text.push('\n');
        }
        (_, volume) => {
            if !slices_of_a_run {
                text += &format!(
                    "as sinograms: {pages} slice(s) from {height} projections of {width} bins\n\
                     as projections: {height} slice(s) from {pages} projections of {width} bins\n"
                );
            }
            text += &volume.map(|volume| volume_text(&volume)).unwrap_or_default();
        }
    }
    if files > 1 {
        text += &format!("files {}\n", visible(&stack.file_names().to_string()));
    }
    stack.remarks().iter().for_each(|remark| text += &format!("{}\n", visible(&remark.to_string())));
    text
}

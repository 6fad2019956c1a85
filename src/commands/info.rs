//! `fbp info`: the contents of a stack or an HDF5 file.

use crate::cli::InfoArgs;
use crate::error::Result;
use crate::memory;
use crate::remark::Remark;
use crate::sink::{SliceDescription, VolumeDescription, described, described_volume};
use crate::source::{Hdf5Contents, Hdf5Frames, Hdf5Scan, SampleType, Stack, hdf5};
use serde_json::json;
use std::path::Path;

/// The scan of an HDF5 file, or why it has none, and its datasets.
fn hdf5_text(contents: &Hdf5Contents) -> String {
    let mut lines = Vec::new();
    match &contents.scan {
        Some(scan) => hdf5_scan(scan, &mut lines),
        None => lines.extend(contents.problem.as_ref().map(|problem| named("no scan", problem))),
    }
    lines.push("datasets".to_owned());
    lines.extend(contents.datasets.iter().map(|dataset| format!("  {dataset}")));
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
        format!("{}, {} to {} degrees, {}: {unit}", angles.count, angles.smallest, angles.largest, angles.dataset)
    });
    let missing = "none; --angles or --overall-angle is needed";
    lines.push(named("angles", angles.as_deref().unwrap_or(missing)));
    lines
        .extend(scan.pixel_size.as_ref().map(|size| named("pixel size", &format!("{size}, which --pixel-size takes"))));
    lines.extend(scan.notes.iter().map(|note| named("note", note)));
}

fn named(name: &str, value: &str) -> String {
    format!("{name:<16}{value}")
}

/// What a file of all slices says of its run.
fn volume_text(volume: &VolumeDescription) -> String {
    let VolumeDescription { slices, unit, stamp, parts, .. } = volume;
    let (first, last) = (slices.first().unwrap_or(&0), slices.last().unwrap_or(&0));
    let mut text = format!("slices {first} to {last}, values in {unit}");
    if let Some(stamp) = stamp {
        text += &format!(", of run {}, axis at bin {}", stamp.run, stamp.center);
        text += &stamp.pixel_size.as_ref().map(|size| format!(", pixels of {size}")).unwrap_or_default();
    }
    text += &parts.map(|parts| format!(", in {parts} parts")).unwrap_or_default();
    text + "\n"
}

/// `fbp info`: the contents of a stack, or the scan and the datasets of an HDF5 file.
pub fn info(args: &InfoArgs) -> Result<String> {
    let volume = described_volume(Path::new(&args.path));
    if volume.is_none() && hdf5::is_hdf5(Path::new(&args.path)) {
        let contents = hdf5::contents(Path::new(&args.path))?;
        return Ok(if args.json { format!("{:#}\n", json!(contents)) } else { hdf5_text(&contents) });
    }
    let stack = Stack::open_by(&args.path, "PATH", memory::available() / 2, args.order_by)?;
    let (width, height) = (stack.width(), stack.height());
    let mut low = f32::INFINITY;
    let mut high = f32::NEG_INFINITY;
    let mut values = vec![0f32; width * height];
    let mut not_finite = 0u64;
    for page in 0..stack.len() {
        stack.read_rows(page, 0..height, &mut values)?;
        for &v in &values {
            if v.is_finite() {
                low = low.min(v);
                high = high.max(v);
            } else {
                not_finite += 1;
            }
        }
    }
    let description = described(&stack.files()[0]);
    // the same in all slices of a run
    let range = description.as_ref().and_then(|description| description.range);
    let description = description.filter(|_| stack.len() == 1);
    if args.json {
        return Ok(format!(
            "{:#}\n",
            json!({
                "slice": description, "range": range, "volume": volume, "pages": stack.len(),
                "files": stack.files().len(), "names": stack.file_names(), "width": width, "height": height,
                "sample": stack.sample().to_string(), "min": low, "max": high, "not_finite": not_finite,
                "notes": stack.remarks().iter().map(Remark::text).collect::<Vec<_>>(),
            })
        ));
    }
    let mut text = format!(
        "{} page(s) in {} file(s), {width} x {height}, {}\nvalues {low} to {high}{}\n",
        stack.len(),
        stack.files().len(),
        stack.sample(),
        if not_finite > 0 { format!(", {not_finite} not finite") } else { String::new() }
    );
    text += &format!(
        "as sinograms: {} slice(s) from {height} projections of {width} bins\nas projections: {height} slice(s) from {} projections of {width} bins\n",
        stack.len(),
        stack.len()
    );
    let largest = match stack.sample() {
        SampleType::U8 => 255,
        _ => 65535,
    };
    text +=
        &range.map(|(low, high)| format!("integers 0 to {largest} are values {low} to {high}\n")).unwrap_or_default();
    if let Some(SliceDescription { slice, stamp: Some(stamp), .. }) = description {
        text += &format!("slice {slice} of run {}, axis at bin {}", stamp.run, stamp.center);
        text += &stamp.pixel_size.map(|size| format!(", pixels of {size}")).unwrap_or_default();
        text.push('\n');
    }
    if stack.files().len() > 1 {
        text += &format!("files {}\n", stack.file_names());
    }
    text += &volume.map(|volume| volume_text(&volume)).unwrap_or_default();
    for remark in stack.remarks() {
        text += &format!("{remark}\n");
    }
    Ok(text)
}

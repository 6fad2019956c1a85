//! `fbp phantom`: analytic sinograms or projections, their slices, and counts of a noisy detector.

use super::refuse_filled;
use crate::SOFTWARE;
use crate::cli::PhantomArgs;
use crate::error::{Error, Result};
use crate::files::read_text;
use crate::geometry::{default_axis, even_angles, parse_angles};
use crate::phantom::{Detector, Phantom, add_gaussian, row_rng};
use crate::report::{ProgressKind, Reporter};
use crate::sink::{Dtype, Encoding, Present, SliceWriter, Target, write_image};
use rayon::prelude::*;
use std::path::Path;

/// Brightest beam whose counts stay below 65535 at every pixel's gain.
const MOST_PHOTONS: f64 = 55000.0;

/// `fbp phantom`: writes the files, says what was written.
pub fn phantom(args: &PhantomArgs) -> Result<String> {
    let positive = |value: usize, flag: &str| match value {
        0 => Err(Error::usage(format!("{flag}: must be at least 1"))),
        value => Ok(value),
    };
    let size = positive(args.size, "--size")?;
    let projections = positive(args.projections, "--projections")?;
    let slices = positive(args.slices, "--slices")?;
    let bins = positive(args.bins.unwrap_or(size), "--bins")?;
    for (value, flag) in [
        (args.overall_angle, "--overall-angle"),
        (args.start_angle, "--start-angle"),
        (args.scale, "--scale"),
        (args.noise, "--noise"),
        (args.center.unwrap_or(0.0), "--center"),
        (args.photons.unwrap_or(0.0), "--photons"),
    ] {
        if !value.is_finite() {
            return Err(Error::usage(format!("{flag}: {value} is not a finite number")));
        }
    }
    if let Some(photons) = args.photons
        && !(1.0..=MOST_PHOTONS).contains(&photons)
    {
        return Err(Error::usage(format!(
            "--photons: {photons} is not within 1..={MOST_PHOTONS}; more would clip the 16-bit counts"
        )));
    }
    let kind = args.kind.parse()?;
    let axis = args.center.unwrap_or(default_axis(bins));
    let angles = match &args.angles {
        None => even_angles(args.start_angle, args.overall_angle, projections),
        Some(file) => {
            let text = read_text(file).map_err(|e| Error::input(file, format!("--angles: {e}")))?;
            let (angles, note) = parse_angles(&text, &format!("--angles {}", file.display()))?;
            if let Some(note) = note {
                Reporter::new(0, ProgressKind::None, None)?.note(&format!("note: {note}"));
            }
            angles
        }
    };
    if angles.len() != projections {
        return Err(Error::Input(format!("--angles: {} angles for --projections {projections}", angles.len())));
    }
    // counts need an attenuation that a beam can pass: twice the mean free path along the densest ray
    let scale = match args.photons {
        Some(_) => args.scale * 2.0 / Phantom::new(kind, size).densest_ray(),
        None => args.scale,
    };
    let phantoms: Vec<Phantom> =
        (0..slices).map(|slice| Phantom::for_slice(kind, size, slice, slices).scaled(scale)).collect();
    let row = |slice: usize, p: usize, out: &mut [f32]| {
        phantoms[slice].project_row(angles[p].to_radians(), axis, out);
        if args.noise > 0.0 {
            add_gaussian(out, args.noise, &mut row_rng(args.seed, p as u32, slice as u32));
        }
    };

    let sinograms = args.layout == "sinograms";
    if sinograms && args.photons.is_some() {
        return Err(Error::usage("--photons: works with --as projections"));
    }
    let (count, rows) = if sinograms { (slices, projections) } else { (projections, slices) };
    let page = |page: usize| {
        let mut values = vec![0f32; rows * bins];
        values.par_chunks_mut(bins).enumerate().for_each(
            |(r, out)| {
                if sinograms { row(page, r, out) } else { row(r, page, out) }
            },
        );
        values
    };
    // all that would be refused is refused before anything is written
    for directory in [Some(&args.output), args.flats.as_ref(), args.darks.as_ref()].into_iter().flatten() {
        refuse_filled(directory, args.overwrite)?;
    }
    if let Some(truth) = &args.truth {
        if let Some(parent) = truth.parent() {
            std::fs::create_dir_all(parent).map_err(|e| Error::output(truth, format!("--truth: {e}")))?;
        }
        if !args.overwrite && truth.exists() {
            return Err(Error::output(truth, "--truth: exists already; add --overwrite or choose another file"));
        }
    }
    if let (Some(photons), Some(flats), Some(darks)) = (args.photons, &args.flats, &args.darks) {
        let detector = Detector { bins, rows, photons };
        let counts = |stream: u32, make: &(dyn Fn(usize, &mut rand_chacha::ChaCha8Rng) -> Vec<u16> + Sync)| {
            let rows: Vec<Vec<u16>> =
                (0..rows).into_par_iter().map(|r| make(r, &mut row_rng(args.seed, stream, r as u32))).collect();
            rows.concat().into_iter().map(f32::from).collect::<Vec<f32>>()
        };
        const FIELDS: usize = 10;
        write_stack(&args.output, "proj", count, bins, rows, args.overwrite, true, |p| {
            let lines = page(p);
            counts(p as u32, &|r, rng| detector.counts(r, &lines[r * bins..(r + 1) * bins], rng))
        })?;
        write_stack(flats, "flat", FIELDS, bins, rows, args.overwrite, true, |f| {
            counts(u32::MAX - f as u32, &|r, rng| detector.flat_row(r, rng))
        })?;
        write_stack(darks, "dark", FIELDS, bins, rows, args.overwrite, true, |f| {
            counts(u32::MAX - (FIELDS + f) as u32, &|r, rng| detector.dark_row(r, rng))
        })?;
    } else {
        let prefix = if sinograms { "sino" } else { "proj" };
        write_stack(&args.output, prefix, count, bins, rows, args.overwrite, false, page)?;
    }
    if let Some(path) = &args.truth {
        let encoding = Encoding { dtype: Dtype::F32, range: None };
        if slices == 1 {
            write_image(path, size, size, &phantoms[0].rasterise(4), encoding, SOFTWARE)?;
        } else {
            let indices: Vec<usize> = (0..slices).collect();
            let target = Target::single(path);
            let mut writer = SliceWriter::create(
                target,
                size,
                size,
                encoding,
                &indices,
                Present::new(args.overwrite, None),
                SOFTWARE,
            )?;
            for (slice, phantom) in phantoms.iter().enumerate() {
                writer.write(slice, &phantom.rasterise(4))?;
            }
            writer.finish()?;
        }
    }
    Ok(format!(
        "{count} {} of {bins} x {rows} in {}: {kind}, side {size}, axis at bin {axis}\n",
        args.layout,
        args.output.display()
    ))
}

/// Writes `count` pages of `width x height` as single files `prefix_00000.tif` ...
#[allow(clippy::too_many_arguments)]
fn write_stack(
    directory: &Path,
    prefix: &str,
    count: usize,
    width: usize,
    height: usize,
    overwrite: bool,
    counts: bool,
    page: impl Fn(usize) -> Vec<f32>,
) -> Result<()> {
    refuse_filled(directory, overwrite)?;
    let target = Target::files(directory, &format!("{prefix}_"));
    let encoding = match counts {
        true => Encoding { dtype: Dtype::U16, range: Some((0.0, 65535.0)) },
        false => Encoding { dtype: Dtype::F32, range: None },
    };
    let indices: Vec<usize> = (0..count).collect();
    let mut writer =
        SliceWriter::create(target, width, height, encoding, &indices, Present::new(overwrite, None), SOFTWARE)?;
    for index in indices {
        writer.write(index, &page(index))?;
    }
    writer.finish()?;
    Ok(())
}

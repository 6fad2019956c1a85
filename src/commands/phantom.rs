//! `fbp phantom`: analytic sinograms or projections, their true slices, and counts of a noisy detector.

use super::errors::{CommandFlagError, CommandInputError, CommandNumberError, CommandOutputError};
use super::refuse_filled;
use crate::cli::PhantomArgs;
use crate::error::{Error, Result};
use crate::files::{InputSet, OutputFile, OutputKind, read_numbers};
use crate::geometry::{default_axis, even_angles, parse_angles};
use crate::numbers::brief;
use crate::phantom::{Detector, FlatPhantom, Kind, PageLayout, Phantom, add_gaussian, row_rng};
use crate::report::{ProgressKind, Reporter};
use crate::sink::{AllowedContents, Dtype, Encoding, OutputLock, SOFTWARE, SliceWriter, Target, write_image};
use crate::visible::Shown;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Largest number of photons of the beam for which counts stay below 65535 at every pixel's gain.
const MOST_PHOTONS: f64 = 55000.0;

/// Number of frames of the flat fields, and of the dark fields.
const FIELDS: usize = 10;

/// Runs `fbp phantom`: writes the files and returns a line about them.
pub fn phantom(args: &PhantomArgs) -> Result<String> {
    let scan = SimulatedScan::new(args)?;
    // everything is checked before anything is written
    refuse_existing(args)?;
    if let (Some(photons), Some(flats), Some(darks)) = (args.photons, &args.flats, &args.darks) {
        scan.write_counts(photons, flats, darks)?;
    } else {
        let prefix = if scan.sinograms { "sino" } else { "proj" };
        scan.files(&args.output, prefix, LINES).write(scan.pages(), |page| scan.page(page))?;
    }
    if let Some(path) = &args.truth {
        scan.write_truth(path)?;
    }
    Ok(format!(
        "{} {} of {} x {} in {}: {}, side {}, axis at bin {}\n",
        scan.pages(),
        args.layout,
        scan.bins,
        scan.rows(),
        args.output.shown(),
        scan.kind,
        scan.size,
        brief(scan.axis)
    ))
}

/// Refuses directories and files that exist and may not be overwritten.
fn refuse_existing(args: &PhantomArgs) -> Result<()> {
    for directory in [Some(&args.output), args.flats.as_ref(), args.darks.as_ref()].into_iter().flatten() {
        refuse_filled(directory, args.overwrite)?;
    }
    let Some(truth) = &args.truth else { return Ok(()) };
    if let Some(parent) = truth.parent() {
        std::fs::create_dir_all(parent).map_err(|e| Error::unwritable(truth, "--truth", e))?;
    }
    if !args.overwrite && truth.exists() {
        return Err(Error::output(truth, CommandOutputError::TruthExists));
    }
    let inputs = InputSet::new(args.angles.as_deref());
    OutputFile::new("--truth", truth, OutputKind::Tiff, &inputs, Some(args.overwrite)).map(|_| ())
}

/// A phantom for each slice, with the geometry of their projections.
struct SimulatedScan<'a> {
    args: &'a PhantomArgs,
    kind: Kind,
    /// Side of a slice in pixels.
    size: usize,
    bins: usize,
    /// Bin that the rotation axis falls on.
    axis: f64,
    /// Angle of each projection in degrees.
    angles: Vec<f64>,
    phantoms: Vec<Phantom>,
    /// The phantom whose axis is inclined by an angle in degrees; `phantoms` are its sections.
    inclined: Option<(FlatPhantom, f64)>,
    /// True if pages are sinograms rather than projections.
    sinograms: bool,
}

impl<'a> SimulatedScan<'a> {
    /// Builds the scan that the flags describe.
    ///
    /// # Errors
    /// [`Error::Usage`] for invalid flags, [`Error::Input`] for angles that cannot be read or do not match the number of
    /// projections.
    fn new(args: &'a PhantomArgs) -> Result<SimulatedScan<'a>> {
        let size = positive(args.size, "--size")?;
        let projections = positive(args.projections, "--projections")?;
        let slices = positive(args.slices, "--slices")?;
        let bins = positive(args.bins.unwrap_or(size), "--bins")?;
        check_numbers(args)?;
        let kind = args.kind;
        let axis = args.center.unwrap_or(default_axis(bins));
        let angles = angles(args, projections)?;
        // for counts the attenuation must let photons through: two mean free paths along the densest ray
        let scale = match args.photons {
            Some(_) => args.scale * 2.0 / Phantom::new(kind, size).densest_ray(),
            None => args.scale,
        };
        let inclined = args.lamino_angle.map(|degrees| (FlatPhantom::new(kind, size).scaled(scale), degrees));
        let phantom = |slice: usize| match &inclined {
            None => Phantom::for_slice(kind, size, slice, slices).scaled(scale),
            Some((flat, _)) => flat.slice(slice as f64 - default_axis(slices)),
        };
        let phantoms = (0..slices).map(phantom).collect();
        let sinograms = args.layout == PageLayout::Sinograms;
        if sinograms && args.photons.is_some() {
            return Err(CommandFlagError::PhotonsOfSinograms.into());
        }
        Ok(SimulatedScan { args, kind, size, bins, axis, angles, phantoms, inclined, sinograms })
    }

    fn pages(&self) -> usize {
        if self.sinograms { self.phantoms.len() } else { self.angles.len() }
    }

    /// Returns the number of rows of a page.
    fn rows(&self) -> usize {
        if self.sinograms { self.angles.len() } else { self.phantoms.len() }
    }

    /// Computes line integrals of a slice at one angle, with the requested noise.
    fn fill_row(&self, slice: usize, projection: usize, out: &mut [f32]) {
        let theta = self.angles[projection].to_radians();
        match &self.inclined {
            None => self.phantoms[slice].project_row(theta, self.axis, out),
            Some((flat, degrees)) => {
                let row = slice as f64 - default_axis(self.phantoms.len());
                flat.project_row([theta, degrees.to_radians()], row, self.axis, out);
            }
        }
        if self.args.noise > 0.0 {
            let rng = &mut row_rng(self.args.seed, projection as u32, slice as u32);
            add_gaussian(out, self.args.noise, rng);
        }
    }

    /// Returns the line integrals of a page, `[row][bin]`.
    fn page(&self, page: usize) -> Vec<f32> {
        let mut values = vec![0f32; self.rows() * self.bins];
        values.par_chunks_mut(self.bins).enumerate().for_each(|(row, out)| match self.sinograms {
            true => self.fill_row(page, row, out),
            false => self.fill_row(row, page, out),
        });
        values
    }

    fn files<'b>(&self, directory: &'b Path, prefix: &'b str, encoding: Encoding) -> PageFiles<'b> {
        let overwrite = self.args.overwrite;
        PageFiles { directory, prefix, width: self.bins, height: self.rows(), encoding, overwrite }
    }

    /// Writes counts of a detector, and its flat and dark fields.
    fn write_counts(&self, photons: f64, flats: &Path, darks: &Path) -> Result<()> {
        let (bins, rows) = (self.bins, self.rows());
        let detector = Detector { bins, rows, photons };
        let counts = |stream: u32, make: &(dyn Fn(usize, &mut ChaCha8Rng) -> Vec<u16> + Sync)| {
            let rows: Vec<Vec<u16>> = (0..rows)
                .into_par_iter()
                .map(|row| make(row, &mut row_rng(self.args.seed, stream, row as u32)))
                .collect();
            rows.concat().into_iter().map(f32::from).collect::<Vec<f32>>()
        };
        self.files(&self.args.output, "proj", COUNTS).write(self.pages(), |p| {
            let lines = self.page(p);
            counts(p as u32, &|row, rng| detector.counts(row, &lines[row * bins..(row + 1) * bins], rng))
        })?;
        self.files(flats, "flat", COUNTS)
            .write(FIELDS, |frame| counts(u32::MAX - frame as u32, &|row, rng| detector.flat_row(row, rng)))?;
        self.files(darks, "dark", COUNTS)
            .write(FIELDS, |frame| counts(u32::MAX - (FIELDS + frame) as u32, &|row, rng| detector.dark_row(row, rng)))
    }

    /// Writes the slices that the projections come from to one file.
    fn write_truth(&self, path: &Path) -> Result<()> {
        let size = self.size;
        if let [phantom] = &self.phantoms[..] {
            let inputs = InputSet::new(self.args.angles.as_deref());
            let file = OutputFile::new("--truth", path, OutputKind::Tiff, &inputs, Some(self.args.overwrite))?;
            return write_image(&file, (size, size), &phantom.rasterise(4), LINES);
        }
        let indices: Vec<usize> = (0..self.phantoms.len()).collect();
        let target = Target::single(path);
        let present = AllowedContents::new(self.args.overwrite, None);
        let lock = OutputLock::alone(&target)?;
        let writer = SliceWriter::create(lock.target().clone(), size, size, LINES, &indices, present, SOFTWARE)?;
        for (slice, phantom) in self.phantoms.iter().enumerate() {
            writer.write(slice, &phantom.rasterise(4))?;
        }
        writer.finish()?;
        Ok(())
    }
}

fn positive(value: usize, flag: &'static str) -> Result<usize> {
    match value {
        0 => Err(CommandNumberError::Zero { flag }.into()),
        value => Ok(value),
    }
}

/// Refuses numbers that are not finite, and a beam that would clip the counts.
fn check_numbers(args: &PhantomArgs) -> Result<()> {
    for (value, flag) in [
        (args.overall_angle, "--overall-angle"),
        (args.start_angle, "--start-angle"),
        (args.scale, "--scale"),
        (args.noise, "--noise"),
        (args.center.unwrap_or(0.0), "--center"),
        (args.photons.unwrap_or(0.0), "--photons"),
        (args.lamino_angle.unwrap_or(0.0), "--lamino-angle"),
    ] {
        if !value.is_finite() {
            return Err(CommandNumberError::NotFinite { flag, value }.into());
        }
    }
    match args.photons {
        Some(photons) if !(1.0..=MOST_PHOTONS).contains(&photons) => {
            Err(CommandNumberError::Photons { photons, most: MOST_PHOTONS }.into())
        }
        _ => Ok(()),
    }
}

/// Returns the angles in degrees, one for each projection.
fn angles(args: &PhantomArgs, projections: usize) -> Result<Vec<f64>> {
    let Some(file) = &args.angles else {
        return Ok(even_angles(args.start_angle, args.overall_angle, projections));
    };
    // a signal ends this command at once
    let text = read_numbers(file, "--angles", &AtomicBool::new(false))?;
    let (angles, note) = parse_angles(&text, &format!("--angles {}", file.shown()))?;
    if let Some(note) = note {
        Reporter::new(0, ProgressKind::None, None)?.note(&format!("note: {note}"));
    }
    if angles.len() != projections {
        return Err(CommandInputError::Angles { angles: angles.len(), projections }.into());
    }
    Ok(angles)
}

const LINES: Encoding = Encoding { dtype: Dtype::F32, range: None };
const COUNTS: Encoding = Encoding { dtype: Dtype::U16, range: Some((0.0, 65535.0)) };

/// A directory for pages of `width x height` in separate files `prefix_00000.tif` ...
struct PageFiles<'a> {
    directory: &'a Path,
    prefix: &'a str,
    width: usize,
    height: usize,
    encoding: Encoding,
    overwrite: bool,
}

impl PageFiles<'_> {
    fn write(&self, count: usize, page: impl Fn(usize) -> Vec<f32>) -> Result<()> {
        let target = Target::directory_of(self.directory, &format!("{}_", self.prefix));
        let lock = OutputLock::alone(&target)?;
        let indices: Vec<usize> = (0..count).collect();
        let present = AllowedContents::new(self.overwrite, None);
        let target = lock.target().clone();
        let writer = SliceWriter::create(target, self.width, self.height, self.encoding, &indices, present, SOFTWARE)?;
        for index in indices {
            writer.write(index, &page(index))?;
        }
        writer.finish()?;
        Ok(())
    }
}

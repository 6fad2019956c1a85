//! Converts rows to the filtered spectra that gridding reads: by one kernel, or by a transform with kernels around it.

use super::{FilterSetup, RowBatch, RowTransform};
use crate::device::{Launch, Session, SinogramStore};
use crate::error::{Error, Result};
use crate::geometry::Offset;
use crate::kernel::{ROW_GROUP, RowFilter, RowFilterMethod, generate_filter};
use crate::spectrum::{stored_frequencies, turns};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

/// The stage that computes the filtered spectra of rows.
pub(super) struct SpectraStage {
    method: SpectraMethod,
    rows: RowFilter,
    bins: usize,
    slices: usize,
    /// Factors of the filter, and constant factors for unfiltered rows.
    spectra: [Buffer<f32>; 2],
    /// Weights of the projections of every part of the scan.
    weights: Vec<Buffer<f32>>,
}

enum SpectraMethod {
    Fused {
        kernel: Kernel,
        turns: Buffer<[f32; 2]>,
    },
    /// Kernel whose work-items each have scratch memory of their own.
    Vector {
        kernel: Kernel,
        turns: Buffer<[f32; 2]>,
        scratch: Buffer<[f32; 2]>,
        items: usize,
    },
    /// Transform that is created when it is first needed, with kernels around it.
    Transform {
        pad: Kernel,
        keep: Kernel,
        transform: Option<Box<dyn RowTransform>>,
        padded: Buffer<[f32; 2]>,
    },
}

/// The factors that frequencies are multiplied by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Factors {
    Filter = 0,
    /// Factors of an unfiltered row.
    Flat = 1,
}

impl SpectraStage {
    pub fn new(session: &Session, setup: &FilterSetup) -> Result<Self> {
        let FilterSetup { spec, rows, bins, .. } = *setup;
        let (slices, length) = (spec.slices as usize, rows.length);
        let program = session.build(&generate_filter(spec, setup.padding, rows)?)?;
        let layout = setup.layout(session);
        let turns = || layout.constant(session, "the transform's factors", &turns(length));
        let method = match rows.method {
            RowFilterMethod::Fused { .. } => {
                SpectraMethod::Fused { kernel: session.kernel(&program, "filter_spectra")?, turns: turns()? }
            }
            RowFilterMethod::Vector => {
                let items = session.facts.compute_units.max(1);
                SpectraMethod::Vector {
                    kernel: session.kernel(&program, "filter_spectra")?,
                    turns: turns()?,
                    scratch: layout.buffer(session, "rows in work")?,
                    items: items as usize,
                }
            }
            RowFilterMethod::Transform | RowFilterMethod::Host => SpectraMethod::Transform {
                pad: session.kernel(&program, "pad_rows")?,
                keep: session.kernel(&program, "keep_spectra")?,
                transform: None,
                padded: layout.buffer(session, "padded rows")?,
            },
        };
        let parts = setup.weights.chunks(setup.projections);
        let flat = vec![1.0 / length as f32; length];
        Ok(SpectraStage {
            method,
            rows,
            bins,
            slices,
            spectra: [
                layout.constant(session, "the filter's spectrum", setup.spectrum)?,
                layout.constant(session, "no filter's spectrum", &flat)?,
            ],
            weights: parts.map(|part| layout.constant(session, "projection weights", part)).collect::<Result<_>>()?,
        })
    }

    /// Creates a transform if one is needed: `given`, or the best that works here, with a note for the user.
    pub fn ready(
        &mut self,
        session: &Session,
        given: Option<Box<dyn RowTransform>>,
        projections: usize,
    ) -> Result<Option<String>> {
        let (length, batch) = (self.rows.length, self.slices * projections.div_ceil(2));
        let SpectraMethod::Transform { transform: transform @ None, padded, .. } = &mut self.method else {
            return Ok(None);
        };
        let (found, why) = match given {
            Some(given) => (given, None),
            None => super::row_transform(session, length, batch, padded)?,
        };
        *transform = Some(found);
        Ok(why)
    }

    /// Computes spectra of a part of the scan.
    pub fn run(
        &mut self,
        session: &Session,
        batch: &RowBatch,
        part: usize,
        factors: Factors,
        sinogram: &SinogramStore,
    ) -> Result<Vec<Event>> {
        let Some(phases) = batch.phases else {
            return Err(Error::Internal("spectra of rows need their phases".into()));
        };
        let Some(weights) = self.weights.get(part) else {
            return Err(Error::Internal(format!("there is no part {part} of the projections")));
        };
        let (bins, projections, slices) = (self.bins, batch.projections.len(), self.slices);
        if batch.valid > slices {
            return Err(Error::Internal(format!("{} slices are more than a pass of {slices}", batch.valid)));
        }
        let spectrum = &self.spectra[factors as usize];
        let length = self.rows.length;
        let pass = SpectraPass { batch, sinogram, spectrum, weights, phases, bins, slices, projections, length };
        match &mut self.method {
            SpectraMethod::Fused { kernel, turns } => {
                let RowFilterMethod::Fused { rows: side, .. } = self.rows.method else {
                    return Err(Error::Internal("there is no fused filter".into()));
                };
                let items = RowFilter::items(self.rows.length);
                let global = [items, projections.div_ceil(2).next_multiple_of(side), slices];
                pass.by_kernel(session, kernel, turns, None, &global, &[items, side, 1])
            }
            SpectraMethod::Vector { kernel, turns, scratch, items } => {
                pass.by_kernel(session, kernel, turns, Some(scratch), &[*items, 1], &[1, 1])
            }
            SpectraMethod::Transform { pad, keep, transform: Some(transform), padded } => {
                pass.by_transform(session, [pad, keep], transform.as_mut(), padded)
            }
            SpectraMethod::Transform { .. } => Err(Error::Internal("there is no transform of rows".into())),
        }
    }
}

/// Inputs of a pass.
struct SpectraPass<'a> {
    batch: &'a RowBatch<'a>,
    sinogram: &'a SinogramStore,
    spectrum: &'a Buffer<f32>,
    weights: &'a Buffer<f32>,
    phases: &'a Buffer<Offset>,
    bins: usize,
    slices: usize,
    projections: usize,
    /// Length of a padded row.
    length: usize,
}

impl SpectraPass<'_> {
    /// Sets the next argument to the rows of the batch.
    fn pass_rows<'a>(&self, launch: Launch<'a>) -> Result<Launch<'a>> {
        let RowBatch { rows, first, valid, .. } = *self.batch;
        launch.buffer(rows, first + valid * self.projections * self.bins, "sinograms")
    }

    /// Sets the next arguments to the spectra that are stored, and to the factors of their frequencies.
    fn pass_spectra<'a>(&self, launch: Launch<'a>) -> Result<Launch<'a>> {
        let bytes = 8 * self.slices * self.projections * stored_frequencies(self.bins);
        launch
            .buffer(&self.sinogram.buffer, bytes, "the compound sinogram")?
            .buffer(self.spectrum, self.length, "the filter's spectrum")?
            .buffer(self.weights, self.projections, "projection weights")?
            .buffer(self.phases, self.projections, "phases")
    }

    /// Computes spectra by `filter_spectra`, launched with a global and a local size.
    fn by_kernel(
        &self,
        session: &Session,
        kernel: &Kernel,
        turns: &Buffer<[f32; 2]>,
        scratch: Option<&Buffer<[f32; 2]>>,
        global: &[usize],
        local: &[usize],
    ) -> Result<Vec<Event>> {
        let launch = self.pass_rows(session.launch(kernel, "filter_spectra"))?;
        let launch = self.pass_spectra(launch)?.buffer(turns, self.length, "the transform's factors")?;
        let launch = match scratch {
            // two lines of all slices for each item
            Some(scratch) => launch.buffer(scratch, 2 * global[0] * self.length * self.slices, "rows in work")?,
            None => launch,
        };
        let launch = launch
            .value(self.batch.first as u64)?
            .value(self.bins as i32)?
            .value(self.projections as i32)?
            .value(self.batch.valid as i32)?;
        Ok(vec![launch.run(global, Some(local))?])
    }

    /// Computes spectra by a transform of rows of `length`, between `pad_rows` and `keep_spectra`.
    fn by_transform(
        &self,
        session: &Session,
        [pad, keep]: [&Kernel; 2],
        transform: &mut dyn RowTransform,
        padded: &mut Buffer<[f32; 2]>,
    ) -> Result<Vec<Event>> {
        let pairs = self.projections.div_ceil(2);
        let count = self.slices * pairs * self.length;
        let (group, global) = ([ROW_GROUP, 1, 1], [ROW_GROUP, pairs, self.slices]);
        let launch = self
            .pass_rows(session.launch(pad, "pad_rows"))?
            .buffer(padded, count, "padded rows")?
            .value(self.batch.first as u64)?
            .value(self.bins as i32)?
            .value(self.length as i32)?
            .value(self.projections as i32)?
            .value(self.batch.valid as i32)?;
        let padding = launch.run(&global, Some(&group))?;
        let transformed = transform.forward(session, padded)?;
        let launch = session.launch(keep, "keep_spectra").buffer(padded, count, "padded rows")?;
        let launch = self.pass_spectra(launch)?.value(self.length as i32)?.value(self.projections as i32)?;
        let kept = launch.run(&global, Some(&group))?;
        Ok(vec![padding, transformed, kept])
    }
}

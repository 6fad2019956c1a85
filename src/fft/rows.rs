//! Filters rows into a compound sinogram: by the kernels of `filter.cl` and `filter_rows.cl`, a transform, or the host.

use super::errors::WrongFilterError;
use super::spectra::{Factors, SpectraStage};
use super::{FilterSetup, RowBatch, RowTransform};
use crate::device::{Launch, Session, SinogramStore, sinogram_bytes};
use crate::error::{Error, Result};
use crate::fft;
use crate::geometry::Offset;
use crate::host_filter::{HostFilter, RowForm};
use crate::kernel::{ROW_GROUP, RowFilter, RowFilterMethod, Storage, TILE, Texel, generate_filter};
use crate::spectrum::turns;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_READ_WRITE};
use std::time::{Duration, Instant};

/// Filters rows and stores them in the layout that a kernel reads.
pub struct RowStage {
    backend: FilterBackend,
    shape: BatchShape,
    /// Largest values per slice, as bits; all 0 unless the sinogram is stored as half.
    peak_bits: Buffer<u32>,
    /// Note for the user.
    pub note: Option<String>,
}

/// Commands and time that filtering took.
#[derive(Default)]
pub struct Filtered {
    pub events: Vec<Event>,
    /// Time that filtering took on the host.
    pub host: Duration,
}

#[derive(Clone, Copy)]
struct BatchShape {
    bins: usize,
    projections: usize,
    slices: usize,
    guard: usize,
    storage: Storage,
    rows: RowFilter,
    /// Bytes of the compound sinogram.
    sinogram_bytes: usize,
    /// Number of the part of the scan that the projections are.
    part: usize,
}

/// Rows to be filtered.
#[derive(Clone, Copy)]
struct UnfilteredRows<'a> {
    /// Real rows `[slice][projection][bin]`, from value `first` on.
    values: &'a Buffer<f32>,
    first: usize,
    /// Number of slices that have rows.
    valid: usize,
}

impl BatchShape {
    /// Returns the number of complex values of the padded rows of all slices.
    fn padded(&self) -> usize {
        self.slices * self.pairs() * self.stride()
    }

    /// Passes the rows of all slices that have some to a kernel, unless they are more slices than those of a pass.
    fn pass_rows<'a>(&self, rows: UnfilteredRows, launch: Launch<'a>) -> Result<Launch<'a>> {
        let UnfilteredRows { values, first, valid } = rows;
        if valid > self.slices {
            return Err(Error::Internal(format!("{valid} slices are more than a pass of {}", self.slices)));
        }
        launch.buffer(values, first + valid * self.projections * self.bins, "sinograms")
    }

    /// Returns the number of complex rows of one slice.
    fn pairs(&self) -> usize {
        self.projections.div_ceil(2)
    }

    /// Returns the number of values from one filtered row to the next.
    fn stride(&self) -> usize {
        self.rows.stride(self.bins)
    }
}

enum FilterBackend {
    Spectra(Box<SpectraStage>),
    Device(Box<RowKernels>),
    Host(HostFilter),
}

/// Filtered rows of some slices.
#[derive(Clone, Copy)]
enum FilteredRows<'a> {
    /// Complex rows `[slice][pair][stride]`, each of two real rows.
    Pairs(&'a Buffer<[f32; 2]>),
    /// Real rows `[slice][projection][bin]`, from the given index on.
    Planar(&'a Buffer<f32>, usize),
}

impl FilteredRows<'_> {
    /// Returns the index of the first value.
    fn first(self) -> u64 {
        match self {
            FilteredRows::Pairs(_) => 0,
            FilteredRows::Planar(_, first) => first as u64,
        }
    }

    /// Passes the rows of `slices` slices to a kernel.
    fn pass<'a>(self, s: BatchShape, slices: usize, launch: Launch<'a>) -> Result<Launch<'a>> {
        match self {
            FilteredRows::Pairs(rows) => launch.buffer(rows, slices * s.pairs() * s.stride(), "filtered rows"),
            FilteredRows::Planar(rows, first) => {
                launch.buffer(rows, first + slices * s.projections * s.bins, "filtered rows")
            }
        }
    }
}

/// The kernels of `filter.cl`, and the buffers between them.
struct RowKernels {
    peaks: Kernel,
    interleave: Kernel,
    filter: FilterKernels,
    spectrum: Buffer<f32>,
    /// Weights of the projections of every part of the scan.
    weights: Vec<Buffer<f32>>,
}

enum FilterKernels {
    /// Transform that is created when it is first needed, with kernels around it.
    Transform {
        pad: Kernel,
        multiply: Kernel,
        transform: Option<Box<dyn RowTransform>>,
        /// Padded rows `[slice][pair][stride]`.
        spectra: Buffer<[f32; 2]>,
    },
    Fused {
        kernel: Kernel,
        turns: Buffer<[f32; 2]>,
        /// Filtered rows, unless they replace the rows.
        filtered: Option<Buffer<f32>>,
    },
}

impl RowStage {
    /// Builds kernels and allocates memory. A fused kernel that computes wrong values on this device is replaced by a
    /// transform.
    pub fn new(session: &Session, setup: FilterSetup) -> Result<Self> {
        let FilterSetup { spec, rows, bins, projections, .. } = setup;
        let slices = spec.slices as usize;
        let guard = spec.texel.guard();
        let storage = spec.parameters.storage();
        let sinogram_bytes = sinogram_bytes(spec.texel, bins, projections, spec.element_bytes());
        let mut shape = BatchShape { bins, projections, slices, guard, storage, rows, sinogram_bytes, part: 0 };
        let mut peak_bits = setup.layout(session).buffer(session, "peaks")?;
        session.write(&mut peak_bits, &vec![0; slices], "peaks")?;
        let mut note = None;
        let backend = match rows.method {
            _ if matches!(spec.texel, Texel::Spectra { .. }) => {
                FilterBackend::Spectra(Box::new(SpectraStage::new(session, &setup)?))
            }
            RowFilterMethod::Host => FilterBackend::Host(host_filter(&setup)),
            RowFilterMethod::Transform | RowFilterMethod::Vector => {
                FilterBackend::Device(Box::new(RowKernels::new(session, &setup, shape)?))
            }
            RowFilterMethod::Fused { .. } => {
                let tried = RowKernels::new(session, &setup, shape).and_then(|kernels| {
                    kernels.try_fused(session, &setup)?;
                    Ok(kernels)
                });
                let kernels = match tried {
                    Ok(kernels) => kernels,
                    Err(error) => {
                        note = Some(format!("{error}; rows are filtered by clFFT instead, which is slower"));
                        shape.rows.method = RowFilterMethod::Transform;
                        RowKernels::new(session, &FilterSetup { rows: shape.rows, ..setup }, shape)?
                    }
                };
                FilterBackend::Device(Box::new(kernels))
            }
        };
        Ok(RowStage { backend, shape, peak_bits, note })
    }

    /// Gives each slice of a pass a form of its own, and the rows of the compound sinogram `stored` bins. A slice has the values
    /// that it has alone, moved by its shift.
    ///
    /// # Errors
    /// [`Error::Internal`] if the host does not filter, or as of [`HostFilter::vary`].
    pub fn vary(&mut self, forms: Vec<RowForm>, stored: usize) -> Result<()> {
        match &mut self.backend {
            FilterBackend::Host(filter) => filter.vary(forms, stored),
            _ => Err(Error::Internal("only the host filters the slices of a pass in different ways".into())),
        }
    }

    /// Creates a transform if one is needed: `given`, or the best one that works here.
    pub fn ready(&mut self, session: &Session, given: Option<Box<dyn RowTransform>>) -> Result<()> {
        if let FilterBackend::Spectra(stage) = &mut self.backend {
            let why = stage.ready(session, given, self.shape.projections)?;
            self.note = self.note.take().or(why);
            return Ok(());
        }
        if let FilterBackend::Device(kernels) = &mut self.backend
            && let FilterKernels::Transform { transform, spectra, .. } = &mut kernels.filter
            && transform.is_none()
        {
            let shape = self.shape;
            *transform = Some(match given {
                Some(given) => given,
                None => {
                    let batch = shape.pairs() * shape.slices;
                    let (found, why) = fft::row_transform(session, shape.rows.length, batch, spectra)?;
                    self.note = self.note.take().or(why);
                    found
                }
            });
        }
        Ok(())
    }

    /// Filters a part of the scan into `sinogram`, which afterwards holds only that part.
    pub fn run(&mut self, session: &Session, batch: &RowBatch, sinogram: &mut SinogramStore) -> Result<Filtered> {
        self.ready(session, None)?;
        let RowBatch { rows, first, valid, .. } = *batch;
        let projections = batch.projections.clone();
        let unfiltered = UnfilteredRows { values: rows, first, valid };
        let part = projections.start / self.shape.projections;
        let least = self.shape.sinogram_bytes / self.shape.projections * projections.len();
        let shape = BatchShape { projections: projections.len(), sinogram_bytes: least, part, ..self.shape };
        match &mut self.backend {
            FilterBackend::Spectra(stage) => {
                let events = stage.run(session, batch, part, Factors::Filter, sinogram)?;
                Ok(Filtered { events, host: Duration::ZERO })
            }
            FilterBackend::Host(filter) => {
                on_host(session, shape, filter, unfiltered, sinogram, |rows, out| filter.run(projections, rows, out))
            }
            FilterBackend::Device(kernels) => {
                let mut events = kernels.filter(session, shape, unfiltered)?;
                let filtered = kernels.filtered(rows, first);
                events.extend(kernels.store(session, shape, filtered, valid, &mut self.peak_bits, sinogram)?);
                Ok(Filtered { events, host: Duration::ZERO })
            }
        }
    }

    /// Stores all rows without filtering them: the compound sinogram then holds known values, or their spectra.
    pub fn store_rows(
        &mut self,
        session: &Session,
        rows: &Buffer<f32>,
        phases: Option<&Buffer<Offset>>,
        sinogram: &mut SinogramStore,
    ) -> Result<()> {
        let shape = self.shape;
        let all = 0..shape.projections;
        if let FilterBackend::Spectra(_) = self.backend {
            self.ready(session, None)?;
        }
        match &mut self.backend {
            FilterBackend::Spectra(stage) => {
                let batch = RowBatch { rows, first: 0, valid: shape.slices, projections: all, phases };
                stage.run(session, &batch, 0, Factors::Flat, sinogram)?;
            }
            FilterBackend::Host(filter) => {
                let unfiltered = UnfilteredRows { values: rows, first: 0, valid: shape.slices };
                on_host(session, shape, filter, unfiltered, sinogram, |rows, out| filter.store(all, rows, out))?;
            }
            FilterBackend::Device(kernels) => {
                let padded = kernels.unfiltered(session, shape, rows)?;
                kernels.store(session, shape, padded, shape.slices, &mut self.peak_bits, sinogram)?;
            }
        }
        Ok(())
    }

    /// Returns the largest values of every slice, as bits, by which half storage scales.
    pub fn peaks(&self) -> &Buffer<u32> {
        &self.peak_bits
    }
}

/// Combines each two real rows of a batch into a complex one that is padded to the stride in memory.
fn padded(
    session: &Session,
    s: BatchShape,
    kernel: &Kernel,
    rows: UnfilteredRows,
    spectra: &Buffer<[f32; 2]>,
) -> Result<Event> {
    let launch = s
        .pass_rows(rows, session.launch(kernel, "pad_rows"))?
        .buffer(spectra, s.padded(), "padded rows")?
        .value(rows.first as u64)?
        .value(s.bins as i32)?
        .value(s.stride() as i32)?
        .value(s.projections as i32)?
        .value(rows.valid as i32)?;
    launch.run(&[ROW_GROUP, s.pairs(), s.slices], Some(&[ROW_GROUP, 1, 1]))
}

fn host_filter(setup: &FilterSetup) -> HostFilter {
    HostFilter::new(
        setup.bins,
        setup.spec.slices as usize,
        setup.spec.texel.guard(),
        setup.padding,
        setup.spectrum.to_vec(),
        setup.weights.to_vec(),
    )
}

/// Maps rows and sinogram for the filter on the host, without copies if the device is the host.
fn on_host(
    session: &Session,
    shape: BatchShape,
    host: &HostFilter,
    rows: UnfilteredRows,
    sinogram: &mut SinogramStore,
    filter: impl FnOnce(&[f32], &mut [f32]),
) -> Result<Filtered> {
    session.finish()?;
    let start = Instant::now();
    let UnfilteredRows { values, first, valid } = rows;
    let count = valid * shape.projections * shape.bins;
    let stored = (host.stored() + 2 * shape.guard) * shape.projections * shape.slices;
    session.with_mapped(values, CL_MAP_READ, first, count, "sinograms", |rows: &mut [f32]| {
        session.with_mapped(&sinogram.buffer, CL_MAP_WRITE, 0, stored, "the compound sinogram", |out: &mut [f32]| {
            filter(rows, out);
        })
    })??;
    Ok(Filtered { events: Vec::new(), host: start.elapsed() })
}

impl RowKernels {
    fn new(session: &Session, setup: &FilterSetup, shape: BatchShape) -> Result<Self> {
        let program = session.build(&generate_filter(setup.spec, setup.padding, shape.rows)?)?;
        let layout = setup.layout(session);
        let filter = match shape.rows.method {
            RowFilterMethod::Fused { .. } => FilterKernels::Fused {
                kernel: session.kernel(&program, "filter_rows")?,
                turns: layout.constant(session, "the transform's factors", &turns(shape.rows.length))?,
                filtered: (!setup.in_place).then(|| layout.buffer(session, "filtered rows")).transpose()?,
            },
            RowFilterMethod::Transform | RowFilterMethod::Vector | RowFilterMethod::Host => FilterKernels::Transform {
                pad: session.kernel(&program, "pad_rows")?,
                multiply: session.kernel(&program, "multiply_spectrum")?,
                transform: None,
                spectra: layout.buffer(session, "padded rows")?,
            },
        };
        Ok(RowKernels {
            peaks: session.kernel(&program, "measure_peaks")?,
            interleave: session.kernel(&program, "interleave")?,
            filter,
            spectrum: layout.constant(session, "the filter's spectrum", setup.spectrum)?,
            weights: setup
                .weights
                .chunks(shape.projections)
                .map(|part| layout.constant(session, "projection weights", part))
                .collect::<Result<_>>()?,
        })
    }

    /// Filters two rows of noise and compares them with the host's result.
    fn try_fused(&self, session: &Session, setup: &FilterSetup) -> Result<()> {
        let FilterSetup { bins, spec, .. } = *setup;
        let projections = 2;
        let noise = |i: usize| ((i as f64 * 0.754_877_666).fract() - 0.5) as f32;
        let rows: Vec<f32> = (0..projections * bins).map(noise).collect();
        let ones = [1.0; 2];
        let reference = HostFilter::new(bins, 1, 0, setup.padding, setup.spectrum.to_vec(), ones.to_vec());
        let mut want = vec![0f32; rows.len()];
        reference.run(0..projections, &rows, &mut want);
        let mut buffer = session.buffer(rows.len(), CL_MEM_READ_WRITE, "noise")?;
        session.write(&mut buffer, &rows, "noise")?;
        let storage = spec.parameters.storage();
        let shape = BatchShape {
            bins,
            projections,
            slices: 1,
            guard: 0,
            storage,
            rows: setup.rows,
            sinogram_bytes: 0,
            part: 0,
        };
        // in place, which is stricter than into another buffer
        self.fused(session, shape, UnfilteredRows { values: &buffer, first: 0, valid: 1 }, &buffer, 0)?;
        let mut got = vec![0f32; rows.len()];
        session.read(&buffer, &mut got, "filtered noise")?;
        let square = |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v).powi(2)).sum::<f64>();
        let difference = square(&mut got.iter().zip(&want).map(|(got, want)| got - want));
        let all = square(&mut want.iter().copied());
        // single precision: 4e-7 and less
        if difference <= 1e-10 * all {
            return Ok(());
        }
        Err(WrongFilterError::Fused { device: session.device_name().to_owned(), length: setup.rows.length }.into())
    }

    /// Returns the rows without filtering: in place, or padded if filtered rows would be.
    fn unfiltered<'a>(&'a self, session: &Session, s: BatchShape, rows: &'a Buffer<f32>) -> Result<FilteredRows<'a>> {
        let FilterKernels::Transform { pad, spectra, .. } = &self.filter else {
            return Ok(FilteredRows::Planar(rows, 0));
        };
        padded(session, s, pad, UnfilteredRows { values: rows, first: 0, valid: s.slices }, spectra)?;
        Ok(FilteredRows::Pairs(spectra))
    }

    fn fused(
        &self,
        session: &Session,
        s: BatchShape,
        rows: UnfilteredRows,
        out: &Buffer<f32>,
        to: usize,
    ) -> Result<Event> {
        let (FilterKernels::Fused { kernel, turns, .. }, RowFilterMethod::Fused { rows: side, .. }) =
            (&self.filter, s.rows.method)
        else {
            return Err(Error::Internal("there is no fused filter".into()));
        };
        let items = RowFilter::items(s.rows.length);
        let launch = s.pass_rows(rows, session.launch(kernel, "filter_rows"))?;
        let launch = FilteredRows::Planar(out, to)
            .pass(s, rows.valid, launch)?
            .buffer(&self.spectrum, s.rows.length, "the filter's spectrum")?
            .buffer(turns, s.rows.length, "the transform's factors")?
            .value(rows.first as u64)?
            .value(to as u64)?
            .value(s.bins as i32)?
            .value(s.projections as i32)?;
        launch.run(&[items, s.pairs().next_multiple_of(side), rows.valid], Some(&[items, side, 1]))
    }

    /// Returns the filtered rows of a batch.
    fn filtered<'a>(&'a self, rows: &'a Buffer<f32>, first: usize) -> FilteredRows<'a> {
        match &self.filter {
            FilterKernels::Transform { spectra, .. } => FilteredRows::Pairs(spectra),
            FilterKernels::Fused { filtered: Some(filtered), .. } => FilteredRows::Planar(filtered, 0),
            FilterKernels::Fused { filtered: None, .. } => FilteredRows::Planar(rows, first),
        }
    }

    /// Filters rows of a batch.
    fn filter(&mut self, session: &Session, s: BatchShape, rows: UnfilteredRows) -> Result<Vec<Event>> {
        if let FilteredRows::Planar(out, to) = self.filtered(rows.values, rows.first) {
            return Ok(vec![self.fused(session, s, rows, out, to)?]);
        }
        let FilterKernels::Transform { pad, multiply, transform: Some(transform), spectra } = &mut self.filter else {
            return Err(Error::Internal("there is no transform of rows".into()));
        };
        let padded = padded(session, s, pad, rows, spectra)?;
        let forward = transform.forward(session, spectra)?;
        let launch = session
            .launch(multiply, "multiply_spectrum")
            .buffer(spectra, s.pairs() * s.slices * s.rows.length, "padded rows")?
            .buffer(&self.spectrum, s.rows.length, "the filter's spectrum")?
            .value(s.rows.length as i32)?;
        let multiplied = launch.run(&[ROW_GROUP, s.pairs() * s.slices], Some(&[ROW_GROUP, 1]))?;
        Ok(vec![padded, forward, multiplied, transform.backward(session, spectra)?])
    }

    /// Stores rows of `valid` slices in the compound sinogram, with the weights of the projections of a part.
    fn store(
        &self,
        session: &Session,
        s: BatchShape,
        filtered: FilteredRows,
        valid: usize,
        peak_bits: &mut Buffer<u32>,
        sinogram: &mut SinogramStore,
    ) -> Result<Vec<Event>> {
        let Some(weights) = self.weights.get(s.part) else {
            return Err(Error::Internal(format!("there is no part {} of the projections", s.part)));
        };
        let mut events = Vec::new();
        if s.storage == Storage::Half {
            events.push(session.write(peak_bits, &vec![0; s.slices], "peaks")?);
            let launch = filtered
                .pass(s, valid, session.launch(&self.peaks, "measure_peaks"))?
                .buffer(weights, s.projections, "projection weights")?
                .buffer(peak_bits, valid, "peaks")?
                .value(filtered.first())?
                .value(s.bins as i32)?
                .value(s.stride() as i32)?
                .value(s.projections as i32)?;
            events.push(launch.run(&[ROW_GROUP, s.pairs(), valid], Some(&[ROW_GROUP, 1, 1]))?);
        }
        let width = (s.bins + 2 * s.guard).next_multiple_of(TILE[0]);
        let launch = filtered
            .pass(s, valid, session.launch(&self.interleave, "interleave"))?
            .buffer(weights, s.projections, "projection weights")?
            .buffer(peak_bits, s.slices, "peaks")?
            .buffer(&sinogram.buffer, s.sinogram_bytes, "the compound sinogram")?
            .value(filtered.first())?
            .value(s.bins as i32)?
            .value(s.stride() as i32)?
            .value(s.projections as i32)?
            .value(valid as i32)?;
        events.push(launch.run(&[width, TILE[1], s.pairs()], Some(&[TILE[0], TILE[1], 1]))?);
        events.extend(sinogram.publish(session)?);
        Ok(events)
    }
}

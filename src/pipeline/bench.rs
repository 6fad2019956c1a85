//! Kernels timed on a device, each checked first on the data that it is timed with.

use super::engine::{scaled_spectrum, texel_works};
use crate::bench::{Protocol, Reads, Reference, steady_median};
use crate::device::{BackProjector, FilterKernels, FilterShape, FoundDevice, Session, SinogramStore};
use crate::error::{Error, Result};
use crate::fft;
use crate::kernelgen::{KernelSource, KernelSpec, Padding, Texel, generate_filter};
use crate::margins::{margin, tie};
use crate::profile::Offer;
use crate::spectrum::Filter;
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use std::time::Instant;

/// What was measured of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Relative error, see [`Reference::error`].
    pub error: f64,
    /// Seconds of a pass; only of a kernel that is right.
    pub seconds: Option<f64>,
    /// Seconds of the filter for a pass, if there is a transform here.
    pub filter: Option<f64>,
}

/// How a kernel is to be timed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// A pass that takes more seconds than these is not repeated.
    pub hopeless: Option<f64>,
    /// The kernel is told of so many projections only, which makes it fast and wrong: for tests.
    pub projections: Option<usize>,
}

/// A device with noise on it.
pub struct Bench {
    session: Session,
    protocol: Protocol,
    rows: Buffer<f32>,
    slices: Buffer<f32>,
    host: Vec<f32>,
    /// Image formats that were tried.
    texels: Vec<(Texel, bool)>,
    /// Filters that were timed, by the key of their source and what they store into.
    filters: Vec<(String, Texel, usize, Option<f64>)>,
    /// Things a person should know.
    pub notes: Vec<String>,
}

impl Bench {
    /// Opens the device and puts the reference's noise on it.
    pub fn new(found: &FoundDevice, protocol: Protocol, reference: &Reference) -> Result<Self> {
        let session = Session::open(found)?;
        let mut rows = session.buffer(reference.sinograms().len(), CL_MEM_READ_ONLY, "sinograms")?;
        session.write(&mut rows, reference.sinograms(), "sinograms")?;
        let values = reference.slices() * protocol.size * protocol.size;
        Ok(Bench {
            rows,
            slices: session.buffer(values, CL_MEM_WRITE_ONLY, "slices")?,
            host: vec![0f32; values],
            texels: Vec::new(),
            filters: Vec::new(),
            notes: Vec::new(),
            protocol,
            session,
        })
    }

    /// Checks a kernel, and times it if it is right.
    pub fn time(
        &mut self,
        spec: &KernelSpec,
        fft_length: usize,
        reference: &mut Reference,
        wish: &Wish,
    ) -> Result<Measured> {
        let (_, mut filter, mut sinogram) = self.filter(spec, fft_length)?;
        self.time_on(spec, reference, wish, &mut filter, &mut sinogram)
    }

    /// The filter's kernels and the sinogram that they store into, in the layout of a kernel.
    fn filter(&self, spec: &KernelSpec, fft_length: usize) -> Result<(KernelSource, FilterKernels, SinogramStore)> {
        let Protocol { bins, projections, .. } = self.protocol;
        let shape = self.shape(spec, fft_length);
        let source = generate_filter(spec, Padding::Edge)?;
        let spectrum = scaled_spectrum(Filter::Ramp, 1.0, fft_length);
        let filter = FilterKernels::new(&self.session, &source, shape, &spectrum, &vec![1.0; projections])?;
        let sinogram = SinogramStore::new(&self.session, spec.texel, bins, projections, spec.element_bytes())?;
        Ok((source, filter, sinogram))
    }

    fn shape(&self, spec: &KernelSpec, length: usize) -> FilterShape {
        FilterShape {
            bins: self.protocol.bins,
            projections: self.protocol.projections,
            length,
            slices: spec.slices as usize,
            storage: spec.parameters.storage(),
            guard: spec.texel.guard(),
        }
    }

    fn time_on(
        &mut self,
        spec: &KernelSpec,
        reference: &mut Reference,
        wish: &Wish,
        filter: &mut FilterKernels,
        sinogram: &mut SinogramStore,
    ) -> Result<Measured> {
        let Protocol { bins, size, passes, .. } = self.protocol;
        let count = spec.slices as usize;
        let session = &self.session;
        filter.store_rows(session, &self.rows, 0, count, sinogram)?;
        let geometry = match wish.projections {
            None => reference.geometry().clone(),
            Some(few) => reference.geometry().with_first(few),
        };
        let projector = BackProjector::new(session, &spec.generate()?, &geometry)?;
        let (needs, has) = (projector.resources.local_bytes.unwrap_or(0), session.facts.local_memory);
        if needs > has {
            return Err(Error::Device(format!(
                "its work-group needs {needs} bytes of local memory, {} has {has}",
                session.facts.name
            )));
        }
        let pass = || {
            let start = Instant::now();
            let event = projector.run(session, sinogram, filter.peaks(), &self.slices, 0, count)?;
            session.finish()?;
            Ok(device_seconds(&[event]).unwrap_or_else(|| start.elapsed().as_secs_f64()))
        };
        pass()?;
        let slices = &mut self.host[..count * size * size];
        session.read(&self.slices, slices, "slices")?;
        let error = reference.error(slices, Reads::of(spec), tie(spec, bins));
        if error.is_nan() || error > margin(spec).relative_rms {
            return Ok(Measured { error, seconds: None, filter: None });
        }
        if let Some(most) = wish.hopeless {
            let seconds = pass()?;
            if seconds > most {
                return Ok(Measured { error, seconds: Some(seconds), filter: None });
            }
        }
        Ok(Measured { error, seconds: Some(steady_median(passes, pass)?), filter: None })
    }

    /// Checks a kernel, and times it and its filter if it is right. Rows are padded to `fft_length`.
    pub fn measure(&mut self, spec: &KernelSpec, fft_length: usize, reference: &mut Reference) -> Result<Measured> {
        let (source, mut filter, mut sinogram) = self.filter(spec, fft_length)?;
        let measured = self.time_on(spec, reference, &Wish::default(), &mut filter, &mut sinogram)?;
        if measured.seconds.is_none() {
            return Ok(measured);
        }
        let (session, shape, passes) = (&self.session, self.shape(spec, fft_length), self.protocol.passes);
        let same = |f: &&(String, Texel, usize, Option<f64>)| (&f.0, f.1, f.2) == (&source.key, spec.texel, fft_length);
        if let Some((.., known)) = self.filters.iter().find(same) {
            return Ok(Measured { filter: *known, ..measured });
        }
        let time = match fft::row_transform(session, fft_length, shape.rows(), filter.spectra()) {
            Err(why) => {
                self.notes.push(format!("the filter is not timed: {why}"));
                None
            }
            Ok((mut transform, note)) => {
                self.notes.extend(note);
                Some(steady_median(passes, || {
                    let start = Instant::now();
                    let events = filter.run(session, transform.as_mut(), &self.rows, 0, shape.slices, &mut sinogram)?;
                    session.finish()?;
                    Ok(device_seconds(&events).unwrap_or_else(|| start.elapsed().as_secs_f64()))
                })?)
            }
        };
        self.filters.push((source.key, spec.texel, fft_length, time));
        Ok(Measured { filter: time, ..measured })
    }

    /// The layout of the sinogram that a kernel of the profile reads here: the best that works.
    pub fn texel(&mut self, offer: &Offer) -> Result<Texel> {
        let facts = &self.session.facts;
        let fits = self.protocol.bins <= facts.image_max[0] && self.protocol.projections <= facts.image_max[1];
        for texel in offer.texels() {
            if texel.format().is_some_and(|format| !fits || !facts.image_formats.contains(&format)) {
                continue;
            }
            let works = match self.texels.iter().find(|(tried, _)| *tried == texel) {
                Some((_, works)) => *works,
                None => {
                    let works = texel_works(&self.session, texel)?;
                    self.texels.push((texel, works));
                    works
                }
            };
            if works {
                return Ok(texel);
            }
        }
        Ok(Texel::Buffer)
    }
}

/// From the start of the first command to the end of the last, by the device's clock; `None` where it does not tell.
fn device_seconds(events: &[Event]) -> Option<f64> {
    let start = events.iter().map(|e| e.profiling_command_start().ok()).min()??;
    let end = events.iter().map(|e| e.profiling_command_end().ok()).max()??;
    (end > start).then(|| (end - start) as f64 * 1e-9)
}

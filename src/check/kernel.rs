//! The test of a kernel: it back-projects noise, and some pixels are compared with the reference in `f64`.

use crate::device::{BackProjector, GridForm, Session, SinogramStore, grid_values};
use crate::digest::PartsDigest;
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::fft::{FilterSetup, RowStage};
use crate::geometry::Geometry;
use crate::kernel::{KernelSpec, Parameters, RowFilter, Texel, generate_filter};
use crate::margins::{margin, tie};
use crate::reference::Reference;
use crate::spectrum::{Filter, Padding, scaled_spectrum};
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};

/// Noise on a device, and a buffer for its back projection.
pub struct Checker {
    pub(crate) rows: Buffer<f32>,
    pub(crate) slices: Buffer<f32>,
    /// Values of a slice.
    host: Vec<f32>,
}

/// A kernel with the filtered noise that it reads.
pub(crate) struct Loaded {
    pub filter: RowStage,
    pub sinogram: SinogramStore,
    pub projector: BackProjector,
}

impl Checker {
    /// Puts the reference's noise on the device.
    pub fn new(session: &Session, reference: &Reference) -> Result<Self> {
        let pixels = reference.geometry().roi.pixels();
        let mut rows = session.buffer(reference.sinograms().len(), CL_MEM_READ_ONLY, "sinograms")?;
        session.write(&mut rows, reference.sinograms(), "sinograms")?;
        let slices = session.buffer(reference.slices() * pixels, CL_MEM_WRITE_ONLY, "slices")?;
        Ok(Checker { rows, slices, host: vec![0f32; pixels] })
    }

    /// Builds a kernel and stores the noise as it reads it, without filtering it.
    ///
    /// With a `limit`, the kernel gets only that many projections, which makes it wrong, to test what finds that.
    pub(crate) fn prepare(
        &self,
        session: &Session,
        spec: &KernelSpec,
        rows: RowFilter,
        padding: Padding,
        reference: &Reference,
        limit: Option<usize>,
    ) -> Result<Loaded> {
        let geometry = reference.geometry();
        let (bins, projections) = (geometry.bins, geometry.projections());
        let rows = match spec.texel {
            Texel::Spectra { .. } => rows.for_spectra(bins, &session.facts),
            _ => rows,
        };
        let spectrum = scaled_spectrum(Filter::Ramp, 1.0, rows.length);
        let weights = vec![1.0; projections];
        let setup = FilterSetup {
            spec,
            rows,
            padding,
            bins,
            projections,
            spectrum: &spectrum,
            weights: &weights,
            in_place: false,
        };
        let mut filter = RowStage::new(session, setup)?;
        let grids = grid_values(&session.facts, spec, [geometry.roi].into_iter())?;
        let mut sinogram = SinogramStore::new(session, spec.texel, bins, projections, spec.element_bytes())?
            .with_grids(session, grids)?;
        let whole = BackProjector::new(session, spec, geometry, 0..projections)?;
        filter.store_rows(session, &self.rows, whole.phases(), &mut sinogram)?;
        let projector = match limit {
            None => whole,
            Some(limit) => BackProjector::new(session, spec, geometry, 0..limit)?,
        };
        Ok(Loaded { filter, sinogram, projector })
    }

    /// Runs the kernel and returns the error of the worst slice; see [`Reference::error`].
    pub(crate) fn error(
        &mut self,
        session: &Session,
        spec: &KernelSpec,
        prepared: &Loaded,
        reference: &mut Reference,
    ) -> Result<f64> {
        let count = spec.slices as usize;
        let Loaded { sinogram, filter, projector, .. } = prepared;
        projector.run(session, sinogram, filter.peaks(), &self.slices, 0, count)?;
        session.finish()?;
        let tie = tie(spec, reference.geometry().bins);
        let mut worst = 0f64;
        for slice in 0..count {
            session.download(&self.slices, slice * self.host.len(), &mut self.host, "slices")?;
            worst = worst.max(reference.error(slice, &self.host, spec.reads(), tie));
        }
        Ok(worst)
    }
}

/// Number of bins of the test problem, which has several blocks of any kernel, and no side that is a multiple of
/// anything.
const BINS: usize = 71;
/// Number of projections of the test problem.
const PROJECTIONS: usize = 61;
/// Side of the slices of the test problem in pixels.
const SIZE: usize = 75;

/// The check of a kernel before a run.
pub struct KernelTest<'a> {
    pub spec: &'a KernelSpec,
    /// Filter of the run's rows; its programs are built only once.
    pub rows: RowFilter,
    pub padding: Padding,
    /// Geometry of the run, with the region that it computes at a time.
    pub scan: &'a Geometry,
}

impl KernelTest<'_> {
    /// Returns the geometry of a small problem. For gridding, it has as many bins as the run, and the same pixels, but
    /// few projections: transforms of different lengths are different programs.
    fn geometry(&self) -> Geometry {
        let Geometry { bins, size, roi, .. } = *self.scan;
        match self.spec.texel {
            Texel::Spectra { .. } => Geometry { roi, ..Geometry::half_turn(bins, PROJECTIONS, size) },
            _ => Geometry::half_turn(BINS, PROJECTIONS, SIZE),
        }
    }

    /// Returns a key that identifies the programs that are tested; `key` is the kernel's.
    pub fn key(&self, facts: &DeviceFacts, key: &str) -> Result<String> {
        let Parameters::Gridding(gridding) = &self.spec.parameters else { return Ok(key.to_owned()) };
        let Some(form) = GridForm::new(facts, gridding, self.scan.roi, self.spec.bound.accuracy)? else {
            return Ok(key.to_owned());
        };
        let filter = generate_filter(self.spec, self.padding, self.rows)?;
        let [rows, columns] = form.line_programs(self.spec)?;
        Ok(PartsDigest::of([key, &filter.key, &rows.key, &columns.key]).to_string())
    }

    /// Runs the kernel on noise and compares it with the known answer.
    ///
    /// # Errors
    /// Errors of the device; a wrong result is none.
    pub fn run(&self, session: &Session) -> Result<Checked> {
        let KernelTest { spec, rows, padding, .. } = *self;
        let mut reference = Reference::new(self.geometry(), spec.slices as usize).padded(padding);
        let rows = rows.for_bins(reference.geometry().bins);
        let mut checker = Checker::new(session, &reference)?;
        let prepared = checker.prepare(session, spec, rows, padding, &reference, None)?;
        let error = checker.error(session, spec, &prepared, &mut reference)?;
        Ok(Checked::new(error, spec))
    }
}

/// Error of a kernel, and the margin that it must keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    pub error: f64,
    pub margin: f64,
}

impl Checked {
    pub(crate) fn new(error: f64, spec: &KernelSpec) -> Self {
        Checked { error, margin: margin(spec).relative_rms }
    }

    /// Reports whether the kernel is right.
    pub fn right(&self) -> bool {
        self.error <= self.margin
    }
}

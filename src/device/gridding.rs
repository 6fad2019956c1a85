//! Back projection by gridding: frequencies are spread over a grid, whose rows and columns are transformed.

use super::{Resources, Session, SinogramStore, sinogram_bytes};
use crate::error::{Error, Result, messages};
use crate::facts::DeviceFacts;
use crate::fault;
use crate::geometry::{FrequencyGrid, Geometry, GridSides, Offset, Roi, Segment, SplitTile, Tile, Tiling};
use crate::kernel::{Bound, GridItems, GridLines, Gridding, ImageGroups, KernelSource, KernelSpec, Parameters};
use crate::spectrum::{stored_frequencies, turns};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::f64::consts::PI;
use std::ops::Range;

messages! {
    /// Why a region cannot be reconstructed by gridding.
    enum RegionError: Usage {
        NoGrid { width: usize, height: usize, accuracy: f64, largest: usize } =>
            "--interpolation exact: no grid for a region of {width} x {height} pixels within {accuracy:e}, for squares \
             up to {largest} pixels";
            "choose a smaller --size or --roi, a larger --accuracy, or --interpolation linear",
    }
}

messages! {
    /// Why a device or a scan is not one for gridding.
    enum GriddingError: Device {
        LineTooLong { device: String } =>
            "{device}: a line of the grid does not fit into local memory"; "choose --interpolation linear",
        TooManyFrequencies =>
            "the projections have more frequencies than a kernel can number"; "choose --interpolation linear",
    }
}

/// Number of columns that a work-item stores together, see `lines_vector.cl`.
const STORED: usize = 16;

/// Largest number of parts of the tiles that are divided.
const MOST_PARTS: usize = 4096;

/// The frequency grid for a region within a kernel's error bound, and how its lines are transformed on a device.
#[derive(Clone, Debug)]
pub struct GridForm {
    pub grid: FrequencyGrid,
    lines: GridLines,
    tiling: Tiling,
    /// Height of the region in pixels.
    height: usize,
    /// Number of work-items that transform lines in memory of their own.
    workers: usize,
}

impl GridForm {
    /// Returns the grid for a region; `None` where lines do not fit into the local memory of the device and the kernel
    /// keeps them there.
    ///
    /// # Errors
    /// [`Error::Usage`] for a region that is too large, or a bound that is too small.
    pub fn new(facts: &DeviceFacts, gridding: &Gridding, roi: Roi, accuracy: f64) -> Result<Option<GridForm>> {
        let sides = grid_sides(gridding.items);
        let grid = FrequencyGrid::new(roi, accuracy, sides);
        let grid = grid.ok_or_else(|| {
            let largest = FrequencyGrid::largest_square(accuracy, sides);
            RegionError::NoGrid { width: roi.width, height: roi.height, accuracy, largest }
        })?;
        let lines = GridLines::new(facts, gridding, grid.lengths);
        let workers = facts.compute_units.max(1) as usize;
        let parts = if gridding.items == GridItems::Cells { MOST_PARTS } else { 0 };
        let tiling = Tiling { side: gridding.tile as usize, samples: gridding.samples() as usize, parts };
        Ok(lines.map(|lines| GridForm { grid, lines, tiling, height: roi.height, workers }))
    }

    /// Generates the sources of the kernels that transform rows and columns, for the kernel that spreads.
    ///
    /// # Errors
    /// An error for a define that is already set.
    pub fn line_programs(&self, spec: &KernelSpec) -> Result<[KernelSource; 2]> {
        Ok([self.lines.generate(spec, 0)?, self.lines.generate(spec, 1)?])
    }

    /// Returns the number of complex values in the grids of `slices` slices, including the memory in which lines are
    /// transformed.
    pub fn values(&self, slices: usize) -> usize {
        let scratch = match self.lines {
            GridLines::Local { .. } => MOST_PARTS * self.tiling.side * self.tiling.side,
            GridLines::Cached { lengths } => {
                let line = lengths[0].max(lengths[1]);
                self.workers * (2 * line + STORED / 2 * self.height)
            }
        };
        slices * (self.cells() + scratch)
    }

    /// Returns the number of rows of the grid of a slice.
    fn rows(&self) -> usize {
        self.grid.rows(self.tiling.side)
    }

    fn cells(&self) -> usize {
        self.grid.lengths[0] * self.rows()
    }

    /// Returns an estimate of the bytes of the tables for a part of a scan.
    pub fn table_bytes(&self, geometry: &Geometry) -> u64 {
        let tile = self.tiling.side;
        // a line crosses this many tiles and their surroundings, whatever its angle
        let [width, height] = self.grid.lengths.map(|cells| cells as f64 / tile as f64);
        let reached = 1.0 + f64::from(self.grid.width()) / tile as f64;
        let segments = geometry.projections() as f64 * (1.3 * reached * width.max(height) + 8.0);
        let (segments, tiles) = (segments / 2.0 + 8.0 * width, width * (height / 2.0 + 1.0));
        (segments * size_of::<Segment>() as f64 + tiles * size_of::<Tile>() as f64) as u64
    }
}

/// Returns the side lengths of grids that a kernel can transform.
pub fn grid_sides(items: GridItems) -> GridSides {
    match items {
        GridItems::Cells => GridSides::PowersOfTwo,
        GridItems::Tiles => GridSides::Thirds,
    }
}

/// Returns the number of complex values of the largest grid for any of `regions`; 0 for kernels that need none.
///
/// # Errors
/// Those of [`GridForm::new`].
pub fn grid_values(facts: &DeviceFacts, spec: &KernelSpec, regions: impl Iterator<Item = Roi>) -> Result<usize> {
    let Parameters::Gridding(gridding) = &spec.parameters else { return Ok(0) };
    let mut most = 0;
    for region in regions {
        if let Some(form) = GridForm::new(facts, gridding, region, spec.bound.accuracy)? {
            most = most.max(form.values(spec.slices as usize));
        }
    }
    Ok(most)
}

/// Kernels and tables of gridding for a part of a scan and a band of the region.
pub struct GridProjector {
    spread: Kernel,
    rows: Kernel,
    columns: Kernel,
    pub(super) resources: Resources,
    /// Shift of the rows of every projection before their frequencies are spread.
    pub(super) phases: Buffer<Offset>,
    form: GridForm,
    tiles: Buffer<Tile>,
    /// The kernel that adds the parts of divided tiles, the table of these tiles and their number.
    split: Option<(Kernel, Buffer<SplitTile>, usize)>,
    segments: Buffer<Segment>,
    steps: Buffer<[f32; 2]>,
    empty: Buffer<[i32; 2]>,
    coefficients: Buffer<f32>,
    corrections: [Buffer<f32>; 2],
    turns: [Buffer<[f32; 2]>; 2],
    /// Number of tiles.
    count: usize,
    items: [usize; 2],
    region: [usize; 2],
    slices: usize,
    sinogram_bytes: usize,
    /// Number of complex values in the spectra of a slice.
    plane: usize,
    /// Number of complex values in the spectrum of a row.
    stride: usize,
    unit: f32,
}

impl GridProjector {
    /// Builds the kernels for a range of projections of a scan; the spectra on the device are then those of this range
    /// alone.
    pub fn new(session: &Session, spec: &KernelSpec, scan: &Geometry, projections: Range<usize>) -> Result<Self> {
        let Parameters::Gridding(gridding) = &spec.parameters else {
            return Err(Error::Internal(format!("kernel {} is none of gridding", spec.name())));
        };
        let accuracy = spec.bound.accuracy;
        let Some(form) = GridForm::new(&session.facts, gridding, scan.roi, accuracy)? else {
            return Err(GriddingError::LineTooLong { device: session.device_name().to_owned() }.into());
        };
        let grid = form.grid;
        let spec = &spec.bounded(Bound { accuracy, width: grid.width() });
        let source = spec.generate()?;
        let spread = session.build(&source)?;
        let [rows, columns] = form.line_programs(spec)?;
        let (row_program, column_program) = (session.build(&rows)?, session.build(&columns)?);

        let mut geometry = scan.part(projections);
        let shift = fault::shift(&source.name);
        geometry.axis.iter_mut().for_each(|axis| *axis += shift);
        let spreading = geometry.spreading(&grid, form.tiling);
        let Some(spreading) = spreading.filter(|spreading| !spreading.segments.is_empty()) else {
            return Err(GriddingError::TooManyFrequencies.into());
        };
        let phases = geometry.phases();
        let region = [scan.roi.width, scan.roi.height];
        let [of_x, of_y] = [0, 1].map(|axis| grid.corrections(axis, region[axis]));
        let [along_x, along_y] = grid.lengths.map(turns);
        let bytes = sinogram_bytes(spec.texel, geometry.bins, geometry.projections(), spec.element_bytes());
        let kernel = session.kernel(&spread, source.entry)?;
        let split = match spreading.split.len() {
            0 => None,
            count => {
                let tiles = session.constant_buffer(&spreading.split, "tiles in parts")?;
                Some((session.kernel(&spread, "add_parts")?, tiles, count))
            }
        };
        Ok(GridProjector {
            resources: session.resources(&spread, &kernel),
            spread: kernel,
            rows: session.kernel(&row_program, rows.entry)?,
            columns: session.kernel(&column_program, columns.entry)?,
            split,
            tiles: session.constant_buffer(&spreading.tiles, "tiles of the grid")?,
            segments: session.constant_buffer(&spreading.segments, "segments of projections")?,
            steps: session.constant_buffer(&spreading.steps, "steps of projections")?,
            empty: session.constant_buffer(&spreading.empty, "empty cells")?,
            coefficients: session.constant_buffer(
                &grid.kernels.map(|kernel| kernel.polynomials()).concat(),
                "the kernel's polynomials",
            )?,
            corrections: [
                session.constant_buffer(&of_x, "corrections along x")?,
                session.constant_buffer(&of_y, "corrections along y")?,
            ],
            turns: [
                session.constant_buffer(&along_x, "the transform's factors")?,
                session.constant_buffer(&along_y, "the transform's factors")?,
            ],
            phases: session.constant_buffer(&phases, "phases of projections")?,
            count: spreading.tiles.len(),
            items: source.work_group,
            region,
            slices: spec.slices as usize,
            plane: bytes / 8 / spec.slices as usize,
            stride: stored_frequencies(geometry.bins),
            sinogram_bytes: bytes,
            unit: (PI / scan.projections() as f64) as f32,
            form,
        })
    }

    /// Spreads one compound spectrum and transforms it into the `valid` slices that start at value `first` of `slices`.
    pub fn run(
        &self,
        session: &Session,
        sinogram: &SinogramStore,
        slices: &Buffer<f32>,
        first: usize,
        valid: usize,
    ) -> Result<Vec<Event>> {
        let Some(memory) = &sinogram.grids else {
            return Err(Error::Internal("there is no memory for grids".into()));
        };
        if valid > self.slices {
            return Err(Error::Internal(format!("{valid} slices are more than a pass of {}", self.slices)));
        }
        let grids = &memory.grids;
        let (cells_x, cells_y) = (self.form.grid.lengths[0], self.form.rows());
        let (behind, values) = (self.behind(), self.form.values(self.slices));
        let spread = session
            .launch(&self.spread, "backproject")
            .buffer(&sinogram.buffer, self.sinogram_bytes, "the compound sinogram")?
            .buffer(&self.tiles, self.count, "tiles of the grid")?
            .handle(&self.segments)?
            .handle(&self.steps)?
            .handle(&self.coefficients)?
            .buffer(grids, values, "grids")?
            .value(self.plane as u64)?
            .value(self.stride as i32)?
            .value(behind)?
            .value(cells_x as i32)?
            .value(cells_y as i32)?;
        let [items_x, items_y] = self.items;
        // tiles are within the grid, and segments within the spectra
        let mut events = vec![spread.run(&[self.count * items_x, items_y], Some(&self.items))?];
        if let Some((add, tiles, count)) = &self.split {
            let launch = session
                .launch(add, "add_parts")
                .buffer(tiles, *count, "tiles in parts")?
                .buffer(grids, values, "grids")?
                .value(behind)?
                .value(cells_x as i32)?
                .value(cells_y as i32)?;
            // there are no more parts than there is memory for behind the grids
            events.push(launch.run(&[count * items_x, items_y], Some(&self.items))?);
        }
        match self.form.lines {
            GridLines::Local { groups, .. } => self.rows_in_local_memory(session, groups, grids, &mut events)?,
            GridLines::Cached { .. } => self.rows_in_cache(session, grids, &mut events)?,
        }
        events.push(self.slices_of(session, grids, slices, first, valid)?);
        Ok(events)
    }

    /// Returns the index of the first complex value behind the grids.
    fn behind(&self) -> u64 {
        (self.form.cells() * self.slices) as u64
    }

    /// Returns the number of grid rows that are transformed.
    fn used_rows(&self) -> usize {
        self.form.grid.lengths[1] / 2 + 1
    }

    fn rows_in_local_memory(
        &self,
        session: &Session,
        groups: ImageGroups,
        grids: &Buffer<[f32; 2]>,
        events: &mut Vec<Event>,
    ) -> Result<()> {
        let items = ImageGroups::items(self.form.grid.lengths[0]);
        let launch = session
            .launch(&self.rows, "transform_grid_rows")
            .buffer(grids, self.form.values(self.slices), "grids")?
            .handle(&self.empty)?
            .handle(&self.turns[0])?
            .value(self.form.rows() as i32)?
            .value(self.used_rows() as i32)?
            .value(self.region[0] as i32)?;
        let global = [items, self.used_rows().next_multiple_of(groups.rows), self.slices];
        events.push(launch.run(&global, Some(&[items, groups.rows, 1]))?);
        Ok(())
    }

    fn rows_in_cache(&self, session: &Session, grids: &Buffer<[f32; 2]>, events: &mut Vec<Event>) -> Result<()> {
        let launch = session
            .launch(&self.rows, "transform_grid_rows")
            .buffer(grids, self.form.values(self.slices), "grids")?
            .handle(&self.empty)?
            .handle(&self.turns[0])?
            .value(self.behind())?
            .value(self.used_rows() as i32)?
            .value(self.region[0] as i32)?;
        // each of these items has memory behind the grids
        events.push(launch.run(&[self.form.workers, 1], Some(&[1, 1]))?);
        Ok(())
    }

    /// Transforms the columns of the grids and stores the slices.
    fn slices_of(
        &self,
        session: &Session,
        grids: &Buffer<[f32; 2]>,
        slices: &Buffer<f32>,
        first: usize,
        valid: usize,
    ) -> Result<Event> {
        let [width, height] = self.region;
        let launch = session
            .launch(&self.columns, "transform_grid_columns")
            .buffer(grids, self.form.values(self.slices), "grids")?
            .handle(&self.corrections[0])?
            .handle(&self.corrections[1])?
            .handle(&self.turns[1])?
            .buffer(slices, first + valid * width * height, "slices")?;
        let launch = match self.form.lines {
            GridLines::Local { .. } => launch,
            GridLines::Cached { .. } => launch.value(self.behind())?,
        };
        let launch = launch.value(first as u64)?.value(self.form.grid.lengths[0] as i32)?;
        let launch = match self.form.lines {
            GridLines::Local { .. } => launch.value(self.form.rows() as i32)?,
            GridLines::Cached { .. } => launch,
        };
        let launch = launch.value(width as i32)?.value(height as i32)?.value(valid as i32)?.value(self.unit)?;
        let (global, local) = match self.form.lines {
            GridLines::Local { columns, .. } => {
                let items = ImageGroups::items(self.form.grid.lengths[1]);
                let global = vec![width.div_ceil(2).next_multiple_of(columns), items, self.slices];
                (global, vec![columns, items, 1])
            }
            GridLines::Cached { .. } => (vec![self.form.workers, 1], vec![1, 1]),
        };
        launch.run(&global, Some(&local))
    }
}

//! Back projection of filtered rows of a scan whose rotation axis is inclined to the beam.

use super::program_target::ProgramTarget;
use crate::device::{BufferLayout, Resources, Session};
use crate::error::{Error, Result};
use crate::fault;
use crate::geometry::{Geometry, Lamino, LaminoTables, Offset, SliceGroups};
use crate::kernel::{
    COMMON, ClFile, Defines, GUARD, KernelSource, LaunchShape, StepTarget, assemble, cl_file, power_of_two_group,
};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

const BACKPROJECT_LAMINO: ClFile = cl_file!("backproject_lamino.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, BACKPROJECT_LAMINO]];

/// Number of work-items of a work-group, where the device has as many, and of those in a row.
const GROUP: [usize; 2] = [128, 16];
/// Largest number of bytes of local memory of a work-group, so that several are resident.
const MOST_MEMORY: usize = 8 << 10;
/// Parts of a row in which the kernel has distances between rows.
const ROW_PARTS: f64 = (1 << 24) as f64;
/// Largest number of rows that see the slices of a work-item, by the range of those distances.
const MOST_ROWS: f64 = 200.0;

/// How the kernel divides pixels and slices among work-items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaminoForm {
    /// Number of work-items of a work-group in x and in y.
    pub group: [usize; 2],
    /// Number of slices of a work-item.
    pub depth: usize,
    /// Distance between the rows that see neighbouring slices, in 2^-24 of a row; 0 for work-items of one slice.
    spacing: u32,
    /// Number of rows that see the slices of a work-item.
    item_rows: usize,
    /// Number of bins and rows that see the pixels of a work-group.
    patch: [usize; 2],
}

impl LaminoForm {
    /// Returns the form for a device and the slices of a run: as many slices of a work-item as the profile says, or
    /// fewer where they are far apart.
    pub fn new(target: StepTarget, lamino: &Lamino) -> Self {
        let items = power_of_two_group(target.facts, GROUP[0]);
        let group = [items.min(GROUP[1]), items / items.min(GROUP[1])];
        let memory = (target.facts.local_memory as usize / 2).min(MOST_MEMORY);
        let of_depth = |depth| LaminoForm::with_depth(depth, group, lamino);
        let fits = |form: &LaminoForm| {
            let [bins, rows] = form.patch;
            4 * bins * rows <= memory && form.depth as f64 * lamino.spacing() <= MOST_ROWS
        };
        let fewer = std::iter::successors(Some(target.sizes.lamino_slices as usize), |depth| Some(depth / 2));
        fewer.take_while(|&depth| depth > 1).map(of_depth).find(fits).unwrap_or_else(|| of_depth(1))
    }

    fn with_depth(depth: usize, group: [usize; 2], lamino: &Lamino) -> Self {
        let spacing = if depth > 1 { (lamino.spacing() * ROW_PARTS).round() as u32 } else { 0 };
        // as the kernel's WHOLE; a pixel is up to one row below, and needs the next one, too
        let item_rows = (((depth as u64 - 1) * u64::from(spacing)) >> 24) as usize + 3;
        let [width, height] = group.map(|side| (side - 1) as f64);
        let diagonal = width.hypot(height);
        let rows = (diagonal * lamino.cos_sin().1.abs()).ceil() as usize + 1 + item_rows;
        LaminoForm { group, depth, spacing, item_rows, patch: [diagonal.ceil() as usize + 3, rows] }
    }
}

/// Returns the source of the kernel.
///
/// # Errors
/// None: its defines are legal.
pub fn generate_lamino(form: LaminoForm) -> Result<KernelSource> {
    let LaminoForm { group, depth, spacing, item_rows, patch } = form;
    let shape = group.map(|side| side as u32);
    let mut defines = Defines::default();
    defines.number("DEPTH", depth as u32)?;
    defines.number("GUARD", GUARD as u32)?;
    defines.number("ITEM_ROWS", item_rows as u32)?;
    defines.number("PATCH_BINS", patch[0] as u32)?;
    defines.number("PATCH_ROWS", patch[1] as u32)?;
    defines.number("SPACING", spacing)?;
    defines.number("WORK_X", shape[0])?;
    defines.number("WORK_Y", shape[1])?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    let shape = LaunchShape { work_group: shape, block: shape };
    Ok(assemble("lamino".to_owned(), &defines, FILES[0], options, "backproject_lamino", shape))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    let lamino = Lamino::new(30.0, 300, &Geometry::half_turn(300, 1, 300), &[0, 1]);
    Ok(vec![generate_lamino(LaminoForm::new(on.target, &lamino))?])
}

/// The kernel that back-projects rows about an inclined axis, with its tables.
pub struct LaminoProjector {
    kernel: Kernel,
    pub source: KernelSource,
    pub resources: Resources,
    columns: Buffer<[f32; 4]>,
    lines: Buffer<[f32; 4]>,
    steps: Buffer<[f32; 4]>,
    heights: Buffer<Offset>,
    places: Buffer<i32>,
    lamino: Lamino,
    form: LaminoForm,
    geometry: Geometry,
    /// For each group of the slices that were chosen, how many of these there are up to its end.
    ends: Vec<usize>,
    /// Number of slices of a chunk.
    chunk: usize,
}

/// Filtered rows `[row][projection][guard, bin, guard]` on a device.
pub struct LaminoRows<'a> {
    pub values: &'a Buffer<f32>,
    /// Rows of the detector.
    pub rows: Range<usize>,
    /// Projections of the scan.
    pub projections: Range<usize>,
}

/// Groups of the slices that were chosen, and the places of their slices among all that were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenGroups {
    groups: Range<usize>,
    pub slices: Range<usize>,
}

impl LaminoProjector {
    /// Builds the kernel for chunks of at most `chunk` slices.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(session: &Session, geometry: &Geometry, lamino: Lamino, chunk: usize) -> Result<Self> {
        let form = LaminoForm::new(session.step_target(), &lamino);
        let source = generate_lamino(form)?;
        let program = session.build(&source)?;
        let shift = fault::shift(&source.name);
        let mut geometry = geometry.clone();
        geometry.axis.iter_mut().for_each(|axis| *axis += shift);
        let layout = Self::layout(form, &geometry, chunk);
        let LaminoTables { columns, lines, steps } = lamino.tables(&geometry, source.block);
        let kernel = session.kernel(&program, source.entry)?;
        Ok(LaminoProjector {
            resources: session.resources(&program, &kernel),
            kernel,
            columns: layout.constant(session, "block columns", &columns)?,
            lines: layout.constant(session, "block lines", &lines)?,
            steps: layout.constant(session, "steps from pixel to pixel", &steps)?,
            heights: layout.buffer(session, "heights of groups of slices")?,
            places: layout.buffer(session, "places of slices")?,
            source,
            lamino,
            form,
            geometry,
            ends: Vec::new(),
            chunk,
        })
    }

    /// Returns the buffers for chunks of at most `chunk` slices, which may all be of different groups.
    pub fn layout(form: LaminoForm, geometry: &Geometry, chunk: usize) -> BufferLayout {
        let (_, [columns, lines]) = geometry.roi.block_grid(form.group);
        let projections = geometry.projections();
        BufferLayout::default()
            .with::<[f32; 4]>("block columns", columns * projections)
            .with::<[f32; 4]>("block lines", lines * projections)
            .with::<[f32; 4]>("steps from pixel to pixel", projections)
            .with::<Offset>("heights of groups of slices", chunk)
            .with::<i32>("places of slices", chunk * form.depth)
    }

    /// Chooses the slices, by number and in ascending order, that are computed next.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn choose(&mut self, session: &Session, slices: &[usize]) -> Result<()> {
        let SliceGroups { heights, places } = self.lamino.groups(slices, self.form.depth);
        session.write(&mut self.heights, &heights, "heights of groups of slices")?;
        session.write(&mut self.places, &places, "places of slices")?;
        let end = |places: &[i32]| places.iter().max().map_or(0, |last| (last + 1).max(0) as usize);
        self.ends = places.chunks(self.form.depth).map(end).collect();
        Ok(())
    }

    /// Divides the groups of the slices that were chosen into at most `most` parts, with the places of their slices.
    pub fn parts(&self, most: usize) -> Vec<ChosenGroups> {
        let count = self.ends.len();
        let before = |group: usize| if group == 0 { 0 } else { self.ends[group - 1] };
        let part = |first: usize, end: usize| ChosenGroups { groups: first..end, slices: before(first)..before(end) };
        let at_once = count.div_ceil(most.max(1)).max(1);
        (0..count).step_by(at_once).map(|first| part(first, (first + at_once).min(count))).collect()
    }

    /// Adds the back projection of some projections to slices that were chosen, of which the first is at the beginning of
    /// `slices`; the first projection overwrites what is there. Does not wait for the kernel.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] if a buffer is too small for what the kernel reads or writes.
    pub fn run(
        &self,
        session: &Session,
        rows: &LaminoRows,
        slices: &Buffer<f32>,
        chosen: &ChosenGroups,
    ) -> Result<Event> {
        let LaminoProjector { geometry, source, ends, form, .. } = self;
        let LaminoRows { values, rows, projections } = rows;
        let ChosenGroups { groups, slices: which } = chosen;
        let (all, roi) = (geometry.projections(), geometry.roi);
        let known = groups.start < groups.end && groups.end <= ends.len() && which.end <= self.chunk;
        if !known || projections.end > all {
            return Err(Error::Internal(format!("{chosen:?}, projections {projections:?} of {all}")));
        }
        let (origin, [columns, lines]) = roi.block_grid(source.block);
        let needed = rows.len() * projections.len() * (geometry.bins + 2 * GUARD);
        let launch = session
            .launch(&self.kernel, source.entry)
            .buffer(values, needed, "filtered rows")?
            .buffer(&self.columns, columns * all, "block columns")?
            .buffer(&self.lines, lines * all, "block lines")?
            .buffer(&self.steps, all, "steps from pixel to pixel")?
            .buffer(&self.heights, groups.end, "heights of groups of slices")?
            .buffer(&self.places, groups.end * form.depth, "places of slices")?
            .buffer(slices, which.end * roi.pixels(), "slices")?
            .value(all as i32)?
            .value(projections.start as i32)?
            .value(projections.len() as i32)?
            .value(geometry.bins as i32)?
            .value([rows.start as i32, rows.len() as i32])?
            .value([roi.x, roi.y, roi.width, roi.height].map(|side| side as i32))?
            .value(origin.map(|first| first as i32))?
            .value(i32::from(projections.start > 0))?
            .value(groups.start as i32)?;
        let [across, down] = source.work_group;
        launch.run(&[columns * across, lines * down, groups.len()], Some(&[across, down, 1]))
    }
}

//! Sorting of the columns of sinograms in ascending order, and the way back.

use super::files::{FLOAT_ORDER, SINOGRAMS};
use super::program_target::ProgramTarget;
use super::sinograms::{SinogramBatch, SinogramShape};
use crate::device::{BufferLayout, Queue, Session};
use crate::error::{Error, Result};
use crate::kernel::{
    COMMON, ClFile, Defines, KernelSource, LaunchShape, StepTarget, assemble, cl_file, power_of_two, power_of_two_group,
};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

const COLUMNS: ClFile = cl_file!("columns.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, SINOGRAMS, FLOAT_ORDER, COLUMNS]];

/// Number of values that an item sorts.
const POINTS_OF_AN_ITEM: usize = 8;

/// The division of columns of some length among work-groups that sort them on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSort {
    /// Number of values that are sorted in local memory: a complete column, or a tile of it.
    pub points: usize,
    /// Number of columns of a work-group.
    pub columns: usize,
    /// Work-group sizes of the kernels that transpose; the first is the side of a tile.
    pub tile: [usize; 2],
    /// Work-group size of the other kernels.
    pub group: usize,
    /// Bytes of the number of a projection.
    pub index_bytes: usize,
}

impl ColumnSort {
    /// Returns the division for columns of `length` values on a device.
    pub fn new(target: StepTarget, length: usize) -> Self {
        let StepTarget { facts, sizes } = target;
        let whole = length.next_power_of_two().clamp(POINTS_OF_AN_ITEM, sizes.sort_values as usize);
        let mut points = POINTS_OF_AN_ITEM * power_of_two_group(facts, whole / POINTS_OF_AN_ITEM);
        while points > POINTS_OF_AN_ITEM && Self::bytes(points) > facts.local_memory as usize {
            points /= 2;
        }
        let least_points = POINTS_OF_AN_ITEM * power_of_two_group(facts, sizes.sort_items as usize);
        let columns = power_of_two((least_points / points).min(facts.local_memory as usize / Self::bytes(points)));
        let side = power_of_two_group(facts, 32);
        ColumnSort {
            points,
            columns,
            tile: [side, power_of_two_group(facts, 8 * side) / side],
            group: target.row_group(),
            index_bytes: Self::index_bytes(length),
        }
    }

    /// Returns the bytes of the number of a projection among `length` ones.
    pub fn index_bytes(length: usize) -> usize {
        if length <= 1 << 16 { 2 } else { 4 }
    }

    /// Returns the number of work-items of a work-group that sorts.
    pub fn items(&self) -> usize {
        self.points / POINTS_OF_AN_ITEM * self.columns
    }

    /// Returns the bytes of local memory for `points` values, with a gap after every sixteen.
    fn bytes(points: usize) -> usize {
        8 * (points + points / 16)
    }
}

/// Returns the source of the kernels that sort columns.
fn generate_columns(sort: ColumnSort) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("POINTS", sort.points as u32)?;
    defines.number("COLUMNS", sort.columns as u32)?;
    defines.word("INDEX", if sort.index_bytes == 2 { "ushort" } else { "uint" })?;
    defines.number("TILE", sort.tile[0] as u32)?;
    defines.number("TILE_ROWS", sort.tile[1] as u32)?;
    defines.number("GROUP", sort.group as u32)?;
    let (name, options) = (format!("columns-{}", sort.points), vec!["-cl-std=CL1.1".to_owned()]);
    Ok(assemble(name, &defines, FILES[0], options, "sort_columns", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    [300, 2048, 70_000].map(|length| generate_columns(ColumnSort::new(on.target, length))).into_iter().collect()
}

/// Largest number of work-items along bins where a kernel goes through the bins in steps.
const BIN_ITEMS: usize = 1 << 15;

/// Name of the ranks of values in layouts and messages.
const RANKS: &str = "ranks in columns";

/// Correction of a column: by a positive factor and a summand, each as two floats, or by values in ascending order.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnCorrection {
    factor: [f32; 2],
    summand: [f32; 2],
}

impl ColumnCorrection {
    /// Replaces the values of a column by the smooth values of the same ranks.
    pub const REPLACED: ColumnCorrection = ColumnCorrection { factor: [-1.0, 0.0], summand: [0.0; 2] };

    /// Returns the correction that multiplies by `factor`, which is positive, and adds `summand`.
    pub fn new(factor: f64, summand: f64) -> Self {
        let parts = |value: f64| [value as f32, (value - f64::from(value as f32)) as f32];
        ColumnCorrection { factor: parts(factor), summand: parts(summand) }
    }
}

/// The kernels that sort the columns of sinograms of one size. Columns are `[slice][bin][projection]`, and ranked
/// columns `[slice][bin][rank]`, in batches that state the size of the sinograms.
pub struct ColumnOrder {
    transpose: Kernel,
    sort: Kernel,
    merge: Kernel,
    restore: Kernel,
    correct: Kernel,
    plan: ColumnSort,
    /// Ranks of the values in their columns.
    ranks: Buffer<u8>,
    /// Ranks while sorted runs are merged.
    spare: Buffer<u8>,
    corrections: Buffer<ColumnCorrection>,
    /// The last kernel that used `corrections`.
    corrected: Option<Event>,
    /// Queue for the copies of corrections.
    copies: Queue,
    shape: SinogramShape,
}

impl ColumnOrder {
    /// Builds the kernels for sinograms of this size.
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    pub fn new(session: &Session, shape: SinogramShape) -> Result<Self> {
        let (layout, plan) = Self::planned(session.step_target(), shape);
        let program = session.build(&generate_columns(plan)?)?;
        Ok(ColumnOrder {
            transpose: session.kernel(&program, "transpose")?,
            sort: session.kernel(&program, "sort_columns")?,
            merge: session.kernel(&program, "merge_runs")?,
            restore: session.kernel(&program, "restore")?,
            correct: session.kernel(&program, "correct")?,
            plan,
            ranks: layout.buffer(session, RANKS)?,
            spare: layout.buffer(session, "ranks to be merged")?,
            corrections: layout.buffer(session, "corrections of columns")?,
            corrected: None,
            copies: session.new_queue()?,
            shape,
        })
    }

    /// Returns the buffers for sinograms of this size.
    pub fn layout(target: StepTarget, shape: SinogramShape) -> BufferLayout {
        Self::planned(target, shape).0
    }

    /// Returns the buffers, and the plan by which columns are sorted.
    fn planned(target: StepTarget, shape: SinogramShape) -> (BufferLayout, ColumnSort) {
        let SinogramShape { slices, projections, bins } = shape;
        let plan = ColumnSort::new(target, projections);
        let ranks = slices * projections * bins * plan.index_bytes;
        let layout = BufferLayout::default()
            .with::<u8>(RANKS, ranks)
            .with::<u8>("ranks to be merged", if projections > plan.points { ranks } else { 0 })
            .with::<ColumnCorrection>("corrections of columns", slices * bins);
        (layout, plan)
    }

    /// Transposes sinograms to columns. Values that are not finite become 0.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn to_columns(&self, session: &Session, sinograms: &SinogramBatch, columns: &SinogramBatch) -> Result<()> {
        self.expect(session, sinograms, columns)?;
        let SinogramShape { projections, bins, .. } = self.shape;
        let launch = session
            .launch(&self.transpose, "transpose")
            .sinograms(sinograms)?
            .sinograms(columns)?
            .value(sinograms.first as u64)?
            .value(columns.first as u64)?
            .value(projections as i32)?
            .value(bins as i32)?;
        let (global, local) = self.tiles(bins, projections, sinograms.slices);
        launch.run(&global, Some(&local)).map(drop)
    }

    /// Sorts `columns` in ascending order to `ranked`, which may be the same batch; equal values keep their order.
    /// `spare` is overwritten where columns do not fit into the local memory of the device.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn sort(
        &mut self,
        session: &Session,
        columns: &SinogramBatch,
        ranked: &SinogramBatch,
        spare: &SinogramBatch,
    ) -> Result<()> {
        self.expect(session, columns, ranked)?;
        self.expect(session, columns, spare)?;
        let tiles = self.shape.projections.div_ceil(self.plan.points);
        let merges = tiles.next_power_of_two().ilog2();
        let ranks = self.ranks_len(columns.slices);
        // from one to the other with every merge, so that the last ends in `ranked`
        let mut ends = [(ranked, &self.ranks), (spare, &self.spare)];
        if merges % 2 == 1 {
            ends.swap(0, 1);
        }
        let launch = session
            .launch(&self.sort, "sort_columns")
            .sinograms(columns)?
            .sinograms(ends[0].0)?
            .buffer(ends[0].1, ranks, RANKS)?
            .value(columns.first as u64)?
            .value(ends[0].0.first as u64)?
            .value(self.shape.bins as i32)?
            .value(self.shape.projections as i32)?;
        let items = self.plan.items();
        let global = [self.shape.bins.div_ceil(self.plan.columns) * items, tiles, columns.slices];
        // a work-group reads all of its values before it writes them
        launch.run(&global, Some(&[items, 1, 1]))?;
        for merge in 0..merges {
            let [from, to] = ends;
            let launch = session
                .launch(&self.merge, "merge_runs")
                .sinograms(from.0)?
                .sinograms(to.0)?
                .buffer(from.1, ranks, RANKS)?
                .buffer(to.1, ranks, RANKS)?
                .value(from.0.first as u64)?
                .value(to.0.first as u64)?
                .value(self.shape.bins as i32)?
                .value(self.shape.projections as i32)?
                .value((self.plan.points << merge) as i32)?;
            launch.run(&self.values(columns.slices), Some(&[self.plan.group, 1, 1]))?;
            ends = [to, from];
        }
        Ok(())
    }

    /// Restores the order of the columns that were sorted last: stores the `ranked` values in the sinograms, or adds
    /// them if `add` is true. Values that are not finite become 0.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn restore(
        &self,
        session: &Session,
        ranked: &SinogramBatch,
        sinograms: &SinogramBatch,
        add: bool,
    ) -> Result<()> {
        self.expect(session, ranked, sinograms)?;
        let launch = session
            .launch(&self.restore, "restore")
            .sinograms(ranked)?
            .buffer(&self.ranks, self.ranks_len(ranked.slices), RANKS)?
            .sinograms(sinograms)?
            .value(ranked.first as u64)?
            .value(sinograms.first as u64)?
            .value(self.shape.bins as i32)?
            .value(self.shape.projections as i32)?
            .value(i32::from(add))?;
        let (global, local) = self.tiles(self.shape.bins, self.shape.projections, ranked.slices);
        launch.run(&global, Some(&local)).map(drop)
    }

    /// Corrects columns in ascending order by `corrections`, `[slice][bin]`; `smooth` are the smooth values in
    /// ascending order.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn correct(
        &mut self,
        session: &Session,
        ranked: &SinogramBatch,
        smooth: &SinogramBatch,
        corrections: &[ColumnCorrection],
    ) -> Result<()> {
        self.expect(session, ranked, smooth)?;
        if corrections.len() != ranked.slices * self.shape.bins {
            return Err(Error::Internal(format!("{} corrections are not one a column", corrections.len())));
        }
        let used = self.corrected.as_ref();
        session.write_beside(&self.copies, &mut self.corrections, used, corrections, "corrections of columns")?;
        let launch = session
            .launch(&self.correct, "correct")
            .sinograms(ranked)?
            .sinograms(smooth)?
            .buffer(&self.corrections, corrections.len(), "corrections of columns")?
            .value(ranked.first as u64)?
            .value(smooth.first as u64)?
            .value(self.shape.bins as i32)?
            .value(self.shape.projections as i32)?;
        self.corrected = Some(launch.run(&self.values(ranked.slices), Some(&[self.plan.group, 1, 1]))?);
        Ok(())
    }

    /// Checks that both batches have the size of the sinograms and as many slices as each other.
    fn expect(&self, session: &Session, one: &SinogramBatch, other: &SinogramBatch) -> Result<()> {
        self.shape.expect(session, one)?;
        self.shape.expect(session, other)?;
        match one.slices == other.slices {
            true => Ok(()),
            false => Err(Error::Internal(format!("{} sinograms are not {}", one.slices, other.slices))),
        }
    }

    /// Returns the number of bytes of the ranks of some sinograms.
    fn ranks_len(&self, slices: usize) -> usize {
        slices * self.shape.projections * self.shape.bins * self.plan.index_bytes
    }

    /// Returns the work-items for an image in tiles, and those of a work-group.
    fn tiles(&self, width: usize, height: usize, slices: usize) -> ([usize; 3], [usize; 3]) {
        let [side, rows] = self.plan.tile;
        ([width.next_multiple_of(side), height.div_ceil(side) * rows, slices], [side, rows, 1])
    }

    /// Returns the work-items for the values of columns.
    fn values(&self, slices: usize) -> [usize; 3] {
        [self.shape.projections.next_multiple_of(self.plan.group), self.shape.bins.min(BIN_ITEMS), slices]
    }
}

//! Sums over the columns of sinograms, and corrections of single values.

use super::files::SINOGRAMS;
use super::program_target::ProgramTarget;
use super::sinograms::{DeviceValues, SinogramBatch, SinogramShape};
use crate::device::{BufferLayout, HostCopy, Queue, Session};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

const COLUMN_SUMS: ClFile = cl_file!("column_sums.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, SINOGRAMS, COLUMN_SUMS]];

/// Work-group sizes of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSumGroup {
    /// Number of items in one row.
    pub items: usize,
    /// Number of columns, and of items for each.
    pub tile: [usize; 2],
}

impl ColumnSumGroup {
    /// Returns the sizes for a device.
    pub fn new(facts: &DeviceFacts) -> Self {
        let columns = power_of_two_group(facts, 32);
        let parts = power_of_two_group(facts, 8 * columns) / columns;
        ColumnSumGroup { items: power_of_two_group(facts, 128), tile: [columns, parts] }
    }
}

/// Returns the source of the kernels; `alive` is the number of projections over which changes are measured.
fn generate_column_sums(group: ColumnSumGroup, alive: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", group.items as u32)?;
    defines.number("COLUMNS", group.tile[0] as u32)?;
    defines.number("PARTS", group.tile[1] as u32)?;
    defines.number("ALIVE", alive as u32)?;
    let (name, options) = ("column-sums".to_owned(), vec!["-cl-std=CL1.1".to_owned()]);
    Ok(assemble(name, &defines, FILES[0], options, "sum_columns", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    Ok(vec![generate_column_sums(ColumnSumGroup::new(on.target.facts), 10)?])
}

/// Largest number of work-items along projections where a kernel goes through them in steps.
const PROJECTION_ITEMS: usize = 1 << 12;
/// Largest number of work-groups where a kernel goes through values in steps.
const VALUE_GROUPS: usize = 1 << 14;

/// A bin that is interpolated from two others.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    pub slice: i32,
    pub bin: i32,
    pub left: i32,
    pub right: i32,
    /// Weight of the right bin, from 0 to 1.
    pub share: f32,
}

/// The kind of values that are summed over columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnSum {
    /// Absolute differences of the values to their running means.
    Changes,
    /// Values of the columns themselves.
    Own,
    /// Values of columns that are smoothed across bins.
    Near,
}

/// The kernels for sums over the columns of sinograms of one size.
pub struct ColumnSums {
    sum: Kernel,
    changes: Kernel,
    interpolate: Kernel,
    make_finite: Kernel,
    subtract: Kernel,
    group: ColumnSumGroup,
    /// Sums by [`ColumnSum`].
    sums: [HostSums; 3],
    /// Queue for copies that must not wait for later kernels than those that they depend on.
    copies: Queue,
    gaps: Buffer<Gap>,
    /// The last kernel that used `gaps`.
    interpolated: Option<Event>,
    shape: SinogramShape,
}

/// Sums on the device, and their copy in host memory.
struct HostSums {
    sums: Buffer<[f32; 2]>,
    copy: HostCopy,
}

impl ColumnSums {
    /// Builds the kernels; changes are measured over `alive` projections.
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    pub fn new(session: &Session, shape: SinogramShape, alive: usize) -> Result<Self> {
        let group = ColumnSumGroup::new(&session.facts);
        let program = session.build(&generate_column_sums(group, alive)?)?;
        let (layout, count) = (Self::layout(shape), shape.slices * shape.bins);
        let sums = || -> Result<_> {
            Ok(HostSums { sums: layout.buffer(session, "sums of columns")?, copy: HostCopy::new(session, 2 * count)? })
        };
        Ok(ColumnSums {
            sum: session.kernel(&program, "sum_columns")?,
            changes: session.kernel(&program, "sum_changes")?,
            interpolate: session.kernel(&program, "interpolate")?,
            make_finite: session.kernel(&program, "make_finite")?,
            subtract: session.kernel(&program, "subtract")?,
            group,
            sums: [sums()?, sums()?, sums()?],
            copies: session.new_queue()?,
            gaps: layout.buffer(session, "bins to be interpolated")?,
            interpolated: None,
            shape,
        })
    }

    /// Returns the buffers for sinograms of this size.
    pub fn layout(shape: SinogramShape) -> BufferLayout {
        let count = shape.slices * shape.bins;
        BufferLayout::default()
            .several::<[f32; 2]>(3, "sums of columns", count)
            .with::<Gap>("bins to be interpolated", count)
    }

    /// Starts to sum the values of each column from rank or projection `counted.start` to before `counted.end`, as sums
    /// of the kind `which`. `columns` are `[slice][bin][projection]`. Does not wait.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn start_values(
        &mut self,
        session: &Session,
        columns: &SinogramBatch,
        counted: &Range<usize>,
        which: ColumnSum,
    ) -> Result<()> {
        self.shape.expect(session, columns)?;
        if counted.end > columns.projections {
            return Err(Error::Internal(format!("columns have no {} values", counted.end)));
        }
        let launch = session
            .launch(&self.sum, "sum_columns")
            .sinograms(columns)?
            .buffer(&self.sums[which as usize].sums, columns.slices * self.shape.bins, "sums of columns")?
            .value(columns.first as u64)?
            .value(self.shape.bins as i32)?
            .value(columns.projections as i32)?
            .value(counted.start as i32)?
            .value(counted.end as i32)?;
        let items = self.group.items;
        let summed = launch.run(&[self.shape.bins * items, 1, columns.slices], Some(&[items, 1, 1]))?;
        self.start_copy(session, which, columns.slices, &summed)
    }

    /// Starts to sum the absolute differences of the values of each column of `sinograms` from their running means.
    /// Values that are not finite count as 0. Does not wait.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn start_changes(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.shape.expect(session, sinograms)?;
        let launch = session
            .launch(&self.changes, "sum_changes")
            .sinograms(sinograms)?
            .buffer(
                &self.sums[ColumnSum::Changes as usize].sums,
                sinograms.slices * self.shape.bins,
                "sums of columns",
            )?
            .value(sinograms.first as u64)?
            .value(self.shape.bins as i32)?
            .value(sinograms.projections as i32)?;
        let [columns, parts] = self.group.tile;
        let global = [self.shape.bins.next_multiple_of(columns), parts, sinograms.slices];
        let summed = launch.run(&global, Some(&[columns, parts, 1]))?;
        self.start_copy(session, ColumnSum::Changes, sinograms.slices, &summed)
    }

    /// Starts to copy the sums of `slices` sinograms to the host, after the kernel `summed`.
    fn start_copy(&mut self, session: &Session, which: ColumnSum, slices: usize, summed: &Event) -> Result<()> {
        let HostSums { sums, copy } = &mut self.sums[which as usize];
        copy.start(session, &self.copies, sums, slices * self.shape.bins, summed, "sums of columns")
    }

    /// Waits for the sums that were started last and returns those of `slices` sinograms, `[slice][bin]`.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] if none were started.
    pub fn wait(&mut self, session: &Session, which: ColumnSum, slices: usize) -> Result<Vec<f64>> {
        let copied = self.sums[which as usize].copy.wait(session, "sums of columns")?;
        let pairs: &[[f32; 2]] = bytemuck::cast_slice(copied);
        let Some(pairs) = pairs.get(..slices * self.shape.bins) else {
            return Err(Error::Internal(format!("no {which:?} of {slices} sinograms")));
        };
        Ok(pairs.iter().map(|[sum, rest]| f64::from(*sum) + f64::from(*rest)).collect())
    }

    /// Interpolates the bins `gaps` linearly in all projections.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small or a bin is not in the sinograms, and errors of the device.
    pub fn interpolate(&mut self, session: &Session, sinograms: &SinogramBatch, gaps: &[Gap]) -> Result<()> {
        self.shape.expect(session, sinograms)?;
        let is_bin = |bin: i32| (0..self.shape.bins as i32).contains(&bin);
        let is_there = |gap: &Gap| {
            let bins = [gap.bin, gap.left, gap.right].into_iter().all(is_bin);
            bins && gap.left < gap.right && (0..sinograms.slices as i32).contains(&gap.slice)
        };
        if !gaps.iter().all(is_there) {
            return Err(Error::Internal("a bin to be interpolated is not in the sinograms".into()));
        }
        if gaps.is_empty() {
            return Ok(());
        }
        let used = self.interpolated.as_ref();
        session.write_beside(&self.copies, &mut self.gaps, used, gaps, "bins to be interpolated")?;
        let launch = session
            .launch(&self.interpolate, "interpolate")
            .sinograms(sinograms)?
            .buffer(&self.gaps, gaps.len(), "bins to be interpolated")?
            .value(sinograms.first as u64)?
            .value(self.shape.bins as i32)?
            .value(sinograms.projections as i32)?
            .value(gaps.len() as i32)?;
        let items = self.group.items;
        let global = [gaps.len().next_multiple_of(items), sinograms.projections.min(PROJECTION_ITEMS)];
        self.interpolated = Some(launch.run(&global, Some(&[items, 1]))?);
        Ok(())
    }

    /// Replaces values that are not finite by 0.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn make_finite(&self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.shape.expect(session, sinograms)?;
        let first = sinograms.first as u64;
        let launch = session.launch(&self.make_finite, "make_finite").sinograms(sinograms)?.value(first)?;
        launch.run(&[sinograms.slices * sinograms.sinogram_len()], None).map(drop)
    }

    /// Subtracts `others`, values of the same layout at the start of another buffer, from the sinograms.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn subtract(&self, session: &Session, sinograms: &SinogramBatch, others: &DeviceValues) -> Result<()> {
        self.shape.expect(session, sinograms)?;
        let count = sinograms.slices * sinograms.sinogram_len();
        let launch = session
            .launch(&self.subtract, "subtract")
            .sinograms(sinograms)?
            .buffer(others, count, "values to be subtracted")?
            .value(sinograms.first as u64)?
            .value(count as u64)?;
        launch.run(&[self.items(count)], Some(&[self.group.items])).map(drop)
    }

    /// Returns the number of work-items for `count` values.
    fn items(&self, count: usize) -> usize {
        count.div_ceil(self.group.items).clamp(1, VALUE_GROUPS) * self.group.items
    }
}

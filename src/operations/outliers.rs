//! Removal of outliers on a device: conversion of samples as stored to counts without zingers.

use super::files::{FLOAT_ORDER, SAMPLES};
use super::program_target::ProgramTarget;
use super::samples::{DeviceSamples, PieceSize, SampleForm, sample_form};
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, StepTarget, assemble, cl_file};
use crate::source::StoredSamples;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

const REMOVE_OUTLIERS: ClFile = cl_file!("remove_outliers.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, FLOAT_ORDER, SAMPLES, REMOVE_OUTLIERS]];

/// Bytes of local memory of a work-group above which half of the memory is left to another one.
const LEAST_MEMORY: usize = 16 << 10;
/// Bytes of local memory that some devices need for a kernel's arguments.
const RESERVED: usize = 512;

/// The operation of the kernel on a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierKernel {
    pub samples: SampleForm,
    /// Number of rows and bins of a neighbourhood, an odd number.
    pub size: usize,
    /// True if dark pixels are replaced as well.
    pub both: bool,
    /// True if saturated samples are counted.
    pub saturation: bool,
    pub tile: OutlierTile,
}

/// The pixels of a work-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierTile {
    /// Number of bins, and of work-items.
    pub group: usize,
    pub rows: usize,
}

impl OutlierTile {
    /// Returns the tile for neighbourhoods of `size` x `size` pixels and up to `piece` rows at once.
    pub fn new(StepTarget { facts, sizes }: StepTarget, size: usize, piece: usize) -> Self {
        let memory = facts.local_memory as usize;
        let room = (memory / 2).max(memory.min(LEAST_MEMORY)).saturating_sub(RESERVED) / 4;
        // pixels with their surroundings, and two counts per row
        let rows_of = |group: usize| {
            let width = group + size - 1;
            room.saturating_sub(width * (size - 1)) / (width + 2)
        };
        let mut group = (sizes.outlier_items as usize).min(facts.max_work_group.max(1));
        while group > 1 && rows_of(group) == 0 {
            group /= 2;
        }
        let most = rows_of(group).clamp(1, sizes.outlier_rows as usize);
        // parts of about the same height
        OutlierTile { group, rows: piece.max(1).div_ceil(piece.max(1).div_ceil(most)) }
    }
}

/// Returns the source of the kernel that replaces outliers.
fn generate_outliers(kernel: OutlierKernel) -> Result<KernelSource> {
    let OutlierKernel { samples, size, both, saturation, tile } = kernel;
    let mut defines = Defines::default();
    samples.define(&mut defines)?;
    defines.number("SIZE", size as u32)?;
    defines.switch("BOTH", both)?;
    defines.switch("SATURATION", saturation)?;
    defines.number("GROUP", tile.group as u32)?;
    defines.number("ROWS", tile.rows as u32)?;
    let sides = [tile.group as u32, 1];
    Ok(assemble(
        format!("remove-outliers-{size}"),
        &defines,
        FILES[0],
        vec!["-cl-std=CL1.1".to_owned()],
        "remove_outliers",
        LaunchShape { work_group: sides, block: [sides[0], tile.rows as u32] },
    ))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    let program = |(size, both)| {
        let tile = OutlierTile::new(on.target, size, 16);
        generate_outliers(OutlierKernel { samples: SampleForm::COUNTS, size, both, saturation: true, tile })
    };
    [(3, false), (5, true), (15, true)].map(program).into_iter().collect()
}

/// Largest width of a neighbourhood in pixels.
const LARGEST: usize = 15;
/// Largest number of bins and rows of a detector: places up to twice as far must fit into the integers of the kernel.
const MOST_PIXELS: usize = 1 << 29;

/// Definition of an outlier: plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlierForm {
    /// Number of rows and bins of a neighbourhood: odd, 3 to 15.
    pub size: usize,
    /// Counts by which an outlier differs from the median of its neighbourhood.
    pub threshold: f32,
    /// True if dark pixels are outliers, too.
    pub both: bool,
}

/// The detector, and the form in which its rows come to the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectorRows {
    pub stored: StoredSamples,
    /// Counts from which a sample is saturated.
    pub saturation: Option<f32>,
    pub bins: usize,
    /// Number of rows of the detector.
    pub height: usize,
    pub piece: PieceSize,
}

/// Detector rows in a run of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlierRows {
    /// Rows that are read: the wanted rows and half a neighbourhood before and after them, within the detector.
    pub read: Range<usize>,
    pub wanted: Range<usize>,
    /// The wanted rows in which outliers are counted.
    pub counted: Range<usize>,
    /// Index of the first counted row among the counts.
    pub place: usize,
    pub projections: usize,
}

/// The kernel that removes outliers, with its counts on the device.
pub struct OutlierRemover {
    kernel: Kernel,
    form: OutlierForm,
    rows: DetectorRows,
    tile: OutlierTile,
    counts: Buffer<[u32; 2]>,
}

impl OutlierRemover {
    /// Builds the kernel.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for what the kernel cannot do.
    pub fn new(session: &Session, form: OutlierForm, rows: DetectorRows) -> Result<Self> {
        let DetectorRows { bins, height, piece, .. } = rows;
        if !(3..=LARGEST).contains(&form.size) || form.size % 2 == 0 {
            return Err(Error::Internal(format!("neighbourhoods of {0} x {0} pixels", form.size)));
        }
        if !(1..=MOST_PIXELS).contains(&bins) || !(1..=MOST_PIXELS).contains(&height) {
            return Err(Error::Internal(format!("a detector of {bins} x {height} pixels")));
        }
        let tile = OutlierTile::new(session.step_target(), form.size, piece.rows);
        let source = generate_outliers(OutlierKernel {
            samples: sample_form(rows.stored)?,
            size: form.size,
            both: form.both,
            saturation: rows.saturation.is_some(),
            tile,
        })?;
        let program = session.build(&source)?;
        let mut remover = OutlierRemover {
            kernel: session.kernel(&program, source.entry)?,
            form,
            rows,
            tile,
            counts: Self::layout(piece).buffer(session, "counts of outliers")?,
        };
        remover.clear(session)?;
        Ok(remover)
    }

    /// Returns the buffers for pieces of this size.
    pub fn layout(piece: PieceSize) -> BufferLayout {
        BufferLayout::default().with::<[u32; 2]>("counts of outliers", piece.counted)
    }

    /// Replaces outliers, from samples `[projection][row that was read][bin]` to values `[projection][wanted
    /// row][bin]`. Does not wait for the kernel.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn run<'a>(
        &mut self,
        session: &Session,
        samples: impl Into<DeviceSamples<'a>>,
        values: &Buffer<f32>,
        rows: &OutlierRows,
    ) -> Result<()> {
        let DeviceSamples { values: samples, copied } = samples.into();
        let DetectorRows { stored, bins, height, piece, .. } = self.rows;
        let OutlierRows { ref read, ref wanted, ref counted, place, projections } = *rows;
        let reach = self.form.size / 2;
        let fits = wanted.start <= wanted.end
            && wanted.len() <= piece.rows
            && wanted.start <= counted.start
            && counted.end <= wanted.end
            && place + counted.len() <= piece.counted
            && read.start <= wanted.start.saturating_sub(reach)
            && read.end <= height
            && read.end >= (wanted.end + reach).min(height)
            && wanted.end <= height;
        if !fits {
            return Err(Error::Internal(format!("{rows:?} of {height} do not fit the plan")));
        }
        if wanted.is_empty() || projections == 0 {
            return Ok(());
        }
        let pair = |rows: &Range<usize>| [rows.start as i32, rows.end as i32];
        let launch = session
            .launch(&self.kernel, "remove_outliers")
            .after(copied)
            .buffer(samples, projections * read.len() * bins * stored.sample.bytes(), "samples")?
            .buffer(values, projections * wanted.len() * bins, "counts without outliers")?
            .buffer(&self.counts, place + counted.len(), "counts of outliers")?
            .value(bins as i32)?
            .value(height as i32)?
            .value(pair(read))?
            .value(pair(wanted))?
            .value(pair(counted))?
            .value(place as i32)?
            .value(self.form.threshold)?
            .value(self.rows.saturation.unwrap_or(f32::INFINITY))?;
        let OutlierTile { group, rows } = self.tile;
        let global = [bins.next_multiple_of(group), projections, wanted.len().div_ceil(rows)];
        // a mirrored row lies within the neighbourhood, and so among the rows that were read
        launch.among_uploads().run(&global, Some(&[group, 1, 1])).map(drop)
    }

    /// Waits for the rows of a chunk, returns the numbers of outliers and of saturated samples in each of its `count`
    /// rows, and resets them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<Vec<[u32; 2]>> {
        let mut counts = vec![[0; 2]; count];
        session.read_uploaded(&self.counts, &mut counts, "counts of outliers")?;
        if counts.iter().flatten().any(|&count| count > 0) {
            self.clear(session)?;
        }
        Ok(counts)
    }

    fn clear(&mut self, session: &Session) -> Result<()> {
        session.upload(&mut self.counts, 0, &vec![[0; 2]; self.rows.piece.counted], "counts of outliers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{DeviceFacts, example};
    use crate::kernel::of;

    #[test]
    fn tiles_fit_the_local_memory() {
        for (local_memory, max_work_group) in [(16 << 10, 64), (16 << 10, 1), (32 << 10, 256), (48 << 10, 1024)] {
            let facts = DeviceFacts { local_memory, max_work_group, ..example() };
            for size in (3..=15).step_by(2) {
                for piece in [0, 1, 7, 33, 2048] {
                    let tile = OutlierTile::new(of(&facts), size, piece);
                    let bytes = 4 * ((tile.group + size - 1) * (tile.rows + size - 1) + 2 * tile.rows);
                    assert!(bytes as u64 <= local_memory, "{tile:?}: {bytes} bytes for {size}");
                    assert!(tile.group <= max_work_group && tile.rows <= piece.max(1), "{tile:?}");
                }
            }
        }
        let tile =
            |size, piece| OutlierTile::new(of(&DeviceFacts { local_memory: 48 << 10, ..example() }), size, piece);
        assert_eq!(tile(3, 64), OutlierTile { group: 128, rows: 32 });
        assert_eq!(tile(3, 33), OutlierTile { group: 128, rows: 17 });
        assert_eq!(tile(15, 2048), OutlierTile { group: 128, rows: 27 });
    }
}

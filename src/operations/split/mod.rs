//! Slices with a small total variation, by iterations on a device ([least-squares.md](../../../docs/least-squares.md)).

mod source;

pub(super) use source::FILES;
pub use source::SplitGroups;

use super::program_target::ProgramTarget;
use crate::device::{BufferLayout, Launch, Session};
use crate::error::{Error, Result};
use crate::geometry::Roi;
use crate::kernel::{ImageGroups, KernelSource, StepBackend};
use crate::spectrum::turns;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use source::{generate_split_images, generate_split_lines};

/// The programs for small, usual and large slices.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    let mut programs = Vec::new();
    if on.backends.solver == StepBackend::Host {
        return Ok(programs);
    }
    for groups in [64, 512, 2048].into_iter().filter_map(|side| SplitGroups::new(on.target, side)) {
        for padded in [false, true] {
            programs.push(generate_split_lines(groups, padded, false)?);
            programs.push(generate_split_lines(groups, padded, true)?);
        }
        programs.push(generate_split_images(groups)?);
    }
    Ok(programs)
}

/// What the slices of a scan share at one resolution, for images of `side x side` pixels.
pub struct SplitTables<'a> {
    /// Spectrum of the kernel that projects and back-projects, `[frequency along x][frequency along y]`, for images padded to
    /// twice the side, with the scale of the transforms: `(side + 1) x 2 side` values.
    pub response: &'a [f32],
    /// Spectrum of its circulant, `(side / 2 + 1) x side` values without a scale.
    pub symbol: &'a [f32],
    /// `2 - 2 cos` of each of the `side` frequencies.
    pub laplacian: &'a [f32],
    /// First pixel of each row in the disc, and the first behind it.
    pub disc: &'a [[i32; 2]],
}

/// What decides about the iterations of a slice, as `split_state.cl` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SliceWeights {
    /// Weight of the gradient that is split off.
    pub gradient: f32,
    /// Weight of the bounds.
    pub bounds: f32,
    /// Length that gradients lose.
    pub loss: f32,
    /// Least share of a gradient that remains.
    pub least_share: f32,
    /// Least value of the slice.
    pub lowest: f32,
    /// Least eigenvalue of the preconditioner.
    pub least_eigenvalue: f32,
    /// Factor of the sum of squared changes: its root is then relative to the contrast.
    pub of_changes: f32,
    /// Value of a pixel relative to that of the pixel of twice its size around it.
    pub of_double: f32,
}

impl SliceWeights {
    fn values(&self) -> [f32; 8] {
        let SliceWeights { gradient, bounds, loss, least_share, lowest, least_eigenvalue, of_changes, of_double } =
            *self;
        [gradient, bounds, loss, least_share, lowest, least_eigenvalue, of_changes, of_double]
    }
}

/// How far the iterations of a slice are, as `split_state.cl` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SplitProgress {
    /// Length of the last step.
    pub step: f32,
    /// Last change relative to the contrast.
    pub change: f32,
    /// Number of iterations.
    pub iterations: f32,
    /// 1 when no more are needed.
    pub ended: f32,
}

/// What the objective of a slice `v` consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SplitObjective {
    /// `v Q v`
    pub projected: f64,
    /// `v b`
    pub data: f64,
    /// Length of the gradients.
    pub penalty: f64,
}

/// When slices end by themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitEnd {
    /// Fewest iterations.
    pub fewest: usize,
    /// Change relative to the contrast; 0 for a fixed number of iterations.
    pub tolerance: f32,
}

/// Over-relaxation and the number of an iteration.
#[derive(Clone, Copy, Debug)]
pub struct SplitIteration {
    pub number: usize,
    pub relax: f32,
    /// `Q f` is computed anew.
    pub anew: bool,
}

/// Kernels and state of some slices at one resolution.
pub struct SplitImages {
    groups: SplitGroups,
    /// Largest number of slices.
    slices: usize,
    kernels: SplitKernels,
    buffers: SplitBuffers,
    /// First pixel of each row in the disc, and the first behind it.
    disc: Buffer<[i32; 2]>,
}

struct SplitKernels {
    residuals: Kernel,
    restore: Kernel,
    solve: Kernel,
    transform: Kernel,
    project: Kernel,
    restore_padded: Kernel,
    advance: Kernel,
    halve: Kernel,
    keep_disc: Kernel,
    bound: Kernel,
    clear: Kernel,
    move_split: Kernel,
    keep_multipliers: Kernel,
    double: Kernel,
    find_steps: Kernel,
    judge: Kernel,
    measure: Kernel,
    store: Kernel,
}

/// A table, or what there is of every slice.
struct SplitBuffer {
    values: Buffer<f32>,
    /// Number of values of the table, or of a slice.
    count: usize,
    is_table: bool,
    what: &'static str,
}

struct SplitBuffers {
    response: SplitBuffer,
    symbol: SplitBuffer,
    laplacian: SplitBuffer,
    turns: [SplitBuffer; 2],
    data: SplitBuffer,
    image: SplitBuffer,
    projected: SplitBuffer,
    bounded: SplitBuffer,
    /// The direction of a step; between iterations, the slice within its bounds.
    direction: SplitBuffer,
    split: SplitBuffer,
    spectra: SplitBuffer,
    of_solving: SplitBuffer,
    of_projecting: SplitBuffer,
    changes: SplitBuffer,
    of_rows: SplitBuffer,
    weights: SplitBuffer,
    quadratic: SplitBuffer,
    progress: SplitBuffer,
}

/// Returns the tables, with their numbers of values.
fn tables(groups: SplitGroups) -> [(&'static str, usize); 5] {
    let side = groups.side;
    [
        ("response of projecting", (side + 1) * 2 * side),
        ("symbol of the circulant", (side / 2 + 1) * side),
        ("Laplacian", side),
        ("factors of lines", 2 * side),
        ("factors of padded lines", 4 * side),
    ]
}

/// Returns what there is of every slice, with numbers of values.
fn states(groups: SplitGroups) -> [(&'static str, usize); 14] {
    let (side, pixels) = (groups.side, groups.side * groups.side);
    [
        ("back-projected rows", pixels),
        ("slices in work", pixels),
        ("projected slices", pixels),
        ("bounded slices", pixels),
        ("directions", pixels),
        ("split gradients", 2 * pixels),
        ("spectra of slices", 2 * pixels),
        ("sums of solving", 2 * groups.column_groups(false)),
        ("sums of projecting", 2 * groups.column_groups(true)),
        ("changes", side / 2),
        ("sums of rows", 2 * side),
        ("weights of slices", size_of::<SliceWeights>() / 4),
        ("quadratic parts", 1),
        ("progress of slices", size_of::<SplitProgress>() / 4),
    ]
}

impl SplitBuffers {
    fn new(session: &Session, layout: &BufferLayout, groups: SplitGroups, of: &SplitTables) -> Result<SplitBuffers> {
        let turns = [groups.side, 2 * groups.side].map(|length| turns(length).concat());
        let values = [of.response, of.symbol, of.laplacian, &turns[0], &turns[1]];
        let mut tables = tables(groups).into_iter().zip(values).map(|((what, count), values)| -> Result<_> {
            Ok(SplitBuffer { values: layout.constant(session, what, values)?, count, is_table: true, what })
        });
        let mut states = states(groups).into_iter().map(|(what, count)| -> Result<_> {
            Ok(SplitBuffer { values: layout.buffer(session, what)?, count, is_table: false, what })
        });
        let missing = || Error::Internal("a buffer of least squares is not listed".into());
        let mut table = || tables.next().ok_or_else(missing)?;
        let mut state = || states.next().ok_or_else(missing)?;
        // in the order of the lists
        Ok(SplitBuffers {
            response: table()?,
            symbol: table()?,
            laplacian: table()?,
            turns: [table()?, table()?],
            data: state()?,
            image: state()?,
            projected: state()?,
            bounded: state()?,
            direction: state()?,
            split: state()?,
            spectra: state()?,
            of_solving: state()?,
            of_projecting: state()?,
            changes: state()?,
            of_rows: state()?,
            weights: state()?,
            quadratic: state()?,
            progress: state()?,
        })
    }
}

/// Gives a launch the buffers of `slices` slices, in order.
fn with<'a>(launch: Launch<'a>, slices: usize, buffers: &[&SplitBuffer]) -> Result<Launch<'a>> {
    buffers.iter().try_fold(launch, |launch, of| {
        launch.buffer(&of.values, if of.is_table { of.count } else { slices * of.count }, of.what)
    })
}

impl SplitImages {
    /// Builds the kernels and allocates memory for `slices` slices.
    ///
    /// # Errors
    /// [`Error::Internal`] for tables of another side; errors of the device.
    pub fn new(session: &Session, groups: SplitGroups, slices: usize, tables: &SplitTables) -> Result<SplitImages> {
        let layout = Self::layout(groups, slices);
        Ok(SplitImages {
            kernels: SplitKernels::new(session, groups)?,
            buffers: SplitBuffers::new(session, &layout, groups, tables)?,
            disc: layout.constant(session, "disc", tables.disc)?,
            groups,
            slices,
        })
    }

    /// Returns the buffers for `slices` slices.
    pub fn layout(groups: SplitGroups, slices: usize) -> BufferLayout {
        let layout = BufferLayout::default().with::<[i32; 2]>("disc", groups.side);
        let layout = tables(groups).into_iter().fold(layout, |layout, (what, count)| layout.with::<f32>(what, count));
        states(groups).into_iter().fold(layout, |layout, (what, count)| layout.with::<f32>(what, slices * count))
    }

    /// Returns the buffer for the back-projected rows, `[slice][y][x]`.
    pub fn data(&self) -> &Buffer<f32> {
        &self.buffers.data.values
    }

    /// Returns the buffer for the slices that iterations begin with, `[slice][y][x]`.
    pub fn image(&self) -> &Buffer<f32> {
        &self.buffers.image.values
    }

    /// Stores what iterations begin with: back-projected rows and slices, `[slice][y][x]`.
    pub fn load(&mut self, session: &Session, data: &[f32], slices: &[f32]) -> Result<()> {
        session.write(&mut self.buffers.data.values, data, self.buffers.data.what)?;
        session.write(&mut self.buffers.image.values, slices, self.buffers.image.what).map(drop)
    }

    fn side(&self) -> usize {
        self.groups.side
    }

    fn expect(&self, count: usize) -> Result<()> {
        match count <= self.slices {
            true => Ok(()),
            false => Err(Error::Internal(format!("{count} slices are more than {}", self.slices))),
        }
    }

    /// Stores the means of `count` pairs of neighbouring bins; the first bin is value `first` of `rows`.
    pub fn halve(
        &self,
        session: &Session,
        rows: &Buffer<f32>,
        first: usize,
        to: &Buffer<f32>,
        count: usize,
    ) -> Result<()> {
        session
            .launch(&self.kernels.halve, "halve_rows")
            .buffer(rows, first + 2 * count, "rows")?
            .buffer(to, count, "halved rows")?
            .value(first as u64)?
            .value(count as u64)?
            .run(&[count.next_multiple_of(self.groups.pixels)], Some(&[self.groups.pixels]))
            .map(drop)
    }

    /// Sets the pixels of the slices to begin with that are outside the disc to 0. Returns the sum of values and of their squares
    /// for each slice.
    pub fn keep_disc(&self, session: &Session, count: usize) -> Result<Vec<[f64; 2]>> {
        let SplitBuffers { image, of_rows, .. } = &self.buffers;
        let launch = session.launch(&self.kernels.keep_disc, "keep_disc").buffer(&self.disc, self.side(), "disc")?;
        self.by_row(with(launch, count, &[image, of_rows])?, count)?;
        sums(session, of_rows, count)
    }

    /// Begins slices without multipliers, or with those that [`begin_doubled`](Self::begin_doubled) made. A slice whose gradients
    /// lose nothing stays as it is.
    pub fn begin(&mut self, session: &Session, weights: &[SliceWeights], multipliers: bool) -> Result<()> {
        let count = weights.len();
        self.expect(count)?;
        self.set_weights(session, weights)?;
        let ended = |of: &SliceWeights| if of.loss > 0.0 { 0.0 } else { 1.0 };
        self.set_progress(session, weights.iter().map(ended))?;
        let SplitBuffers { split, image, projected, bounded, .. } = &self.buffers;
        if !multipliers {
            let launch = session.launch(&self.kernels.clear, "clear_split");
            self.by_pixel(with(launch, count, &[split])?, self.side(), count)?;
        }
        self.project(session, image, count)?;
        self.restore(session, true, projected, count)?;
        self.bound(session, image, bounded, count)
    }

    /// Begins slices with what others at half the resolution have found.
    pub fn begin_doubled(&mut self, session: &Session, weights: &[SliceWeights], from: &SplitImages) -> Result<()> {
        let count = weights.len();
        self.expect(count)?;
        if 2 * from.side() != self.side() {
            return Err(Error::Internal(format!("images of {} from those of {}", self.side(), from.side())));
        }
        self.set_weights(session, weights)?;
        let launch = session.launch(&from.kernels.keep_multipliers, "keep_multipliers");
        from.by_pixel(with(launch, count, &[&from.buffers.split, &from.buffers.weights])?, from.side(), count)?;
        let SplitBuffers { image, split, weights: own, .. } = &self.buffers;
        // with the value of a doubled pixel, and the length that gradients lose
        for (from, to, values, weight) in [(&from.buffers.direction, image, 1, 7), (&from.buffers.split, split, 2, 2)] {
            let launch = session.launch(&self.kernels.double, "double_images");
            let launch = with(launch, count, &[from, to, own])?.value(values as i32)?.value(weight)?;
            self.by_pixel(launch, values * self.side(), count)?;
        }
        self.begin(session, weights, true)
    }

    /// Starts an iteration of the first `count` slices.
    pub fn iterate(&self, session: &Session, count: usize, of: SplitIteration, end: SplitEnd) -> Result<()> {
        let SplitBuffers { data, image, projected, bounded, direction, split, spectra, .. } = &self.buffers;
        let SplitBuffers { of_solving, of_projecting, changes, weights, progress, turns, .. } = &self.buffers;
        let kernels = &self.kernels;
        let launch =
            session.launch(&kernels.residuals, "transform_residuals").buffer(&self.disc, self.side(), "disc")?;
        let residuals = [data, image, projected, bounded, split, weights, progress, spectra, &turns[0]];
        self.by_pair(with(launch, count, &residuals)?.value(of.number as i32)?, false, count)?;
        self.by_columns(session, false, count)?;
        self.restore(session, false, direction, count)?;
        self.project(session, direction, count)?;
        let groups = [false, true].map(|padded| self.groups.column_groups(padded) as i32);
        let launch = session.launch(&kernels.find_steps, "find_steps");
        let launch = with(launch, count, &[of_solving, of_projecting, progress])?.value(groups[0])?.value(groups[1])?;
        self.by_slice(launch, count)?;
        let launch = session.launch(&kernels.advance, "advance_slices").buffer(&self.disc, self.side(), "disc")?;
        let advanced = [spectra, direction, image, projected, bounded, weights, progress, changes, &turns[1]];
        self.by_pair(with(launch, count, &advanced)?.value(of.relax)?, true, count)?;
        let launch = session.launch(&kernels.move_split, "move_split");
        let launch = with(launch, count, &[image, direction, split, weights, progress])?;
        self.by_pixel(launch.value(of.relax)?.value(of.number as i32)?, self.side(), count)?;
        if of.anew {
            self.project(session, image, count)?;
            self.restore(session, true, projected, count)?;
        }
        let launch = session.launch(&kernels.judge, "judge_changes");
        let launch = with(launch, count, &[changes, weights, progress])?.value(self.side() as i32 / 2)?;
        self.by_slice(launch.value(end.fewest as i32)?.value(end.tolerance)?, count)
    }

    /// Waits for the iterations so far and returns the progress of the first `count` slices.
    pub fn progress(&self, session: &Session, count: usize) -> Result<Vec<SplitProgress>> {
        let mut values = vec![0f32; count * self.buffers.progress.count];
        session.read(&self.buffers.progress.values, &mut values, self.buffers.progress.what)?;
        let progress = |of: &[f32]| SplitProgress { step: of[0], change: of[1], iterations: of[2], ended: of[3] };
        Ok(values.chunks_exact(self.buffers.progress.count).map(progress).collect())
    }

    /// Ends iterations: the slices are then within their bounds.
    pub fn finish(&self, session: &Session, count: usize) -> Result<()> {
        self.bound(session, &self.buffers.bounded, &self.buffers.direction, count)
    }

    /// Returns what the objectives of finished slices consist of; gradients below `quadratic` count by their square. No iterations
    /// can follow.
    pub fn objectives(&mut self, session: &Session, quadratic: &[f32]) -> Result<Vec<SplitObjective>> {
        let count = quadratic.len();
        self.expect(count)?;
        self.set_progress(session, quadratic.iter().map(|_| 0.0))?;
        session.write(&mut self.buffers.quadratic.values, quadratic, self.buffers.quadratic.what)?;
        let SplitBuffers { direction, data, quadratic, of_rows, of_projecting, .. } = &self.buffers;
        self.project(session, direction, count)?;
        let launch = session.launch(&self.kernels.measure, "measure_rows");
        self.by_row(with(launch, count, &[direction, data, quadratic, of_rows])?, count)?;
        let projected = sums(session, of_projecting, count)?;
        let both = projected.iter().zip(sums(session, of_rows, count)?);
        Ok(both
            .map(|([projected, _], [data, penalty])| SplitObjective { projected: *projected, data, penalty })
            .collect())
    }

    /// Stores a region of finished slices, in pixels of these images, as slices from value `first` of a buffer on.
    pub fn store(
        &self,
        session: &Session,
        count: usize,
        region: Roi,
        slices: &Buffer<f32>,
        first: usize,
    ) -> Result<()> {
        let Roi { x, y, width, height } = region;
        if x + width > self.side() || y + height > self.side() {
            return Err(Error::Internal(format!("{region:?} is not within images of {}", self.side())));
        }
        let launch = session.launch(&self.kernels.store, "store_region");
        with(launch, count, &[&self.buffers.direction])?
            .buffer(slices, first + count * width * height, "slices")?
            .value(first as u64)?
            .value(x as i32)?
            .value(y as i32)?
            .value(width as i32)?
            .run(&[width.next_multiple_of(self.groups.pixels), height, count], Some(&[self.groups.pixels, 1, 1]))
            .map(drop)
    }

    fn set_weights(&mut self, session: &Session, weights: &[SliceWeights]) -> Result<()> {
        let all: Vec<f32> = weights.iter().flat_map(SliceWeights::values).collect();
        session.write(&mut self.buffers.weights.values, &all, self.buffers.weights.what).map(drop)
    }

    fn set_progress(&mut self, session: &Session, ended: impl Iterator<Item = f32>) -> Result<()> {
        let all: Vec<f32> = ended.flat_map(|ended| [0.0, 0.0, 0.0, ended]).collect();
        session.write(&mut self.buffers.progress.values, &all, self.buffers.progress.what).map(drop)
    }

    fn bound(&self, session: &Session, from: &SplitBuffer, to: &SplitBuffer, count: usize) -> Result<()> {
        let launch = session.launch(&self.kernels.bound, "bound_images").buffer(&self.disc, self.side(), "disc")?;
        self.by_pixel(with(launch, count, &[from, to, &self.buffers.weights])?, self.side(), count)
    }

    /// Computes the spectra of projected images.
    fn project(&self, session: &Session, images: &SplitBuffer, count: usize) -> Result<()> {
        let SplitBuffers { spectra, turns, progress, .. } = &self.buffers;
        let launch = session.launch(&self.kernels.transform, "transform_split_rows");
        self.by_pair(with(launch, count, &[images, spectra, &turns[1], progress])?, true, count)?;
        self.by_columns(session, true, count)
    }

    fn restore(&self, session: &Session, padded: bool, to: &SplitBuffer, count: usize) -> Result<()> {
        let SplitBuffers { spectra, turns, progress, .. } = &self.buffers;
        let kernel = if padded { &self.kernels.restore_padded } else { &self.kernels.restore };
        let launch = session.launch(kernel, "restore_split_rows");
        self.by_pair(with(launch, count, &[spectra, to, &turns[usize::from(padded)], progress])?, padded, count)
    }

    fn by_columns(&self, session: &Session, padded: bool, count: usize) -> Result<()> {
        let SplitBuffers { spectra, laplacian, turns, weights, progress, .. } = &self.buffers;
        // the response has the scale of both transforms
        let (kernel, response, sums, scale) = match padded {
            true => (&self.kernels.project, &self.buffers.response, &self.buffers.of_projecting, 1.0),
            false => {
                let scale = ((self.side() * self.side()) as f32).recip();
                (&self.kernels.solve, &self.buffers.symbol, &self.buffers.of_solving, scale)
            }
        };
        let launch = session.launch(kernel, "transform_split_columns");
        let turns = &turns[usize::from(padded)];
        let lines = self.groups.lines[usize::from(padded)];
        let items = ImageGroups::items(lines.width);
        let global = [self.groups.column_groups(padded) * lines.columns, items, count];
        with(launch, count, &[spectra, response, laplacian, turns, weights, progress, sums])?
            .value(scale)?
            .run(&global, Some(&[lines.columns, items, 1]))
            .map(drop)
    }

    /// Runs a kernel that works on pairs of rows.
    fn by_pair(&self, launch: Launch, padded: bool, count: usize) -> Result<()> {
        let lines = self.groups.lines[usize::from(padded)];
        let items = ImageGroups::items(lines.width);
        launch.run(&[items, self.side() / 2, count], Some(&[items, lines.rows, 1])).map(drop)
    }

    /// Runs a kernel with a work-item for each pixel of rows of `width`.
    fn by_pixel(&self, launch: Launch, width: usize, count: usize) -> Result<()> {
        launch.run(&[width, self.side(), count], Some(&[self.groups.pixels, 1, 1])).map(drop)
    }

    /// Runs a kernel with a work-group for each row.
    fn by_row(&self, launch: Launch, count: usize) -> Result<()> {
        launch.run(&[self.groups.pixels, self.side(), count], Some(&[self.groups.pixels, 1, 1])).map(drop)
    }

    fn by_slice(&self, launch: Launch, count: usize) -> Result<()> {
        launch.run(&[self.groups.pixels, count], Some(&[self.groups.pixels, 1])).map(drop)
    }
}

impl SplitKernels {
    fn new(session: &Session, groups: SplitGroups) -> Result<SplitKernels> {
        let rows = |padded| session.build(&generate_split_lines(groups, padded, false)?);
        let columns = |padded| {
            let program = session.build(&generate_split_lines(groups, padded, true)?)?;
            session.kernel(&program, "transform_split_columns")
        };
        let [once, twice] = [rows(false)?, rows(true)?];
        let images = session.build(&generate_split_images(groups)?)?;
        let of_images = |entry| session.kernel(&images, entry);
        Ok(SplitKernels {
            residuals: session.kernel(&once, "transform_residuals")?,
            restore: session.kernel(&once, "restore_split_rows")?,
            solve: columns(false)?,
            transform: session.kernel(&twice, "transform_split_rows")?,
            project: columns(true)?,
            restore_padded: session.kernel(&twice, "restore_split_rows")?,
            advance: session.kernel(&twice, "advance_slices")?,
            halve: of_images("halve_rows")?,
            keep_disc: of_images("keep_disc")?,
            bound: of_images("bound_images")?,
            clear: of_images("clear_split")?,
            move_split: of_images("move_split")?,
            keep_multipliers: of_images("keep_multipliers")?,
            double: of_images("double_images")?,
            find_steps: of_images("find_steps")?,
            judge: of_images("judge_changes")?,
            measure: of_images("measure_rows")?,
            store: of_images("store_region")?,
        })
    }
}

/// Reads the sums of parts of each of `count` slices, two by two, and adds them up.
fn sums(session: &Session, from: &SplitBuffer, count: usize) -> Result<Vec<[f64; 2]>> {
    let mut values = vec![0f32; count * from.count];
    session.read(&from.values, &mut values, from.what)?;
    let add = |sum: [f64; 2], value: &[f32]| [sum[0] + f64::from(value[0]), sum[1] + f64::from(value[1])];
    Ok(values.chunks_exact(from.count).map(|parts| parts.chunks_exact(2).fold([0.0; 2], add)).collect())
}

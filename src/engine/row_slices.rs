//! One slice by several jobs: by other values of some flags, or from parts of the projections.
//!
//! What jobs have in common is done once: rows are corrected once for all jobs that correct them alike, and slices that
//! differ in what the host does to their rows are back-projected together: in steps before the filter, in the filter, and by
//! whole bins in the axis. The source may keep rows in memory, so that they are read once.

use super::chunks::{Engine, no_buffer};
use super::devices::host_budget;
use super::finish::Finish;
use super::noise_weights::noise_weights;
use super::prepare::{Prepared, open_device};
use super::setup::{Setup, SliceForm};
use super::source::{Source, weighs_by_noise};
use crate::device::{self, FoundDevice};
use crate::error::{Error, Result};
use crate::geometry::{Cut, Geometry, Lamino};
use crate::job::Job;
use crate::kernel::{Algorithm, RowFilterMethod, StepBackend, Texel};
use crate::plan::{Memory, Plan, Scan};
use crate::recipe::{Center, Input, Recipe, RowFilterRecipe, ScanRecipe};
use crate::report::Reporter;
use crate::steps::{Counts, Steps};
use rayon::prelude::*;

/// Share of the host's memory that corrected rows take at most.
const KEPT: u64 = 4;
/// Part of the bins of the detector by which the axes of a pass are apart at most, so that it needs little more memory.
const APART: usize = 4;

/// A slice in the unit of its job.
pub struct RowSlice {
    /// Side of a whole slice in pixels.
    pub size: usize,
    /// Values `[y][x]` of the region.
    pub values: Vec<f32>,
}

/// What was done for slices of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowWork {
    /// How often the row was corrected.
    pub corrections: usize,
    /// How often slices were back-projected, one or several together.
    pub passes: usize,
}

/// Reconstructs a row of the scan by each of the jobs, as a run of this row would, on the first of the jobs' devices.
/// `take` receives the number of a job and its slice, beginning with the job `first`; jobs that have more in common with
/// the one before come earlier.
///
/// # Errors
/// Errors of a run, and those of `take`.
pub fn row_slices(
    jobs: &[Job],
    source: &Source,
    (row, first): (usize, usize),
    reporter: &Reporter,
    mut take: impl FnMut(usize, RowSlice) -> Result<()>,
) -> Result<RowWork> {
    let Some(job) = jobs.get(first) else { return Ok(RowWork::default()) };
    let devices = device::find(&job.execution.devices)?;
    let found = devices.first().ok_or_else(|| Error::Internal("there is no device".into()))?;
    let memory = job.execution.host_memory() / KEPT;
    let geometries = jobs.iter().map(|job| source.geometry_of(job)).collect::<Result<_>>()?;
    let mut bench = TrialBench {
        jobs,
        geometries,
        source,
        row,
        found,
        reporter,
        rows: SeenRows::new(memory),
        noise: Vec::new(),
        ready: None,
        passes: 0,
    };
    let mut left: Vec<usize> = (0..jobs.len()).collect();
    let mut next = first;
    while !left.is_empty() {
        for (number, slice) in bench.pass(next, &mut left)? {
            take(number, slice)?;
        }
        let Some(&nearest) = left.iter().min_by_key(|&&other| distance(&jobs[next].recipe, &jobs[other].recipe)) else {
            break;
        };
        next = nearest;
    }
    let TrialBench { rows, ready, passes, .. } = bench;
    if let Some((_, Prepared { session, .. })) = ready {
        session.keep();
    }
    Ok(RowWork { corrections: rows.corrections, passes })
}

/// Returns what would be done again between two recipes: 0 if only the axis differs, 1 for a plan, 2 for corrected rows.
fn distance(a: &Recipe, b: &Recipe) -> u8 {
    let rows_differ = a.input != b.input
        || a.steps.on_rows() != b.steps.on_rows()
        || (a.scan.projection_range, &a.scan.exclude) != (b.scan.projection_range, &b.scan.exclude);
    match rows_differ {
        true => 2,
        false => u8::from(without_scan(a) != without_scan(b)),
    }
}

fn without_scan(recipe: &Recipe) -> Recipe {
    Recipe { scan: ScanRecipe::default(), ..recipe.clone() }
}

/// What slices of one pass may differ in, if they are not found by least squares, and jobs with the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sharing {
    /// Nothing: the device does steps before the filter.
    Nothing,
    /// Steps before the filter, and what is done to slices.
    Steps,
    /// The filter, too.
    Filters,
    /// The axis, too, by whole bins.
    Axes,
}

impl Sharing {
    /// Returns what the slices of a plan may differ in without a change of their bits.
    fn of(plan: &Plan) -> Sharing {
        let by_host = [plan.steps.rows, plan.steps.images, plan.steps.sinograms] == [StepBackend::Host; 3];
        let filters =
            plan.row_filter.method == RowFilterMethod::Host && !matches!(plan.spec.texel, Texel::Spectra { .. });
        if !by_host {
            Sharing::Nothing
        } else if !filters {
            Sharing::Steps
        } else if plan.spec.parameters.algorithm() == Algorithm::Vector {
            // these kernels find the bins of a pixel by whole bins and fractions, never from bin 0
            Sharing::Axes
        } else {
            Sharing::Filters
        }
    }

    /// Returns a recipe without what slices of a pass may differ in.
    fn without(self, recipe: &Recipe) -> Recipe {
        let mut recipe = recipe.clone();
        if self >= Sharing::Steps {
            recipe.steps = Steps::default();
            recipe.values.mask = None;
        }
        if self >= Sharing::Filters {
            recipe.filter = RowFilterRecipe::default();
        }
        if self >= Sharing::Axes {
            recipe.scan.center = Center::Middle;
        }
        recipe
    }
}

/// Everything of a job and its scan that decides the plan for a single slice, but for the axis.
#[derive(PartialEq)]
struct PlannedFor {
    recipe: Recipe,
    bins: usize,
    angles: Vec<f64>,
    lamino: Option<Lamino>,
}

impl PlannedFor {
    fn new(job: &Job, scan: &Scan) -> PlannedFor {
        // an extended field is as wide as the axis is off the middle
        let geometry = &scan.geometry;
        PlannedFor {
            recipe: without_scan(&job.recipe),
            bins: geometry.bins,
            angles: geometry.angles.clone(),
            lamino: scan.lamino,
        }
    }

    /// Reports whether what was planned for another job suits this one, too.
    fn suits(&self, planned: &PlannedFor, plan: &Plan) -> bool {
        let sharing = Sharing::of(plan);
        sharing.without(&self.recipe) == sharing.without(&planned.recipe)
            && (self.bins, &self.angles, self.lamino) == (planned.bins, &planned.angles, planned.lamino)
    }
}

/// Slices that are computed together.
struct Pass {
    /// Numbers of their jobs, that which was asked for first.
    numbers: Vec<usize>,
    /// How each of them differs from the others; empty if they do not.
    forms: Vec<SliceForm>,
    /// Number of a job whose axis is that of the pass; `None` for the job itself.
    widest: Option<usize>,
}

/// Jobs for one row, and what they share.
struct TrialBench<'a> {
    jobs: &'a [Job],
    /// Scan of each job.
    geometries: Vec<Geometry>,
    source: &'a Source,
    row: usize,
    found: &'a FoundDevice,
    reporter: &'a Reporter,
    rows: SeenRows,
    /// Weights of projections by their noise.
    noise: Vec<(SeenBy, Vec<f64>)>,
    ready: Option<(PlannedFor, Prepared)>,
    passes: usize,
}

impl TrialBench<'_> {
    /// Computes the slice of a job, together with others as [`Sharing`] says; all of them are removed from `left`.
    fn pass(&mut self, next: usize, left: &mut Vec<usize>) -> Result<Vec<(usize, RowSlice)>> {
        let (jobs, job) = (self.jobs, &self.jobs[next]);
        let source = self.source_of(job)?;
        let scan = &source.scan;
        let wanted = PlannedFor::new(job, scan);
        let Prepared { session, plan, self_test } = self.prepared(job, scan, &wanted)?;
        let Pass { numbers, forms, widest } = self.together(next, left, &plan);
        left.retain(|number| !numbers.contains(number));
        let setup = Setup {
            chunk: numbers.len(),
            forms: &forms,
            ..Setup::of(&job.recipe, widest.map_or(&scan.geometry, |widest| &self.geometries[widest]), &plan)
        };
        let mut engine = Engine::new(session, &setup)?;
        engine.add_steps(&job.recipe, &source, &plan)?;
        let mut sources = vec![source];
        for &number in &numbers[1..] {
            sources.push(self.source_of(&jobs[number])?);
        }
        if plan.lamino.is_some() {
            // a slice needs many rows
            let mut values = engine.slice(&sources[0], self.row)?;
            Finish::new(&job.recipe, sources[0].scan.geometry.size).apply(sources[0].scan.geometry.roi, &mut values);
            let slice = RowSlice { size: sources[0].scan.geometry.size, values };
            self.passes += 1;
            self.ready = Some((wanted, Prepared { session: engine.into_session(), plan, self_test }));
            return Ok(vec![(next, slice)]);
        }
        let recipes: Vec<&Recipe> = numbers.iter().map(|&number| &jobs[number].recipe).collect();
        let rows = self.rows.of(&mut engine, &sources, &recipes, self.row)?;
        let slices = engine.slices_of(&sources, &rows)?;
        let finished = numbers.iter().zip(slices).zip(&sources).map(|((&number, mut values), source)| {
            let geometry = &source.scan.geometry;
            Finish::new(&jobs[number].recipe, geometry.size).apply(geometry.roi, &mut values);
            (number, RowSlice { size: geometry.size, values })
        });
        let finished = finished.collect();
        self.passes += 1;
        self.ready = Some((wanted, Prepared { session: engine.into_session(), plan, self_test }));
        Ok(finished)
    }

    /// Returns the jobs that are computed in one pass with a job.
    fn together(&self, next: usize, left: &[usize], plan: &Plan) -> Pass {
        let (jobs, geometries) = (self.jobs, &self.geometries);
        let sharing = Sharing::of(plan);
        if sharing == Sharing::Nothing || jobs[next].recipe.solver.is_some() || plan.lamino.is_some() {
            return Pass { numbers: vec![next], forms: Vec::new(), widest: None };
        }
        let wanted = sharing.without(&jobs[next].recipe);
        // parts of a pass that does not fit into memory have no room for wider rows
        let is_whole = plan.cut == Cut::whole(&geometries[next]);
        let most = if is_whole { (geometries[next].bins / APART) as isize } else { 0 };
        let (mut members, mut range) = (vec![(next, 0)], [0isize; 2]);
        for &other in left.iter().filter(|&&other| other != next) {
            if members.len() == plan.spec.slices as usize {
                break;
            }
            let Some(bins) = geometries[next].whole_bins_to(&geometries[other]) else { continue };
            let wider = [range[0].min(bins), range[1].max(bins)];
            if wider[1] - wider[0] <= most && sharing.without(&jobs[other].recipe) == wanted {
                members.push((other, bins));
                range = wider;
            }
        }
        let form = |&(number, bins): &(usize, isize)| SliceForm {
            filter: jobs[number].recipe.filter,
            shift: (range[1] - bins) as usize,
        };
        let forms: Vec<SliceForm> = members.iter().map(form).collect();
        let all_alike = forms.iter().all(|form| form.shift == 0 && form.filter == forms[0].filter);
        Pass {
            widest: members.iter().find(|(_, bins)| *bins == range[1]).map(|(number, _)| *number),
            numbers: members.iter().map(|(number, _)| *number).collect(),
            forms: if all_alike { Vec::new() } else { forms },
        }
    }

    /// Returns the source of a job, for the row alone. Noise is measured in the rows of a run, once for all jobs that correct
    /// their rows alike.
    fn source_of(&mut self, job: &Job) -> Result<Source> {
        let mut source = self.source.as_of(job)?;
        if weighs_by_noise(job) {
            let seen = SeenBy::host(&job.recipe, &source);
            let weights = match self.noise.iter().find(|(known, _)| *known == seen) {
                Some((_, weights)) => weights.clone(),
                None => {
                    let weights = noise_weights(&source, job, &Reporter::silent())?;
                    self.noise.push((seen, weights.clone()));
                    weights
                }
            };
            source = source.weighted(weights);
        }
        (source.scan.slices, source.scan.run_slices) = (vec![self.row], vec![self.row]);
        Ok(source)
    }

    /// Returns the device with a plan, those of the job before if they suit.
    fn prepared(&mut self, job: &Job, scan: &Scan, wanted: &PlannedFor) -> Result<Prepared> {
        match self.ready.take() {
            Some((planned, prepared)) if wanted.suits(&planned, &prepared.plan) => return Ok(prepared),
            Some((_, prepared)) => prepared.session.keep(),
            None => {}
        }
        let memory = Memory { host: host_budget(job, scan)?, device: job.execution.device_memory, devices: 1 };
        open_device(job, scan, self.found, memory, self.reporter)
    }
}

/// Everything that decides the values of a corrected row.
#[derive(Clone, PartialEq)]
struct SeenBy {
    input: Input,
    steps: Steps,
    used: Vec<usize>,
    on_device: bool,
}

impl SeenBy {
    /// Rows of a source that the host corrects up to the steps on sinograms.
    fn host(recipe: &Recipe, source: &Source) -> SeenBy {
        let (input, used) = (recipe.input.clone(), source.scan.used.clone());
        SeenBy { input, steps: recipe.steps.on_rows(), used, on_device: false }
    }
}

/// Corrected rows, with and without their stripes, as many as there is memory for.
struct SeenRows {
    known: Vec<(SeenBy, Vec<f32>)>,
    /// Largest number of values.
    most: usize,
    corrections: usize,
}

impl SeenRows {
    fn new(bytes: u64) -> SeenRows {
        SeenRows { known: Vec::new(), most: (bytes / 4) as usize, corrections: 0 }
    }

    /// Returns the row by each of some recipes: corrected, and without stripes if the host removes them.
    fn of(
        &mut self,
        engine: &mut Engine,
        sources: &[Source],
        recipes: &[&Recipe],
        row: usize,
    ) -> Result<Vec<Vec<f32>>> {
        let by_host = engine.wants.steps.sinograms == StepBackend::Host;
        let mut rows = Vec::with_capacity(sources.len());
        for (source, recipe) in sources.iter().zip(recipes) {
            let seen = SeenBy { on_device: engine.feed.is_some(), ..SeenBy::host(recipe, source) };
            let wanted = SeenBy { steps: if by_host { &recipe.steps } else { &seen.steps }.clone(), ..seen.clone() };
            match self.known(&wanted) {
                Some(values) => rows.push((values, None)),
                None => {
                    let has_stripes = wanted != seen;
                    rows.push((self.seen(engine, source, seen, row)?, has_stripes.then_some(wanted)));
                }
            }
        }
        rows.par_iter_mut().zip(sources).filter(|((_, wanted), _)| wanted.is_some()).for_each(
            |((values, _), source)| {
                source.preparation.sinogram(values, &mut Counts::default());
            },
        );
        for (values, wanted) in &rows {
            wanted.iter().for_each(|wanted| self.keep(wanted, values));
        }
        Ok(rows.into_iter().map(|(values, _)| values).collect())
    }

    /// Returns a corrected row as the detector saw it.
    fn seen(&mut self, engine: &mut Engine, source: &Source, by: SeenBy, row: usize) -> Result<Vec<f32>> {
        if let Some(values) = self.known(&by) {
            return Ok(values);
        }
        let values = engine.seen_row(source, row)?;
        self.corrections += 1;
        self.keep(&by, &values);
        Ok(values)
    }

    fn known(&self, by: &SeenBy) -> Option<Vec<f32>> {
        self.known.iter().find(|(known, _)| known == by).map(|(_, values)| values.clone())
    }

    fn keep(&mut self, by: &SeenBy, values: &[f32]) {
        let held = |known: &[(SeenBy, Vec<f32>)]| known.iter().map(|(_, values)| values.len()).sum::<usize>();
        while !self.known.is_empty() && held(&self.known) + values.len() > self.most {
            self.known.remove(0);
        }
        if values.len() <= self.most {
            self.known.push((by.clone(), values.to_vec()));
        }
    }
}

impl Engine {
    /// Reads one row and corrects it as a run does, up to the steps on sinograms: `[projection][bin]` as the detector saw
    /// it.
    fn seen_row(&mut self, source: &Source, row: usize) -> Result<Vec<f32>> {
        if self.feed.is_none() {
            return source.read_seen(&[row])?.pop().ok_or_else(no_buffer);
        }
        self.load(source, row)?;
        let mut seen = vec![0f32; source.rows().seen_len()];
        let sinograms = self.inputs.first().ok_or_else(no_buffer)?;
        self.session.read_uploaded(sinograms, &mut seen, "a sinogram")?;
        Ok(seen)
    }

    /// Reconstructs slices `[y][x]` from corrected rows, of which each has its source.
    fn slices_of(&mut self, sources: &[Source], rows: &[Vec<f32>]) -> Result<Vec<Vec<f32>>> {
        let (in_slice, out_slice) = (self.shape.in_slice, self.shape.out_slice);
        let by_host = self.wants.steps.rows == StepBackend::Host;
        let mut sinograms = vec![0f32; rows.len() * in_slice];
        sinograms.par_chunks_mut(in_slice).zip(rows).zip(sources).for_each(|((sinogram, row), source)| {
            sinogram[..row.len()].copy_from_slice(row);
            if let Some(field) = source.scan.field.as_ref().filter(|_| by_host) {
                field.extend(sinogram);
            }
        });
        let mut slices = vec![0f32; rows.len() * out_slice];
        self.reconstruct(&sinograms, &mut slices)?;
        Ok(slices.chunks(out_slice).map(<[f32]>::to_vec).collect())
    }
}

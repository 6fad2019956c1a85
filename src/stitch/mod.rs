//! Scans in several parts: at several heights, or by detectors side by side, which become one scan.
//!
//! Every part is corrected by its own fields. The joined scan has transmissions, blended where parts overlap, so that all
//! later steps, -log among them, see one detector (docs/scans.md).

mod errors;
mod frames;
mod overlap;
mod places;

use crate::error::Result;
use crate::recipe::{Join, Stitching};
use crate::remark::Remark;
use crate::source::{
    self, Binning, Hdf5Input, InputKind, Joined, JoinedPart, OpenRequest, Stack, StackPaths, Stacks, hdf5,
};
use crate::steps::{Preparation, Scope, Steps};
use crate::units::Length;
use errors::StitchError;
use frames::{Place, ScanPart, StitchedFrames};
use places::{PartStep, Shared, places, shared, steps};
use std::path::Path;

/// Largest distance of rays at the ends of a row whose angles count as the same, in bins.
const SAME_ANGLE: f64 = 0.25;
/// Relative difference of pixel sizes that are the same.
const SAME_PIXEL: f64 = 1e-3;

/// The input of a run, which may be in several parts.
#[derive(Clone, Copy, Debug)]
pub struct StitchRequest<'a> {
    /// The first part, or the only one.
    pub open: OpenRequest<'a>,
    /// Paths of further parts.
    pub further: &'a [StackPaths],
    /// How parts are joined; `None` for a scan in one part.
    pub stitching: Option<&'a Stitching>,
    pub steps: &'a Steps,
    /// True if fields are medians of their frames.
    pub median: bool,
    /// Size of a pixel of the detector in metres, if it is given.
    pub pixel_size: Option<f64>,
}

/// Opens the input. `data` opens the files of the data of a part, given their path and the flag, unless they are HDF5.
///
/// # Errors
/// The errors of opening a part; [`Error::Input`](crate::error::Error::Input) where parts do not become one.
pub fn open(request: StitchRequest, data: impl Fn(&str, &str) -> Result<Stack>) -> Result<Stacks> {
    let Some(stitching) = request.stitching else { return source::open(request.open, data) };
    let paths: Vec<&StackPaths> = [request.open.paths].into_iter().chain(request.further).collect();
    let memory = request.open.memory / paths.len() as u64;
    let part = |paths: &&StackPaths| {
        let open = OpenRequest { paths, memory, binning: 1, ..request.open };
        let stacks = source::open(open, &data)?;
        let used: Vec<usize> = (0..stacks.data.len()).collect();
        let rows = 0..stacks.data.height();
        let scope = Scope { median: request.median, used: &used, rows: &rows, full_projections: false, means: None };
        let preparation = Preparation::to_transmissions(request.steps, &stacks, scope)?;
        preparation.expect_light(&(0..stacks.data.height()).collect::<Vec<_>>())?;
        Ok(ScanPart { name: paths.data.clone(), stacks, preparation })
    };
    let parts = paths.iter().map(part).collect::<Result<Vec<ScanPart>>>()?;
    check(stitching.join, &parts)?;
    let pixel_size = pixel_size(&request, stitching.join, &paths)?;
    let stacks = joined(stitching, parts, pixel_size)?;
    stacks.binned(Binning { by: request.open.binning, pages: false })
}

/// Refuses parts that are not of one scan.
fn check(join: Join, parts: &[ScanPart]) -> Result<()> {
    let (first, flag) = (&parts[0], join.flag());
    let (bins, rows) = first.size();
    let all: usize = parts.iter().map(|part| part.size().0).sum();
    // at the ends of the longest row
    let half = if join == Join::Rows { bins } else { all } as f64 / 2.0;
    let same = (SAME_ANGLE / half).to_degrees();
    if let Some(part) = parts.iter().find(|part| part.stacks.shifts.is_some()) {
        return Err(StitchError::Shifts { flag, part: part.name.clone() }.into());
    }
    for part in &parts[1..] {
        let ((width, height), names) = (part.size(), (first.name.clone(), part.name.clone()));
        let (first_name, other) = names;
        if join == Join::Rows && width != bins {
            return Err(StitchError::Width { first: first_name, bins, other, width }.into());
        }
        if join == Join::Bins && height != rows {
            return Err(StitchError::Height { first: first_name, rows, other, height }.into());
        }
        let (count, others) = (first.stacks.data.len(), part.stacks.data.len());
        if count != others {
            return Err(StitchError::Projections { flag, first: first_name, count, other, others }.into());
        }
        if let (Some(one), Some(two)) = (&first.stacks.angles, &part.stacks.angles)
            && let Some(projection) = one.iter().zip(two).position(|(one, two)| (one - two).abs() > same)
        {
            let (one, two) = (one[projection], two[projection]);
            return Err(StitchError::Angles { flag, first: first_name, other, projection, one, two }.into());
        }
        if first.stacks.flats.is_some() != part.stacks.flats.is_some() {
            let (with, without) = if first.stacks.flats.is_some() { (first_name, other) } else { (other, first_name) };
            return Err(StitchError::Fields { flag, with, without }.into());
        }
    }
    Ok(())
}

/// Returns the pixel size in metres, that of the flag or that of the files, and checks that these are the same.
fn pixel_size(request: &StitchRequest, join: Join, paths: &[&StackPaths]) -> Result<Option<f64>> {
    if request.open.kind != InputKind::Hdf5 {
        return Ok(request.pixel_size);
    }
    let size = |paths: &&StackPaths| -> Result<Option<f64>> {
        let data = request.open.datasets.data.clone();
        let input = Hdf5Input { file: Path::new(&paths.data).to_owned(), data, ..Hdf5Input::default() };
        let measure = hdf5::measures(&input)?.pixel_size;
        Ok(measure.and_then(|size| Length { value: size.value, unit: size.unit.to_owned() }.metres()))
    };
    let sizes = paths.iter().map(size).collect::<Result<Vec<_>>>()?;
    for (at, size) in sizes.iter().enumerate().skip(1) {
        if let (Some(one), Some(two)) = (sizes[0], *size)
            && (one - two).abs() > SAME_PIXEL * one
        {
            let (flag, first, other) = (join.flag(), paths[0].data.clone(), paths[at].data.clone());
            return Err(StitchError::PixelSize { flag, first, one, other, two }.into());
        }
    }
    Ok(request.pixel_size.or(sizes[0]))
}

/// Joins parts that fit together.
fn joined(stitching: &Stitching, parts: Vec<ScanPart>, pixel_size: Option<f64>) -> Result<Stacks> {
    let join = stitching.join;
    let steps = steps(join, &stitching.distance, &parts, pixel_size)?;
    let (order, mut places) = places(join, &parts, &steps)?;
    let place_of = |part: usize| order.iter().position(|&other| other == part).unwrap_or_default();
    // each relative to the one before it in the order of the flag
    let pairs = (1..parts.len()).map(|part| {
        let of = |part: usize| (&parts[part], &places[place_of(part)]);
        shared(join, of(part - 1), of(part), &steps[part - 1])
    });
    let pairs = pairs.collect::<Result<Vec<Shared>>>()?;
    let (mut level, mut bins) = (1.0, 0.0);
    for (part, pair) in pairs.iter().enumerate() {
        (level, bins) = (level * pair.level, bins + pair.bins);
        let place = &mut places[place_of(part + 1)];
        place.level = level as f32;
        place.offset -= bins;
    }
    let records: Vec<JoinedPart> =
        (0..order.len()).map(|at| record(join, &parts, (&order, &places), (&steps, &pairs), at)).collect();
    let has_flats = parts[0].stacks.flats.is_some();
    let frames = |of: fn(&Stacks) -> &Option<Stack>| -> usize {
        parts.iter().filter(|_| has_flats).filter_map(|part| of(&part.stacks).as_ref()).map(Stack::len).sum()
    };
    let frames = [frames(|stacks| &stacks.flats), frames(|stacks| &stacks.flats2), frames(|stacks| &stacks.darks)];
    let of_fields = |part: &ScanPart| {
        let Stacks { flats, flats2, darks, .. } = &part.stacks;
        [flats, flats2, darks].into_iter().flatten().flat_map(|stack| stack.files().to_vec()).collect::<Vec<_>>()
    };
    let files = parts.iter().flat_map(of_fields).collect();
    let mut remarks: Vec<Remark> = Vec::new();
    for part in &parts {
        remarks.extend(part.stacks.data.remarks().iter().cloned().chain(part.preparation.remarks()));
    }
    let without_darks = parts.iter().filter(|part| has_flats && part.stacks.darks.is_none());
    remarks.extend(without_darks.map(|ScanPart { name, .. }| {
        Remark::note(format!("{name} has no dark fields, its dark level is assumed to be 0"))
    }));
    remarks.extend(records.iter().map(|part| Remark::note(format!("part {part}"))));
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    let (names, angles, measures) = (names.join(" "), parts[0].stacks.angles.clone(), parts[0].stacks.measures.clone());
    let mut parts: Vec<Option<ScanPart>> = parts.into_iter().map(Some).collect();
    let in_order = order.iter().zip(places).filter_map(|(&part, place)| Some((parts[part].take()?, place))).collect();
    let stitched = StitchedFrames::new(join, in_order, remarks);
    let stacks = Stacks::of(Stack::of(&format!("--{}", join.flag()), &names, stitched));
    Ok(Stacks { angles, measures, joined: Some(Joined { has_flats, frames, files, parts: records }), ..stacks })
}

/// Describes the part at a place.
fn record(
    join: Join,
    parts: &[ScanPart],
    (order, places): (&[usize], &[Place]),
    (steps, pairs): (&[PartStep], &[Shared]),
    at: usize,
) -> JoinedPart {
    let (part, place) = (order[at], &places[at]);
    // the step from one of two neighbours to the other, in the order of the flag
    let before = at.checked_sub(1).map(|before| (order[before], steps[part.min(order[before])].pixels.abs()));
    let length = |part: usize| if join == Join::Rows { parts[part].size().1 } else { parts[part].size().0 };
    let found = before.and_then(|(before, _)| steps[part.min(before)].uncertainty);
    JoinedPart {
        name: parts[part].name.clone(),
        bins: join == Join::Bins,
        first: place.first,
        count: place.count,
        overlap: before.map(|(before, step)| length(before) as f64 - step),
        uncertainty: found,
        level: place.level.into(),
        level_uncertainty: part.checked_sub(1).map_or(0.0, |pair| pairs[pair].level_uncertainty),
        shift: if join == Join::Rows { place.offset } else { 0.0 },
    }
}

//! Chooses the kernel of a run: the first one without a reason against it.

use super::errors::{NoKernelError, PlanDeviceError};
use super::request::Request;
use crate::device::GridForm;
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::geometry::Geometry;
use crate::kernel::{
    Algorithm, Bound, KernelSource, KernelSpec, Offer, Parameters, Positions, Problem, Sampler, Texel,
};
use crate::profile::Profile;
use crate::recipe::{KernelChoice, Recipe};

/// A kernel for a run.
pub(super) struct Chosen {
    pub spec: KernelSpec,
    pub source: KernelSource,
    pub notes: Vec<String>,
}

/// Returns the first kernel without a reason against it, for a run of `run_slices` slices, and notes on why it is not
/// the one that the profile would take.
pub(super) fn choose(request: &Request, run_slices: usize) -> Result<Chosen> {
    let Request { scan, choice, facts, .. } = *request;
    let (profile, geometry) = (&choice.profile, &scan.geometry);
    let problem = Problem {
        size: geometry.size,
        span: geometry.span(),
        ..Problem::new(geometry.projections(), geometry.same_axis())
    };
    let mut notes = Vec::new();
    // name and what is wrong of those that are passed over
    let mut passed: Vec<(String, String)> = Vec::new();
    for offer in offers(request.recipe, profile, run_slices, geometry.size)? {
        let (offer, bound, in_cache) = fitting(offer, request.recipe, geometry, facts)?;
        let problem = Problem { bound, ..problem };
        let (best, why) = layout(&offer, geometry, facts);
        // in place of another family the standard kernel reads a buffer: nothing less can go wrong
        let plain = !passed.is_empty() && offer.parameters.algorithm() == Algorithm::default();
        let mut texels = if plain { vec![Texel::Buffer] } else { vec![best] };
        if texels[0].format().is_some() {
            texels.push(Texel::Buffer);
        }
        for texel in texels {
            let spec = KernelSpec::new(&offer, profile, texel, problem, Some(facts));
            let source = spec.generate()?;
            let (group, most) = (source.work_group.iter().product(), facts.max_work_group);
            if group > most && passed.is_empty() {
                let (device, kernel) = (facts.name.clone(), source.name);
                return Err(PlanDeviceError::WorkGroupTooLarge { device, kernel, group, most }.into());
            }
            let too_large =
                (group > most).then(|| format!("its work-group of {group} is larger than the device's {most}"));
            let refused = request.avoid.refused.iter().find(|refused| refused.key == source.key);
            let mut known = request.avoid.known.find(facts, &spec);
            if let (Some(why), Some(algorithm), false) = (known, request.recipe.kernel.algorithm, request.self_test) {
                notes.push(format!("--algorithm {algorithm} is used as requested, although {why}"));
                known = None;
            }
            if let Some(why) = refused.map(|r| r.why.clone()).or(known.map(str::to_owned)).or(too_large) {
                // what is known of both layouts is said once
                if known.is_none() || passed.last().is_none_or(|(_, before)| *before != why) {
                    passed.push((source.name, why));
                }
                continue;
            }
            let next = passed.iter().skip(1).map(|(name, _)| name).chain([&source.name]);
            notes.extend(passed.iter().zip(next).map(|((name, why), next)| format!("{name} -> {next}: {why}")));
            notes.extend(why.filter(|_| !plain));
            notes.extend(in_cache);
            notes.extend(from_blocks(&offer, &spec, problem.span));
            return Ok(Chosen { spec, source, notes });
        }
    }
    Err(none_left(request, &passed))
}

/// Returns the kernel that the profile takes and, unless its family was asked for, those that may stand in for it.
fn offers(recipe: &Recipe, profile: &Profile, run_slices: usize, size: usize) -> Result<Vec<Offer>> {
    let KernelChoice { algorithm, interpolation, mode, slices_per_pass, .. } = recipe.kernel;
    let first = profile.select(algorithm, interpolation, mode, slices_per_pass, run_slices, size)?;
    let mut offers = vec![first];
    if algorithm.is_none() {
        offers.extend(fallbacks(recipe, profile, &offers[0], run_slices, size));
    }
    Ok(offers)
}

/// Returns the offer, with a form of gridding for which the device has enough local memory, its bound for the region,
/// and a note if it is another form than that of the profile.
fn fitting(
    mut offer: Offer,
    recipe: &Recipe,
    geometry: &Geometry,
    facts: &DeviceFacts,
) -> Result<(Offer, Option<Bound>, Option<String>)> {
    let Parameters::Gridding(gridding) = &offer.parameters else { return Ok((offer, None, None)) };
    let accuracy = recipe.kernel.bound();
    let bound = |form: &GridForm| Some(Bound { accuracy, width: form.grid.width() });
    if let Some(form) = GridForm::new(facts, gridding, geometry.roi, accuracy)? {
        return Ok((offer, bound(&form), None));
    }
    let gridding = gridding.in_cache();
    let form = GridForm::new(facts, &gridding, geometry.roi, accuracy)?;
    offer.parameters = gridding.into();
    // vectors hold fewer slices than work-groups
    while offer.slices > 1 && offer.check().is_err() {
        offer.slices /= 2;
    }
    let why = format!(
        "gridding: a line of the grid does not fit into local memory; it is transformed in global memory, more slowly, {} \
         slices at a time",
        offer.slices
    );
    Ok((offer, form.as_ref().and_then(bound), Some(why)))
}

/// Returns a note if a kernel counts positions from blocks because the scan is too wide for the profile's, which counts
/// from bin 0.
fn from_blocks(offer: &Offer, spec: &KernelSpec, span: usize) -> Option<String> {
    let absolute = |parameters: &Parameters| parameters.family().counts_from_bin_0();
    let widest = Positions::WIDEST_ABSOLUTE;
    (absolute(&offer.parameters) && !absolute(&spec.parameters) && span > widest).then(|| {
        format!(
            "positions from bin 0 -> from blocks: in f32 they keep the margin up to {widest} bins, here axis and slices \
             reach {span}"
        )
    })
}

fn none_left(request: &Request, passed: &[(String, String)]) -> Error {
    let Request { recipe, choice, facts, .. } = *request;
    let tried: Vec<String> = passed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let tried = tried.join("\n  ");
    let KernelChoice { interpolation, mode, algorithm, .. } = recipe.kernel;
    let [device, driver, profile] = [&facts.name, &facts.driver, &choice.profile.name].map(String::clone);
    match algorithm {
        Some(algorithm) => {
            NoKernelError::OfAlgorithm { device, driver, interpolation, mode, profile, tried, algorithm }.into()
        }
        None => NoKernelError::OfProfile { device, driver, interpolation, mode, profile, tried }.into(),
    }
}

/// Returns the layout of the sinogram that a kernel reads, the best that the device has, and a note if it is not an
/// image for want of one.
fn layout(offer: &Offer, geometry: &Geometry, facts: &DeviceFacts) -> (Texel, Option<String>) {
    let texels = offer.texels();
    let last = texels.last().copied().unwrap_or(Texel::Buffer);
    if offer.parameters.sampler() == Sampler::Buffer {
        return (last, None);
    }
    let (bins, projections, max) = (geometry.bins, geometry.projections(), facts.image_max);
    match texels.iter().find(|t| t.format().is_some_and(|f| facts.image_formats.contains(&f))) {
        Some(_) if bins > max[0] || projections > max[1] => {
            let why = format!(
                "image -> buffer: {bins} bins x {projections} projections do not fit into the device's largest image, {} x {}",
                max[0], max[1]
            );
            (last, Some(why))
        }
        Some(&found) => (found, None),
        None => {
            let storage = offer.parameters.storage();
            (
                last,
                Some(format!(
                    "image -> buffer: no working image format for {} slices of {storage} values",
                    offer.slices
                )),
            )
        }
    }
}

/// Returns the kernels that may take the place of a family that is not to be used, best first.
fn fallbacks(recipe: &Recipe, profile: &Profile, first: &Offer, run_slices: usize, size: usize) -> Vec<Offer> {
    let KernelChoice { interpolation, mode, slices_per_pass, .. } = recipe.kernel;
    let select = |&algorithm: &Algorithm| {
        let of = |slices| profile.select(Some(algorithm), interpolation, mode, slices, run_slices, size);
        of(slices_per_pass).or_else(|_| of(None)).ok()
    };
    first.parameters.family().stand_ins().iter().filter_map(select).collect()
}

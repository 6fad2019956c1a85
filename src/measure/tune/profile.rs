//! The profile with tuned kernels.

use super::outcome::Outcome;
use crate::digest::PartsDigest;
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::kernel::{Interpolation, Mode};
use crate::profile::{Auto, KernelEntry, Match, MeasuredSpeed, Profile, Tuned, auto_keys};

/// Circumstances of the measurements.
#[derive(Clone, Debug)]
pub struct TuningRun<'a> {
    pub facts: &'a DeviceFacts,
    pub version: &'a str,
    pub date: &'a str,
    /// Bins, projections and side of the problem.
    pub problem: [usize; 3],
    /// Name of the log file.
    pub log: &'a str,
}

/// Returns the file name for a device and its driver, without extension.
pub fn tuned_file_stem(facts: &DeviceFacts) -> String {
    let words: Vec<String> = facts
        .name
        .to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let short: String = words.join("-").chars().take(40).collect();
    let digest = PartsDigest::of([&facts.platform, &facts.name, &facts.driver]);
    format!("{}-{digest:.16}", short.trim_end_matches('-'))
}

/// Suffix of a tuned profile's name.
const SUFFIX: &str = "-tuned";

/// Returns the profile with tuned kernels instead of shipped ones.
///
/// Kernels of `earlier`, a profile tuned from the same one for the same device, are kept for other interpolations and
/// modes.
pub fn compose_profile(
    base: &Profile,
    earlier: Option<&Profile>,
    outcomes: &[Outcome],
    run: &TuningRun,
) -> Result<Profile> {
    let mut profile = base.clone();
    profile.name = format!("{}{SUFFIX}", base.name.trim_end_matches(SUFFIX));
    for &interpolation in Interpolation::ALL {
        for &mode in Mode::ALL {
            let here = |o: &Outcome| (o.shipped.offer.interpolation, o.shipped.offer.mode) == (interpolation, mode);
            match earlier.filter(|e| e.name == profile.name && !outcomes.iter().any(here)) {
                Some(earlier) => copy_results(&mut profile, earlier, interpolation, mode),
                None => outcomes.iter().filter(|o| here(o)).for_each(|outcome| apply(&mut profile, outcome, run)),
            }
        }
    }
    let earlier = earlier.filter(|earlier| earlier.name == profile.name);
    if let Some(earlier) = earlier {
        profile.step_sizes = earlier.step_sizes.clone();
    }
    let [bins, projections, size] = run.problem;
    let facts = run.facts;
    profile.title = format!("{}, tuned", base.title.trim_end_matches(", tuned"));
    profile.source = format!(
        "tuned by fbp {} on {}, driver {}, {}: slices of {size} x {size} from {projections} projections of {bins} bins; all \
         measurements are in {}; the rest is profile {}: {}",
        run.version, facts.name, facts.driver, run.date, run.log, base.name, base.source
    );
    profile.r#match = Match { device: vec![facts.name.clone()], ..Match::default() };
    profile.tuned = Some(Tuned {
        device: facts.name.clone(),
        driver: facts.driver.clone(),
        version: run.version.to_owned(),
        date: run.date.to_owned(),
        keys: auto_keys(&profile, facts)?,
        steps: earlier.and_then(|earlier| earlier.tuned.as_ref()?.steps.clone()),
    });
    Ok(profile)
}

/// Returns the parts of an entry that remain when it no longer serves some combinations.
fn without(
    entry: &KernelEntry,
    interpolation: Interpolation,
    mode: Mode,
    drops: &dyn Fn(u32) -> bool,
) -> Vec<KernelEntry> {
    if !entry.interpolation.contains(&interpolation) || !entry.mode.contains(&mode) {
        return vec![entry.clone()];
    }
    let mut others = entry.clone();
    others.interpolation.retain(|&i| i != interpolation);
    let mut other_modes = KernelEntry { interpolation: vec![interpolation], ..entry.clone() };
    other_modes.mode.retain(|&m| m != mode);
    let mut remaining = KernelEntry { interpolation: vec![interpolation], mode: vec![mode], ..entry.clone() };
    remaining.slices.retain(|&s| !drops(s));
    let serves = |e: &KernelEntry| !(e.interpolation.is_empty() || e.mode.is_empty() || e.slices.is_empty());
    // an entry that loses nothing is not split
    if remaining.slices == entry.slices {
        return vec![entry.clone()];
    }
    [others, other_modes, remaining].into_iter().filter(serves).collect()
}

/// Replaces everything for one interpolation and mode by that of another profile.
fn copy_results(profile: &mut Profile, from: &Profile, interpolation: Interpolation, mode: Mode) {
    profile.kernel = profile.kernel.iter().flat_map(|e| without(e, interpolation, mode, &|_| true)).collect();
    for entry in &from.kernel {
        if entry.interpolation.contains(&interpolation) && entry.mode.contains(&mode) {
            let only = KernelEntry { interpolation: vec![interpolation], mode: vec![mode], ..entry.clone() };
            profile.kernel.push(only);
        }
    }
    let autos = |auto: &Auto| (auto.interpolation, auto.mode) == (interpolation, mode);
    profile.auto.retain(|auto| !autos(auto));
    profile.auto.extend(from.auto.iter().filter(|auto| autos(auto)).cloned());
    let measured = |m: &MeasuredSpeed| (m.interpolation, m.mode) == (interpolation, mode);
    profile.measured.retain(|m| !measured(m));
    profile.measured.extend(from.measured.iter().filter(|m| measured(m)).cloned());
}

/// Adds the result of one search to the profile.
fn apply(profile: &mut Profile, outcome: &Outcome, run: &TuningRun) {
    let (shipped, tuned) = (&outcome.shipped.offer, &outcome.tuned.offer);
    let (interpolation, mode) = (tuned.interpolation, tuned.mode);
    let algorithm = tuned.parameters.algorithm();
    if outcome.is_gain() {
        let source = format!("tuned, {}; see [[measured]]", run.date);
        profile.kernel = profile
            .kernel
            .iter()
            .flat_map(|entry| match entry.parameters.algorithm() == algorithm {
                true => without(entry, interpolation, mode, &|s| s == tuned.slices),
                false => vec![entry.clone()],
            })
            .collect();
        profile.kernel.push(KernelEntry::of(tuned, Some(source.clone())));
        let mut few = None;
        // choices for smaller slices than were measured remain
        let size = run.problem[2];
        let measured = |auto: &&mut Auto| auto.up_to_size.is_none_or(|most| size <= most as usize);
        for auto in profile.auto.iter_mut().filter(|auto| auto.is_for(shipped)).filter(measured) {
            // a choice for few slices remains one
            if auto.up_to.is_none() || tuned.slices <= shipped.slices {
                if auto.up_to.is_none() && auto.up_to_size.is_none() {
                    few = up_to(outcome).map(|most| Auto { up_to: Some(most), ..auto.clone() });
                }
                (auto.algorithm, auto.slices, auto.source) = (algorithm, tuned.slices, Some(source.clone()));
            }
        }
        let here = profile.auto.iter().filter(|auto| (auto.interpolation, auto.mode) == (interpolation, mode));
        let reached = here.filter(|auto| auto.up_to_size.is_none()).filter_map(|auto| auto.up_to).max();
        profile.auto.extend(few.filter(|auto| auto.up_to > reached));
    }
    // measurements of kernels that were removed or measured again are dropped
    let sides = [&outcome.tuned, &outcome.shipped];
    let stale = |m: &MeasuredSpeed| {
        sides.iter().any(|side| {
            (m.interpolation, m.mode, m.slices) == (interpolation, mode, side.offer.slices)
                && m.algorithm == side.offer.parameters.algorithm()
        })
    };
    profile.measured.retain(|m| !stale(m));
    let count = if outcome.is_gain() { 2 } else { 1 };
    let measured = sides.into_iter().take(count).filter_map(|side| {
        Some(MeasuredSpeed {
            device: run.facts.name.clone(),
            driver: run.facts.driver.clone(),
            date: run.date.to_owned(),
            algorithm: side.offer.parameters.algorithm(),
            interpolation,
            mode,
            slices: side.offer.slices,
            key: Some(side.key.clone()),
            problem: run.problem.map(|n| n as u32),
            gu_per_s: side.speed?,
            error: Some(side.error?),
            source: None,
        })
    });
    profile.measured.extend(measured);
}

/// Returns the number of slices up to which the shipped kernel is faster, if another family replaces it that always
/// computes more slices.
fn up_to(outcome: &Outcome) -> Option<u32> {
    let (shipped, tuned) = (&outcome.shipped.offer, &outcome.tuned.offer);
    if shipped.parameters.algorithm() == tuned.parameters.algorithm() || tuned.slices <= shipped.slices {
        return None;
    }
    let most = (f64::from(tuned.slices) / outcome.gain()?) as u32;
    (1..tuned.slices).contains(&most).then_some(most)
}

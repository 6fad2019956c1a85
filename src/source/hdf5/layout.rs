//! Locations of a scan's datasets in a file.

use super::datasets::{shape, stored};
use super::errors::{Hdf5LinkError, Hdf5Result};
use super::links::{self, exists};
use super::text::text;
use super::{Hdf5Input, NOTHING};
use crate::error::messages;
use hdf5_metno::types::TypeDescriptor as Kind;
use hdf5_metno::{Dataset, File, Group, LocationType};
use std::collections::HashSet;

messages! {
    /// Why the datasets of a scan are not found in a file.
    enum Hdf5LayoutError: Input {
        NoSuchDataset { flag: &'static str, path: String, found: String } =>
            "{flag} {path}: there is no such dataset"; "choose one of {found}",
        /// The file has no datasets that could be named instead.
        NoDatasetAtAll { flag: &'static str, path: String } =>
            "{flag} {path}: there is no such dataset";
            "choose another file, this one contains no datasets of three dimensions",
        NoScan { found: String } =>
            "contains neither /exchange/data (Data Exchange) nor frames with an image_key beside them (NXtomo)";
            "name the datasets with --hdf5-data, --hdf5-flats, --hdf5-darks and --hdf5-angles; choose one of {found}",
        NoFrames =>
            "contains neither /exchange/data (Data Exchange) nor frames with an image_key beside them (NXtomo)";
            "name the datasets with --hdf5-data, --hdf5-flats, --hdf5-darks and --hdf5-angles; choose another file, \
             this one contains no datasets of three dimensions",
        SeveralScans { count: usize, scans: String } =>
            "contains {count} scans"; "choose one with --hdf5-data: {scans}",
    }
}

/// Path of NXtomo's detector in an entry.
const NX_DETECTOR: &str = "instrument/detector";
/// Path of NXtomo's frames in an entry.
const NX_DATA: &str = "instrument/detector/data";
/// Names of datasets of keys; the first one also marks projections that were taken again.
const KEYS: [&str; 2] = ["image_key_control", "image_key"];
/// Depth of the groups that are searched for a scan.
const ENTRY_DEPTH: usize = 4;
/// Depth of the groups that are searched for any dataset.
const DEPTH: usize = 8;
/// Largest number of groups that are searched, as links may be circular.
const GROUPS: usize = 4096;
/// Largest number of datasets that a message lists.
const NAMED: usize = 24;

/// Paths of the datasets of a scan.
#[derive(Debug)]
pub(super) struct Layout {
    pub data: String,
    /// Path of NXtomo's `image_key`.
    pub keys: Option<String>,
    pub flats: Option<String>,
    pub darks: Option<String>,
    pub angles: Option<String>,
    /// Path of the pixel size at the sample, if there is one, else of that of the detector.
    pub pixel_size: Option<String>,
}

impl Layout {
    /// Returns the common name of the layout.
    pub fn name(&self) -> &'static str {
        match (&self.keys, self.data.starts_with("/exchange/")) {
            (Some(_), _) => "NXtomo",
            (None, true) => "Data Exchange",
            (None, false) => "by hand",
        }
    }

    /// Locates datasets that are not given; the layout is recognised by the datasets next to the data.
    pub fn find(file: &File, given: &Hdf5Input) -> Hdf5Result<Layout> {
        let data = match &given.data {
            Some(path) => absolute(path),
            None => find_data(file)?,
        };
        let group = data.rsplit_once('/').map_or("", |(group, _)| group);
        let there = |path: String| exists(file, &path).then_some(path);
        let beside = |name: &str| there(format!("{group}/{name}"));
        let pick = |given: &Option<String>, found: Option<String>| match given.as_deref() {
            Some(NOTHING) => None,
            Some(path) => Some(absolute(path)),
            None => found,
        };
        let keys = pick(&given.keys, KEYS.iter().find_map(|name| beside(name)));
        let angles = match keys {
            Some(_) => nx_angles(group, &there),
            None => beside("theta").or_else(|| nx_angles(group, &there)),
        };
        let layout = Layout {
            flats: pick(&given.flats, beside("data_white").filter(|_| keys.is_none())),
            darks: pick(&given.darks, beside("data_dark").filter(|_| keys.is_none())),
            angles: pick(&given.angles, angles),
            pixel_size: keys
                .as_ref()
                .and_then(|_| of_sample(group, "x_pixel_size", &there).or_else(|| beside("x_pixel_size"))),
            keys,
            data,
        };
        for (path, flag) in [
            (Some(&layout.data), "--hdf5-data"),
            (layout.flats.as_ref(), "--hdf5-flats"),
            (layout.darks.as_ref(), "--hdf5-darks"),
            (layout.angles.as_ref(), "--hdf5-angles"),
            (layout.keys.as_ref(), "--hdf5-keys"),
        ] {
            if let Some(path) = path
                && !exists(file, path)
            {
                let path = path.clone();
                return Err(match listed(file) {
                    Some(found) => Hdf5LayoutError::NoSuchDataset { flag, path, found }.into(),
                    None => Hdf5LayoutError::NoDatasetAtAll { flag, path }.into(),
                });
            }
        }
        Ok(layout)
    }
}

/// Returns the path of NXtomo's angles: `sample/rotation_angle` in a group that contains the group of the frames, the
/// innermost first, or `rotation_angle` next to the frames.
fn nx_angles(group: &str, there: &impl Fn(String) -> Option<String>) -> Option<String> {
    of_sample(group, "rotation_angle", there).or_else(|| there(format!("{group}/rotation_angle")))
}

/// Returns the path of what NXtomo says of the sample, in a group that contains the group of the frames, the innermost
/// first.
fn of_sample(group: &str, name: &str, there: &impl Fn(String) -> Option<String>) -> Option<String> {
    let mut around = group.match_indices('/').map(|(at, _)| &group[..at]).rev();
    around.find_map(|outer| there(format!("{outer}/sample/{name}")))
}

fn absolute(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}

/// Returns the path of the data of the only scan in a known layout.
fn find_data(file: &File) -> Hdf5Result<String> {
    if exists(file, "/exchange/data") {
        return Ok("/exchange/data".into());
    }
    let mut entries = Vec::new();
    let mut refused = visit(file, ENTRY_DEPTH, &mut |path, group| {
        if exists(group, NX_DATA) && KEYS.iter().any(|key| exists(group, &format!("{NX_DETECTOR}/{key}"))) {
            let defined =
                links::dataset(group, "definition").ok().and_then(|d| text(&d)).is_some_and(|d| d == "NXtomo");
            entries.push((format!("{path}/{NX_DATA}"), defined));
        }
    });
    if entries.iter().filter(|(_, defined)| *defined).count() == 1 {
        entries.retain(|(_, defined)| *defined);
    }
    if entries.is_empty() {
        entries = with_keys(file, &mut refused).into_iter().map(|path| (path, false)).collect();
    }
    match entries.as_slice() {
        [(data, _)] => Ok(data.clone()),
        // the scan may be in the file that was refused
        [] => match refused {
            Some(error) => Err(error.into()),
            None => {
                Err(listed(file).map_or(Hdf5LayoutError::NoFrames, |found| Hdf5LayoutError::NoScan { found }).into())
            }
        },
        several => {
            let scans = several.iter().take(NAMED).map(|(data, _)| data.as_str()).collect::<Vec<_>>().join(", ");
            Err(Hdf5LayoutError::SeveralScans { count: several.len(), scans }.into())
        }
    }
}

/// Returns the datasets of three dimensions in groups that contain keys, each once, however many links lead to it. Sets
/// `refused` to the reason why one of them may not be opened.
fn with_keys(file: &File, refused: &mut Option<Hdf5LinkError>) -> Vec<String> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    visit(file, ENTRY_DEPTH, &mut |path, group| {
        if !KEYS.iter().any(|key| group.link_exists(key)) {
            return;
        }
        for name in group.member_names().unwrap_or_default() {
            let dataset = match links::open_dataset(group, &name) {
                Ok(Ok(dataset)) => dataset,
                Ok(Err(_)) => continue,
                Err(why) => {
                    refused.get_or_insert(why);
                    continue;
                }
            };
            let place = (dataset.filename(), vds_sys::header_address(&dataset));
            if dataset.ndim() == 3 && seen.insert(place) {
                found.push(format!("{path}/{name}"));
            }
        }
    });
    found
}

/// Reports whether a dataset is a list of two or more numbers.
pub(super) fn is_list(dataset: &Dataset) -> bool {
    let kind = dataset.dtype().and_then(|kind| kind.to_descriptor());
    let numbers = matches!(kind, Ok(Kind::Integer(_) | Kind::Unsigned(_) | Kind::Float(_)));
    dataset.ndim() == 1 && dataset.size() > 1 && numbers
}

/// Returns the paths of some lists of numbers whose length satisfies `of`.
pub(super) fn lists(file: &File, of: impl Fn(usize) -> bool) -> Vec<String> {
    let found = chosen(file, |dataset| is_list(dataset) && of(dataset.size()));
    let paths = found.into_iter().map(|(path, _)| path);
    let is_keys = |path: &String| KEYS.iter().any(|key| path.ends_with(&format!("/{key}")));
    paths.filter(|path| !is_keys(path)).take(NAMED).collect()
}

/// Returns a list of datasets for messages about a dataset that was not found, if there are any.
fn listed(file: &File) -> Option<String> {
    let mut found = datasets(file, |dataset| dataset.ndim() == 3);
    let more = if found.len() > NAMED { ", .." } else { "" };
    found.truncate(NAMED);
    (!found.is_empty()).then(|| found.join(", ") + more)
}

/// Describes name, shape, type and storage of all datasets that `which` selects.
pub(super) fn datasets(file: &File, which: impl Fn(&Dataset) -> bool) -> Vec<String> {
    let text = |(path, dataset): (String, Dataset)| format!("{path} {} {}", shape(&dataset), stored(&dataset));
    chosen(file, which).into_iter().map(text).collect()
}

/// Returns the datasets that `which` selects, with their paths.
fn chosen(file: &File, which: impl Fn(&Dataset) -> bool) -> Vec<(String, Dataset)> {
    let mut found = Vec::new();
    visit(file, DEPTH, &mut |path, group| {
        for name in group.member_names().unwrap_or_default() {
            if let Ok(Some(LocationType::Dataset)) = links::kind(group, &name)
                && let Ok(dataset) = links::dataset(group, &name)
                && which(&dataset)
            {
                found.push((format!("{path}/{name}"), dataset));
            }
        }
    });
    found
}

/// Calls `look` with every group and its path, which is empty for the root. Broken links are skipped.
///
/// Links to something other than a regular file are skipped as well; the error about the first one is returned.
fn visit(file: &File, depth: usize, look: &mut impl FnMut(&str, &Group)) -> Option<Hdf5LinkError> {
    let mut refused = None;
    let root = file.as_group().ok()?;
    let mut open = vec![(String::new(), root, depth)];
    let mut visited = 0;
    while let Some((path, group, depth)) = open.pop() {
        visited += 1;
        look(&path, &group);
        if depth == 0 {
            continue;
        }
        // the last one is visited first
        for name in group.member_names().unwrap_or_default().into_iter().rev() {
            if visited + open.len() >= GROUPS {
                continue;
            }
            match links::kind(&group, &name) {
                Ok(Some(LocationType::Group)) => {
                    let below = group.group(&name);
                    open.extend(below.ok().map(|below| (format!("{path}/{name}"), below, depth - 1)));
                }
                Ok(_) => {}
                Err(why) => {
                    refused.get_or_insert(why);
                }
            }
        }
    }
    refused
}

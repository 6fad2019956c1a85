//! Sources of profiles: files given by path, the user's directories, and those embedded in the program.

use super::errors::ProfileChoiceError;
use super::{Choice, Profile, auto_keys, choose};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::files::cache_folder;
use crate::visible::Shown;
use std::path::{Path, PathBuf};

/// Shipped profiles as file name and text.
const BUILT_IN: &[(&str, &str)] = &[
    ("amd-cdna.toml", include_str!("../../configs/amd-cdna.toml")),
    ("amd-gcn1.toml", include_str!("../../configs/amd-gcn1.toml")),
    ("amd-gcn2.toml", include_str!("../../configs/amd-gcn2.toml")),
    ("amd-gcn3.toml", include_str!("../../configs/amd-gcn3.toml")),
    ("amd-rdna.toml", include_str!("../../configs/amd-rdna.toml")),
    ("amd-vliw5.toml", include_str!("../../configs/amd-vliw5.toml")),
    ("cpu.toml", include_str!("../../configs/cpu.toml")),
    ("default.toml", include_str!("../../configs/default.toml")),
    ("intel-gpu.toml", include_str!("../../configs/intel-gpu.toml")),
    ("nvidia-fermi.toml", include_str!("../../configs/nvidia-fermi.toml")),
    ("nvidia-gt200.toml", include_str!("../../configs/nvidia-gt200.toml")),
    ("nvidia-hopper.toml", include_str!("../../configs/nvidia-hopper.toml")),
    ("nvidia-kepler-gk104.toml", include_str!("../../configs/nvidia-kepler-gk104.toml")),
    ("nvidia-kepler-gk110.toml", include_str!("../../configs/nvidia-kepler-gk110.toml")),
    ("nvidia-maxwell.toml", include_str!("../../configs/nvidia-maxwell.toml")),
    ("nvidia-turing.toml", include_str!("../../configs/nvidia-turing.toml")),
    ("nvidia-ampere.toml", include_str!("../../configs/nvidia-ampere.toml")),
    ("nvidia-pascal.toml", include_str!("../../configs/nvidia-pascal.toml")),
];

/// Environment variable with further profile directories, separated by `:`.
const PATH_VARIABLE: &str = "FBP_PROFILE_PATH";

/// All known profiles: the user's, then those written by `fbp tune`, then the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct ProfileStore {
    profiles: Vec<Profile>,
    origins: Vec<String>,
    /// Messages on tuned profiles that cannot be read.
    unreadable: Vec<String>,
}

impl ProfileStore {
    /// Loads only the profiles that are part of the program. Tests check them, so that not every run has to.
    pub fn built_in() -> Result<Self> {
        let mut store = ProfileStore::default();
        for (file, text) in BUILT_IN {
            store.add(Profile::read(text, file)?, "built in".to_owned());
        }
        Ok(store)
    }

    /// Loads the user's profiles (directories of `FBP_PROFILE_PATH`, then `fbp/profiles` in the configuration
    /// directory), then those that `fbp tune` wrote to the cache directory, then the built-in ones.
    ///
    /// # Errors
    /// A malformed file in one of the user's directories, which is reported and never skipped.
    pub fn load() -> Result<Self> {
        let mut store = ProfileStore::default();
        for directory in user_directories() {
            for file in profile_files(&directory) {
                store.add(read_profile(&file)?, file.shown().to_string());
            }
        }
        for file in tuned_directory().iter().flat_map(|directory| profile_files(directory)) {
            match read_profile(&file) {
                Ok(profile) => store.add(profile, file.shown().to_string()),
                // the file was not written by hand, so it does not stop a run
                Err(error) => store.unreadable.push(format!("{error}; fbp tune writes it again")),
            }
        }
        let built_in = Self::built_in()?;
        store.profiles.extend(built_in.profiles);
        store.origins.extend(built_in.origins);
        Ok(store)
    }

    fn add(&mut self, profile: Profile, origin: String) {
        self.profiles.push(profile);
        self.origins.push(origin);
    }

    /// Returns the profiles with the origin of each.
    pub fn iter(&self) -> impl Iterator<Item = (&Profile, &str)> {
        self.profiles.iter().zip(self.origins.iter().map(String::as_str))
    }

    /// Returns a profile by name, or by path if `selector` looks like a file (ends in `.toml` or contains a `/`).
    pub fn named(&self, selector: &str) -> Result<Profile> {
        if selector.ends_with(".toml") || selector.contains('/') {
            return read_profile(Path::new(selector));
        }
        self.profiles.iter().find(|p| p.name == selector).cloned().ok_or_else(|| {
            let names: Vec<&str> = self.profiles.iter().map(|p| p.name.as_str()).collect();
            ProfileChoiceError::Unknown { selector: selector.to_owned(), names: names.join(", ") }.into()
        })
    }

    /// Returns the profile for a device: `None` or `auto` as `selector` matches by the device's properties. Profiles of
    /// `fbp tune` are only used for the device, driver and kernels that they were tuned with.
    pub fn for_device(&self, selector: Option<&str>, facts: &DeviceFacts) -> Result<Choice> {
        if let Some(name) = selector.filter(|name| *name != "auto") {
            return Ok(Choice { profile: self.named(name)?, reason: format!("--profile {name}"), notes: Vec::new() });
        }
        let (mut fitting, mut stale) = (Vec::new(), self.unreadable.clone());
        for (profile, origin) in self.iter() {
            match &profile.tuned {
                Some(tuned) if tuned.device != facts.name => {}
                Some(tuned) => match tuned.stale(facts, &auto_keys(profile, facts)?) {
                    None => fitting.push(profile),
                    Some(why) => stale.push(format!("{origin} is not used: {why}; run fbp tune again")),
                },
                None => fitting.push(profile),
            }
        }
        let mut choice =
            choose(fitting, facts).ok_or_else(|| Error::profile("default", ProfileChoiceError::NoneMatches))?;
        match &choice.profile.tuned {
            Some(tuned) => choice.reason = format!("tuned on this device {}", tuned.date),
            None => choice.notes = stale,
        }
        Ok(choice)
    }

    /// Returns the profile for a device without considering those of `fbp tune`: the starting point of tuning.
    pub fn untuned_for_device(&self, selector: Option<&str>, facts: &DeviceFacts) -> Result<Choice> {
        let mut store = ProfileStore::default();
        for (profile, origin) in self.iter().filter(|(profile, _)| profile.tuned.is_none()) {
            store.add(profile.clone(), origin.to_owned());
        }
        match selector {
            None | Some("auto") => store.for_device(None, facts),
            name => self.for_device(name, facts),
        }
    }
}

/// Returns the files of a directory that may be profiles, sorted by name; none if there is no such directory.
fn profile_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

/// Folder of tuned profiles in the cache directory.
pub const TUNED: &str = "tuned";

/// Returns the directory to which `fbp tune` writes profiles; `None` if there is no cache directory, or others may
/// write to it.
pub fn tuned_directory() -> Option<PathBuf> {
    cache_folder(TUNED)
}

/// Reads one profile file.
///
/// # Errors
/// [`Error::Profile`] with the name of the file.
pub fn read_profile(path: &Path) -> Result<Profile> {
    let name = path.shown().to_string();
    let unreadable = |error: String| Error::profile(&name, ProfileChoiceError::Unreadable { error });
    let text = crate::files::read_text(path).map_err(|e| unreadable(e.to_string()))?;
    Profile::parse(&text, &name)
}

/// Returns the directories that may hold a user's profiles, most important first.
fn user_directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> =
        std::env::var_os(PATH_VARIABLE).map(|paths| std::env::split_paths(&paths).collect()).unwrap_or_default();
    let configuration = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".config")));
    if let Some(configuration) = configuration {
        directories.push(configuration.join("fbp/profiles"));
    }
    directories
}

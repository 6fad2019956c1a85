//! `fbp profiles`: list, print and check device profiles.

use crate::cli::ProfilesAction;
use crate::error::{Error, Result};
use crate::profile::{ProfileStore, read_profile};
use crate::visible::Shown;

/// Runs `fbp profiles list|show|check`.
pub fn profiles(action: &ProfilesAction) -> Result<String> {
    let mut text = String::new();
    match action {
        ProfilesAction::List => {
            for (profile, origin) in ProfileStore::load()?.iter() {
                text += &format!("{:<20}{}  [{origin}]\n", profile.name, profile.title);
            }
        }
        ProfilesAction::Show { profile } => {
            let profile = ProfileStore::load()?.named(profile)?;
            text = toml::to_string_pretty(&profile).map_err(|e| Error::profile(&profile.name, e.to_string()))?;
        }
        ProfilesAction::Check { files } => {
            for file in files {
                let name = file.shown().to_string();
                let profile = read_profile(file)?;
                text += &format!("{name}: profile {}, {} kernels, valid\n", profile.name, profile.offers().len());
            }
        }
    }
    Ok(text)
}

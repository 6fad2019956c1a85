//! `fbp model`: bounds from a profile's rates, without a device.

use super::errors::CommandProfileError;
use crate::cli::ModelArgs;
use crate::error::{Error, Result};
use crate::kernel::Problem;
use crate::measure::{ModelRow, model_of_paper, model_of_profile, model_table, stage_table, table_15};
use crate::profile::ProfileStore;

/// The paper's protocol (2.3): its number of projections, all with the same axis.
const PROBLEM: Problem = Problem::new(2048, true);

/// Runs `fbp model`; returns a table, or JSON.
pub fn model(args: &ModelArgs) -> Result<String> {
    let store = ProfileStore::load()?;
    let (rows, head) = if args.profile.is_empty() { paper(&store) } else { (offered(&store, &args.profile)?, None) };
    if args.json {
        let value = serde_json::to_value(&rows).map_err(|e| Error::Internal(format!("JSON: {e}")))?;
        return Ok(format!("{value:#}\n"));
    }
    let mut text = head.unwrap_or_default() + &model_table(&rows);
    let stages = stage_table(&rows);
    if !stages.is_empty() {
        text += &format!("\nstages of exact interpolation, for each slice of 2048 x 2048 pixels\n{stages}");
    }
    Ok(text)
}

/// Returns the paper's kernel on every device with rates, and a table of its operations.
fn paper(store: &ProfileStore) -> (Vec<ModelRow>, Option<String>) {
    let mut rows = Vec::new();
    for (profile, _) in store.iter() {
        rows.extend(model_of_paper(profile, PROBLEM));
    }
    // the paper's operations are those where the texture unit copies
    let head = rows.iter().find(|row| row.units.texture.is_some()).map(|row| format!("{}\n", table_15(&row.load)));
    (rows, head)
}

/// Returns every kernel of the requested profiles.
fn offered(store: &ProfileStore, names: &[String]) -> Result<Vec<ModelRow>> {
    let mut rows = Vec::new();
    for name in names {
        if name == "all" {
            for (profile, _) in store.iter() {
                rows.extend(model_of_profile(profile, PROBLEM));
            }
            continue;
        }
        let profile = store.named(name)?;
        let own = model_of_profile(&profile, PROBLEM);
        if own.is_empty() {
            return Err(Error::profile(name, CommandProfileError::NoThroughput));
        }
        rows.extend(own);
    }
    Ok(rows)
}

//! `fbp devices`: OpenCL devices, their capabilities, and the profile used for each.

use crate::cli::DevicesArgs;
use crate::device;
use crate::error::Result;
use crate::profile::ProfileStore;
use crate::report::{ProgressKind, Reporter};
use crate::units::human;
use serde_json::json;

/// Runs `fbp devices`; returns a table, or JSON.
pub fn devices(args: &DevicesArgs) -> Result<String> {
    let store = ProfileStore::load()?;
    let reporter = Reporter::new(0, ProgressKind::None, None)?;
    let mut text = String::new();
    let mut list = Vec::new();
    for (index, found) in device::enumerate()?.iter().enumerate() {
        let f = &found.facts;
        let choice = store.for_device(None, f)?;
        for note in &choice.notes {
            reporter.note(&format!("note: {note}"));
        }
        let formats: Vec<String> = f.image_formats.iter().map(|f| f.to_string()).collect();
        list.push(json!({
            "index": index,
            "facts": f,
            "profile": choice.profile.name,
            "profile_reason": choice.reason,
        }));
        text += &format!("{index} ({}:{})  {} [{}]\n", f.platform_index, f.device_index, f.name, f.kind);
        for (what, value) in [
            ("platform", f.platform.clone()),
            ("vendor", format!("{} ({}), architecture {}", f.vendor, f.vendor_word, f.architecture)),
            ("driver", format!("{}, {}, {}", f.driver, f.version, f.c_version)),
            ("compute units", format!("{} at {} MHz", f.compute_units, f.clock_mhz)),
            (
                "memory",
                format!(
                    "{}, largest allocation {}, local {}, constant {}",
                    human(f.global_memory),
                    human(f.max_allocation),
                    human(f.local_memory),
                    human(f.constant_buffer)
                ),
            ),
            ("work-group", format!("up to {}, {:?}", f.max_work_group, f.max_work_items)),
            (
                "images",
                if formats.is_empty() {
                    "none usable".to_owned()
                } else {
                    format!("up to {} x {}: {}", f.image_max[0], f.image_max[1], formats.join(", "))
                },
            ),
            ("profile", format!("{} ({})", choice.profile.name, choice.reason)),
        ] {
            text += &format!("    {what:<15}{value}\n");
        }
    }
    if args.json {
        text = format!("{:#}\n", serde_json::Value::Array(list));
    }
    Ok(text)
}

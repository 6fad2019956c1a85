//! Selection of the profile for a device.

use super::{Match, Profile};
use crate::facts::DeviceFacts;

/// The selected profile, and the reason.
#[derive(Clone, Debug)]
pub struct Choice {
    pub profile: Profile,
    /// Reason in one line for display, such as `architecture is hopper`.
    pub reason: String,
    /// Notes for the user on profiles that were left out.
    pub notes: Vec<String>,
}

impl Match {
    /// Returns the rank of the rule by specificity, and the reason why it matches the device; `None` if a condition
    /// fails.
    fn explain(&self, facts: &DeviceFacts) -> Option<(u8, String)> {
        let mut reasons = Vec::new();
        let mut rank = 0;
        if !self.device.is_empty() {
            let name = facts.name.to_lowercase();
            let part = self.device.iter().find(|part| name.contains(&part.to_lowercase()))?;
            reasons.push(format!("name contains `{part}`"));
            rank |= 8;
        }
        if !self.architecture.is_empty() {
            let word = self.architecture.iter().find(|a| **a == facts.architecture)?;
            reasons.push(format!("architecture is {word}"));
            rank |= 4;
        }
        if !self.vendor.is_empty() {
            let word = self.vendor.iter().find(|v| **v == facts.vendor_word)?;
            reasons.push(format!("vendor is {word}"));
            rank |= 2;
        }
        if !self.kind.is_empty() {
            let kind = self.kind.iter().find(|k| **k == facts.kind)?;
            reasons.push(format!("type is {kind}"));
            rank |= 1;
        }
        if reasons.is_empty() {
            reasons.push("it matches every device".to_owned());
        }
        Some((rank, reasons.join(" and ")))
    }
}

/// Chooses the profile for a device. A rule by name wins over architecture, which wins over vendor, which wins over
/// type; a profile without conditions comes last. Among equals the first in `profiles` wins (a user's profiles come
/// before the built-in ones).
///
/// Returns `None` only if no profile of the list matches; the built-in default matches everything.
pub fn choose<'a>(profiles: impl IntoIterator<Item = &'a Profile>, facts: &DeviceFacts) -> Option<Choice> {
    let mut best: Option<(u8, Choice)> = None;
    for profile in profiles {
        if let Some((rank, reason)) = profile.r#match.explain(facts)
            && best.as_ref().is_none_or(|(top, _)| rank > *top)
        {
            let profile = profile.clone();
            best = Some((rank, Choice { profile, reason, notes: Vec::new() }));
        }
    }
    best.map(|(_, choice)| choice)
}

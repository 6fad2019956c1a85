//! The architecture of a device, from the properties that its driver reports. Profiles match these names.

/// Architectures of NVIDIA devices by compute capability: major version, range of minor versions, name.
const COMPUTE_CAPABILITIES: &[(u32, u32, u32, &str)] = &[
    (1, 0, 9, "gt200"),
    (2, 0, 9, "fermi"),
    (3, 0, 4, "kepler-gk104"),
    (3, 5, 9, "kepler-gk110"),
    (5, 0, 9, "maxwell"),
    (6, 0, 9, "pascal"),
    (7, 0, 4, "volta"),
    (7, 5, 9, "turing"),
    (8, 0, 8, "ampere"),
    (8, 9, 9, "ada"),
    (9, 0, 9, "hopper"),
    (10, 0, 9, "blackwell"),
    (12, 0, 9, "blackwell"),
];

/// Architectures of AMD devices by device name (the chip's code name or gfx number); the longest matching prefix wins.
const AMD_CHIPS: &[(&str, &str)] = &[
    ("cypress", "vliw5"),
    ("juniper", "vliw5"),
    ("redwood", "vliw5"),
    ("cedar", "vliw5"),
    ("barts", "vliw5"),
    ("turks", "vliw5"),
    ("caicos", "vliw5"),
    ("cayman", "vliw4"),
    ("devastator", "vliw4"),
    ("tahiti", "gcn1"),
    ("pitcairn", "gcn1"),
    ("capeverde", "gcn1"),
    ("oland", "gcn1"),
    ("gfx6", "gcn1"),
    ("bonaire", "gcn2"),
    ("hawaii", "gcn2"),
    ("gfx7", "gcn2"),
    ("tonga", "gcn3"),
    ("fiji", "gcn3"),
    ("ellesmere", "gcn4"),
    ("baffin", "gcn4"),
    ("gfx8", "gcn3"),
    ("gfx803", "gcn4"),
    ("gfx9", "gcn5"),
    ("gfx908", "cdna"),
    ("gfx90a", "cdna"),
    ("gfx94", "cdna"),
    ("gfx95", "cdna"),
    ("gfx10", "rdna"),
    ("gfx11", "rdna"),
    ("gfx12", "rdna"),
];

/// Returns the architecture of an NVIDIA device with this compute capability.
pub fn of_compute_capability(major: u32, minor: u32) -> Option<&'static str> {
    COMPUTE_CAPABILITIES
        .iter()
        .find(|(m, from, to, _)| *m == major && (*from..=*to).contains(&minor))
        .map(|entry| entry.3)
}

/// Returns the architecture of an AMD device with this OpenCL name (`Tahiti`, `gfx90a:sramecc+:xnack-`).
pub fn of_amd_name(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    AMD_CHIPS
        .iter()
        .filter(|(prefix, _)| name.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|entry| entry.1)
}

/// Returns every architecture name that a profile may match.
pub fn words() -> Vec<&'static str> {
    let mut words: Vec<&str> =
        COMPUTE_CAPABILITIES.iter().map(|entry| entry.3).chain(AMD_CHIPS.iter().map(|entry| entry.1)).collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_of_the_paper() {
        for (name, architecture) in [("Cypress", "vliw5"), ("Tahiti", "gcn1"), ("Hawaii", "gcn2")] {
            assert_eq!(of_amd_name(name), Some(architecture));
        }
        assert_eq!(of_amd_name("gfx90a:sramecc+:xnack-"), Some("cdna"));
        assert_eq!(of_amd_name("gfx906"), Some("gcn5"));
        for (capability, architecture) in [
            ((1, 3), "gt200"),
            ((2, 0), "fermi"),
            ((3, 0), "kepler-gk104"),
            ((3, 5), "kepler-gk110"),
            ((5, 2), "maxwell"),
            ((6, 1), "pascal"),
            ((9, 0), "hopper"),
        ] {
            assert_eq!(of_compute_capability(capability.0, capability.1), Some(architecture));
        }
        assert_eq!(of_compute_capability(99, 0), None);
    }
}

//! Selection of devices.

use super::FoundDevice;
use super::errors::{DeviceChoiceError, NoDeviceError};
use crate::error::Result;
use crate::facts::{DeviceFacts, DeviceKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The choice of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceSelector {
    /// The best GPU, else an accelerator, else a CPU.
    #[default]
    Best,
    /// The device at a position in the list of all devices.
    Index(usize),
    /// The device at a position in a platform.
    PlatformDevice(usize, usize),
    Kind(DeviceKind),
    /// The device whose name, or that of its platform, contains this text, in any case.
    Name(String),
}

impl fmt::Display for DeviceSelector {
    /// Formats the selector as it is written on the command line.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DeviceSelector::Best => f.write_str("the default"),
            DeviceSelector::Index(index) => write!(f, "{index}"),
            DeviceSelector::PlatformDevice(platform, device) => write!(f, "{platform}:{device}"),
            DeviceSelector::Kind(kind) => write!(f, "{kind}"),
            DeviceSelector::Name(part) => write!(f, "`{part}`"),
        }
    }
}

impl DeviceSelector {
    /// Reads `0`, `0:1`, `gpu`, `cpu`, `accelerator` or part of a name.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Err(DeviceChoiceError::Empty.into());
        }
        if let Ok(index) = text.parse() {
            return Ok(DeviceSelector::Index(index));
        }
        if let Some((platform, device)) = text.split_once(':')
            && let (Ok(platform), Ok(device)) = (platform.parse(), device.parse())
        {
            return Ok(DeviceSelector::PlatformDevice(platform, device));
        }
        Ok(match text {
            "gpu" => DeviceSelector::Kind(DeviceKind::Gpu),
            "cpu" => DeviceSelector::Kind(DeviceKind::Cpu),
            "accelerator" => DeviceSelector::Kind(DeviceKind::Accelerator),
            name => DeviceSelector::Name(name.to_owned()),
        })
    }

    /// Returns the index of the selected device in `facts` (in listing order).
    ///
    /// # Errors
    /// A device error that lists the available devices.
    pub fn select(&self, facts: &[&DeviceFacts]) -> Result<usize> {
        let strength = |f: &DeviceFacts| u64::from(f.compute_units) * u64::from(f.clock_mhz.max(1));
        let strongest = |kind: DeviceKind| {
            facts
                .iter()
                .enumerate()
                .filter(|(_, f)| f.kind == kind)
                .max_by(|a, b| strength(a.1).cmp(&strength(b.1)).then(b.0.cmp(&a.0)))
                .map(|(index, _)| index)
        };
        let found = match self {
            DeviceSelector::Best => strongest(DeviceKind::Gpu)
                .or_else(|| strongest(DeviceKind::Accelerator))
                .or_else(|| strongest(DeviceKind::Cpu)),
            DeviceSelector::Index(index) => Some(*index).filter(|i| *i < facts.len()),
            DeviceSelector::PlatformDevice(platform, device) => {
                facts.iter().position(|f| f.platform_index == *platform && f.device_index == *device)
            }
            DeviceSelector::Kind(kind) => strongest(*kind),
            DeviceSelector::Name(part) => {
                let part = part.to_lowercase();
                let named = |f: &&DeviceFacts| f.name.to_lowercase().contains(&part);
                let on_platform = |f: &&DeviceFacts| f.platform.to_lowercase().contains(&part);
                facts.iter().position(named).or_else(|| facts.iter().position(on_platform))
            }
        };
        found.ok_or_else(|| {
            let list: Vec<String> = facts
                .iter()
                .enumerate()
                .map(|(i, f)| format!("  {i} ({}:{})  {} [{}]", f.platform_index, f.device_index, f.name, f.kind))
                .collect();
            NoDeviceError::NoneMatches { selector: self.to_string(), list: list.join("\n") }.into()
        })
    }
}

/// The devices of a run, as `--device` lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceList(Vec<DeviceEntry>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DeviceEntry {
    /// Selector of the device; `None` selects every GPU and accelerator, and one processor.
    device: Option<DeviceSelector>,
    /// Number of equal parts that the device is divided into.
    parts: usize,
}

impl Default for DeviceList {
    fn default() -> Self {
        DeviceList(vec![DeviceEntry { device: Some(DeviceSelector::Best), parts: 1 }])
    }
}

impl DeviceList {
    /// Reads selectors separated by commas, which may include `all`; `/N` after one divides the device into N parts.
    pub fn parse(text: &str) -> Result<Self> {
        let entry = |item: &str| -> Result<DeviceEntry> {
            let (device, parts) = match item.rsplit_once('/').map(|(device, parts)| (device, parts.trim().parse())) {
                Some((device, Ok(parts))) if parts > 0 => (device, parts),
                Some((_, Ok(_))) => return Err(DeviceChoiceError::NoParts { item: item.to_owned() }.into()),
                _ => (item, 1),
            };
            let device = match device.trim() {
                "all" => None,
                device => Some(DeviceSelector::parse(device)?),
            };
            Ok(DeviceEntry { device, parts })
        };
        text.split(',').map(entry).collect::<Result<_>>().map(DeviceList)
    }

    /// Returns the selected devices, each once.
    ///
    /// # Errors
    /// A device error that lists the available devices; a usage error for a device that is selected twice.
    pub fn select(&self, found: &[FoundDevice]) -> Result<Vec<FoundDevice>> {
        let mut devices = Vec::new();
        for (index, parts) in self.indices(found)? {
            let device = found[index].opened();
            match parts {
                1 => devices.push(device),
                parts => devices.extend(device.parts(parts)?),
            }
        }
        Ok(devices)
    }

    /// Returns the indices of the selected devices in `found`, each with the number of parts that it is divided into.
    pub(super) fn indices(&self, found: &[FoundDevice]) -> Result<Vec<(usize, usize)>> {
        let facts: Vec<_> = found.iter().map(|d| &d.facts).collect();
        let mut chosen: Vec<(usize, usize)> = Vec::new();
        for entry in &self.0 {
            let indices = match &entry.device {
                Some(device) => vec![device.select(&facts)?],
                None => all(&facts),
            };
            for index in indices {
                if chosen.iter().any(|(other, _)| *other == index) {
                    return Err(DeviceChoiceError::NamedTwice { name: facts[index].name.clone() }.into());
                }
                chosen.push((index, entry.parts));
            }
        }
        Ok(chosen)
    }
}

/// Returns the indices of every device that is no processor, and of the best processor: several platforms may offer the
/// same one.
fn all(facts: &[&DeviceFacts]) -> Vec<usize> {
    let cpu = DeviceSelector::Kind(DeviceKind::Cpu).select(facts).ok();
    (0..facts.len()).filter(|&i| facts[i].kind != DeviceKind::Cpu || Some(i) == cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::example;

    #[test]
    fn selectors() {
        assert_eq!(DeviceSelector::parse("2").unwrap(), DeviceSelector::Index(2));
        assert_eq!(DeviceSelector::parse("1:0").unwrap(), DeviceSelector::PlatformDevice(1, 0));
        assert_eq!(DeviceSelector::parse("cpu").unwrap(), DeviceSelector::Kind(DeviceKind::Cpu));
        assert_eq!(DeviceSelector::parse("H200").unwrap(), DeviceSelector::Name("H200".into()));
        assert!(DeviceSelector::parse("  ").is_err());

        let cpu = DeviceFacts { kind: DeviceKind::Cpu, name: "Processor".into(), ..example() };
        let small = DeviceFacts { compute_units: 2, platform_index: 1, ..example() };
        let big =
            DeviceFacts { compute_units: 90, platform_index: 1, device_index: 1, name: "Big".into(), ..example() };
        let all = [&cpu, &small, &big];
        let select = |text: &str| DeviceSelector::parse(text).unwrap().select(&all);
        assert_eq!(DeviceSelector::Best.select(&all).unwrap(), 2);
        assert_eq!(select("1:0").unwrap(), 1);
        assert_eq!(select("cpu").unwrap(), 0);
        assert_eq!(select("proc").unwrap(), 0);
        assert_eq!(DeviceSelector::Best.select(&[&cpu]).unwrap(), 0);
        for missing in ["3", "2:0", "accelerator", "nothing like it"] {
            let message = select(missing).unwrap_err().to_string();
            assert!(message.contains("Big") && message.contains("1:1"), "{message}");
        }
    }

    #[test]
    fn lists() {
        let entry = |device, parts| DeviceEntry { device, parts };
        let list = |text| DeviceList::parse(text).unwrap().0;
        assert_eq!(list("all"), [entry(None, 1)]);
        assert_eq!(list("cpu/2"), [entry(Some(DeviceSelector::Kind(DeviceKind::Cpu)), 2)]);
        assert_eq!(
            list("0:1, H200"),
            [entry(Some(DeviceSelector::PlatformDevice(0, 1)), 1), entry(Some(DeviceSelector::Name("H200".into())), 1)]
        );
        // a slash may belong to a name
        assert_eq!(list("R7/R9"), [entry(Some(DeviceSelector::Name("R7/R9".into())), 1)]);
        for wrong in ["", "0,", "cpu/0"] {
            assert!(DeviceList::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_devices_are_those_that_are_not_the_same() {
        let cpu = DeviceFacts { kind: DeviceKind::Cpu, ..example() };
        let better = DeviceFacts { kind: DeviceKind::Cpu, clock_mhz: 2000, ..example() };
        let gpu = example();
        assert_eq!(all(&[&cpu, &gpu, &better, &gpu]), [1, 2, 3]);
        assert_eq!(all(&[&gpu]), [0]);
    }
}

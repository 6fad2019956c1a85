//! Search for the devices of all drivers, and their properties.

use super::errors::NoDeviceError;
use super::{DeviceList, DeviceSelector, FoundDevice, cl_error};
use crate::error::Result;
use crate::facts::architecture;
use crate::facts::{DeviceFacts, DeviceKind};
use crate::fault;
use opencl3::device::{
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device, get_device_info,
};
use opencl3::error_codes::{CL_DEVICE_NOT_FOUND, ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::platform::get_platforms;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The devices that were found, if they are kept for later runs of the process; empty before the first one.
static KEPT: Mutex<Option<Vec<FoundDevice>>> = Mutex::new(None);

/// Keeps devices from now on, with their contexts and programs, for a process that runs several scans.
pub fn keep_devices() {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Reports whether devices are kept.
pub fn devices_are_kept() -> bool {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// What a [`DeviceSearch`] has found, or will.
static SEARCH: Mutex<Option<SearchState>> = Mutex::new(None);

/// The state of a search.
enum SearchState {
    Searching(JoinHandle<Result<Vec<FoundDevice>>>),
    Devices(Vec<FoundDevice>),
}

/// A search for the devices of a list that runs beside other work. What it finds is kept until it is dropped, with the contexts
/// that sessions leave. Its thread ends before that: a process must not end while drivers start.
#[derive(Debug)]
#[must_use]
pub struct DeviceSearch(());

impl DeviceSearch {
    /// Starts drivers and looks for devices in a thread of its own; [`find`] takes the result.
    pub fn begin(list: &DeviceList) -> DeviceSearch {
        if KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|found| !found.is_empty()) {
            return DeviceSearch(());
        }
        let list = list.clone();
        let search = move || {
            let mut found = list_all()?;
            // whoever asks for them gets the error
            for (index, _) in list.indices(&found).unwrap_or_default() {
                found[index] = found[index].opened();
            }
            Ok(found)
        };
        let thread = Builder::new().spawn(search).ok();
        *SEARCH.lock().unwrap_or_else(PoisonError::into_inner) = thread.map(SearchState::Searching);
        DeviceSearch(())
    }

    /// Returns what the search has found, if there is one; an error once.
    fn result() -> Option<Result<Vec<FoundDevice>>> {
        let mut search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match search.take()? {
            SearchState::Searching(thread) => thread.join().ok()?,
            SearchState::Devices(found) => Ok(found),
        };
        if let Ok(found) = &found {
            *search = Some(SearchState::Devices(found.clone()));
        }
        Some(found)
    }
}

impl Drop for DeviceSearch {
    fn drop(&mut self) {
        drop(DeviceSearch::result());
        *SEARCH.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Returns every device of every platform, in the order of the drivers.
///
/// # Errors
/// A device error that names the packages to install, if there is no loader, no driver or no device.
pub fn enumerate() -> Result<Vec<FoundDevice>> {
    Ok(list_all()?.iter().map(FoundDevice::opened).collect())
}

/// Finds the devices of a list.
///
/// # Errors
/// Those of [`enumerate`] and [`DeviceList::select`].
pub fn find(list: &DeviceList) -> Result<Vec<FoundDevice>> {
    let all = || DeviceSearch::result().unwrap_or_else(list_all);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(found) = &mut *kept else { return list.select(&all()?) };
    if found.is_empty() {
        *found = all()?;
    }
    for (index, _) in list.indices(found)? {
        found[index] = found[index].opened();
    }
    list.select(found)
}

/// Finds the device that `selector` selects.
///
/// # Errors
/// Those of [`enumerate`] and [`DeviceSelector::select`].
pub fn find_one(selector: &DeviceSelector) -> Result<FoundDevice> {
    let devices = list_all()?;
    let facts: Vec<_> = devices.iter().map(|device| &device.facts).collect();
    Ok(devices[selector.select(&facts)?].opened())
}

/// Returns every device, without its image formats.
fn list_all() -> Result<Vec<FoundDevice>> {
    // drivers initialise themselves on the first call, and not all of them do that safely from several threads
    static FIRST_CALL: Mutex<()> = Mutex::new(());
    let _guard = FIRST_CALL.lock().unwrap_or_else(PoisonError::into_inner);
    let platforms = match get_platforms() {
        Err(ClError(DLOPEN_RUNTIME_LOAD_FAILED)) => return Err(NoDeviceError::NoLoader.into()),
        Ok(platforms) if !platforms.is_empty() => platforms,
        _ => return Err(NoDeviceError::NoDriver.into()),
    };
    let mut found = Vec::new();
    let mut platform_names = Vec::new();
    for (platform_index, platform) in platforms.iter().enumerate() {
        let platform_name = platform.name().unwrap_or_else(|e| format!("unnamed platform ({e})"));
        let ids = match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(ids) => ids,
            Err(ClError(CL_DEVICE_NOT_FOUND)) => Vec::new(),
            Err(error) => return Err(cl_error("listing devices", &platform_name, error)),
        };
        for (device_index, id) in ids.into_iter().enumerate() {
            let device = Device::new(id);
            let facts = read_facts(&device, &platform_name, [platform_index, device_index])
                .map_err(|e| cl_error("reading its properties", &platform_name, e))?;
            found.push(FoundDevice { device, facts, part: None, opened: false, context: Arc::default() });
        }
        platform_names.push(platform_name);
    }
    if found.is_empty() {
        return Err(NoDeviceError::NoneOffered { platforms: platform_names.join(", ") }.into());
    }
    Ok(found)
}

/// NVIDIA's queries for the compute capability (extension `cl_nv_device_attribute_query`).
const COMPUTE_CAPABILITY_MAJOR_NV: u32 = 0x4000;
const COMPUTE_CAPABILITY_MINOR_NV: u32 = 0x4001;

fn read_facts(
    device: &Device,
    platform: &str,
    [platform_index, device_index]: [usize; 2],
) -> std::result::Result<DeviceFacts, ClError> {
    let clean = |text: String| text.trim().to_owned();
    let name = clean(device.name()?);
    let vendor = clean(device.vendor()?);
    let kind = match device.dev_type()? {
        t if t & CL_DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
        t if t & CL_DEVICE_TYPE_ACCELERATOR != 0 => DeviceKind::Accelerator,
        t if t & CL_DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
        _ => DeviceKind::Accelerator,
    };
    let vendor_word = vendor_word(device.vendor_id()?, &vendor, kind);
    let extensions: Vec<String> =
        device.extensions().unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    let architecture = match vendor_word.as_str() {
        "nvidia" => {
            let query = |what| get_device_info(device.id(), what).map(|value| value.to_uint());
            match (query(COMPUTE_CAPABILITY_MAJOR_NV), query(COMPUTE_CAPABILITY_MINOR_NV)) {
                (Ok(major), Ok(minor)) => architecture::of_compute_capability(major, minor),
                _ => None,
            }
        }
        "amd" => architecture::of_amd_name(&name),
        _ => None,
    };
    let c_version = clean(device.opencl_c_version().unwrap_or_default());
    // OpenCL 3.0 lists versions; before it, the one that is reported includes those below it
    let accepts_opencl_c_2 = match device.opencl_c_all_versions() {
        Ok(versions) if !versions.is_empty() => versions.iter().any(|v| v.version >> 22 == 2),
        _ => c_version.starts_with("OpenCL C 2."),
    };
    Ok(DeviceFacts {
        platform_index,
        device_index,
        platform: platform.trim().to_owned(),
        name,
        vendor,
        vendor_word,
        architecture: architecture.unwrap_or("unknown").to_owned(),
        kind,
        driver: clean(device.driver_version()?) + &fault::mark(),
        version: clean(device.version()?),
        c_version,
        accepts_opencl_c_2,
        compute_units: device.max_compute_units()?,
        clock_mhz: device.max_clock_frequency().unwrap_or(0),
        max_work_group: device.max_work_group_size()?,
        max_work_items: device.max_work_item_sizes()?,
        local_memory: device.local_mem_size()?,
        constant_buffer: device.max_constant_buffer_size()?,
        global_memory: device.global_mem_size()?,
        max_allocation: device.max_mem_alloc_size()?,
        images: device.image_support().unwrap_or(false),
        image_max: [device.image2d_max_width().unwrap_or(0), device.image2d_max_height().unwrap_or(0)],
        image_formats: Vec::new(),
        extensions,
    })
}

/// Returns the vendor word that profiles match, from the PCI vendor number or the name of the vendor. For processors
/// only the name counts, as PoCL reports those of AMD with Intel's number.
fn vendor_word(id: u32, vendor: &str, kind: DeviceKind) -> String {
    match id {
        _ if kind == DeviceKind::Cpu => {}
        0x10de => return "nvidia".into(),
        0x1002 if kind == DeviceKind::Gpu => return "amd".into(),
        0x8086 => return "intel".into(),
        _ => {}
    }
    let lower = vendor.to_lowercase();
    for word in ["nvidia", "intel", "amd"] {
        if lower.contains(word) || (word == "amd" && lower.contains("advanced micro devices")) {
            return word.into();
        }
    }
    lower.split_whitespace().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors() {
        assert_eq!(vendor_word(0x10de, "NVIDIA Corporation", DeviceKind::Gpu), "nvidia");
        assert_eq!(vendor_word(7, "Advanced Micro Devices, Inc.", DeviceKind::Gpu), "amd");
        assert_eq!(vendor_word(0x8086, "GenuineIntel", DeviceKind::Cpu), "intel");
        assert_eq!(vendor_word(0x8086, "AuthenticAMD", DeviceKind::Cpu), "amd");
        assert_eq!(vendor_word(0x8086, "Intel(R) Corporation", DeviceKind::Gpu), "intel");
        assert_eq!(vendor_word(7, "Mesa/X.org", DeviceKind::Gpu), "mesa/x.org");
    }
}

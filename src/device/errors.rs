//! Errors of finding and choosing devices, of their drivers, and of memory for them.

use crate::error::{Error, messages};
use opencl3::error_codes::{CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, ClError};

/// What to install when a part of the OpenCL stack is missing, and how to check it.
pub const PACKAGES: &str =
    "  any processor   Debian/Ubuntu: apt-get install ocl-icd-libopencl1 pocl-opencl-icd libclfft2
                  Fedora:        dnf install ocl-icd pocl clfft
                  openSUSE:      zypper install libOpenCL1 pocl clFFT
  NVIDIA GPU      the NVIDIA driver with its OpenCL part (nvidia-opencl-icd)
  AMD GPU         rocm-opencl-runtime or mesa-opencl-icd
  Intel GPU       intel-opencl-icd
then check with: fbp devices";

messages! {
    /// Errors of `--device`.
    pub(super) enum DeviceChoiceError: Usage {
        Empty => "--device: empty"; "give an index (0), platform:device (0:1), gpu, cpu or part of a name",
        NoParts { item: String } => "--device: {item}: 0 parts"; "give 1 or more",
        TooManyParts { name: String, units: u32, parts: usize } =>
            "--device: {name} has only {units} compute units, too few for {parts} parts"; "give a smaller number",
        NamedTwice { name: String } =>
            "--device: {name} is named twice"; "name it once, or give {name}/2 for two halves",
    }
}

messages! {
    /// Why there is no device.
    pub(super) enum NoDeviceError: Device {
        NoLoader =>
            "no OpenCL loader (libOpenCL.so.1) on this machine"; "install an OpenCL driver and loader:\n{PACKAGES}",
        NoDriver =>
            "no OpenCL driver on this machine: the loader knows no platform";
            "install an OpenCL driver and loader:\n{PACKAGES}",
        NoneOffered { platforms: String } =>
            "no OpenCL device: platform(s) {platforms} offer none"; "install an OpenCL driver and loader:\n{PACKAGES}",
        NoneMatches { selector: String, list: String } =>
            "--device: no device matches {selector}"; "choose one of\n{list}",
    }
}

messages! {
    /// Errors of drivers and devices.
    pub(super) enum DriverError: Device {
        Failed { device: String, what: String, error: String, code: i32 } =>
            "{device}: {what}: {error} (OpenCL error {code})";
            "check the device with fbp doctor, or choose another --device",
        NotMapped { device: String, what: String } =>
            "{device}: {what} cannot be mapped"; "check the device with fbp doctor, or choose another --device",
    }
}

messages! {
    /// For what memory is too little.
    pub(super) enum DeviceMemoryError: Memory {
        Full { device: String, what: String, error: String, code: i32 } =>
            "{device}: {what}: {error} (OpenCL error {code})"; "give a smaller --device-memory",
        NotAllocated { device: String, bytes: usize, what: String, error: String, code: i32 } =>
            "{device}: allocating {bytes} bytes for {what}: {error} (OpenCL error {code})";
            "give a smaller --device-memory to work in smaller chunks",
        HostFull { bytes: usize } => "the host has no memory for {bytes} bytes"; "give a smaller --memory",
        NoThread { error: String } =>
            "cannot start a thread that makes memory: {error}"; "allow more threads (ulimit -u)",
    }
}

/// Returns the error for a driver's error: what was tried, on which device, and the name of the code.
pub(crate) fn cl_error(what: &str, device: &str, error: ClError) -> Error {
    let code = error.0;
    let (device, what, error) = (device.to_owned(), what.to_owned(), error.to_string());
    // many drivers allocate a buffer when it is first used
    match [CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY].contains(&code) {
        true => DeviceMemoryError::Full { device, what, error, code }.into(),
        false => DriverError::Failed { device, what, error, code }.into(),
    }
}

//! Errors of transforms on a device.

use crate::device::PACKAGES;
use crate::error::messages;

messages! {
    /// Errors of clFFT.
    pub(super) enum ClFftError: Device {
        NotLoadable { reason: String } =>
            "clFFT cannot be loaded: {reason}"; "install an OpenCL driver and loader:\n{PACKAGES}",
        NotLoaded { device: String } =>
            "{device}: clFFT is not loaded"; "check the device with fbp doctor, or choose another --device",
        Length { length: usize } =>
            "clFFT cannot transform rows of {length}, which has prime factors other than 2, 3, 5, 7, 11, 13";
            "choose another --profile",
        Failed { device: String, call: &'static str, status: String } =>
            "{device}: clFFT {call}: {status}"; "check the device with fbp doctor, or choose another --device",
        NotBaked { device: String, step: &'static str, status: String, batch: usize, sides: Vec<usize> } =>
            "{device}: clFFT {step}: {status} for {batch} arrays of {sides:?}";
            "check the device with fbp doctor, or choose another --device",
    }
}

messages! {
    /// Transforms and filters that a device computes incorrectly.
    pub(super) enum WrongFilterError: Device {
        Transform { device: String, length: usize } =>
            "{device}: wrong values for transformed rows of {length}";
            "check the device with fbp doctor, or choose another --device",
        Fused { device: String, length: usize } =>
            "{device}: the fused filter gives wrong values for rows of {length}";
            "check the device with fbp doctor, or choose another --device",
    }
}

//! Conversion of errors of the OpenCL driver into messages.

use crate::error::Error;
use opencl3::error_codes::{CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, ClError};

/// Returns the message for an OpenCL error: what was tried, on which device, and the name of the code.
pub(crate) fn cl_error(what: &str, device: &str, error: ClError) -> Error {
    let code = error.0;
    // many drivers allocate a buffer when it is first used
    let is_full = [CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY].contains(&code);
    if !is_full {
        return Error::Device(format!(
            "{device}: {what}: {error} (OpenCL error {code}); check the device with fbp doctor, or choose another --device"
        ));
    }
    Error::Memory(format!("{device}: {what}: {error} (OpenCL error {code}); give a smaller --device-memory"))
}

//! Raw bindings to the part of clFFT's C interface that batched, in-place, one-dimensional complex transforms need.
//!
//! The library is opened at run time, not linked: a program that uses this crate starts, prints its help and
//! names the missing package on a machine that has neither clFFT nor an OpenCL loader (clFFT itself links one).
//!
//! Constants and signatures are those of `clFFT.h` 2.12. OpenCL handles are passed as untyped pointers, which
//! is what they are in C, so that any OpenCL binding can be used beside this crate.
//!
//! clFFT keeps one global state and is not safe to call from several threads at once: one thread should own it.

use libloading::{Error, Library};
use std::ffi::c_void;

/// `clfftStatus`: 0 is success, negative values are OpenCL error codes, see [`status_name`].
pub type Status = i32;
/// `clfftPlanHandle`.
pub type PlanHandle = usize;
/// Any OpenCL handle: `cl_context`, `cl_command_queue`, `cl_mem` or `cl_event`.
pub type Handle = *mut c_void;

pub const SUCCESS: Status = 0;
/// `CLFFT_1D`.
pub const ONE_DIMENSION: u32 = 1;
/// `CLFFT_SINGLE`.
pub const SINGLE: u32 = 1;
/// `CLFFT_COMPLEX_INTERLEAVED`.
pub const COMPLEX_INTERLEAVED: u32 = 1;
/// `CLFFT_INPLACE`.
pub const INPLACE: u32 = 1;
/// `CLFFT_FORWARD`.
pub const FORWARD: i32 = -1;
/// `CLFFT_BACKWARD`.
pub const BACKWARD: i32 = 1;

/// Names that distribution builds and clFFT's own build give the shared library, best first.
pub const LIBRARY_NAMES: [&str; 2] = ["libclFFT.so.2", "libclFFT.so"];

/// `clfftSetupData`.
#[repr(C)]
pub struct SetupData {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
    pub debug_flags: u64,
}

macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ident: $kind:ty),* $(,)?);)*) => {
        /// The library's functions, resolved once. They stay valid as long as this value lives.
        #[allow(non_snake_case)]
        pub struct ClFft {
            $(
                #[doc = concat!("`", $symbol, "`")]
                pub $name: unsafe extern "C" fn($($argument: $kind),*) -> Status,
            )*
            _library: Library,
        }

        impl ClFft {
            /// Resolves every function of an opened library.
            fn resolve(library: Library) -> Result<Self, Error> {
                // SAFETY: the signatures are those of clFFT.h.
                unsafe {
                    Ok(ClFft {
                        $($name: *library.get($symbol.as_bytes())?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    setup = "clfftSetup": fn(data: *const SetupData);
    teardown = "clfftTeardown": fn();
    create_default_plan = "clfftCreateDefaultPlan":
        fn(plan: *mut PlanHandle, context: Handle, dimensions: u32, lengths: *const usize);
    destroy_plan = "clfftDestroyPlan": fn(plan: *mut PlanHandle);
    set_plan_precision = "clfftSetPlanPrecision": fn(plan: PlanHandle, precision: u32);
    set_layout = "clfftSetLayout": fn(plan: PlanHandle, input: u32, output: u32);
    set_result_location = "clfftSetResultLocation": fn(plan: PlanHandle, location: u32);
    set_plan_batch_size = "clfftSetPlanBatchSize": fn(plan: PlanHandle, batch: usize);
    set_plan_scale = "clfftSetPlanScale": fn(plan: PlanHandle, direction: i32, scale: f32);
    bake_plan = "clfftBakePlan": fn(
        plan: PlanHandle,
        queues: u32,
        queue: *mut Handle,
        notify: Option<unsafe extern "C" fn(PlanHandle, *mut c_void)>,
        user: *mut c_void,
    );
    get_tmp_buf_size = "clfftGetTmpBufSize": fn(plan: PlanHandle, bytes: *mut usize);
    enqueue_transform = "clfftEnqueueTransform": fn(
        plan: PlanHandle,
        direction: i32,
        queues: u32,
        queue: *mut Handle,
        waits: u32,
        wait_list: *const Handle,
        out_events: *mut Handle,
        input: *mut Handle,
        output: *mut Handle,
        scratch: Handle,
    );
}

impl ClFft {
    /// Opens the system's clFFT.
    ///
    /// # Errors
    /// The loader's message when no library of [`LIBRARY_NAMES`] opens or a function is missing from it.
    pub fn open() -> Result<Self, Error> {
        let mut result = Err(Error::DlOpenUnknown);
        for name in LIBRARY_NAMES {
            // SAFETY: clFFT's initialisers only set up its own static objects.
            result = unsafe { Library::new(name) };
            if result.is_ok() {
                break;
            }
        }
        Self::resolve(result?)
    }
}

/// A name for a status; OpenCL's own codes keep their number.
pub fn status_name(status: Status) -> String {
    let name = match status {
        0 => "success",
        4096 => "CLFFT_BUGCHECK",
        4097 => "CLFFT_NOTIMPLEMENTED",
        4098 => "CLFFT_TRANSPOSED_NOTIMPLEMENTED",
        4099 => "CLFFT_FILE_NOT_FOUND",
        4100 => "CLFFT_FILE_CREATE_FAILURE",
        4101 => "CLFFT_VERSION_MISMATCH",
        4102 => "CLFFT_INVALID_PLAN",
        4103 => "CLFFT_DEVICE_NO_DOUBLE",
        4104 => "CLFFT_DEVICE_MISMATCH",
        code => return format!("OpenCL error {code}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_and_tears_down_where_the_library_is_installed() {
        match ClFft::open() {
            Ok(clfft) => {
                let data = SetupData { major: 2, minor: 12, patch: 2, debug_flags: 0 };
                // SAFETY: one thread, setup before teardown.
                let (setup, teardown) = unsafe { ((clfft.setup)(&data), (clfft.teardown)()) };
                assert_eq!((setup, teardown), (SUCCESS, SUCCESS));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn statuses_have_names() {
        assert_eq!(status_name(4097), "CLFFT_NOTIMPLEMENTED");
        assert_eq!(status_name(-5), "OpenCL error -5");
    }
}

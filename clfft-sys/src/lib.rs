//! Raw bindings to the part of clFFT's C interface that batched, in-place, one-dimensional complex transforms need.
//!
//! The library is opened at run time, not linked: a program that uses this crate starts, prints its help and
//! names the missing package on a machine that has neither clFFT nor an OpenCL loader (clFFT itself links one). With the
//! feature `linked` it is linked.
//!
//! Constants and signatures are those of `clFFT.h` 2.12. OpenCL handles are passed as untyped pointers, which
//! is what they are in C, so that any OpenCL binding can be used beside this crate.
//!
//! clFFT keeps one global state and is not safe to call from several threads at once: one thread should own it.
//!
//! # Example
//!
//! Three rows of 12 values, each lit in one place, and back: the spectrum of such a row has the same magnitude everywhere.
//!
//! ```
//! use clfft_sys as sys;
//! use opencl3::command_queue::CommandQueue;
//! use opencl3::context::Context;
//! use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
//! use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
//! use opencl3::types::CL_BLOCKING;
//! use std::ptr::{null, null_mut};
//!
//! fn check(call: &str, status: sys::Status) -> Result<(), Box<dyn std::error::Error>> {
//!     if status == sys::SUCCESS { Ok(()) } else { Err(format!("{call}: {}", sys::status_name(status)).into()) }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // what is missing is no error of the example
//! let Ok(clfft) = sys::ClFft::open() else { return Ok(()) };
//! let Some(&id) = opencl3::device::get_all_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default().first() else { return Ok(()) };
//! let context = Context::from_device(&Device::new(id))?;
//! # #[allow(deprecated)]
//! let queue = CommandQueue::create_default(&context, 0)?;
//!
//! let (length, rows) = (12, 3);
//! let mut values = vec![[0f32; 2]; length * rows];
//! for row in 0..rows {
//!     values[row * length + row] = [1.0, 0.0];
//! }
//! // SAFETY: sizes are those of the vectors, and one thread calls clFFT, between setup and teardown
//! unsafe {
//!     let mut buffer = Buffer::<[f32; 2]>::create(&context, CL_MEM_READ_WRITE, values.len(), null_mut())?;
//!     queue.enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, &values, &[])?;
//!
//!     check("setup", (clfft.setup)(&sys::SetupData::VERSION))?;
//!     let mut plan = 0;
//!     check("plan", (clfft.create_default_plan)(&mut plan, context.get(), sys::ONE_DIMENSION, &length))?;
//!     check("precision", (clfft.set_plan_precision)(plan, sys::SINGLE))?;
//!     check("layout", (clfft.set_layout)(plan, sys::COMPLEX_INTERLEAVED, sys::COMPLEX_INTERLEAVED))?;
//!     check("location", (clfft.set_result_location)(plan, sys::INPLACE))?;
//!     check("batch", (clfft.set_plan_batch_size)(plan, rows))?;
//!     let mut handle = queue.get();
//!     check("kernels", (clfft.bake_plan)(plan, 1, &mut handle, None, null_mut()))?;
//!
//!     let mut transform = |direction| {
//!         let (mut memory, scratch) = (buffer.get_mut(), null_mut());
//!         let (waits, events) = (null(), null_mut());
//!         (clfft.enqueue_transform)(plan, direction, 1, &mut handle, 0, waits, events, &mut memory, null_mut(), scratch)
//!     };
//!     let mut there = vec![[0f32; 2]; values.len()];
//!     check("forward", transform(sys::FORWARD))?;
//!     queue.enqueue_read_buffer(&buffer, CL_BLOCKING, 0, &mut there, &[])?;
//!     assert!(there.iter().all(|[re, im]| (re.hypot(*im) - 1.0).abs() < 1e-5));
//!
//!     // backward divides by the length unless another scale is set
//!     let (mut memory, mut back) = (buffer.get_mut(), vec![[0f32; 2]; values.len()]);
//!     let status = (clfft.enqueue_transform)(
//!         plan, sys::BACKWARD, 1, &mut handle, 0, null(), null_mut(), &mut memory, null_mut(), null_mut(),
//!     );
//!     check("backward", status)?;
//!     queue.enqueue_read_buffer(&buffer, CL_BLOCKING, 0, &mut back, &[])?;
//!     for (found, wanted) in back.iter().zip(&values) {
//!         assert!((found[0] - wanted[0]).abs() < 1e-5 && (found[1] - wanted[1]).abs() < 1e-5);
//!     }
//!     check("destroy", (clfft.destroy_plan)(&mut plan))?;
//!     check("teardown", (clfft.teardown)())?;
//! }
//! # Ok(())
//! # }
//! ```

#[cfg(not(feature = "linked"))]
use libloading::{Error, Library};
#[cfg(feature = "linked")]
use std::convert::Infallible as Error;
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
/// `CLFFT_2D`.
pub const TWO_DIMENSIONS: u32 = 2;
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

impl SetupData {
    /// The version that these bindings are for, without debugging.
    pub const VERSION: SetupData = SetupData { major: 2, minor: 12, patch: 2, debug_flags: 0 };
}

/// The radices of clFFT's kernels: lengths must be products of these.
pub const RADICES: [usize; 6] = [2, 3, 5, 7, 11, 13];

macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ident: $kind:ty),* $(,)?);)*) => {
        /// The library's functions, resolved once. They stay valid as long as this value lives.
        #[allow(non_snake_case)]
        pub struct ClFft {
            $(
                #[doc = concat!("`", $symbol, "`")]
                pub $name: unsafe extern "C" fn($($argument: $kind),*) -> Status,
            )*
            #[cfg(not(feature = "linked"))]
            _library: Library,
        }

        #[cfg(feature = "linked")]
        mod linked {
            use super::*;

            unsafe extern "C" {
                $(
                    #[link_name = $symbol]
                    pub fn $name($($argument: $kind),*) -> Status;
                )*
            }
        }

        impl ClFft {
            /// The functions that the linker found.
            #[cfg(feature = "linked")]
            fn linked() -> Self {
                ClFft { $($name: linked::$name,)* }
            }

            /// Resolves every function of an opened library.
            #[cfg(not(feature = "linked"))]
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
    /// The clFFT that is linked.
    ///
    /// # Errors
    /// None: what is missing keeps the program from starting.
    #[cfg(feature = "linked")]
    pub fn open() -> Result<Self, Error> {
        Ok(Self::linked())
    }

    /// Opens the system's clFFT.
    ///
    /// # Errors
    /// The loader's message when no library of [`LIBRARY_NAMES`] opens or a function is missing from it.
    #[cfg(not(feature = "linked"))]
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

/// The names of OpenCL's codes that clFFT passes on, those of OpenCL 1.2 and of the loader.
const OPENCL_NAMES: [(Status, &str); 59] = [
    (-1, "CL_DEVICE_NOT_FOUND"),
    (-2, "CL_DEVICE_NOT_AVAILABLE"),
    (-3, "CL_COMPILER_NOT_AVAILABLE"),
    (-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"),
    (-5, "CL_OUT_OF_RESOURCES"),
    (-6, "CL_OUT_OF_HOST_MEMORY"),
    (-7, "CL_PROFILING_INFO_NOT_AVAILABLE"),
    (-8, "CL_MEM_COPY_OVERLAP"),
    (-9, "CL_IMAGE_FORMAT_MISMATCH"),
    (-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED"),
    (-11, "CL_BUILD_PROGRAM_FAILURE"),
    (-12, "CL_MAP_FAILURE"),
    (-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"),
    (-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"),
    (-15, "CL_COMPILE_PROGRAM_FAILURE"),
    (-16, "CL_LINKER_NOT_AVAILABLE"),
    (-17, "CL_LINK_PROGRAM_FAILURE"),
    (-18, "CL_DEVICE_PARTITION_FAILED"),
    (-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"),
    (-30, "CL_INVALID_VALUE"),
    (-31, "CL_INVALID_DEVICE_TYPE"),
    (-32, "CL_INVALID_PLATFORM"),
    (-33, "CL_INVALID_DEVICE"),
    (-34, "CL_INVALID_CONTEXT"),
    (-35, "CL_INVALID_QUEUE_PROPERTIES"),
    (-36, "CL_INVALID_COMMAND_QUEUE"),
    (-37, "CL_INVALID_HOST_PTR"),
    (-38, "CL_INVALID_MEM_OBJECT"),
    (-39, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR"),
    (-40, "CL_INVALID_IMAGE_SIZE"),
    (-41, "CL_INVALID_SAMPLER"),
    (-42, "CL_INVALID_BINARY"),
    (-43, "CL_INVALID_BUILD_OPTIONS"),
    (-44, "CL_INVALID_PROGRAM"),
    (-45, "CL_INVALID_PROGRAM_EXECUTABLE"),
    (-46, "CL_INVALID_KERNEL_NAME"),
    (-47, "CL_INVALID_KERNEL_DEFINITION"),
    (-48, "CL_INVALID_KERNEL"),
    (-49, "CL_INVALID_ARG_INDEX"),
    (-50, "CL_INVALID_ARG_VALUE"),
    (-51, "CL_INVALID_ARG_SIZE"),
    (-52, "CL_INVALID_KERNEL_ARGS"),
    (-53, "CL_INVALID_WORK_DIMENSION"),
    (-54, "CL_INVALID_WORK_GROUP_SIZE"),
    (-55, "CL_INVALID_WORK_ITEM_SIZE"),
    (-56, "CL_INVALID_GLOBAL_OFFSET"),
    (-57, "CL_INVALID_EVENT_WAIT_LIST"),
    (-58, "CL_INVALID_EVENT"),
    (-59, "CL_INVALID_OPERATION"),
    (-60, "CL_INVALID_GL_OBJECT"),
    (-61, "CL_INVALID_BUFFER_SIZE"),
    (-62, "CL_INVALID_MIP_LEVEL"),
    (-63, "CL_INVALID_GLOBAL_WORK_SIZE"),
    (-64, "CL_INVALID_PROPERTY"),
    (-65, "CL_INVALID_IMAGE_DESCRIPTOR"),
    (-66, "CL_INVALID_COMPILER_OPTIONS"),
    (-67, "CL_INVALID_LINKER_OPTIONS"),
    (-68, "CL_INVALID_DEVICE_PARTITION_COUNT"),
    (-1001, "CL_PLATFORM_NOT_FOUND_KHR"),
];

/// clFFT's own codes.
const CLFFT_NAMES: [(Status, &str); 9] = [
    (4096, "CLFFT_BUGCHECK"),
    (4097, "CLFFT_NOTIMPLEMENTED"),
    (4098, "CLFFT_TRANSPOSED_NOTIMPLEMENTED"),
    (4099, "CLFFT_FILE_NOT_FOUND"),
    (4100, "CLFFT_FILE_CREATE_FAILURE"),
    (4101, "CLFFT_VERSION_MISMATCH"),
    (4102, "CLFFT_INVALID_PLAN"),
    (4103, "CLFFT_DEVICE_NO_DOUBLE"),
    (4104, "CLFFT_DEVICE_MISMATCH"),
];

/// A status by the name that `clFFT.h` or `cl.h` gives it, with its number; a code of neither has the number alone.
pub fn status_name(status: Status) -> String {
    if status == SUCCESS {
        return "CLFFT_SUCCESS".to_owned();
    }
    match CLFFT_NAMES.iter().chain(&OPENCL_NAMES).find(|(code, _)| *code == status) {
        Some((_, name)) => format!("{name} ({status})"),
        None => format!("unknown status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_and_tears_down_where_the_library_is_installed() {
        match ClFft::open() {
            Ok(clfft) => {
                // SAFETY: one thread, setup before teardown.
                let (setup, teardown) = unsafe { ((clfft.setup)(&SetupData::VERSION), (clfft.teardown)()) };
                assert_eq!((setup, teardown), (SUCCESS, SUCCESS));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn statuses_have_names() {
        assert_eq!(status_name(0), "CLFFT_SUCCESS");
        assert_eq!(status_name(4097), "CLFFT_NOTIMPLEMENTED (4097)");
        assert_eq!(status_name(-5), "CL_OUT_OF_RESOURCES (-5)");
        assert_eq!(status_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR (-1001)");
        assert_eq!(status_name(-1000), "unknown status -1000");
        let mut codes: Vec<Status> = CLFFT_NAMES.iter().chain(&OPENCL_NAMES).map(|(code, _)| *code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), CLFFT_NAMES.len() + OPENCL_NAMES.len());
    }
}

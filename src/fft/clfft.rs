//! Row transforms by clFFT.
//!
//! clFFT has one global state that is not safe for several threads, so a process-wide lock guards every call, and
//! the library is set up once and torn down with the last plan's process.

use super::RowTransform;
use crate::device::{INSTALL_HINT, Session};
use crate::error::{Error, Result};
use clfft_sys as sys;
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The library, set up; the lock is held for every call.
static LIBRARY: OnceLock<std::result::Result<Mutex<sys::ClFft>, String>> = OnceLock::new();

fn library() -> Result<MutexGuard<'static, sys::ClFft>> {
    let opened = LIBRARY.get_or_init(|| {
        let clfft = sys::ClFft::open().map_err(|e| e.to_string())?;
        let data = sys::SetupData { major: 2, minor: 12, patch: 2, debug_flags: 0 };
        // SAFETY: called once, before anything else of the library.
        match unsafe { (clfft.setup)(&data) } {
            sys::SUCCESS => Ok(Mutex::new(clfft)),
            status => Err(format!("clfftSetup: {}", sys::status_name(status))),
        }
    });
    match opened {
        Ok(library) => Ok(library.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(message) => Err(Error::Device(format!(
            "clFFT cannot be loaded: {message}\n{INSTALL_HINT}"
        ))),
    }
}

/// Whether clFFT can transform rows of this length: its radices are 2, 3, 5, 7, 11 and 13.
pub fn supports(length: usize) -> bool {
    let mut rest = length;
    for radix in [2, 3, 5, 7, 11, 13] {
        while rest > 1 && rest % radix == 0 {
            rest /= radix;
        }
    }
    rest == 1
}

/// A baked plan for `batch` rows of `length` complex values.
pub struct ClFftRows {
    plan: sys::PlanHandle,
    scratch: Option<Buffer<u8>>,
}

impl ClFftRows {
    /// Bakes a plan. This compiles kernels and can take seconds the first time on a device.
    ///
    /// # Errors
    /// A device error when clFFT is missing, cannot do the length, or its kernels do not build.
    pub fn new(session: &Session, length: usize, batch: usize) -> Result<Self> {
        if !supports(length) {
            return Err(Error::Device(format!(
                "clFFT cannot transform rows of {length}: other prime factors than 2, 3, 5, 7, 11, 13"
            )));
        }
        let clfft = library()?;
        let check = |what: &str, status: sys::Status| match status {
            sys::SUCCESS => Ok(()),
            status => Err(Error::Device(format!(
                "{}: clFFT {what} for {batch} rows of {length}: {}",
                session.device_name(),
                sys::status_name(status)
            ))),
        };
        let mut plan = 0;
        let lengths = [length];
        let mut queue = session.queue.get();
        let mut scratch_bytes = 0;
        // SAFETY: handles belong to the open session and outlive the plan; arrays have the lengths that are passed.
        unsafe {
            check(
                "plan",
                (clfft.create_default_plan)(
                    &mut plan,
                    session.context.get(),
                    sys::ONE_DIMENSION,
                    lengths.as_ptr(),
                ),
            )?;
            check("precision", (clfft.set_plan_precision)(plan, sys::SINGLE))?;
            check(
                "layout",
                (clfft.set_layout)(plan, sys::COMPLEX_INTERLEAVED, sys::COMPLEX_INTERLEAVED),
            )?;
            check("location", (clfft.set_result_location)(plan, sys::INPLACE))?;
            check("batch", (clfft.set_plan_batch_size)(plan, batch))?;
            // the filter's spectrum carries the scale
            check("scale", (clfft.set_plan_scale)(plan, sys::BACKWARD, 1.0))?;
            check(
                "kernels",
                (clfft.bake_plan)(plan, 1, &mut queue, None, ptr::null_mut()),
            )?;
            check("scratch", (clfft.get_tmp_buf_size)(plan, &mut scratch_bytes))?;
        }
        drop(clfft);
        let scratch = match scratch_bytes {
            0 => None,
            bytes => Some(session.buffer(bytes, CL_MEM_READ_WRITE, "the transform's scratch space")?),
        };
        Ok(ClFftRows { plan, scratch })
    }

    fn enqueue(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>, direction: i32) -> Result<Event> {
        let clfft = library()?;
        let mut queue = session.queue.get();
        let mut memory = rows.get_mut();
        let mut event = ptr::null_mut();
        let scratch = self.scratch.as_ref().map_or(ptr::null_mut(), ClMem::get);
        // SAFETY: the plan was baked for this queue; the caller's buffer has the plan's size (checked at the one
        // place that makes both); events and memory are live handles.
        let status = unsafe {
            (clfft.enqueue_transform)(
                self.plan,
                direction,
                1,
                &mut queue,
                0,
                ptr::null(),
                &mut event,
                &mut memory,
                ptr::null_mut(),
                scratch,
            )
        };
        match status {
            sys::SUCCESS => Ok(Event::new(event)),
            status => Err(Error::Device(format!(
                "{}: clFFT transform: {}",
                session.device_name(),
                sys::status_name(status)
            ))),
        }
    }
}

impl RowTransform for ClFftRows {
    fn forward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event> {
        self.enqueue(session, rows, sys::FORWARD)
    }

    fn backward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event> {
        self.enqueue(session, rows, sys::BACKWARD)
    }
}

impl Drop for ClFftRows {
    fn drop(&mut self) {
        if let Ok(clfft) = library() {
            // SAFETY: the plan is live and not used again.
            unsafe {
                (clfft.destroy_plan)(&mut self.plan);
            }
        }
    }
}

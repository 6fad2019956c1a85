//! Transforms of rows and images by clFFT.
//!
//! clFFT has one global state that is not safe for several threads, so a process-wide lock guards every call; the
//! library is set up for the first plan and torn down with the last.

use super::RowTransform;
use super::errors::ClFftError;
use crate::device::{ImageTransform, Session};
use crate::error::{Error, Result};
use crate::report::without_compiler_counts;
use clfft_sys as sys;
use opencl3::command_queue::CommandQueue;
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The library while plans exist; the lock is held for every call.
static LIBRARY: Mutex<Option<Library>> = Mutex::new(None);

/// clFFT after its set-up, with the number of plans that use it.
struct Library {
    clfft: sys::ClFft,
    plans: usize,
}

fn lock() -> MutexGuard<'static, Option<Library>> {
    LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loads the library if it is not loaded.
pub(super) fn load() -> Result<()> {
    let mut guard = lock();
    if guard.is_none() {
        *guard = Some(open()?);
    }
    Ok(())
}

/// Opens and sets up the library.
fn open() -> Result<Library> {
    let failed = |reason: String| ClFftError::NotLoadable { reason };
    let clfft = sys::ClFft::open().map_err(|e| failed(e.to_string()))?;
    // SAFETY: the first call into a library that no plan uses yet; the lock is held.
    match unsafe { (clfft.setup)(&sys::SetupData::VERSION) } {
        sys::SUCCESS => Ok(Library { clfft, plans: 0 }),
        status => Err(failed(format!("clfftSetup: {}", sys::status_name(status))).into()),
    }
}

/// Tears the library down with all existing plans, for a process that ends without dropping them: the library complains
/// on stderr about plans that are left.
pub fn tear_down() {
    tear_down_locked(&mut lock());
}

fn tear_down_locked(library: &mut Option<Library>) {
    if let Some(library) = library.take() {
        // SAFETY: the caller holds the lock; a plan that is left finds no library from now on.
        unsafe { (library.clfft.teardown)() };
    }
}

/// Reports whether clFFT can transform rows of this length: its radices are 2, 3, 5, 7, 11 and 13.
pub fn supports(length: usize) -> bool {
    let mut rest = length;
    for radix in sys::RADICES {
        while rest > 1 && rest % radix == 0 {
            rest /= radix;
        }
    }
    rest == 1
}

/// A baked plan for transforms in a queue.
struct ClFftPlan {
    handle: sys::PlanHandle,
    scratch: Option<Buffer<u8>>,
}

impl ClFftPlan {
    /// Bakes a plan for `batch` arrays with these sides, first the one along which values are contiguous. This compiles
    /// kernels and can take seconds the first time on a device.
    ///
    /// # Errors
    /// A device error when clFFT is missing, cannot do a length, or its kernels do not build.
    fn new(session: &Session, sides: &[usize], batch: usize, queue: &CommandQueue) -> Result<Self> {
        if let Some(length) = sides.iter().find(|side| !supports(**side)) {
            return Err(ClFftError::Length { length: *length }.into());
        }
        let (mut plan, scratch_bytes) = {
            let mut guard = lock();
            let library = match guard.as_mut() {
                Some(library) => library,
                None => guard.insert(open()?),
            };
            let handle = library.create(session, sides)?;
            // from here on dropping `plan` destroys it, once the lock is released
            let plan = ClFftPlan { handle, scratch: None };
            let baked = without_compiler_counts(|| library.bake(handle, batch, queue));
            drop(guard);
            let device = session.device_name().to_owned();
            let failed = |(step, status)| ClFftError::NotBaked { device, step, status, batch, sides: sides.to_vec() };
            (plan, baked.map_err(failed)?)
        };
        if scratch_bytes > 0 {
            plan.scratch = Some(session.buffer(scratch_bytes, CL_MEM_READ_WRITE, "the transform's scratch space")?);
        }
        Ok(plan)
    }

    fn enqueue(
        &mut self,
        session: &Session,
        queue: &CommandQueue,
        values: &mut Buffer<[f32; 2]>,
        direction: i32,
    ) -> Result<Event> {
        let guard = lock();
        let Some(Library { clfft, .. }) = guard.as_ref() else {
            return Err(ClFftError::NotLoaded { device: session.device_name().to_owned() }.into());
        };
        let mut queue = queue.get();
        let mut memory = values.get_mut();
        let mut event = ptr::null_mut();
        let scratch = self.scratch.as_ref().map_or(ptr::null_mut(), ClMem::get);
        // SAFETY: the plan was baked for this queue; the caller's buffer has the plan's size (checked at the one
        // place that makes both); events and memory are live handles.
        let status = unsafe {
            (clfft.enqueue_transform)(
                self.handle,
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
            status => Err(failure(session, "transform", status)),
        }
    }
}

/// Transforms of `batch` rows of `length` complex values.
pub struct ClFftRows(ClFftPlan);

impl ClFftRows {
    /// Bakes the plan for `batch` rows of `length` complex values.
    ///
    /// # Errors
    /// A device error when clFFT is missing, cannot do the length, or its kernels do not build.
    pub fn new(session: &Session, length: usize, batch: usize) -> Result<Self> {
        ClFftPlan::new(session, &[length], batch, &session.queue).map(ClFftRows)
    }
}

/// Transforms of images, in the queue of uploads.
struct ClFftImages(ClFftPlan);

/// Returns a transform of `count` images of `[width, height]` by clFFT.
///
/// # Errors
/// A device error when clFFT is missing, cannot do the lengths, or its kernels do not build.
pub fn image_transform(session: &Session, size: [usize; 2], count: usize) -> Result<Box<dyn ImageTransform>> {
    let plan = ClFftPlan::new(session, &size, count, &session.uploads)?;
    Ok(Box::new(ClFftImages(plan)))
}

fn failure(session: &Session, call: &'static str, status: sys::Status) -> Error {
    ClFftError::Failed { device: session.device_name().to_owned(), call, status: sys::status_name(status) }.into()
}

/// A step of setting up a plan that failed, with the name of its status.
type FailedStep = (&'static str, String);

impl Library {
    /// Creates a plan for arrays with one or two sides, and counts it.
    fn create(&mut self, session: &Session, sides: &[usize]) -> Result<sys::PlanHandle> {
        let dimensions = match sides.len() {
            1 => sys::ONE_DIMENSION,
            2 => sys::TWO_DIMENSIONS,
            count => return Err(Error::Internal(format!("a transform in {count} dimensions"))),
        };
        let mut plan = 0;
        // SAFETY: the context is live; a length for each dimension.
        let status =
            unsafe { (self.clfft.create_default_plan)(&mut plan, session.context.get(), dimensions, sides.as_ptr()) };
        match status {
            sys::SUCCESS => {
                self.plans += 1;
                Ok(plan)
            }
            status => Err(failure(session, "plan", status)),
        }
    }

    /// Sets up a plan and compiles its kernels; returns the bytes of scratch space that it needs, or the step that failed.
    fn bake(&self, plan: sys::PlanHandle, batch: usize, queue: &CommandQueue) -> Result<usize, FailedStep> {
        let check = |step: &'static str, status: sys::Status| match status {
            sys::SUCCESS => Ok(()),
            status => Err((step, sys::status_name(status))),
        };
        let c = &self.clfft;
        let mut queue = queue.get();
        let mut scratch_bytes = 0;
        // SAFETY: the plan is live, the queue belongs to its context, pointers live through the calls.
        unsafe {
            check("precision", (c.set_plan_precision)(plan, sys::SINGLE))?;
            check("layout", (c.set_layout)(plan, sys::COMPLEX_INTERLEAVED, sys::COMPLEX_INTERLEAVED))?;
            check("location", (c.set_result_location)(plan, sys::INPLACE))?;
            check("batch", (c.set_plan_batch_size)(plan, batch))?;
            // the filter's spectrum carries the scale
            check("scale", (c.set_plan_scale)(plan, sys::BACKWARD, 1.0))?;
            check("kernels", (c.bake_plan)(plan, 1, &mut queue, None, ptr::null_mut()))?;
            check("scratch", (c.get_tmp_buf_size)(plan, &mut scratch_bytes))?;
        }
        Ok(scratch_bytes)
    }
}

impl RowTransform for ClFftRows {
    fn forward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event> {
        self.0.enqueue(session, &session.queue, rows, sys::FORWARD)
    }

    fn backward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event> {
        self.0.enqueue(session, &session.queue, rows, sys::BACKWARD)
    }
}

impl ImageTransform for ClFftImages {
    fn forward(&mut self, session: &Session, images: &mut Buffer<[f32; 2]>) -> Result<Event> {
        self.0.enqueue(session, &session.uploads, images, sys::FORWARD)
    }

    fn backward(&mut self, session: &Session, images: &mut Buffer<[f32; 2]>) -> Result<Event> {
        self.0.enqueue(session, &session.uploads, images, sys::BACKWARD)
    }
}

impl Drop for ClFftPlan {
    fn drop(&mut self) {
        let mut guard = lock();
        let Some(library) = guard.as_mut() else { return };
        // SAFETY: the plan is live and not used again.
        unsafe { (library.clfft.destroy_plan)(&mut self.handle) };
        library.plans -= 1;
        if library.plans == 0 {
            tear_down_locked(&mut guard);
        }
    }
}

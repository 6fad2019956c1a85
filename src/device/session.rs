//! A context with its queues on one device, and the operations on them.

use super::allocations::Allocations;
use super::errors::DeviceMemoryError;
use super::found::KeptContext;
use super::programs::{BuiltProgram, ProgramRequest, ProgramStore};
use super::{FoundDevice, cl_error};
use crate::error::{Error, KernelBuildError, Result, first_error};
use crate::facts::{DeviceFacts, DeviceKind};
use crate::fault;
use crate::kernel::{ImageFilterBackend, KernelSource, StepSizes, StepTarget};
use crate::report::without_compiler_counts;
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::error_codes::{CL_MEM_OBJECT_ALLOCATION_FAILURE, ClError};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, ClMem};
use opencl3::program::Program;
use opencl3::types::cl_mem_flags;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of programs that a session keeps, so that a run reuses those of the check before it.
const KEPT_PROGRAMS: usize = 16;

/// A plan for in-place, unscaled complex transforms of all images of a buffer, in the queue for uploads.
pub trait ImageTransform: Send {
    /// Transforms images to frequencies.
    ///
    /// # Errors
    /// Errors of the device.
    fn forward(&mut self, session: &Session, images: &mut Buffer<[f32; 2]>) -> Result<Event>;

    /// Transforms frequencies back to images; a round trip multiplies by the number of pixels.
    ///
    /// # Errors
    /// Errors of the device.
    fn backward(&mut self, session: &Session, images: &mut Buffer<[f32; 2]>) -> Result<Event>;
}

/// A function that plans the transform of a number of images of `[width, height]`.
pub type ImageTransforms = fn(&Session, [usize; 2], usize) -> Result<Box<dyn ImageTransform>>;

/// A context on one device, with in-order queues for kernels and for copies in both directions.
pub struct Session {
    pub facts: DeviceFacts,
    /// Sizes of the work-groups of steps.
    pub step_sizes: StepSizes,
    /// The backend that transforms images, and the library for images that its kernels do not transform.
    pub image_backend: ImageFilterBackend,
    pub(crate) image_transforms: Option<ImageTransforms>,
    /// The last programs that were built, each with its text and options.
    programs: Mutex<Vec<([String; 2], Arc<BuiltProgram>)>>,
    /// Store in which programs are kept for later sessions.
    store: Option<ProgramStore>,
    /// Number of programs that were compiled from source.
    compiled: AtomicUsize,
    allocations: Allocations,
    /// Queue for kernels and for the commands that wait for them.
    pub(crate) queue: Queue,
    pub(crate) uploads: Queue,
    /// Queue for copies to the device that do not wait for the kernels among the uploads.
    pub(super) copies: Queue,
    /// Shared with what is mapped in it.
    pub(super) downloads: Arc<Queue>,
    pub(crate) context: Arc<Context>,
    /// The device; a part of a device must outlive its context.
    device: FoundDevice,
}

/// An in-order queue whose commands are finished when it is dropped: a process that ends earlier takes the driver away
/// from its threads, which may still compile a kernel.
pub(crate) struct Queue(CommandQueue);

impl Deref for Queue {
    type Target = CommandQueue;

    fn deref(&self) -> &CommandQueue {
        &self.0
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = self.0.finish();
    }
}

fn queue_of(context: &Context, device: &str) -> Result<Queue> {
    // the 1.x call works on every platform version
    #[allow(deprecated)]
    CommandQueue::create_default(context, CL_QUEUE_PROFILING_ENABLE)
        .map(Queue)
        .map_err(|e| cl_error("creating a command queue", device, e))
}

impl Session {
    /// Opens a session on a device.
    pub fn open(found: &FoundDevice) -> Result<Self> {
        let name = &found.facts.name;
        let kept = found.context.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (context, programs) = match kept {
            Some(KeptContext { context, programs }) => (context, programs),
            None => {
                let context = Context::from_device(&found.device);
                (Arc::new(context.map_err(|e| cl_error("creating a context", name, e))?), Vec::new())
            }
        };
        Ok(Session { programs: Mutex::new(programs), ..Session::with_queues(context, found)? })
    }

    /// Leaves the context and the programs to the next session on the device, as long as somebody holds the device: a search
    /// or a process that keeps devices. Only for a session without an error, after which a driver may hand out nothing else.
    pub fn keep(self) {
        let programs = std::mem::take(&mut *self.programs.lock().unwrap_or_else(PoisonError::into_inner));
        let kept = KeptContext { context: self.context.clone(), programs };
        *self.device.context.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    /// Returns a session in `context` with queues of its own.
    fn with_queues(context: Arc<Context>, found: &FoundDevice) -> Result<Self> {
        let queue = || queue_of(&context, &found.facts.name);
        Ok(Session {
            facts: found.facts.clone(),
            step_sizes: StepSizes::default(),
            image_backend: ImageFilterBackend::default(),
            image_transforms: None,
            programs: Mutex::default(),
            store: None,
            compiled: AtomicUsize::new(0),
            allocations: Allocations::default(),
            queue: queue()?,
            uploads: queue()?,
            copies: queue()?,
            downloads: Arc::new(queue()?),
            context,
            device: found.clone(),
        })
    }

    /// Returns the session with a store from which it takes programs of earlier sessions, and in which it keeps
    /// programs for later ones.
    pub fn with_programs(self, store: Option<ProgramStore>) -> Self {
        Session { store, ..self }
    }

    /// Returns the session with a profile's sizes of the work-groups of steps.
    pub fn with_step_sizes(self, step_sizes: StepSizes) -> Self {
        Session { step_sizes, ..self }
    }

    /// Returns the session with a library for images that the device's own kernels do not transform.
    pub fn with_image_transforms(self, image_backend: ImageFilterBackend, transforms: ImageTransforms) -> Self {
        Session { image_backend, image_transforms: Some(transforms), ..self }
    }

    /// Returns the target for which the work-groups of steps are made.
    pub fn step_target(&self) -> StepTarget<'_> {
        StepTarget { facts: &self.facts, sizes: &self.step_sizes }
    }

    /// Creates another in-order queue on the device.
    pub(crate) fn new_queue(&self) -> Result<Queue> {
        queue_of(&self.context, self.device_name())
    }

    /// Returns a session with the same device, buffers and programs but other queues, whose kernels run beside those of
    /// this session.
    pub fn beside(&self) -> Result<Self> {
        let beside = self.like(Session::with_queues(self.context.clone(), &self.device)?)?;
        Ok(Session { allocations: self.allocations.clone(), ..beside })
    }

    /// Opens another session on the same device, with a context of its own.
    pub fn reopen(&self) -> Result<Self> {
        self.like(Session::open(&self.device)?)
    }

    /// Returns `session` with the settings that were added to this one.
    fn like(&self, session: Session) -> Result<Self> {
        let session = session.with_programs(self.store.clone());
        let Session { image_backend, image_transforms, .. } = *self;
        Ok(Session { image_backend, image_transforms, step_sizes: self.step_sizes.clone(), ..session })
    }

    /// Returns the number of programs that were compiled from source.
    pub fn compiled(&self) -> usize {
        self.compiled.load(Relaxed)
    }

    /// Returns the name of the device, for messages.
    pub fn device_name(&self) -> &str {
        &self.facts.name
    }

    /// Builds a program, or returns it if it is one of the last few, or if an earlier session built it.
    ///
    /// # Errors
    /// [`Error::KernelBuild`] with the compiler's log.
    pub fn build(&self, source: &KernelSource) -> Result<Arc<BuiltProgram>> {
        let is = |[text, options]: &[String; 2]| *text == source.text && *options == source.options;
        let kept = || self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = kept().iter().find(|(what, _)| is(what)) {
            return Ok(program.clone());
        }
        let program = Arc::new(self.find_or_compile(source)?);
        let mut programs = kept();
        if programs.len() == KEPT_PROGRAMS {
            programs.remove(0);
        }
        programs.push(([source.text.clone(), source.options.clone()], program.clone()));
        Ok(program)
    }

    fn find_or_compile(&self, source: &KernelSource) -> Result<BuiltProgram> {
        // with this option the log contains registers, see `resources`
        let verbose = if self.facts.has("cl_nv_compiler_options") { " -cl-nv-verbose" } else { "" };
        let options = format!("{}{verbose}{}", source.options, fault::compiler_options());
        let text = fault::changed(&source.text);
        let Some(store) = &self.store else { return self.compile(source, &text, &options) };
        let request = ProgramRequest {
            context: &self.context,
            facts: &self.facts,
            text: &text,
            options: &options,
            entry: source.entry,
        };
        match store.find(&request) {
            Some(program) => Ok(program),
            None => Ok(store.keep(&request, self.compile(source, &text, &options)?)),
        }
    }

    fn compile(&self, source: &KernelSource, text: &str, options: &str) -> Result<BuiltProgram> {
        let name = self.device_name();
        self.compiled.fetch_add(1, Relaxed);
        let mut program =
            Program::create_from_source(&self.context, text).map_err(|e| cl_error("creating a program", name, e))?;
        let mut build = || program.build(self.context.devices(), options);
        // compilers for processors warn of vectors that are wider than those of the processor, which is no mistake
        let built = match self.facts.kind {
            DeviceKind::Cpu => without_compiler_counts(build),
            _ => build(),
        };
        if let Err(error) = built {
            let log = program.get_build_log(self.context.default_device()).unwrap_or_else(|_| error.to_string());
            return Err(KernelBuildError::Refused {
                name: source.name.clone(),
                device: name.to_owned(),
                options: source.options.clone(),
                reason: first_error(&log).to_owned(),
                log,
            }
            .into());
        }
        let log = program.get_build_log(self.context.default_device()).unwrap_or_default();
        Ok(BuiltProgram { program, log })
    }

    /// Returns the kernel `entry` of a built program.
    pub fn kernel(&self, program: &BuiltProgram, entry: &str) -> Result<Kernel> {
        Kernel::create(&program.program, entry)
            .map_err(|e| cl_error(&format!("finding kernel {entry}"), self.device_name(), e))
    }

    /// Returns the resources that a kernel of a built program uses.
    pub fn resources(&self, program: &BuiltProgram, kernel: &Kernel) -> Resources {
        let device = self.context.default_device();
        Resources {
            local_bytes: kernel.get_local_mem_size(device).ok(),
            private_bytes: kernel.get_private_mem_size(device).ok(),
            registers: registers_in(&program.log),
        }
    }

    /// Allocates a buffer of `count` values; `what` names it in messages.
    pub fn buffer<T>(&self, count: usize, flags: cl_mem_flags, what: &str) -> Result<Buffer<T>> {
        let bytes = count.max(1) * std::mem::size_of::<T>();
        let failed = |e: ClError| {
            let (device, what) = (self.device_name().to_owned(), what.to_owned());
            DeviceMemoryError::NotAllocated { device, bytes, what, error: e.to_string(), code: e.0 }
        };
        if fault::allocation_fails(bytes) {
            return Err(failed(ClError(CL_MEM_OBJECT_ALLOCATION_FAILURE)).into());
        }
        // SAFETY: no host memory is handed over.
        let buffer = unsafe { Buffer::create(&self.context, flags, count.max(1), ptr::null_mut()) }.map_err(failed)?;
        self.allocations.add(what, bytes);
        Ok(buffer)
    }

    /// Counts an allocation that is not a buffer.
    pub(super) fn count_allocation(&self, what: &str, bytes: usize) {
        self.allocations.add(what, bytes);
    }

    /// Returns the bytes that were allocated on the device since the last call of
    /// [`forget_allocations`](Self::forget_allocations), by purpose.
    pub fn allocated(&self) -> BTreeMap<String, u64> {
        self.allocations.all()
    }

    /// Begins to count allocations anew, for example after checks, whose memory is free again.
    pub fn forget_allocations(&self) {
        self.allocations.clear();
    }

    /// Checks that a buffer can hold `count` values.
    ///
    /// # Errors
    /// [`Error::Internal`] if it cannot.
    pub(crate) fn expect_length<T>(&self, buffer: &Buffer<T>, count: usize, what: &str) -> Result<()> {
        let failed = |e| cl_error(&format!("asking for the size of {what}"), self.device_name(), e);
        let (bytes, needed) = (buffer.size().map_err(failed)?, count.saturating_mul(std::mem::size_of::<T>()));
        match needed <= bytes {
            true => Ok(()),
            false => Err(Error::Internal(format!("{what} have {bytes} bytes on the device, {needed} are needed"))),
        }
    }

    /// Allocates a buffer that holds `data` and is only read.
    pub fn constant_buffer<T: Copy>(&self, data: &[T], what: &str) -> Result<Buffer<T>> {
        let mut buffer = self.buffer(data.len(), CL_MEM_READ_ONLY, what)?;
        self.write(&mut buffer, data, what)?;
        Ok(buffer)
    }

    /// Reports whether the device computes in the memory of the host, so that nothing needs to be copied.
    pub fn shares_memory(&self) -> bool {
        self.facts.kind == DeviceKind::Cpu
    }

    /// Begins a launch of a kernel, in the queue for kernels.
    pub fn launch<'a>(&'a self, kernel: &'a Kernel, name: &'a str) -> Launch<'a> {
        Launch { session: self, queue: &self.queue, kernel, name, index: 0, first: [0; 3], after: None }
    }
}

/// Resources that a built kernel uses, as far as the driver reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Resources {
    /// Bytes of local memory per work-group.
    pub local_bytes: Option<u64>,
    /// Bytes of memory per work-item outside its registers.
    pub private_bytes: Option<u64>,
    /// Number of 32-bit registers per work-item.
    pub registers: Option<u32>,
}

impl std::fmt::Display for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let amount = |value: Option<u64>, what: &str| match value {
            Some(value) => format!("{value} {what}"),
            None => format!("unknown {what}"),
        };
        write!(
            f,
            "{}, {}, {}",
            amount(self.registers.map(u64::from), "registers"),
            amount(self.local_bytes, "bytes of local memory per work-group"),
            amount(self.private_bytes, "bytes of private memory per work-item")
        )
    }
}

/// Returns the largest number of registers in a build log ("Used 40 registers").
fn registers_in(log: &str) -> Option<u32> {
    log.split("Used ").skip(1).filter_map(|rest| rest.split_once(" registers")?.0.parse().ok()).max()
}

/// A kernel launch in preparation. Arguments are set in order, and buffers with the extent that the kernel touches.
pub struct Launch<'a> {
    session: &'a Session,
    queue: &'a CommandQueue,
    kernel: &'a Kernel,
    name: &'a str,
    index: u32,
    /// Index of the first work-item in every dimension.
    first: [usize; 3],
    /// A command of another queue that the launch waits for.
    after: Option<&'a Event>,
}

impl<'a> Launch<'a> {
    /// Puts the launch into the queue for uploads, after the commands already in it.
    pub fn among_uploads(self) -> Self {
        Launch { queue: &self.session.uploads, ..self }
    }

    /// Makes the launch wait for a command of another queue, which has been flushed.
    pub(crate) fn after(self, command: Option<&'a Event>) -> Self {
        Launch { after: command, ..self }
    }

    /// Makes the indices of work-items begin at `first`.
    pub fn starting_at(self, first: [usize; 3]) -> Self {
        Launch { first, ..self }
    }

    /// Sets the next argument to a plain value: `i32`, `u64`, `f32`, `[i32; 4]` for `int4` ...
    pub fn value<T: Copy>(self, value: T) -> Result<Self> {
        self.set(&value)
    }

    /// Sets the next argument to a buffer of which the kernel touches the first `count` values, or fewer; `what` names
    /// it in messages.
    ///
    /// # Errors
    /// [`Error::Internal`] if the buffer has fewer values.
    pub fn buffer<T>(self, buffer: &Buffer<T>, count: usize, what: &str) -> Result<Self> {
        self.session.expect_length(buffer, count, what)?;
        self.set(&buffer.get())
    }

    /// Sets the next argument to an image, whose sampler keeps the kernel within it, or to a table that was made for
    /// the kernel and its work-items, all of which it may read.
    pub(super) fn handle(self, memory: &impl ClMem) -> Result<Self> {
        self.set(&memory.get())
    }

    fn set<T: Copy>(mut self, value: &T) -> Result<Self> {
        // SAFETY: the driver checks index and size against the kernel's signature; memory objects outlive the
        // launch because the queue keeps them until its commands are done.
        unsafe { self.kernel.set_arg(self.index, value) }.map_err(|e| {
            let device = self.session.device_name();
            cl_error(&format!("setting argument {} of kernel {}", self.index, self.name), device, e)
        })?;
        self.index += 1;
        Ok(self)
    }

    /// Enqueues the kernel over `global` work-items, in work-groups of `local` or as the driver likes.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn run(self, global: &[usize], local: Option<&[usize]>) -> Result<Event> {
        let after: Vec<_> = self.after.iter().map(|command| command.get()).collect();
        // SAFETY: all pointers live through the call. With the values and work-items that its host side gives it, a kernel of
        // `cl/` stays within the extents that its host side declares, which were compared with the buffers. Under a
        // simulator, every access is compared with the buffers, too (scripts/races).
        unsafe {
            self.queue.enqueue_nd_range_kernel(
                self.kernel.get(),
                global.len() as u32,
                if self.first == [0; 3] { ptr::null() } else { self.first.as_ptr() },
                global.as_ptr(),
                local.map_or(ptr::null(), <[usize]>::as_ptr),
                &after,
            )
        }
        .map_err(|e| {
            let device = self.session.device_name();
            cl_error(
                &format!("starting kernel {} over {global:?} work-items in groups of {local:?}", self.name),
                device,
                e,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::registers_in;

    #[test]
    fn registers_of_a_log() {
        let log = "ptxas info    : Function properties for backproject\nptxas info    : Used 40 registers, 380 bytes cmem[0]\n\
                   ptxas info    : Used 128 registers, 4096 bytes smem";
        assert_eq!(registers_in(log), Some(128));
        assert_eq!(registers_in("Used up"), None);
        assert_eq!(registers_in(""), None);
    }
}

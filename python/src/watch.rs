//! Runs that Python waits for: without its lock, stopped by its signals, with their progress.

use crate::errors::raised;
use fbp::error::{Error, Result};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::scope;
use std::time::Duration;

/// Time between two looks at signals and progress.
const TICK: Duration = Duration::from_millis(20);

/// State of a run that both sides see.
#[derive(Default)]
pub struct Watched {
    /// True to end the run.
    pub stopped: AtomicBool,
    /// Number of slices or pages that are done, and of all.
    pub done: AtomicUsize,
    pub total: AtomicUsize,
}

impl Watched {
    /// Ends what does not look at `stopped` itself.
    pub fn go_on(&self) -> Result<()> {
        if self.stopped.load(Relaxed) { Err(Error::Interrupted("interrupted; run again".into())) } else { Ok(()) }
    }

    /// Calls `progress` if there is more than it knows.
    fn report(&self, py: Python<'_>, progress: Option<&Py<PyAny>>, known: &mut usize) -> PyResult<()> {
        let done = self.done.load(Relaxed);
        if let (Some(progress), true) = (progress, done > *known) {
            *known = done;
            progress.call1(py, (done, self.total.load(Relaxed)))?;
        }
        Ok(())
    }
}

/// Does work in a thread of its own, without Python's lock. A signal handler or a `progress(done, total)` that raises an
/// exception stops it.
///
/// # Errors
/// That exception, or the error of the work.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watched) -> Result<T> + Send,
) -> PyResult<T> {
    let state = Watched::default();
    InterruptHandler::begin();
    let (mut known, mut raised_here) = (0, None);
    let outcome = py.detach(|| {
        scope(|scope| {
            let (running, ended) = channel::<()>();
            let worker = scope.spawn(|| {
                let _running = running;
                work(&state)
            });
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                InterruptHandler::restore();
                if raised_here.is_none() {
                    raised_here = Python::attach(|py| {
                        py.check_signals().and_then(|()| state.report(py, progress.as_ref(), &mut known)).err()
                    });
                    state.stopped.fetch_or(raised_here.is_some(), Relaxed);
                }
            }
            worker.join()
        })
    });
    InterruptHandler::end();
    match (raised_here, outcome) {
        (Some(exception), _) => Err(exception),
        (None, Ok(Ok(result))) => state.report(py, progress.as_ref(), &mut known).map(|()| result),
        (None, Ok(Err(error))) => Err(raised(py, &error)),
        (None, Err(_)) => Err(PyRuntimeError::new_err("the run stopped unexpectedly; this is a bug in fbp")),
    }
}

/// What the process does on SIGINT while runs are watched. Compilers in drivers put handlers of their own in its place, which
/// end the process.
struct InterruptHandler {
    /// Number of runs.
    runs: usize,
    /// Handler before the first of them.
    own: Option<libc::sigaction>,
}

static HANDLER: Mutex<InterruptHandler> = Mutex::new(InterruptHandler { runs: 0, own: None });

impl InterruptHandler {
    fn locked() -> MutexGuard<'static, InterruptHandler> {
        HANDLER.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin() {
        let mut handler = InterruptHandler::locked();
        if handler.runs == 0 {
            handler.own = InterruptHandler::present();
        }
        handler.runs += 1;
    }

    fn end() {
        InterruptHandler::restore();
        InterruptHandler::locked().runs -= 1;
    }

    fn present() -> Option<libc::sigaction> {
        let mut action = MaybeUninit::uninit();
        // SAFETY: nothing is changed, and a call that succeeds fills `action`
        let read = unsafe { libc::sigaction(libc::SIGINT, std::ptr::null(), action.as_mut_ptr()) };
        // SAFETY: the call has filled it
        (read == 0).then(|| unsafe { action.assume_init() })
    }

    /// Puts the handler back if another one has taken its place.
    fn restore() {
        let handler = InterruptHandler::locked();
        let (Some(own), Some(now)) = (&handler.own, InterruptHandler::present()) else { return };
        if own.sa_sigaction != now.sa_sigaction {
            // SAFETY: `own` was the handler of this process
            unsafe { libc::sigaction(libc::SIGINT, own, std::ptr::null_mut()) };
        }
    }
}

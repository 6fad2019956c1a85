//! The Python module `fbp._fbp`: what commands do, with NumPy arrays. `fbp/__init__.py` has the functions for users.

mod array;
mod errors;
mod watch;

use array::{Lent, Scan, Taken, like};
use fbp::commands::arrays::{ArrayFlag, ArrayPages, ArraySlices, array_axis, read_scan};
use fbp::source::{Stack, hdf5};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use watch::{Watched, watched};

/// Messages of a run, in order.
type Said = Vec<String>;

/// Lets the program examine HDF5 files before this process reads them, as damaged ones may crash it.
#[pyfunction]
fn examine_with(program: PathBuf) {
    hdf5::examine_with(program);
}

/// Returns slices, the position of the axis and messages.
#[pyfunction]
fn reconstruct<'py>(
    py: Python<'py>,
    scan: Scan,
    flags: Vec<ArrayFlag>,
    out: Option<Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, f64, Said)> {
    let scan = scan.lent(py)?;
    let run = watched(py, None, |_| ArraySlices::open(&flags, scan))?;
    let shape = run.shape();
    let out = like(py, out, shape)?;
    let taken = Taken::of(&out, shape)?;
    watched(py, progress, |watched: &Watched| {
        watched.total.store(shape[0], Relaxed);
        run.run(Arc::new(move |place, values| taken.put(place, values)), &watched.stopped, &mut |count| {
            watched.done.fetch_add(count, Relaxed);
        })
    })?;
    Ok((out, run.axis().value, run.said()))
}

/// Returns corrected pages and messages.
#[pyfunction]
fn preprocess<'py>(
    py: Python<'py>,
    scan: Scan,
    flags: Vec<ArrayFlag>,
    out: Option<Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Said)> {
    let scan = scan.lent(py)?;
    let run = watched(py, None, |_| ArrayPages::open(&flags, scan))?;
    let shape = run.shape();
    let out = like(py, out, shape)?;
    let taken = Taken::of(&out, shape)?;
    watched(py, progress, |watched: &Watched| {
        watched.total.store(shape[0], Relaxed);
        run.run(|place, values| {
            watched.go_on()?;
            taken.put(place, values);
            watched.done.fetch_add(1, Relaxed);
            Ok(())
        })
    })?;
    Ok((out, run.said()))
}

/// Returns position, standard deviation, verdict, method and tilt of the axis, and messages.
#[pyfunction]
#[allow(clippy::type_complexity)] // one call reads it
fn find_center(
    py: Python<'_>,
    scan: Scan,
    flags: Vec<ArrayFlag>,
) -> PyResult<((f64, f64, String, String, Option<f64>), Said)> {
    let scan = scan.lent(py)?;
    let found = watched(py, None, |_| array_axis(&flags, scan))?;
    let axis = found.estimate;
    let verdict = axis.verdict.to_string();
    Ok(((axis.value, axis.uncertainty, verdict, axis.method.to_string(), found.tilt), found.said))
}

/// Returns the arrays of a scan in files by their names.
#[pyfunction]
fn open<'py>(py: Python<'py>, flags: Vec<ArrayFlag>) -> PyResult<Bound<'py, PyDict>> {
    let stacks = watched(py, None, |_| read_scan(&flags))?;
    let arrays = PyDict::new(py);
    let fields = [("flats", &stacks.flats), ("flats2", &stacks.flats2), ("darks", &stacks.darks)];
    arrays.set_item("data", read(py, &stacks.data)?)?;
    for (name, stack) in fields {
        arrays.set_item(name, stack.as_ref().map(|stack| read(py, stack)).transpose()?)?;
    }
    arrays.set_item("angles", &stacks.angles)?;
    arrays.set_item("center_shifts", &stacks.shifts)?;
    Ok(arrays)
}

/// Reads all frames of a stack into a new array.
fn read<'py>(py: Python<'py>, stack: &Stack) -> PyResult<Bound<'py, PyAny>> {
    let stored = stack.stored();
    let (frames, height, width) = (stack.len(), stack.height(), stack.width());
    // binned samples are means
    let kind = if stored.by == 1 { array::kind_of(stored.samples) } else { "=f4".to_owned() };
    let array = py.import("numpy")?.call_method1("empty", ((frames, height, width), &kind))?;
    let lent = Lent::whole(&array)?;
    watched(py, None, move |watched: &Watched| {
        let frame_bytes = lent.len() / frames;
        (0..frames).into_par_iter().try_for_each(|frame| {
            watched.go_on()?;
            // SAFETY: the array is new, and its frames do not overlap
            let bytes = unsafe { lent.part(frame * frame_bytes, frame_bytes) };
            match stored.by {
                1 => stack.read_stored(frame, std::slice::from_ref(&(0..height)), bytes),
                _ => {
                    let mut values = vec![0f32; height * width];
                    stack.read_rows(frame, 0..height, &mut values)?;
                    bytes.chunks_exact_mut(4).zip(values).for_each(|(b, v)| b.copy_from_slice(&v.to_ne_bytes()));
                    Ok(())
                }
            }
        })
    })?;
    Ok(array)
}

#[pymodule]
fn _fbp(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(examine_with, module)?)?;
    module.add_function(wrap_pyfunction!(reconstruct, module)?)?;
    module.add_function(wrap_pyfunction!(preprocess, module)?)?;
    module.add_function(wrap_pyfunction!(find_center, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)?;
    Ok(())
}

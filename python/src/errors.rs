//! Errors of the library as exceptions of `fbp.errors`.

use fbp::error::Error;
use pyo3::prelude::*;

/// Returns the exception of an error's exit code.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    raised_as(py, error.exit_code(), &error.to_string())
}

/// Returns the exception of an exit code.
pub fn raised_as(py: Python<'_>, code: u8, message: &str) -> PyErr {
    let exception = || py.import("fbp.errors")?.getattr("of_exit_code")?.call1((code, message));
    exception().map_or_else(|error| error, PyErr::from_value)
}

/// Returns the exception of something that the caller gave and that cannot be used.
pub fn refused(py: Python<'_>, message: &str) -> PyErr {
    raised_as(py, 2, message)
}

//! Regularised least squares on a device: rows are back-projected by the kernels of exact interpolation, and slices searched by
//! the operation `split`, as [`least_squares`](crate::least_squares) does it on the host
//! ([least-squares.md](../../../docs/least-squares.md)).

mod back_projection;
mod form;
mod on_device;

pub use form::SolverForm;
pub use on_device::{DeviceSolver, SolverStart, slice_weights, split_images};

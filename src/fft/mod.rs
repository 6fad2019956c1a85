//! The filter: transforms of rows on the device or the host, and the conversion of rows to a compound sinogram.

mod batch;
mod clfft;
mod errors;
mod host;
mod layout;
mod rows;
mod spectra;
mod transform;

pub use batch::{FilterSetup, RowBatch};
pub use clfft::{ClFftRows, image_transform, tear_down};
pub use host::HostRows;
pub use layout::{RowStageForm, row_layout};
pub use rows::{Filtered, RowStage};
pub use transform::RowTransform;

use crate::device::Session;
use crate::error::Result;
use errors::WrongFilterError;
use opencl3::memory::Buffer;
use std::f32::consts::TAU;

/// A transform of `batch` rows of `length`. `rows` must be able to hold them and is overwritten.
///
/// Uses clFFT if it works here for this length, else the host, with the reason. clFFT reports that a plan is ready even
/// if the device's compiler rejected its kernels (as newer compilers do for many lengths), so the plan is tested.
///
/// # Errors
/// A device error when clFFT is not installed.
pub fn row_transform(
    session: &Session,
    length: usize,
    batch: usize,
    rows: &mut Buffer<[f32; 2]>,
) -> Result<(Box<dyn RowTransform>, Option<String>)> {
    clfft::load()?;
    let tried = ClFftRows::new(session, length, batch).and_then(|mut transform| {
        try_out(session, &mut transform, length, rows)?;
        Ok(transform)
    });
    Ok(match tried {
        Ok(transform) => (Box::new(transform), None),
        Err(error) => (
            Box::new(HostRows::new(length, batch)),
            Some(format!("{error}; rows are transformed on the host instead, which is slower on a GPU")),
        ),
    })
}

/// Transforms an impulse at position 1 of the first row forward and back, and checks the values.
fn try_out(
    session: &Session,
    transform: &mut dyn RowTransform,
    length: usize,
    rows: &mut Buffer<[f32; 2]>,
) -> Result<()> {
    let mut row = vec![[0f32; 2]; length];
    row[1 % length] = [1.0, 0.0];
    let impulse = row.clone();
    let check = |got: &[[f32; 2]], want: &dyn Fn(usize) -> [f32; 2], limit: f32| -> Result<()> {
        let close = |(k, v): (usize, &[f32; 2])| (0..2).all(|i| (v[i] - want(k)[i]).abs() <= limit);
        match got.iter().enumerate().all(close) {
            true => Ok(()),
            false => Err(WrongFilterError::Transform { device: session.device_name().to_owned(), length }.into()),
        }
    };
    session.write(rows, &row, "padded rows")?;
    transform.forward(session, rows)?;
    session.read(rows, &mut row, "padded rows")?;
    let wave = |k: usize| {
        let (sin, cos) = (TAU * k as f32 / length as f32).sin_cos();
        [cos, -sin]
    };
    check(&row, &wave, 1e-3)?;
    transform.backward(session, rows)?;
    session.read(rows, &mut row, "padded rows")?;
    let scale = length as f32;
    check(&row, &|k| impulse[k].map(|v| v * scale), 1e-3 * scale)
}

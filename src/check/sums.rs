//! Test of the sums over all projections that make a double flat field.

use super::values::{farthest, noise};
use crate::device::Session;
use crate::error::Result;
use crate::operations::{ColumnProducts, SinogramBatch, SinogramShape};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

/// Returns the error of the sums over the projections of transmissions of some rows.
pub(super) fn sums(session: &Session, [rows, projections, bins]: [usize; 3]) -> Result<f64> {
    let transmissions: Vec<f32> = (0..rows * projections * bins).map(|i| noise(i) as f32).collect();
    let mut values: Buffer<f32> = session.buffer(transmissions.len(), CL_MEM_READ_WRITE, "rows")?;
    session.write(&mut values, &transmissions, "rows")?;
    let shape = SinogramShape { slices: rows, projections, bins };
    let sums = ColumnProducts::new(session, shape, &[0, projections], &vec![1.0; projections])?;
    sums.run(session, &SinogramBatch { values: &values, first: 0, slices: rows, projections, bins })?;
    let got = sums.download(session, rows)?;
    let mut want = vec![0f64; rows * bins];
    for (i, value) in transmissions.into_iter().enumerate() {
        want[i / (projections * bins) * bins + i % bins] += f64::from(value);
    }
    Ok(farthest(&got, &want))
}

//! The check of the filter for a number of bins.

use crate::device::Session;
use crate::error::Result;
use crate::fft::{FilterSetup, RowStage};
use crate::kernel::{KernelSpec, RowFilter};
use crate::spectrum::{Filter, Padding, scaled_spectrum};

/// Filters noise as `rows` says and compares it with the host's filter. Returns a note if rows are filtered in another
/// way on this device.
///
/// # Errors
/// A device error if the filter is wrong.
pub fn examine_rows(session: &Session, spec: &KernelSpec, rows: RowFilter, bins: usize) -> Result<Option<String>> {
    let spectrum = scaled_spectrum(Filter::Ramp, 1.0, rows.length);
    let setup = FilterSetup {
        spec,
        rows,
        padding: Padding::Edge,
        bins,
        projections: 2,
        spectrum: &spectrum,
        weights: &[1.0; 2],
        in_place: false,
    };
    let mut stage = RowStage::new(session, setup)?;
    stage.ready(session, None)?;
    Ok(stage.note)
}

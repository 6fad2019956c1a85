//! The buffers of a stage that filters rows.

use crate::device::BufferLayout;
use crate::kernel::{KernelSpec, RowFilter, RowFilterMethod, Texel};

/// Sizes that decide which buffers a stage has.
#[derive(Clone, Copy)]
pub struct RowStageForm<'a> {
    pub spec: &'a KernelSpec,
    pub rows: RowFilter,
    pub bins: usize,
    /// Projections at a time, and of the scan.
    pub projections: usize,
    pub all_projections: usize,
    /// Filtered rows may take the place of the rows.
    pub in_place: bool,
    /// Compute units of the device.
    pub units: u32,
}

/// The buffers of a stage.
pub fn row_layout(form: RowStageForm) -> BufferLayout {
    let RowStageForm { spec, rows, bins, projections, all_projections, in_place, units } = form;
    let (slices, length) = (spec.slices as usize, rows.length);
    let spectra = matches!(spec.texel, Texel::Spectra { .. });
    let layout = BufferLayout::default().with::<u32>("peaks", slices);
    if rows.method == RowFilterMethod::Host && !spectra {
        return layout;
    }
    let pairs = slices * projections.div_ceil(2);
    let layout = match rows.method {
        RowFilterMethod::Fused { .. } => layout.with::<[f32; 2]>("the transform's factors", length).with_if::<f32>(
            !in_place && !spectra,
            "filtered rows",
            slices * projections * bins,
        ),
        RowFilterMethod::Vector if spectra => layout
            .with::<[f32; 2]>("the transform's factors", length)
            .with::<[f32; 2]>("rows in work", slices * rows.scratch(units)),
        _ => layout.with::<[f32; 2]>("padded rows", pairs * if spectra { length } else { rows.stride(bins) }),
    };
    let parts = all_projections.div_ceil(projections.max(1));
    let part = |number: usize| projections.min(all_projections - number * projections);
    let weights = (0..parts).fold(layout, |layout, number| layout.with::<f32>("projection weights", part(number)));
    weights.with::<f32>("the filter's spectrum", length).with_if::<f32>(spectra, "no filter's spectrum", length)
}

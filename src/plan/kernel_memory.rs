//! Memory on the device between sinograms and slices: filtered rows, the compound sinogram, tables and grids.

use super::kernel_choice::Chosen;
use super::request::Bytes;
use crate::device::{GridForm, SinogramStore, projector_layout, sinogram_bytes};
use crate::facts::DeviceFacts;
use crate::fft::{RowStageForm, row_layout};
use crate::geometry::{Cut, Geometry, Roi};
use crate::kernel::{Parameters, RowFilter};

/// The kernels and the scan that decide how much memory there is.
pub(super) struct KernelMemory<'a> {
    pub geometry: &'a Geometry,
    pub chosen: &'a Chosen,
    pub rows: RowFilter,
    pub facts: &'a DeviceFacts,
}

/// Bytes that gridding needs.
#[derive(Default)]
pub(super) struct GridBytes {
    grids: u64,
    /// Bytes of tables that take the place of those of other kernels.
    tables: Option<u64>,
}

impl KernelMemory<'_> {
    /// Returns the buffers for a cut of a pass.
    pub fn buffers(&self, cut: Cut) -> [Bytes; 4] {
        let KernelMemory { geometry, rows, .. } = *self;
        let spec = &self.chosen.spec;
        let form = RowStageForm {
            spec,
            rows,
            bins: geometry.bins,
            projections: cut.projections,
            all_projections: geometry.projections(),
            // another band would need the rows, too
            in_place: cut == Cut::whole(geometry),
            units: self.facts.compute_units,
        };
        let sinogram = sinogram_bytes(spec.texel, geometry.bins, cut.projections, spec.element_bytes());
        let GridBytes { grids, tables } = self.grid(cut).unwrap_or_default();
        [
            Bytes { what: "filtered rows", bytes: row_layout(form).bytes() },
            Bytes { what: "compound sinogram", bytes: SinogramStore::layout(spec.texel, sinogram).bytes() },
            Bytes { what: "geometry tables", bytes: tables.unwrap_or_else(|| self.tables(cut)) },
            Bytes { what: "grids", bytes: grids },
        ]
    }

    /// Returns the bytes of the tables of all parts and bands, for kernels that read rows at the positions of pixels.
    fn tables(&self, cut: Cut) -> u64 {
        let KernelMemory { geometry, chosen, .. } = *self;
        let of_part = |roi: Roi| {
            let of = |projections| {
                let part = Geometry { roi, ..geometry.part(projections) };
                projector_layout(&chosen.spec, &part, chosen.source.block).bytes()
            };
            cut.parts(geometry).map(of).sum::<u64>()
        };
        cut.bands(geometry.roi).map(of_part).sum()
    }

    /// Returns the memory of gridding for a cut of a pass; `None` if a band has no grid.
    pub fn grid(&self, cut: Cut) -> Option<GridBytes> {
        let KernelMemory { geometry, facts, .. } = *self;
        let spec = &self.chosen.spec;
        let Parameters::Gridding(gridding) = &spec.parameters else { return Some(GridBytes::default()) };
        let form = |roi| GridForm::new(facts, gridding, roi, spec.bound.accuracy).ok().flatten();
        // all bands but the last have as many rows
        let bands: Vec<Roi> = cut.bands(geometry.roi).collect();
        let [first, last] = [form(*bands.first()?)?, form(*bands.last()?)?];
        let values = [&first, &last].map(|form| form.values(spec.slices as usize)).into_iter().max().unwrap_or(0);
        let tables = (bands.len() as u64 - 1) * first.table_bytes(geometry) + last.table_bytes(geometry);
        Some(GridBytes { grids: 8 * values as u64, tables: Some(tables) })
    }
}

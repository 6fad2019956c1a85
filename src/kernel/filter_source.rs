//! The source of the filter's kernels: of rows for a compound sinogram, and for spectra.

use super::files::{
    BUTTERFLIES, COMMON, ClFile, FILTER, FILTER_ROWS, FILTER_SPECTRA, FILTER_SPECTRA_VECTOR, HALVES, PAD_ROWS, PADDING,
    PHASE, TRANSFORM_LINE, TRANSFORM_ROW,
};
use super::source::assemble;
use super::{
    Defines, KernelSource, KernelSpec, LaunchShape, ROW_GROUP, RowFilter, RowFilterMethod, Storage, TILE, Texel,
};
use crate::error::{Error, Result};
use crate::spectrum::{Padding, stored_of};

/// Source of the filter's kernels for the layout that `spec` reads.
pub fn generate_filter(spec: &KernelSpec, padding: Padding, filter: RowFilter) -> Result<KernelSource> {
    if let Texel::Spectra { .. } = spec.texel {
        return generate_spectra(spec, padding, filter);
    }
    let mut defines = Defines::default();
    defines.number("SLICES", spec.slices)?;
    defines.number("CHANNELS", spec.texel.channels(spec.slices) as u32)?;
    defines.switch("HALF_STORAGE", spec.parameters.storage() == Storage::Half)?;
    defines.number("GUARD", spec.texel.guard() as u32)?;
    defines.number("GROUP", ROW_GROUP as u32)?;
    defines.number("TILE", TILE[0] as u32)?;
    defines.number("TILE_ROWS", TILE[1] as u32)?;
    defines.switch("SPLIT", matches!(spec.texel, Texel::Halves { split: true, .. }))?;
    defines.number("PADDING", padding as u32)?;
    defines.switch("PLANAR", filter.is_planar())?;
    let mut files = vec![COMMON, HALVES, PADDING];
    if !filter.is_planar() {
        files.push(PAD_ROWS);
    }
    files.push(FILTER);
    // not the kernel's name: kernels that read one layout share the program
    let mut name = format!("filter-{}", spec.layout());
    if let RowFilterMethod::Fused { rows, parts } = filter.method {
        defines.number("LENGTH", filter.length as u32)?;
        defines.number("ROWS", rows as u32)?;
        defines.number("PARTS", parts)?;
        files.extend([BUTTERFLIES, TRANSFORM_ROW, FILTER_ROWS]);
        name = format!("fused-{}-{name}", filter.length);
    }
    Ok(assemble(name, &defines, &files, spec.build.compiler_options(), "interleave", LaunchShape::NONE))
}

/// Source of the kernels that make spectra of rows in the layout that `spec` reads.
fn generate_spectra(spec: &KernelSpec, padding: Padding, filter: RowFilter) -> Result<KernelSource> {
    let of_other_rows = || Error::Internal(format!("spectra for {} are not made {}", spec.name(), filter.method));
    let together = spec.texel == Texel::Spectra { together: true };
    if together != (filter.method == RowFilterMethod::Vector) {
        return Err(of_other_rows());
    }
    let mut defines = Defines::default();
    defines.number("SLICES", spec.slices)?;
    defines.number("PADDING", padding as u32)?;
    defines.number("STRIDE", stored_of(filter.length) as u32)?;
    let (of, files): (String, &[ClFile]) = match filter.method {
        RowFilterMethod::Vector => {
            defines.number("LENGTH", filter.length as u32)?;
            defines.switch("VECTOR", true)?;
            defines.number("WORK_X", 1)?;
            defines.number("WORK_Y", 1)?;
            (
                format!("vector-{}", filter.length),
                &[COMMON, PADDING, PHASE, BUTTERFLIES, TRANSFORM_LINE, FILTER_SPECTRA_VECTOR],
            )
        }
        RowFilterMethod::Fused { rows, parts } => {
            defines.number("GROUP", ROW_GROUP as u32)?;
            defines.switch("FUSED", true)?;
            defines.number("LENGTH", filter.length as u32)?;
            defines.number("ROWS", rows as u32)?;
            defines.number("PARTS", parts)?;
            (
                format!("fused-{}", filter.length),
                &[COMMON, PADDING, PAD_ROWS, PHASE, BUTTERFLIES, TRANSFORM_ROW, FILTER_SPECTRA],
            )
        }
        RowFilterMethod::Transform => {
            defines.number("GROUP", ROW_GROUP as u32)?;
            ("transform".to_owned(), &[COMMON, PADDING, PAD_ROWS, PHASE, FILTER_SPECTRA])
        }
        RowFilterMethod::Host => return Err(of_other_rows()),
    };
    let name = format!("{of}-spectra-{}", spec.layout());
    Ok(assemble(name, &defines, files, spec.compiler_options(), "filter_spectra", LaunchShape::NONE))
}

//! The files of `cl/`, embedded in the program.

/// A file of `cl/`: name and text.
pub type ClFile = (&'static str, &'static str);

/// Embeds the file of `cl/` with this name.
macro_rules! cl_file {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/cl/", $name)))
    };
}
pub(crate) use cl_file;

pub const COMMON: ClFile = cl_file!("common.cl");
pub(super) const SAMPLE_BUFFER: ClFile = cl_file!("sample_buffer.cl");
pub(super) const SAMPLE_IMAGE: ClFile = cl_file!("sample_image.cl");
pub(super) const SAMPLE: ClFile = cl_file!("sample.cl");
pub(super) const EXCHANGE: ClFile = cl_file!("exchange.cl");
pub(super) const ROUND: ClFile = cl_file!("round.cl");
pub(super) const HALVES: ClFile = cl_file!("halves.cl");
pub(super) const PADDING: ClFile = cl_file!("padding.cl");
pub(super) const PAD_ROWS: ClFile = cl_file!("pad_rows.cl");
pub(super) const FILTER: ClFile = cl_file!("filter.cl");
pub(super) const FILTER_SPECTRA: ClFile = cl_file!("filter_spectra.cl");
pub(super) const FILTER_SPECTRA_VECTOR: ClFile = cl_file!("filter_spectra_vector.cl");
pub(super) const PHASE: ClFile = cl_file!("phase.cl");
pub const BUTTERFLIES: ClFile = cl_file!("butterflies.cl");
pub(super) const GRID_VECTOR: ClFile = cl_file!("grid_vector.cl");
pub(super) const GRID_LINES: ClFile = cl_file!("grid_lines.cl");
pub(super) const LINES_VECTOR: ClFile = cl_file!("lines_vector.cl");
pub(super) const MEMORY_HINTS: ClFile = cl_file!("memory_hints.cl");
pub(super) const TRANSFORM_LINE: ClFile = cl_file!("transform_line.cl");
pub const TRANSFORM_ROW: ClFile = cl_file!("transform_row.cl");
pub(super) const FILTER_ROWS: ClFile = cl_file!("filter_rows.cl");
pub(super) const PROBE_IMAGE: ClFile = cl_file!("probe_image.cl");

/// Files that several families, or no family, include, with the files that must precede each.
pub(super) const SHARED: &[(ClFile, &[ClFile])] = &[
    (COMMON, &[]),
    (SAMPLE_BUFFER, &[COMMON]),
    (SAMPLE_IMAGE, &[COMMON]),
    (SAMPLE, &[COMMON, SAMPLE_BUFFER]),
    (EXCHANGE, &[COMMON]),
    (ROUND, &[COMMON]),
    (HALVES, &[COMMON]),
    (PADDING, &[COMMON]),
    (PAD_ROWS, &[COMMON, PADDING]),
    (FILTER, &[COMMON, HALVES]),
    (BUTTERFLIES, &[COMMON]),
    (TRANSFORM_ROW, &[COMMON, BUTTERFLIES]),
    (FILTER_ROWS, &[COMMON, HALVES, PADDING, FILTER, BUTTERFLIES, TRANSFORM_ROW]),
    (PHASE, &[COMMON]),
    (FILTER_SPECTRA, &[COMMON, PADDING, PAD_ROWS, PHASE]),
    (FILTER_SPECTRA_VECTOR, &[COMMON, PADDING, PHASE, BUTTERFLIES, TRANSFORM_LINE]),
    (MEMORY_HINTS, &[COMMON]),
    (GRID_VECTOR, &[COMMON, BUTTERFLIES, MEMORY_HINTS]),
    (GRID_LINES, &[COMMON, BUTTERFLIES, TRANSFORM_ROW]),
    (TRANSFORM_LINE, &[COMMON, BUTTERFLIES]),
    (LINES_VECTOR, &[COMMON, MEMORY_HINTS, BUTTERFLIES, TRANSFORM_LINE]),
    (PROBE_IMAGE, &[]),
];

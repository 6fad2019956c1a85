//! The files of `cl/`, embedded in the program.

/// A file of `cl/`: name and text.
pub type ClFile = (&'static str, &'static str);

/// Embeds the file of `cl/` with this name.
macro_rules! cl_file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../cl/", $name)))
    };
}
pub(super) use cl_file;

pub(super) const COMMON: ClFile = cl_file!("common.cl");
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
pub(super) const BUTTERFLIES: ClFile = cl_file!("butterflies.cl");
pub(super) const GRID_VECTOR: ClFile = cl_file!("grid_vector.cl");
pub(super) const GRID_LINES: ClFile = cl_file!("grid_lines.cl");
pub(super) const LINES_VECTOR: ClFile = cl_file!("lines_vector.cl");
pub(super) const MEMORY_HINTS: ClFile = cl_file!("memory_hints.cl");
pub(super) const TRANSFORM_LINE: ClFile = cl_file!("transform_line.cl");
pub(super) const TRANSFORM_ROW: ClFile = cl_file!("transform_row.cl");
pub(super) const FILTER_ROWS: ClFile = cl_file!("filter_rows.cl");
pub(super) const SAMPLES: ClFile = cl_file!("samples.cl");
pub(super) const BIN_SAMPLES: ClFile = cl_file!("bin_samples.cl");
pub(super) const LOGARITHM: ClFile = cl_file!("logarithm.cl");
pub(super) const CORRECT_ROWS: ClFile = cl_file!("correct_rows.cl");
pub(super) const ROTATE_ROWS: ClFile = cl_file!("rotate_rows.cl");
pub(super) const IMAGE_PLACES: ClFile = cl_file!("image_places.cl");
pub(super) const FILTER_IMAGES: ClFile = cl_file!("filter_images.cl");
pub(super) const WHOLE_IMAGES: ClFile = cl_file!("whole_images.cl");
pub(super) const MINUS_LOG: ClFile = cl_file!("minus_log.cl");
pub(super) const REMOVE_OUTLIERS: ClFile = cl_file!("remove_outliers.cl");
pub(super) const EXTEND_ROWS: ClFile = cl_file!("extend_rows.cl");
pub(super) const ENCODE_SLICES: ClFile = cl_file!("encode_slices.cl");
pub(super) const HISTOGRAM: ClFile = cl_file!("histogram.cl");
pub(super) const LOW_FREQUENCIES: ClFile = cl_file!("low_frequencies.cl");
pub(super) const FLOAT_ORDER: ClFile = cl_file!("float_order.cl");
pub(super) const COLUMNS: ClFile = cl_file!("columns.cl");
pub(super) const COLUMN_SUMS: ClFile = cl_file!("column_sums.cl");
pub(super) const TRANSPOSED_MEDIANS: ClFile = cl_file!("transposed_medians.cl");
pub(super) const PROBE_IMAGE: ClFile = cl_file!("probe_image.cl");
pub(super) const SINOGRAMS: ClFile = cl_file!("sinograms.cl");
pub(super) const POLYNOMIALS: ClFile = cl_file!("polynomials.cl");
pub(super) const MEDIAN: ClFile = cl_file!("median.cl");
pub(super) const FITS: ClFile = cl_file!("fits.cl");
pub(super) const WAVELET: ClFile = cl_file!("wavelet.cl");

/// Files that several families or none include, with the files that must precede each.
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
    (SAMPLES, &[]),
    (BIN_SAMPLES, &[COMMON, SAMPLES]),
    (LOGARITHM, &[]),
    (CORRECT_ROWS, &[SAMPLES, LOGARITHM]),
    (ROTATE_ROWS, &[COMMON]),
    (IMAGE_PLACES, &[COMMON]),
    (FILTER_IMAGES, &[COMMON, BUTTERFLIES, TRANSFORM_ROW, IMAGE_PLACES]),
    (WHOLE_IMAGES, &[COMMON, IMAGE_PLACES]),
    (MINUS_LOG, &[LOGARITHM]),
    (REMOVE_OUTLIERS, &[COMMON, FLOAT_ORDER, SAMPLES]),
    (EXTEND_ROWS, &[]),
    (ENCODE_SLICES, &[]),
    (HISTOGRAM, &[COMMON, FLOAT_ORDER]),
    (LOW_FREQUENCIES, &[COMMON]),
    (PROBE_IMAGE, &[]),
    (SINOGRAMS, &[COMMON]),
    (POLYNOMIALS, &[COMMON, SINOGRAMS]),
    (MEDIAN, &[COMMON, SINOGRAMS, FLOAT_ORDER]),
    (FITS, &[COMMON, SINOGRAMS, FLOAT_ORDER, MEDIAN]),
    (WAVELET, &[COMMON, SINOGRAMS]),
    (FLOAT_ORDER, &[COMMON]),
    (COLUMNS, &[COMMON, SINOGRAMS, FLOAT_ORDER]),
    (COLUMN_SUMS, &[COMMON, SINOGRAMS]),
    (TRANSPOSED_MEDIANS, &[COMMON, SINOGRAMS, FLOAT_ORDER, MEDIAN]),
];

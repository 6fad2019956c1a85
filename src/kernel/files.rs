//! The files of `cl/`, as part of the program.

use super::{Algorithm, Interpolation, Mode, Parameters, Texel};

/// A file of `cl/`: name and text.
pub type ClFile = (&'static str, &'static str);

/// The file of `cl/` with this name.
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
pub(super) const FILTER: ClFile = cl_file!("filter.cl");
pub(super) const FILTER_ROWS: ClFile = cl_file!("filter_rows.cl");
pub(super) const PROBE_IMAGE: ClFile = cl_file!("probe_image.cl");

/// Files that several families or none include, with the files that must precede each.
const SHARED: &[(ClFile, &[ClFile])] = &[
    (COMMON, &[]),
    (SAMPLE_BUFFER, &[COMMON]),
    (SAMPLE_IMAGE, &[COMMON]),
    (SAMPLE, &[COMMON, SAMPLE_BUFFER]),
    (EXCHANGE, &[COMMON]),
    (ROUND, &[COMMON]),
    (HALVES, &[COMMON]),
    (FILTER, &[COMMON, HALVES]),
    (FILTER_ROWS, &[COMMON, HALVES, FILTER]),
    (PROBE_IMAGE, &[]),
];

/// Every file of `cl/` with the files that must precede it.
pub fn files() -> Vec<(ClFile, Vec<ClFile>)> {
    let mut files: Vec<(ClFile, Vec<ClFile>)> = SHARED.iter().map(|&(file, before)| (file, before.to_vec())).collect();
    for &algorithm in Algorithm::ALL {
        let parameters = Parameters::start(algorithm, Mode::Fast);
        // the last layout needs no image
        let family = parameters.family();
        let texel = family.texels(Interpolation::Linear, *family.slices().start()).pop();
        let reader = texel.and_then(Texel::reader);
        let mut before: Vec<ClFile> = [COMMON].into_iter().chain(reader).collect();
        for &file in family.files() {
            if !files.iter().any(|((name, _), _)| *name == file.0) {
                files.push((file, before.clone()));
            }
            before.push(file);
        }
    }
    files
}

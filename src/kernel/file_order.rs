//! All files of `cl/`, in an order in which they can be included.

use super::files::{COMMON, ClFile, SHARED};
use super::{Algorithm, Interpolation, Mode, Parameters, Texel};

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

//! The datasets of an output by their paths, and opening its files with the library.

use crate::source::hdf5::dataset;
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File};
use std::io;
use std::path::Path;
use std::time::Duration;

/// The slices, their numbers, their checksums, and what is said of the run.
pub(super) const DATA_PATH: &str = "/entry/reconstruction/results/data";
pub(super) const NUMBERS_PATH: &str = "/entry/reconstruction/results/slice";
pub(super) const MARKS_PATH: &str = "/entry/reconstruction/results/checksums";
pub(super) const DESCRIPTION_PATH: &str = "/entry/reconstruction/configuration/fbp";
pub(super) const RUN_FILE_PATH: &str = "/entry/reconstruction/configuration/run";
/// Offsets of the slices in the parts, if there are several.
pub(super) const PART_OFFSETS_PATH: &str = "/entry/reconstruction/configuration/part_offsets";
/// Where compressed slices are, and how much of each part is in use.
pub(super) const PLACES_PATH: &str = "/entry/reconstruction/configuration/places";
/// The slices of a part.
pub(super) const PART_DATA_PATH: &str = "/data";

/// An error of the library.
pub(super) fn other(error: hdf5_metno::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// An error about what is in a file.
pub(super) fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Where the values of a dataset begin in its file.
pub(super) fn offset(dataset: &Dataset) -> io::Result<u64> {
    let offset = dataset.offset();
    offset.ok_or_else(|| invalid("has a dataset that is not contiguous; choose another --output"))
}

/// Opens a file that this program may just have closed. A process that it is starting at this moment still holds the
/// library's lock of it, until it is another program: that is waited for.
pub(super) fn open_closed(path: &Path) -> io::Result<File> {
    const TRIES: usize = 50;
    let locked = |error: &hdf5_metno::Error| error.to_string().contains("unable to lock file");
    for _ in 1..TRIES {
        match File::open(path) {
            Err(error) if locked(&error) => std::thread::sleep(Duration::from_millis(20)),
            opened => return opened.map_err(other),
        }
    }
    File::open(path).map_err(other)
}

/// A dataset by its path, which may be that of another program.
pub(super) fn own_dataset(file: &File, name: &str) -> io::Result<Dataset> {
    dataset(file, name).map_err(io::Error::other)
}

/// The text of a dataset. The library does not check that it is UTF-8.
pub(super) fn text_of(file: &File, name: &str) -> io::Result<String> {
    let text = own_dataset(file, name)?.read_scalar::<VarLenUnicode>().map_err(other)?;
    Ok(std::str::from_utf8(text.as_bytes()).map_err(io::Error::other)?.to_owned())
}

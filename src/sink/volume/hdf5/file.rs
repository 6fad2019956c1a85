//! Paths of the datasets of an output, and opening of its files with the library.

use super::errors::Hdf5OutputError;
use crate::sink::volume::errors::invalid;
use crate::source::hdf5::dataset;
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Path of the slices.
pub(super) const DATA_PATH: &str = "/entry/reconstruction/results/data";
/// Path of the numbers of the slices.
pub(super) const NUMBERS_PATH: &str = "/entry/reconstruction/results/slice";
/// Path of the checksums of the slices.
pub(super) const MARKS_PATH: &str = "/entry/reconstruction/results/checksums";
/// Path of the description of the volume.
pub(super) const DESCRIPTION_PATH: &str = "/entry/reconstruction/configuration/fbp";
/// Path of the run file.
pub(super) const RUN_FILE_PATH: &str = "/entry/reconstruction/configuration/run";
/// Path of the offsets of the slices in the parts, if there are several parts.
pub(super) const PART_OFFSETS_PATH: &str = "/entry/reconstruction/configuration/part_offsets";
/// Path of the places of compressed slices, and of the number of bytes of each part that are in use.
pub(super) const PLACES_PATH: &str = "/entry/reconstruction/configuration/places";
/// Path of the slices in a part.
pub(super) const PART_DATA_PATH: &str = "/data";

/// Converts an error of the library.
pub(super) fn other(error: hdf5_metno::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// Returns the offset of the values of a dataset in its file.
pub(super) fn offset(dataset: &Dataset) -> io::Result<u64> {
    let offset = dataset.offset();
    offset.ok_or_else(|| invalid(Hdf5OutputError::NotContiguous))
}

/// Opens a file that this program may just have closed. A process that the program is starting at this moment holds the
/// library's lock of the file until it executes another program, for which this function waits.
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

/// Opens a dataset by its path, which another program may have written.
pub(super) fn own_dataset(file: &File, name: &str) -> io::Result<Dataset> {
    dataset(file, name).map_err(io::Error::other)
}

/// Reads the text of a dataset, and checks that it is UTF-8, which the library does not do.
pub(super) fn text_of(file: &File, name: &str) -> io::Result<String> {
    let text = own_dataset(file, name)?.read_scalar::<VarLenUnicode>().map_err(other)?;
    Ok(std::str::from_utf8(text.as_bytes()).map_err(io::Error::other)?.to_owned())
}

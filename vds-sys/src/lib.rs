//! What `hdf5-metno` does not tell of datasets: what a virtual one is made of (it lists mappings as well, but it refuses
//! selections of a single block, the usual ones), where the header of one is, and whether its type is a standard one.

use hdf5_metno::dataset::DatasetCreate;
use hdf5_metno::sync::sync;
use hdf5_metno::{Dataset, Datatype, globals};
use hdf5_metno_sys::h5p::{H5Pget_virtual_count, H5Pget_virtual_dsetname, H5Pget_virtual_filename};
use hdf5_metno_sys::h5t::H5Tequal;
use hdf5_metno_sys::{h5d, h5o, h5p};
use std::ffi::{OsString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// File and dataset of every mapping, in the order of the file; `None` where the library does not tell.
pub fn sources(plist: &DatasetCreate) -> Option<Vec<(PathBuf, String)>> {
    let (id, mut count) = (plist.id(), 0);
    sync(|| {
        // SAFETY: the list of properties is open as long as it is borrowed, `count` is there to be written to, and the
        // library's lock is held, here and below
        if unsafe { H5Pget_virtual_count(id, &mut count) } < 0 {
            return None;
        }
        (0..count)
            .map(|index| {
                // SAFETY: `text` gives a buffer and its length, or none and 0
                let file = text(|buffer, size| unsafe { H5Pget_virtual_filename(id, index, buffer, size) })?;
                // SAFETY: as above
                let name = text(|buffer, size| unsafe { H5Pget_virtual_dsetname(id, index, buffer, size) })?;
                Some((OsString::from_vec(file).into(), String::from_utf8_lossy(&name).into_owned()))
            })
            .collect()
    })
}

/// Address of the header of a dataset in its file, from the end of the user block.
#[allow(deprecated)] // what replaces the call is not the same in all versions from 1.10.5 on
pub fn header_address(dataset: &Dataset) -> Option<u64> {
    let mut info = h5o::H5O_info1_t::default();
    // SAFETY: the dataset is open as long as it is borrowed, `info` is there to be written to, and the library's lock is held
    let done = sync(|| unsafe { h5o::H5Oget_info1(dataset.id(), &mut info) });
    (done >= 0).then_some(info.addr)
}

/// Whether a type is one of the library's own of 8, 16 or 32 bits, or of 32 or 64 of a float, in either byte order: without
/// unused bits, and with nothing else that is unusual.
pub fn is_standard(kind: &Datatype) -> bool {
    let standard = [
        &globals::H5T_STD_U8LE,
        &globals::H5T_STD_U8BE,
        &globals::H5T_STD_I8LE,
        &globals::H5T_STD_I8BE,
        &globals::H5T_STD_U16LE,
        &globals::H5T_STD_U16BE,
        &globals::H5T_STD_I16LE,
        &globals::H5T_STD_I16BE,
        &globals::H5T_STD_U32LE,
        &globals::H5T_STD_U32BE,
        &globals::H5T_STD_I32LE,
        &globals::H5T_STD_I32BE,
        &globals::H5T_IEEE_F32LE,
        &globals::H5T_IEEE_F32BE,
        &globals::H5T_IEEE_F64LE,
        &globals::H5T_IEEE_F64BE,
    ];
    // SAFETY: both types are there as long as they are compared, and the library's lock is held
    standard.into_iter().any(|standard| sync(|| unsafe { H5Tequal(kind.id(), **standard) }) > 0)
}

/// Writes a chunk as it is, beside the filters, for tests of what reads chunks: `skipped` are filters that it was not given
/// to, and `first` the position of its first value. Returns whether that was done.
pub fn write_chunk(dataset: &Dataset, skipped: u32, first: &[u64], bytes: &[u8]) -> bool {
    let id = dataset.id();
    if first.len() != dataset.ndim() {
        return false;
    }
    let (at, size, data) = (first.as_ptr(), bytes.len(), bytes.as_ptr().cast());
    // SAFETY: the dataset is open, there is a position for each of its dimensions, `data` has `size` bytes, and the library's
    // lock is held
    sync(|| unsafe { h5d::H5Dwrite_chunk(id, h5p::H5P_DEFAULT, skipped, at, size, data) }) >= 0
}

/// A text of the library: `get` fills a buffer of so many bytes, its end included, and gives the length without it.
fn text(get: impl Fn(*mut c_char, usize) -> isize) -> Option<Vec<u8>> {
    let length = usize::try_from(get(std::ptr::null_mut(), 0)).ok()?;
    let mut bytes = vec![0u8; length + 1];
    let again = usize::try_from(get(bytes.as_mut_ptr().cast(), bytes.len())).ok()?;
    bytes.truncate(again.min(length));
    Some(bytes)
}

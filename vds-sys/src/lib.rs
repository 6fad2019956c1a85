//! What `hdf5-metno` does not tell of datasets: what a virtual one is made of (it lists mappings as well, but it refuses
//! selections of a single block, the usual ones), and where the header of one is.

use hdf5_metno::Dataset;
use hdf5_metno::dataset::DatasetCreate;
use hdf5_metno::sync::sync;
use hdf5_metno_sys::h5o;
use hdf5_metno_sys::h5p::{H5Pget_virtual_count, H5Pget_virtual_dsetname, H5Pget_virtual_filename};
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

/// A text of the library: `get` fills a buffer of so many bytes, its end included, and gives the length without it.
fn text(get: impl Fn(*mut c_char, usize) -> isize) -> Option<Vec<u8>> {
    let length = usize::try_from(get(std::ptr::null_mut(), 0)).ok()?;
    let mut bytes = vec![0u8; length + 1];
    let again = usize::try_from(get(bytes.as_mut_ptr().cast(), bytes.len())).ok()?;
    bytes.truncate(again.min(length));
    Some(bytes)
}

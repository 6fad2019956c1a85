//! What `hdf5-metno` does not tell: where a link leads; of datasets, what a virtual one is made of (it lists mappings as
//! well, but it refuses selections of a single block, the usual ones), where the header of one is, and whether its type is a
//! standard one.

use hdf5_metno::dataset::DatasetCreate;
use hdf5_metno::sync::sync;
use hdf5_metno::{Dataset, Datatype, Group, globals};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5Pget_virtual_count, H5Pget_virtual_dsetname, H5Pget_virtual_filename, H5Pget_virtual_srcspace,
    H5Pget_virtual_vspace,
};
use hdf5_metno_sys::h5s::H5S_sel_type;
use hdf5_metno_sys::h5t::H5Tequal;
use hdf5_metno_sys::{h5d, h5l, h5o, h5p, h5s};
use std::ffi::{CString, OsString, c_char};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mapping of a virtual dataset: selected values of a source become selected values of the dataset, in order.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// As the file has them: a path that may be relative, or contain a pattern; `.` is the file itself.
    pub file: PathBuf,
    pub dataset: String,
    pub from: SelectedValues,
    pub to: SelectedValues,
}

/// Which values of a dataset are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectedValues {
    All,
    /// Blocks at equal distances along each dimension.
    Blocks(Vec<Blocks>),
    /// Anything else: points, none, other shapes, and blocks without an end.
    Other,
}

/// Blocks along a dimension, in values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    pub start: u64,
    /// Distance between the starts of blocks.
    pub stride: u64,
    pub count: u64,
    /// Length of a block.
    pub block: u64,
}

/// Every mapping, in the order of the file; `None` where the library does not tell.
pub fn mappings(plist: &DatasetCreate) -> Option<Vec<Mapping>> {
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
                let dataset = text(|buffer, size| unsafe { H5Pget_virtual_dsetname(id, index, buffer, size) })?;
                // SAFETY: the library checks the index
                let (from, to) = unsafe { (H5Pget_virtual_srcspace(id, index), H5Pget_virtual_vspace(id, index)) };
                let (from, to) = (selection(from), selection(to));
                Some(Mapping {
                    file: OsString::from_vec(file).into(),
                    dataset: String::from_utf8_lossy(&dataset).into_owned(),
                    from: from?,
                    to: to?,
                })
            })
            .collect()
    })
}

/// The selection of a dataspace that the library has handed out; closes it. The library's lock is held.
fn selection(space: hid_t) -> Option<SelectedValues> {
    if space < 0 {
        return None;
    }
    // SAFETY: the dataspace is open until the end of this function
    let selected = match unsafe { h5s::H5Sget_select_type(space) } {
        H5S_sel_type::H5S_SEL_ALL => SelectedValues::All,
        H5S_sel_type::H5S_SEL_HYPERSLABS => blocks(space).map_or(SelectedValues::Other, SelectedValues::Blocks),
        _ => SelectedValues::Other,
    };
    // SAFETY: as above, and nothing uses it any more
    unsafe { h5s::H5Sclose(space) };
    Some(selected)
}

/// Blocks along each dimension, if the selection of an open dataspace is of this kind. The library's lock is held.
fn blocks(space: hid_t) -> Option<Vec<Blocks>> {
    // SAFETY: the dataspace is open
    let rank = usize::try_from(unsafe { h5s::H5Sget_simple_extent_ndims(space) }).ok()?;
    let [mut start, mut stride, mut count, mut block] = [(); 4].map(|()| vec![0; rank]);
    // SAFETY: the dataspace is open, and every list has a place for each of its dimensions
    let done = unsafe {
        h5s::H5Sis_regular_hyperslab(space) > 0
            && h5s::H5Sget_regular_hyperslab(
                space,
                start.as_mut_ptr(),
                stride.as_mut_ptr(),
                count.as_mut_ptr(),
                block.as_mut_ptr(),
            ) >= 0
    };
    let along = |side| Blocks { start: start[side], stride: stride[side], count: count[side], block: block[side] };
    let found: Vec<Blocks> = (0..rank).map(along).collect();
    let ends = |blocks: &Blocks| blocks.count != h5s::H5S_UNLIMITED && blocks.block != h5s::H5S_UNLIMITED;
    (done && found.iter().all(ends)).then_some(found)
}

/// Where a link of a group leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// To an object of the same file;
    Hard,
    /// to a path in it, which may be relative to the group;
    Soft(String),
    /// or to a path in another file, as the file names it.
    External { file: PathBuf, path: String },
    /// A kind of link of another program.
    Other,
}

/// A link, which is not followed; `None` if there is none, or if it cannot be read.
#[allow(deprecated)] // as below
pub fn link(group: &Group, name: &str) -> Option<Link> {
    let name = CString::new(name).ok()?;
    let mut info = MaybeUninit::<h5l::H5L_info1_t>::zeroed();
    sync(|| {
        // SAFETY: the group is open as long as it is borrowed, the name ends with NUL, `info` is there to be written to, and the
        // library's lock is held, here and below
        if unsafe { h5l::H5Lget_info1(group.id(), name.as_ptr(), info.as_mut_ptr(), h5p::H5P_DEFAULT) } < 0 {
            return None;
        }
        // SAFETY: it was zero, and then written to; a file may have kinds that are none of the enum's
        let (kind, length) = unsafe {
            let info = info.as_mut_ptr();
            ((&raw const (*info).type_).cast::<i32>().read(), *(*info).u.val_size())
        };
        if kind == h5l::H5L_TYPE_HARD as i32 {
            return Some(Link::Hard);
        }
        let mut value = vec![0u8; length];
        let (at, size) = (value.as_mut_ptr().cast(), value.len());
        // SAFETY: `at` has `size` bytes
        if unsafe { h5l::H5Lget_val(group.id(), name.as_ptr(), at, size, h5p::H5P_DEFAULT) } < 0 {
            return None;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if kind == h5l::H5L_TYPE_SOFT as i32 {
            return Some(Link::Soft(text(value.split(|&byte| byte == 0).next()?)));
        }
        if kind != h5l::H5L_TYPE_EXTERNAL as i32 {
            return Some(Link::Other);
        }
        // a byte of flags, the file and the path, each with a NUL at its end
        let mut parts = value.get(1..)?.split(|&byte| byte == 0);
        let file = OsString::from_vec(parts.next()?.to_vec()).into();
        Some(Link::External { file, path: text(parts.next()?) })
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

//! NumPy arrays as memory of the library, through `__array_interface__`.

use crate::errors::refused;
use fbp::layout::SampleType;
use fbp::source::{InputKind, MemoryArray, MemoryScan, StoredSamples};
use pyo3::prelude::*;
use std::sync::Arc;

/// Arrays of a scan as `fbp/_arrays.py` prepares them: `[frame][row][bin]`, whose samples of a row follow each other.
#[derive(FromPyObject)]
pub struct Scan<'py> {
    sinograms: bool,
    data: Bound<'py, PyAny>,
    flats: Option<Bound<'py, PyAny>>,
    flats2: Option<Bound<'py, PyAny>>,
    darks: Option<Bound<'py, PyAny>>,
    angles: Option<Vec<f64>>,
    center_shifts: Option<Vec<f64>>,
}

impl Scan<'_> {
    /// Lends the arrays to the library.
    pub fn lent(self, py: Python<'_>) -> PyResult<MemoryScan> {
        let of = |array: Option<Bound<'_, PyAny>>| array.map(|array| memory(py, &array)).transpose();
        Ok(MemoryScan {
            kind: if self.sinograms { InputKind::Sinograms } else { InputKind::Projections },
            data: memory(py, &self.data)?,
            flats: of(self.flats)?,
            flats2: of(self.flats2)?,
            darks: of(self.darks)?,
            angles: self.angles,
            shifts: self.center_shifts,
        })
    }
}

/// What `__array_interface__` says.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Interface {
    /// Address, and whether it is read-only.
    data: (usize, bool),
    shape: Vec<usize>,
    typestr: String,
    strides: Option<Vec<isize>>,
}

impl Interface {
    fn of(array: &Bound<'_, PyAny>) -> PyResult<Interface> {
        array.getattr("__array_interface__")?.extract()
    }

    /// Returns the bytes of an item; 0 for a type without a size.
    fn item(&self) -> usize {
        self.typestr.get(2..).and_then(|size| size.parse().ok()).unwrap_or(0)
    }
}

/// Memory of an array, which lives for as long as this.
pub struct Lent {
    address: usize,
    bytes: usize,
    _owner: Py<PyAny>,
}

impl Lent {
    /// Lends all of a contiguous array.
    pub fn whole(array: &Bound<'_, PyAny>) -> PyResult<Lent> {
        let interface = Interface::of(array)?;
        let bytes = interface.shape.iter().product::<usize>() * interface.item();
        Ok(Lent { address: interface.data.0, bytes, _owner: array.clone().unbind() })
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns a part of the memory to write to.
    ///
    /// # Safety
    /// The array is writable, and no byte of it is part of what two threads write at a time.
    #[allow(clippy::mut_from_ref)] // the memory is Python's
    pub unsafe fn part(&self, first: usize, bytes: usize) -> &mut [u8] {
        assert!(first + bytes <= self.bytes, "a part lies beyond its array");
        // SAFETY: the part lies within an array that lives as long as `self`
        unsafe { std::slice::from_raw_parts_mut((self.address + first) as *mut u8, bytes) }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the bytes lie within an array that lives as long as `self`; who changes it meanwhile changes the slices
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }
}

/// Lends an array to the library.
fn memory(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<MemoryArray> {
    let interface = Interface::of(array)?;
    let item = interface.item();
    let Interface { data: (address, _), shape, typestr, strides } = interface;
    let Ok(shape) = <[usize; 3]>::try_from(shape) else {
        return Err(refused(py, "an array of a scan has other than 3 dimensions; this is a bug in fbp"));
    };
    let of_rows = strides.as_deref().map(|strides| [0, 1, 2].map(|axis| usize::try_from(strides[axis])));
    let strides = match of_rows {
        None => [shape[1] * shape[2] * item, shape[2] * item],
        Some([Ok(frame), Ok(row), Ok(sample)]) if sample == item || shape[2] < 2 => [frame, row],
        Some(_) => return Err(refused(py, "the rows of an array are not contiguous; this is a bug in fbp")),
    };
    let last = |count: usize, stride: usize| count.saturating_sub(1) * stride;
    let bytes = last(shape[0], strides[0]) + last(shape[1], strides[1]) + shape[2] * item;
    let bytes = if shape.contains(&0) { 0 } else { bytes };
    let lent = Lent { address, bytes, _owner: array.clone().unbind() };
    Ok(MemoryArray { bytes: Arc::new(lent), shape, strides, kind: typestr })
}

/// Returns the array for results of a shape: `out` if it suits, or a new one.
pub fn like<'py>(py: Python<'py>, out: Option<Bound<'py, PyAny>>, shape: [usize; 3]) -> PyResult<Bound<'py, PyAny>> {
    let Some(out) = out else {
        return py.import("numpy")?.call_method1("empty", (shape, "=f4"));
    };
    let Interface { data: (_, read_only), shape: found, typestr, strides } = Interface::of(&out)?;
    let native = if cfg!(target_endian = "big") { ">f4" } else { "<f4" };
    if found != shape || typestr != native || strides.is_some() || read_only {
        let kind = if read_only { "read-only " } else { "" };
        let order = if strides.is_some() { ", not contiguous" } else { "" };
        return Err(refused(
            py,
            &format!(
                "out: is a {kind}array of shape {found:?} and type {typestr}{order}; give \
                 numpy.empty({shape:?}, numpy.float32), or leave it out"
            ),
        ));
    }
    Ok(out)
}

/// Memory of results, to which slices are copied.
pub struct Taken {
    memory: Lent,
    slice_bytes: usize,
}

impl Taken {
    pub fn of(out: &Bound<'_, PyAny>, shape: [usize; 3]) -> PyResult<Taken> {
        Ok(Taken { memory: Lent::whole(out)?, slice_bytes: 4 * shape[1] * shape[2] })
    }

    /// Copies a slice to its place. Each place may be filled once.
    pub fn put(&self, place: usize, values: &[f32]) {
        // SAFETY: places do not overlap, and each is filled once
        let to = unsafe { self.memory.part(place * self.slice_bytes, self.slice_bytes) };
        assert_eq!(4 * values.len(), to.len(), "a slice has another size");
        // SAFETY: as many bytes, which do not overlap: `to` is Python's
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr().cast(), to.as_mut_ptr(), to.len()) };
    }
}

/// Returns the name that NumPy has for a type.
pub fn kind_of(samples: StoredSamples) -> String {
    let letter = match samples.sample {
        SampleType::U8 | SampleType::U16 | SampleType::U32 | SampleType::U64 => 'u',
        SampleType::I8 | SampleType::I16 | SampleType::I32 | SampleType::I64 => 'i',
        SampleType::F16 | SampleType::F32 | SampleType::F64 => 'f',
    };
    let order = if samples.swapped == cfg!(target_endian = "big") { '<' } else { '>' };
    format!("{order}{letter}{}", samples.sample.bytes())
}

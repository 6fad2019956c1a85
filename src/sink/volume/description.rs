//! What a volume says of itself.

use crate::sink::compression::Compression;
use crate::sink::encoding::Dtype;
use crate::sink::request::{OmeZarr, OutputRequest};
use crate::sink::stamp::{PageContent, SliceStamp};
use crate::source::SampleType;
use serde::{Deserialize, Serialize};

/// What a volume holds, as JSON in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeDescription {
    pub(super) software: String,
    /// Numbers of the slices, in their order.
    pub slices: Vec<usize>,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) dtype: Dtype,
    pub(super) compression: Compression,
    /// Of a directory of OME-Zarr.
    #[serde(rename = "ome-zarr", skip_serializing_if = "Option::is_none")]
    pub(super) ome_zarr: Option<OmeZarr>,
    /// Number of files that hold the slices, if an HDF5 output has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<usize>,
    /// Values that became 0 and the largest integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range: Option<(f32, f32)>,
    /// Unit of values: one by the unit of length.
    pub unit: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<SliceStamp>,
}

impl VolumeDescription {
    /// The description of what is asked for, of no format yet.
    pub(super) fn new(request: &OutputRequest) -> VolumeDescription {
        let form = &request.page;
        let stamp = form.stamp.clone().map(|stamp| SliceStamp { per_centimetre: None, ..stamp });
        let mut description = VolumeDescription {
            software: form.software.clone(),
            slices: request.run.clone(),
            height: form.height,
            width: form.width,
            dtype: form.encoding.dtype,
            compression: form.compression,
            ome_zarr: None,
            parts: None,
            range: form.encoding.range.filter(|_| form.encoding.dtype.is_integer()),
            unit: String::new(),
            stamp,
        };
        description.unit = format!("1/{}", description.pixel_size().map_or("pixel".to_owned(), |(_, unit)| unit));
        description
    }

    /// Side of a pixel and its unit of length, if there is one.
    pub(super) fn pixel_size(&self) -> Option<(f64, String)> {
        let (value, unit) = self.stamp.as_ref()?.pixel_size.as_deref()?.split_once(' ')?;
        Some((value.parse().ok()?, unit.to_owned()))
    }

    /// Whether both are of one run: what is of no run is never of the same.
    pub(super) fn is_of_the_run_of(&self, other: &VolumeDescription) -> bool {
        self.stamp.is_some() && self == other
    }

    /// Slices belong to a run, other pages do not.
    pub(super) fn content(&self) -> PageContent {
        if self.stamp.is_some() { PageContent::Slices } else { PageContent::Pages }
    }

    /// How the samples are read.
    pub(super) fn sample(&self) -> SampleType {
        match self.dtype {
            Dtype::F32 => SampleType::F32,
            Dtype::F16 => SampleType::F16,
            Dtype::U16 => SampleType::U16,
            Dtype::U8 => SampleType::U8,
        }
    }

    /// Bytes of a slice that is not compressed.
    #[cfg(feature = "hdf5")]
    pub(super) fn slice_bytes(&self) -> usize {
        self.width.saturating_mul(self.height).saturating_mul(self.dtype.bytes())
    }
}

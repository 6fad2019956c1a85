//! Description of a volume, which is stored in it.

use crate::sink::compression::Compression;
use crate::sink::encoding::Dtype;
use crate::sink::request::{OmeZarr, OutputRequest};
use crate::sink::stamp::{PageContent, ScanMetadata, SliceStamp};
use crate::units::Length;
use serde::{Deserialize, Serialize};

/// Content of a volume, stored in it as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeDescription {
    pub(super) software: String,
    /// Numbers of the slices, in order.
    pub slices: Vec<usize>,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) dtype: Dtype,
    pub(super) compression: Compression,
    /// Version of OME-Zarr, if the volume is of that format.
    #[serde(rename = "ome-zarr", skip_serializing_if = "Option::is_none")]
    pub(super) ome_zarr: Option<OmeZarr>,
    /// Number of files that contain the slices, if an HDF5 output has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<usize>,
    /// Values that map to 0 and to the largest integer, if samples are integers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range: Option<(f32, f32)>,
    /// Unit of values: 1 divided by the unit of length.
    pub unit: String,
    /// The scan; absent in outputs of earlier versions, and in pages that are no slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanMetadata>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<SliceStamp>,
}

impl VolumeDescription {
    /// Returns the description of the requested volume, without the fields of particular formats.
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
            scan: request.scan.clone(),
            stamp,
        };
        description.unit = format!("1/{}", description.pixel_size().map_or("pixel".to_owned(), |(_, unit)| unit));
        description
    }

    /// Returns the side of a pixel, if it was given or the input says it.
    pub(super) fn pixel(&self) -> Option<Length> {
        let given = self.pixel_size().map(|(value, unit)| Length { value, unit });
        given.or_else(|| self.scan.as_ref()?.pixel.clone())
    }

    /// Returns the side of a pixel and its unit of length that values refer to, if there are.
    fn pixel_size(&self) -> Option<(f64, String)> {
        let (value, unit) = self.stamp.as_ref()?.pixel_size.as_deref()?.split_once(' ')?;
        Some((value.parse().ok()?, unit.to_owned()))
    }

    /// Reports whether both volumes are of one run; a volume that does not belong to a run is never of the same run as
    /// another.
    pub(super) fn is_of_the_run_of(&self, other: &VolumeDescription) -> bool {
        self.stamp.is_some() && self == other
    }

    /// Returns the content that the volume belongs to: slices have a stamp of their run, other pages do not.
    pub(super) fn content(&self) -> PageContent {
        if self.stamp.is_some() { PageContent::Slices } else { PageContent::Pages }
    }

    /// Returns the number of bytes of an uncompressed slice.
    pub(super) fn slice_bytes(&self) -> usize {
        self.width.saturating_mul(self.height).saturating_mul(self.dtype.bytes())
    }
}

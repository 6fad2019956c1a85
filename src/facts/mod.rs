//! Properties of a device, as plain data.

pub mod architecture;

use serde::{Deserialize, Serialize};
use std::fmt;
use strum::Display;

/// Device type as the driver reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DeviceKind {
    #[default]
    Gpu,
    Cpu,
    Accelerator,
}

/// The channels of an image texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Channels {
    R,
    RG,
    RGBA,
}

impl Channels {
    /// Returns the number of channels.
    pub fn count(self) -> usize {
        match self {
            Channels::R => 1,
            Channels::RG => 2,
            Channels::RGBA => 4,
        }
    }
}

/// The type of each channel of an image texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, Serialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ChannelType {
    Float,
    Half,
}

/// A two-dimensional image format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ImageFormat {
    pub channels: Channels,
    pub channel_type: ChannelType,
}

impl ImageFormat {
    /// Formats that a sinogram can be stored in.
    pub const ALL: [ImageFormat; 6] = [
        ImageFormat::new(Channels::R, ChannelType::Half),
        ImageFormat::new(Channels::RG, ChannelType::Half),
        ImageFormat::new(Channels::RGBA, ChannelType::Half),
        ImageFormat::new(Channels::R, ChannelType::Float),
        ImageFormat::new(Channels::RG, ChannelType::Float),
        ImageFormat::new(Channels::RGBA, ChannelType::Float),
    ];

    /// Returns the format with these channels.
    pub const fn new(channels: Channels, channel_type: ChannelType) -> Self {
        ImageFormat { channels, channel_type }
    }

    /// Returns the number of bytes of a texel.
    pub fn bytes(self) -> usize {
        let channel = match self.channel_type {
            ChannelType::Float => 4,
            ChannelType::Half => 2,
        };
        channel * self.channels.count()
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.channels, self.channel_type)
    }
}

/// Properties of an OpenCL device, read once and then passed on as data. Sizes are in bytes unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceFacts {
    /// Index of the platform, as in `--device 0:1`.
    pub platform_index: usize,
    /// Index of the device in its platform.
    pub device_index: usize,
    pub platform: String,
    pub name: String,
    pub vendor: String,
    /// Vendor name for profiles: `nvidia`, `amd`, `intel`, or the first word of the vendor's name in lower case.
    pub vendor_word: String,
    /// Architecture name for profiles (see [`architecture`]), or `unknown`.
    pub architecture: String,
    pub kind: DeviceKind,
    pub driver: String,
    pub version: String,
    pub c_version: String,
    /// True if the compiler accepts `-cl-std=CL2.0`.
    pub accepts_opencl_c_2: bool,
    pub compute_units: u32,
    pub clock_mhz: u32,
    pub max_work_group: usize,
    pub max_work_items: Vec<usize>,
    pub local_memory: u64,
    pub constant_buffer: u64,
    pub global_memory: u64,
    pub max_allocation: u64,
    /// True if the driver reports image support; only [`DeviceFacts::image_formats`] is trusted.
    pub images: bool,
    /// Largest two-dimensional image, in texels.
    pub image_max: [usize; 2],
    /// Formats that the driver lists and for which an image could be created.
    pub image_formats: Vec<ImageFormat>,
    pub extensions: Vec<String>,
}

impl DeviceFacts {
    /// Reports whether the driver lists an extension.
    pub fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|e| e == extension)
    }
}

#[cfg(test)]
pub(crate) fn example() -> DeviceFacts {
    DeviceFacts {
        platform_index: 0,
        device_index: 0,
        platform: "Example Platform".into(),
        name: "Example GPU 9000".into(),
        vendor: "Example Corporation".into(),
        vendor_word: "example".into(),
        architecture: "unknown".into(),
        kind: DeviceKind::Gpu,
        driver: "1.0".into(),
        version: "OpenCL 1.2".into(),
        c_version: "OpenCL C 1.2".into(),
        accepts_opencl_c_2: false,
        compute_units: 8,
        clock_mhz: 1000,
        max_work_group: 256,
        max_work_items: vec![256, 256, 64],
        local_memory: 32 << 10,
        constant_buffer: 64 << 10,
        global_memory: 4 << 30,
        max_allocation: 1 << 30,
        images: true,
        image_max: [16384, 16384],
        image_formats: ImageFormat::ALL.to_vec(),
        extensions: vec!["cl_khr_byte_addressable_store".into()],
    }
}

//! OpenCL devices: finding and choosing them, building programs, buffers and launches.
//!
//! Only this module and `fft` have `unsafe` code. Every unsafe block states which rule of the driver's interface it
//! satisfies. Those who start kernels declare how much of each buffer these touch, see [`Launch`].

mod allocations;
mod buffer_layout;
mod copied_projections;
mod copies;
mod errors;
mod found;
mod gridding;
mod host_copy;
mod host_memory;
mod image_formats;
mod images;
mod kept_block;
mod launch;
mod programs;
mod search;
mod select;
mod session;
mod sinogram_store;

pub use buffer_layout::BufferLayout;
pub use copied_projections::CopiedProjections;
pub(crate) use copies::Copying;
pub use errors::PACKAGES;
pub(crate) use errors::cl_error;
pub use found::FoundDevice;
pub use gridding::{GridForm, grid_sides, grid_values};
pub use host_copy::HostCopy;
pub use host_memory::HostMemory;
pub use kept_block::KeptBlock;
pub use launch::{BackProjector, projector_layout};
pub use programs::{BuiltProgram, PROGRAMS, ProgramStore};
pub use search::{DeviceSearch, devices_are_kept, enumerate, find, find_one, keep_devices};
pub use select::{DeviceList, DeviceSelector};
pub(crate) use session::Queue;
pub use session::{ImageTransform, ImageTransforms, Launch, Resources, Session};
pub(crate) use sinogram_store::sinogram_bytes;
pub use sinogram_store::{GridMemory, SinogramStore};

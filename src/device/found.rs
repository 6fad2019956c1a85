//! Devices that were found, and parts of them, before a session is opened.

use super::errors::DeviceChoiceError;
use super::programs::BuiltProgram;
use super::{cl_error, images};
use crate::error::Result;
use crate::facts::DeviceFacts;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_PARTITION_EQUALLY, Device, SubDevice};
use opencl3::types::cl_device_partition_property;
use std::sync::{Arc, Mutex};

/// A device that was found, or a part of it.
#[derive(Clone, Debug)]
pub struct FoundDevice {
    pub(crate) device: Device,
    pub facts: DeviceFacts,
    pub(super) part: Option<Partition>,
    /// True if image formats were determined, which takes a context.
    pub(super) opened: bool,
    /// The context in which image formats were determined, or that an earlier session left, until a session takes it:
    /// with some drivers another one takes more than a tenth of a second.
    pub(super) context: Arc<Mutex<Option<KeptContext>>>,
}

/// A context that no session uses, and the programs that were built in it, each with its text and options.
#[derive(Debug)]
pub(super) struct KeptContext {
    pub context: Arc<Context>,
    pub programs: Vec<([String; 2], Arc<BuiltProgram>)>,
}

/// One of the equal parts that a device is divided into.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    number: usize,
    of: usize,
    #[allow(dead_code)] // it keeps the device alive
    device: Arc<SubDevice>,
}

impl FoundDevice {
    /// Returns the name to print, which distinguishes the parts of a device.
    pub fn label(&self) -> String {
        match &self.part {
            Some(part) => format!("{} (part {} of {})", self.facts.name, part.number + 1, part.of),
            None => self.facts.name.clone(),
        }
    }

    /// Returns the device with its image formats. This makes a context unless there is one already, which would only
    /// take time for devices that are not used.
    pub(super) fn opened(&self) -> FoundDevice {
        if self.opened {
            return self.clone();
        }
        let context = Context::from_device(&self.device).ok();
        let usable = context.as_ref().filter(|_| self.facts.images);
        let facts =
            DeviceFacts { image_formats: usable.map(images::creatable).unwrap_or_default(), ..self.facts.clone() };
        let context = context.map(|context| KeptContext { context: Arc::new(context), programs: Vec::new() });
        FoundDevice { facts, opened: true, context: Arc::new(Mutex::new(context)), ..self.clone() }
    }

    /// Divides the device into `count` equal parts, each a device of its own.
    pub(super) fn parts(&self, count: usize) -> Result<Vec<FoundDevice>> {
        let name = &self.facts.name;
        let all = self.facts.compute_units;
        let units = all as usize / count;
        if units == 0 {
            return Err(DeviceChoiceError::TooManyParts { name: name.clone(), units: all, parts: count }.into());
        }
        let properties = [CL_DEVICE_PARTITION_EQUALLY, units as cl_device_partition_property, 0];
        let devices = self
            .device
            .create_sub_devices(&properties)
            .map_err(|e| cl_error(&format!("dividing the device into {count} parts"), name, e))?;
        // PoCL aborts when an image of a part is written, and processors have no units that would read it faster
        let facts =
            DeviceFacts { compute_units: units as u32, images: false, image_formats: Vec::new(), ..self.facts.clone() };
        let part = |(number, device): (usize, SubDevice)| FoundDevice {
            device: Device::new(device.id()),
            facts: facts.clone(),
            part: Some(Partition { number, of: count, device: Arc::new(device) }),
            opened: true,
            context: Arc::default(),
        };
        Ok(devices.into_iter().take(count).enumerate().map(part).collect())
    }
}

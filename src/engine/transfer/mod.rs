//! Ways in which chunks get to a device, and slices from it: copied, mapped, or in parts; and those about an inclined axis.

mod channels;
mod copied;
mod in_parts;
mod inclined;
mod mapped;
mod stream;

pub(super) use channels::{ComputedSlices, DeviceChannels, FoundInSlices, LeaveOnDrop, ReadPiece, Transfer};

use super::chunks::Engine;
use copied::Copied;
use in_parts::InParts;
use inclined::Inclined;
use mapped::Mapped;

/// Returns the transfer that suits a device and its plan.
pub(super) fn transfer_of(engine: &Engine) -> &'static dyn Transfer {
    if engine.lamino.is_some() {
        return &Inclined;
    }
    match (engine.is_whole(), engine.is_mapped()) {
        (false, _) => &InParts,
        (true, true) => &Mapped,
        (true, false) => &Copied,
    }
}

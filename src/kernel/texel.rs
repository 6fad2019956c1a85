//! Memory layouts of the compound sinogram.

use super::files::{ClFile, HALVES, SAMPLE_BUFFER, SAMPLE_IMAGE};
use super::{Defines, Storage};
use crate::error::Result;
use crate::facts::{ChannelType, Channels, ImageFormat};
use crate::spectrum::stored_frequencies;

/// Memory layout of the bins of a compound sinogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texel {
    /// A plain buffer with zero bins before and after every row.
    Buffer,
    /// An image with one channel per slice.
    Image(ImageFormat),
    /// An image of float channels, each with the bits of two halves; nearest only.
    PackedHalves(ImageFormat),
    /// Rows of halves in the layout that matrix units read (`halves.cl`), two for every value if `split`.
    Halves { split: bool, guard: u32 },
    /// A plain buffer with enough guard bins that no tile reads beyond them.
    GuardedBuffer { guard: u32 },
    /// A plain buffer of the spectra of rows: all slices of a frequency are adjacent if `together`, otherwise slices
    /// follow one another.
    Spectra { together: bool },
}

/// Number of zero bins before and after each row of a sinogram in a buffer.
pub const GUARD: usize = 2;

impl Texel {
    /// Returns the number of zero bins before and after each row.
    pub fn guard(self) -> usize {
        match self {
            Texel::Buffer => GUARD,
            Texel::Halves { guard, .. } | Texel::GuardedBuffer { guard } => guard as usize,
            Texel::Image(_) | Texel::PackedHalves(_) | Texel::Spectra { .. } => 0,
        }
    }

    /// Returns the number of values stored for a row of `bins`: with its guards, or of frequencies.
    pub fn row_length(self, bins: usize) -> usize {
        match self {
            // complex values
            Texel::Spectra { .. } => 2 * stored_frequencies(bins),
            _ => bins + 2 * self.guard(),
        }
    }

    /// Returns the number of values stored per bin, for `slices` slices.
    pub fn channels(self, slices: u32) -> usize {
        match self {
            Texel::Buffer | Texel::PackedHalves(_) | Texel::GuardedBuffer { .. } | Texel::Spectra { .. } => {
                slices as usize
            }
            Texel::Image(format) => format.channels.count(),
            // eight more, so that rows are spread evenly over the banks of local memory
            Texel::Halves { split, .. } => slices as usize * (1 + usize::from(split)) + 8,
        }
    }

    /// Returns the format if the layout is an image.
    pub fn format(self) -> Option<ImageFormat> {
        match self {
            Texel::Buffer | Texel::Halves { .. } | Texel::GuardedBuffer { .. } | Texel::Spectra { .. } => None,
            Texel::Image(format) | Texel::PackedHalves(format) => Some(format),
        }
    }

    /// Returns image layouts for `slices` slices, smallest texel first; packed halves come before native halves of the
    /// same size, because every device has float formats.
    ///
    /// A kernel that reads between bins needs the texture unit to interpolate, which is not possible with packed halves.
    pub fn candidates(slices: u32, storage: Storage, between_bins: bool) -> Vec<Texel> {
        let packed = match slices {
            2 => Some(Channels::R),
            4 => Some(Channels::RG),
            _ => None,
        };
        let channel_type = match storage {
            Storage::Float => ChannelType::Float,
            Storage::Half => ChannelType::Half,
        };
        let mut texels = Vec::new();
        if storage == Storage::Half
            && !between_bins
            && let Some(channels) = packed
        {
            texels.push(Texel::PackedHalves(ImageFormat::new(channels, ChannelType::Float)));
        }
        for channels in [Channels::R, Channels::RG, Channels::RGBA] {
            if channels.count() >= slices as usize {
                texels.push(Texel::Image(ImageFormat::new(channels, channel_type)));
            }
        }
        texels
    }

    /// Returns the file of `cl/` that reads this layout, unless the family has its own.
    pub(super) fn reader(self) -> Option<ClFile> {
        match self {
            Texel::Buffer => Some(SAMPLE_BUFFER),
            Texel::Halves { .. } => Some(HALVES),
            Texel::GuardedBuffer { .. } | Texel::Spectra { .. } => None,
            Texel::Image(_) | Texel::PackedHalves(_) => Some(SAMPLE_IMAGE),
        }
    }

    /// Adds the defines for the file of [`Texel::reader`].
    pub(super) fn define(self, defines: &mut Defines) -> Result<()> {
        match self {
            Texel::Buffer | Texel::GuardedBuffer { .. } => defines.number("GUARD", self.guard() as u32),
            Texel::Halves { split, guard } => {
                defines.number("GUARD", guard)?;
                defines.switch("SPLIT", split)
            }
            Texel::Spectra { .. } => Ok(()),
            Texel::Image(_) => defines.switch("FORGED", false),
            Texel::PackedHalves(_) => defines.switch("FORGED", true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_start_with_the_smallest() {
        let layouts = Texel::candidates(4, Storage::Half, false);
        assert_eq!(layouts[0], Texel::PackedHalves(ImageFormat::new(Channels::RG, ChannelType::Float)));
        assert_eq!(layouts[1], Texel::Image(ImageFormat::new(Channels::RGBA, ChannelType::Half)));
        let layouts = Texel::candidates(2, Storage::Float, true);
        assert_eq!(layouts.len(), 2);
        assert!(layouts.iter().all(|t| t.channels(2) >= 2));
        assert!(Texel::candidates(8, Storage::Float, true).is_empty());
    }
}

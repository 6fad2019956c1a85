//! Letters of pictures: Noto Sans Mono, as shades of grey.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

const SIZE: RasterHeight = RasterHeight::Size20;
/// Height of a letter in pixels.
pub(super) const TALL: usize = SIZE.val();
/// Width of a letter in pixels, with the gap after it.
pub(super) const LETTER: usize = get_raster_width(FontWeight::Regular, SIZE);

/// Returns the shades of a letter, from 0 for the paper to 255 for the ink, row by row; those of `?` for a letter that
/// the font does not have.
pub(super) fn glyph(letter: char) -> &'static [u8] {
    let raster = |letter| get_raster(letter, FontWeight::Regular, SIZE);
    raster(letter).or_else(|| raster('?')).map_or(&[], |glyph| glyph.pixels())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_has_its_own_shape() {
        let letters: Vec<char> = (' '..='~').chain("\u{b0}\u{b5}\u{d7}".chars()).collect();
        for (index, &letter) in letters.iter().enumerate() {
            assert_eq!(glyph(letter).len(), TALL * LETTER, "{letter}");
            assert!(letters[..index].iter().all(|&other| glyph(other) != glyph(letter)), "{letter}");
        }
        assert_eq!(glyph('\u{3b8}'), glyph('?'));
    }
}

//! Greyscale PNG images of results: panels side by side with titles, and bar charts of histograms.

mod histogram;

pub use histogram::write_histogram;

use std::path::Path;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::files::{OutputFile, SOFTWARE};

/// Image in a row of images.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    /// Title drawn above the image in capitals; characters without a glyph become `?`.
    pub title: &'a str,
    /// Unit of the values for black and white, which are drawn below the image.
    pub unit: &'a str,
    /// Number of pixels in a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// Values `height x width`, rows downwards.
    pub data: &'a [f32],
}

/// Largest height in pixels at which a panel is drawn.
const MAX_HEIGHT: usize = 768;
/// Number of pixels between and around panels.
const MARGIN: usize = 10;
/// Number of image pixels along the side of one font pixel.
const FONT_SCALE: usize = 2;
/// Height of a line of text in pixels.
const LINE: usize = 7 * FONT_SCALE + MARGIN;
/// Width of a letter with the gap after it, in pixels.
const LETTER: usize = 6 * FONT_SCALE;
const BACKGROUND: u8 = 36;
const INK: u8 = 230;

/// Writes the panels side by side into an 8-bit greyscale PNG.
///
/// All are drawn as high as the lowest of them: shrunk by area averaging to at most 768 pixels, or enlarged by the
/// largest whole factor that stays within that. A panel wider than twice its drawn height is squeezed to that width.
/// Each has its own contrast, from the 0.5th to the 99.5th percentile of its finite values; other values are black, and
/// a constant panel is mid-grey. The file appears complete or not at all: it is written under a temporary name in its
/// directory and renamed.
pub fn write_preview(file: &OutputFile, panels: &[Panel]) -> Result<()> {
    let lowest = lowest(file.path(), panels)?;
    write(file, &draw(panels, lowest, MAX_HEIGHT))
}

/// Writes the panels side by side with one contrast and one scale for all, so that no side has more than 768 pixels;
/// otherwise like [`write_preview`]. No panel is squeezed, and none is thinner than a pixel.
pub fn write_sections(file: &OutputFile, panels: &[Panel]) -> Result<()> {
    lowest(file.path(), panels)?;
    let longest = panels.iter().map(|panel| panel.width.max(panel.height)).max().unwrap_or(1);
    let scaled = |side: usize| match MAX_HEIGHT / longest {
        0 => (side * MAX_HEIGHT / longest).max(1),
        times => side * times,
    };
    let images: Vec<Image> =
        panels.iter().map(|panel| Image::of(panel, scaled(panel.width), scaled(panel.height))).collect();
    let contrast = contrast_of_all(&images);
    write(file, &lay_out(panels, &images, |_| contrast))
}

/// Largest height in pixels to which a panel of a montage is enlarged.
const MONTAGE_HEIGHT: usize = 256;

/// Writes panels of one size row by row, about as many in a row as there are rows, with one contrast for all. They are
/// enlarged by the largest whole factor that keeps them within 256 pixels, and never shrunk; otherwise like
/// [`write_preview`].
pub fn write_montage(file: &OutputFile, panels: &[Panel]) -> Result<()> {
    let times = (MONTAGE_HEIGHT / lowest(file.path(), panels)?).max(1);
    let columns = (panels.len() as f64).sqrt().ceil() as usize;
    let images: Vec<Image> =
        panels.iter().map(|panel| Image::of(panel, times * panel.width, times * panel.height)).collect();
    let contrast = contrast_of_all(&images);
    let rows = panels.chunks(columns).zip(images.chunks(columns));
    let rows: Vec<Canvas> = rows.map(|(panels, images)| lay_out(panels, images, |_| contrast)).collect();
    let width = rows.iter().map(|row| row.width).max().unwrap_or(0);
    let mut montage = Canvas { width, height: 0, pixels: Vec::new() };
    for row in &rows {
        montage.height += row.height;
        for line in row.pixels.chunks(row.width) {
            montage.pixels.extend_from_slice(line);
            montage.pixels.resize(montage.pixels.len() + width - row.width, BACKGROUND);
        }
    }
    write(file, &montage)
}

/// Returns a PNG of an image without its texts, shrunk so that no side has more than `side` pixels, with a contrast as in
/// [`write_preview`].
///
/// # Errors
/// Errors of the encoder.
pub fn thumbnail(panel: &Panel, side: usize) -> std::io::Result<Vec<u8>> {
    let longest = panel.width.max(panel.height).max(side);
    let scaled = |length: usize| (length * side / longest).max(1);
    let (width, height) = match longest == side {
        true => (panel.width, panel.height),
        false => (scaled(panel.width), scaled(panel.height)),
    };
    let values = resample(panel, width, height);
    encode(&Canvas { width, height, pixels: greys(&values, contrast(&values)) })
}

/// Returns the height of the lowest panel after checking all of them.
fn lowest(path: &Path, panels: &[Panel]) -> Result<usize> {
    for panel in panels {
        if panel.data.is_empty() || panel.data.len() != panel.width * panel.height {
            return Err(Error::output(
                path,
                format_args!(
                    "the preview's panel `{}` has {} values where {} x {} were expected",
                    panel.title,
                    panel.data.len(),
                    panel.width,
                    panel.height
                ),
            ));
        }
    }
    let lowest = panels.iter().map(|panel| panel.height).min();
    lowest.ok_or_else(|| Error::output(path, "a preview needs at least one panel"))
}

/// 8-bit image, rows downwards.
struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

/// Panel at the size in which it is drawn.
struct Image {
    width: usize,
    height: usize,
    values: Vec<f32>,
}

impl Image {
    fn of(panel: &Panel, width: usize, height: usize) -> Image {
        Image { width, height, values: resample(panel, width, height) }
    }
}

fn draw(panels: &[Panel], lowest: usize, highest: usize) -> Canvas {
    let height = (lowest * (highest / lowest).max(1)).min(highest);
    let images: Vec<Image> = panels
        .iter()
        .map(|panel| {
            let width = (panel.width as f64 * height as f64 / panel.height as f64).round();
            Image::of(panel, (width as usize).clamp(1, 2 * height), height)
        })
        .collect();
    lay_out(panels, &images, |image| contrast(&image.values))
}

/// Arranges images in a row, with their titles above and the values of black and white below, and the contrast of each.
fn lay_out(panels: &[Panel], images: &[Image], contrast: impl Fn(&Image) -> (f64, f64)) -> Canvas {
    let top = MARGIN + LINE;
    let highest = images.iter().map(|image| image.height).max().unwrap_or(0);
    let contrasts: Vec<(f64, f64)> = images.iter().map(contrast).collect();
    let scale =
        |((low, high), panel): (&(f64, f64), &Panel)| format!("{} to {} {}", number(*low), number(*high), panel.unit);
    let scales: Vec<String> = contrasts.iter().zip(panels).map(scale).collect();
    // texts may be wider than their image
    let texts = panels.iter().zip(&scales).map(|(panel, scale)| panel.title.chars().count().max(scale.chars().count()));
    let widths: Vec<usize> = images.iter().zip(texts).map(|(image, text)| image.width.max(text * LETTER)).collect();
    let width = MARGIN + widths.iter().map(|width| width + MARGIN).sum::<usize>();
    let mut canvas = Canvas::new(width, top + highest + MARGIN + LINE);
    let mut left = MARGIN;
    for (number, image) in images.iter().enumerate() {
        canvas.text(left, MARGIN, panels[number].title);
        let grey = greys(&image.values, contrasts[number]);
        for (y, row) in grey.chunks_exact(image.width).enumerate() {
            let start = (top + y) * canvas.width + left;
            canvas.pixels[start..start + image.width].copy_from_slice(row);
        }
        canvas.text(left, top + image.height + MARGIN, &scales[number]);
        left += widths[number] + MARGIN;
    }
    canvas
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![BACKGROUND; width * height] }
    }

    /// Writes as much of a text as fits.
    fn text(&mut self, left: usize, top: usize, text: &str) {
        let capacity = (self.width.saturating_sub(left) + FONT_SCALE) / LETTER;
        let letters = text.chars().flat_map(char::to_uppercase);
        for (place, letter) in letters.take(capacity).enumerate() {
            for (row, bits) in glyph(letter).into_iter().enumerate() {
                for column in (0..5).filter(|column| bits & (0b10000 >> column) != 0) {
                    for dy in 0..FONT_SCALE {
                        let y = top + row * FONT_SCALE + dy;
                        let x = left + place * LETTER + column * FONT_SCALE;
                        let start = y * self.width + x;
                        self.pixels[start..start + FONT_SCALE].fill(INK);
                    }
                }
            }
        }
    }
}

/// Resamples a panel to `width x height`. Each pixel is the mean of the finite values in the area that it covers,
/// weighted by the area, or NaN if there are none.
fn resample(panel: &Panel, width: usize, height: usize) -> Vec<f32> {
    let columns: Vec<_> = (0..width).map(|x| cover(x, width, panel.width)).collect();
    let mut image = vec![0.0f32; width * height];
    image.par_chunks_mut(width).enumerate().for_each(|(y, row)| {
        let rows = cover(y, height, panel.height);
        for (value, columns) in row.iter_mut().zip(&columns) {
            let (mut sum, mut area) = (0.0, 0.0);
            for &(y, high) in &rows {
                for &(x, wide) in columns {
                    let value = f64::from(panel.data[y * panel.width + x]);
                    if value.is_finite() {
                        sum += value * high * wide;
                        area += high * wide;
                    }
                }
            }
            *value = (sum / area) as f32;
        }
    });
    image
}

/// Returns the indices that pixel `index` covers when `from` source pixels are resampled to `to` pixels, with the
/// covered length of each.
fn cover(index: usize, to: usize, from: usize) -> Vec<(usize, f64)> {
    // in units of 1/to source pixels, all bounds are integers
    let (start, end) = (index * from, (index + 1) * from);
    (start / to..end.div_ceil(to))
        .map(|source| {
            let overlap = end.min((source + 1) * to) - start.max(source * to);
            (source, overlap as f64 / to as f64)
        })
        .collect()
}

/// Returns the values for black and white: percentiles of the finite values.
fn contrast(values: &[f32]) -> (f64, f64) {
    let mut sorted: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_unstable_by(f32::total_cmp);
    let at = |fraction: f64| {
        let place = fraction * (sorted.len() as f64 - 1.0);
        sorted.get(place.round() as usize).map_or(0.0, |&v| f64::from(v))
    };
    let (low, high) = (at(0.005), at(0.995));
    // nearly all values are equal: the range includes the few others
    if high <= low { (at(0.0), at(1.0)) } else { (low, high) }
}

/// Returns the values for black and white of several images together.
fn contrast_of_all(images: &[Image]) -> (f64, f64) {
    let all: Vec<f32> = images.iter().flat_map(|image| image.values.iter().copied()).collect();
    contrast(&all)
}

/// Formats a value with four significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if (1e-3..1e5).contains(&size) => {
            let digits = (3 - size.log10().floor() as i32).max(0) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.3e}"),
    }
}

/// Converts values to grey levels from black at `low` to white at `high`.
fn greys(values: &[f32], (low, high): (f64, f64)) -> Vec<u8> {
    values
        .iter()
        .map(|&value| match f64::from(value) {
            value if !value.is_finite() => 0,
            _ if high <= low => 128,
            value => (255.0 * (value - low) / (high - low)).round() as u8,
        })
        .collect()
}

fn write(file: &OutputFile, canvas: &Canvas) -> Result<()> {
    let png = encode(canvas).map_err(|error| {
        Error::output(file.path(), format!("the picture cannot be encoded: {error}; please report this bug in fbp"))
    })?;
    file.write(png)
}

/// Encodes the picture as a PNG.
fn encode(canvas: &Canvas) -> std::io::Result<Vec<u8>> {
    let mut png = Vec::new();
    let (width, height) = (canvas.width as u32, canvas.height as u32);
    let mut encoder = png::Encoder::new(&mut png, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.add_text_chunk("Software".into(), SOFTWARE.into())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&canvas.pixels)?;
    writer.finish()?;
    Ok(png)
}

/// Returns the seven rows of a character, the leftmost of the five columns in the highest bit.
fn glyph(letter: char) -> [u8; 7] {
    let found = FONT.iter().find(|(known, _)| *known == letter);
    found.map_or(UNKNOWN, |&(_, rows)| rows)
}

const UNKNOWN: [u8; 7] = [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b00000, 0b00100];

#[rustfmt::skip]
const FONT: &[(char, [u8; 7])] = &[
    ('0', [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110]),
    ('1', [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110]),
    ('2', [0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111]),
    ('3', [0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110]),
    ('4', [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010]),
    ('5', [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110]),
    ('6', [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110]),
    ('7', [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000]),
    ('8', [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110]),
    ('9', [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100]),
    ('A', [0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001]),
    ('B', [0b11110, 0b10001, 0b10001, 0b11110, 0b10001, 0b10001, 0b11110]),
    ('C', [0b01110, 0b10001, 0b10000, 0b10000, 0b10000, 0b10001, 0b01110]),
    ('D', [0b11110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11110]),
    ('E', [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111]),
    ('F', [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b10000]),
    ('G', [0b01110, 0b10001, 0b10000, 0b10111, 0b10001, 0b10001, 0b01111]),
    ('H', [0b10001, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001]),
    ('I', [0b01110, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110]),
    ('J', [0b00111, 0b00010, 0b00010, 0b00010, 0b00010, 0b10010, 0b01100]),
    ('K', [0b10001, 0b10010, 0b10100, 0b11000, 0b10100, 0b10010, 0b10001]),
    ('L', [0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b11111]),
    ('M', [0b10001, 0b11011, 0b10101, 0b10101, 0b10001, 0b10001, 0b10001]),
    ('N', [0b10001, 0b11001, 0b10101, 0b10011, 0b10001, 0b10001, 0b10001]),
    ('O', [0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110]),
    ('P', [0b11110, 0b10001, 0b10001, 0b11110, 0b10000, 0b10000, 0b10000]),
    ('Q', [0b01110, 0b10001, 0b10001, 0b10001, 0b10101, 0b10010, 0b01101]),
    ('R', [0b11110, 0b10001, 0b10001, 0b11110, 0b10100, 0b10010, 0b10001]),
    ('S', [0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110]),
    ('T', [0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100]),
    ('U', [0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110]),
    ('V', [0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01010, 0b00100]),
    ('W', [0b10001, 0b10001, 0b10001, 0b10101, 0b10101, 0b11011, 0b10001]),
    ('X', [0b10001, 0b10001, 0b01010, 0b00100, 0b01010, 0b10001, 0b10001]),
    ('Y', [0b10001, 0b10001, 0b01010, 0b00100, 0b00100, 0b00100, 0b00100]),
    ('Z', [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b10000, 0b11111]),
    (' ', [0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000]),
    ('.', [0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b01100]),
    (',', [0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b00100, 0b01000]),
    (':', [0b00000, 0b01100, 0b01100, 0b00000, 0b01100, 0b01100, 0b00000]),
    ('-', [0b00000, 0b00000, 0b00000, 0b11111, 0b00000, 0b00000, 0b00000]),
    ('+', [0b00000, 0b00100, 0b00100, 0b11111, 0b00100, 0b00100, 0b00000]),
    ('/', [0b00000, 0b00001, 0b00010, 0b00100, 0b01000, 0b10000, 0b00000]),
    ('_', [0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b11111]),
    ('=', [0b00000, 0b00000, 0b11111, 0b00000, 0b11111, 0b00000, 0b00000]),
    ('(', [0b00010, 0b00100, 0b01000, 0b01000, 0b01000, 0b00100, 0b00010]),
    (')', [0b01000, 0b00100, 0b00010, 0b00010, 0b00010, 0b00100, 0b01000]),
    ('[', [0b01110, 0b01000, 0b01000, 0b01000, 0b01000, 0b01000, 0b01110]),
    (']', [0b01110, 0b00010, 0b00010, 0b00010, 0b00010, 0b00010, 0b01110]),
    ('<', [0b00010, 0b00100, 0b01000, 0b10000, 0b01000, 0b00100, 0b00010]),
    ('>', [0b01000, 0b00100, 0b00010, 0b00001, 0b00010, 0b00100, 0b01000]),
    ('#', [0b01010, 0b01010, 0b11111, 0b01010, 0b11111, 0b01010, 0b01010]),
    ('%', [0b11000, 0b11001, 0b00010, 0b00100, 0b01000, 0b10011, 0b00011]),
    ('!', [0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00000, 0b00100]),
    ('*', [0b00000, 0b00100, 0b10101, 0b01110, 0b10101, 0b00100, 0b00000]),
    ('×', [0b00000, 0b10001, 0b01010, 0b00100, 0b01010, 0b10001, 0b00000]),
    ('°', [0b01100, 0b10010, 0b10010, 0b01100, 0b00000, 0b00000, 0b00000]),
    ('?', [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b00000, 0b00100]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{InputSet, OutputKind};
    use std::fs::{self, File};

    fn read(path: &Path) -> (usize, usize, Vec<u8>) {
        let decoder = png::Decoder::new(std::io::BufReader::new(File::open(path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.color_type, png::ColorType::Grayscale);
        (info.width as usize, info.height as usize, pixels)
    }

    fn file(path: &Path) -> OutputFile {
        OutputFile::new("--preview", path, OutputKind::Png, &InputSet::default(), None).unwrap()
    }

    #[test]
    fn panels_titles_and_nothing_else_in_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("preview.png");
        let ramp: Vec<f32> = (0..64 * 64).map(|i| (i % 64) as f32).collect();
        let title = "a title that is longer than its panel is wide ".repeat(3);
        let wide = vec![f32::NAN; 400 * 80];
        write_preview(
            &file(&path),
            &[
                Panel { title: "Ramp", unit: "per mm", width: 64, height: 64, data: &ramp },
                Panel { title: &title, unit: "", width: 400, height: 80, data: &wide },
            ],
        )
        .unwrap();
        let (width, height, pixels) = read(&path);
        // the longer title is there to its end, the scale below
        let letters = title.chars().count() * LETTER;
        assert!(letters > 1536);
        assert_eq!((width, height), (10 + 768 + 10 + letters + 10, 34 + 768 + 34));
        let at = |x: usize, y: usize| pixels[y * width + x];
        assert_eq!((at(0, 0), at(5, 400)), (BACKGROUND, BACKGROUND));
        // The ramp is enlarged twelvefold, black on the left and white on the right.
        assert_eq!((at(10, 34), at(21, 801)), (0, 0));
        assert_eq!(at(777, 500), 255);
        assert_eq!(at(10 + 12, 100), at(10 + 23, 700));
        assert!((10..778).all(|x| x == 10 || at(x, 50) >= at(x - 1, 50)));
        // What is not a number is black.
        assert!((788..2324).all(|x| at(x, 400) == 0));
        // R, the first letter: its stem is two pixels wide and fourteen high.
        assert!((10..24).all(|y| at(10, y) == INK && at(11, y) == INK));
        assert_eq!(at(12, 14), BACKGROUND);
        // 0 to 63 per mm, at the lower end
        assert!((10..200).any(|x| at(x, height - 12) == INK) && (10..200).all(|x| at(x, height - 5) == BACKGROUND));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn montages_have_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("montage.png");
        let data = [1.0f32; 16 * 16];
        let panel = Panel { title: "1023.50", unit: "", width: 16, height: 16, data: &data };
        write_montage(&file(&path), &[panel; 5]).unwrap();
        let (width, height, pixels) = read(&path);
        assert_eq!((width, height), (10 + 3 * 266, 2 * (34 + 256 + 34)));
        let at = |x: usize, y: usize| pixels[y * width + x];
        // three and two panels, nothing in the place of the sixth
        assert_eq!((at(20, 100), at(20, 400), at(286, 400), at(552, 100)), (128, 128, 128, 128));
        assert_eq!(at(552, 400), BACKGROUND);
        assert_eq!(write_montage(&file(&path), &[]).unwrap_err().exit_code(), 5);
    }

    #[test]
    fn areas_are_averaged() {
        let data = [0.0, 1.0, 2.0, f32::NAN, 4.0, 5.0];
        let panel = Panel { title: "", unit: "", width: 3, height: 2, data: &data };
        // Halves of the middle column on either side; what is not a number does not count.
        let out = resample(&panel, 2, 1);
        assert!((f64::from(out[0]) - (0.0 + 0.5 + 0.5 * 4.0) / 2.0).abs() < 1e-6);
        assert!((f64::from(out[1]) - (0.5 + 2.0 + 0.5 * 4.0 + 5.0) / 3.0).abs() < 1e-6);
        let same = resample(&panel, 3, 2);
        assert_eq!(same[..3], data[..3]);
        assert!(same[3].is_nan());
    }

    #[test]
    fn values_to_greys() {
        let greys = |values: &[f32]| greys(values, contrast(values));
        assert_eq!(greys(&[3.0; 10]), [128; 10]);
        assert_eq!(greys(&[f32::NAN, f32::INFINITY]), [0, 0]);
        let mut spike = vec![0.0f32; 1000];
        spike[7] = 5.0;
        assert_eq!((greys(&spike)[7], greys(&spike)[8]), (255, 0));
        // One outlier does not hide the rest.
        let mut values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        values[999] = 1e30;
        let grey = greys(&values);
        assert!(grey[500].abs_diff(128) <= 1);
        assert_eq!((grey[0], grey[999]), (0, 255));
    }

    #[test]
    fn sections_have_one_scale_and_one_contrast() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sections.png");
        let (low, high) = (vec![1.0f32; 100 * 80], vec![3.0f32; 100]);
        let panels = [
            Panel { title: "xy", unit: "", width: 100, height: 80, data: &low },
            Panel { title: "xz", unit: "", width: 100, height: 1, data: &high },
        ];
        write_sections(&file(&path), &panels).unwrap();
        let (width, height, pixels) = read(&path);
        // 7 times as large, and as high as the highest
        assert_eq!((width, height), (10 + 2 * 710, 34 + 560 + 34));
        let at = |x: usize, y: usize| pixels[y * width + x];
        assert_eq!((at(10, 34), at(709, 593)), (0, 0));
        assert_eq!((at(720, 34), at(1419, 40), at(720, 41)), (255, 255, BACKGROUND));
        // larger ones are shrunk, thin ones are still there
        let data = vec![1.0f32; 3000];
        let panels = [
            Panel { title: "", unit: "", width: 3000, height: 1, data: &data },
            Panel { title: "", unit: "", width: 1, height: 3000, data: &data },
        ];
        write_sections(&file(&path), &panels).unwrap();
        let (width, height, _) = read(&path);
        // below the thin one there is space for its scale
        let scale = "1.000 to 1.000 ".len() * LETTER;
        assert_eq!((width, height), (10 + 778 + scale + 10, 34 + 768 + 34));
        assert_eq!(write_sections(&file(&path), &[]).unwrap_err().exit_code(), 5);
    }

    #[test]
    fn failures_are_output_errors_and_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let panel = Panel { title: "x", unit: "", width: 1, height: 1, data: &[1.0] };
        let path = dir.path().join("preview.png");
        assert!(write_preview(&file(&path), &[]).is_err());
        assert!(write_preview(&file(&path), &[Panel { width: 2, ..panel }]).is_err());
        // a directory that comes into the way
        let late = file(&path);
        fs::create_dir_all(path.join("in the way")).unwrap();
        assert!(write_preview(&late, &[panel]).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn every_letter_has_its_own_shape() {
        for (index, (letter, rows)) in FONT.iter().enumerate() {
            assert!(rows.iter().all(|&row| row < 32), "{letter}");
            assert!(FONT[..index].iter().all(|(other, shape)| other != letter && shape != rows), "{letter}");
        }
        assert!(('A'..='Z').chain('0'..='9').all(|c| glyph(c) != UNKNOWN));
        assert_eq!(glyph('\u{3b8}'), glyph('?'));
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.0123456, -12.3456, 1.0, 54321.0, 1e-7, -3.4e38].map(number);
        assert_eq!(texts, ["0", "0.01235", "-12.35", "1.000", "54321", "1.000e-7", "-3.400e38"]);
    }
}

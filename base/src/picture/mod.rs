//! Greyscale PNG images of results: panels side by side with titles, and bar charts of histograms.

mod histogram;
mod letters;

pub use histogram::write_histogram;

use std::path::Path;

use rayon::prelude::*;

use crate::error::{Error, Result, messages};
use crate::files::{OutputFile, SOFTWARE};
use letters::{LETTER, TALL, glyph};

messages! {
    /// Why a picture cannot be made.
    enum PictureError: Output {
        PanelSize { title: String, values: usize, width: usize, height: usize } =>
            "the preview's panel `{title}` has {values} values where {width} x {height} were expected",
        NoPanels => "a preview needs at least one panel",
        Encoding { error: std::io::Error } =>
            "the picture cannot be encoded: {error}"; "please report this bug in fbp",
    }
}

/// Image in a row of images.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    /// Title drawn above the image; characters without a glyph become `?`.
    pub title: &'a str,
    /// Unit of the values for black and white, which are drawn below the image.
    pub unit: &'a str,
    /// Side of a pixel and its unit, for a scale bar below the image.
    pub pixel: Option<(f64, &'a str)>,
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
/// Height of a line of text in pixels.
const LINE: usize = TALL + MARGIN;
const BACKGROUND: u8 = 36;
const INK: u8 = 230;

/// Writes a slice with its sinogram to the right of it into an 8-bit greyscale PNG.
///
/// The slice is shrunk by area averaging to a height of at most 768 pixels, or enlarged by the largest whole factor that
/// stays within that, and squeezed to at most twice its drawn height. The sinogram is drawn as high as the slice, and at
/// most half as wide. Each has its own contrast, from the 0.5th to the 99.5th percentile of its finite values; other
/// values are black, and a constant panel is mid-grey. The file appears complete or not at all: it is written under a
/// temporary name in its directory and renamed.
pub fn write_preview(file: &OutputFile, slice: &Panel, sinogram: &Panel) -> Result<()> {
    let panels = [*slice, *sinogram];
    lowest(file.path(), &panels)?;
    write(file, &draw(&panels))
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
            let Panel { width, height, .. } = *panel;
            let (title, values) = (panel.title.to_owned(), panel.data.len());
            return Err(Error::output(path, PictureError::PanelSize { title, values, width, height }));
        }
    }
    let lowest = panels.iter().map(|panel| panel.height).min();
    lowest.ok_or_else(|| Error::output(path, PictureError::NoPanels))
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

/// Draws a slice and its sinogram.
fn draw([slice, sinogram]: &[Panel; 2]) -> Canvas {
    let height = (slice.height * (MAX_HEIGHT / slice.height).max(1)).min(MAX_HEIGHT);
    let width_of = |panel: &Panel| (panel.width as f64 * height as f64 / panel.height as f64).round() as usize;
    let width = width_of(slice).clamp(1, 2 * height);
    let beside = width_of(sinogram).clamp(1, (width / 2).max(1));
    let images = [Image::of(slice, width, height), Image::of(sinogram, beside, height)];
    lay_out(&[*slice, *sinogram], &images, |image| contrast(&image.values))
}

/// Arranges images in a row, with their titles above, and the values of black and white and scale bars below, and the
/// contrast of each.
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
    let bars: Vec<Option<ScaleBar>> =
        images.iter().zip(panels).map(|(image, panel)| ScaleBar::of(image, panel)).collect();
    let below = if bars.iter().any(Option::is_some) { 2 * LINE } else { LINE };
    let width = MARGIN + widths.iter().map(|width| width + MARGIN).sum::<usize>();
    let mut canvas = Canvas::new(width, top + highest + MARGIN + below);
    let mut left = MARGIN;
    for (number, image) in images.iter().enumerate() {
        canvas.text(left, MARGIN, panels[number].title);
        let grey = greys(&image.values, contrasts[number]);
        for (y, row) in grey.chunks_exact(image.width).enumerate() {
            let start = (top + y) * canvas.width + left;
            canvas.pixels[start..start + image.width].copy_from_slice(row);
        }
        let under = top + image.height + MARGIN;
        canvas.text(left, under, &scales[number]);
        if let Some(bar) = &bars[number] {
            bar.draw(&mut canvas, left, under + LINE);
        }
        left += widths[number] + MARGIN;
    }
    canvas
}

/// A line of a round length.
struct ScaleBar {
    /// Length in pixels of the picture.
    pixels: usize,
    text: String,
}

impl ScaleBar {
    /// Thickness of the line, and height of its ends, in pixels.
    const THICK: usize = 3;
    const ENDS: usize = 11;

    /// Returns the bar of the largest round length that is at most a third of the image; `None` if the size of its pixels
    /// is not known.
    fn of(image: &Image, panel: &Panel) -> Option<ScaleBar> {
        let (size, unit) = panel.pixel?;
        let per_length = image.width as f64 / (panel.width as f64 * size);
        let most = image.width as f64 / 3.0 / per_length;
        let power = 10f64.powf(most.log10().floor());
        let length = [5.0, 2.0, 1.0].map(|factor| factor * power).into_iter().find(|length| *length <= most)?;
        let decimals = (-power.log10().floor()).max(0.0) as usize;
        let pixels = ((length * per_length).round() as usize).max(1);
        Some(ScaleBar { pixels, text: format!("{length:.decimals$} {unit}") })
    }

    fn draw(&self, canvas: &mut Canvas, left: usize, top: usize) {
        let end = |canvas: &mut Canvas, left| canvas.fill(left, top + (TALL - Self::ENDS) / 2, 1, Self::ENDS, INK);
        end(canvas, left);
        end(canvas, left + self.pixels - 1);
        canvas.fill(left, top + (TALL - Self::THICK) / 2, self.pixels, Self::THICK, INK);
        canvas.text(left + self.pixels + MARGIN, top, &self.text);
    }
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![BACKGROUND; width * height] }
    }

    /// Writes as much of a text as fits.
    fn text(&mut self, left: usize, top: usize, text: &str) {
        let capacity = self.width.saturating_sub(left) / LETTER;
        for (place, letter) in text.chars().take(capacity).enumerate() {
            for (row, shades) in glyph(letter).chunks(LETTER).enumerate() {
                let start = (top + row) * self.width + left + place * LETTER;
                for (pixel, shade) in self.pixels[start..start + LETTER].iter_mut().zip(shades) {
                    let (paper, shade) = (f64::from(*pixel), f64::from(*shade) / 255.0);
                    *pixel = (paper + (f64::from(INK) - paper) * shade).round() as u8;
                }
            }
        }
    }

    fn fill(&mut self, left: usize, top: usize, width: usize, height: usize, grey: u8) {
        for y in top..top + height {
            let start = y * self.width + left;
            self.pixels[start..start + width].fill(grey);
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
    let png = encode(canvas).map_err(|error| Error::output(file.path(), PictureError::Encoding { error }))?;
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
    fn the_slice_is_the_picture_and_nothing_else_is_in_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("preview.png");
        let ramp: Vec<f32> = (0..64 * 64).map(|i| (i % 64) as f32).collect();
        let wide = vec![f32::NAN; 400 * 80];
        let slice =
            Panel { title: "Ramp", unit: "per mm", pixel: Some((0.65, "um")), width: 64, height: 64, data: &ramp };
        let sinogram = Panel { title: "its sinogram", unit: "", pixel: None, width: 400, height: 80, data: &wide };
        write_preview(&file(&path), &slice, &sinogram).unwrap();
        let (width, height, pixels) = read(&path);
        // the sinogram is squeezed to half of the slice, with two lines below
        assert_eq!((width, height), (10 + 768 + 10 + 384 + 10, 40 + 768 + 10 + 60));
        let at = |x: usize, y: usize| pixels[y * width + x];
        assert_eq!((at(0, 0), at(5, 400), at(782, 400)), (BACKGROUND, BACKGROUND, BACKGROUND));
        // The ramp is enlarged twelvefold, black on the left and white on the right.
        assert_eq!((at(10, 40), at(21, 807)), (0, 0));
        assert_eq!(at(777, 500), 255);
        assert!((10..778).all(|x| x == 10 || at(x, 50) >= at(x - 1, 50)));
        // What is not a number is black.
        assert!((788..1172).all(|x| at(x, 400) == 0));
        let inked = |x: std::ops::Range<usize>, y: std::ops::Range<usize>| {
            y.flat_map(|y| x.clone().map(move |x| at(x, y))).filter(|&grey| grey > 150).count()
        };
        // titles, 0 to 63 per mm
        assert!(inked(10..46, 10..30) > 20 && inked(788..900, 10..30) > 40 && inked(10..200, 818..838) > 60);
        // 10 um are 185 of the 768 pixels that are 41.6 um
        let bar = 818 + 30 + (TALL - 3) / 2;
        assert!((10..195).all(|x| at(x, bar) == INK) && at(196, bar) == BACKGROUND && inked(205..260, 848..868) > 20);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_sinogram_takes_at_most_a_third() {
        let data = vec![1.0f32; 1 << 20];
        let panel = |width: usize, height: usize| Panel {
            title: "",
            unit: "",
            pixel: None,
            width,
            height,
            data: &data[..width * height],
        };
        for (slice, sinogram) in
            [((640, 640), (640, 240)), ((256, 256), (256, 1800)), ((30, 20), (2048, 9)), ((1024, 900), (1, 1))]
        {
            let (slice, sinogram) = (panel(slice.0, slice.1), panel(sinogram.0, sinogram.1));
            let canvas = draw(&[slice, sinogram]);
            // constant panels are mid-grey; the row runs through both
            let row = &canvas.pixels[45 * canvas.width..][..canvas.width];
            let images: Vec<usize> =
                row.chunk_by(|a, b| a == b).filter(|part| part[0] == 128).map(<[u8]>::len).collect();
            let [of_slice, of_sinogram] = images[..] else { panic!("{images:?}") };
            assert!(of_slice >= 384 && 2 * of_sinogram <= of_slice, "{images:?}");
        }
    }

    #[test]
    fn scale_bars_have_round_lengths() {
        let data = [1.0f32; 100];
        for (size, unit, drawn) in
            [(0.65, "um", 1000), (1.0, "mm", 700), (0.013, "mm", 700), (0.0037, "cm", 400), (130.0, "nm", 300)]
        {
            let panel = Panel { title: "", unit: "", pixel: Some((size, unit)), width: 100, height: 1, data: &data };
            let ScaleBar { pixels, text } = ScaleBar::of(&Image::of(&panel, drawn, 1), &panel).unwrap();
            let length = text.strip_suffix(unit).unwrap().trim();
            assert!(["1", "2", "5"].contains(&length.trim_matches(['0', '.'])), "{text}");
            // to within half a pixel of the picture
            let true_length = length.parse::<f64>().unwrap() / (100.0 * size) * drawn as f64;
            assert!((pixels as f64 - true_length).abs() <= 0.5, "{text}: {pixels} {true_length}");
            assert!(3 * pixels <= drawn + 1 && 8 * pixels >= drawn, "{text}: {pixels} of {drawn}");
        }
        let unknown = Panel { title: "", unit: "", pixel: None, width: 100, height: 1, data: &data };
        assert!(ScaleBar::of(&Image::of(&unknown, 100, 1), &unknown).is_none());
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.0123456, -12.3456, 1.0, 54321.0, 1e-7, -3.4e38].map(number);
        assert_eq!(texts, ["0", "0.01235", "-12.35", "1.000", "54321", "1.000e-7", "-3.400e38"]);
    }
}

//! Bar chart of a histogram: values along the bottom, counts on a logarithmic scale.

use super::{Canvas, INK, LETTER, LINE, MARGIN, TALL, number, write};
use crate::error::Result;
use crate::files::OutputFile;
use crate::histogram::HistogramReport;

/// Width of the plot area in pixels.
const WIDTH: usize = 1024;
/// Height of the plot area in pixels.
const HEIGHT: usize = 384;
/// Width of the space for counts next to the plot area, in pixels.
const SIDE: usize = 6 * LETTER;
const BARS: u8 = 150;
const GRID: u8 = 70;
/// Percentiles that are marked.
const MARKED: [f64; 2] = [0.1, 99.9];

/// Plots a histogram of values in `unit` as an 8-bit greyscale PNG, with the range of values, counts on a logarithmic
/// scale, and lines at the percentiles 0.1 and 99.9. If there are more bins than columns, a column shows the fullest of
/// its bins.
///
/// The file appears complete or not at all.
pub fn write_histogram(file: &OutputFile, report: &HistogramReport, unit: &str) -> Result<()> {
    write(file, &draw(report, unit))
}

/// Scales from values and counts to pixels of the plot area.
struct Axes {
    left: usize,
    first: f64,
    span: f64,
    /// Decimal logarithm of the count at the upper edge; the lower edge is below 1, so that a count of 1 is visible.
    decades: f64,
}

impl Axes {
    fn x(&self, value: f64) -> usize {
        let place = ((value - self.first) / self.span * WIDTH as f64) as usize;
        self.left + place.min(WIDTH - 1)
    }

    /// Returns the height of a bar in pixels.
    fn height(&self, count: f64) -> usize {
        const LOWEST: f64 = -0.3;
        if count < 1.0 {
            return 0;
        }
        ((count.log10() - LOWEST) / (self.decades - LOWEST) * HEIGHT as f64).round() as usize
    }
}

fn draw(report: &HistogramReport, unit: &str) -> Canvas {
    let (left, top) = (MARGIN + SIDE, 2 * MARGIN + LINE);
    let mut canvas = Canvas::new(left + WIDTH + MARGIN, top + HEIGHT + MARGIN + 3 * LINE);
    let apart = if report.non_finite > 0 { format!(", {} not finite", report.non_finite) } else { String::new() };
    canvas.text(MARGIN, MARGIN, &format!("{} values {unit}{apart}", report.count));
    let (Some(first), Some(width)) = (report.first_edge, report.bin_width) else { return canvas };
    let bins = report.counts.len();
    let fullest = report.counts.iter().max().copied().unwrap_or(1).max(1) as f64;
    let decades = fullest.log10().ceil().max(1.0);
    let axes = Axes { left, first, span: bins as f64 * width, decades };

    for decade in 0..=decades as i32 {
        let y = top + HEIGHT - axes.height(10f64.powi(decade));
        canvas.fill(left, y, WIDTH, 1, GRID);
        canvas.text(MARGIN, y.saturating_sub(TALL / 2), &format!("1E{decade}"));
    }
    for column in 0..WIDTH {
        let from = column * bins / WIDTH;
        let to = ((column + 1) * bins).div_ceil(WIDTH).max(from + 1);
        let most = report.counts[from..to.min(bins)].iter().max().copied().unwrap_or(0);
        let height = axes.height(most as f64);
        canvas.fill(left + column, top + HEIGHT - height, 1, height, BARS);
    }
    canvas.fill(left, top + HEIGHT, WIDTH, 1, INK);
    let below = top + HEIGHT + MARGIN;
    for (share, below) in MARKED.into_iter().zip((below..).step_by(LINE)) {
        let Some(value) = report.percentile(share) else { continue };
        let x = axes.x(value);
        canvas.dashes(x, top, HEIGHT);
        canvas.label(x, below, &format!("{share}%: {}", number(value)));
    }
    let below = below + 2 * LINE;
    canvas.label(left, below, &number(first));
    canvas.label(left + WIDTH / 2, below, unit);
    canvas.label(left + WIDTH, below, &number(first + axes.span));
    canvas
}

impl Canvas {
    /// Draws a dashed vertical line, through which the bars remain visible.
    fn dashes(&mut self, x: usize, top: usize, height: usize) {
        for y in (top..top + height).step_by(12) {
            self.fill(x, y, 1, 6.min(top + height - y), INK);
        }
    }

    /// Writes a text centred at `x`, but within the image.
    fn label(&mut self, x: usize, top: usize, text: &str) {
        let width = text.chars().count() * LETTER;
        let left = x.saturating_sub(width / 2).min((self.width - MARGIN).saturating_sub(width)).max(MARGIN);
        self.text(left, top, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    fn of(values: &[f32]) -> Canvas {
        let (histogram, moments) = Histogram::of([values].into_iter());
        draw(&histogram.report(moments.into_iter().sum()), "per um")
    }

    /// Returns the pixels of bars in a column of the plot area.
    fn bar(canvas: &Canvas, column: usize) -> usize {
        let x = MARGIN + SIDE + column;
        // letters outside of it have all shades
        let plot = 2 * MARGIN + LINE..2 * MARGIN + LINE + HEIGHT;
        plot.filter(|y| canvas.pixels[y * canvas.width + x] == BARS).count()
    }

    #[test]
    fn bars_are_logarithms_of_counts() {
        // 0 a thousand times, 1 ten times, nothing between
        let mut values = vec![0f32; 1000];
        values.extend([1.0; 10]);
        let canvas = of(&values);
        // half of a column that a percentile marks is visible: 0.1 % is at 0, 99.9 % at 1
        assert!(bar(&canvas, 0).abs_diff(HEIGHT / 2) <= 6);
        assert!((500..600).all(|column| bar(&canvas, column) == 0));
        let ones = (900..WIDTH).map(|column| bar(&canvas, column)).max().unwrap();
        // 1.3 of the 3.3 decades
        assert!(ones.abs_diff(HEIGHT * 13 / 66) <= 6, "{ones}");
    }

    #[test]
    fn every_histogram_can_be_drawn() {
        for values in [&[][..], &[f32::NAN], &[0.0], &[f32::MAX], &[f32::MIN, f32::MAX], &[f32::from_bits(1); 3]] {
            let canvas = of(values);
            assert_eq!(canvas.pixels.len(), canvas.width * canvas.height);
            assert!(canvas.pixels.contains(&INK));
            let drawn = canvas.height > 2 * MARGIN + LINE + HEIGHT && (0..WIDTH).any(|column| bar(&canvas, column) > 0);
            assert_eq!(drawn, values.iter().any(|v| v.is_finite()));
        }
    }
}

//! A chart of the result as SVG: one bar for each kernel.

use super::super::text::three_digits;
use super::row::BenchRow;
use crate::files::SOFTWARE;
use crate::kernel::Algorithm;
use std::fmt::Write as _;

const WIDTH: f64 = 900.0;
/// Position at which bars start.
const LEFT: f64 = 210.0;
/// Space for the numbers at the right of bars.
const RIGHT: f64 = 80.0;
const BAR: f64 = 16.0;
const STEP: f64 = 20.0;
const HEAD: f64 = 72.0;
const GROUP: f64 = 30.0;
const FOOT: f64 = 44.0;
/// Share by which the axis extends beyond the longest bar, so that most bounds fit.
const BEYOND: f64 = 0.25;

/// Colours of the algorithms, distinct in print and for colour-blind readers (Okabe and Ito).
const COLOURS: [&str; 8] = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#999933", "#000000"];

fn colour(algorithm: Algorithm) -> &'static str {
    let place = Algorithm::ALL.iter().position(|&a| a == algorithm).unwrap_or(0);
    COLOURS[place % COLOURS.len()]
}

/// Escapes text inside an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a round step for an axis up to `most`, with about five marks.
fn mark_step(most: f64) -> f64 {
    let power = 10f64.powf((most / 5.0).log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|m| m * power).find(|step| most / step <= 6.0).unwrap_or(10.0 * power)
}

/// Groups timed kernels by profile, interpolation and mode, with the name of each group.
fn groups(rows: &[BenchRow], several: bool) -> Vec<(String, Vec<&BenchRow>)> {
    let mut groups: Vec<(String, Vec<&BenchRow>)> = Vec::new();
    for row in rows.iter().filter(|r| r.gu_per_s.is_some()) {
        let mut name = format!("{}, {}", row.interpolation, row.mode);
        if several {
            name = format!("{}: {name}", row.profile);
        }
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, members)) => members.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

fn label(x: f64, y: f64, attributes: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\"{attributes}>{}</text>\n", escaped(text))
}

/// Returns a chart as SVG with a bar of GU/s for every kernel that was timed, by profile, interpolation and mode.
pub fn bench_plot(rows: &[BenchRow]) -> String {
    let several = rows.iter().any(|r| r.profile != rows[0].profile);
    let groups = groups(rows, several);
    let most = rows.iter().filter_map(|r| r.gu_per_s).fold(0.0, f64::max).max(1e-9) * (1.0 + BEYOND);
    let scale = (WIDTH - LEFT - RIGHT) / most;
    let bars: usize = groups.iter().map(|(_, members)| members.len()).sum();
    let bottom = HEAD + groups.len() as f64 * GROUP + bars as f64 * STEP;
    let height = bottom + FOOT;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<metadata>{SOFTWARE}</metadata>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    svg += &heading(rows, several);
    svg += &axis(most, scale, bottom);
    let mut y = HEAD;
    for (name, members) in &groups {
        svg += &label(16.0, y + GROUP - 9.0, " font-weight=\"bold\"", name);
        y += GROUP;
        for row in members {
            svg += &bar(row, y, scale);
            y += STEP;
        }
    }
    svg += "</svg>\n";
    svg
}

/// Returns the heading: device, problem, and meaning of the frames.
fn heading(rows: &[BenchRow], several: bool) -> String {
    let Some(row) = rows.first() else { return String::new() };
    let title = match several {
        true => row.device.clone(),
        false => format!("{}, profile {}", row.device, row.profile),
    };
    let problem = format!(
        "back projection, GU/s: slices of {0} x {0} pixels from {1} projections of {2} bins",
        row.size, row.projections, row.bins
    );
    let mut svg = label(16.0, 24.0, " font-size=\"16\" font-weight=\"bold\"", &title);
    svg += &label(16.0, 44.0, "", &problem);
    if rows.iter().any(|r| r.bound_gu_per_s.is_some()) {
        svg += &label(16.0, 60.0, " fill=\"#555555\"", "frames: what the limiting unit allows (fbp model)");
    }
    svg
}

/// Returns the axis with marks up to `most` GU/s, at `scale` pixels per GU/s, down to `bottom`.
fn axis(most: f64, scale: f64, bottom: f64) -> String {
    let mut svg = String::new();
    let step = mark_step(most);
    for mark in 0..=(most / step) as usize {
        let value = mark as f64 * step;
        let x = LEFT + value * scale;
        let _ =
            writeln!(svg, "<line x1=\"{x:.1}\" y1=\"{HEAD}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#dddddd\"/>");
        svg += &label(x, bottom + 18.0, " text-anchor=\"middle\"", &three_digits(value));
    }
    svg += &label(LEFT + (WIDTH - LEFT - RIGHT) / 2.0, bottom + 36.0, " text-anchor=\"middle\"", "GU/s");
    svg
}

/// Returns the bar of one kernel, with the frame of its bound.
fn bar(row: &BenchRow, y: f64, scale: f64) -> String {
    let rate = row.gu_per_s.unwrap_or(0.0);
    let slices = if row.slices == 1 { "slice" } else { "slices" };
    let name = format!("{}, {} {slices}", row.algorithm, row.slices);
    let mut svg = label(LEFT - 8.0, y + BAR - 4.0, " text-anchor=\"end\"", &name);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{}\"><title>{}</title></rect>",
        rate * scale,
        colour(row.algorithm),
        escaped(&row.kernel)
    );
    let mut end = rate * scale;
    if let (Some(bound), Some(limit)) = (row.bound_gu_per_s, row.limit) {
        // open at the right where the axis ends before the bound
        let edge = (bound * scale).min(WIDTH - LEFT - RIGHT);
        let down = if bound * scale > edge { "m0," } else { "v" };
        let _ = writeln!(
            svg,
            "<path d=\"M{0:.1},{y:.1}H{1:.1}{down}{BAR}H{0:.1}\" fill=\"none\" stroke=\"#555555\">\
             <title>{limit}: {2} GU/s</title></path>",
            LEFT + end,
            LEFT + edge,
            three_digits(bound)
        );
        end = end.max(edge);
    }
    svg += &label(LEFT + end + 6.0, y + BAR - 4.0, "", &three_digits(rate));
    svg
}

#[cfg(test)]
mod tests {
    use super::super::row::example_row;
    use super::*;

    #[test]
    fn a_bar_for_every_timed_kernel() {
        let rows = [
            example_row(Algorithm::Standard, 1, Some(50.0)),
            example_row(Algorithm::Alu, 4, Some(100.0)),
            example_row(Algorithm::Hybrid, 4, None),
        ];
        let svg = bench_plot(&rows);
        assert_eq!(svg.matches("<title>").count(), 4);
        assert!(svg.contains("width=\"244.0\"") && svg.contains("width=\"488.0\""), "{svg}");
        // a bound past the axis is an open frame
        assert_eq!(svg.matches("H820.0m0,16H").count(), 2);
        assert!(svg.contains("Example &lt;GPU&gt; &amp; &quot;9000&quot;"));
        assert!(bench_plot(&[]).ends_with("</svg>\n"));
    }

    #[test]
    fn marks_are_round() {
        for (most, step) in [(100.0, 20.0), (7000.0, 2000.0), (0.3, 0.05), (1.0, 0.2), (59.0, 10.0)] {
            assert!((mark_step(most) / step - 1.0).abs() < 1e-9, "{most}: {}", mark_step(most));
        }
    }
}

//! Numbers and tables as text.

/// Formats a number with at least three significant digits.
pub(crate) fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v > 0.0 => (2.0 - v.log10().floor()).clamp(0.0, 9.0) as usize,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

pub(crate) fn scientific(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.1e}"))
}

/// Returns lines of cells, the first being the header, as a Markdown table with aligned columns; `numeric` columns are
/// aligned right.
pub(crate) fn markdown(lines: &[impl AsRef<[String]>], numeric: &[usize]) -> String {
    let columns = lines.first().map_or(0, |line| line.as_ref().len());
    let width = |c: usize| lines.iter().map(|l| l.as_ref()[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        for (c, (cell, &width)) in line.as_ref().iter().zip(&widths).enumerate() {
            text += &if numeric.contains(&c) { format!("| {cell:>width$} ") } else { format!("| {cell:<width$} ") };
        }
        text += "|\n";
        if at == 0 {
            for (c, &width) in widths.iter().enumerate() {
                let dashes = "-".repeat(width + 1);
                text += &if numeric.contains(&c) { format!("|{dashes}:") } else { format!("|{dashes}-") };
            }
            text += "|\n";
        }
    }
    text
}

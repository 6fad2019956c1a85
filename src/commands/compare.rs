//! `fbp compare`: differences between slices and reference slices.

use super::errors::{CommandCheckError, CommandInputError, CommandNumberError};
use crate::cli::CompareArgs;
use crate::compare::{Accumulator, Comparison, Mask, Range};
use crate::error::{Error, Result};
use crate::source::Stack;

/// Compares two stacks page by page.
pub fn compare_stacks(a: &str, b: &str, mask: Option<f64>) -> Result<Comparison> {
    let (a, b) = (Stack::open(a, "A")?, Stack::open(b, "B")?);
    let shape = |s: &Stack| (s.len(), s.width(), s.height());
    if shape(&a) != shape(&b) {
        let say = |s: &Stack| format!("{} page(s) of {}x{}", s.len(), s.width(), s.height());
        return Err(CommandInputError::OtherShape { a: say(&a), b: say(&b) }.into());
    }
    let (width, height) = (b.width(), b.height());
    let read = |stack: &Stack, page: usize| -> Result<Vec<f32>> {
        let mut values = vec![0f32; width * height];
        stack.read_rows(page, 0..height, &mut values)?;
        Ok(values)
    };
    let mut range = Range::new(Mask::new(width, height, mask));
    for page in 0..b.len() {
        range.add(&read(&b, page)?)?;
    }
    let mut accumulator = Accumulator::new(range);
    for page in 0..b.len() {
        accumulator.add(page, &read(&a, page)?, &read(&b, page)?)?;
    }
    Ok(accumulator.finish())
}

/// Runs `fbp compare`; returns the text for stdout, and an error if the tolerance is exceeded.
pub fn compare(args: &CompareArgs) -> Result<(String, Result<()>)> {
    for (value, flag) in [(args.mask, "--mask"), (args.tolerance, "--tolerance")] {
        if let Some(value) = value
            && !(value.is_finite() && value >= 0.0)
        {
            return Err(CommandNumberError::Negative { flag, value }.into());
        }
    }
    let c = compare_stacks(&args.a, &args.b, args.mask)?;
    let text = if args.json {
        let value = serde_json::to_value(&c).map_err(|e| Error::Internal(format!("JSON: {e}")))?;
        format!("{value:#}\n")
    } else {
        let place =
            c.max_at.as_ref().map(|at| format!(" at slice {}, x {}, y {}", at.slice, at.x, at.y)).unwrap_or_default();
        format!(
            "RMSE    {:.6e}\nNRMSE   {:.6e}\nPSNR    {:.2} dB\nSNR     {:.2} dB\nSSIM    {:.6}\nmax     {:.6e}{place}\npixels  {}{}\n",
            c.rmse,
            c.nrmse,
            c.psnr,
            c.snr,
            c.ssim,
            c.max_abs,
            c.pixels,
            match c.non_finite {
                0 => String::new(),
                n => format!("\nnot finite  {n}"),
            }
        )
    };
    let verdict = match args.tolerance {
        Some(tolerance) if c.nrmse.is_nan() || c.nrmse > tolerance => {
            Err(CommandCheckError::Tolerance { nrmse: c.nrmse, tolerance }.into())
        }
        _ => Ok(()),
    };
    Ok((text, verdict))
}

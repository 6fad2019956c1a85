//! The page of a scan that failed: what was wrong, what its input has, and a picture of it.

use super::runs::ScanRun;
use super::state::ScanError;
use crate::cli::InfoArgs;
use crate::commands::info::info;
use crate::error::Result;
use crate::files::{InputSet, OutputFile, OutputKind, SOFTWARE};
use crate::html::{FAILURE, write_page};
use crate::picture::{Panel, thumbnail};
use crate::recipe::run_file;
use crate::remark::Doubt;
use crate::source::Stack;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use std::path::Path;

/// Longest side of the picture in pixels.
const SIDE: usize = 512;

/// Data of the page.
#[derive(Serialize)]
struct FailureData<'a> {
    software: &'static str,
    name: &'a str,
    input: &'a str,
    error: &'a ScanError,
    doubts: &'a [Doubt],
    /// What `fbp info` says of the input, or why it cannot.
    contents: String,
    picture: Option<FramePicture>,
    /// The flags as a run file.
    run: String,
}

/// A frame of the input as a PNG in Base64.
#[derive(Serialize)]
struct FramePicture {
    title: String,
    png: String,
}

/// Writes the page of a failed scan to the file that `--report` names.
///
/// # Errors
/// [`Error::Output`](crate::error::Error::Output) when it cannot be written.
pub(super) fn write_failure(run: &ScanRun, page: &Path, error: &ScanError, doubts: &[Doubt]) -> Result<()> {
    let overwrite = Some(run.flags.overwrite);
    let inputs = InputSet::new([Path::new(&run.input)]);
    let file = OutputFile::new("--report", page, OutputKind::Html, &inputs, overwrite)?;
    let about = InfoArgs { path: run.input.clone(), order_by: run.flags.input.order_by, all_pages: false, json: false };
    let data = FailureData {
        software: SOFTWARE,
        name: &run.name,
        input: &run.input,
        error,
        doubts,
        contents: info(&about).unwrap_or_else(|error| error.to_string()),
        picture: picture(run),
        run: run_file(&run.flags)?,
    };
    write_page(&file, &FAILURE, &format!("{}: failed", run.name), &data)
}

/// Draws the middle frame of the input; `None` if it cannot be read.
fn picture(run: &ScanRun) -> Option<FramePicture> {
    let input = &run.flags.input;
    let (flag, spec) = match (&input.projections, &input.sinograms) {
        (Some(spec), _) => ("projection", spec),
        (_, Some(spec)) => ("sinogram", spec),
        _ => return None,
    };
    let stack = Stack::open_by(spec, flag, crate::memory::available() / 4, input.order_by).ok()?;
    let (width, height, middle) = (stack.width(), stack.height(), stack.len() / 2);
    let mut data = vec![0f32; width * height];
    stack.read_rows(middle, 0..height, &mut data).ok()?;
    let png = thumbnail(&Panel { title: "", unit: "", width, height, data: &data, pixel: None }, SIDE).ok()?;
    let title = format!("The middle {flag}, {}, as stored: {width} x {height} pixels", stack.page_name(middle));
    Some(FramePicture { title, png: BASE64_STANDARD.encode(png) })
}

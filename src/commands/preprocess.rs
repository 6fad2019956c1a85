//! `fbp preprocess`: corrected sinograms or projections as files.

use super::refuse_filled;
use crate::cli::{PreprocessArgs, ScanArgs};
use crate::error::{Error, Result};
use crate::execution::{Execution, Files};
use crate::job::Job;
use crate::recipe::{Input, Recipe, SliceGrid, check_conflicts, given, steps};
use crate::sink::{AllowedContents, Dtype, Encoding, Pixels, SOFTWARE, SliceWriter, Target};
use crate::source::{self, FieldMode, Stack};
use crate::steps::{Band, Counts, Preparation, Scope};
use rayon::prelude::*;
use std::time::Instant;

/// Reads, corrects and writes page by page, as many at once as there are threads; a line with sizes and times.
pub fn preprocess(args: &PreprocessArgs) -> Result<String> {
    check_conflicts(&[given(&args.input)?])?;
    let input = Input::new(&args.input)?;
    let slice = SliceGrid::of_pixels(args.pixel_size.as_ref().map(|text| text.0.as_str()), input.binning)?;
    let steps = steps(&args.input, &args.steps, &slice)?;
    let target = Target::parse(&args.output)?;
    let sinograms = input.is_sinograms();
    if !sinograms && !steps.stripes.is_empty() {
        return Err(Error::usage(
            "--stripes: works on sinograms, but with --projections or --hdf5 this command writes projections",
        ));
    }
    let median = input.field_mode == FieldMode::Median;
    let execution = Execution { files: Files::new(&args.input, &ScanArgs::default()), ..Execution::default() };
    let job = Job { recipe: Recipe { input, slice, ..Recipe::default() }, execution };
    let request = job.open_request(false);
    let stacks = source::open(request, |path, flag| Stack::open_within(path, flag, request.memory))?;
    let stack = &stacks.data;
    let (pages, rows, bins) = (stack.len(), stack.height(), stack.width());
    let used: Vec<usize> = (0..if sinograms { rows } else { pages }).collect();
    let scope = Scope { sinograms, median, used: &used, full_projections: true };
    let preparation = Preparation::open(&steps, &stacks, scope)?;
    // pages are not slices
    let prefix = if sinograms { "sinogram_" } else { "projection_" };
    let target = match target.fills_directory() {
        true => {
            refuse_filled(target.directory(), args.overwrite)?;
            Target::files(target.directory(), prefix)
        }
        false => target,
    };
    let indices: Vec<usize> = (0..pages).collect();
    target.check_inputs(job.execution.files.all().chain(stacks.files()), &indices)?;
    if !args.overwrite && target.unfinished_slices()? > 0 {
        return Err(Error::output(
            &target.path_of(0),
            "is the output of a run that was stopped; add --overwrite to replace it, or choose another --output",
        ));
    }
    let encoding = Encoding { dtype: Dtype::F32, range: None };
    let present = AllowedContents::new(args.overwrite, None);
    let writer = SliceWriter::create(target, bins, rows, encoding, &indices, present, SOFTWARE)?;

    let mut seconds = 0.0;
    let mut counts = Counts::default();
    let mut chunk = vec![0f32; rayon::current_num_threads().min(pages) * rows * bins];
    for first in indices.iter().copied().step_by(chunk.len() / (rows * bins)) {
        let count = (chunk.len() / (rows * bins)).min(pages - first);
        let values = &mut chunk[..count * rows * bins];
        let correct = |(place, values): (usize, &mut [f32])| -> Result<(f64, Counts)> {
            let page = first + place;
            stack.read_rows(page, 0..rows, values)?;
            let start = Instant::now();
            let mut replaced = Counts::default();
            if sinograms {
                for (projection, row) in values.chunks_mut(bins).enumerate() {
                    let band = Band::new(row, rows, page..page + 1, page..page + 1).of(projection, rows);
                    preparation.projection(band, &mut replaced);
                }
                preparation.sinogram(values, &mut replaced);
            } else {
                preparation.projection(Band::new(values, rows, 0..rows, 0..rows).of(page, pages), &mut replaced);
            }
            Ok((start.elapsed().as_secs_f64(), replaced))
        };
        let corrected = values.par_chunks_mut(rows * bins).enumerate().map(correct).collect::<Result<Vec<_>>>()?;
        for (time, replaced) in corrected {
            seconds += time;
            counts += replaced;
        }
        let pages = values.chunks(rows * bins).map(Pixels::Values).enumerate();
        let done: Vec<_> = pages.map(|(place, page)| (first + place, page)).collect();
        writer.write_all(&done)?;
    }
    writer.finish()?;
    let what = if sinograms { "sinograms" } else { "projections" };
    Ok(format!(
        "{pages} {what} of {bins}x{rows}, {:.1} ms each on one thread; {} values and {} outliers replaced\n",
        1e3 * seconds / pages as f64,
        counts.clamped.total(),
        counts.outliers
    ))
}

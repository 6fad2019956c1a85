//! Pages that a device corrects without reconstructing them, for `fbp preprocess`: projections, or sinograms.

use super::prepare::open_for_steps;
use super::stages::{joined, parts_of};
use crate::check::TestShape;
use crate::device::{
    BatchCorrector, BatchPart, BlockShape, CopiedProjections, HostMemory, ImageRows, PieceSize, RowBlocks,
    RowCorrector, SampleOrder, Session, SinogramBatch,
};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::report::Reporter;
use crate::source::Stack;
use crate::steps::{Counts, DeviceSinogramStep, Preparation};
use crossbeam_channel::{Receiver, Sender, unbounded};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;

/// Bytes of the corrected values of a batch of pages, if a page is not larger.
const BATCH: usize = 128 << 20;
/// Batches in the host's memory before and after the device: some are read or written while others are copied.
const READ: usize = 2;
const WRITTEN: usize = 5;
/// Threads that write batches.
const WRITERS: usize = 3;

/// A stack and what is done to its pages.
#[derive(Clone, Copy)]
pub struct PageSteps<'a> {
    pub stack: &'a Stack,
    pub preparation: &'a Preparation,
    /// Numbers of all projections.
    pub used: &'a [usize],
    /// Whether pages are sinograms, else projections.
    pub sinograms: bool,
    /// Numbers of the pages that are corrected, ascending; for projections all.
    pub numbers: &'a [usize],
    /// Rows of projections from the first to the last that is wanted.
    pub rows: (usize, usize),
}

/// A device with what corrects pages.
pub struct PageDevice<'a> {
    session: Session,
    pages: PageSteps<'a>,
    /// Pages of a batch.
    batch: usize,
    kernels: PageKernels,
    /// A batch of corrected pages.
    corrected: Buffer<f32>,
}

enum PageKernels {
    Projections(Box<BatchCorrector>),
    Sinograms(Box<RowCorrector>, Vec<Box<dyn DeviceSinogramStep>>),
}

/// A batch of pages on its way from the device.
enum CorrectedBatch {
    Projections(CopiedProjections),
    Sinograms(HostMemory),
}

impl PageSteps<'_> {
    /// Values of a page.
    fn values(&self) -> usize {
        self.stack.width() * self.stack.height()
    }

    /// Bytes of the samples of a page.
    fn sample_bytes(&self) -> usize {
        self.stack.height() * self.stack.stored().row_bytes()
    }

    /// Reads samples of some of the pages as they are stored, at the beginning of `out`.
    fn read(&self, places: Range<usize>, out: &mut [u8]) -> Result<()> {
        let rows = 0..self.stack.height();
        let read = |(&page, out)| self.stack.read_stored(page, std::slice::from_ref(&rows), out);
        self.numbers[places].par_iter().zip(out.par_chunks_mut(self.sample_bytes())).try_for_each(read)
    }
}

impl<'a> PageDevice<'a> {
    /// Opens a device for these pages; `None` if the host does the steps.
    ///
    /// # Errors
    /// Those of choosing and opening a device.
    pub fn open(pages: PageSteps<'a>, job: &Job, reporter: &Reporter) -> Result<Option<PageDevice<'a>>> {
        match Self::with_room(pages, job, reporter) {
            Err(Error::Memory(why)) => {
                reporter.note(&format!("note: {why}; the host does all steps"));
                Ok(None)
            }
            device => device,
        }
    }

    fn with_room(pages: PageSteps<'a>, job: &Job, reporter: &Reporter) -> Result<Option<PageDevice<'a>>> {
        let PageSteps { stack, preparation, used, sinograms, .. } = pages;
        let count = if sinograms { stack.height() } else { stack.len() };
        let Some(correction) = preparation.correction(used, count) else { return Ok(None) };
        let (bins, height, stored) = (stack.width(), stack.height(), stack.stored());
        let images = correction.images.any();
        let blocks = match images {
            true => RowBlocks::of_rows(&correction.images, bins, height),
            false => Some(RowBlocks::all(height)),
        };
        let Some(blocks) = blocks else { return Ok(None) };
        let test = TestShape { projections: used.len(), images: images.then_some((bins, blocks)) };
        let Some(session) = open_for_steps(job, (stored, test), sinograms, reporter)? else { return Ok(None) };
        // what is on its way takes at most half of the host's memory
        let of_page = 4 * pages.values();
        let of_host = job.execution.host_memory() as usize / 2 / (READ * pages.sample_bytes() + WRITTEN * of_page);
        let mut batch = (BATCH / of_page).min(of_host).min(pages.numbers.len()).max(1);
        loop {
            let kernels = match sinograms {
                true => {
                    let size = PieceSize { rows: batch, projections: height, counted: batch, at_once: 1 };
                    RowCorrector::new(&session, &correction, stored, SampleOrder::Sinograms, size).and_then(
                        |corrector| {
                            let steps = preparation.sinograms_on_device(&session, batch, height)?;
                            Ok(PageKernels::Sinograms(Box::new(corrector), steps))
                        },
                    )
                }
                false => {
                    batch = batch.next_multiple_of(2);
                    let pairs =
                        (BATCH / blocks.pair_bytes(&session.facts, session.image_backend).max(1)).clamp(1, batch / 2);
                    let projections = used.len();
                    let shape =
                        BlockShape { blocks, bins, height, projections, batch, pairs, at_once: 2, kept_batches: 0 };
                    BatchCorrector::new(&session, &correction, stored, shape)
                        .map(|corrector| PageKernels::Projections(Box::new(corrector)))
                }
            };
            let room = |what| session.buffer(batch * pages.values(), CL_MEM_READ_WRITE, what);
            match kernels.and_then(|kernels| Ok((kernels, room("corrected pages")?))) {
                Ok((kernels, corrected)) => {
                    return Ok(Some(PageDevice { session, pages, batch, kernels, corrected }));
                }
                Err(Error::Memory(_)) if batch > 2 => batch /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        self.session.device_name()
    }

    /// Corrects the pages and passes them on in batches, by their places among the numbers, from several threads; what was
    /// replaced.
    ///
    /// # Errors
    /// Those of reading, of the device, and of `write`.
    pub fn correct(mut self, write: impl Fn(Range<usize>, &[f32]) -> Result<()> + Sync) -> Result<Counts> {
        let (pages, batch) = (self.pages, self.batch);
        let failed = AtomicBool::new(false);
        let (to_device, samples) = unbounded();
        let (samples_back, free_samples) = unbounded();
        let (to_writers, corrected) = unbounded();
        let (values_back, free_values) = unbounded();
        for _ in 0..READ {
            let memory = self.session.host_memory((batch * pages.sample_bytes()).div_ceil(4))?;
            // the receivers are here
            let _ = samples_back.send(memory);
        }
        for _ in 0..WRITTEN {
            let _ = values_back.send(self.session.host_memory(batch * pages.values())?);
        }
        let read = move || -> Result<()> {
            for numbers in parts_of(pages.numbers.len(), batch) {
                // the device's thread ended if nobody answers
                let Ok(mut memory) = free_samples.recv() else { break };
                pages.read(numbers.clone(), HostMemory::as_bytes_mut(&mut memory))?;
                if to_device.send((numbers, memory)).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let write_batches = |corrected: Receiver<(Range<usize>, HostMemory)>, back: Sender<HostMemory>| -> Result<()> {
            for (numbers, memory) in corrected {
                let values = &memory[..numbers.len() * pages.values()];
                write(numbers, values).inspect_err(|_| failed.store(true, Relaxed))?;
                // the device may have computed all
                let _ = back.send(memory);
            }
            Ok(())
        };
        scope(|scope| {
            let reader = scope.spawn(read);
            let channels: Vec<_> = (0..WRITERS).map(|_| (corrected.clone(), values_back.clone())).collect();
            // theirs alone: else the device would wait for memory when all of them have failed
            drop((corrected, values_back));
            let one = |(corrected, back)| scope.spawn(|| write_batches(corrected, back));
            let writers: Vec<_> = channels.into_iter().map(one).collect();
            let counts = self.run((samples, samples_back), (to_writers, free_values), &failed);
            let read = joined(reader, "reader");
            for writer in writers {
                joined(writer, "writer")?;
            }
            read?;
            counts
        })
    }

    /// The device's part: samples come and go back, values go and come back.
    fn run(
        &mut self,
        (samples, samples_back): (Receiver<(Range<usize>, HostMemory)>, Sender<HostMemory>),
        (to_writers, free_values): (Sender<(Range<usize>, HostMemory)>, Receiver<HostMemory>),
        failed: &AtomicBool,
    ) -> Result<Counts> {
        let mut counts = Counts::default();
        let mut before: Option<(Range<usize>, CorrectedBatch)> = None;
        let deliver = |session: &Session, (numbers, delivery): (Range<usize>, CorrectedBatch)| -> Result<bool> {
            let memory = match delivery {
                CorrectedBatch::Projections(copied) => copied.wait(session)?,
                CorrectedBatch::Sinograms(memory) => memory,
            };
            Ok(to_writers.send((numbers, memory)).is_ok())
        };
        for (numbers, memory) in samples {
            let Some(values) = free_values.recv().ok().filter(|_| !failed.load(Relaxed)) else { break };
            let delivery = self.correct_batch(numbers.clone(), memory.as_bytes(), values, &mut counts)?;
            // the reader may have read all
            let _ = samples_back.send(memory);
            // copied from the device while this batch was copied to it
            if let Some(before) = before.replace((numbers, delivery)) {
                deliver(&self.session, before)?;
            }
        }
        if let Some(last) = before {
            deliver(&self.session, last)?;
        }
        let PageSteps { preparation, used, rows: (first, end), .. } = self.pages;
        if let PageKernels::Projections(corrector) = &mut self.kernels {
            let found = corrector.take_counts(&self.session, end - first)?;
            counts += preparation.counts(first..end, used, &found);
        }
        Ok(counts)
    }

    /// Corrects a batch. Sinograms are there when it returns, projections are still being copied.
    fn correct_batch(
        &mut self,
        numbers: Range<usize>,
        samples: &[u8],
        mut values: HostMemory,
        counts: &mut Counts,
    ) -> Result<CorrectedBatch> {
        let PageDevice { session, pages, kernels, corrected, .. } = self;
        let PageSteps { stack, preparation, used, rows: (first, end), .. } = *pages;
        let (count, bins, height) = (numbers.len(), stack.width(), stack.height());
        let samples = &samples[..count * pages.sample_bytes()];
        match kernels {
            PageKernels::Projections(corrector) => {
                let part = BatchPart { wanted: 0..height, counted: first..end, projections: numbers };
                let into = ImageRows { values: corrected, first: 0, stride: count * bins };
                corrector.correct(session, &part, samples, &into)?;
                Ok(CorrectedBatch::Projections(corrector.copy_projections(session, corrected, count, values)?))
            }
            PageKernels::Sinograms(corrector, steps) => {
                let which = pages.numbers[numbers].to_vec();
                corrector.run(session, samples, &which, 0, (corrected, height * bins))?;
                let found = corrector.take_counts(session, count)?;
                *counts += preparation.counts(which.into_iter(), used, &found);
                let batch = SinogramBatch { values: corrected, first: 0, slices: count, projections: height, bins };
                steps.iter_mut().try_for_each(|step| step.apply(session, &batch))?;
                session.finish()?;
                session.download(corrected, 0, &mut values[..count * pages.values()], "sinograms")?;
                Ok(CorrectedBatch::Sinograms(values))
            }
        }
    }
}

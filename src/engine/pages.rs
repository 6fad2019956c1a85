//! Pages that a device corrects without reconstructing them, for `fbp preprocess`: projections, or sinograms.

use super::prepare::open_for_steps;
use crate::check::TestShape;
use crate::device::{CopiedProjections, HostMemory, Session};
use crate::error::{Error, Result};
use crate::feed::{BATCHES_READ, BatchFeed, BatchPlace, ScanRows, parts_of, with_room};
use crate::job::Job;
use crate::operations::{BlockShape, DetectorBatch, RowBlocks, RowCorrection, SinogramBatch};
use crate::report::Reporter;
use crate::steps::{Counts, DeviceSinogramStep};
use crate::threads::joined;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;

/// Bytes of the corrected values of a batch of pages, if a page is not larger.
const BATCH: usize = 128 << 20;
/// Batches in the host's memory on their way from the device: some are written while others are copied.
const WRITTEN: usize = 5;
/// Number of threads that write batches.
const WRITERS: usize = 3;

/// A device with the programs and buffers that correct pages.
pub struct PageDevice<'a> {
    session: Session,
    scan: ScanRows<'a>,
    corrector: PageCorrector<'a>,
}

/// Kernels and buffers for a batch of pages.
struct PageCorrector<'a> {
    feed: BatchFeed<'a>,
    /// Steps on sinograms.
    steps: Vec<Box<dyn DeviceSinogramStep>>,
    /// Number of pages of a batch.
    batch: usize,
}

/// A batch of pages on its way from the device.
enum CorrectedBatch {
    Projections(CopiedProjections),
    Sinograms(HostMemory),
}

/// Positions of pages, and memory with their values.
type PageValues = (Range<usize>, HostMemory);

impl<'a> PageDevice<'a> {
    /// Opens a device for the pages of a scan, whose projections are corrected in full; `None` if the host does the
    /// steps.
    ///
    /// # Errors
    /// Errors of choosing and opening a device.
    pub fn open(scan: ScanRows<'a>, job: &Job, reporter: &Reporter) -> Result<Option<PageDevice<'a>>> {
        match Self::prepare(scan, job, reporter) {
            Err(Error::Memory(why)) => {
                reporter.note(&format!("note: {why}; the host does all steps"));
                Ok(None)
            }
            device => device,
        }
    }

    fn prepare(scan: ScanRows<'a>, job: &Job, reporter: &Reporter) -> Result<Option<PageDevice<'a>>> {
        let Some(correction) = scan.correction() else { return Ok(None) };
        let (bins, height, projections) = (scan.stack.width(), scan.height(), scan.used.len());
        let images = correction.images.any();
        let blocks = match images {
            true => RowBlocks::of_rows(&correction.images, bins, height),
            false => Some(RowBlocks::all(height)),
        };
        let Some(blocks) = blocks else { return Ok(None) };
        let test = TestShape { projections, images: images.then_some((bins, blocks)) };
        let Some(session) = open_for_steps(job, scan.stack.stored(), test, scan.sinograms, reporter)? else {
            return Ok(None);
        };
        // what is on its way takes at most half of the host's memory
        let (of_page, of_samples) = (4 * scan.page_values(), scan.sample_bytes(&scan.batch_of_pages(0..1)));
        let of_host = job.execution.host_memory() as usize / 2 / (BATCHES_READ * of_samples + WRITTEN * of_page);
        let most = (BATCH / of_page).min(of_host).min(scan.pages().len()).max(1);
        let corrector = with_room(most, |pages| PageCorrector::new(&session, scan, &correction, blocks, pages))?;
        Ok(Some(PageDevice { session, scan, corrector }))
    }

    /// Returns the name of the device.
    pub fn name(&self) -> &str {
        self.session.device_name()
    }

    /// Corrects the pages, and passes them on in batches from several threads, with their positions among the pages.
    /// Returns the counts of replaced values.
    ///
    /// # Errors
    /// Errors of reading, of the device, and of `write`.
    pub fn correct(mut self, write: impl Fn(Range<usize>, &[f32]) -> Result<()> + Sync) -> Result<Counts> {
        let of_page = self.scan.page_values();
        let failed = AtomicBool::new(false);
        let (to_writers, corrected) = unbounded();
        let (values_back, free_values) = unbounded();
        for _ in 0..WRITTEN {
            // the receiver is here
            let _ = values_back.send(self.session.host_memory(self.corrector.batch * of_page)?);
        }
        let write_batches = |corrected: Receiver<PageValues>, back: Sender<HostMemory>| -> Result<()> {
            for (places, memory) in corrected {
                let values = &memory[..places.len() * of_page];
                write(places, values).inspect_err(|_| failed.store(true, Relaxed))?;
                // the device may have computed all
                let _ = back.send(memory);
            }
            Ok(())
        };
        scope(|scope| {
            let channels: Vec<_> = (0..WRITERS).map(|_| (corrected.clone(), values_back.clone())).collect();
            // only the writers hold these: else the device would wait for memory when all of them have failed
            drop((corrected, values_back));
            let one = |(corrected, back)| scope.spawn(|| write_batches(corrected, back));
            let writers: Vec<_> = channels.into_iter().map(one).collect();
            let counts = self.run(to_writers, free_values, &failed);
            for writer in writers {
                joined(writer, "writer")?;
            }
            counts
        })
    }

    /// Does the device's part: passes values on, and gets memory for the next, until a writer has `failed`.
    fn run(
        &mut self,
        to_writers: Sender<PageValues>,
        free_values: Receiver<HostMemory>,
        failed: &AtomicBool,
    ) -> Result<Counts> {
        let PageDevice { session, scan, corrector: PageCorrector { feed, steps, batch } } = self;
        let deliver = |(places, delivery): (Range<usize>, CorrectedBatch)| -> Result<()> {
            let memory = match delivery {
                CorrectedBatch::Projections(copied) => copied.wait(session)?,
                CorrectedBatch::Sinograms(memory) => memory,
            };
            // all writers may have failed
            let _ = to_writers.send((places, memory));
            Ok(())
        };
        let (mut counts, mut pages) = (Counts::default(), 0);
        let mut before: Option<(Range<usize>, CorrectedBatch)> = None;
        let batches = parts_of(scan.pages().len(), *batch).map(|places| scan.batch_of_pages(places));
        feed.correct(session, batches, |feed, batch| {
            let Some(values) = free_values.recv().ok().filter(|_| !failed.load(Relaxed)) else { return Ok(false) };
            let first = pages;
            pages += if scan.sinograms { batch.rows.len() } else { batch.projections.len() };
            let delivery = match scan.sinograms {
                true => {
                    counts += feed.counts_of(session, batch)?;
                    finish_sinograms(session, feed, steps, batch, values).map(CorrectedBatch::Sinograms)
                }
                false => {
                    let (projections, size) = (batch.projections.len(), [scan.stack.width(), scan.height()]);
                    let copied = CopiedProjections::start(session, &feed.values, projections, size, values);
                    copied.map(CorrectedBatch::Projections)
                }
            }?;
            // copied from the device while this batch was copied to it
            before.replace((first..pages, delivery)).map_or(Ok(()), deliver)?;
            Ok(true)
        })?;
        before.map_or(Ok(()), deliver)?;
        if !scan.sinograms {
            counts += feed.counts_of(session, &scan.batch_of_pages(0..0))?;
        }
        Ok(counts)
    }
}

impl<'a> PageCorrector<'a> {
    /// Builds kernels and allocates memory for so many pages at once.
    fn new(
        session: &Session,
        scan: ScanRows<'a>,
        correction: &RowCorrection,
        blocks: RowBlocks,
        pages: usize,
    ) -> Result<Self> {
        let (size, used) = ([scan.stack.width(), scan.height()], scan.used.len());
        // pairs of projections are one image
        let batch = if scan.sinograms { pages } else { pages.next_multiple_of(2) };
        let (shape, steps, held) = match scan.sinograms {
            true => {
                let steps = scan.preparation.sinograms_on_device(session, batch, used)?;
                (BlockShape::straight(RowBlocks::all(batch), size, used), steps, [batch, used])
            }
            false => {
                let shape = BlockShape::straight(blocks, size, used).in_batches(session, batch, BATCH);
                (shape, Vec::new(), [scan.height(), batch])
            }
        };
        let feed = BatchFeed::new(session, scan, correction, shape, held, BatchPlace::Beginning)?;
        Ok(PageCorrector { feed, steps, batch })
    }
}

/// Does the steps on the sinograms of a batch, and downloads them.
fn finish_sinograms(
    session: &Session,
    feed: &mut BatchFeed,
    steps: &mut [Box<dyn DeviceSinogramStep>],
    batch: &DetectorBatch,
    mut values: HostMemory,
) -> Result<HostMemory> {
    let (slices, projections, bins) = (batch.rows.len(), batch.projections.len(), feed.bins());
    let sinograms = SinogramBatch { values: &feed.values, first: 0, slices, projections, bins };
    steps.iter_mut().try_for_each(|step| step.apply(session, &sinograms))?;
    session.finish()?;
    session.download(&feed.values, 0, &mut values[..slices * projections * bins], "sinograms")?;
    Ok(values)
}

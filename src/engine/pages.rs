//! Pages that a device corrects without reconstructing them, for `fbp preprocess`: projections, or sinograms.

use super::prepare::open_for_steps;
use super::read_ahead::{ReadBatches, read_ahead};
use super::threads::joined;
use crate::check::TestShape;
use crate::device::{CopiedProjections, HostMemory, Session};
use crate::error::{Error, Result};
use crate::feed::{ScanRows, parts_of};
use crate::job::Job;
use crate::operations::{BlockCorrector, BlockShape, DetectorBatch, DeviceRows, RowBlocks, SinogramBatch};
use crate::report::Reporter;
use crate::steps::{Counts, DeviceSinogramStep};
use crossbeam_channel::{Receiver, Sender, unbounded};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;

/// Bytes of the corrected values of a batch of pages, if a page is not larger.
const BATCH: usize = 128 << 20;
/// Batches in the host's memory on their way to the device: some are read while others are copied.
const READ: usize = 2;
/// Batches in the host's memory on their way from the device: some are written while others are copied.
const WRITTEN: usize = 5;
/// Number of threads that write batches.
const WRITERS: usize = 3;

/// A device with the programs and buffers that correct pages.
pub struct PageDevice<'a> {
    session: Session,
    scan: ScanRows<'a>,
    /// Number of pages of a batch.
    batch: usize,
    corrector: BlockCorrector,
    /// Steps on sinograms.
    steps: Vec<Box<dyn DeviceSinogramStep>>,
    /// Corrected pages of a batch.
    corrected: Buffer<f32>,
}

/// A batch of pages on its way from the device.
enum CorrectedBatch {
    Projections(CopiedProjections),
    Sinograms(HostMemory),
}

/// Returns the numbers of the pages that are corrected, ascending: the sinograms that are wanted, or all projections.
pub fn pages<'a>(scan: &ScanRows<'a>) -> &'a [usize] {
    if scan.sinograms { scan.wanted } else { scan.used }
}

/// Returns the batch of the pages at some positions.
fn batch_of(scan: &ScanRows, places: Range<usize>) -> DetectorBatch {
    match scan.sinograms {
        true => scan.of_all_projections(&scan.wanted[places], 0),
        false => scan.batch(0..scan.height(), places),
    }
}

/// Returns the number of values of a page.
fn page_values(scan: &ScanRows) -> usize {
    scan.stack.width() * scan.stack.height()
}

impl<'a> PageDevice<'a> {
    /// Opens a device for the pages of a scan, whose projections are corrected in full; `None` if the host does the
    /// steps.
    ///
    /// # Errors
    /// Errors of choosing and opening a device.
    pub fn open(scan: ScanRows<'a>, job: &Job, reporter: &Reporter) -> Result<Option<PageDevice<'a>>> {
        match Self::with_room(scan, job, reporter) {
            Err(Error::Memory(why)) => {
                reporter.note(&format!("note: {why}; the host does all steps"));
                Ok(None)
            }
            device => device,
        }
    }

    fn with_room(scan: ScanRows<'a>, job: &Job, reporter: &Reporter) -> Result<Option<PageDevice<'a>>> {
        let ScanRows { stack, preparation, used, sinograms, .. } = scan;
        let Some(correction) = scan.correction() else { return Ok(None) };
        let (bins, height, stored) = (stack.width(), scan.height(), stack.stored());
        let images = correction.images.any();
        let blocks = match images {
            true => RowBlocks::of_rows(&correction.images, bins, height),
            false => Some(RowBlocks::all(height)),
        };
        let Some(blocks) = blocks else { return Ok(None) };
        let test = TestShape { projections: used.len(), images: images.then_some((bins, blocks)) };
        let Some(session) = open_for_steps(job, stored, test, sinograms, reporter)? else { return Ok(None) };
        // what is on its way takes at most half of the host's memory
        let (of_page, of_samples) = (4 * page_values(&scan), scan.sample_bytes(&batch_of(&scan, 0..1)));
        let of_host = job.execution.host_memory() as usize / 2 / (READ * of_samples + WRITTEN * of_page);
        let mut batch = (BATCH / of_page).min(of_host).min(pages(&scan).len()).max(1);
        loop {
            let shape = match sinograms {
                true => BlockShape::straight(RowBlocks::all(batch), [bins, height], used.len()),
                false => {
                    // pairs of projections are one image
                    batch = batch.next_multiple_of(2);
                    BlockShape::straight(blocks, [bins, height], used.len()).in_batches(&session, batch, BATCH)
                }
            };
            let corrector = BlockCorrector::new(&session, &correction, stored, scan.order(), shape);
            let made = corrector.and_then(|corrector| {
                let steps = match sinograms {
                    true => preparation.sinograms_on_device(&session, batch, used.len())?,
                    false => Vec::new(),
                };
                let corrected = session.buffer(batch * page_values(&scan), CL_MEM_READ_WRITE, "corrected pages")?;
                Ok((corrector, steps, corrected))
            });
            match made {
                Ok((corrector, steps, corrected)) => {
                    return Ok(Some(PageDevice { session, scan, batch, corrector, steps, corrected }));
                }
                Err(Error::Memory(_)) if batch > 2 => batch /= 2,
                Err(error) => return Err(error),
            }
        }
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
        let (scan, batch) = (self.scan, self.batch);
        let values = page_values(&scan);
        let failed = AtomicBool::new(false);
        let (to_writers, corrected) = unbounded();
        let (values_back, free_values) = unbounded();
        let samples = || self.session.host_memory(self.corrector.most_bytes().div_ceil(4));
        let samples = (0..READ).map(|_| samples()).collect::<Result<Vec<HostMemory>>>()?;
        for _ in 0..WRITTEN {
            // the receiver is here
            let _ = values_back.send(self.session.host_memory(batch * values)?);
        }
        let write_batches = |corrected: Receiver<(Range<usize>, HostMemory)>, back: Sender<HostMemory>| -> Result<()> {
            for (places, memory) in corrected {
                let values = &memory[..places.len() * values];
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
            let batches = parts_of(pages(&scan).len(), batch).map(|places| batch_of(&scan, places));
            let counts = read_ahead(&scan, batches, samples, |read, back| {
                self.run(read, back, to_writers, free_values, &failed)
            });
            for writer in writers {
                joined(writer, "writer")?;
            }
            counts
        })
    }

    /// Does the device's part: gets samples and gives their memory back, passes values on and gets memory for the next.
    fn run(
        &mut self,
        read: ReadBatches,
        back: Sender<HostMemory>,
        to_writers: Sender<(Range<usize>, HostMemory)>,
        free_values: Receiver<HostMemory>,
        failed: &AtomicBool,
    ) -> Result<Counts> {
        let mut counts = Counts::default();
        let mut before: Option<(Range<usize>, CorrectedBatch)> = None;
        let deliver = |session: &Session, (places, delivery): (Range<usize>, CorrectedBatch)| -> Result<bool> {
            let memory = match delivery {
                CorrectedBatch::Projections(copied) => copied.wait(session)?,
                CorrectedBatch::Sinograms(memory) => memory,
            };
            Ok(to_writers.send((places, memory)).is_ok())
        };
        let mut pages = 0;
        for (batch, memory) in read {
            let Some(values) = free_values.recv().ok().filter(|_| !failed.load(Relaxed)) else { break };
            let first = pages;
            pages += if self.scan.sinograms { batch.rows.len() } else { batch.projections.len() };
            let delivery = self.correct_batch(&batch, memory.as_bytes(), values, &mut counts)?;
            // the reader may have read all
            let _ = back.send(memory);
            // copied from the device while this batch was copied to it
            if let Some(before) = before.replace((first..pages, delivery)) {
                deliver(&self.session, before)?;
            }
        }
        if let Some(last) = before {
            deliver(&self.session, last)?;
        }
        if !self.scan.sinograms {
            counts += self.counts_of(&batch_of(&self.scan, 0..0))?;
        }
        Ok(counts)
    }

    /// Takes the counts of replaced values in a batch, and in earlier ones whose counts were not taken.
    fn counts_of(&mut self, batch: &DetectorBatch) -> Result<Counts> {
        let found = self.corrector.take_counts(&self.session, batch.counted.len())?;
        let rows = batch.rows[batch.counted.clone()].iter().copied();
        Ok(self.scan.preparation.counts(rows, self.scan.used, &found))
    }

    /// Corrects a batch. Sinograms are complete when it returns; projections are still being copied.
    fn correct_batch(
        &mut self,
        batch: &DetectorBatch,
        samples: &[u8],
        mut values: HostMemory,
        counts: &mut Counts,
    ) -> Result<CorrectedBatch> {
        let PageDevice { session, scan, corrector, corrected, .. } = self;
        let (bins, projections) = (scan.stack.width(), batch.projections.len());
        let into = DeviceRows { values: corrected, first: 0, stride: projections * bins };
        corrector.correct_into(session, batch, &samples[..scan.sample_bytes(batch)], &into)?;
        if !scan.sinograms {
            let size = [bins, scan.height()];
            let copied = CopiedProjections::start(session, corrected, projections, size, values)?;
            return Ok(CorrectedBatch::Projections(copied));
        }
        *counts += self.counts_of(batch)?;
        let PageDevice { session, steps, corrected, .. } = self;
        let slices = batch.rows.len();
        let sinograms = SinogramBatch { values: corrected, first: 0, slices, projections, bins };
        steps.iter_mut().try_for_each(|step| step.apply(session, &sinograms))?;
        session.finish()?;
        session.download(corrected, 0, &mut values[..slices * projections * bins], "sinograms")?;
        Ok(CorrectedBatch::Sinograms(values))
    }
}

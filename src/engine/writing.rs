//! The last stage of a run: finishes and writes slices as devices deliver them.

use super::run::{ObservedSlice, Run};
use super::transfer::{ComputedSlices, FoundInSlices};
use crate::device::HostMemory;
use crate::error::Result;
use crate::plan::WRITTEN_PIECES;
use crate::report::Stage;
use crate::sink::{Pixels, SliceWriter};
use crate::threads::joined;
use crossbeam_channel::{Receiver, Sender, select, unbounded};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::scope;
use std::time::Instant;

/// The results of writing.
pub(super) struct Written {
    /// Seconds that the busiest writer was busy.
    pub seconds: f64,
    pub clipped: u64,
    /// Values of the slice that was to be kept; empty if none was.
    pub kept: Vec<f32>,
}

/// Number of threads that write pieces at the same time, so that none waits for the last slice of a piece.
pub const WRITERS: usize = WRITTEN_PIECES - 1;

/// Finishes and writes slices as they come.
pub(super) fn write(
    run: Run,
    writer: SliceWriter,
    computed: Receiver<ComputedSlices>,
    memory_back: Vec<Sender<HostMemory>>,
    advance: &mut (dyn FnMut(usize) + Send),
) -> Result<Written> {
    let (encoding, pixels) = (writer.encoding(), run.source.scan.geometry.roi.pixels());
    let (going_on, stopped) = unbounded();
    let progress = Mutex::new(WriteProgress { kept: Vec::new(), written: 0, advance, going_on: Some(going_on) });
    let delivered = Delivered { run, writer: &writer, pixels, slice_bytes: pixels * encoding.dtype.bytes(), progress };
    let busy: Result<Vec<f64>> = scope(|scope| {
        let one = || {
            let _stop = StopOnDrop(&delivered);
            delivered.write_all(&computed, &stopped, &memory_back)
        };
        let threads: Vec<_> = (0..WRITERS).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| joined(thread, "writer")).collect()
    });
    let busy = busy?.into_iter().fold(0.0, f64::max);
    let WriteProgress { kept, written, .. } = delivered.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    let clipped = writer.clamped();
    if written == run.slices.len() {
        writer.finish()?;
    }
    Ok(Written { seconds: busy, clipped, kept })
}

/// Slices that devices have computed, on their way to files.
struct Delivered<'a> {
    run: Run<'a>,
    writer: &'a SliceWriter,
    /// Number of pixels of a slice.
    pixels: usize,
    /// Bytes of a slice as it is written.
    slice_bytes: usize,
    progress: Mutex<WriteProgress<'a>>,
}

/// The progress of writing.
struct WriteProgress<'a> {
    /// Values of the slice that is to be kept.
    kept: Vec<f32>,
    written: usize,
    advance: &'a mut (dyn FnMut(usize) + Send),
    /// Present until a thread ends: the others stop after it, as there is nothing left to write or something failed.
    going_on: Option<Sender<()>>,
}

/// Stops all threads that write when one ends, whatever the reason.
struct StopOnDrop<'a, 'b>(&'b Delivered<'a>);

impl Drop for StopOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.progress().going_on = None;
    }
}

impl<'a> Delivered<'a> {
    fn progress(&self) -> MutexGuard<'_, WriteProgress<'a>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes slices until no more come, or another thread has ended. Returns the seconds that this took.
    fn write_all(
        &self,
        computed: &Receiver<ComputedSlices>,
        stopped: &Receiver<()>,
        memory_back: &[Sender<HostMemory>],
    ) -> Result<f64> {
        let mut busy = 0.0;
        let more = || select! { recv(computed) -> slices => slices.ok(), recv(stopped) -> _ => None };
        while let Some(ComputedSlices { device, positions, mut values, found }) = more() {
            let start = Instant::now();
            let slices = &mut values[..self.length(positions.len(), found.clamped.is_some())];
            self.finish(&positions, slices, &found);
            self.write(positions, slices, found.clamped.as_deref())?;
            busy += start.elapsed().as_secs_f64();
            self.run.clock.add(Stage::Writing, start.elapsed());
            // its device may have ended
            let _ = memory_back[device].send(values);
        }
        Ok(busy)
    }

    /// Returns how many `f32` values of host memory some slices fill, as values or as encoded samples.
    fn length(&self, slices: usize, encoded: bool) -> usize {
        if encoded { (slices * self.slice_bytes).div_ceil(4) } else { slices * self.pixels }
    }

    /// Finishes values, unless a device encoded them, and shows slices to the observer.
    fn finish(&self, positions: &Range<usize>, values: &mut [f32], found: &FoundInSlices) {
        let Run { source, finish, observer, slices, .. } = self.run;
        let show = |place: usize, values: Option<&[f32]>| {
            let counted = found.counted.as_ref().map(|counted| &counted[place]);
            if let Some(observe) = observer {
                observe(slices[positions.start + place], ObservedSlice { values, counted });
            }
        };
        match found.clamped {
            Some(_) => (0..positions.len()).for_each(|place| show(place, None)),
            None => values.par_chunks_mut(self.pixels).enumerate().for_each(|(place, values)| {
                if !found.finished {
                    finish.apply(source.scan.geometry.roi, values);
                }
                show(place, Some(values));
            }),
        }
    }

    /// Writes slices: finished values, or samples with the number of clamped ones of each slice.
    fn write(&self, positions: Range<usize>, values: &[f32], clamped: Option<&[u32]>) -> Result<()> {
        let numbers = &self.run.slices[positions.clone()];
        let slices: Vec<_> = match clamped {
            None => numbers.iter().copied().zip(values.chunks(self.pixels).map(Pixels::Values)).collect(),
            Some(clamped) => {
                let samples = bytemuck::cast_slice(values).chunks(self.slice_bytes).zip(clamped);
                let samples = samples.map(|(samples, &clamped)| Pixels::Samples(samples, clamped.into()));
                numbers.iter().copied().zip(samples).collect()
            }
        };
        self.writer.write_all(&slices)?;
        let mut progress = self.progress();
        if let Some(place) = numbers.iter().position(|slice| Some(*slice) == self.run.keep) {
            progress.kept = values[place * self.pixels..(place + 1) * self.pixels].to_vec();
        }
        progress.written += positions.len();
        (progress.advance)(positions.len());
        Ok(())
    }
}

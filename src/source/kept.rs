//! Rows of frames that stay in memory once they are read, for readers that come back for them.

use super::frames::Frames;
use crate::error::Result;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Rows of every frame: as f32, or in the form of the files, whichever is read.
#[derive(Debug)]
pub(super) struct KeptFrames {
    /// Rows that are kept of a frame when any of them are read.
    rows: Range<usize>,
    values: Vec<Mutex<FrameRows<f32>>>,
    samples: Vec<Mutex<FrameRows<u8>>>,
    bytes: AtomicU64,
    /// Largest number of bytes.
    most: u64,
    /// Number of reads from the files.
    reads: AtomicUsize,
}

/// Rows of a frame, and their values.
#[derive(Debug)]
struct FrameRows<T> {
    rows: Range<usize>,
    values: Vec<T>,
}

impl KeptFrames {
    pub fn new(frames: usize, rows: Range<usize>, most: u64) -> KeptFrames {
        KeptFrames {
            rows,
            values: (0..frames).map(|_| Mutex::new(FrameRows { rows: 0..0, values: Vec::new() })).collect(),
            samples: (0..frames).map(|_| Mutex::new(FrameRows { rows: 0..0, values: Vec::new() })).collect(),
            bytes: AtomicU64::new(0),
            most,
            reads: AtomicUsize::new(0),
        }
    }

    /// Returns the number of bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns the number of reads from the files.
    pub fn reads(&self) -> usize {
        self.reads.load(Relaxed)
    }

    /// Does what [`Frames::read_rows`] does.
    pub fn values(&self, frames: &dyn Frames, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        self.read(&self.values[frame], rows, out, |rows, out| frames.read_rows(frame, rows, out))
    }

    /// Does what [`Frames::read_stored`] does.
    pub fn samples(&self, frames: &dyn Frames, frame: usize, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        self.read(&self.samples[frame], rows, out, |rows, out| frames.read_stored(frame, rows, out))
    }

    fn read<T: Copy + Default>(
        &self,
        kept: &Mutex<FrameRows<T>>,
        rows: Range<usize>,
        out: &mut [T],
        read: impl Fn(Range<usize>, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let of_row = out.len() / rows.len();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !contains(&kept.rows, &rows) {
            let near = if kept.rows.is_empty() { &self.rows } else { &kept.rows };
            if near.end <= rows.start || rows.end <= near.start {
                // other readers, who do not come back
                self.reads.fetch_add(1, Relaxed);
                return read(rows, out);
            }
            let wanted = near.start.min(rows.start)..near.end.max(rows.end);
            let more = ((wanted.len() - kept.rows.len()) * of_row * size_of::<T>()) as u64;
            self.reads.fetch_add(1, Relaxed);
            if self.bytes.fetch_add(more, Relaxed) + more > self.most {
                self.bytes.fetch_sub(more, Relaxed);
                return read(rows, out);
            }
            let mut values = vec![T::default(); wanted.len() * of_row];
            read(wanted.clone(), &mut values)?;
            *kept = FrameRows { rows: wanted, values };
        }
        let first = (rows.start - kept.rows.start) * of_row;
        out.copy_from_slice(&kept.values[first..first + out.len()]);
        Ok(())
    }
}

fn contains(all: &Range<usize>, part: &Range<usize>) -> bool {
    all.start <= part.start && part.end <= all.end
}

#[cfg(test)]
mod tests {
    use crate::files::{InputSet, OutputFile, OutputKind};
    use crate::sink::{Dtype, Encoding, write_image};
    use crate::source::Stack;

    #[test]
    fn rows_are_read_once_as_long_as_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let values: Vec<f32> = (0..8 * 10).map(|i| i as f32).collect();
        for page in 0..3 {
            let path = folder.path().join(format!("p_{page}.tif"));
            let file = OutputFile::new("--output", &path, OutputKind::Tiff, &InputSet::default(), None).unwrap();
            write_image(&file, (8, 10), &values, Encoding { dtype: Dtype::F32, range: None }).unwrap();
        }
        let open = || Stack::open(folder.path().to_str().unwrap(), "--projections").unwrap();
        let read = |stack: &Stack, page: usize, rows: std::ops::Range<usize>| {
            let mut out = vec![0f32; rows.len() * 8];
            stack.read_rows(page, rows.clone(), &mut out).unwrap();
            assert_eq!(out, values[rows.start * 8..rows.end * 8]);
            let mut bytes = vec![0u8; 4 * out.len()];
            stack.read_stored(page, &[rows], &mut bytes).unwrap();
            assert_eq!(bytes, bytemuck::cast_slice::<f32, u8>(&out));
        };
        let stack = open();
        assert_eq!(stack.kept(), None);
        stack.keep_rows(&(2..5), 1 << 20);
        for rows in [3..4, 2..5, 4..5] {
            (0..3).for_each(|page| read(&stack, page, rows.clone()));
        }
        // as values and as samples
        assert_eq!(stack.kept(), Some((2 * 3 * 3 * 8 * 4, 6)));
        // rows elsewhere are not kept
        (0..2).for_each(|_| read(&stack, 0, 7..9));
        assert_eq!(stack.kept(), Some((2 * 3 * 3 * 8 * 4, 10)));
        // those beside them are, and then all are there
        read(&stack, 1, 4..7);
        read(&stack, 1, 2..7);
        assert_eq!(stack.kept(), Some((2 * (3 * 3 + 2) * 8 * 4, 12)));
        // without room, what does not fit is read each time
        let stack = open();
        stack.keep_rows(&(0..10), 2 * 10 * 8 * 4);
        (0..2).for_each(|_| read(&stack, 0, 1..2));
        assert_eq!(stack.kept(), Some((2 * 10 * 8 * 4, 2)));
        (0..2).for_each(|_| read(&stack, 1, 1..2));
        assert_eq!(stack.kept(), Some((2 * 10 * 8 * 4, 6)));
    }
}

//! Transforms on the host for devices on which clFFT does not work.

use super::RowTransform;
use crate::device::Session;
use crate::error::Result;
use host_fft::{Complex, Fft, Real};
use opencl3::event::Event;
use opencl3::memory::Buffer;
use rayon::prelude::*;
use std::sync::Arc;

/// Transforms of rows on the host: downloads the rows, transforms them on all processors, and uploads them again.
pub struct HostRows {
    rows: Vec<[f32; 2]>,
    forward: Arc<dyn Fft<f32>>,
    backward: Arc<dyn Fft<f32>>,
}

impl HostRows {
    /// Plans transforms of `batch` rows of `length` complex values.
    pub fn new(length: usize, batch: usize) -> Self {
        HostRows { rows: vec![[0.0; 2]; length * batch], forward: f32::forward(length), backward: f32::inverse(length) }
    }

    fn transform(&mut self, session: &Session, buffer: &mut Buffer<[f32; 2]>, fft: &dyn Fft<f32>) -> Result<Event> {
        session.read(buffer, &mut self.rows, "padded rows")?;
        self.rows.par_chunks_mut(fft.len()).for_each(|row| {
            let mut values: Vec<_> = row.iter().map(|v| Complex::new(v[0], v[1])).collect();
            fft.process(&mut values);
            for (value, result) in row.iter_mut().zip(values) {
                *value = [result.re, result.im];
            }
        });
        session.write(buffer, &self.rows, "padded rows")
    }
}

impl RowTransform for HostRows {
    fn forward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event> {
        let fft = self.forward.clone();
        self.transform(session, rows, fft.as_ref())
    }

    fn backward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event> {
        let fft = self.backward.clone();
        self.transform(session, rows, fft.as_ref())
    }
}

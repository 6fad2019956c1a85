//! Process that reads rows for the program, which requests them in `row_server`.

use super::examine::renew_time;
use super::file::{ChunkCache, open_file};
use super::row_server::read_numbers;
use super::volume::Volume;
use crate::error::{BoxedError, Result};
use std::io::{self, Write};
use std::path::Path;

/// Answers requests in the process that reads, until there are no more.
pub fn serve(file: &Path, dataset: &str, cache: (u64, u64)) -> Result<()> {
    let (slots, bytes) = cache;
    let volume = open_file(file, ChunkCache { bytes, slots })
        .map_err(BoxedError::from)
        .and_then(|opened| Volume::open_field(file, &opened, dataset, 0, ""));
    let (mut requests, mut answers) = (io::stdin().lock(), io::stdout().lock());
    while let Ok([frame, start, end]) = read_numbers(&mut requests) {
        renew_time()?;
        let rows = start as usize..end as usize;
        let mut samples = Vec::new();
        let read = match &volume {
            Ok(volume) => volume.read_library(frame as usize, &rows, |read| samples.extend_from_slice(read)),
            Err(error) => Err(error.to_string().into()),
        };
        let (done, answer) = match read {
            Ok(()) => (1u64, samples),
            Err(error) => (0, error.to_string().into_bytes()),
        };
        let head = [done, answer.len() as u64].map(u64::to_ne_bytes);
        let written = answers.write_all(head.as_flattened()).and_then(|()| answers.write_all(&answer));
        if written.and_then(|()| answers.flush()).is_err() {
            break; // nobody waits for it
        }
    }
    Ok(())
}

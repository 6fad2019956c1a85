//! Rows that the library reads in a separate process: a crash ends only that process, and the program reports it.
//!
//! [`serve`](super::serve()) runs in that process.

use super::errors::{Hdf5Result, Hdf5ValuesError};
use super::examine::{Hdf5Reading, library_failure, program, start};
use hdf5_metno::Dataset;
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, PoisonError};

/// Process that reads rows of one dataset.
struct RowServer {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

/// One process for each dataset whose rows are read. They wait for requests of the program, and end with it.
type RowServers = HashMap<(PathBuf, String), Arc<Mutex<RowServer>>>;

/// Reads rows of a frame, which have `bytes` bytes, in a separate process as `Volume::read_library` returns them;
/// `None` if this process reads files itself.
pub(super) fn served(
    dataset: &Dataset,
    frame: usize,
    rows: &Range<usize>,
    bytes: usize,
) -> Option<Hdf5Result<Vec<u8>>> {
    program()?;
    Some(server_of(dataset).and_then(|server| {
        let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
        match server.ask(frame, rows, bytes) {
            Ok(answer) => answer,
            Err(_) => server.end(),
        }
    }))
}

fn server_of(dataset: &Dataset) -> Hdf5Result<Arc<Mutex<RowServer>>> {
    static SERVERS: Mutex<Option<RowServers>> = Mutex::new(None);
    let key = (PathBuf::from(dataset.filename()), dataset.name());
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = servers.get_or_insert_default();
    if let Some(server) = servers.get(&key) {
        return Ok(server.clone());
    }
    let cache = dataset.file().and_then(|file| file.fapl()).map(|access| access.chunk_cache()).unwrap_or_default();
    let (file, name) = key.clone();
    let reading = Hdf5Reading::Rows { file, dataset: name, slots: cache.nslots as u64, bytes: cache.nbytes as u64 };
    let server = RowServer::start(&reading).map_err(|error| Hdf5ValuesError::NoProcess { error })?;
    Ok(servers.entry(key).or_insert(Arc::new(Mutex::new(server))).clone())
}

impl RowServer {
    fn start(reading: &Hdf5Reading) -> io::Result<RowServer> {
        let mut child = start(reading)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(requests), Some(answers)) => Ok(RowServer { child, requests, answers }),
            _ => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Requests rows and returns the answer of the process, or an error if it gives none.
    fn ask(&mut self, frame: usize, rows: &Range<usize>, bytes: usize) -> io::Result<Hdf5Result<Vec<u8>>> {
        let request = [frame, rows.start, rows.end].map(|number| (number as u64).to_ne_bytes());
        self.requests.write_all(request.as_flattened())?;
        let [done, length] = read_numbers(&mut self.answers)?;
        let mut answer = Vec::new();
        (&mut self.answers).take(length).read_to_end(&mut answer)?;
        match (answer.len() as u64 == length, done) {
            (true, 1) if answer.len() == bytes => Ok(Ok(answer)),
            (true, 0) => Ok(Err(String::from_utf8_lossy(&answer).into())),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Ends a process that gave no answer, and returns the error about it.
    fn end<T>(&mut self) -> Hdf5Result<T> {
        // a process that has ended keeps its status; any other would wait for the next request
        let _ = self.child.kill();
        let status = self.child.wait().map_err(Hdf5ValuesError::unreadable)?;
        Err(library_failure(status).into())
    }
}

/// Reads the numbers of a message.
pub(super) fn read_numbers<const N: usize>(input: &mut impl Read) -> io::Result<[u64; N]> {
    let mut numbers = [[0; 8]; N];
    input.read_exact(numbers.as_flattened_mut())?;
    Ok(numbers.map(u64::from_ne_bytes))
}

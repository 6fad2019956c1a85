//! Trial reading of an HDF5 file in a process of its own, before the main process reads the file.

use crate::error::{Error, Result};
use crate::sink::described_volume;
use crate::source::hdf5::{self, Hdf5Reading, Hdf5Verdict};
use crate::source::{Stack, Stacks};

/// Reads the part of the file that standard input describes, and returns the verdict as JSON.
pub fn examine_hdf5() -> Result<String> {
    let reading = hdf5::reading_to_examine()?;
    if let Hdf5Reading::Rows { file, dataset, slots, bytes } = &reading {
        return hdf5::serve(file, dataset, (*slots, *bytes)).map(|()| String::new());
    }
    let refused = match read(&reading) {
        Err(Error::Input(message)) => Some(message.to_string()),
        // the main process meets the same error
        Ok(()) | Err(_) => None,
    };
    Hdf5Verdict { refused }.to_json()
}

fn read(reading: &Hdf5Reading) -> Result<()> {
    match reading {
        Hdf5Reading::Scan { input, angles, memory } => {
            let Stacks { data, flats, flats2, darks, .. } = hdf5::open(input, *angles, *memory)?;
            [Some(data), flats, flats2, darks].iter().flatten().for_each(read_rows);
        }
        // a row of a few frames needs no memory for further chunks
        Hdf5Reading::Frames { file, dataset, flag } => read_rows(&hdf5::stack(file, dataset.as_deref(), flag, 0)?),
        Hdf5Reading::Contents { file } => {
            let _ = described_volume(file);
            hdf5::contents(file)?;
        }
        Hdf5Reading::Measures { input } => {
            hdf5::measures(input)?;
        }
        Hdf5Reading::Rows { .. } => {}
    }
    Ok(())
}

/// Reads a row of the first, the middle and the last page. Values that cannot be read are an error only where they are
/// needed.
fn read_rows(stack: &Stack) {
    let mut row = vec![0f32; stack.width()];
    for page in [0, stack.len() / 2, stack.len() - 1] {
        let _ = stack.read_rows(page, 0..1, &mut row);
    }
}

//! NumPy output: an array `[slice][row][column]`, with the description of the run behind it.
//!
//! NumPy reads as many values as the header says. Behind them, fbp stores the marks of the slices, the description as JSON,
//! the run file, the lengths of these two, and [`OWN_END`].

use super::container::{Container, OpenVolume, WrittenSlices};
use super::description::VolumeDescription;
use super::errors::{VolumeError, invalid};
use super::marks::{MARK_BYTES, Marks};
use super::paths::remove;
use crate::files::{NpyHeader, OWN_END, open_regular};
use crate::sink::compression::Compression;
use crate::sink::encoding::Dtype;
use crate::sink::existing::Origin;
use crate::sink::page::EncodedPage;
use crate::sink::request::OutputRequest;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Number of bytes of the two lengths and the last mark.
const FOOTER: u64 = 24;
/// Largest number of bytes of the description and of the run file.
const LONGEST: u64 = 1 << 26;

/// NumPy as a format.
#[derive(Clone, Debug)]
pub(super) struct NpyFile;

/// Returns the description in a file that this program wrote.
pub fn describe(path: &Path) -> Option<VolumeDescription> {
    Some(NpyContents::read(&open_regular(path).ok()?).ok()?.description)
}

/// Returns the header of the array of a volume.
fn header(description: &VolumeDescription) -> NpyHeader {
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let kind = match description.dtype {
        Dtype::F32 => format!("{order}f4"),
        Dtype::F16 => format!("{order}f2"),
        Dtype::U16 => format!("{order}u2"),
        Dtype::U8 => "|u1".to_owned(),
    };
    NpyHeader::new(&kind, &[description.slices.len(), description.height, description.width])
}

/// Returns the offset of the marks, which follow the array.
fn marks_offset(description: &VolumeDescription) -> io::Result<u64> {
    let values = (description.slices.len() as u64).checked_mul(description.slice_bytes() as u64);
    let end = values.and_then(|bytes| bytes.checked_add(header(description).start as u64));
    end.ok_or_else(|| invalid(VolumeError::SliceSize))
}

/// What a file contains beside its array.
struct NpyContents {
    description: VolumeDescription,
    run_file: String,
    marks: u64,
}

impl NpyContents {
    fn read(file: &File) -> io::Result<NpyContents> {
        let foreign = || invalid(VolumeError::NotOwnNpy);
        let length = file.metadata()?.len();
        let footer = length.checked_sub(FOOTER).ok_or_else(foreign)?;
        let mut numbers = [[0; 8]; 3];
        file.read_exact_at(numbers.as_flattened_mut(), footer)?;
        let [description, run_file] = [numbers[0], numbers[1]].map(u64::from_le_bytes);
        if numbers[2] != OWN_END || description.max(run_file) > LONGEST || description + run_file > footer {
            return Err(foreign());
        }
        let read = |at: u64, length: u64| -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; length as usize];
            file.read_exact_at(&mut bytes, at)?;
            Ok(bytes)
        };
        let at = footer - run_file - description;
        let run_file = read(footer - run_file, run_file)?;
        let description: VolumeDescription = serde_json::from_slice(&read(at, description)?)?;
        let marks = marks_offset(&description)?;
        if marks.checked_add((description.slices.len() * MARK_BYTES) as u64) != Some(at) {
            return Err(invalid(VolumeError::OtherLength));
        }
        Ok(NpyContents { description, run_file: String::from_utf8_lossy(&run_file).into_owned(), marks })
    }
}

/// Returns the bytes behind the marks.
fn end(description: &VolumeDescription, run_file: &str) -> io::Result<Vec<u8>> {
    let description = serde_json::to_vec(description)?;
    let lengths = [description.len(), run_file.len()].map(|length| (length as u64).to_le_bytes());
    Ok([description.as_slice(), run_file.as_bytes(), lengths.as_flattened(), &OWN_END].concat())
}

impl Container for NpyFile {
    const FLAG: Option<&'static str> = None;

    fn compressions(&self) -> &[Compression] {
        &[Compression::None]
    }

    fn describe(&self, request: &OutputRequest) -> VolumeDescription {
        VolumeDescription::new(request)
    }

    fn make(&self, path: &Path, description: &VolumeDescription, run_file: &str) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all_at(&header(description).bytes(), 0)?;
        let marks = marks_offset(description)?;
        let behind = marks + (description.slices.len() * MARK_BYTES) as u64;
        file.write_all_at(&end(description, run_file)?, behind)
    }

    fn is_as_made(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool> {
        let file = open_regular(path)?;
        let contents = NpyContents::read(&file)?;
        let expected = header(description).bytes();
        let mut found = vec![0; expected.len()];
        file.read_exact_at(&mut found, 0)?;
        let behind = end(description, &contents.run_file)?;
        let mut found_behind = vec![0; behind.len()];
        let at = file.metadata()?.len().saturating_sub(behind.len() as u64);
        file.read_exact_at(&mut found_behind, at)?;
        Ok(found == expected && found_behind == behind)
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn OpenVolume>> {
        open_regular(path)?;
        let open = || OpenOptions::new().read(true).write(write).open(path);
        let file = open()?;
        let NpyContents { description, marks, .. } = NpyContents::read(&file)?;
        Ok(Box::new(OpenNpy {
            start: header(&description).start as u64,
            marks: Marks::new(open()?, marks),
            description,
            file,
        }))
    }

    fn origin(&self, path: &Path) -> Origin {
        match path.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Origin::Nothing,
            Ok(meta) if meta.is_file() && meta.len() == 0 => return Origin::Nothing,
            Ok(meta) if meta.is_file() => {}
            _ => return Origin::Foreign,
        }
        describe(path).map_or(Origin::Foreign, |description| Origin::Own(description.content()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        remove(path)
    }
}

struct OpenNpy {
    description: VolumeDescription,
    file: File,
    /// Offset of the first slice.
    start: u64,
    marks: Marks,
}

impl OpenNpy {
    fn place(&self, place: usize) -> u64 {
        self.start + (place * self.description.slice_bytes()) as u64
    }
}

impl OpenVolume for OpenNpy {
    fn description(&self) -> &VolumeDescription {
        &self.description
    }

    fn marks(&self) -> &Marks {
        &self.marks
    }

    fn write(&self, slices: &[(usize, EncodedPage)]) -> io::Result<WrittenSlices> {
        let write = |(place, page): &(usize, EncodedPage)| {
            self.file.write_all_at(page.samples(), self.place(*place))?;
            Ok((*place, crc32fast::hash(page.samples())))
        };
        Ok(WrittenSlices { slices: slices.iter().map(write).collect::<io::Result<_>>()?, coarser: None })
    }

    fn read(&self, place: usize) -> io::Result<Vec<u8>> {
        let mut samples = vec![0; self.description.slice_bytes()];
        self.file.read_exact_at(&mut samples, self.place(place))?;
        Ok(samples)
    }
}

//! HDF5 output: a dataset of all slices, and a description of the run.
//!
//! The dataset is contiguous, or virtual if slices are distributed among several files, each of which contains a
//! contiguous one. The library creates files with space for all samples; all threads then write them at their offsets,
//! without the library. Compressed slices are chunks, which all threads append; the index of the chunks is written at
//! the end.

mod errors;
mod file;
mod make;
mod nexus;
mod open;

use super::container::{Container, OpenVolume};
use super::description::VolumeDescription;
use super::errors::invalid;
use super::marks::Marks;
use super::parts::{PartDirectories, part_name, slices_of_part};
use super::paths::{remove, unfinished, volume_lock};
use super::space::{ROW, SliceSpace};
use crate::files::{open_regular, temporary_path};
use crate::sink::compression::Compression;
use crate::sink::existing::Origin;
use crate::sink::request::OutputRequest;
use crate::source::hdf5::{Hdf5Reading, examine, is_hdf5};
use errors::Hdf5OutputError;
use file::{
    DATA_PATH, DESCRIPTION_PATH, MARKS_PATH, PART_OFFSETS_PATH, PLACES_PATH, RUN_FILE_PATH, offset, open_closed, other,
    own_dataset, text_of,
};
use make::{PartFiles, make, make_part};
use open::{OpenHdf5, is_same};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// HDF5 as a format, with the directories of its parts.
#[derive(Clone, Debug)]
pub(super) struct Hdf5File(PartDirectories);

/// Returns the description in a file that this program wrote.
pub fn describe(path: &Path) -> Option<VolumeDescription> {
    let ours = path.is_file() && is_hdf5(path);
    ours.then(|| Contents::read(path).ok()).flatten().map(|contents| contents.description)
}

/// Description of a file, and offsets in it, as the library reads them.
struct Contents {
    description: VolumeDescription,
    /// Offset of the samples in the file, or in each of its parts; 0 if they are compressed.
    data: Vec<u64>,
    /// Offset of the marks.
    marks: u64,
    /// Offset of the table of compressed slices.
    places: Option<u64>,
}

impl Contents {
    fn read(path: &Path) -> io::Result<Contents> {
        open_regular(path)?;
        examine(&Hdf5Reading::Contents { file: path.to_owned() }).map_err(io::Error::other)?;
        let file = open_closed(path)?;
        let description: VolumeDescription = serde_json::from_str(&text_of(&file, DESCRIPTION_PATH)?)?;
        let offset = |name: &str| offset(&own_dataset(&file, name)?);
        let compressed = description.compression != Compression::None;
        let data = match description.parts {
            None => vec![if compressed { 0 } else { offset(DATA_PATH)? }],
            Some(parts) => {
                let offsets = own_dataset(&file, PART_OFFSETS_PATH)?;
                if !(1..=description.slices.len()).contains(&parts) || offsets.size() != parts {
                    return Err(invalid(Hdf5OutputError::PartPlaces));
                }
                offsets.read_raw().map_err(other)?
            }
        };
        let places = compressed.then(|| offset(PLACES_PATH)).transpose()?;
        Ok(Contents { description, data, marks: offset(MARKS_PATH)?, places })
    }
}

impl Hdf5File {
    /// Returns the format for an output at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Hdf5File {
        Hdf5File(PartDirectories { output: path.into() })
    }

    /// Returns the directory of the parts of a volume, if it has any.
    fn parts_of(&self, path: &Path) -> Option<PathBuf> {
        let description = describe(path)?;
        description.parts.map(|_| self.0.of(path, &description))
    }

    /// Returns the files that contain the samples of a volume at a path.
    fn data_paths(&self, path: &Path, description: &VolumeDescription) -> Vec<PathBuf> {
        let Some(parts) = description.parts else { return vec![path.to_owned()] };
        let directory = self.0.of(path, description);
        (0..parts).map(|part| directory.join(part_name(part))).collect()
    }

    fn open_file(&self, path: &Path, write: bool) -> io::Result<OpenHdf5> {
        let Contents { description, data, marks, places } = Contents::read(path)?;
        let open = |path: &Path, end: Option<u64>| {
            open_regular(path)?;
            let file = OpenOptions::new().read(true).write(write).open(path)?;
            let long_enough = end.is_some_and(|end| file.metadata().is_ok_and(|meta| meta.len() >= end));
            long_enough.then_some(file).ok_or_else(|| invalid(Hdf5OutputError::TooShort))
        };
        let (slices, parts) = (description.slices.len(), data.len());
        let paths = self.data_paths(path, &description);
        let files = data.into_iter().zip(&paths).enumerate().map(|(part, (offset, path))| {
            let bytes = match places {
                None => (slices_of_part(slices, parts, part) as u64).checked_mul(description.slice_bytes() as u64),
                Some(_) => Some(0),
            };
            Ok((open(path, bytes.and_then(|bytes| offset.checked_add(bytes)))?, offset))
        });
        let files = files.collect::<io::Result<Vec<_>>>()?;
        let marks_at = marks;
        let marks = Marks::new(open(path, marks.checked_add(8 * slices as u64))?, marks);
        let space = |offset: u64| {
            let end = offset.checked_add((8 * ROW * (slices + parts)) as u64);
            Ok::<_, io::Error>(self.space(open(path, end)?, offset, slices))
        };
        let space = places.map(space).transpose()?;
        Ok(OpenHdf5 { description, files, paths, marks, space, marks_at })
    }

    /// Reports whether a volume has the same bytes as one that `again` makes now, except for slices, marks and places.
    fn is_like(&self, path: &Path, again: &Hdf5File, description: &VolumeDescription) -> io::Result<bool> {
        let found = self.open_file(path, false)?;
        let run_file = text_of(&open_closed(path)?, RUN_FILE_PATH)?;
        let hidden = unfinished(&again.0.output);
        again.make(&hidden, description, &run_file)?;
        let made = again.open_file(&hidden, true)?;
        let (slices, parts) = (description.slices.len(), made.files.len());
        let own: Vec<_> = made.paths.iter().map(|path| path == &hidden).collect();
        // marks, and the table of places, are verified with every slice
        let marks = found.marks_at..found.marks_at + 8 * slices as u64;
        let tables: Vec<_> = [marks].into_iter().chain(found.space.as_ref().map(|space| space.extent(parts))).collect();
        if !own[0]
            && !is_same(&fs::File::open(path)?, &fs::File::open(&hidden)?, fs::metadata(&hidden)?.len(), &tables)?
        {
            return Ok(false);
        }
        for (part, ((file, offset), (like, _))) in found.files.iter().zip(&made.files).enumerate() {
            let mut skipped = if own[part] { tables.clone() } else { Vec::new() };
            let mut length = like.metadata()?.len();
            match &found.space {
                None => {
                    let bytes = slices_of_part(slices, parts, part) as u64 * description.slice_bytes() as u64;
                    skipped.push(*offset..offset + bytes);
                }
                Some(space) => {
                    if let Some(tree) = made.index_again(part, space, file)? {
                        skipped.push(length..tree.start);
                        length = tree.end;
                    }
                }
            }
            if !is_same(file, like, length, &skipped)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the table of the compressed slices of a volume.
    fn space(&self, file: fs::File, offset: u64, slices: usize) -> SliceSpace {
        SliceSpace::new(file, offset, slices, volume_lock(&self.0.output))
    }
}

impl Container for Hdf5File {
    const FLAG: Option<&'static str> = Some("hdf5-parts");

    fn compressions(&self) -> &[Compression] {
        &[Compression::None, Compression::Deflate]
    }

    fn why_not_others(&self) -> &'static str {
        ", which programs read from HDF5 only with a plugin"
    }

    fn describe(&self, request: &OutputRequest) -> VolumeDescription {
        let parts = request.hdf5_parts.map(|parts| request.run.len().min(parts as usize)).filter(|&parts| parts > 1);
        VolumeDescription { parts, ..VolumeDescription::new(request) }
    }

    fn make(&self, path: &Path, description: &VolumeDescription, run_file: &str) -> io::Result<()> {
        if description.compression != Compression::None && u32::try_from(description.slice_bytes()).is_err() {
            return Err(invalid(Hdf5OutputError::LargeSlices));
        }
        let slices = description.slices.len();
        let (places, data) = match description.parts {
            None => (make(path, description, run_file, None), vec![path.to_owned()]),
            Some(parts) => {
                let directory = self.0.make(description)?;
                let paths: Vec<_> = (0..parts).map(|part| directory.join(part_name(part))).collect();
                let made = paths.iter().enumerate();
                let made = made.map(|(part, path)| make_part(path, slices_of_part(slices, parts, part), description));
                let offsets = made.collect::<io::Result<Vec<u64>>>()?;
                let files = PartFiles { directory: &self.0.relative(description), offsets: &offsets };
                (make(path, description, run_file, Some(files)), paths)
            }
        };
        if let Some(places) = places.map_err(other)? {
            let space = self.space(OpenOptions::new().write(true).open(path)?, places, slices);
            data.iter().enumerate().try_for_each(|(part, path)| space.start(part, fs::metadata(path)?.len()))?;
        }
        Ok(())
    }

    fn is_as_made(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool> {
        // makes the same files without slices, in a separate directory
        let directory = temporary_path(&self.0.output)?;
        fs::create_dir(&directory)?;
        let output = directory.join(self.0.output.file_name().unwrap_or_default());
        let again = Hdf5File::new(output);
        let same = self.is_like(path, &again, description);
        remove(&directory)?;
        same
    }

    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn OpenVolume>> {
        Ok(Box::new(self.open_file(path, write)?))
    }

    fn origin(&self, path: &Path) -> Origin {
        match path.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Origin::Nothing,
            Ok(meta) if meta.is_file() && meta.len() == 0 => return Origin::Nothing,
            Ok(meta) if meta.is_file() => {}
            _ => return Origin::Foreign,
        }
        match Contents::read(path) {
            Ok(contents) => Origin::Own(contents.description.content()),
            // the library was tested in a separate process first
            Err(_) if !is_hdf5(path) => Origin::Foreign,
            Err(_) => {
                match examine(&Hdf5Reading::Contents { file: path.to_owned() }).is_ok() && open_closed(path).is_ok() {
                    true => Origin::Foreign,
                    false => Origin::Torn,
                }
            }
        }
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        let output = &self.0.output;
        let (unfinished, ours) = (unfinished(output), self.parts_of(path));
        let other = if path == output { &unfinished } else { output };
        let ours = ours.filter(|directory| self.parts_of(other).as_ref() != Some(directory));
        if path == output {
            ours.map_or(Ok(()), |directory| self.0.remove(&directory))?;
            return remove(path);
        }
        // the file is removed first: it could not be opened without its parts, while parts alone are removed by the
        // next run
        if let Some(directory) = ours.filter(|directory| *directory != self.0.hidden() && directory.exists()) {
            self.0.hide(&directory)?;
        }
        remove(path)?;
        self.0.remove(&self.0.hidden())
    }

    fn is_single(&self, path: &Path) -> bool {
        path.is_file() && self.parts_of(path).is_none()
    }

    fn show_parts(&self, description: &VolumeDescription) -> io::Result<()> {
        description.parts.map_or(Ok(()), |_| self.0.show(description))
    }

    fn hide_parts(&self, description: &VolumeDescription) -> io::Result<()> {
        description.parts.map_or(Ok(()), |_| self.0.hide(&self.0.named(description)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::encoding::{Dtype, Encoding};
    use crate::sink::page::{OutputPage, Pixels};
    use crate::sink::request::SliceStorage;
    use crate::source::Stack;
    use hdf5_metno::File;
    use hdf5_metno::types::VarLenUnicode;

    /// Writes trees of one to three levels, in one file and in several, and reads them with the library and without.
    #[test]
    fn indexes_of_any_number_of_slices() {
        let directory = tempfile::tempdir().unwrap();
        let encoding = Encoding { dtype: Dtype::U16, range: Some((0.0, 65535.0)) };
        for (count, hdf5_parts) in [(1, None), (64, None), (65, None), (64 * 64 + 1, None), (200, Some(3))] {
            let path = directory.path().join(format!("{count}.h5"));
            let storage = SliceStorage { compression: Compression::Deflate, hdf5_parts, ..encoding.into() };
            let request = OutputRequest::new((3, 2), storage, (0..count).collect(), "test");
            let format = Hdf5File::new(&path);
            let description = format.describe(&request);
            let hidden = unfinished(&path);
            format.make(&hidden, &description, "").unwrap();
            let volume = format.open(&hidden, true).unwrap();
            // backwards, so that the order of chunks differs from that of slices
            for place in (0..count).rev() {
                let values: Vec<f32> = (0..6).map(|i| (place * 10 + i) as f32).collect();
                let page =
                    OutputPage { form: &request.page, pixels: Pixels::Values(&values), slice: None, number: None };
                volume.write(&[(place, page.samples(&path).unwrap())]).unwrap();
            }
            volume.complete().unwrap();
            format.show_parts(&description).unwrap();
            fs::rename(&hidden, &path).unwrap();
            let samples = |place: usize| (0..6).map(move |i| (place * 10 + i) as u16);
            let expected: Vec<u16> = (0..count).flat_map(samples).collect();
            let data = File::open(&path).unwrap().dataset(DATA_PATH).unwrap();
            assert_eq!(data.read_raw::<u16>().unwrap(), expected, "{count}");
            let stack = Stack::open(path.to_str().unwrap(), "input").unwrap();
            let mut values = vec![0.0; 6];
            stack.read_rows(count - 1, 0..2, &mut values).unwrap();
            let last = samples(count - 1).map(f32::from);
            assert!(values.into_iter().eq(last), "{count}");
        }
    }

    #[test]
    fn descriptions_may_claim_any_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.h5");
        let encoding = Encoding { dtype: Dtype::F32, range: None };
        let request = OutputRequest::new((8, 4), SliceStorage::from(encoding), vec![0, 1, 2], "test");
        let format = Hdf5File::new(&path);
        let description = format.describe(&request);
        format.make(&path, &description, "").unwrap();
        assert!(format.open(&path, false).is_ok());
        for width in [1 << 20, usize::MAX / 16, usize::MAX] {
            let json = serde_json::to_string(&VolumeDescription { width, ..description.clone() }).unwrap();
            let file = File::open_rw(&path).unwrap();
            let text: VarLenUnicode = json.parse().unwrap();
            file.dataset(DESCRIPTION_PATH).unwrap().write_scalar(&text).unwrap();
            file.close().unwrap();
            let error = format.open(&path, false).err().unwrap();
            assert!(error.to_string().contains("is shorter than its slices"), "{width}: {error}");
            // the length of compressed slices is only known when they are read
            let compressed = VolumeDescription { compression: Compression::Deflate, width, ..description.clone() };
            let small = VolumeDescription { width: 8, ..compressed.clone() };
            let path = directory.path().join(format!("{width}.h5"));
            format.make(&path, &small, "").unwrap();
            let file = File::open_rw(&path).unwrap();
            let text: VarLenUnicode = serde_json::to_string(&compressed).unwrap().parse().unwrap();
            file.dataset(DESCRIPTION_PATH).unwrap().write_scalar(&text).unwrap();
            file.close().unwrap();
            let error = format.open(&path, false).unwrap().read(1).unwrap_err();
            assert!(error.to_string().contains("impossible length"), "{width}: {error}");
        }
    }
}

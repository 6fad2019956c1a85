//! Planes of an OME-Zarr: writing and reading of their chunks, and making of coarser planes.

use super::coarser::halve;
use crate::layout::SampleType;
use crate::layout::codec::gzip_encoded;
use crate::sink::compression::Compression;
use crate::sink::page::EncodedPage;
use crate::sink::volume::container::{OpenVolume, WrittenSlices};
use crate::sink::volume::description::VolumeDescription;
use crate::sink::volume::errors::invalid;
use crate::sink::volume::marks::{Mark, Marks};
use crate::source::to_f32;
use crate::source::zarr::{StoredChunk, ZarrArray};
use rayon::prelude::*;
use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(super) struct OpenZarr {
    pub description: VolumeDescription,
    /// Arrays of the levels, the finest first.
    pub levels: Vec<ZarrArray>,
    pub marks: Marks,
}

impl OpenZarr {
    /// Returns the number of the first mark of a level.
    fn first_mark(&self, level: usize) -> usize {
        self.levels[..level].iter().map(|array| array.shape[0]).sum()
    }

    /// Writes the chunks of a plane, and returns the checksum of its samples. Files are not truncated first, as several
    /// jobs may write the same bytes at the same time.
    fn write_plane(&self, level: usize, plane: usize, samples: &[u8]) -> io::Result<u32> {
        let array = &self.levels[level];
        let [_, down, across] = array.counts();
        make_directories(&array.directory, &array.file_path([plane, 0, 0]))?;
        let compression = self.description.compression;
        if compression == Compression::None {
            let planes = [(plane, samples)];
            let bands = (0..down).into_par_iter().map(|band| write_band(array, band, &planes, &mut []));
            return Ok(checksums(bands.collect::<io::Result<Vec<_>>>()?)[0]);
        }
        (0..down * across).into_par_iter().try_for_each(|number| {
            let (band, column) = (number / across, number % across);
            let mut chunk = Vec::new();
            cut(samples, array, (band, column), &mut chunk);
            let stored = self.stored(&chunk)?;
            let file = chunk_file(array, [plane, band, column])?;
            file.write_all_at(&stored, 0)?;
            file.set_len(stored.len() as u64)
        })?;
        Ok(crc32fast::hash(samples))
    }

    fn read_plane(&self, level: usize, plane: usize) -> io::Result<Vec<u8>> {
        let array = &self.levels[level];
        let ([_, height, width], [_, high, wide]) = (array.shape, array.chunk);
        let size = array.sample.bytes();
        let mut samples = vec![0; height * width * size];
        let mut chunk = Vec::new();
        for (band, column) in array.places() {
            let stored = StoredChunk::open(array.file_path([plane, band, column]))?;
            let rows = 0..array.rows_of_band(band);
            array.read_rows(&stored, 0, rows, &mut chunk).map_err(invalid)?;
            let used = wide.min(width - column * wide) * size;
            for (row, from) in (band * high..).zip(chunk.chunks_exact(wide * size)) {
                let to = (row * width + column * wide) * size;
                samples[to..to + used].copy_from_slice(&from[..used]);
            }
        }
        Ok(samples)
    }

    /// Reports whether the files of a plane of a level have the bytes that were written, with the checksum of its mark.
    /// True for a plane without a mark, which is not finished.
    fn is_plane_as_written(&self, level: usize, plane: usize) -> io::Result<bool> {
        let array = &self.levels[level];
        let crc = match self.marks.get(self.first_mark(level) + plane)? {
            Mark::Complete(crc) => crc,
            Mark::Missing | Mark::Written(_) => return Ok(true),
        };
        let samples = self.read_plane(level, plane)?;
        if crc32fast::hash(&samples) != crc {
            return Ok(false);
        }
        let mut chunk = Vec::new();
        for (band, column) in array.places() {
            cut(&samples, array, (band, column), &mut chunk);
            let expected = self.stored(&chunk)?;
            let mut file = File::open(array.file_path([plane, band, column]))?;
            let mut found = Vec::new();
            if file.metadata()?.len() != expected.len() as u64
                || file.read_to_end(&mut found)? != expected.len()
                || found != *expected
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns a chunk as it is stored.
    fn stored<'a>(&self, chunk: &'a [u8]) -> io::Result<Cow<'a, [u8]>> {
        Ok(match self.description.compression {
            Compression::None => Cow::Borrowed(chunk),
            Compression::Deflate => Cow::Owned(gzip_encoded(chunk)?),
            compression => Cow::Owned(compression.compress(chunk)?),
        })
    }

    /// Makes a plane of a level from the files of the planes below it.
    fn make_plane(&self, level: usize, plane: usize) -> io::Result<()> {
        let (below, above) = (&self.levels[level - 1], &self.levels[level]);
        let ([_, high, wide], sample) = (below.chunk, below.sample);
        let mut samples = vec![0; above.plane_bytes()];
        let (mut bytes, mut values) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (band, column) in below.places() {
            let planes = 2 * plane..(2 * plane + 2).min(below.shape[0]);
            let planes = planes.map(|plane| StoredChunk::open(below.file_path([plane, band, column])));
            let planes = planes.collect::<io::Result<Vec<_>>>()?;
            let used = wide.min(below.shape[2] - column * wide);
            let present = below.rows_of_band(band);
            for top in (0..present).step_by(below.rows_at_once()) {
                let rows = top..(top + below.rows_at_once()).min(present);
                for (stored, values) in planes.iter().zip(&mut values) {
                    below.read_rows(stored, 0, rows.clone(), &mut bytes).map_err(invalid)?;
                    values.resize(rows.len() * wide, 0.0);
                    to_f32(&bytes, sample, cfg!(target_endian = "big"), values);
                }
                let lines = samples.chunks_exact_mut(above.row_bytes()).skip((band * high + top) / 2);
                let lines = lines.map(|line| &mut line[column * wide / 2 * sample.bytes()..]);
                let values = values[..planes.len()].iter().map(Vec::as_slice).collect::<Vec<_>>();
                halve(&values, [wide, used], sample, lines);
            }
        }
        self.put_plane(level, plane, &samples)
    }

    /// Writes two slices without compression, and makes the plane above them from their rows while these are in the
    /// cache. Returns the checksums of the slices, and the plane.
    fn write_pair(&self, pair: [(usize, &[u8]); 2]) -> io::Result<([u32; 2], Vec<u8>)> {
        let (array, above) = (&self.levels[0], &self.levels[1]);
        for (plane, _) in pair {
            make_directories(&array.directory, &array.file_path([plane, 0, 0]))?;
        }
        let mut coarser = vec![0; above.plane_bytes()];
        // bands have even numbers of rows, except for a single band and the last one
        let bands = coarser.par_chunks_mut(array.chunk[1].div_ceil(2) * above.row_bytes()).enumerate();
        let bands = bands.map(|(band, coarser)| write_band(array, band, &pair, coarser));
        let crcs = checksums(bands.collect::<io::Result<Vec<_>>>()?);
        Ok(([crcs[0], crcs[1]], coarser))
    }

    /// Returns the plane above one or two slices.
    fn coarser(&self, slices: &[(usize, EncodedPage)]) -> Vec<u8> {
        /// Number of rows of the coarser plane that are made at once.
        const ROWS: usize = 32;
        let (below, above) = (&self.levels[0], &self.levels[1]);
        let mut coarser = vec![0; above.plane_bytes()];
        coarser.par_chunks_mut(ROWS * above.row_bytes()).enumerate().for_each(|(number, out)| {
            let rows = 2 * ROWS * number..(2 * ROWS * (number + 1)).min(below.shape[1]);
            let bytes = rows.start * below.row_bytes()..rows.end * below.row_bytes();
            let planes: Vec<_> = slices.iter().map(|(_, page)| &page.samples()[bytes.clone()]).collect();
            halve_samples(&planes, below, above.row_bytes(), out);
        });
        coarser
    }

    fn put_plane(&self, level: usize, plane: usize, samples: &[u8]) -> io::Result<()> {
        let crc = self.write_plane(level, plane, samples)?;
        self.marks.set(self.first_mark(level) + plane, Mark::Complete(crc))
    }

    /// Makes the planes above a plane that was written, as far as the planes that they are made of exist.
    fn make_above(&self, mut plane: usize, first: usize) -> io::Result<()> {
        for level in first + 1..self.levels.len() {
            let other = plane ^ 1;
            let marked = self.first_mark(level - 1) + other;
            if other < self.levels[level - 1].shape[0] && self.marks.get(marked)? == Mark::Missing {
                return Ok(());
            }
            plane /= 2;
            self.make_plane(level, plane)?;
        }
        Ok(())
    }
}

/// Copies a chunk out of the samples of a plane; samples beyond the plane are 0.
fn cut(samples: &[u8], array: &ZarrArray, (band, column): (usize, usize), out: &mut Vec<u8>) {
    let ([_, _, width], [_, high, wide], size) = (array.shape, array.chunk, array.sample.bytes());
    let used = wide.min(width - column * wide) * size;
    out.resize(array.chunk_bytes(), 0);
    let rows = band * high..band * high + array.rows_of_band(band);
    for (row, out) in rows.zip(out.chunks_exact_mut(wide * size)) {
        let from = (row * width + column * wide) * size;
        out[..used].copy_from_slice(&samples[from..from + used]);
    }
}

/// Writes a band of chunks of some planes, without compression, a few rows at a time, so that samples stay in the cache
/// and are not copied into chunks first. Makes the rows of `coarser` from them, unless it is empty. Returns the
/// checksums of their samples.
fn write_band(
    array: &ZarrArray,
    band: usize,
    planes: &[(usize, &[u8])],
    coarser: &mut [u8],
) -> io::Result<Vec<crc32fast::Hasher>> {
    let ([_, _, width], [_, high, wide], size) = (array.shape, array.chunk, array.sample.bytes());
    let [_, _, across] = array.counts();
    let files = |plane| (0..across).map(move |column| chunk_file(array, [plane, band, column])).collect();
    let files = planes.iter().map(|(plane, _)| files(*plane)).collect::<io::Result<Vec<Vec<File>>>>()?;
    let (present, row_bytes) = (array.rows_of_band(band), width * size);
    let mut crcs = vec![crc32fast::Hasher::new(); planes.len()];
    let beyond = vec![0; wide * size];
    let coarser_row = width.div_ceil(2) * size;
    for top in (0..present).step_by(array.rows_at_once()) {
        let rows = top..(top + array.rows_at_once()).min(present);
        let first = band * high + rows.start;
        let bytes = first * row_bytes..(first + rows.len()) * row_bytes;
        for (((_, samples), files), crc) in planes.iter().zip(&files).zip(&mut crcs) {
            let samples = &samples[bytes.clone()];
            crc.update(samples);
            for (column, file) in files.iter().enumerate() {
                let used = column * wide..((column + 1) * wide).min(width);
                let lines = samples.chunks_exact(row_bytes).map(|line| &line[used.start * size..used.end * size]);
                write_lines(file, lines, &beyond[used.len() * size..])?;
            }
        }
        if !coarser.is_empty() {
            let planes: Vec<_> = planes.iter().map(|(_, samples)| &samples[bytes.clone()]).collect();
            halve_samples(&planes, array, coarser_row, &mut coarser[top / 2 * coarser_row..]);
        }
    }
    files.iter().flatten().try_for_each(|file| file.set_len(array.chunk_bytes() as u64))?;
    Ok(crcs)
}

/// Writes lines of samples at the position of the file, each followed by `beyond`, the samples outside the plane.
fn write_lines<'a>(mut file: &File, lines: impl Iterator<Item = &'a [u8]>, beyond: &'a [u8]) -> io::Result<()> {
    let mut pieces: Vec<_> =
        lines.flat_map(|line| [line, beyond]).filter(|piece| !piece.is_empty()).map(IoSlice::new).collect();
    let mut left = &mut pieces[..];
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Combines the checksums of the bands of planes into those of the planes.
fn checksums(bands: Vec<Vec<crc32fast::Hasher>>) -> Vec<u32> {
    let mut bands = bands.into_iter();
    let mut all = bands.next().unwrap_or_default();
    bands.for_each(|band| all.iter_mut().zip(&band).for_each(|(crc, next)| crc.combine(next)));
    all.into_iter().map(crc32fast::Hasher::finalize).collect()
}

/// Makes rows of a coarser plane, of `row` bytes each, from rows of one or two planes.
fn halve_samples(planes: &[&[u8]], below: &ZarrArray, row: usize, out: &mut [u8]) {
    let width = below.shape[2];
    let values = planes.iter().map(|&bytes| {
        if let (SampleType::F32, Ok(values)) = (below.sample, bytemuck::try_cast_slice(bytes)) {
            return Cow::Borrowed(values);
        }
        let mut values = vec![0f32; bytes.len() / below.sample.bytes()];
        to_f32(bytes, below.sample, cfg!(target_endian = "big"), &mut values);
        Cow::Owned(values)
    });
    let values = values.collect::<Vec<Cow<[f32]>>>();
    let values = values.iter().map(|values| &**values).collect::<Vec<_>>();
    halve(&values, [width, width], below.sample, out.chunks_exact_mut(row));
}

/// Opens the file of a chunk, which is created if it does not exist.
fn chunk_file(array: &ZarrArray, at: [usize; 3]) -> io::Result<File> {
    let path = array.file_path(at);
    make_directories(&array.directory, &path)?;
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// Makes the directories of a chunk, but never that of the array, which may have got its final name.
fn make_directories(array: &Path, chunk: &Path) -> io::Result<()> {
    let above = chunk.ancestors().skip(1).take_while(|directory| *directory != array);
    for directory in above.collect::<Vec<_>>().into_iter().rev() {
        match fs::create_dir(directory) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

impl OpenVolume for OpenZarr {
    fn description(&self) -> &VolumeDescription {
        &self.description
    }

    fn marks(&self) -> &Marks {
        &self.marks
    }

    fn write(&self, slices: &[(usize, EncodedPage)]) -> io::Result<WrittenSlices> {
        let above = self.levels.len() > 1;
        if let (true, Compression::None, [(a, first), (b, second)]) = (above, self.description.compression, slices) {
            let (crcs, coarser) = self.write_pair([(*a, first.samples()), (*b, second.samples())])?;
            return Ok(WrittenSlices { slices: vec![(*a, crcs[0]), (*b, crcs[1])], coarser: Some(coarser) });
        }
        let written = slices.par_iter().map(|(place, page)| Ok((*place, self.write_plane(0, *place, page.samples())?)));
        let written = written.collect::<io::Result<Vec<_>>>()?;
        let plane = slices.first().map_or(0, |(first, _)| first / 2);
        let whole = slices.len() == (2 * plane..(2 * plane + 2).min(self.levels[0].shape[0])).len();
        Ok(WrittenSlices { slices: written, coarser: (above && whole).then(|| self.coarser(slices)) })
    }

    fn read(&self, place: usize) -> io::Result<Vec<u8>> {
        self.read_plane(0, place)
    }

    fn is_as_written(&self, place: usize) -> io::Result<bool> {
        for level in 0..self.levels.len() {
            if !self.is_plane_as_written(level, place >> level)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn forget(&self, place: usize) -> io::Result<()> {
        (0..self.levels.len())
            .try_for_each(|level| self.marks.set(self.first_mark(level) + (place >> level), Mark::Missing))
    }

    fn written(&self, written: &WrittenSlices) -> io::Result<()> {
        let Some(plane) = written.slices.first().map(|(place, _)| place / 2) else { return Ok(()) };
        if let Some(coarser) = &written.coarser {
            self.put_plane(1, plane, coarser)?;
            return self.make_above(plane, 1);
        }
        written.slices.iter().try_for_each(|(place, _)| self.make_above(*place, 0))
    }

    fn complete(&self) -> io::Result<()> {
        for level in 1..self.levels.len() {
            (0..self.levels[level].shape[0]).into_par_iter().try_for_each(|plane| {
                match self.marks.get(self.first_mark(level) + plane)? {
                    Mark::Missing => self.make_plane(level, plane),
                    _ => Ok(()),
                }
            })?;
        }
        Ok(())
    }
}

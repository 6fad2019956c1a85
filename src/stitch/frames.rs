//! Projections of a scan whose parts are joined: transmissions by the fields of each part, blended where parts overlap.

use crate::error::Result;
use crate::recipe::Join;
use crate::remark::Remark;
use crate::resampling::cubic;
use crate::source::{Frames, SampleType, Stacks};
use crate::steps::{Band, Counts, Preparation, widened};
use std::f64::consts::PI;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// One of the parts of a scan.
pub(super) struct ScanPart {
    pub name: String,
    pub stacks: Stacks,
    /// Steps up to transmissions.
    pub preparation: Preparation,
}

impl ScanPart {
    pub fn size(&self) -> (usize, usize) {
        (self.stacks.data.width(), self.stacks.data.height())
    }

    /// Reads the transmissions `[row][bin]` of some rows of a projection.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn transmissions(&self, projection: usize, rows: &Range<usize>) -> Result<Vec<f32>> {
        let (bins, height) = self.size();
        let read = widened(rows, self.preparation.halo(), height);
        let mut values = vec![0f32; read.len() * bins];
        self.stacks.data.read_rows(projection, read.clone(), &mut values)?;
        let mut band = Band::new(&mut values, height, read.clone(), rows.clone());
        band = band.of(projection, self.stacks.data.len());
        self.preparation.projection(band, &mut Counts::default());
        values.truncate((rows.end - read.start) * bins);
        values.drain(..(rows.start - read.start) * bins);
        Ok(values)
    }
}

/// Place of a part in the joined detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// First row or bin.
    pub first: usize,
    /// Number of rows or bins.
    pub count: usize,
    /// Position in the part, in bins, of the first bin that it contributes.
    pub offset: f64,
    /// Factor on the transmissions.
    pub level: f32,
}

impl Place {
    pub fn end(&self) -> usize {
        self.first + self.count
    }
}

/// Frames of the joined detector.
pub(super) struct StitchedFrames {
    join: Join,
    /// Parts in the order of their places.
    parts: Vec<(ScanPart, Place)>,
    /// Weight of a part at each row or bin that it shares with the one before it.
    ramps: Vec<Vec<f32>>,
    size: (usize, usize),
    files: Vec<PathBuf>,
    remarks: Vec<Remark>,
}

impl StitchedFrames {
    /// Joins parts in the order of their places, each of which overlaps at most its neighbours.
    pub fn new(join: Join, parts: Vec<(ScanPart, Place)>, remarks: Vec<Remark>) -> StitchedFrames {
        let ends = [0].into_iter().chain(parts.iter().map(|(_, place)| place.end()));
        let ramps = ends.zip(&parts).map(|(end, (_, place))| ramp(join, end.saturating_sub(place.first))).collect();
        let all = parts.last().map_or(0, |(_, place)| place.end());
        let (bins, rows) = parts.first().map_or((0, 0), |(part, _)| part.size());
        let size = if join == Join::Rows { (bins, all) } else { (all, rows) };
        let files = parts.iter().flat_map(|(part, _)| part.stacks.data.files().to_vec()).collect();
        StitchedFrames { join, parts, ramps, size, files, remarks }
    }

    /// Adds rows of a part to those of a frame.
    fn add(&self, number: usize, frame: usize, rows: &Range<usize>, out: &mut [f32]) -> Result<()> {
        let ((part, place), ramp) = (&self.parts[number], &self.ramps[number]);
        let (width, (bins, _)) = (self.size.0, part.size());
        let (of_part, within) = match self.join {
            Join::Rows => {
                let shared = rows.start.max(place.first)..rows.end.min(place.end());
                if shared.is_empty() {
                    return Ok(());
                }
                (shared.start - place.first..shared.end - place.first, shared.start - rows.start)
            }
            Join::Bins => (rows.clone(), 0),
        };
        let values = part.transmissions(frame, &of_part)?;
        let mut line = vec![0f32; if self.join == Join::Rows { bins } else { place.count }];
        let lines = out[within * width..].chunks_mut(width).zip(values.chunks(bins));
        for (row, (out, values)) in of_part.zip(lines) {
            moved(values, place.offset, &mut line);
            if place.level != 1.0 {
                line.iter_mut().for_each(|value| *value *= place.level);
            }
            match self.join {
                Join::Rows => match ramp.get(row) {
                    Some(&weight) => out.iter_mut().zip(&line).for_each(|(out, value)| blend(out, *value, weight)),
                    None => out.copy_from_slice(&line),
                },
                Join::Bins => {
                    let out = &mut out[place.first..place.end()];
                    let shared = ramp.len();
                    out[shared..].copy_from_slice(&line[shared..]);
                    out.iter_mut().zip(&line).zip(ramp).for_each(|((out, value), &weight)| blend(out, *value, weight));
                }
            }
        }
        Ok(())
    }
}

/// Returns the weights of a part at the pixels that it shares with the one before it: neither 0 nor 1, as both count.
fn ramp(join: Join, shared: usize) -> Vec<f32> {
    let at = |i: usize| (i + 1) as f64 / (shared + 1) as f64;
    let weight = |i: usize| match join {
        Join::Rows => at(i),
        Join::Bins => 0.5 - 0.5 * (PI * at(i)).cos(),
    };
    (0..shared).map(|i| weight(i) as f32).collect()
}

/// Moves a value towards another by a weight.
fn blend(value: &mut f32, other: f32, weight: f32) {
    *value += weight * (other - *value);
}

/// Interpolates a row at positions from `offset`, one bin apart, by cubic convolution; beyond its ends the outermost bins are
/// repeated. A whole number of bins changes no value.
fn moved(row: &[f32], offset: f64, out: &mut [f32]) {
    let whole = offset.floor();
    let (weights, first, last) = (cubic((offset - whole) as f32), whole as i64 - 1, row.len() as i64 - 1);
    if offset == whole {
        for (bin, out) in (first + 1..).zip(out) {
            *out = row[bin.clamp(0, last) as usize];
        }
        return;
    }
    for (bin, out) in (first..).zip(out) {
        let four = [0, 1, 2, 3].map(|i| row[(bin + i).clamp(0, last) as usize]);
        *out = weights[0] * four[0] + weights[1] * four[1] + weights[2] * four[2] + weights[3] * four[3];
    }
}

impl fmt::Debug for StitchedFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> = self.parts.iter().map(|(part, place)| (&part.name, place)).collect();
        write!(f, "{:?} of {places:?}", self.join)
    }
}

impl Frames for StitchedFrames {
    fn count(&self) -> usize {
        self.parts.first().map_or(0, |(part, _)| part.stacks.data.len())
    }

    fn size(&self) -> (usize, usize) {
        self.size
    }

    fn sample(&self) -> SampleType {
        SampleType::F32
    }

    fn name(&self, frame: usize) -> String {
        self.parts.first().map(|(part, _)| part.stacks.data.page_name(frame)).unwrap_or_default()
    }

    fn fingerprint(&self) -> String {
        let of_part = |(part, place): &(ScanPart, Place)| {
            let Place { first, count, offset, level } = place;
            let (data, fields) = (part.stacks.data.fingerprint(), part.preparation.fingerprint());
            format!(
                "{:?} {first} {count} {:016x} {:08x}\n{data}{fields}\n",
                self.join,
                offset.to_bits(),
                level.to_bits()
            )
        };
        self.parts.iter().map(of_part).collect()
    }

    fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    fn held(&self) -> u64 {
        self.parts.iter().map(|(part, _)| part.stacks.held).sum()
    }

    fn are_whole(&self) -> bool {
        self.parts.iter().any(|(part, _)| part.stacks.data.has_whole_frames())
    }

    fn rows_are_apart(&self) -> bool {
        self.parts.iter().all(|(part, _)| part.stacks.data.rows_are_apart() && part.preparation.halo() == 0)
    }

    fn read_rows(&self, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        (0..self.parts.len()).try_for_each(|part| self.add(part, frame, &rows, out))
    }
}

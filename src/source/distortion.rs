//! Distortion by the optics of a detector: where it saw each pixel of an undistorted projection.

use super::Stack;
use crate::error::{Error, Result, messages};
use crate::files::{excerpt, read_text};
use crate::memory;
use std::path::{Path, PathBuf};

messages! {
    /// Why the distortion that a flag names is not known.
    enum DistortionFileError: Input {
        Unreadable { flag: &'static str, error: std::io::Error } =>
            "{flag}: {error}"; "give a text file of coefficients, or two images, X,Y",
        MalformedLine { flag: &'static str, line: usize, text: String } =>
            "{flag}: line {line} is `{text}`, not xcenter, ycenter or factor0 to factor9, `=` and a number";
            "give the coefficients as Discorpy writes them",
        Twice { flag: &'static str, line: usize, name: String } =>
            "{flag}: line {line} says {name} again"; "leave one of the lines out",
        Missing { flag: &'static str, name: String } =>
            "{flag}: there is no line for {name}"; "give the coefficients as Discorpy writes them",
        SeveralFrames { flag: &'static str, frames: usize } =>
            "{flag}: there are {frames} images in place of one"; "give an image of the positions along one direction",
        OtherSizes { flag: &'static str, width: usize, height: usize, other: String } =>
            "{flag}: the positions are an image of {width}x{height}, but those along x of {other}";
            "give two images of the same detector",
        NotFinite { flag: &'static str, count: usize } =>
            "{flag}: {count} positions are not finite"; "give a position for each pixel",
        NoMemory { flag: &'static str, width: usize, height: usize, needed: u64, free: u64 } =>
            "{flag}: positions of {width}x{height} pixels need {needed} MiB of memory, but {free} MiB are free";
            "free some, or give coefficients",
    }
}

/// The flag, for messages.
const FLAG: &str = "--distortion";
/// Largest number of coefficients.
const FACTORS: usize = 10;

/// The word after the files with which the outermost pixels are repeated beyond the detector.
const REPEAT: &str = "repeat";

/// Returns the files that the flag names, and whether the outermost pixels are repeated beyond the detector.
pub fn distortion_files(text: &str) -> (Vec<String>, bool) {
    let (files, repeat) = match text.rsplit_once(',') {
        Some((files, last)) if last.trim() == REPEAT => (files, true),
        _ => (text, false),
    };
    (files.split(',').map(|file| file.trim().to_owned()).collect(), repeat)
}

/// Where the detector saw the pixels of undistorted projections, in pixels of the detector before binning, counted from the
/// centre of its first pixel.
#[derive(Debug)]
pub struct DistortionMap {
    form: MapForm,
    title: String,
    files: Vec<PathBuf>,
    /// Text that tells the map from others.
    fingerprint: String,
}

#[derive(Debug)]
enum MapForm {
    /// The distance from the centre is multiplied by a polynomial of the undistorted distance.
    Radial { center: [f64; 2], factors: Vec<f64> },
    /// How far from itself each pixel was seen, `[row][bin]`.
    Offsets { size: [usize; 2], offsets: Vec<[f32; 2]> },
}

impl DistortionMap {
    /// Reads the coefficients of a polynomial, from one file, or positions, from an image for each direction.
    ///
    /// # Errors
    /// [`Error::Input`] that says what is wrong with a file, and errors of reading images.
    pub fn open(specs: &[String]) -> Result<DistortionMap> {
        let title = format!("{FLAG} {}", specs.join(","));
        match specs {
            [file] => {
                let path = Path::new(file);
                let text = read_text(path)
                    .map_err(|error| Error::input(path, DistortionFileError::Unreadable { flag: FLAG, error }))?;
                let map = DistortionMap::parse(&text).map_err(|error| Error::input(path, error))?;
                Ok(DistortionMap { title, files: vec![path.to_owned()], ..map })
            }
            [x, y] => DistortionMap::of_images(x, y, title),
            _ => Err(Error::Internal(format!("{} files of a distortion", specs.len()))),
        }
    }

    /// Reads coefficients as Discorpy writes them: a line for each of `xcenter`, `ycenter`, `factor0`, `factor1` ...
    fn parse(text: &str) -> Result<DistortionMap, DistortionFileError> {
        let mut center = [None; 2];
        let mut factors = [None; FACTORS];
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let parts = content.split_once('=').map(|(name, value)| (name.trim(), value.trim().parse::<f64>()));
            let place = |name: &str| match name {
                "xcenter" => Some(0),
                "ycenter" => Some(1),
                _ => name
                    .strip_prefix("factor")?
                    .trim_start_matches('_')
                    .parse()
                    .ok()
                    .filter(|power| *power < FACTORS)
                    .map(|power: usize| power + 2),
            };
            let known =
                parts.and_then(|(name, value)| Some((name, place(name)?, value.ok().filter(|v| v.is_finite())?)));
            let Some((name, place, value)) = known else {
                let text = excerpt(content).into_owned();
                return Err(DistortionFileError::MalformedLine { flag: FLAG, line, text });
            };
            if center.iter_mut().chain(&mut factors).nth(place).and_then(|slot| slot.replace(value)).is_some() {
                return Err(DistortionFileError::Twice { flag: FLAG, line, name: name.to_owned() });
            }
        }
        let missing = |name: &str| DistortionFileError::Missing { flag: FLAG, name: name.to_owned() };
        let [x, y] = center;
        let center = [x.ok_or_else(|| missing("xcenter"))?, y.ok_or_else(|| missing("ycenter"))?];
        let count = factors.iter().rposition(Option::is_some).map_or(1, |last| last + 1);
        let factors = factors[..count].iter().enumerate();
        let factors = factors.map(|(power, factor)| factor.ok_or_else(|| missing(&format!("factor{power}"))));
        Ok(DistortionMap::radial(center, factors.collect::<Result<_, _>>()?))
    }

    /// Returns the map of a polynomial about a centre: a pixel at the distance `r` from it was seen at `r` times the sum of
    /// `factors[i] r^i`, in the same direction.
    pub fn radial(center: [f64; 2], factors: Vec<f64>) -> DistortionMap {
        let numbers = center.iter().chain(&factors).map(|number| format!(" {:016x}", number.to_bits()));
        let fingerprint = format!("radial{}\n", numbers.collect::<String>());
        let form = MapForm::Radial { center, factors };
        DistortionMap { form, title: FLAG.to_owned(), files: Vec::new(), fingerprint }
    }

    fn of_images(x: &str, y: &str, title: String) -> Result<DistortionMap> {
        let [xs, ys] = [Stack::open(x, FLAG)?, Stack::open(y, FLAG)?];
        let [width, height] = [xs.width(), xs.height()];
        let refused = |spec: &str, error: DistortionFileError| Error::input(Path::new(spec), error);
        for (spec, stack) in [(x, &xs), (y, &ys)] {
            if stack.len() != 1 {
                return Err(refused(spec, DistortionFileError::SeveralFrames { flag: FLAG, frames: stack.len() }));
            }
        }
        if (ys.width(), ys.height()) != (width, height) {
            let other = format!("{width}x{height}");
            let [width, height] = [ys.width(), ys.height()];
            return Err(refused(y, DistortionFileError::OtherSizes { flag: FLAG, width, height, other }));
        }
        // a header of a few bytes can claim any size
        let (needed, free) = (16 * (width * height) as u64, memory::available());
        if needed > free {
            let (needed, free) = (needed >> 20, free >> 20);
            return Err(refused(x, DistortionFileError::NoMemory { flag: FLAG, width, height, needed, free }));
        }
        let positions = |spec: &str, stack: &Stack| {
            let mut values = vec![0f32; width * height];
            stack.read_rows(0, 0..height, &mut values)?;
            match values.iter().filter(|value| !value.is_finite()).count() {
                0 => Ok(values),
                count => Err(refused(spec, DistortionFileError::NotFinite { flag: FLAG, count })),
            }
        };
        let values = [positions(x, &xs)?, positions(y, &ys)?];
        let files = xs.files().iter().chain(ys.files()).cloned().collect();
        let fingerprint = format!("{}{}", xs.fingerprint(), ys.fingerprint());
        Ok(DistortionMap { title, files, fingerprint, ..DistortionMap::of_positions([width, height], values) })
    }

    /// Returns the map of the positions along x and along y at which pixels of a detector of this size, `[bins, rows]`, were
    /// seen.
    pub fn of_positions([bins, rows]: [usize; 2], [x, y]: [Vec<f32>; 2]) -> DistortionMap {
        let offset = |(i, (x, y)): (usize, (&f32, &f32))| [x - (i % bins) as f32, y - (i / bins) as f32];
        let offsets = x.iter().zip(&y).enumerate().map(offset).collect();
        let form = MapForm::Offsets { size: [bins, rows], offsets };
        DistortionMap { form, title: FLAG.to_owned(), files: Vec::new(), fingerprint: String::new() }
    }

    /// Returns where the detector saw a position of an undistorted projection. Between pixels, offsets are interpolated
    /// linearly; beyond the outermost pixels of an image, they are those of the nearest pixel.
    pub fn at(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        match &self.form {
            MapForm::Radial { center, factors } => {
                let [dx, dy] = [x - center[0], y - center[1]];
                let distance = dx.hypot(dy);
                let factor = factors.iter().rev().fold(0.0, |sum, factor| sum * distance + factor);
                [center[0] + factor * dx, center[1] + factor * dy]
            }
            MapForm::Offsets { size: [bins, rows], offsets } => {
                let part = |at: f64, length: usize| {
                    let at = at.clamp(0.0, length as f64 - 1.0);
                    let first = (at as usize).min(length.saturating_sub(2));
                    (first, (first + 1).min(length - 1), at - first as f64)
                };
                let ((left, right, across), (above, below, down)) = (part(x, *bins), part(y, *rows));
                let offset = |axis: usize| {
                    let of = |row: usize, bin: usize| f64::from(offsets[row * bins + bin][axis]);
                    let line = |row: usize| (1.0 - across) * of(row, left) + across * of(row, right);
                    (1.0 - down) * line(above) + down * line(below)
                };
                [x + offset(0), y + offset(1)]
            }
        }
    }

    /// Reports whether every pixel was seen where it is.
    pub fn is_identity(&self) -> bool {
        match &self.form {
            MapForm::Radial { factors, .. } => factors[0] == 1.0 && factors[1..].iter().all(|factor| *factor == 0.0),
            MapForm::Offsets { offsets, .. } => offsets.iter().all(|offset| *offset == [0.0; 2]),
        }
    }

    /// Returns the size of the detector, `[bins, rows]`, if only one has this map.
    pub fn size(&self) -> Option<[usize; 2]> {
        match self.form {
            MapForm::Radial { .. } => None,
            MapForm::Offsets { size, .. } => Some(size),
        }
    }

    /// Returns the flag with its files, for messages.
    pub fn title(&self) -> String {
        self.title.clone()
    }

    /// Paths of the files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns text that identifies the map.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_read_as_discorpy_writes_them() {
        let text = "xcenter = 1252.15\nycenter = 1008.5\nfactor0 = 1.0\nfactor1 = -2e-06\nfactor2 = 3.5e-10\n";
        let map = DistortionMap::parse(text).unwrap();
        assert_eq!(map.fingerprint, DistortionMap::radial([1252.15, 1008.5], vec![1.0, -2e-6, 3.5e-10]).fingerprint);
        assert!(!map.is_identity() && map.size().is_none());
        // in any order, with comments
        let other = "# lens 2\n\nfactor_1=-2e-06\nfactor_0 = 1\nfactor2 = 3.5e-10\nycenter = 1008.5\nxcenter = 1252.15";
        assert_eq!(DistortionMap::parse(other).unwrap().fingerprint, map.fingerprint);
        for (text, said) in [
            ("xcenter = 1\nycenter = 2", "no line for factor0"),
            ("xcenter = 1\nfactor0 = 1", "no line for ycenter"),
            ("xcenter = 1\nycenter = 2\nfactor0 = 1\nfactor2 = 1", "no line for factor1"),
            ("xcenter = 1\nxcenter = 2", "line 2 says xcenter again"),
            ("1252.15\n", "line 1 is `1252.15`"),
            ("xcenter = nan", "line 1"),
            ("factor10 = 1", "line 1"),
            ("factor-1 = 1", "line 1"),
            ("", "no line for xcenter"),
        ] {
            let error = DistortionMap::parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn maps_say_where_pixels_were_seen() {
        let radial = DistortionMap::radial([10.0, 20.0], vec![1.0, 0.0, 1e-3]);
        // at a distance of 5, 2.5 % farther away
        let [x, y] = radial.at([13.0, 24.0]);
        assert!((x - 13.075).abs() < 1e-12 && (y - 24.1).abs() < 1e-12, "{x} {y}");
        let (bins, rows) = (31, 41);
        let positions = [0, 1].map(|axis| {
            (0..bins * rows).map(|i| radial.at([(i % bins) as f64, (i / bins) as f64])[axis] as f32).collect()
        });
        let map = DistortionMap::of_positions([bins, rows], positions);
        assert_eq!(map.size(), Some([bins, rows]));
        for at in [[0.0, 0.0], [30.0, 40.0], [13.0, 24.0], [7.25, 31.75], [0.5, 39.5]] {
            let [[x, y], [rx, ry]] = [map.at(at), radial.at(at)];
            // an offset is 1e-3 r^3, of which lines between pixels are off by an eighth of the second derivative
            assert!((x - rx).abs() < 0.025 && (y - ry).abs() < 0.025, "{at:?}: {x} {y}, {rx} {ry}");
        }
        // beyond the image the nearest offset
        let ([x, y], [ex, ey]) = (map.at([-2.0, 45.0]), map.at([0.0, 40.0]));
        assert!((x - (ex - 2.0)).abs() < 1e-12 && (y - (ey + 5.0)).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_distorted_by_a_factor_of_1() {
        assert!(DistortionMap::radial([3.0, 4.0], vec![1.0, 0.0, 0.0]).is_identity());
        assert!(!DistortionMap::radial([3.0, 4.0], vec![1.001]).is_identity());
        let grid = [vec![0.0, 1.0, 0.0, 1.0], vec![0.0, 0.0, 1.0, 1.0]];
        assert!(DistortionMap::of_positions([2, 2], grid).is_identity());
    }
}

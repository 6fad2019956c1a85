//! The current of a storage ring in the frames of a scan.

use crate::error::{Error, Result, messages};
use crate::files::{excerpt, read_numbers};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

messages! {
    /// Why the currents of a scan are not known.
    enum CurrentsError: Input {
        NoFile { title: String } => "{title}: there is no such file"; "name a text file with a number a line, or a NumPy file",
        NotANumber { title: String, line: usize, text: String } =>
            "{title}: line {line} is `{text}`, not a number"; "write one number a line; # starts a comment",
        Count { title: String, numbers: usize, counts: String } =>
            "{title}: there are {numbers} numbers"; "give as many as there are {counts}",
        OfFlat { title: String, set: &'static str, frame: usize, current: f64 } =>
            "{title}: the current of frame {frame} of the {set} is {current}, not a number above 0";
            "correct the number, or leave the frame out of the flats",
    }
}

/// The flag, for messages.
const FLAG: &str = "--beam-current";

/// Where the currents are from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CurrentSource {
    /// A dataset of the HDF5 file of the scan.
    Dataset,
    /// A text file.
    File,
}

impl CurrentSource {
    /// Returns what the value of the flag names: with an HDF5 scan, anything but an existing file is a dataset.
    pub fn of(text: &str, hdf5: bool) -> CurrentSource {
        match hdf5 && !text.contains(super::PART) && !Path::new(text).is_file() {
            true => CurrentSource::Dataset,
            false => CurrentSource::File,
        }
    }
}

/// What the frames of a list are: numbers of frames, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameRoles {
    /// Number of all frames.
    pub count: usize,
    pub projections: Vec<usize>,
    /// Projections that were taken again after the scan, which are not used.
    pub returns: Vec<usize>,
    pub flats: Vec<usize>,
    pub flats2: Vec<usize>,
}

impl FrameRoles {
    /// Returns the roles of flats, projections and flats after the scan, one set after the other.
    fn in_order([flats, projections, flats2]: [usize; 3]) -> FrameRoles {
        let (first, last) = (flats + projections, flats + projections + flats2);
        let (returns, count) = (Vec::new(), last);
        FrameRoles {
            count,
            projections: (flats..first).collect(),
            returns,
            flats: (0..flats).collect(),
            flats2: (first..last).collect(),
        }
    }
}

/// Currents of a scan, in any unit: only their ratio counts.
#[derive(Clone, Debug, PartialEq)]
pub struct BeamCurrents {
    /// Current of every projection; of those that are used it must be above 0.
    pub projections: Vec<f64>,
    /// Mean current of the flats; `None` if it is not known.
    pub flats: Option<f64>,
    /// Mean current of the flats after the scan.
    pub flats2: Option<f64>,
    /// The flag with the file or the dataset.
    pub title: String,
    /// The file, if there is one.
    pub file: Option<PathBuf>,
}

impl BeamCurrents {
    /// Reads a text file of one number a line, or a NumPy file, with the currents of the frames of these `roles`, or of
    /// numbers of flats, projections and flats after the scan.
    ///
    /// # Errors
    /// [`Error::Input`] that says what is wrong with the file.
    pub fn open(path: &Path, roles: Option<&FrameRoles>, counts: [usize; 3]) -> Result<BeamCurrents> {
        let title = format!("{FLAG} {}", path.display());
        if !path.is_file() {
            return Err(Error::input(path, CurrentsError::NoFile { title }));
        }
        let text = read_numbers(path, FLAG, &AtomicBool::new(false))?;
        let mut list = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or("").trim();
            match content.parse::<f64>() {
                _ if content.is_empty() => {}
                Ok(value) => list.push(value),
                Err(_) => {
                    let text = excerpt(content).into_owned();
                    return Err(CurrentsError::NotANumber { title, line: number + 1, text }.into());
                }
            }
        }
        let currents = BeamCurrents::of(&list, roles, counts, title)?;
        Ok(BeamCurrents { file: Some(path.to_owned()), ..currents })
    }

    /// Assigns a list to the frames of a scan: one number for each frame of these `roles`, for each projection, or for each of
    /// the flats, the projections and the flats after the scan, in this order.
    ///
    /// # Errors
    /// [`Error::Input`] if there are other numbers of frames, and for flats without current.
    pub fn of(list: &[f64], roles: Option<&FrameRoles>, counts: [usize; 3], title: String) -> Result<BeamCurrents> {
        let [flats, projections, flats2] = counts;
        let in_order = FrameRoles::in_order(counts);
        let one_each = FrameRoles::in_order([0, projections, 0]);
        let all: Vec<&FrameRoles> = roles.into_iter().chain([&one_each, &in_order]).collect();
        let exposed = roles.map(|roles| [roles.projections.as_slice(), &roles.returns].concat());
        let roles = match all.iter().find(|roles| roles.count == list.len()) {
            Some(roles) => (*roles).clone(),
            // one for each projection, including those that were taken again
            None => match exposed {
                Some(mut exposed) if exposed.len() == list.len() => {
                    exposed.sort_unstable();
                    let used = |at: &usize| roles.is_some_and(|roles| roles.projections.contains(&exposed[*at]));
                    FrameRoles { projections: (0..exposed.len()).filter(used).collect(), ..FrameRoles::default() }
                }
                _ => {
                    let mut counts = vec![format!("projections, {projections}")];
                    if flats + flats2 > 0 {
                        let all = flats + projections + flats2;
                        counts.push(format!(
                            "flats, projections and flats after the scan together, in this order, {all}"
                        ));
                    }
                    counts.extend(roles.map(|roles| format!("frames in the file, {}", roles.count)));
                    let (numbers, counts) = (list.len(), counts.join(", or "));
                    return Err(CurrentsError::Count { title, numbers, counts }.into());
                }
            },
        };
        let mean = |frames: &[usize], set: &'static str| -> Result<Option<f64>> {
            let current = |(frame, &at): (usize, &usize)| match list[at] {
                current if current > 0.0 && current.is_finite() => Ok(current),
                current => Err(CurrentsError::OfFlat { title: title.clone(), set, frame, current }),
            };
            let all = frames.iter().enumerate().map(current).collect::<Result<Vec<f64>, _>>()?;
            Ok((!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64))
        };
        let (flats, flats2) = (mean(&roles.flats, "flats")?, mean(&roles.flats2, "flats after the scan")?);
        let projections = roles.projections.iter().map(|&at| list[at]).collect();
        Ok(BeamCurrents { projections, flats, flats2, title, file: None })
    }

    /// Returns the mean of the currents above 0 of all projections.
    pub fn mean(&self) -> f64 {
        let above = self.projections.iter().filter(|current| **current > 0.0 && current.is_finite());
        let (sum, count) = above.fold((0.0, 0u32), |(sum, count), current| (sum + current, count + 1));
        sum / f64::from(count.max(1))
    }

    /// Returns a text that tells the currents from others.
    pub fn fingerprint(&self) -> String {
        let all = self.projections.iter().chain(&self.flats).chain(&self.flats2);
        let bits: String = all.map(|current| format!("{:016x} ", current.to_bits())).collect();
        format!("currents {} {} {bits}", u8::from(self.flats.is_some()), u8::from(self.flats2.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[f64], roles: Option<&FrameRoles>, counts: [usize; 3]) -> Result<BeamCurrents> {
        BeamCurrents::of(list, roles, counts, "--beam-current c".into())
    }

    /// A dark, two flats, a projection, an invalid frame, a projection, a flat, and a projection that was taken again.
    fn roles() -> FrameRoles {
        FrameRoles { count: 8, projections: vec![3, 5], returns: vec![7], flats: vec![1, 2], flats2: vec![6] }
    }

    #[test]
    fn numbers_belong_to_frames_by_their_count() {
        let list = [0.0, 200.0, 198.0, 190.0, f64::NAN, 180.0, 170.0, 169.0];
        let found = of(&list, Some(&roles()), [2, 2, 1]).unwrap();
        assert_eq!((found.projections, found.flats, found.flats2), (vec![190.0, 180.0], Some(199.0), Some(170.0)));
        let found = of(&[190.0, 180.0, 169.0], Some(&roles()), [2, 2, 1]).unwrap();
        assert_eq!((found.projections, found.flats, found.flats2), (vec![190.0, 180.0], None, None));
        for roles in [None, Some(&roles())] {
            let found = of(&[1.5, 0.5], roles, [2, 2, 1]).unwrap();
            assert_eq!((found.mean(), found.projections, found.flats), (1.0, vec![1.5, 0.5], None));
            let found = of(&[4.0, 2.0, 1.5, 0.5, 7.0], roles, [2, 2, 1]).unwrap();
            assert_eq!((found.projections, found.flats, found.flats2), (vec![1.5, 0.5], Some(3.0), Some(7.0)));
        }
        let said = of(&[1.0; 4], Some(&roles()), [2, 2, 1]).unwrap_err().to_string();
        for part in ["there are 4 numbers", "projections, 2", "in this order, 5", "frames in the file, 8"] {
            assert!(said.contains(part), "{said}");
        }
        let said = of(&[1.0; 4], None, [0, 2, 0]).unwrap_err().to_string();
        assert!(said.ends_with("as many as there are projections, 2"), "{said}");
    }

    #[test]
    fn flats_without_current_are_named() {
        for (current, word) in [(0.0, "is 0,"), (-3.0, "is -3,"), (f64::NAN, "is NaN,"), (f64::INFINITY, "is inf,")] {
            let said = of(&[1.0, current, 1.0, 1.0], None, [2, 2, 0]).unwrap_err().to_string();
            assert!(said.contains("frame 1 of the flats") && said.contains(word), "{said}");
        }
        // of projections, those that are not used may have none
        assert_eq!(of(&[0.0, f64::NAN, 2.0], None, [0, 3, 0]).unwrap().mean(), 2.0);
    }

    #[test]
    fn the_fingerprint_is_of_every_number() {
        let prints = [[1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [2.0, 2.0, 3.0]]
            .map(|list| of(&list, None, [1, 2, 0]).unwrap().fingerprint());
        assert!(prints[0] != prints[1] && prints[0] != prints[2]);
    }
}

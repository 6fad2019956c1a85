//! The division of a scan of many turns into windows, each of which is reconstructed by a job of its own.

use super::Span;
use super::quantities::{MAX_ANGLE, text};
use crate::cli::{InputArgs, ReconstructArgs};
use crate::error::{Error, Result, messages};
use std::fmt;
use std::str::FromStr;

messages! {
    /// Errors of the flags for windows.
    enum DivisionError: Usage {
        NotALength { text: String } =>
            "`{text}` is neither a number of degrees above 0 nor a number of projections";
            "write degrees such as 180, or projections with a p, such as 610p",
        OfFlag { flag: &'static str, error: Error } => "{flag}: {error}",
        OtherUnit { every: WindowLength, overlap: WindowLength } =>
            "--overlap: {overlap}, but --every is {every}"; "give both in degrees, or both in projections",
        OverlapTooLong { every: WindowLength, overlap: WindowLength } =>
            "--overlap: {overlap} are not less than --every, {every}"; "give fewer",
    }
}

/// Length of a window, or of what two have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowLength {
    Degrees(f64),
    Projections(usize),
}

impl fmt::Display for WindowLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowLength::Degrees(degrees) => write!(f, "{degrees} degrees"),
            WindowLength::Projections(count) => write!(f, "{count} projections"),
        }
    }
}

/// Parses the length as `--every` takes it.
impl FromStr for WindowLength {
    type Err = Error;

    fn from_str(text: &str) -> Result<WindowLength> {
        let trimmed = text.trim();
        let length = match trimmed.strip_suffix('p') {
            Some(count) => count.trim().parse().ok().filter(|&count| count > 0).map(WindowLength::Projections),
            None => trimmed
                .parse()
                .ok()
                .filter(|degrees| *degrees > 0.0 && *degrees <= MAX_ANGLE)
                .map(WindowLength::Degrees),
        };
        length.ok_or_else(|| DivisionError::NotALength { text: text.to_owned() }.into())
    }
}

/// Windows of a scan, and which of them are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    /// Length of a window.
    pub every: WindowLength,
    /// From the begin of a window to that of the next, in the same unit.
    pub advance: WindowLength,
    /// Wanted windows; all if `None`.
    pub turns: Option<Span>,
}

impl Division {
    /// Reads the flags, if they ask for windows.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the flag.
    pub fn new(args: &ReconstructArgs) -> Result<Option<Division>> {
        let length = |flag: &'static str, text: &str| {
            text.parse::<WindowLength>().map_err(|error| Error::from(DivisionError::OfFlag { flag, error }))
        };
        let Some(every) = text(&args.every) else { return Ok(None) };
        let every = length("--every", every)?;
        let overlap = text(&args.input.overlap).map(|text| length("--overlap", text)).transpose()?;
        let advance = match (every, overlap) {
            (_, None) => every,
            (WindowLength::Degrees(all), Some(WindowLength::Degrees(both))) if both < all => {
                WindowLength::Degrees(all - both)
            }
            (WindowLength::Projections(all), Some(WindowLength::Projections(both))) if both < all => {
                WindowLength::Projections(all - both)
            }
            (WindowLength::Degrees(_), Some(overlap @ WindowLength::Degrees(_)))
            | (WindowLength::Projections(_), Some(overlap @ WindowLength::Projections(_))) => {
                return Err(DivisionError::OverlapTooLong { every, overlap }.into());
            }
            (_, Some(overlap)) => return Err(DivisionError::OtherUnit { every, overlap }.into()),
        };
        let turns = text(&args.turns).map(|text| Span::parse(text, "--turns")).transpose()?;
        Ok(Some(Division { every, advance, turns }))
    }

    /// Returns flags for the whole scan.
    pub fn undivided(args: &ReconstructArgs) -> ReconstructArgs {
        let input = InputArgs { overlap: None, ..args.input.clone() };
        ReconstructArgs { input, every: None, turns: None, ..args.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn division(every: &str, overlap: &str) -> std::result::Result<Division, String> {
        let overlap = (!overlap.is_empty()).then(|| overlap.into());
        let input = InputArgs { overlap, ..InputArgs::default() };
        let args = ReconstructArgs { input, every: Some(every.into()), ..ReconstructArgs::default() };
        Division::new(&args).map(Option::unwrap).map_err(|error| error.to_string())
    }

    #[test]
    fn windows_are_of_degrees_or_of_projections() {
        use WindowLength::{Degrees, Projections};
        for (every, overlap, expected) in [
            ("180", "", (Degrees(180.0), Degrees(180.0))),
            ("180", "45.5", (Degrees(180.0), Degrees(134.5))),
            ("610p", "", (Projections(610), Projections(610))),
            (" 610 p", "377p", (Projections(610), Projections(233))),
        ] {
            let found = division(every, overlap).unwrap();
            assert_eq!((found.every, found.advance), expected, "{every} {overlap}");
        }
        for (every, overlap, words) in [
            ("0", "", "--every: `0` is neither"),
            ("-3", "", "--every: `-3` is neither"),
            ("nan", "", "--every"),
            ("1e12", "", "--every"),
            ("0p", "", "--every: `0p` is neither"),
            ("180", "x", "--overlap: `x` is neither"),
            ("180", "180", "--overlap: 180 degrees are not less than --every, 180 degrees"),
            ("20p", "30p", "--overlap: 30 projections are not less"),
            ("180", "30p", "--overlap: 30 projections, but --every is 180 degrees"),
        ] {
            let error = division(every, overlap).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(Division::new(&ReconstructArgs::default()).unwrap(), None);
    }
}

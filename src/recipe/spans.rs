//! Ranges of slices and of projections.

use super::errors::SpanError;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::str::FromStr;

/// Range `A..B`, `A..=B` or `A..B:STEP`, not yet limited to a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub struct Span {
    start: usize,
    end: Option<usize>,
    step: usize,
}

/// Formats the range as `--rows` takes it.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.start)?;
        self.end.map_or(Ok(()), |end| write!(f, "{end}"))?;
        if self.step > 1 { write!(f, ":{}", self.step) } else { Ok(()) }
    }
}

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Span> {
        Span::parse(text, "range")
    }
}

impl Span {
    /// Parses a range; `A` alone is that one number, an open end extends to the last one.
    pub fn parse(text: &str, flag: &str) -> Result<Self> {
        if let (Some((start, end)), false) = (text.split_once(':'), text.contains("..")) {
            let (start, end) = (start.trim(), end.trim());
            let (last, step) = end.split_once(':').map_or((end, None), |(last, step)| (last.trim(), Some(step.trim())));
            let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
            let (flag, given) = (flag.to_owned(), text.to_owned());
            if ![start, last, step.unwrap_or_default()].into_iter().all(is_number) {
                return Err(SpanError::ColonBetweenWords { flag, text: given }.into());
            }
            let range = format!("{start}..{last}{}", step.map(|step| format!(":{step}")).unwrap_or_default());
            return Err(SpanError::ColonBetweenNumbers { flag, text: given, range }.into());
        }
        let number = |part: &str| match part.trim().parse::<usize>() {
            // the number after it must exist, too
            Ok(value) if value < usize::MAX => Ok(value),
            _ => Err(SpanError::Malformed { flag: flag.into(), text: text.into() }),
        };
        let (range, step) = match text.split_once(':') {
            Some((range, step)) => (range, number(step)?),
            None => (text, 1),
        };
        if step == 0 {
            return Err(SpanError::NoStep { flag: flag.into(), text: text.into() }.into());
        }
        let (start, end) = match range.split_once("..") {
            None => {
                let one = number(range)?;
                (one, Some(one + 1))
            }
            Some((start, end)) => {
                let start = if start.trim().is_empty() { 0 } else { number(start)? };
                let end = match end.trim().strip_prefix('=') {
                    Some(last) => Some(number(last)? + 1),
                    None if end.trim().is_empty() => None,
                    None => Some(number(end)?),
                };
                (start, end)
            }
        };
        if end.is_some_and(|end| end <= start) {
            return Err(SpanError::Empty { flag: flag.into(), text: text.into() }.into());
        }
        Ok(Span { start, end, step })
    }

    /// Returns the numbers of the range below `length`; a range beyond it is an error, in which `what` names the items.
    pub fn within(&self, length: usize, flag: &str, what: &str) -> Result<Vec<usize>> {
        let end = self.end.unwrap_or(length);
        if end > length || self.start >= end {
            let (flag, items) = (flag.to_owned(), what.to_owned());
            return Err(SpanError::PastEnd { flag, start: self.start, end, length, items }.into());
        }
        Ok((self.start..end).step_by(self.step).collect())
    }
}

/// Ranges separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges(Vec<Span>);

/// Formats the ranges as `--exclude` takes them.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spans: Vec<String> = self.0.iter().map(Span::to_string).collect();
        f.write_str(&spans.join(","))
    }
}

impl Ranges {
    pub(super) fn parse(text: &str, flag: &str) -> Result<Self> {
        text.split(',').map(|part| Span::parse(part, flag)).collect::<Result<_>>().map(Ranges)
    }

    /// Returns these ranges and further numbers.
    pub fn and(&self, numbers: impl Iterator<Item = usize>) -> Ranges {
        let one = |number| Span { start: number, end: Some(number + 1), step: 1 };
        Ranges(self.0.iter().copied().chain(numbers.map(one)).collect())
    }

    /// Returns for every number below `length` whether it is in one of the ranges.
    pub fn marks(&self, length: usize, flag: &str, what: &str) -> Result<Vec<bool>> {
        let mut marks = vec![false; length];
        for span in &self.0 {
            for index in span.within(length, flag, what)? {
                marks[index] = true;
            }
        }
        Ok(marks)
    }
}

//! Numbers in file names, and the form that they share in the names of a scan.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

/// Exact number in a name, of any number of digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NameNumber {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: String,
    /// Digits after the point, without trailing zeros.
    fraction: String,
}

impl NameNumber {
    fn new(negative: bool, whole: &str, fraction: &str) -> NameNumber {
        let (whole, fraction) = (whole.trim_start_matches('0').to_owned(), fraction.trim_end_matches('0').to_owned());
        NameNumber { negative: negative && !(whole.is_empty() && fraction.is_empty()), whole, fraction }
    }

    /// Returns the number times `10^digits`, if this is a whole number that fits.
    fn scaled(&self, digits: usize) -> Option<i128> {
        let text = format!("0{}{:0<digits$}", self.whole, self.fraction);
        let value: i128 = text.parse().ok()?;
        Some(if self.negative { -value } else { value })
    }
}

impl Ord for NameNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |a: &NameNumber, b: &NameNumber| {
            let whole = a.whole.len().cmp(&b.whole.len()).then_with(|| a.whole.cmp(&b.whole));
            whole.then_with(|| a.fraction.cmp(&b.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (a, b) => b.cmp(&a),
        }
    }
}

impl PartialOrd for NameNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Notation of the numbers at one place of the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberForm {
    Decimal,
    /// Hexadecimal numbers with this number of digits.
    Hexadecimal(usize),
    /// Date with a time, whose digits are taken as one number.
    Time,
}

/// Numbers at one place of the names, one for each name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberColumn {
    pub form: NumberForm,
    pub values: Vec<NameNumber>,
}

impl NumberColumn {
    pub fn varies(&self) -> bool {
        self.values.windows(2).any(|pair| pair[0] != pair[1])
    }

    /// Reports whether all values differ.
    pub fn is_distinct(&self) -> bool {
        self.values.iter().collect::<HashSet<_>>().len() == self.values.len()
    }

    /// Reports whether the sorted values are consecutive whole numbers, each of which occurs once.
    pub fn counts_by_one(&self) -> bool {
        let Some(values) = self.whole(0).filter(|_| self.form != NumberForm::Time) else { return false };
        values.windows(2).all(|pair| pair[1] == pair[0] + 1)
    }

    /// Returns the values times `10^digits` in ascending order, if all of them are then whole.
    fn whole(&self, digits: usize) -> Option<Vec<i128>> {
        if self.values.iter().any(|value| value.fraction.len() > digits) {
            return None;
        }
        let mut values = self.values.iter().map(|value| value.scaled(digits)).collect::<Option<Vec<_>>>()?;
        values.sort_unstable();
        // keeps differences of values within range
        let limit = i128::MAX / 4;
        values.iter().all(|value| value.abs() < limit).then_some(values)
    }

    /// Returns the numbers that are missing between the smallest and the largest; a constant step is not a gap.
    pub fn gaps(&self) -> Option<Gaps> {
        if self.form == NumberForm::Time {
            return None;
        }
        let digits = self.values.iter().map(|value| value.fraction.len()).max().unwrap_or(0);
        let values = self.whole(digits)?;
        let step = values.windows(2).fold(0, |step, pair| gcd(pair[1] - pair[0], step));
        if step == 0 {
            return None;
        }
        let (mut missing, mut list) = (0, Vec::new());
        for pair in values.windows(2) {
            let count = (pair[1] - pair[0]) / step - 1;
            missing += count.max(0);
            match count {
                ..1 => {}
                1 => list.push(self.written(pair[0] + step, digits)),
                _ => list.push(format!(
                    "{}..={}",
                    self.written(pair[0] + step, digits),
                    self.written(pair[1] - step, digits)
                )),
            }
        }
        if missing == 0 {
            return None;
        }
        if missing > values.len() as i128 {
            return Some(Gaps::Everywhere);
        }
        let dots = if list.len() > 8 { ", .." } else { "" };
        list.truncate(8);
        Some(Gaps::Some { numbers: list.join(", ") + dots, count: missing as usize })
    }

    /// Formats a value that was multiplied by `10^digits` as it is written in names.
    fn written(&self, value: i128, digits: usize) -> String {
        match self.form {
            NumberForm::Hexadecimal(width) => format!("{value:0width$x}"),
            _ if digits == 0 => value.to_string(),
            _ => {
                let text = format!("{:0>width$}", value.unsigned_abs(), width = digits + 1);
                let (whole, fraction) = text.split_at(text.len() - digits);
                format!("{}{whole}.{fraction}", if value < 0 { "-" } else { "" })
            }
        }
    }
}

/// Numbers that are missing in names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Missing numbers as a list for messages, and how many are missing.
    Some { numbers: String, count: usize },
    /// More missing numbers than files, which means that the numbers do not count files.
    Everywhere,
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Number as it is written in a name.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    sign: Option<char>,
    whole: &'a str,
    fraction: &'a str,
    exponent: i32,
}

impl Token<'_> {
    fn number(&self, signed: bool) -> NameNumber {
        let negative = signed && self.sign == Some('-');
        if self.exponent == 0 {
            return NameNumber::new(negative, self.whole, self.fraction);
        }
        // the exponent moves the point
        let digits = format!("{}{}", self.whole, self.fraction);
        let point = self.whole.len() as i32 + self.exponent;
        match point {
            ..1 => NameNumber::new(negative, "", &format!("{}{digits}", "0".repeat(-point as usize))),
            _ if point as usize >= digits.len() => {
                NameNumber::new(negative, &format!("{digits:0<width$}", width = point as usize), "")
            }
            _ => NameNumber::new(negative, &digits[..point as usize], &digits[point as usize..]),
        }
    }

    /// Reports whether the number is whole, without a sign, and has this number of digits.
    fn is_plain(&self, digits: usize) -> bool {
        self.sign.is_none() && self.fraction.is_empty() && self.exponent == 0 && self.whole.len() == digits
    }
}

/// Name split into texts and the numbers between them.
struct Split<'a> {
    texts: Vec<&'a str>,
    tokens: Vec<Token<'a>>,
}

/// Largest exponent of ten in a name.
const MAX_EXPONENT: i32 = 30;

fn digits_at(text: &str, from: usize) -> usize {
    text[from..].bytes().take_while(u8::is_ascii_digit).count()
}

impl<'a> Split<'a> {
    /// Splits a name. With `decimals`, two groups of digits with a point between them are one number, unless there are
    /// three groups or more, as in a date.
    fn new(name: &'a str, decimals: bool) -> Split<'a> {
        let (mut texts, mut tokens, mut from) = (Vec::new(), Vec::new(), 0);
        let mut in_chain = false;
        while let Some(start) = name[from..].find(|c: char| c.is_ascii_digit()).map(|at| from + at) {
            let end = start + digits_at(name, start);
            let mut token = Token { sign: None, whole: &name[start..end], fraction: "", exponent: 0 };
            let mut text = &name[from..start];
            let mut before = text.chars().rev();
            if let (Some(sign @ ('-' | '+')), next) = (before.next(), before.next())
                && next.map_or(from == 0, |next| !next.is_alphanumeric())
            {
                token.sign = Some(sign);
                text = &text[..text.len() - 1];
            }
            let group = |at: usize| if name[at..].starts_with('.') { digits_at(name, at + 1) } else { 0 };
            let (fraction, mut after) = (group(end), end);
            let chained = std::mem::replace(&mut in_chain, false);
            if fraction > 0 {
                let last = end + 1 + fraction;
                in_chain = chained || group(last) > 0;
                if decimals && !in_chain {
                    (token.fraction, after) = (&name[end + 1..last], last);
                    if let Some((exponent, bytes)) = exponent_at(&name[last..]) {
                        (token.exponent, after) = (exponent, last + bytes);
                    }
                }
            }
            texts.push(text);
            tokens.push(token);
            from = after;
        }
        texts.push(&name[from..]);
        Split { texts, tokens }
    }
}

/// Returns the exponent with its sign at the beginning of a text, and its length in bytes.
fn exponent_at(text: &str) -> Option<(i32, usize)> {
    let rest = text.strip_prefix(['e', 'E'])?;
    let sign = if rest.starts_with('-') { -1 } else { 1 };
    let digits = digits_at(rest.strip_prefix(['+', '-'])?, 0);
    let value: i32 = rest.get(1..1 + digits)?.parse().ok()?;
    (value <= MAX_EXPONENT).then_some((sign * value, 2 + digits))
}

/// Returns the numbers that names have at the same places, if all names are alike except for these.
pub fn columns(names: &[String]) -> Option<Vec<NumberColumn>> {
    let tokens = |decimals: bool| -> Option<Vec<NumberColumn>> {
        let split: Vec<Split> = names.iter().map(|name| Split::new(name, decimals)).collect();
        let alike = split.windows(2).all(|pair| pair[0].texts == pair[1].texts);
        (alike && (!decimals || split.first().is_none_or(|first| are_decimals(&split, first.tokens.len()))))
            .then(|| of_tokens(&split))
    };
    tokens(true).or_else(|| tokens(false)).or_else(|| hexadecimal(names))
}

/// Reports whether the digits after points are decimals, rather than separate numbers.
fn are_decimals(split: &[Split], count: usize) -> bool {
    (0..count).all(|place| {
        let tokens = || split.iter().map(|name| name.tokens[place]);
        if tokens().all(|token| token.fraction.is_empty()) {
            return true;
        }
        let length = tokens().next().map_or(0, |token| token.fraction.len());
        let even = tokens().all(|token| token.fraction.len() == length);
        // a program that writes 1.5 after 1 would not write 1.10
        let shortest = tokens().all(|token| token.fraction.len() < 2 || !token.fraction.ends_with('0'));
        // it is rather a counter with leading zeros, after another number that varies
        let whole: HashSet<_> = tokens().map(|token| token.whole).collect();
        let counter = length >= 2 && whole.len() > 1 && tokens().all(|token| token.fraction.starts_with('0'));
        let empty = tokens().all(|token| token.fraction.bytes().all(|digit| digit == b'0'));
        (even || shortest) && (!counter || empty)
    })
}

fn of_tokens(split: &[Split]) -> Vec<NumberColumn> {
    let count = split.first().map_or(0, |name| name.tokens.len());
    let (mut columns, mut place) = (Vec::new(), 0);
    while place < count {
        if let Some(places) = time_at(split, place) {
            let number = |name: &Split| {
                let tokens = &name.tokens[places.clone()];
                let digits: String = tokens.iter().map(|token| token.whole).collect();
                NameNumber::new(false, &digits, tokens.last().map_or("", |last| last.fraction))
            };
            columns.push(NumberColumn { form: NumberForm::Time, values: split.iter().map(number).collect() });
            place = places.end;
            continue;
        }
        let tokens = || split.iter().map(|name| &name.tokens[place]);
        let all_negative = tokens().all(|token| token.sign == Some('-'));
        // a dash before a counter is no sign
        let dash = all_negative
            && tokens().any(|token| {
                let zeros = token.whole.len() > 1 && token.whole.starts_with('0');
                zeros || token.fraction.is_empty() && matches!(token.whole, "0" | "1")
            });
        let values = tokens().map(|token| token.number(!dash)).collect();
        columns.push(NumberColumn { form: NumberForm::Decimal, values });
        place += 1;
    }
    columns
}

/// Returns the places of a date with a time that begins at `place` in all names: 2024-01-31_10-58-07 or
/// 20240131_105807.
fn time_at(split: &[Split], place: usize) -> Option<Range<usize>> {
    const PARTS: [(usize, Range<u32>); 6] =
        [(4, 1900..2100), (2, 1..13), (2, 1..32), (2, 0..24), (2, 0..60), (2, 0..61)];
    let joined = |name: &Split, place: usize| {
        let mut text = name.texts[place].chars();
        text.next().is_some_and(|c| !c.is_ascii_digit()) && text.next().is_none()
    };
    let part = |place: usize, width: usize, values: &Range<u32>| {
        split.iter().all(|name| {
            let token = name.tokens.get(place);
            token.is_some_and(|token| {
                token.is_plain(width) && token.whole.parse().is_ok_and(|value| values.contains(&value))
            })
        })
    };
    let first = split.first()?;
    let parts = PARTS
        .iter()
        .enumerate()
        .take_while(|(i, (width, values))| part(place + i, *width, values) && (*i == 0 || joined(first, place + i)))
        .count();
    if parts >= 5 {
        return Some(place..place + parts);
    }
    let date = |text: &str| {
        let valid = |range: Range<usize>, values: Range<u32>| {
            text.get(range).and_then(|part| part.parse().ok()).is_some_and(|value| values.contains(&value))
        };
        text.len() == 8 && valid(0..4, 1900..2100) && valid(4..6, 1..13) && valid(6..8, 1..32)
    };
    let day = split.iter().all(|name| name.tokens[place].is_plain(8) && date(name.tokens[place].whole));
    let length = first.tokens.get(place + 1)?.whole.len();
    let time = (6..=12).contains(&length)
        && split.iter().all(|name| {
            name.tokens.get(place + 1).is_some_and(|token| token.sign.is_none() && token.whole.len() == length)
        });
    (day && time && joined(first, place + 1)).then_some(place..place + 2)
}

/// Returns a hexadecimal counter and the numbers before it, if names are alike except for the counter. A counter
/// contains letters, has the same number of digits in each name, and few of its values are missing.
fn hexadecimal(names: &[String]) -> Option<Vec<NumberColumn>> {
    let first = names.first()?;
    let shared = |name: &String| first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let hex = |byte: &u8| byte.is_ascii_hexdigit();
    let prefix = names.iter().map(shared).min()?;
    let start = prefix - first.as_bytes()[..prefix].iter().rev().take_while(|byte| hex(byte)).count();
    let width = first.as_bytes()[start..].iter().take_while(|byte| hex(byte)).count();
    if !(2..=24).contains(&width) {
        return None;
    }
    let (head, tail) = (first.get(..start)?, first.get(start + width..)?);
    let value = |name: &String| {
        let digits = name.strip_prefix(head)?.strip_suffix(tail)?;
        let whole = digits.len() == width && digits.bytes().all(|byte| hex(&byte));
        if whole { u128::from_str_radix(digits, 16).ok() } else { None }
    };
    let values = names.iter().map(value).collect::<Option<Vec<_>>>()?;
    let (low, high) = (*values.iter().min()?, *values.iter().max()?);
    if names.len() < 3 || high - low >= 2 * names.len() as u128 {
        return None;
    }
    let split = Split::new(head, true);
    let constant =
        |token: &Token| NumberColumn { form: NumberForm::Decimal, values: vec![token.number(false); names.len()] };
    let mut columns: Vec<NumberColumn> = split.tokens.iter().map(constant).collect();
    let values = values.iter().map(|value| NameNumber::new(false, &value.to_string(), "")).collect();
    columns.push(NumberColumn { form: NumberForm::Hexadecimal(width), values });
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(name: &str) -> Vec<NameNumber> {
        columns(&[name.to_owned()]).unwrap().into_iter().flat_map(|column| column.values).collect()
    }

    #[test]
    fn numbers_of_a_name_are_compared_by_their_values() {
        for (less, more) in [
            ("a_9", "a_10"),
            ("a_-10", "a_-9.5"),
            ("a_-9.5", "a_0"),
            ("a_1.25", "a_1.3"),
            ("a_1.5e-01", "a_1.5e+00"),
            ("a_9.0e+00", "a_1.0e+01"),
            ("a_99999999999999999999999999999999999999999", "a_100000000000000000000000000000000000000000"),
        ] {
            assert!(numbers(less)[0] < numbers(more)[0], "{less} {more}");
        }
        assert_eq!(numbers("a_1.50e+01"), numbers("a_15.0"));
        assert_eq!(numbers("a_-0"), numbers("a_0.00"));
        assert_eq!(numbers("2024-01-31").len(), 3);
        assert_eq!(numbers("1.2.3").len(), 3, "no decimals");
    }

    #[test]
    fn a_date_with_a_time_is_one_number() {
        for name in ["s_2024-01-31_10-58-07_3.tif", "s_20240131_105807_3.tif", "s_20240131_105807.25_3.tif"] {
            assert_eq!(numbers(name).len(), 2, "{name}");
        }
        for name in ["s_01_02_03.tif", "s_2024-13-31_10-58.tif"] {
            assert!(numbers(name).len() > 2, "{name}");
        }
    }
}

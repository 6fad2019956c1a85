//! The order of files by the numbers in their names, and checks that they belong together.

mod numbers;

pub use numbers::Gaps;

use crate::error::messages;
use numbers::{NumberColumn, columns};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

messages! {
    /// What prevents files from being put in order.
    pub enum FileOrderError: Input {
        SameNumber { first: String, second: String } =>
            "{first} and {second} have the same number, so their order is not known";
            "move one of them away or rename it",
        NoSuchNumber { by: usize, name: String, numbers: String } =>
            "--order-by {by}: names such as {name} have {numbers}"; "choose one, from 1",
        NoNumber { first: String, second: String } =>
            "--order-by: {first} and {second} have no number at the same place";
            "leave --order-by out, or give a text file with one path a line as 'list FILE'",
        SeveralOrders { numbers: usize, orders: String } =>
            "{numbers} numbers vary in the file names, so the order is not known: {orders}";
            "give one of these, or a text file with one path a line as 'list FILE'",
        /// In a directory.
        MixedKinds { names: String } =>
            "fields and other frames are together, such as {names}";
            "select the files of one kind with a glob, in quotes, and give flats with --flats and darks with --darks",
        /// Of a glob.
        MixedMatches { names: String } =>
            "fields and other frames are together, such as {names}";
            "narrow the glob to files of one kind, and give flats with --flats and darks with --darks",
        /// In a directory.
        StrayFiles { names: String, are: &'static str, usual: String } =>
            "{names} {are} not named like the other files ({usual})";
            "move files that do not belong to the scan away, or select the files with a glob, or in order with a text \
             file with one path a line as 'list FILE'",
        /// Of a glob.
        StrayMatches { names: String, are: &'static str, usual: String } =>
            "{names} {are} not named like the other files ({usual})";
            "narrow the glob to files that belong together, or give a text file with one path a line as 'list FILE'",
    }
}

/// Compares names with numbers in numerical order: `s_2` before `s_10`.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (x, y) = (Name::new(a), Name::new(b));
    for i in 0..x.texts.len().min(y.texts.len()) {
        let order = x.texts[i].cmp(y.texts[i]).then_with(|| match (x.numbers.get(i), y.numbers.get(i)) {
            (Some(m), Some(n)) => m.len().cmp(&n.len()).then_with(|| m.cmp(n)),
            (m, n) => m.is_some().cmp(&n.is_some()),
        });
        if order != Ordering::Equal {
            return order;
        }
    }
    a.cmp(b) // numbers that differ by leading zeros only
}

/// Name split into texts and the numbers between them, which are without leading zeros.
struct Name<'a> {
    texts: Vec<&'a str>,
    numbers: Vec<&'a str>,
}

impl<'a> Name<'a> {
    fn new(name: &'a str) -> Self {
        let (mut texts, mut numbers, mut rest) = (Vec::new(), Vec::new(), name);
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            let (text, tail) = rest.split_at(start);
            let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            let (number, tail) = tail.split_at(end);
            texts.push(text);
            numbers.push(number.trim_start_matches('0'));
            rest = tail;
        }
        texts.push(rest);
        Name { texts, numbers }
    }
}

/// Information about files besides their names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamesOf {
    /// True for frames of a field, whose order does not matter.
    pub field: bool,
    /// Number in the names, counted from 1, that the user has chosen as the order.
    pub by: Option<usize>,
    /// True if a glob selected the files, false if a directory did.
    pub glob: bool,
}

/// Files in order, with notes about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arranged {
    /// Indices of the names, in order.
    pub order: Vec<usize>,
    /// Number in the names that is the order, in words, where there is a choice.
    pub note: Option<String>,
    /// Numbers that no file has.
    pub gaps: Option<Gaps>,
}

/// Arranges the names of one scan, which are alike except for their numbers, in the order of the scan.
///
/// If several numbers vary, the one that counts up by one is the order. Fewer than three names with numbers always
/// pass. An error lists the files that do not belong, or the possible orders.
pub fn arrange(names: &[String], of: NamesOf) -> Result<Arranged, FileOrderError> {
    check_kinds(names, of)?;
    let mut natural_order: Vec<usize> = (0..names.len()).collect();
    natural_order.sort_by(|&a, &b| natural(&names[a], &names[b]));
    let numbered = names.iter().filter(|name| name.contains(|c: char| c.is_ascii_digit())).count();
    let columns = columns(names);
    if of.field {
        let few = numbered < 3 || of.glob;
        return match columns {
            None if !few => Err(stray(names, of)),
            _ => Ok(Arranged { order: natural_order, ..Arranged::default() }),
        };
    }
    let Some(columns) = columns.filter(|columns| !columns.is_empty()) else {
        return match (of.by, numbered) {
            (Some(_), _) if names.len() > 1 => Err(no_number(names, &natural_order)),
            (_, 3..) => Err(stray(names, of)),
            _ => Ok(Arranged { order: natural_order, ..Arranged::default() }),
        };
    };
    let sorted = Sorted { names, columns: &columns, natural: &natural_order };
    if let Some(by) = of.by {
        return sorted.by_choice(by);
    }
    let varying: Vec<usize> = (0..columns.len()).filter(|&place| columns[place].varies()).collect();
    match varying[..] {
        _ if names.len() < 2 => Ok(Arranged { order: natural_order, ..Arranged::default() }),
        [] => Err(sorted.same(&natural_order)),
        [place] => sorted.by_one(place),
        _ if names.len() < 3 => Ok(Arranged { order: natural_order, ..Arranged::default() }),
        _ => sorted.by_counter(&varying, of),
    }
}

/// Names, the columns of their numbers, and their natural order.
struct Sorted<'a> {
    names: &'a [String],
    columns: &'a [NumberColumn],
    natural: &'a [usize],
}

impl Sorted<'_> {
    /// Returns the indices of the names ordered by the numbers at one place, and by the other numbers where these are
    /// equal.
    fn order(&self, place: usize) -> Vec<usize> {
        let mut order = self.natural.to_vec();
        let values = &self.columns[place].values;
        order.sort_by(|&a, &b| values[a].cmp(&values[b]));
        order
    }

    /// Returns the first few names of an order, for messages.
    fn begin(&self, order: &[usize]) -> String {
        let list: Vec<_> = order.iter().take(3).map(|&index| self.names[index].as_str()).collect();
        list.join(", ") + if order.len() > 3 { ", .." } else { "" }
    }

    /// Returns an error that names two files with the same numbers.
    fn same(&self, order: &[usize]) -> FileOrderError {
        let key = |index: usize| self.columns.iter().map(move |column| &column.values[index]);
        let pair = order.windows(2).find(|pair| key(pair[0]).eq(key(pair[1])));
        let (a, b) = pair.map_or((order[0], order[1]), |pair| (pair[0], pair[1]));
        FileOrderError::SameNumber { first: self.names[a].clone(), second: self.names[b].clone() }
    }

    /// Reports whether two names have the same numbers.
    fn has_same(&self) -> bool {
        let mut seen = HashSet::new();
        let key = |index: usize| self.columns.iter().map(|column| &column.values[index]).collect::<Vec<_>>();
        !(0..self.names.len()).all(|index| seen.insert(key(index)))
    }

    /// Arranges the names by the only number that varies.
    fn by_one(&self, place: usize) -> Result<Arranged, FileOrderError> {
        let order = self.order(place);
        if !self.columns[place].is_distinct() && self.names.len() > 2 {
            return Err(self.same(&order));
        }
        Ok(Arranged { order, note: None, gaps: self.columns[place].gaps() })
    }

    /// Arranges the names by the number that the user has chosen.
    fn by_choice(&self, by: usize) -> Result<Arranged, FileOrderError> {
        let count = self.columns.len();
        if by == 0 || by > count {
            let numbers = if count == 1 { "1 number".to_owned() } else { format!("{count} numbers") };
            let name = self.names[self.natural[0]].clone();
            return Err(FileOrderError::NoSuchNumber { by, name, numbers });
        }
        let (order, column) = (self.order(by - 1), &self.columns[by - 1]);
        if self.has_same() {
            return Err(self.same(&order));
        }
        let distinct = column.is_distinct();
        let note = (!distinct).then(|| {
            format!(
                "several files have the same number {by} in their names; they are in the order of the other numbers"
            )
        });
        Ok(Arranged { order, note, gaps: if distinct { column.gaps() } else { None } })
    }

    /// Arranges the names by the only number of several that counts up by one, or in the only order that all numbers
    /// agree on.
    fn by_counter(&self, varying: &[usize], of: NamesOf) -> Result<Arranged, FileOrderError> {
        if self.has_same() {
            return Err(self.same(self.natural));
        }
        let mut counters: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut orders: Vec<(usize, Vec<usize>)> = Vec::new();
        for &place in varying {
            let order = self.order(place);
            if self.columns[place].counts_by_one() && counters.iter().all(|(_, other)| *other != order) {
                counters.push((place, order.clone()));
            }
            if orders.iter().all(|(_, other)| *other != order) {
                orders.push((place, order));
            }
        }
        if let [(place, order)] = &counters[..] {
            let note = (orders.len() > 1).then(|| {
                format!(
                    "files are in the order of number {} in their names, which counts up by one; --order-by chooses another",
                    place + 1
                )
            });
            return Ok(Arranged { order: order.clone(), note, gaps: None });
        }
        if let (true, Some(odd)) = (counters.is_empty(), self.odd(varying)) {
            let usual = usize::from(odd == 0);
            return Err(not_named_like(&[&self.names[odd]], &self.names[usual], of));
        }
        if let [(place, order)] = &orders[..] {
            let column = &self.columns[*place];
            let gaps = if column.is_distinct() { column.gaps() } else { None };
            return Ok(Arranged { order: order.clone(), note: None, gaps });
        }
        let list: Vec<String> = orders
            .iter()
            .map(|(place, order)| format!("--order-by {} gives {}", place + 1, self.begin(order)))
            .collect();
        Err(FileOrderError::SeveralOrders { numbers: varying.len(), orders: list.join("; ") })
    }

    /// Returns the index of a name that alone differs from all others in one of several varying numbers.
    fn odd(&self, varying: &[usize]) -> Option<usize> {
        if self.names.len() < 4 {
            return None;
        }
        varying.iter().find_map(|&place| {
            let mut counts: HashMap<_, usize> = HashMap::new();
            let values = &self.columns[place].values;
            values.iter().for_each(|value| *counts.entry(value).or_default() += 1);
            if counts.len() != 2 { None } else { values.iter().position(|value| counts[value] == 1) }
        })
    }
}

/// Returns the kind of field, flats or darks, that a word in a name indicates.
fn kind(name: &str) -> Option<&'static str> {
    let words = name.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase);
    words.into_iter().find_map(|word| match word.as_str() {
        "flat" | "flats" | "flatfield" | "flatfields" | "white" | "whites" => Some("flats"),
        "dark" | "darks" | "darkfield" | "darkfields" => Some("darks"),
        _ => None,
    })
}

/// Refuses a mixture of flats, darks and other frames.
fn check_kinds(names: &[String], of: NamesOf) -> Result<(), FileOrderError> {
    let first = |wanted: Option<&str>| names.iter().find(|name| kind(name) == wanted);
    let (flat, dark, other) = (first(Some("flats")), first(Some("darks")), first(None));
    let found: Vec<&String> = [flat, dark, other].into_iter().flatten().collect();
    if found.len() < 2 {
        return Ok(());
    }
    let names = found.into_iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
    Err(match of.glob {
        true => FileOrderError::MixedMatches { names },
        false => FileOrderError::MixedKinds { names },
    })
}

fn no_number(names: &[String], natural: &[usize]) -> FileOrderError {
    let [first, second] = [0, 1].map(|place| names[natural[place]].clone());
    FileOrderError::NoNumber { first, second }
}

/// Returns an error that lists the names that are not like most others.
fn stray(names: &[String], of: NamesOf) -> FileOrderError {
    let cut: Vec<Name> = names.iter().map(|name| Name::new(name)).collect();
    let mut schemes: HashMap<&[&str], usize> = HashMap::new();
    for name in &cut {
        *schemes.entry(&name.texts).or_default() += 1;
    }
    let most = schemes.values().copied().max().unwrap_or(0);
    let usual = cut.iter().position(|name| schemes[name.texts.as_slice()] == most).unwrap_or(0);
    let mut strays: Vec<&str> =
        (0..cut.len()).filter(|&i| cut[i].texts != cut[usual].texts).map(|i| names[i].as_str()).collect();
    strays.sort_by(|a, b| natural(a, b));
    not_named_like(&strays, &names[usual], of)
}

fn not_named_like(strays: &[&str], usual: &str, of: NamesOf) -> FileOrderError {
    let more = if strays.len() > 3 { format!(" and {} more", strays.len() - 3) } else { String::new() };
    let names = strays[..strays.len().min(3)].join(", ") + &more;
    let are = if strays.len() == 1 { "is" } else { "are" };
    let usual = usual.to_owned();
    match of.glob {
        true => FileOrderError::StrayMatches { names, are, usual },
        false => FileOrderError::StrayFiles { names, are, usual },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn numbers_count_as_numbers() {
        let mut list = names(&["s_10", "s_2", "s_1", "s_0", "s_010a", "s_9a", "t_0", "s_", "s_003"]);
        list.sort_by(|a, b| natural(a, b));
        assert_eq!(list, ["s_", "s_0", "s_1", "s_2", "s_003", "s_9a", "s_10", "s_010a", "t_0"]);
        let big = ["x99999999999999999999999999999999999999999", "x100000000000000000000000000000000000000000"];
        assert_eq!(natural(big[0], big[1]), Ordering::Less);
        assert_eq!(natural("é2", "é10"), Ordering::Less);
    }

    #[test]
    fn order_is_total() {
        let list = ["", "0", "00", "a", "a0", "a00", "a0b", "0a", "1", "01", "a1", "10", "9"];
        for a in list {
            assert_eq!(natural(a, a), Ordering::Equal);
            for b in list {
                assert_eq!(natural(a, b), natural(b, a).reverse());
                for c in list {
                    if natural(a, b).is_lt() && natural(b, c).is_lt() {
                        assert!(natural(a, c).is_lt(), "{a} {b} {c}");
                    }
                }
            }
        }
    }

    /// Returns the names in the order of the scan.
    fn arranged(list: &[&str], of: NamesOf) -> Result<(Vec<String>, Arranged), String> {
        let names = names(list);
        let arranged = arrange(&names, of).map_err(|e| e.to_string())?;
        Ok((arranged.order.iter().map(|&index| names[index].clone()).collect(), arranged))
    }

    /// Returns the names of files `0..count`, shuffled.
    fn shuffled(count: usize, name: impl Fn(usize) -> String) -> Vec<String> {
        let step = (1..).map(|i| 7 * i + 5).find(|step| (2..=*step).all(|d| step % d != 0 || count % d != 0)).unwrap();
        (0..count).map(|i| name(i * step % count)).collect()
    }

    /// Asserts that names are arranged in the order of their numbers.
    fn assert_ordered(what: &str, count: usize, name: impl Fn(usize) -> String) {
        let list = shuffled(count, &name);
        let arranged = arrange(&list, NamesOf::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
        let found: Vec<&String> = arranged.order.iter().map(|&index| &list[index]).collect();
        let wanted: Vec<String> = (0..count).map(name).collect();
        assert_eq!(found, wanted.iter().collect::<Vec<_>>(), "{what}");
    }

    #[test]
    fn the_number_that_counts_up_by_one_is_the_order() {
        let golden = |i: usize| (i as f64 * 111.246_117_975 % 180.0 * 1e4).round() / 1e4;
        assert_ordered("golden angles before the counter", 180, |i| format!("scan_GR_{:?}_{i:03}.tif", golden(i)));
        assert_ordered("golden angles after the counter", 180, |i| format!("scan_{i:03}_{:.2}deg.tif", golden(i)));
        assert_ordered("exposures", 120, |i| format!("p_{:.2}s_{i:04}.tif", 0.5 + 0.01 * (i % 3) as f64));
        assert_ordered("temperatures", 120, |i| format!("img_{}C_{i:04}.tif", 23 + i * 7 % 5));
        assert_ordered("negative temperatures", 120, |i| format!("img_{}C_{i}.tif", (i * 7 % 5) as i32 - 2));
        assert_ordered("a counter from 1 without zeros", 120, |i| format!("t{}_{}.tif", 9 - i % 7, i + 1));
        assert_ordered("a time stamp beside the counter", 90, |i| {
            format!("s_2024-01-31_{:02}-{:02}-00_{:03}.tif", 10 + (89 - i) / 60, (89 - i) % 60, i)
        });
    }

    #[test]
    fn the_only_number_that_varies_is_the_order_however_it_is_written() {
        assert_ordered("negative angles", 180, |i| format!("img_{}.tif", i as i32 - 90));
        assert_ordered("negative decimals with a sign", 180, |i| format!("img_{:+.1}.tif", i as f64 * 0.5 - 45.0));
        assert_ordered("decimals", 120, |i| format!("p_{:.1}.tif", i as f64 * 1.5));
        assert_ordered("decimals of several lengths", 120, |i| format!("p_{}.tif", i as f64 * 0.125));
        assert_ordered("exponents", 120, |i| {
            format!("p_{:.3}e+{:02}.tif", if i < 10 { i as f64 } else { i as f64 / 10.0 }, usize::from(i >= 10))
        });
        assert_ordered("hexadecimal counter", 120, |i| format!("frame_{i:04x}.tif"));
        assert_ordered("capital hexadecimal counter", 300, |i| format!("scan3_{i:04X}_a.tif"));
        assert_ordered("long numbers", 120, |i| {
            format!("{}.tif", 20_240_131_101_010_123_456_789_u128 + i as u128 * 7919)
        });
        assert_ordered("time stamps", 120, |i| {
            let minute = i + 58;
            format!("scan_2024-01-31_{:02}-{:02}-{:02}.tif", 10 + minute / 60, minute % 60, i % 60)
        });
        assert_ordered("past midnight", 20, |i| match i {
            ..10 => format!("s_20240131_23595{i}.tif"),
            _ => format!("s_20240201_00000{}.tif", i - 10),
        });
        assert_ordered("a counter behind a point", 120, |i| format!("scan.5.{i}.tif"));
        assert_ordered("a number of all", 120, |i| format!("p_{}of120.tif", i + 1));
    }

    #[test]
    fn where_no_number_is_the_order_all_orders_are_named() {
        let refused = |name: &dyn Fn(usize) -> String, count: usize, words: &[&str]| {
            let error = arrange(&shuffled(count, name), NamesOf::default()).unwrap_err().to_string();
            for word in words.iter().chain(&["list FILE"]) {
                assert!(error.contains(word), "no {word:?} in: {error}");
            }
        };
        refused(
            &|i| format!("pos{}_t{:03}.tif", i % 4, i / 4),
            120,
            &[
                "--order-by 1 gives pos0_t000.tif, pos0_t001.tif, pos0_t002.tif, ..",
                "--order-by 2 gives pos0_t000.tif, pos1_t000.tif, pos2_t000.tif, ..",
            ],
        );
        refused(&|i| format!("pos.{}.{:03}.tif", i % 4, i / 4), 120, &["--order-by 1 gives", "--order-by 2 gives"]);
        refused(
            &|i| format!("a{i}_{}.tif", 50 - i),
            40,
            &["--order-by 1 gives a0_50.tif", "--order-by 2 gives a39_11.tif"],
        );
        refused(&|i| format!("t_{:02}-{:02}-{:02}.tif", i / 25, i / 5 % 5, i % 5), 100, &["--order-by 3 gives"]);
        // a counter with a gap beside another number
        refused(
            &|i| format!("img_{}C_{:04}.tif", i % 3, i + usize::from(i > 20)),
            60,
            &["--order-by 2 gives img_0C_0000.tif"],
        );
        assert_ordered("one order, whatever the number", 50, |i| format!("p_{:03}_{:.1}.tif", 2 * i, i as f64 * 0.5));
    }

    #[test]
    fn the_number_that_is_chosen_is_the_order() {
        let list = shuffled(120, |i| format!("pos{}_t{:03}.tif", i % 4, i / 4));
        let chosen = |by| arrange(&list, NamesOf { by: Some(by), ..NamesOf::default() });
        let begin = |by| chosen(by).unwrap().order.iter().take(2).map(|&i| list[i].clone()).collect::<Vec<_>>();
        assert_eq!(begin(1), ["pos0_t000.tif", "pos0_t001.tif"]);
        assert_eq!(begin(2), ["pos0_t000.tif", "pos1_t000.tif"]);
        assert!(chosen(2).unwrap().note.unwrap().contains("same number 2"));
        for by in [0, 3] {
            let error = chosen(by).unwrap_err().to_string();
            assert!(error.contains("have 2 numbers"), "{error}");
        }
        let by = |list: &[&str]| arranged(list, NamesOf { by: Some(2), ..NamesOf::default() });
        let (order, found) = by(&["a3_1", "a1_2", "a2_4"]).unwrap();
        assert_eq!(
            (order.concat(), found.gaps.is_some()),
            ("a3_1a1_2a2_4".into(), true),
            "a chosen number has gaps, too"
        );
        assert!(by(&["left.tif", "right.tif"]).unwrap_err().contains("no number"));
    }

    #[test]
    fn strays_and_gaps() {
        let check = |list: &[&str]| arranged(list, NamesOf::default()).map(|(_, arranged)| arranged.gaps);
        let some = |numbers: &str, count| Ok(Some(Gaps::Some { numbers: numbers.into(), count }));
        assert_eq!(check(&["a.tif", "b.tif", "c.tif"]), Ok(None));
        assert_eq!(check(&["p_0.tif", "p_1.tif", "p_2.tif"]), Ok(None));
        assert_eq!(check(&["p_0.tif", "p_5.tif", "p_10.tif"]), Ok(None));
        assert_eq!(check(&["p_0.tif", "p_1.tif", "p_3.tif", "p_6.tif"]), some("2, 4..=5", 3));
        assert_eq!(check(&["p_-1.tif", "p_0.tif", "p_2.tif", "p_3.tif"]), some("1", 1));
        assert_eq!(check(&["p_0.0.tif", "p_0.5.tif", "p_1.5.tif"]), some("1.0", 1));
        assert_eq!(check(&["p_0e.tif", "p_0f.tif", "p_11.tif", "p_12.tif"]), some("10", 1));
        assert_eq!(check(&["p_0.tif", "p_1.tif", "p_99999999999999999999999.tif"]), Ok(Some(Gaps::Everywhere)));
        for list in [
            &["p_0.tif", "p_1.tif", "p_2.tif", "zz_180deg.tif"][..],
            &["p_0.tif", "p_1.tif", "p_2.tif", "zz_180deg.tif", "mean.tif"],
            &["zz_180deg.tif", "p_0.tif", "p_1.tif", "p_2.tif"],
        ] {
            let error = check(list).unwrap_err();
            assert!(error.contains("zz_180deg.tif") && error.contains("glob"), "{error}");
        }
        let error = check(&["p1_0.tif", "p1_1.tif", "p1_2.tif", "p2_7.tif"]).unwrap_err();
        assert!(error.starts_with("p2_7.tif is not"), "{error}");
        let error = check(&["p_1.tif", "p_01.tif", "p_2.tif"]).unwrap_err();
        assert!(error.contains("same number"), "{error}");
        assert!(check(&["p_a1b2c3.tif", "p_09ffe1.tif", "p_77ab01.tif"]).is_err(), "no counter, but checksums");
    }

    #[test]
    fn fields_and_projections_together_are_refused() {
        for list in [
            &["flat_0.tif", "dark_1.tif", "proj_2.tif", "proj_3.tif"][..],
            &["dark.tif", "flat.tif", "proj.tif"],
            &["scan-0001.tif", "scan-0002.tif", "scan-flat-0001.tif"],
            &["white_0.tif", "dark_1.tif"],
        ] {
            for glob in [false, true] {
                for field in [false, true] {
                    let error = arranged(list, NamesOf { glob, field, by: None }).unwrap_err();
                    assert!(error.contains("--flats") && error.contains("glob"), "{error}");
                }
            }
        }
        for list in [&["flat_0.tif", "flat_1.tif"][..], &["flatiron_0.tif", "flatiron_1.tif"], &["a.tif", "b.tif"]] {
            arranged(list, NamesOf::default()).unwrap();
        }
    }

    #[test]
    fn the_order_of_fields_is_natural_and_always_known() {
        let of = NamesOf { field: true, ..NamesOf::default() };
        for list in [&["f2_1", "f1_2", "f1_10"][..], &["f_1", "f_01", "f_2"], &["f_2", "f_7", "f_1"]] {
            let mut wanted = names(list);
            wanted.sort_by(|a, b| natural(a, b));
            assert_eq!(arranged(list, of).unwrap(), (wanted, arranged(list, of).unwrap().1));
            assert_eq!(arranged(list, of).unwrap().1.gaps, None);
        }
        assert!(arranged(&["f_1", "f_2", "g_1"], of).is_err());
        assert!(arranged(&["f_1", "f_2", "g_1"], NamesOf { glob: true, ..of }).is_ok());
    }
}

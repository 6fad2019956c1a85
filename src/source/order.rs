//! Natural order of file names, and checks that the files of a directory are complete.

use std::cmp::Ordering;
use std::collections::HashMap;

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

/// A name split into texts and the numbers between them, without leading zeros.
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

/// Checks that the names of one directory are `prefix + number + suffix` of one scan.
///
/// Returns a note about missing numbers, or an error text that names the file that does not belong.
/// Fewer than three names with numbers always pass.
pub(super) fn check_names(names: &[String]) -> Result<Option<String>, String> {
    let cut: Vec<Name> = names.iter().map(|n| Name::new(n)).collect();
    if cut.iter().filter(|n| !n.numbers.is_empty()).count() < 3 {
        return Ok(None);
    }

    // the texts around the numbers must agree
    let mut schemes: HashMap<&[&str], usize> = HashMap::new();
    for n in &cut {
        *schemes.entry(&n.texts).or_default() += 1;
    }
    let most = schemes.values().copied().max().unwrap_or(0);
    let usual = cut.iter().position(|n| schemes[n.texts.as_slice()] == most).unwrap_or(0);
    let strays: Vec<&str> =
        (0..cut.len()).filter(|&i| cut[i].texts != cut[usual].texts).map(|i| names[i].as_str()).collect();
    if !strays.is_empty() {
        return Err(stray(&strays, &names[usual]));
    }

    // if names have several numbers, only one may vary, unless many files differ in others
    let mut varying = Vec::new();
    for position in 0..cut[0].numbers.len() {
        let mut values: HashMap<&str, usize> = HashMap::new();
        for n in &cut {
            *values.entry(n.numbers[position]).or_default() += 1;
        }
        if values.len() > 1 {
            varying.push((position, values));
        }
    }
    if varying.len() > 1 && cut.len() >= 4 {
        for (position, values) in &varying {
            let alone = |n: &Name| values.len() == 2 && values[n.numbers[*position]] == 1;
            if let Some(odd) = cut.iter().position(alone) {
                let usual = if odd == 0 { 1 } else { 0 };
                return Err(stray(&[&names[odd]], &names[usual]));
            }
        }
    }

    let mut seen: HashMap<&[&str], usize> = HashMap::new();
    for (i, n) in cut.iter().enumerate() {
        if let Some(j) = seen.insert(&n.numbers, i) {
            return Err(format!(
                "{} and {} have the same number, so their order is not known; \
                 move one of them away or rename it",
                names[j], names[i]
            ));
        }
    }
    match varying.as_slice() {
        [(position, _)] => Ok(gaps(cut.iter().map(|n| n.numbers[*position]))),
        _ => Ok(None),
    }
}

fn stray(strays: &[&str], usual: &str) -> String {
    let more = if strays.len() > 3 { format!(" and {} more", strays.len() - 3) } else { String::new() };
    let list = strays[..strays.len().min(3)].join(", ");
    let verb = if strays.len() == 1 { "is" } else { "are" };
    format!(
        "{list}{more} {verb} not named like the other files ({usual}); \
         move files that do not belong to the scan away, or select the files with a glob"
    )
}

/// A note about missing numbers in a sequence; a constant step is not a gap.
fn gaps<'a>(numbers: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut values: Vec<u128> =
        numbers.map(|n| if n.is_empty() { Some(0) } else { n.parse().ok() }).collect::<Option<_>>()?;
    values.sort_unstable();
    let step = values.windows(2).fold(0, |g, w| gcd(w[1] - w[0], g));
    if step == 0 {
        return None;
    }
    let (mut missing, mut list) = (0, Vec::new());
    for w in values.windows(2) {
        let count = (w[1] - w[0]) / step - 1;
        missing += count;
        match count {
            0 => {}
            1 => list.push((w[0] + step).to_string()),
            _ => list.push(format!("{}..={}", w[0] + step, w[1] - step)),
        }
    }
    if missing == 0 {
        return None;
    }
    if missing > values.len() as u128 {
        return Some("the numbers in the file names are not consecutive; files are used in their order".into());
    }
    let dots = if list.len() > 8 { ", .." } else { "" };
    list.truncate(8);
    Some(format!(
        "no file with number {}{dots} ({missing} missing); existing files are treated as consecutive",
        list.join(", ")
    ))
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
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

    #[test]
    fn strays_and_gaps() {
        let check = |list: &[&str]| check_names(&names(list));
        assert_eq!(check(&["a.tif", "b.tif", "c.tif"]), Ok(None));
        assert_eq!(check(&["p_0.tif", "p_1.tif", "p_2.tif"]), Ok(None));
        assert_eq!(check(&["p_0.tif", "p_5.tif", "p_10.tif"]), Ok(None));
        assert_eq!(check(&["z1p1.tif", "z1p2.tif", "z2p1.tif", "z2p2.tif"]), Ok(None));
        let note = check(&["p_0.tif", "p_1.tif", "p_3.tif", "p_6.tif"]).unwrap().unwrap();
        assert!(note.contains("2, 4..=5") && note.contains("3 missing"), "{note}");
        let note = check(&["p_0.tif", "p_1.tif", "p_99999999999999999999999.tif"]).unwrap().unwrap();
        assert!(note.contains("not consecutive"), "{note}");
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
    }
}

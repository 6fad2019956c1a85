//! Typed, sorted defines: whole numbers, switches and words only, because floats are kernel arguments.

use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Defines of a program, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defines(BTreeMap<&'static str, String>);

impl Defines {
    /// Adds a whole number.
    pub fn number(&mut self, name: &'static str, value: u32) -> Result<()> {
        self.set(name, value.to_string())
    }

    /// Adds a switch, 1 or 0. Every switch is always defined, so a misspelt one is a compile error under `-Wundef`.
    pub fn switch(&mut self, name: &'static str, value: bool) -> Result<()> {
        self.set(name, u8::from(value).to_string())
    }

    /// Adds a word of the language.
    pub fn word(&mut self, name: &'static str, value: &str) -> Result<()> {
        self.set(name, value.to_owned())
    }

    fn set(&mut self, name: &'static str, value: String) -> Result<()> {
        match self.0.insert(name, value) {
            None => Ok(()),
            Some(_) => Err(Error::Internal(format!("define {name} is set twice in one kernel"))),
        }
    }

    /// Returns the lines of source, sorted by name.
    pub fn text(&self) -> String {
        self.0.iter().map(|(name, value)| format!("#define {name} {value}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_and_never_twice() {
        let mut defines = Defines::default();
        defines.number("ZEBRA", 3).unwrap();
        defines.switch("APE", true).unwrap();
        assert_eq!(defines.text(), "#define APE 1\n#define ZEBRA 3\n");
        assert!(defines.word("APE", "x").is_err());
    }
}

//! Verdicts cached between runs: which kernels a device computes correctly.
//!
//! One TOML file for each device, driver and version of the program. A missing or malformed file counts as empty; losing
//! it only costs time.

use crate::digest::PartsDigest;
use crate::error::messages;
use crate::facts::DeviceFacts;
use crate::files::{cache_directory, make_private, read_text, write_atomically};
use crate::visible::Shown;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

messages! {
    /// Why verdicts are not kept for later runs.
    enum VerdictsWarning: Warning {
        Unwritable { path: String, error: String } =>
            "{path}: {error}; verdicts are not stored"; "set FBP_CACHE_DIR to a writable directory",
    }
}

/// The verdict on a kernel on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredVerdict {
    /// Name of the generated source.
    pub name: String,
    /// `right`, `wrong` or `failed`.
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    pub margin: f64,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    program: String,
    platform: String,
    device: String,
    driver: String,
    version: String,
    /// Verdicts by the key of the generated source.
    #[serde(default)]
    kernel: BTreeMap<String, StoredVerdict>,
}

/// Verdicts of one device, driver and version of the program.
#[derive(Clone, Debug)]
pub struct Verdicts {
    path: PathBuf,
    content: Content,
}

impl Verdicts {
    /// Loads the stored verdicts of a device; `None` if there is no cache directory.
    pub fn load(facts: &DeviceFacts) -> Option<Verdicts> {
        Some(Verdicts::within(&cache_directory()?, facts))
    }

    fn within(directory: &Path, facts: &DeviceFacts) -> Verdicts {
        let content = Content {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            platform: facts.platform.clone(),
            device: facts.name.clone(),
            driver: facts.driver.clone(),
            version: facts.version.clone(),
            kernel: BTreeMap::new(),
        };
        let words = [&content.program, &content.platform, &content.device, &content.driver, &content.version];
        let name = format!("verdicts-{:.16}.toml", PartsDigest::of(words));
        let mut verdicts = Verdicts { path: directory.join(name), content };
        verdicts.content.kernel = verdicts.stored();
        verdicts
    }

    /// Reads the kernels that the file holds at present.
    fn stored(&self) -> BTreeMap<String, StoredVerdict> {
        let read = read_text(&self.path).ok().and_then(|text| toml::from_str::<Content>(&text).ok());
        let same = |stored: &Content| Content { kernel: self.content.kernel.clone(), ..stored.clone() } == self.content;
        read.filter(same).map(|stored| stored.kernel).unwrap_or_default()
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the warning that verdicts cannot be stored.
    pub fn unwritable(&self, error: &io::Error) -> String {
        let message = VerdictsWarning::Unwritable { path: self.path.shown().to_string(), error: error.to_string() };
        format!("warning: {message}")
    }

    /// Returns the error of a kernel whose stored verdict is `right`, if the error is also within the present `margin`.
    pub fn correct_error(&self, key: &str, margin: f64) -> Option<f64> {
        let known = self.content.kernel.get(key).filter(|known| known.verdict == "right")?;
        known.error.filter(|&error| error <= margin)
    }

    /// Adds verdicts to the file, keeping those that another process may have written in the meantime.
    pub fn store(&mut self, verdicts: impl IntoIterator<Item = (String, StoredVerdict)>) -> io::Result<()> {
        self.content.kernel = self.stored();
        self.content.kernel.extend(verdicts);
        let text = toml::to_string(&self.content).map_err(io::Error::other)?;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        make_private(directory)?;
        write_atomically(&self.path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::example;

    fn verdict(word: &str, error: Option<f64>) -> StoredVerdict {
        StoredVerdict { name: "k".into(), verdict: word.into(), error, margin: 1e-5 }
    }

    #[test]
    fn only_right_verdicts_of_the_same_driver_are_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let facts = example();
        let mut verdicts = Verdicts::within(&directory.path().join("new"), &facts);
        let all = [
            ("a".to_owned(), verdict("right", Some(1e-6))),
            ("b".to_owned(), verdict("wrong", Some(f64::INFINITY))),
            ("c".to_owned(), verdict("failed", None)),
        ];
        verdicts.store(all).unwrap();
        // another process that began before
        let mut other = Verdicts::within(&directory.path().join("new"), &facts);
        verdicts.store([("d".to_owned(), verdict("right", Some(2e-6)))]).unwrap();
        other.store([("b".to_owned(), verdict("right", Some(3e-6)))]).unwrap();
        let again = Verdicts::within(&directory.path().join("new"), &facts);
        let right = |key| again.correct_error(key, 1e-5);
        assert_eq!(["a", "b", "c", "d", "e"].map(right), [Some(1e-6), Some(3e-6), None, Some(2e-6), None]);
        assert_eq!(again.correct_error("a", 1e-7), None, "the margin is today's");
        let newer = DeviceFacts { driver: "2".into(), ..example() };
        assert_eq!(Verdicts::within(&directory.path().join("new"), &newer).correct_error("a", 1.0), None);
        assert_eq!(std::fs::read_dir(directory.path().join("new")).unwrap().count(), 1, "no temporary name is left");
        // a file of something else counts as empty, and is replaced
        for text in ["what?", "program = \"x\"", &std::fs::read_to_string(again.path()).unwrap().replace("0.1", "9.1")]
        {
            std::fs::write(again.path(), text).unwrap();
            let mut verdicts = Verdicts::within(&directory.path().join("new"), &facts);
            assert_eq!(verdicts.correct_error("a", 1.0), None, "{text}");
            verdicts.store([("a".to_owned(), verdict("right", Some(1e-6)))]).unwrap();
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mut verdicts = Verdicts::within(&file, &example());
        assert!(verdicts.store([]).is_err());
    }
}

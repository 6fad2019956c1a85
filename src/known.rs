//! Kernels that are known to fail with a driver, from `configs/known-failures.toml`.

use crate::error::{Error, Result, messages};
use crate::facts::DeviceFacts;
use crate::facts::DeviceKind;
use crate::kernel::{Algorithm, Interpolation, KernelSpec, Sampler, Storage};
use serde::Deserialize;

const FILE: &str = "known-failures.toml";
const TEXT: &str = include_str!("../configs/known-failures.toml");

/// Version of the schema that this version of the program reads.
const SCHEMA: u32 = 1;

messages! {
    /// Illegal values of a file of known failures.
    enum KnownFailuresError: Usage {
        Schema { schema: u32 } =>
            "schema is {schema}, this version reads schema {SCHEMA}"; "use the file of this version",
        NoCondition { number: usize } =>
            "[[failure]] number {number}: names neither device nor platform nor driver"; "add one of them",
        NoReason { number: usize } => "[[failure]] number {number}: needs a reason and a source",
    }
}

/// All known failures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KnownFailures {
    schema: u32,
    #[serde(default)]
    failure: Vec<Failure>,
}

/// Kernels that fail with a driver: all given conditions must hold.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Failure {
    /// Part of the device's name, in any case.
    #[serde(default)]
    device: String,
    /// Part of the platform's name.
    #[serde(default)]
    platform: String,
    /// Part of the driver's version.
    #[serde(default)]
    driver: String,
    #[serde(default, rename = "type")]
    kind: Vec<DeviceKind>,
    #[serde(default)]
    algorithm: Vec<Algorithm>,
    #[serde(default)]
    interpolation: Vec<Interpolation>,
    #[serde(default)]
    slices: Vec<u32>,
    #[serde(default)]
    sampler: Vec<Sampler>,
    #[serde(default)]
    storage: Vec<Storage>,
    /// Compiler option with which the kernel is correct.
    #[serde(default)]
    unless_option: Option<String>,
    /// Description of the failure.
    pub reason: String,
    /// Place where the failure was observed.
    source: String,
}

impl KnownFailures {
    /// Returns the failures that are built into the program.
    pub fn built_in() -> Result<Self> {
        Self::parse(TEXT, FILE)
    }

    /// Reads and checks a file of failures; `name` is used in messages.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let known: KnownFailures = toml::from_str(text).map_err(|e| Error::profile(name, e.to_string().trim_end()))?;
        let wrong = |error: KnownFailuresError| Err(Error::profile(name, error));
        if known.schema != SCHEMA {
            return wrong(KnownFailuresError::Schema { schema: known.schema });
        }
        for (number, failure) in (1..).zip(&known.failure) {
            if [&failure.device, &failure.platform, &failure.driver].iter().all(|part| part.trim().is_empty()) {
                return wrong(KnownFailuresError::NoCondition { number });
            }
            if failure.reason.trim().is_empty() || failure.source.trim().is_empty() {
                return wrong(KnownFailuresError::NoReason { number });
            }
        }
        Ok(known)
    }

    /// Returns the reason why a kernel is known to fail on a device, if it is.
    pub fn find(&self, facts: &DeviceFacts, spec: &KernelSpec) -> Option<&str> {
        self.failure.iter().find(|failure| failure.holds(facts, spec)).map(|failure| failure.reason.as_str())
    }
}

impl Failure {
    fn holds(&self, facts: &DeviceFacts, spec: &KernelSpec) -> bool {
        fn any<T: PartialEq>(list: &[T], value: T) -> bool {
            list.is_empty() || list.contains(&value)
        }
        let part = |part: &str, whole: &str| whole.to_lowercase().contains(&part.to_lowercase());
        part(&self.device, &facts.name)
            && part(&self.platform, &facts.platform)
            && part(&self.driver, &facts.driver)
            && any(&self.kind, facts.kind)
            && any(&self.algorithm, spec.parameters.algorithm())
            && any(&self.interpolation, spec.interpolation)
            && any(&self.slices, spec.slices)
            && any(&self.sampler, spec.parameters.sampler())
            && any(&self.storage, spec.parameters.storage())
            && !self.unless_option.as_ref().is_some_and(|option| spec.build.options.contains(option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::example;
    use crate::kernel::{Mode, Problem};
    use crate::profile::ProfileStore;

    fn spec(profile: &str, algorithm: Algorithm) -> KernelSpec {
        let profile = ProfileStore::built_in().unwrap().named(profile).unwrap();
        let offer = profile.select(Some(algorithm), Interpolation::Linear, Mode::Fast, None, 16, 2048).unwrap();
        KernelSpec::new(&offer, &profile, offer.texels()[0], Problem::new(9, true), None)
    }

    #[test]
    fn what_is_shipped_holds_where_it_should() {
        let known = KnownFailures::built_in().unwrap();
        let on = |name: &str, platform: &str| DeviceFacts {
            name: name.into(),
            platform: platform.into(),
            kind: DeviceKind::Cpu,
            ..example()
        };
        let (vector, standard) = (spec("cpu", Algorithm::Vector), spec("cpu", Algorithm::Standard));
        let llvmpipe = on("llvmpipe (LLVM 15.0.6, 256 bits)", "rusticl");
        assert!(known.find(&llvmpipe, &vector).unwrap().contains("65535"));
        assert_eq!(known.find(&llvmpipe, &standard), None);
        let intel = on("Intel(R) Xeon(R) Processor", "Intel(R) OpenCL");
        let mut alu = spec("nvidia-kepler-gk110", Algorithm::Alu);
        assert!(known.find(&intel, &alu).is_some());
        alu.build.options.push("-cl-opt-disable".into());
        assert_eq!(known.find(&intel, &alu), None);
        for other in [&vector, &standard, &alu] {
            assert_eq!(known.find(&example(), other), None);
            assert_eq!(known.find(&on("pthread-Intel(R) Xeon(R)", "Portable Computing Language"), other), None);
        }
    }

    #[test]
    fn every_condition_must_hold() {
        let image = spec("default", Algorithm::Standard);
        let facts = example();
        let holds = |conditions: &str| {
            let text = format!("schema = 1\n[[failure]]\n{conditions}\nreason = \"r\"\nsource = \"s\"\n");
            KnownFailures::parse(&text, "f").unwrap().find(&facts, &image).is_some()
        };
        let device = format!("device = {:?}\n", facts.name.to_uppercase());
        assert!(holds(&device));
        for (condition, fits) in [
            ("sampler = [\"image\"]", true),
            ("sampler = [\"buffer\"]", false),
            ("storage = [\"half\"]", true),
            ("algorithm = [\"alu\", \"standard\"]", true),
            ("algorithm = [\"alu\"]", false),
            ("interpolation = [\"nearest\"]", false),
            ("slices = [2, 4]", true),
            ("slices = [16]", false),
            ("type = [\"cpu\"]", false),
            ("driver = \"no such driver\"", false),
            ("platform = \"no such platform\"", false),
        ] {
            assert_eq!(holds(&format!("{device}{condition}")), fits, "{condition}");
        }
    }

    #[test]
    fn malformed_files_say_what_is_wrong() {
        let whole = "schema = 1\n[[failure]]\ndevice = \"x\"\nreason = \"r\"\nsource = \"s\"\n";
        KnownFailures::parse(whole, "f").unwrap();
        for (from, to, words) in [
            ("schema = 1", "schema = 2", "this version reads schema 1"),
            ("device = \"x\"", "", "neither device nor platform nor driver"),
            ("device = \"x\"", "device = \"x\"\nalgorithm = [\"magic\"]", "unknown variant `magic`"),
            ("device = \"x\"", "device = \"x\"\ncolour = 1", "unknown field `colour`"),
            ("\"r\"", "\" \"", "needs a reason"),
            ("source = \"s\"", "", "missing field `source`"),
        ] {
            let message = KnownFailures::parse(&whole.replacen(from, to, 1), "f.toml").unwrap_err().to_string();
            assert!(message.contains(words) && message.contains("f.toml"), "{message}");
        }
    }
}

//! The command line, as a declaration. Of the rest of the crate it knows the words that flags take.

mod bench;
mod center;
mod compare;
mod devices;
mod doctor;
mod info;
mod input;
mod kernel;
mod model;
mod phantom;
mod preprocess;
mod profiles;
mod reconstruct;
mod scan;
mod steps;
mod tune;

pub use bench::BenchArgs;
pub use center::CenterArgs;
pub use compare::CompareArgs;
pub use devices::DevicesArgs;
pub use doctor::DoctorArgs;
pub use info::InfoArgs;
pub use input::InputArgs;
pub use kernel::KernelArgs;
pub use model::ModelArgs;
pub use phantom::PhantomArgs;
pub use preprocess::PreprocessArgs;
pub use profiles::ProfilesAction;
pub use reconstruct::ReconstructArgs;
pub use scan::ScanArgs;
pub use steps::StepArgs;
pub use tune::TuneArgs;

use crate::spectrum::Filter;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::str::FromStr;
use strum::VariantArray;

const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   compared unequal, or a kernel is wrong (bench, doctor)
  2   usage: unknown flag or key, bad value, bad profile
  3   input: missing, corrupt or inconsistent files
  4   device or driver, or no kernel is right on it
  5   output: disk full, permission, not empty
  75  interrupted after a clean stop: every slice that is there is whole; run again with --resume";

/// Filtered back projection of X-ray sinograms and projections on any OpenCL device.
#[derive(Debug, Parser)]
#[command(name = "fbp", version, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reconstruct slices from sinograms or projections
    #[command(alias = "reco", after_help = EXIT_CODES)]
    Reconstruct(Box<ReconstructArgs>),
    /// List OpenCL devices, what they can do, and the profile that each gets
    Devices(DevicesArgs),
    /// List, print or check device profiles
    Profiles {
        #[command(subcommand)]
        action: ProfilesAction,
    },
    /// Print a generated back-projection kernel and its build options; needs no device
    Kernel(KernelArgs),
    /// What each unit of a device allows a kernel, and which limits it; needs no device
    #[command(after_help = "\
Without --profile: the kernel of the paper's section 6.5 on every device with known rates, which is its Table 16.
With it: every kernel of the profiles, beside what was measured. GU/s is 10^9 pixel-projection updates a second.")]
    Model(ModelArgs),
    /// Check this device and driver: image formats, transforms, and every kernel of a profile against known values
    #[command(after_help = EXIT_CODES)]
    Doctor(DoctorArgs),
    /// Check and time the back-projection kernels of a profile on a device
    #[command(after_help = EXIT_CODES)]
    Bench(BenchArgs),
    /// Search the fastest right parameters of the kernels on a device, and write them as a profile
    #[command(after_help = EXIT_CODES)]
    Tune(TuneArgs),
    /// Search the rotation axis, or write trial slices about several
    #[command(after_help = EXIT_CODES)]
    Center(Box<CenterArgs>),
    /// Write what reconstruct would make of sinograms or projections before the filter; needs no device
    #[command(after_help = EXIT_CODES)]
    Preprocess(Box<PreprocessArgs>),
    /// Write analytic sinograms or projections of a phantom
    Phantom(PhantomArgs),
    /// Compare slices with reference slices
    Compare(CompareArgs),
    /// Say what a TIFF file or stack, or an HDF5 file, holds
    Info(InfoArgs),
    /// Print shell completions
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

/// Takes the words of an enum, and lists them in the help.
fn words<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantArray + Copy + Into<&'static str> + FromStr<Err: Error + Send + Sync> + Send + Sync,
{
    PossibleValuesParser::new(T::VARIANTS.iter().map(|&word| word.into())).try_map(|word| T::from_str(&word))
}

/// The filters, of which the first has other names, too.
fn filters() -> impl TypedValueParser<Value = Filter> {
    let name = |&filter: &Filter| PossibleValue::new(<&'static str>::from(filter));
    let mut names: Vec<PossibleValue> = Filter::VARIANTS.iter().map(name).collect();
    names[0] = names[0].clone().aliases(["ramlak", "ram-lak"]);
    PossibleValuesParser::new(names).try_map(|word| Filter::from_str(&word))
}

/// Text in a run file: a string, or a number or list written without quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text(pub String);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Text(String),
            Whole(i64),
            Real(f64),
            List(Vec<Any>),
        }
        fn text(any: Any) -> String {
            match any {
                Any::Text(text) => text,
                Any::Whole(value) => value.to_string(),
                Any::Real(value) => value.to_string(),
                Any::List(list) => list.into_iter().map(text).collect::<Vec<_>>().join(","),
            }
        }
        Any::deserialize(deserializer).map(|any| Text(text(any)))
    }
}

/// One text, or a list of them.
fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Text>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        Many(Vec<Text>),
        One(Text),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::Many(texts) => texts,
        OneOrMany::One(text) => vec![text],
    })
}

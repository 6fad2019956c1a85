//! Declaration of the command line. From the rest of the crate it uses only the enums that flags take as values.

mod batch;
mod bench;
mod center;
mod compare;
mod devices;
mod doctor;
mod examples;
mod help;
mod info;
mod input;
mod kernel;
mod model;
mod phantom;
mod preprocess;
mod profiles;
mod reconstruct;
mod report;
mod scan;
mod selection;
mod steps;
mod trials;
mod tune;
mod values;

pub use batch::BatchArgs;
pub use bench::BenchArgs;
pub use center::CenterArgs;
pub use compare::CompareArgs;
pub use devices::DevicesArgs;
pub use doctor::DoctorArgs;
pub use help::{HelpArgs, ManArgs, Topic};
pub use info::InfoArgs;
pub use input::InputArgs;
pub use kernel::KernelArgs;
pub use model::ModelArgs;
pub use phantom::PhantomArgs;
pub use preprocess::PreprocessArgs;
pub use profiles::ProfilesAction;
pub use reconstruct::ReconstructArgs;
pub use report::ReportArgs;
pub use scan::ScanArgs;
pub use selection::KernelSelectionArgs;
pub use steps::{InputMeasures, StepArgs};
pub use trials::{OF_RUNS, TrialsArgs};
pub use tune::TuneArgs;
pub use values::Text;

use batch::in_batch;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use examples::{after_help, with_exit_codes};
use help::EXIT_CODES;
use input::ScanArg;
use std::ffi::OsString;
use std::path::Path;
use trials::in_trials;

/// Filtered back projection of X-ray sinograms and projections on any OpenCL device.
#[derive(Debug, Parser)]
#[command(name = "fbp", version, after_help = EXIT_CODES, max_term_width = 110, disable_help_subcommand = true)]
// the last of a repeated flag counts; lists and -v add up
#[command(args_override_self = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reconstruct slices from sinograms or projections
    #[command(alias = "reco", after_help = with_exit_codes(examples::RECONSTRUCT))]
    Reconstruct {
        #[command(flatten)]
        scan: ScanArg,
        #[command(flatten)]
        args: Box<ReconstructArgs>,
    },
    /// Reconstruct many scans, one after the other, with a page that shows all of them
    #[command(after_help = with_exit_codes(examples::SCANS), mut_args = in_batch)]
    Batch(Box<BatchArgs>),
    /// List OpenCL devices, their capabilities, and the profile used for each
    #[command(after_help = after_help(examples::DEVICES))]
    Devices(DevicesArgs),
    /// List, print or check device profiles
    #[command(after_help = after_help(examples::PROFILES))]
    Profiles {
        #[command(subcommand)]
        action: ProfilesAction,
    },
    /// Print a generated back-projection kernel and its build options; needs no device
    #[command(after_help = after_help(examples::KERNEL))]
    Kernel(KernelArgs),
    /// Predict the speed limit that each unit of a device sets for a kernel, and name the limiting unit; needs no
    /// device
    ///
    /// Without --profile: the kernel of section 6.5 of the paper, on every device with known rates (Table 16). With
    /// --profile: every kernel of the profiles, next to the measured speed. 1 GU/s is 10^9 updates of a pixel by a
    /// projection per second.
    #[command(after_help = after_help(examples::MODEL))]
    Model(ModelArgs),
    /// Check a device and its driver: image formats, transforms, steps, and every kernel of a profile against a reference
    #[command(after_help = with_exit_codes(examples::DOCTOR))]
    Doctor(DoctorArgs),
    /// Check and time the back-projection kernels of a profile on a device
    #[command(after_help = with_exit_codes(examples::BENCH))]
    Bench(BenchArgs),
    /// Find the fastest correct kernel parameters on a device, and write them as a profile
    #[command(after_help = with_exit_codes(examples::TUNE))]
    Tune(TuneArgs),
    /// Find the rotation axis, or write trial slices for several axes
    #[command(after_help = with_exit_codes(examples::CENTER))]
    Center {
        #[command(flatten)]
        scan: ScanArg,
        #[command(flatten)]
        args: Box<CenterArgs>,
    },
    /// Write slices of one row by several values of one or two flags, side by side in a page
    #[command(after_help = with_exit_codes(examples::TRIALS), mut_args = in_trials)]
    Trials {
        #[command(flatten)]
        scan: ScanArg,
        #[command(flatten)]
        args: Box<TrialsArgs>,
    },
    /// Write the corrected sinograms or projections that reconstruct would filter
    #[command(after_help = with_exit_codes(examples::PREPROCESS))]
    Preprocess {
        #[command(flatten)]
        scan: ScanArg,
        #[command(flatten)]
        args: Box<PreprocessArgs>,
    },
    /// Write an HTML page about a finished run: slices, histogram, axis search, times and run file
    #[command(after_help = with_exit_codes(examples::REPORT))]
    Report(ReportArgs),
    /// Write analytic sinograms or projections of a phantom
    #[command(after_help = after_help(examples::PHANTOM))]
    Phantom(PhantomArgs),
    /// Compare slices with reference slices
    #[command(after_help = after_help(examples::COMPARE))]
    Compare(CompareArgs),
    /// Describe a file or stack of images, or an HDF5 file
    #[command(after_help = after_help(examples::INFO))]
    Info(InfoArgs),
    /// Print shell completions
    Completions {
        /// Shell to write completions for
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands and topics
    Man(ManArgs),
    /// Print help for a command, or explain conventions, exit codes or units
    Help(HelpArgs),
}

/// Parses the command line `words`, of which the first is the program.
///
/// # Errors
/// The mistake in the command line, or the help or the version that it asks for.
pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut cli = Cli::try_parse_from(words).map_err(with_hint)?;
    let input = match &mut cli.command {
        Command::Reconstruct { scan, args } => Some((scan, &mut args.input)),
        Command::Center { scan, args } => Some((scan, &mut args.input)),
        Command::Trials { scan, args } => Some((scan, &mut args.run.input)),
        Command::Preprocess { scan, args } => Some((scan, &mut args.input)),
        _ => None,
    };
    if let Some((scan, input)) = input {
        scan.name(input).map_err(|error| Cli::command().error(ErrorKind::ValueValidation, error))?;
    }
    Ok(cli)
}

/// The same error, with a hint where a shell seems to have put names of files in the place of a glob.
fn with_hint(mut error: clap::Error) -> clap::Error {
    let names = |kind, is: &dyn Fn(&str) -> bool| match error.get(kind) {
        Some(ContextValue::String(word)) => is(word),
        Some(ContextValue::Strings(words)) => words.iter().any(|word| is(word)),
        _ => false,
    };
    let is_file = |word: &str| !word.starts_with('-') && Path::new(word).exists();
    let is_scan = |word: &str| word == "[SCAN]";
    let hint = match error.kind() {
        ErrorKind::UnknownArgument if names(ContextKind::InvalidArg, &is_file) => {
            "the shell has put the names of files in the place of a glob; put the glob in quotes, as in 'scan/p_*.tif'"
        }
        // of two files in the place of a glob, the second is taken for the scan
        ErrorKind::ArgumentConflict
            if [ContextKind::InvalidArg, ContextKind::PriorArg].iter().any(|kind| names(*kind, &is_scan)) =>
        {
            "give the scan once; a glob needs quotes, as in 'scan/p_*.tif'"
        }
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Cli {
        Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn the_last_of_a_repeated_flag_counts() {
        let line = "fbp reconstruct --sinograms a --center 3 --dtype u8 --overwrite --center auto --sinograms b --dtype f32 \
                    --center 300 --overwrite --mask --mask 0.5 -o x -o y";
        let Command::Reconstruct { args, .. } = parsed(line).command else { panic!("{line}") };
        assert_eq!(args.center, Some("300".into()));
        assert_eq!(
            (args.output.as_deref(), args.mask, args.dtype),
            (Some("y"), Some(0.5), Some(crate::sink::Dtype::F32))
        );
        assert!(args.overwrite && args.input.sinograms.is_some_and(|path| format!("{path:?}").contains('b')));
        // lists grow, and -v counts
        let line = "fbp reconstruct --stripes dead --stripes mean -v -v";
        let Command::Reconstruct { args, .. } = parsed(line).command else { panic!("{line}") };
        assert_eq!((args.steps.stripes.len(), args.verbose), (2, 2));
        for line in [
            "fbp center --sinograms a --rows 1 --rows 2 --json --json",
            "fbp preprocess --sinograms a --output a --output b --memory 1G --memory 2G",
            "fbp phantom --size 3 --size 4 --projections 3 --output a --output b",
            "fbp compare a b --tolerance 1 --tolerance 2",
            "fbp devices --json --json",
        ] {
            parsed(line);
        }
        // files that are compared are no flags, and flags that exclude each other still do
        assert!(Cli::try_parse_from(["fbp", "compare", "a", "b", "c"]).is_err());
        assert!(Cli::try_parse_from(["fbp", "center", "-q", "-v"]).is_err());
    }
}

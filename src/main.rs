//! The program: parses the arguments, runs the command, prints an error once and exits with its code.

use clap::CommandFactory;
use fbp::cli::{Cli, Command};
use fbp::commands;
use fbp::error::{Error, INTERRUPTED, Result};
use fbp::report::{self, results};
#[cfg(feature = "hdf5")]
use fbp::source::hdf5;
use fbp::visible::visible;
use nix::sys::signal::{SigSet, Signal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn main() -> ExitCode {
    #[cfg(feature = "hdf5")]
    if std::env::args_os().nth(1).is_some_and(|first| first == hdf5::EXAMINE) {
        return ended(commands::examine_hdf5().and_then(|verdict| results(&verdict)));
    }
    if json_asked() {
        report::failures_as_json();
    }
    let cli = match fbp::cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(answer) => {
            // arguments that the message quotes are quoted in displayable form
            let shown = std::env::args_os().map(|arg| visible(&arg.to_string_lossy()).into_owned().into());
            let answer = fbp::cli::parse(shown).err().unwrap_or(answer);
            return ExitCode::from(report::usage(&answer));
        }
    };
    // with the signal blocked, a write beyond the limit of file sizes fails with an error that names the file
    if let Err(error) = block(&SigSet::from(Signal::SIGXFSZ)) {
        return ended(Err(error));
    }
    #[cfg(feature = "hdf5")]
    if let Ok(program) = std::env::current_exe() {
        hdf5::examine_with(program);
    }
    ended(run(cli))
}

fn ended(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::failure(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Reconstruct { args, .. } => commands::reconstruct(*args, &*cancelled_by_signals()?),
        Command::Batch(args) => commands::batch(*args, &*cancelled_by_signals()?),
        Command::Devices(args) => results(&commands::devices(&args)?),
        Command::Profiles { action } => results(&commands::profiles(&action)?),
        Command::Kernel(args) => results(&commands::kernel(&args)?),
        Command::Model(args) => results(&commands::model(&args)?),
        Command::Doctor(args) => {
            let (text, verdict) = commands::doctor(&args)?;
            results(&text)?;
            verdict
        }
        Command::Bench(args) => {
            let (text, verdict) = commands::bench(&args)?;
            results(&text)?;
            verdict
        }
        Command::Tune(args) => {
            let (text, verdict) = commands::tune(&args, &*cancelled_by_signals()?)?;
            results(&text)?;
            verdict
        }
        Command::Center { args, .. } => {
            let (text, verdict) = commands::center(&args)?;
            results(&text)?;
            verdict
        }
        Command::Trials { args, .. } => results(&commands::trials(*args, &*cancelled_by_signals()?)?),
        Command::Report(args) => commands::report(&args, &*cancelled_by_signals()?),
        Command::Preprocess { args, .. } => results(&commands::preprocess(&args)?),
        Command::Phantom(args) => results(&commands::phantom(&args)?),
        Command::Compare(args) => {
            let (text, verdict) = commands::compare(&args)?;
            results(&text)?;
            verdict
        }
        Command::Info(args) => results(&commands::info(&args)?),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fbp", &mut text);
            results(&String::from_utf8_lossy(&text))
        }
        Command::Man(args) => results(&commands::man(&args)?),
        Command::Help(args) => results(&commands::help(&args)?),
    }
}

/// Reports whether messages, including those about the arguments, are to be JSON.
fn json_asked() -> bool {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    args.iter().any(|arg| arg == "--progress=json")
        || args.windows(2).any(|pair| pair[0] == "--progress" && pair[1] == "json")
}

/// Blocks signals in this thread and in threads that it starts later. They are blocked rather than ignored or handled,
/// because compilers in drivers replace the handlers of a process with their own.
fn block(signals: &SigSet) -> Result<()> {
    signals.thread_block().map_err(|e| Error::Internal(format!("signals cannot be blocked: {e}")))
}

/// Returns a flag that is set by the first signal; the second signal ends the program at once, leaving only temporary
/// files.
fn cancelled_by_signals() -> Result<Arc<AtomicBool>> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1]);
    block(&signals)?;
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED.into());
            }
        }
    });
    Ok(cancelled)
}

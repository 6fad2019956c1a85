//! Messages of `fbp tune`.

use crate::error::{BoxedError, messages};
use crate::kernel::{Interpolation, Mode};

messages! {
    /// Errors before a search, and of the profile that it leads to.
    pub(super) enum TuneCommandError: Usage {
        NoLogDirectory =>
            "there is no directory for the log of measurements"; "set FBP_CACHE_DIR, XDG_CACHE_HOME or HOME",
        OtherValues => "reads back with other values than were written"; "please report this bug in fbp",
    }
}

messages! {
    /// Errors of the file of the profile.
    pub(super) enum TunedProfileOutputError: Output {
        Unwritable { error: BoxedError } =>
            "the tuned profile cannot be written: {error}"; "choose another --output",
    }
}

messages! {
    /// A device that failed during a search.
    pub(super) enum TuneDeviceError: Device {
        Failed { error: String } => "{error}; all measurements so far are in the log"; "continue with --resume",
    }
}

messages! {
    /// A search that was stopped by a signal.
    pub(super) enum StoppedTuneError: Interrupted {
        SearchesLeft { finished: usize, searches: usize } =>
            "interrupted: {finished} of {searches} searches are done, all measurements are in the log";
            "continue with --resume",
        NoProfile => "interrupted: no profile was written"; "start again",
    }
}

messages! {
    /// A search without a result.
    pub(super) enum FailedTuneError: CheckFailed {
        NoKernel { interpolation: Interpolation, mode: Mode, device: String } =>
            "no kernel for {interpolation} {mode} fits and is correct on {device}";
            "try another --profile, --size or --algorithm",
    }
}

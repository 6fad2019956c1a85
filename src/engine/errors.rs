//! Errors and warnings of a run and its devices.

use crate::error::messages;
use crate::least_squares::SliceMethod;

messages! {
    /// Why nothing is left of the host's memory for a run.
    pub(super) enum HostBudgetError: Usage {
        CachedTooLarge { all: String, cached: String } =>
            "--memory: {all} is not enough: chunks of the input that are decoded or kept take {cached}"; "give more",
    }
}

messages! {
    /// Why a stage does not start.
    pub(super) enum StageError: Memory {
        NoThreads { what: String, error: String } =>
            "cannot start the threads that {what}: {error}";
            "allow more threads (ulimit -u), or fewer with RAYON_NUM_THREADS",
    }
}

messages! {
    /// Why a run ends before it has begun.
    pub(super) enum WaitError: Interrupted {
        Stopped => "interrupted while waiting for files, nothing was written"; "run again",
    }
}

messages! {
    /// Which of several devices does not take part; its error says what to do.
    pub(super) enum LostDeviceWarning: Warning {
        NotUsed { label: String, error: String } => "{label} is not used, others do its share: {error}",
        Failed { label: String, error: String } => "{label} failed, other devices take over its slices: {error}",
    }
}

messages! {
    /// Why an engine cannot find slices by least squares.
    pub(super) enum SolverError: Memory {
        InParts { device: String } =>
            "{device}: its memory holds no whole slice with its sinogram, which --method other than fbp needs";
            "give more --device-memory, or another --device",
    }
}

messages! {
    /// Why rows are not for least squares.
    pub(super) enum CutOffError: Input {
        Sample { method: SliceMethod, percent: f64 } =>
            "the detector cuts the sample off: values at the ends of rows are {percent:.0} % of the largest ones, where \
             --method {method} is worse than filtered back projection";
            "give --interior, with which values have an offset, or --method fbp; of a half acquisition, --extended-field",
    }
}

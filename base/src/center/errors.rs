//! Errors of the search of the axis.

use crate::error::messages;

messages! {
    /// Errors of the method or the range of a search.
    pub(super) enum AxisMethodError: Usage {
        Unknown { word: String, names: String } => "`{word}` is not a method to find the axis"; "use one of {names}",
        Weighted { names: String } => "`weighted` is not a method that can be requested"; "use one of {names}",
        Range { low: f64, high: f64, last: f64, narrowest: f64 } =>
            "the search range {low} to {high} must lie within bins 0 to {last} and cover at least {narrowest} bins",
    }
}

messages! {
    /// Why a scan does not suit a method.
    pub(super) enum AxisScanError: Input {
        NoHalfTurn { projections: usize, coverage: f64 } =>
            "vo: needs 180 degrees, but there are {projections} projections over {coverage:.2} degrees";
            "try the method sweep",
        NoOpposite { first: String, last: String } =>
            "registration of mirrored projections: no two of the projections, {first} to {last} degrees, are 180 \
             degrees apart";
            "try the method sweep, or check --angles and --overall-angle",
        GapInTurn { first: String, last: String, gap: String } =>
            "--center auto: about an inclined axis, only the mean of a whole turn is its own mirror image; projections are from \
             {first} to {last} degrees, with {gap} degrees between two that follow each other, and 5 are the most";
            "give --center X, or check --angles and --overall-angle; fbp trials --vary center=A..B:STEP shows slices about several",
    }
}

messages! {
    /// Why the axis is not certain, by the verdict on it.
    pub(super) enum AxisVerdictError: Input {
        Railed { results: String } =>
            "rotation axis: railed: the best position is at the end of the search range; results: {results}; \
             the axis may lie beyond it";
            "widen --search of fbp center, or give --center in bins",
        Flat { results: String } =>
            "rotation axis: flat: no position is better than any other; results: {results}; the sampled rows may \
             be empty";
            "choose --rows with a sample, check --flats and -log, or give --center in bins",
        Ambiguous { results: String, trials: String, choice: String } =>
            "rotation axis: ambiguous: there is no single best position; results: {results}";
            "next: look at trial slices with {trials}; or take {choice}",
        Uncertain { results: String, trials: String, choice: String } =>
            "rotation axis: uncertain: rows, projections or parts of a slice disagree about it; results: {results}";
            "next: look at trial slices with {trials}; or take {choice}",
        Angles { results: String } =>
            "rotation axis: angles: the first and last projections contradict the angles; results: {results}";
            "give --overall-angle 360 or 180 as scanned, or correct --angles",
    }
}

//! Errors of regions, of the extended field, and of lists of numbers.

use crate::error::messages;

messages! {
    /// Errors of `--roi`.
    pub(super) enum RoiError: Usage {
        Malformed { text: String } =>
            "--roi: `{text}` is not X,Y,W,H"; "give four whole numbers of pixels with W and H above 0",
    }
}

messages! {
    /// Why a scan has no extended field.
    pub(super) enum ExtendedFieldError: Usage {
        Gap { gap: f64 } =>
            "--extended-field: needs a 360-degree scan, but there is a gap of {gap:.2} degrees between projections";
            "give --overall-angle 360, or --angles",
        Overlap { center: String, last: f64, overlap: f64, least: f64 } =>
            "--extended-field: with the axis at {center} of 0..={last}, opposite projections share {overlap:.1} bins, \
             but must share at least {least}";
            "check --center",
    }
}

messages! {
    /// Errors of a text of numbers.
    pub(super) enum NumbersError: Input {
        NotANumber { what: String, line: usize, text: String } =>
            "{what}, line {line}: `{text}` is not a finite number"; "write one number per line",
    }
}

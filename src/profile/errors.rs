//! Errors of profiles: what is illegal in one, and why none can be chosen.

use crate::error::{BoxedError, messages};
use crate::kernel::{Algorithm, Interpolation, KernelRuleError, Mode, SLICE_MODES};

messages! {
    /// Illegal values of a profile.
    pub(super) enum ProfileCheckError: Usage {
        Schema { schema: u32, read: u32 } =>
            "schema is {schema}, this version reads schema {read}";
            "run fbp tune again, or rename keys as in CHANGELOG.md",
        Name { name: String } => "name `{name}` must be lower-case letters, digits and dashes",
        Source => "source must say where the numbers come from",
        Architecture { architecture: String, known: String } =>
            "match.architecture `{architecture}` is not known; it is one of {known}",
        PlainName { key: &'static str, name: String } => "hardware.{key} `{name}` must be a plain name",
        MatrixLanes { lanes: u32 } => "hardware.matrix-lanes {lanes} must be 16 or 64, with a matrix-function",
        TwoMatrixUnits =>
            "hardware: matrix and matrix-function are for different matrix units"; "leave one of them out",
        StepSizes { error: BoxedError } => "[step-sizes]: {error}",
        AutoLimits { interpolation: Interpolation, mode: Mode } =>
            "{interpolation} {mode} needs exactly one [[auto]] entry without up-to and up-to-size, and others with \
             different up-to or up-to-size",
        AutoRule { interpolation: Interpolation, mode: Mode, algorithm: Algorithm } =>
            "[[auto]] for {interpolation} {mode} chooses {algorithm}, which does not interpolate linearly";
            "choose another algorithm, and give --algorithm {algorithm} where it is wanted",
        AutoSlices { interpolation: Interpolation, mode: Mode, algorithm: Algorithm, slices: u32 } =>
            "[[auto]] for {interpolation} {mode} chooses {algorithm}, but no [[kernel]] of this family has {slices} \
             slices";
            "add one, or change `slices`",
        ServesNothing { number: usize } =>
            "[[kernel]] number {number}: interpolation, mode and slices need at least one value each",
        Slices { number: usize, slices: u32 } =>
            "[[kernel]] number {number}: slices {slices} is not one of {SLICE_MODES:?}",
        KernelRule { number: usize, error: KernelRuleError } => "[[kernel]] number {number}: {error}",
        OtherInterpolation { number: usize, algorithm: Algorithm, interpolation: Interpolation } =>
            "[[kernel]] number {number}: a kernel of {algorithm} has no {interpolation} interpolation";
            "leave it out of `interpolation`",
        Clash { interpolation: Interpolation, mode: Mode, slices: u32 } =>
            "two [[kernel]] entries serve {interpolation} {mode} with {slices} slices"; "leave one of them out",
        TwoFamilies => "[[kernel]] names more than one family"; "write one [[kernel]] for each",
        NoFamily { tables: String } => "[[kernel]] names no family"; "add {tables}",
        Rate { name: &'static str, rate: f64 } => "[throughput] {name} = {rate} must be more than 0",
        UnitsOrClock => "[throughput] compute-units and clock-mhz must be more than 0",
        Sfu { sfu: f64, special: String } => "[throughput] sfu = {sfu} does not go with special = \"{special}\"",
        NegativeRate => "[throughput] device-memory, texels, matrix and half-conversions must not be negative",
        Residency => "[throughput.residency] every value must be more than 0",
    }
}

messages! {
    /// Why a profile, or a kernel of it, cannot be chosen.
    pub(super) enum ProfileChoiceError: Usage {
        Unknown { selector: String, names: String } =>
            "--profile: there is no profile `{selector}`"; "choose one of {names}, or give the path of a file",
        Unreadable { error: String } => "cannot be read: {error}"; "check the path and the permissions",
        NoneMatches => "no profile matches this device, not even the default"; "name one with --profile",
        NoKernel { profile: String, algorithm: Algorithm, interpolation: Interpolation, mode: Mode, slices: u32 } =>
            "profile {profile} has no {algorithm} kernel for {interpolation} {mode} with {slices} slices per pass; \
             it has none for that algorithm, interpolation and mode";
            "choose another --slices-per-pass, --algorithm or --profile",
        OtherSlices {
            profile: String, algorithm: Algorithm, interpolation: Interpolation, mode: Mode, slices: u32, has: Vec<u32>
        } =>
            "profile {profile} has no {algorithm} kernel for {interpolation} {mode} with {slices} slices per pass; \
             it has {has:?}";
            "choose another --slices-per-pass, --algorithm or --profile",
    }
}

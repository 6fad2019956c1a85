//! Errors in flags and run files.

use crate::error::{BoxedError, messages};
use crate::kernel::Interpolation;
use crate::sink::Dtype;

messages! {
    /// Errors of the value of a flag about the computation.
    pub(super) enum RecipeError: Usage {
        NoInput => "--sinograms, --projections, --hdf5 or --raw: missing"; "give one of them",
        BinningOutside { binning: usize, most: usize } => "--binning: {binning} is not a number of bins, 1 to {most}",
        UnknownMethod { error: BoxedError } => "--center: {error}",
        MalformedCenter { text: String, methods: String } =>
            "--center: `{text}` is not a finite number of bins, two of them (in the first and the last row), auto or \
             auto:METHOD ({methods})",
        NoAngularRange =>
            "--overall-angle: 0 degrees is not a range"; "give the angular range of the scan, such as 180",
        TiltByOtherMethod =>
            "--tilt: auto is found by the likelihood alone"; "give --center auto or auto:likelihood",
        TiltWithoutAxis => "--tilt: auto is found with the axis"; "needs --center auto",
        TiltElsewhere =>
            "--tilt: auto is for fbp reconstruct --center auto"; "give the degrees that fbp center prints",
        CentersAndTilt => "--center and --tilt: two centres say the tilt already"; "give one of them",
        CentersOfSinograms =>
            "--center: two centres are those of a tilted axis, whose projections are rotated";
            "give --projections or --hdf5",
        InclinationOutside { degrees: f64, most: f64 } =>
            "--lamino-angle: {degrees} is not within -{most} to {most} degrees, 0 for tomography";
            "give the angle by which the rotation axis is inclined from upright to the beam",
        NotInclined { flag: &'static str, advice: &'static str } =>
            "{flag} and --lamino-angle: not for an inclined axis"; "give {advice}",
        SlabOfUpright => "--slab: is for an inclined axis"; "give --lamino-angle, or --rows",
        SizeOutside { size: usize, most: usize } => "--size: {size} is not within 1..={most}",
        CutoffOutside { cutoff: f64 } =>
            "--filter-cutoff: {cutoff} is not above 0 and at most 1 (the Nyquist frequency)",
        AccuracyWithoutExact { interpolation: Interpolation } =>
            "--accuracy: {interpolation} interpolation has no error bound to choose"; "give --interpolation exact, too",
        AccuracyOutside { accuracy: f64, least: f64, most: f64 } =>
            "--accuracy: {accuracy} is not within {least:e} (the limit of single precision) to {most}; it is the \
             relative root mean square error of a slice",
        UnknownSlices { text: String, modes: &'static [u32] } =>
            "--slices-per-pass: `{text}` is not a number of slices"; "give auto or one of {modes:?}",
        UnknownAlgorithm { error: BoxedError } => "--algorithm: {error}",
        RangeOfFloats { flag: &'static str, dtype: Dtype } =>
            "--{flag}: says which values become the smallest and largest integer, but {dtype} has the values as \
             they are";
            "add --dtype u16 or u8, or leave --{flag} out",
        PercentilesOutside { low: f64, high: f64 } => "--percentile: {low},{high} is not within 0,100",
        MaskNotPositive { mask: f64 } => "--mask: {mask} is not a fraction above 0",
        PartsOutside { parts: u32, most: u32 } => "--hdf5-parts: {parts} is not a number from 1 to {most}",
    }
}

messages! {
    /// Errors of flags about the parts of a scan.
    pub(super) enum StitchingError: Usage {
        Distance { flag: &'static str, text: String } =>
            "{flag}: `{text}` is not a distance of parts";
            "give auto, a number of pixels or, for --z-step, a length such as 1.2mm; or one for each pair of parts, separated \
             by commas",
        Count { flag: &'static str, numbers: usize, pairs: usize } =>
            "{flag}: {numbers} numbers for {pairs} pairs of neighbouring parts"; "give one number, or one for each pair",
        LengthOfBins => "--overlap: a length is not a number of bins"; "give the bins, or auto",
        WithoutPart { flag: &'static str, data: String } =>
            "--{flag}: `{data}` is the same for all parts";
            "leave it out for HDF5 files, or write {{part}} where the name of a part belongs, as in --projections \
             '{{part}}/proj'",
    }
}

messages! {
    /// Why the text of a flag is not a size, a time or an angle.
    pub(super) enum QuantityError: Usage {
        NotASize { flag: String, text: String } =>
            "{flag}: `{text}` is not a size"; "write a number of bytes or one with K, M, G or T, such as 8G",
        NotATime { flag: String, text: String } =>
            "{flag}: `{text}` is not a time above 0 and up to 7 days";
            "write it like 90s, 10m or 1h, a bare number is seconds",
        NotFinite { flag: &'static str, angle: f64 } => "{flag}: {angle} is not a finite number",
        AngleOutside { flag: &'static str, angle: f64, most: f64 } =>
            "{flag}: {angle:?} is not within -{most}..{most} degrees",
    }
}

messages! {
    /// Errors of a range of slices or projections.
    pub(super) enum SpanError: Usage {
        Malformed { flag: String, text: String } =>
            "{flag}: `{text}` is not a range"; "write A..B (without B), A..=B, A..B:STEP or one number",
        NoStep { flag: String, text: String } =>
            "{flag}: `{text}` has a step of 0"; "write A..B (without B), A..=B, A..B:STEP or one number",
        Empty { flag: String, text: String } =>
            "{flag}: `{text}` is empty"; "write A..B (without B), A..=B, A..B:STEP or one number",
        ColonBetweenNumbers { flag: String, text: String, range: String } =>
            "{flag}: `{text}` has no `..`: a colon alone could mean a range or a step"; "write {range}",
        ColonBetweenWords { flag: String, text: String } =>
            "{flag}: `{text}` has no `..`: a colon alone could mean a range or a step";
            "write A..B, or A..B:STEP with a step",
        PastEnd { flag: String, start: usize, end: usize, length: usize, items: String } =>
            "{flag}: {start}..{end} goes past the {length} {items}"; "give a range within 0..{length}",
    }
}

messages! {
    /// Errors of a run file, or with flags that are to become one.
    pub(super) enum RunFileError: Usage {
        Malformed { path: String, error: String } => "--config {path}: {error}"; "correct the run file",
        MisspeltKey { path: String, key: String, nearest: String } =>
            "--config {path}: unknown key `{key}`"; "did you mean `{nearest}`?",
        UnknownKey { path: String, key: String } =>
            "--config {path}: unknown key `{key}`";
            "keys are the flags' names without dashes in front, see fbp reconstruct --help",
        UnreadableFlags { error: BoxedError } =>
            "the flags cannot be read: {error}"; "write their values as the help says",
        Unwritable { error: BoxedError } =>
            "the run cannot be written as TOML: {error}"; "leave --save-config out",
    }
}

messages! {
    /// A broken rule about flags that exclude or need each other.
    pub(super) enum RuleError: Usage {
        Together { flag: &'static str, other: &'static str, reason: &'static str, advice: &'static str } =>
            "--{flag} and --{other}: {reason}"; "{advice}",
        Alone { flag: &'static str, needed: String, reason: &'static str, advice: &'static str } =>
            "--{flag}: needs --{needed}; {reason}"; "{advice}",
    }
}

messages! {
    /// Errors of the flags of `--method`.
    pub(super) enum SolverFlagError: Usage {
        Unused { flag: &'static str, method: String, by: &'static str } =>
            "{flag}: --method {method} does not use it"; "leave it out, or give --method {by}",
        Outside { flag: &'static str, value: f64, most: f64 } => "{flag}: {value} is not within 0 (without it) to {most}",
    }
}

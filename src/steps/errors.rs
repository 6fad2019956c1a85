//! Errors and warnings of the steps.

use crate::error::messages;

messages! {
    /// Errors of the flag of a step.
    pub(super) enum StepFlagError: Usage {
        OfProjections { flag: String } => "--{flag}: works on projections"; "give --projections or --hdf5",
        AirWithoutLight { flats: &'static str } =>
            "--normalize-air: divides transmissions"; "it needs {flats} or --minus-log",
        MalformedAir { text: String } =>
            "--normalize-air: `{text}` is neither LEFT,RIGHT, bins of which one may be 0, nor X,Y,W,H in pixels",
        AirRegionOfSinograms =>
            "--normalize-air: X,Y,W,H is a region of projections"; "give --projections or --hdf5",
        AirSidesOutside { left: usize, right: usize, bins: usize, rows: usize } =>
            "--normalize-air: {left} and {right} bins do not fit into projections of {bins}x{rows}";
            "give a part of them",
        AirRegionOutside { x: usize, y: usize, width: usize, height: usize, bins: usize, rows: usize } =>
            "--normalize-air: {width}x{height} pixels at {x},{y} do not fit into projections of {bins}x{rows}";
            "give a part of them",
        EigenWithoutFlats => "--eigen-flats: there are no flats"; "give --flats",
        EigenOfMedian =>
            "--eigen-flats: adds components to the mean of the flats, and --field-mode median takes their median";
            "leave one of them out",
        MalformedEigenFlats { text: String, most: usize } =>
            "--eigen-flats: `{text}` is not a number of components";
            "give 0 to {most}, or auto, or nothing; an argument after it is taken as the number: write others before it",
        NoDatasets =>
            "--beam-current: there is no such file, and only an HDF5 scan has datasets"; "name a text file of numbers",
        CurrentWithoutLight { flats: &'static str } =>
            "--beam-current: scales transmissions"; "it needs {flats} or --minus-log",
        DoubleFlatWithoutLight { flats: &'static str } =>
            "--double-flat: divides transmissions"; "it needs {flats} or --minus-log",
        MalformedDoubleFlat { text: String, most: f64 } =>
            "--double-flat: `{text}` is not SIGMA";
            "give pixels above 0 and up to {most}, or all, or nothing; an argument after it is taken as SIGMA: write others before it",
        MalformedHardening { text: String, count: usize, most: f64 } =>
            "--beam-hardening: `{text}` is not A2,A3,...";
            "give 1 to {count} factors of the square, the cube and so on, each within -{most}..{most}",
        HardeningOfTransmissions =>
            "--beam-hardening: needs line integrals, and --no-minus-log leaves transmissions"; "leave one of them out",
        ScaleWithoutDarks => "--dark-scale: needs --darks, whose level it scales",
        NoDarkFields => "--dark-scale: there are no dark fields to scale"; "give --darks",
        ScaleOutside { scale: f64 } => "--dark-scale: {scale} is not a factor, 0 to 1e6",
        MalformedOutliers { text: String, largest: usize } =>
            "--remove-outliers: `{text}` is not SIZE,THRESHOLD or SIZE,THRESHOLD,both";
            "give an odd number of pixels, 3 to {largest}, and counts from 0 on",
        MalformedTilt { text: String } => "--tilt: `{text}` is not a number of degrees, such as 0.25, or auto",
        MalformedDistortion { text: String } =>
            "--distortion: `{text}` is neither a file of coefficients nor two images of positions, X,Y";
            "name one or two files, with ,repeat to repeat the outermost pixels beyond the detector",
        TiltOutside { flag: String, degrees: f64, most: f64 } =>
            "{flag}: {degrees} is not within -{most}..{most} degrees"; "rotate the projections beforehand",
    }
}

messages! {
    /// Why a distortion cannot be corrected.
    pub(super) enum DistortionError: Usage {
        OtherDetector { flag: String, width: usize, height: usize, bins: usize, rows: usize } =>
            "{flag}: positions of {width}x{height} pixels are not those of a detector of {bins}x{rows}";
            "give a position for each pixel of the projections",
        NoMemory { flag: String, needed: String, free: String } =>
            "{flag}: the positions of all pixels need {needed} of memory, but {free} is free";
            "free some, or bin with --binning",
        Beyond { flag: String, count: usize, all: usize, farthest: f64, bins: usize, rows: usize } =>
            "{flag}: {count} of {all} pixels would have been seen up to {farthest:.1} pixels beyond the detector of \
             {bins}x{rows}";
            "give the distortion of this detector, its centre counted from the first pixel of the projections, or add \
             ,repeat to repeat the outermost pixels",
    }
}

messages! {
    /// Errors of the flags of the phase filter.
    pub(super) enum PhaseError: Usage {
        UnknownFilter { name: String } => "--phase: `{name}` is not one of paganin",
        WithoutPhase { flag: &'static str } => "{flag}: belongs to --phase paganin, which is missing",
        MissingFlags { missing: String } =>
            "--phase: also needs {missing}: energy in keV, lengths with units such as 50mm and 0.65um, ratio \
             delta / beta",
        MissingFlag { flag: &'static str, what: &'static str } => "--phase: also needs {flag}: {what}",
        NoDistance => "--phase: also needs --distance from sample to detector, such as 50mm",
        NoPixelSize => "--phase: also needs --pixel-size with its unit, such as 0.65um",
        NotPositive { flag: &'static str, value: f64, what: &'static str } =>
            "{flag}: {value} is not {what} above 0"; "give a larger number",
        NoUnit { length: String } => "--distance: `{length}` has no unit"; "write it like 50mm or 0.05m",
        TooLong { length: f64, most: f64 } =>
            "--phase: energy, distance, pixel size and ratio give a filter of {length:.3e} pixels, more than {most}";
            "check their units",
        MalformedUnsharp { text: String } =>
            "--unsharp: `{text}` is not SIGMA,AMOUNT"; "give pixels above 0 and a factor from 0 on, both up to 1000",
    }
}

messages! {
    /// Why projections cannot be corrected.
    pub(super) enum FieldError: Input {
        NoMemory { flats: String, width: usize, height: usize, needed: String, free: String } =>
            "{flats}: flats and darks of {width}x{height} need {needed} of memory, but {free} is free";
            "free some, or bin with --binning",
        NoCurrent { title: String, projection: usize, current: f64 } =>
            "{title}: the current of projection {projection} is {current}, not a number above 0";
            "leave the projection out with --exclude, or correct the number",
        OddCurrent { title: String, projection: usize, current: f64, of_flats: f64 } =>
            "{title}: the current of projection {projection}, {current}, is not within 1e-6 to 1e6 times that of the \
             flats, {of_flats}";
            "give currents of one unit, or leave the projection out with --exclude",
        TooFewFlats { title: String, frames: usize, count: usize, most: usize } =>
            "{title}: {frames} flats vary in at most {most} components, but --eigen-flats asks for {count}";
            "give more flats, or ask for fewer",
        NoMemoryForComponents { count: usize, width: usize, height: usize, needed: String, free: String } =>
            "--eigen-flats: {count} components of {width}x{height} need {needed} of memory, but {free} is free";
            "free some, ask for fewer, or bin with --binning",
        NoMemoryForMean { width: usize, height: usize, needed: String, free: String } =>
            "--double-flat: the mean of projections of {width}x{height} needs {needed} of memory, but {free} is free";
            "free some, choose rows with --rows, or bin with --binning",
        OtherSize { stack: String, width: usize, height: usize, bins: usize, rows: usize } =>
            "{stack}: its frames are {width}x{height}, the projections {bins}x{rows}";
            "both must have the same size and detector region",
        NotBrighter { flats: String, flat: f64, darks: String, dark: f64 } =>
            "{flats}: the flat fields, with a mean of {flat:.1}, are not brighter than the dark fields, {dark:.1}, of \
             {darks}: they are exchanged, or not those of this scan";
            "exchange them, or give those of the scan",
        NotBrighterThanScaled { flats: String, flat: f64, darks: String, dark: f64, scale: f32 } =>
            "{flats}: the flat fields, with a mean of {flat:.1}, are not brighter than the dark fields, {dark:.1}, of \
             {darks}: they are exchanged, or not those of this scan";
            "exchange them, or give those of the scan, or give another --dark-scale than {scale}",
        NoLight { dead: u64, all: u64 } =>
            "the flat fields are not above the dark fields in {dead} of {all} pixels of the rows to reconstruct, so \
             more than half of all values would be replaced";
            "check that --flats and --darks are those of this scan, or choose rows in the beam with --rows",
        MostReplaced { replaced: u64, values: u64, non_positive: u64, dead: u64, non_finite: u64 } =>
            "{replaced} of {values} values were replaced, which is more than half: {non_positive} transmissions at or \
             below 0, {dead} where the flat is not above the dark, {non_finite} not finite, so what was written says \
             nothing of the sample";
            "check that --flats and --darks are those of this scan",
    }
}

messages! {
    /// Reasons to doubt the values of flags, or flat and dark fields.
    pub(super) enum StepWarning: Warning {
        OddFrames { stack: String, frames: String, usual: f64 } =>
            "{stack}: the mean of {frames} is far from that of the other frames, {usual:.1}";
            "leave such frames out, or give --field-mode median, which single frames do not change",
        OddEnergy { energy: f64 } =>
            "--energy-kev: {energy} keV is no usual energy of X-rays, 1 to 1000 keV"; "give keV: 20 keV are 20000 eV",
        SmallRatio { ratio: f64, inverse: f64 } =>
            "--delta-beta: {ratio} is below 1, but for X-rays delta is much larger than beta";
            "give delta / beta, such as 300; the inverse is {inverse:.4}",
        ShortFilter { length: f64 } =>
            "--phase: the filter has a length of {length:.3} pixels, which changes hardly anything; usual are 0.2 \
             to 100";
            "check --energy-kev, --distance, --pixel-size and --delta-beta, and their units",
        LongFilter { length: f64 } =>
            "--phase: the filter has a length of {length:.3} pixels, which leaves hardly any details; usual are 0.2 to \
             100";
            "check --energy-kev, --distance, --pixel-size and --delta-beta, and their units",
    }
}

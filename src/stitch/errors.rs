//! Errors of the parts of a scan.

use crate::error::messages;

messages! {
    /// Why parts do not become one scan.
    pub(super) enum StitchError: Input {
        Width { first: String, bins: usize, other: String, width: usize } =>
            "--stack: {first} has {bins} bins and {other} has {width}";
            "give parts by the same detector with the same region of interest",
        Height { first: String, rows: usize, other: String, height: usize } =>
            "--side-by-side: {first} has {rows} rows and {other} has {height}"; "give parts with the same rows",
        Projections { flag: &'static str, first: String, count: usize, other: String, others: usize } =>
            "--{flag}: {first} has {count} projections and {other} has {others}";
            "give parts with the same angles; leave out the surplus of one in its own files",
        Angles { flag: &'static str, first: String, other: String, projection: usize, one: f64, two: f64 } =>
            "--{flag}: projection {projection} is at {one:.4} degrees in {first} and at {two:.4} in {other}, more than a \
             quarter of a bin apart at the ends of a row";
            "give parts with the same angles, or --angles FILE with those of all if these are wrong",
        PixelSize { flag: &'static str, first: String, one: f64, other: String, two: f64 } =>
            "--{flag}: {first} has pixels of {one:.4e} m and {other} of {two:.4e} m";
            "give parts by the same detector and optics",
        Shifts { flag: &'static str, part: String } =>
            "--{flag}: {part} shifts the axis in each projection, which is another shift in each part";
            "give --center-shifts FILE with those of all, or correct the parts one by one with fbp preprocess",
        Fields { flag: &'static str, with: String, without: String } =>
            "--{flag}: {with} has flat fields and {without} has none";
            "give --flats and --darks with {{part}} in their value, or flats for all parts",
        Gap {
            flag: &'static str, first: String, second: String, pixels: usize, unit: &'static str,
            instead: &'static str,
        } =>
            "--{flag}: {second} begins {pixels} {unit} beyond the end of {first}";
            "correct {instead}; parts may touch, but not leave a gap",
        Order { first: String, second: String } =>
            "--stack: {second} does not lie further in the direction of the other parts than {first}";
            "give the parts in the order of their heights, or other steps with --z-step",
        Thrice { flag: &'static str, first: String, third: String } =>
            "--{flag}: {first} and {third} overlap although another part lies between them"; "leave out the part between them",
        NoOverlap { overlap: f64, bins: usize } =>
            "--overlap: {overlap} is more than the {bins} bins of a part"; "give the bins that two parts share",
    }
}

messages! {
    /// Why a length does not become a number of rows.
    pub(super) enum StitchFlagError: Usage {
        NoPixelSize => "--z-step: the pixel size is not known, so a length is no number of rows";
            "give --pixel-size with a unit, or the step in rows",
        NoUnit { step: String } => "--z-step: {step} has no unit of length"; "write it like 1.2mm",
    }
}

messages! {
    /// Why an overlap is not found.
    pub(super) enum OverlapError: Input {
        TooSmall {
            flag: &'static str, first: String, second: String, pixels: usize, unit: &'static str,
            instead: &'static str,
        } =>
            "--{flag}: {first} and {second} have only {pixels} {unit}, too few to find their overlap";
            "give {instead}",
        Unlike {
            flag: &'static str, first: String, second: String, likeness: f64, place: &'static str,
            instead: &'static str,
        } =>
            "--{flag}: {first} and {second} share no {place} that look alike: where they differ least, their likeness is \
             {likeness:.2} of what noise leaves";
            "check their order and that they overlap, or give {instead}",
        Faint { flag: &'static str, first: String, second: String, instead: &'static str } =>
            "--{flag}: {first} and {second} have no structure above their noise to find their overlap by";
            "give {instead}",
        Ambiguous { flag: &'static str, first: String, second: String, candidates: String } =>
            "--{flag}: {first} and {second} look alike in several places, the best ones are {candidates}";
            "give the right one",
        Uncertain {
            flag: &'static str, first: String, second: String, found: String, uncertainty: f64,
            instead: &'static str,
        } =>
            "--{flag}: {first} and {second} have too little structure to find their overlap: {found} +- {uncertainty:.1}";
            "give {instead}",
    }
}

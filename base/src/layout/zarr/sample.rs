//! Names of sample types.

use super::group::ZarrVersion;
use crate::layout::SampleType;

/// Sample types with their names in version 2, without the byte order, and in version 3.
const NAMES: [(SampleType, &str, &str); 11] = [
    (SampleType::U8, "u1", "uint8"),
    (SampleType::U16, "u2", "uint16"),
    (SampleType::U32, "u4", "uint32"),
    (SampleType::U64, "u8", "uint64"),
    (SampleType::I8, "i1", "int8"),
    (SampleType::I16, "i2", "int16"),
    (SampleType::I32, "i4", "int32"),
    (SampleType::I64, "i8", "int64"),
    (SampleType::F16, "f2", "float16"),
    (SampleType::F32, "f4", "float32"),
    (SampleType::F64, "f8", "float64"),
];

/// Returns the sample type of this name, and whether a name of version 2 says that samples are big-endian.
pub(super) fn parse(name: &str, version: ZarrVersion) -> Option<(SampleType, bool)> {
    let plain = name.trim_start_matches(['<', '>', '|']);
    let named = |(_, second, third): &&(SampleType, &str, &str)| match version {
        ZarrVersion::V2 => *second == plain,
        ZarrVersion::V3 => *third == plain,
    };
    NAMES.iter().find(named).map(|(sample, ..)| (*sample, name.starts_with('>')))
}

/// Returns the name of a sample type, with the byte order if the version has it there.
pub(super) fn name(sample: SampleType, big_endian: bool, version: ZarrVersion) -> String {
    let names = NAMES.iter().find(|(known, ..)| *known == sample);
    let (second, third) = names.map_or(("", ""), |(_, second, third)| (second, third));
    let order = match (sample.bytes(), big_endian) {
        (1, _) => "|",
        (_, true) => ">",
        (_, false) => "<",
    };
    match version {
        ZarrVersion::V2 => format!("{order}{second}"),
        ZarrVersion::V3 => third.to_owned(),
    }
}

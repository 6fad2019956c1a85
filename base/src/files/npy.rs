//! NumPy files (`.npy`): their headers, and lists of numbers in them.

use super::errors::NpyError;
use half::f16;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Last bytes of a NumPy file that fbp wrote.
pub const OWN_END: [u8; 8] = *b"fbp-npy1";
/// Headers are padded so that values begin at a multiple of this.
const ALIGNMENT: usize = 64;

pub(super) fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Header of a NumPy file, as NumPy's format specification describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// Type of a value: byte order (`<`, `>` or `|`), kind and number of bytes, such as `<f4`.
    pub kind: String,
    /// True if the first index changes fastest.
    pub fortran_order: bool,
    pub shape: Vec<usize>,
    /// Offset of the first value.
    pub start: usize,
}

impl NpyHeader {
    /// Returns the header of an array of a type and a shape whose last index changes fastest.
    pub fn new(kind: &str, shape: &[usize]) -> NpyHeader {
        let mut header = NpyHeader { kind: kind.to_owned(), fortran_order: false, shape: shape.to_vec(), start: 0 };
        header.start = header.bytes().len();
        header
    }

    /// Returns the bytes before the values, in version 1.0 of the format.
    pub fn bytes(&self) -> Vec<u8> {
        let sides = self.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        // a tuple of one has a comma
        let comma = if self.shape.len() == 1 { "," } else { "" };
        let order = if self.fortran_order { "True" } else { "False" };
        let mut text = format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({sides}{comma}), }}", self.kind);
        let unpadded = MAGIC.len() + 4 + text.len() + 1;
        text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(ALIGNMENT) - unpadded));
        text.push('\n');
        [MAGIC, &[1, 0], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
    }

    /// Reads the header at the beginning of a file.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn parse(bytes: &[u8]) -> Result<NpyHeader, NpyError> {
        let (length, start) = match bytes.get(6) {
            Some(1) => (bytes.get(8..10).map(|b| u64::from(u16::from_le_bytes([b[0], b[1]]))), 10),
            Some(2 | 3) => (bytes.get(8..12).map(|b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))), 12),
            _ => return Err(NpyError::Damaged),
        };
        let end =
            length.and_then(|length| usize::try_from(length).ok()?.checked_add(start)).ok_or(NpyError::Damaged)?;
        let text = String::from_utf8_lossy(bytes.get(start..end).ok_or(NpyError::Damaged)?);
        let value = |key: &str| value(&text, key).ok_or(NpyError::Damaged);
        let sides = value("shape")?.trim_matches(['(', ')']).split(',').map(str::trim).filter(|side| !side.is_empty());
        Ok(NpyHeader {
            kind: value("descr")?.trim_matches(['\'', '"']).to_owned(),
            fortran_order: value("fortran_order")? == "True",
            shape: sides.map(|side| side.parse().map_err(|_| NpyError::Damaged)).collect::<Result<_, _>>()?,
            start: end,
        })
    }
}

/// Returns the numbers of a list, one a line.
///
/// # Errors
/// The reason why the file cannot be read.
pub(super) fn lines(bytes: &[u8]) -> Result<String, NpyError> {
    let NpyHeader { kind, shape, start, .. } = NpyHeader::parse(bytes)?;
    if shape.iter().filter(|&&side| side != 1).count() > 1 {
        let shape = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        return Err(NpyError::NoList { shape });
    }
    let count = shape.iter().product::<usize>();
    let number = number(&kind).ok_or_else(|| NpyError::NoNumbers { kind: kind.clone() })?;
    let size: usize = kind[2..].parse().map_err(|_| NpyError::Damaged)?;
    let values = count.checked_mul(size).and_then(|length| bytes[start..].get(..length)).ok_or(NpyError::Damaged)?;
    let big_endian = kind.starts_with('>');
    let lines = values.chunks_exact(size).map(|bytes| {
        let mut bytes = bytes.to_vec();
        if big_endian {
            bytes.reverse();
        }
        format!("{}\n", number(&bytes))
    });
    Ok(lines.collect())
}

/// Returns the text of a value in the header, which is a Python dictionary.
fn value<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = match rest.starts_with('(') {
        true => rest.find(')')? + 1,
        false => rest.find([',', '}'])?,
    };
    Some(rest[..end].trim())
}

/// Returns the function that formats a little-endian number of a type.
fn number(kind: &str) -> Option<fn(&[u8]) -> String> {
    fn bytes<const N: usize>(from: &[u8]) -> [u8; N] {
        std::array::from_fn(|i| from.get(i).copied().unwrap_or_default())
    }
    Some(match kind.get(1..)? {
        "f8" => |b| format!("{:?}", f64::from_le_bytes(bytes(b))),
        "f4" => |b| format!("{:?}", f64::from(f32::from_le_bytes(bytes(b)))),
        "f2" => |b| format!("{:?}", f16::from_le_bytes(bytes(b)).to_f64()),
        "i8" => |b| i64::from_le_bytes(bytes(b)).to_string(),
        "i4" => |b| i32::from_le_bytes(bytes(b)).to_string(),
        "i2" => |b| i16::from_le_bytes(bytes(b)).to_string(),
        "i1" => |b| i8::from_le_bytes(bytes(b)).to_string(),
        "u8" => |b| u64::from_le_bytes(bytes(b)).to_string(),
        "u4" => |b| u32::from_le_bytes(bytes(b)).to_string(),
        "u2" => |b| u16::from_le_bytes(bytes(b)).to_string(),
        "u1" => |b| u8::from_le_bytes(bytes(b)).to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a NumPy file as the documentation of NumPy describes it.
    fn file(version: u8, kind: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = MAGIC.to_vec();
        file.extend([version, 0]);
        match version {
            1 => file.extend((header.len() as u16).to_le_bytes()),
            _ => file.extend((header.len() as u32).to_le_bytes()),
        }
        [file.as_slice(), header.as_bytes(), values].concat()
    }

    #[test]
    fn headers_come_back() {
        for shape in [vec![], vec![5], vec![2, 3], vec![100_000, 3000, 4000]] {
            let header = NpyHeader::new("<f4", &shape);
            let bytes = header.bytes();
            assert_eq!((NpyHeader::parse(&bytes).unwrap(), bytes.len() % ALIGNMENT), (header, 0));
        }
        // as numpy.save writes it
        let expected = b"\x93NUMPY\x01\0\x76\0{'descr': '<u2', 'fortran_order': False, 'shape': (7, 2, 3), }";
        assert!(NpyHeader::new("<u2", &[7, 2, 3]).bytes().starts_with(expected));
        assert!(String::from_utf8_lossy(&NpyHeader::new("<f8", &[5]).bytes()).contains("'shape': (5,), }"));
    }

    #[test]
    fn lists_of_all_types_are_read() {
        let read = |version, kind, shape, values: &[u8]| lines(&file(version, kind, shape, values)).unwrap();
        let reals = [-1.5f64, 0.1, 1e300];
        let little: Vec<u8> = reals.iter().flat_map(|value| value.to_le_bytes()).collect();
        let big: Vec<u8> = reals.iter().flat_map(|value| value.to_be_bytes()).collect();
        for version in [1, 2, 3] {
            for shape in ["(3,)", "(3, 1)", "(1, 3)"] {
                assert_eq!(read(version, "<f8", shape, &little), "-1.5\n0.1\n1e300\n");
                assert_eq!(read(version, ">f8", shape, &big), "-1.5\n0.1\n1e300\n");
            }
        }
        let single: Vec<u8> = [0.5f32, 0.25].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(read(1, "<f4", "(2,)", &single), "0.5\n0.25\n");
        assert_eq!(read(1, "<f2", "(1,)", &f16::from_f32(0.75).to_le_bytes()), "0.75\n");
        assert_eq!(read(1, "|u1", "(2,)", &[7, 200]), "7\n200\n");
        assert_eq!(read(1, "|i1", "(2,)", &[7, 200]), "7\n-56\n");
        assert_eq!(read(1, ">i2", "(1,)", &[0xff, 0xfe]), "-2\n");
        assert_eq!(read(1, "<i8", "()", &(-9i64).to_le_bytes()), "-9\n");
        assert_eq!(read(1, "<u4", "(0,)", &[]), "");
    }

    #[test]
    fn what_is_no_list_of_numbers_is_refused() {
        let refused = |bytes: &[u8], word: &str| {
            let error = lines(bytes).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains(';'), "{error}");
        };
        refused(&file(1, "<f8", "(2, 2)", &[0; 32]), "(2, 2)");
        refused(&file(1, "<c16", "(2,)", &[0; 32]), "<c16");
        refused(&file(1, "<U4", "(2,)", &[0; 32]), "<U4");
        refused(&file(1, "<f8", "(2,)", &[0; 15]), "damaged");
        refused(&file(1, "<f8", "(99999999999999999999,)", &[0; 15]), "damaged");
        refused(&file(1, "<f8", "(9999999999999999999, 1)", &[0; 15]), "damaged");
        refused(&file(9, "<f8", "(2,)", &[0; 16]), "damaged");
        let whole = file(1, "<f8", "(2,)", &[0; 16]);
        for length in 6..whole.len() {
            refused(&whole[..length], "damaged");
        }
    }
}

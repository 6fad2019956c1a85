//! Files as Xradia's microscopes write them: compound files of streams.

use cfb::CompoundFile;
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::Path;

/// Numbers of `DataType`.
pub const U16: i32 = 5;
pub const FLOAT: i32 = 10;

/// A file, as the bytes of its streams by their paths.
#[derive(Clone, Default)]
pub struct XrmFile {
    pub streams: BTreeMap<String, Vec<u8>>,
}

/// Samples of a type as they are stored.
pub fn stored(kind: i32, values: &[f32]) -> Vec<u8> {
    match kind {
        3 => values.iter().map(|value| *value as u8).collect(),
        U16 => values.iter().flat_map(|value| (*value as u16).to_le_bytes()).collect(),
        6 => values.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect(),
        FLOAT => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        11 => values.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect(),
        kind => panic!("{kind}"),
    }
}

impl XrmFile {
    /// Images of a width, with samples of a type, and no more than is needed to read them.
    pub fn new(kind: i32, width: usize, images: &[Vec<f32>]) -> XrmFile {
        let mut file = XrmFile::default();
        file.integer("ImageInfo/ImageWidth", width as i32);
        file.integer("ImageInfo/ImageHeight", (images[0].len() / width) as i32);
        file.integer("ImageInfo/DataType", kind);
        file.integer("ImageInfo/NoOfImages", images.len() as i32);
        file.integer("ImageInfo/ImagesTaken", images.len() as i32);
        for (index, image) in images.iter().enumerate() {
            file.put(&format!("ImageData{}/Image{}", index / 100 + 1, index + 1), stored(kind, image));
        }
        file
    }

    /// Sets a stream.
    pub fn put(&mut self, name: &str, bytes: Vec<u8>) {
        self.streams.insert(name.to_owned(), bytes);
    }

    /// Sets a stream of a whole number.
    pub fn integer(&mut self, name: &str, value: i32) {
        self.put(name, value.to_le_bytes().to_vec());
    }

    /// Sets a stream of numbers.
    pub fn floats(&mut self, name: &str, values: &[f64]) {
        self.put(name, values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect());
    }

    /// Removes a stream, which must exist.
    pub fn remove(&mut self, name: &str) {
        self.streams.remove(name).unwrap_or_else(|| panic!("no {name}"));
    }

    /// Returns the bytes of the file. Streams are stored one after another, or in `turns` with parts of this many bytes each.
    pub fn bytes(&self, turns: Option<usize>) -> Vec<u8> {
        let mut file = CompoundFile::create(Cursor::new(Vec::new())).unwrap();
        for name in self.streams.keys() {
            let (storage, _) = name.rsplit_once('/').unwrap();
            file.create_storage_all(format!("/{storage}")).unwrap();
            file.create_stream(format!("/{name}")).unwrap();
        }
        let most = self.streams.values().map(Vec::len).max().unwrap_or_default();
        let part = turns.unwrap_or(most.max(1));
        for start in (0..most).step_by(part) {
            for (name, bytes) in self.streams.iter().filter(|(_, bytes)| bytes.len() > start) {
                let mut stream = file.open_stream(format!("/{name}")).unwrap();
                std::io::Seek::seek(&mut stream, std::io::SeekFrom::Start(start as u64)).unwrap();
                stream.write_all(&bytes[start..bytes.len().min(start + part)]).unwrap();
                stream.flush().unwrap();
            }
        }
        file.flush().unwrap();
        file.into_inner().into_inner()
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.bytes(None)).unwrap();
    }
}

//! Kinds of files that the program writes next to slices, and marks by which it recognises its own.

use super::regular::open_regular;
use std::io::{BufReader, Read};
use std::path::Path;
use tiff::decoder::Decoder;
use tiff::tags::Tag;

/// Name and version of the program, which every file that it writes contains.
pub const SOFTWARE: &str = concat!("fbp ", env!("CARGO_PKG_VERSION"));

/// First line of a file of messages.
pub const LOG: &str = concat!("# Messages of fbp ", env!("CARGO_PKG_VERSION"));

/// Beginning of the first line of a TOML file.
pub const TOML: &str = "# Written by `fbp";

/// Beginning of marks: the name of the program.
const PROGRAM: &str = "fbp ";

/// Number of bytes at the beginning of a file that contain the mark.
const HEAD: u64 = 64 << 10;
/// Size in bytes of the largest JSON file whose mark is looked for.
const LARGEST_JSON: u64 = 64 << 20;

/// Kind of file, determined by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    Png,
    Svg,
    Json,
    /// Page of HTML.
    Html,
    /// Run file or profile.
    Toml,
    Tiff,
    /// File of messages, with any ending that neither other kinds nor data files have.
    Log,
    /// Generated program.
    Kernel,
    /// Manual page.
    Manual,
}

impl OutputKind {
    /// Endings of the kind, the usual one first.
    fn list(self) -> &'static [&'static str] {
        match self {
            OutputKind::Png => &["png"],
            OutputKind::Svg => &["svg"],
            OutputKind::Json => &["json"],
            OutputKind::Html => &["html"],
            OutputKind::Toml => &["toml"],
            OutputKind::Tiff => &["tif", "tiff"],
            OutputKind::Log => &["log", "txt"],
            OutputKind::Kernel => &["cl"],
            OutputKind::Manual => &["1", "7"],
        }
    }

    /// Returns the endings in words.
    pub fn endings(self) -> String {
        let endings: Vec<String> = self.list().iter().map(|ending| format!(".{ending}")).collect();
        endings.join(" or ")
    }

    /// Reports whether a name has an ending of this kind.
    pub fn has(self, path: &Path) -> bool {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match self {
            OutputKind::Log => {
                let data = ["h5", "hdf5", "hdf", "nx", "nxs", "edf", "zarr", "npy", "raw", "bin"];
                let others = [
                    OutputKind::Png,
                    OutputKind::Svg,
                    OutputKind::Json,
                    OutputKind::Html,
                    OutputKind::Toml,
                    OutputKind::Tiff,
                ];
                !data.contains(&&*ending) && !others.iter().any(|kind| kind.list().contains(&&*ending))
            }
            kind => kind.list().contains(&&*ending),
        }
    }

    /// Reports whether the content of a file has the mark of the program.
    pub fn is_marked(self, content: &[u8]) -> bool {
        let head = &content[..content.len().min(HEAD as usize)];
        let has = |mark: &[u8]| head.windows(mark.len()).any(|window| window == mark);
        match self {
            OutputKind::Png => head.starts_with(b"\x89PNG") && has(b"tEXtSoftware\0fbp "),
            OutputKind::Svg => has(b"<metadata>fbp "),
            OutputKind::Html => has(b"<meta name=\"generator\" content=\"fbp "),
            OutputKind::Toml => head.starts_with(TOML.as_bytes()),
            OutputKind::Log => head.starts_with(LOG.trim_end_matches(|c| c != ' ').as_bytes()),
            OutputKind::Kernel => head.starts_with(b"// fbp "),
            OutputKind::Manual => has(b".TH ") && has(b"\"fbp "),
            OutputKind::Json => serde_json::from_slice::<serde_json::Value>(content)
                .is_ok_and(|value| value["software"].as_str().is_some_and(|software| software.starts_with(PROGRAM))),
            OutputKind::Tiff => tiff_is_marked(std::io::Cursor::new(content)),
        }
    }

    /// Reports whether the program wrote a file.
    pub fn wrote(self, path: &Path) -> bool {
        let Ok(file) = open_regular(path) else { return false };
        if self == OutputKind::Tiff {
            return tiff_is_marked(BufReader::new(file));
        }
        let most = if self == OutputKind::Json { LARGEST_JSON } else { HEAD };
        let mut content = Vec::new();
        file.take(most).read_to_end(&mut content).is_ok() && self.is_marked(&content)
    }
}

fn tiff_is_marked(file: impl Read + std::io::Seek) -> bool {
    let software = Decoder::new(file).and_then(|mut decoder| decoder.get_tag_ascii_string(Tag::Software));
    software.is_ok_and(|software| software.starts_with(PROGRAM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_known_by_their_marks() {
        let own: [(OutputKind, &str); 7] = [
            (OutputKind::Json, "{\"a\": 1, \"software\": \"fbp 0.0.9\"}"),
            (OutputKind::Html, "<!doctype html><meta name=\"generator\" content=\"fbp 0.0.9\">"),
            (OutputKind::Toml, "# Written by `fbp tune`.\na = 1\n"),
            (OutputKind::Svg, "<svg><metadata>fbp 0.0.9</metadata></svg>"),
            (OutputKind::Log, "# Messages of fbp 0.0.9\n"),
            (OutputKind::Kernel, "// fbp 0.0.9\n"),
            (OutputKind::Manual, ".TH fbp 1 \"\" \"fbp 0.0.9\"\n"),
        ];
        for (kind, text) in own {
            assert!(kind.is_marked(text.as_bytes()), "{text}");
            for other in [text.replace("fbp ", "another "), String::new(), "0.5\n1.0\n".into()] {
                assert!(!kind.is_marked(other.as_bytes()), "{other}");
            }
        }
        assert!(OutputKind::Log.is_marked(LOG.as_bytes()));
        for name in ["a.tif", "a.H5", "a.json", "a.toml", "a.edf"] {
            assert!(!OutputKind::Log.has(Path::new(name)), "{name}");
        }
        assert!(["a.log", "a", "/dev/stderr", "slurm-12.out"].iter().all(|name| OutputKind::Log.has(Path::new(name))));
    }
}

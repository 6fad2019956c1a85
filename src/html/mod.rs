//! Self-contained pages about results: markup, style, script and data in one file.
//!
//! The source files of a page are next to this one. Data are JSON in a separate element, which the script reads;
//! callers define its keys.

mod packed;

pub use packed::{PackedImage, Reduction};

use crate::error::{Error, Result, messages};
use crate::files::{OutputFile, SOFTWARE};
use serde::Serialize;

messages! {
    /// Why a page cannot be made.
    enum PageError: Output {
        Data { flag: String, error: serde_json::Error } => "{flag}: {error}",
        TooLarge { flag: String, bytes: usize } => "{flag}: the page would have {bytes} bytes"; "please report this",
    }
}

/// Size limit of a page in bytes.
pub const MOST_BYTES: usize = 10_000_000;

/// Number of bytes of a page that are left for images, before they are encoded as text.
pub const IMAGE_BYTES: usize = 6_600_000;

/// Kind of page, with its own markup and script.
pub struct PageKind {
    body: &'static str,
    script: &'static str,
    /// Style in addition to that of all pages.
    style: &'static str,
}

/// Page of a run: slices, sections, histogram, sinogram, axis, time, and the run itself.
pub const RUN: PageKind = PageKind { body: include_str!("run.html"), script: include_str!("run.js"), style: "" };

/// Page of trial slices, by several values of one or two flags.
pub const TRIALS: PageKind = PageKind {
    body: include_str!("trials.html"),
    script: include_str!("trials.js"),
    style: include_str!("trials.css"),
};

/// Page of all scans of a batch.
pub const BATCH: PageKind =
    PageKind { body: include_str!("batch.html"), script: include_str!("batch.js"), style: include_str!("batch.css") };

/// Page of a scan of a batch that failed.
pub const FAILURE: PageKind =
    PageKind { body: include_str!("failure.html"), script: include_str!("failure.js"), style: "" };

/// Markup that all pages have in common.
const FRAME: &str = include_str!("page.html");
/// Style that all pages have in common.
const STYLE: &str = include_str!("page.css");
/// Scripts that all pages have in common.
const COMMON: [&str; 4] =
    [include_str!("common.js"), include_str!("viewer.js"), include_str!("profile.js"), include_str!("chart.js")];

/// Writes a page with these data; it appears complete or not at all.
///
/// # Errors
/// [`Error::Output`] that names the flag, when it cannot be written.
pub fn write_page(file: &OutputFile, kind: &PageKind, title: &str, data: &impl Serialize) -> Result<()> {
    let flag = || file.flag().to_owned();
    let data = serde_json::to_string(data)
        .map_err(|error| Error::output(file.path(), PageError::Data { flag: flag(), error }))?;
    let page = assembled(kind, title, &data);
    if page.len() > MOST_BYTES {
        return Err(Error::output(file.path(), PageError::TooLarge { flag: flag(), bytes: page.len() }));
    }
    file.write(page)
}

/// Inserts the parts of a page into the common markup.
fn assembled(kind: &PageKind, title: &str, data: &str) -> String {
    let script = [COMMON.concat().as_str(), kind.script].concat();
    // the data must not end their element
    let data = data.replace("</", "<\\/").replace("<!--", "<\\u0021--");
    let part = |name: &str| match name {
        "title" => escaped(title),
        "software" => SOFTWARE.to_owned(),
        "style" => [STYLE, kind.style].concat(),
        "body" => kind.body.to_owned(),
        "data" => data.clone(),
        "script" => script.clone(),
        _ => String::new(),
    };
    let mut pieces = FRAME.split("{{");
    let head = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(head, |page, piece| match piece.split_once("}}") {
        Some((name, rest)) => page + &part(name) + rest,
        None => page + piece,
    })
}

/// Escapes a text as content of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{InputSet, OutputKind};
    use serde_json::json;

    fn page(kind: &PageKind, data: &serde_json::Value) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page.html");
        let file = OutputFile::new("--report", &path, OutputKind::Html, &InputSet::default(), None).unwrap();
        write_page(&file, kind, "a < b & c", data).unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn data_cannot_leave_their_element() {
        let hostile = json!({ "path": "</script><script>alert(1)</script><!-- {{style}}" });
        for kind in [RUN, TRIALS, BATCH, FAILURE] {
            let page = page(&kind, &hostile);
            assert!(page.contains("<title>a &lt; b &amp; c</title>") && !page.contains("alert(1)</script>"));
            let (_, rest) = page.split_once(r#"<script type="application/json" id="data">"#).unwrap();
            let (data, _) = rest.split_once("</script>").unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(data).unwrap(), hostile);
        }
    }

    #[test]
    fn pages_ask_for_nothing() {
        for kind in [RUN, TRIALS, BATCH, FAILURE] {
            let page = page(&kind, &json!({}));
            assert!(page.contains("default-src 'none'"));
            for word in ["src=\"http", "href=\"http", "@import", "fetch(", "XMLHttpRequest", "url(http"] {
                assert!(!page.contains(word), "{word}");
            }
        }
    }
}

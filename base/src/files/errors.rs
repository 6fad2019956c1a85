//! Errors of files that are read and written.

use crate::error::messages;

messages! {
    /// Why the content of a file is not the text that is read.
    pub(super) enum TextError: Input {
        TooLarge { mebibytes: usize } =>
            "is larger than {mebibytes} MiB; expected a text file"; "check the path",
        Utf16 =>
            "is UTF-16 text, expected UTF-8"; "save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8",
        NotUtf8 { from: usize } => "is not text in UTF-8 from byte {from}"; "save it as UTF-8",
    }
}

messages! {
    /// Why a NumPy file cannot be read.
    pub enum NpyError: Input {
        Damaged =>
            "is a damaged NumPy file"; "save it again with numpy.save, or as text with numpy.savetxt",
        NoList { shape: String } =>
            "is an array of shape ({shape}), expected a list of numbers"; "save one column of it",
        NoNumbers { kind: String } =>
            "has values of type {kind}, expected whole or real numbers"; "save them as float64",
    }
}

messages! {
    /// Errors of a path that a file is read from.
    pub(super) enum FileKindError: Input {
        NotRegular { kind: &'static str } => "it is {kind}, expected a regular file",
    }
}

messages! {
    /// Errors of a path that a file is written to.
    pub(super) enum FileNameError: Output {
        NoName => "is not the name of a file"; "name a file in a directory",
    }
}

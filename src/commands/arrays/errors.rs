//! Messages about arrays in memory.

use crate::error::messages;

messages! {
    /// Flags that are refused where the scan is an array.
    pub(super) enum ArrayFlagError: Usage {
        OfFiles { flag: String } => "--{flag}: is about files or messages, not about arrays"; "leave it out",
        /// The error is that of the command line.
        Malformed { error: String } => "{error}",
    }
}

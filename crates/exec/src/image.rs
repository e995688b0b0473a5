//! What `system` starts.

use std::ffi::{CStr, CString};
use std::io::{PipeReader, PipeWriter};

/// What to start, in the form that the system takes.
pub(crate) struct Image<'a> {
    /// Path of the program.
    pub program: &'a CStr,
    /// Arguments, beginning with the program's own name.
    pub arguments: &'a [CString],
    /// Variables, as `NAME=value`.
    pub environment: &'a [CString],
    /// Where it starts.
    pub directory: &'a CStr,
    /// Its standard input, output and error.
    pub streams: ChildStreams<'a>,
}

/// What a program reads from and prints to.
pub(crate) enum ChildStreams<'a> {
    /// Pipes; without one for the input, the input is empty.
    Open { input: Option<&'a PipeReader>, output: &'a PipeWriter, errors: &'a PipeWriter },
    /// The terminal of this name for all three. The child opens it as the leader of a session without a terminal, so
    /// it becomes the session's own. Windows has none.
    Terminal(&'a CStr),
}

//! What the tools share.
//!
//! - [`resolve_path`] turns a path from the model into the real path on disk and enforces
//!   `tools.fs.workspaceOnly`; [`ResolvedPath::shown`] is how results and errors write it.
//! - [`touching`] is the subject of a call for one path, and [`Judged`] holds a call to the paths of its subject.
//! - [`missing_path`] is the error for a missing path, with similar names to try; [`io_failure`] is the one
//!   for any other I/O error.
//! - [`cut_end`], [`cut_start`] and [`cut_line`] shorten text at character boundaries and say so.
//! - [`Listing`] collects the lines of a result up to its limit; [`plain_text`] removes the control sequences of
//!   terminals.
//! - [`Walker`] walks a directory in order, by the rules of ignore files; [`PathPatterns`] are the globs of a call.
//! - [`Budget`] bounds the work of a call.
//! - [`run_blocking`] runs work off the async threads, `run_on_files` work on files of the workspace.
//!
//! Everything that touches the disk here is blocking: call it inside `run_on_files`.

mod blocking;
mod budget;
mod judged;
mod listing;
mod paths;
mod patterns;
#[cfg(test)]
pub(crate) mod testing;
mod text;
mod walk;

pub use blocking::run_blocking;
pub(crate) use blocking::run_on_files;
pub(crate) use budget::Budget;
pub(crate) use judged::{Judged, touching};
pub(crate) use listing::Listing;
pub(crate) use paths::{
    Access, ResolvedPath, io_failure, missing_path, printable, real_root, resolve_path,
    shown_below, shown_path,
};
pub(crate) use patterns::PathPatterns;
pub(crate) use text::{cut_end, cut_line, cut_start, plain_text};
pub(crate) use walk::Walker;

//! What the tools share.
//!
//! - [`parse_arguments`] turns a call's arguments into a tool's own struct; its errors name the argument. The
//!   `lenient_*` functions are `#[serde(deserialize_with)]` helpers that also take a number or flag written as text.
//! - [`resolve_path`] turns a path from the model into the real path on disk and enforces
//!   `tools.fs.workspaceOnly`; [`ResolvedPath::shown`] is how results and errors write it.
//! - [`missing_path`] is the error for a path that is not there, with near names to try; [`io_failure`] is the one
//!   for any other I/O error.
//! - [`cut_end`], [`cut_start`] and [`cut_line`] shorten text at character boundaries and say so.
//! - [`run_blocking`] runs file work off the async threads.
//!
//! Everything that touches the disk here is blocking: call it inside [`run_blocking`].

mod arguments;
mod blocking;
mod paths;
mod text;

pub(crate) use arguments::{lenient_bool, lenient_u64, parse_arguments};
pub(crate) use blocking::run_blocking;
pub(crate) use paths::{Access, ResolvedPath, io_failure, missing_path, resolve_path, shown_path};
pub(crate) use text::{cut_end, cut_line, cut_start};

//! Windows: threads read and write, and nobody looks for children. Nothing starts a helper there.

use std::io;

use super::{Input, Output};

/// Does nothing.
pub(super) fn outlive_large_files() -> io::Result<()> {
    Ok(())
}

pub(super) fn standard_input() -> io::Result<Input> {
    Ok(Box::new(tokio::io::stdin()))
}

pub(super) fn standard_output() -> io::Result<Output> {
    Ok(Box::new(tokio::io::stdout()))
}

/// It is not known.
pub(super) fn has_children() -> bool {
    false
}

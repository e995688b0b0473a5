//! There is no job control on Windows.

/// Does nothing.
pub fn suspend() {}

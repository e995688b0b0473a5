//! Windows has no limit of open files that matters.

/// Does nothing.
pub fn raise_file_limit() {}

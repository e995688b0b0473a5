//! Tests that do not run on this machine.

/// Reports that a test does not run because something is missing that `scripts/test` installs.
///
/// # Panics
///
/// If `CI` is set: there a missing program would pass as a passed test.
pub fn skip_without(what_is_missing: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what_is_missing}, and CI is set");
    println!("skipped: {what_is_missing}");
}

/// Reports that a test does not apply to this machine or user: its kernel, its rights.
pub fn skip_here(reason: &str) {
    println!("skipped: {reason}");
}

//! What the system that this runs on lacks.

use super::Check;
use crate::commands::system::MISSING;

/// `None` where nothing is missing.
pub(super) fn check() -> Option<Check> {
    MISSING.map(|text| {
        let next = "use Linux or macOS for these (docs/develop/targets.md)";
        Check::warn("system", text, next)
    })
}

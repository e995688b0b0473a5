//! Windows: a closed output is noticed at the next block.

use tokio_util::sync::CancellationToken;

/// Does nothing.
pub(crate) fn watch_standard_output(_gone: CancellationToken) {}

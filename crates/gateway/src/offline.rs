//! The store of a state directory while no gateway runs.

mod cron;
mod pairing;

use std::sync::Arc;

use myclaw_agent::Home;
use myclaw_gateway_client::store_path;
use myclaw_store::{SqliteStore, Store, StoreError};

use crate::GatewayError;

pub use cron::cron;
pub use pairing::{change_pairing, list_pairings};

/// Looks for damage in the gateway's store; `None` if there is no store yet. Blocks, also while a gateway runs.
pub fn examine_store(home: &Home) -> Option<Result<(), GatewayError>> {
    let path = store_path(home);
    path.exists().then(|| SqliteStore::examine(&path).map_err(GatewayError::from))
}

/// Opens the store while no gateway runs.
///
/// # Errors
/// A gateway has it open after all, or it cannot be opened.
pub(crate) async fn open_store(home: &Home) -> Result<Arc<dyn Store>, GatewayError> {
    let path = store_path(home);
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(&path));
    let opened = opening.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
    Ok(Arc::new(opened.map_err(|error| match error {
        StoreError::InUse { process_id, .. } => {
            GatewayError::AlreadyRuns { directory: home.paths.state_dir().to_owned(), process_id }
        }
        error => error.into(),
    })?))
}

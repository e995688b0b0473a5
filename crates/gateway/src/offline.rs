//! The store of a state directory while no gateway runs.

mod cron;
mod pairing;

use std::sync::Arc;

use myclaw_agent::{Home, config_check::load_checked};
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
/// A gateway has it open after all, it cannot be opened, or it is a database that a gateway has to open.
pub(crate) async fn open_store(home: &Home) -> Result<Arc<dyn Store>, GatewayError> {
    let path = store_path(home);
    let environment = home.environment.clone();
    let opening = tokio::task::spawn_blocking(move || {
        // A config that cannot be read is reported by those who need it.
        let loaded = load_checked(&environment).ok();
        match loaded.and_then(|loaded| loaded.config.store_address(&environment)) {
            Some(_) => Ok(None),
            None => SqliteStore::open(&path).map(Some),
        }
    });
    let opened = opening.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
    let opened = opened.map_err(|error| match error {
        StoreError::InUse { process_id, .. } => {
            GatewayError::AlreadyRuns { directory: home.paths.state_dir().to_owned(), process_id }
        }
        error => error.into(),
    })?;
    let store = opened.ok_or_else(|| {
        let why = "no gateway runs on this machine, and the records are in the database of gateway.store; start \
                   `myclaw gateway` here, or use this command on a machine where one runs";
        GatewayError::Elsewhere(why.to_owned())
    })?;
    Ok(Arc::new(store))
}

//! Usage for the command line: from the gateway that runs, else from its store.

use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_delivery::ledger::{Ledger, now_ms};
use myclaw_gateway_client::{ask, store_path};

use super::{UsageAnswer, UsageBook, UsageRequest};
use crate::GatewayError;
use crate::offline::open_store;

/// What models have used in sessions of the gateway.
///
/// # Errors
/// The request cannot be used, or the gateway or its store cannot be reached.
pub async fn usage(
    home: &Home,
    config: &Config,
    request: UsageRequest,
) -> Result<UsageAnswer, GatewayError> {
    let (group, bucket) = (request.group.as_str(), request.bucket.as_str());
    let mut path = format!("/api/usage?group={group}&bucket={bucket}");
    for (name, time) in [("from", request.from), ("to", request.to)] {
        if let Some(time) = time {
            path.push_str(&format!("&{name}={time}"));
        }
    }
    if let Some(value) = ask(home, config, "GET", &path, None).await?.answer() {
        return serde_json::from_value(value).map_err(|_| {
            let why = "the gateway that runs has another version; stop it and start it again";
            GatewayError::Unusable(why.to_owned())
        });
    }
    let (path, now) = (store_path(home), now_ms());
    let looking = tokio::task::spawn_blocking(move || path.exists());
    let is_there = looking.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
    // Records in a database are a gateway's to read, which the opening says.
    if !is_there && config.store_address(&home.environment).is_none() {
        return UsageAnswer::empty(request, now);
    }
    UsageBook::new(Ledger::new(open_store(home).await?)).answer(request, now).await
}

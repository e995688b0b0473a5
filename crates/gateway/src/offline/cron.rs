//! The schedule for the command line: through the gateway that runs, else directly in its store.

use std::sync::Arc;

use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_delivery::ledger::now_ms;
use myclaw_delivery::schedule::{
    Asker, Book, CronAction, CronAnswer, CronRequest, Routes, Service, WakeMode,
};
use myclaw_gateway_client::{AskedGateway, ask};
use myclaw_store::Claims;
use serde_json::Value;

use crate::GatewayError;
use crate::offline::open_store;

/// Answers a request about scheduled jobs. The second value says whether a gateway runs; without one, the request is
/// answered from the store, which nobody else can open meanwhile.
///
/// # Errors
/// The request cannot be used, or the gateway or its store cannot be reached.
pub async fn cron(
    home: &Home,
    config: &Config,
    request: CronRequest,
) -> Result<(Value, bool), GatewayError> {
    let body = serde_json::to_value(&request)
        .map_err(|error| GatewayError::Internal(error.to_string()))?;
    match ask(home, config, "POST", "/api/cron", Some(body)).await? {
        AskedGateway::Answer(value) => Ok((value, true)),
        AskedGateway::NotRunning => {
            from_store(home, config, request).await.map(|value| (value, false))
        }
    }
}

async fn from_store(
    home: &Home,
    config: &Config,
    request: CronRequest,
) -> Result<Value, GatewayError> {
    let is_now = request.mode.unwrap_or_default() == WakeMode::Now;
    if request.action == CronAction::Wake && is_now {
        return Err(unusable(
            "no gateway runs that could tell the agent; start one with `myclaw gateway`",
        ));
    }
    let store = open_store(home).await?;
    let (book, routes) =
        (Book::new(Claims::alone(Arc::clone(&store))), Routes::new(Arc::clone(&store)));
    let service =
        Service { book: &book, routes: &routes, config, asker: Asker::Owner, now: now_ms() };
    match service.answer(request).await? {
        CronAnswer::Done(value) => Ok(value),
        CronAnswer::Tell { .. } => Err(unusable("start a gateway first, with `myclaw gateway`")),
    }
}

fn unusable(why: &str) -> GatewayError {
    GatewayError::Unusable(why.to_owned())
}

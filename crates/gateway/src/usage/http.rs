//! Usage over HTTP.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use myclaw_delivery::ledger::now_ms;

use super::{UsageAnswer, UsageRequest};
use crate::GatewayError;
use crate::counting::Counting;
use crate::server::request::Params;

/// `GET /api/usage`.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(counting: Arc<Counting>) -> Router<S> {
    Router::new().route("/api/usage", get(answer)).with_state(counting)
}

async fn answer(
    State(counting): State<Arc<Counting>>,
    Params(request): Params<UsageRequest>,
) -> Result<Json<UsageAnswer>, GatewayError> {
    counting.usage.answer(request, now_ms()).await.map(Json)
}

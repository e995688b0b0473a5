//! Usage over HTTP.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};

use super::{UsageAnswer, UsageRequest};
use crate::GatewayError;
use crate::delivery::Delivery;
use crate::ledger::now_ms;
use crate::server::request::Params;

/// `GET /api/usage`.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(delivery: Arc<Delivery>) -> Router<S> {
    Router::new().route("/api/usage", get(answer)).with_state(delivery)
}

async fn answer(
    State(delivery): State<Arc<Delivery>>,
    Params(request): Params<UsageRequest>,
) -> Result<Json<UsageAnswer>, GatewayError> {
    delivery.usage.answer(request, now_ms()).await.map(Json)
}

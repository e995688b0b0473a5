//! Usage over HTTP.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};

use super::{UsageAnswer, UsageRequest};
use crate::GatewayError;
use crate::delivery::Delivery;
use crate::ledger::now_ms;

/// `GET /api/usage`.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(delivery: Arc<Delivery>) -> Router<S> {
    Router::new().route("/api/usage", get(answer)).with_state(delivery)
}

async fn answer(
    State(delivery): State<Arc<Delivery>>,
    query: Result<Query<UsageRequest>, QueryRejection>,
) -> Result<Json<UsageAnswer>, GatewayError> {
    let Query(request) = query.map_err(|error| GatewayError::Unusable(error.body_text()))?;
    delivery.usage.answer(request, now_ms()).await.map(Json)
}

//! The schedule over HTTP, for programs and the command line.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::schedule::{Asker, CronAction, CronRequest};
use serde_json::Value;

use super::request::Body;
use crate::GatewayError;

/// `GET /api/cron` lists the jobs; `POST /api/cron` takes a request.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(delivery: Arc<Delivery>) -> Router<S> {
    Router::new().route("/api/cron", get(list).post(answer)).with_state(delivery)
}

async fn list(State(delivery): State<Arc<Delivery>>) -> Result<Json<Value>, GatewayError> {
    Ok(Json(delivery.cron(CronRequest::of(CronAction::List), Asker::Owner).await?))
}

async fn answer(
    State(delivery): State<Arc<Delivery>>,
    Body(body): Body<Value>,
) -> Result<Json<Value>, GatewayError> {
    Ok(Json(delivery.cron(CronRequest::read(body)?, Asker::Owner).await?))
}

//! The schedule over HTTP, for programs and the command line.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::Value;

use super::request::{CronAction, CronRequest};
use super::service::Asker;
use crate::GatewayError;
use crate::delivery::Delivery;
use crate::server::request::Body;

/// `GET /api/cron` lists the jobs; `POST /api/cron` takes a request.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(delivery: Arc<Delivery>) -> Router<S> {
    Router::new().route("/api/cron", get(list).post(answer)).with_state(delivery)
}

async fn list(State(delivery): State<Arc<Delivery>>) -> Result<Json<Value>, GatewayError> {
    delivery.cron(CronRequest::of(CronAction::List), Asker::Owner).await.map(Json)
}

async fn answer(
    State(delivery): State<Arc<Delivery>>,
    Body(body): Body<Value>,
) -> Result<Json<Value>, GatewayError> {
    delivery.cron(CronRequest::read(body)?, Asker::Owner).await.map(Json)
}

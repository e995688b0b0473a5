//! What all tools of the gateway share.

use std::sync::{Arc, Weak};

use myclaw_delivery::delivery::Delivery;
use myclaw_engine::{ToolError, ToolOutput};
use serde_json::Value;

/// The gateway behind a tool.
///
/// # Errors
/// It is about to stop.
pub(crate) fn running(delivery: &Weak<Delivery>) -> Result<Arc<Delivery>, ToolError> {
    let stopping = || ToolError::Failed("the gateway is about to stop; try again later".to_owned());
    delivery.upgrade().ok_or_else(stopping)
}

/// The result of a tool that answers with a value.
pub(crate) fn output(value: &Value) -> ToolOutput {
    ToolOutput::text(serde_json::to_string_pretty(value).unwrap_or_default())
}

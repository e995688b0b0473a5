//! The tools that a session of the gateway uses on behalf of itself.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use myclaw_agent::SessionConfig;
use myclaw_delivery::delivery::Delivery;
use myclaw_engine::{SharedSchemas, ToolError, ToolInvocation};
use myclaw_gateway_client::{GatewayCalls, GatewayTool, GatewayToolKind, aborted};
use myclaw_llm::{ToolCall, ToolSchema};
use serde_json::Value;

use super::call::{Call, CallOrigin, LateServer};
use super::message::text_of;

/// Carries out the calls of a session of this gateway.
pub(super) struct SessionCalls {
    delivery: Weak<Delivery>,
    server: LateServer,
    caller: Arc<SessionConfig>,
}

/// One of the tools, for one session.
pub(super) fn session_tool(
    (kind, mut schema): (GatewayToolKind, Arc<ToolSchema>),
    (delivery, server): (Weak<Delivery>, LateServer),
    caller: Arc<SessionConfig>,
) -> GatewayTool<SessionCalls> {
    if kind == GatewayToolKind::Message
        && let Some(delivery) = delivery.upgrade()
    {
        static SCHEMAS: SharedSchemas<String> = SharedSchemas::new();
        schema = SCHEMAS.get(delivery.abilities(&caller), |abilities| {
            let mut schema = ToolSchema::clone(&schema);
            schema.description.push_str("\nWhat the channels can do: ");
            schema.description.push_str(abilities);
            schema
        });
    }
    GatewayTool { kind, schema, calls: SessionCalls { delivery, server, caller } }
}

impl GatewayCalls for SessionCalls {
    fn answer<'a>(
        &'a self,
        kind: GatewayToolKind,
        invocation: &'a ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let delivery = self.delivery.upgrade().ok_or_else(|| {
                ToolError::Failed("the gateway is about to stop; try again later".to_owned())
            })?;
            let call = Call {
                delivery: &delivery,
                server: &self.server,
                caller: &self.caller,
                id: &invocation.call.tool_call_id,
                turn: invocation.context.turn.to_string(),
                arguments: invocation.call.arguments.clone(),
                cancel: &invocation.cancel,
                origin: CallOrigin::Own,
            };
            let answer = call.answer(kind).await;
            let value = answer.map_err(|error| ToolError::Failed(error.to_string()))?;
            if invocation.cancel.is_cancelled() {
                return Err(aborted());
            }
            Ok(value)
        })
    }

    fn recall<'a>(
        &'a self,
        kind: GatewayToolKind,
        call: &'a ToolCall,
        asked_at: u64,
    ) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            let delivery = self.delivery.upgrade()?;
            let session = self.caller.session_key.as_str();
            let known = match kind {
                GatewayToolKind::Message => delivery.spoken(session, &call.id, asked_at).await,
                GatewayToolKind::Voice => {
                    match delivery.spoken(session, &text_of(&call.id), asked_at).await {
                        Ok(None) => delivery.spoken(session, &call.id, asked_at).await,
                        as_text => as_text,
                    }
                }
                GatewayToolKind::Gateway => delivery.restarted(session, &call.id, asked_at).await,
                _ => Ok(None),
            };
            // Without it the model learns that the call was interrupted.
            known.ok().flatten()
        })
    }
}

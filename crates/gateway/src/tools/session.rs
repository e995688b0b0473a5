//! The tools that a session of the gateway uses on behalf of itself.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use myclaw_agent::SessionConfig;
use myclaw_delivery::delivery::Delivery;
use myclaw_engine::{
    CallArguments, CallSubject, SharedSchemas, Tool, ToolAliases, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolOutput,
};
use myclaw_gateway_client::{GatewayToolKind, tool_output};
use myclaw_llm::{ToolCall, ToolSchema};

use super::call::{Call, CallOrigin, LateServer};
use super::message::text_of;

/// One of the tools, for one session.
pub(super) struct SessionTool {
    kind: GatewayToolKind,
    schema: Arc<ToolSchema>,
    delivery: Weak<Delivery>,
    server: LateServer,
    caller: Arc<SessionConfig>,
}

impl SessionTool {
    pub(super) fn new(
        (kind, mut schema): (GatewayToolKind, Arc<ToolSchema>),
        (delivery, server): (Weak<Delivery>, LateServer),
        caller: Arc<SessionConfig>,
    ) -> Self {
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
        Self { kind, schema, delivery, server, caller }
    }
}

impl Tool for SessionTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        self.kind.declaration()
    }

    fn aliases(&self) -> ToolAliases {
        self.kind.aliases()
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        Ok(self.kind.subject(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
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
            let value = call
                .answer(self.kind)
                .await
                .map_err(|error| ToolError::Failed(error.to_string()))?;
            if invocation.cancel.is_cancelled() {
                return Err(ToolError::Aborted("aborted while it waited".to_owned()));
            }
            Ok(tool_output(&value))
        })
    }

    fn recall<'a>(
        &'a self,
        call: &'a ToolCall,
        asked_at: u64,
        _context: &'a ToolContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move {
            let delivery = self.delivery.upgrade()?;
            let session = self.caller.session_key.as_str();
            let known = match self.kind {
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
            known.ok().flatten().map(|value| tool_output(&value))
        })
    }
}

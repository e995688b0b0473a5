//! The methods of the protocol.

use std::future::pending;

use serde_json::{Value, json};

use super::client::{TASKS, revision_for, server_info};
use super::refusal::SUPPORTED;
use super::{Call, Refusal, tasks, tools};

/// What a client may tell its model about this server.
const INSTRUCTIONS: &str = include_str!("instructions.txt");
/// How long a client may keep a list, in milliseconds. It is short, because the owner can change what a device may do.
const LIST_TTL_MS: u64 = 60_000;
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Call {
    /// The result of the request.
    ///
    /// # Errors
    /// The request cannot be carried out; what a tool could not do is a result.
    pub async fn outcome(&self) -> Result<Value, Refusal> {
        let result = if self.client.is_stateless {
            self.without_session().await?
        } else {
            self.with_session().await?
        };
        Ok(self.client.result(result))
    }

    async fn without_session(&self) -> Result<Value, Refusal> {
        match self.request.method.as_str() {
            "server/discover" => Ok(json!({
                "supportedVersions": SUPPORTED,
                "capabilities": {"tools": {}, "extensions": {TASKS: {}}},
                "instructions": INSTRUCTIONS.trim_end(),
                "ttlMs": LIST_TTL_MS,
                "cacheScope": "private",
            })),
            "tools/list" => {
                let mut list = self.list()?;
                list["ttlMs"] = json!(LIST_TTL_MS);
                list["cacheScope"] = json!("private");
                Ok(list)
            }
            "tools/call" => tools::call(self).await,
            "subscriptions/listen" => {
                // Nothing that can be listened to changes while the server runs.
                let params = json!({"_meta": {SUBSCRIPTION: self.request.id}, "notifications": {}});
                self.peer.notify("notifications/subscriptions/acknowledged", params);
                pending().await
            }
            "tasks/get" | "tasks/update" | "tasks/cancel" if !self.client.has_tasks => {
                Err(Refusal::needs(&json!({"extensions": {TASKS: {}}})))
            }
            "tasks/get" => tasks::get(self).await,
            "tasks/update" => tasks::update(self).await,
            "tasks/cancel" => tasks::stop(self).await.map(|_| json!({})),
            method => Err(Refusal::no_method(method)),
        }
    }

    async fn with_session(&self) -> Result<Value, Refusal> {
        match self.request.method.as_str() {
            "initialize" => {
                let wanted = self
                    .request
                    .text("protocolVersion")
                    .ok_or_else(|| Refusal::invalid("initialize: `protocolVersion` is missing"))?;
                let tasks = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
                Ok(json!({
                    "protocolVersion": revision_for(wanted),
                    "capabilities": {"tools": {}, "tasks": tasks},
                    "serverInfo": server_info(),
                    "instructions": INSTRUCTIONS.trim_end(),
                }))
            }
            "ping" => Ok(json!({})),
            "tools/list" => self.list(),
            "tools/call" => tools::call(self).await,
            "tasks/get" => tasks::get(self).await,
            "tasks/result" => tasks::result_of(self).await,
            "tasks/cancel" => tasks::stop(self).await,
            method => Err(Refusal::no_method(method)),
        }
    }

    fn list(&self) -> Result<Value, Refusal> {
        if self.request.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
            return Err(Refusal::invalid("tools/list: the list has one page; leave `cursor` out"));
        }
        Ok(json!({"tools": tools::offered(&*self.backend, self.client)}))
    }
}

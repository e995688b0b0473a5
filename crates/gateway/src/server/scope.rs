//! What each route and each method of the WebSocket needs, in one table.
//!
//! A route that is not in the table is refused for everybody, so a new one cannot be forgotten here.

use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use super::answer::error;
use crate::GatewayError;
use crate::devices::{Login, Needs, Scope};

/// The routes: method, path, and what it needs. `HEAD` needs what `GET` does.
const ROUTES: &[(&str, &str, Needs)] = &[
    ("GET", "/health", Needs::Nothing),
    ("GET", "/ready", Needs::Nothing),
    ("GET", "/ws", Needs::See),
    ("GET", "/metrics", Needs::See),
    // Which tools there are depends on the scope.
    ("POST", "/mcp", Needs::See),
    ("GET", "/api/status", Needs::See),
    ("GET", "/api/scopes", Needs::See),
    ("POST", "/api/messages", Needs::Deliver),
    ("GET", "/api/messages/{id}", Needs::See),
    ("GET", "/api/sessions", Needs::See),
    ("DELETE", "/api/sessions/{session}", Needs::Talk),
    ("GET", "/api/sessions/{session}/history", Needs::See),
    ("POST", "/api/sessions/{session}/abort", Needs::Talk),
    ("POST", "/api/sessions/{session}/fork", Needs::Talk),
    ("GET", "/api/sessions/{session}/branches", Needs::See),
    ("POST", "/api/sessions/{session}/title", Needs::Talk),
    ("GET", "/api/sessions/{session}/export", Needs::See),
    ("GET", "/api/approvals", Needs::See),
    ("POST", "/api/approvals/{id}", Needs::Talk),
    ("GET", "/api/channels", Needs::See),
    ("GET", "/api/channels/kinds", Needs::Own),
    ("POST", "/api/channels/{change}", Needs::Own),
    // The list has codes, which are as good as an approval.
    ("GET", "/api/pairing", Needs::Own),
    ("POST", "/api/pairing/{change}", Needs::Own),
    ("GET", "/api/devices", Needs::Own),
    ("POST", "/api/devices/code", Needs::Own),
    ("POST", "/api/devices/pair", Needs::Nothing),
    ("POST", "/api/devices/link", Needs::Own),
    ("POST", "/api/devices/sign-in", Needs::Nothing),
    ("POST", "/api/devices/{change}", Needs::Own),
    ("GET", "/node", Needs::BeNode),
    ("GET", "/api/nodes", Needs::See),
    ("GET", "/api/nodes/{node}", Needs::See),
    ("POST", "/api/nodes/{node}/call", Needs::Own),
    ("GET", "/api/push", Needs::See),
    ("POST", "/api/push", Needs::Talk),
    ("POST", "/api/push/{change}", Needs::Talk),
    ("GET", "/api/running", Needs::See),
    ("POST", "/api/running/{change}", Needs::Talk),
    ("GET", "/api/speech", Needs::See),
    ("POST", "/api/speech/listen", Needs::Talk),
    ("POST", "/api/speech/speak", Needs::Talk),
    ("GET", "/api/config", Needs::Own),
    ("PUT", "/api/config", Needs::Own),
    ("PATCH", "/api/config", Needs::Own),
    ("GET", "/api/setup", Needs::See),
    ("POST", "/api/setup/model", Needs::Own),
    ("GET", "/api/files/{part}", Needs::See),
    ("POST", "/api/files/{part}/view", Needs::See),
    ("GET", "/view/{secret}", Needs::Nothing),
    ("GET", "/api/agents", Needs::See),
    ("GET", "/api/skills", Needs::See),
    ("GET", "/api/logs", Needs::See),
    // It says where a stranger would begin.
    ("GET", "/api/security", Needs::Own),
    ("GET", "/api/cluster", Needs::Own),
    ("POST", "/api/cluster/drain", Needs::Own),
    ("GET", "/api/mcp", Needs::See),
    ("POST", "/api/mcp/{server}/changes", Needs::Own),
    ("POST", "/api/mcp/{server}/approve", Needs::Own),
    ("GET", "/api/memory", Needs::See),
    ("POST", "/api/memory", Needs::Talk),
    ("GET", "/api/memory/search", Needs::See),
    ("GET", "/api/memory/{fact}", Needs::See),
    ("PUT", "/api/memory/{fact}", Needs::Talk),
    ("DELETE", "/api/memory/{fact}", Needs::Talk),
    ("GET", "/api/prompts", Needs::See),
    ("GET", "/api/prompts/{name}", Needs::See),
    // The terminal sends them as the owner's own words.
    ("PUT", "/api/prompts/{name}", Needs::Own),
    ("DELETE", "/api/prompts/{name}", Needs::Own),
    // The workspace may hold what only the owner reads, such as keys.
    ("GET", "/api/workspace", Needs::Own),
    ("GET", "/api/workspace/file", Needs::Own),
    ("PUT", "/api/workspace/file", Needs::Own),
    ("POST", "/api/workspace/view", Needs::Own),
    ("GET", "/api/usage", Needs::See),
    ("GET", "/api/cron", Needs::See),
    ("POST", "/api/cron", Needs::Talk),
    ("POST", "/api/tools/{tool}", Needs::Own),
    ("GET", "/v1/models", Needs::See),
    ("POST", "/v1/chat/completions", Needs::Talk),
    ("POST", "/v1/responses", Needs::Talk),
    ("GET", "/v1/responses/{id}", Needs::See),
    ("DELETE", "/v1/responses/{id}", Needs::Talk),
    ("POST", "/v1/responses/{id}/cancel", Needs::Talk),
    ("GET", "/v1/responses/{id}/input_items", Needs::See),
];

/// The methods of the WebSocket.
const METHODS: &[(&str, Needs)] = &[
    ("send", Needs::Talk),
    ("abort", Needs::Talk),
    ("history", Needs::See),
    ("watch", Needs::See),
    ("unwatch", Needs::See),
    ("watch_list", Needs::See),
    ("sessions", Needs::See),
    ("fork", Needs::Talk),
    ("branches", Needs::See),
    ("title", Needs::Talk),
    ("mark", Needs::Talk),
    ("mode", Needs::Talk),
    ("command", Needs::Talk),
    ("model", Needs::Talk),
    ("commands", Needs::See),
    ("expand", Needs::See),
    ("plan", Needs::See),
    ("changes", Needs::See),
    ("delete", Needs::Talk),
    ("approvals", Needs::See),
    ("approve", Needs::Talk),
    ("status", Needs::See),
];

/// Refuses a request to `path`, the pattern of its route, that `scope` does not allow.
pub(super) fn check(
    scope: Scope,
    method: &Method,
    path: Option<&str>,
) -> Result<(), Box<Response>> {
    // Without a route the answer is 404.
    let Some(path) = path else { return Ok(()) };
    let name = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut of_path = ROUTES.iter().filter(|(_, route, _)| *route == path).peekable();
    if of_path.peek().is_none() {
        let message = format!(
            "the route {path} says in no table what it needs; this is a defect. Please report it"
        );
        return Err(Box::new(error(StatusCode::INTERNAL_SERVER_ERROR, "internal", &message)));
    }
    match of_path.find(|(method, ..)| *method == name) {
        None => {
            let message = format!(
                "{path} cannot be asked with {method}; docs/operate/gateway.md lists the methods"
            );
            Err(Box::new(error(StatusCode::METHOD_NOT_ALLOWED, "method", &message)))
        }
        Some((.., needs)) if scope.may(*needs) => Ok(()),
        Some(_) => Err(Box::new(error(StatusCode::FORBIDDEN, "scope", &refusal(scope)))),
    }
}

/// The channel in the keys of the sessions of devices with the scope `webhook`.
const HOOK_CHANNEL: &str = "hook";

/// The session of a message that `login` delivers, where the message names `session`. What a device with the scope
/// `webhook` delivers comes from elsewhere, so it has a session of its own, which is not the owner's, and reaches no other.
pub(super) fn session_for(
    login: &Login,
    session: Option<String>,
) -> Result<Option<String>, GatewayError> {
    let own = match (&login.device, login.scope) {
        (Some((id, _)), Scope::Webhook) => format!("hook-{id}"),
        _ => return Ok(session),
    };
    let key = format!(":{HOOK_CHANNEL}:{own}");
    match session {
        Some(other) if other != own => Err(GatewayError::Forbidden(format!(
            "this device has the scope `webhook`: its messages go to the session `{own}`; leave the session out"
        ))),
        _ => Ok(Some(key)),
    }
}

/// Refuses a method of the WebSocket that `scope` does not allow.
pub(super) fn check_method(scope: Scope, method: &str) -> Result<(), GatewayError> {
    match METHODS.iter().find(|(name, _)| *name == method) {
        None => {
            let names: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            Err(GatewayError::Unusable(format!("there is no method `{method}`; there are {names}")))
        }
        Some((_, needs)) if scope.may(*needs) => Ok(()),
        Some(_) => Err(GatewayError::Forbidden(refusal(scope))),
    }
}

fn refusal(scope: Scope) -> String {
    format!(
        "this device has the scope `{}`, which does not allow that; the owner can pair it again with another scope",
        scope.as_str()
    )
}

/// The table, for programs.
pub(super) fn described(caller: Scope) -> Value {
    let routes = ROUTES.iter().map(|(method, path, needs)| {
        json!({"method": method, "path": path, "needs": needs, "allowed": caller.may(*needs)})
    });
    let methods = METHODS.iter().map(
        |(method, needs)| json!({"method": method, "needs": needs, "allowed": caller.may(*needs)}),
    );
    json!({
        "scope": caller,
        "routes": routes.collect::<Vec<_>>(),
        "methods": methods.collect::<Vec<_>>(),
    })
}

//! The methods: what the reference says of their arguments, tokens and scopes, and what they do.

use serde_json::{Value, json};

use super::press;
use super::{APP_TOKEN, BOT, BOT_TOKEN, SlackMessage, State};
use crate::wire::Request;

/// Most characters of a text.
const MOST_CHARACTERS: usize = 4_000;

/// A method of the Web API, as docs.slack.dev/reference/methods describes it.
struct Method {
    name: &'static str,
    scope: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const fn method(
    name: &'static str,
    scope: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> Method {
    Method { name, scope, required, optional }
}

const HISTORY: &[&str] =
    &["cursor", "include_all_metadata", "inclusive", "latest", "limit", "oldest"];
const METHODS: [Method; 14] = [
    method("auth.test", "", &[], &[]),
    method("apps.connections.open", "connections:write", &[], &[]),
    method(
        "chat.postMessage",
        "chat:write",
        &["channel", "text"],
        &[
            "thread_ts",
            "parse",
            "link_names",
            "mrkdwn",
            "metadata",
            "unfurl_links",
            "unfurl_media",
            "attachments",
        ],
    ),
    method(
        "chat.update",
        "chat:write",
        &["channel", "ts", "text"],
        &["parse", "metadata", "attachments"],
    ),
    method(
        "chat.postEphemeral",
        "chat:write",
        &["channel", "user", "text"],
        &["parse", "thread_ts"],
    ),
    method("chat.delete", "chat:write", &["channel", "ts"], &[]),
    method("reactions.add", "reactions:write", &["channel", "timestamp", "name"], &[]),
    method("users.info", "users:read", &["user"], &["include_locale"]),
    method("conversations.history", "im:history", &["channel"], HISTORY),
    method("conversations.replies", "im:history", &["channel", "ts"], HISTORY),
    method("files.info", "files:read", &["file"], &[]),
    method(
        "files.getUploadURLExternal",
        "files:write",
        &["filename", "length"],
        &["alt_text", "snippet_type"],
    ),
    method(
        "files.completeUploadExternal",
        "files:write",
        &["files"],
        &["channel_id", "thread_ts", "initial_comment"],
    ),
    method(
        "assistant.threads.setStatus",
        "chat:write",
        &["channel_id", "thread_ts", "status"],
        &["loading_messages"],
    ),
];

/// The arguments of a call, or Slack's answer to a wrong one and whether it is a mistake of the program.
pub(super) fn check(
    name: &str,
    request: &Request,
    token: &str,
    lost_scopes: &[String],
) -> Result<Value, (Value, bool)> {
    let refuse =
        |error: &str, is_mistake: bool| Err((json!({"ok": false, "error": error}), is_mistake));
    let Some(method) = METHODS.iter().find(|method| method.name == name) else {
        return refuse("unknown_method", true);
    };
    if request.method != "POST" {
        return refuse("insecure_request", true);
    }
    if request.header("content-type") != "application/x-www-form-urlencoded" {
        return refuse("invalid_post_type", true);
    }
    let is_for_app = method.scope == "connections:write";
    match token {
        BOT_TOKEN if is_for_app => return refuse("not_allowed_token_type", true),
        APP_TOKEN if !is_for_app => return refuse("not_allowed_token_type", true),
        BOT_TOKEN | APP_TOKEN => {}
        "" => return refuse("not_authed", true),
        _ => return refuse("invalid_auth", false),
    }
    if lost_scopes.iter().any(|lost| lost == method.scope) {
        let error = json!({
            "ok": false, "error": "missing_scope", "needed": method.scope, "provided": "identify",
        });
        return Err((error, false));
    }
    let form = String::from_utf8_lossy(&request.body);
    let mut params = json!({});
    for (key, value) in form.split('&').filter_map(|pair| pair.split_once('=')) {
        if !method.required.contains(&key) && !method.optional.contains(&key) {
            return refuse(&format!("invalid_arguments: unknown {key}"), true);
        }
        params[key] = json!(decoded(value));
    }
    for key in method.required {
        if params[key].as_str().is_none_or(str::is_empty) {
            return refuse(&format!("invalid_arguments: missing {key}"), true);
        }
    }
    match arguments(&params) {
        Ok(()) => Ok(params),
        Err(error) => refuse(&error, true),
    }
}

/// What the reference says of the values.
fn arguments(params: &Value) -> Result<(), String> {
    if let Some(text) = params["text"].as_str() {
        markup(text)?;
        if text.chars().count() > MOST_CHARACTERS {
            return Err("msg_too_long".to_owned());
        }
    }
    if let Some(attachments) = params["attachments"].as_str() {
        press::check(attachments)?;
    }
    for key in ["thread_ts", "ts", "timestamp"] {
        let is_time = |text: &str| {
            text.split_once('.').is_some_and(|(seconds, rest)| {
                rest.len() == 6
                    && format!("{seconds}{rest}").bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        if params[key].as_str().is_some_and(|text| !is_time(text)) {
            return Err(format!("invalid_{key}"));
        }
    }
    if params["parse"].as_str().is_some_and(|parse| parse != "none" && parse != "full") {
        return Err("invalid_arguments: parse".to_owned());
    }
    for key in ["unfurl_links", "unfurl_media", "include_all_metadata"] {
        if params[key].as_str().is_some_and(|flag| flag != "true" && flag != "false") {
            return Err(format!("invalid_arguments: {key}"));
        }
    }
    if let Some(metadata) = params["metadata"].as_str() {
        let metadata: Value = serde_json::from_str(metadata).unwrap_or_default();
        let kind = metadata["event_type"].as_str().unwrap_or_default();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if kind.is_empty() || !kind.bytes().all(is_name) || !metadata["event_payload"].is_object() {
            return Err("invalid_metadata_format".to_owned());
        }
    }
    Ok(())
}

/// Refuses what would mention people, or is no markup: `<` begins links only, `&` begins the three escapes only.
fn markup(text: &str) -> Result<(), String> {
    for rest in text.split('<').skip(1) {
        let is_link =
            ["http://", "https://", "mailto:"].iter().any(|start| rest.starts_with(start));
        if !is_link || !rest.contains('>') {
            return Err(format!("markup: <{rest}"));
        }
    }
    for rest in text.split('&').skip(1) {
        if !["amp;", "lt;", "gt;"].iter().any(|escape| rest.starts_with(escape)) {
            return Err(format!("markup: &{rest}"));
        }
    }
    Ok(())
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                let digits = String::from_utf8_lossy(&digits).into_owned();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
            }
            b'+' => bytes.push(b' '),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Does what a method does.
pub(super) fn carry_out(state: &mut State, name: &str, params: &Value) -> Result<Value, String> {
    let text = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
    match name {
        "auth.test" => Ok(json!({
            "url": "https://x.slack.com/", "team": "Team", "user": "claw", "team_id": "T1", "user_id": BOT, "bot_id": "B1",
        })),
        "apps.connections.open" => {
            let ticket = format!("ticket{}", state.number());
            state.tickets.push(ticket.clone());
            Ok(json!({"url": format!("ws://127.0.0.1:{}/link/?ticket={ticket}", state.port)}))
        }
        "users.info" => {
            let id = text("user");
            let profile = json!({"display_name": format!("Name of {id}")});
            Ok(json!({"user": {"id": id, "name": "x", "real_name": "Real", "profile": profile}}))
        }
        "chat.postMessage" => Ok(store(state, params.clone(), Vec::new())),
        "chat.update" => {
            let ts = text("ts");
            let message = state.sent.iter_mut().find(|message| message.ts == ts);
            let message = message.ok_or("message_not_found")?;
            message.params["text"] = params["text"].clone();
            for key in ["metadata", "attachments"] {
                if params[key].is_string() {
                    message.params[key] = params[key].clone();
                }
            }
            message.edits += 1;
            Ok(json!({"channel": params["channel"], "ts": ts, "text": params["text"]}))
        }
        "chat.postEphemeral" => Ok(json!({"message_ts": state.time()})),
        "chat.delete" => {
            let ts = text("ts");
            let at = state.sent.iter().position(|message| message.ts == ts);
            state.sent.remove(at.ok_or("message_not_found")?);
            Ok(json!({"channel": params["channel"], "ts": ts}))
        }
        "reactions.add" => {
            let reaction = (text("timestamp"), text("name"));
            if state.reactions.contains(&reaction) {
                return Err("already_reacted".to_owned());
            }
            state.reactions.push(reaction);
            Ok(json!({}))
        }
        "conversations.history" | "conversations.replies" => Ok(history(state, params)),
        "files.getUploadURLExternal" => {
            let length = text("length").parse::<usize>().map_err(|_| "invalid_arguments")?;
            let id = format!("F{}", state.number());
            state.files.push((id.clone(), text("filename"), vec![0; length]));
            let url = format!("http://127.0.0.1:{}/upload/{id}", state.port);
            Ok(json!({"upload_url": url, "file_id": id}))
        }
        "files.completeUploadExternal" => {
            let listed: Value = serde_json::from_str(&text("files")).unwrap_or_default();
            let id = listed[0]["id"].as_str().ok_or("invalid_arguments")?;
            let file =
                state.files.iter().find(|(other, ..)| other == id).ok_or("file_not_found")?;
            let described = json!({"id": id, "name": file.1, "size": file.2.len()});
            let shared = (described.clone(), file.2.clone());
            let mut message = params.clone();
            message["channel"] = params["channel_id"].clone();
            store(state, message, vec![shared]);
            Ok(json!({"files": [described]}))
        }
        "files.info" => {
            let file = state.file(&text("file")).ok_or("file_not_found")?;
            Ok(json!({"file": file}))
        }
        "assistant.threads.setStatus" => Ok(json!({})),
        other => Err(format!("unknown_method {other}")),
    }
}

fn store(state: &mut State, params: Value, files: Vec<(Value, Vec<u8>)>) -> Value {
    let ts = state.time();
    let channel = params["channel"].clone();
    state.sent.push(SlackMessage { ts: ts.clone(), params, edits: 0, files });
    json!({"channel": channel, "ts": ts, "message": {"user": BOT, "ts": ts}})
}

/// The messages of the bot in a conversation, the newest first.
fn history(state: &State, params: &Value) -> Value {
    let oldest = params["oldest"].as_str().unwrap_or("0").to_owned();
    let number = |ts: &str| ts.parse::<f64>().unwrap_or_default();
    let is_there = |message: &&SlackMessage| {
        message.params["channel"] == params["channel"]
            && message.params["thread_ts"] == params["ts"]
            && number(&message.ts) > number(&oldest)
    };
    let with_metadata = params["include_all_metadata"] == "true";
    let messages: Vec<Value> = state
        .sent
        .iter()
        .rev()
        .filter(is_there)
        .map(|message| {
            let metadata = message.params["metadata"].as_str().filter(|_| with_metadata);
            let metadata = metadata.and_then(|text| serde_json::from_str::<Value>(text).ok());
            let files: Vec<&Value> = message.files.iter().map(|(file, _)| file).collect();
            json!({
                "type": "message", "user": BOT, "bot_id": "B1", "ts": message.ts, "text": message.text(),
                "metadata": metadata.unwrap_or(json!({})), "files": files,
            })
        })
        .collect();
    let thread = &params["ts"];
    let is_past = |message: &&Value| {
        let is_of_thread = message["ts"] == *thread || message["thread_ts"] == *thread;
        message["channel"] == params["channel"] && thread.is_string() && is_of_thread
    };
    let messages: Vec<Value> = state.past.iter().filter(is_past).cloned().chain(messages).collect();
    json!({"messages": messages, "has_more": false, "response_metadata": {"next_cursor": ""}})
}

//! The routes: what the reference says of their fields, and what they do.

use serde_json::{Value, json};

use super::press;
use super::{BOT, DiscordMessage, State, TOKEN};
use crate::wire::Request;

/// Most characters of a message.
const MOST_CHARACTERS: usize = 2_000;
/// Fields of a message that is sent (docs.discord.com, "Create Message").
const CREATE: [&str; 9] = [
    "content",
    "nonce",
    "enforce_nonce",
    "allowed_mentions",
    "message_reference",
    "flags",
    "attachments",
    "poll",
    "components",
];
/// Fields of a message that is edited ("Edit Message").
const EDIT: [&str; 4] = ["content", "allowed_mentions", "flags", "components"];

/// A call that is in order.
pub(super) struct Call {
    /// Method and kind, such as `POST messages`.
    pub(super) name: String,
    channel: String,
    message: String,
    query: String,
    pub(super) body: Value,
    file: Option<File>,
}

type Wrong = (u16, Value, bool);
/// A name and bytes.
type File = (String, Vec<u8>);

/// The call, or Discord's answer to a wrong one and whether it is a mistake of the program.
pub(super) fn check(request: &Request) -> Result<Call, Wrong> {
    let wrong = |status: u16, code: u64, why: &str| {
        (status, json!({"message": why, "code": code}), status != 401)
    };
    if request.header("authorization") != format!("Bot {TOKEN}") {
        return Err(wrong(401, 0, "401: Unauthorized"));
    }
    if !request.header("user-agent").starts_with("DiscordBot (") {
        return Err(wrong(403, 40_333, "the user agent"));
    }
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let Some(path) = path.strip_prefix("/api/v10/") else {
        return Err(wrong(404, 0, "404: Not Found"));
    };
    let parts: Vec<&str> = path.split('/').collect();
    let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let (kind, channel, message) = match parts.as_slice() {
        ["users", "@me"] => ("me", "", ""),
        ["gateway", "bot"] => ("gateway", "", ""),
        ["guilds", guild, "roles"] => ("roles", *guild, ""),
        ["channels", channel] => ("channel", *channel, ""),
        ["channels", channel, "messages"] => ("messages", *channel, ""),
        ["channels", channel, "messages", message] => ("message", *channel, *message),
        ["channels", channel, "messages", message, "reactions", emoji, "@me"]
            if !emoji.is_empty() =>
        {
            ("reaction", *channel, *message)
        }
        ["channels", channel, "typing"] => ("typing", *channel, ""),
        ["interactions", id, token, "callback"] if *token == format!("tokenOf{id}") => {
            ("interaction", *id, "")
        }
        _ => return Err(wrong(404, 0, "404: Not Found")),
    };
    if [channel, message].iter().any(|id| !id.is_empty() && !is_id(id)) {
        return Err(wrong(400, 50_035, "an id is no snowflake"));
    }
    let (body, file) = body_of(request).map_err(|why| wrong(400, 50_109, &why))?;
    if kind == "interaction" {
        press::check_answer(&body).map_err(|why| wrong(400, 50_035, &why))?;
        let name = format!("{} {kind} {channel}", request.method);
        let [channel, message, query] = [channel, message, query].map(str::to_owned);
        return Ok(Call { name, channel, message, query, body, file });
    }
    let name = format!("{} {kind}", request.method);
    let allowed: &[&str] = match name.as_str() {
        "POST messages" => &CREATE,
        "PATCH message" => &EDIT,
        "GET me" | "GET gateway" | "GET roles" | "GET channel" | "GET messages"
        | "DELETE message" | "PUT reaction" | "POST typing" => &[],
        _ => return Err(wrong(405, 0, "405: Method Not Allowed")),
    };
    for key in body.as_object().into_iter().flat_map(|body| body.keys()) {
        if !allowed.contains(&key.as_str()) {
            return Err(wrong(400, 50_035, &format!("the field {key}")));
        }
    }
    if !allowed.is_empty() {
        fields(&body, file.is_some()).map_err(|why| wrong(400, 50_035, &why))?;
    }
    let [channel, message, query] = [channel, message, query].map(str::to_owned);
    Ok(Call { name, channel, message, query, body, file })
}

/// The JSON of a body, and its file.
fn body_of(request: &Request) -> Result<(Value, Option<File>), String> {
    let content_type = request.header("content-type");
    if let Some(boundary) = content_type.strip_prefix("multipart/form-data; boundary=") {
        return form(boundary, &request.body);
    }
    match (request.body.is_empty(), content_type) {
        (true, _) => Ok((Value::Null, None)),
        (false, "application/json") => serde_json::from_slice(&request.body)
            .map(|body| (body, None))
            .map_err(|error| error.to_string()),
        (false, other) => Err(format!("the content type {other}")),
    }
}

/// The fields `payload_json` and `files[0]` of a form.
fn form(boundary: &str, body: &[u8]) -> Result<(Value, Option<File>), String> {
    let text: String = body.iter().map(|byte| char::from(*byte)).collect();
    let (mut payload, mut file) = (Value::Null, None);
    for field in
        text.split(&format!("--{boundary}")).filter_map(|field| field.split_once("\r\n\r\n"))
    {
        let (head, value) = field;
        let bytes: Vec<u8> = value.trim_end_matches("\r\n").chars().map(|c| c as u8).collect();
        if head.contains("name=\"payload_json\"") {
            payload = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        } else if head.contains("name=\"files[0]\"") {
            let name = head.split("filename=\"").nth(1).and_then(|rest| rest.split('"').next());
            file = Some((name.ok_or("a file without a name")?.to_owned(), bytes));
        } else {
            return Err(format!("the field {head}"));
        }
    }
    Ok((payload, file))
}

/// What the reference says of the fields.
fn fields(body: &Value, has_file: bool) -> Result<(), String> {
    let content = body["content"].as_str().unwrap_or_default();
    if content.trim().is_empty() && !has_file && !body["poll"].is_object() {
        return Err("Cannot send an empty message".to_owned());
    }
    if content.chars().count() > MOST_CHARACTERS {
        return Err("content: Must be 2000 or fewer in length.".to_owned());
    }
    if body["nonce"].as_str().is_some_and(|nonce| nonce.len() > 25) {
        return Err("nonce: Must be 25 or fewer in length.".to_owned());
    }
    if body["nonce"].is_string() && body["enforce_nonce"] != true {
        return Err("the nonce is not enforced".to_owned());
    }
    // Not an error of Discord, but what nobody should send: a model could call everybody.
    if body["allowed_mentions"]["parse"] != json!([]) {
        return Err("allowed_mentions lets everybody be called".to_owned());
    }
    press::check(&body["components"])?;
    let poll = &body["poll"];
    if poll.is_object() {
        let answers = poll["answers"].as_array().map_or(0, Vec::len);
        let texts = poll["answers"].as_array().into_iter().flatten();
        let mut texts = texts.map(|answer| answer["poll_media"]["text"].as_str());
        let is_right =
            |text: Option<&str>, most: usize| text.is_some_and(|text| text.len() <= most);
        if !is_right(poll["question"]["text"].as_str(), 300)
            || !(1..=10).contains(&answers)
            || !texts.all(|text| is_right(text, 55))
        {
            return Err("poll".to_owned());
        }
    }
    Ok(())
}

/// Does what a call does; status and body.
pub(super) fn carry_out(state: &mut State, call: Call) -> (u16, Value) {
    let unknown = (404, json!({"message": "Unknown Message", "code": 10_008}));
    let find = |state: &State| {
        let is_it =
            |other: &DiscordMessage| other.id == call.message && other.channel == call.channel;
        state.sent.iter().position(is_it)
    };
    match call.name.as_str() {
        "GET me" => (200, json!({"id": BOT, "username": "claw", "bot": true})),
        "GET gateway" => (
            200,
            json!({
                "url": format!("ws://127.0.0.1:{}/gateway", state.port), "shards": 1,
                "session_start_limit": {"total": 1000, "remaining": 999, "reset_after": 14_400_000, "max_concurrency": 1},
            }),
        ),
        "GET roles" => {
            let own =
                json!({"id": "901", "name": "claw", "managed": true, "tags": {"bot_id": BOT}});
            (
                200,
                json!([{"id": call.channel, "name": "@everyone"}, {"id": "902", "name": "team"}, own]),
            )
        }
        "GET channel" => {
            let thread = state.threads.iter().find(|(thread, _)| *thread == call.channel);
            match thread {
                Some((id, parent)) => {
                    (200, json!({"id": id, "type": 11, "parent_id": parent, "name": "a thread"}))
                }
                None => (
                    200,
                    json!({"id": call.channel, "type": 0, "parent_id": "77", "name": "general"}),
                ),
            }
        }
        "POST messages" => {
            let nonce = &call.body["nonce"];
            let is_checked = nonce.is_string() && !state.is_forgetful;
            let same = |other: &&DiscordMessage| is_checked && other.body["nonce"] == *nonce;
            if let Some(known) = state.sent.iter().find(same) {
                return (200, shown(known));
            }
            let id = state.snowflake();
            let Call { channel, body, file, .. } = call;
            state.sent.push(DiscordMessage { id, channel, body, edits: 0, file });
            (200, state.sent.last().map(shown).unwrap_or_default())
        }
        "GET messages" => (200, history(state, &call)),
        "PATCH message" => match find(state) {
            Some(at) => {
                state.sent[at].body["content"] = call.body["content"].clone();
                if call.body["components"].is_array() {
                    state.sent[at].body["components"] = call.body["components"].clone();
                }
                state.sent[at].edits += 1;
                (200, shown(&state.sent[at]))
            }
            None => unknown,
        },
        "DELETE message" => match find(state) {
            Some(at) => {
                state.sent.remove(at);
                (204, Value::Null)
            }
            None => unknown,
        },
        _ => (204, Value::Null),
    }
}

/// The messages of a channel behind or before an id, the newest first. Old nonces are not told.
fn history(state: &State, call: &Call) -> Value {
    let value = |key: &str| {
        let found = call.query.split('&').filter_map(|pair| pair.split_once('='));
        found.filter(|(name, _)| *name == key).find_map(|(_, value)| value.parse::<u64>().ok())
    };
    let (after, before) = (value("after"), value("before").unwrap_or(u64::MAX));
    let limit = usize::try_from(value("limit").unwrap_or(50).min(100)).unwrap_or(100);
    let id_of = |message: &Value| message["id"].as_str().and_then(|id| id.parse::<u64>().ok());
    let mut found: Vec<Value> =
        state.past.iter().cloned().chain(state.sent.iter().map(shown)).collect();
    found.retain(|message| {
        let is_wanted = |id| id > after.unwrap_or(0) && id < before;
        message["channel_id"] == call.channel && id_of(message).is_some_and(is_wanted)
    });
    found.sort_by_key(id_of);
    // The oldest of those behind an id, else the newest.
    match after {
        Some(_) => found.truncate(limit),
        None => drop(found.drain(..found.len().saturating_sub(limit))),
    }
    found.reverse();
    json!(found)
}

fn shown(message: &DiscordMessage) -> Value {
    let file = message.file.as_ref();
    let attachments =
        file.map(|(name, bytes)| json!([{"id": "1", "filename": name, "size": bytes.len()}]));
    let mut value = json!({
        "id": message.id, "channel_id": message.channel, "author": {"id": BOT, "username": "claw", "bot": true},
        "content": message.text(), "attachments": attachments.unwrap_or(json!([])), "type": 0,
    });
    for key in ["message_reference", "poll"] {
        if message.body[key].is_object() {
            value[key] = message.body[key].clone();
        }
    }
    value
}

/// A message of somebody, with further fields.
pub(super) fn said(id: &str, person: &str, channel: &str, fields: &Value) -> Value {
    let mut message = json!({
        "id": id, "channel_id": channel, "type": 0, "content": "", "tts": false, "mention_everyone": false,
        "timestamp": "2026-01-01T00:00:00.000000+00:00", "edited_timestamp": null, "attachments": [], "embeds": [],
        "mentions": [], "mention_roles": [], "pinned": false,
        "author": {"id": person, "username": format!("user{person}"), "global_name": format!("Name of {person}")},
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        message[key] = value.clone();
    }
    message
}

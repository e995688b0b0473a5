//! What the published schema refuses in a message of a bot.

use serde_json::Value;

/// Longest text of a message, in UTF-16 units without tags.
const MOST_UNITS: usize = 4_096;

/// Refuses a keyboard that the schema forbids.
pub(super) fn check_buttons(params: &Value) -> Result<(), String> {
    if params["reply_markup"].is_null() {
        return Ok(());
    }
    let rows = params["reply_markup"]["inline_keyboard"].as_array();
    let rows = rows.ok_or("object expected as reply markup")?;
    let keys: Vec<&Value> = rows.iter().filter_map(Value::as_array).flatten().collect();
    let is_text = |key: &Value| key["text"].as_str().is_some_and(|text| !text.is_empty());
    let is_data = |key: &Value| {
        key["callback_data"].as_str().is_some_and(|data| (1..=64).contains(&data.len()))
    };
    match keys.iter().all(|key| is_text(key) && is_data(key)) && !keys.is_empty() {
        true => Ok(()),
        false => Err("BUTTON_DATA_INVALID".to_owned()),
    }
}

/// Refuses what the schema forbids: a missing chat, a text that is empty or too long, and wrong tags.
pub(super) fn check_text(params: &Value) -> Result<(), String> {
    if !params["chat_id"].is_i64() && !params["chat_id"].is_string() {
        return Err("chat_id is empty".to_owned());
    }
    let text = params["text"].as_str().ok_or("message text is empty")?;
    let visible = match params["parse_mode"].as_str() {
        Some("HTML") => without_tags(text)?,
        Some(other) => return Err(format!("unsupported parse_mode {other}")),
        None => text.to_owned(),
    };
    match visible.encode_utf16().count() {
        _ if visible.trim().is_empty() => Err("message text is empty".to_owned()),
        units if units > MOST_UNITS => Err("message is too long".to_owned()),
        _ => Ok(()),
    }
}

fn without_tags(html: &str) -> Result<String, String> {
    let parse = |why: &str| format!("can't parse entities: {why}");
    let (mut visible, mut open, mut rest) = (String::new(), Vec::new(), html);
    while let Some(at) = rest.find('<') {
        visible.push_str(&rest[..at]);
        let end = rest[at..].find('>').ok_or_else(|| parse("unclosed tag"))? + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        match tag.strip_prefix('/') {
            Some(name) if open.pop() == Some(name) => {}
            Some(_) => return Err(parse("unmatched end tag")),
            None => {
                let name = tag.split(' ').next().unwrap_or_default();
                let known = ["b", "i", "u", "s", "a", "code", "pre", "blockquote"];
                if !known.contains(&name) {
                    return Err(parse("unsupported start tag"));
                }
                open.push(name);
            }
        }
    }
    visible.push_str(rest);
    if !open.is_empty() {
        return Err(parse("can't find end tag"));
    }
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    Ok(entities.iter().fold(visible, |text, (entity, plain)| text.replace(entity, plain)))
}

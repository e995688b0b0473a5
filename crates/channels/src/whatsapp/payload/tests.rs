use serde_json::json;

use super::*;

fn message(value: Value) -> Message {
    serde_json::from_value(value).unwrap_or_default()
}

#[test]
fn every_type_says_something() {
    for (value, expected) in [
        (json!({"type": "text", "text": {"body": "hello"}}), "hello"),
        (json!({"type": "image", "image": {"id": "1", "caption": "look"}}), "look"),
        (json!({"type": "audio", "audio": {"id": "1", "voice": true}}), ""),
        (
            json!({"type": "location", "location": {
                "latitude": 1.5, "longitude": -2, "name": "Home", "address": "Street 1",
            }}),
            "[location \"1.5, -2\", \"Home\", \"Street 1\"]",
        ),
        (
            json!({"type": "contacts", "contacts": [{
                "name": {"formatted_name": "Bob", "first_name": "Bob"},
                "phones": [{"phone": "+1 555", "type": "CELL"}], "emails": [{"email": "b@x.org"}],
            }]}),
            "[contact \"Bob\", \"+1 555\", \"b@x.org\"]",
        ),
        (json!({"type": "button", "button": {"payload": "yes", "text": "Yes"}}), "Yes"),
        (
            json!({"type": "interactive", "interactive": {
                "type": "button_reply", "button_reply": {"id": "1", "title": "Stop"},
            }}),
            "Stop",
        ),
        (
            json!({"type": "interactive", "interactive": {"type": "list_reply", "list_reply": {
                "id": "1", "title": "Post", "description": "2 days",
            }}}),
            "Post (2 days)",
        ),
        (
            json!({"type": "unsupported", "errors": [{
                "code": 131_051, "title": "Message type unknown", "message": "Message type unknown",
                "error_data": {"details": "Message type is currently not supported."},
            }]}),
            "[a message that WhatsApp does not pass on: \"Message type is currently not supported.\"]",
        ),
        (json!({"type": "new"}), "[a message that cannot be shown, of the type \"new\"]"),
    ] {
        assert_eq!(message(value.clone()).said(), expected, "{value}");
    }
}

#[test]
fn files_get_names_that_fit() {
    let document = json!({"type": "document", "document": {"id": "7", "filename": "a.pdf"}});
    assert_eq!(
        message(document).file().map(|(media, name)| (media.id.clone(), name)),
        Some(("7".to_owned(), "a.pdf".to_owned()))
    );
    let voice =
        json!({"type": "audio", "audio": {"id": "7", "mime_type": "audio/ogg; codecs=opus"}});
    assert_eq!(message(voice).file().map(|(_, name)| name).as_deref(), Some("audio.ogg"));
}

#[test]
fn a_person_has_a_number_or_an_id() {
    let contacts: Vec<Contact> = serde_json::from_value(json!([
        {"profile": {"name": "Ann", "username": "@ann"}, "user_id": "US.13491208655302741918"},
        {"profile": {"name": "Bob"}, "wa_id": "16505551234"},
    ]))
    .unwrap_or_default();
    let hidden = message(json!({"from_user_id": "US.13491208655302741918", "type": "text"}));
    let person = hidden.person().unwrap_or_default();
    let sender = hidden.sender(person, &contacts);
    assert_eq!(
        (sender.id.as_str(), sender.name.as_deref(), sender.handle.as_deref()),
        ("US.13491208655302741918", Some("Ann"), Some("ann"))
    );
    let known = message(json!({
        "from": "16505551234", "from_user_id": "US.1", "group_id": "g", "type": "text",
    }));
    assert_eq!(known.person(), Some("16505551234"));
    assert_eq!(known.chat("16505551234").kind, ChatKind::Group);
    assert_eq!(message(json!({"type": "text"})).person(), None);
}

#[test]
fn every_published_kind_is_shown_or_dropped() {
    crate::kinds::check(include_str!("../../../tests/data/kinds/whatsapp.json"), |event| {
        let message = message(event.clone());
        if let Some(reason) = message.is_not_said() {
            return Err(reason);
        }
        let (text, passages) = message.content();
        let file = message.file().map(|(_, name)| crate::Attachment::new(Some(name), None));
        Ok(Some(crate::kinds::shown(&text, &passages, file.as_slice())))
    });
}

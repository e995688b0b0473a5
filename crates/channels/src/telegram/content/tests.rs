//! Tests of the kinds of messages.

use serde_json::json;

use super::*;
use crate::telegram::albums::{self, Waiting};
use crate::telegram::receive::nobody_answers;
use crate::telegram::update::Update;
use crate::{Arrival, kinds};

fn message(value: Value) -> Message {
    serde_json::from_value(value).expect("a message")
}

fn me() -> Me {
    Me { id: 9, username: "my_bot".to_owned() }
}

fn with(fields: &Value) -> Message {
    let mut value = json!({
        "message_id": 1, "from": {"id": 42, "first_name": "Ann"}, "chat": {"id": 42, "type": "private"},
    });
    for (key, field) in fields.as_object().expect("an object") {
        value[key] = field.clone();
    }
    message(value)
}

#[test]
fn every_published_kind_is_shown_or_dropped() {
    kinds::check(include_str!("../../../tests/data/kinds/telegram.json"), |fields| {
        let message = with(fields);
        let (text, passages) = message.content(&me());
        let attachments: Vec<Attachment> =
            message.files().into_iter().map(|(_, file)| file).collect();
        let arrival = Arrival { text, passages, attachments, ..Arrival::default() };
        match nobody_answers(&message, false, &arrival) {
            Some(reason) => Err(reason),
            None => Ok(Some(kinds::shown(&arrival.text, &arrival.passages, &arrival.attachments))),
        }
    });
}

#[test]
fn an_answer_to_a_story_says_so() {
    let story = |chat: serde_json::Value| {
        let quoted =
            with(&json!({"text": "nice", "reply_to_story": {"chat": chat, "id": 3}})).quoted();
        quoted.map(|quoted| (quoted.sender, quoted.text))
    };
    let of = |name: &str| Some((Some(name.to_owned()), "[a story]".to_owned()));
    assert_eq!(story(json!({"id": 7, "first_name": "Ben"})), of("Ben"));
    assert_eq!(story(json!({"id": -7, "title": "News"})), of("News"));
}

#[test]
fn bots_and_live_locations_that_move_are_dropped() {
    let arrival = || Arrival { text: "x".to_owned(), ..Arrival::default() };
    let moving = with(&json!({"location": {"latitude": 1, "longitude": 2}}));
    assert!(
        nobody_answers(&moving, true, &arrival()).is_some_and(|reason| reason.contains("moves"))
    );
    assert_eq!(nobody_answers(&moving, false, &arrival()), None);
    let bot = with(&json!({"from": {"id": 8, "is_bot": true}, "text": "x"}));
    assert!(nobody_answers(&bot, false, &arrival()).is_some_and(|reason| reason.contains("bot")));
}

#[test]
fn a_forward_is_nobodys_order_and_mentions_nobody() {
    let fields = json!({
        "text": "/new @my_bot", "chat": {"id": -1, "type": "group"},
        "entities": [{"type": "mention", "offset": 5, "length": 7}, {"type": "bot_command", "offset": 0, "length": 4}],
    });
    assert!(with(&fields).mentions(&me()));
    let mut forward = fields;
    forward["forward_origin"] = json!({"type": "hidden_user", "sender_user_name": "Eve"});
    let forward = with(&forward);
    assert!(!forward.mentions(&me()));
    let (text, passages) = forward.content(&me());
    assert_eq!((text.as_str(), passages[0].text.as_str()), ("", "/new @my_bot"));
}

#[test]
fn what_is_answered_is_shown_with_its_files() {
    let photo = json!([{"file_id": "p", "width": 1, "height": 1}]);
    let answer = with(&json!({
        "text": "what is this?",
        "reply_to_message": {"message_id": 1, "from": {"id": 7, "first_name": "Ben"}, "photo": photo},
    }));
    let quoted = answer.quoted().expect("an answer");
    assert_eq!((quoted.sender.as_deref(), quoted.text.as_str()), (Some("Ben"), ""));
    let files = answer.answered_files();
    assert_eq!((files.len(), files[0].1.of), (1, FileOf::Answered));
    let elsewhere = with(&json!({
        "text": "and this?", "quote": {"text": "a part"},
        "external_reply": {"origin": {"type": "channel", "chat": {"id": -1, "title": "News"}}, "photo": photo},
    }));
    let quoted = elsewhere.quoted().expect("an answer");
    assert_eq!((quoted.sender.as_deref(), quoted.text.as_str()), (Some("News"), "a part"));
    assert_eq!(elsewhere.answered_files().len(), 1);
    for (answered, words) in [
        (json!({"poll": {"question": "Lunch?", "options": []}}), "Lunch?"),
        (json!({"dice": {"emoji": "🎲", "value": 2}}), "[dice \"🎲 shows 2\"]"),
        (json!({"pinned_message": {}}), "[a note of Telegram: pinned_message]"),
    ] {
        let answer = with(&json!({"text": "x", "reply_to_message": answered}));
        assert_eq!(answer.quoted().map(|quoted| quoted.text).as_deref(), Some(words));
    }
}

#[test]
fn the_parts_of_an_album_wait_for_each_other() {
    let part = |id: i64, album: Option<&str>| {
        let message = json!({"message_id": id, "chat": {"id": 42}, "media_group_id": album, "caption": format!("c{id}")});
        let update: Update = serde_json::from_value(json!({"update_id": id, "message": message}))
            .expect("an update");
        update.said().expect("a message")
    };
    let mut all = Vec::new();
    for (id, album) in [(1, Some("a")), (2, None), (3, Some("a")), (4, Some("b"))] {
        albums::add(&mut all, part(id, album));
    }
    let ids: Vec<Vec<i64>> = all
        .iter()
        .map(|together| together.iter().map(|said| said.message.message_id).collect())
        .collect();
    assert_eq!(ids, [vec![1, 3], vec![2], vec![4]]);
    let mut waiting = Waiting::default();
    waiting.begin();
    assert!(!waiting.is_whole(&all[0]) && waiting.is_whole(&all[1]));
    waiting.end();
    assert!(!waiting.is_empty());
    let full: Vec<_> = (0..10).map(|id| part(id, Some("c"))).collect();
    assert!(waiting.is_whole(&full));
    let said = albums::joined(all[0].iter().map(|said| said.message.content(&me())));
    assert_eq!(said.0, "c1\nc3");
}

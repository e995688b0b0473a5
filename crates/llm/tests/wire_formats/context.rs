//! What goes along with the words: images and annotations; and what stays the same while a session grows.

use myclaw_llm::{Api, InputKind, Message};

use crate::formats::FORMATS;
use crate::request::*;

#[test]
fn images_travel_where_each_format_wants_them() {
    for format in FORMATS {
        let sent = TestRequest::new(format.api, &pictures(format.api)).wire_messages();
        assert_eq!(sent, (format.pictures)(), "{:?}", format.api);
    }
}

#[test]
fn models_without_eyes_are_reported_what_is_missing() {
    let messages = [
        user_blocks(vec![image("image/png")]),
        Message::Assistant(assistant(Api::OpenaiCompletions, vec![call("one", "a")])),
        result("one", vec![image("image/png")], false),
    ];
    let omitted = "[image omitted: this model takes no images]";
    for format in FORMATS {
        let mut request = TestRequest::new(format.api, &messages);
        request.model.input = vec![InputKind::Text];
        let sent = request.wire_messages().to_string();
        assert_eq!((sent.matches(omitted).count(), sent.contains("aGk=")), (2, false), "{sent}");
    }
}

/// What is added to a user's message for the model stands behind the user's own words, and never alone.
#[test]
fn annotations_stand_behind_what_the_user_said() {
    for format in FORMATS {
        let sent = TestRequest::new(format.api, &annotated()).wire_messages();
        assert_eq!(sent, (format.annotated)(), "{:?}", format.api);
    }
}

/// The bytes before the new messages are the same in every request of a session: in the Messages format but for the
/// cache points, which move on and are no part of what is cached.
#[test]
fn the_prefix_keeps_its_bytes_while_a_session_grows() {
    for format in FORMATS {
        let api = format.api;
        let messages = turn(api);
        let body = |end: usize| {
            let request = TestRequest::new(api, &messages[..end]);
            let body = String::from_utf8(request.encode().body.to_vec()).unwrap();
            body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
        };
        for (end, later) in [(1, 4), (1, 5), (4, 5)] {
            let earlier = body(end);
            let prefix = earlier.trim_end_matches(['"', '}', ']']);
            assert!(prefix.len() > 200, "{prefix}");
            assert!(body(later).starts_with(prefix), "{prefix}\n{}", body(later));
        }
    }
}

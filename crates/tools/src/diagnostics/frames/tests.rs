use serde_json::json;

use super::*;

#[test]
fn messages_come_out_whole_however_they_are_cut() {
    let messages = [json!({"id": 1, "text": "ä\r\n\r\n"}), json!({"id": 2})];
    let bytes: Vec<u8> = messages.iter().flat_map(encode).collect();
    for size in [1, 7, bytes.len()] {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in bytes.chunks(size) {
            frames.push(piece);
            while let Some(message) = frames.next().unwrap() {
                found.push(message);
            }
        }
        assert_eq!(found, messages, "{size}");
    }
}

#[test]
fn what_is_no_message_is_refused_instead_of_kept() {
    for printed in [
        "Content-Length: 99999999999\r\n\r\n".to_owned(),
        "Content-Type: x\r\n\r\n{}".to_owned(),
        "Content-Length: 2\r\n\r\n{]".to_owned(),
        "x".repeat(5_000),
    ] {
        let mut frames = Frames::default();
        frames.push(printed.as_bytes());
        assert_eq!(frames.next(), Err(NoMessage), "{printed:.40}");
    }
}

//! Tests of the kinds of messages.

use super::*;
use crate::kinds;

#[test]
fn every_published_kind_is_shown_or_dropped() {
    kinds::check(include_str!("../../../tests/data/kinds/discord.json"), |event| {
        let message: Message = serde_json::from_value(event.clone()).expect("a message");
        if let Some(reason) = message.is_not_said() {
            return Err(reason);
        }
        let files: Vec<Attachment> = message.files().into_iter().map(|(_, file)| file).collect();
        let shown = kinds::shown(&message.said("9", None), &message.passages("9"), &files);
        match shown.trim().is_empty() {
            true => Err("it holds nothing that can be shown".to_owned()),
            false => Ok(Some(shown)),
        }
    });
}

#[test]
fn an_answer_has_the_text_and_the_files_of_what_it_answers() {
    let message: Message = serde_json::from_value(serde_json::json!({
        "content": "what is this?",
        "referenced_message": {
            "author": {"id": "7", "username": "ann"}, "attachments": [{"filename": "a.png"}],
            "message_snapshots": [{"message": {"content": "old", "attachments": [{"filename": "b.png"}]}}],
        },
    }))
    .expect("a message");
    assert_eq!(message.quoted("9").map(|quoted| quoted.text).as_deref(), Some("old"));
    let files: Vec<(String, FileOf)> = message
        .files()
        .into_iter()
        .map(|(file, attachment)| (file.filename.clone(), attachment.of))
        .collect();
    let expected = [("a.png", FileOf::Answered), ("b.png", FileOf::Answered)];
    assert_eq!(files, expected.map(|(name, of)| (name.to_owned(), of)));
}

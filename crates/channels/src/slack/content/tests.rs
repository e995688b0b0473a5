//! Tests of the kinds of messages.

use super::*;
use crate::kinds;

#[test]
fn every_published_kind_is_shown_or_dropped() {
    let name_of = |_: &str| None;
    kinds::check(include_str!("../../../tests/data/kinds/slack.json"), |event| {
        let event: Event = serde_json::from_value(event.clone()).expect("an event");
        let Some(said) = event.said() else { return Ok(None) };
        if let Some(reason) = said.dropped {
            return Err(reason);
        }
        let files: Vec<Attachment> =
            said.event.all_files().into_iter().map(|(_, file)| file).collect();
        let shown = kinds::shown(
            &said.event.text("UBOT", &name_of),
            &said.event.passages(&name_of),
            &files,
        );
        match shown.trim().is_empty() {
            true => Err("it holds nothing that can be shown".to_owned()),
            false => Ok(Some(shown)),
        }
    });
}

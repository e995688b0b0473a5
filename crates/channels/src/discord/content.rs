//! What a message holds besides its text: forwards, stickers, polls, previews and components.

use serde_json::Value;

use super::event::{File, Message};
use crate::passage::note;
use crate::{Attachment, FileOf, Passage, PassageKind};

/// Longest text of a preview, in characters. It repeats what is behind a link of the message.
const MOST_PREVIEW_CHARS: usize = 2_000;
/// How deep components are looked into: a container, a section, and what is in it.
const MOST_DEPTH: usize = 5;

impl Message {
    /// What its sender says with it. `role` is the bot's own role.
    pub(super) fn said(&self, me: &str, role: Option<&str>) -> String {
        let stickers =
            self.sticker_items.iter().map(|sticker| note("sticker", [sticker.name.as_str()]));
        let invitation = self.activity.is_object().then(|| {
            note("invitation to join", self.application.get("name").and_then(Value::as_str))
        });
        let lines = std::iter::once(self.text(me, role)).chain(stickers).chain(invitation);
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// What is in it that is no text of its sender.
    pub(super) fn passages(&self, me: &str) -> Vec<Passage> {
        let forwards = self.message_snapshots.iter().map(|snapshot| {
            Passage::new(PassageKind::Forward, None, snapshot.message.described(me))
        });
        forwards.chain(self.structures()).collect()
    }

    /// What it says, for those to whom it is passed on, and those who answer it.
    pub(super) fn described(&self, me: &str) -> String {
        let forwards =
            self.message_snapshots.iter().map(|snapshot| snapshot.message.said(me, None));
        let structures = self.structures().into_iter().map(|passage| passage.text);
        let texts = std::iter::once(self.said(me, None)).chain(forwards).chain(structures);
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    fn structures(&self) -> Vec<Passage> {
        let mut found = Vec::new();
        if !self.poll.is_null() {
            let text = |value: &Value, pointer: &str| {
                value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let answers = self.poll.get("answers").and_then(Value::as_array).into_iter().flatten();
            let answers = answers.map(|answer| text(answer, "/poll_media/text"));
            found.push(Passage::poll(text(&self.poll, "/question/text"), answers));
        }
        for embed in &self.embeds {
            let text = embed_text(embed).chars().take(MOST_PREVIEW_CHARS).collect();
            let author = embed.pointer("/author/name").or(embed.pointer("/provider/name"));
            found.push(Passage::new(
                PassageKind::Embed,
                author.and_then(Value::as_str).map(str::to_owned),
                text,
            ));
        }
        let mut texts = Vec::new();
        self.components
            .iter()
            .for_each(|component| collect_texts(component, MOST_DEPTH, &mut texts));
        if !texts.is_empty() {
            found.push(Passage::new(PassageKind::Components, None, texts.join("\n")));
        }
        found.retain(|passage| !passage.text.is_empty());
        found
    }

    /// Its files, those that it passes on, and those of the message that it answers.
    pub(super) fn files(&self) -> Vec<(&File, Attachment)> {
        let own = self.attachments.iter().map(|file| (file, FileOf::Message));
        let forwarded =
            self.message_snapshots.iter().flat_map(|snapshot| &snapshot.message.attachments);
        let answered = self.answered().into_iter().flat_map(|answered| {
            let snapshots = answered.message_snapshots.iter();
            answered
                .attachments
                .iter()
                .chain(snapshots.flat_map(|snapshot| &snapshot.message.attachments))
        });
        own.chain(forwarded.map(|file| (file, FileOf::Passage)))
            .chain(answered.map(|file| (file, FileOf::Answered)))
            .map(|(file, of)| (file, file.attachment().of(of)))
            .collect()
    }
}

/// The texts of an embed (docs.discord.com, "Embed Object").
fn embed_text(embed: &Value) -> String {
    let text = |pointer: &str| embed.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let fields = embed.get("fields").and_then(Value::as_array).into_iter().flatten().map(|field| {
        let part = |name: &str| field.get(name).and_then(Value::as_str).unwrap_or_default();
        Some(format!("{}: {}", part("name"), part("value")))
    });
    let lines = [text("/title"), text("/description")].into_iter().chain(fields);
    let lines = lines.chain([text("/footer/text"), text("/url")]);
    lines.flatten().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The texts of a component and of what is in it (docs.discord.com, "Component Reference").
fn collect_texts(component: &Value, depth: usize, texts: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    for key in ["content", "label", "description", "placeholder"] {
        texts.extend(component.get(key).and_then(Value::as_str).map(str::to_owned));
    }
    for key in ["components", "items", "options"] {
        for inner in component.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect_texts(inner, depth - 1, texts);
        }
    }
    for key in ["accessory", "component"] {
        component.get(key).into_iter().for_each(|inner| collect_texts(inner, depth - 1, texts));
    }
}

#[cfg(test)]
mod tests;

//! What a message holds besides its text: what is shared with it, previews, and blocks.

use serde::Deserialize;
use serde_json::Value;

use super::event::{Event, File, plain};
use crate::passage::note;
use crate::{Attachment, FileOf, Passage, PassageKind};

/// How deep blocks are looked into.
const MOST_DEPTH: usize = 8;

/// An attachment of Slack: a message that is shared, a preview of a link, or what an app adds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Share {
    is_share: bool,
    is_msg_unfurl: bool,
    pretext: Option<String>,
    author_name: Option<String>,
    author_subname: Option<String>,
    title: Option<String>,
    title_link: Option<String>,
    text: Option<String>,
    fallback: Option<String>,
    fields: Vec<Field>,
    footer: Option<String>,
    blocks: Vec<Value>,
    message_blocks: Vec<MessageBlocks>,
    pub(super) files: Vec<File>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Field {
    title: String,
    value: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct MessageBlocks {
    message: BlocksOf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct BlocksOf {
    blocks: Vec<Value>,
}

impl Share {
    /// Its text, in the marks of Slack.
    pub(super) fn raw_text(&self) -> String {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let blocks = || {
            let of_message = self.message_blocks.iter().flat_map(|one| &one.message.blocks);
            let text = text_of_blocks(of_message.chain(&self.blocks));
            Some(text).filter(|text| !text.is_empty())
        };
        let fields =
            self.fields.iter().map(|field| Some(format!("{}: {}", field.title, field.value)));
        let lines = [given(&self.pretext), given(&self.title), given(&self.title_link)];
        let lines = lines.into_iter().chain([given(&self.text).or_else(blocks)]).chain(fields);
        let lines: Vec<String> = lines.chain([given(&self.footer)]).flatten().collect();
        match lines.is_empty() {
            true if self.files.is_empty() => given(&self.fallback).unwrap_or_default(),
            _ => lines.join("\n"),
        }
    }

    fn passage(&self, name_of: &dyn Fn(&str) -> Option<String>) -> Passage {
        let is_share = self.is_share || self.is_msg_unfurl;
        let kind = if is_share { PassageKind::Share } else { PassageKind::Attachment };
        let author = self.author_name.clone().or_else(|| self.author_subname.clone());
        Passage::new(kind, author, plain(&self.raw_text(), name_of))
    }
}

impl Event {
    /// What is in it that is no text of its sender.
    pub(super) fn passages(&self, name_of: &dyn Fn(&str) -> Option<String>) -> Vec<Passage> {
        let shares = self.attachments.iter().map(|share| (share.passage(name_of), &share.files));
        let is_there = |(passage, files): &(Passage, &Vec<File>)| {
            !passage.text.is_empty() || !files.is_empty()
        };
        shares.filter(is_there).map(|(passage, _)| passage).collect()
    }

    /// Its files, and those of what is shared.
    pub(super) fn all_files(&self) -> Vec<(&File, Attachment)> {
        let own = self.files.iter().map(|file| (file, FileOf::Message));
        let shared = self.attachments.iter().flat_map(|share| &share.files);
        let all = own.chain(shared.map(|file| (file, FileOf::Passage)));
        all.map(|(file, of)| (file, file.attachment().of(of))).collect()
    }
}

/// The texts of blocks, one line for each (docs.slack.dev, "Blocks"), in the marks of Slack.
pub(super) fn text_of_blocks<'a>(blocks: impl IntoIterator<Item = &'a Value>) -> String {
    let lines = blocks.into_iter().map(|block| {
        let mut line = String::new();
        collect(block, MOST_DEPTH, &mut line);
        line.trim().to_owned()
    });
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn collect(block: &Value, depth: usize, line: &mut String) {
    if depth == 0 {
        return;
    }
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "user" => return line.push_str(&format!("<@{}>", text("user_id"))),
        "channel" => return line.push_str(&format!("<#{}>", text("channel_id"))),
        "usergroup" => return line.push_str(&format!("<!subteam^{}>", text("usergroup_id"))),
        "broadcast" => return line.push_str(&format!("<!{}>", text("range"))),
        "emoji" => return line.push_str(&format!(":{}:", text("name"))),
        "link" => return line.push_str(&format!("<{}|{}>", text("url"), text("text"))),
        "date" => return line.push_str(text("fallback")),
        "image" => line.push_str(&format!("{} ", note("picture:", [text("alt_text")]))),
        _ => {}
    }
    for key in ["title", "text", "value", "label", "description"] {
        match block.get(key) {
            Some(Value::String(text)) => line.push_str(text),
            Some(inner @ Value::Object(_)) => {
                collect(inner, depth - 1, line);
                line.push(' ');
            }
            _ => {}
        }
    }
    for key in ["elements", "fields", "options", "rows", "columns"] {
        for inner in block.get(key).and_then(Value::as_array).into_iter().flatten() {
            let inner_items = inner.as_array().map_or(std::slice::from_ref(inner), Vec::as_slice);
            inner_items.iter().for_each(|inner| collect(inner, depth - 1, line));
            if matches!(
                text("type"),
                "rich_text" | "rich_text_list" | "section" | "context" | "table"
            ) {
                line.push('\n');
            }
        }
    }
    if let Some(accessory) = block.get("accessory") {
        collect(accessory, depth - 1, line);
    }
}

#[cfg(test)]
mod tests;

//! The result of a call, for a model.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_engine::{ToolContext, ToolOutput};
use myclaw_files::{Access, Durability, SharedDirectory, create_private_directory};
use myclaw_llm::ContentBlock;
use myclaw_llm::outside::{MARK_CHARS, mark, visible};
use myclaw_tools::picture_from_base64;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::connection::Called;
use crate::elicitation::Declined;

/// Room for the lines around a result.
const NOTE_CHARS: usize = 400;
/// About questions of a server.
const ASKED: &str = "the server wanted to ask the user before it answered, which is not possible; the question was declined. If the \
                     answer matters, ask the user, and call the tool again with what is needed in its arguments";
/// About questions that the user has answered with no.
const REFUSED: &str = "the server asked the user something before it answered, and";
/// Most pictures of one result.
const MAX_PICTURES: usize = 8;

/// Makes a tool's output of what a server answered. Takes a while for pictures; blocks for files.
pub(crate) fn output_of(server: &str, called: &Called, context: &ToolContext) -> ToolOutput {
    let Called { result, declined } = called;
    let mut parts = Parts::default();
    for Declined { question, .. } in declined {
        parts.texts.push(format!("The server asked the user: {question}"));
    }
    if declined.iter().any(|declined| declined.why.is_none()) {
        parts.notes.push(ASKED.to_owned());
    }
    if let Some(why) = declined.iter().find_map(|declined| declined.why.as_deref()) {
        parts.notes.push(format!("{REFUSED} {why}"));
    }
    for item in result["content"].as_array().into_iter().flatten() {
        parts.take(item);
    }
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    if let Some(value) = structured
        && parts.texts.len() == declined.len()
    {
        parts.texts.push(serde_json::to_string_pretty(value).unwrap_or_default());
    }
    let text = visible(&parts.texts.join("\n"));
    let (shown, note, file) = fitting(&text, context);
    let mut whole = match shown.trim() {
        "" => format!("[the server {server} answered without text]"),
        shown => format!("Result of the MCP server {server}. {}", mark(shown)),
    };
    for line in parts.notes.iter().chain(&note) {
        whole.push_str(&format!("\n[{line}]"));
    }
    let mut content = vec![ContentBlock::text(whole)];
    content.append(&mut parts.pictures);
    let mut details = json!({"server": server});
    if let Some(file) = file {
        details["fullOutputPath"] = json!(file);
    }
    if let Some(value) = structured.filter(|value| value.to_string().len() <= 64 << 10) {
        details["structured"] = value.clone();
    }
    let is_error = result["isError"] == true;
    ToolOutput { content, details: Some(details), is_error }
}

#[derive(Default)]
struct Parts {
    texts: Vec<String>,
    pictures: Vec<ContentBlock>,
    notes: Vec<String>,
}

impl Parts {
    fn take(&mut self, item: &Value) {
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        match text("type") {
            "text" => self.texts.push(text("text").to_owned()),
            "image" if self.pictures.len() == MAX_PICTURES => {
                self.notes
                    .push(format!("more than {MAX_PICTURES} pictures; the others are left out"));
            }
            "image" => match picture_from_base64(text("data")) {
                Ok(picture) => self.pictures.push(ContentBlock::Image(picture)),
                Err(why) => self.notes.push(format!("a picture cannot be shown: {why}")),
            },
            "audio" => {
                self.notes
                    .push(format!("audio of {} bytes in base64, not shown", text("data").len()));
            }
            "resource_link" => {
                let named = [text("uri"), text("name"), text("description")];
                self.texts.push(format!("Resource: {}", named.join(" ").trim()));
            }
            "resource" => {
                let resource = &item["resource"];
                let uri = resource["uri"].as_str().unwrap_or_default();
                match resource["text"].as_str() {
                    Some(body) => self.texts.push(format!("Resource {uri}:\n{body}")),
                    None => {
                        let bytes = resource["blob"].as_str().map_or(0, str::len);
                        self.texts
                            .push(format!("Resource {uri}: {bytes} bytes in base64, not shown"));
                    }
                }
            }
            _ => self.notes.push("a part of an unknown kind is left out".to_owned()),
        }
    }
}

/// The part of `text` that fits, a note about the rest, and the file with all of it.
fn fitting<'t>(text: &'t str, context: &ToolContext) -> (&'t str, Option<String>, Option<PathBuf>) {
    let room = context.max_result_chars.saturating_sub(MARK_CHARS + NOTE_CHARS);
    let Some((at, _)) = text.char_indices().nth(room) else { return (text, None, None) };
    let cut =
        format!("output cut: the first {room} of {} characters are shown", text.chars().count());
    match keep(text, &context.artifact_directory) {
        Ok(path) => {
            let note = format!("{cut}; full output: {}", path.display());
            (&text[..at], Some(note), Some(path))
        }
        Err(error) => (&text[..at], Some(format!("{cut}; the rest cannot be kept: {error}")), None),
    }
}

/// Writes a long result next to the session.
fn keep(text: &str, directory: &Path) -> io::Result<PathBuf> {
    create_private_directory(directory)?;
    let name = format!("mcp-{}.txt", Uuid::new_v4().simple());
    let how = (Access::Owner, Durability::Unsynced);
    SharedDirectory::open(directory)?.write(&name, text.as_bytes(), how)?;
    Ok(directory.join(name))
}

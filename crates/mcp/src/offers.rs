//! What a server offers besides tools, which people ask for by name: resources to read, and prompts.

use std::collections::HashSet;
use std::time::Duration;

use myclaw_llm::outside::{mark, visible};
use myclaw_llm::{ContentBlock, TextContent};
use myclaw_tools::picture_from_base64;
use serde_json::{Map, Value, json};

use crate::connection::{Connection, Offer};
use crate::exchange::Request;
use crate::failure::Failure;

/// How long a server may take to list its resources or prompts.
const LIST_LIMIT: Duration = Duration::from_secs(20);
/// Most names that are listed, and longest one.
const MAX_NAMES: usize = 500;
const MAX_NAME: usize = 1_000;
/// Most pages of a list.
const MAX_PAGES: usize = 20;
/// Most characters of a resource or a prompt.
const MAX_CHARS: usize = 60_000;
/// Most pictures of one.
const MAX_PICTURES: usize = 4;

/// The list of what a server offers: its method, the field of the result, and that of the name of an entry.
fn list_of(offer: Offer) -> (&'static str, &'static str, &'static str) {
    match offer {
        Offer::Resources => ("resources/list", "resources", "uri"),
        Offer::Prompts => ("prompts/list", "prompts", "name"),
    }
}

/// The addresses of resources, and the names of prompts.
pub type OfferedNames = (Vec<String>, Vec<String>);

/// A prompt as a server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedPrompt {
    /// The names of its arguments, and whether each is needed.
    pub(crate) arguments: Vec<(String, bool)>,
}

impl Connection {
    /// The entries of a list, page by page; none if the server has no such list.
    async fn entries(&self, offer: Offer) -> Result<Vec<Value>, Failure> {
        if !self.offers(offer) {
            return Ok(Vec::new());
        }
        let (method, field, _) = list_of(offer);
        let (mut entries, mut cursors) = (Vec::new(), HashSet::new());
        let mut cursor = None::<String>;
        for _ in 0..MAX_PAGES {
            let cursor_of = |cursor: &String| ("cursor".to_owned(), json!(cursor));
            let params = Map::from_iter(cursor.iter().map(cursor_of));
            let mut page = self.ask(Request::new(method, params, LIST_LIMIT)).await?;
            if let Some(Value::Array(listed)) = page.get_mut(field).map(Value::take) {
                entries.extend(listed);
            }
            entries.truncate(MAX_NAMES);
            let next = page["nextCursor"].as_str().filter(|next| !next.is_empty());
            cursor = next.map(str::to_owned);
            match &cursor {
                Some(next) if entries.len() < MAX_NAMES && cursors.insert(next.clone()) => {}
                _ => break,
            }
        }
        Ok(entries)
    }

    /// The names of its resources and of its prompts.
    ///
    /// # Errors
    /// The server answers for neither.
    pub(crate) async fn all_names(&self) -> Result<OfferedNames, Failure> {
        match (self.names(Offer::Resources).await, self.names(Offer::Prompts).await) {
            (Err(failure), Err(_)) => Err(failure),
            (resources, prompts) => {
                Ok((resources.unwrap_or_default(), prompts.unwrap_or_default()))
            }
        }
    }

    /// The names in a list.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    async fn names(&self, offer: Offer) -> Result<Vec<String>, Failure> {
        let (_, _, name) = list_of(offer);
        let entries = self.entries(offer).await?;
        let names = entries.iter().filter_map(|entry| entry[name].as_str());
        // A name with a space cannot be written as one word.
        let is_word = |name: &&str| {
            name.len() <= MAX_NAME
                && !name.contains(|it: char| it.is_whitespace() || it.is_control())
        };
        Ok(names.filter(is_word).map(str::to_owned).collect())
    }

    /// The prompt of this name, if the server lists it.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub(crate) async fn prompt(&self, name: &str) -> Result<Option<ListedPrompt>, Failure> {
        let entries = self.entries(Offer::Prompts).await?;
        let entry = entries.iter().find(|entry| entry["name"] == name);
        Ok(entry.map(|entry| {
            let arguments = entry["arguments"].as_array().into_iter().flatten();
            let read = |argument: &Value| {
                Some((argument["name"].as_str()?.to_owned(), argument["required"] == true))
            };
            ListedPrompt { arguments: arguments.filter_map(read).collect() }
        }))
    }
}

impl ListedPrompt {
    /// The arguments that a line gives: `name=value` by name, other words in their order; the last argument takes the rest.
    ///
    /// # Errors
    /// One that is needed is missing, or there are too many.
    pub(crate) fn arguments(&self, line: &str) -> Result<Map<String, Value>, String> {
        let mut given = Map::new();
        let mut rest = line.trim();
        while !rest.is_empty() {
            let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let named = word
                .split_once('=')
                .filter(|(name, _)| self.arguments.iter().any(|(known, _)| known == name));
            if let Some((name, value)) = named {
                given.insert(name.to_owned(), json!(value));
                rest = behind.trim_start();
                continue;
            }
            let mut open = self.arguments.iter().filter(|(name, _)| !given.contains_key(name));
            let Some((name, _)) = open.next() else {
                return Err(format!(
                    "there are more arguments than the prompt has: {}",
                    self.usage()
                ));
            };
            let is_last = open.next().is_none();
            let value = if is_last { rest } else { word };
            rest = if is_last { "" } else { behind.trim_start() };
            given.insert(name.clone(), json!(value));
        }
        let missing =
            self.arguments.iter().find(|(name, needed)| *needed && !given.contains_key(name));
        match missing {
            Some((name, _)) => Err(format!("the argument {name} is missing: {}", self.usage())),
            None => Ok(given),
        }
    }

    fn usage(&self) -> String {
        let shown = self.arguments.iter().map(|(name, needed)| match needed {
            true => name.clone(),
            false => format!("[{name}]"),
        });
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() { "it has none".to_owned() } else { shown.join(" ") }
    }
}

/// What a model is shown of a resource.
pub(crate) fn resource_content(server: &str, uri: &str, result: &Value) -> Vec<ContentBlock> {
    let mut shown = Shown::default();
    for part in result["contents"].as_array().into_iter().flatten() {
        shown.take_resource(part);
    }
    let text = shown.text();
    let whole =
        format!("The resource {} of the MCP server {server}. {}", visible(uri), mark(&text));
    [from_outside(whole, &text)].into_iter().chain(shown.pictures).collect()
}

/// A text of which a part is a server's: a model is sent that part without marks of speakers.
fn from_outside(whole: String, part: &str) -> ContentBlock {
    let outside = whole.rfind(part).map(|at| at..at + part.len());
    let outside = outside.into_iter().collect();
    ContentBlock::Text(TextContent { text: whole, outside, ..TextContent::default() })
}

/// The message that a prompt makes.
pub(crate) fn prompt_content(server: &str, name: &str, result: &Value) -> Vec<ContentBlock> {
    let mut shown = Shown::default();
    for message in result["messages"].as_array().into_iter().flatten() {
        let content = &message["content"];
        match (content["type"].as_str(), message["role"].as_str()) {
            (Some("text"), Some("assistant")) => {
                let text = content["text"].as_str().unwrap_or_default();
                shown.texts.push(format!("(as an answer of yours:) {text}"));
            }
            (Some("text"), _) => {
                shown.texts.push(content["text"].as_str().unwrap_or_default().to_owned());
            }
            (Some("resource"), _) => {
                let mut inner = Shown::default();
                inner.take_resource(&content["resource"]);
                shown.texts.push(mark(&inner.text()));
                shown.pictures.append(&mut inner.pictures);
            }
            (Some("image"), _) => shown.take_picture(content["data"].as_str()),
            _ => shown.texts.push("(a part of another kind is left out)".to_owned()),
        }
    }
    let text = shown.text();
    let whole = format!("The prompt {name} of the MCP server {server}:\n{text}");
    shown.pictures.into_iter().chain([from_outside(whole, &text)]).collect()
}

#[derive(Default)]
struct Shown {
    texts: Vec<String>,
    pictures: Vec<ContentBlock>,
}

impl Shown {
    fn take_resource(&mut self, part: &Value) {
        let kind = part["mimeType"].as_str().unwrap_or_default();
        match (part["text"].as_str(), part["blob"].as_str()) {
            (Some(text), _) => self.texts.push(text.to_owned()),
            (None, Some(blob)) if kind.starts_with("image/") => self.take_picture(Some(blob)),
            (None, blob) => {
                let bytes = blob.map_or(0, |blob| blob.len() / 4 * 3);
                let kind = visible(kind);
                self.texts.push(format!("(about {bytes} bytes of the kind {kind:?}, not shown)"));
            }
        }
    }

    fn take_picture(&mut self, data: Option<&str>) {
        match picture_from_base64(data.unwrap_or_default()) {
            Ok(picture) if self.pictures.len() < MAX_PICTURES => {
                self.pictures.push(ContentBlock::Image(picture));
            }
            Ok(_) => self.texts.push("(a further picture is left out)".to_owned()),
            Err(why) => self.texts.push(format!("(a picture cannot be shown: {why})")),
        }
    }

    fn text(&self) -> String {
        let text = visible(&self.texts.join("\n\n"));
        match text.char_indices().nth(MAX_CHARS) {
            Some((at, _)) => {
                let count = text.chars().count();
                format!("{}\n(cut: the first {MAX_CHARS} of {count} characters)", &text[..at])
            }
            None => text,
        }
    }
}

#[cfg(test)]
mod tests;

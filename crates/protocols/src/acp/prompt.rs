//! Converts the content blocks of a prompt to text and pictures for the model.

use std::ops::Range;

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, Error};
use myclaw_llm::{ContentBlock as Block, TextContent};

use super::failure::{invalid, of};
use super::markdown::fenced;
use crate::content::picture;

/// The blocks of a prompt. Text and links that stand side by side become one text.
///
/// # Errors
/// The prompt is empty, or holds content that models cannot take.
pub(super) async fn content(prompt: Vec<ContentBlock>) -> Result<Vec<Block>, Error> {
    let mut content = PromptBuilder::default();
    for block in prompt {
        match block {
            ContentBlock::Text(text) => content.text(&text.text),
            ContentBlock::Image(image) => content.picture(image.data).await?,
            ContentBlock::ResourceLink(link) => content.link(&link.name, &link.uri),
            ContentBlock::Resource(resource) => content.resource(resource.resource).await?,
            ContentBlock::Audio(_) => {
                return Err(invalid(
                    "session/prompt: audio is not supported (promptCapabilities.audio is false)",
                ));
            }
            _ => return Err(invalid("session/prompt: a content block of an unknown type")),
        }
    }
    content.end_text();
    if content.blocks.is_empty() {
        return Err(invalid("session/prompt: the prompt is empty"));
    }
    Ok(content.blocks)
}

#[derive(Default)]
struct PromptBuilder {
    blocks: Vec<Block>,
    text: String,
    /// The parts of `text` that the client has read from files.
    outside: Vec<Range<usize>>,
    /// The kind of block that `text` ends with.
    end: End,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum End {
    /// Text of the client, which may continue.
    Text,
    Link,
    /// The next block follows without a separator.
    #[default]
    Apart,
}

impl PromptBuilder {
    /// Editors with links inside of the text send the white space around them. Others send separate blocks, which must
    /// not run together.
    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let begins = |is_meant: fn(char) -> bool| text.starts_with(is_meant);
        let has_blank = self.text.ends_with(char::is_whitespace) || begins(char::is_whitespace);
        match self.end {
            End::Text if !has_blank => self.text.push('\n'),
            End::Link if begins(char::is_alphanumeric) => self.text.push(' '),
            _ => {}
        }
        self.text.push_str(text);
        self.end = End::Text;
    }

    fn link(&mut self, name: &str, uri: &str) {
        let may_touch = |end: char| end.is_whitespace() || "([{<\"'`".contains(end);
        if self.end != End::Apart && !self.text.ends_with(may_touch) {
            self.text.push(' ');
        }
        self.text.push_str(&format!("[@{name}]({uri})"));
        self.end = End::Link;
    }

    async fn picture(&mut self, data: String) -> Result<(), Error> {
        let picture = picture(data).await.map_err(|error| of(&error))?;
        self.end_text();
        self.blocks.push(picture);
        Ok(())
    }

    /// Content that the client has read for the model, such as the unsaved state of a file.
    async fn resource(&mut self, resource: EmbeddedResourceResource) -> Result<(), Error> {
        let from = self.text.len();
        match resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                self.paragraph(&format!("{}:\n{}", text.uri, fenced("", &text.text)));
                self.outside.push(from..self.text.len());
            }
            EmbeddedResourceResource::BlobResourceContents(blob)
                if blob.mime_type.as_deref().is_some_and(|kind| kind.starts_with("image/")) =>
            {
                self.paragraph(&format!("{}:", blob.uri));
                self.picture(blob.blob).await?;
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                let kind = blob.mime_type.as_deref().unwrap_or("unknown type");
                self.paragraph(&format!("{}: (binary content, {kind}, is not shown)", blob.uri));
            }
            _ => return Err(invalid("session/prompt: a resource of an unknown type")),
        }
        Ok(())
    }

    /// Adds text as a paragraph of its own.
    fn paragraph(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        self.text.push_str("\n\n");
        self.end = End::Apart;
    }

    fn end_text(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        text.truncate(text.trim_end_matches('\n').len());
        let mut outside = std::mem::take(&mut self.outside);
        for part in &mut outside {
            part.end = part.end.min(text.len());
        }
        self.end = End::Apart;
        if !text.trim().is_empty() {
            let content = TextContent { text, outside, ..TextContent::default() };
            self.blocks.push(Block::Text(content));
        }
    }
}

#[cfg(test)]
mod tests {
    use myclaw_llm::joined_text;
    use serde_json::{Value, json};

    use super::*;

    fn read(prompt: Value) -> Result<Vec<Block>, Error> {
        let prompt = serde_json::from_value(prompt).unwrap();
        myclaw_front::runtime::block_on(content(prompt)).unwrap()
    }

    #[test]
    fn text_and_links_become_one_text() {
        let blocks = read(json!([
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///p/a.rs"},
            {"type": "text", "text": " please"},
        ]));
        assert_eq!(blocks.unwrap(), [Block::text("Look at [@a.rs](file:///p/a.rs) please")]);
    }

    #[test]
    fn blocks_that_are_said_one_by_one_do_not_run_together() {
        let (text, link) = (
            |text: &str| json!({"type": "text", "text": text}),
            |name: &str| json!({"type": "resource_link", "name": name, "uri": "u:1"}),
        );
        for (prompt, expected) in [
            (json!([text("Explain"), link("a"), link("b")]), "Explain [@a](u:1) [@b](u:1)"),
            (json!([link("a"), text("what is it?")]), "[@a](u:1) what is it?"),
            (json!([text("One."), text("- two")]), "One.\n- two"),
            (json!([text("One. "), text("two"), text("\nthree")]), "One. two\nthree"),
            (json!([text("(see "), link("a"), text("), then"), text("")]), "(see [@a](u:1)), then"),
        ] {
            assert_eq!(joined_text(&read(prompt).unwrap(), "|"), expected);
        }
    }

    #[test]
    fn resources_stand_apart_with_their_address() {
        let blocks = read(json!([
            {"type": "text", "text": "Why?"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "x\n```\n"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA", "mimeType": "application/zip"}},
        ]));
        assert_eq!(
            joined_text(&blocks.unwrap(), "|"),
            "Why?\n\nfile:///a:\n````\nx\n```\n````\n\nfile:///b: (binary content, application/zip, is not shown)"
        );
    }

    #[test]
    fn what_no_model_takes_is_refused() {
        for (prompt, why) in [
            (json!([]), "is empty"),
            (json!([{"type": "text", "text": "  \n"}]), "is empty"),
            (json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]), "audio"),
            (json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]), "picture"),
        ] {
            let error = read(prompt).unwrap_err();
            assert_eq!(i32::from(error.code), -32602);
            assert!(error.message.contains(why), "{}", error.message);
        }
    }
}

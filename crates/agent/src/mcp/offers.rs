//! Resources and prompts of MCP servers, which people name in messages: `@server:uri` and `/server:prompt`.

use futures_util::future::join_all;
use myclaw_llm::{ContentBlock, TextContent};
use tokio::runtime::Handle;

use super::ConfiguredServer;
use crate::blocking::blocking;
use crate::{AgentError, FailureClass, SessionConfig};

/// Most resources that one message names.
const MAX_RESOURCES: usize = 8;
/// What ends a word without belonging to it.
const BEHIND: [char; 10] = ['.', ',', ';', ':', '?', '!', ')', ']', '"', '\''];

/// The names that were listed when a server was approved, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferKind {
    /// As `@server:uri`.
    Resources,
    /// As `/server:prompt`.
    Prompts,
}

impl SessionConfig {
    /// A message with what it names of MCP servers: a prompt, if it is a line `/server:prompt ARGUMENTS`, and the contents of
    /// resources, which it names as `@server:uri`, marked as text of their server. Starts the servers that it names. Gives what is
    /// wrong with resources that cannot be read too.
    ///
    /// # Errors
    /// The prompt cannot be used.
    pub async fn with_server_texts(
        &self,
        content: Vec<ContentBlock>,
    ) -> Result<(Vec<ContentBlock>, Vec<String>), AgentError> {
        let (mut content, mut problems, changed) = self.server_texts(content).await?;
        if let Some(changed) = changed {
            content.push(ContentBlock::text(format!("[{changed}]")));
            problems.push(changed);
        }
        Ok((content, problems))
    }

    /// The message, what is wrong with resources, and which of those that the session has read have changed since.
    async fn server_texts(
        &self,
        content: Vec<ContentBlock>,
    ) -> Result<(Vec<ContentBlock>, Vec<String>, Option<String>), AgentError> {
        let texts = || content.iter().filter_map(own_text);
        let mut changed = self.home.mcp.take_changed(&self.session_key.to_string());
        // What is read again now needs no word.
        changed.retain(|(name, uri)| {
            !texts().any(|text| mentions(&text).contains(&(name.as_str(), uri.as_str())))
        });
        let changed = changed_words(&changed);
        if !texts().any(|text| text.starts_with('/') || !mentions(&text).is_empty()) {
            return Ok((content, Vec::new(), changed));
        }
        let session = self.clone();
        let servers = blocking(move || session.mcp_servers()).await?;
        let (mut made, mut problems) = (Vec::new(), Vec::new());
        for block in content {
            let Some(text) = own_text(&block) else {
                made.push(block);
                continue;
            };
            match prompt_in(&text, &servers) {
                Some((server, prompt, arguments)) => {
                    made.extend(server.prompt(prompt, arguments).await?);
                }
                None => made.push(block),
            }
            let named = mentions(&text).into_iter().filter_map(|(name, uri)| {
                Some((servers.iter().find(|server| server.name == name)?, uri))
            });
            let reading = named.take(MAX_RESOURCES).map(|(server, uri)| server.resource(uri));
            for read in join_all(reading).await {
                match read {
                    Ok(read) => made.extend(read),
                    Err(error) => problems.push(error.message),
                }
            }
        }
        Ok((made, problems, changed))
    }

    /// The same, with what is wrong as a note for the model.
    ///
    /// # Errors
    /// The prompt cannot be used.
    pub async fn with_server_texts_noted(
        &self,
        content: Vec<ContentBlock>,
    ) -> Result<Vec<ContentBlock>, AgentError> {
        let (mut content, problems, changed) = self.server_texts(content).await?;
        content.extend(
            problems
                .iter()
                .chain(&changed)
                .map(|problem| ContentBlock::text(format!("[{problem}]"))),
        );
        Ok(content)
    }

    /// Whether a line begins with the name of a prompt of an MCP server. Blocks for the file of the project.
    pub fn names_server_prompt(&self, line: &str) -> bool {
        line.starts_with('/')
            && line.contains(':')
            && prompt_in(line, &self.mcp_servers()).is_some()
    }

    /// What a user may write, `server:uri` or `server:prompt`: by the lists of servers that run, and of others by those that they
    /// had when they were approved. Blocks, also for the answers of servers, and must not be called by a task.
    pub fn server_offers(&self, kind: OfferKind) -> Vec<String> {
        let mut names = Vec::new();
        for server in self.mcp_servers().iter().filter(|server| server.config.is_enabled()) {
            let Ok(Some(approved)) = server.approved() else { continue };
            let (resources, prompts) =
                server.names().unwrap_or((approved.resources, approved.prompts));
            let offered = match kind {
                OfferKind::Resources => resources,
                OfferKind::Prompts => prompts,
            };
            names.extend(offered.iter().map(|name| format!("{}:{name}", server.name)));
        }
        names
    }
}

impl ConfiguredServer {
    /// The names of its resources and prompts, if it runs. Blocks.
    fn names(&self) -> Option<(Vec<String>, Vec<String>)> {
        let (server, runtime) = (self.server().ok()?, Handle::try_current().ok()?);
        runtime.block_on(server.names())
    }

    async fn resource(&self, uri: &str) -> Result<Vec<ContentBlock>, AgentError> {
        self.check_approved().await?;
        let what = |error: &dyn std::fmt::Display| {
            let why = format!(
                "the resource {uri} of the MCP server {} cannot be read: {error}",
                self.name
            );
            AgentError::new(FailureClass::Mcp, why)
        };
        let session = self.session.session_key.to_string();
        self.server()?.resource(&session, uri).await.map_err(|failure| what(&failure))
    }

    async fn prompt(&self, name: &str, arguments: &str) -> Result<Vec<ContentBlock>, AgentError> {
        self.check_approved().await?;
        self.server()?.prompt(name, arguments).await.map_err(|failure| {
            let why = format!(
                "the prompt {name} of the MCP server {} cannot be used: {failure}",
                self.name
            );
            AgentError::new(FailureClass::Mcp, why)
        })
    }

    /// Nothing of a server is used before the owner has approved it.
    async fn check_approved(&self) -> Result<(), AgentError> {
        let (server, name) = (self.clone(), &self.name);
        if !self.config.is_enabled() {
            let why = format!("the MCP server {name} is disabled in the config");
            return Err(AgentError::new(FailureClass::Mcp, why));
        }
        match blocking(move || server.approved()).await?? {
            Some(_) => Ok(()),
            None => Err(AgentError::new(
                FailureClass::Mcp,
                format!(
                    "the MCP server {name} is not approved: `myclaw mcp approve {name}` shows what it offers"
                ),
            )),
        }
    }
}

/// What is said about resources that have changed.
fn changed_words(changed: &[(String, String)]) -> Option<String> {
    let names: Vec<String> = changed.iter().map(|(name, uri)| format!("@{name}:{uri}")).collect();
    (!names.is_empty()).then(|| {
        format!(
            "changed since this session has read it: {}. A message that names it brings the new contents",
            names.join(", ")
        )
    })
}

/// What a block says in words of its writer, without what others have written in it.
fn own_text(block: &ContentBlock) -> Option<String> {
    let ContentBlock::Text(TextContent { text, outside, .. }) = block else { return None };
    let mut own = text.clone();
    for part in outside.iter().rev() {
        if own.get(part.clone()).is_some() {
            own.replace_range(part.clone(), " ");
        }
    }
    Some(own)
}

/// The server, the name and the arguments of the prompt that a line begins with.
fn prompt_in<'t, 's>(
    line: &'t str,
    servers: &'s [ConfiguredServer],
) -> Option<(&'s ConfiguredServer, &'t str, &'t str)> {
    let line = line.trim_end();
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (name, prompt) = name.strip_prefix('/')?.split_once(':')?;
    let server = servers.iter().find(|server| server.name == name)?;
    (!prompt.is_empty()).then_some((server, prompt, arguments))
}

/// The words of a text that may name a resource: the name of a server, and what follows the colon.
fn mentions(text: &str) -> Vec<(&str, &str)> {
    let words = text.split_whitespace().filter_map(|word| {
        let word = word.trim_start_matches(['(', '[', '"', '\'']).strip_prefix('@')?;
        let (name, uri) = word.split_once(':')?;
        let uri = uri.trim_end_matches(BEHIND);
        (!name.is_empty() && !uri.is_empty()).then_some((name, uri))
    });
    let mut found = Vec::new();
    for word in words {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn resources_are_named_by_a_server_and_an_address() {
        let text = "compare @docs:file:///a/b.md, (@docs:x://y?z=1) and @docs:file:///a/b.md; not me@docs:x, @file.txt or @docs:";
        assert_eq!(mentions(text), [("docs", "file:///a/b.md"), ("docs", "x://y?z=1")]);
    }
}

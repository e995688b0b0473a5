//! The tools of all servers in few tokens: all of them while they are few, else one that finds the others by words.
//!
//! What a request says of MCP depends on what was approved only, so it stays the same from turn to turn.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, CallArguments, CallSubject, MeantCall, Power, Powers, Tool, ToolContext,
    ToolDeclaration, ToolError, ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_llm::outside::mark;
use myclaw_llm::{ToolCall, ToolSchema};
use serde_json::{Map, Value, json};

use crate::definition::FINDER;
use crate::script::Script;
use crate::spec::PrepareScript;

/// Most tools that are offered with their schemas.
const MAX_TOOLS: usize = 20;
/// Most tokens that a prompt may say of MCP.
const MAX_TOKENS: usize = 1_500;
/// Bytes of a schema for one token, at least.
const BYTES_PER_TOKEN: usize = 3;
/// Bytes of names in the description of the finder.
const NAMES_BYTES: usize = 2_400;
/// Most tools that are shown for one search.
const MAX_FOUND: usize = 8;
/// Most names that are proposed for a wrong one.
const MAX_NEAR: usize = 3;
/// What a hit in a name counts for, against one in the description.
const NAME_WEIGHT: usize = 4;
/// What a wanted word counts for, against another one that means about the same.
const OWN_WEIGHT: usize = 2;
/// Words that people and tools use for the same.
const RELATED: [&[&str]; 24] = [
    &["mail", "email", "mailbox", "inbox"],
    &["message", "chat", "dm", "text", "notify", "tell"],
    &["send", "write", "post", "tell", "reply"],
    &["folder", "directory", "path"],
    &["file", "document", "txt", "contents"],
    &["save", "write", "store", "create"],
    &["find", "search", "look", "query", "lookup", "locate"],
    &["show", "get", "read", "view", "display", "open", "say", "fetch"],
    &["make", "create", "add", "new", "start", "open"],
    &["remove", "delete", "drop", "erase", "clear"],
    &["change", "update", "edit", "modify", "rename", "replace"],
    &["put", "move", "place"],
    &["pr", "pull", "merge", "review"],
    &["issue", "bug", "ticket", "report", "problem"],
    &["meeting", "appointment", "event", "calendar", "invite"],
    &["free", "available", "slot", "busy"],
    &["weather", "rain", "forecast", "temperature", "sunny"],
    &["picture", "image", "photo", "screenshot", "snapshot"],
    &["website", "site", "page", "url", "link", "web", "browser"],
    &["navigate", "visit", "browse", "open"],
    &["database", "table", "row", "sql", "select", "query"],
    &["repository", "repo", "git", "github"],
    &["person", "user", "people", "contact", "member"],
    &["channel", "room", "group"],
];

const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Find MCP tools",
    kind: ToolKind::Search,
    about: About::Argument { verb: "Find tools for", name: "find" },
    group: None,
    powers: Powers::of(&[Power::ReadsFiles]),
    place: WorkPlace::Here,
};

/// What a run offers of the tools of all servers. In code mode, `scripts` prepares where scripts run.
pub fn offered_tools(
    tools: Vec<Arc<dyn Tool>>,
    scripts: Option<Arc<PrepareScript>>,
) -> Vec<Arc<dyn Tool>> {
    if let Some(scripts) = scripts.filter(|_| !tools.is_empty()) {
        return vec![Arc::new(Finder::new(tools)), Arc::new(Script::new(scripts))];
    }
    let size = |tool: &Arc<dyn Tool>| {
        let ToolSchema { name, description, parameters } = tool.schema();
        name.len() + description.len() + parameters.to_string().len()
    };
    // What is said about many tools is not even read.
    let are_few = tools.len() <= MAX_TOOLS;
    if are_few && tools.iter().map(size).sum::<usize>() <= MAX_TOKENS * BYTES_PER_TOKEN {
        return tools;
    }
    vec![Arc::new(Finder::new(tools))]
}

/// Finds tools, and makes the calls of those it has found.
struct Finder {
    schema: ToolSchema,
    tools: Vec<Arc<dyn Tool>>,
}

impl Finder {
    fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut names = String::new();
        let mut left_out = 0;
        for tool in &tools {
            let name = tool.name();
            if names.len() + name.len() > NAMES_BYTES {
                left_out += 1;
                continue;
            }
            names.push_str(if names.is_empty() { "" } else { ", " });
            names.push_str(name);
        }
        if left_out > 0 {
            names.push_str(&format!(", and {left_out} more"));
        }
        let description = format!(
            "The tools of MCP servers. First give `find`: words for what you want to do; you get the tools that fit, with \
             their arguments. Then give `call` and `arguments` to use one. There are: {names}"
        );
        let parameters = json!({
            "type": "object",
            "properties": {
                "find": {"type": "string", "description": "Words for what you want to do, or the name of a tool"},
                "call": {"type": "string", "description": "The name of a tool"},
                "arguments": {"type": "object", "description": "The arguments of that tool"},
            },
        });
        Self { schema: ToolSchema { name: FINDER.to_owned(), description, parameters }, tools }
    }

    /// The tools that fit best, best first.
    fn found(&self, wanted: &str) -> Vec<&Arc<dyn Tool>> {
        let wanted_words = words(wanted);
        let described: Vec<(Vec<String>, Vec<String>)> = self
            .tools
            .iter()
            .map(|tool| {
                let schema = tool.schema();
                let mut about = words(&schema.description);
                about.extend(words(&argument_words(&schema.parameters)));
                (words(&schema.name), about)
            })
            .collect();
        // A word that is everywhere says little.
        let rarity = |word: &str| {
            let holds = |(name, about): &&(Vec<String>, Vec<String>)| {
                name.iter().chain(about).any(|other| is_like(other, word))
            };
            let holding = described.iter().filter(holds).count();
            if holding == 0 { 0 } else { 1 + described.len() * 16 / (holding + 8) }
        };
        // Each word, and others that mean about the same and count for less.
        let variants: Vec<Vec<(&str, usize)>> = wanted_words
            .iter()
            .map(|word| {
                let own = (word.as_str(), OWN_WEIGHT * rarity(word));
                let related = related_words(word).map(|other| (other, rarity(other)));
                std::iter::once(own).chain(related).filter(|(_, weight)| *weight > 0).collect()
            })
            .collect();
        let score = |(name, about): &(Vec<String>, Vec<String>)| -> usize {
            let of_variant = |(word, weight): &(&str, usize)| {
                let in_name = name.iter().any(|other| is_like(other, word));
                let in_about = about.iter().any(|other| is_like(other, word));
                weight * (NAME_WEIGHT * usize::from(in_name) + usize::from(in_about))
            };
            let of_word = |variants: &Vec<(&str, usize)>| variants.iter().map(of_variant).max();
            variants.iter().filter_map(of_word).sum()
        };
        let mut scored: Vec<(usize, usize)> =
            described.iter().map(score).enumerate().map(|(index, score)| (score, index)).collect();
        scored.retain(|(score, _)| *score > 0);
        scored.sort_by_key(|(score, index)| (usize::MAX - score, *index));
        scored.iter().take(MAX_FOUND).map(|(_, index)| &self.tools[*index]).collect()
    }
}

/// The names and descriptions of arguments.
fn argument_words(schema: &Value) -> String {
    let mut text = String::new();
    for (name, about) in schema["properties"].as_object().into_iter().flatten() {
        text.push_str(name);
        text.push(' ');
        text.push_str(about["description"].as_str().unwrap_or_default());
        text.push(' ');
    }
    text
}

/// The words of a text or a name in one of the usual spellings, in small letters, without those that say nothing.
fn words(text: &str) -> Vec<String> {
    const EMPTY: [&str; 26] = [
        "the", "and", "for", "with", "from", "that", "this", "you", "can", "its", "are", "was",
        "what", "which", "how", "all", "any", "use", "tool", "please", "want", "need", "mcp",
        "server", "into", "out",
    ];
    let mut found: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before_is_small = false;
    for char in text.chars().chain([' ']) {
        let begins_anew = char.is_uppercase() && before_is_small;
        if !char.is_alphanumeric() || begins_anew {
            if word.chars().count() > 1 && !EMPTY.contains(&word.as_str()) && !found.contains(&word)
            {
                found.push(std::mem::take(&mut word));
            }
            word.clear();
        }
        if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
        before_is_small = char.is_lowercase() || char.is_numeric();
    }
    found
}

/// Words that mean about the same as this one.
fn related_words(word: &str) -> impl Iterator<Item = &'static str> {
    let groups = RELATED.iter().filter(move |group| group.iter().any(|other| is_like(other, word)));
    groups.flat_map(|group| group.iter().copied())
}

/// Whether two words are the same but for an ending, as `files` and `file`, `creates` and `create`, `deleting` and `delete`.
fn is_like(one: &str, other: &str) -> bool {
    const STEM: usize = 4;
    if one == other {
        return true;
    }
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let stem = short.strip_suffix('e').or_else(|| short.strip_suffix('y')).unwrap_or(short);
    let rest = long.strip_prefix(stem).unwrap_or("-");
    let is_ending =
        matches!(rest, "s" | "es" | "ed" | "d" | "ing" | "er" | "e" | "ies" | "ion" | "y");
    is_ending && (stem.len() >= STEM || rest == "s" && stem.len() >= 3)
}

impl Tool for Finder {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        DECLARATION
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        Ok(CallSubject::of(arguments))
    }

    fn stands_for(&self, arguments: &Map<String, Value>) -> Option<Result<MeantCall, String>> {
        let name = arguments.get("call")?.as_str()?.trim();
        let is_it = |tool: &&Arc<dyn Tool>| tool.name() == name;
        let Some(tool) = self.tools.iter().find(is_it) else {
            let mut names: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
            names.sort_by(|one, other| {
                strsim::jaro_winkler(other, name).total_cmp(&strsim::jaro_winkler(one, name))
            });
            names.truncate(MAX_NEAR);
            return Some(Err(format!(
                "there is no MCP tool {name:?}; the nearest names are {}. Give `find` to look for another one",
                names.join(", ")
            )));
        };
        let given = match arguments.get("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(given)) => given.clone(),
            // Some models write the object as a text.
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Object(given)) => given,
                _ => return Some(Err("`arguments` must be an object".to_owned())),
            },
            Some(_) => return Some(Err("`arguments` must be an object".to_owned())),
        };
        Some(Ok((Arc::clone(tool), given)))
    }

    fn recall<'a>(
        &'a self,
        call: &'a ToolCall,
        asked_at: u64,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move {
            let (tool, arguments) = self.stands_for(&call.arguments)?.ok()?;
            let meant = ToolCall { arguments, ..call.clone() };
            tool.recall(&meant, asked_at, context).await
        })
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let wanted = invocation.call.arguments["find"].as_str().unwrap_or_default();
            if wanted.trim().is_empty() {
                return Err(ToolError::Failed(
                    "give `find` with words for what you want to do, or `call` with the name of a tool".to_owned(),
                ));
            }
            // What is said about them is read from files.
            let tools = self.tools.clone();
            let read = move || tools.iter().all(|tool| !tool.schema().name.is_empty());
            tokio::task::spawn_blocking(read)
                .await
                .map_err(|error| ToolError::Failed(error.to_string()))?;
            let found = self.found(wanted);
            if found.is_empty() {
                return Ok(ToolOutput::text(
                    "No MCP tool fits these words. Try others; the names are in the description of this tool.",
                ));
            }
            let most = invocation.context.max_result_chars / MAX_FOUND;
            let shown: Vec<String> = found
                .into_iter()
                .map(|tool| {
                    let ToolSchema { name, description, parameters } = tool.schema();
                    let text = format!("{name}: {description}\nArguments: {parameters}");
                    text.chars().take(most).collect()
                })
                .collect();
            let text =
                format!("Use one with `call` and `arguments`. {}", mark(&shown.join("\n\n")));
            Ok(ToolOutput::text(text))
        })
    }
}

#[cfg(test)]
mod tests;

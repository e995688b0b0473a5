//! The tools `memory_search` and `memory_get`: the notes that an agent keeps in its workspace, and its earlier sessions.
//!
//! Notes are `MEMORY.md` and the Markdown files in `memory/`, besides files and directories that the config names. Nothing
//! else can be read with these tools: links are resolved before a path is compared, and the kernel confines the thread that
//! reads, where it can.

mod notes;
mod passages;
mod words;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, Tool, ToolAliases, ToolContext, ToolDeclaration, ToolError,
    ToolInvocation, ToolOutput,
};
use myclaw_llm::{ContentBlock, ToolSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::notes::{Found, Notes};
use self::passages::Passage;
use self::words::Query;
use crate::support::{Listing, plain_text, run_blocking};
use crate::{aliases, declarations};

/// Most passages that a call can ask for.
const MOST_RESULTS: u64 = 50;

/// Where an agent's notes are, and how they are searched.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryOptions {
    /// The workspace of the agent, absolute: it has `MEMORY.md` and `memory/`.
    pub workspace: PathBuf,
    /// Further Markdown files and directories with some, absolute.
    pub extra: Vec<PathBuf>,
    /// Most passages of a result, unless a call asks for another number.
    pub max_results: usize,
    /// The lowest score of a passage, from 0 to 1, unless a call asks for another one.
    pub min_score: f64,
}

/// Compares the meaning of passages with that of a query.
pub trait Meaning: Send + Sync {
    /// Blocks. Ends early when `cancel` fires.
    ///
    /// # Errors
    /// It is not possible; why, as the end of a sentence.
    fn compare(
        &self,
        query: &str,
        passages: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<Compared>, String>;
}

/// How similar the meaning of one passage is to that of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compared {
    /// At most 1; 0 if they have nothing to do with each other.
    Similarity(f32),
    /// It was not compared this time, because there are too many new passages.
    Skipped,
}

/// Searches the sessions that whoever asks may see.
pub trait Recall: Send + Sync {
    /// The best passages for a query, the best first, and a remark about what was left out. Blocks.
    ///
    /// # Errors
    /// The sessions cannot be searched; why, as the end of a sentence.
    fn recall(&self, query: &str, most: usize) -> Result<(Vec<Recalled>, Option<String>), String>;
}

/// A passage of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// The session and when it was, in words.
    pub place: String,
    /// What was said.
    pub text: String,
}

/// The notes of an agent, for [`ToolOptions`](crate::ToolOptions).
#[derive(Clone)]
pub struct Memory {
    /// Where they are, and how they are searched.
    pub options: MemoryOptions,
    /// Compares meanings; without it searches go by words alone.
    pub meaning: Option<Arc<dyn Meaning>>,
    /// Searches earlier sessions.
    pub sessions: Option<Arc<dyn Recall>>,
}

/// Searches the notes.
pub struct MemorySearchTool(Memory);

/// Reads lines of a note.
pub struct MemoryGetTool(MemoryOptions);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
    #[serde(default, rename = "maxResults")]
    max_results: Option<u64>,
    #[serde(default, rename = "minScore")]
    min_score: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    path: String,
    #[serde(default)]
    from: Option<u64>,
    #[serde(default)]
    lines: Option<u64>,
}

/// The schema that the model reads. All sessions share it.
static SEARCH_SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| ToolSchema {
    name: "memory_search".to_owned(),
    description: "Search your notes and earlier sessions.".to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }),
});

/// The schema that the model reads. All sessions share it.
static GET_SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| ToolSchema {
    name: "memory_get".to_owned(),
    description: "Read a note, or some of its lines, by a path that memory_search gave.".to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Such as MEMORY.md or memory/2026-01-31.md"},
            "from": {"type": "integer", "minimum": 1, "description": "First line; default 1"},
            "lines": {"type": "integer", "minimum": 1, "description": "Number of lines; default: all"},
        },
        "required": ["path"],
    }),
});

/// The tools for what there is: facts are found as a whole, so that a tool which reads notes is of use only with others.
pub(crate) fn memory_tools(memory: Memory) -> Vec<Arc<dyn Tool>> {
    let get = MemoryGetTool(memory.options.clone());
    let has_notes = Notes::of(&memory.options).are_there();
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(MemorySearchTool(memory))];
    if has_notes {
        tools.push(Arc::new(get));
    }
    tools
}

impl Tool for MemorySearchTool {
    fn schema(&self) -> &ToolSchema {
        &SEARCH_SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::MEMORY_SEARCH
    }

    fn aliases(&self) -> ToolAliases {
        aliases::MEMORY_SEARCH
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        // It reads the notes and nothing else.
        Ok(CallSubject::of(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments: SearchArguments = invocation.call.arguments.parse()?;
            let (context, cancel) = (invocation.context.clone(), invocation.cancel);
            let memory = self.0.clone();
            run_blocking(move || search(&memory, &context, &arguments, &cancel)).await
        })
    }
}

impl Tool for MemoryGetTool {
    fn schema(&self) -> &ToolSchema {
        &GET_SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::MEMORY_GET
    }

    fn aliases(&self) -> ToolAliases {
        aliases::MEMORY_GET
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        // It reads the notes and nothing else.
        Ok(CallSubject::of(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments: GetArguments = invocation.call.arguments.parse()?;
            let (context, options) = (invocation.context.clone(), self.0.clone());
            run_blocking(move || get(&options, &context, &arguments)).await
        })
    }
}

/// What a search found.
#[derive(Debug, Default)]
pub struct MemoryHits {
    /// The passages of notes and sessions as a model reads them, each with its place for user interfaces; the best first.
    pub entries: Vec<(String, Value)>,
    /// What whoever reads them should know.
    pub remarks: Vec<String>,
    /// How the notes were compared.
    by: &'static str,
    /// Stands in the place of no passages.
    nothing: String,
}

impl Memory {
    /// Searches the notes, and the sessions if they are searched. Blocks.
    ///
    /// # Errors
    /// The query has no words, or the notes cannot be read.
    pub fn find(
        &self,
        text: &str,
        most: Option<usize>,
        cancel: &CancellationToken,
    ) -> Result<MemoryHits, ToolError> {
        find(self, text, most.unwrap_or(self.options.max_results), self.options.min_score, cancel)
    }
}

fn search(
    memory: &Memory,
    context: &ToolContext,
    arguments: &SearchArguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let options = &memory.options;
    let least = arguments.min_score.unwrap_or(options.min_score);
    let asked = arguments.max_results.filter(|number| *number > 0).map(|n| n.min(MOST_RESULTS));
    let most = asked.and_then(|number| usize::try_from(number).ok()).unwrap_or(options.max_results);
    Ok(result(&find(memory, &arguments.query, most, least, cancel)?, context))
}

fn find(
    memory: &Memory,
    text: &str,
    most: usize,
    least: f64,
    cancel: &CancellationToken,
) -> Result<MemoryHits, ToolError> {
    let mut query = Query::new(text);
    if query.is_empty() {
        return Err(ToolError::Failed(
            "the query has no words; say in a few words what to look for".to_owned(),
        ));
    }
    let Found { passages, mut remarks } = Notes::of(&memory.options).passages(cancel)?;
    for passage in &passages {
        query.count(&passage.path, &passage.text);
    }
    let mut scores = query.scores();
    let mut by = "words";
    if let Some(meaning) = memory.meaning.as_deref().filter(|_| !passages.is_empty()) {
        match compare(meaning, text, &passages, cancel) {
            Ok(compared) => {
                by = "words and meaning";
                remarks.extend(take_in(&mut scores, &compared));
            }
            Err(why) => remarks.push(format!("searched by words alone: {why}")),
        }
    }
    if cancel.is_cancelled() {
        return Err(ToolError::Aborted("aborted before the search was done".to_owned()));
    }
    let mut ranked: Vec<(f64, &Passage)> = scores
        .into_iter()
        .zip(&passages)
        .filter(|(score, _)| *score > 0.0 && *score >= least)
        .collect();
    // Equal scores stay in the order of the notes.
    ranked.sort_by(|left, right| right.0.total_cmp(&left.0));
    let fitting = ranked.len();
    ranked.truncate(most);
    if ranked.len() < fitting {
        remarks.push(format!(
            "{} of {fitting} passages shown; maxResults (--limit) shows more",
            ranked.len()
        ));
    }
    let recalled = match memory.sessions.as_ref().map(|sessions| sessions.recall(text, most)) {
        None => Vec::new(),
        Some(Ok((recalled, remark))) => {
            remarks.extend(remark);
            recalled
        }
        Some(Err(why)) => {
            remarks.push(format!("earlier sessions were not searched: {why}"));
            Vec::new()
        }
    };
    let nothing = match passages.is_empty() {
        true => "nothing fits, and there are no notes yet".to_owned(),
        false => format!("none of {} passages fits; try other words", passages.len()),
    };
    Ok(MemoryHits { entries: joined(&ranked, &recalled, most), remarks, by, nothing })
}

fn compare(
    meaning: &dyn Meaning,
    query: &str,
    passages: &[Passage],
    cancel: &CancellationToken,
) -> Result<Vec<Compared>, String> {
    let texts: Vec<&str> = passages.iter().map(|passage| passage.text.as_str()).collect();
    meaning.compare(query, &texts, cancel)
}

/// A passage that has the words, or means the same, is found: the greater of the two scores counts. Returns a remark if
/// passages were left out.
fn take_in(scores: &mut [f64], compared: &[Compared]) -> Option<String> {
    let mut skipped = 0_usize;
    for (score, compared) in scores.iter_mut().zip(compared) {
        match compared {
            Compared::Similarity(similarity) => *score = score.max(f64::from(*similarity)),
            Compared::Skipped => skipped += 1,
        }
    }
    (skipped > 0).then(|| {
        format!("{skipped} passages were compared by their words alone, because too many are new")
    })
}

/// A passage of a result: as the model reads it, and for user interfaces.
type Entry = (String, Value);

/// The passages of both rankings by their reciprocal ranks, which is by turns; of two with one rank the note is first.
fn joined(notes: &[(f64, &Passage)], sessions: &[Recalled], most: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for rank in 0..notes.len().max(sessions.len()) {
        if let Some((score, Passage { path, first, last, text })) = notes.get(rank) {
            let text = plain_text(text);
            let shown = format!("{path}:{first}-{last} (score {score:.2})\n{}\n", text.trim_end());
            let details = json!({"path": path, "from": first, "to": last, "score": score});
            entries.push((shown, details));
        }
        if let Some(Recalled { place, text }) = sessions.get(rank) {
            let shown = format!("{place}\n{}\n", plain_text(text).trim_end());
            entries.push((shown, json!({"session": place})));
        }
    }
    entries.truncate(most);
    entries
}

fn result(hits: &MemoryHits, context: &ToolContext) -> ToolOutput {
    let mut listing = Listing::new(context.max_result_chars);
    let mut details = Vec::new();
    let mut remarks = hits.remarks.clone();
    for (shown, about) in &hits.entries {
        if listing.push_line(shown).is_err() {
            remarks.push(format!("{} of {} passages shown", details.len(), hits.entries.len()));
            break;
        }
        details.push(about);
    }
    let text = listing.finish(&hits.nothing, &remarks);
    ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: Some(json!({"results": details, "by": hits.by})),
        is_error: false,
    }
}

fn get(
    options: &MemoryOptions,
    context: &ToolContext,
    arguments: &GetArguments,
) -> Result<ToolOutput, ToolError> {
    let (path, text) = Notes::of(options).read(&arguments.path)?;
    let total = text.lines().count();
    let from = arguments.from.filter(|from| *from > 0).unwrap_or(1);
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    if from > total && total > 0 {
        return Err(ToolError::Failed(format!("{path} has {total} lines, so there is no {from}")));
    }
    let wanted = arguments.lines.and_then(|lines| usize::try_from(lines).ok());
    let wanted = wanted.filter(|lines| *lines > 0).unwrap_or(usize::MAX);
    let mut listing = Listing::new(context.max_result_chars);
    let mut last = from - 1;
    for line in text.lines().skip(from - 1).take(wanted) {
        if listing.push_line(&plain_text(line)).is_err() {
            break;
        }
        last += 1;
    }
    let mut remarks = Vec::new();
    if (from, last) != (1, total) && total > 0 {
        remarks.push(format!("lines {from} to {last} of {total}"));
    }
    let text = listing.finish("(empty note)", &remarks);
    let details = json!({"path": path, "from": from, "to": last, "lines": total});
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: Some(details),
        is_error: false,
    })
}

#[cfg(test)]
mod tests;

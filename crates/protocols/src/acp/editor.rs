//! The editor's own files and terminals behind the tools of a session.
//!
//! The tools of MyClaw stay what they are: the policy, the checks of paths and the record of changes are theirs. What is
//! different: `read` shows changes that are not saved yet; before a tool changes a file, the editor saves what it has
//! there, if the model has read that; and after a change the editor gets the new text. Where the editor does not answer,
//! the file on disk counts.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, ReadTextFileRequest, ReadTextFileResponse, SessionId, WriteTextFileRequest,
};
use futures_util::future::BoxFuture;
use myclaw_agent::{FrontEndTools, SessionConfig};
use myclaw_engine::{PreparedCall, Tool, ToolError, ToolInvocation, ToolKind, ToolOutput};
use myclaw_executor::{CallHandler, with_handler};
use myclaw_files::read_regular;
use myclaw_llm::ContentBlock;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::client_sessions::ClientSessions;
use super::requests::Requests;
use super::terminal::TerminalCalls;
use super::translator::Abilities;

/// Longest wait for the editor's answer about a file.
const PATIENCE: Duration = Duration::from_secs(10);
/// Larger files are not asked for.
const MOST_BYTES: u64 = 10 * 1024 * 1024;
/// Unsaved texts that the model has read and that are remembered; beyond it all are forgotten.
const MOST_SEEN: usize = 1_000;
/// Characters of a result that are kept free for the note.
const NOTE_CHARS: usize = 200;

/// The tools of sessions that editors have opened.
pub(super) struct EditorTools {
    requests: Arc<Requests>,
    sessions: Arc<ClientSessions>,
    seen: Arc<Seen>,
}

/// The unsaved texts that models have read, by session and path.
#[derive(Default)]
struct Seen(Mutex<HashMap<(SessionId, PathBuf), u64>>);

/// The calls of one session that concern files.
struct FileCalls {
    requests: Arc<Requests>,
    session: SessionId,
    seen: Arc<Seen>,
    abilities: Abilities,
    /// The tool that shows files, by which a text counts as read.
    reader: Option<Arc<dyn Tool>>,
}

impl EditorTools {
    pub(super) fn new(requests: Arc<Requests>, sessions: Arc<ClientSessions>) -> Self {
        Self { requests, sessions, seen: Arc::default() }
    }
}

impl FrontEndTools for EditorTools {
    fn tools(&self, _: &SessionConfig) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn adapt(&self, session: &SessionConfig, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        let abilities = self.sessions.abilities();
        let Some(id) = self.sessions.id(&session.session_key) else { return tools };
        let reader = tools.iter().find(|tool| tool.declaration().kind == ToolKind::Read).cloned();
        let files: Arc<dyn CallHandler> = Arc::new(FileCalls {
            requests: Arc::clone(&self.requests),
            session: id.clone(),
            seen: Arc::clone(&self.seen),
            abilities,
            reader,
        });
        let terminals: Arc<dyn CallHandler> = Arc::new(TerminalCalls {
            requests: Arc::clone(&self.requests),
            session: id,
            limit: Duration::from_secs(session.config.tools.bash.timeout_seconds),
        });
        let adapted = |tool: Arc<dyn Tool>| match tool.declaration().kind {
            ToolKind::Read if abilities.reads_files => with_handler(tool, Arc::clone(&files)),
            ToolKind::Change if abilities.writes_files => with_handler(tool, Arc::clone(&files)),
            ToolKind::Run if abilities.has_terminals && !session.keeps_commands() => {
                with_handler(tool, Arc::clone(&terminals))
            }
            _ => tool,
        };
        tools.into_iter().map(adapted).collect()
    }
}

impl CallHandler for FileCalls {
    fn handle<'a>(
        &'a self,
        tool: &'a dyn Tool,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match tool.declaration().kind {
                ToolKind::Read => self.read(tool, invocation).await,
                _ => self.change(tool, invocation).await,
            }
        })
    }
}

impl FileCalls {
    /// Reads a file, with what is not saved yet.
    async fn read(
        &self,
        tool: &dyn Tool,
        invocation: ToolInvocation<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let arguments = invocation.call.arguments.as_map().clone();
        let most = invocation.context.max_result_chars;
        let path = paths_of(&invocation).into_iter().next();
        // First, because this decides whether the file may be read at all.
        let saved = tool.execute(invocation).await?;
        let Some(path) = path else { return Ok(saved) };
        let Some(unsaved) = self.unsaved(&path).await else { return Ok(saved) };
        self.seen.remember(&self.session, &path, &unsaved);
        let (text, note) = excerpt(&unsaved, &arguments, most.saturating_sub(NOTE_CHARS));
        let note = format!(
            "[the editor has changes in this file that are not saved; this is its text{note}]"
        );
        Ok(ToolOutput { content: vec![ContentBlock::text(format!("{text}\n{note}"))], ..saved })
    }

    /// Changes files, on top of what is not saved yet.
    async fn change(
        &self,
        tool: &dyn Tool,
        invocation: ToolInvocation<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let paths = paths_of(&invocation);
        for path in &paths {
            if let Some(unsaved) = self.unsaved(path).await {
                self.save(path, &unsaved, &invocation).await?;
            }
        }
        let before: Vec<Option<String>> = paths.iter().map(|path| text_of(path)).collect();
        let changed = tool.execute(invocation).await?;
        for (path, before) in paths.iter().zip(before) {
            if let Some(text) = text_of(path).filter(|text| before.as_ref() != Some(text)) {
                // The file is on disk; an editor that refuses reads it from there.
                if let Err(why) = self.write(path, &text).await {
                    tracing::debug!(path = %path.display(), %why, "the editor does not take a file");
                }
            }
        }
        Ok(changed)
    }

    /// Has the editor save what it has, if the model has read that.
    async fn save(
        &self,
        path: &Path,
        unsaved: &str,
        invocation: &ToolInvocation<'_>,
    ) -> Result<(), ToolError> {
        let shown = path.display();
        if !self.seen.knows(&self.session, path, unsaved) {
            return Err(ToolError::Failed(format!(
                "the user has changes in {shown} that are not saved and that you have not read; read it first"
            )));
        }
        let saved = self.write(path, unsaved).await;
        if let Err(why) = saved {
            return Err(ToolError::Failed(format!("the editor cannot save {shown}: {why}")));
        }
        if text_of(path).as_deref() != Some(unsaved) {
            return Err(ToolError::Failed(format!(
                "the editor has not saved its changes in {shown}; ask the user to save the file"
            )));
        }
        // The text on disk is the one that the model has read, which the tool must know.
        if let Some(reader) = &self.reader {
            let path = path.to_string_lossy().into_owned();
            let arguments = Map::from_iter([("path".to_owned(), Value::String(path))]);
            let id = &invocation.call.tool_call_id;
            let call = PreparedCall::new(&**reader, id, arguments, invocation.context)?;
            let reading = ToolInvocation {
                call: &call,
                on_update: &|_| {},
                context: invocation.context,
                cancel: invocation.cancel.clone(),
            };
            reader.execute(reading).await?;
        }
        Ok(())
    }

    /// The editor's text of a file, if it differs from that on disk.
    async fn unsaved(&self, path: &Path) -> Option<String> {
        if !self.abilities.reads_files {
            return None;
        }
        let saved = text_of(path)?;
        let request = ReadTextFileRequest::new(self.session.clone(), path);
        let asking = self
            .requests
            .ask::<ReadTextFileResponse>(CLIENT_METHOD_NAMES.fs_read_text_file, request);
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        let text = match answer.unwrap_or_else(|_| Err("it gives no answer".to_owned())) {
            Ok(response) => response.content,
            Err(why) => {
                tracing::debug!(path = %path.display(), %why, "the editor does not give a file");
                return None;
            }
        };
        // Editors leave out the mark at the beginning of a file, and may end lines in their own way.
        let plain = |text: &str| text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        (plain(&text) != plain(&saved)).then_some(text)
    }

    async fn write(&self, path: &Path, text: &str) -> Result<(), String> {
        let request = WriteTextFileRequest::new(self.session.clone(), path, text);
        let asking = self.requests.ask::<Value>(CLIENT_METHOD_NAMES.fs_write_text_file, request);
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        answer.unwrap_or_else(|_| Err("it gives no answer".to_owned())).map(drop)
    }
}

impl Seen {
    fn remember(&self, session: &SessionId, path: &Path, text: &str) {
        let mut seen = self.0.lock();
        if seen.len() >= MOST_SEEN {
            seen.clear();
        }
        seen.insert((session.clone(), path.to_owned()), digest(text));
    }

    fn knows(&self, session: &SessionId, path: &Path, text: &str) -> bool {
        let seen = self.0.lock();
        seen.get(&(session.clone(), path.to_owned())) == Some(&digest(text))
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The files that a call touches, as they were judged.
fn paths_of(invocation: &ToolInvocation<'_>) -> Vec<PathBuf> {
    invocation.call.subject.targets().map(|target| target.path.clone()).collect()
}

pub(super) fn absolute(directory: &Path, path: &str) -> PathBuf {
    // `components` drops redundant parts such as `./`.
    directory.join(path).components().collect()
}

/// The text of a file of usual size on disk.
fn text_of(path: &Path) -> Option<String> {
    let bytes = read_regular(path, MOST_BYTES + 1).ok()?;
    if bytes.len() as u64 > MOST_BYTES {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// The lines of a text that a call asks for, as many as fit, and which they are.
fn excerpt(text: &str, arguments: &Map<String, Value>, most_chars: usize) -> (String, String) {
    let number = |name| {
        let number = arguments.get(name).and_then(Value::as_u64)?;
        usize::try_from(number).ok()
    };
    let first = number("startLine").unwrap_or(1).max(1);
    let last = number("endLine").unwrap_or(usize::MAX);
    let (mut shown, mut count, mut end) = (String::new(), 0, first.saturating_sub(1));
    for line in text.lines().take(last).skip(first - 1) {
        count += line.chars().count() + 1;
        if count > most_chars {
            break;
        }
        shown.push_str(line);
        shown.push('\n');
        end += 1;
    }
    let total = text.lines().count();
    let note = match first == 1 && end == total {
        true => String::new(),
        false => format!(", lines {first} to {end} of {total}"),
    };
    (shown.trim_end_matches('\n').to_owned(), note)
}

//! The sessions of this machine that work at this moment, what they do, and requests to them by other processes.
//!
//! A turn leaves a mark for as long as it goes on, so nobody has to look at all sessions. What the session does is read from its
//! log, whose end decides the next step. The answer to a question lies with the question, where the process looks that asks. A stop is a file, for which
//! the process of a turn looks twice a second.

use std::cmp::Reverse;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::{Durability, NewFile, create_private_directory, now_ms, remove_if_there};
use myclaw_llm::Usage;
use myclaw_session::{Role, SessionKey, TailLimit, TranscriptMessage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::task::AbortOnDropHandle;

use crate::approvals::{ApprovalsError, WaitingApproval};
use crate::{AgentError, FailureClass, Home, SessionConfig};

mod marks;

pub(crate) use marks::TurnMark;

/// The directory of the stops in the state directory.
const STOPS: &str = "stops";
/// How often the process of a turn looks for a stop.
const INTERVAL: Duration = Duration::from_millis(500);

/// A session in a turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningSession {
    /// Its key.
    pub session: SessionKey,
    /// The model that has answered in this turn, as `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the message came that it answers, in milliseconds since 1970.
    pub since: u64,
    /// What it does now.
    pub doing: Doing,
    /// What this turn has cost so far, in millionths of a US dollar.
    pub micro_dollars: u64,
    /// Its questions that wait for an answer, the oldest first.
    pub questions: Vec<WaitingApproval>,
}

/// What a session does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "camelCase")]
pub enum Doing {
    /// It waits for the model, or reads what that says.
    Model,
    /// It runs tools.
    Tools {
        /// The calls without a result.
        calls: Vec<RunningCall>,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningCall {
    /// The model's id for the call.
    #[serde(rename(deserialize = "id"))]
    pub tool_call_id: String,
    /// The tool.
    #[serde(rename(deserialize = "name"))]
    pub tool: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
}

/// The sessions that some process has in a turn, the latest first.
///
/// # Errors
/// The sessions or the questions cannot be read.
pub fn running_sessions(home: &Home) -> Result<Vec<RunningSession>, AgentError> {
    let Some(turns) = &home.stores().turns else { return Ok(Vec::new()) };
    let marked = marks::marked(turns).map_err(|error| {
        let shown = turns.display();
        let message = format!("failed to read in {shown} which sessions work: {error}");
        AgentError::new(FailureClass::Session, message)
    })?;
    // A turn that waits for its session or for a place does nothing yet.
    let mut in_use = Vec::new();
    for key in marked {
        if home.sessions().is_in_use(&key)? {
            in_use.push(key);
        }
    }
    if in_use.is_empty() {
        return Ok(Vec::new());
    }
    let (_, questions) = home.stores().approvals.list()?;
    let described = in_use.into_iter().map(|key| {
        let of_it = questions.iter().filter(|asked| asked.session == key.as_str());
        let of_it = of_it.cloned().collect();
        described(home, key, of_it)
    });
    let mut described = described.collect::<Result<Vec<_>, _>>()?;
    described.sort_by_key(|session| Reverse(session.since));
    Ok(described)
}

fn described(
    home: &Home,
    key: SessionKey,
    questions: Vec<WaitingApproval>,
) -> Result<RunningSession, AgentError> {
    // Of the log only the last turn is read, and the list of all sessions not at all: it is long.
    let last = TailLimit { max_cost: 1, cost: |_, _| 1, ..TailLimit::UNLIMITED };
    let rows = match home.catalog().read(&key)? {
        Some(reader) => reader.tail(last)?.messages,
        None => Vec::new(),
    };
    let begun = rows.iter().rfind(|row| row.role == Role::User).map(|row| row.ts);
    let doing = doing(&rows);
    Ok(RunningSession {
        session: key,
        model: rows.iter().rev().find_map(model),
        since: begun.unwrap_or_default(),
        doing,
        micro_dollars: rows.iter().map(micro_dollars).sum(),
        questions,
    })
}

/// What the end of a log says.
fn doing(rows: &[TranscriptMessage]) -> Doing {
    let Some(at) = rows.iter().rposition(|row| row.role == Role::Assistant) else {
        return Doing::Model;
    };
    let blocks: Vec<Value> =
        rows[at].meta.as_ref().and_then(|meta| meta.field("contentBlocks")).unwrap_or_default();
    let calls = blocks.into_iter().filter(|block| block["type"] == "toolCall");
    let mut calls: Vec<RunningCall> =
        calls.filter_map(|block| serde_json::from_value(block).ok()).collect();
    let results: Vec<&str> =
        rows[at..].iter().filter_map(|row| row.tool_call_id.as_deref()).collect();
    calls.retain(|call| !results.contains(&call.tool_call_id.as_str()));
    if calls.is_empty() { Doing::Model } else { Doing::Tools { calls } }
}

/// The model that has said this, as `provider/model`.
fn model(row: &TranscriptMessage) -> Option<String> {
    let field = |name| row.meta.as_ref()?.field::<String>(name);
    Some(format!("{}/{}", field("provider")?, field("model")?))
}

/// The cost of the model call that this row is the answer to.
fn micro_dollars(row: &TranscriptMessage) -> u64 {
    #[derive(Deserialize)]
    struct Kept {
        usage: Usage,
    }
    let kept = row.meta.as_ref().and_then(|meta| meta.read::<Kept>());
    kept.map_or(0, |kept| (kept.usage.cost.total * 1_000_000.0).round() as u64)
}

/// Has the process of a session stop what that does.
///
/// # Errors
/// It does nothing at this moment, or that cannot be asked for.
pub fn ask_to_stop(home: &Home, key: &SessionKey) -> Result<(), AgentError> {
    if !home.sessions().is_in_use(key)? {
        let message = format!("session {key} does nothing at this moment");
        return Err(AgentError::usage(message));
    }
    let path = stop_of(home, key);
    let write = || {
        create_private_directory(&home.paths.state_dir().join(STOPS))?;
        let mut file = NewFile::named(&path.with_extension("new"))?;
        write!(file, "{}", now_ms())?;
        file.put_at(&path, Durability::Unsynced)
    };
    write().map(drop).map_err(|error| {
        let message = format!("failed to write {}: {error}; check the free space", path.display());
        AgentError::new(FailureClass::Session, message)
    })
}

/// Why a question was not answered from outside of its session.
#[derive(Debug, thiserror::Error)]
pub enum NotAnswered {
    /// It is part of a call, which waits for the answer in its own process.
    #[error("a server asks that in the middle of a call; answer it where the session is")]
    InCall,
    /// Nobody waits for an answer any longer.
    #[error("the question is answered already")]
    Gone,
    /// The answer cannot be kept.
    #[error(transparent)]
    Failed(#[from] ApprovalsError),
}

/// Answers a question of a session that works.
///
/// # Errors
/// See [`NotAnswered`].
pub fn answer_from_outside(
    home: &Home,
    question: &WaitingApproval,
    text: &str,
) -> Result<(), NotAnswered> {
    if question.begun.is_some() {
        return Err(NotAnswered::InCall);
    }
    let approvals = &home.stores().approvals;
    match approvals.answer(&question.session, &question.tool_call_id, text)? {
        true => Ok(()),
        false => Err(NotAnswered::Gone),
    }
}

fn stop_of(home: &Home, key: &SessionKey) -> PathBuf {
    home.paths.state_dir().join(STOPS).join(key.slug())
}

/// A turn that other processes see and can stop, for as long as this lives.
#[derive(Debug)]
pub struct SeenTurn {
    _mark: Option<TurnMark>,
    _stop: AbortOnDropHandle<()>,
}

impl SessionConfig {
    /// Lets other processes see the turn. Without that it goes on too.
    pub(crate) fn mark_turn(&self) -> Option<TurnMark> {
        let mark = TurnMark::put(self.home.stores().turns.as_ref()?, &self.session_key);
        let warn =
            |error| tracing::warn!("others cannot see that {} works: {error}", self.session_key);
        mark.map_err(warn).ok()
    }

    /// Lets other processes see the turn, and calls `stop` when one asks for it, until what it returns is dropped.
    pub fn seen_turn(&self, stop: impl FnOnce() + Send + 'static) -> SeenTurn {
        let (path, begun) = (stop_of(&self.home, &self.session_key), now_ms());
        let heed = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                match is_asked(&path, begun) {
                    Ok(false) => {}
                    Ok(true) => return stop(),
                    Err(error) => tracing::warn!("cannot read {}: {error}", path.display()),
                }
            }
        }));
        SeenTurn { _mark: self.mark_turn(), _stop: heed }
    }
}

/// Whether a stop is asked for of a turn that began at this time. It is asked for once.
fn is_asked(path: &Path, begun: u64) -> io::Result<bool> {
    let asked = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        asked => asked?,
    };
    remove_if_there(path)?;
    // What was meant for an earlier turn stops no later one.
    Ok(asked.trim().parse::<u64>().is_ok_and(|asked| asked >= begun))
}

//! Heartbeats: what the agent is asked, whether it has to be asked, and what its answer means.

use std::io;
use std::path::Path;

use myclaw_config::{AgentId, Config, HeartbeatSession};
use myclaw_files::SharedDirectory;

/// What the agent is asked.
pub(super) const PROMPT: &str = "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly. Do not infer or \
repeat old tasks from prior chats. If nothing needs attention, reply HEARTBEAT_OK.";
/// The answer of an agent that has nothing to report.
const NOTHING: &str = "HEARTBEAT_OK";
/// Most characters in addition to that answer; with more it is a message.
const MOST_REMARKS: usize = 300;
/// The file in the workspace with what to look for.
const FILE: &str = "HEARTBEAT.md";
const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Largest part of it that is looked at. A larger file is not empty.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Marks of text formats that may stand around the answer.
const MARKS: [char; 7] = ['*', '_', '`', '~', '"', '\'', '#'];

/// The result of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// Nothing needs attention.
    Nothing,
    /// A message for the owner.
    Message(String),
}

/// What an answer means. The agreed word counts at the beginning and at the end; elsewhere it is ordinary text.
pub(crate) fn report(answer: &str) -> Report {
    let mut rest = answer.trim();
    let mut is_agreed = false;
    loop {
        let before = rest.len();
        let bare = rest.trim_matches(MARKS);
        if let Some(after) =
            bare.strip_prefix(NOTHING).filter(|after| ends_word(after.chars().next()))
        {
            rest = after;
        } else if let Some(ahead) =
            bare.strip_suffix(NOTHING).filter(|ahead| ends_word(ahead.chars().next_back()))
        {
            rest = ahead;
        } else if let Some(ahead) = bare
            .strip_suffix(['.', '!'])
            .and_then(|bare| bare.strip_suffix(NOTHING))
            .filter(|ahead| ends_word(ahead.chars().next_back()))
        {
            rest = ahead;
        }
        if rest.len() == before {
            break;
        }
        is_agreed = true;
        rest = rest.trim();
    }
    if rest.is_empty() || (is_agreed && rest.chars().count() <= MOST_REMARKS) {
        return Report::Nothing;
    }
    Report::Message(rest.to_owned())
}

/// Whether a word ends where this character follows.
fn ends_word(next: Option<char>) -> bool {
    next.is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

/// Why the agent need not be asked: there is no file, or it names nothing to look for: only blank lines and headings. Blocks.
pub(super) fn has_nothing_to_do(workspace: &Path) -> Option<&'static str> {
    let read = SharedDirectory::open(workspace).and_then(|it| it.read(FILE, MAX_FILE_BYTES));
    match read {
        Ok(text) => {
            let is_empty = String::from_utf8_lossy(&text).lines().all(is_blank_or_heading);
            is_empty.then_some("HEARTBEAT.md names nothing to do")
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some("the workspace has no HEARTBEAT.md")
        }
        // The agent finds out what is wrong with it.
        Err(_) => None,
    }
}

/// A heartbeat that calls a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedHeartbeat {
    /// Its agent.
    pub agent: AgentId,
    /// Most turns of a day.
    pub turns: u64,
    /// What it does, for the owner.
    pub line: String,
}

/// The heartbeats that call a model, one for each agent. Blocks.
pub fn describe_heartbeats(config: &Config) -> Vec<PlannedHeartbeat> {
    let describe = |id: AgentId| {
        let heartbeat = config.heartbeat(&id).filter(|_| config.cron.enabled)?;
        let workspace = config.resolve_agent(Some(id.as_str())).ok()?.workspace;
        if has_nothing_to_do(&workspace).is_some() {
            return None;
        }
        let turns = DAY_SECONDS / heartbeat.every.as_secs().max(1);
        let place = match heartbeat.session {
            HeartbeatSession::Own => "a session of its own",
            HeartbeatSession::Main => "the main session, with all that was said there",
        };
        let line = format!(
            "the agent {id} has a HEARTBEAT.md: up to {turns} turns a day in {place}; `myclaw usage --by channel` has \
             their cost"
        );
        Some(PlannedHeartbeat { agent: id, turns, line })
    };
    config.agent_ids().into_iter().filter_map(describe).collect()
}

fn is_blank_or_heading(line: &str) -> bool {
    let line = line.trim().trim_start_matches('\u{feff}');
    let heading = line.trim_start_matches('#');
    let marks = line.len() - heading.len();
    line.is_empty() || (marks > 0 && (heading.is_empty() || heading.starts_with([' ', '\t'])))
}

#[cfg(test)]
mod tests;

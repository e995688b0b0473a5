//! Chooses the session for a file if the user does not name one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use myclaw_session::{SessionKey, SessionReader};
use serde::Deserialize;

use super::detect::Format;
use myclaw_front::exit::CliError;

/// Next to the sessions of Clawdbot and of this program: which session has which key.
const INDEX_NAME: &str = "sessions.json";
/// Longest index that is looked into.
const MOST_INDEX_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IndexEntry {
    session_id: Option<String>,
}

/// The key in a transcript's header; else the one that an index next to the file gives; else a session named after
/// the file, of the agent in whose directory it is or of `agent_id`.
pub(super) fn key_of(path: &Path, format: Format, agent_id: &str) -> Result<SessionKey, CliError> {
    if format == Format::Native
        && let Some(header) = SessionReader::of_file(path)?.header()?
        && let Ok(key) = SessionKey::parse(&header.session_key)
    {
        return Ok(key);
    }
    let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    // So that a file is known again when it is imported a second time.
    let name = match format {
        Format::Claude => &format!("claude-{name}"),
        Format::Codex => &format!("codex-{}", id_of_rollout(name)),
        _ => name,
    };
    if let Some(key) = key_in_index(path, name) {
        return Ok(key);
    }
    let agent_id = agent_of(path).unwrap_or(agent_id);
    // A colon would make it another form of key.
    SessionKey::parse_for_agent(agent_id, &name.replace(':', "-")).map_err(|error| {
        CliError::usage(format!("{}: {error}; name the session with --session", path.display()))
    })
}

/// The id of a session in the name of its file, `rollout-<time>-<id>`.
fn id_of_rollout(name: &str) -> &str {
    /// Characters of a UUID.
    const ID: usize = 36;
    let id = name.len().checked_sub(ID).and_then(|at| name.get(at..));
    id.filter(|id| id.split('-').count() == 5).unwrap_or(name)
}

fn key_in_index(path: &Path, session_id: &str) -> Option<SessionKey> {
    let file = File::open(path.with_file_name(INDEX_NAME)).ok()?;
    if file.metadata().ok()?.len() > MOST_INDEX_BYTES {
        return None;
    }
    let entries: BTreeMap<String, IndexEntry> =
        serde_json::from_reader(BufReader::new(file)).ok()?;
    let (key, _) =
        entries.iter().find(|(_, entry)| entry.session_id.as_deref() == Some(session_id))?;
    SessionKey::parse(key).ok()
}

/// The agent of a file at `agents/<id>/sessions/<file>`.
fn agent_of(path: &Path) -> Option<&str> {
    let sessions =
        path.parent().filter(|parent| parent.file_name() == Some(OsStr::new("sessions")))?;
    let agent = sessions.parent()?;
    let agents = agent.parent()?.file_name()?;
    if agents == "agents" { agent.file_name()?.to_str() } else { None }
}

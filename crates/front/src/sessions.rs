//! The stored sessions, by the names that the user gives.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::{Home, SessionConfig, did_you_mean, workspace::workspace_of_session};
use myclaw_config::Paths;
use myclaw_llm::Redactor;
use myclaw_session::{
    Case, Catalog, EntryId, IndexedSession, PruneScope, ReadSession, SessionEntry, SessionError,
    SessionKey, TranscriptMessage, indexed_title, title_of_beginning,
};

use crate::args::{Age, WhichSessions};
use crate::exit::CliError;
use crate::print::{Printer, note};

mod branch;
pub mod compact;
mod export;
mod list;
pub mod search;
mod show;
pub mod undo;

pub use branch::{LabelChange, MOST_TITLE_CHARS};
pub use list::ListFormat;
pub use search::{SearchOptions, Syntax};
pub use show::{ShowFormat, ShowPart};

/// Most sessions that are compared with a misspelt name: the latest ones.
const MOST_SIMILAR: usize = 10_000;

/// Whether keys leave the program, or come into it, in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Redacted.
    Redacted,
    /// Kept, for the user alone.
    Kept,
}

impl Keys {
    /// What the option `--no-redact` asks for.
    pub fn wanted(no_redact: bool) -> Self {
        if no_redact {
            note("the keys stay in the text; keep it to yourself");
            return Self::Kept;
        }
        Self::Redacted
    }

    fn redactor(self, home: &Home) -> Option<Redactor> {
        (self == Self::Redacted).then(|| home.redactor())
    }
}

/// The stored sessions, found by the names that the user gives.
#[derive(Clone)]
pub struct Sessions {
    /// The stored sessions.
    pub catalog: Arc<dyn Catalog>,
    /// The agent whose terminal sessions are named by one word.
    pub agent_id: String,
    /// Where the config and the keys are.
    home: Home,
}

impl Sessions {
    /// The sessions of the default agent.
    pub fn of(home: Home) -> Self {
        Self { catalog: Arc::clone(home.catalog()), agent_id: home.default_agent_id(), home }
    }

    /// At most `limit` messages before one, without keys but for what people wrote; `None` if there is no such message.
    pub fn shown_messages(
        &self,
        key: &SessionKey,
        before: Option<EntryId>,
        limit: usize,
    ) -> Result<Option<Vec<TranscriptMessage>>, SessionError> {
        let Some(reader) = self.catalog.read(key)? else {
            return Ok(before.is_none().then(Vec::new));
        };
        self.home.shown_messages(&*reader, before, limit)
    }

    /// The sessions of the config's agent.
    pub fn of_agent(session_config: &SessionConfig) -> Self {
        Self {
            catalog: Arc::clone(session_config.home.catalog()),
            agent_id: session_config.agent.id.to_string(),
            home: session_config.home.clone(),
        }
    }

    /// The name by which the user calls `key`: one word for a terminal session of the default agent.
    pub fn name_of(&self, key: &SessionKey) -> String {
        let parts = key.parts();
        if SessionKey::for_cli(&self.agent_id, &parts.peer_id) == *key {
            parts.peer_id
        } else {
            key.to_string()
        }
    }

    /// The `limit` latest sessions, and the number of all.
    pub fn latest(&self, limit: usize) -> Result<(Vec<IndexedSession>, usize), CliError> {
        let found = self.catalog.latest(limit)?;
        note_repairs(&*self.catalog);
        Ok(found)
    }

    /// Passes the sessions to `take`, the latest first, until it returns `Break`.
    pub fn each(
        &self,
        take: impl FnMut(IndexedSession) -> Result<ControlFlow<()>, CliError>,
    ) -> Result<(), CliError> {
        self.catalog.each(take)?;
        note_repairs(&*self.catalog);
        Ok(())
    }

    /// The names of the `limit` latest sessions whose names begin with `prefix`, the latest first.
    pub fn names(&self, prefix: &str, limit: usize) -> Result<Vec<String>, CliError> {
        let any = SessionKey::for_cli(&self.agent_id, "x");
        let own = any.as_str().strip_suffix('x').unwrap_or_default();
        let is_wanted = |key: &str| key.strip_prefix(own).unwrap_or(key).starts_with(prefix);
        let keys = self.catalog.latest_keys(limit, &is_wanted)?;
        let name =
            |key: &SessionKey| key.as_str().strip_prefix(own).unwrap_or(key.as_str()).to_owned();
        Ok(keys.iter().map(name).collect())
    }

    /// The key that `name` means, whether or not the session exists.
    pub fn key(&self, name: &str) -> Result<SessionKey, CliError> {
        SessionKey::parse_for_agent(&self.agent_id, name)
            .map_err(|error| CliError::usage(error.to_string()))
    }

    /// The key of an existing session.
    pub fn find(&self, name: &str) -> Result<SessionKey, CliError> {
        let key = self.key(name)?;
        if self.catalog.exists(&key) || self.catalog.entry(&key)?.is_some() {
            return Ok(key);
        }
        let names = self.names("", MOST_SIMILAR)?;
        let suggestion = did_you_mean(name, names.iter().map(String::as_str));
        Err(CliError::session(format!(
            "there is no session `{name}`{suggestion} `myclaw sessions list` lists them"
        )))
    }

    /// A reader of an existing session's log; an error if the log is gone.
    fn reader(&self, key: &SessionKey) -> Result<Box<dyn ReadSession>, CliError> {
        self.catalog.read(key)?.ok_or_else(|| {
            CliError::session(format!(
                "the transcript of `{name}` is gone: there is no file {path}; `myclaw sessions delete {name} --yes` \
                 takes it off the list",
                name = self.name_of(key),
                path = self.catalog.describe(key)
            ))
        })
    }

    /// Prints the messages of all sessions that contain a text, whatever the case of its letters.
    ///
    /// # Errors
    /// The sessions cannot be read, or standard output is closed.
    pub fn search_for(&self, text: &str) -> Result<(), CliError> {
        /// Most messages: a screen full.
        const MOST_FOUND: usize = 20;
        let options = SearchOptions { syntax: Syntax::Text, case: Case::Ignored };
        self.search(text, options, &WhichSessions::default(), MOST_FOUND, ListFormat::Table)
    }

    /// What removes keys from a document of a session, unless they are kept.
    pub fn redactor(&self, keys: Keys) -> Option<Redactor> {
        keys.redactor(&self.home)
    }

    /// The title of a session: the one that the user gave it, else the one of its first exchange.
    pub fn title_of(&self, key: &SessionKey) -> Option<String> {
        let entry = self.catalog.entry(key).ok().flatten();
        session_title(&*self.catalog, key, entry.as_ref())
    }

    /// Refuses to delete a session, and names the command that does.
    ///
    /// # Errors
    /// Always.
    pub fn ask_before_delete(&self, name: &str) -> Result<(), CliError> {
        let key = self.find(name)?;
        Err(CliError::usage(format!(
            "nothing is deleted yet; `myclaw sessions delete {} --yes` deletes the session with its transcript {}",
            self.name_of(&key),
            self.catalog.describe(&key)
        )))
    }

    /// Deletes a session with its transcript, and says so.
    ///
    /// # Errors
    /// There is no such session, it is in use, or it cannot be deleted.
    pub fn delete(&self, name: &str, paths: &Paths) -> Result<(), CliError> {
        let key = self.find(name)?;
        self.remove(&key)?;
        note(format_args!("deleted `{}`", self.name_of(&key)));
        let workspace = workspace_of_session(paths, &key);
        if workspace.is_dir() {
            note(format_args!("its files are still in {}", workspace.display()));
        }
        Ok(())
    }

    /// Deletes a session with its transcript.
    ///
    /// # Errors
    /// It is in use, or it cannot be deleted.
    pub fn remove(&self, key: &SessionKey) -> Result<(), CliError> {
        self.catalog.delete(key)?;
        Ok(())
    }

    /// Prints the sessions that [`Self::prune`] would remove.
    ///
    /// # Errors
    /// The sessions cannot be read, or standard output is closed.
    pub fn preview_prune(&self, Age(age): Age, scope: PruneScope) -> Result<(), CliError> {
        let oldest_kept = crate::time::now_ms().saturating_sub(millis(age));
        let mut printer = Printer::stdout();
        let mut count = 0;
        self.each(|session| {
            if session.entry.updated_at < oldest_kept {
                printer.line(self.name_of(&session.key))?;
                count += 1;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        printer.finish()?;
        let what = match scope {
            PruneScope::IndexOnly => "would be taken off the list; their transcripts would stay",
            PruneScope::WithTranscripts => "would be deleted with their transcripts",
        };
        note(format_args!("{} {what}", counted(count)));
        Ok(())
    }

    /// Removes the sessions that were not used for `age`, and prints their names.
    ///
    /// # Errors
    /// One of them cannot be removed, or standard output is closed.
    pub fn prune(&self, Age(age): Age, scope: PruneScope) -> Result<(), CliError> {
        let report = self.catalog.prune(age, scope)?;
        let mut printer = Printer::stdout();
        for key in &report.removed {
            printer.line(self.name_of(key))?;
        }
        printer.finish()?;
        let what = match scope {
            PruneScope::IndexOnly => "taken off the list; their transcripts stay",
            PruneScope::WithTranscripts => "deleted with their transcripts",
        };
        note(format_args!("{} {what}", counted(report.removed.len())));
        if let Some((key, error)) = report.kept.first() {
            return Err(CliError::session(format!(
                "{} could not be deleted; the first, `{}`: {error}",
                counted(report.kept.len()),
                self.name_of(key)
            )));
        }
        Ok(())
    }
}

/// The title of a session with its entry of the index: the one that the user gave it, else the one of its first exchange.
pub fn session_title(
    catalog: &dyn Catalog,
    key: &SessionKey,
    entry: Option<&SessionEntry>,
) -> Option<String> {
    let indexed = entry.and_then(|entry| indexed_title(entry.extra.as_ref()));
    indexed.or_else(|| {
        let reader = catalog.read(key).ok().flatten()?;
        title_of_beginning(reader.entries().flatten())
    })
}

fn counted(count: usize) -> String {
    if count == 1 { "1 session".to_owned() } else { format!("{count} sessions") }
}

/// A duration in milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Prints the damage of the index.
fn note_repairs(catalog: &dyn Catalog) {
    for repair in catalog.take_repairs() {
        note(repair);
    }
}

/// Prints what of a transcript could not be read.
fn note_damage(skipped_lines: usize, reader: &dyn ReadSession) -> Result<(), CliError> {
    note_damaged_lines(skipped_lines, &reader.describe());
    let bytes = reader.torn_bytes()?;
    if bytes > 0 {
        note(format_args!(
            "the last {bytes} bytes of {} are no whole line and were left out; the next run moves them to a file \
             beside it",
            reader.describe()
        ));
    }
    Ok(())
}

/// Prints how many lines of a transcript could not be read, if any.
fn note_damaged_lines(count: usize, transcript: &str) {
    match count {
        0 => {}
        1 => note(format_args!("1 damaged line of {transcript} was left out")),
        _ => note(format_args!("{count} damaged lines of {transcript} were left out")),
    }
}

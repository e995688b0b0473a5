//! Forgetting a fact: in the notes, the index, the vectors, the lists for prompts, and on request in the logs of sessions and
//! everything else in the state directory.
//!
//! What is to be forgotten is written down first, and removed last. So a process that was killed in between leaves a record by
//! which the next command continues; each step can be repeated.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_config::{Config, Paths};
use myclaw_files::LockWait;
use myclaw_memory::{Fact, FactId, Mask, NotebookError, digest_of_fact, telling_words};
use myclaw_session::{Case, SearchQuery, SearchScope, SessionKey};
use serde::{Deserialize, Serialize};

use super::forgotten::Forgotten;
use super::outline::remove_lists;
use super::record::{Guard, RECORD, Unlocked};
use crate::{AgentError, FailureClass, Home, SessionConfig};

/// Longest wait for a session that a run has open.
const WAIT: LockWait = LockWait::Until(Duration::from_secs(5));
/// Most messages of sessions that are looked at.
const MOST_MESSAGES: usize = 10_000;
/// How often files are looked through again, because a process may have written an older state back.
const MOST_ROUNDS: usize = 3;
/// What of the state directory is the owner's own: it is named and not changed.
const OWNERS: [&str; 3] = ["workspaces", "skills", "agents"];

/// Whether the words of a fact are removed from the logs too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redaction {
    /// Messages stay as they are. They are neither searched nor learned from any more.
    Nothing,
    /// These words become stars in all messages, and in all other files that the program keeps.
    Words(Vec<String>),
}

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Intent {
    workspace: PathBuf,
    lock: PathBuf,
    /// The directory `memory` in the agent's own one.
    memory: PathBuf,
    /// The id of the agent. Records of earlier versions do not have it: the next search forgets the vectors of texts that
    /// are gone.
    #[serde(default)]
    agent: String,
    fact: String,
    digest: Option<String>,
    rows: Vec<(String, String)>,
    words: Option<Vec<String>>,
}

/// What was forgotten, and where it still stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forgot {
    /// Messages that said it.
    pub messages: usize,
    /// Sessions with such messages.
    pub sessions: usize,
    /// The words that became stars; empty if none did.
    pub words: Vec<String>,
    /// Files that still hold one of the words: documents of the owner's, which are not changed.
    pub left: Vec<PathBuf>,
}

/// Changes the values of a database, given what changes one of them.
pub type ChangeStore<'a> =
    &'a dyn Fn(&Path, &mut dyn FnMut(&mut [u8]) -> bool) -> Result<(), String>;

impl SessionConfig {
    /// The words that can be removed from messages, of those that are named or of the fact, and how many messages have all of
    /// them.
    ///
    /// # Errors
    /// The sessions cannot be searched.
    pub fn said_of(
        &self,
        fact: Option<&Fact>,
        named: &[String],
    ) -> Result<(Vec<String>, usize), AgentError> {
        let telling = || fact.map(|fact| telling_words(&fact.text)).unwrap_or_default();
        let words = if named.is_empty() { telling() } else { named.to_vec() };
        let messages = self.rows_about(fact, &words)?.len();
        Ok((words, messages))
    }

    /// Forgets a fact, or only words. Blocks.
    ///
    /// # Errors
    /// A session is in use, or something cannot be changed. What is not done yet then is done by the next command.
    pub fn forget(
        &self,
        fact: Option<&Fact>,
        redaction: &Redaction,
        change_store: ChangeStore<'_>,
    ) -> Result<Forgot, AgentError> {
        let _lock = lock(&self.home)?;
        // There is one record, so what an earlier command began comes first.
        self.home.finish_begun(&self.config, change_store)?;
        let notebook = self.facts()?;
        let named: &[String] = match redaction {
            Redaction::Nothing => &[],
            Redaction::Words(words) => words,
        };
        let (words, _) = self.said_of(fact, named)?;
        let rows = self.rows_about(fact, &words)?;
        let text = fact.map(|fact| fact.text.clone());
        let intent = Intent {
            workspace: notebook.workspace().to_owned(),
            lock: notebook.lock().to_owned(),
            memory: self.own_agent_directory().join("memory"),
            agent: self.agent.id.to_string(),
            fact: fact.map(|fact| fact.id.to_string()).unwrap_or_default(),
            digest: text.as_deref().map(digest_of_fact),
            rows: rows.into_iter().collect(),
            words: match redaction {
                Redaction::Nothing => None,
                Redaction::Words(words) => Some(words.iter().cloned().chain(text).collect()),
            },
        };
        let text = serde_json::to_string(&intent).map_err(io::Error::other);
        let written = text.and_then(|text| self.home.stores().forgetting.write(&text));
        written.map_err(failed("write down what to forget"))?;
        let mut forgot = carry_out(&self.home, &self.config, &intent, change_store)?;
        forgot.words = named.to_vec();
        Ok(forgot)
    }

    /// The messages that say it: the one that it comes from, those with its text, and those with all of its words.
    fn rows_about(
        &self,
        fact: Option<&Fact>,
        words: &[String],
    ) -> Result<BTreeSet<(String, String)>, AgentError> {
        let mut rows = BTreeSet::new();
        let origin = fact.and_then(|fact| fact.origin.as_ref());
        if let Some(origin) = origin.filter(|origin| !origin.row.is_empty()) {
            rows.insert((origin.session.clone(), origin.row.clone()));
        }
        let Some(rarest) = words.iter().max_by_key(|word| word.len()) else { return Ok(rows) };
        let scope =
            SearchScope { agent_id: Some(self.agent.id.to_string()), ..SearchScope::default() };
        let query = SearchQuery::text(rarest, Case::Ignored)
            .map_err(|error| AgentError::new(FailureClass::Session, error.to_string()))?;
        let catalog = self.home.catalog();
        for hit in catalog.search(&query, &scope, MOST_MESSAGES)?.hits {
            let Some(log) = catalog.read(&hit.key)? else { continue };
            let mut text = String::new();
            for entry in log.entries().flatten() {
                if let myclaw_session::Entry::Message(message) = entry
                    && message.id == hit.id
                {
                    text = message.content.to_lowercase();
                    break;
                }
            }
            if words.iter().all(|word| text.contains(&word.to_lowercase())) {
                rows.insert((hit.key.to_string(), hit.id.to_string()));
            }
        }
        Ok(rows)
    }
}

impl Home {
    /// Whether something is left to be forgotten, because a process was killed while it did so.
    pub fn has_to_forget(&self) -> bool {
        self.stores().forgetting.is_there()
    }

    /// Does what is left of it. Blocks.
    ///
    /// # Errors
    /// A session is in use, or something cannot be changed.
    pub fn finish_forgetting(
        &self,
        config: &Config,
        change_store: ChangeStore<'_>,
    ) -> Result<(), AgentError> {
        let _lock = lock(self)?;
        self.finish_begun(config, change_store)
    }

    /// The same for a caller who holds the lock.
    fn finish_begun(
        &self,
        config: &Config,
        change_store: ChangeStore<'_>,
    ) -> Result<(), AgentError> {
        let record = &self.stores().forgetting;
        let Some(text) = record.read().map_err(failed("read what to forget"))? else {
            return Ok(());
        };
        // It appears as a whole, so a damaged one is not of this program.
        let Ok(intent) = serde_json::from_str::<Intent>(&text) else {
            let place = record.place();
            return Err(AgentError::new(
                FailureClass::Session,
                format!("{place} cannot be read, so nothing is forgotten by it; delete the file"),
            ));
        };
        carry_out(self, config, &intent, change_store).map(drop)
    }
}

fn lock(home: &Home) -> Result<Guard<'_>, AgentError> {
    home.stores().forgetting.lock().map_err(|error| match error {
        Unlocked::Held => AgentError::new(
            FailureClass::Session,
            "another command forgets something at this moment; try again",
        ),
        Unlocked::Io(error) => failed("lock the state directory")(error),
    })
}

fn carry_out(
    home: &Home,
    config: &Config,
    intent: &Intent,
    change_store: ChangeStore<'_>,
) -> Result<Forgot, AgentError> {
    let own_directory = intent.memory.parent().unwrap_or(&intent.memory);
    let memory = home.stores().memory.of_agent(&intent.agent, own_directory);
    let lock = intent.lock.file_name().unwrap_or_default();
    let notebook = memory.notebook(&intent.workspace, &lock.to_string_lossy());
    if let Some(id) = FactId::read(&intent.fact) {
        match notebook.remove(&id) {
            Ok(_) | Err(NotebookError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    notebook.remove_unfinished()?;
    Forgotten::new(Arc::clone(&memory.documents))
        .add(intent.digest.as_deref(), &intent.rows)
        .map_err(failed("write down what was forgotten"))?;
    let remove = || {
        memory.forget_index()?;
        home.stores().forget_snapshots()?;
        remove_lists(&*memory.documents)?;
        match config.resolve_agent(Some(intent.agent.as_str())) {
            Ok(agent) => home.stores().vectors.of_agent(&agent).remove(),
            Err(_) => Ok(()),
        }
    };
    remove().map_err(failed("remove the index"))?;
    let sessions: BTreeSet<&str> =
        intent.rows.iter().map(|(session, _)| session.as_str()).collect();
    let mut forgot =
        Forgot { messages: intent.rows.len(), sessions: sessions.len(), ..Forgot::default() };
    if let Some(words) = &intent.words {
        let mask = Mask::new(words)
            .map_err(|why| AgentError::usage(format!("these words cannot be removed: {why}")))?;
        forgot.left = redact(home, config, &mask, change_store)?;
    }
    let done = home.stores().forgetting.remove();
    done.map_err(failed("remove the note of what to forget"))?;
    Ok(forgot)
}

/// Removes the words from everything that the program keeps. Returns the files of the owner's that still have one.
fn redact(
    home: &Home,
    config: &Config,
    mask: &Mask,
    change_store: ChangeStore<'_>,
) -> Result<Vec<PathBuf>, AgentError> {
    let state = home.paths.state_dir();
    let record = state.join(RECORD);
    let owners = owners_places(&home.paths, config);
    let is_databases = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".sqlite")
    };
    let is_own = |path: &Path| {
        *path != record && !owners.iter().any(|place| path == place) && !is_databases(path)
    };
    for round in 0..MOST_ROUNDS {
        let files = mask.files_with(state, &is_own);
        if files.is_empty() {
            break;
        }
        // No run has such a session open, so none writes its words again.
        let mut opened = Vec::new();
        for key in files.iter().filter_map(|file| key_of(file)).collect::<BTreeSet<SessionKey>>() {
            opened.push(home.sessions().open(&key, WAIT)?);
        }
        for file in &files {
            mask.apply_to_file(file).map_err(failed("remove words from a file"))?;
        }
        drop(opened);
        if round + 1 == MOST_ROUNDS && !mask.files_with(state, &is_own).is_empty() {
            return Err(written_again());
        }
    }
    for round in 0..MOST_ROUNDS {
        if !home.catalog().change_kept(WAIT, &mut |bytes| mask.apply(bytes))? {
            break;
        }
        if round + 1 == MOST_ROUNDS {
            return Err(written_again());
        }
    }
    let is_database = |path: &Path| path.is_dir() || is_databases(path);
    for database in mask.files_with(state, &is_database) {
        if database.extension().is_some_and(|extension| extension == "sqlite") {
            change_store(&database, &mut |value| mask.apply(value))
                .map_err(|why| AgentError::new(FailureClass::Session, why))?;
        }
    }
    let all = mask.files_with(state, &|path| *path != record);
    Ok(all)
}

fn written_again() -> AgentError {
    let why = "other processes write the words again; stop them, then any command goes on with it";
    AgentError::new(FailureClass::Session, why)
}

/// The places in the state directory whose content is the owner's own.
fn owners_places(paths: &Paths, config: &Config) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = config.resolved_agents().map(|agent| agent.workspace).collect();
    places.extend(OWNERS.map(|name| paths.state_dir().join(name)));
    places.extend([paths.config_file().to_owned(), paths.state_dir().join(".env")]);
    places
}

/// The session of a log or of what is next to it.
fn key_of(file: &Path) -> Option<SessionKey> {
    let name = file.file_name()?.to_str()?;
    let slug = name.strip_suffix(".jsonl")?;
    SessionKey::parse_for_agent("", &slug.replace("__", ":")).ok().filter(|key| key.slug() == slug)
}

fn failed(action: &'static str) -> impl Fn(io::Error) -> AgentError {
    move |error| AgentError::new(FailureClass::Session, format!("cannot {action}: {error}"))
}

impl From<NotebookError> for AgentError {
    fn from(error: NotebookError) -> Self {
        let class = match error {
            NotebookError::Unknown(_) | NotebookError::Empty | NotebookError::Long(_) => {
                FailureClass::Usage
            }
            _ => FailureClass::Session,
        };
        Self::new(class, error.to_string())
    }
}

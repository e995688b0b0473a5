//! The list of what the agent remembers, as the prompt of a session holds it.
//!
//! A provider's cache of the prompt is lost with its first changed byte, so a session keeps the list that it began with. What
//! is written during the session is in its messages, and what others write is found by `memory_search`. The list is made anew
//! when no provider can have the old one in its cache any more, and after a compaction, which changes the messages anyway.

use std::fs::{self, DirEntry, FileTimes, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use myclaw_engine::{CompactionReport, Hook, HookError, Tool};
use myclaw_files::{Durability, NewFile, create_private_directory, open_regular, remove_if_there};
use myclaw_memory::{MOST_OUTLINE_BYTES, Notebook, outline};

use crate::blocking::blocking;
use crate::{AgentError, SessionConfig};

/// The directory of the lists, by session.
pub(super) const LISTS: &str = "prompts";
/// How long a list is kept after its last use. Providers keep prompts for five minutes, on request for an hour.
const KEPT: Duration = Duration::from_secs(3_600);
/// Uses within this time of the last one are not noted.
const NEWLY_USED: Duration = Duration::from_secs(60);
/// Most old lists that are removed at a time.
const MOST_REMOVED: usize = 20;

impl SessionConfig {
    /// The list for the prompt of the session's runs; `None` without the tool that writes facts.
    pub(crate) async fn outline_for(
        &self,
        tools: &[Arc<dyn Tool>],
    ) -> Result<Option<String>, AgentError> {
        let has_tool = tools.iter().any(|tool| tool.schema().name == super::write_tool::NAME);
        let Some(notebook) = self.notebook().filter(|_| has_tool) else { return Ok(None) };
        let path = self.outline_path();
        Ok(Some(blocking(move || kept_or_new(&path, &notebook)).await?))
    }

    /// Forgets the list after a compaction.
    pub(crate) fn outline_hook(&self) -> Arc<dyn Hook> {
        Arc::new(OutlineHook(self.outline_path()))
    }

    fn outline_path(&self) -> PathBuf {
        self.memory_directory().join(LISTS).join(format!("{}.md", self.session_key.slug()))
    }
}

fn kept_or_new(path: &Path, notebook: &Notebook) -> String {
    if let Some(kept) = kept(path) {
        return kept;
    }
    // Facts that cannot be read are reported by the tool that looks for them.
    let facts = notebook.facts().unwrap_or_default();
    let list = outline(&facts, notebook.workspace());
    if let Err(error) = keep(path, &list) {
        tracing::warn!(file = %path.display(), %error, "the list of facts may change during the session");
    }
    list
}

/// The list of an earlier run, which this use keeps for longer.
fn kept(path: &Path) -> Option<String> {
    let file = open_regular(path).ok()?;
    let age = age(&file.metadata().ok()?)?;
    if age > KEPT {
        return None;
    }
    if age > NEWLY_USED {
        file.set_times(FileTimes::new().set_modified(SystemTime::now())).ok()?;
    }
    let mut list = String::new();
    file.take(MOST_OUTLINE_BYTES as u64).read_to_string(&mut list).ok()?;
    Some(list)
}

/// The time since the last use, as its list says; nothing if the clock was set back.
fn age(list: &Metadata) -> Option<Duration> {
    list.modified().ok().map(|time| time.elapsed().unwrap_or_default())
}

fn keep(path: &Path, list: &str) -> io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    create_private_directory(directory)?;
    let is_old = |entry: &DirEntry| {
        entry.metadata().ok().as_ref().and_then(age).is_some_and(|age| age > KEPT)
    };
    for old in fs::read_dir(directory)?.flatten().filter(is_old).take(MOST_REMOVED) {
        remove_if_there(&old.path())?;
    }
    let file = NewFile::in_directory(directory, ".list")?;
    file.as_file().write_all(list.as_bytes())?;
    file.put_at(path, Durability::Unsynced).map(drop)
}

struct OutlineHook(PathBuf);

impl Hook for OutlineHook {
    fn name(&self) -> &str {
        "list of facts"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn session_compact<'a>(
        &'a self,
        _report: &'a CompactionReport,
        _summary: &'a str,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async {
            remove_if_there(&self.0).map(drop).map_err(|error| HookError(error.to_string()))
        })
    }
}

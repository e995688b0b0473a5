//! `myclaw sessions list`.

use std::collections::HashSet;

use myclaw_agent::sessions::{About, Case, IndexedSession, SearchQuery, SearchScope, SessionKey};
use serde::Serialize;

use super::{Sessions, note_repairs};
use crate::args::WhichSessions;
use crate::exit::CliError;
use crate::print::{Printer, columns, note};
use crate::time::local_minute;

/// Default limit of rows: what fits into the scrollback of a terminal.
const USUAL_ROWS: usize = 1000;
/// The message if `--limit 0` hides all sessions.
const NONE_WITHIN_LIMIT: &str = "no sessions are listed, because --limit is 0";

/// How sessions and messages are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListFormat {
    /// For people.
    Table,
    /// One object per line.
    Json,
}

/// A session in the JSON of `sessions list`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedSession<'a> {
    name: &'a str,
    key: &'a SessionKey,
    #[serde(flatten)]
    about: About,
    #[serde(flatten)]
    entry: &'a myclaw_agent::sessions::SessionEntry,
}

impl Sessions {
    /// Lists the sessions of `which` with `search` in a message, at most the `limit` latest ones.
    pub(super) fn list(
        &self,
        which: &WhichSessions,
        search: Option<&str>,
        limit: Option<usize>,
        format: ListFormat,
    ) -> Result<(), CliError> {
        let is_plain = which.agent.is_none() && which.label.is_empty() && search.is_none();
        if is_plain && format == ListFormat::Table {
            return self.list_latest(limit);
        }
        let mut sessions = self.select(which)?;
        if let Some(text) = search {
            let query = SearchQuery::text(text, Case::Ignored)
                .map_err(|error| CliError::usage(error.to_string()))?;
            let holding = self.store.search(&query, &scope_of(&sessions), 0)?.matches;
            sessions.retain(|session| holding.contains_key(&session.key));
        }
        let found = sessions.len();
        sessions.truncate(limit.unwrap_or(usize::MAX));
        match format {
            ListFormat::Json => self.print_json(&sessions),
            ListFormat::Table if sessions.is_empty() => {
                note(match found {
                    0 => "no such sessions; `myclaw sessions list` lists all",
                    _ => NONE_WITHIN_LIMIT,
                });
                Ok(())
            }
            ListFormat::Table => self.print_table(&sessions),
        }
    }

    /// Lists the `limit` latest sessions, and prints how many more there are.
    fn list_latest(&self, limit: Option<usize>) -> Result<(), CliError> {
        let index = self.store.index();
        let (sessions, found) = index.latest(limit.unwrap_or(USUAL_ROWS))?;
        note_repairs(&index);
        if sessions.is_empty() {
            note(match found {
                0 if self.store.has_transcripts() => {
                    "no sessions are on the list; the transcripts of those that were pruned are kept: \
                     `myclaw sessions search TEXT` looks through them"
                }
                0 => "no sessions yet; `myclaw run \"hello\"` begins one",
                _ => NONE_WITHIN_LIMIT,
            });
            return Ok(());
        }
        self.print_table(&sessions)?;
        if limit.is_none() && found > sessions.len() {
            let more = found - sessions.len();
            note(format_args!("and {more} older ones; `--limit {found}` lists all"));
        }
        Ok(())
    }

    /// The sessions of `which` that are in the index, the latest first.
    pub(super) fn select(&self, which: &WhichSessions) -> Result<Vec<IndexedSession>, CliError> {
        let mut sessions = self.all()?;
        if let Some(agent) = &which.agent {
            // In the form of a session key.
            let agent = SessionKey::for_cli(agent, "any").parts().agent_id;
            sessions.retain(|session| session.key.parts().agent_id == agent);
        }
        if !which.label.is_empty() {
            sessions.retain(|session| {
                let labels = About::from_extra(session.entry.extra.as_ref()).labels;
                which.label.iter().all(|label| labels.contains(label))
            });
        }
        Ok(sessions)
    }

    fn print_json(&self, sessions: &[IndexedSession]) -> Result<(), CliError> {
        let mut printer = Printer::stdout();
        for IndexedSession { key, entry } in sessions {
            let about = About::from_extra(entry.extra.as_ref());
            printer.json(&ListedSession { name: &self.name_of(key), key, about, entry })?;
        }
        printer.finish()
    }

    fn print_table(&self, sessions: &[IndexedSession]) -> Result<(), CliError> {
        let abouts: Vec<About> = sessions
            .iter()
            .map(|session| About::from_extra(session.entry.extra.as_ref()))
            .collect();
        let is_described = abouts.iter().any(|about| *about != About::default());
        let mut head = vec!["NAME", "LAST USED", "MODEL", "TOKENS"];
        head.extend(is_described.then_some("TITLE"));
        let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
        rows.extend(sessions.iter().zip(&abouts).map(|(session, about)| {
            let entry = &session.entry;
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let mut row = vec![
                self.name_of(&session.key),
                local_minute(entry.updated_at),
                or_none(entry.model.clone()),
                or_none(entry.total_tokens.map(|tokens| tokens.to_string())),
            ];
            row.extend(is_described.then(|| title_and_labels(about)));
            row
        }));
        let mut printer = Printer::stdout();
        printer.safe_lines(columns(&rows))?;
        printer.finish()
    }
}

/// The scope of a search in these sessions.
pub(super) fn scope_of(sessions: &[IndexedSession]) -> SearchScope {
    let keys: HashSet<SessionKey> = sessions.iter().map(|session| session.key.clone()).collect();
    SearchScope { keys: Some(keys), ..SearchScope::default() }
}

/// As in `Rome by train [travel] [2026]`.
fn title_and_labels(about: &About) -> String {
    let labels = about.labels.iter().map(|label| format!("[{label}]"));
    about.title.clone().into_iter().chain(labels).collect::<Vec<_>>().join(" ")
}

//! `myclaw sessions list`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use myclaw_session::{About, Case, IndexedSession, SearchQuery, SessionKey, indexed_title};
use serde::Serialize;

use super::Sessions;
use crate::args::WhichSessions;
use crate::exit::CliError;
use crate::print::{Printer, columns, note};
use crate::time::local_minute;

/// Default limit of rows: what fits into the scrollback of a terminal.
const USUAL_ROWS: usize = 1000;

/// How sessions and messages are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFormat {
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
    entry: &'a myclaw_session::SessionEntry,
}

impl Sessions {
    /// Lists the sessions of `which` with `search` in a message, at most the `limit` latest ones.
    pub fn list(
        &self,
        which: &WhichSessions,
        search: Option<&str>,
        limit: Option<usize>,
        format: ListFormat,
    ) -> Result<(), CliError> {
        self.catalog.adopt()?;
        let is_plain = which.agent.is_none() && which.label.is_empty() && search.is_none();
        if is_plain && format == ListFormat::Table {
            return self.list_latest(limit);
        }
        let holding = search.map(|text| self.sessions_with(text, which)).transpose()?;
        let is_wanted = |session: &IndexedSession| {
            holding.as_ref().is_none_or(|holding| holding.contains_key(&session.key))
        };
        match format {
            ListFormat::Json => self.print_json(which, is_wanted, limit.unwrap_or(usize::MAX)),
            ListFormat::Table => self.list_wanted(which, is_wanted, limit),
        }
    }

    /// Lists the `limit` latest sessions, and prints how many more there are.
    fn list_latest(&self, limit: Option<usize>) -> Result<(), CliError> {
        let (sessions, found) = self.latest(limit.unwrap_or(USUAL_ROWS))?;
        if found == 0 {
            note(match self.catalog.has_any() {
                true => {
                    "no sessions are on the list; the transcripts of those that were pruned are kept: \
                     `myclaw sessions search TEXT` looks through them"
                }
                false => "no sessions yet; `myclaw run \"hello\"` begins one",
            });
            return Ok(());
        }
        self.print_latest(&sessions, found, limit)
    }

    /// Lists the `limit` latest sessions of `which` that are wanted, and prints how many more there are.
    fn list_wanted(
        &self,
        which: &WhichSessions,
        is_wanted: impl Fn(&IndexedSession) -> bool,
        limit: Option<usize>,
    ) -> Result<(), CliError> {
        let (mut sessions, mut found) = (Vec::new(), 0);
        self.each_of(which, |session| {
            if is_wanted(&session) {
                found += 1;
                if sessions.len() < limit.unwrap_or(USUAL_ROWS) {
                    sessions.push(session);
                } else if limit.is_some() {
                    // The number of all is printed only without a limit.
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if found == 0 {
            note(match self.catalog.has_any() {
                true => {
                    "no such sessions are on the list; `myclaw sessions list` lists all, and `myclaw sessions search TEXT` looks \
                     through the transcripts of those that were pruned too"
                }
                false => "no such sessions; `myclaw sessions list` lists all",
            });
            return Ok(());
        }
        self.print_latest(&sessions, found, limit)
    }

    /// Prints the latest of `found` sessions, and how many more there are unless the user set a limit.
    fn print_latest(
        &self,
        sessions: &[IndexedSession],
        found: usize,
        limit: Option<usize>,
    ) -> Result<(), CliError> {
        self.print_table(sessions)?;
        if limit.is_none() && found > sessions.len() {
            let more = found - sessions.len();
            note(format_args!("and {more} older ones; `--limit {found}` lists all"));
        }
        Ok(())
    }

    /// The sessions of `which` with `text` in a message, and how many messages have it.
    fn sessions_with(
        &self,
        text: &str,
        which: &WhichSessions,
    ) -> Result<BTreeMap<SessionKey, u64>, CliError> {
        let query = SearchQuery::text(text, Case::Ignored)
            .map_err(|error| CliError::usage(error.to_string()))?;
        Ok(self.catalog.search(&query, &self.search_scope(which)?, 0)?.matches)
    }

    /// Passes the sessions of `which` that are in the index to `take`, the latest first, until it returns `Break`.
    pub fn each_of(
        &self,
        which: &WhichSessions,
        mut take: impl FnMut(IndexedSession) -> Result<ControlFlow<()>, CliError>,
    ) -> Result<(), CliError> {
        // In the form of a session key.
        let agent = which.agent.as_ref();
        let agent = agent.map(|agent| SessionKey::for_cli(agent, "any").parts().agent_id);
        self.each(|session| {
            let is_of_agent =
                agent.as_ref().is_none_or(|agent| session.key.parts().agent_id == *agent);
            if is_of_agent && has_labels(&session, &which.label) {
                take(session)
            } else {
                Ok(ControlFlow::Continue(()))
            }
        })
    }

    /// Prints each session as soon as it is read, so that the memory does not grow with their number.
    fn print_json(
        &self,
        which: &WhichSessions,
        is_wanted: impl Fn(&IndexedSession) -> bool,
        limit: usize,
    ) -> Result<(), CliError> {
        let mut printer = Printer::stdout();
        let mut left = limit;
        self.each_of(which, |session| {
            if left == 0 {
                return Ok(ControlFlow::Break(()));
            }
            if is_wanted(&session) {
                let IndexedSession { key, entry } = &session;
                let about = About::from_extra(entry.extra.as_ref());
                printer.json(&ListedSession { name: &self.name_of(key), key, about, entry })?;
                left -= 1;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        printer.finish()
    }

    fn print_table(&self, sessions: &[IndexedSession]) -> Result<(), CliError> {
        let abouts: Vec<About> = sessions
            .iter()
            .map(|session| {
                let extra = session.entry.extra.as_ref();
                About { title: indexed_title(extra), ..About::from_extra(extra) }
            })
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

fn has_labels(session: &IndexedSession, labels: &[String]) -> bool {
    labels.is_empty() || {
        let own = About::from_extra(session.entry.extra.as_ref()).labels;
        labels.iter().all(|label| own.contains(label))
    }
}

/// As in `Rome by train [travel] [2026]`.
fn title_and_labels(about: &About) -> String {
    let labels = about.labels.iter().map(|label| format!("[{label}]"));
    about.title.clone().into_iter().chain(labels).collect::<Vec<_>>().join(" ")
}

//! `myclaw sessions search`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use myclaw_session::{Case, Role, SearchHit, SearchQuery, SearchScope, SessionKey};
use serde::Serialize;

use super::Sessions;
use super::list::ListFormat;
use crate::args::WhichSessions;
use crate::exit::CliError;
use crate::interrupt::Interrupts;
use crate::picker::{Choices, Picked, Row, Words, pick};
use crate::print::{Printer, note};
use crate::terminal::{Paint, Style};
use crate::time::local_minute;

/// Most messages to choose from.
const MOST_CHOICES: usize = 100;
const WORDS: Words = Words { title: "Open a message", keys: ", typing narrows", letters: &[] };

/// How the text is matched.
#[derive(Debug, Clone, Copy)]
pub struct SearchOptions {
    /// How the text is read.
    pub syntax: Syntax,
    /// Whether upper and lower case differ.
    pub case: Case,
}

/// The kind of pattern.
#[derive(Debug, Clone, Copy)]
pub enum Syntax {
    /// The pattern.
    Text,
    /// A regular expression.
    Regex,
}

/// A message in the JSON of `sessions search`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundMessage<'a> {
    name: &'a str,
    key: &'a SessionKey,
    id: String,
    role: Role,
    ts: u64,
    before: &'a str,
    matched: &'a str,
    after: &'a str,
}

impl Sessions {
    /// Prints the newest `limit` messages that match.
    pub fn search(
        &self,
        text: &str,
        options: SearchOptions,
        which: &WhichSessions,
        limit: usize,
        format: ListFormat,
    ) -> Result<(), CliError> {
        let query = match options.syntax {
            Syntax::Text => SearchQuery::text(text, options.case),
            Syntax::Regex => SearchQuery::regex(text, options.case),
        };
        let query = query.map_err(|error| CliError::usage(error.to_string()))?;
        let report = self.catalog.search(&query, &self.search_scope(which)?, limit)?;
        for (place, error) in &report.unreadable {
            note(format_args!("{place} was not searched: {error}"));
        }
        let mut printer = Printer::stdout();
        let paint = Paint::for_stream(&std::io::stdout());
        for hit in &report.hits {
            let name = self.name_of(&hit.key);
            match format {
                ListFormat::Json => printer.json(&FoundMessage::new(&name, hit))?,
                ListFormat::Table => print(&name, hit, paint, &mut printer)?,
            }
        }
        printer.finish()?;
        let total: u64 = report.matches.values().sum();
        if total == 0 {
            note("nothing was found");
        } else if total > report.hits.len() as u64 {
            note(format_args!(
                "{total} messages in {} match; `--limit` shows more than {limit}",
                super::counted(report.matches.len())
            ));
        }
        Ok(())
    }

    /// The files to search. Their paths contain the agent, so the index is read for labels only.
    pub fn search_scope(&self, which: &WhichSessions) -> Result<SearchScope, CliError> {
        if !which.label.is_empty() {
            let mut keys = HashSet::new();
            self.each_of(which, |session| {
                keys.insert(session.key);
                Ok(ControlFlow::Continue(()))
            })?;
            return Ok(SearchScope { keys: Some(keys), ..SearchScope::default() });
        }
        let agent_id =
            which.agent.as_ref().map(|agent| SessionKey::for_cli(agent, "any").parts().agent_id);
        Ok(SearchScope { agent_id, ..SearchScope::default() })
    }
}

/// The newest messages that have a text, from which the user chooses.
pub struct HitChoices {
    hits: Vec<SearchHit>,
    /// How each is shown, and the text in which it is found.
    rows: Vec<(Row, String)>,
}

impl HitChoices {
    /// The newest messages that have `text`, in upper or lower case.
    ///
    /// # Errors
    /// The text cannot be searched for, or the sessions cannot be read.
    pub fn find(sessions: &Sessions, text: &str) -> Result<Self, CliError> {
        let query = SearchQuery::text(text, Case::Ignored)
            .map_err(|error| CliError::usage(error.to_string()))?;
        let report = sessions.catalog.search(&query, &SearchScope::default(), MOST_CHOICES)?;
        let row = |hit: &SearchHit| {
            let row = Row {
                name: snippet(hit),
                about: String::new(),
                details: vec![local_minute(hit.ts), sessions.name_of(&hit.key)],
            };
            let text = format!("{} {}", row.name, row.details.join(" ")).to_lowercase();
            (row, text)
        };
        Ok(Self { rows: report.hits.iter().map(row).collect(), hits: report.hits })
    }

    /// Lets the user choose; `None` if the list was left.
    pub async fn pick(&self, interrupts: &Interrupts) -> Option<&SearchHit> {
        match pick(interrupts, WORDS, self, 0).await {
            Picked::Entry(at) => self.hits.get(at),
            Picked::With(..) | Picked::Nothing => None,
        }
    }
}

impl Choices for HitChoices {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn search_text(&self, at: usize) -> &str {
        self.rows.get(at).map_or("", |(_, text)| text)
    }

    fn row(&self, at: usize) -> Row {
        self.rows.get(at).map(|(row, _)| row.clone()).unwrap_or_default()
    }
}

/// What surrounds a hit, in one line.
fn snippet(hit: &SearchHit) -> String {
    let text = format!("{}{}{}", hit.before, hit.matched, hit.after);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A hit in one line, with who said it and when.
pub fn described(hit: &SearchHit) -> String {
    format!("found, {}, {}: {}", hit.role.as_str(), local_minute(hit.ts), snippet(hit))
}

impl<'a> FoundMessage<'a> {
    fn new(name: &'a str, hit: &'a SearchHit) -> Self {
        Self {
            name,
            key: &hit.key,
            id: hit.id.to_string(),
            role: hit.role,
            ts: hit.ts,
            before: &hit.before,
            matched: &hit.matched,
            after: &hit.after,
        }
    }
}

fn print(name: &str, hit: &SearchHit, paint: Paint, printer: &mut Printer) -> Result<(), CliError> {
    let head = format!("{name}, {}, {}", hit.role.as_str(), local_minute(hit.ts));
    let head = paint.paint(Style::Heading, &printer.safe(&head));
    let id = paint.paint(Style::Dim, &printer.safe(hit.id.as_str()));
    printer.line(format_args!("{head} {id}"))?;
    let snippet = format!("{}{}{}", hit.before, hit.matched, hit.after);
    let snippet = printer.safe(&snippet).into_owned();
    printer.line(format_args!("  {}", snippet.trim()))
}

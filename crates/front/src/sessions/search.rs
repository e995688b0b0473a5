//! `myclaw sessions search`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use myclaw_session::{Case, Role, SearchHit, SearchQuery, SearchScope, SessionKey};
use serde::Serialize;

use super::Sessions;
use super::list::ListFormat;
use crate::args::WhichSessions;
use crate::exit::CliError;
use crate::print::{Printer, note};
use crate::terminal::{Paint, Style};
use crate::time::local_minute;

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

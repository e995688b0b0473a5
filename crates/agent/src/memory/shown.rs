//! What is shown of facts, the same in every front-end.

use std::path::Path;

use myclaw_memory::{Added, Fact, FactId};

use crate::{AgentError, SessionConfig};

impl SessionConfig {
    /// Remembers a fact, in the place of another one if that is named. Returns what to show. Blocks.
    ///
    /// # Errors
    /// There is no such older fact, or nothing can be written.
    pub fn added_fact(&self, fact: &str, replaces: Option<&FactId>) -> Result<String, AgentError> {
        Ok(match self.remember(fact, replaces)? {
            Added::Known(fact) => format!("known already ({}): {}", fact.id, fact.text),
            Added::New(fact, _) => format!("remembered ({}): {}", fact.id, fact.text),
        })
    }

    /// Changes the words of a fact. Returns what to show. Blocks.
    ///
    /// # Errors
    /// There is no such fact, or nothing can be written.
    pub fn edited_fact(&self, id: &str, text: &str) -> Result<String, AgentError> {
        let before = self.facts()?.edit(&self.fact(id)?.id, text)?;
        let after = self.fact(id)?;
        Ok(format!("changed ({}): {}\nbefore: {}", after.id, after.text, before.text))
    }
}

/// A change of a database that a process has open: it is refused, because a command that was killed while it changed databases has
/// to be completed first.
///
/// # Errors
/// Always.
pub fn refuse_store(path: &Path, _change: &mut dyn FnMut(&mut [u8]) -> bool) -> Result<(), String> {
    Err(format!(
        "{} is in use, and an earlier `myclaw memory forget --redact` still has to change it; stop the gateway, and repeat that",
        path.display()
    ))
}

/// The rows of a table of facts.
pub fn fact_rows<'f>(facts: impl Iterator<Item = &'f Fact>) -> Vec<Vec<String>> {
    let row = |fact: &Fact| {
        let day = fact.origin.as_ref().map(|origin| origin.date.clone()).unwrap_or_default();
        let until = fact.until.as_ref().map(|until| format!(" (until {})", until.date));
        vec![fact.id.to_string(), day, format!("{}{}", fact.text, until.unwrap_or_default())]
    };
    let rows: Vec<Vec<String>> = facts.map(row).collect();
    match rows.is_empty() {
        true => vec![vec!["nothing is remembered yet".to_owned()]],
        false => rows,
    }
}

/// What is known of a fact, a row for each property.
pub fn about_rows(fact: &Fact) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["fact".to_owned(), fact.text.clone()]];
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            rows.push(vec![name.to_owned(), value.to_owned()]);
        }
    };
    row("id", fact.id.as_str());
    if let Some(until) = &fact.until {
        let now = until.now.as_ref().map(|now| format!(", now {now}")).unwrap_or_default();
        row("until", &format!("{}{now}", until.date));
    }
    match &fact.origin {
        None => row("from", "a person, who wrote it into the file"),
        Some(origin) => {
            row("day", &origin.date);
            row("from", &origin.person);
            row("session", &origin.session);
            row("message", &origin.row);
            row("after", &origin.after.join(", "));
            row("learned", if origin.is_learned { "by itself, from the conversation" } else { "" });
        }
    }
    rows
}

/// What was said where a fact comes from.
pub fn why_lines(fact: &Fact, words: Option<&str>) -> Vec<String> {
    match words {
        Some(words) => vec![String::new(), format!("it was said: {words}")],
        None if fact.origin.as_ref().is_some_and(|origin| !origin.row.is_empty()) => {
            vec!["the message is not there any more".to_owned()]
        }
        None => Vec::new(),
    }
}

/// How many messages the logs still have of what was forgotten.
pub fn still_said(messages: usize) -> String {
    let count = match messages {
        0 => return String::new(),
        1 => "1 message".to_owned(),
        number => format!("{number} messages"),
    };
    format!(
        "\nthe logs still have {count}: `myclaw memory forget --redact --word WORD` removes words there"
    )
}

//! What the agent remembers, as `myclaw memory` and `/memory` show and change it.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use myclaw_agent::remembered::{
    Redaction, SessionsOf, about_rows, fact_rows, still_said, why_lines,
};
use myclaw_agent::{CommandAnswer, Home, SessionConfig};
use myclaw_config::Config;
use myclaw_memory::Fact;
use serde::Serialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::exit::CliError;
use crate::print::{Printer, columns, note};

/// What is out of reach.
const COPIES: &str = "not reached: copies outside of the state directory, such as backups, exports, and what the model's \
                      provider keeps";

/// Carries out `/memory ARGUMENTS`, and returns what to show.
///
/// # Errors
/// There is no such fact, or something cannot be read or changed.
pub async fn obey(config: Arc<SessionConfig>, arguments: String) -> Result<String, CliError> {
    let obeyed = spawn_blocking(move || obey_blocking(&config, &arguments)).await;
    obeyed.map_err(|error| CliError::failure(error.to_string()))?
}

fn obey_blocking(config: &SessionConfig, arguments: &str) -> Result<String, CliError> {
    let CommandAnswer { rows, text, .. } = config.obey_memory(arguments, &change_store)?;
    let lines = text.lines().map(str::to_owned);
    Ok(columns(&rows).into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
}

/// Completes what a killed command began to forget. Where gateways share a database, what was forgotten is in that, so it
/// waits for a command that opens it.
///
/// # Errors
/// A session is in use, or something cannot be changed.
pub fn finish_forgetting(home: &Home) -> Result<(), CliError> {
    if !home.has_to_forget() {
        return Ok(());
    }
    let config = myclaw_config::load_or_default(&home.environment)?.config;
    match config.store_address(&home.environment) {
        Some(_) => Ok(()),
        None => finish_forgetting_in(home, &config),
    }
}

/// The same for a home with the stores that the config names.
///
/// # Errors
/// As for [`finish_forgetting`].
pub fn finish_forgetting_in(home: &Home, config: &Config) -> Result<(), CliError> {
    match home.has_to_forget() {
        true => Ok(home.finish_forgetting(config, &change_store)?),
        false => Ok(()),
    }
}

/// Changes the values of all records in a database of the gateway or of a host. Other databases stay as they are.
fn change_store(path: &Path, change: &mut dyn FnMut(&mut [u8]) -> bool) -> Result<(), String> {
    match path.file_name().and_then(OsStr::to_str) {
        Some("store.sqlite" | "host.sqlite") => {
            myclaw_store::change_values(path, change).map_err(|error| error.to_string())
        }
        _ => Ok(()),
    }
}

/// Prints the facts that hold, or all.
///
/// # Errors
/// They cannot be read, or standard output is closed.
pub fn list(config: &SessionConfig, all: bool, json: bool) -> Result<(), CliError> {
    let notebook = config.facts()?;
    let facts = notebook.facts()?;
    let mut printer = Printer::stdout();
    if json {
        for fact in facts.iter().filter(|fact| all || fact.is_current()) {
            printer.json(fact)?;
        }
        return printer.finish();
    }
    let shown = || facts.iter().filter(|fact| all || fact.is_current());
    printer.safe_lines(columns(&fact_rows(shown())))?;
    printer.finish()?;
    if shown().next().is_some() {
        note(format_args!("myclaw: the facts are in {}", notebook.path().display()));
    }
    Ok(())
}

/// What is known of a fact, a row for each property.
pub fn about(fact: &Fact) -> Vec<String> {
    columns(&about_rows(fact))
}

/// Why a fact is known: its origin, and what was said there.
pub fn why(fact: &Fact, words: Option<&str>) -> Vec<String> {
    about(fact).into_iter().chain(why_lines(fact, words)).collect()
}

/// Prints the passages of notes and sessions that fit a query.
///
/// # Errors
/// They cannot be searched, or standard output is closed.
pub fn search(
    config: &SessionConfig,
    query: &str,
    limit: Option<usize>,
    scope: SessionsOf,
    json: bool,
) -> Result<(), CliError> {
    let hits = config.search_memory(query, limit, scope)?;
    let mut printer = Printer::stdout();
    for (shown, place) in &hits.entries {
        if json {
            let (_, text) = shown.split_once('\n').unwrap_or(("", shown));
            let mut line = place.clone();
            line["text"] = Value::from(text.trim_end());
            printer.json(&line)?;
        } else {
            printer.safe_lines(shown.lines())?;
        }
    }
    if hits.entries.is_empty() && !json {
        printer.line("nothing fits; try other words")?;
    }
    printer.finish()?;
    for remark in &hits.remarks {
        note(format_args!("myclaw: {remark}"));
    }
    Ok(())
}

/// Remembers a fact, in the place of another one if that is named. Returns what to show.
///
/// # Errors
/// There is no such older fact, or nothing can be written.
pub fn add(config: &SessionConfig, fact: &str, replaces: Option<&str>) -> Result<String, CliError> {
    let replaces = replaces.map(|id| config.fact(id)).transpose()?.map(|fact| fact.id);
    Ok(config.added_fact(fact, replaces.as_ref())?)
}

/// Changes the words of a fact. Returns what to show.
///
/// # Errors
/// There is no such fact, or nothing can be written.
pub fn edit(config: &SessionConfig, id: &str, text: &str) -> Result<String, CliError> {
    Ok(config.edited_fact(id, text)?)
}

/// The words that are replaced, and how many messages have all of them.
///
/// # Errors
/// There is no word to replace, or the sessions cannot be read.
pub fn chosen(
    config: &SessionConfig,
    fact: Option<&Fact>,
    words: &[String],
) -> Result<(Vec<String>, usize), CliError> {
    let (chosen, messages) = config.said_of(fact, words)?;
    if chosen.is_empty() {
        let why = "the fact has no word that could be replaced; name some with --word";
        return Err(CliError::usage(why));
    }
    Ok((chosen, messages))
}

/// Refuses to redact, and says which words would go.
pub fn preview(words: &[String], messages: usize) -> CliError {
    CliError::usage(format!(
        "nothing is forgotten yet. With --yes these words become stars for good, in {} and wherever else they are: {}. \
         --word chooses others",
        count(messages),
        words.join(", ")
    ))
}

/// Forgets a fact, and on request its words everywhere.
///
/// # Errors
/// Something cannot be changed.
pub fn forget(
    config: &SessionConfig,
    fact: Option<&Fact>,
    redaction: &Redaction,
    json: bool,
) -> Result<(), CliError> {
    let forgot = config.forget(fact, redaction, &change_store)?;
    if json {
        return print(true, &forgot, Vec::new());
    }
    match (redaction, fact) {
        (Redaction::Words(words), _) => {
            let are = if words.len() == 1 { "is" } else { "are" };
            say(&format!("forgotten; {} {are} replaced by stars", count_words(words.len())))?
        }
        (Redaction::Nothing, Some(fact)) => {
            say(&format!("forgot: {}{}", fact.text, still_said(forgot.messages)))?;
        }
        (Redaction::Nothing, None) => {}
    }
    for file in &forgot.left {
        note(format_args!("myclaw: {} still has a word of it; change it yourself", file.display()));
    }
    note(format_args!("myclaw: {COPIES}"));
    Ok(())
}

fn count_words(words: usize) -> String {
    if words == 1 { "1 word".to_owned() } else { format!("{words} words") }
}

fn count(messages: usize) -> String {
    if messages == 1 { "1 message".to_owned() } else { format!("{messages} messages") }
}

/// Prints a text.
///
/// # Errors
/// Standard output is closed.
pub fn say(text: &str) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.safe_lines(text.lines())?;
    printer.finish()
}

/// Prints a value as JSON, or lines for a person.
///
/// # Errors
/// Standard output is closed.
pub fn print(json: bool, value: &impl Serialize, lines: Vec<String>) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    if json {
        printer.json(value)?;
    } else {
        printer.safe_lines(lines)?;
    }
    printer.finish()
}

//! What the agent remembers, as `myclaw memory` and `/memory` show and change it.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use myclaw_agent::remembered::{Redaction, SessionsOf};
use myclaw_agent::{Home, SessionConfig};
use myclaw_config::Config;
use myclaw_memory::{Added, Fact};
use serde::Serialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::exit::CliError;
use crate::print::{Printer, columns, note};

/// The text of `/memory` about itself.
pub const USAGE: &str = "/memory lists the facts; /memory search WORDS, /memory why ID, /memory edit ID TEXT, /memory \
                                forget ID, /memory add TEXT";
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
    let (verb, rest) =
        arguments.trim().split_once(char::is_whitespace).unwrap_or((arguments.trim(), ""));
    let rest = rest.trim();
    let (id, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match (verb, rest) {
        ("" | "list", "") => Ok(columns(&rows(&config.facts()?.facts()?, false)).join("\n")),
        ("search", query) if !query.is_empty() => {
            let hits = config.search_memory(query, None, SessionsOf::Owner)?;
            let shown: Vec<&str> = hits.entries.iter().map(|(shown, _)| shown.trim_end()).collect();
            let shown = if shown.is_empty() { vec!["nothing fits"] } else { shown };
            Ok(shown
                .into_iter()
                .chain(hits.remarks.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join("\n\n"))
        }
        ("why" | "show", _) if !id.is_empty() => {
            let fact = config.fact(id)?;
            let words = config.words_of_origin(&fact)?;
            Ok(why(&fact, words.as_deref()).join("\n"))
        }
        ("add", fact) if !fact.is_empty() => add(config, fact, None),
        ("edit", _) if !text.trim().is_empty() => edit(config, id, text),
        ("forget", _) if !id.is_empty() && text.is_empty() => {
            let fact = config.fact(id)?;
            let forgot = config.forget(Some(&fact), &Redaction::Nothing, &change_store)?;
            Ok(format!("forgot: {}{}", fact.text, still_said(forgot.messages)))
        }
        _ => Ok(USAGE.to_owned()),
    }
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
    printer.safe_lines(columns(&rows(&facts, all)))?;
    printer.finish()?;
    note(format_args!("myclaw: they are in {}", notebook.path().display()));
    Ok(())
}

fn rows(facts: &[Fact], all: bool) -> Vec<Vec<String>> {
    let shown: Vec<&Fact> = facts.iter().filter(|fact| all || fact.is_current()).collect();
    if shown.is_empty() {
        return vec![vec!["nothing is remembered yet".to_owned()]];
    }
    let row = |fact: &&Fact| {
        let day = fact.origin.as_ref().map(|origin| origin.date.clone()).unwrap_or_default();
        let until = fact.until.as_ref().map(|until| format!(" (until {})", until.date));
        vec![fact.id.to_string(), day, format!("{}{}", fact.text, until.unwrap_or_default())]
    };
    shown.iter().map(row).collect()
}

/// What is known of a fact, a row for each property.
pub fn about(fact: &Fact) -> Vec<String> {
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
    columns(&rows)
}

/// Why a fact is known: its origin, and what was said there.
pub fn why(fact: &Fact, words: Option<&str>) -> Vec<String> {
    let mut lines = about(fact);
    match words {
        Some(words) => lines.extend(["".to_owned(), format!("it was said: {words}")]),
        None if fact.origin.as_ref().is_some_and(|origin| !origin.row.is_empty()) => {
            lines.push("the message is not there any more".to_owned());
        }
        None => {}
    }
    lines
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
    Ok(match config.remember(fact, replaces.as_ref())? {
        Added::Known(fact) => format!("known already ({}): {}", fact.id, fact.text),
        Added::New(fact, _) => format!("remembered ({}): {}", fact.id, fact.text),
    })
}

/// Changes the words of a fact. Returns what to show.
///
/// # Errors
/// There is no such fact, or nothing can be written.
pub fn edit(config: &SessionConfig, id: &str, text: &str) -> Result<String, CliError> {
    let before = config.facts()?.edit(&config.fact(id)?.id, text)?;
    let after = config.fact(id)?;
    Ok(format!("changed ({}): {}\nbefore: {}", after.id, after.text, before.text))
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
            say(&format!("forgotten; {} are stars now", count_words(words.len())))?
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

fn still_said(messages: usize) -> String {
    match messages {
        0 => String::new(),
        number => format!(
            "\nthe logs still have {}: `myclaw memory forget --redact --word WORD` removes words there",
            count(number)
        ),
    }
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

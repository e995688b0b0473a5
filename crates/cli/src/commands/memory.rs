//! `myclaw memory`: what the agent remembers.

use myclaw_agent::SessionConfig;
use myclaw_agent::remembered::{Redaction, SessionsOf};
use myclaw_front::exit::CliError;
use myclaw_front::home::load_session;
use myclaw_front::memory::{
    about, add, chosen, edit, forget, list, preview, print, say, search, why,
};
use serde_json::json;

use crate::args::{MemoryArgs, MemoryCommand, WhoseMemory};
use crate::commands::cluster::home_of_sessions;

/// Runs one of the commands.
pub(crate) fn run(args: &MemoryArgs) -> Result<(), CliError> {
    match &args.command {
        MemoryCommand::List { all, whose, json } => list(&config(whose)?, *all, *json),
        MemoryCommand::Show { id, whose, json } => {
            let config = config(whose)?;
            let fact = config.fact(id)?;
            print(*json, &fact, about(&fact))
        }
        MemoryCommand::Search { query, limit, everybody, whose, json } => {
            let scope = if *everybody { SessionsOf::Everybody } else { SessionsOf::Owner };
            search(&config(whose)?, &query.join(" "), *limit, scope, *json)
        }
        MemoryCommand::Add { fact, replaces, whose } => {
            let said = add(&config(whose)?, &fact.join(" "), replaces.as_deref())?;
            say(&said)
        }
        MemoryCommand::Edit { id, fact, whose } => {
            say(&edit(&config(whose)?, id, &fact.join(" "))?)
        }
        MemoryCommand::Why { id, whose, json } => {
            let config = config(whose)?;
            let fact = config.fact(id)?;
            let words = config.words_of_origin(&fact)?;
            let line =
                json!({"id": fact.id, "text": fact.text, "origin": fact.origin, "said": words});
            print(*json, &line, why(&fact, words.as_deref()))
        }
        MemoryCommand::Forget { id, redact, words, yes, whose, json } => {
            let config = config(whose)?;
            let fact = id.as_ref().map(|id| config.fact(id)).transpose()?;
            if !redact {
                return forget(&config, fact.as_ref(), &Redaction::Nothing, *json);
            }
            let (words, messages) = chosen(&config, fact.as_ref(), words)?;
            if !yes {
                return Err(preview(&words, messages));
            }
            forget(&config, fact.as_ref(), &Redaction::Words(words), *json)
        }
    }
}

fn config(whose: &WhoseMemory) -> Result<SessionConfig, CliError> {
    load_session(home_of_sessions()?, &whose.options())
}

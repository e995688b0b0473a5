//! `/memory`: what it shows and changes, the same in every front-end.

use super::CommandAnswer;
use crate::memory::{
    ChangeStore, Redaction, SessionsOf, about_rows, fact_rows, still_said, why_lines,
};
use crate::{AgentError, SessionConfig};

/// What it says about itself.
const USAGE: &str = "/memory lists the facts; /memory search WORDS, /memory why ID, /memory edit ID TEXT, /memory \
                                forget ID, /memory add TEXT";

impl SessionConfig {
    /// Obeys `/memory ARGUMENTS`. Blocks.
    ///
    /// # Errors
    /// There is no such fact, or something cannot be read or changed.
    pub fn obey_memory(
        &self,
        arguments: &str,
        change_store: ChangeStore<'_>,
    ) -> Result<CommandAnswer, AgentError> {
        let (verb, rest) =
            arguments.trim().split_once(char::is_whitespace).unwrap_or((arguments.trim(), ""));
        let rest = rest.trim();
        let (id, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let text = match (verb, rest) {
            ("" | "list", "") => {
                let facts = self.facts()?.facts()?;
                let rows = fact_rows(facts.iter().filter(|fact| fact.is_current()));
                return Ok(CommandAnswer { rows, ..CommandAnswer::default() });
            }
            ("search", query) if !query.is_empty() => {
                let hits = self.search_memory(query, None, SessionsOf::Owner)?;
                let shown: Vec<&str> =
                    hits.entries.iter().map(|(shown, _)| shown.trim_end()).collect();
                let shown = if shown.is_empty() { vec!["nothing fits"] } else { shown };
                let all = shown.into_iter().chain(hits.remarks.iter().map(String::as_str));
                all.collect::<Vec<_>>().join("\n\n")
            }
            ("why" | "show", _) if !id.is_empty() => {
                let fact = self.fact(id)?;
                let text = why_lines(&fact, self.words_of_origin(&fact)?.as_deref()).join("\n");
                return Ok(CommandAnswer {
                    rows: about_rows(&fact),
                    text,
                    ..CommandAnswer::default()
                });
            }
            ("add", fact) if !fact.is_empty() => self.added_fact(fact, None)?,
            ("edit", _) if !text.trim().is_empty() => self.edited_fact(id, text)?,
            ("forget", _) if !id.is_empty() && text.is_empty() => {
                let fact = self.fact(id)?;
                let forgot = self.forget(Some(&fact), &Redaction::Nothing, change_store)?;
                format!("forgot: {}{}", fact.text, still_said(forgot.messages))
            }
            _ => USAGE.to_owned(),
        };
        Ok(text.into())
    }
}

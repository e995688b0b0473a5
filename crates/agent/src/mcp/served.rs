//! What MyClaw as a server reads of what it has stored.

use myclaw_engine::AlwaysScope;
use myclaw_files::hex;
use myclaw_mcp::serve::{self, MEMORY_SEARCH, SESSION_READ, SESSIONS_SEARCH};
use myclaw_session::{
    About, Case, EntryId, IndexedSession, SearchQuery, SessionKey, indexed_title,
};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::approvals::{Question, WrittenAnswer};
use crate::export::Excerpt;
use crate::memory::SessionsOf;
use crate::{AgentError, FailureClass, SessionConfig};

/// Sessions or messages, unless the client wants another number, and most of them.
const USUAL: usize = 20;
const MOST: usize = 100;
/// Most messages that a search finds.
const MOST_HITS: usize = 200;

/// The answers to a question that approve. That of each further scope of "always" has its place behind it, as `always-1`.
const ONCE: &str = "once";
const ALWAYS: &str = "always";
/// Bytes of the digest in the id of a question.
const ID_BYTES: usize = 16;

/// A question for a client of the server. Without an `id` of its own it gets one that is the same after a restart.
pub fn served_question(question: &Question, id: Option<String>) -> serve::Question {
    let always = question.always.iter().enumerate();
    let always = always
        .map(|(number, scope)| (always_id(number), format!("always allow {}", scope.covers())));
    let once = (ONCE.to_owned(), "it runs, this time".to_owned());
    let id = id.unwrap_or_else(|| {
        let bytes = serde_json::to_vec(question).unwrap_or_default();
        format!("a{}", hex(&digest(&SHA256, &bytes).as_ref()[..ID_BYTES]))
    });
    let text = question.message();
    let wants = question.wants.clone();
    let once = wants.is_none().then_some(once);
    serve::Question { id, text, approving: once.into_iter().chain(always).collect(), wants }
}

/// What an answer to a question with these scopes of "always" means.
pub fn served_answer(answer: serve::Answer, always: &[AlwaysScope]) -> WrittenAnswer {
    match answer {
        serve::Answer::Approved(chosen) if chosen == ONCE => WrittenAnswer::Once,
        serve::Answer::Approved(chosen) => {
            let mut scopes = always.iter().enumerate();
            let scope = scopes.find(|(number, _)| always_id(*number) == chosen);
            scope.map_or(WrittenAnswer::No(None), |(_, scope)| {
                WrittenAnswer::Always(Some(scope.kind()))
            })
        }
        serve::Answer::Refused(reason) => WrittenAnswer::No(reason),
        serve::Answer::Words(words) => WrittenAnswer::Said(words),
        serve::Answer::Closed => WrittenAnswer::Cancel,
    }
}

fn always_id(number: usize) -> String {
    if number == 0 { ALWAYS.to_owned() } else { format!("{ALWAYS}-{number}") }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionsSearch {
    #[serde(default)]
    query: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionRead {
    session: String,
    limit: Option<usize>,
    before: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemorySearch {
    query: String,
    limit: Option<usize>,
}

impl SessionConfig {
    /// What a tool of the server reads, without keys. Blocks.
    ///
    /// # Errors
    /// The arguments cannot be used, there is no such session, or something cannot be read.
    pub fn serve_reading(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, AgentError> {
        let mut found = match tool {
            SESSIONS_SEARCH => self.found_sessions(&read(tool, arguments)?)?,
            SESSION_READ => self.read_session(&read(tool, arguments)?)?,
            MEMORY_SEARCH => {
                let MemorySearch { query, limit } = read(tool, arguments)?;
                let limit = limit.map(|limit| limit.clamp(1, MOST));
                let hits = self.search_memory(&query, limit, SessionsOf::Owner)?;
                let entries: Vec<&str> =
                    hits.entries.iter().map(|(text, _)| text.trim_end()).collect();
                json!({"results": entries, "remarks": hits.remarks})
            }
            _ => return Err(usage(format!("there is no tool `{tool}`"))),
        };
        self.home.redactor().clean_value(&mut found);
        Ok(found)
    }

    /// The name with which a client of the server continues a session.
    pub fn served_name(&self, key: &SessionKey) -> String {
        let parts = key.parts();
        match SessionKey::for_cli(self.agent.id.as_str(), &parts.peer_id) == *key {
            true => parts.peer_id,
            false => key.to_string(),
        }
    }

    fn found_sessions(&self, search: &SessionsSearch) -> Result<Value, AgentError> {
        let catalog = self.home.catalog();
        let limit = search.limit.unwrap_or(USUAL).clamp(1, MOST);
        let shown = |session: &IndexedSession| {
            let extra = session.entry.extra.as_ref();
            let title = About::from_extra(extra).title.or_else(|| indexed_title(extra));
            json!({"session": self.served_name(&session.key), "title": title, "updatedAt": session.entry.updated_at})
        };
        let query = search.query.trim();
        if query.is_empty() {
            let (sessions, total) = catalog.latest(limit)?;
            return Ok(
                json!({"sessions": sessions.iter().map(shown).collect::<Vec<_>>(), "total": total}),
            );
        }
        let query =
            SearchQuery::text(query, Case::Ignored).map_err(|error| usage(error.to_string()))?;
        let report = catalog.search_again(&query, MOST_HITS)?;
        let has_match = |key: &str| report.matches.keys().any(|matching| matching.as_str() == key);
        let (sessions, total) = catalog.find(&query, limit, &has_match)?;
        let with_hit = |session: &IndexedSession| {
            let mut row = shown(session);
            if let Some(hit) = report.hits.iter().find(|hit| hit.key == session.key) {
                row["message"] = json!({"id": hit.id, "text": format!("{}{}{}", hit.before, hit.matched, hit.after)});
            }
            row
        };
        Ok(json!({"sessions": sessions.iter().map(with_hit).collect::<Vec<_>>(), "total": total}))
    }

    fn read_session(&self, wanted: &SessionRead) -> Result<Value, AgentError> {
        let key = SessionKey::parse_for_agent(self.agent.id.as_str(), &wanted.session)
            .map_err(|error| usage(error.to_string()))?;
        let reader = self.home.catalog().read(&key)?;
        let reader = reader.ok_or_else(|| {
            usage(format!("there is no session `{}`; {SESSIONS_SEARCH} lists them", wanted.session))
        })?;
        let excerpt = Excerpt {
            before: wanted.before.as_deref().map(EntryId::from_text),
            most: wanted.limit.unwrap_or(USUAL).clamp(1, MOST),
            with_tools: false,
        };
        let messages = excerpt.read(&*reader)?.ok_or_else(|| {
            usage("the session has no message with the id in `before`; leave it out to read the newest")
        })?;
        Ok(json!({"session": self.served_name(&key), "messages": messages}))
    }
}

fn read<T: DeserializeOwned>(tool: &str, arguments: Map<String, Value>) -> Result<T, AgentError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| usage(format!("the arguments of `{tool}` cannot be used: {error}")))
}

fn usage(why: impl Into<String>) -> AgentError {
    AgentError::new(FailureClass::Usage, why)
}
